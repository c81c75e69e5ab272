//! The laws find what is wrong: programs with wrong derivatives, and passes that change meaning, do not get past them.

use ferrozyme_gen::laws::passes::keeps_meaning;
use ferrozyme_gen::laws::{Kind, Law, Subject, Tally, check, runs};
use ferrozyme_gen::soak::read_subject;
use ferrozyme_gen::{Inputs, Profile, generate};
use ferrozyme_ir::{FunctionId, Module, Opcode, all_ops};

/// `@main` calls a square whose rule gives `forward` and `reverse` times the right derivative.
fn with_rule(forward: f64, reverse: f64) -> Subject {
    let text = format!(
        "; seed: 8
func @square(%a: f64) -> (f64) noinline {{
  %r = fmul f64 %a, %a
  return %r
}}
func @square_forward(%a: f64, %da: f64, %mask: i64) -> (f64, f64) {{
  %r = fmul f64 %a, %a
  %t = fmul f64 %a, %da
  %dr = fmul f64 %t, {:?}
  return %r, %dr
}}
func @square_reverse(%a: f64, %seed: f64, %mask: i64) -> (f64) {{
  %t = fmul f64 %a, %seed
  %da = fmul f64 %t, {:?}
  return %da
}}
rule @square forward @square_forward reverse @square_reverse
func @main(%x: ptr layout [f64], %s: f64) -> (f64) {{
  %e = load f64 %x align 8
  %a = fmul f64 %e, %s
  %r = call @square(%a)
  return %r
}}
",
        2.0 * forward,
        2.0 * reverse
    );
    read_subject(&text).expect("the text parses")
}

fn broken(subject: &Subject, law: Law) -> Option<Kind> {
    let result = check(subject, &[law], &mut Tally::default());
    result.err().map(|violation| violation.kind)
}

#[test]
fn right_rules_keep_the_laws() {
    let subject = with_rule(1.0, 1.0);
    check(&subject, Law::ALL, &mut Tally::default()).expect("all laws hold");
}

#[test]
fn wrong_rules_are_found() {
    // Finite differences notice one part in ten thousand, the comparison of the modes one in a million.
    let wrong = 1.0 + 1e-4;
    assert_eq!(
        broken(&with_rule(wrong, 1.0), Law::Differences),
        Some(Kind::Wrong)
    );
    assert_eq!(broken(&with_rule(1.0, wrong), Law::Differences), None);
    assert_eq!(
        broken(&with_rule(1.0, wrong), Law::GradientDifferences),
        Some(Kind::Wrong)
    );
    assert_eq!(broken(&with_rule(wrong, wrong), Law::DotProduct), None);
    let slightly = 1.0 + 1e-6;
    assert_eq!(
        broken(&with_rule(slightly, 1.0), Law::DotProduct),
        Some(Kind::Wrong)
    );
    assert_eq!(
        broken(&with_rule(1.0, slightly), Law::DotProduct),
        Some(Kind::Wrong)
    );
}

/// |s − k|, where k is what the seed gives for s, or a little more.
fn with_kink(distance: f64) -> Subject {
    let text = "; seed: 3
func @main(%s: f64) -> (f64) {
  %d = fsub f64 %s, 0.0
  %r = fabs f64 %d
  return %r
}
";
    let subject = read_subject(text).expect("the text parses");
    let inputs = Inputs::new(&subject.module, subject.main, subject.seed).expect("inputs exist");
    let kink = inputs.state.floats[0] + distance;
    read_subject(&text.replace("0.0", &format!("{kink:?}"))).expect("the text parses")
}

#[test]
fn kinks_are_skipped_and_not_blamed() {
    for (distance, smooth) in [(0.0, false), (1.0, true)] {
        let mut tally = Tally::default();
        check(&with_kink(distance), &[Law::Differences], &mut tally).expect("nothing is wrong");
        assert_eq!(tally.checked(Law::Differences), u64::from(smooth));
        assert_eq!(tally.skipped(Law::Differences), u64::from(!smooth));
    }
    // A kink between the samples looks smooth at some step, but never wrong.
    for distance in [1e-6, 3e-6, 2e-5, 7e-5, 3e-4, 7e-4] {
        for sign in [1.0, -1.0] {
            let subject = with_kink(sign * distance);
            check(&subject, &[Law::Differences], &mut Tally::default()).expect("nothing is wrong");
        }
    }
}

/// A pass that is wrong: the last sum of a function becomes a difference.
fn break_a_sum(module: &mut Module, id: FunctionId) -> usize {
    let function = &mut module.functions[id];
    let sum = all_ops(function)
        .into_iter()
        .rfind(|&op| function.ops[op].opcode == Opcode::Fadd);
    match sum {
        Some(op) => {
            function.ops[op].opcode = Opcode::Fsub;
            1
        }
        None => 0,
    }
}

#[test]
fn wrong_passes_are_found() {
    let mut found = 0;
    for seed in 1..=50 {
        let program = generate(seed, Profile::of_seed(seed));
        let subject = Subject {
            module: program.module,
            main: program.main,
            seed,
        };
        let (inputs, outputs) = runs(&subject).expect("the program runs");
        let mut module = subject.module.clone();
        break_a_sum(&mut module, subject.main);
        let result = keeps_meaning(Law::Passes, "wrong", &subject, &module, &inputs, &outputs);
        found += usize::from(result.is_err());
    }
    // Every `@main` ends in a sum that reaches a result.
    assert!(found >= 45, "only {found} of 50 wrong programs are found");
}
