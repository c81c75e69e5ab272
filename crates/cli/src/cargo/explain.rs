//! `cargo ferrozyme explain`: builds, and prints a report on each derivative.
//!
//! The linker makes the report, so an up-to-date program must be linked again: it is looked up in the records of links, and
//! removed. Nothing else is rebuilt.

use super::{cannot_run, prepare};
use crate::messages::{self, LinkReport};
use crate::records::{self, Record};
use crate::render::describe_location;
use ferrozyme_driver::{DerivativeReport, Diagnostic, Explain, Stage, Timing};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write, stdout};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

const HELP: &str = "\
Prints a report on each derivative: what is active, the layout of memory, what is saved and why, and compile times.

Usage: cargo ferrozyme explain [function] [--stage <stage>] [arguments of cargo build]

Arguments:
  [function]       Only derivatives of functions (or derivatives) whose path ends with this name

Options:
  --stage <stage>  Print the text of a stage instead; may be repeated
                     import      the function as imported from LLVM, as Loop IR
                     optimised   the same after optimisation
                     activity    active values and memory
                     plan        what is saved, recomputed and reloaded
                     derivative  the derivative as Loop IR
                     llvm        the derivative as LLVM IR, optimised
                     assembly    the derivative as assembly
  -h, --help       Print help

Examples:
  cargo ferrozyme explain loss --release
  cargo ferrozyme explain --stage plan --bin train";

/// Explains; `words` are the arguments behind `explain`.
///
/// # Errors
/// If there is nothing to explain.
pub fn run(words: &[String]) -> Result<i32, Diagnostic> {
    let Some(asked) = parse(words)? else {
        let _ = writeln!(stdout(), "{HELP}");
        return Ok(0);
    };
    let folder = tempfile::tempdir()
        .map_err(|error| Diagnostic::error(format!("cannot make a temporary folder: {error}")))?;
    let mut built = build(&asked, folder.path())?;
    if built.code == 0 && link_again(&built, folder.path()) {
        built = build(&asked, folder.path())?;
    }
    if built.code != 0 {
        return Ok(built.code);
    }
    let reports = read_reports(folder.path());
    let mut text = write_reports(&reports, &asked.explain)?;
    if let Ok(here) = std::env::current_dir() {
        text = text.replace(&format!("{}/", here.display()), "");
    }
    // The reader may have closed the pipe, as `head` does.
    let _ = stdout().write_all(text.as_bytes());
    Ok(0)
}

struct Asked {
    explain: Explain,
    /// Arguments of cargo, with the command.
    cargo: Vec<String>,
}

/// The request; `None` for help.
fn parse(words: &[String]) -> Result<Option<Asked>, Diagnostic> {
    let mut words = words.iter();
    let mut function = None;
    let mut stages = Vec::new();
    let mut cargo = vec!["build".to_owned()];
    let mut first = true;
    while let Some(word) = words.next() {
        if matches!(word.as_str(), "-h" | "--help") {
            return Ok(None);
        }
        if word == "--stage" || word.starts_with("--stage=") {
            let value = word
                .strip_prefix("--stage=")
                .or_else(|| words.next().map(String::as_str));
            stages.push(parse_stage(value.unwrap_or_default())?);
        } else if first && !word.starts_with('-') {
            function = Some(word.clone());
        } else {
            cargo.push(word.clone());
        }
        first = false;
    }
    Ok(Some(Asked {
        explain: Explain { function, stages },
        cargo,
    }))
}

fn parse_stage(name: &str) -> Result<Stage, Diagnostic> {
    Stage::ALL
        .into_iter()
        .find(|stage| stage.name() == name)
        .ok_or_else(|| {
            let names = Stage::ALL.map(Stage::name).join(", ");
            Diagnostic {
                remedy: Some(format!("the stages are: {names}")),
                ..Diagnostic::error(format!("there is no stage `{name}`"))
            }
        })
}

struct Built {
    /// Cargo's exit code.
    code: i32,
    /// Programs that were built or were up to date.
    artefacts: Vec<PathBuf>,
    /// Where.
    target_folder: Option<PathBuf>,
}

/// Builds with the wish to explain in the environment.
fn build(asked: &Asked, reports: &Path) -> Result<Built, Diagnostic> {
    let mut command = prepare(&asked.cargo)?;
    let explain = serde_json::to_string(&asked.explain)
        .map_err(|error| Diagnostic::error(format!("cannot write what to explain: {error}")))?;
    command
        .arg("--message-format=json-render-diagnostics")
        .env(messages::EXPLAIN, explain)
        .env(messages::REPORTS, reports)
        .stdout(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|error| cannot_run(&command, &error))?;
    let mut artefacts = Vec::new();
    if let Some(pipe) = child.stdout.take() {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                continue;
            };
            if message["reason"] == "compiler-artifact" {
                let files = message["filenames"].as_array().into_iter().flatten();
                artefacts.extend(files.filter_map(|file| file.as_str().map(PathBuf::from)));
            }
        }
    }
    let status = child.wait().map_err(|error| cannot_run(&command, &error))?;
    let target_folder = command
        .get_envs()
        .find(|(name, _)| *name == messages::TARGET_FOLDER)
        .and_then(|(_, value)| value.map(PathBuf::from));
    Ok(Built {
        code: crate::link::real::exit_code(status),
        artefacts,
        target_folder,
    })
}

/// Removes programs that are to be explained but were up to date. Returns whether there were any.
fn link_again(built: &Built, reports: &Path) -> bool {
    let Some(target) = &built.target_folder else {
        return false;
    };
    let explained: HashSet<PathBuf> = read_reports(reports)
        .into_iter()
        .map(|report| report.output)
        .collect();
    let mut removed = false;
    for Record { output, .. } in records::read(&target.join(records::FOLDER)) {
        let wanted = !explained.contains(&output)
            && built
                .artefacts
                .iter()
                .any(|artefact| same_file(artefact, &output));
        removed |= wanted && std::fs::remove_file(&output).is_ok();
    }
    removed
}

/// Whether both names are of the same file: cargo hard-links its output into the folder where users look for it.
fn same_file(one: &Path, other: &Path) -> bool {
    one == other
        || matches!(
            (std::fs::metadata(one), std::fs::metadata(other)),
            (Ok(one), Ok(other)) if one.dev() == other.dev() && one.ino() == other.ino()
        )
}

fn read_reports(folder: &Path) -> Vec<LinkReport> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut reports: Vec<LinkReport> = entries
        .flatten()
        .filter_map(|entry| serde_json::from_slice(&std::fs::read(entry.path()).ok()?).ok())
        .collect();
    reports.sort_by(|one, other| one.output.cmp(&other.output));
    reports
}

fn write_reports(reports: &[LinkReport], explain: &Explain) -> Result<String, Diagnostic> {
    let all: Vec<&DerivativeReport> = reports
        .iter()
        .flat_map(|report| &report.report.derivatives)
        .collect();
    // The same derivative may be in several programs.
    let mut chosen: Vec<&DerivativeReport> = Vec::new();
    for derivative in &all {
        if is_chosen(derivative, explain.function.as_deref()) && !chosen.contains(derivative) {
            chosen.push(derivative);
        }
    }
    if chosen.is_empty() {
        return Err(nothing_to_explain(&all, explain.function.as_deref()));
    }
    let mut text = String::new();
    for derivative in chosen {
        write_derivative(&mut text, derivative);
    }
    write_timings(&mut text, reports);
    Ok(text)
}

fn nothing_to_explain(all: &[&DerivativeReport], function: Option<&str>) -> Diagnostic {
    let Some(function) = function else {
        return Diagnostic {
            remedy: Some(
                "choose what to build as for `cargo build`, for instance with --bin, --example or --tests"
                    .to_owned(),
            ),
            ..Diagnostic::error("nothing that was built has a derivative")
        };
    };
    let mut names: Vec<String> = all
        .iter()
        .map(|derivative| format!("`{}` of `{}`", derivative.derivative, derivative.primal))
        .collect();
    names.sort();
    names.dedup();
    Diagnostic {
        notes: if names.is_empty() {
            vec!["nothing that was built has a derivative".to_owned()]
        } else {
            vec![format!("there are: {}", names.join(", "))]
        },
        ..Diagnostic::error(format!("there is no derivative of `{function}`"))
    }
}

fn is_chosen(derivative: &DerivativeReport, function: Option<&str>) -> bool {
    let Some(function) = function else {
        return true;
    };
    [&derivative.primal, &derivative.derivative]
        .into_iter()
        .any(|path| {
            path.strip_suffix(function)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
        })
}

fn write_derivative(text: &mut String, derivative: &DerivativeReport) {
    let place = derivative
        .location
        .as_ref()
        .map(|location| format!(" at {}", describe_location(location)))
        .unwrap_or_default();
    let _ = writeln!(text, "{}{place}\n", derivative.title());
    if derivative.stages.is_empty() {
        push_block(text, &derivative.summary);
    }
    for (stage, stage_text) in &derivative.stages {
        let _ = writeln!(text, "stage {}:\n", stage.name());
        push_block(text, stage_text);
    }
}

fn push_block(text: &mut String, block: &str) {
    text.push_str(block.trim_end());
    text.push_str("\n\n");
}

/// How long each phase took, over all links.
fn write_timings(text: &mut String, reports: &[LinkReport]) {
    let mut order = Vec::new();
    let mut sums: BTreeMap<&str, Duration> = BTreeMap::new();
    for Timing { phase, time } in reports.iter().flat_map(|report| &report.report.timings) {
        if !sums.contains_key(phase.as_str()) {
            order.push(phase.as_str());
        }
        *sums.entry(phase).or_default() += *time;
    }
    let width = order.iter().map(|phase| phase.len()).max().unwrap_or(0);
    let _ = writeln!(text, "time:");
    for phase in order {
        let milliseconds = sums[phase].as_secs_f64() * 1e3;
        let _ = writeln!(text, "  {phase:<width$} {milliseconds:>9.1} ms");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use ferrozyme_driver::{Location, Report};

    fn report() -> LinkReport {
        LinkReport {
            output: "target/debug/deps/app".into(),
            report: Report {
                derivatives: vec![DerivativeReport {
                    primal: "app::model::loss".to_owned(),
                    derivative: "d_loss".to_owned(),
                    mode: "reverse".to_owned(),
                    width: 1,
                    location: Some(Location {
                        file: "src/model.rs".to_owned(),
                        line: 3,
                        column: 1,
                    }),
                    summary: "saved: 8 bytes\n".to_owned(),
                    stages: Vec::new(),
                }],
                timings: vec![Timing {
                    phase: "import".to_owned(),
                    time: Duration::from_micros(1500),
                }],
                warnings: Vec::new(),
            },
        }
    }

    fn explain(function: Option<&str>) -> Explain {
        Explain {
            function: function.map(str::to_owned),
            stages: Vec::new(),
        }
    }

    #[test]
    fn shows_summary_and_times() {
        let text = write_reports(&[report(), report()], &explain(Some("loss"))).expect("found");
        expect![[r#"
            derivative `d_loss` of `app::model::loss` (reverse) at src/model.rs:3:1

            saved: 8 bytes

            time:
              import       3.0 ms
        "#]]
        .assert_eq(&text);
        assert!(write_reports(&[report()], &explain(Some("model::loss"))).is_ok());
        assert!(write_reports(&[report()], &explain(Some("d_loss"))).is_ok());
    }

    #[test]
    fn says_what_there_is() {
        let error = write_reports(&[report()], &explain(Some("oss"))).expect_err("no such");
        assert_eq!(error.message, "there is no derivative of `oss`");
        assert_eq!(error.notes, ["there are: `d_loss` of `app::model::loss`"]);
        let error = write_reports(&[], &explain(None)).expect_err("none");
        assert_eq!(error.message, "nothing that was built has a derivative");
    }

    #[test]
    fn stages_are_known() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let asked = parse(&words("loss --stage llvm --release --stage=plan"))
            .ok()
            .flatten()
            .expect("not help");
        assert_eq!(asked.explain.stages, [Stage::Llvm, Stage::Plan]);
        assert_eq!(asked.explain.function.as_deref(), Some("loss"));
        assert_eq!(asked.cargo, ["build", "--release"]);
        let error = parse(&words("--stage machine")).err().expect("unknown");
        assert_eq!(error.message, "there is no stage `machine`");
    }
}
