//! The function that tests whether ranges of memory lie apart.

use ferrozyme_ir::{
    Alignment, Builder, FloatPredicate, Function, FunctionId, MemoryEffect, Module, Opcode, Param,
    Type, Value,
};

/// The function that takes the ends of ranges, as addresses, and says whether none of the first `written` ones overlaps another one: 1, or else 0. It is added to the module if it is not there yet.
pub(super) fn test_function(module: &mut Module, written: usize, ranges: usize) -> FunctionId {
    let name = format!("__ferrozyme_apart_{written}_{ranges}");
    if let Some(known) = module.function_named(&name) {
        return known;
    }
    let params = vec![Param::from(Type::F64); 2 * ranges];
    let mut function = Function::define(name, params, vec![Type::I64]);
    function.facts.memory = MemoryEffect::None;
    function.facts.willreturn = true;
    function.facts.inactive = true;
    function.facts.noinline = true;
    build(&mut function, written, ranges);
    module.functions.push(function)
}

fn build(function: &mut Function, written: usize, ranges: usize) {
    let ends = function.arguments().to_vec();
    let align = Alignment::natural(Type::F64);
    let mut b = Builder::at_body(function);
    let bytes = b.i64(16 * ranges as i64);
    let memory = b.stack(bytes, align);
    for (index, &end) in ends.iter().enumerate() {
        let place = b.offset_bytes(memory, 8 * index as i64);
        b.store(end, place, align);
    }
    let (zero, one, all) = (b.i64(0), b.i64(1), b.i64(ranges as i64));
    let yes = b.function.int(Type::I1, 1);
    let last = b.i64(written as i64);
    let (outer, outside) = b.for_loop(zero, last, one, &[yes]);
    b.inside(outside, |b| {
        let &[i, so_far] = &b.function.regions[outside].args[..] else {
            unreachable!("the loop has a counter and carries a truth");
        };
        let [start, end] = load_range(b, memory, i);
        let next = b.binary(Opcode::Add, i, one);
        let (inner, inside) = b.for_loop(next, all, one, &[so_far]);
        b.inside(inside, |b| {
            let &[j, so_far] = &b.function.regions[inside].args[..] else {
                unreachable!("the loop has a counter and carries a truth");
            };
            let [other_start, other_end] = load_range(b, memory, j);
            let before = b.fcmp(FloatPredicate::Ole, end, other_start);
            let behind = b.fcmp(FloatPredicate::Ole, other_end, start);
            let apart = b.binary(Opcode::Or, before, behind);
            let apart = b.binary(Opcode::And, so_far, apart);
            b.yields(&[apart]);
        });
        let apart = b.function.result(inner);
        b.yields(&[apart]);
    });
    let apart = b.function.result(outer);
    let apart = b.cast(Opcode::Zext, apart, Type::I64);
    b.ret(&[apart]);
}

fn load_range(b: &mut Builder<'_>, memory: Value, index: Value) -> [Value; 2] {
    let align = Alignment::natural(Type::F64);
    let place = b.offset(memory, index, 16);
    let start = b.load(Type::F64, place, align);
    let place = b.offset_bytes(place, 8);
    let end = b.load(Type::F64, place, align);
    [start, end]
}
