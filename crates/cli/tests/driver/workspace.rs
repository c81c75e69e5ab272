//! Workspaces: derivatives in dependencies, macros and build scripts beside, debug and release, stable and nightly.

use super::project::{Project, Run, SQUARES, SQUARES_OUTPUT, has_nightly, manifest};

fn workspace() -> Project {
    let app = manifest(
        "app",
        "model = { path = \"../model\" }\nconstants = { path = \"../constants\" }\n\
         [build-dependencies]\nshared = { path = \"../shared\" }\n",
    );
    let model = manifest("model", "shared = { path = \"../shared\" }\n");
    let constants = "[package]\nname = \"constants\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
        [lib]\nproc-macro = true\n[dependencies]\nshared = { path = \"../shared\" }\n";
    let shared = "[package]\nname = \"shared\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    let root = "[workspace]\nresolver = \"3\"\nmembers = [\"app\", \"model\", \"constants\", \"shared\"]\n\
        [profile.whole]\ninherits = \"release\"\nlto = \"fat\"\npanic = \"abort\"\nstrip = true\ncodegen-units = 1\n";
    Project::new(
        "workspace",
        &[
            ("Cargo.toml", root),
            ("app/Cargo.toml", &app),
            (
                "app/build.rs",
                "fn main() { println!(\"cargo::rustc-env=SIX={}\", shared::twice(3.0)); }\n",
            ),
            (
                "app/src/main.rs",
                "fn main() {\n    let x = [1.0, 2.0];\n    let mut dx = [0.0; 2];\n    \
                 let y = model::d_loss(&x, &mut dx, 1.0);\n    \
                 println!(\"{y} {dx:?} {} {}\", env!(\"SIX\"), constants::four!());\n}\n\n\
                 #[test]\nfn gradient() {\n    let mut dx = [0.0];\n    model::d_loss(&[3.0], &mut dx, 1.0);\n    \
                 assert_eq!(dx, [12.0]);\n}\n",
            ),
            ("model/Cargo.toml", &model),
            (
                "model/src/lib.rs",
                "//! ```\n//! let mut dx = [0.0];\n//! model::d_loss(&[2.0], &mut dx, 1.0);\n\
                 //! assert_eq!(dx, [8.0]);\n//! ```\n\
                 //!\n//! ```\n//! use ferrozyme::autodiff_reverse;\n\
                 //! #[autodiff_reverse(df, Active, Active)]\n//! fn f(x: f64) -> f64 {\n//!     x * x * x\n//! }\n\
                 //! assert_eq!(df(2.0, 1.0), (8.0, 12.0));\n//! ```\n\
                 use ferrozyme::autodiff_reverse;\n\n\
                 #[autodiff_reverse(d_loss, Duplicated, Active)]\npub fn loss(x: &[f64]) -> f64 {\n    \
                 x.iter().map(|v| shared::twice(v * v)).sum()\n}\n",
            ),
            ("constants/Cargo.toml", constants),
            (
                "constants/src/lib.rs",
                "use proc_macro::TokenStream;\n\n#[proc_macro]\npub fn four(_: TokenStream) -> TokenStream {\n    \
                 format!(\"{}\", shared::twice(2.0)).parse().unwrap()\n}\n",
            ),
            ("shared/Cargo.toml", shared),
            (
                "shared/src/lib.rs",
                "#[inline(never)]\npub fn twice(x: f64) -> f64 {\n    2.0 * x\n}\n",
            ),
        ],
    )
}

const OUTPUT: &str = "10 [4.0, 8.0] 6 4\n";

#[test]
fn derivatives_in_dependencies_run() {
    let project = workspace();
    for arguments in [
        &["run", "-p", "app"][..],
        &["run", "-p", "app", "--release"],
        &["run", "-p", "app", "--profile", "whole"],
        &["run", "-p", "app", "--target", "x86_64-unknown-linux-gnu"],
    ] {
        if arguments.contains(&"--target") && !cfg!(target_arch = "x86_64") {
            continue;
        }
        assert_eq!(
            project.ferrozyme(arguments).expect_success(),
            OUTPUT,
            "{arguments:?}"
        );
    }
}

#[test]
fn tests_and_doctests_run() {
    let run = workspace().ferrozyme(&["test", "--workspace"]);
    let output = run.expect_success();
    assert!(output.contains("test gradient ... ok"), "{output}");
    assert!(
        output.contains("model/src/lib.rs - (line 1) ... ok"),
        "{output}"
    );
    assert!(
        output.contains("model/src/lib.rs - (line 7) ... ok"),
        "{output}"
    );
}

#[test]
fn what_was_built_stays_up_to_date() {
    let project = workspace();
    project.ferrozyme(&["build", "-p", "app"]).expect_success();
    // A plain cargo has its own artefacts beside ours.
    let plain = project.cargo(&["build", "-p", "constants", "-p", "shared"]);
    plain.expect_success();
    let again = project.ferrozyme(&["build", "-p", "app", "-v"]);
    again.expect_success();
    for package in ["app", "model", "shared", "ferrozyme"] {
        assert!(
            again.errors.contains(&format!("Fresh {package} ")),
            "{}",
            again.errors
        );
    }
    let plain = project.cargo(&["build", "-p", "constants", "-p", "shared", "-v"]);
    plain.expect_success();
    assert!(plain.errors.contains("Fresh shared "), "{}", plain.errors);
    assert!(
        plain.errors.contains("Fresh constants "),
        "{}",
        plain.errors
    );
}

#[test]
fn macros_and_build_scripts_are_built_without_our_flags() {
    let project = workspace();
    // What is up to date is not shown, so this needs a target directory of its own.
    let folder = project.folder.join("target-verbose");
    let _ = std::fs::remove_dir_all(&folder);
    let folder = folder.display().to_string();
    let run = project.ferrozyme(&["check", "-p", "app", "-v", "--target-dir", &folder]);
    run.expect_success();
    let plain = std::fs::read_to_string(format!("{folder}/ferrozyme/plain.txt")).expect("the list");
    let root = project.folder.display();
    assert!(
        plain.contains(&format!("library {root}/constants\n")),
        "{plain}"
    );
    assert!(
        plain.contains(&format!("build-script {root}/app\n")),
        "{plain}"
    );
    assert!(
        !plain.contains(&format!("library {root}/shared\n")),
        "{plain}"
    );
}

#[test]
fn runs_with_nightly() {
    if !has_nightly() {
        return;
    }
    let project = Project::program("on-nightly", SQUARES);
    for profile in ["dev", "release"] {
        let mut command = project.command("cargo".as_ref());
        let driver = std::path::Path::new(env!("CARGO_BIN_EXE_cargo-ferrozyme"));
        let folder = driver.parent().expect("in a folder").display();
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{folder}:{path}"));
        command.env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN");
        command.args(["+nightly", "ferrozyme", "run", "--profile", profile]);
        assert_eq!(Run::of(command).expect_success(), SQUARES_OUTPUT);
    }
}
