//! Every operation, compiled, gives what the interpreter gives.

mod native;

use ferrozyme_ir::interpret::{Datum, Machine};
use ferrozyme_ir::{
    Builder, FloatPredicate, Form, Function, FunctionId, IntPredicate, Module, Opcode, Payload,
    Scalar, Type,
};
use ferrozyme_llvm::compile::OptimisationLevel;
use native::{Native, agrees};

/// One operation as a function, and what to call it with.
struct Case {
    opcode: Opcode,
    function: FunctionId,
    arguments: Vec<Vec<Datum>>,
}

/// How close results must be: the precision of the type, and what C's library may be off by.
fn tolerance(opcode: Opcode, ty: Type) -> f64 {
    let library = match opcode {
        Opcode::Tgamma
        | Opcode::Lgamma
        | Opcode::Jn
        | Opcode::Yn
        | Opcode::Polygamma
        | Opcode::Powi
        | Opcode::Pow => 64.0,
        _ => 4.0,
    };
    library
        * match ty.scalar() {
            Scalar::F64 => f64::EPSILON,
            Scalar::F32 => f64::from(f32::EPSILON),
            Scalar::F16 => 1e-3,
            _ => 8e-3,
        }
}

const FLOATS: &[f64] = &[
    0.0,
    -0.0,
    0.5,
    1.0,
    -1.0,
    1.5,
    2.5,
    -2.5,
    3.0,
    -0.7,
    0.25,
    7.3,
    -13.75,
    1e-3,
    40.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
];
const INTEGERS: &[i128] = &[0, 1, -1, 2, 5, -7, 100, i32::MAX as i128, i64::MIN as i128];

fn datum(ty: Type, value: f64) -> Datum {
    let scalar = Datum::float(ty.scalar(), value).expect("a float type");
    lanes(ty, &scalar)
}

fn lanes(ty: Type, scalar: &Datum) -> Datum {
    if ty.is_vector() {
        Datum::vector(ty.scalar(), &vec![scalar.raw(); usize::from(ty.lanes())]).expect("a vector")
    } else {
        scalar.clone()
    }
}

fn int(ty: Type, value: i128) -> Datum {
    let Scalar::Int(bits) = ty.scalar() else {
        panic!("{ty} is no integer type")
    };
    lanes(ty, &Datum::int(bits, value))
}

struct Cases {
    module: Module,
    cases: Vec<Case>,
}

impl Cases {
    fn add(
        &mut self,
        opcode: Opcode,
        params: &[Type],
        payload: Payload,
        results: &[Type],
        arguments: Vec<Vec<Datum>>,
    ) {
        let name = format!("f{}", self.module.functions.len());
        let mut function = Function::define(
            name,
            params.iter().map(|&ty| ty.into()).collect(),
            results.to_vec(),
        );
        let operands = function.arguments().to_vec();
        let mut builder = Builder::at_body(&mut function);
        let op = builder.op(opcode, &operands, payload, results);
        let values = builder.function.ops[op].results.to_vec();
        builder.ret(&values);
        let function = self.module.functions.push(function);
        self.cases.push(Case {
            opcode,
            function,
            arguments,
        });
    }

    fn check(&self, level: OptimisationLevel) {
        let functions: Vec<FunctionId> = self.cases.iter().map(|case| case.function).collect();
        let native = Native::new(&self.module, &functions, level).unwrap();
        let mut wrong = Vec::new();
        for case in &self.cases {
            let ty = self.module.functions[case.function].params[0].ty;
            for arguments in &case.arguments {
                // Some arguments make some operations undefined: division by zero.
                let Ok(expected) = Machine::new(&self.module).call(case.function, arguments) else {
                    continue;
                };
                let found = native.call(case.function, arguments).unwrap();
                let fits = found
                    .iter()
                    .zip(&expected)
                    .all(|(found, expected)| agrees(found, expected, tolerance(case.opcode, ty)));
                if !fits {
                    wrong.push(format!(
                        "{} {ty} of {arguments:?} is {found:?} instead of {expected:?}",
                        case.opcode
                    ));
                }
            }
        }
        assert!(
            wrong.is_empty(),
            "{} wrong:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
    }
}

fn pairs<T: Copy, R>(values: &[T], make: impl Fn(T, T) -> R) -> Vec<R> {
    values
        .iter()
        .flat_map(|&a| values.iter().map(move |&b| (a, b)))
        .map(|(a, b)| make(a, b))
        .collect()
}

fn cases() -> Cases {
    let mut cases = Cases {
        module: Module::new(),
        cases: Vec::new(),
    };
    let floats = [
        Type::F64,
        Type::F32,
        Type::F16,
        Type::vector_of(Scalar::F64, 4),
        Type::vector_of(Scalar::F32, 3),
    ];
    let ints = [
        Type::I1,
        Type::I8,
        Type::I16,
        Type::I32,
        Type::I64,
        Type::I128,
        Type::scalar_of(Scalar::Int(24)),
        Type::vector_of(Scalar::Int(32), 4),
    ];
    for &opcode in Opcode::ALL {
        match opcode.form() {
            Form::IntUnary => {
                for ty in ints {
                    if opcode == Opcode::Bswap && ty.scalar().bits() % 16 != 0 {
                        continue;
                    }
                    cases.add(
                        opcode,
                        &[ty],
                        Payload::None,
                        &[ty],
                        INTEGERS.iter().map(|&a| vec![int(ty, a)]).collect(),
                    );
                }
            }
            Form::IntBinary => {
                for ty in ints {
                    cases.add(
                        opcode,
                        &[ty, ty],
                        Payload::None,
                        &[ty],
                        pairs(INTEGERS, |a, b| vec![int(ty, a), int(ty, b)]),
                    );
                }
            }
            Form::IntCompare => {
                for &predicate in IntPredicate::ALL {
                    for ty in [Type::I8, Type::I64, Type::vector_of(Scalar::Int(16), 4)] {
                        let bit = ty.with_scalar(Scalar::Int(1));
                        cases.add(
                            opcode,
                            &[ty, ty],
                            Payload::IntPredicate(predicate),
                            &[bit],
                            pairs(INTEGERS, |a, b| vec![int(ty, a), int(ty, b)]),
                        );
                    }
                }
            }
            Form::FloatCompare => {
                for &predicate in FloatPredicate::ALL {
                    for ty in [Type::F64, Type::F32] {
                        cases.add(
                            opcode,
                            &[ty, ty],
                            Payload::FloatPredicate(predicate),
                            &[Type::I1],
                            pairs(FLOATS, |a, b| vec![datum(ty, a), datum(ty, b)]),
                        );
                    }
                }
            }
            Form::FloatUnary => {
                for ty in floats {
                    cases.add(
                        opcode,
                        &[ty],
                        Payload::None,
                        &[ty],
                        FLOATS.iter().map(|&a| vec![datum(ty, a)]).collect(),
                    );
                }
            }
            Form::FloatBinary => {
                for ty in floats {
                    if opcode == Opcode::Nextafter && ty == Type::F16 {
                        continue;
                    }
                    let arguments = pairs(FLOATS, |a, b| vec![datum(ty, a), datum(ty, b)]);
                    // Which of two zeros is smaller is left open.
                    let zeros = |pair: &Vec<Datum>| {
                        pair.iter().all(|side| side.lane(0).as_float() == Some(0.0))
                    };
                    let open = matches!(opcode, Opcode::Fmin | Opcode::Fmax);
                    cases.add(
                        opcode,
                        &[ty, ty],
                        Payload::None,
                        &[ty],
                        arguments
                            .into_iter()
                            .filter(|pair| !(open && zeros(pair)))
                            .collect(),
                    );
                }
            }
            Form::FloatTernary => {
                for ty in floats {
                    let arguments = pairs(FLOATS, |a, b| {
                        vec![datum(ty, a), datum(ty, b), datum(ty, 0.75)]
                    });
                    cases.add(opcode, &[ty, ty, ty], Payload::None, &[ty], arguments);
                }
            }
            Form::FloatAndInt => {
                for ty in floats {
                    let count = ty.with_scalar(Scalar::Int(32));
                    let orders: &[i128] = if opcode == Opcode::Polygamma {
                        &[0, 1, 2, 5, 25]
                    } else {
                        &[0, 1, 2, 3, -2, 7]
                    };
                    let arguments: Vec<_> = FLOATS
                        .iter()
                        .flat_map(|&a| {
                            orders
                                .iter()
                                .map(move |&n| vec![datum(ty, a), int(count, n)])
                        })
                        .collect();
                    cases.add(opcode, &[ty, count], Payload::None, &[ty], arguments);
                }
            }
            Form::FloatToExponent => {
                for ty in floats {
                    let arguments = FLOATS
                        .iter()
                        .filter(|a| a.is_finite() && **a != 0.0)
                        .map(|&a| vec![datum(ty, a)])
                        .collect();
                    cases.add(
                        opcode,
                        &[ty],
                        Payload::None,
                        &[ty.with_scalar(Scalar::Int(32))],
                        arguments,
                    );
                }
            }
            Form::FloatSplit | Form::FloatPair => {
                for ty in floats {
                    let second = if opcode == Opcode::Frexp {
                        ty.with_scalar(Scalar::Int(32))
                    } else {
                        ty
                    };
                    cases.add(
                        opcode,
                        &[ty],
                        Payload::None,
                        &[ty, second],
                        FLOATS.iter().map(|&a| vec![datum(ty, a)]).collect(),
                    );
                }
            }
            Form::Cast => {
                let of_floats = |ty: Type| {
                    FLOATS
                        .iter()
                        .map(|&a| vec![datum(ty, a)])
                        .collect::<Vec<_>>()
                };
                let of_ints = |ty: Type| {
                    INTEGERS
                        .iter()
                        .map(|&a| vec![int(ty, a)])
                        .collect::<Vec<_>>()
                };
                let mut add = |from: Type, to: Type, arguments: Vec<Vec<Datum>>| {
                    cases.add(opcode, &[from], Payload::None, &[to], arguments)
                };
                match opcode {
                    Opcode::TruncInt => add(Type::I64, Type::I8, of_ints(Type::I64)),
                    Opcode::Zext | Opcode::Sext => add(Type::I8, Type::I64, of_ints(Type::I8)),
                    Opcode::Fptrunc => add(Type::F64, Type::F32, of_floats(Type::F64)),
                    Opcode::Fpext => add(Type::F16, Type::F64, of_floats(Type::F16)),
                    Opcode::Fptosi | Opcode::Fptoui | Opcode::FptosiSat | Opcode::FptouiSat => {
                        add(Type::F64, Type::I32, of_floats(Type::F64));
                        add(Type::F32, Type::I8, of_floats(Type::F32));
                    }
                    Opcode::Sitofp | Opcode::Uitofp => {
                        add(Type::I64, Type::F32, of_ints(Type::I64))
                    }
                    Opcode::Bitcast => {
                        add(Type::F64, Type::I64, of_floats(Type::F64));
                        add(
                            Type::I64,
                            Type::vector_of(Scalar::Int(8), 8),
                            of_ints(Type::I64),
                        );
                        add(
                            Type::I8,
                            Type::vector_of(Scalar::Int(1), 8),
                            of_ints(Type::I8),
                        );
                    }
                    Opcode::Inttoptr => add(Type::I64, Type::PTR, of_ints(Type::I64)),
                    _ => {}
                }
            }
            Form::Special | Form::Structured | Form::Terminator => {}
        }
    }
    let vector = Type::vector_of(Scalar::F64, 4);
    let four = Datum::f64s(&[1.5, -2.0, 3.25, 1e10]).unwrap();
    let index = |value: i64| Datum::i64(value);
    cases.add(
        Opcode::Splat,
        &[Type::F64],
        Payload::None,
        &[vector],
        vec![vec![Datum::f64(2.5)]],
    );
    cases.add(
        Opcode::Extract,
        &[vector, Type::I64],
        Payload::None,
        &[Type::F64],
        (0..4).map(|lane| vec![four.clone(), index(lane)]).collect(),
    );
    cases.add(
        Opcode::Insert,
        &[vector, Type::F64, Type::I64],
        Payload::None,
        &[vector],
        (0..4)
            .map(|lane| vec![four.clone(), Datum::f64(9.0), index(lane)])
            .collect(),
    );
    cases.add(
        Opcode::Shuffle,
        &[vector, vector],
        Payload::Lanes(vec![7, 0, 2, 5].into()),
        &[vector],
        vec![vec![
            four.clone(),
            Datum::f64s(&[5.0, 6.0, 7.0, 8.0]).unwrap(),
        ]],
    );
    cases.add(
        Opcode::ReduceFadd,
        &[vector],
        Payload::None,
        &[Type::F64],
        vec![vec![four.clone()]],
    );
    let bits = Type::vector_of(Scalar::Int(1), 4);
    let mask = Datum::vector(Scalar::Int(1), &[Some(1), Some(0), Some(0), Some(1)]).unwrap();
    cases.add(
        Opcode::Select,
        &[bits, vector, vector],
        Payload::None,
        &[vector],
        vec![vec![mask, four.clone(), datum(vector, 0.5)]],
    );
    cases.add(
        Opcode::Select,
        &[Type::I1, Type::I64, Type::I64],
        Payload::None,
        &[Type::I64],
        vec![
            vec![Datum::i1(true), index(4), index(5)],
            vec![Datum::i1(false), index(4), index(5)],
        ],
    );
    for scale in [1, 8, 24, -8, 0] {
        cases.add(
            Opcode::Offset,
            &[Type::PTR, Type::I64],
            Payload::Scale(scale),
            &[Type::PTR],
            vec![vec![
                Datum::ptr(ferrozyme_ir::interpret::Pointer(4096)),
                index(-3),
            ]],
        );
    }
    cases
}

#[test]
fn unoptimised() {
    cases().check(OptimisationLevel::O0);
}

#[test]
fn optimised() {
    cases().check(OptimisationLevel::O2);
}

/// The compiled polygamma functions are Loop IR; the interpreter's are Rust. Both agree, so the Loop IR is right on its own.
#[test]
fn polygamma_as_loop_ir() {
    let module = ferrozyme_ir::parse_module(include_str!("../src/polygamma.fz")).unwrap();
    ferrozyme_ir::verify_module(&module).unwrap();
    let compiled = module.function_named("__ferrozyme_polygamma").unwrap();
    let mut reference = Module::new();
    let mut function = Function::define(
        "f",
        vec![Type::F64.into(), Type::I32.into()],
        vec![Type::F64],
    );
    let operands = function.arguments().to_vec();
    let mut builder = Builder::at_body(&mut function);
    let value = builder.value(Opcode::Polygamma, &operands, Payload::None, Type::F64);
    builder.ret(&[value]);
    let function = reference.functions.push(function);
    let (mut own, mut other) = (Machine::new(&module), Machine::new(&reference));
    for order in [-1, 0, 1, 2, 3, 7, 20, 21, 60, 170, 171, 500] {
        for x in [
            0.1,
            0.9,
            1.0,
            3.7,
            14.99,
            40.0,
            300.5,
            1e10,
            -0.3,
            -0.5,
            -2.6,
            -7.25,
            -30.5,
            0.0,
            -0.0,
            -3.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ] {
            let arguments = [Datum::f64(x), Datum::i32(order)];
            let (a, b) = (
                own.call(compiled, &arguments).unwrap(),
                other.call(function, &arguments).unwrap(),
            );
            assert!(
                agrees(&a[0], &b[0], 1e-13),
                "ψ{order}({x}) is {} instead of {}",
                a[0],
                b[0]
            );
        }
    }
}
