//! A few thousand random programs against all laws. The `soak` command runs more.

use ferrozyme_gen::laws::{Law, remember_panics};
use ferrozyme_gen::soak::{Plan, Summary, soak};
use ferrozyme_gen::{Feature, Profile, generate};
use ferrozyme_ir::print_module;

/// Runs programs and fails with the first small program that breaks a law.
fn run(plan: Plan) -> Summary {
    remember_panics();
    let summary = soak(&plan, &|_| {});
    let texts: Vec<&str> = (summary.failures.iter())
        .map(|failure| failure.text.as_str())
        .collect();
    assert!(texts.is_empty(), "{}", texts.join("\n\n"));
    assert_eq!(summary.programs, plan.count);
    summary
}

fn plan(first: u64, count: u64, laws: &[Law]) -> Plan {
    Plan {
        first,
        count,
        profile: None,
        laws: laws.to_vec(),
        time_limit: None,
        failure_limit: 3,
        shrinking: 1000,
    }
}

#[test]
fn programs_of_all_kinds_keep_all_laws() {
    let summary = run(plan(1, 3000, Law::ALL));
    // Kinks and unknown bytes exist, but must stay exceptions: otherwise nothing would be checked.
    for &law in Law::ALL {
        let checked = summary.tally.checked(law);
        let skipped = summary.tally.skipped(law);
        assert!(
            skipped * 100 < checked,
            "{law}: {checked} programs are checked, {skipped} skipped"
        );
    }
}

#[test]
fn large_programs_keep_all_laws() {
    run(Plan {
        profile: Profile::named("large"),
        ..plan(1, 60, Law::ALL)
    });
}

#[test]
fn every_feature_occurs_in_a_thousand_programs() {
    let summary = run(plan(1, 1000, &[Law::Text, Law::Run]));
    for &feature in Feature::ALL {
        assert!(
            summary.features[feature as usize] > 0,
            "no program has the feature `{feature}`"
        );
    }
    // Programs do something, but not for long.
    let operations = summary.tally.steps / summary.programs;
    assert!(
        (50..5000).contains(&operations),
        "{operations} operations each"
    );
}

#[test]
fn a_seed_is_one_program_forever() {
    for seed in 1..=200 {
        let profile = Profile::of_seed(seed);
        let first = print_module(&generate(seed, profile).module);
        let second = print_module(&generate(seed, profile).module);
        assert_eq!(first, second);
    }
}
