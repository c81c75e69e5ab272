//! Memory whose shadow comes from outside the derivative, and memory in which floats share their place with something else.

use super::{Augmenter, Sweep};
use crate::activity::reachable_from;
use crate::error::Error;
use crate::objects::{Class, Contradiction, Kind, Source};
use crate::request::Activity;
use ferrozyme_ir::{Op, Opcode, Value};
use ferrozyme_refusal::Refusal;

impl Augmenter<'_> {
    /// Notes the memory whose shadow comes from outside the derivative, and what the caller knows of that of arguments.
    pub(super) fn find_given(&mut self) {
        let Sweep {
            objects,
            args,
            unions,
            ..
        } = *self.sweep;
        for class in objects.classes() {
            if objects.has_unknown_origin(class) {
                // Whoever made it knows nothing of shadows.
                self.given.insert(class);
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
                        self.given.insert(class);
                    }
                    false => self.given.extend(reachable_from(objects, class)),
                }
            }
        }
    }

    /// Whether an access meets floats where at other times pointers or numbers are. Then the shadow's floats are zero in the forward sweep, and what
    /// is found there says what the bytes are.
    pub(super) fn meets_union(
        &mut self,
        op: Op,
        address: Value,
        bytes: u64,
    ) -> Result<bool, Error> {
        let function = &self.augmented.function;
        let objects = self.sweep.objects;
        let Some((class, offset)) = objects.class_of(function, address) else {
            return Ok(false);
        };
        if !self.sweep.activities.is_active_class(class) {
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
            && self.given.contains(&class)
            && !self.is_passed_on(class);
        if is_float {
            return Ok(false);
        }
        self.refuse_given(op, address)?;
        Ok(true)
    }

    /// Whether memory from outside is described as nothing but floats.
    pub(super) fn is_plain(&self, address: Value) -> bool {
        self.sweep
            .objects
            .class_of(&self.augmented.function, address)
            .is_some_and(|(class, _)| self.sweep.objects.is_plain(class))
    }

    /// Whether memory that an argument leads to holds floats where at other times it holds pointers or integers.
    pub(super) fn leads_to_union(&self, value: Value) -> bool {
        let objects = self.sweep.objects;
        let Some((class, _)) = objects.class_of(&self.augmented.function, value) else {
            return false;
        };
        reachable_from(objects, class).into_iter().any(|class| {
            self.sweep.activities.is_active_class(class)
                && !objects.is_plain(class)
                && objects.has_unions(class)
        })
    }

    /// Whether floats share their place with other things in the memory behind a pointer.
    pub(super) fn is_in_union(&self, pointer: Value) -> bool {
        let objects = self.sweep.objects;
        let class = objects.class_of(&self.augmented.function, pointer);
        class.is_some_and(|(class, _)| {
            self.sweep.activities.is_active_class(class) && objects.has_unions(class)
        })
    }

    fn is_passed_on(&self, class: Class) -> bool {
        let function = &self.augmented.function;
        let objects = self.sweep.objects;
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
    pub(super) fn refuse_given(&mut self, op: Op, address: Value) -> Result<(), Error> {
        let objects = self.sweep.objects;
        let given = objects
            .class_of(&self.augmented.function, address)
            .is_some_and(|(class, _)| self.given.contains(&class) && objects.is_handled(class));
        match given {
            true => self.refuse_given_memory(op),
            false => Ok(()),
        }
    }

    pub(super) fn refuse_given_memory(&mut self, op: Op) -> Result<(), Error> {
        Err(self.error(op, Refusal::UnionOfCaller))
    }
}
