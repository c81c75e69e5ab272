//! Passes take functions of any length: 100,000 operations in a row, or in a thousand loops. How long they take is measured by `cargo bench -p ferrozyme-diff --bench scaling`.

use ferrozyme_ir::{Alignment, Builder, Function, FunctionId, Module, Opcode, Type, verify_module};
use ferrozyme_opt::PASSES;

/// A row of loads, arithmetic and stores, over two arrays, in `loops` loops one after the other.
fn large(operations: usize, loops: usize) -> (Module, FunctionId) {
    let params = vec![Type::PTR.into(), Type::PTR.into(), Type::I64.into()];
    let mut function = Function::define("large", params, vec![Type::F64]);
    let [x, y, n] = function.arguments()[..] else {
        panic!("the function has three parameters");
    };
    let mut b = Builder::at_body(&mut function);
    let align = Alignment::natural(Type::F64);
    let mut last = b.float(Type::F64, 1.0);
    let block = |b: &mut Builder, start, index: Option<_>, count: usize| {
        let mut last = start;
        for number in 0..count / 6 {
            let at = b.i64(number as i64 % 97);
            let base = if number % 2 == 0 { x } else { y };
            let place = b.offset(base, at, 8);
            let place = match index {
                Some(index) => b.offset(place, index, 8),
                None => place,
            };
            let loaded = b.load(Type::F64, place, align);
            let product = b.binary(Opcode::Fmul, loaded, last);
            last = b.binary(Opcode::Fadd, product, loaded);
            b.store(last, place, align);
        }
        last
    };
    if loops == 0 {
        last = block(&mut b, last, None, operations);
    }
    for _ in 0..loops {
        let (zero, one) = (b.i64(0), b.i64(1));
        let (op, body) = b.for_loop(zero, n, one, &[last]);
        let (counter, carried) = {
            let args = &b.function.regions[body].args;
            (args[0], args[1])
        };
        b.inside(body, |b| {
            let next = block(b, carried, Some(counter), operations / loops);
            b.yields(&[next]);
        });
        last = b.function.result(op);
    }
    b.ret(&[last]);
    let mut module = Module::new();
    let id = module.functions.push(function);
    (module, id)
}

#[test]
fn passes_finish_on_large_functions() {
    for loops in [0, 10, 1_000] {
        for &(name, pass) in PASSES {
            let (mut module, id) = large(100_000, loops);
            pass(&mut module, id);
            assert!(verify_module(&module).is_ok(), "{name} broke the function");
        }
    }
}

/// Loops and branches within each other, with a store in each.
fn deep(depth: usize) -> (Module, FunctionId) {
    let params = vec![Type::PTR.into(), Type::I64.into(), Type::I1.into()];
    let mut function = Function::define("deep", params, vec![]);
    let [x, n, condition] = function.arguments()[..] else {
        panic!("the function has three parameters");
    };
    let mut b = Builder::at_body(&mut function);
    let mut open = vec![b.region()];
    for level in 0..depth {
        let one = b.float(Type::F64, 1.0);
        let at = b.i64(level as i64);
        let place = b.offset(x, at, 8);
        b.store(one, place, Alignment::natural(Type::F64));
        let inner = if level % 2 == 0 {
            let (zero, one) = (b.i64(0), b.i64(1));
            b.for_loop(zero, n, one, &[]).1
        } else {
            let (_, then_region, else_region) = b.if_else(condition, &[]);
            b.inside(else_region, |b| b.yields(&[]));
            then_region
        };
        open.push(inner);
        b.go_to_end(inner);
    }
    for region in open.into_iter().rev() {
        b.go_to_end(region);
        if region == b.function.body() {
            b.ret(&[]);
        } else {
            b.yields(&[]);
        }
    }
    let mut module = Module::new();
    let id = module.functions.push(function);
    (module, id)
}

#[test]
fn passes_finish_on_deeply_nested_functions() {
    let depth = ferrozyme_ir::verify::MAX_NESTING - 2;
    for &(name, pass) in PASSES {
        let (mut module, id) = deep(depth);
        assert!(verify_module(&module).is_ok());
        pass(&mut module, id);
        assert!(verify_module(&module).is_ok(), "{name} broke the function");
    }
}
