//! Memory whose shadow the caller provides, and union words.

use super::{Reversible, Task};
use crate::activity::reachable_from;
use crate::error::Error;
use crate::objects::{Class, Contradiction, Kind, Source};
use crate::request::Activity;
use crate::shadows::Sweep;
use ferrozyme_ir::{Op, Opcode, Value};
use ferrozyme_refusal::Refusal;

impl Sweep<'_, Reversible<'_>> {
    /// Notes the memory whose shadow comes from outside the derivative, and what the caller knows of that of arguments.
    pub(super) fn find_given(&mut self) {
        let Task { objects, call, .. } = *self.mode.task;
        let (args, unions) = (&call.args, &call.unions);
        for class in objects.classes() {
            if objects.has_unknown_origin(class) {
                // Whoever made it knows nothing of shadows.
                self.mode.given.insert(class);
            }
            for source in objects.sources(class) {
                let given = match source {
                    Source::Param(index) => {
                        let index = index as usize;
                        args.get(index) == Some(&Activity::Duplicated)
                            && unions.get(index) != Some(&true)
                    }
                    Source::External(_) | Source::Address(_) => true,
                    _ => false,
                };
                if !given {
                    continue;
                }
                match objects.is_plain(class) {
                    true => {
                        self.mode.given.insert(class);
                    }
                    false => self.mode.given.extend(reachable_from(objects, class)),
                }
            }
        }
    }

    /// Whether an access meets floats where at other times pointers or numbers are. Then the shadow's floats are zero in the forward sweep, and what
    /// is found there says what the bytes are.
    pub(super) fn meets_union(&self, op: Op, address: Value, bytes: u64) -> Result<bool, Error> {
        let function = &self.function;
        let objects = self.objects;
        let Some((class, offset)) = objects.class_of(function, address) else {
            return Ok(false);
        };
        if !self.activities.is_active_class(class) {
            return Ok(false);
        }
        if objects.is_plain(class) {
            return Ok(false);
        }
        let kind = objects.kind_of_access(class, offset, bytes);
        if !kind.is_union(bytes) {
            return Ok(false);
        }
        // Floats of which the bits are looked at elsewhere, and nothing else: as far as this function goes.
        let is_float = matches!(kind, Kind::Conflict(Contradiction::FloatAndInteger(_)))
            && self.mode.given.contains(&class)
            && !self.is_passed_on(class);
        if is_float {
            return Ok(false);
        }
        self.refuse_given(op, address)?;
        Ok(true)
    }

    fn is_passed_on(&self, class: Class) -> bool {
        let function = &self.function;
        let objects = self.objects;
        let leads_there = |value: &Value| {
            objects
                .class_of(function, *value)
                .is_some_and(|(from, _)| reachable_from(objects, from).contains(&class))
        };
        function.ops.values().any(|data| {
            matches!(data.opcode, Opcode::Call | Opcode::CallIndirect)
                && data.operands.iter().any(leads_there)
        })
    }

    /// Where pointers and floats share their place, floats of the shadow must be zero in the forward sweep. Nobody knows what they are in memory
    /// that comes from outside.
    pub(super) fn refuse_given(&self, op: Op, address: Value) -> Result<(), Error> {
        let objects = self.objects;
        let given = objects
            .class_of(&self.function, address)
            .is_some_and(|(class, _)| {
                self.mode.given.contains(&class) && objects.is_handled(class)
            });
        match given {
            true => self.refuse_given_memory(op),
            false => Ok(()),
        }
    }

    pub(super) fn refuse_given_memory(&self, op: Op) -> Result<(), Error> {
        Err(self.error(op, Refusal::UnionOfCaller))
    }
}
