//! A failing program becomes small and stays one that fails.

use ferrozyme_gen::laws::{Kind, Law, Subject, Tally, check, remember_panics, runs};
use ferrozyme_gen::shrink::{measure, shrink};
use ferrozyme_gen::soak::read_subject;
use ferrozyme_gen::{Profile, generate};
use ferrozyme_ir::entity::EntityRef;
use ferrozyme_ir::{FunctionId, Opcode, all_ops, print_module};

fn subject(seed: u64, profile: &str) -> Subject {
    let profile = Profile::named(profile).expect("the profile exists");
    let program = generate(seed, profile);
    Subject {
        module: program.module,
        main: program.main,
        seed,
    }
}

fn contains(subject: &Subject, wanted: Opcode) -> bool {
    let functions = subject.module.functions.values();
    functions
        .flat_map(|function| {
            all_ops(function)
                .into_iter()
                .map(|op| function.ops[op].opcode)
        })
        .any(|opcode| opcode == wanted)
}

/// An artificial law: valid programs do not contain this operation.
fn valid_and_contains(subject: &Subject, opcode: Opcode) -> bool {
    check(subject, &[Law::Text, Law::Run], &mut Tally::default()).is_ok()
        && contains(subject, opcode)
}

#[test]
fn a_program_shrinks_to_the_operation_that_fails() {
    for opcode in [
        Opcode::Tanh,
        Opcode::For,
        Opcode::Loop,
        Opcode::Free,
        Opcode::Call,
    ] {
        let large = (1..)
            .map(|seed| subject(seed, "default"))
            .find(|subject| contains(subject, opcode) && measure(&subject.module).0 > 60)
            .expect("some program contains it");
        let small = shrink(
            &large,
            &mut |candidate| valid_and_contains(candidate, opcode),
            20_000,
        );
        assert!(valid_and_contains(&small, opcode));
        let text = print_module(&small.module);
        let (operations, _) = measure(&small.module);
        assert!(operations <= 8, "{operations} operations are left:\n{text}");
    }
}

#[test]
fn what_shrinking_leaves_can_be_read_back() {
    let large = subject(11, "default");
    let mut fails = |candidate: &Subject| valid_and_contains(candidate, Opcode::Sin);
    let small = shrink(&large, &mut fails, 20_000);
    let text = format!("; seed: 11\n{}", print_module(&small.module));
    let again = read_subject(&text).expect("the text parses");
    assert_eq!(again.seed, 11);
    let (_, before) = runs(&small).expect("it runs");
    let (_, after) = runs(&again).expect("it runs");
    assert!(before.state.same_bits(&after.state));
}

#[test]
fn a_panic_is_a_violation() {
    remember_panics();
    let mut broken = subject(1, "tiny");
    broken.main = FunctionId::new(99);
    let violation = check(&broken, &[Law::Text], &mut Tally::default()).unwrap_err();
    assert_eq!((violation.law, violation.kind), (Law::Run, Kind::Panic));
    assert!(violation.detail.starts_with("panicked at "), "{violation}");
}
