//! Allocations, loads and stores, as far as both modes agree.

use super::{Lanes, Mode, Sweep};
use crate::activity::reachable_from;
use crate::error::Error;
use crate::memory::{Cells, stop_if};
use crate::objects::{Bytes, Kind};
use crate::statics::stop_without_shadow;
use ferrozyme_ir::{IntPredicate, Op, OpView, Opcode, Payload, Type, Value, returning_ops};
use ferrozyme_opt::{reached_by_moves, word_moves};
use ferrozyme_refusal::{Refusal, UnknownBytes};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

impl<M: Mode> Sweep<'_, M> {
    /// Whether floats share their place with other things in the memory behind a pointer.
    pub(crate) fn is_in_union(&self, pointer: Value) -> bool {
        self.class(pointer).is_some_and(|class| {
            self.activities.is_active_class(class) && self.objects.has_unions(class)
        })
    }

    /// Whether memory from outside is described as nothing but floats.
    pub(crate) fn is_plain(&self, address: Value) -> bool {
        let class = self.class(address);
        class.is_some_and(|class| self.objects.is_plain(class))
    }

    /// Whether memory that a pointer leads to holds floats where at other times it holds pointers or integers.
    pub(crate) fn leads_to_union(&self, pointer: Value) -> bool {
        let objects = self.objects;
        let has_unions = |class| {
            self.activities.is_active_class(class)
                && !objects.is_plain(class)
                && objects.has_unions(class)
        };
        self.class(pointer)
            .is_some_and(|class| reachable_from(objects, class).into_iter().any(has_unions))
    }

    /// Whether there are floats where a pointer is loaded, at times or always: then it may be one.
    fn is_among_floats(&self, address: Value) -> bool {
        self.is_in_union(address) || self.is_plain(address)
    }

    /// The pointers that may be floats: those that are loaded from among floats, and what they are handed on to.
    pub(crate) fn find_doubtful(&self) -> FxHashSet<Value> {
        let function = &self.function;
        let doubtful: FxHashSet<Value> = (returning_ops(function).into_iter())
            .filter_map(|op| match function.view(op) {
                OpView::Load { address, .. } => Some((function.result(op), address)),
                _ => None,
            })
            .filter(|&(loaded, address)| {
                function.ty(loaded) == Type::PTR
                    && self.needs_shadow(loaded)
                    && self.is_among_floats(address)
            })
            .map(|(loaded, _)| loaded)
            .collect();
        if doubtful.is_empty() {
            return doubtful;
        }
        let moves = word_moves(function, |value| function.ty(value) == Type::PTR);
        reached_by_moves(&moves, doubtful)
    }

    /// Loads the companions of what an operation loads, and gives where the shadows are.
    pub(crate) fn load_companions(&mut self, op: Op) -> Result<Lanes, Error> {
        let data = &self.function.ops[op];
        let (result, address) = (data.results[0], data.address());
        if !self.has_shadow(address) {
            // What is part of something with companions comes from where there are some.
            let is_part_of_number =
                self.is_part(result) && !self.is_active(result) && !self.activities.is_part(result);
            return match is_part_of_number {
                true => Ok(Lanes::new()),
                false => Err(self.lost_shadow(op)),
            };
        }
        let shadows = self.shadows_to_follow(op, address)?;
        let lanes = shadows
            .iter()
            .map(|&shadow| self.repeat(op, &[shadow]))
            .collect();
        let lanes = self.tangents_unless_constant(op, address, &shadows, lanes);
        if self.function.ty(result) == Type::PTR
            && self.needs_shadow(result)
            && !self.is_among_floats(address)
            && self.mode.session_mut().checks_pointers()
        {
            let mut b = self.builder(op);
            for &shadow in &lanes {
                stop_without_shadow(&mut b, result, shadow, false);
            }
        }
        self.set_companions(result, &lanes);
        Ok(shadows)
    }

    /// The shadows of what a copy reads, where code without derivatives may have made the memory, as formatting makes text: it puts a pointer there and nothing into the shadow.
    /// Integers are then their own shadow. What may be anything stops the program.
    pub(crate) fn shadows_of_source(
        &mut self,
        op: Op,
        from: Value,
        shadows: Lanes,
    ) -> Result<Lanes, Error> {
        let root = self.root_of(from);
        let made = self
            .function
            .def_op(root)
            .map(|(op, _)| self.function.ops[op].opcode);
        let is_known =
            self.function.is_constant(root) || matches!(made, Some(Opcode::Alloc | Opcode::Stack));
        let Some(class) = self.class(from).filter(|_| !is_known) else {
            return Ok(shadows);
        };
        let kinds: Vec<Kind> = (self.objects.fields(class))
            .map(|field| field.kind)
            .collect();
        let is_number = |kind: &Kind| matches!(kind, Kind::Integer | Kind::Padding);
        let is_unknown = kinds
            .iter()
            .all(|kind| is_number(kind) || *kind == Kind::Unknown);
        if !is_unknown || self.objects.is_union(class) {
            return Ok(shadows);
        }
        let are_numbers = !kinds.is_empty() && kinds.iter().all(is_number);
        let roots = self.companions_of(op, root, &[])?;
        let bytes = self.function.ops[op].size();
        self.may_stop |= !are_numbers;
        let mut b = self.builder(op);
        let (null, zero) = (b.zero(Type::PTR), b.i64(0));
        let mut source = |(&root, &shadow): (&Value, &Value)| {
            let is_missing = b.icmp(IntPredicate::Eq, root, null);
            if are_numbers {
                return b.select(is_missing, from, shadow);
            }
            let is_read = b.icmp(IntPredicate::Ne, bytes, zero);
            let is_lost = b.binary(Opcode::And, is_missing, is_read);
            stop_if(&mut b, is_lost, &Refusal::NoShadowBehindUnion);
            shadow
        };
        Ok(roots.iter().zip(&shadows).map(&mut source).collect())
    }

    /// The pointer that an address is counted from.
    fn root_of(&self, address: Value) -> Value {
        let mut root = address;
        while let Some(OpView::Offset { base, .. }) = self.function.definition(root) {
            root = base;
        }
        root
    }

    /// What the bytes of an integer are where it is stored.
    pub(crate) fn parts_stored(&self, address: Value, ty: Type) -> SmallVec<[Bytes; 4]> {
        let place = self.objects.class_of(&self.function, address);
        let Some((class, offset)) = place.filter(|_| ty.is_int()) else {
            return SmallVec::new();
        };
        let mut parts = self.objects.kind_at(class, offset, ty.bytes());
        if !self.points_to_active(address) {
            // Where nothing is active, what the bytes are does not matter.
            for part in &mut parts {
                if matches!(part.kind, Kind::Unknown | Kind::Conflict(_)) {
                    part.kind = Kind::Integer;
                }
            }
        }
        parts
    }

    /// Memory like that of an allocation, all zeros, in each direction.
    pub(crate) fn allocate_shadows(&mut self, op: Op) -> Lanes {
        let data = self.function.ops[op].clone();
        let width = self.width();
        let mut b = self.builder(op);
        let mut allocate = |_| match &data.payload {
            Payload::Alloc { align, family, .. } => {
                let payload = Payload::Alloc {
                    align: *align,
                    zeroed: true,
                    family: family.clone(),
                };
                b.value(Opcode::Alloc, &data.operands, payload, Type::PTR)
            }
            Payload::Align(align) => {
                let shadow = b.stack(data.size(), *align);
                let zero = b.zero(Type::I8);
                b.fill(shadow, zero, data.size(), *align);
                shadow
            }
            _ => unreachable!("a verified allocation has an alignment"),
        };
        let lanes: Lanes = (0..width).map(&mut allocate).collect();
        self.set_companions(data.results[0], &lanes);
        lanes
    }

    /// What the bytes from a pointer on are, to which something is copied.
    pub(crate) fn cells(&self, op: Op, to: Value, from: Option<Value>) -> Result<Cells, Error> {
        let bytes = self.function.ops[op].size();
        self.cells_of(op, Cells::at(self.objects, &self.function, to, from, bytes))
    }

    pub(crate) fn cells_of(
        &self,
        op: Op,
        cells: Result<Cells, UnknownBytes>,
    ) -> Result<Cells, Error> {
        cells.map_err(|what| self.error(op, Refusal::UnknownBytes { what }))
    }
}
