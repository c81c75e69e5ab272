//! Nests written in a short notation: which sums become contractions, and that nothing changes.
//!
//! ```text
//! for i:9 for j:10 { C[90i+9j] = 0  for k:8 { C[90i+9j] += A[8i+k] * B[8j+k] } }
//! ```
//!
//! `s = sum l:8 A[…] * B[…]` is a sum in a register. Data are small whole numbers, so that sums are exact in any order.

mod notation;
mod random;

use self::notation::{Notation, compile};
use super::raise_contractions;
use ferrozyme_ir::interpret::{Datum, Machine, Pointer};
use ferrozyme_ir::{Module, Opcode, all_ops, parse_module, print_module, verify_module};

/// Compiles a nest, raises it, runs both, and returns how many contractions there are.
fn raised(notation: &Notation) -> usize {
    let text = compile(notation);
    let before = parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut after = before.clone();
    let id = after.function_named("main").expect("there is @main");
    let raised = raise_contractions(&mut after, id);
    let printed = || print_module(&after);
    if let Err(errors) = verify_module(&after) {
        panic!("{errors:?}\n{}", printed());
    }
    let expected = run(notation, &before).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    match run(notation, &after) {
        Ok(found) => assert_eq!(expected, found, "{text}\n{}", printed()),
        Err(fault) => panic!("{fault}\n{text}\n{}", printed()),
    }
    let main = &after.functions[id];
    let is_contraction = |op: &ferrozyme_ir::Op| main.ops[*op].opcode == Opcode::Contract;
    let found = all_ops(main).iter().filter(|op| is_contraction(op)).count();
    assert_eq!(raised, found, "{}", printed());
    raised
}

/// The contents of all arrays after a run.
fn run(notation: &Notation, module: &Module) -> Result<Vec<Vec<f64>>, String> {
    let mut machine = Machine::new(module);
    let arrays: Vec<(Pointer, usize)> = (notation.sizes().into_iter().enumerate())
        .map(|(array, size)| {
            let data: Vec<f64> = (0..size)
                .map(|at| ((at * 7 + array * 3) % 11) as f64 - 5.0)
                .collect();
            (machine.allocate_f64s(&data), size)
        })
        .collect();
    let mut arguments: Vec<Datum> = arrays.iter().map(|&(at, _)| Datum::ptr(at)).collect();
    arguments.extend(notation.trips().into_iter().map(Datum::i64));
    machine
        .call_named("main", &arguments)
        .map_err(|fault| fault.to_string())?;
    let contents = arrays.into_iter().map(|(at, size)| {
        let read = machine.read_f64s(at, size);
        read.map_err(|fault| fault.to_string())
    });
    contents.collect()
}

#[track_caller]
fn check(text: &str, contractions: usize) {
    let notation: Notation = text.parse().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(raised(&notation), contractions, "{}", compile(&notation));
}

#[test]
fn dot_order() {
    check(
        "for i:9 for j:10 { C[10i+j] = sum k:8 A[8i+k] * B[10k+j] }",
        1,
    );
}

#[test]
fn dot_order_with_transposed_operands() {
    check(
        "for i:9 for j:10 { C[10i+j] = sum k:8 A[9k+i] * B[8j+k] }",
        1,
    );
    check(
        "for i:9 for j:10 { C[9j+i] = sum k:8 A[8i+k] * B[8j+k] }",
        1,
    );
}

#[test]
fn dot_order_with_other_terms() {
    check(
        "for i:9 for j:10 { C[10i+j] = D[j] + sum k:8 A[8i+k] * B[10k+j] }",
        1,
    );
    check(
        "for i:9 for j:10 { C[10i+j] = C[10i+j] - sum k:8 A[8i+k] * B[10k+j] }",
        1,
    );
    check(
        "for i:9 for j:10 { C[10i+j] = 3 * sum k:8 A[8i+k] * B[10k+j] }",
        1,
    );
}

#[test]
fn axpy_order() {
    check(
        "for i:9 for k:8 for j:10 { C[10i+j] += A[8i+k] * B[10k+j] }",
        1,
    );
    check(
        "for i:9 { for j:10 { C[10i+j] = 0 } for k:8 for j:10 { C[10i+j] += A[8i+k] * B[10k+j] } }",
        1,
    );
}

#[test]
fn outer_product_order() {
    check(
        "for k:8 for i:9 for j:10 { C[10i+j] += A[8i+k] * B[10k+j] }",
        1,
    );
    check(
        "for k:8 for j:10 for i:9 { C[10i+j] -= A[8i+k] * B[10k+j] }",
        1,
    );
}

#[test]
fn two_gradients_in_one_nest() {
    check(
        "for t:9 for o:10 for c:8 { W[8o+c] += D[10t+o] * X[8t+c]  G[8t+c] += D[10t+o] * V[8o+c] }",
        2,
    );
}

#[test]
fn a_factor_that_is_cleared_in_the_nest_is_read_ahead_of_it() {
    check(
        "for t:9 for o:10 { for c:8 { W[8o+c] += D[10t+o] * X[8t+c] } D[10t+o] = 0 }",
        1,
    );
}

#[test]
fn batches_and_heads() {
    check(
        "for b:3 for i:9 for j:10 { C[90b+10i+j] = sum k:8 A[72b+8i+k] * B[80b+10k+j] }",
        1,
    );
    check(
        "for b:3 for h:2 for i:8 for j:8 { S[128b+64h+8i+j] = sum k:9 Q[144b+18i+9h+k] * K[144b+18j+9h+k] }",
        1,
    );
}

#[test]
fn sums_over_two_loops() {
    check(
        "for i:9 for j:10 { C[10i+j] = sum k:4 sum l:4 A[16i+4k+l] * B[16j+4k+l] }",
        1,
    );
    check(
        "for b:4 for t:4 for i:9 for j:10 { C[10i+j] += A[36b+9t+i] * B[40b+10t+j] }",
        1,
    );
}

#[test]
fn padded_rows_and_negative_strides() {
    check(
        "for i:9 for j:10 { C[16i+j] = sum k:8 A[11i+k] * B[13k+j] }",
        1,
    );
    check(
        "for i:9 for j:10 { C[10i+j] = sum k:8 A[8i-k+7] * B[10k-j+9] }",
        1,
    );
}

#[test]
fn trip_counts_that_are_not_known() {
    check(
        "for i:?9 for j:?10 for k:?8 { C[64i+j] += A[64i+k] * B[64k+j] }",
        1,
    );
    check(
        "for i:?9 for j:10 for k:?8 { C[10i+j] += A[64i+k] * B[10k+j] }",
        1,
    );
    check(
        "for i:?0 for j:10 for k:?8 { C[10i+j] += A[64i+k] * B[10k+j] }",
        1,
    );
    check(
        "for i:?2 for j:10 for k:?3 { C[10i+j] += A[64i+k] * B[10k+j] }",
        1,
    );
}

// ---- near misses

#[test]
fn small_products_stay_loops() {
    check("for i:3 for j:3 { C[3i+j] = sum k:3 A[3i+k] * B[3k+j] }", 0);
}

#[test]
fn no_sum_no_matrix() {
    check(
        "for i:9 for j:10 for k:8 { C[80i+8j+k] += A[8i+k] * B[10k+j] }",
        0,
    );
    check("for i:9 for k:80 { C[i] += A[80i+k] * B[k] }", 0);
    check("for i:90 { C[i] = sum k:80 A[k] * B[80i+k] }", 0);
}

#[test]
fn places_that_meet() {
    // A convolution: several pairs of indices add to one place.
    check(
        "for i:9 for j:10 for k:8 { C[i+j] += A[8i+k] * B[10k+j] }",
        0,
    );
    check(
        "for i:9 for j:10 { C[9i+j] = sum k:8 A[8i+k] * B[10k+j] }",
        0,
    );
}

#[test]
fn the_destination_is_a_factor() {
    check(
        "for i:9 for j:9 for k:9 { C[9i+j] += C[9i+k] * B[9k+j] }",
        0,
    );
    check("for i:9 for j:9 { C[9i+j] = sum k:9 C[9i+k] * B[9k+j] }", 0);
}

#[test]
fn a_factor_is_read_where_the_destination_is_written_later() {
    check(
        "for i:9 for j:9 for k:9 { C[9i+j] += C[9i+k+9] * B[9k+j] }",
        0,
    );
    check(
        "for i:9 for j:9 { C[9i+j] = sum k:9 C[9i+k+9] * B[9k+j] }",
        0,
    );
}

#[test]
fn the_sum_is_used_before_it_is_complete() {
    check(
        "for i:9 for j:10 for k:8 { C[10i+j] += A[8i+k] * B[10k+j]  D[8i+k] = C[10i+j] }",
        0,
    );
    check(
        "for k:8 for i:9 for j:10 { C[10i+j] += A[8i+k] * B[10k+j]  C[10i+j] = 2 }",
        0,
    );
}

#[test]
fn a_factor_that_changes_in_the_nest() {
    check(
        "for i:9 for j:10 { C[10i+j] = sum k:8 A[8i+k] * B[10k+j]  A[8i+7] = D[j] }",
        0,
    );
    check(
        "for k:8 { for i:9 for j:10 { C[10i+j] += A[8i+k] * B[10k+j] } A[k] = 1  B[10k+10] = 1 }",
        0,
    );
}

#[test]
fn a_place_that_is_set_several_times() {
    // Only the product of one iteration of the outermost loop is raised, which comes as often as before.
    check(
        "for k:8 for i:9 for j:10 { C[10i+j] = sum l:8 A[64i+8k+l] * B[64j+8k+l] }",
        1,
    );
}

#[test]
fn wrong_numbers_of_factors() {
    check("for i:9 for j:10 for k:8 { C[10i+j] += A[8i+k] }", 0);
    check(
        "for i:9 for j:10 for k:8 { C[10i+j] += A[8i+k] * B[10k+j] * D[k] }",
        0,
    );
}

#[test]
fn triangles_stay_loops() {
    check("for i:9 for j:i { C[9i+j] = sum k:8 A[8i+k] * B[8j+k] }", 0);
}

#[test]
fn what_is_left_goes_through_memory_row_by_row() {
    let notation: Notation =
        "for o:10 for t:9 { C[10t+o] = D[o] + sum k:8 A[8t+k] * B[8o+k]  E[o] += G[10t+o]  G[10t+o] = 0 }"
            .parse()
            .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(raised(&notation), 1);
    let mut module = parse_module(&compile(&notation)).unwrap_or_else(|error| panic!("{error}"));
    let id = module.function_named("main").expect("there is @main");
    raise_contractions(&mut module, id);
    let text = print_module(&module);
    let at = |what: &str| {
        text.find(what)
            .unwrap_or_else(|| panic!("{what} in\n{text}"))
    };
    // The loop over the nine rows is the outer one in what is left.
    assert!(at("to 9 step 1") < at("to 10 step 1"), "{text}");
    assert!(at("to 10 step 1") < at("contract"), "{text}");
}
