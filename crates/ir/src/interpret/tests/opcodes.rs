//! Every operation of the table runs: a new row cannot be forgotten.

use super::*;
use crate::facts::Flags;
use crate::function::{OpData, Param, Payload};
use crate::opcode::{Effect, FloatPredicate, Form, IntPredicate, Opcode};
use crate::types::Scalar;
use crate::{Builder, all_ops, verify_function};
use rustc_hash::FxHashSet;
use smallvec::smallvec;

/// The operations with a shape of their own, all in one run.
const SPECIAL: &str = "
    func @twice(%x: f64) -> (f64) {
      %y = fadd f64 %x, %x
      return %y
    }
    func @f(%c: i1, %x: f64) -> (f64) {
      %a = stack 32 align 16
      %b = alloc 32 align 8 zeroed
      fill %a, 0, 32 align 16
      store f64 %x, %b align 8
      copy %a, %b, 16 align 8
      %alone = exclusive %a, 1
      %a8 = offset inbounds %alone, 1 * 8
      move %a8, %a, 16 align 8
      %old = atomic_add f64 %a8, 0.5 align 8
      contract add f64 %a8, %b, %b, 0.0 over sum 1 (0, 0) align 8
      %x1 = load f64 %a8 align 8
      %v = splat <2 x f64> %x1
      %w = insert <2 x f64> %v, 1.0, 1
      %u = shuffle <2 x f64> %v, %w [0, 3, 1]
      %s = reduce_fadd <3 x f64> %u
      %e = extract <3 x f64> %u, 1
      %t = fadd f64 %s, %e
      %n = bitcast f64 1.0 to i64
      %m = bitcast i64 %n to f64
      %r0 = select f64 %c, %t, %m
      %r1 = call @twice(%r0)
      %r2 = call_indirect @twice(f64 %r1) -> (f64)
      free %b
      %r3 = if %c -> (f64) { yield %r2 } else { trap \"not here\" }
      %r4 = switch i64 1 -> (f64) { case 1 { yield %r3 } default { yield 0.0 } }
      %r5 = for %i: i64 = 0 to 3 step 1 with (%acc: f64 = %r4) {
        %next = fadd f64 %acc, 1.0
        yield %next
      }
      %r6, %k = loop with (%y: f64 = %r5, %j: i64 = 0) {
        %y1 = fadd f64 %y, 1.0
        %j1 = add i64 %j, 1
        %more = icmp slt i64 %j1, 2
        again %more, %y1, %j1
      }
      return %r6
    }";

const INTS: [u8; 8] = [1, 7, 8, 16, 32, 37, 64, 128];
const FLOATS: [Scalar; 4] = [Scalar::F16, Scalar::Bf16, Scalar::F32, Scalar::F64];

/// Values that are worth trying, of a scalar type.
fn samples(scalar: Scalar) -> Vec<Option<u128>> {
    let numbers = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        0.3,
        7.0,
        1e9,
        -1e-9,
        f64::INFINITY,
        f64::NAN,
    ];
    let mut samples: Vec<Option<u128>> = match scalar {
        Scalar::Int(bits) => [0, 1, 2, 5, -1, i128::MAX, i128::MIN, 1 << (bits - 1)]
            .map(|value: i128| Some(value as u128 & crate::ones(bits.into())))
            .to_vec(),
        Scalar::Ptr => vec![Some(0), Some(1 << 33)],
        _ => numbers
            .map(|value| Some(crate::float_to_bits(scalar, value)))
            .to_vec(),
    };
    samples.push(None);
    samples
}

/// For the operations of a form: types of operands and results to try.
fn shapes(opcode: Opcode) -> Vec<(Vec<Scalar>, Vec<Scalar>)> {
    let floats = FLOATS.into_iter();
    let ints = INTS.into_iter().map(Scalar::Int);
    let i32s = Scalar::Int(32);
    let i1 = Scalar::Int(1);
    match opcode.form() {
        Form::IntUnary => ints
            .filter(|ty| opcode != Opcode::Bswap || ty.bits().is_multiple_of(16))
            .map(|ty| (vec![ty], vec![ty]))
            .collect(),
        Form::IntBinary => ints.map(|ty| (vec![ty; 2], vec![ty])).collect(),
        Form::IntCompare => ints
            .chain([Scalar::Ptr])
            .map(|ty| (vec![ty; 2], vec![i1]))
            .collect(),
        Form::FloatUnary => floats.map(|ty| (vec![ty], vec![ty])).collect(),
        Form::FloatBinary => floats.map(|ty| (vec![ty; 2], vec![ty])).collect(),
        Form::FloatTernary => floats.map(|ty| (vec![ty; 3], vec![ty])).collect(),
        Form::FloatAndInt => floats.map(|ty| (vec![ty, i32s], vec![ty])).collect(),
        Form::FloatToExponent => floats.map(|ty| (vec![ty], vec![i32s])).collect(),
        Form::FloatSplit => floats.map(|ty| (vec![ty], vec![ty, i32s])).collect(),
        Form::FloatPair => floats.map(|ty| (vec![ty], vec![ty; 2])).collect(),
        Form::FloatCompare => floats.map(|ty| (vec![ty; 2], vec![i1])).collect(),
        Form::Cast => {
            let all: Vec<Scalar> = ints.chain(floats).chain([Scalar::Ptr]).collect();
            let pairs = all.iter().flat_map(|&a| all.iter().map(move |&b| (a, b)));
            pairs.map(|(a, b)| (vec![a], vec![b])).collect()
        }
        Form::Special | Form::Structured | Form::Terminator => vec![],
    }
}

/// A function that carries out one operation on its parameters, if that verifies.
fn single(opcode: Opcode, operands: &[Type], results: &[Type]) -> Option<Module> {
    let params = operands.iter().map(|&ty| Param::from(ty)).collect();
    let mut function = Function::define("f", params, results.to_vec());
    let payload = match opcode {
        Opcode::Icmp => Payload::IntPredicate(IntPredicate::Slt),
        Opcode::Fcmp => Payload::FloatPredicate(FloatPredicate::Olt),
        _ => Payload::None,
    };
    let data = OpData {
        opcode,
        operands: function.arguments().into(),
        results: smallvec![],
        regions: smallvec![],
        payload,
        flags: Flags::NONE,
        location: None,
    };
    let op = function.new_op(data, results);
    let body = function.body();
    function.regions[body].ops.push(op);
    let values = function.ops[op].results.clone();
    Builder::new(&mut function, body).ret(&values);
    let mut module = Module::new();
    let id = module.functions.push(function);
    verify_function(&module, id).ok().map(|()| module)
}

/// All ways to choose one sample for each operand.
fn choices(operands: &[Scalar]) -> Vec<Vec<Option<u128>>> {
    operands.iter().fold(vec![vec![]], |rows, &scalar| {
        rows.iter()
            .flat_map(|row| {
                samples(scalar).into_iter().map(move |sample| {
                    let mut row = row.clone();
                    row.push(sample);
                    row
                })
            })
            .collect()
    })
}

/// Runs an operation on scalars and on vectors of all samples, and checks that they agree; how many shapes it has.
fn run_single(opcode: Opcode) -> usize {
    let mut count = 0;
    for (operands, results) in shapes(opcode) {
        let scalar = |scalars: &[Scalar]| -> Vec<Type> {
            scalars.iter().copied().map(Type::scalar_of).collect()
        };
        let Some(module) = single(opcode, &scalar(&operands), &scalar(&results)) else {
            assert_eq!(
                opcode.form(),
                Form::Cast,
                "{opcode} verifies on {operands:?}"
            );
            continue;
        };
        count += 1;
        let vector = |scalars: &[Scalar]| -> Vec<Type> {
            scalars
                .iter()
                .map(|&scalar| Type::vector_of(scalar, 2))
                .collect()
        };
        let vectors = single(opcode, &vector(&operands), &vector(&results));
        let Some(vectors) = vectors else {
            panic!("{opcode} works on vectors of {operands:?}");
        };
        let mut machine = Machine::new(&module);
        let mut vector_machine = Machine::new(&vectors);
        for row in choices(&operands) {
            let args: Vec<Datum> = operands
                .iter()
                .zip(&row)
                .map(|(&scalar, raw)| Datum {
                    ty: Type::scalar_of(scalar),
                    bits: Bits::from_scalar(*raw),
                })
                .collect();
            let outcome = machine.call_named("f", &args);
            if let Err(fault) = &outcome {
                assert_eq!(opcode.effect(), Effect::Partial, "{opcode} fails: {fault}");
            }
            let args: Vec<Datum> = args
                .iter()
                .map(|arg| Datum {
                    ty: Type::vector_of(arg.ty.scalar(), 2),
                    bits: Bits::from_lanes([arg.bits.lane(0); 2].into()),
                })
                .collect();
            let lanes = vector_machine.call_named("f", &args).map(|results| {
                assert!(
                    results
                        .iter()
                        .all(|result| result.lane(0) == result.lane(1))
                );
                results.iter().map(|result| result.lane(0)).collect()
            });
            let kind = |fault: Fault| fault.kind;
            assert_eq!(
                outcome.map_err(kind),
                lanes.map_err(kind),
                "{opcode} of {row:x?}"
            );
        }
    }
    count
}

#[test]
fn every_operation_runs() {
    let mut covered: FxHashSet<Opcode> = FxHashSet::default();
    for &opcode in Opcode::ALL {
        if run_single(opcode) > 0 {
            covered.insert(opcode);
        }
    }
    let module = program(SPECIAL);
    let mut machine = Machine::new(&module);
    let call = |machine: &mut Machine, condition: bool| {
        machine.call_named("f", &[Datum::i1(condition), Datum::f64(2.0)])
    };
    // x1 = 0 + 2 + 0.5, lanes 2.5, 1, 2.5: (6 + 1)·4 + 3 + 2
    assert_eq!(call(&mut machine, true), Ok(vec![Datum::f64(33.0)]));
    assert_eq!(machine.check_leaks(), Ok(()));
    assert!(call(&mut machine, false).is_err());
    for function in module.functions.values() {
        covered.extend(all_ops(function).iter().map(|&op| function.ops[op].opcode));
    }
    let missing: Vec<&Opcode> = Opcode::ALL
        .iter()
        .filter(|opcode| !covered.contains(*opcode))
        .collect();
    assert!(missing.is_empty(), "not tested: {missing:?}");
}
