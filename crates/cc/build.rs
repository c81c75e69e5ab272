//! Makes a link `ferrozyme-c++` to `ferrozyme-cxx` where cargo puts programs: cargo itself allows no `+` in their names.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // target/release/build/ferrozyme-cc-…/out
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    #[cfg(unix)]
    if let Some(programs) = out.ancestors().nth(3) {
        let link = programs.join("ferrozyme-c++");
        if std::fs::symlink_metadata(&link).is_err() {
            // Without it `ferrozyme-cxx` does the same.
            let _ = std::os::unix::fs::symlink("ferrozyme-cxx", link);
        }
    }
}
