//! Source for library functions that come as machine code only: `library.c`, compiled when a unit calls one of them.

use crate::Failure;
use crate::clang::Clang;
use ferrozyme_library::{Known, functions};
use std::path::Path;
use std::sync::LazyLock;

/// The source.
const SOURCE: &str = include_str!("library.c");

/// The functions that it exports.
pub(crate) static SYMBOLS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let bodies = functions(|known| (*known == Known::Body).then_some(()));
    bodies.map(|(symbol, ())| symbol).collect()
});

/// The bitcode of the library, if a unit that asks for derivatives mentions one of its functions.
pub(crate) fn for_unit(
    clang: &Clang,
    unit: &[u8],
    folder: &Path,
) -> Result<Option<Vec<u8>>, Failure> {
    let mentions = |name: &str| unit.windows(name.len()).any(|here| here == name.as_bytes());
    if !mentions("__enzyme_") || !SYMBOLS.iter().any(|symbol| mentions(symbol)) {
        return Ok(None);
    }
    compile(clang, folder).map(Some)
}

/// Compiles the library.
pub(crate) fn compile(clang: &Clang, folder: &Path) -> Result<Vec<u8>, Failure> {
    let (source, bitcode) = (folder.join("library.c"), folder.join("library.bc"));
    let failed = |error: std::io::Error| crate::compile::unreadable(&source, &error);
    std::fs::write(&source, SOURCE).map_err(failed)?;
    let options = [
        "-O1",
        "-fno-builtin",
        "-Xclang",
        "-disable-llvm-passes",
        "-gline-tables-only",
        "-w",
        "-c",
        "-emit-llvm",
        "-o",
    ];
    let mut command: Vec<std::ffi::OsString> = options.map(Into::into).to_vec();
    command.extend([bitcode.clone().into(), "-x".into(), "c".into()]);
    command.push(source.clone().into());
    clang.run(command)?;
    std::fs::read(&bitcode).map_err(failed)
}

#[cfg(test)]
mod tests {
    #[test]
    fn functions_with_a_body_have_one() {
        for symbol in super::SYMBOLS.iter() {
            let is_name = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
            let mut places = super::SOURCE.split(symbol).skip(1);
            assert!(places.any(is_name), "library.c has no `{symbol}`");
        }
    }
}
