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
