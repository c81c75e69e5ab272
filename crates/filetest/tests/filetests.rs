//! Runs every file under `filetests` as a test named after it: `cargo test -p ferrozyme-filetest -- reverse/sum`.
//!
//! With `FERROZYME_BLESS=1` what comes out is written into the files instead of being compared.

use ferrozyme_filetest::{Outcome, graph, run};
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../filetests");
    let bless = env::var_os("FERROZYME_BLESS").is_some_and(|value| value == "1");
    let mut files = Vec::new();
    if let Err(error) = find_files(&root, &mut files) {
        eprintln!("{}: {error}", root.display());
        return ExitCode::FAILURE;
    }
    files.sort();
    let trials = files
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix(&root).unwrap_or(&path).with_extension("");
            let name = name.to_string_lossy().replace('\\', "/");
            Trial::test(name, move || run_file(&path, bless))
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn run_file(path: &Path, bless: bool) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let outcome = match is_graph(path) {
        true => graph::run(&text, bless)?,
        false => run(&text, bless)?,
    };
    if let Outcome::Rewritten(text) = outcome {
        fs::write(path, text)?;
    }
    Ok(())
}

/// Files about tensor graphs end in `fzg`.
fn is_graph(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "fzg")
}

fn find_files(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find_files(&path, files)?;
        } else if is_graph(&path) || path.extension().is_some_and(|extension| extension == "fz") {
            files.push(path);
        }
    }
    Ok(())
}
