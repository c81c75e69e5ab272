//! Whether two values are the same expression except for the addresses that they load from.

use ferrozyme_ir::{Function, Op, Opcode, Region, Structure, Value};

/// How many operations are compared.
const MAX_OPERATIONS: usize = 64;

/// Compares values of two loop bodies, or of one.
pub(crate) struct Likeness<'a> {
    pub function: &'a Function,
    pub structure: &'a Structure,
    /// The bodies that the values are from.
    pub bodies: [Region; 2],
    /// How many operations may still be looked at.
    budget: usize,
}

impl<'a> Likeness<'a> {
    pub(crate) fn new(
        function: &'a Function,
        structure: &'a Structure,
        bodies: [Region; 2],
    ) -> Likeness<'a> {
        Likeness {
            function,
            structure,
            bodies,
            budget: MAX_OPERATIONS,
        }
    }

    /// Whether two values, one of each body, are computed in the same way. `reads` says whether two loads correspond.
    pub(crate) fn holds(
        &mut self,
        first: Value,
        other: Value,
        reads: &mut impl FnMut(Op, Op) -> bool,
    ) -> bool {
        let function = self.function;
        let inside = |value, body| self.structure.region_of_value(function, value) == Some(body);
        if !inside(first, self.bodies[0]) || !inside(other, self.bodies[1]) {
            return first == other;
        }
        let (Some((one, result)), Some((another, other_result))) =
            (function.def_op(first), function.def_op(other))
        else {
            return false;
        };
        if self.budget == 0 {
            return false;
        }
        self.budget -= 1;
        let (a, b) = (&function.ops[one], &function.ops[another]);
        // What is promised of one must hold for the other, which it will stand for.
        let promises =
            |value: Value, op: Op| (function.values[value].range, function.ops[op].flags);
        if a.opcode != b.opcode
            || function.ty(first) != function.ty(other)
            || promises(first, one) != promises(other, another)
        {
            return false;
        }
        if a.opcode == Opcode::Load {
            return reads(one, another);
        }
        a.payload == b.payload
            && result == other_result
            && a.operands.len() == b.operands.len()
            && std::iter::zip(&a.operands, &b.operands).all(|(&a, &b)| self.holds(a, b, reads))
    }
}
