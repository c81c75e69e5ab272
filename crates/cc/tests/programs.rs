//! Compiles and runs every program of `tests/c`, and the model of `models/gpt2-c`, at several optimisation levels: `cargo test -p ferrozyme-cc --test programs -- square`. Its README says what the first lines of
//! the files mean.
//!
//! `FERROZYME_LEVELS=0123` chooses the levels. Some programs run also under choices that must not change a derivative; `FERROZYME_PERTURB=inline=none` runs all of them under one, and
//! then a derivative may also be refused. `FERROZYME_SANITIZE` (`address`, `memory`, `undefined`, `valgrind`) looks at what they do to memory; `thread` looks for races in those with OpenMP. `FERROZYME_RUNS=100` repeats each derivative
//! that runs on several threads so often.

use ferrozyme_nests::expectations;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::{env, fs, io};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/c");
    if !has_clang() {
        eprintln!(
            "note: no clang 22: the C and C++ programs are left out (Debian: apt-get install clang-22)"
        );
        return ExitCode::SUCCESS;
    }
    let files = match find_files(&root) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("{}: {error}", root.display());
            return ExitCode::FAILURE;
        }
    };
    let parallel = can_link_openmp();
    if !parallel {
        eprintln!(
            "note: no OpenMP: the programs that need it are left out (Debian: apt-get install libomp-22-dev)"
        );
    }
    let eigen = Path::new(EIGEN).exists();
    if !eigen {
        eprintln!(
            "note: no Eigen: the programs that need it are left out (Debian: apt-get install libeigen3-dev)"
        );
    }
    let levels = env::var("FERROZYME_LEVELS").unwrap_or_else(|_| "02".to_owned());
    let perturbation = env::var(VARIABLE).unwrap_or_default();
    let only_parallel = env::var(SANITIZE).is_ok_and(|name| name == THREAD);
    let mut trials = Vec::new();
    // What takes longest comes first, so that no core waits for it at the end.
    for level in levels.chars() {
        for openmp in [false, true] {
            let threads = if openmp { " -fopenmp" } else { "" };
            let perturbation = perturbation.clone();
            if parallel && openmp || !openmp && !only_parallel {
                trials.push(Trial::test(
                    format!("gpt2-c -O{level}{threads}"),
                    move || run_model(level, openmp, &perturbation),
                ));
            }
        }
    }
    let programs = files.clone();
    for path in files {
        for level in levels.chars() {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let path = path.clone();
            let is_parallel = name.starts_with("openmp_");
            if is_parallel && !parallel
                || !is_parallel && only_parallel
                || name.ends_with("_eigen.cpp") && !eigen
            {
                continue;
            }
            let perturbation = perturbation.clone();
            trials.push(Trial::test(format!("{name} -O{level}"), move || {
                run_program(&path, level, &perturbation)
            }));
        }
    }
    if perturbation.is_empty() && env::var_os(SANITIZE).is_none() {
        trials.extend(sample(&programs, parallel));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// What the driver reads a perturbation from.
const VARIABLE: &str = "FERROZYME_PERTURB";

/// What looks at the memory of programs while they run.
const SANITIZE: &str = "FERROZYME_SANITIZE";

/// The sanitizer that looks for races.
const THREAD: &str = "thread";

/// Tells it in which order OpenMP's threads do things.
const HAPPENS_BEFORE: &str = "openmp/happens_before.c";

/// The runtime of OpenMP itself is not instrumented.
const RACES: &str = "ignore_noninstrumented_modules=1";

/// Where Debian's package puts Eigen.
const EIGEN: &str = "/usr/include/eigen3";

/// Perturbations that the sample has.
const PERTURBATIONS: &[&str] = &[
    "inline=none",
    "plan=save,at-once=off",
    "inline=half:1",
    "mode=split",
    "prepare=O1",
    "plan=recompute,inline=all",
    "prepare=O0",
];

/// Every so many of the programs is in the sample.
const SAMPLE: usize = 4;

/// Some of the programs, each under another choice that must not change a derivative.
fn sample(files: &[PathBuf], parallel: bool) -> Vec<Trial> {
    let mut trials = Vec::new();
    for (number, path) in files.iter().step_by(SAMPLE).enumerate() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("openmp_") && !parallel || name.ends_with("_eigen.cpp") {
            continue;
        }
        let perturbation = PERTURBATIONS[number % PERTURBATIONS.len()];
        let path = path.clone();
        trials.push(Trial::test(
            format!("{name} -O2 {perturbation}"),
            move || run_program(&path, '2', perturbation),
        ));
    }
    trials
}

fn has_clang() -> bool {
    let named = env::var_os("FERROZYME_CLANG");
    let names = named.map_or_else(
        || vec!["clang-22".into(), "clang".into()],
        |name| vec![name],
    );
    names.iter().any(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("version 22."))
    })
}

/// Whether clang finds its runtime for OpenMP.
fn can_link_openmp() -> bool {
    let Ok(folder) = tempfile::tempdir() else {
        return false;
    };
    let source = folder.path().join("parallel.c");
    let compiled = fs::write(&source, "int main(void) { return 0; }").and_then(|()| {
        Command::new(env!("CARGO_BIN_EXE_ferrozyme-cc"))
            .arg("-fopenmp")
            .arg(&source)
            .arg("-o")
            .arg(folder.path().join("parallel"))
            .output()
    });
    compiled.is_ok_and(|output| output.status.success())
}

fn find_files(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".c") || name.ends_with(".cpp") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// What the first line of a program says.
struct Header {
    flags: Vec<String>,
    with: Vec<String>,
    output: Option<String>,
    refused: Option<String>,
    stops: Option<String>,
}

fn read_header(text: &str) -> Result<Header, Failed> {
    let line = text.lines().next().unwrap_or_default();
    let line = line
        .strip_prefix("// ")
        .ok_or("the first line must say how to build the program")?;
    let mut header = Header {
        flags: Vec::new(),
        with: Vec::new(),
        output: None,
        refused: None,
        stops: None,
    };
    let (line, refused) = match line.split_once("refused: ") {
        Some((before, refused)) => (before.trim_end_matches("; "), Some(refused.to_owned())),
        None => (line, None),
    };
    header.refused = refused;
    let (line, stops) = match line.split_once("stops: ") {
        Some((before, stops)) => (before.trim_end_matches("; "), Some(stops.to_owned())),
        None => (line, None),
    };
    header.stops = stops;
    if line.is_empty() {
        return Ok(header);
    }
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    for part in line.split("; ") {
        match part.split_once(": ") {
            Some(("flags", flags)) => header.flags = words(flags),
            Some(("with", files)) => header.with = words(files),
            Some(("output", output)) => header.output = Some(output.to_owned()),
            _ if part == "flags:" => {}
            _ => return Err(format!("the first line says `{part}`, which means nothing").into()),
        }
    }
    Ok(header)
}

fn run_program(path: &Path, level: char, perturbation: &str) -> Result<(), Failed> {
    let text = fs::read_to_string(path)?;
    let header = read_header(&text)?;
    let compiler = match path.extension().is_some_and(|extension| extension == "c") {
        true => env!("CARGO_BIN_EXE_ferrozyme-cc"),
        false => env!("CARGO_BIN_EXE_ferrozyme-cxx"),
    };
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("program");
    let sources = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default();
    let sanitizer = env::var(SANITIZE).ok();
    let expects_products = level == '2' && perturbation.is_empty() && sanitizer.is_none();
    let expects_products = expects_products && text.contains("\n// raised: ");
    let compiled = Command::new(compiler)
        .env(VARIABLE, perturbation)
        .envs(expects_products.then_some(("FERROZYME_CC_EXPLAIN", "")))
        .current_dir(sources)
        .arg(format!("-O{level}"))
        .arg(name)
        .args(&header.with)
        .args(&header.flags)
        .args(instrumentation(sanitizer.as_deref()))
        .args((!perturbation.is_empty() || sanitizer.is_some()).then_some("-DPERTURBED"))
        .arg("-o")
        .arg(&program)
        .output()?;
    if !perturbation.is_empty() && is_refusal(&compiled) {
        // Which of several reasons is found may depend on the choice.
        if header.refused.is_none() {
            note_refusal(
                &format!("{} -O{level}", name.display()),
                perturbation,
                &compiled,
            );
        }
        return Ok(());
    }
    if let Some(refused) = &header.refused {
        return check_refused(&text, &name.to_string_lossy(), refused, &compiled);
    }
    check_success("compiling", &compiled)?;
    if expects_products {
        expectations::compare(&[&text], &String::from_utf8_lossy(&compiled.stderr))?;
    }
    let mut run = match sanitizer.as_deref() {
        Some("valgrind") => {
            let mut valgrind = Command::new("valgrind");
            valgrind
                .args(["--quiet", "--error-exitcode=99"])
                .arg(&program);
            valgrind
        }
        _ => Command::new(&program),
    };
    let ran = run
        .env("ASAN_OPTIONS", "detect_leaks=0")
        .env("TSAN_OPTIONS", RACES)
        .current_dir(sources)
        .output()?;
    if let Some(stops) = &header.stops {
        let said = String::from_utf8_lossy(&ran.stderr);
        // With little preparation, it is C++'s runtime that speaks of an exception that nobody catches.
        let uncaught = !perturbation.is_empty() && said.contains("terminate called after throwing");
        return match (uncaught || said.contains(stops)) && ran.status.code().is_none() {
            true => Ok(()),
            false => Err(format!("it ended with {}, and said:\n{said}", ran.status).into()),
        };
    }
    check_success("running", &ran)?;
    let printed = String::from_utf8_lossy(&ran.stdout);
    match header.output {
        Some(expected) if printed.trim_end() != expected => {
            Err(format!("it printed `{}`, expected `{expected}`", printed.trim_end()).into())
        }
        _ => Ok(()),
    }
}

/// The whole of GPT-2, in double precision: its automatic gradient against the hand-written one and against finite differences.
fn run_model(level: char, openmp: bool, perturbation: &str) -> Result<(), Failed> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/gpt2-c");
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("gpt2-c");
    let files = [
        "layers.c", "model.c", "random.c", "check.c", "bench.c", "main.c",
    ];
    let sanitizer = env::var(SANITIZE).ok().filter(|name| name == THREAD);
    let compiled = Command::new(env!("CARGO_BIN_EXE_ferrozyme-cc"))
        .current_dir(sources)
        .arg(format!("-O{level}"))
        .args(openmp.then_some("-fopenmp"))
        .args(instrumentation(sanitizer.as_deref()))
        .arg("-DREAL=double")
        .args(files)
        .arg("-o")
        .arg(&program)
        .arg("-lm")
        .output()?;
    if !perturbation.is_empty() && is_refusal(&compiled) {
        note_refusal(&format!("gpt2-c -O{level}"), perturbation, &compiled);
        return Ok(());
    }
    check_success("compiling", &compiled)?;
    let ran = Command::new(&program)
        .arg("check")
        .env("TSAN_OPTIONS", RACES)
        .output()?;
    if !ran.status.success() {
        return Err(String::from_utf8_lossy(&ran.stdout).into_owned().into());
    }
    Ok(())
}

/// What the compiler is told for a sanitizer.
fn instrumentation(sanitizer: Option<&str>) -> Vec<String> {
    let Some(name) = sanitizer.filter(|name| *name != "valgrind") else {
        return Vec::new();
    };
    let mut flags = vec![format!("-fsanitize={name}")];
    if name == THREAD {
        let tool = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/c");
        flags.push(tool.join(HAPPENS_BEFORE).to_string_lossy().into_owned());
    }
    flags
}

/// Says that a program is refused only under a choice: that is allowed, and worth knowing.
fn note_refusal(program: &str, perturbation: &str, compiled: &Output) {
    let said = String::from_utf8_lossy(&compiled.stderr);
    let reason = said.lines().find(|line| line.contains("error: "));
    eprintln!(
        "{perturbation}: {program}: refused: {}",
        reason.unwrap_or_default()
    );
}

/// Whether a program was refused in good order.
fn is_refusal(compiled: &Output) -> bool {
    let said = String::from_utf8_lossy(&compiled.stderr);
    compiled.status.code() == Some(1)
        && said.contains("error: ")
        && !said.contains("bug in Ferrozyme")
}

fn check_success(what: &str, output: &Output) -> Result<(), Failed> {
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(format!("{what} ended with {}:\n{text}", output.status).into())
}

/// The diagnostic must be there, with its code, at the line marked `// here`, and what can be done about it.
fn check_refused(text: &str, name: &str, refused: &str, compiled: &Output) -> Result<(), Failed> {
    let said = String::from_utf8_lossy(&compiled.stderr);
    if compiled.status.code() != Some(1) {
        return Err(format!("it ended with {}:\n{said}", compiled.status).into());
    }
    let line = text
        .lines()
        .position(|line| line.trim_end().ends_with("// here"))
        .ok_or("no line ends in `// here`")?
        + 1;
    let place = format!("{name}:{line}:");
    let at_place = |message: &&str| message.starts_with(&place);
    let fits = said
        .lines()
        .filter(at_place)
        .any(|message| message.ends_with(refused));
    let helps = said
        .lines()
        .filter(at_place)
        .any(|message| message.contains(": note: help: "));
    match fits && helps && refused.contains("[FZ") {
        true => Ok(()),
        false => Err(format!(
            "expected `{name}:{line}:…: {refused}` with a code and help, but it said:\n{said}"
        )
        .into()),
    }
}
