use super::*;
use ferrozyme_ir::{Module, Names, all_ops, parse_module};

/// `@f` of a module, with the operation that defines `%here`.
fn program(text: &str) -> (Module, Op) {
    let module = parse_module(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let function = module.functions.values().next().expect("a function");
    let names = Names::of(function);
    let here = all_ops(function)
        .into_iter()
        .find(|&op| {
            let results = &function.ops[op].results;
            results.first().and_then(|&value| names.get(value)) == Some("%here")
        })
        .expect("there is %here");
    (module, here)
}

/// Whether the sum `%here` is proven to be at least, or at most, a number where it is computed.
fn check(text: &str, least: Option<i64>, most: Option<i64>) -> (bool, bool) {
    let (module, here) = program(text);
    let function = module.functions.values().next().expect("a function");
    let indices = Indices::of(function);
    let inequalities = Inequalities::at(&indices, here);
    let expression = indices.expression(function.result(here));
    (
        least.is_some_and(|least| inequalities.prove_at_least(&expression, least)),
        most.is_some_and(|most| inequalities.prove_at_most(&expression, most)),
    )
}

fn nest(body: &str) -> String {
    format!(
        "func @f(%n: i64, %m: i64, %k: i64 range 2..=9) {{
           for %i: i64 = 0 to %n step 1 {{
             for %j: i64 = %i to %m step 1 {{
               {body}
               yield
             }}
             yield
           }}
           return
         }}"
    )
}

#[test]
fn loops_that_run_bound_their_ends() {
    // i ≤ j ≤ m - 1 and 0 ≤ i ≤ n - 1.
    assert_eq!(
        check(&nest("%here = sub i64 %j, %i"), Some(0), Some(0)),
        (true, false)
    );
    assert!(check(&nest("%here = sub i64 %m, %j"), Some(1), None).0);
    assert!(!check(&nest("%here = sub i64 %m, %j"), Some(2), None).0);
    assert!(check(&nest("%here = add i64 %n, %m"), Some(2), None).0);
    assert!(!check(&nest("%here = add i64 %n, %m"), Some(3), None).0);
    assert_eq!(
        check(&nest("%here = sub i64 %n, %m"), Some(0), Some(0)),
        (false, false)
    );
}

#[test]
fn products_of_unknown_sizes() {
    // n·m - i·m - j ≥ m - j ≥ 1, the last element of a matrix.
    let text = nest(
        "%nm = mul i64 %n, %m
         %im = mul i64 %i, %m
         %e = add i64 %im, %j
         %here = sub i64 %nm, %e",
    );
    assert!(check(&text, Some(1), None).0);
    assert!(!check(&text, Some(2), None).0);
    // n² - n = n·(n - 1) ≥ 0, since n ≥ 1.
    let text = nest(
        "%nn = mul i64 %n, %n
         %here = sub i64 %nn, %n",
    );
    assert!(check(&text, Some(0), None).0);
    assert!(!check(&text, Some(1), None).0);
}

#[test]
fn factors_of_a_product_may_be_negative_in_pairs() {
    let text = |range: &str, here: &str| {
        format!(
            "func @f(%n: i64 {range}, %m: i64, %k: i64) {{
               %nm = mul i64 %n, %m
               for %i: i64 = 0 to %nm step 1 {{
                 {here}
                 yield
               }}
               return
             }}"
        )
    };
    // n·m is more than i, so at least 1.
    let product = "%here = mul i64 %m, %n";
    assert!(check(&text("", product), Some(1), None).0);
    assert!(!check(&text("", product), Some(2), None).0);
    // Of the two nothing is known, unless one is not negative: then it is not 0, and the other is positive, too.
    for value in ["%m", "%n"] {
        let alone = format!("%here = add i64 {value}, 0");
        assert!(!check(&text("", &alone), Some(0), None).0);
        assert!(check(&text("range 0..=100", &alone), Some(1), None).0);
        assert!(!check(&text("range -1..=100", &alone), Some(0), None).0);
    }
}

#[test]
fn ranges_and_steps() {
    assert_eq!(
        check(&nest("%here = mul i64 %k, 3"), Some(6), Some(27)),
        (true, true)
    );
    assert_eq!(
        check(&nest("%here = mul i64 %k, 3"), Some(7), Some(26)),
        (false, false)
    );
    let text = "func @f(%n: i64) {
                  for %i: i64 = %n to 3 step -2 {
                    %here = sub i64 %n, %i
                    yield
                  }
                  return
                }";
    assert!(check(text, Some(0), None).0);
    let text = "func @f(%n: i64) {
                  for %i: i64 = %n to 3 step -2 {
                    %here = add i64 %n, %i
                    yield
                  }
                  return
                }";
    assert_eq!(check(text, Some(8), Some(100)), (true, false));
}

#[test]
fn a_step_of_unknown_sign_says_nothing() {
    let text = "func @f(%n: i64, %s: i64) {
                  for %i: i64 = 0 to %n step %s {
                    %here = add i64 %i, %n
                    yield
                  }
                  return
                }";
    assert_eq!(check(text, Some(0), Some(0)), (false, false));
}

#[test]
fn branches_say_what_they_compare() {
    let text = |predicate: &str, branch: &str| {
        let (then, otherwise) = match branch {
            "then" => ("%here = sub i64 %b, %a", ""),
            _ => ("", "%here = sub i64 %b, %a"),
        };
        format!(
            "func @f(%a: i64, %b: i64 range 0..=100) {{
               %c = icmp {predicate} i64 %a, %b
               if %c {{ {then} yield }} else {{ {otherwise} yield }}
               return
             }}"
        )
    };
    let answers = |predicate, branch| check(&text(predicate, branch), Some(1), Some(0));
    assert_eq!(answers("slt", "then"), (true, false));
    assert_eq!(answers("slt", "else"), (false, true));
    assert_eq!(answers("ult", "then"), (true, false));
    // a may be negative there, which is large without a sign.
    assert_eq!(answers("ult", "else"), (false, false));
    assert_eq!(answers("ne", "then"), (false, false));
    assert_eq!(answers("ne", "else"), (false, true));
    assert_eq!(answers("sge", "then"), (false, true));
}
