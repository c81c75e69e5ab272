//! The derivative of one function, with the tangents of floats as their companions.

use super::Session;
use crate::activity::Giver;
use crate::error::Error;
use crate::objects::{Bytes, Class, Kind, Source};
use crate::request::Activity;
use crate::rules::{self, Linearisation, Primal, Rule};
use crate::search::forget_accesses;
use crate::shadows::{Derivatives, Lanes, Mode, Sweep};
use crate::unions;
use ferrozyme_ir::{
    Builder, Constant, Flags, Function, MemoryEffect, Op, Opcode, Type, Value, ones, returning_ops,
};
use ferrozyme_refusal::Refusal;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// Permissions to rewrite an operation hold for its tangents; promises about its values do not.
const PERMISSIONS: Flags = Flags::NSZ
    .union(Flags::ARCP)
    .union(Flags::CONTRACT)
    .union(Flags::AFN)
    .union(Flags::REASSOC);

/// Forgets that the program does not care for the sign of zero. In many directions that is how tangents are known, whose sums are left out where they add nothing
/// (`distribute_tangents`): the program's own have infinite terms and numbers that are none.
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
    let giver = match index {
        0 => Giver::User,
        _ => Giver::Call,
    };
    let (module, cache) = (&*session.module, &mut session.findings.objects);
    let (objects, activities) = key.call.analyse(module, cache, giver, session.assumption)?;
    let mut function = session.module.functions[key.call.function].clone();
    let declared = &session.module.functions[session.derivatives[index].id];
    function.name = declared.name.clone();
    function.params = declared.params.clone();
    function.results = declared.results.clone();
    function.facts = declared.facts.clone();
    let width = session.width();
    if width > 1 {
        keep_sign_of_zero(&mut function);
    }
    let mode = Tangents {
        session,
        index,
        primal: key.primal,
        calculated_parts: FxHashSet::default(),
    };
    let mut sweep = Sweep::new(mode, function, (&objects, &activities), &key.call, width);
    sweep.mode.calculated_parts = sweep.find_calculated_parts();
    sweep.refuse_marks_outside()?;
    sweep.add_companion_parameters(|activity| activity != Activity::Const);
    sweep.run()?;
    sweep.forget_false_facts();
    sweep.mode.session.may_stop |= sweep.may_stop;
    sweep.mode.session.looks_at_addresses |= sweep.looks_at_addresses;
    Ok(sweep.function)
}

/// A mode in which floats have their tangents beside them, and shadows hold those of what is in memory.
pub(super) struct Tangents<'s, 'm> {
    pub session: &'s mut Session<'m>,
    /// Which derivative of the session this is.
    pub index: usize,
    /// Whether the results of the function are returned, too.
    primal: bool,
    /// Loads of parts of words that are calculated with.
    pub calculated_parts: FxHashSet<Op>,
}

impl Mode for Tangents<'_, '_> {
    const TANGENTS: bool = true;

    fn session(&self) -> &dyn Derivatives {
        self.session
    }

    fn session_mut(&mut self) -> &mut dyn Derivatives {
        self.session
    }

    /// An integer with zeros where it transports floats: the companion of one that transports no derivatives.
    fn companion_of_number(
        sweep: &mut Sweep<'_, Self>,
        op: Op,
        value: Value,
        parts: &[Bytes],
    ) -> Result<Value, Error> {
        let ty = sweep.function.ty(value);
        let is = |wanted: fn(&Kind) -> bool| parts.iter().any(|part| wanted(&part.kind));
        let is_number =
            sweep.objects.is_number(&sweep.function, value) || sweep.is_constant_argument(value);
        let shared = |part: &Bytes| part.kind.is_union(part.bytes);
        let is_union = !parts.is_empty() && parts.iter().all(shared);
        if is_number && is_union && ty == Type::I64 {
            // It may be taken for an address, which must not be nowhere.
            return Ok(unions::tangent_of_number(&mut sweep.builder(op), value));
        }
        // What carries no derivative is a float with tangent zero, or a number, which may be zero in a shadow.
        if is_union {
            return Ok(sweep.function.zero(ty));
        }
        if is_number {
            return Ok(value);
        }
        // A constant has no derivative, whatever it is.
        if sweep.function.is_constant(value)
            && is(|kind| matches!(kind, Kind::Unknown))
            && !is(|kind| matches!(kind, Kind::Pointer(_) | Kind::Conflict(_)))
        {
            return Ok(sweep.function.zero(ty));
        }
        if parts.is_empty() || is(|kind| matches!(kind, Kind::Unknown | Kind::Conflict(_))) {
            return Err(sweep.error(op, Refusal::UnknownLayout));
        }
        if !is(|kind| matches!(kind, Kind::Float(_))) {
            return Ok(value);
        }
        if !is(|kind| !matches!(kind, Kind::Float(_))) {
            return Ok(sweep.function.zero(ty));
        }
        let mask = sweep.function.constant(ty, keep_mask(ty, parts));
        Ok(sweep.builder(op).binary(Opcode::And, value, mask))
    }

    fn check_number(b: &mut Builder<'_>, word: Value, companion: Value) {
        unions::check_no_tangent(b, word, companion);
    }

    fn end(sweep: &mut Sweep<'_, Self>, terminator: Op) -> Result<(), Error> {
        let returned = sweep.function.ops[terminator].operands.clone();
        let mut operands = SmallVec::new();
        if sweep.mode.primal {
            operands.extend_from_slice(&returned);
        }
        for (value, &activity) in returned.into_iter().zip(sweep.results) {
            if activity != Activity::Const {
                let parts = sweep.objects.parts_of_value(value);
                operands.extend(sweep.companions_of(terminator, value, &parts)?);
            }
        }
        sweep.function.ops[terminator].operands = operands;
        Ok(())
    }

    fn visit(sweep: &mut Sweep<'_, Self>, op: Op) -> Result<(), Error> {
        match sweep.function.ops[op].opcode {
            Opcode::Load => sweep.visit_load(op),
            Opcode::Store => sweep.visit_store(op),
            Opcode::AtomicAdd => sweep.visit_atomic_add(op),
            Opcode::Stack | Opcode::Alloc => sweep.visit_allocation(op),
            Opcode::Free => sweep.visit_free(op),
            Opcode::Copy | Opcode::Move => sweep.visit_copy(op),
            Opcode::Fill => sweep.visit_fill(op),
            _ => sweep.visit_rule(op),
        }
    }
}

impl Sweep<'_, Tangents<'_, '_>> {
    /// Where memory may be constant, the derivative writes elsewhere, and stops where that would matter.
    fn forget_false_facts(&mut self) {
        if self.has_constants() {
            self.function.facts.memory = MemoryEffect::Any;
            self.function.facts.willreturn = false;
            // Nobody can tell shadows from constant memory that a function puts beside them.
            self.function.params.iter_mut().for_each(forget_accesses);
        }
    }

    /// Nobody outside knows of marks: they must not get into memory whose shadow comes from there.
    fn refuse_marks_outside(&self) -> Result<(), Error> {
        let (objects, activities) = (self.objects, self.activities);
        let mut shared = objects.classes().filter(|&class| objects.has_unions(class));
        if self.mode.index > 0 || !shared.any(|class| activities.may_be_constant(class)) {
            return Ok(());
        }
        let is_outside = |source| match source {
            Source::Param(index) => self.args.get(index as usize) != Some(&Activity::Const),
            Source::Global(global) => !self.module().globals[global].constant,
            _ => false,
        };
        let is_meant = |class: Class| {
            activities.is_shadowed_class(class)
                && objects.has_unions(class)
                && objects.is_written(class)
                && objects.sources(class).any(is_outside)
        };
        if !objects.classes().any(is_meant) {
            return Ok(());
        }
        let (module, refusal) = (self.module(), Refusal::ConstantIntoUnion);
        let primal = &module.functions[objects.function()];
        let written = objects.first_write(primal, &returning_ops(primal), is_meant);
        Err(Error::found(module, primal, written, refusal))
    }

    /// Tangents by the table of rules.
    fn visit_rule(&mut self, op: Op) -> Result<(), Error> {
        self.keep(op);
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
        let mut linearisation = Linearisation::new(&primal);
        let mut tangents: SmallVec<[Option<Lanes>; 2]> =
            SmallVec::from_elem(Some(Lanes::new()), results.len());
        for lane in 0..width {
            let of_operands: SmallVec<[Option<Value>; 4]> = primal
                .operands
                .iter()
                .map(|&operand| self.companions.get(operand).map(|lanes| lanes[lane]))
                .collect();
            let mut b = self.builder(op);
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
