//! `cargo ferrozyme`: runs cargo so that rustc calls this program as the linker.
//!
//! One program has three roles, which it distinguishes by its arguments ([`run`]):
//!
//! ```text
//! cargo ferrozyme build ──▶ cargo-ferrozyme ferrozyme build           sets flags and wrapper, starts cargo
//!                                └▶ cargo ─▶ cargo-ferrozyme rustc …  the wrapper: starts rustc, shows what the linker says (wrapper.rs)
//!                                                └▶ rustc ─▶ cargo-ferrozyme … --ferrozyme-sysroot=…   the linker (../link)
//! ```

pub mod arguments;
pub mod config;
pub mod explain;
pub mod flags;
pub mod packages;
pub mod rustc_call;
pub mod toolchain;
pub mod wrapper;

use crate::messages;
use crate::records;
use crate::render;
use crate::{link, link::line};
use arguments::CargoArguments;
use config::{Config, Program};
use ferrozyme_driver::Diagnostic;
use std::ffi::OsString;
use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Plays the part that the arguments (without the program's name) say; the result is the exit code.
pub fn run(arguments: Vec<OsString>) -> i32 {
    if line::is_link_line(&arguments) {
        return link::run(&arguments);
    }
    if wrapper::is_wrapper_call(&arguments) {
        return wrapper::run(&arguments);
    }
    let mut words = Vec::new();
    for argument in arguments {
        match argument.into_string() {
            Ok(word) => words.push(word),
            Err(word) => {
                let message = format!("the argument {} is not valid UTF-8", word.display());
                return fail(&Diagnostic::error(message), None);
            }
        }
    }
    // Cargo passes the name of the subcommand first; in a direct call it is missing.
    if words.first().is_some_and(|word| word == "ferrozyme") {
        words.remove(0);
    }
    let colour = arguments::parse(&words).colour;
    run_command(words).unwrap_or_else(|diagnostic| fail(&diagnostic, colour.as_deref()))
}

fn run_command(words: Vec<String>) -> Result<i32, Diagnostic> {
    match words.first().map(String::as_str) {
        None | Some("-h" | "--help" | "help") => {
            let _ = writeln!(stdout(), "{HELP}");
            return Ok(0);
        }
        Some("-V" | "--version") => {
            let _ = writeln!(stdout(), "cargo-ferrozyme {}", env!("CARGO_PKG_VERSION"));
            return Ok(0);
        }
        Some(word) if word.starts_with('+') => {
            return Err(Diagnostic {
                remedy: Some(format!("write `cargo {word} ferrozyme …`")),
                ..Diagnostic::error(format!(
                    "the toolchain `{word}` must come before `ferrozyme`"
                ))
            });
        }
        Some("explain") => return explain::run(&words[1..]),
        Some(_) => {}
    }
    run_cargo(prepare(&words)?)
}

const HELP: &str = "\
Builds Rust programs with derivatives, on the stable toolchain.

Usage: cargo ferrozyme <command of cargo> [--strict] [--no-multiversion] [arguments of cargo]
       cargo ferrozyme explain [function] [--stage <stage>] [arguments of cargo build]

Examples:
  cargo ferrozyme build --release
  cargo ferrozyme run --example gradient
  cargo ferrozyme test --workspace
  cargo ferrozyme explain loss --release
  cargo +nightly ferrozyme bench

Every command of cargo works and takes all its arguments. Your own flags, linker and wrapper are kept.
With `--strict` derivatives do not reorder sums, which is slower and gives the same bits on every machine.
Derivatives also exist for processors with AVX2 and with AVX-512, and the program takes those that the processor can run. With `--no-multiversion`, with
`--strict`, and where flags choose a target CPU or target features, they exist once.
`explain` prints for each derivative what is active, what is saved and why; see `cargo ferrozyme explain --help`.

Options:
  -h, --help     Print help
  -V, --version  Print the version";

/// Cargo with its arguments, and with everything in its environment that makes rustc call us.
pub fn prepare(words: &[String]) -> Result<Command, Diagnostic> {
    let found = arguments::parse(words);
    let driver = std::env::current_exe().map_err(|error| {
        Diagnostic::error(format!(
            "cannot determine the path of this program: {error}"
        ))
    })?;
    let mut folder = std::env::current_dir().map_err(|error| {
        Diagnostic::error(format!("the current folder does not exist: {error}"))
    })?;
    if let Some(change) = &found.folder {
        folder.push(change);
    }
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let config = Config::load(
        &folder,
        cargo_home().as_deref(),
        &found.config,
        environment.collect(),
    )
    .map_err(Diagnostic::error)?;

    let target = choose_target(&found, &config)?;
    let toolchain = toolchain::ask(&config.rustc(), target.as_deref())?;
    toolchain.check()?;

    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = &arguments::without_ours(words);
    let mut command = Command::new(&cargo);
    command.args(words);
    for (program, variable) in [
        (Program::Rustc, "CARGO_ENCODED_RUSTFLAGS"),
        (Program::Rustdoc, "CARGO_ENCODED_RUSTDOCFLAGS"),
    ] {
        let flags = flags::complete_flags(&config, program, &toolchain, &driver, &found);
        command.env(variable, flags.join("\x1f"));
    }
    let user_wrapper = match config.rustc_wrapper() {
        // Inside a build of ours, the user's wrapper is known already.
        Some(wrapper) if Path::new(&wrapper) == driver => std::env::var_os(messages::USER_WRAPPER),
        other => other,
    };
    command.env(messages::USER_WRAPPER, user_wrapper.unwrap_or_default());
    command.env("RUSTC_WRAPPER", &driver);
    if words.iter().any(|word| word == "-q" || word == "--quiet") {
        command.env(messages::QUIET, "1");
    }
    if let Some(workspace) = packages::ask(&cargo, words, &found, &folder, &toolchain.target)? {
        let ours = workspace.target_folder.join(records::FOLDER);
        records::remove_stale_links(&ours);
        command.env(messages::TARGET_FOLDER, &workspace.target_folder);
        let list = ours.join("plain.txt");
        let written = std::fs::create_dir_all(&ours)
            .and_then(|()| write_if_changed(&list, &packages::write_plain(&workspace.plain)));
        // Without the list, macros and build scripts take longer; that is all.
        if written.is_ok() {
            command.env(messages::PLAIN, list);
        }
    }
    Ok(command)
}

/// Several builds may read the file while another one writes it.
fn write_if_changed(path: &Path, text: &str) -> std::io::Result<()> {
    if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Runs cargo and ends as it ends.
pub fn run_cargo(mut command: Command) -> Result<i32, Diagnostic> {
    let status = command
        .status()
        .map_err(|error| cannot_run(&command, &error))?;
    Ok(link::real::exit_code(status))
}

/// Why a program cannot be started.
pub fn cannot_run(command: &Command, error: &std::io::Error) -> Diagnostic {
    let program = Path::new(command.get_program()).display();
    Diagnostic::error(format!("cannot run `{program}`: {error}"))
}

/// The target of the build; `None` for the host. Build scripts and procedural macros then get our flags, too.
fn choose_target(found: &CargoArguments, config: &Config) -> Result<Option<String>, Diagnostic> {
    let targets = if found.targets.is_empty() {
        config.targets()
    } else {
        found.targets.clone()
    };
    match targets.as_slice() {
        [] => Ok(None),
        [only] if only == "host-tuple" => Ok(None),
        [only] => Ok(Some(only.clone())),
        _ => Err(Diagnostic {
            remedy: Some("build for one target at a time".to_owned()),
            ..Diagnostic::error("Ferrozyme cannot build for several targets at once")
        }),
    }
}

fn cargo_home() -> Option<PathBuf> {
    std::env::var_os("CARGO_HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
        .or_else(|| Some(std::env::home_dir()?.join(".cargo")))
}

/// Whether to write in colour, as cargo decides it.
pub fn coloured(option: Option<&str>, terminal: bool) -> bool {
    let variable = std::env::var("CARGO_TERM_COLOR").ok();
    match option.or(variable.as_deref()) {
        Some("always") => true,
        Some("never") => false,
        _ => {
            let off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            terminal && !off
        }
    }
}

fn fail(diagnostic: &Diagnostic, colour: Option<&str>) -> i32 {
    let coloured = coloured(colour, stderr().is_terminal());
    // If this cannot be written either, there is no way to report it.
    let _ = writeln!(stderr(), "{}", render::render(diagnostic, coloured));
    1
}
