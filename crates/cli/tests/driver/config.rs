//! What users have set already stays in force: flags, linker, wrapper.

use super::project::{Project, SQUARES, SQUARES_OUTPUT};
use std::os::unix::fs::PermissionsExt;

/// A program that says which flags it was built with. It has no dependencies, because other flags mean to build them anew.
fn flagged(name: &str) -> Project {
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [lints.rust]\nunexpected_cfgs = \"allow\"\n[workspace]\n"
    );
    let main = "fn main() {\n    \
        println!(\"{} {} {}\", cfg!(flag_one), cfg!(flag_two), cfg!(ferrozyme));\n}\n";
    Project::new(name, &[("Cargo.toml", &manifest), ("src/main.rs", main)])
}

#[test]
fn flags_of_the_user_stay() {
    let project = flagged("flags");
    let _ = std::fs::remove_dir_all(project.folder.join(".cargo"));
    let run = project.ferrozyme_with(&["run"], |command| {
        command.env("RUSTFLAGS", "--cfg flag_one");
    });
    assert_eq!(run.expect_success(), "true false true\n");
    project.write(
        ".cargo/config.toml",
        "[target.'cfg(unix)']\nrustflags = [\"--cfg\", \"flag_two\"]\n",
    );
    let run = project.ferrozyme(&[
        "run",
        "--config",
        "target.'cfg(all())'.rustflags=['--cfg=flag_one']",
    ]);
    assert_eq!(run.expect_success(), "true true true\n");
}

#[test]
fn linker_and_wrapper_of_the_user_run() {
    let project = Project::program("own-tools", SQUARES);
    let script = |name: &str, what: &str| {
        let log = project.folder.join(format!("{name}.log"));
        let _ = std::fs::remove_file(&log);
        let path = project.folder.join(name);
        let text = format!("#!/bin/sh\necho \"$*\" >> {}\nexec {what}\n", log.display());
        std::fs::write(&path, text).expect("writable");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("ours");
        (path, log)
    };
    let (linker, linker_log) = script("my-linker", "cc \"$@\"");
    let (wrapper, wrapper_log) = script("my-wrapper", "\"$@\"");
    project.write(
        "src/generated.rs",
        &format!("// {:?}\n", std::time::SystemTime::now()),
    );
    project.write("src/main.rs", &format!("mod generated;\n{SQUARES}"));
    let run = project.ferrozyme_with(&["run"], |command| {
        command
            .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", &linker)
            .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", &linker)
            .env("RUSTC_WRAPPER", &wrapper);
    });
    assert_eq!(run.expect_success(), SQUARES_OUTPUT);
    let linked = std::fs::read_to_string(linker_log).expect("the linker ran");
    assert!(
        linked.contains("derivatives.o") && !linked.contains("--ferrozyme"),
        "{linked}"
    );
    let wrapped = std::fs::read_to_string(wrapper_log).expect("the wrapper ran");
    assert!(wrapped.contains("--crate-name own_tools"), "{wrapped}");
}

#[test]
fn strict_sums_keep_their_order() {
    // Added up in several lanes, the gradient of `scale` would be rounded differently.
    let main = r#"use ferrozyme::autodiff_reverse;

#[autodiff_reverse(gradient, Const, Active, Active)]
fn scaled(x: &[f32], scale: f32) -> f32 {
    let mut sum = 0.0;
    for &x in x {
        sum += x * scale;
    }
    sum
}

fn main() {
    let x: Vec<f32> = (0..1000).map(|i| 1.0 / (i as f32 + 3.0)).collect();
    let (value, slope) = gradient(&x, 1.5, 1.0);
    // The sweep that adds up goes either way, but one after the other.
    let (first, last) = (x.iter().fold(0.0, |sum, x| sum + x), x.iter().rev().fold(0.0, |sum, x| sum + x));
    println!("{} {}", value == scaled(&x, 1.5), slope == first || slope == last);
}
"#;
    let project = Project::program("strict", main);
    let run = project.ferrozyme(&["run", "--release", "--strict"]);
    assert_eq!(run.expect_success(), "true true\n");
    // Asking for it is a change of flags, so that nothing stale stays.
    let run = project.ferrozyme(&["run", "--release"]);
    assert_eq!(run.expect_success(), "false false\n");
}

/// Sums of whole numbers, which are the same in any order.
const SUMS: &str = r#"use ferrozyme::autodiff_reverse;

#[autodiff_reverse(gradient, Duplicated, Active, Active)]
fn scaled(x: &[f32], scale: f32) -> f32 {
    x.iter().map(|x| x * x * scale).sum()
}

fn main() {
    let x: Vec<f32> = (0..100).map(|i| i as f32).collect();
    let mut dx = vec![0.0; 100];
    let (value, slope) = gradient(&x, &mut dx, 2.0, 1.0);
    println!("{value} {slope} {}", dx.iter().sum::<f32>());
}
"#;

#[test]
fn derivatives_exist_for_several_processors() {
    let project = Project::program("versions", SUMS);
    let explain = |more: &[&str], flags: &str| {
        let arguments = ["explain", "--release", "--stage", "assembly"];
        let run = project.ferrozyme_with(&[&arguments, more].concat(), |command| {
            command.env("RUSTFLAGS", flags);
        });
        run.expect_success().to_owned()
    };
    let versions = explain(&[], "");
    for register in ["%xmm", "%ymm", "%zmm"] {
        assert!(versions.contains(register), "{register} in {versions}");
    }
    let single = [
        explain(&["--no-multiversion"], ""),
        explain(&["--strict"], ""),
        explain(&[], "-Ctarget-cpu=x86-64"),
        explain(&[], "-Ctarget-feature=+sse3"),
    ];
    for one in single {
        assert!(one.contains("%xmm") && !one.contains("%ymm"), "{one}");
    }
}

#[test]
fn each_version_computes_the_same() {
    let project = Project::program("levels", SUMS);
    for level in ["baseline", "v2", "v3", "v4"] {
        project.write("src/main.rs", &format!("// {level}\n{SUMS}"));
        let run = project.ferrozyme_with(&["run", "--release"], |command| {
            command.env("FERROZYME_PERTURB", format!("level={level}"));
        });
        assert_eq!(run.expect_success(), "656700 328350 19800\n", "{level}");
    }
}
