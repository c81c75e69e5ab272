//! Nests written in a short notation: which sums become contractions, and that nothing changes.
//!
//! ```text
//! for i:9 for j:10 { C[90i+9j] = 0  for k:8 { C[90i+9j] += A[8i+k] * B[8j+k] } }
//! ```
//!
//! `s = sum l:8 A[…] * B[…]` is a sum in a register. Data are small whole numbers, so that sums are exact in any order.

mod notation;
mod random;

use self::notation::{Condition, Notation, Statement, compile};
use super::{MIN_TRIPS, raise_contractions, raise_products};
use ferrozyme_ir::interpret::{Datum, Machine, Pointer};
use ferrozyme_ir::{Module, Opcode, all_ops, parse_module, print_module, verify_module};

/// Compiles a nest, raises products with so many iterations of each kind, runs both, and returns how many contractions there are.
fn raised(notation: &Notation, min_trips: i64) -> usize {
    let text = compile(notation);
    let before = parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut after = before.clone();
    let id = after.function_named("main").expect("there is @main");
    let raised = raise_products(&mut after, id, min_trips);
    let again = raise_products(&mut after, id, min_trips);
    assert_eq!(again, 0, "raised again: {text}");
    let printed = || print_module(&after);
    if let Err(errors) = verify_module(&after) {
        panic!("{errors:?}\n{}", printed());
    }
    let expected = run(notation, &before).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    match run(notation, &after) {
        Ok(found) => {
            let same = expected == found || !is_exact(&expected);
            assert!(same, "{text}\n{}", printed());
        }
        Err(fault) => panic!("{fault}\n{text}\n{}", printed()),
    }
    let main = &after.functions[id];
    let is_contraction = |op: &ferrozyme_ir::Op| main.ops[*op].opcode == Opcode::Contract;
    let found = all_ops(main).iter().filter(|op| is_contraction(op)).count();
    assert_eq!(raised, found, "{}", printed());
    raised
}

/// Whether sums of these numbers are the same in any order. Nests that multiply their own results again and again get beyond that.
fn is_exact(arrays: &[Vec<f64>]) -> bool {
    let mut numbers = arrays.iter().flatten();
    numbers.all(|number| number.abs() < 1e12)
}

/// The contents of all arrays after a run.
fn run(notation: &Notation, module: &Module) -> Result<Vec<Vec<f64>>, String> {
    let mut machine = Machine::new(module);
    let sizes = notation.sizes();
    let contents = |array: usize, at: usize| ((at * 7 + array * 3) % 11) as f64 - 5.0;
    let mut arrays: Vec<(Pointer, usize)> = Vec::new();
    match notation.unknown.overlap {
        Some(Some(distance)) => {
            let ends = sizes.iter().enumerate();
            let size = ends.map(|(array, size)| array * distance + size).max();
            let size = size.unwrap_or(0);
            let data: Vec<f64> = (0..size).map(|at| contents(0, at)).collect();
            let start = machine.allocate_f64s(&data);
            for array in 0..sizes.len() {
                let begin = array * distance;
                arrays.push((start.offset(8 * begin as i64), size - begin));
            }
        }
        _ => {
            for (array, &size) in sizes.iter().enumerate() {
                let data: Vec<f64> = (0..size).map(|at| contents(array, at)).collect();
                arrays.push((machine.allocate_f64s(&data), size));
            }
        }
    }
    let mut arguments: Vec<Datum> = arrays.iter().map(|&(at, _)| Datum::ptr(at)).collect();
    arguments.extend(notation.trips().into_iter().map(Datum::i64));
    arguments.extend(notation.conditions().into_iter().map(Datum::i1));
    if notation.unknown.strides {
        arguments.extend(notation.strides().into_iter().map(Datum::i64));
    }
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
    assert_eq!(
        raised(&notation, MIN_TRIPS),
        contractions,
        "{}",
        compile(&notation)
    );
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
fn sums_of_several_products() {
    check(
        "for t:9 for o:10 for c:8 { G[8t+c] += D[10t+o] * V[8o+c] - E[10t+o] * W[8o+c] }",
        2,
    );
    check(
        "for i:9 for j:10 { C[10i+j] = sum k:8 A[8i+k] * B[10k+j] - sum k:8 D[8i+k] * E[10k+j] }",
        2,
    );
    // The loops would stay for the other term.
    check(
        "for t:9 for o:10 for c:8 { G[8t+c] += D[10t+o] * V[8o+c] - E[80t+8o+c] }",
        0,
    );
}

#[test]
fn a_factor_that_is_cleared_in_the_nest_is_read_ahead_of_it() {
    check(
        "for t:9 for o:10 { for c:8 { W[8o+c] += D[10t+o] * X[8t+c] } D[10t+o] = 0 }",
        1,
    );
}

/// What the notation cannot say: a stored sum has other uses.
#[test]
fn a_stored_sum_is_used_elsewhere() {
    // Each iteration of the outer loop takes the largest sum of its row.
    let text = "func @main(%a: ptr noalias, %b: ptr noalias, %c: ptr noalias, %d: ptr noalias) {
      for %i: i64 = 0 to 9 step 1 {
        %largest = for %j: i64 = 0 to 10 step 1 with (%m: f64 = -1000.0) {
          %s = for %k: i64 = 0 to 8 step 1 with (%t: f64 = 0.0) {
            %ai = mul nsw i64 %i, 8
            %ak = add nsw i64 %ai, %k
            %pa = offset inbounds %a, %ak * 8
            %x = load f64 %pa align 8
            %bk = mul nsw i64 %k, 10
            %bj = add nsw i64 %bk, %j
            %pb = offset inbounds %b, %bj * 8
            %y = load f64 %pb align 8
            %z = fmul f64 %x, %y
            %u = fadd f64 %t, %z
            yield %u
          }
          %scaled = fmul f64 %s, 2.0
          %more = fcmp ogt f64 %scaled, %m
          %n = select f64 %more, %scaled, %m
          %ci = mul nsw i64 %i, 10
          %cj = add nsw i64 %ci, %j
          %pc = offset inbounds %c, %cj * 8
          store f64 %scaled, %pc align 8
          yield %n
        }
        for %j2: i64 = 0 to 10 step 1 {
          %ci2 = mul nsw i64 %i, 10
          %cj2 = add nsw i64 %ci2, %j2
          %pc2 = offset inbounds %c, %cj2 * 8
          %old = load f64 %pc2 align 8
          %new = fsub f64 %old, %largest
          store f64 %new, %pc2 align 8
          yield
        }
        %pd = offset inbounds %d, %i * 8
        store f64 %largest, %pd align 8
        yield
      }
      return
    }";
    let before = parse_module(text).unwrap_or_else(|error| panic!("{error}"));
    let mut after = before.clone();
    let id = after.function_named("main").expect("there is @main");
    assert_eq!(raise_contractions(&mut after, id), 1);
    let run = |module: &Module| {
        let mut machine = Machine::new(module);
        let sizes = [72, 80, 90, 9];
        let arrays = sizes.map(|size| {
            let data: Vec<f64> = (0..size).map(|at| ((at * 7) % 11) as f64 - 5.0).collect();
            machine.allocate_f64s(&data)
        });
        let arguments = arrays.map(Datum::ptr);
        let outcome = machine.call_named("main", &arguments);
        outcome.unwrap_or_else(|fault| panic!("{fault}\n{}", print_module(module)));
        [2, 3].map(|at| machine.read_f64s(arrays[at], sizes[at]).expect("floats"))
    };
    assert_eq!(run(&before), run(&after), "{}", print_module(&after));
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

#[test]
fn pointers_under_conditions_are_compared_before_the_nest() {
    let text = "for i:9 { for j:10 { C[10i+j] = sum k:8 A[8i+k] * B[10k+j] } }";
    let mut notation: Notation = text.parse().unwrap_or_else(|error| panic!("{error}"));
    for holds in [true, false] {
        let Statement::For(_, _, body) = &mut notation.body[0] else {
            panic!("it begins with a loop");
        };
        *body = vec![Statement::If(
            Condition::Parameter(holds),
            std::mem::take(body),
        )];
        for overlap in [None, Some(200), Some(10)] {
            notation.unknown.overlap = Some(overlap);
            assert_eq!(raised(&notation, MIN_TRIPS), 1, "{}", compile(&notation));
        }
    }
}

/// `a[i * k + l]` of C, where all are of type `int`.
#[test]
fn indices_of_32_bits() {
    let text = |rows: &str| {
        format!(
            "func @main(%a: ptr noalias, %b: ptr noalias, %c: ptr noalias, %m: i32, %k: i32) {{
               %wide_m = sext i32 %m to i64
               %wide_k = sext i32 %k to i64
               for %i: i64 = 0 to %wide_m step 1 {{
                 %few = trunc_int i64 %i to i32
                 %row = mul i32 %few, {rows}
                 %wide_row = zext i32 %row to i64
                 %start = offset inbounds %a, %wide_row * 8
                 for %j: i64 = 0 to 10 step 1 {{
                   %s = for %l: i64 = 0 to %wide_k step 1 with (%t: f64 = 0.0) {{
                     %pa = offset inbounds %start, %l * 8
                     %x = load f64 %pa align 8
                     %bl = mul nsw i64 %l, 10
                     %bj = add nsw i64 %bl, %j
                     %pb = offset inbounds %b, %bj * 8
                     %y = load f64 %pb align 8
                     %z = fmul f64 %x, %y
                     %u = fadd f64 %t, %z
                     yield %u
                   }}
                   %ci = mul nsw i64 %i, 10
                   %cj = add nsw i64 %ci, %j
                   %pc = offset inbounds %c, %cj * 8
                   store f64 %s, %pc align 8
                   yield
                 }}
                 yield
               }}
               return
             }}"
        )
    };
    // The second index wraps: rows 0 and 2 are the same, and so are 1 and 3.
    for rows in ["%k", "-2147483648"] {
        let before = parse_module(&text(rows)).unwrap_or_else(|error| panic!("{error}"));
        let mut after = before.clone();
        let id = after.function_named("main").expect("there is @main");
        assert_eq!(raise_contractions(&mut after, id), 1, "{rows}");
        let run = |module: &Module, size: [i64; 2]| {
            let mut machine = Machine::new(module);
            let arrays = [200, 200, 200].map(|size| {
                let data: Vec<f64> = (0..size).map(|at| ((at * 7) % 11) as f64 - 5.0).collect();
                machine.allocate_f64s(&data)
            });
            let mut arguments = arrays.map(Datum::ptr).to_vec();
            arguments.extend(size.map(|number| Datum::int(32, number.into())));
            let outcome = machine.call_named("main", &arguments);
            outcome.map(|_| machine.read_f64s(arrays[2], 200).expect("floats"))
        };
        for size in [[9, 8], [12, 15], [1, 1], [3, 8]] {
            match (run(&before, size), run(&after, size)) {
                (Ok(one), Ok(other)) => assert_eq!(one, other, "{rows} {size:?}"),
                (one, other) => assert_eq!(one.is_err(), other.is_err(), "{rows} {size:?}"),
            }
        }
    }
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
fn no_order_of_indices_makes_places_distinct() {
    // That the trip counts are not known does not help.
    check(
        "for i:?9 for j:?10 for k:?8 { C[i+j] += A[64i+k] * B[64k+j] }",
        0,
    );
    check(
        "for i:?9 for j:?10 for k:?8 { C[3i+2j] += A[64i+k] * B[64k+j] }",
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
    assert_eq!(raised(&notation, MIN_TRIPS), 1);
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
