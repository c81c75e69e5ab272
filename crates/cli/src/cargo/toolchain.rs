//! The user's rustc: its path, its target, and whether it supports derivatives.

use crate::link::real::lld_folder;
use cargo_platform::Cfg;
use ferrozyme_driver::{Diagnostic, check_toolchain, is_supported_target};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

/// A compiler and its target.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// The folder with `lib/rustlib` in it.
    pub sysroot: PathBuf,
    /// The host triple.
    pub host: String,
    /// The target triple.
    pub target: String,
    /// The configuration of the target.
    pub cfgs: Vec<Cfg>,
}

/// Asks a compiler; without a target, for the host.
///
/// # Errors
/// If it cannot be run or does not know the target.
pub fn ask(rustc: &Path, target: Option<&str>) -> Result<Toolchain, Diagnostic> {
    let mut command = Command::new(rustc);
    command.args(["--print=sysroot", "--print=host-tuple", "--print=cfg"]);
    if let Some(target) = target {
        command.args(["--target", target]);
    }
    let output = command
        .output()
        .map_err(|error| Diagnostic::error(format!("cannot run `{}`: {error}", rustc.display())))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(Diagnostic {
            notes: errors.lines().take(4).map(str::to_owned).collect(),
            remedy: Some("Ferrozyme needs rustc 1.95 or newer".to_owned()),
            ..Diagnostic::error(format!("`{}` does not report its target", rustc.display()))
        });
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    let sysroot = PathBuf::from(lines.next().unwrap_or_default());
    let host = lines.next().unwrap_or_default().to_owned();
    Ok(Toolchain {
        sysroot,
        target: target.map_or_else(|| host.clone(), str::to_owned),
        host,
        cfgs: lines.filter_map(|line| Cfg::from_str(line).ok()).collect(),
    })
}

impl Toolchain {
    /// Reports early if this compiler or target does not support derivatives.
    ///
    /// # Errors
    /// If so, with the reason.
    pub fn check(&self) -> Result<(), Diagnostic> {
        let remedy = "Ferrozyme runs on Linux with glibc, on x86-64; install Rust there from https://rustup.rs";
        for (role, triple) in [("host", &self.host), ("target", &self.target)] {
            if !is_supported(triple) {
                return Err(Diagnostic {
                    remedy: Some(remedy.to_owned()),
                    ..Diagnostic::error(format!("Ferrozyme does not support the {role} `{triple}`"))
                });
            }
        }
        if let Err(mut problems) = check_toolchain(&self.sysroot)
            && let Some(problem) = problems.pop()
        {
            return Err(problem);
        }
        if lld_folder(&self.sysroot).is_none() {
            return Err(Diagnostic {
                remedy: Some("use a toolchain from https://rustup.rs, which has it".to_owned()),
                ..Diagnostic::error(format!(
                    "the Rust toolchain at {} has no rust-lld, with which Ferrozyme links",
                    self.sysroot.display()
                ))
            });
        }
        Ok(())
    }
}

fn is_supported(triple: &str) -> bool {
    is_supported_target(triple) && triple.ends_with("-linux-gnu")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toolchain(sysroot: &Path, host: &str, target: &str) -> Toolchain {
        Toolchain {
            sysroot: sysroot.to_owned(),
            host: host.to_owned(),
            target: target.to_owned(),
            cfgs: Vec::new(),
        }
    }

    #[test]
    fn says_what_is_missing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let linux = "x86_64-unknown-linux-gnu";
        let message = |toolchain: Toolchain| toolchain.check().expect_err("unsupported").message;
        assert_eq!(
            message(toolchain(
                folder.path(),
                "x86_64-pc-windows-msvc",
                "x86_64-pc-windows-msvc"
            )),
            "Ferrozyme does not support the host `x86_64-pc-windows-msvc`"
        );
        assert_eq!(
            message(toolchain(folder.path(), linux, "wasm32-unknown-unknown")),
            "Ferrozyme does not support the target `wasm32-unknown-unknown`"
        );
        let arm = "aarch64-unknown-linux-gnu";
        assert_eq!(
            message(toolchain(folder.path(), arm, arm)),
            "Ferrozyme does not support the host `aarch64-unknown-linux-gnu`"
        );
        let none = message(toolchain(folder.path(), linux, linux));
        assert!(none.contains("has no shared LLVM library"), "{none}");
        std::fs::create_dir(folder.path().join("lib")).expect("writable");
        std::fs::write(folder.path().join("lib/libLLVM.so.22.1"), "").expect("writable");
        let none = message(toolchain(folder.path(), linux, linux));
        assert!(
            none.starts_with("cannot load LLVM of the Rust toolchain"),
            "{none}"
        );
    }
}
