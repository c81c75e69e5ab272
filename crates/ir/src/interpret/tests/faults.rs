//! Every fault: what brings it about, and what it says.

use super::*;

/// Checks that running `@f` with these arguments fails, and that the report begins like this.
#[track_caller]
fn check_fault(body: &str, expected: &str) {
    let text = format!("func @f() -> () {{\n{body}\nreturn\n}}");
    let report = run(&text, &[]);
    assert!(
        report.starts_with(expected),
        "the fault is not\n{expected}\nbut\n{report}"
    );
}

#[test]
fn a_report_names_operation_place_and_callers() {
    let text = "
        file 0 \"src/dot.rs\"
        func @inner(%p: ptr) -> (f64) {
          %q = offset %p, 3 * 8
          %x = load f64 %q align 8 loc(0:12:5)
          return %x
        }
        func @middle(%p: ptr) -> (f64) { %x = call @inner(%p)  return %x }
        func @f() -> (f64) {
          %p = alloc 24 align 8 zeroed loc(0:3:1)
          %x = call @middle(%p)
          return %x
        }";
    assert_eq!(
        run(text, &[]),
        "out of bounds: 8 bytes at offset 24 of memory of 24 bytes
  in @inner: %x = load f64 %q align 8 loc(0:12:5)
  at src/dot.rs:12:5
  called by @middle
  called by @f
  note: the memory comes from @f: %p = alloc 24 align 8 zeroed loc(0:3:1) (src/dot.rs:3:1)"
    );
}

#[test]
fn bounds() {
    check_fault(
        "%p = stack 8 align 8  %q = offset %p, -1 * 8  store f64 0.0, %q align 8",
        "out of bounds: 8 bytes at offset -8 of memory of 8 bytes",
    );
    check_fault(
        "%p = stack 8 align 8  fill %p, 0, 9 align 1",
        "out of bounds: 9 bytes at offset 0 of memory of 8 bytes",
    );
    check_fault("store f64 0.0, null align 8", "access through null\n");
    check_fault(
        "%p = offset null, 2 * 8  store f64 0.0, %p align 8",
        "access through null + 16",
    );
    check_fault(
        "%p = inttoptr i64 123456789 to ptr  store i8 0, %p align 1",
        "access through 0x75bcd15, which points to nothing",
    );
    check_fault(
        "store i8 0, @f align 1",
        "access through 0xf000000000000000, which points to nothing",
    );
}

#[test]
fn lifetimes() {
    check_fault(
        "%p = alloc 8 align 8  free %p  store f64 0.0, %p align 8",
        "use after free",
    );
    check_fault("%p = alloc 8 align 8  free %p  free %p", "double free");
    check_fault("%p = stack 8 align 8  free %p", "free of 0x1");
    check_fault(
        "%p = alloc 8 align 8  %q = offset %p, 4 * 1  free %q",
        "free of 0x1",
    );
    check_fault(
        "%p = alloc 8 align 8 family \"c\"  free %p family \"rust\"",
        "memory from allocator \"c\" is given back to allocator \"rust\"",
    );
    check_fault("free null", "");
    check_fault(
        "%p = alloc 8 align 16  free %p, 9",
        "memory of 8 bytes, aligned to 16, is released as 9 bytes, aligned to 1",
    );
    check_fault(
        "%p = alloc 8 align 16  free %p, 8 align 8",
        "memory of 8 bytes, aligned to 16, is released as 8 bytes, aligned to 8",
    );
    check_fault("%p = alloc 8 align 16  free %p, 8 align 16", "");
    let text = "
        func @g() -> (ptr) { %p = stack 8 align 8  return %p }
        func @f() -> () { %p = call @g()  store f64 0.0, %p align 8  return }";
    assert!(run(text, &[]).starts_with("use of stack memory of a function that has returned"));
}

#[test]
fn initialisation() {
    check_fault(
        "%p = alloc 8 align 8  %x = load f64 %p align 8",
        "read of uninitialised memory",
    );
    check_fault(
        "%p = alloc 16 align 8  store i32 1, %p align 8
         %q = offset %p, 8 * 1  copy %q, %p, 8 align 8
         %a = load i32 %q align 4  %b = load i64 %q align 8",
        "read of uninitialised memory\n  in @f: %b = load i64",
    );
    check_fault(
        "%p = alloc 8 align 8 zeroed  store f64 undef, %p align 8  %x = load f64 %p align 8",
        "read of uninitialised memory",
    );
    check_fault(
        "%p = alloc 8 align 8 zeroed  fill %p, undef, 1 align 1  %x = load f64 %p align 8",
        "read of uninitialised memory",
    );
    check_fault(
        "%p = stack 8 align 8  %x = atomic_add f64 %p, 1.0 align 8",
        "read of uninitialised memory",
    );
}

#[test]
fn alignment() {
    check_fault(
        "%p = alloc 64 align 8 zeroed  %x = load f64 %p align 16",
        "misaligned: 0x100100008 is not a multiple of 16",
    );
    check_fault(
        "%p = alloc 64 align 8 zeroed  %q = offset %p, 4 * 1  store f64 0.0, %q align 8",
        "misaligned",
    );
    check_fault(
        "%p = alloc 64 align 8 zeroed  %q = offset %p, 33 * 1  copy %p, %q, 8 align 8",
        "misaligned",
    );
    check_fault(
        "%p = alloc 64 align 8 zeroed  %q = offset %p, 4 * 1  store f64 0.0, %q align 4",
        "",
    );
}

#[test]
fn overlap() {
    let copy = |operation: &str| {
        format!(
            "%p = alloc 24 align 8 zeroed  %q = offset %p, 8 * 1  {operation} %p, %q, 16 align 8"
        )
    };
    check_fault(
        &copy("copy"),
        "copy of 16 bytes from 0x100100010 to 0x100100008: the two overlap",
    );
    check_fault(&copy("move"), "");
    check_fault("%p = alloc 8 align 8 zeroed  copy %p, %p, 8 align 8", "");
    // Nothing is copied, so nothing can be wrong.
    check_fault("copy null, null, 0 align 8  fill null, 0, 0 align 8", "");
}

#[test]
fn sizes_and_limits() {
    check_fault("%p = alloc -8 align 8", "absurd size: -8 bytes");
    check_fault("%p = alloc 1000000000000 align 8", "absurd size");
    check_fault(
        "%p = alloc 8 align 8  fill %p, 0, -1 align 1",
        "absurd size: -1 bytes",
    );
    check_fault(
        "for %i: i64 = 0 to 3 step 1 { %p = alloc 2000000000 align 8  yield }",
        "out of memory: 2000000000 bytes more would pass the limit of 4294967296",
    );
    check_fault(
        "loop { again 1 }",
        "step limit of 1000000 reached\n  in @f: again 1",
    );
}

#[test]
fn undefined_values() {
    check_fault("if undef { yield }", "undefined value used as a condition");
    check_fault(
        "loop { again undef }",
        "undefined value used as a condition",
    );
    check_fault(
        "switch i64 undef { case 0 { yield } default { yield } }",
        "undefined value used as the value of a switch",
    );
    check_fault(
        "store f64 0.0, undef align 8",
        "undefined value used as an address",
    );
    check_fault("%p = alloc undef align 8", "undefined value used as a size");
    check_fault("free undef", "undefined value used as an address");
    check_fault(
        "for %i: i64 = 0 to undef step 1 { yield }",
        "undefined value used as a bound or step of a loop",
    );
    check_fault(
        "%x = udiv i64 1, undef",
        "undefined value used as a divisor",
    );
    check_fault(
        "call_indirect undef() -> ()",
        "undefined value used as the address of a function",
    );
}

#[test]
fn arithmetic_that_is_not_defined() {
    check_fault("%x = sdiv i64 1, 0", "division by zero");
    check_fault("%x = urem i8 1, 0", "division by zero");
    check_fault("%x = sdiv i8 -128, -1", "signed division overflows");
    check_fault(
        "%x = srem i128 -170141183460469231731687303715884105728, -1",
        "signed division overflows",
    );
}

#[test]
fn constants_are_not_written() {
    let text = "
        global @c: 8 bytes align 8 const = x\"\"
        func @f() -> () { store f64 1.0, @c align 8  return }";
    assert!(run(text, &[]).starts_with("write to constant memory"));
}

#[test]
fn traps_and_missing_bodies() {
    assert!(
        run("func @f() -> (f64) { trap \"index out of bounds\" }", &[])
            .starts_with("trap: index out of bounds\n  in @f: trap")
    );
    assert!(
        run(
            "declare @g() -> () func @f() -> () { call @g()  return }",
            &[]
        )
        .starts_with("call of @g, which has no body\n  in @f: call @g()")
    );
    let panic = "declare @panic(i64, ptr)
        func @f() -> () { %p = stack 8 align 8  trap @panic(3, %p) }";
    assert!(run(panic, &[]).starts_with("trap: @panic\n  in @f: trap @panic(3, "));
    let body = |inside: &str| {
        format!(
            "func @panic(%p: ptr) {{ {inside} }}
             func @f() -> () {{ %p = stack 8 align 8  trap @panic(%p) }}"
        )
    };
    assert!(run(&body("%x = load f64 %p  trap \"no\""), &[]).starts_with("read of"));
    assert!(run(&body("trap \"no\""), &[]).starts_with("trap: no\n  in @panic"));
    assert!(run(&body("return"), &[]).starts_with("trap: @panic\n  in @f"));
}

#[test]
fn indirect_calls_need_a_function_of_that_signature() {
    let text = "
        func @g(%x: f64) -> (f64) { return %x }
        func @f(%p: ptr) -> (i64) { %x = call_indirect %p(f64 1.0) -> (i64)  return %x }";
    let module = program(text);
    let mut machine = Machine::new(&module);
    let Some(g) = module.function_named("g") else {
        panic!("there is a function");
    };
    let at = machine.function_address(g);
    let mut kind = |at: Pointer| {
        machine
            .call_named("f", &[Datum::ptr(at)])
            .map_err(|f| f.kind)
    };
    assert_eq!(
        kind(at),
        Err(FaultKind::WrongSignature {
            function: "g".into()
        })
    );
    for wrong in [Pointer::NULL, at.offset(1), at.offset(1600)] {
        assert_eq!(kind(wrong), Err(FaultKind::NotAFunction { address: wrong }));
    }
}

#[test]
fn promised_ranges() {
    let text = "
        func @g(%n: i64 range 0..=5) -> (i64) { return %n }
        func @f(%n: i64) -> (i64) { %m = call @g(%n)  return %m }";
    assert_eq!(run(text, &[Datum::i64(5)]), "5");
    assert!(run(text, &[Datum::i64(6)]).starts_with("value 6 is outside the promised range 0..=5"));
    let module = program(text);
    let mut machine = Machine::new(&module);
    let fault = machine.call_named("g", &[Datum::i64(-1)]);
    assert!(matches!(
        fault.map_err(|fault| fault.kind),
        Err(FaultKind::RangeViolated { value: -1, .. })
    ));
}

#[test]
fn a_range_on_a_result_is_checked_too() {
    let mut module = program("func @f(%n: i64) -> (i64) { %m = add i64 %n, 1  return %m }");
    let Some(f) = module.function_named("f") else {
        panic!("there is a function");
    };
    let function = &mut module.functions[f];
    let sum = function.result(crate::all_ops(function)[0]);
    function.values[sum].range = Some(crate::Range { min: 0, max: 9 });
    let mut machine = Machine::new(&module);
    assert!(machine.call(f, &[Datum::i64(8)]).is_ok());
    assert!(machine.call(f, &[Datum::i64(9)]).is_err());
}

#[test]
fn the_host_is_checked_too() {
    let module = program("func @f(%x: f64) -> () { return }");
    let mut machine = Machine::new(&module);
    let mut kind = |args: &[Datum]| machine.call_named("f", args).map_err(|fault| fault.kind);
    assert_eq!(
        kind(&[]),
        Err(FaultKind::ArgumentCount {
            expected: 1,
            given: 0
        })
    );
    assert_eq!(
        kind(&[Datum::f32(1.0)]),
        Err(FaultKind::TypeMismatch {
            expected: Type::F64,
            given: Type::F32
        })
    );
    assert!(machine.call_named("nothing", &[]).is_err());
    assert!(machine.call(FunctionId::from_u32(7), &[]).is_err());

    let module = program("declare @g() -> (f64) func @f() -> () { %x = call @g()  return }");
    let mut machine = Machine::new(&module);
    machine.define_external("g", Box::new(|_, _| Ok(vec![])));
    assert!(matches!(
        machine.call_named("f", &[]).map_err(|fault| fault.kind),
        Err(FaultKind::External { .. })
    ));
    machine.define_external("g", Box::new(|_, _| Ok(vec![Datum::i64(1)])));
    assert!(matches!(
        machine.call_named("f", &[]).map_err(|fault| fault.kind),
        Err(FaultKind::TypeMismatch { .. })
    ));
}

#[test]
fn leaks_are_named() {
    let module = program(
        "
        func @f(%n: i64) -> () {
          for %i: i64 = 0 to %n step 1 {
            %tape = alloc 16 align 8
            yield
          }
          %other = alloc 1 align 1
          free %other
          return
        }",
    );
    let mut machine = Machine::new(&module);
    assert_eq!(machine.call_named("f", &[Datum::i64(0)]), Ok(vec![]));
    assert_eq!(machine.check_leaks(), Ok(()));
    assert_eq!(machine.call_named("f", &[Datum::i64(3)]), Ok(vec![]));
    assert_eq!(machine.live_heap(), (3, 48));
    assert_eq!(
        machine.check_leaks().map_err(|fault| fault.to_string()),
        Err("48 bytes in 3 pieces of memory were never freed\n  \
             note: 48 bytes in 3 pieces from @f: %tape = alloc 16 align 8"
            .to_owned())
    );
}

#[test]
fn a_machine_can_go_on_after_a_fault() {
    let module = program(
        "
        func @f(%x: i64) -> (i64) {
          %p = stack 8 align 8
          %y = udiv i64 8, %x
          return %y
        }",
    );
    let mut machine = Machine::new(&module);
    machine.set_memory_limit(8);
    for _ in 0..3 {
        assert!(machine.call_named("f", &[Datum::i64(0)]).is_err());
        assert_eq!(
            machine.call_named("f", &[Datum::i64(2)]),
            Ok(vec![Datum::i64(4)])
        );
    }
}
