//! The linker: rustc runs it at the end. It adds the derivatives and runs the real linker.
//!
//! ```text
//! rustc ── link line ──▶ read files ── no request ──▶ become the real linker
//!                            │
//!                            ▼
//!            modules (inputs.rs) ──▶ remembered? (cache.rs) ──no──▶ ferrozyme_driver::differentiate
//!                            │                                              │
//!                            ▼                                              ▼
//!            link line with the modules rewritten and the derivatives added ──▶ the real linker (real.rs)
//! ```

pub mod allocator;
pub mod archive;
pub mod bitcode;
pub mod cache;
pub mod files;
pub mod inputs;
pub mod line;
pub mod real;
pub mod staticlib;

use crate::messages::{self, LinkReport, Message};
use crate::records::{self, Record};
use crate::render;
use cache::{Entry, Recorded};
use ferrozyme_driver::{
    Diagnostic, Inputs, Level, Options, Output, Perturbation, REQUEST, Report, Severity, Timing,
    differentiate,
};
use files::{File, Kind};
use inputs::LinkInputs;
use line::LinkLine;
use memchr::memmem;
use std::ffi::OsString;
use std::io::{Write, stderr};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Links. The result is the exit code; where nothing is to be done, the process becomes the real linker.
pub fn run(arguments: &[OsString]) -> i32 {
    match try_run(arguments) {
        Ok(code) => code,
        Err(diagnostics) => {
            report_diagnostics(&diagnostics);
            1
        }
    }
}

fn try_run(arguments: &[OsString]) -> Result<i32, Vec<Diagnostic>> {
    let start = Instant::now();
    let mut line = line::parse(arguments).map_err(plain)?;
    let user_files = files::read_user_files(&line).map_err(plain)?;
    allocator::replace_allocator_shim(&mut line, &user_files)?;
    if !files::mention_requests(&user_files) {
        let bitcode = files::hold_bitcode(&user_files);
        drop(user_files);
        return Err(plain(real::become_linker(&line, bitcode)));
    }
    let std_files = files::read_std_files(&line).map_err(plain)?;
    let all_files = || user_files.iter().chain(&std_files);
    let mut inputs = LinkInputs::new(all_files()).map_err(|problem| vec![problem])?;
    inputs.drop_unneeded(&line.undefined);
    let mut reading = timing("read the link's files", start);
    loop {
        let linked = link_with_derivatives(&line, &inputs, reading)?;
        // The linker took a module that it was not expected to take: for whatever reason, the request must be served.
        let missed = inputs.unneeded() > 0
            && !linked.status.success()
            && memmem::find(&linked.errors, REQUEST.as_bytes()).is_some();
        if !missed {
            // If this cannot be written, there is no way to report it.
            let _ = stderr().write_all(&linked.errors);
            return Ok(real::exit_code(linked.status));
        }
        let again = Instant::now();
        inputs = LinkInputs::new(all_files()).map_err(|problem| vec![problem])?;
        reading = timing("read the link's files", again);
    }
}

fn link_with_derivatives(
    line: &LinkLine,
    inputs: &LinkInputs<'_>,
    reading: Timing,
) -> Result<real::Linked, Vec<Diagnostic>> {
    if inputs.requesting().is_empty() {
        return real::link(line, &line.arguments).map_err(plain);
    }
    let mut output = derivatives_for(line, inputs)?;
    let start = Instant::now();
    let folder = tempfile::Builder::new()
        .prefix("ferrozyme-link-")
        .tempdir()
        .map_err(|error| plain(format!("cannot make a temporary folder: {error}")))?;
    let arguments = rewrite(line, inputs, &output, folder.path())
        .map_err(|error| plain(format!("cannot write the derivatives: {error}")))?;
    let linked = real::link(line, &arguments).map_err(plain)?;
    output.report.timings.insert(0, reading);
    output.report.timings.push(timing("real linker", start));
    if linked.status.success() {
        keep_books(line, output.report);
    }
    Ok(linked)
}

/// Leaves word of a link with derivatives, for `explain` and for later drivers.
fn keep_books(line: &LinkLine, report: Report) {
    let Some(output) = &line.output else {
        return;
    };
    if let Some(target) = target_folder(Some(output)) {
        let record = Record {
            output: output.clone(),
            driver: records::driver_identity().to_owned(),
        };
        records::write(&target, &record);
    }
    messages::leave_report(&LinkReport {
        output: output.clone(),
        report,
    });
}

/// The derivatives that modules ask for: remembered ones, or new ones. Warnings are shown.
fn derivatives_for(line: &LinkLine, inputs: &LinkInputs<'_>) -> Result<Output, Vec<Diagnostic>> {
    let options = options_of(line)?;
    let entry = target_folder(line.output.as_deref()).map(|target| {
        let driver = records::driver_identity();
        Entry::new(&target.join("cache"), driver, inputs, &options)
    });
    let mut output = obtain(inputs, &options, entry.as_ref())?;
    let warnings = std::mem::take(&mut output.report.warnings);
    if !warnings.is_empty() {
        report_diagnostics(&warnings);
    }
    Ok(output)
}

fn obtain(
    inputs: &LinkInputs<'_>,
    options: &Options,
    entry: Option<&Entry>,
) -> Result<Output, Vec<Diagnostic>> {
    let start = Instant::now();
    if let Some(mut output) = entry.and_then(|entry| entry.load(inputs)) {
        output.report.timings = vec![timing("take remembered derivatives", start)];
        return Ok(output);
    }
    let recorded = Recorded::new(inputs);
    let output = differentiate(&recorded, options)?;
    check_output(inputs, &output)?;
    if let Some(entry) = entry {
        // Without a cache the next link takes longer; that is all.
        let _ = entry.store(&recorded, &output);
    }
    Ok(output)
}

fn check_output(inputs: &LinkInputs<'_>, output: &Output) -> Result<(), Vec<Diagnostic>> {
    for index in inputs.requesting() {
        if !output.rewritten.iter().any(|(done, _)| *done == index) {
            let name = inputs
                .get(index)
                .map_or_else(|error| error, |input| input.name);
            return Err(vec![Diagnostic {
                remedy: Some("this is a bug in Ferrozyme; please report it".to_owned()),
                ..Diagnostic::error(format!("the requests in {name} were not served"))
            }]);
        }
    }
    Ok(())
}

fn options_of(line: &LinkLine) -> Result<Options, Vec<Diagnostic>> {
    let sysroot = line.own.sysroot.clone().ok_or_else(|| {
        plain("the link line does not name rustc's sysroot; was it made by `cargo ferrozyme`?")
    })?;
    Ok(Options {
        sysroot,
        level: line.level.unwrap_or(Level::O0),
        cpu: line.cpu.clone(),
        relocation: line.relocation,
        strict: line.own.strict,
        multiversion: !line.own.no_multiversion,
        explain: messages::explain_wanted(),
        perturbation: Perturbation::of_environment().map_err(plain)?,
    })
}

/// A file of the link line with the members that change.
struct Replacement<'a> {
    file: &'a File,
    changes: Vec<(usize, &'a [u8])>,
}

/// The arguments of the real link: rewritten modules in their places, the derivatives after the first object.
fn rewrite(
    line: &LinkLine,
    inputs: &LinkInputs<'_>,
    output: &Output,
    folder: &Path,
) -> std::io::Result<Vec<OsString>> {
    let mut arguments = line.arguments.clone();
    let mut replaced: Vec<Replacement<'_>> = Vec::new();
    for (index, bytes) in &output.rewritten {
        let place = inputs.place(*index);
        // Objects have no members, and are replaced as a whole.
        let change = (place.member.unwrap_or(0), bytes.as_slice());
        let same = replaced
            .iter_mut()
            .find(|replacement| std::ptr::eq(replacement.file, place.file));
        match same {
            Some(replacement) => replacement.changes.push(change),
            None => replaced.push(Replacement {
                file: place.file,
                changes: vec![change],
            }),
        }
    }
    for (number, Replacement { file, changes }) in replaced.iter().enumerate() {
        let Some(input) = file.input else {
            continue;
        };
        let name = file.path.file_name().unwrap_or_default();
        let path = folder.join(number.to_string());
        std::fs::create_dir_all(&path)?;
        let path = path.join(name);
        match &file.kind {
            Kind::Object => std::fs::write(&path, changes[0].1)?,
            Kind::Archive(members) => {
                let contents = members.iter().enumerate().map(|(number, member)| {
                    let changed = changes.iter().find(|(changed, _)| *changed == number);
                    let bytes =
                        changed.map_or(&file.bytes[member.range.clone()], |(_, bytes)| bytes);
                    (member.name.as_str(), bytes)
                });
                std::fs::write(&path, archive::write(contents))?;
            }
        }
        arguments[line.inputs[input]] = path.into_os_string();
    }
    let derivatives = folder.join("derivatives.o");
    std::fs::write(&derivatives, &output.object)?;
    let position = line.inputs.first().map_or(0, |first| first + 1);
    arguments.insert(position, derivatives.into_os_string());
    Ok(arguments)
}

/// Where this build keeps what concerns us.
fn target_folder(output: Option<&Path>) -> Option<PathBuf> {
    let target = std::env::var_os(messages::TARGET_FOLDER)
        .map(PathBuf::from)
        .or_else(|| {
            // Cargo marks its target directory.
            let marked = |folder: &&Path| folder.join("CACHEDIR.TAG").exists();
            output?.ancestors().skip(1).find(marked).map(Path::to_owned)
        })?;
    Some(target.join(records::FOLDER))
}

/// Tells the user: through the process that watches rustc, and for those without one through the standard error.
fn report_diagnostics(diagnostics: &[Diagnostic]) {
    let sent = messages::send(&Message {
        diagnostics: diagnostics.to_vec(),
    });
    let failed = diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error);
    // rustc shows the output of a successful linker as a warning.
    if failed || !sent {
        for diagnostic in diagnostics {
            let _ = writeln!(stderr(), "{}", render::render(diagnostic, false));
        }
    }
}

fn timing(phase: &str, start: Instant) -> Timing {
    Timing {
        phase: phase.to_owned(),
        time: start.elapsed(),
    }
}

fn plain(message: impl Into<String>) -> Vec<Diagnostic> {
    vec![Diagnostic::error(message)]
}
