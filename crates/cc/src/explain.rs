//! Reports on derivatives: `FERROZYME_CC_EXPLAIN=loss` shows what is active and what is saved for the derivatives of `loss`, `FERROZYME_CC_EXPLAIN=loss:plan,llvm` the text of stages, and
//! `FERROZYME_CC_EXPLAIN=` all derivatives. Reports go to the standard error, like clang's messages.

use crate::Failure;
use ferrozyme_driver::{Explain, Report, Stage};
use std::fmt::Write;

const VARIABLE: &str = "FERROZYME_CC_EXPLAIN";

/// The request in the environment.
pub(crate) fn wanted() -> Result<Option<Explain>, Failure> {
    match std::env::var(VARIABLE) {
        Ok(text) => parse(&text).map(Some).map_err(Failure::Message),
        Err(_) => Ok(None),
    }
}

fn parse(text: &str) -> Result<Explain, String> {
    let (function, stages) = text.split_once(':').unwrap_or((text, ""));
    let stage = |name: &str| {
        let found = Stage::ALL.into_iter().find(|stage| stage.name() == name);
        found.ok_or_else(|| {
            let names = Stage::ALL.map(Stage::name).join(", ");
            format!("there is no stage '{name}' to explain ({VARIABLE}); the stages are: {names}")
        })
    };
    let names = stages.split(',').filter(|name| !name.is_empty());
    Ok(Explain {
        function: (!function.is_empty()).then(|| function.to_owned()),
        stages: names.map(stage).collect::<Result<_, _>>()?,
    })
}

/// Prints the report on the requested derivatives.
pub(crate) fn show(report: &Report, explain: Option<&Explain>) {
    if let Some(explain) = explain {
        eprint!("{}", text(report, explain));
    }
}

fn text(report: &Report, explain: &Explain) -> String {
    let mut text = String::new();
    for derivative in &report.derivatives {
        if let Some(function) = &explain.function
            && *function != derivative.primal
        {
            continue;
        }
        let (primal, mode) = (&derivative.primal, &derivative.mode);
        let what = if derivative.is_itself() {
            ""
        } else {
            "derivative of "
        };
        let _ = writeln!(text, "{what}{primal} ({mode})\n");
        if derivative.stages.is_empty() {
            let _ = writeln!(text, "{}\n", derivative.summary.trim_end());
        }
        for (stage, stage_text) in &derivative.stages {
            let (name, stage_text) = (stage.name(), stage_text.trim_end());
            let _ = writeln!(text, "stage {name}:\n\n{stage_text}\n");
        }
    }
    if !text.is_empty() {
        let _ = writeln!(text, "time:");
        for timing in &report.timings {
            let milliseconds = timing.time.as_secs_f64() * 1e3;
            let _ = writeln!(text, "  {:<24} {milliseconds:>9.1} ms", timing.phase);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrozyme_driver::DerivativeReport;

    #[test]
    fn functions_and_stages_are_named() {
        let explain = parse("loss:plan,llvm").expect("known stages");
        assert_eq!(explain.function.as_deref(), Some("loss"));
        assert_eq!(explain.stages, [Stage::Plan, Stage::Llvm]);
        assert_eq!(parse("").expect("all").function, None);
        let problem = parse("loss:machine").expect_err("no such stage");
        assert!(
            problem.starts_with("there is no stage 'machine'"),
            "{problem}"
        );
    }

    #[test]
    fn only_what_was_asked_for_is_shown() {
        let report = Report {
            derivatives: ["loss", "other"]
                .map(|primal| DerivativeReport {
                    primal: primal.to_owned(),
                    mode: "reverse".to_owned(),
                    summary: format!("{primal} saves nothing\n"),
                    ..DerivativeReport::default()
                })
                .to_vec(),
            ..Report::default()
        };
        let explain = parse("loss").expect("no stages");
        assert_eq!(
            text(&report, &explain),
            "derivative of loss (reverse)\n\nloss saves nothing\n\ntime:\n"
        );
    }
}
