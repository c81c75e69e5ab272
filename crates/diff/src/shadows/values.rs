//! Which values have companions, and how these are computed.

use super::{Lanes, Mode, Sweep};
use crate::error::Error;
use crate::objects::{Bytes, Class, Kind, Place};
use crate::request::Activity;
use crate::rules::{self, Rule};
use crate::shadowing;
use crate::unions::{self, WORD};
use ferrozyme_ir::{Constant, GlobalId, Op, OpView, Opcode, Payload, Type, Value};
use rustc_hash::FxHashSet;
use smallvec::{SmallVec, smallvec};

impl<M: Mode> Sweep<'_, M> {
    pub(crate) fn is_active(&self, value: Value) -> bool {
        self.activities.is_active(value)
    }

    /// The memory that a pointer leads to.
    pub(crate) fn class(&self, pointer: Value) -> Option<Class> {
        let place = self.objects.class_of(&self.function, pointer);
        place.map(|(class, _)| class)
    }

    /// Whether a pointer, or an integer that carries one, leads to memory with a shadow.
    pub(crate) fn has_shadow(&self, value: Value) -> bool {
        self.activities
            .has_shadow(self.objects, &self.function, value)
    }

    /// Whether floats behind a pointer carry derivatives.
    pub(crate) fn points_to_active(&self, value: Value) -> bool {
        self.activities
            .points_to_active(self.objects, &self.function, value)
    }

    /// Whether an integer may carry a float with a derivative or something else.
    pub(crate) fn is_union(&self, value: Value) -> bool {
        self.is_active(value) && self.objects.union_of_value(&self.function, value).is_some()
    }

    /// Whether an integer may be part of a float or pointer. Its companions are the same parts of theirs, wherever the parts are put together again.
    pub(crate) fn is_part(&self, value: Value) -> bool {
        self.objects.is_part_of_union(&self.function, value)
    }

    /// Whether a value has companions, unless its tangent is zero for certain.
    pub(crate) fn has_companions(&self, value: Value) -> bool {
        let has_derivative = match M::TANGENTS {
            true => self.is_active(value),
            false => self.is_union(value),
        };
        has_derivative
            || self.is_part(value)
            || self.has_shadow(value)
            || self.transports_shadow(value)
    }

    /// Whether part of an integer is a pointer to memory with a shadow.
    pub(crate) fn transports_shadow(&self, value: Value) -> bool {
        self.function.ty(value).is_int()
            && self.leads_to_shadow(&self.objects.parts_of_value(value))
    }

    fn leads_to_shadow(&self, parts: &[Bytes]) -> bool {
        parts.iter().any(|part| {
            matches!(part.kind, Kind::Pointer(to) if self.activities.is_shadowed_class(to.class))
        })
    }

    pub(crate) fn set_companions(&mut self, value: Value, lanes: &[Value]) {
        self.companions.set(&mut self.function, value, lanes);
    }

    pub(crate) fn same_in_all_lanes(&self, value: Value) -> Lanes {
        SmallVec::from_elem(value, self.width())
    }

    /// The companions of a value that is handed on to where they must exist: tangents that are zero are made.
    ///
    /// `parts` says what the bytes of an integer are where it goes.
    pub(crate) fn companions_of(
        &mut self,
        op: Op,
        value: Value,
        parts: &[Bytes],
    ) -> Result<Lanes, Error> {
        if let Some(lanes) = self.companions.get(value) {
            return Ok(SmallVec::from_slice(lanes));
        }
        let ty = self.function.ty(value);
        if ty.is_ptr() {
            return self.shadows_of_pointer(op, value);
        }
        let is_nothing = matches!(
            self.function.constant_of(value),
            Some(Constant::Bits(0) | Constant::Undef)
        );
        let companion = match ty.is_float() || is_nothing {
            true => self.function.zero(ty),
            false => {
                self.refuse_lost_address(op, value, parts)?;
                M::companion_of_number(self, op, value, parts)?
            }
        };
        Ok(self.same_in_all_lanes(companion))
    }

    /// An integer that has no companions must carry no address with a shadow.
    fn refuse_lost_address(&self, op: Op, value: Value, parts: &[Bytes]) -> Result<(), Error> {
        let may_be_address = match self.function.ty(value) {
            // An integer is where an address may be, but carries none itself.
            Type::I64 => self.has_shadow(value) && !self.is_own_shadow(value),
            _ => !self.function.is_constant(value) && self.leads_to_shadow(parts),
        };
        match may_be_address && !self.is_calculated(value) {
            true => Err(self.lost_shadow(op)),
            false => Ok(()),
        }
    }

    /// The shadows of a pointer. One that leads to no shadowed memory stands for itself, since nothing behind it is active.
    fn shadows_of_pointer(&mut self, op: Op, value: Value) -> Result<Lanes, Error> {
        let own = self.same_in_all_lanes(value);
        if !self.has_shadow(value) {
            return Ok(own);
        }
        let lanes: Lanes = match self.function.constant_of(value) {
            Some(&Constant::Global(global)) if self.is_global_its_own_shadow(value, global) => {
                return Ok(own);
            }
            Some(&Constant::Global(global)) => {
                let in_unions = self.class(value).is_some_and(|class| {
                    let mut fields = self.objects.fields(class);
                    self.objects.has_unions(class)
                        || !fields.any(|field| matches!(field.kind, Kind::Float(_)))
                });
                let mut lanes = Lanes::new();
                for lane in 0..self.width() {
                    let session = self.mode.session_mut();
                    let shadow = session.shadow_of_global(global, lane, in_unions)?;
                    lanes.push(self.function.constant(Type::PTR, shadow));
                }
                lanes
            }
            Some(&Constant::Function(function)) => {
                let shadow = self.shadow_of_function(op, function)?;
                self.same_in_all_lanes(shadow)
            }
            None if !self.is_own_shadow(value)
                && !self.is_constant_argument(value)
                && !self.is_made_of_number(value) =>
            {
                return Err(self.lost_shadow(op));
            }
            _ => return Ok(own),
        };
        self.set_companions(value, &lanes);
        Ok(lanes)
    }

    /// Whether whoever follows the shadows of a pointer must find shadows there.
    pub(crate) fn needs_shadow(&self, pointer: Value) -> bool {
        let class = self.class(pointer);
        class.is_some_and(|class| shadowing::leads_on(self.objects, class))
            && !self.is_own_shadow(pointer)
    }

    fn is_global_its_own_shadow(&self, value: Value, global: GlobalId) -> bool {
        let class = self.class(value);
        class.is_some_and(|class| {
            shadowing::is_global_its_own_shadow(self.module(), self.objects, global, class)
        })
    }

    /// Whether what a pointer leads to needs no second memory.
    fn is_own_shadow(&self, pointer: Value) -> bool {
        let class = self.class(pointer);
        class.is_some_and(|class| shadowing::is_own_shadow(self.module(), self.objects, class))
    }

    /// Whether an integer is calculated from numbers alone. Addresses, and floats in words, have companions, and so has what is calculated from them.
    fn is_calculated(&self, value: Value) -> bool {
        let mut seen = FxHashSet::default();
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            let is_number = self.function.is_constant(value)
                || self.function.ty(value).is_float()
                || self.is_constant_argument(value)
                || self.objects.is_number(&self.function, value);
            if is_number || !seen.insert(value) {
                continue;
            }
            let op = self
                .function
                .def_op(value)
                .map(|(op, _)| &self.function.ops[op]);
            match op.filter(|op| matches!(rules::rule(op.opcode), Rule::Inactive(_))) {
                Some(op)
                    if self.companions.get(value).is_none()
                        && self.function.ty(value).is_int()
                        && op.regions.is_empty()
                        && !op.operands.is_empty() =>
                {
                    open.extend(&op.operands);
                }
                _ => return false,
            }
        }
        true
    }

    /// Whether a pointer is a number, put where addresses are in other cases: how much memory could not be had, say.
    fn is_made_of_number(&self, pointer: Value) -> bool {
        match self.function.definition(pointer) {
            Some(OpView::Cast(Opcode::Inttoptr, number)) => {
                !self.objects.may_be_hidden(pointer) && self.is_calculated(number)
            }
            _ => false,
        }
    }

    /// Whether a value is an argument without a shadow: a number, though it is put where addresses are in other cases, or a pointer to numbers, though it
    /// is where others lead to floats.
    pub(crate) fn is_constant_argument(&self, value: Value) -> bool {
        let mut arguments = self.arguments.iter();
        let position = arguments.position(|&argument| argument == value);
        position.is_some_and(|index| self.args.get(index) == Some(&Activity::Const))
    }

    /// Stops the program where a word that is calculated with is a float with a derivative. What has no companions is none.
    pub(crate) fn check_number(&mut self, op: Op, word: Value) {
        let is_word = self.objects.union_of_value(&self.function, word).is_some()
            && (M::TANGENTS || self.is_active(word));
        let Some(lanes) = self.companions.get(word).filter(|_| is_word) else {
            return;
        };
        let lanes = Lanes::from_slice(lanes);
        self.may_stop = true;
        let mut b = self.builder(op);
        for companion in lanes {
            M::check_number(&mut b, word, companion);
        }
    }

    /// Stops the program where an address is moved as a float to where addresses with shadows are: its own would not go along.
    pub(crate) fn check_moved(&mut self, op: Op) {
        let words: SmallVec<[Value; 4]> = match self.function.view(op) {
            OpView::Store { value, .. } => smallvec![value],
            OpView::Cast(Opcode::Bitcast, word) => smallvec![word],
            OpView::Call { arguments, .. } | OpView::CallIndirect { arguments, .. } => {
                SmallVec::from_slice(arguments)
            }
            _ => return,
        };
        for word in words
            .into_iter()
            .filter(|&word| self.objects.is_moved(word))
        {
            let ty = self.function.ty(word);
            for lane in 0..ty.lanes() {
                if !self.is_taken_for_address(op, word, lane) {
                    continue;
                }
                self.may_stop = true;
                let mut b = self.builder(op);
                let mut word = word;
                if ty.is_vector() {
                    let lane = b.i64(i64::from(lane));
                    word = b.value(Opcode::Extract, &[word, lane], Payload::None, Type::F64);
                }
                unions::check_no_address(&mut b, word);
            }
        }
    }

    /// Whether a float, or a lane of some, may be an address where it is stored, becomes an integer, or is passed to a function of which nothing is known. One from another function may be
    /// the address of anything.
    fn is_taken_for_address(&self, op: Op, word: Value, lane: u16) -> bool {
        let (objects, function) = (self.objects, &self.function);
        let leads_to_shadow =
            |place: Place| objects.is_given(word) || self.activities.is_shadowed_class(place.class);
        match function.view(op) {
            OpView::Store { address, .. } => {
                let comes_from_floats = matches!(function.definition(word), Some(OpView::Load { address, .. }) if self.is_plain(address));
                let Some((class, offset)) = objects.class_of(function, address) else {
                    return false;
                };
                let offset = offset.saturating_add(i64::from(lane) * WORD);
                let pointee = objects.pointer_at(class, offset);
                let is_union = objects.is_union(class) && self.has_shadow(address);
                !comes_from_floats && (is_union || pointee.is_some_and(leads_to_shadow))
            }
            OpView::Cast(..) => {
                let integer = function.result(op);
                match objects.place_of(function, integer) {
                    Some(place) => leads_to_shadow(place),
                    None if function.ty(word).is_vector() => {
                        let parts = objects.parts_of_value(integer);
                        let may_be = |kind: Kind, bytes| {
                            matches!(kind, Kind::Pointer(_)) || kind.as_union(bytes).is_some()
                        };
                        parts.iter().any(|part| may_be(part.kind, part.bytes))
                    }
                    None => false,
                }
            }
            _ => objects.is_lost(word),
        }
    }
}
