//! Finds the libLLVM of a Rust toolchain.
//!
//! rustc ships LLVM as a shared library in `<sysroot>/lib`. Which toolchain: the one whose sysroot the caller names, else the one of the compiler in the environment
//! variable `RUSTC`, else that of `rustc` on the path.

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
        "{toolchain} has LLVM {found} ({}), but this Ferrozyme knows LLVM {supported}",
        library.display()
    )]
    WrongVersion {
        toolchain: String,
        library: PathBuf,
        found: String,
        supported: u32,
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
            LoadError::WrongVersion { supported, .. } => format!("use a Rust toolchain with LLVM {supported} (1.95 to 1.97), or a newer Ferrozyme"),
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
