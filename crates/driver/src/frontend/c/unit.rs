//! One translation unit of C or C++: its requests become calls, and its derivatives are added to it, if it has the bodies that they need.
//!
//! Missing bodies may be in other units; then the derivatives are made at link time. That a body is missing shows only when a derivative cannot be made: a function without a body may be called as long as
//! no active values go through it.

use super::entries::has_requests;
use super::hints::take_hints;
use super::thunk::LOCAL_MARK;
use crate::finish::{drop_the_rest, optimise_derivatives};
use crate::gather::{FUNCTION_SUFFIX, Gathered, gather};
use crate::inputs::{Input, Inputs, Origin};
use crate::locals::{PROMOTED_PREFIX, mark_tables, promote_locals};
use crate::options::{Level, Options};
use crate::pipeline::{Clock, Made, add_code, make_derivatives, unloadable};
use crate::report::{Diagnostic, Report};
use crate::requests::DERIVATIVE_PREFIX;
use ferrozyme_llvm::{Context, Linkage, Module, Value, Visibility};
use std::borrow::Cow;
use std::collections::HashSet;

/// What is done with a unit beside making its derivatives.
#[derive(Clone, Debug, Default)]
pub struct UnitOptions {
    /// Whether debug information was only for messages.
    pub strip_debug_information: bool,
    /// Assembly that the unit gets besides its own.
    pub assembly: String,
    /// Whether memory that only this unit knows gets names by which derivatives made elsewhere find it.
    pub visible_statics: bool,
    /// Bodies of functions that the unit may call and that other libraries define without source.
    pub library: Option<Library>,
}

/// A module with bodies of functions.
#[derive(Clone, Debug)]
pub struct Library {
    /// The module.
    pub bitcode: Vec<u8>,
    /// What it defines.
    pub symbols: &'static [&'static str],
}

/// A unit without requests.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Its bitcode, not optimised. Derivatives are, if the unit is not to be.
    pub bitcode: Vec<u8>,
    /// What became of its requests.
    pub requests: UnitRequests,
    /// The functions and variables that it defines for others.
    pub defined: Vec<String>,
    /// What was done.
    pub report: Report,
}

/// What became of the requests of a unit.
#[derive(Clone, Debug)]
pub enum UnitRequests {
    /// There are none.
    None,
    /// The derivatives are in the unit.
    Made,
    /// The derivatives are called, but not there; why they could not be made without the other units.
    Deferred(Vec<Diagnostic>),
}

/// Makes the derivatives that a unit requests. `identity` tells it from all other units of any program.
///
/// # Errors
/// All that the user has to know why one of them cannot be made.
pub fn compile_unit(
    name: &str,
    identity: &str,
    bitcode: &[u8],
    options: &Options,
    unit_options: &UnitOptions,
) -> Result<Unit, Vec<Diagnostic>> {
    let mut clock = Clock::start();
    ferrozyme_llvm::load(&options.sysroot).map_err(unloadable)?;
    let context = Context::new().map_err(unloadable)?;
    clock.lap("load LLVM");
    let unreadable = |error: &dyn std::fmt::Display| {
        vec![Diagnostic {
            notes: vec![error.to_string()],
            remedy: Some("use a clang whose LLVM is not newer than that of rustc".to_owned()),
            ..Diagnostic::error(format!("LLVM cannot read clang's bitcode of '{name}'"))
        }]
    };
    let module = context
        .parse_bitcode(name, bitcode)
        .map_err(|error| unreadable(&error))?;
    let mut report = Report::default();
    let functions = defined_for_others(module.functions());
    let variables = defined_for_others(module.globals());
    let defined = [functions.clone(), variables].concat();
    if !has_requests(module) {
        if unit_options.visible_statics {
            mark_tables(module);
            promote_locals(module, identity);
        }
        return Ok(Unit {
            bitcode: finished(module, unit_options),
            requests: UnitRequests::None,
            defined,
            report,
        });
    }
    module.dispose();

    let inputs = OneUnit {
        name,
        identity,
        bitcode,
        library: unit_options.library.as_ref(),
        missing: std::cell::Cell::new(false),
        functions: functions.into_iter().collect(),
    };
    let rewritten = |gathered: &Gathered<'_>| {
        let bitcode = gathered.rewritten.values().next();
        context
            .parse_bitcode(name, bitcode.map_or(&[], Vec::as_slice))
            .map_err(|error| unreadable(&error))
    };
    let mut gathered = gather(&context, &inputs, options.strict)?;
    clock.lap("gather");
    if gathered.requests.is_empty() {
        // Entry points that stand for no derivative.
        let module = rewritten(&gathered)?;
        make_local(module, unit_options.visible_statics);
        return Ok(Unit {
            bitcode: finished(module, unit_options),
            requests: UnitRequests::Made,
            defined,
            report,
        });
    }
    let made = make_derivatives(&context, &mut gathered, &inputs, options, &mut clock);
    let module = rewritten(&gathered)?;
    let Made {
        machine,
        mut reports,
    } = match made {
        Ok(made) => made,
        Err(problems) if inputs.missing.get() => {
            return Ok(Unit {
                bitcode: finished(module, unit_options),
                requests: UnitRequests::Deferred(problems),
                defined,
                report,
            });
        }
        Err(problems) => return Err(problems),
    };
    // A unit that is optimised later is optimised with its derivatives.
    let derivatives = match options.level {
        Level::O2 | Level::O3 if options.explain.is_none() => {
            drop_the_rest(&gathered).map(|()| gathered.module)
        }
        _ => optimise_derivatives(&gathered, &machine, options.level),
    }?;
    clock.lap("optimise");
    add_code(&mut reports, derivatives, &machine, options);
    module.link(derivatives).map_err(|error| {
        vec![Diagnostic {
            notes: vec![error.to_string()],
            ..Diagnostic::error("the derivatives could not be linked into their unit")
        }]
    })?;
    make_local(module, unit_options.visible_statics);
    report.derivatives = reports;
    report.timings = clock.timings;
    Ok(Unit {
        bitcode: finished(module, unit_options),
        requests: UnitRequests::Made,
        defined,
        report,
    })
}

fn defined_for_others<'c>(symbols: impl Iterator<Item = Value<'c>>) -> Vec<String> {
    let visible = symbols.filter(|symbol| {
        let local = matches!(symbol.linkage(), Linkage::Internal | Linkage::Private);
        !symbol.is_declaration() && !local
    });
    visible.map(|symbol| symbol.name()).collect()
}

fn finished(module: Module<'_>, options: &UnitOptions) -> Vec<u8> {
    take_hints(module);
    if options.strip_debug_information {
        module.strip_debug_information();
    }
    if !options.assembly.is_empty() {
        let own = module.inline_assembly();
        module.set_inline_assembly(&format!("{own}\n{}\n", options.assembly));
    }
    module.to_bitcode()
}

/// What only had to be visible to the working module is the unit's own again.
fn make_local(module: Module<'_>, visible_statics: bool) {
    for symbol in module
        .functions()
        .chain(module.globals())
        .collect::<Vec<_>>()
    {
        let name = symbol.name();
        let ours = name.starts_with(DERIVATIVE_PREFIX)
            || name.contains(FUNCTION_SUFFIX)
            || (name.starts_with(PROMOTED_PREFIX) && !visible_statics);
        if ours && !symbol.is_declaration() {
            symbol
                .set_visibility(Visibility::Default)
                .set_linkage(Linkage::Internal);
        }
        if let Some(end) = name.find(LOCAL_MARK) {
            symbol.set_name(&name[..end]);
        }
    }
}

/// The number of the library among the inputs.
const LIBRARY: usize = 1;

/// One unit as all there is, beside the library.
struct OneUnit<'a> {
    name: &'a str,
    identity: &'a str,
    bitcode: &'a [u8],
    library: Option<&'a Library>,
    /// Whether something was looked for that the unit does not define.
    missing: std::cell::Cell<bool>,
    /// The functions that it defines and that others may see.
    functions: HashSet<String>,
}

impl Inputs for OneUnit<'_> {
    fn requesting(&self) -> Vec<usize> {
        vec![0]
    }

    fn registering(&self) -> Vec<usize> {
        vec![0]
    }

    fn program(&self) -> Vec<usize> {
        // Others may take addresses of functions as well; what is not known here stops the program.
        vec![0]
    }

    fn get(&self, index: usize) -> Result<Input<'_>, String> {
        if index == LIBRARY
            && let Some(library) = self.library
        {
            return Ok(Input {
                name: "library.c".to_owned(),
                bitcode: Cow::Borrowed(&library.bitcode),
                origin: Origin::Unit,
            });
        }
        Ok(Input {
            name: self.name.to_owned(),
            bitcode: Cow::Borrowed(self.bitcode),
            origin: Origin::Unit,
        })
    }

    fn defining(&self, symbol: &str) -> Option<usize> {
        if self
            .library
            .is_some_and(|library| library.symbols.contains(&symbol))
        {
            return Some(LIBRARY);
        }
        // What else the unit defines came along with the requests.
        if self.functions.contains(symbol) {
            return Some(0);
        }
        // Whether the program wants to know of moves, and whether it has threads, is asked of every program; these are no bodies that a derivative needs.
        if ![ferrozyme_diff::MOVED, ferrozyme_ir::TEAM].contains(&symbol) {
            self.missing.set(true);
        }
        None
    }

    fn identity(&self, _index: usize) -> String {
        self.identity.to_owned()
    }
}
