//! Finds the libLLVM of a Rust toolchain.
//!
//! rustc ships LLVM as a shared library in `<sysroot>/lib`. Which toolchain: the one whose sysroot the caller names, else the one of the compiler in the environment
//! variable `RUSTC`, else that of `rustc` on the path.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

/// A Rust toolchain and its LLVM.
#[derive(Clone, Debug)]
pub struct Toolchain {
    /// What `rustc --print sysroot` says.
    pub sysroot: PathBuf,
    /// The shared library.
    pub library: PathBuf,
}

/// The release of LLVM whose C interface the binding was written for.
pub const KNOWN_MAJOR: u32 = 22;

/// A version of LLVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Counts releases with changes of interfaces.
    pub major: u32,
    /// Counts releases within one of those.
    pub minor: u32,
    /// Counts corrections.
    pub patch: u32,
}

impl Version {
    /// Whether the binding may be used with it; gives whether the release is known. The next one is not, and has to be examined first.
    pub(crate) fn check(self, toolchain: &Toolchain) -> Result<bool, LoadError> {
        match self.major {
            KNOWN_MAJOR => Ok(true),
            major if major == KNOWN_MAJOR + 1 => Ok(false),
            major if major < KNOWN_MAJOR => Err(LoadError::TooOld {
                toolchain: toolchain.describe(),
                library: toolchain.library.clone(),
                found: self,
            }),
            _ => Err(self.too_new(toolchain, None)),
        }
    }

    /// Says that the binding does not know it.
    pub(crate) fn too_new(self, toolchain: &Toolchain, difference: Option<String>) -> LoadError {
        LoadError::TooNew {
            toolchain: toolchain.describe(),
            library: toolchain.library.clone(),
            found: self,
            difference,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Why LLVM could not be loaded.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each case and field is")]
pub enum LoadError {
    #[error("cannot run `{compiler}` to find its sysroot: {reason}")]
    NoCompiler { compiler: String, reason: String },
    #[error(
        "the Rust toolchain at {} has no shared LLVM library (lib/libLLVM*.{extension})",
        sysroot.display()
    )]
    NoLibrary {
        sysroot: PathBuf,
        extension: &'static str,
    },
    #[error("cannot load LLVM of {toolchain} from {}: {reason}", library.display())]
    CannotOpen {
        toolchain: String,
        library: PathBuf,
        reason: String,
    },
    #[error(
        "{toolchain} has LLVM {found} ({}), which is older than LLVM {KNOWN_MAJOR}, the first that this Ferrozyme works with",
        library.display()
    )]
    TooOld {
        toolchain: String,
        library: PathBuf,
        found: Version,
    },
    #[error(
        "{toolchain} has LLVM {found} ({}), which is newer than this Ferrozyme: it was made for LLVM {KNOWN_MAJOR}{}",
        library.display(),
        difference.as_ref().map(|found| format!(", and LLVM's C interface has changed ({found})")).unwrap_or_default()
    )]
    TooNew {
        toolchain: String,
        library: PathBuf,
        found: Version,
        /// What the binding found to be otherwise, if it looked.
        difference: Option<String>,
    },
    #[error(
        "LLVM of {toolchain} ({}) lacks the function {symbol}",
        library.display()
    )]
    MissingSymbol {
        toolchain: String,
        library: PathBuf,
        symbol: &'static str,
    },
    #[error("{0} processors are not supported: Ferrozyme compiles for x86_64")]
    Platform(&'static str),
}

impl LoadError {
    /// What the user can do.
    pub fn remedy(&self) -> String {
        match self {
            LoadError::NoCompiler { .. } => "put rustc on the path or name it in the environment variable RUSTC".to_owned(),
            LoadError::NoLibrary { .. } => "Ferrozyme uses the LLVM of the user's own rustc; install a toolchain from rustup, or name its rustc in RUSTC".to_owned(),
            LoadError::TooOld { .. } => "use a newer Rust toolchain: 1.95 or later".to_owned(),
            LoadError::TooNew { .. } => format!("use a Rust toolchain with LLVM {KNOWN_MAJOR}, which is that of Rust 1.95 to 1.97 (`rustup toolchain install 1.95`, then `cargo +1.95 ferrozyme …`), or a newer Ferrozyme"),
            LoadError::CannotOpen { .. } | LoadError::MissingSymbol { .. } => "use a toolchain from rustup; Rust 1.95 to 1.97 are known to work".to_owned(),
            LoadError::Platform(_) => "compile on x86_64".to_owned(),
        }
    }
}

impl Toolchain {
    /// The toolchain of `RUSTC`, or of the `rustc` on the path.
    pub fn of_environment() -> Result<Toolchain, LoadError> {
        let compiler = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let failed = |reason: String| LoadError::NoCompiler {
            compiler: compiler.clone(),
            reason,
        };
        let output = Command::new(&compiler)
            .args(["--print", "sysroot"])
            .output()
            .map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            return Err(failed(
                String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            ));
        }
        Toolchain::at(Path::new(String::from_utf8_lossy(&output.stdout).trim()))
    }

    /// The toolchain with this sysroot.
    pub fn at(sysroot: &Path) -> Result<Toolchain, LoadError> {
        let extension = if cfg!(target_os = "macos") {
            "dylib"
        } else {
            "so"
        };
        let missing = || LoadError::NoLibrary {
            sysroot: sysroot.to_owned(),
            extension,
        };
        let entries = std::fs::read_dir(sysroot.join("lib")).map_err(|_| missing())?;
        // `libLLVM.so.22.1-rust-1.95.0-stable` is the library; `libLLVM-22-rust-1.95.0-stable.so` beside it is a linker script that names it.
        let mut candidates: Vec<PathBuf> = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with("libLLVM") && (name.contains(".so") || name.ends_with(".dylib"))
            })
            .collect();
        candidates.sort_by_key(|path| std::fs::metadata(path).map_or(0, |data| data.len()));
        let library = candidates.pop().ok_or_else(missing)?;
        Ok(Toolchain {
            sysroot: sysroot.to_owned(),
            library,
        })
    }

    /// The toolchain's name for messages: the last part of its sysroot.
    pub fn describe(&self) -> String {
        let name = self.sysroot.file_name().map_or_else(
            || self.sysroot.to_string_lossy(),
            |name| name.to_string_lossy(),
        );
        format!("the Rust toolchain {name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(major: u32) -> Result<bool, LoadError> {
        let toolchain = Toolchain {
            sysroot: PathBuf::from("/toolchains/1.99"),
            library: PathBuf::from("/toolchains/1.99/lib/libLLVM.so"),
        };
        let version = Version {
            major,
            minor: 1,
            patch: 0,
        };
        version.check(&toolchain)
    }

    #[test]
    fn this_release_and_the_next_are_tried() {
        assert!(check(KNOWN_MAJOR).unwrap());
        assert!(!check(KNOWN_MAJOR + 1).unwrap());
    }

    #[test]
    fn others_are_refused_with_what_to_do() {
        let error = check(KNOWN_MAJOR + 2).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the Rust toolchain 1.99 has LLVM 24.1.0 (/toolchains/1.99/lib/libLLVM.so), which is newer than this Ferrozyme: it was made for LLVM 22"
        );
        assert!(error.remedy().contains("rustup toolchain install 1.95"));
        let error = check(KNOWN_MAJOR - 1).unwrap_err();
        assert!(error.to_string().contains("LLVM 21.1.0") && error.remedy().contains("1.95"));
    }
}
