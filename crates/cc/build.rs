//! Makes links where cargo puts programs: `ferrozyme-c++` to `ferrozyme-cxx`, since cargo itself allows no `+` in names, and `ferrozyme-llvm-ar` and `ferrozyme-llvm-ranlib` to `ferrozyme-cc`, since CMake looks for them beside a clang of that name that optimises whole programs.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // target/release/build/ferrozyme-cc-…/out
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    #[cfg(unix)]
    if let Some(programs) = out.ancestors().nth(3) {
        for (name, program) in [
            ("ferrozyme-c++", "ferrozyme-cxx"),
            ("ferrozyme-llvm-ar", "ferrozyme-cc"),
            ("ferrozyme-llvm-ranlib", "ferrozyme-cc"),
        ] {
            let link = programs.join(name);
            if std::fs::symlink_metadata(&link).is_err() {
                // Without them others do the same.
                let _ = std::os::unix::fs::symlink(program, link);
            }
        }
    }
}
