//! The kinds of checks, in one table.

mod analysis;
mod derivative;
mod execution;
mod gradient;
mod pass;
pub(crate) mod text;

use crate::file::{Directive, Role};
use ferrozyme_ir::{Module, parse, verify};

/// One kind of check.
pub struct Check {
    /// The word behind `; test:`.
    pub name: &'static str,
    /// Its syntax and meaning.
    pub usage: &'static str,
    perform: fn(&mut Session, &Directive) -> Result<Output, String>,
}

/// The result of a check.
pub enum Output {
    /// Text to be compared with the expectation.
    Text(String),
    /// The check has made its own comparisons, and they hold.
    Passed,
}

/// All kinds of checks.
pub const CHECKS: &[Check] = &[
    Check {
        name: "print",
        usage: "print: the module as text; it must read back to the same text",
        perform: text::print,
    },
    Check {
        name: "parse-error",
        usage: "parse-error: why the text is no module",
        perform: text::parse_error,
    },
    Check {
        name: "verify-error",
        usage: "verify-error: why the module is not well formed",
        perform: text::verify_error,
    },
    Check {
        name: "run",
        usage: "run: all `; run: @f(1.0, [2.0]) == 3.0` lines, before and after optimisation",
        perform: execution::run,
    },
    Check {
        name: "fault",
        usage: "fault @f(1.0, [2.0]): what goes wrong in this call",
        perform: execution::fault,
    },
    Check {
        name: "pass",
        usage: "pass name [name…] [@f…]: the functions after these passes",
        perform: pass::pass,
    },
    Check {
        name: "indices",
        usage: "indices @f: integers as affine expressions of counters and parameters",
        perform: analysis::indices,
    },
    Check {
        name: "alias",
        usage: "alias @f: which accesses may meet",
        perform: analysis::alias,
    },
    Check {
        name: "clobbers",
        usage: "clobbers @f: for each read, who may overwrite it",
        perform: analysis::clobbers,
    },
    Check {
        name: "objects",
        usage: "objects @f: what each piece of memory is and holds",
        perform: analysis::objects,
    },
    Check {
        name: "activity",
        usage: "activity @f (dup, const) -> (active): what carries derivatives",
        perform: analysis::activity,
    },
    Check {
        name: "plan",
        usage: "plan @f (dup, const) -> (active): what reverse mode saves, how much, and why",
        perform: analysis::plan,
    },
    Check {
        name: "forward",
        usage: "forward @f (dup, active) -> (active) [primal] [width N] [raw] [as @df]: the derivative's text",
        perform: derivative::forward,
    },
    Check {
        name: "reverse",
        usage: "reverse @f (dup, active) -> (active) [primal] [raw] [as @df]: the derivative's text",
        perform: derivative::reverse,
    },
    Check {
        name: "split",
        usage: "split @f (dup, active) -> (active) [raw] [as @augmented, @reverse]: the text of both sweeps",
        perform: derivative::split,
    },
    Check {
        name: "diff-error",
        usage: "diff-error forward|reverse|split @f (dup) -> (active): why there is no derivative",
        perform: derivative::diff_error,
    },
    Check {
        name: "gradcheck",
        usage: "gradcheck @f (dup, const) -> (active): forward and reverse mode against each other and against finite \
                differences, at each `; args: (…)`; `; seed:` and `; gradient:` give exact numbers",
        perform: gradient::gradcheck,
    },
];

/// The state that the directives of a file share: its text, and the module with the derivatives made so far.
pub struct Session<'t> {
    source: &'t str,
    module: Option<Module>,
}

impl<'t> Session<'t> {
    /// For a file with this text.
    pub fn new(source: &'t str) -> Session<'t> {
        Session {
            source,
            module: None,
        }
    }

    /// The text of the file, without expectations.
    pub fn source(&self) -> &'t str {
        self.source
    }

    /// The module, which must be well formed.
    pub fn module(&mut self) -> Result<&mut Module, String> {
        if self.module.is_none() {
            let module = parse::parse_module(self.source)
                .map_err(|error| format!("the text is no module: {error}"))?;
            verify_module(&module)?;
            self.module = Some(module);
        }
        Ok(self.module.as_mut().expect("the module was just read"))
    }
}

/// Runs a directive.
pub fn perform(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    match directive.role {
        Role::Test => {}
        Role::Derive => return derivative::derive(session, directive),
        Role::Optimise => return pass::optimise_for_later(session, directive),
    }
    match CHECKS.iter().find(|check| check.name == directive.kind()) {
        Some(check) => (check.perform)(session, directive),
        None => Err(no_check(directive, CHECKS.iter().map(|check| check.usage))),
    }
}

/// Says which checks there are.
pub(crate) fn no_check<'u>(
    directive: &Directive<'_>,
    usages: impl Iterator<Item = &'u str>,
) -> String {
    let known: Vec<&str> = usages.collect();
    format!(
        "`{}` is no check; these are:\n  {}",
        directive.kind(),
        known.join("\n  ")
    )
}

/// What functions declare and their bodies do not keep, if there is anything.
pub fn check_facts(module: &Module) -> Result<(), String> {
    let problems = ferrozyme_opt::check_facts(module).into_iter();
    let problems: Vec<String> = problems.map(|(_, problem)| problem).collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(problems.join("\n")),
    }
}

/// The complaints of the verifier, if it has any.
pub fn verify_module(module: &Module) -> Result<(), String> {
    verify::verify_module(module).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        format!("the module is not well formed:\n{}", errors.join("\n"))
    })
}
