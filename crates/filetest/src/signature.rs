//! The syntax of derivative requests in directives and command lines.
//!
//! ```text
//! @f (dup, const, active) -> (active) primal width 2 discard 0 raw as @df
//! ```
//!
//! The activities of the arguments, then those of the results, then options. Both lists may be left out together: then
//! floats are active, pointers duplicated, and the rest constant. `save` and `recompute` decide the caching plan, `resolved` has indirect calls resolved, `apart` keeps loops
//! from being differentiated at once.

use crate::scan::Scanner;
use ferrozyme_diff::{Activity, Caching, Choices, Request};
use ferrozyme_ir::{FunctionId, Module};

/// A request for a derivative, with names still unresolved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// The function's name, without `@`.
    pub function: String,
    /// The activities of arguments and results, if given.
    pub activities: Option<(Vec<Activity>, Vec<Activity>)>,
    /// Whether the derivative also returns the primal's results.
    pub primal: bool,
    /// How many tangents forward mode carries.
    pub width: u32,
    /// The arguments whose memory is not read after the call.
    pub discarded: Vec<usize>,
    /// Whether adjoints are added up in the order of a reverse sweep that follows the whole forward sweep.
    pub keep_order: bool,
    /// How the reverse sweep comes by values of the forward sweep, and whether loops are differentiated at once.
    pub choices: Choices,
    /// Whether the derivative is shown as it is made, before optimisation.
    pub raw: bool,
    /// The name of the derivative (augmented and reverse function, for split mode).
    pub names: Vec<String>,
}

impl Signature {
    /// The request, for a module.
    pub fn request(&self, module: &Module) -> Result<Request, String> {
        let function = find_function(module, &self.function)?;
        let usual = Request::usual(module, function);
        let (args, results) = self
            .activities
            .clone()
            .unwrap_or((usual.args, usual.results));
        Ok(Request {
            function,
            args,
            results,
            primal: self.primal,
            width: self.width,
            discarded: (0..module.functions[function].params.len())
                .map(|index| self.discarded.contains(&index))
                .collect(),
            keep_order: self.keep_order,
            shaped: Vec::new(),
            choices: self.choices,
        })
    }
}

/// Reads a signature.
pub fn parse_signature(text: &str) -> Result<Signature, String> {
    let mut scanner = Scanner::new(text);
    let function = scanner.symbol()?.to_owned();
    let activities = if scanner.eat("(") {
        let arguments = scanner.list(")", parse_activity)?;
        let results = if scanner.eat("->") {
            scanner.expect("(")?;
            scanner.list(")", parse_activity)?
        } else {
            Vec::new()
        };
        Some((arguments, results))
    } else {
        None
    };
    let mut signature = Signature {
        function,
        activities,
        primal: false,
        width: 1,
        discarded: Vec::new(),
        keep_order: false,
        choices: Choices::default(),
        raw: false,
        names: Vec::new(),
    };
    while !scanner.at_end() {
        if scanner.eat_word("primal") {
            signature.primal = true;
        } else if scanner.eat_word("ordered") {
            signature.keep_order = true;
        } else if scanner.eat_word("save") {
            signature.choices.caching = Caching::Save;
        } else if scanner.eat_word("recompute") {
            signature.choices.caching = Caching::Recompute;
        } else if scanner.eat_word("apart") {
            signature.choices.at_once = false;
        } else if scanner.eat_word("resolved") {
            signature.choices.resolve = true;
        } else if scanner.eat_word("raw") {
            signature.raw = true;
        } else if scanner.eat_word("width") {
            let width = scanner.number()?;
            signature.width = u32::try_from(width)
                .ok()
                .filter(|width| (1..=1024).contains(width))
                .ok_or("the width is between 1 and 1024")?;
        } else if scanner.eat_word("discard") {
            loop {
                signature.discarded.push(scanner.number()?);
                if !scanner.eat(",") {
                    break;
                }
            }
        } else if scanner.eat_word("as") {
            signature.names.push(scanner.symbol()?.to_owned());
            while scanner.eat(",") {
                signature.names.push(scanner.symbol()?.to_owned());
            }
        } else {
            return Err(scanner
                .complain("`primal`, `width N`, `discard N`, `ordered`, `raw` or `as @name`"));
        }
    }
    Ok(signature)
}

/// Reads one activity: `const`, `active`, or `dup`.
pub fn parse_activity(scanner: &mut Scanner) -> Result<Activity, String> {
    let mut ahead = *scanner;
    let activity = ahead
        .word()
        .and_then(Activity::from_name)
        .ok_or_else(|| scanner.complain("`const`, `active` or `dup`"))?;
    *scanner = ahead;
    Ok(activity)
}

/// Reads activities separated by commas, as in command lines.
pub fn parse_activities(text: &str) -> Result<Vec<Activity>, String> {
    let mut scanner = Scanner::new(text);
    let mut activities = Vec::new();
    while !scanner.at_end() {
        activities.push(parse_activity(&mut scanner)?);
        if !scanner.eat(",") {
            scanner.finish()?;
        }
    }
    Ok(activities)
}

/// The function of this name, or an error that names those there are.
pub fn find_function(module: &Module, name: &str) -> Result<FunctionId, String> {
    module.function_named(name).ok_or_else(|| {
        let known: Vec<String> = module
            .functions
            .values()
            .map(|function| format!("@{}", function.name))
            .collect();
        format!(
            "there is no function @{name}; the module has {}",
            if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            }
        )
    })
}
