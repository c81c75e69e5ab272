//! Finds sums whose order may change.
//!
//! A loop that sums floats cannot be vectorised unless its additions may be reordered. Derivatives permit that (`--strict` forbids it), but only if
//! nothing else depends on the order: a *sum* is a value that is only ever added to, until it is complete. Code that relies on rounding (compensated summation, rounding by adding and
//! subtracting a large number) uses partial sums and is left alone.
//!
//! ```text
//! %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {      load f64 %p
//!   …                                                            fadd f64 …, %x
//!   %b = fadd f64 %a, %x        ; %a has no other use            store f64 …, %p       ; and no other uses
//!   yield %b                    ; %b neither
//! }
//! ```
//! Besides such chains of additions, subtractions and `fma`, a sum may pass through inner loops that carry it and through branches that add or do not add.

use ferrozyme_ir::entity::EntityRef;
use ferrozyme_ir::{self as ir, Function, Op, Opcode, Region, Value, all_ops};
use ferrozyme_opt::{Addition, Uses, first_carried};
use rustc_hash::FxHashSet;

/// The operations of a function that may be reordered: additions of sums, and products that may be contracted into them.
#[derive(Debug, Default)]
pub(super) struct Sums {
    additions: FxHashSet<Op>,
    products: FxHashSet<Op>,
}

impl Sums {
    /// Whether this addition may be reordered with the others of its sum.
    pub(super) fn may_reorder(&self, op: Op) -> bool {
        self.additions.contains(&op)
    }

    /// Whether this operation may be contracted: a product that is added to a sum, or that addition.
    pub(super) fn may_contract(&self, op: Op) -> bool {
        self.additions.contains(&op) || self.products.contains(&op)
    }
}

/// Finds the sums of a function.
pub(super) fn find_sums(function: &Function) -> Sums {
    let ops = all_ops(function);
    let mut finder = Finder {
        function,
        uses: Uses::of(function),
        region_of: ir::Structure::of(function),
        sums: Sums::default(),
    };
    for &op in &ops {
        let data = &function.ops[op];
        match data.opcode {
            Opcode::For | Opcode::Loop => finder.carried_sums(data),
            Opcode::Fadd => finder.sum_in_memory(op),
            _ => {}
        }
    }
    finder.contract();
    finder.sums
}

struct Finder<'f> {
    function: &'f Function,
    uses: Uses,
    region_of: ir::Structure,
    sums: Sums,
}

/// How deep branches are followed.
const DEEPEST_BRANCH: u32 = 8;

impl Finder<'_> {
    fn uses_of(&self, value: Value) -> &[(Op, usize)] {
        self.uses.of_value(value)
    }

    fn carried_sums(&mut self, data: &ir::OpData) {
        let region = data.regions[0];
        // Before the carried values stand the counter of a `for`, and the condition of an `again`.
        let first_argument = first_carried(data.opcode);
        let first_yielded = usize::from(data.opcode == Opcode::Loop);
        let arguments = &self.function.regions[region].args;
        for (position, &argument) in arguments[first_argument..].iter().enumerate() {
            if !self.function.ty(argument).is_float() {
                continue;
            }
            let mut additions = Vec::new();
            if self.follow(
                argument,
                region,
                position + first_yielded,
                &mut additions,
                DEEPEST_BRANCH,
            ) {
                self.sums.additions.extend(additions);
            }
        }
    }

    /// Whether a value is only added to until the region ends with it at this position. Collects the additions.
    fn follow(
        &self,
        start: Value,
        region: Region,
        position: usize,
        additions: &mut Vec<Op>,
        depth: u32,
    ) -> bool {
        let function = self.function;
        let mut value = start;
        loop {
            let uses = self.uses_of(value);
            let Some(&(op, index)) = uses.first() else {
                return false;
            };
            let data = &function.ops[op];
            let here = self.region_of.region_of(op) == Some(region);
            if uses.len() == 1 && here {
                match data.opcode {
                    Opcode::Yield | Opcode::Again => return index == position,
                    _ if Addition::to(function, (op, index)).is_some() => additions.push(op),
                    Opcode::For if index >= 3 => {
                        // The inner loop is examined by itself; here it only has to carry the sum on.
                        let inner = data.regions[0];
                        let argument = function.regions[inner].args[index - 3 + 1];
                        if !self.follow(argument, inner, index - 3, &mut Vec::new(), depth) {
                            return false;
                        }
                        value = data.results[index - 3];
                        continue;
                    }
                    _ => return false,
                }
                value = data.results[0];
                continue;
            }
            // Otherwise all uses must be in the arms of one branch.
            let Some(next) = self.through_branch(value, region, additions, depth) else {
                return false;
            };
            value = next;
        }
    }

    /// The result of a branch in this region whose every arm adds to the value, or hands it on.
    fn through_branch(
        &self,
        value: Value,
        region: Region,
        additions: &mut Vec<Op>,
        depth: u32,
    ) -> Option<Value> {
        if depth == 0 {
            return None;
        }
        let function = self.function;
        let uses = self.uses_of(value);
        let branch = self.holder_in(uses[0].0, region)?;
        let data = &function.ops[branch];
        if !matches!(data.opcode, Opcode::If | Opcode::Switch)
            || uses
                .iter()
                .any(|(op, _)| self.holder_in(*op, region) != Some(branch))
        {
            return None;
        }
        let mut found = None;
        for &arm in &data.regions {
            if function.ends_in_trap(arm) {
                // Nothing leaves it, but it must not look at the sum either.
                if uses.iter().any(|(op, _)| self.is_inside(*op, arm)) {
                    return None;
                }
                continue;
            }
            let own: Vec<(Op, usize)> = uses
                .iter()
                .copied()
                .filter(|(op, _)| self.is_inside(*op, arm))
                .collect();
            let &[(op, index)] = own.as_slice() else {
                return None;
            };
            let yielded = function.terminator(arm);
            let position = if op == yielded {
                index
            } else {
                self.yielded_sum(op, index, arm, additions, depth - 1)?
            };
            if found.is_some_and(|known| known != position) {
                return None;
            }
            found = Some(position);
        }
        Some(data.results[found?])
    }

    /// Where an arm ends with a sum that starts with this addition.
    fn yielded_sum(
        &self,
        op: Op,
        index: usize,
        arm: Region,
        additions: &mut Vec<Op>,
        depth: u32,
    ) -> Option<usize> {
        let data = &self.function.ops[op];
        if Addition::to(self.function, (op, index)).is_none()
            || self.region_of.region_of(op) != Some(arm)
        {
            return None;
        }
        let count = self.function.ops[self.function.terminator(arm)]
            .operands
            .len();
        let mut collected = vec![op];
        let position = (0..count).find(|&position| {
            collected.truncate(1);
            self.follow(data.results[0], arm, position, &mut collected, depth)
        })?;
        additions.extend(collected);
        Some(position)
    }

    /// The operation of a region that holds another one, or is it.
    fn holder_in(&self, op: Op, region: Region) -> Option<Op> {
        let mut current = op;
        loop {
            let around = self.region_of.region_of(current)?;
            if around == region {
                return Some(current);
            }
            current = self.region_of.op_of(around)?;
        }
    }

    fn is_inside(&self, op: Op, region: Region) -> bool {
        self.holder_in(op, region).is_some()
    }

    /// `*p += x`: loaded, added to, stored at the same place, and looked at by nobody.
    fn sum_in_memory(&mut self, op: Op) {
        let data = &self.function.ops[op];
        let result = data.results[0];
        let &[(store, 0)] = self.uses_of(result) else {
            return;
        };
        let store = &self.function.ops[store];
        if store.opcode != Opcode::Store {
            return;
        }
        let loaded_there = data.operands.iter().any(|&operand| {
            self.uses_of(operand).len() == 1
                && self.function.def_op(operand).is_some_and(|(load, _)| {
                    let load = &self.function.ops[load];
                    load.opcode == Opcode::Load && load.address() == store.address()
                })
        });
        if loaded_there {
            self.sums.additions.insert(op);
        }
    }

    /// Products that go into a sum and nowhere else.
    fn contract(&mut self) {
        let mut additions: Vec<Op> = self.sums.additions.iter().copied().collect();
        additions.sort_by_key(|op| op.index());
        for op in additions {
            for &operand in &self.function.ops[op].operands {
                if let Some((product, _)) = self.function.def_op(operand)
                    && self.function.ops[product].opcode == Opcode::Fmul
                    && self.uses_of(operand).len() == 1
                {
                    self.sums.products.insert(product);
                }
            }
        }
    }
}
