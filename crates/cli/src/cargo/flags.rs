//! The flags with which rustc makes bitcode and runs the driver as its linker, after the user's flags.

use super::arguments::CargoArguments;
use super::config::{Config, Program};
use super::toolchain::Toolchain;
use crate::link::line::OUR_PREFIX;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// All flags for a program: the user's, then ours.
pub fn complete_flags(
    config: &Config,
    program: Program,
    toolchain: &Toolchain,
    driver: &Path,
    arguments: &CargoArguments,
) -> Vec<String> {
    let user = config.flags(program, &toolchain.target, &toolchain.cfgs);
    let mut flags = without_ours(user);
    let linker = linker_of(&flags).or_else(|| config.linker(&toolchain.target, &toolchain.cfgs));
    let has_processor = chooses_processor(&flags);
    flags.push(BITCODE.to_owned());
    flags.push(format!("-Clinker={}", driver.display()));
    flags.push(format!(
        "-Clink-arg={OUR_PREFIX}sysroot={}",
        toolchain.sysroot.display()
    ));
    if arguments.strict {
        flags.push(format!("-Clink-arg={OUR_PREFIX}strict"));
    }
    if arguments.no_multiversion || has_processor {
        flags.push(format!("-Clink-arg={OUR_PREFIX}no-multiversion"));
    }
    if let Some(linker) = linker {
        // rustc tells from a linker's name how to talk to it, and our name does not say.
        if let Some(flavour) = flavour_of(&linker)
            && !flags.iter().any(|flag| flag.contains("linker-flavor="))
        {
            flags.push(format!("-Clinker-flavor={flavour}"));
        }
        flags.push(format!(
            "-Clink-arg={OUR_PREFIX}linker={}",
            linker.display()
        ));
    }
    if program == Program::Rustdoc {
        // For tests in the documentation. The wrapper does the same for rustc, which knows the profile.
        flags.push("-Cdebuginfo=full".to_owned());
    } else {
        // rustc's own link-time optimisation would vectorise and unroll before we see the code. The linker does it afterwards.
        flags.push(NO_LTO.to_owned());
    }
    flags.extend(CFGS.map(str::to_owned));
    flags
}

const BITCODE: &str = "-Clinker-plugin-lto";
const NO_LTO: &str = "-Clto=off";
const CFGS: [&str; 2] = ["--cfg=ferrozyme", "--check-cfg=cfg(ferrozyme)"];

/// The arguments of rustc without the flags for bitcode. The linker stays: it may get bitcode of other crates.
pub fn without_bitcode(arguments: &[OsString]) -> Vec<OsString> {
    // Our flags are consecutive; the user may have the same flags elsewhere.
    let end = CFGS[CFGS.len() - 1];
    let last = arguments.iter().rposition(|argument| argument == end);
    let before = &arguments[..last.unwrap_or(0)];
    let first = before.iter().rposition(|argument| argument == BITCODE);
    let ours = match (first, last) {
        (Some(first), Some(last)) => first..last,
        _ => 0..0,
    };
    let kept = arguments.iter().enumerate().filter(|(index, argument)| {
        !(ours.contains(index) && (*argument == BITCODE || *argument == NO_LTO))
    });
    kept.map(|(_, argument)| argument.clone()).collect()
}

/// Flags that a cargo-ferrozyme around this one has added already are taken out again.
fn without_ours(flags: Vec<String>) -> Vec<String> {
    let mark = format!("-Clink-arg={OUR_PREFIX}");
    if !flags.iter().any(|flag| flag.starts_with(&mark)) {
        return flags;
    }
    let end = flags
        .iter()
        .rposition(|flag| flag == BITCODE)
        .unwrap_or(flags.len());
    flags[..end].to_vec()
}

/// The options for code generation among flags, as `name=value`.
fn codegen_options(flags: &[String]) -> impl Iterator<Item = &str> {
    let before = std::iter::once("").chain(flags.iter().map(String::as_str));
    before.zip(flags).filter_map(|(before, flag)| match before {
        "-C" | "--codegen" => Some(flag.as_str()),
        _ => flag
            .strip_prefix("-C")
            .or_else(|| flag.strip_prefix("--codegen=")),
    })
}

/// The linker that flags choose; the last choice counts.
fn linker_of(flags: &[String]) -> Option<PathBuf> {
    let linkers = codegen_options(flags).filter_map(|option| option.strip_prefix("linker="));
    linkers.last().map(PathBuf::from)
}

/// Whether flags say what processor the program is for.
fn chooses_processor(flags: &[String]) -> bool {
    codegen_options(flags).any(|option| match option.split_once('=') {
        Some(("target-cpu", _)) => true,
        // How the C library is linked is a feature, too, but not one of the processor.
        Some(("target-feature", features)) => features
            .split(',')
            .any(|feature| !matches!(feature, "+crt-static" | "-crt-static")),
        _ => false,
    })
}

/// How to talk to a linker that is called without a compiler around it.
fn flavour_of(linker: &Path) -> Option<&'static str> {
    match linker.file_name()?.to_str()? {
        "ld" | "ld.bfd" | "ld.gold" | "mold" => Some("ld"),
        "ld.lld" | "rust-lld" | "lld" => Some("ld.lld"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(variable: &str) -> Vec<String> {
        let environment = vec![("CARGO_ENCODED_RUSTFLAGS".to_owned(), variable.to_owned())];
        let folder = tempfile::tempdir().expect("a temporary folder");
        let config = Config::load(folder.path(), None, &[], environment).expect("empty");
        let toolchain = Toolchain {
            sysroot: "/sysroot".into(),
            host: String::new(),
            target: String::new(),
            cfgs: Vec::new(),
        };
        complete_flags(
            &config,
            Program::Rustc,
            &toolchain,
            Path::new("/bin/driver"),
            &CargoArguments::default(),
        )
    }

    #[test]
    fn user_flags_come_first() {
        let flags = complete("-Ctarget-cpu=native\x1f-C\x1flinker=clang");
        assert_eq!(
            flags,
            [
                "-Ctarget-cpu=native",
                "-C",
                "linker=clang",
                "-Clinker-plugin-lto",
                "-Clinker=/bin/driver",
                "-Clink-arg=--ferrozyme-sysroot=/sysroot",
                "-Clink-arg=--ferrozyme-no-multiversion",
                "-Clink-arg=--ferrozyme-linker=clang",
                "-Clto=off",
                "--cfg=ferrozyme",
                "--check-cfg=cfg(ferrozyme)",
            ]
        );
        // Inside a build of ours nothing is added twice.
        assert_eq!(complete(&flags.join("\x1f")), flags);
        let arguments: Vec<OsString> = flags.iter().map(OsString::from).collect();
        let left = without_bitcode(&arguments);
        assert_eq!(left.len(), arguments.len() - 2);
        assert!(!left.contains(&BITCODE.into()) && !left.contains(&NO_LTO.into()));
        let bare = complete("-Clinker=/usr/bin/ld.lld");
        assert!(bare.contains(&"-Clinker-flavor=ld.lld".to_owned()));
    }

    #[test]
    fn a_processor_is_chosen_by_flags() {
        let chosen = |flags: &str| {
            let ours = "-Clink-arg=--ferrozyme-no-multiversion".to_owned();
            complete(flags).contains(&ours)
        };
        assert!(chosen("-C\x1ftarget-cpu=x86-64"));
        assert!(chosen("--codegen=target-feature=+crt-static,+avx"));
        assert!(!chosen("-Ctarget-feature=-crt-static"));
        assert!(!chosen("-Copt-level=3"));
    }
}
