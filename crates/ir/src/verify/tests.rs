//! Tests of the verifier: each breaks one invariant of a module that verifies.

use super::*;
use crate::facts::{Alignment, Field, Flags, Layout};
use crate::function::{Param, Payload};
use crate::module::{Global, GlobalId, LocationData, Rule, Symbol};
use crate::{Builder, Location, parse_module};
use smallvec::smallvec;

const PROGRAM: &str = "
    func @g(%x: f64, %n: i64) -> (f64) {
      %y = fmul f64 %x, %x
      return %y
    }
    func @f(%p: ptr, %n: i64, %c: i1) -> (f64) {
      %sum = for %i: i64 = 0 to %n step 1 with (%acc: f64 = 0.0) {
        %q = offset %p, %i * 8
        %a = load f64 %q align 8
        %b = call @g(%a, %i)
        %next = fadd f64 %acc, %b
        yield %next
      }
      %k = loop with (%m: i64 = %n) {
        %half = lshr i64 %m, 1
        %more = icmp ugt i64 %half, 3
        again %more, %half
      }
      %s = switch i64 %k -> (f64) {
        case 0 { yield 1.0 }
        case 1, 2 { yield %sum }
        default { trap \"too much\" }
      }
      %r = if %c -> (f64) { yield %s } else { yield 2.0 }
      return %r
    }";

#[track_caller]
fn parse(text: &str) -> Module {
    match parse_module(text) {
        Ok(module) => module,
        Err(error) => panic!("{error}"),
    }
}

/// The function `@f` of the program above.
fn f(module: &mut Module) -> &mut Function {
    let id = module.function_named("f").unwrap_or_else(|| unreachable!());
    &mut module.functions[id]
}

/// The first operation of a kind in `@f`.
#[track_caller]
fn find(function: &Function, opcode: Opcode) -> Op {
    crate::all_ops(function)
        .into_iter()
        .find(|&op| function.ops[op].opcode == opcode)
        .unwrap_or_else(|| panic!("there is no {opcode}"))
}

fn region_of(function: &Function, op: Op) -> Region {
    crate::Structure::of(function)
        .region_of(op)
        .unwrap_or_else(|| unreachable!())
}

/// Breaks the program above and checks what the verifier says.
#[track_caller]
fn check_broken(break_it: impl FnOnce(&mut Module), expected: &str) {
    let mut module = parse(PROGRAM);
    assert_eq!(verify_module(&module), Ok(()));
    break_it(&mut module);
    let text = match verify_module(&module) {
        Ok(()) => "nothing".to_owned(),
        Err(errors) => errors
            .iter()
            .map(|error| error.to_string())
            .collect::<Vec<_>>()
            .join("\n"),
    };
    assert!(
        text.contains(expected),
        "the verifier does not say\n{expected}\nbut\n{text}"
    );
}

/// Breaks an operation of `@f`.
#[track_caller]
fn check_broken_op(opcode: Opcode, break_it: impl FnOnce(&mut OpData), expected: &str) {
    check_broken(
        |module| {
            let function = f(module);
            let op = find(function, opcode);
            break_it(&mut function.ops[op]);
        },
        expected,
    );
}

#[test]
fn errors_name_function_operation_and_place() {
    check_broken(
        |module| {
            module.files.push("dot.rs".to_owned());
            let location = module.location(LocationData {
                file: 0,
                line: 3,
                column: 5,
                inlined_at: None,
            });
            let function = f(module);
            let op = find(function, Opcode::Fadd);
            let n = function.arguments()[1];
            function.ops[op].operands[1] = n;
            function.ops[op].location = Some(location);
        },
        "@f: operand 1 has type i64, not f64\n  in: %next = fadd f64 %acc, %n loc(0:3:5)\n  at dot.rs:3:5",
    );
}

#[test]
fn indices_must_exist() {
    check_broken_op(
        Opcode::Fadd,
        |data| data.operands[0] = Value::from_u32(9999),
        "operand 0: there is no value v9999",
    );
    check_broken_op(
        Opcode::If,
        |data| data.regions[1] = Region::from_u32(9999),
        "there is no region region9999",
    );
    check_broken(
        |module| {
            let function = f(module);
            let body = function.body();
            function.regions[body].ops.insert(0, Op::from_u32(9999));
        },
        "there is no operation op9999",
    );
    check_broken_op(
        Opcode::Call,
        |data| data.payload = Payload::Callee(FunctionId::from_u32(77)),
        "there is no function fn77",
    );
    check_broken_op(
        Opcode::Fadd,
        |data| data.location = Some(Location::from_u32(5)),
        "there is no location loc5",
    );
}

#[test]
fn everything_stands_in_one_place() {
    check_broken(
        |module| {
            let function = f(module);
            let op = find(function, Opcode::Fadd);
            let body = function.body();
            function.regions[body].ops.insert(0, op);
        },
        "operand 0: the value is defined in a region that does not enclose this one",
    );
    check_broken(
        |module| {
            let function = f(module);
            let op = find(function, Opcode::Offset);
            let region = region_of(function, op);
            function.regions[region].ops.insert(0, op);
        },
        "the operation stands in more than one place",
    );
    check_broken_op(
        Opcode::If,
        |data| data.regions[1] = data.regions[0],
        "is held more than once",
    );
    // An operation that holds itself must not send the verifier round in circles.
    check_broken(
        |module| {
            let function = f(module);
            let op = find(function, Opcode::If);
            let region = function.ops[op].regions[0];
            function.regions[region].ops.insert(0, op);
        },
        "the operation stands in more than one place",
    );
}

#[test]
fn regions_end_in_the_right_terminator() {
    let change_end = |opcode: Opcode, change: fn(&mut Function, Region)| {
        move |module: &mut Module| {
            let function = f(module);
            let op = find(function, opcode);
            let region = function.ops[op].regions[0];
            change(function, region);
        }
    };
    check_broken(
        change_end(Opcode::If, |function, region| {
            function.regions[region].ops.clear();
        }),
        "region 0 of the operation is empty",
    );
    check_broken(
        change_end(Opcode::For, |function, region| {
            function.regions[region].ops.pop();
        }),
        "a region ends in an operation that is not a terminator",
    );
    check_broken(
        change_end(Opcode::If, |function, region| {
            let end = function.terminator(region);
            function.ops[end].opcode = Opcode::Return;
        }),
        "a region of if ends in yield or trap, not in return",
    );
    check_broken(
        change_end(Opcode::Loop, |function, region| {
            let end = function.terminator(region);
            function.ops[end].opcode = Opcode::Yield;
        }),
        "a region of loop ends in again or trap, not in yield",
    );
    check_broken(
        change_end(Opcode::For, |function, region| {
            let end = function.terminator(region);
            function.ops[end].operands.clear();
        }),
        "0 values are handed on where there should be 1",
    );
    check_broken(
        |module| {
            let function = f(module);
            let body = function.body();
            let trap = Builder::new(function, body).trap("early");
            function.regions[body].ops.pop();
            function.regions[body].ops.insert(0, trap);
        },
        "a terminator stands before the end of its region",
    );
    check_broken(
        |module| {
            let g = module.function_named("g").expect("it is there");
            let function = f(module);
            let body = function.body();
            function.regions[body].ops.pop();
            let n = function.arguments()[1];
            Builder::new(function, body).trap_call(g, &[n]);
        },
        "call of @g: 1 arguments where there should be 2",
    );
}

#[test]
fn operands_are_visible() {
    // A value from inside a loop, used behind it.
    check_broken(
        |module| {
            let function = f(module);
            let inner = find(function, Opcode::Load);
            let inner = function.result(inner);
            let end = function.terminator(function.body());
            function.ops[end].operands[0] = inner;
        },
        "operand 0: the value is defined in a region that does not enclose this one",
    );
    // A value used before its operation.
    check_broken(
        |module| {
            let function = f(module);
            let later = find(function, Opcode::If);
            let later = function.result(later);
            let op = find(function, Opcode::Fadd);
            function.ops[op].operands[1] = later;
        },
        "operand 1: the value is used before it is defined, or its operation was removed",
    );
    // A result of a loop, used in its body.
    check_broken(
        |module| {
            let function = f(module);
            let around = find(function, Opcode::For);
            let around = function.result(around);
            let op = find(function, Opcode::Fadd);
            function.ops[op].operands[1] = around;
        },
        "operand 1: the value is a result of the operation around this one",
    );
}

#[test]
fn values_are_where_they_say() {
    check_broken(
        |module| {
            let function = f(module);
            let (a, b) = (find(function, Opcode::Load), find(function, Opcode::Call));
            let stolen = function.result(a);
            function.ops[b].results[0] = stolen;
        },
        "is defined here as",
    );
    check_broken(
        |module| {
            let function = f(module);
            let value = function.arguments()[1];
            function.values[value].ty = Type::scalar_of(Scalar::Int(129));
            function.params[1].ty = function.values[value].ty;
        },
        "i129 is not a type",
    );
    check_broken(
        |module| {
            let function = f(module);
            let value = function.arguments()[1];
            function.values[value].range = Some(Range { min: 3, max: 2 });
        },
        "the range 3..=2 is empty",
    );
    check_broken(
        |module| {
            let function = f(module);
            let value = function.arguments()[2];
            function.values[value].range = Some(Range { min: 0, max: 1 });
        },
        "the range 0..=1 leaves the limits of i1",
    );
    check_broken(
        |module| {
            let function = f(module);
            let value = function.arguments()[0];
            function.values[value].range = Some(Range { min: 0, max: 1 });
        },
        "a range stands on a value of type ptr",
    );
    check_broken(
        |module| f(module).params[1].ty = Type::I32,
        "the arguments of the body do not have the types of the parameters",
    );
}

#[test]
fn constants_fit_their_types() {
    let with_constant = |ty: Type, constant: Constant| {
        move |module: &mut Module| {
            let function = f(module);
            let value = function.constant(ty, constant);
            let op = find(function, Opcode::Load);
            function.ops[op].operands[0] = value;
        }
    };
    check_broken(
        with_constant(Type::I8, Constant::Bits(256)),
        "the constant 0x100 does not fit into i8",
    );
    check_broken(
        with_constant(
            Type::vector_of(Scalar::Int(8), 3),
            Constant::Lanes([1, 2].into()),
        ),
        "a constant of 2 lanes does not fit <3 x i8>",
    );
    check_broken(
        with_constant(Type::PTR, Constant::Global(GlobalId::from_u32(4))),
        "there is no global global4",
    );
    check_broken(
        with_constant(Type::PTR, Constant::Function(FunctionId::from_u32(44))),
        "there is no function fn44",
    );
    check_broken(
        with_constant(Type::I64, Constant::Function(FunctionId::from_u32(0))),
        "an address does not have type i64",
    );
}

#[test]
fn operations_have_their_shape() {
    check_broken_op(
        Opcode::Fadd,
        |data| data.opcode = Opcode::Add,
        "add works on integers, not on f64",
    );
    check_broken_op(
        Opcode::Fadd,
        |data| {
            data.operands.pop();
        },
        "fadd takes 2 operands, not 1",
    );
    check_broken_op(
        Opcode::Lshr,
        |data| data.opcode = Opcode::Fmul,
        "fmul works on floats, not on i64",
    );
    check_broken_op(
        Opcode::Icmp,
        |data| data.payload = Payload::None,
        "the payload None does not belong to icmp",
    );
    check_broken_op(
        Opcode::Fadd,
        |data| data.flags = Flags::NSW,
        "the flags nsw do not belong to fadd",
    );
    check_broken_op(
        Opcode::Fadd,
        |data| data.flags = Flags::PARALLEL,
        "the flags parallel do not belong to fadd",
    );
    check_broken_op(
        Opcode::Load,
        |data| data.payload = Payload::Align(Alignment::new(1 << 40).unwrap_or_default()),
        "is larger than 2^32",
    );
    check_broken_op(
        Opcode::Call,
        |data| data.operands.swap(0, 1),
        "call of @g: argument 0 has type i64, not f64",
    );
    check_broken_op(
        Opcode::Call,
        |data| {
            data.operands.pop();
        },
        "call of @g: 1 arguments where there should be 2",
    );
    check_broken_op(
        Opcode::For,
        |data| data.operands.truncate(2),
        "for takes a start, an end and a step",
    );
    check_broken_op(
        Opcode::For,
        |data| data.operands[2] = data.operands[0],
        "the step is zero",
    );
    check_broken_op(
        Opcode::For,
        |data| {
            data.operands.pop();
        },
        "2 arguments of the region where there should be 1",
    );
    check_broken_op(
        Opcode::Switch,
        |data| data.payload = Payload::Cases(Box::new([[0].into(), [1, 1].into()])),
        "two cases have the value 1",
    );
    check_broken_op(
        Opcode::Switch,
        |data| data.payload = Payload::Cases(Box::new([[0].into()])),
        "switch holds 3 regions where there should be 2",
    );
    check_broken_op(
        Opcode::Switch,
        |data| data.payload = Payload::Cases(Box::new([[0].into(), [1 << 70].into()])),
        "does not fit into i64",
    );
    check_broken_op(
        Opcode::Switch,
        |data| data.payload = Payload::Cases(Box::new([[0].into(), [].into()])),
        "case 1 has no values",
    );
    check_broken(
        |module| {
            let function = f(module);
            let op = find(function, Opcode::If);
            let region = function.ops[op].regions[1];
            function.add_argument(region, Type::F64);
        },
        "region 1 has arguments, but if gives it none",
    );
    check_broken(
        |module| {
            let function = f(module);
            let op = find(function, Opcode::Lshr);
            let region = function.new_region(&[]);
            function.ops[op].regions.push(region);
        },
        "lshr holds no regions",
    );
}

#[test]
fn casts_go_where_they_may() {
    let cast = |opcode: Opcode, from: Type, to: Type| {
        let mut function = Function::define("f", vec![from.into()], vec![to]);
        let a = function.arguments()[0];
        let mut b = Builder::at_body(&mut function);
        let r = b.cast(opcode, a, to);
        b.ret(&[r]);
        let mut module = Module::new();
        let id = module.functions.push(function);
        verify_function(&module, id).is_ok()
    };
    let two_floats = Type::vector_of(Scalar::F32, 2);
    let two_bits = Type::vector_of(Scalar::Int(1), 2);
    assert!(cast(Opcode::TruncInt, Type::I64, Type::I1));
    assert!(!cast(Opcode::TruncInt, Type::I8, Type::I8));
    assert!(cast(
        Opcode::Zext,
        two_bits,
        Type::vector_of(Scalar::Int(8), 2)
    ));
    assert!(!cast(Opcode::Zext, two_bits, Type::I64));
    assert!(cast(Opcode::Fpext, Type::BF16, Type::F32));
    assert!(!cast(Opcode::Fpext, Type::BF16, Type::F16));
    assert!(cast(Opcode::Bitcast, Type::F64, two_floats));
    assert!(cast(Opcode::Bitcast, Type::I64, Type::F64));
    assert!(!cast(Opcode::Bitcast, Type::I32, Type::F64));
    assert!(!cast(Opcode::Bitcast, Type::PTR, Type::I64));
    assert!(cast(Opcode::Ptrtoint, Type::PTR, Type::I64));
    assert!(!cast(Opcode::Inttoptr, Type::F64, Type::PTR));
}

#[test]
fn names_are_unique() {
    check_broken(
        |module| f(module).name = "g".to_owned(),
        "the name @g is given twice",
    );
    check_broken(|module| f(module).name.clear(), "has no name");
}

fn global(name: &str) -> Global {
    Global {
        name: name.to_owned(),
        size: 16,
        align: Alignment::ONE,
        constant: false,
        bytes: Some(vec![1, 2]),
        relocations: vec![(8, Symbol::Function(FunctionId::from_u32(0)))],
        inactive: false,
        shared: false,
        thread_local: false,
        parts: Vec::new(),
        layout: None,
    }
}

#[test]
fn globals_hold_what_fits() {
    let check_global = |change: fn(&mut Global), expected: &str| {
        check_broken(
            |module| {
                module.globals.push(global("other"));
                let mut global = global("table");
                change(&mut global);
                module.globals.push(global);
            },
            expected,
        );
    };
    check_global(
        |global| global.bytes = Some(vec![0; 17]),
        "global @table: 17 bytes are given for a size of 16",
    );
    check_global(
        |global| global.relocations[0].0 = 9,
        "a relocation ends behind the last byte",
    );
    check_global(
        |global| {
            global
                .relocations
                .push((12, Symbol::Global(GlobalId::from_u32(0))))
        },
        "the relocation at 12 overlaps the one before",
    );
    check_global(
        |global| global.relocations[0].1 = Symbol::Global(GlobalId::from_u32(9)),
        "names nothing",
    );
    check_global(
        |global| global.bytes = None,
        "memory that is defined elsewhere has relocations here",
    );
}

#[test]
fn layouts_are_sorted_and_fit() {
    let field = |offset: u64, scalar: Scalar| Field {
        offset,
        scalar,
        pointee: None,
    };
    let check_layout = |layout: Layout, expected: &str| {
        check_broken(
            |module| f(module).params[0].facts.layout = Some(layout),
            expected,
        );
    };
    check_layout(
        Layout {
            fields: vec![field(0, Scalar::F64), field(4, Scalar::F32)],
            stride: 16,
        },
        "the field at 4 overlaps the one before",
    );
    check_layout(
        Layout {
            fields: vec![field(0, Scalar::F64), field(8, Scalar::F64)],
            stride: 12,
        },
        "a field ends behind the stride",
    );
    check_layout(
        Layout {
            fields: vec![],
            stride: 0,
        },
        "the stride is zero",
    );
    let mut wrong = field(0, Scalar::F64);
    wrong.pointee = Some(Box::new(Layout {
        fields: vec![],
        stride: 1,
    }));
    check_layout(
        Layout {
            fields: vec![wrong],
            stride: 8,
        },
        "f64 points to nothing",
    );
    check_broken(
        |module| f(module).params[1].facts.noalias = true,
        "parameter 1: facts about pointers stand on type i64",
    );
}

#[test]
fn rules_have_their_signatures() {
    let text = "
        declare @p(f64, ptr, i64) -> (f64, ptr)
        declare @forward(f64, f64, ptr, ptr, i64, i64) -> (f64, ptr, f64, ptr)
        declare @augment(f64, ptr, ptr, i64, i64) -> (f64, ptr, ptr, ptr)
        declare @reverse(f64, ptr, ptr, i64, f64, ptr, i64) -> (f64)
        declare @alone(f64, ptr, ptr, i64, f64, i64) -> (f64)";
    let verify = |forward: &str, augment: &str, reverse: &str| {
        let mut module = parse(text);
        let primal = module.function_named("p").unwrap_or_else(|| unreachable!());
        let rule = Rule {
            forward: module.function_named(forward),
            augment: module.function_named(augment),
            reverse: module.function_named(reverse),
        };
        module.rules.insert(primal, rule);
        verify_module(&module).map_err(|errors| errors[0].to_string())
    };
    assert_eq!(verify("forward", "augment", "reverse"), Ok(()));
    assert_eq!(verify("", "", "alone"), Ok(()));
    assert_eq!(
        verify("augment", "", ""),
        Err(
            "forward rule of @p: @augment is (f64, ptr, ptr, i64, i64) -> (f64, ptr, ptr, ptr), \
             but should be (f64, f64, ptr, ptr, i64, i64) -> (f64, ptr, f64, ptr)"
                .to_owned()
        )
    );
    assert!(verify("", "forward", "").is_err());
    assert!(
        verify("", "", "reverse").is_err(),
        "nothing is kept without augment"
    );
    assert!(verify("", "augment", "alone").is_err());
}

#[test]
fn locations_are_inlined_into_earlier_ones() {
    check_broken(
        |module| {
            module.files.push("a.rs".to_owned());
            module.locations.push(LocationData {
                file: 0,
                line: 1,
                column: 1,
                inlined_at: Some(Location::from_u32(0)),
            });
        },
        "loc0 is inlined at loc0, which does not come before it",
    );
    check_broken(
        |module| {
            module.location(LocationData {
                file: 3,
                line: 1,
                column: 1,
                inlined_at: None,
            });
        },
        "there is no file 3",
    );
}

#[test]
fn nesting_has_a_limit_and_length_has_none() {
    let nested = |depth: usize| {
        let mut function = Function::define("f", vec![Type::I1.into()], vec![]);
        let condition = function.arguments()[0];
        let mut b = Builder::at_body(&mut function);
        for _ in 0..depth {
            let (_, then_region, else_region) = b.if_else(condition, &[]);
            b.yields(&[]);
            b.inside(else_region, |b| b.yields(&[]));
            b.go_to_end(then_region);
        }
        b.yields(&[]);
        let body = function.body();
        let end = function.terminator(body);
        function.ops[end].opcode = Opcode::Return;
        let mut module = Module::new();
        let id = module.functions.push(function);
        verify_function(&module, id)
    };
    assert_eq!(nested(MAX_NESTING - 1), Ok(()));
    assert!(nested(MAX_NESTING).is_err());

    let mut function = Function::define("f", vec![Type::F64.into()], vec![Type::F64]);
    let mut x = function.arguments()[0];
    let mut b = Builder::at_body(&mut function);
    for _ in 0..100_000 {
        x = b.binary(Opcode::Fadd, x, x);
    }
    b.ret(&[x]);
    let mut module = Module::new();
    let id = module.functions.push(function);
    assert_eq!(verify_function(&module, id), Ok(()));
}

#[test]
fn special_operations_have_their_types() {
    let build = |opcode: Opcode, operands: &[Type], payload: Payload, results: &[Type]| {
        let params = operands.iter().map(|&ty| Param::from(ty)).collect();
        let mut function = Function::define("f", params, results.to_vec());
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
        verify_function(&module, id).is_ok()
    };
    let v4 = Type::vector_of(Scalar::F64, 4);
    let m4 = Type::vector_of(Scalar::Int(1), 4);
    let v2 = Type::vector_of(Scalar::F64, 2);
    let align = || Payload::Align(Alignment::ONE);
    let none = || Payload::None;
    assert!(build(Opcode::Select, &[Type::I1, v4, v4], none(), &[v4]));
    assert!(build(Opcode::Select, &[m4, v4, v4], none(), &[v4]));
    assert!(!build(Opcode::Select, &[m4, v2, v2], none(), &[v2]));
    assert!(!build(Opcode::Select, &[Type::I8, v2, v2], none(), &[v2]));
    assert!(build(Opcode::Splat, &[Type::F64], none(), &[v4]));
    assert!(!build(Opcode::Splat, &[Type::F32], none(), &[v4]));
    assert!(build(
        Opcode::Extract,
        &[v4, Type::I64],
        none(),
        &[Type::F64]
    ));
    assert!(!build(
        Opcode::Extract,
        &[v4, Type::I32],
        none(),
        &[Type::F64]
    ));
    assert!(build(
        Opcode::Insert,
        &[v4, Type::F64, Type::I64],
        none(),
        &[v4]
    ));
    assert!(build(
        Opcode::Shuffle,
        &[v4, v4],
        Payload::Lanes([0, 7].into()),
        &[v2]
    ));
    assert!(!build(
        Opcode::Shuffle,
        &[v4, v4],
        Payload::Lanes([0, 8].into()),
        &[v2]
    ));
    assert!(!build(
        Opcode::Shuffle,
        &[v4, v4],
        Payload::Lanes([].into()),
        &[v2]
    ));
    assert!(build(Opcode::ReduceFadd, &[v4], none(), &[Type::F64]));
    assert!(!build(Opcode::ReduceFadd, &[m4], none(), &[Type::I1]));
    assert!(build(
        Opcode::AtomicAdd,
        &[Type::PTR, Type::I32],
        align(),
        &[Type::I32]
    ));
    assert!(!build(Opcode::AtomicAdd, &[Type::PTR, v2], align(), &[v2]));
    assert!(build(
        Opcode::Fill,
        &[Type::PTR, Type::I8, Type::I64],
        align(),
        &[]
    ));
    assert!(!build(
        Opcode::Fill,
        &[Type::PTR, Type::PTR, Type::I64],
        align(),
        &[]
    ));
    assert!(build(
        Opcode::Copy,
        &[Type::PTR, Type::PTR, Type::I64],
        align(),
        &[]
    ));
    assert!(build(
        Opcode::Powi,
        &[v2, Type::vector_of(Scalar::Int(32), 2)],
        none(),
        &[v2]
    ));
    assert!(!build(Opcode::Powi, &[v2, Type::I32], none(), &[v2]));
    assert!(build(
        Opcode::Frexp,
        &[Type::F32],
        none(),
        &[Type::F32, Type::I32]
    ));
    assert!(build(Opcode::Bswap, &[Type::I16], none(), &[Type::I16]));
    assert!(!build(Opcode::Bswap, &[Type::I8], none(), &[Type::I8]));
    let results = Payload::Results([Type::F64].into());
    assert!(build(
        Opcode::CallIndirect,
        &[Type::PTR, v2],
        results.clone(),
        &[Type::F64]
    ));
    assert!(!build(
        Opcode::CallIndirect,
        &[Type::I64, v2],
        results,
        &[Type::F64]
    ));
}
