//! Finds active operations that cannot be differentiated, and reports them: later they would be a silent zero.

use super::{Activities, Analysis};
use crate::error::Error;
use crate::objects::{Class, Contradiction, Kind, Source, ValueKind};
use crate::request::Activity;
use crate::rules::{self, Primal};
use ferrozyme_ir::{Op, OpView, Opcode, Payload, Value};
use ferrozyme_refusal::{Argument, Refusal};

impl Analysis<'_> {
    /// Finds what is active and cannot be differentiated.
    pub(super) fn report_problems(
        &self,
        ops: &[Op],
        activities: &Activities,
        args: &[Activity],
        results: &[Activity],
    ) -> Result<(), Error> {
        self.report_missing_shadows(ops, activities, args)?;
        for &op in ops {
            self.report_bit_tricks(op, results)?;
            self.report_unknown_layout(op, activities)?;
            self.report_refusals(op, activities)?;
            self.report_opaque_calls(op, activities)?;
            self.report_constant_writes(op, activities)?;
        }
        // Last, since the others know a place.
        self.report_shared_globals(ops, activities)
    }

    fn report_missing_shadows(
        &self,
        ops: &[Op],
        activities: &Activities,
        args: &[Activity],
    ) -> Result<(), Error> {
        let arguments = args.iter().zip(self.function.arguments()).enumerate();
        for (index, (&activity, &arg)) in arguments {
            if activity != Activity::Const || !self.lacks_shadow(activities, index, arg) {
                continue;
            }
            if self.is_told_at_run_time(activities, arg, args) {
                continue;
            }
            let mut classes = self.reachable(arg);
            classes.extend(&self.constant);
            let written = self.first_write(ops, &classes);
            let argument = Argument::Index(index as u32);
            let refusal = Refusal::ConstantArgument { argument };
            return Err(Error::found(self.module, self.function, written, refusal));
        }
        Ok(())
    }

    /// Whether the derivative can tell by addresses which memory is constant. Where something with a derivative is put, and nothing but constant arguments leads there, it is put into them for certain; and code that they lead to has no derivative.
    fn is_told_at_run_time(&self, activities: &Activities, arg: Value, args: &[Activity]) -> bool {
        let mut classes = self.reachable(arg).into_iter();
        classes.all(|class| {
            let is_put_there = self.varied.classes.contains(&class);
            let needs_other = is_put_there || self.objects.is_called(class);
            !activities.active_classes.contains(&class)
                || !needs_other
                || self.is_mixed(class, args)
        })
    }

    /// The first operation that puts something with a derivative into memory of these classes; if none does so itself, the first that may by a call.
    fn first_write(&self, ops: &[Op], classes: &[Class]) -> Option<Op> {
        let within = |pointer: Value| {
            self.class(pointer)
                .is_some_and(|class| classes.contains(&class))
        };
        let varied =
            |class: Option<Class>| class.is_some_and(|class| self.varied.classes.contains(&class));
        ops.iter()
            .copied()
            .find(|&op| match self.function.view(op) {
                OpView::Store { value, address, .. } | OpView::AtomicAdd { address, value, .. } => {
                    within(address) && self.varied.values.contains(value)
                }
                OpView::Copy {
                    destination,
                    source,
                    ..
                }
                | OpView::Move {
                    destination,
                    source,
                    ..
                } => within(destination) && varied(self.class(source)),
                _ => false,
            })
            .or_else(|| {
                let is_meant = |class| classes.contains(&class);
                self.objects.first_write(self.function, ops, is_meant)
            })
    }

    /// What pointers in a global lead to has a shadow only if derivatives alone put them there.
    fn report_shared_globals(&self, ops: &[Op], activities: &Activities) -> Result<(), Error> {
        for &class in &activities.shadowed {
            let mut shared = self
                .objects
                .sources(class)
                .filter_map(|source| match source {
                    Source::Global(id) => Some(&self.module.globals[id]),
                    _ => None,
                });
            let mut pointees = self.objects.pointees(class);
            if let Some(global) = shared.find(|global| global.shared && !global.constant)
                && pointees.any(|to| activities.shadowed.contains(&to))
            {
                let global = global.name.clone();
                let found = ops.iter().copied().find(|&op| {
                    let data = &self.function.ops[op];
                    data.opcode == Opcode::Load
                        && self.function.ty(data.results[0]).is_ptr()
                        && self.class(data.address()) == Some(class)
                });
                let refusal = Refusal::SharedGlobal { global };
                return Err(Error::found(self.module, self.function, found, refusal));
            }
        }
        Ok(())
    }

    /// Floats that are put together from the bits of others: here, behind a pointer, by a callee, or by the caller.
    fn report_bit_tricks(&self, op: Op, results: &[Activity]) -> Result<(), Error> {
        let data = &self.function.ops[op];
        let tainted =
            |value: Value| self.tainted.contains(value) && !self.varied.values.contains(value);
        let problem = match data.view() {
            OpView::Cast(Opcode::Bitcast, bits) => {
                self.function.ty(data.results[0]).is_float()
                    && tainted(bits)
                    && self.useful.values.contains(data.results[0])
            }
            OpView::Store { value, address, .. } => {
                tainted(value)
                    && self.carries(value)
                    && self
                        .class(address)
                        .is_some_and(|class| self.useful.classes.contains(&class))
            }
            OpView::Call { .. } | OpView::CallIndirect { .. } => {
                data.operands.iter().any(|&operand| {
                    tainted(operand)
                        && self.carries(operand)
                        && self.useful.values.contains(operand)
                })
            }
            OpView::Return { values } => {
                let returned = values.iter().zip(results);
                returned
                    .filter(|(_, activity)| **activity != Activity::Const)
                    .any(|(&value, _)| tainted(value))
            }
            _ => false,
        };
        if !problem {
            return Ok(());
        }
        Err(self.error(op, Refusal::BitTrick))
    }

    /// Integers that carry floats must carry floats of a type that their width tells, and memory must be used in one way.
    fn report_unknown_layout(&self, op: Op, activities: &Activities) -> Result<(), Error> {
        let function = self.function;
        let data = &function.ops[op];
        let args = data.regions.iter().flat_map(|&r| &function.regions[r].args);
        let unclear = data.results.iter().chain(args).any(|&value| {
            let carried = self.objects.kind_of_value(function, value);
            let expected = rules::derivative_type(function.ty(value)).map(|ty| ty.scalar());
            let is_known = self.objects.union_of_value(function, value).is_some()
                || matches!(carried, ValueKind::CarriesFloat(scalar) if Some(scalar) == expected);
            function.ty(value).is_int()
                && activities.is_active(value)
                && (expected.is_none() || !is_known)
        });
        if unclear {
            return Err(self.error(op, Refusal::UnknownLayout));
        }
        let (value, address) = match data.view() {
            OpView::Load { address, .. } => (data.results[0], address),
            OpView::Store { value, address, .. } => (value, address),
            _ => return Ok(()),
        };
        let torn = function.ty(value).is_float()
            && activities.points_to_active(self.objects, function, address)
            && self
                .objects
                .class_of(function, address)
                .is_some_and(|(class, offset)| {
                    let bytes = function.ty(value).scalar().bytes();
                    let kind = self.objects.kind_of_access(class, offset, bytes);
                    kind.as_union(bytes).is_none()
                        && matches!(
                            kind,
                            Kind::Conflict(Contradiction::Floats(..) | Contradiction::Torn(_))
                        )
                });
        if torn {
            return Err(self.error(op, Refusal::MixedFloats));
        }
        Ok(())
    }

    /// Operations that move bits in ways that derivatives cannot follow.
    fn report_refusals(&self, op: Op, activities: &Activities) -> Result<(), Error> {
        let data = &self.function.ops[op];
        let active = data
            .results
            .iter()
            .any(|&result| activities.is_active(result))
            && data
                .operands
                .iter()
                .any(|&operand| activities.is_active(operand));
        if !active {
            return Ok(());
        }
        match rules::refusal(&Primal::of(self.function, op)) {
            Some(refusal) => Err(self.error(op, refusal)),
            None => Ok(()),
        }
    }

    /// Shadows do not follow what an inactive function writes, so it must not write where they are looked at.
    fn report_constant_writes(&self, op: Op, activities: &Activities) -> Result<(), Error> {
        let data = &self.function.ops[op];
        let (Opcode::Call, Payload::Callee(callee)) = (data.opcode, &data.payload) else {
            return Ok(());
        };
        let callee = &self.module.functions[*callee];
        if !callee.facts.writes_constants || !callee.facts.memory.writes() {
            return Ok(());
        }
        let written = data
            .operands
            .iter()
            .zip(&callee.params)
            .any(|(&arg, param)| {
                let class = self.class(arg).filter(|_| !param.facts.readonly);
                class.is_some_and(|class| {
                    let mut pointees = self.objects.pointees(class);
                    activities.active_classes.contains(&class)
                        || activities.shadowed.contains(&class)
                            && pointees.any(|to| activities.shadowed.contains(&to))
                })
            });
        match written {
            false => Ok(()),
            true => Err(self.error(op, Refusal::InactiveWrite)),
        }
    }

    fn report_opaque_calls(&self, op: Op, activities: &Activities) -> Result<(), Error> {
        let data = &self.function.ops[op];
        if data.opcode != Opcode::Call
            || !activities.is_active_call(self.module, self.function, self.objects, op)
        {
            return Ok(());
        }
        let Payload::Callee(callee) = data.payload else {
            return Ok(());
        };
        let target = &self.module.functions[callee];
        if target.body.is_some() || self.module.rules.contains_key(&callee) {
            return Ok(());
        }
        let refusal = Refusal::NoRule {
            callee: target.name.clone(),
            forward: false,
        };
        Err(self.error(op, refusal))
    }

    fn error(&self, op: Op, refusal: Refusal) -> Error {
        Error::at(self.module, self.function, op, refusal)
    }
}
