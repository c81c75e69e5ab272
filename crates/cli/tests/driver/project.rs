//! Packages in temporary folders, and cargo in them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, Once};

/// A folder with files in it, which stays for the next run, so that cargo finds there what it built.
pub(crate) struct Project {
    /// Where it is.
    pub(crate) folder: PathBuf,
}

impl Project {
    /// A workspace with these files. `"FERROZYME"` in them stands for the path of the `ferrozyme` crate.
    pub(crate) fn new(name: &str, files: &[(&str, &str)]) -> Project {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("packages")
            .join(name);
        let project = Project { folder };
        for (path, text) in files {
            project.write(path, text);
        }
        // The versions that this repository uses are on this machine already.
        let lock = project.folder.join("Cargo.lock");
        if !lock.exists() {
            std::fs::copy(repository().join("Cargo.lock"), lock)
                .expect("the repository's lock file");
        }
        project
    }

    /// A package with one program that depends on `ferrozyme`.
    pub(crate) fn program(name: &str, main: &str) -> Project {
        let manifest = manifest(name, "[workspace]\n");
        Project::new(name, &[("Cargo.toml", &manifest), ("src/main.rs", main)])
    }

    /// Writes a file; what is there already is left alone, so that it does not seem newer than it is.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.folder.join(path);
        let ferrozyme = repository().join("crates/ferrozyme");
        let text = text.replace("\"FERROZYME\"", &format!("{ferrozyme:?}"));
        if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
            return;
        }
        std::fs::create_dir_all(path.parent().expect("in the project")).expect("writable");
        std::fs::write(path, text).expect("writable");
    }

    /// `cargo ferrozyme` with these arguments.
    pub(crate) fn ferrozyme(&self, arguments: &[&str]) -> Run {
        self.ferrozyme_with(arguments, |_| {})
    }

    /// `cargo ferrozyme` with these arguments, and something else.
    pub(crate) fn ferrozyme_with(
        &self,
        arguments: &[&str],
        change: impl FnOnce(&mut Command),
    ) -> Run {
        let mut command = self.command(env!("CARGO_BIN_EXE_cargo-ferrozyme").as_ref());
        command.arg("ferrozyme").args(arguments);
        change(&mut command);
        Run::of(command)
    }

    /// Plain cargo with these arguments.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Run {
        let mut command = self.command(env!("CARGO").as_ref());
        command.args(arguments);
        Run::of(command)
    }

    /// A program in the project's folder, in an environment in which cargo is not running.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            let set_by_cargo = name.starts_with("CARGO") && name != "CARGO_HOME";
            if set_by_cargo
                || name.starts_with("RUST") && !name.starts_with("RUSTUP")
                || name.starts_with("FERROZYME")
            {
                command.env_remove(name);
            }
        }
        command
            .env("CARGO", env!("CARGO"))
            .env("CARGO_TARGET_DIR", target_folder())
            .env("CARGO_TERM_COLOR", "never");
        command
    }
}

/// The manifest of a package that depends on `ferrozyme`, and more.
pub(crate) fn manifest(name: &str, more: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [dependencies]\nferrozyme = {{ path = \"FERROZYME\" }}\n{more}"
    )
}

/// The target directory of all projects.
pub(crate) fn target_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("target")
}

/// The root of this repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// How a command ended.
pub(crate) struct Run {
    /// Whether it succeeded.
    pub(crate) success: bool,
    /// What it wrote to the standard output.
    pub(crate) output: String,
    /// What it wrote to the standard error.
    pub(crate) errors: String,
}

impl Run {
    /// Runs a command to its end.
    pub(crate) fn of(mut command: Command) -> Run {
        // The packages share a folder of what is built, in which each run leaves what it decided.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _alone = ONE_AT_A_TIME
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let Output {
            status,
            stdout,
            stderr,
        } = command.output().expect("the program starts");
        Run {
            success: status.success(),
            output: String::from_utf8_lossy(&stdout).into_owned(),
            errors: String::from_utf8_lossy(&stderr).into_owned(),
        }
    }

    /// The standard output of a command that must have succeeded.
    #[track_caller]
    pub(crate) fn expect_success(&self) -> &str {
        assert!(self.success, "failed:\n{}\n{}", self.output, self.errors);
        &self.output
    }

    /// The standard error of a command that must have failed.
    #[track_caller]
    pub(crate) fn expect_failure(&self) -> &str {
        assert!(
            !self.success,
            "did not fail:\n{}\n{}",
            self.output, self.errors
        );
        &self.errors
    }
}

/// Whether the nightly toolchain is installed; says so once if not.
pub(crate) fn has_nightly() -> bool {
    static SAID: Once = Once::new();
    let found = Command::new("rustup")
        .args(["which", "rustc", "--toolchain", "nightly"])
        .env_remove("RUSTUP_TOOLCHAIN")
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        SAID.call_once(|| eprintln!("the nightly toolchain is not installed: not tested"));
    }
    found
}

/// A program with a derivative: prints `14 [2.0, 4.0, 6.0]`.
pub(crate) const SQUARES: &str = "\
use ferrozyme::autodiff_reverse;

#[autodiff_reverse(d_squares, Duplicated, Active)]
fn squares(x: &[f64]) -> f64 {
    x.iter().map(|v| v * v).sum()
}

fn main() {
    let x = [1.0, 2.0, 3.0];
    let mut dx = [0.0; 3];
    let y = d_squares(&x, &mut dx, 1.0);
    println!(\"{y} {dx:?}\");
}
";
/// What [`SQUARES`] prints.
pub(crate) const SQUARES_OUTPUT: &str = "14 [2.0, 4.0, 6.0]\n";
