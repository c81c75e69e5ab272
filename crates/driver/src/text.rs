//! Refuses differentiated functions that both print and parse numbers.
//!
//! Writing text has no derivative, and what is read from text counts as constant. Each is right by itself: a program prints what it computes, or reads a table. Where a
//! function does both, a number may come back from its own text, and would have lost its derivative on the way without a word. What text goes where is not followed, so both in one
//! function are refused.

use crate::refusal::{place_of, say};
use crate::report::{Diagnostic, Location};
use crate::requests::{FoundRequest, Mode};
use ferrozyme_library::{Known, demangle, is};
use ferrozyme_llvm::{Context, Module, Opcode, TypeKind, Value, ValueKind};
use ferrozyme_refusal::Refusal;
use std::collections::HashSet;

/// Says which of the roots of requests both write floats as text and read floats from text.
pub(crate) fn refuse_numbers_from_text<'c>(
    context: &'c Context,
    module: Module<'c>,
    requests: &[FoundRequest],
) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    let mut seen_places = HashSet::new();
    // A function itself has no derivative to lose.
    let differentiated = requests
        .iter()
        .filter(|request| request.mode != Mode::Primal);
    for request in differentiated {
        let Some(root) = module.function(&request.root) else {
            continue;
        };
        let Some((writes, reads)) = find_both(root) else {
            continue;
        };
        if seen_places.insert(reads) {
            let mut problem = Diagnostic {
                location: place_of(context, reads, request),
                construct: Some("a number is read from text here".to_owned()),
                ..say(request, &Refusal::ThroughText)
            };
            if let Some(Location { file, line, .. }) = place_of(context, writes, request) {
                let note = format!("a number is written as text at {file}:{line}");
                problem.notes.push(note);
            }
            problems.push(problem);
        }
    }
    problems
}

/// An instruction that writes floats as text, and one that reads them, in what a root reaches.
fn find_both(root: Value<'_>) -> Option<(Value<'_>, Value<'_>)> {
    let (mut writes, mut reads) = (None, None);
    let mut work = vec![root];
    let mut seen: HashSet<Value<'_>> = work.iter().copied().collect();
    while let Some(function) = work.pop() {
        for instruction in function.instructions() {
            for operand in instruction.operands() {
                if operand.kind() != ValueKind::Function {
                    continue;
                }
                let name = operand.name();
                if writes.is_none() && writes_floats(instruction, &name) {
                    writes = Some(instruction);
                }
                if reads.is_none() && is(&name, &Known::ReadsText) {
                    reads = Some(instruction);
                }
                if !operand.is_declaration() && seen.insert(operand) {
                    work.push(operand);
                }
            }
        }
        if let (Some(writes), Some(reads)) = (writes, reads) {
            return Some((writes, reads));
        }
    }
    None
}

/// Whether an instruction that names a function has it write floats as text. Formatting is given the method for each thing that it writes, functions of C the floats.
fn writes_floats(instruction: Value<'_>, name: &str) -> bool {
    let is_float =
        |argument: &Value<'_>| matches!(argument.ty().kind(), TypeKind::Float | TypeKind::Double);
    is(name, &Known::WritesText)
        && match demangle(name) == name {
            true => instruction.is_call() && instruction.arguments().iter().any(is_float),
            false => instruction.is(Opcode::Store) || instruction.is_call(),
        }
}
