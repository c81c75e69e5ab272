//! Carried values that a loop replaces conditionally: a running maximum, the last element that fits.
//!
//! ```text
//! %r = for %i = 0 to %n step 1 with (%m: f64 = %m0) {      %r, %last = for %i = 0 to %n step 1 with (%m: f64 = %m0, %at: i64 = -1) {
//!   %c = fcmp ogt f64 %x, %m                          →      %c = fcmp ogt f64 %x, %m
//!   %m1 = select f64 %c, %x, %m                              %m1 = select f64 %c, %x, %m
//!   yield %m1                                                %at1 = select i64 %c, %i, %at
//! }                                                          yield %m1, %at1
//! ```
//!
//! The adjoint of the result goes to the last replacement, and to nothing else. So the reverse sweep need not know for each
//! iteration whether it replaced the value, only which iteration was the last: one saved integer instead of one per iteration.

use super::Reversible;
use crate::shadows::Sweep;
use crate::step::Step;
use ferrozyme_ir::{Builder, Op, OpView, Opcode, Type, Value, for_each_op};
use ferrozyme_opt::add_carried;

impl Sweep<'_, Reversible<'_>> {
    /// Makes a loop that is reversed remember when it last replaced each of the values that it carries in this way.
    pub(super) fn remember_updates(&mut self, op: Op, number: Option<Value>) {
        let data = self.function.ops[op].clone();
        let body = data.regions[0];
        let end = self.function.terminator(body);
        if self.function.ops[end].opcode == Opcode::Trap {
            return;
        }
        for index in 0..data.results.len() {
            let carried = self.function.carried(op)[index];
            let next = self.function.ops[end].values()[index];
            if self.activities.is_active(next)
                && let Some((update, replaced_if)) = self.is_update(op, end, carried, next)
            {
                self.remember_update(op, end, update, replaced_if, number);
            }
        }
    }

    /// Whether a loop does nothing with a value but replace it: by which operation, and where its condition is what.
    fn is_update(&self, op: Op, end: Op, carried: Value, next: Value) -> Option<(Op, bool)> {
        let function = &self.function;
        let body = function.ops[op].regions[0];
        let (update, _) = function.def_op(next)?;
        let OpView::Select {
            condition,
            then,
            otherwise,
        } = function.view(update)
        else {
            return None;
        };
        if function.ty(condition) != Type::I1 || !function.regions[body].ops.contains(&update) {
            return None;
        }
        let replaced_if = match (then == carried, otherwise == carried) {
            (false, true) => true,
            (true, false) => false,
            _ => return None,
        };
        let mut alone = true;
        for_each_op(function, body, &mut |region, user| {
            if function.ends_in_trap(region) {
                return;
            }
            let operands = &function.ops[user].operands;
            let carries = operands.contains(&carried) && user != update;
            let results = &function.ops[user].results;
            let active = results.iter().any(|&v| self.activities.is_active(v));
            let ends = matches!(
                function.ops[user].opcode,
                Opcode::Store | Opcode::Call | Opcode::CallIndirect | Opcode::Yield | Opcode::Again
            );
            alone &= !(carries && (active || ends));
            let uses = operands.iter().filter(|&&operand| operand == next).count();
            let allowed = usize::from(user == end);
            alone &= uses <= allowed || (uses > 0 && !active && !ends);
        });
        alone.then_some((update, replaced_if))
    }

    fn remember_update(
        &mut self,
        op: Op,
        end: Op,
        update: Op,
        replaced_if: bool,
        number: Option<Value>,
    ) {
        let data = self.function.ops[op].clone();
        let body = data.regions[0];
        // A number that no iteration has.
        let (number, before) = match number {
            Some(number) => (number, self.function.int(Type::I64, -1)),
            None => {
                let [from, _, step] = data.bounds().map(|bound| self.function.int_of(bound));
                let (Some(from), Some(step)) = (from, step) else {
                    return;
                };
                let counter = self.function.counter(op);
                let ty = self.function.ty(counter);
                (counter, self.function.int(ty, from.wrapping_sub(step)))
            }
        };
        let OpView::Select {
            condition,
            then,
            otherwise,
        } = self.function.view(update)
        else {
            unreachable!("an update is a selection")
        };
        let (replacement, kept) = match replaced_if {
            true => (then, otherwise),
            false => (otherwise, then),
        };
        let (at, last) = add_carried(&mut self.function, op, before);
        let mut b = Builder::new(&mut self.function, body);
        b.location = data.location;
        let popped = b.function.regions[body].ops.pop();
        debug_assert_eq!(popped, Some(end));
        let now = match replaced_if {
            true => b.select(condition, number, at),
            false => b.select(condition, at, number),
        };
        b.function.ops[end].operands.push(now);
        b.function.regions[body].ops.push(end);
        self.function.set_name(last, "last");
        let step = Step::Update {
            replacement,
            kept,
            number,
            last,
        };
        self.mode.steps.insert(update, step);
    }
}
