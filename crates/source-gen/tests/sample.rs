//! A few random functions of each language through the whole product, always the same ones. `source-soak` runs as many as one likes.

#![cfg(target_os = "linux")]

use ferrozyme_source_gen::Language;
use ferrozyme_source_gen::soak::{Plan, soak};
use ferrozyme_source_gen::workshop::Workshop;
use std::io::Write;
use std::path::Path;
use std::process::Command;

fn sample(language: Language, count: u64) {
    let name = format!("source-sample-{}", language.extension());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let drivers = Path::new(env!("CARGO_BIN_EXE_source-cc")).parent();
    let drivers = drivers.expect("binaries are in a folder");
    let workshop = Workshop::new(language, &folder, drivers, false).expect("a folder");
    let plan = Plan {
        language,
        first: 1,
        count,
        batch: count as usize,
        profiles: Workshop::profiles(language)
            .iter()
            .map(ToString::to_string)
            .collect(),
        shrinking: 0,
        failure_limit: 1,
    };
    let summary =
        soak(&plan, &workshop, &mut |_, _| {}, &mut |_| Ok(())).expect("programs can be run");
    assert!(summary.failed.is_empty(), "{summary}");
    assert!(summary.invalid.is_empty(), "{summary}");
    assert!(summary.right * 2 > count, "{summary}");
}

#[test]
fn rust_functions_have_the_derivatives_of_finite_differences() {
    sample(Language::Rust, 12);
}

#[test]
fn c_functions_have_the_derivatives_of_finite_differences() {
    let version = Command::new("clang-22").arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        // Not by a macro, whose text is shown of tests that fail only.
        let _ = writeln!(
            std::io::stderr(),
            "note: left out, since there is no clang-22"
        );
        return;
    }
    sample(Language::C, 16);
}
