//! Parent links: the region of each operation, the operation of each region.
//!
//! The IR stores only the links down (operations hold regions hold operations). Code that needs the links up computes them
//! once, in linear time; they are valid until operations move.

use crate::function::{Function, Op, Region, Value, ValueDef};
use crate::opcode::Opcode;
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;

/// The parents of operations and regions, when this was computed.
#[derive(Clone, Debug)]
pub struct Structure {
    region_of: SecondaryMap<Op, PackedOption<Region>>,
    op_of: SecondaryMap<Region, PackedOption<Op>>,
    depth: SecondaryMap<Region, u32>,
    order: SecondaryMap<Op, u32>,
}

impl Structure {
    /// Computes it.
    pub fn of(function: &Function) -> Structure {
        let mut structure = Structure {
            region_of: SecondaryMap::with_default(None.into()),
            op_of: SecondaryMap::with_default(None.into()),
            depth: SecondaryMap::new(),
            order: SecondaryMap::new(),
        };
        if let Some(body) = function.body {
            let mut next = 0;
            structure.visit(function, body, 0, &mut next);
        }
        structure
    }

    fn visit(&mut self, function: &Function, region: Region, depth: u32, next: &mut u32) {
        self.depth[region] = depth;
        for &op in &function.regions[region].ops {
            self.region_of[op] = region.into();
            self.order[op] = *next;
            *next += 1;
            for &inner in &function.ops[op].regions {
                self.op_of[inner] = op.into();
                self.visit(function, inner, depth + 1, next);
            }
        }
    }

    /// The region that holds an operation; none if no region does.
    pub fn region_of(&self, op: Op) -> Option<Region> {
        self.region_of[op].expand()
    }

    /// The operation that holds a region; none for the body.
    pub fn op_of(&self, region: Region) -> Option<Op> {
        self.op_of[region].expand()
    }

    /// The region around a region; none for the body.
    pub fn parent(&self, region: Region) -> Option<Region> {
        self.op_of(region).and_then(|op| self.region_of(op))
    }

    /// How many regions are around a region.
    pub fn depth(&self, region: Region) -> u32 {
        self.depth[region]
    }

    /// The position of an operation in the text: an operation comes before those in its regions.
    pub fn order(&self, op: Op) -> u32 {
        self.order[op]
    }

    /// Whether `inner` is `outer` or lies within it.
    pub fn is_within(&self, inner: Region, outer: Region) -> bool {
        let mut region = inner;
        while self.depth(region) > self.depth(outer) {
            match self.parent(region) {
                Some(parent) => region = parent,
                None => return false,
            }
        }
        region == outer
    }

    /// The region in which a value is defined; none for constants.
    pub fn region_of_value(&self, function: &Function, value: Value) -> Option<Region> {
        match function.values[value].def {
            ValueDef::Result { op, .. } => self.region_of(op),
            ValueDef::Argument { region, .. } => Some(region),
            ValueDef::Constant(_) => None,
        }
    }

    /// Whether a value is defined outside the regions of an operation.
    pub fn is_defined_outside(&self, function: &Function, value: Value, op: Op) -> bool {
        match self.region_of_value(function, value) {
            None => function.is_constant(value),
            Some(region) => {
                let mut inner = function.ops[op].regions.iter();
                !inner.any(|&inner| self.is_within(region, inner))
            }
        }
    }

    /// The innermost `for` or `loop` around a region.
    pub fn loop_around(&self, function: &Function, region: Region) -> Option<Op> {
        let mut region = region;
        loop {
            let op = self.op_of(region)?;
            if matches!(function.ops[op].opcode, Opcode::For | Opcode::Loop) {
                return Some(op);
            }
            region = self.region_of(op)?;
        }
    }

    /// The operation of `region`'s own list that is `op` or holds it.
    pub fn ancestor_in(&self, op: Op, region: Region) -> Option<Op> {
        let mut op = op;
        loop {
            let own = self.region_of(op)?;
            if own == region {
                return Some(op);
            }
            op = self.op_of(own)?;
        }
    }
}

/// Calls `visit` for each operation of a region and of the regions within, in the order of the text.
pub fn for_each_op(function: &Function, region: Region, visit: &mut impl FnMut(Region, Op)) {
    for &op in &function.regions[region].ops {
        visit(region, op);
        for &inner in &function.ops[op].regions {
            for_each_op(function, inner, visit);
        }
    }
}

/// The operations after which the function may still return, in the order of the text: all but those of regions that end in a
/// trap. What such a region does, nobody lives to see but whom the trap calls.
pub fn returning_ops(function: &Function) -> Vec<Op> {
    fn visit(function: &Function, region: Region, ops: &mut Vec<Op>) {
        if function.regions[region].ops.is_empty() || function.ends_in_trap(region) {
            return;
        }
        for &op in &function.regions[region].ops {
            ops.push(op);
            for &inner in &function.ops[op].regions {
                visit(function, inner, ops);
            }
        }
    }
    let mut ops = Vec::new();
    if let Some(body) = function.body {
        visit(function, body, &mut ops);
    }
    ops
}

/// All operations that the function's body holds, in the order of the text.
pub fn all_ops(function: &Function) -> Vec<Op> {
    let mut ops = Vec::new();
    if let Some(body) = function.body {
        for_each_op(function, body, &mut |_, op| ops.push(op));
    }
    ops
}
