use super::*;
use crate::{Function, Op, all_ops, parse_module};

const ALL: &str = r#"
func @f(%x: f64, %p: ptr, %q: ptr, %n: i64, %c: i1) -> (f64) {
  %a = select f64 %c, %x, 2.0
  %r = offset %p, %n * 8
  store f64 %a, %r align 8
  %old = atomic_add f64 %p, %x align 8
  copy %p, %q, %n align 4
  %new = alloc %n align 8
  free %new
  free %q, %n
  %s, %u = for %i: i64 = 0 to %n step 1 with (%acc: f64 = %x, %more: f64 = %a) {
    yield %acc, %more
  }
  %t = loop with (%again: f64 = %x) {
    again %c, %again
  }
  %least = fcmp olt f64 %x, %a
  %cut = trunc_int i64 %n to i32
  %fused = fma f64 %x, %a, %old
  switch i64 %n { case 1, 2 { yield } default { yield } }
  return %x
}
"#;

fn parsed() -> Function {
    let module = parse_module(ALL).expect("it is well-formed");
    module
        .functions
        .values()
        .next()
        .expect("there is one")
        .clone()
}

/// What the views of all operations of this kind are, with values by name or number.
fn views(function: &Function, opcode: Opcode) -> Vec<String> {
    let of_kind = |op: &Op| function.ops[*op].opcode == opcode;
    let ops = all_ops(function).into_iter().filter(of_kind);
    ops.map(|op| format!("{:?}", function.ops[op].view()))
        .collect()
}

fn only(function: &Function, opcode: Opcode) -> Op {
    let mut ops = all_ops(function).into_iter();
    ops.find(|&op| function.ops[op].opcode == opcode)
        .expect("the text has one")
}

#[test]
fn operands_have_the_names_of_the_table() {
    let function = parsed();
    let [x, p, q, n, c] = function.arguments().try_into().expect("there are five");
    let data = |opcode| &function.ops[only(&function, opcode)];
    let stored = data(Opcode::Select).results[0];
    assert_eq!(data(Opcode::Select).condition(), c);
    assert_eq!(data(Opcode::Store).value(), stored);
    assert_eq!(
        data(Opcode::Store).address(),
        data(Opcode::Offset).results[0]
    );
    assert_eq!(
        [data(Opcode::Offset).base(), data(Opcode::Offset).index()],
        [p, n]
    );
    assert_eq!(
        [
            data(Opcode::AtomicAdd).address(),
            data(Opcode::AtomicAdd).value()
        ],
        [p, x]
    );
    let copy = data(Opcode::Copy);
    assert_eq!([copy.destination(), copy.source(), copy.size()], [p, q, n]);
    assert_eq!(data(Opcode::For).initial(), [x, stored]);
    assert_eq!(data(Opcode::For).to(), n);
    assert_eq!(data(Opcode::Loop).initial(), [x]);
    assert_eq!(data(Opcode::Again).condition(), c);
    assert_eq!(data(Opcode::Return).values(), [x]);
    assert_eq!(data(Opcode::Fcmp).both(), [x, stored]);
    assert_eq!(data(Opcode::TruncInt).operand(), n);
    assert!(matches!(
        data(Opcode::Offset).view(),
        OpView::Offset { scale: 8, .. }
    ));
    assert!(matches!(
        data(Opcode::Switch).view(),
        OpView::Switch { selector, cases } if selector == n && *cases[0] == [1, 2]
    ));
}

#[test]
fn an_operand_may_be_left_out() {
    let function = parsed();
    let views = views(&function, Opcode::Free);
    assert!(views[0].contains("size: None,"), "{}", views[0]);
    assert!(views[1].contains("size: Some(v3),"), "{}", views[1]);
}

#[test]
fn operands_are_written_by_name() {
    let mut function = parsed();
    let [x, _, q, n, _] = function.arguments().try_into().expect("there are five");
    let store = only(&function, Opcode::Store);
    *function.ops[store].address_mut() = q;
    assert_eq!(function.ops[store].address(), q);
    let again = only(&function, Opcode::Again);
    let before = function.ops[again].condition();
    function.ops[again].values_mut().fill(x);
    assert_eq!(function.ops[again].operands[..], [before, x]);
    let loops = only(&function, Opcode::For);
    if let OpView::For { from, initial, .. } = function.ops[loops].view_mut() {
        *from = n;
        initial[1] = x;
    }
    assert_eq!(function.ops[loops].from(), n);
    assert_eq!(function.ops[loops].initial(), [x, x]);
}

#[test]
#[should_panic(expected = "bug: load has no operand that is called value")]
fn an_operand_of_another_operation_is_a_bug() {
    let module = parse_module("func @f(%p: ptr) {\n  %x = load f64 %p align 8\n  return\n}");
    let module = module.expect("it is well-formed");
    let function = module.functions.values().next().expect("there is one");
    function.ops[only(function, Opcode::Load)].value();
}

#[test]
#[should_panic(expected = "bug: store is malformed")]
fn too_few_operands_are_a_bug() {
    let mut function = parsed();
    let store = only(&function, Opcode::Store);
    function.ops[store].operands.pop();
    function.ops[store].view();
}

/// An operation with a shape of its own tells it.
#[test]
fn the_table_names_operands_where_there_is_no_form() {
    let own = |opcode: &&Opcode| {
        matches!(
            opcode.form(),
            Form::Special | Form::Structured | Form::Terminator
        )
    };
    // These take any number of operands and no other.
    let lists = [
        Opcode::Call,
        Opcode::Loop,
        Opcode::Yield,
        Opcode::Return,
        Opcode::Trap,
    ];
    for opcode in Opcode::ALL.iter().filter(own) {
        assert_ne!(
            opcode.operand_names().is_empty(),
            !lists.contains(opcode),
            "{opcode}"
        );
    }
    assert_eq!(Opcode::For.operand_names(), ["from", "to", "step"]);
}
