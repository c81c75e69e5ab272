//! Allocations, loads and stores, as far as both modes agree.

use super::{Lanes, Mode, Sweep};
use crate::activity::reachable_from;
use crate::error::Error;
use crate::memory::{Cells, stop_if};
use crate::objects::{Bytes, Kind};
use crate::statics::{self, stop_without_shadow};
use ferrozyme_ir::{
    Function, IntPredicate, Op, OpView, Opcode, Payload, Type, Value, returning_ops,
};
use ferrozyme_opt::{reached_by_moves, reversed_moves, word_moves};
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

    /// The pointers that may be floats: those that are loaded from among floats, are given as integers that may be floats, or are made of the bits of floats, and what they are handed on to. Integers that become pointers are pointers.
    pub(crate) fn find_doubtful(&self) -> FxHashSet<Value> {
        let function = &self.function;
        let is_word = |value: Value| matches!(function.ty(value), Type::PTR | Type::I64);
        let ops = returning_ops(function);
        let mut doubtful: Vec<Value> = Vec::new();
        let is_union = |&word: &Value| self.objects.union_of_value(function, word).is_some();
        doubtful.extend(self.arguments.iter().filter(|word| is_union(word)));
        for &op in &ops {
            let data = &function.ops[op];
            match function.view(op) {
                OpView::Load { address, .. } if self.is_among_floats(address) => {
                    doubtful.extend(&data.results);
                }
                OpView::Call { .. } | OpView::CallIndirect { .. } => {
                    doubtful.extend(data.results.iter().filter(|word| is_union(word)));
                }
                _ => {}
            }
        }
        doubtful.retain(|&word| is_word(word) && self.needs_shadow(word));
        for &op in &ops {
            if let OpView::Cast(Opcode::Bitcast, float) = function.view(op)
                && function.ty(float) == Type::F64
            {
                doubtful.push(function.result(op));
            }
        }
        if doubtful.is_empty() {
            return FxHashSet::default();
        }
        let moves = word_moves(function, is_word);
        let mut ways = moves.clone();
        for &op in ops.iter().filter(|&&op| adds_to_address(function, op)) {
            let data = &function.ops[op];
            ways.extend(data.operands.iter().map(|&from| (from, data.results[0])));
        }
        let pointers = (function.values.keys()).filter(|&value| function.ty(value) == Type::PTR);
        let to_pointers = reached_by_moves(&reversed_moves(&ways), pointers);
        let mut doubtful = reached_by_moves(&moves, doubtful);
        doubtful.retain(|word| to_pointers.contains(word));
        doubtful
    }

    /// Stops the program where a pointer is followed that has no shadow, as it is a float or comes from code without derivatives, and where one is passed or returned that is a float with a
    /// derivative: whoever gets it takes it for a pointer.
    pub(super) fn check_followed(&mut self, op: Op) {
        if self.doubtful.is_empty() {
            return;
        }
        let function = &self.function;
        let adds = adds_to_address(function, op);
        let leaves = leaves_function(function.ops[op].opcode);
        let is_doubtful =
            |word: Value| self.doubtful.contains(&word) && (adds || function.ty(word) == Type::PTR);
        for pointer in statics::followed(&function.ops[op], is_doubtful) {
            let lanes = self.companions.get(pointer).map(Lanes::from_slice);
            if let Some(lanes) = lanes
                && (leaves || self.checked.insert((self.region, pointer)))
            {
                self.may_stop = true;
                let mut b = self.builder(op);
                for shadow in lanes {
                    stop_without_shadow(&mut b, pointer, shadow, true);
                    if leaves && M::TANGENTS {
                        M::check_number(&mut b, pointer, shadow);
                    }
                }
            }
        }
    }

    /// Stops the program where a float with a derivative is passed or returned as a pointer to what has no shadow.
    pub(super) fn check_passed(&mut self, op: Op) {
        let data = &self.function.ops[op];
        if !leaves_function(data.opcode) {
            return;
        }
        for pointer in data.operands.clone() {
            if self.function.ty(pointer) == Type::PTR
                && self.companions.get(pointer).is_none()
                && let Some(OpView::Cast(Opcode::Inttoptr, word)) =
                    self.function.definition(pointer)
            {
                self.check_number(op, word);
            }
        }
    }

    /// Pointers from other functions whose bits become floats, or integers that may be floats.
    pub(crate) fn find_disguised(&self) -> FxHashSet<Value> {
        let function = &self.function;
        let of_type = |ty| move |value: &Value| function.ty(*value) == ty;
        let mut given: Vec<Value> = self.arguments.clone();
        for op in returning_ops(function) {
            if let OpView::Call { .. } | OpView::CallIndirect { .. } = function.view(op) {
                given.extend(&function.ops[op].results);
            }
        }
        given.retain(of_type(Type::PTR));
        let is_word = |value| matches!(function.ty(value), Type::PTR | Type::I64 | Type::F64);
        let moves = word_moves(function, is_word);
        let may_be_float = |value: &Value| {
            let of_union = || self.objects.union_of_value(function, *value);
            function.ty(*value) == Type::F64 || of_union().is_some()
        };
        let floats = function.values.keys().filter(may_be_float);
        let to_floats = reached_by_moves(&reversed_moves(&moves), floats);
        let mut disguised = reached_by_moves(&moves, given);
        disguised.retain(|value| to_floats.contains(value));
        disguised
    }

    /// Forward mode: stops the program where a pointer from another function becomes a float again, and is one with a tangent. Where nothing but pointers is expected there are no tangents.
    pub(super) fn check_disguised(&mut self, op: Op) {
        if !M::TANGENTS || self.disguised.is_empty() {
            return;
        }
        if let OpView::Cast(Opcode::Ptrtoint, pointer) = self.function.view(op)
            && self.disguised.contains(&pointer)
            && let Some(lanes) = self.companions.get(pointer).map(Lanes::from_slice)
        {
            self.may_stop = true;
            let mut b = self.builder(op);
            for shadow in lanes {
                M::check_number(&mut b, pointer, shadow);
            }
        }
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

/// Whether the operands of an operation go to another function.
fn leaves_function(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Call | Opcode::CallIndirect | Opcode::Return)
}

/// Whether an operation may compute an address from another, as integers.
fn adds_to_address(function: &Function, op: Op) -> bool {
    let data = &function.ops[op];
    let adds = matches!(
        data.opcode,
        Opcode::Add | Opcode::Sub | Opcode::And | Opcode::Or
    );
    adds && function.ty(data.results[0]) == Type::I64
}
