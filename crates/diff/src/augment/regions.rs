//! Branches and loops that are to be reversed.

use super::{Reversible, Trips};
use crate::shadows::Sweep;
use crate::step::Step;
use ferrozyme_ir::{Builder, Function, Op, Opcode, Type};

impl Sweep<'_, Reversible<'_>> {
    /// Notes that the regions of an operation are reversed, and makes loops remember what that takes.
    pub(super) fn note_regions(&mut self, op: Op) {
        let data = &self.function.ops[op];
        let opcode = data.opcode;
        let returns = |&inner| !self.function.ends_in_trap(inner);
        if !self.mode.works.contains(op) || !data.regions.iter().any(returns) {
            return;
        }
        self.mode.steps.insert(op, Step::Regions);
        let mut number = None;
        if opcode == Opcode::Loop {
            let trips = count_trips(&mut self.function, op);
            self.mode.trips.insert(op, trips);
            number = Some(trips.number);
        }
        if matches!(opcode, Opcode::For | Opcode::Loop) {
            self.remember_updates(op, number);
        }
    }
}

/// Makes a general loop count its iterations.
fn count_trips(function: &mut Function, op: Op) -> Trips {
    let body = function.ops[op].regions[0];
    let zero = function.int(Type::I64, 0);
    function.ops[op].operands.push(zero);
    let number = function.add_argument(body, Type::I64);
    let end = function.regions[body]
        .ops
        .pop()
        .expect("a region ends in a terminator");
    let mut b = Builder::new(function, body);
    b.location = b.function.ops[op].location;
    let one = b.i64(1);
    let next = b.binary(Opcode::Add, number, one);
    function.ops[end].operands.push(next);
    function.regions[body].ops.push(end);
    let count = function.add_result(op, Type::I64);
    function.set_name(count, "trips");
    Trips { number, count }
}
