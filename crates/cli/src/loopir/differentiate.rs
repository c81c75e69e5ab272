//! `loopir differentiate`, `explain` and `gradcheck`.

use crate::source::{choose_function, read_verified_module};
use clap::{Args, ValueEnum};
use ferrozyme_diff::{Choices, Request, explain_plan};
use ferrozyme_filetest::derivative::{Mode, derive, print_functions};
use ferrozyme_filetest::gradcheck::{Experiment, Point, check_point, differentiate_all, gradient};
use ferrozyme_filetest::scan::Scanner;
use ferrozyme_filetest::signature::{Signature, parse_activities};
use ferrozyme_filetest::value::{Written, read_values};
use ferrozyme_ir::Module;
use ferrozyme_ir::print::print_module;
use std::fmt::Write;
use std::path::PathBuf;

/// The function to differentiate.
#[derive(Args, Debug)]
pub(super) struct Target {
    /// The file, or `-` for the standard input.
    file: PathBuf,
    /// The function, such as `@f`; needed where the file has several.
    #[arg(long)]
    function: Option<String>,
    /// The activity of each argument: `const`, `active` or `dup`, separated by commas. Unless given, floats are active,
    /// pointers are duplicated and the rest is constant.
    #[arg(long, value_name = "ACTIVITIES")]
    args: Option<String>,
    /// The activity of each result, likewise.
    #[arg(long, value_name = "ACTIVITIES")]
    results: Option<String>,
}

impl Target {
    /// The module, and the request that the command line makes.
    pub(super) fn read(&self) -> Result<(Module, Request), String> {
        let module = read_verified_module(&self.file)?;
        let function = choose_function(&module, self.function.as_deref())?;
        let mut request = Request::usual(&module, function);
        if let Some(text) = &self.args {
            request.args =
                parse_activities(text).map_err(|error| format!("error: --args {error}"))?;
        }
        if let Some(text) = &self.results {
            request.results =
                parse_activities(text).map_err(|error| format!("error: --results {error}"))?;
        }
        Ok((module, request))
    }
}

/// Prints the derivative of a function.
#[derive(Args, Debug)]
#[command(after_help = DIFFERENTIATE_EXAMPLES)]
pub(super) struct Differentiate {
    #[command(flatten)]
    target: Target,
    /// Which derivative.
    #[arg(long, value_enum, default_value_t = ModeName::Reverse)]
    mode: ModeName,
    /// How many tangents forward mode carries in one sweep.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    width: u32,
    /// The derivative also returns the function's results.
    #[arg(long)]
    primal: bool,
    /// Prints the derivative as it is made, before optimisation.
    #[arg(long)]
    raw: bool,
    /// Prints the whole module, not only the added functions; other commands can read it.
    #[arg(long)]
    whole: bool,
    /// The name of the derivative; for split mode twice, the augmented function first.
    #[arg(long = "name")]
    names: Vec<String>,
}

const DIFFERENTIATE_EXAMPLES: &str = "\
Examples:
  loopir differentiate sum.fz --mode reverse --args dup,const --results active
  loopir differentiate sum.fz --mode forward --width 4 --raw
  loopir differentiate sum.fz --whole --name @gradient | loopir run - @gradient '[1.0, 2.0]' '[0.0, 0.0]' 2 1.0";

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ModeName {
    /// Gradients, both sweeps in one function.
    Reverse,
    /// Gradients, one function for each sweep.
    Split,
    /// Tangents along with values.
    Forward,
}

impl Differentiate {
    pub(super) fn run(&self) -> Result<String, String> {
        let (mut module, request) = self.target.read()?;
        let mode = match self.mode {
            ModeName::Reverse => Mode::Reverse,
            ModeName::Split => Mode::Split,
            ModeName::Forward => Mode::Forward,
        };
        let plain = |name: &String| name.strip_prefix('@').unwrap_or(name).to_owned();
        let signature = Signature {
            function: module.functions[request.function].name.clone(),
            activities: Some((request.args, request.results)),
            primal: self.primal,
            discarded: Vec::new(),
            keep_order: false,
            choices: Choices::default(),
            width: self.width,
            raw: self.raw,
            names: self.names.iter().map(plain).collect(),
        };
        let derivative = derive(&mut module, mode, &signature)?;
        Ok(if self.whole {
            print_module(&module)
        } else {
            print_functions(&module, &derivative.added)
        })
    }
}

/// Prints the caching plan of reverse mode.
#[derive(Args, Debug)]
pub(super) struct Explain {
    #[command(flatten)]
    target: Target,
}

impl Explain {
    pub(super) fn run(&self) -> Result<String, String> {
        let (module, request) = self.target.read()?;
        explain_plan(&module, &request).map_err(|error| format!("error: {error}"))
    }
}

/// Checks derivatives numerically.
#[derive(Args, Debug)]
pub(super) struct Gradcheck {
    #[command(flatten)]
    target: Target,
    /// The arguments at which to check, such as `([0.5, 1.5], 2)`; may be given several times.
    #[arg(long, required = true, allow_hyphen_values = true)]
    at: Vec<String>,
    /// The seed of the printed gradient, such as `(1.0, [0.0, 1.0])`: a number for each active
    /// result, then memory for each duplicated argument. The default is 1 for each result and 0 for memory.
    #[arg(long, allow_hyphen_values = true)]
    seed: Option<String>,
}

impl Gradcheck {
    pub(super) fn run(&self) -> Result<String, String> {
        let (module, request) = self.target.read()?;
        let derivatives =
            differentiate_all(&module, &request).map_err(|error| format!("error: {error}"))?;
        let mut text = String::new();
        for at in &self.at {
            let arguments = read_list(at).map_err(|error| format!("error: --at {error}"))?;
            let point = Point {
                arguments,
                ..Point::default()
            };
            check_point(&module, &request, &derivatives, &point)
                .map_err(|error| format!("error: at {at}: {error}"))?;
            let experiment = Experiment::new(&module, &request, &point.arguments)?;
            let seeds = match &self.seed {
                Some(seed) => read_list(seed)
                    .and_then(|written| experiment.read_seeds(&written))
                    .map_err(|error| format!("error: --seed {error}"))?,
                None => experiment.usual_seeds(),
            };
            let _ = writeln!(text, "at {at}: the derivatives agree");
            if seeds.iter().all(|&seed| seed == 0.0) {
                text.push_str(
                    "  the outputs are in memory; give --seed to see the gradient of some\n",
                );
                continue;
            }
            let numbers = gradient(&experiment, &derivatives[0], &seeds)?;
            let of = self.seed.as_deref().unwrap_or("the results");
            let _ = writeln!(text, "  the gradient of {of} is");
            for (input, number) in experiment.inputs.iter().zip(numbers) {
                let _ = writeln!(text, "  {input}: {number:?}");
            }
        }
        Ok(text)
    }
}

/// Reads a list of values in parentheses.
fn read_list(text: &str) -> Result<Vec<Written>, String> {
    let mut scanner = Scanner::new(text);
    read_values(&mut scanner).and_then(|values| scanner.finish().map(|()| values))
}
