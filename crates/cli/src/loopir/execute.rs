//! `loopir run`.

use crate::source::{choose_function, read_verified_module};
use clap::Args;
use ferrozyme_filetest::arguments::{place_arguments, show};
use ferrozyme_filetest::value::{Written, parse_value};
use ferrozyme_ir::interpret::Machine;
use ferrozyme_ir::{FunctionId, Type};
use ferrozyme_opt::optimise;
use std::fmt::Write;
use std::path::PathBuf;

/// Runs a function on checked memory.
#[derive(Args, Debug)]
#[command(after_help = VALUES)]
pub(super) struct Run {
    /// The file, or `-` for the standard input.
    file: PathBuf,
    /// The function, such as `@f`.
    function: String,
    /// Its arguments.
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    arguments: Vec<String>,
    /// Optimises the module first.
    #[arg(long)]
    optimise: bool,
    /// Prints the number of executed operations and the memory used.
    #[arg(long)]
    statistics: bool,
    /// Stops after this many operations.
    #[arg(long, default_value_t = 10_000_000_000)]
    steps: u64,
}

const VALUES: &str = "\
Arguments are written as in test files:
  1.5  -3  true  inf  nan  null  undef  @f     scalars
  '<1.0, 2.0>'                                 a vector
  '[1.0, 2.0]'  '[1.0, 2.0]: f32'  '[0.0; 9]'  memory, of which the function gets the address
  '[1.5, 7: i32, [1.0]]'                       memory that holds a float, an integer and an address
  '&0'  '&0+8'                                 the memory of argument 0, and 8 bytes further on

Options stand before the file.";

impl Run {
    pub(super) fn run(&self) -> Result<String, String> {
        let mut module = read_verified_module(&self.file)?;
        let function = choose_function(&module, Some(&self.function))?;
        if self.optimise {
            let functions: Vec<FunctionId> = module.functions.keys().collect();
            for function in functions {
                optimise(&mut module, function);
            }
        }
        let mut written = Vec::new();
        for argument in &self.arguments {
            written.push(parse_value(argument).map_err(|error| format!("error: {error}"))?);
        }
        let mut machine = Machine::new(&module);
        machine.set_step_limit(self.steps);
        let types: Vec<Type> = module.functions[function]
            .params
            .iter()
            .map(|param| param.ty)
            .collect();
        let arguments = place_arguments(&mut machine, &types, &written)
            .map_err(|error| format!("error: {error}"))?;
        let results = machine
            .call(function, &arguments.data)
            .map_err(|fault| format!("error: {fault}"))?;
        let mut text = String::new();
        let shown: Vec<String> = results.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "({})", shown.join(", "));
        for (index, (datum, written)) in arguments.data.iter().zip(&written).enumerate() {
            if let Written::Memory(_) = written {
                let _ = writeln!(text, "argument {index}: {}", show(&machine, datum, written));
            }
        }
        if let Err(leak) = machine.check_leaks() {
            let _ = writeln!(text, "note: {leak}");
        }
        if self.statistics {
            let statistics = machine.statistics();
            let _ = writeln!(text, "operations: {}", statistics.steps);
            let _ = writeln!(
                text,
                "heap: {} allocations, {} bytes in all, {} bytes at most at one time",
                statistics.allocations, statistics.allocated_bytes, statistics.peak_heap_bytes
            );
        }
        Ok(text)
    }
}
