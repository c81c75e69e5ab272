//! What would stop the program sets a status that the host looks at.
//!
//! ```text
//! if %beyond { trap "…" } else { yield }        %r = if %beyond { store i32 1, %status;  yield 0.0 }
//! %x = load f32 …                         ─▶    else { %x = load f32 …;  yield %x }
//! yield %x                                      yield %r
//! ```
//! What stands behind the test in its region moves into the other branch. Where the test fails, the region yields zeros, which nobody sees: the host reports the status before it hands anything over.

use ferrozyme_backend::Error;
use ferrozyme_ir::{
    Alignment, Builder, Cursor, Function, Op, OpView, Opcode, Payload, Region, Type, Value,
};

/// Replaces all traps of a kernel whose last argument is the address of the status.
pub(crate) fn report_traps(function: &mut Function, status: Value) -> Result<(), Error> {
    let body = function.body();
    in_region(function, body, status)
}

fn in_region(function: &mut Function, region: Region, status: Value) -> Result<(), Error> {
    let ops = function.regions[region].ops.clone();
    for (position, &op) in ops.iter().enumerate() {
        let OpView::If {
            then, otherwise, ..
        } = function.view(op)
        else {
            for inner in function.ops[op].regions.clone() {
                in_region(function, inner, status)?;
            }
            if function.ops[op].opcode == Opcode::Trap {
                return Err(Error::Compile(
                    "a kernel stops without a test (a bug in Ferrozyme)".to_owned(),
                ));
            }
            continue;
        };
        let (stops, goes_on) = match [then, otherwise].map(|inner| function.ends_in_trap(inner)) {
            [true, false] => (then, otherwise),
            [false, true] => (otherwise, then),
            _ => {
                in_region(function, then, status)?;
                in_region(function, otherwise, status)?;
                continue;
            }
        };
        split(
            function,
            region,
            op,
            &ops[position + 1..],
            [stops, goes_on],
            status,
        );
        return in_region(function, goes_on, status);
    }
    Ok(())
}

/// Moves what stands behind a test into its branch that goes on.
fn split(
    function: &mut Function,
    region: Region,
    op: Op,
    rest: &[Op],
    [stops, goes_on]: [Region; 2],
    status: Value,
) {
    let Some((&terminator, rest)) = rest.split_last() else {
        return;
    };
    let yielded = function.ops[terminator].operands.to_vec();
    let opcode = function.ops[terminator].opcode;
    // What the branch itself gave is what it yielded.
    let inner_end = function.terminator(goes_on);
    let inner: Vec<Value> = function.ops[inner_end].operands.to_vec();
    let given = function.ops[op].results.to_vec();
    let moved = given.into_iter().zip(inner).collect();
    let keep = function.regions[region].ops.len() - rest.len() - 1;
    function.regions[region].ops.truncate(keep - 1);
    let types: Vec<Type> = yielded.iter().map(|&value| function.ty(value)).collect();
    let mut data = function.ops[op].clone();
    data.results.clear();
    let test = function.new_op(data, &types);
    function.regions[region].ops.push(test);
    function.regions[goes_on].ops.pop();
    function.regions[goes_on].ops.extend_from_slice(rest);
    function.replace_operands(&moved);
    let mut b = Builder::new(function, goes_on);
    let yielded: Vec<Value> = yielded
        .iter()
        .map(|value| moved.get(value).copied().unwrap_or(*value))
        .collect();
    b.yields(&yielded);
    b.function.regions[stops].ops.clear();
    b.cursor = Cursor::at_end(stops);
    let one = b.function.int(Type::I32, 1);
    b.store(one, status, Alignment::natural(Type::I32));
    let zeros: Vec<Value> = types.iter().map(|&ty| b.zero(ty)).collect();
    b.yields(&zeros);
    b.cursor = Cursor::at_end(region);
    let results = b.function.ops[test].results.to_vec();
    b.op(opcode, &results, Payload::None, &[]);
}
