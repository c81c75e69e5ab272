//! Clones an operation with its regions.

use ferrozyme_ir::{Function, Op, OpData, Region, Type, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A copy of an operation that belongs to no region yet. Values from outside stay the same; `values` says what those that the copied
/// operations give have become.
pub fn copy_operation(function: &mut Function, op: Op, values: &mut FxHashMap<Value, Value>) -> Op {
    let data = function.ops[op].clone();
    let operands = data
        .operands
        .iter()
        .map(|operand| values.get(operand).copied().unwrap_or(*operand))
        .collect();
    let types: SmallVec<[Type; 4]> = data.results.iter().map(|&v| function.ty(v)).collect();
    let copy = function.new_op(
        OpData {
            operands,
            results: SmallVec::new(),
            regions: SmallVec::new(),
            ..data.clone()
        },
        &types,
    );
    for (index, &result) in data.results.iter().enumerate() {
        let again = function.ops[copy].results[index];
        keep_range(function, again, result);
        values.insert(result, again);
    }
    for &region in &data.regions {
        let inner = copy_region(function, region, values);
        function.ops[copy].regions.push(inner);
    }
    copy
}

fn copy_region(
    function: &mut Function,
    region: Region,
    values: &mut FxHashMap<Value, Value>,
) -> Region {
    let args = function.regions[region].args.clone();
    let types: SmallVec<[Type; 4]> = args.iter().map(|&v| function.ty(v)).collect();
    let copy = function.new_region(&types);
    for (index, &arg) in args.iter().enumerate() {
        let again = function.regions[copy].args[index];
        keep_range(function, again, arg);
        values.insert(arg, again);
    }
    for op in function.regions[region].ops.clone() {
        let again = copy_operation(function, op, values);
        function.append(copy, again);
    }
    copy
}

/// Names stay with the original.
fn keep_range(function: &mut Function, value: Value, original: Value) {
    function.values[value].range = function.values[original].range;
}
