//! Hints: functions of the convention without an effect that describe memory, its size, fixed-point loops, and the number of iterations that the derivative of an approximation needs.
//!
//! ```text
//! n = __enzyme_iter(12, 1)       in the function: 12, in its derivative: 13, in the derivative of that: 14
//! ```
//!
//! Their calls are removed when derivatives have been made.

use ferrozyme_ir::{Builder, Cursor, FunctionId, Module as Loops, Opcode as LoopOpcode, Payload};
use ferrozyme_llvm::{Context, Module, Opcode, Place, Value};

/// The number of iterations; what it grows by for each derivative comes second.
const ITERATIONS: &str = "__enzyme_iter";

/// What memory holds is known here from what the program does with it.
const OF_MEMORY: &[&str] = &[
    "__enzyme_float",
    "__enzyme_double",
    "__enzyme_integer",
    "__enzyme_pointer",
    "__enzyme_ptr_size_hint",
];

/// Marks a loop that iterates to a fixed point. Derivatives here go through its iterations, which converges with them.
const FIXED_POINT: &str = "__enzyme_set_fixed_point";

/// clang's, for debuggers: what keeps a variable until its end.
const KEPT: &str = "llvm.fake.use";

/// Whether a function of this name only says something.
pub(super) fn is_hint(name: &str) -> bool {
    name.contains(ITERATIONS)
        || name.contains(FIXED_POINT)
        || OF_MEMORY.iter().any(|hint| name.contains(hint))
}

/// Removes what is said of memory, and says of the rest that it does nothing else.
pub(crate) fn declare_hints<'c>(context: &'c Context, module: Module<'c>) {
    let of_variables = |name: &str| name.starts_with(KEPT);
    take(module, |name| {
        of_variables(name) || is_hint(name) && !name.contains(ITERATIONS)
    });
    for function in module.functions() {
        if function.is_declaration() && function.name().contains(ITERATIONS) {
            for (fact, number) in [("memory", 0), ("nounwind", 0), ("willreturn", 0)] {
                function.add_attribute(Place::Function, context.attribute(fact, number));
            }
        }
    }
}

/// Removes all of them.
pub(crate) fn take_hints(module: Module<'_>) {
    take(module, is_hint);
}

fn take(module: Module<'_>, is_meant: impl Fn(&str) -> bool) {
    for function in module.functions().collect::<Vec<_>>() {
        if !function.is_declaration() || !is_meant(&function.name()) {
            continue;
        }
        for call in function.users() {
            let is_call = |call: Value<'_>| {
                call.is_instruction() && call.is(Opcode::Call) && call.called() == function
            };
            if !is_call(call) {
                continue;
            }
            if call.is_used() {
                let value = call.arguments().first().copied();
                let value = value.filter(|value| value.ty() == call.ty());
                call.replace_uses_with(value.unwrap_or(call.ty().zero()));
            }
            call.erase();
        }
    }
}

/// Lets functions that belong to a derivative iterate as often as is said for one more derivative.
pub(crate) fn count_iterations(module: &mut Loops, functions: &[FunctionId]) {
    for &id in functions {
        for region in module.functions[id].regions.keys().collect::<Vec<_>>() {
            for call in module.functions[id].regions[region].ops.clone() {
                let Payload::Callee(callee) = module.functions[id].ops[call].payload else {
                    continue;
                };
                if !module.functions[callee].name.contains(ITERATIONS) {
                    continue;
                }
                let function = &mut module.functions[id];
                let [count, step] = *function.ops[call].arguments() else {
                    continue;
                };
                let before = Cursor::before(function, region, call);
                let more = Builder::at(function, before).binary(LoopOpcode::Add, count, step);
                function.ops[call].arguments_mut()[0] = more;
            }
        }
    }
}
