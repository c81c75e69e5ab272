//! How much work a loop is, roughly: what it takes on one thread is known only when the program runs.

use crate::alias::Aliases;
use crate::cost::operation_cost;
use crate::indices::is_loop;
use crate::symbolic::Symbolic;
use ferrozyme_ir::{Builder, Function, Op, Opcode, Region, Value};

/// How often a loop is taken to run of which that is not known.
const UNKNOWN_TRIPS: i64 = 8;

/// Larger numbers count as this, so that no product of two wraps around.
const LARGEST: i64 = 1 << 31;

/// The work of one execution of a region, in simple operations.
pub(super) struct Work {
    /// What is done once.
    once: i64,
    /// What is done repeatedly.
    loops: Vec<(Trips, Work)>,
}

/// How often a loop runs.
enum Trips {
    Known(Symbolic),
    /// As often as the counter of the loop around allows, which is the mean of its first and last value.
    Between(Symbolic, Symbolic),
    Unknown,
}

/// How long an atomic addition takes, in simple operations: other threads have the same memory in their caches.
const ATOMIC_ADDITION: i64 = 100;

impl Work {
    /// The work of an iteration of a loop.
    pub(super) fn of(aliases: &Aliases<'_>, op: Op) -> Work {
        Work::of_region(aliases, op, aliases.function().ops[op].body(), &cost_of)
    }

    /// How much longer an iteration takes if these additions are atomic; none if there are none.
    pub(super) fn of_atomic_additions(
        aliases: &Aliases<'_>,
        op: Op,
        additions: &[Op],
    ) -> Option<Work> {
        let cost = |op: Op, _: Opcode| match additions.contains(&op) {
            true => ATOMIC_ADDITION,
            false => 0,
        };
        let body = aliases.function().ops[op].body();
        (!additions.is_empty()).then(|| Work::of_region(aliases, op, body, &cost))
    }

    fn of_region(
        aliases: &Aliases<'_>,
        around: Op,
        region: Region,
        cost: &dyn Fn(Op, Opcode) -> i64,
    ) -> Work {
        let function: &Function = aliases.function();
        let mut work = Work {
            once: 0,
            loops: Vec::new(),
        };
        if function.ends_in_trap(region) {
            return work;
        }
        for &op in &function.regions[region].ops {
            let data = &function.ops[op];
            work.once = work.once.saturating_add(cost(op, data.opcode));
            for &inner in &data.regions {
                let inside = Work::of_region(aliases, around, inner, cost);
                if is_loop(data.opcode) {
                    work.loops.push((trips_of(aliases, around, op), inside));
                } else {
                    work.once = work.once.saturating_add(inside.once);
                    work.loops.extend(inside.loops);
                }
            }
        }
        work.once = work.once.min(LARGEST);
        work
    }

    /// Builds the number.
    pub(super) fn build(&self, b: &mut Builder<'_>) -> Value {
        let mut sum = b.i64(self.once);
        for (trips, inside) in &self.loops {
            let inside = inside.build(b);
            let count = trips.build(b);
            let product = product(b, count, inside);
            let all = b.binary(Opcode::Add, sum, product);
            sum = limited(b, all);
        }
        sum
    }
}

fn cost_of(_: Op, opcode: Opcode) -> i64 {
    match opcode {
        Opcode::Call | Opcode::CallIndirect => 50,
        Opcode::Alloc | Opcode::Free => 20,
        Opcode::Contract => 10_000,
        opcode => i64::try_from(operation_cost(opcode)).unwrap_or(LARGEST),
    }
}

/// The product of two numbers of limited size, of limited size.
pub(super) fn product(b: &mut Builder<'_>, count: Value, work: Value) -> Value {
    let zero = b.i64(0);
    let count = b.binary(Opcode::Smax, count, zero);
    let count = limited(b, count);
    let product = b.binary(Opcode::Mul, count, work);
    limited(b, product)
}

fn limited(b: &mut Builder<'_>, number: Value) -> Value {
    let largest = b.i64(LARGEST);
    b.binary(Opcode::Smin, number, largest)
}

fn trips_of(aliases: &Aliases<'_>, around: Op, op: Op) -> Trips {
    let indices = aliases.indices();
    let visible = |count: &Symbolic| {
        indices.can_emit(count)
            && count
                .variables()
                .all(|value| indices.is_defined_outside(value, around))
    };
    let find = || {
        let count = indices.counted(op)?.trip_count()?;
        if visible(&count) {
            return Some(Trips::Known(count));
        }
        let outer = indices.counted(around)?;
        let first = count.substitute(outer.counter, &outer.from)?;
        let last = count.substitute(outer.counter, &outer.last_counter()?)?;
        (visible(&first) && visible(&last)).then_some(Trips::Between(first, last))
    };
    find().unwrap_or(Trips::Unknown)
}

impl Trips {
    fn build(&self, b: &mut Builder<'_>) -> Value {
        let visible = "the trip count consists of visible integers";
        match self {
            Trips::Known(count) => count.emit(b).expect(visible),
            Trips::Between(first, last) => {
                let two = b.i64(2);
                let (first, last) = (first.emit(b).expect(visible), last.emit(b).expect(visible));
                let sum = b.binary(Opcode::Add, first, last);
                b.binary(Opcode::Sdiv, sum, two)
            }
            Trips::Unknown => b.i64(UNKNOWN_TRIPS),
        }
    }
}
