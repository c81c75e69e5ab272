//! Hulls, trip counts and bounds of expressions.

use super::*;

#[test]
fn hulls() {
    let p = Program::body(
        "for %i: i64 = 0 to %m step 1 {
           for %j: i64 = 0 to %n step 1 {
             %r = mul i64 %i, %n
             %k = add i64 %r, %j
             %q = offset %s, %k * 8
             %a = load f64 %q align 8
             %ij = add i64 %i, %j
             %pd = offset %s, %ij * 8
             %d = load f64 %pd align 8
             %u = load ptr %q align 8
             %b = load f64 %u align 8
             if %c {
               %e = load f64 %q align 8
               yield
             }
             yield
           }
           for %l: i64 = 0 to %i step 1 {
             %pt = offset %s, %l * 8
             %g = load f64 %pt align 8
             yield
           }
           yield
         }
         for %z: i64 = 10 to 0 step -3 {
           %pz = offset %s, %z * 8
           %w = load f32 %pz align 4
           yield
         }",
    );
    assert_eq!(p.hull_text("%a", 0), "0, 8*%n*%m if %n if %m");
    assert_eq!(p.hull_text("%a", 1), "8*%n*%i, 8*%n if %n");
    // Without the guards these would be bytes that nobody touches: 8*(0 + 5 - 1) for n = 0.
    assert_eq!(p.hull_text("%d", 0), "0, 8*%n + 8*%m - 8 if %n if %m");
    // A pointer from memory, and a load that does not always run.
    assert_eq!(p.hull_text("%b", 0), "none");
    assert_eq!(p.hull_text("%e", 0), "none");
    // The inner loop does not run where the outer counter is 0, but then its largest counter is reached at the end.
    assert_eq!(p.hull_text("%g", 0), "0, 8*%m - 8 if %m - 1 if %m");
    // 10, 7, 4, 1
    assert_eq!(p.hull_text("%w", 3), "8, 76");
}

#[test]
fn trip_counts() {
    let p = Program::body(
        "for %a: i64 = 0 to %n step 1 { yield }
         for %b: i64 = %m to %n step -1 { yield }
         for %d: i64 = 0 to 10 step 3 { yield }
         for %e: i64 = 10 to 0 step -3 { yield }
         for %g: i64 = 0 to -5 step 1 { yield }
         %k = mul i64 %n, 4
         for %h: i64 = 0 to %k step 2 { yield }
         for %l: i64 = 0 to %n step 2 { yield }
         for %o: i64 = 0 to %n step %m { yield }",
    );
    let aliases = p.aliases();
    let names = p.names();
    let counts: Vec<String> = p
        .all(Opcode::For)
        .into_iter()
        .map(
            |op| match aliases.indices().counted(op).and_then(Counted::trip_count) {
                Some(count) => count.to_text(&names),
                None => "unknown".to_owned(),
            },
        )
        .collect();
    assert_eq!(
        counts,
        [
            "%n", "-%n + %m", "4", "4", "0", "2*%n", "unknown", "unknown"
        ]
    );
}

#[test]
fn bounds_of_expressions() {
    let p = Program::body(
        "for %i: i64 = 0 to %m step 1 {
           for %j: i64 = %i to %n step 1 {
             %r = mul i64 %i, %n
             %k = add i64 %r, %j
             %l = sub i64 %i, %j
             yield
           }
           yield
         }",
    );
    let aliases = p.aliases();
    let indices = aliases.indices();
    let names = p.names();
    let loops = p.all(Opcode::For);
    let text = |bound: Option<Symbolic>| bound.map(|bound| bound.to_text(&names));
    let k = indices.expression(p.value("%k"));
    let l = indices.expression(p.value("%l"));
    // i·n + j ≤ (m - 1)·n + n - 1; j ≥ i makes the lower bound 0.
    assert_eq!(
        text(indices.upper_bound(&k, &loops)),
        Some("%n*%m - 1".into())
    );
    assert_eq!(
        text(indices.lower_bound(&l, &loops)),
        Some("-%n + 1".into())
    );
    assert_eq!(text(indices.upper_bound(&l, &loops)), Some("0".into()));
    assert_eq!(
        text(indices.upper_bound(&k, &loops[1..])),
        Some("%n + %n*%i - 1".into())
    );
    assert!(!indices.is_invariant(&k, loops[1]));
    assert!(indices.is_invariant(&Symbolic::of_value(p.value("%i")), loops[1]));
}
