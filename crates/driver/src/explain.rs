//! Describes a derivative: its arguments, its memory, what it saves and why, with source lines.

use crate::ladder::{LADDER, Relaxation};
use crate::refusal::is_of_toolchain;
use crate::requests::{FoundRequest, Mode};
use ferrozyme_diff::{self as diff, explain_activity, explain_plan};
use ferrozyme_ir::{FunctionId, Module, Op, Opcode, all_ops, print_op};
use ferrozyme_opt::{Obstacle, Outcome, ParallelObstacle, Strategy, explain_contractions};
use std::collections::HashMap;
use std::fmt::Write;

/// Arguments, memory and the caching plan of a derivative, and what it is made with that would not have been accepted otherwise. Locations are still numbers ([`show_locations`]).
pub(crate) fn summarise(
    module: &Module,
    request: &FoundRequest,
    asked: &diff::Request,
    relaxed: &[Relaxation],
) -> String {
    let root = &module.functions[asked.function];
    let arguments = request.interface.explain_arguments(root, asked);
    let mut text = format!("arguments:\n{arguments}");
    if !relaxed.is_empty() {
        text.push_str("refused otherwise, so made with:\n");
        for rung in LADDER
            .iter()
            .filter(|rung| relaxed.contains(&rung.relaxation))
        {
            let _ = writeln!(text, "  {}", rung.shown);
        }
    }
    if request.mode == Mode::Primal {
        return text;
    }
    match explain_activity(module, asked) {
        Ok(activity) => write_memory(&mut text, &activity),
        Err(error) => text.push_str(&format!("{error}\n")),
    }
    if request.mode == Mode::Reverse {
        match explain_plan(module, asked) {
            Ok(plan) => write_plan(&mut text, &plan),
            Err(error) => text.push_str(&format!("{error}\n")),
        }
    }
    text
}

/// The sums of products in these functions that stay loops, and why, by function.
pub(crate) fn describe_loops(
    module: &Module,
    functions: &[FunctionId],
) -> HashMap<FunctionId, Vec<String>> {
    let describe = |&id: &FunctionId| {
        let lines = explain_contractions(module, id).into_iter();
        let lines = lines.map(|(store, obstacle)| describe_obstacle(module, id, store, obstacle));
        (id, lines.collect())
    };
    functions.iter().map(describe).collect()
}

/// The matrix products in these functions: those that are contractions, and those that stay loops.
pub(crate) fn describe_products(
    module: &Module,
    functions: &[FunctionId],
    left: &HashMap<FunctionId, Vec<String>>,
) -> String {
    let mut lines: Vec<String> = Vec::new();
    for &id in functions {
        let function = &module.functions[id];
        for op in all_ops(function) {
            if function.ops[op].opcode == Opcode::Contract {
                lines.push(format!("  raised    {}", print_op(module, function, op)));
            }
        }
        lines.extend(left.get(&id).into_iter().flatten().cloned());
    }
    match lines.is_empty() {
        true => String::new(),
        false => format!("sums of products:\n{}\n", lines.join("\n")),
    }
}

fn describe_obstacle(module: &Module, id: FunctionId, store: Op, obstacle: Obstacle) -> String {
    let function = &module.functions[id];
    let (reason, other) = match obstacle {
        Obstacle::NoArray(op) => ("not an array with one stride for each loop", Some(op)),
        Obstacle::TripCount(op) => ("a trip count that is not known before the nest", Some(op)),
        Obstacle::NoMatrixProduct => ("no product of two matrices", None),
        Obstacle::TooSmall => ("too small for a kernel", None),
        Obstacle::SamePlace => ("iterations may store to the same place", None),
        Obstacle::SetRepeatedly => ("each iteration of a sum sets the place anew", None),
        Obstacle::OtherUse => ("the sum is used for something else", None),
        Obstacle::MayStop => ("the loops may stop the program", None),
        Obstacle::Conflict(op) => ("another access may touch the same memory", Some(op)),
    };
    let mut line = format!("  loops     {reason}");
    if let Some(op) = other.filter(|&op| op != store) {
        let _ = write!(line, ": {}", print_op(module, function, op));
    }
    let _ = write!(line, "\n    in      {}", print_op(module, function, store));
    line
}

/// What has become of a loop that is meant for several threads.
pub(crate) fn describe_threads(module: &Module, id: FunctionId, outcome: &Outcome) -> String {
    let function = &module.functions[id];
    let mut others = Vec::new();
    let text = match &outcome.choice {
        Ok(choice) => {
            let mut parts = vec!["several threads".to_owned()];
            if choice.tests > 0 {
                parts.push("if memory does not overlap".to_owned());
            }
            for (store, strategy) in &choice.shared {
                others.push(*store);
                parts.push(match strategy {
                    Strategy::Neighbours(_) => {
                        "every second block first, since neighbours add to the same places"
                            .to_owned()
                    }
                    Strategy::Copies => "a copy for each block of what all add to".to_owned(),
                    Strategy::Atomic => "atomic additions".to_owned(),
                });
            }
            parts.join(", ")
        }
        Err(obstacle) => {
            let reason = match *obstacle {
                ParallelObstacle::Carried => "an iteration needs what the one before it computed",
                ParallelObstacle::AnyMemory(op) => {
                    others.push(op);
                    "an operation may touch any memory"
                }
                ParallelObstacle::Conflict(a, b) => {
                    others.extend([a, b]);
                    "iterations may touch the same memory"
                }
                ParallelObstacle::TooManyAccesses => "it touches memory at too many places",
            };
            format!("one thread: {reason}")
        }
    };
    let mut lines = format!(
        "  {text}\n    in      {}",
        print_op(module, function, outcome.op)
    );
    others.dedup();
    for op in others {
        let _ = write!(lines, "\n    at      {}", print_op(module, function, op));
    }
    lines
}

/// What memory there is and what is active in it.
fn write_memory(text: &mut String, activity: &str) {
    let memory: Vec<(&str, &str)> = activity
        .lines()
        .filter_map(|line| line.trim().split_once(char::is_whitespace))
        .filter_map(|(word, rest)| Some((word, rest.trim_start().strip_prefix("memory ")?)))
        .collect();
    if !memory.is_empty() {
        text.push_str("memory:\n");
    }
    for (word, class) in memory {
        let _ = writeln!(text, "  {word:<9} {class}");
    }
}

/// What is saved; of the rest how much there is.
fn write_plan(text: &mut String, plan: &str) {
    let mut counts = [("kept as values", 0), ("recomputed", 0), ("read again", 0)];
    text.push_str("saved for the reverse sweep:\n");
    let mut totals = Vec::new();
    for line in plan.lines().skip(1) {
        let word = line.split_whitespace().next().unwrap_or_default();
        match word {
            "keep" => counts[0].1 += 1,
            "recompute" => counts[1].1 += 1,
            "reload" => counts[2].1 += 1,
            "save" => {
                let _ = writeln!(text, "{line}");
            }
            _ => totals.push(line),
        }
    }
    for total in totals {
        let _ = writeln!(text, "{total}");
    }
    let rest: Vec<String> = counts
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    if !rest.is_empty() {
        let _ = writeln!(text, "  other values: {}", rest.join(", "));
    }
}

/// Replaces the numbers of `loc(file:line:column from …)` in a text of Loop IR by the place in the source that says most to the user: the
/// innermost one outside of the toolchain. It goes to the end of its line.
pub(crate) fn show_locations(files: &[String], text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for line in text.lines() {
        let mut rest = line;
        let mut places: Vec<String> = Vec::new();
        while let Some((before, chain, after)) = split_location(rest) {
            shown.push_str(before);
            if let Some(place) = choose_place(files, chain)
                && !places.contains(&place)
            {
                places.push(place);
            }
            rest = after;
        }
        shown.push_str(rest);
        if !places.is_empty() {
            let _ = write!(shown, "  ; {}", places.join(", "));
        }
        shown.push('\n');
    }
    shown
}

/// What stands before the first location, in it and behind it.
fn split_location(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find(" loc(")?;
    let inside = &text[start + " loc(".len()..];
    let end = inside.find(')')?;
    Some((&text[..start], &inside[..end], &inside[end + 1..]))
}

fn choose_place(files: &[String], chain: &str) -> Option<String> {
    let places: Vec<(&str, &str)> = chain
        .split(" from ")
        .filter_map(|place| {
            let (file, position) = place.split_once(':')?;
            let file = files.get(file.parse::<usize>().ok()?)?;
            Some((
                file.as_str(),
                position.strip_suffix(":0").unwrap_or(position),
            ))
        })
        .collect();
    let of_user = |(file, _): &&(&str, &str)| !is_of_toolchain(file);
    let (file, position) = places.iter().find(of_user).or_else(|| places.first())?;
    Some(format!("{file}:{position}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_the_user_are_shown() {
        let files = ["src/main.rs", "/rustc/1/library/core/src/iter.rs"].map(str::to_owned);
        let text = "  %1 = load f64 %0 align 8 loc(1:7:9 from 0:5:0): 8 bytes\n  %2 = zero loc(1:3:4)\nend\n";
        assert_eq!(
            show_locations(&files, text),
            "  %1 = load f64 %0 align 8: 8 bytes  ; src/main.rs:5\n  %2 = zero  ; /rustc/1/library/core/src/iter.rs:3:4\nend\n"
        );
    }

    #[test]
    fn only_what_is_saved_is_listed() {
        let mut text = String::new();
        let plan = "plan of @f (dup) -> (active)\n  keep      %1 (stays a value)\n  save      %2: 8 bytes, since\n  recompute %3\n  saved in all: 8 bytes\n";
        write_plan(&mut text, plan);
        assert_eq!(
            text,
            "saved for the reverse sweep:\n  save      %2: 8 bytes, since\n  saved in all: 8 bytes\n  other values: 1 kept as values, 1 recomputed\n"
        );
    }
}
