//! The derivative of one function: its operations and regions, each followed by what its companions take.
//!
//! The primal is copied; its values, operations and regions keep their ids, so that what the analyses found out applies to
//! the copy. Regions that end in `trap` stay as they are: nobody sees a tangent from there.

use super::companions::{Companions, Lanes};
use super::{Key, Session};
use crate::activity::{Activities, Giver, Question, analyse_activity};
use crate::error::Error;
use crate::objects::{Bytes, Class, Kind, Known, Objects};
use crate::request::Activity;
use crate::rules::{self, Linearisation, Primal, Rule};
use crate::shadowing;
use crate::unions;
use ferrozyme_ir::{
    Builder, Constant, Flags, Function, GlobalId, Module, Op, Opcode, Region, Type, Value,
    ValueDef, ones,
};
use ferrozyme_refusal::Refusal;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
use std::sync::Arc;

/// Permissions to rewrite an operation hold for its tangents; promises about its values do not.
const PERMISSIONS: Flags = Flags::NSZ
    .union(Flags::ARCP)
    .union(Flags::CONTRACT)
    .union(Flags::AFN)
    .union(Flags::REASSOC);

/// Forgets that the program does not care for the sign of zero. In many directions that is how tangents are known, whose sums are left out where they add nothing
/// (`skip_zero_terms`): the program's own have infinite terms and numbers that are none.
fn keep_sign_of_zero(function: &mut Function) {
    for data in function.ops.values_mut() {
        if !data.flags.contains(Flags::NNAN) {
            data.flags = data.flags.without(Flags::NSZ);
        }
    }
}

/// Builds derivative number `index` of a session, whose primal has a body.
///
/// # Errors
/// If something active cannot be differentiated.
pub(super) fn differentiate(session: &mut Session<'_>, index: usize) -> Result<Function, Error> {
    let key = session.derivatives[index].key.clone();
    let objects = Objects::analyse(
        session.module,
        key.function,
        &mut session.objects,
        Some(Known {
            layouts: &key.layouts,
            unions: &key.unions,
        }),
    );
    let activities = analyse_activity(
        session.module,
        &objects,
        &Question {
            function: key.function,
            args: &key.args,
            results: &key.results,
            giver: match index {
                0 => Giver::User,
                _ => Giver::Call,
            },
            constants: &key.constants,
        },
        session.assumption,
    )?;
    let primal = &session.module.functions[key.function];
    let shadowed = objects
        .classes()
        .filter(|&class| activities.is_shadowed_class(class))
        .collect();
    let mut function = primal.clone();
    if session.width() > 1 {
        keep_sign_of_zero(&mut function);
    }
    let companions = Companions::new(session.width());
    let mut sweep = Sweep {
        session,
        index,
        key,
        objects,
        activities,
        shadowed,
        function,
        companions,
        calculated_parts: FxHashSet::default(),
        doubtful: FxHashSet::default(),
        checked: FxHashSet::default(),
    };
    sweep.calculated_parts = sweep.find_calculated_parts();
    sweep.add_parameters();
    let body = sweep.function.body();
    sweep.refuse_marks_outside()?;
    sweep.visit(body, End::Function)?;
    sweep.forget_false_facts();
    Ok(sweep.function)
}

/// What the terminator of a region hands on.
#[derive(Clone, Copy)]
pub(super) enum End<'a> {
    /// The results of the function.
    Function,
    /// These results of the operation that holds the region, by position.
    Results(Op, &'a [usize]),
}

pub(super) struct Sweep<'s, 'm> {
    pub session: &'s mut Session<'m>,
    /// Which derivative of the session this is.
    pub index: usize,
    pub key: Key,
    pub objects: Arc<Objects>,
    pub activities: Activities,
    /// Memory that has a shadow.
    pub shadowed: FxHashSet<Class>,
    /// The primal, turning into its derivative.
    pub function: Function,
    pub companions: Companions,
    /// Loads of parts of words that are calculated with.
    pub calculated_parts: FxHashSet<Op>,
    /// Pointers that were found where floats are at times, and may have no shadow.
    pub doubtful: FxHashSet<Value>,
    /// Where that was checked.
    pub checked: FxHashSet<(Region, Value)>,
}

impl Sweep<'_, '_> {
    pub(super) fn width(&self) -> usize {
        self.session.width()
    }

    pub(super) fn module(&self) -> &Module {
        self.session.module
    }

    /// A builder at the end of a region, for code that belongs to `op`.
    pub(super) fn builder(&mut self, region: Region, op: Op) -> Builder<'_> {
        let location = self.function.ops[op].location;
        let mut builder = Builder::new(&mut self.function, region);
        builder.location = location;
        builder
    }

    pub(super) fn keep(&mut self, region: Region, op: Op) {
        self.function.regions[region].ops.push(op);
    }

    pub(super) fn error(&self, op: Op, refusal: Refusal) -> Error {
        let primal = &self.module().functions[self.key.function];
        Error::at(self.module(), primal, op, refusal)
    }

    pub(super) fn unknown_layout(&self, op: Op) -> Error {
        self.error(op, Refusal::UnknownLayout)
    }

    pub(super) fn is_active(&self, value: Value) -> bool {
        self.activities.is_active(value)
    }

    /// Whether a pointer, or an integer that carries one, leads to memory with a shadow.
    pub(super) fn has_shadow(&self, value: Value) -> bool {
        shadowing::has_shadow(&self.function, &self.objects, &self.shadowed, value)
    }

    /// Whether floats behind a pointer carry derivatives.
    pub(super) fn points_to_active(&self, value: Value) -> bool {
        self.activities
            .points_to_active(&self.objects, &self.function, value)
    }

    /// Whether a value has companions, unless its tangent is zero for certain.
    pub(super) fn has_companions(&self, value: Value) -> bool {
        self.is_active(value)
            || self.is_part(value)
            || self.has_shadow(value)
            || self.transports_shadow(value)
    }

    /// Whether an integer may be part of a float or pointer. Its companions are the same parts of theirs.
    fn is_part(&self, value: Value) -> bool {
        self.objects.is_part_of_union(&self.function, value)
    }

    /// Whether an integer is no part of anything with companions, if it comes from where there are none.
    pub(super) fn is_part_of_number(&self, value: Value) -> bool {
        self.is_part(value) && !self.is_active(value) && !self.activities.is_part(value)
    }

    /// Whether part of an integer is a pointer to memory with a shadow.
    fn transports_shadow(&self, value: Value) -> bool {
        self.function.ty(value).is_int()
            && self.leads_to_shadow(&self.objects.parts_of_value(value))
    }

    fn leads_to_shadow(&self, parts: &[Bytes]) -> bool {
        parts
            .iter()
            .any(|part| matches!(part.kind, Kind::Pointer(to) if self.shadowed.contains(&to.class)))
    }

    pub(super) fn set_companions(&mut self, value: Value, lanes: &[Value]) {
        self.companions.set(&mut self.function, value, lanes);
    }

    /// One new result of an operation for each direction, as companions of a value of the same type.
    pub(super) fn add_companion_results(&mut self, op: Op, value: Value) {
        let ty = self.function.ty(value);
        let lanes: Lanes = (0..self.width())
            .map(|_| self.function.add_result(op, ty))
            .collect();
        self.set_companions(value, &lanes);
    }

    fn same_in_all_lanes(&self, value: Value) -> Lanes {
        SmallVec::from_elem(value, self.width())
    }

    // ---- companions where they must exist

    /// The companions of a value that is handed on to where they must exist: tangents that are zero are made.
    ///
    /// `parts` says what the bytes of an integer are where it goes.
    pub(super) fn companions_of(
        &mut self,
        region: Region,
        op: Op,
        value: Value,
        parts: &[Bytes],
    ) -> Result<Lanes, Error> {
        if let Some(lanes) = self.companions.get(value) {
            return Ok(SmallVec::from_slice(lanes));
        }
        let ty = self.function.ty(value);
        if ty.is_float() {
            let zero = self.function.zero(ty);
            return Ok(self.same_in_all_lanes(zero));
        }
        if ty.is_ptr() {
            return self.shadows_of_pointer(op, value);
        }
        let value = self.without_floats(region, op, value, parts)?;
        Ok(self.same_in_all_lanes(value))
    }

    /// The shadows of a pointer. One that leads to no shadowed memory stands for itself, since nothing behind it is active.
    fn shadows_of_pointer(&mut self, op: Op, value: Value) -> Result<Lanes, Error> {
        match self.function.constant_of(value) {
            Some(&Constant::Global(global)) if self.is_global_its_own_shadow(value, global) => {
                Ok(self.same_in_all_lanes(value))
            }
            Some(&Constant::Global(global)) if self.has_shadow(value) => {
                let mut lanes = Lanes::new();
                for lane in 0..self.width() {
                    let index = self.index;
                    let shadow = self.session.shadow_of_global(global, lane, index)?;
                    lanes.push(self.function.constant(Type::PTR, shadow));
                }
                self.set_companions(value, &lanes);
                Ok(lanes)
            }
            Some(&Constant::Function(function)) => {
                let table = self.session.function_table(function, self.index);
                let table = self.function.constant(Type::PTR, Constant::Global(table));
                let lanes = self.same_in_all_lanes(table);
                self.set_companions(value, &lanes);
                Ok(lanes)
            }
            None if self.has_shadow(value)
                && !self.is_own_shadow(value)
                && !self.is_constant_argument(value)
                && !self.is_made_of_number(value) =>
            {
                Err(self.lost_shadow(op))
            }
            _ => Ok(self.same_in_all_lanes(value)),
        }
    }

    /// Whether whoever follows the shadows of a pointer must find shadows there.
    pub(super) fn needs_shadow(&self, pointer: Value) -> bool {
        let class = self.objects.class_of(&self.function, pointer);
        class.is_some_and(|(class, _)| shadowing::leads_on(&self.objects, class))
            && !self.is_own_shadow(pointer)
    }

    fn is_global_its_own_shadow(&self, value: Value, global: GlobalId) -> bool {
        let class = self.objects.class_of(&self.function, value);
        class.is_some_and(|(class, _)| {
            let module = &*self.session.module;
            shadowing::is_global_its_own_shadow(module, &self.objects, global, class)
        })
    }

    /// Whether what a pointer leads to needs no second memory.
    fn is_own_shadow(&self, pointer: Value) -> bool {
        self.objects
            .class_of(&self.function, pointer)
            .is_some_and(|(class, _)| {
                shadowing::is_own_shadow(self.session.module, &self.objects, class)
            })
    }

    pub(super) fn lost_shadow(&self, op: Op) -> Error {
        self.error(op, Refusal::LostShadow)
    }

    /// An integer with zeros where it transports floats: the companion of one that transports no derivatives.
    fn without_floats(
        &mut self,
        region: Region,
        op: Op,
        value: Value,
        parts: &[Bytes],
    ) -> Result<Value, Error> {
        let ty = self.function.ty(value);
        if matches!(
            self.function.constant_of(value),
            Some(Constant::Bits(0) | Constant::Undef)
        ) {
            return Ok(value);
        }
        let is = |wanted: fn(&Kind) -> bool| parts.iter().any(|part| wanted(&part.kind));
        let lost = match ty {
            // An integer is where an address may be, but carries none itself.
            Type::I64 => self.has_shadow(value) && !self.is_calculated(value),
            _ => !self.function.is_constant(value) && self.leads_to_shadow(parts),
        };
        if lost {
            return Err(self.lost_shadow(op));
        }
        let is_number =
            self.objects.is_number(&self.function, value) || self.is_constant_argument(value);
        let shared = |part: &Bytes| part.kind.is_union(part.bytes);
        let is_union = !parts.is_empty() && parts.iter().all(shared);
        if is_number && is_union && ty == Type::I64 {
            // It may be taken for an address, which must not be nowhere.
            let mut b = self.builder(region, op);
            return Ok(unions::tangent_of_number(&mut b, value));
        }
        // What carries no derivative is a float with tangent zero, or a number, which may be zero in a shadow.
        if is_union {
            return Ok(self.function.zero(ty));
        }
        if is_number {
            return Ok(value);
        }
        if parts.is_empty() || is(|kind| matches!(kind, Kind::Unknown | Kind::Conflict(_))) {
            return Err(self.unknown_layout(op));
        }
        if !is(|kind| matches!(kind, Kind::Float(_))) {
            return Ok(value);
        }
        if !is(|kind| !matches!(kind, Kind::Float(_))) {
            return Ok(self.function.zero(ty));
        }
        let mask = keep_mask(ty, parts);
        let mask = self.function.constant(ty, mask);
        Ok(self.builder(region, op).binary(Opcode::And, value, mask))
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
        let made = self.function.def_op(pointer);
        made.is_some_and(|(op, _)| {
            let data = &self.function.ops[op];
            data.opcode == Opcode::Inttoptr
                && !self.objects.may_be_hidden(pointer)
                && self.is_calculated(data.operands[0])
        })
    }

    /// Whether a value is an argument without a shadow: a number, though it is put where addresses are in other cases, or a pointer to numbers, though it
    /// is where others lead to floats.
    fn is_constant_argument(&self, value: Value) -> bool {
        let primal = self.module().functions[self.key.function].arguments();
        let position = primal.iter().position(|&argument| argument == value);
        position.is_some_and(|index| self.key.args.get(index) == Some(&Activity::Const))
    }

    // ---- walking

    /// Puts companions behind each parameter that has them.
    fn add_parameters(&mut self) {
        let derivative = self.session.derivatives[self.index].id;
        let declared = &self.session.module.functions[derivative];
        self.function.name = declared.name.clone();
        self.function.params = declared.params.clone();
        self.function.results = declared.results.clone();
        self.function.facts = declared.facts.clone();
        let body = self.function.body();
        let args = std::mem::take(&mut self.function.regions[body].args);
        for (arg, activity) in args.into_iter().zip(self.key.args.clone()) {
            let index = self.function.regions[body].args.len() as u32;
            self.function.values[arg].def = ValueDef::Argument {
                region: body,
                index,
            };
            self.function.regions[body].args.push(arg);
            if activity != Activity::Const {
                self.add_companion_arguments(body, arg);
            }
        }
    }

    fn add_companion_arguments(&mut self, region: Region, arg: Value) {
        let ty = self.function.ty(arg);
        let lanes: Lanes = (0..self.width())
            .map(|_| self.function.add_argument(region, ty))
            .collect();
        self.set_companions(arg, &lanes);
    }

    /// Visits the operations of a region, and hands companions on at its end.
    fn visit(&mut self, region: Region, end: End<'_>) -> Result<(), Error> {
        if self.function.ends_in_trap(region) {
            return Ok(());
        }
        let mut ops = std::mem::take(&mut self.function.regions[region].ops);
        let terminator = ops.pop().expect("a region ends in a terminator");
        for op in ops {
            self.visit_op(region, op)?;
        }
        self.check_followed(region, terminator);
        match end {
            End::Function => self.end_function(region, terminator)?,
            End::Results(holder, positions) => {
                let skip = usize::from(self.function.ops[terminator].opcode == Opcode::Again);
                for &position in positions {
                    let value = self.function.ops[terminator].operands[skip + position];
                    let result = self.function.ops[holder].results[position];
                    let parts = self.objects.parts_of_value(result);
                    let lanes = self.companions_of(region, terminator, value, &parts)?;
                    self.function.ops[terminator].operands.extend(lanes);
                }
            }
        }
        self.keep(region, terminator);
        Ok(())
    }

    fn end_function(&mut self, region: Region, terminator: Op) -> Result<(), Error> {
        let returned = self.function.ops[terminator].operands.clone();
        let mut operands = SmallVec::new();
        if self.key.primal {
            operands.extend_from_slice(&returned);
        }
        for (value, activity) in returned.into_iter().zip(self.key.results.clone()) {
            if activity != Activity::Const {
                let parts = self.objects.parts_of_value(value);
                operands.extend(self.companions_of(region, terminator, value, &parts)?);
            }
        }
        self.function.ops[terminator].operands = operands;
        Ok(())
    }

    fn visit_op(&mut self, region: Region, op: Op) -> Result<(), Error> {
        self.check_followed(region, op);
        self.check_numbers(region, op);
        let data = &self.function.ops[op];
        let moves_floats = data
            .results
            .first()
            .is_some_and(|&result| self.function.ty(result).is_float());
        match data.opcode {
            Opcode::Load => self.visit_load(region, op),
            Opcode::Store => self.visit_store(region, op),
            Opcode::AtomicAdd => self.visit_atomic_add(region, op),
            Opcode::Stack | Opcode::Alloc => self.visit_allocation(region, op),
            Opcode::Free => self.visit_free(region, op),
            Opcode::Copy | Opcode::Move => self.visit_copy(region, op),
            Opcode::Fill => self.visit_fill(region, op),
            Opcode::Call => self.visit_call(region, op),
            Opcode::CallIndirect => self.visit_indirect_call(region, op),
            Opcode::If | Opcode::Switch | Opcode::For | Opcode::Loop => {
                self.visit_structured(region, op)
            }
            Opcode::Offset => self.visit_move(region, op, 0..1),
            Opcode::Bitcast => {
                self.check_bitcast(op)?;
                self.visit_move(region, op, 0..1)
            }
            Opcode::Ptrtoint | Opcode::Inttoptr => self.visit_move(region, op, 0..1),
            Opcode::Splat | Opcode::Extract if !moves_floats => self.visit_move(region, op, 0..1),
            Opcode::Insert | Opcode::Shuffle if !moves_floats => self.visit_move(region, op, 0..2),
            Opcode::Select if !moves_floats => self.visit_move(region, op, 1..3),
            // Addresses that integers carry are calculated with as such.
            Opcode::Add | Opcode::Sub | Opcode::And | Opcode::Or | Opcode::TruncInt
                if self.has_shadow(data.results[0]) || self.is_part(data.results[0]) =>
            {
                let operands = data.operands.clone();
                for &operand in &operands {
                    if shadowing::is_moved_part(&self.function, op, operand) {
                        self.follow_part(region, op, operand);
                    }
                }
                self.visit_move(region, op, 0..operands.len())
            }
            _ => self.visit_rule(region, op),
        }
    }

    /// Tangents by the table of rules.
    fn visit_rule(&mut self, region: Region, op: Op) -> Result<(), Error> {
        self.keep(region, op);
        let data = &self.function.ops[op];
        let results = data.results.clone();
        let active = results.iter().any(|&result| self.is_active(result));
        if !active
            || !matches!(
                rules::rule(data.opcode),
                Rule::Partials(_) | Rule::Linear(_)
            )
        {
            return Ok(());
        }
        let primal = Primal::of(&self.function, op);
        if let Some(refusal) = rules::refusal(&primal) {
            return Err(self.error(op, refusal));
        }
        let width = self.width();
        let location = data.location;
        let mut linearisation = Linearisation::new(&primal);
        let mut tangents: SmallVec<[Option<Lanes>; 2]> =
            SmallVec::from_elem(Some(Lanes::new()), results.len());
        for lane in 0..width {
            let of_operands: SmallVec<[Option<Value>; 4]> = primal
                .operands
                .iter()
                .map(|&operand| self.companions.get(operand).map(|lanes| lanes[lane]))
                .collect();
            let mut b = Builder::new(&mut self.function, region);
            b.location = location;
            b.float_flags = primal.flags.intersection(PERMISSIONS);
            if width > 1 {
                // Among many directions most are zero; nobody asks for the sign of that.
                b.float_flags = b.float_flags.union(Flags::NSZ);
            }
            let of_results = linearisation.jvp(&mut b, &mut |_, value| value, &of_operands);
            for (lanes, tangent) in tangents.iter_mut().zip(of_results) {
                match (lanes.as_mut(), tangent) {
                    (Some(lanes), Some(tangent)) => lanes.push(tangent),
                    _ => *lanes = None,
                }
            }
        }
        for (result, lanes) in results.into_iter().zip(tangents) {
            if let Some(lanes) = lanes
                && self.is_active(result)
            {
                self.set_companions(result, &lanes);
            }
        }
        Ok(())
    }

    /// The same operation on companions of the operands `moved` gives those of its result.
    fn visit_move(
        &mut self,
        region: Region,
        op: Op,
        moved: std::ops::Range<usize>,
    ) -> Result<(), Error> {
        self.keep(region, op);
        let data = self.function.ops[op].clone();
        let result = data.results[0];
        let from = &data.operands[moved.clone()];
        // Where no operand has a derivative, the result has none.
        let any = from.iter().any(|&operand| {
            self.function.ty(operand).is_ptr() || self.companions.get(operand).is_some()
        });
        if !self.has_companions(result) || !any {
            return Ok(());
        }
        let ty = self.function.ty(result);
        let mut by_lane: Lanes = Lanes::new();
        let mut columns: SmallVec<[Lanes; 2]> = SmallVec::new();
        for &operand in from {
            let alike = if self.function.ty(operand) == ty {
                result
            } else {
                operand
            };
            let parts = self.objects.parts_of_value(alike);
            let lanes = self.companions_of(region, op, operand, &parts)?;
            let calculates = matches!(
                data.opcode,
                Opcode::Offset | Opcode::Add | Opcode::Sub | Opcode::And | Opcode::Or
            );
            let is_part = shadowing::is_moved_part(&self.function, op, operand);
            columns.push(match calculates && !is_part {
                true => self.without_marks(region, op, operand, lanes),
                false => lanes,
            });
        }
        for lane in 0..self.width() {
            let mut operands = data.operands.clone();
            for (operand, column) in operands[moved.clone()].iter_mut().zip(&columns) {
                *operand = column[lane];
            }
            let mut b = self.builder(region, op);
            let companion = b.op(data.opcode, &operands, data.payload.clone(), &[ty]);
            self.function.ops[companion].flags = data.flags;
            by_lane.push(self.function.result(companion));
        }
        self.set_companions(result, &by_lane);
        Ok(())
    }

    /// Gives what extensions and shifts make of parts of words the companions that they make of those of the parts.
    fn follow_part(&mut self, region: Region, op: Op, value: Value) {
        let source = self.function.def_op(value).map(|(source, _)| source);
        let Some(source) = source.filter(|_| self.companions.get(value).is_none()) else {
            return;
        };
        let data = self.function.ops[source].clone();
        if !shadowing::moves_parts(data.opcode) {
            return;
        }
        self.follow_part(region, op, data.operands[0]);
        let Some(parts) = self.companions.get(data.operands[0]).map(Lanes::from_slice) else {
            return;
        };
        let ty = self.function.ty(value);
        let mut b = self.builder(region, op);
        let moved = parts.iter().map(|&part| {
            let mut operands = data.operands.clone();
            operands[0] = part;
            b.value(data.opcode, &operands, data.payload.clone(), ty)
        });
        let lanes: Lanes = moved.collect();
        self.set_companions(value, &lanes);
    }

    /// A bit cast carries tangents only where it leaves each float whole.
    fn check_bitcast(&self, op: Op) -> Result<(), Error> {
        let data = &self.function.ops[op];
        let (from, to) = (data.operands[0], data.results[0]);
        if !self.is_active(to) {
            return Ok(());
        }
        let (from_ty, to_ty) = (self.function.ty(from), self.function.ty(to));
        let all_floats = |integer: Value, float: Type| {
            let parts = self.objects.parts_of_value(integer);
            let whole = |part: &Bytes| {
                part.kind == Kind::Float(float.scalar())
                    || part.kind.as_union(part.bytes) == Some(float.scalar())
            };
            self.function.is_constant(integer)
                || (!parts.is_empty() && parts.iter().all(whole))
                || self.objects.union_of_value(&self.function, integer) == Some(float.scalar())
        };
        let fits = match (from_ty.is_float(), to_ty.is_float()) {
            (true, true) => from_ty.scalar() == to_ty.scalar(),
            (true, false) => all_floats(to, from_ty),
            (false, true) => all_floats(from, to_ty),
            (false, false) => true,
        };
        if fits {
            return Ok(());
        }
        let refusal = rules::refusal(&Primal::of(&self.function, op));
        Err(match refusal {
            Some(refusal) => self.error(op, refusal),
            None => self.unknown_layout(op),
        })
    }

    // ---- regions

    /// Gives values that flow into and out of regions company by their companions.
    fn visit_structured(&mut self, region: Region, op: Op) -> Result<(), Error> {
        let data = self.function.ops[op].clone();
        let (is_loop, first_initial, first_arg) = match data.opcode {
            Opcode::For => (true, 3, 1),
            Opcode::Loop => (true, 0, 0),
            _ => (false, 0, 0),
        };
        let carried = |sweep: &Self, position: usize| {
            sweep.function.regions[data.regions[0]].args[first_arg + position]
        };
        let positions: SmallVec<[usize; 8]> = (0..data.results.len())
            .filter(|&position| {
                self.has_companions(data.results[position])
                    || (is_loop && self.has_companions(carried(self, position)))
            })
            .collect();
        if is_loop {
            // The body must know the companions of carried values before it is visited.
            let args: SmallVec<[Value; 8]> = positions
                .iter()
                .map(|&position| carried(self, position))
                .collect();
            for (&position, arg) in positions.iter().zip(args) {
                let initial = data.operands[first_initial + position];
                let parts = self.objects.parts_of_value(arg);
                let lanes = self.companions_of(region, op, initial, &parts)?;
                self.function.ops[op].operands.extend(lanes);
                self.add_companion_arguments(data.regions[0], arg);
            }
        }
        for &inner in &data.regions {
            self.visit(inner, End::Results(op, &positions))?;
        }
        for &position in &positions {
            self.add_companion_results(op, data.results[position]);
        }
        self.keep(region, op);
        Ok(())
    }
}

/// Ones in the bytes of an integer, or of the integers of a vector, that transport no floats.
fn keep_mask(ty: Type, parts: &[Bytes]) -> Constant {
    let lane_bytes = ty.scalar().bytes();
    let mut lanes = vec![0u128; usize::from(ty.lanes())];
    for part in parts {
        if matches!(part.kind, Kind::Float(_)) {
            continue;
        }
        for byte in part.offset as u64..part.offset as u64 + part.bytes {
            if let Some(lane) = lanes.get_mut((byte / lane_bytes) as usize) {
                *lane |= 0xff << (8 * (byte % lane_bytes));
            }
        }
    }
    let limit = ones(ty.scalar().bits());
    lanes.iter_mut().for_each(|lane| *lane &= limit);
    if ty.is_vector() {
        Constant::Lanes(lanes.into())
    } else {
        Constant::Bits(lanes[0])
    }
}
