//! Marks of loops that are meant for several threads, from LLVM IR to the Loop IR.
//!
//! ```text
//! %loop = call i32 @__ferrozyme_parallel_loop()                   before the loop
//! body:
//!   call void @__ferrozyme_parallel_iteration(i32 %loop)          for parallel … {
//!   …                                                       ⇒      …
//! ```
//!
//! LLVM optimises in between: it rotates, peels, copies and unrolls loops. So a mark is an operation that every iteration runs, and it says which loop it belongs to. Every loop around it, but within what is around the other call, runs nothing but
//! iterations of the loop that was marked: an iteration that was peeled off is in none, and the copies of a loop are marked like the original.

use ferrozyme_ir::{
    self as ir, Flags, Function, Op, Opcode, Payload, Region, Structure, Type, Value as LoopValue,
    all_ops,
};
use ferrozyme_llvm::{Block, Context, Module, Place, Value};
use std::collections::HashMap;

const LOOP: &str = "__ferrozyme_parallel_loop";
const ITERATION: &str = "__ferrozyme_parallel_iteration";

/// LLVM's mask for functions that read and write only memory which the program cannot access: their calls stay where they are, and nothing else has to.
const INACCESSIBLE_MEMORY: u64 = 0b1100;

/// The two functions in a module of LLVM.
pub(crate) struct Marks<'c> {
    of_loop: Value<'c>,
    of_iteration: Value<'c>,
}

impl<'c> Marks<'c> {
    /// Declares them.
    pub(crate) fn declare(context: &'c Context, module: Module<'c>) -> Marks<'c> {
        let number = context.integer(32);
        let of_loop = module.declare(LOOP, number.function(&[], false));
        let of_iteration = module.declare(ITERATION, context.void().function(&[number], false));
        for function in [of_loop, of_iteration] {
            let facts = [
                ("memory", INACCESSIBLE_MEMORY),
                ("nounwind", 0),
                ("willreturn", 0),
                ("nocallback", 0),
            ];
            for (fact, value) in facts {
                function.add_attribute(Place::Function, context.attribute(fact, value));
            }
        }
        Marks {
            of_loop,
            of_iteration,
        }
    }

    /// Marks the loops whose iterations run these blocks, all behind an instruction.
    pub(crate) fn mark(&self, context: &'c Context, start: Value<'c>, blocks: &[Block<'c>]) {
        let builder = context.builder();
        builder.before(start);
        let of_loop = builder.call_function(self.of_loop, &[]);
        for block in blocks {
            if let Some(first) = block.first_after_phis() {
                builder.before(first);
                builder.call_function(self.of_iteration, &[of_loop]);
            }
        }
    }
}

/// Marks the loops of the Loop IR, and removes the calls.
pub(crate) fn take_marks(module: &mut ir::Module) {
    let named = |name: &str| module.function_named(name);
    let (Some(of_loop), Some(of_iteration)) = (named(LOOP), named(ITERATION)) else {
        return;
    };
    for function in module.functions.values_mut() {
        if function.body.is_none() {
            continue;
        }
        let calls = |callee: ir::FunctionId| {
            let ops = all_ops(function).into_iter();
            let is_meant = |op: &Op| {
                function.ops[*op].opcode == Opcode::Call
                    && function.ops[*op].payload == Payload::Callee(callee)
            };
            ops.filter(is_meant).collect::<Vec<_>>()
        };
        let (begins, iterations) = (calls(of_loop), calls(of_iteration));
        let structure = Structure::of(function);
        let marked: Vec<Op> = iterations
            .iter()
            .flat_map(|&call| marked_loops(function, &structure, &begins, call))
            .collect();
        for op in marked {
            let flags = &mut function.ops[op].flags;
            *flags = flags.union(Flags::PARALLEL);
        }
        let zero = function.int(Type::I32, 0);
        let numbers: Vec<LoopValue> = begins.iter().map(|&op| function.result(op)).collect();
        let replaced: HashMap<LoopValue, LoopValue> =
            numbers.into_iter().map(|number| (number, zero)).collect();
        function.replace_operands(&replaced.into_iter().collect());
        let regions: Vec<Region> = function.regions.keys().collect();
        for region in regions {
            function.retain_ops(region, |_, op| {
                !begins.contains(&op) && !iterations.contains(&op)
            });
        }
    }
}

/// The loops around an iteration's call, up to what is around the call for its loop.
fn marked_loops(function: &Function, structure: &Structure, begins: &[Op], call: Op) -> Vec<Op> {
    let of = function.def_op(function.ops[call].arguments()[0]);
    let Some((begin, _)) = of.filter(|(begin, _)| begins.contains(begin)) else {
        return Vec::new();
    };
    let outside = structure.region_of(begin);
    let mut loops = Vec::new();
    let mut region = structure.region_of(call);
    while let Some(inner) = region {
        if region == outside {
            return loops;
        }
        let Some(holder) = structure.op_of(inner) else {
            break;
        };
        if matches!(function.ops[holder].opcode, Opcode::For | Opcode::Loop) {
            loops.push(holder);
        }
        region = structure.region_of(holder);
    }
    Vec::new()
}
