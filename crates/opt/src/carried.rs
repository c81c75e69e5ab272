//! Adds and removes results of structured operations, together with what belongs to each: the operand that starts a
//! carried value, the argument of the body, and the operand of the terminators.
//!
//! Results of `if` and `switch` have one operand in each region's `yield`; those of `for` and `loop` have an initial
//! value, an argument and an operand of the terminator as well. Regions that end in `trap` yield nothing.

use ferrozyme_ir::{Function, Op, Opcode, Region, Type, Value, ValueDef};
use smallvec::SmallVec;

/// A value that a loop carries, in all its places.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    /// What it is in the first iteration.
    pub initial: Value,
    /// What it is in any iteration.
    pub argument: Value,
    /// What an iteration passes to the next.
    pub next: Value,
    /// What it is behind the loop.
    pub result: Value,
}

/// What a `for` or `loop` carries; nothing if its body ends in a trap.
pub fn carried_by(function: &Function, op: Op) -> SmallVec<[Carried; 4]> {
    let places = 0..function.ops[op].results.len();
    places
        .map_while(|place| carried_at(function, op, place))
        .collect()
}

/// What a `for` or `loop` carries at one place; none if its body ends in a trap.
pub fn carried_at(function: &Function, op: Op, place: usize) -> Option<Carried> {
    let data = &function.ops[op];
    let body = data.regions[0];
    Some(Carried {
        next: yielded(function, body)?[place],
        initial: data.initial()[place],
        argument: function.carried(op)[place],
        result: data.results[place],
    })
}

/// Where in the operands of a loop the initial values of its carried values begin: behind the bounds of a `for`.
pub fn first_initial(opcode: Opcode) -> usize {
    opcode.operand_names().len()
}

/// Where in a loop body's arguments the carried values begin: behind the counter of a `for`.
pub fn first_carried(opcode: Opcode) -> usize {
    if opcode == Opcode::For { 1 } else { 0 }
}

/// Where in a terminator's operands the yielded values begin: behind the condition of `again`.
pub fn first_yielded(opcode: Opcode) -> usize {
    opcode.operand_names().len()
}

/// The operands of a region's terminator for each result of its operation; none if it ends in a trap.
pub fn yielded(function: &Function, region: Region) -> Option<&[Value]> {
    let data = &function.ops[function.terminator(region)];
    (data.opcode != Opcode::Trap).then(|| data.values())
}

/// The values that one result of a structured operation may be. A `for` may not run at all; a `loop` runs at least once.
pub fn sources_of_result(function: &Function, op: Op, place: usize) -> SmallVec<[Value; 4]> {
    let data = &function.ops[op];
    let initial = (data.opcode == Opcode::For).then(|| data.initial()[place]);
    let ends = (data.regions.iter()).filter_map(|&region| yielded(function, region));
    (initial.into_iter())
        .chain(ends.map(|values| values[place]))
        .collect()
}

/// The values that the body's argument for one carried value may be.
pub(crate) fn sources_of_carried(
    function: &Function,
    op: Op,
    place: usize,
) -> SmallVec<[Value; 4]> {
    let data = &function.ops[op];
    let next = yielded(function, data.body()).map(|values| values[place]);
    std::iter::once(data.initial()[place]).chain(next).collect()
}

/// How values flow into and out of the regions of a structured operation: pairs of (from, to).
pub fn flows(function: &Function, op: Op) -> Vec<(Value, Value)> {
    let data = &function.ops[op];
    let mut flows = Vec::new();
    for (place, &result) in data.results.iter().enumerate() {
        if matches!(data.opcode, Opcode::For | Opcode::Loop) {
            let argument = function.carried(op)[place];
            let sources = sources_of_carried(function, op, place);
            flows.extend(sources.into_iter().map(|from| (from, argument)));
        }
        let sources = sources_of_result(function, op, place);
        flows.extend(sources.into_iter().map(|from| (from, result)));
    }
    flows
}

/// Removes the results of a structured operation for which `keep` is false. They must be unused, except for the
/// terminators and initial values that go with them.
pub fn remove_results(function: &mut Function, op: Op, keep: &[bool]) {
    let opcode = function.ops[op].opcode;
    let regions = function.ops[op].regions.clone();
    retain_from(&mut function.ops[op].results, 0, keep);
    let results = function.ops[op].results.clone();
    renumber_results(function, op, &results);
    if matches!(opcode, Opcode::For | Opcode::Loop) {
        retain_from(&mut function.ops[op].operands, first_initial(opcode), keep);
        let body = regions[0];
        retain_from(
            &mut function.regions[body].args,
            first_carried(opcode),
            keep,
        );
        let args = function.regions[body].args.clone();
        for (index, arg) in args.into_iter().enumerate() {
            function.values[arg].def = ValueDef::Argument {
                region: body,
                index: index as u32,
            };
        }
    }
    for region in regions {
        let terminator = function.terminator(region);
        let data = &mut function.ops[terminator];
        if data.opcode != Opcode::Trap {
            let first = first_yielded(data.opcode);
            retain_from(&mut data.operands, first, keep);
        }
    }
}

/// Adds a carried value to a `for` or `loop`: gives the body's new argument and the new result. The body's terminator
/// must then be given its operand with [`add_yielded`].
pub fn add_carried(function: &mut Function, op: Op, initial: Value) -> (Value, Value) {
    let ty: Type = function.ty(initial);
    let body = function.ops[op].regions[0];
    function.ops[op].operands.push(initial);
    let argument = function.add_argument(body, ty);
    let result = function.add_result(op, ty);
    (argument, result)
}

/// Adds an operand to the end of a region's terminator, unless that is a trap.
pub fn add_yielded(function: &mut Function, region: Region, value: Value) {
    let terminator = function.terminator(region);
    let data = &mut function.ops[terminator];
    if data.opcode != Opcode::Trap {
        data.operands.push(value);
    }
}

fn renumber_results(function: &mut Function, op: Op, results: &[Value]) {
    for (index, &result) in results.iter().enumerate() {
        function.values[result].def = ValueDef::Result {
            op,
            index: index as u32,
        };
    }
}

fn retain_from<A: smallvec::Array<Item = Value>>(
    values: &mut SmallVec<A>,
    first: usize,
    keep: &[bool],
) {
    let mut index = 0;
    values.retain(|_| {
        let kept = index < first || keep[index - first];
        index += 1;
        kept
    });
}
