//! The kernels on the interpreter, whose memory finds accesses out of bounds: all sizes around the edges of tiles, all kinds of strides, exact numbers.

mod product;

use crate::contract::define_contract;
use crate::shape::Shape;
use crate::{LEVELS, contraction};
use ferrozyme_ir::interpret::{Datum, Machine};
use ferrozyme_ir::{
    FunctionId, Module, ProcessorLevel, Scalar, parse_module, print_module, verify_module,
};
use product::{Layout, Product};

/// A module with the kernels of all levels.
fn kernels(element: Scalar) -> (Module, FunctionId) {
    let mut module = Module::new();
    let function = contraction(&mut module, element);
    verified(&module);
    (module, function)
}

fn verified(module: &Module) {
    if let Err(errors) = verify_module(module) {
        panic!("{}", errors[0]);
    }
}

/// Computes a product and compares it with a plain loop. All numbers are small integers, so that sums are exact in any order.
fn check(
    module: &Module,
    function: FunctionId,
    element: Scalar,
    level: Option<ProcessorLevel>,
    product: &Product,
) {
    check_on(1, module, function, element, level, product);
}

/// The same with some number of threads.
fn check_on(
    threads: usize,
    module: &Module,
    function: FunctionId,
    element: Scalar,
    level: Option<ProcessorLevel>,
    product: &Product,
) {
    let mut machine = Machine::new(module);
    machine.set_processor_level(level);
    machine.set_threads(threads);
    let pointers: Vec<_> = [&product.c, &product.a, &product.b]
        .into_iter()
        .map(|matrix| {
            let at = machine.allocate(
                matrix.values.len() as u64 * element.bytes(),
                element.bytes(),
            );
            for (index, &value) in matrix.values.iter().enumerate() {
                // What lies between the elements stays uninitialised, so that to read it is a fault.
                if let Some(value) = value {
                    let datum = match element {
                        Scalar::F32 => Datum::f32(value as f32),
                        _ => Datum::f64(value),
                    };
                    let place = at.offset((index as u64 * element.bytes()) as i64);
                    machine
                        .write_datum(place, &datum)
                        .expect("the element is in the matrix");
                }
            }
            at
        })
        .collect();
    let mut arguments = Vec::new();
    for (matrix, at) in [&product.c, &product.a, &product.b]
        .into_iter()
        .zip(&pointers)
    {
        let bytes = element.bytes() as i64;
        arguments.push(Datum::ptr(at.offset(matrix.origin as i64 * bytes)));
        arguments.push(Datum::i64(matrix.strides[0] * bytes));
        arguments.push(Datum::i64(matrix.strides[1] * bytes));
    }
    let [m, n, k] = product.sizes;
    arguments.extend([m, n, k].map(|size| Datum::i64(size as i64)));
    arguments.push(match element {
        Scalar::F32 => Datum::f32(product.alpha as f32),
        _ => Datum::f64(product.alpha),
    });
    arguments.push(Datum::i1(product.add));
    if let Err(fault) = machine.call(function, &arguments) {
        panic!("{product}: {fault}");
    }
    let expected = product.expected();
    let bytes = element.bytes();
    for (index, value) in expected.iter().enumerate() {
        let Some(value) = *value else { continue };
        let place = pointers[0].offset((index as u64 * bytes) as i64);
        let found = match element {
            Scalar::F32 => f64::from(machine.read_f32s(place, 1).expect("it was written")[0]),
            _ => machine.read_f64s(place, 1).expect("it was written")[0],
        };
        assert_eq!(found, value, "{product}: element {index} of C");
    }
    machine.check_leaks().expect("all memory is freed");
}

const ELEMENTS: [Scalar; 2] = [Scalar::F32, Scalar::F64];

/// Runs a test for all elements and levels; it gets a function that checks a product.
fn for_all_kernels(test: impl Fn(&dyn Fn(&Product))) {
    for element in ELEMENTS {
        let (module, function) = kernels(element);
        for level in LEVELS {
            test(&|product| check(&module, function, element, level, product));
        }
    }
}

#[test]
fn modules_print_and_parse() {
    for element in ELEMENTS {
        let (module, _) = kernels(element);
        let text = print_module(&module);
        let parsed = parse_module(&text).expect("what was printed parses");
        assert_eq!(print_module(&parsed), text);
    }
}

#[test]
fn a_module_gets_each_kernel_once() {
    let (mut module, function) = kernels(Scalar::F32);
    let count = module.functions.len();
    assert_eq!(contraction(&mut module, Scalar::F32), function);
    assert_eq!(module.functions.len(), count);
}

/// Sizes at which something changes: none, few, and around multiples of tiles and vectors.
const SIDES: [usize; 14] = [0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 31, 33, 49];

#[test]
fn all_sizes() {
    for_all_kernels(|check| {
        let mut seed = 1;
        for m in SIDES {
            for n in SIDES {
                for k in [0, 1, 2, 7, 8, 17] {
                    seed += 1;
                    let choice = [seed, seed / 5, seed / 25];
                    let layouts = choice.map(|choice| Layout::ALL[choice % Layout::ALL.len()]);
                    check(&Product::new([m, n, k], layouts, seed));
                }
            }
        }
    });
}

#[test]
fn all_layouts() {
    for_all_kernels(|check| {
        let mut seed = 0;
        for c in Layout::ALL {
            for a in Layout::ALL {
                for b in Layout::ALL {
                    for sizes in [[9, 35, 18], [34, 3, 17], [4, 19, 40]] {
                        seed += 1;
                        check(&Product::new(sizes, [c, a, b], seed));
                    }
                }
            }
        }
    });
}

#[test]
fn equal_elements() {
    // Strides of zero: rows, columns or whole operands that are one element.
    let strides = [
        ([0, 1], [0, 1]),
        ([1, 0], [1, 0]),
        ([0, 0], [0, 0]),
        ([0, 1], [0, 0]),
    ];
    for_all_kernels(|check| {
        for (a, b) in strides {
            let mut product = Product::new([13, 21, 11], [Layout::Rows; 3], 3);
            product.a.strides = a;
            product.b.strides = b;
            check(&product);
        }
    });
}

#[test]
fn several_blocks() {
    // Blocks of the real size would take the interpreter too long.
    for level in LEVELS {
        let shape = Shape::new(Scalar::F32, level);
        let shape = Shape {
            depth: 7,
            row_block: 2 * u64::from(shape.rows),
            column_block: shape.width(),
            ..shape
        };
        let mut module = Module::new();
        let function = define_contract(&mut module, &shape);
        verified(&module);
        let sizes = [
            [16, 48, 7],
            [33, 97, 20],
            [15, 100, 8],
            [40, 5, 14],
            [17, 49, 15],
        ];
        for (seed, sizes) in sizes.into_iter().enumerate() {
            for layouts in [[Layout::Rows; 3], [Layout::Columns; 3], [Layout::Spread; 3]] {
                let product = Product::new(sizes, layouts, seed);
                check(&module, function, Scalar::F32, level, &product);
            }
        }
    }
}

#[test]
fn several_threads() {
    // A product that takes the interpreter little time is worth a thread for every 50 multiplications.
    for level in LEVELS {
        let shape = Shape {
            grain: 50,
            ..Shape::new(Scalar::F64, level)
        };
        let mut module = Module::new();
        let function = define_contract(&mut module, &shape);
        verified(&module);
        let sizes = [
            [1, 1, 300],
            [3, 70, 2],
            [70, 3, 2],
            [33, 49, 5],
            [8, 24, 9],
            [97, 50, 3],
        ];
        for (seed, sizes) in sizes.into_iter().enumerate() {
            for threads in [1, 2, 3, 8] {
                for layouts in [[Layout::Rows; 3], [Layout::Columns; 3], [Layout::Spread; 3]] {
                    let product = Product::new(sizes, layouts, seed);
                    check_on(threads, &module, function, Scalar::F64, level, &product);
                }
            }
        }
    }
}
