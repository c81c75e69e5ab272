//! Checks that run functions.
//!
//! ```text
//! ; run: @f(1.0, 2) == 3.0                                   results, equal bit for bit
//! ; run: @f(1.0, 2) ~= (3.0, 4.0)                            results, up to 1e-12 relative
//! ; run: @f([1.0, 2.0], [0.0], 2) == () with _, [3.0]        results, and the memory of each argument that brought some
//! ; run: @f([1.0], 7) faults "out of bounds"                 what goes wrong, or a part of it
//! ```

use super::pass::optimise_all;
use super::{Output, Session, verify_module};
use crate::arguments::{Arguments, Closeness, is_as_expected, place_arguments, show};
use crate::file::{Detail, Directive};
use crate::scan::Scanner;
use crate::signature::find_function;
use crate::value::{Written, read_level, read_threads, read_value, read_values};
use ferrozyme_ir::interpret::{Datum, Machine};
use ferrozyme_ir::{FunctionId, Module, ProcessorLevel, Type};

/// How many operations a run may take.
const STEP_LIMIT: u64 = 10_000_000;

/// `run`: all `; run:` lines, before and after optimisation.
pub(super) fn run(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    if directive.details.is_empty() {
        return Err("no `; run:` line belongs to it".to_owned());
    }
    let module = session.module()?;
    let mut optimised = module.clone();
    optimise_all(&mut optimised);
    verify_module(&optimised).map_err(|error| format!("after optimisation {error}"))?;
    let mut failures = Vec::new();
    for detail in &directive.details {
        let outcome = check_line(module, detail).and_then(|keeps| {
            // A fault may go with the dead code that causes it; results may not change.
            if keeps {
                check_line(&optimised, detail)
                    .map_err(|error| format!("after optimisation: {error}"))?;
            }
            Ok(())
        });
        if let Err(error) = outcome {
            failures.push(format!("line {}: {}\n  {error}", detail.line, detail.text));
        }
    }
    if failures.is_empty() {
        Ok(Output::Passed)
    } else {
        Err(failures.join("\n"))
    }
}

/// `fault @f(1.0)`: the fault, in full.
pub(super) fn fault(session: &mut Session, directive: &Directive) -> Result<Output, String> {
    let module = session.module()?;
    let mut scanner = Scanner::new(directive.arguments());
    let call = read_call(module, &mut scanner)?;
    scanner.finish()?;
    match call.make(module)? {
        Ok(finished) => {
            let results: Vec<String> = finished.results.iter().map(ToString::to_string).collect();
            Err(format!(
                "nothing goes wrong; it gives ({})",
                results.join(", ")
            ))
        }
        Err(fault) => Ok(Output::Text(fault)),
    }
}

/// A call as it is written.
struct Call {
    function: FunctionId,
    arguments: Vec<Written>,
    /// The level of the processor.
    level: Option<ProcessorLevel>,
    /// How many threads there are.
    threads: usize,
}

/// A call that came to its end.
struct Finished<'m> {
    /// The machine, with the memory as the call left it.
    machine: Machine<'m>,
    /// Where the arguments are.
    arguments: Arguments,
    /// The results of the call.
    results: Vec<Datum>,
}

/// Reads `@f(1.0, [2.0])`, `@f(1.0, [2.0]) at v3` or `@f(1.0, [2.0]) on 3 threads`.
fn read_call(module: &Module, scanner: &mut Scanner) -> Result<Call, String> {
    let function = find_function(module, scanner.symbol()?)?;
    scanner.expect("(")?;
    let arguments = scanner.list(")", read_value)?;
    let level = read_level(scanner)?;
    let threads = read_threads(scanner)?;
    Ok(Call {
        function,
        arguments,
        level,
        threads,
    })
}

impl Call {
    /// Makes the call. A fault in it, or a leak, is the inner error.
    fn make<'m>(&self, module: &'m Module) -> Result<Result<Finished<'m>, String>, String> {
        let mut machine = Machine::new(module);
        machine.check_promises();
        machine.set_processor_level(self.level);
        machine.set_threads(self.threads);
        machine.set_step_limit(STEP_LIMIT);
        let types: Vec<Type> = module.functions[self.function]
            .params
            .iter()
            .map(|param| param.ty)
            .collect();
        let arguments = place_arguments(&mut machine, &types, &self.arguments)?;
        let results = match machine.call(self.function, &arguments.data) {
            Ok(results) => results,
            Err(fault) => return Ok(Err(fault.to_string())),
        };
        // Memory that the caller can still reach is not lost.
        let reachable = results.iter().any(|result| result.ty.is_ptr())
            || arguments.blocks.iter().any(|block| {
                let mut types = block.cells.iter().map(|cell| cell.ty);
                types.any(Type::is_ptr)
            });
        if !reachable && let Err(fault) = machine.check_leaks() {
            return Ok(Err(fault.to_string()));
        }
        Ok(Ok(Finished {
            machine,
            arguments,
            results,
        }))
    }
}

/// Checks one line; says whether it expects results, which must survive optimisation.
fn check_line(module: &Module, detail: &Detail) -> Result<bool, String> {
    let mut scanner = Scanner::new(detail.text);
    let call = read_call(module, &mut scanner)?;
    if scanner.eat_word("faults") {
        let wanted = scanner
            .rest()
            .trim()
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .ok_or_else(|| scanner.complain("what goes wrong, in quotes"))?;
        return match call.make(module)? {
            Ok(_) => Err("nothing goes wrong".to_owned()),
            Err(fault) if fault.contains(wanted) => Ok(false),
            Err(fault) => Err(format!("something else goes wrong: {fault}")),
        };
    }
    let closeness = if scanner.eat("==") {
        Closeness::Exact
    } else if scanner.eat("~=") {
        Closeness::Within(1e-12)
    } else {
        return Err(scanner.complain("`==`, `~=` or `faults`"));
    };
    let expected = read_values(&mut scanner)?;
    let mut memory = Vec::new();
    if scanner.eat_word("with") {
        memory.push(read_value(&mut scanner)?);
        while scanner.eat(",") {
            memory.push(read_value(&mut scanner)?);
        }
    }
    scanner.finish()?;
    let finished = call
        .make(module)?
        .map_err(|fault| format!("it fails: {fault}"))?;
    compare(
        &finished,
        &finished.results,
        &expected,
        closeness,
        "results",
    )?;
    if !memory.is_empty() {
        let pointers: Vec<Datum> = finished
            .arguments
            .data
            .iter()
            .zip(&call.arguments)
            .filter(|(_, written)| matches!(written, Written::Memory(_)))
            .map(|(datum, _)| datum.clone())
            .collect();
        compare(&finished, &pointers, &memory, closeness, "memory")?;
    }
    Ok(true)
}

fn compare(
    finished: &Finished,
    actual: &[Datum],
    expected: &[Written],
    closeness: Closeness,
    what: &str,
) -> Result<(), String> {
    let machine = &finished.machine;
    let shown = || {
        let values: Vec<String> = actual
            .iter()
            .enumerate()
            .map(|(index, datum)| {
                show(machine, datum, expected.get(index).unwrap_or(&Written::Any))
            })
            .collect();
        format!("the {what} are ({})", values.join(", "))
    };
    if actual.len() != expected.len() {
        return Err(format!("{}, but {} are expected", shown(), expected.len()));
    }
    for (datum, expected) in actual.iter().zip(expected) {
        if !is_as_expected(machine, datum, expected, closeness)? {
            return Err(shown());
        }
    }
    Ok(())
}
