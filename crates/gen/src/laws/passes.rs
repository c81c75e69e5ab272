//! Laws of passes: the program verifies afterwards and does the same.

use super::{Kind, Law, Subject, Violation, is_exact};
use crate::inputs::{Inputs, Outputs};
use crate::shrink::sections::sections;
use ferrozyme_filetest::gradcheck::Precision;
use ferrozyme_ir::{
    Flags, FunctionId, Module, Opcode, all_ops, parse_module, print_module, verify_module,
};
use ferrozyme_opt::{
    OptimiseOptions, PASSES, REORDERING, hand_out_values, optimise, optimise_with,
    parallelise_loops, remove_dead_code, separate_pointers,
};

/// Each pass alone keeps the program's meaning.
pub fn each_keeps_meaning(
    subject: &Subject,
    inputs: &Inputs,
    outputs: &Outputs,
) -> Result<(), Violation> {
    let before = print_module(&subject.module);
    for &(name, pass) in PASSES {
        // All of them together are a law of their own.
        if name == "optimise" {
            continue;
        }
        let mut module = subject.module.clone();
        let mut changes = 0;
        for function in defined_functions(&module) {
            changes += pass(&mut module, function);
        }
        if changes > 0 {
            keeps_meaning(Law::Passes, name, subject, &module, inputs, outputs)?;
        } else if print_module(&module) != before {
            let detail = format!("{name} changes the program but reports no change");
            return Err(Violation::new(Law::Passes, Kind::Text, detail));
        }
    }
    Ok(())
}

/// All passes together keep the program's meaning.
pub fn all_keep_meaning(
    subject: &Subject,
    inputs: &Inputs,
    outputs: &Outputs,
) -> Result<(), Violation> {
    let mut module = subject.module.clone();
    optimise_module(&mut module);
    keeps_meaning(Law::Optimise, "optimise", subject, &module, inputs, outputs)
}

/// The program computes the same on several threads, as it is and optimised.
pub fn threads_keep_meaning(
    subject: &Subject,
    inputs: &Inputs,
    outputs: &Outputs,
) -> Result<(), Violation> {
    let mut optimised = subject.module.clone();
    optimise_module(&mut optimised);
    for mut module in [subject.module.clone(), optimised] {
        if parallelise_module(&mut module) > 0 {
            let pass = "parallelise_loops";
            keeps_meaning(Law::Threads, pass, subject, &module, inputs, outputs)?;
        }
    }
    Ok(())
}

/// Runs every loop that qualifies on several threads, as if the program had asked for that; returns how many.
pub(crate) fn parallelise_module(module: &mut Module) -> usize {
    let mut changes = 0;
    for id in defined_functions(module) {
        let function = &mut module.functions[id];
        for op in all_ops(function) {
            let data = &mut function.ops[op];
            if data.opcode == Opcode::For {
                data.flags = data.flags.union(Flags::PARALLEL);
            }
        }
        changes += parallelise_loops(module, id);
    }
    changes
}

/// Runs all passes on all functions.
pub(crate) fn optimise_module(module: &mut Module) {
    for function in defined_functions(module) {
        optimise(module, function);
    }
}

/// Has all functions test whether memory overlaps, as they do before they are differentiated.
pub(crate) fn separate_module(module: &mut Module) {
    for function in defined_functions(module) {
        separate_pointers(module, function);
    }
}

/// Runs all passes on all functions, in a given way.
pub(crate) fn optimise_module_with(module: &mut Module, options: &OptimiseOptions) {
    for function in defined_functions(module) {
        optimise_with(module, function, options);
    }
}

/// The same program with its functions in reverse order.
pub(crate) fn reverse_functions(module: &Module, main: FunctionId) -> (Module, FunctionId) {
    let text = print_module(module);
    let is_function =
        |section: &&str| section.starts_with("func ") || section.starts_with("declare ");
    let (functions, mut others): (Vec<&str>, Vec<&str>) =
        sections(&text).into_iter().partition(is_function);
    others.extend(functions.into_iter().rev());
    let reversed = parse_module(&others.join("\n")).expect("what is printed can be parsed");
    let main = reversed.function_named(&module.functions[main].name);
    let main = main.expect("all functions are still there");
    (reversed, main)
}

/// Runs all passes on all functions, and then those for what is not differentiated once more.
pub(crate) fn finish_module(module: &mut Module) {
    optimise_module(module);
    for function in defined_functions(module) {
        hand_out_values(module, function);
        remove_dead_code(module, function);
    }
}

fn defined_functions(module: &Module) -> Vec<FunctionId> {
    let functions = module.functions.iter();
    functions
        .filter(|(_, function)| function.body.is_some())
        .map(|(id, _)| id)
        .collect()
}

/// A transformed program verifies and does what the original does.
pub fn keeps_meaning(
    law: Law,
    pass: &str,
    subject: &Subject,
    changed: &Module,
    inputs: &Inputs,
    outputs: &Outputs,
) -> Result<(), Violation> {
    verify_module(changed)
        .map_err(|errors| Violation::invalid(law, &format!("the program after {pass}"), &errors))?;
    let after = inputs
        .run(changed, subject.main, &inputs.state)
        .map_err(|fault| {
            Violation::fault(law, &format!("the program after {pass} fails"), &fault)
        })?;
    // Passes keep every bit unless flags, or they themselves, allow otherwise.
    let tolerance = if is_exact(&subject.module) && !REORDERING.contains(&pass) {
        0.0
    } else {
        Precision::of(&subject.module).derivative * (1.0 + outputs.state.largest())
    };
    let Some(difference) = outputs.state.difference(&after.state, tolerance) else {
        return Ok(());
    };
    let detail = format!("{pass} changes what the program computes: {difference}");
    Err(Violation::new(law, Kind::Wrong, detail))
}
