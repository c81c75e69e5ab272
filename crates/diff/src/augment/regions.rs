//! Branches and loops: the shadows of what flows into and out of them.

use super::{Augmenter, Trips};
use crate::error::Error;
use crate::step::Step;
use ferrozyme_ir::{Builder, Function, Op, Opcode, Region, Type};

impl Augmenter<'_> {
    /// Gives pointers that flow into and out of regions company by their shadows.
    pub(super) fn visit_structured(&mut self, region: Region, op: Op) -> Result<(), Error> {
        let data = self.augmented.function.ops[op].clone();
        let returns = data
            .regions
            .iter()
            .any(|&inner| !self.augmented.function.ends_in_trap(inner));
        let reversed = self.works.contains(op) && returns;
        if reversed {
            self.augmented.steps.insert(op, Step::Regions);
        }
        // Carried values start with their shadows, which the regions must know before they are visited.
        let (first_initial, first_arg) = match data.opcode {
            Opcode::For => (3, 1),
            _ => (0, 0),
        };
        let is_loop = matches!(data.opcode, Opcode::For | Opcode::Loop);
        // An integer may carry an address into the loop, and none out of it.
        let shadowed: Vec<usize> = (0..data.results.len())
            .filter(|&index| {
                let carried =
                    || self.augmented.function.regions[data.regions[0]].args[first_arg + index];
                let has_shadow = |value| self.has_shadow(value) || self.is_part(value);
                has_shadow(data.results[index]) || (is_loop && has_shadow(carried()))
            })
            .collect();
        if is_loop {
            for &index in &shadowed {
                let start = self.shadow(op, data.operands[first_initial + index])?;
                self.function().ops[op].operands.push(start);
                let arg = self.augmented.function.regions[data.regions[0]].args[first_arg + index];
                let ty = self.augmented.function.ty(arg);
                let shadow = self.function().add_argument(data.regions[0], ty);
                self.set_shadow(arg, shadow);
            }
        }
        for &inner in &data.regions {
            self.visit(inner)?;
            let terminator = self.augmented.function.terminator(inner);
            let end = self.augmented.function.ops[terminator].clone();
            if end.opcode == Opcode::Trap {
                continue;
            }
            let skip = usize::from(end.opcode == Opcode::Again);
            for &index in &shadowed {
                let shadow = self.shadow(op, end.operands[skip + index])?;
                self.function().ops[terminator].operands.push(shadow);
            }
        }
        for &index in &shadowed {
            let ty = self.augmented.function.ty(data.results[index]);
            let shadow = self.function().add_result(op, ty);
            self.set_shadow(data.results[index], shadow);
        }
        let mut number = None;
        if data.opcode == Opcode::Loop && reversed {
            let trips = count_trips(self.function(), op);
            self.augmented.trips.insert(op, trips);
            number = Some(trips.number);
        }
        if is_loop && reversed {
            self.remember_updates(op, number);
        }
        self.keep(region, op);
        Ok(())
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
