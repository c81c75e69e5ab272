//! Makes a program smaller that shows a defect.
//!
//! A candidate is a copy of the program with one thing taken away: an operation whose results become a constant or another
//! value, a region unwrapped into its surroundings, a loop cut short, a function emptied, a fact forgotten. It replaces
//! the program if `fails` still says so; that must include whatever makes a program valid, as [`fails_the_same`] does.
//! This goes on until no candidate is left, so the result is minimal with respect to these steps.
//!
//! A fact must stay true: pointers are exchanged only where the module makes no promise about pointers.

use crate::laws::{Kind, Law, Subject, Tally, Violation, check};
use ferrozyme_ir::{
    Function, FunctionId, MemoryEffect, Module, Op, OpData, Opcode, ParamFacts, Region, Type,
    Value, for_each_op, parse_module, print_module,
};
use std::collections::HashMap;

/// A smaller program for which `fails` holds, as it does for the given one, after trying at most so many candidates.
pub fn shrink(
    subject: &Subject,
    fails: &mut dyn FnMut(&Subject) -> bool,
    candidates: usize,
) -> Subject {
    let mut search = Search {
        best: subject.clone(),
        fails,
        left: candidates,
    };
    loop {
        let size = measure(&search.best.module);
        search.forget_facts();
        search.empty_functions();
        search.remove_ranges();
        search.unwrap_regions();
        search.remove_operations();
        search.simplify_operands();
        search.drop_unused_functions();
        if search.left == 0 || measure(&search.best.module) >= size {
            return search.best;
        }
    }
}

/// A test for [`shrink`]: the same law is broken in the same way, with the same complaint but for names and numbers.
pub fn fails_the_same<'v>(
    violation: &'v Violation,
    laws: &'v [Law],
) -> impl FnMut(&Subject) -> bool + 'v {
    move |candidate| {
        let result = check(candidate, laws, &mut Tally::default());
        matches!(result, Err(other) if other.law == violation.law
            && other.kind == violation.kind
            && complaint(&other) == complaint(violation))
    }
}

/// The first line of what is wrong, without the names and numbers that change as a program shrinks.
fn complaint(violation: &Violation) -> String {
    if !matches!(violation.kind, Kind::Panic | Kind::Refused | Kind::Invalid) {
        return String::new();
    }
    let line = violation.detail.lines().next().unwrap_or_default();
    if violation.kind == Kind::Panic {
        return line.to_owned();
    }
    let words = line.split_whitespace();
    words
        .filter(|word| !word.contains(['@', '%']) && !word.contains(|c: char| c.is_ascii_digit()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// How large a program is: operations first, then how complicated what is left looks.
pub fn measure(module: &Module) -> (usize, usize) {
    let mut operations = 0;
    let mut operands = 0;
    for function in module.functions.values() {
        visit(function, &mut |_, op| {
            operations += 1;
            let data = &function.ops[op];
            operands += data
                .operands
                .iter()
                .filter(|&&operand| !function.is_constant(operand))
                .count();
        });
    }
    (operations, operands + print_module(module).len())
}

struct Search<'f> {
    best: Subject,
    fails: &'f mut dyn FnMut(&Subject) -> bool,
    left: usize,
}

impl Search<'_> {
    /// Takes a change over if the program still fails after it.
    fn attempt(&mut self, change: impl FnOnce(&mut Module) -> bool) -> bool {
        if self.left == 0 {
            return false;
        }
        let mut candidate = self.best.clone();
        if !change(&mut candidate.module) {
            return false;
        }
        self.left -= 1;
        remove_unused(&mut candidate.module);
        if !(self.fails)(&candidate) {
            return false;
        }
        self.best = candidate;
        true
    }

    fn functions(&self) -> Vec<FunctionId> {
        let functions = self.best.module.functions.iter();
        functions
            .filter(|(_, function)| function.body.is_some())
            .map(|(id, _)| id)
            .collect()
    }

    /// Drops promises, names and places.
    fn forget_facts(&mut self) {
        self.attempt(|module| {
            for function in module.functions.values_mut() {
                for value in function.values.values_mut() {
                    value.name = None;
                }
                for op in function.ops.values_mut() {
                    op.location = None;
                }
            }
            true
        });
        self.attempt(|module| {
            forget(module, |_| true);
            true
        });
        for id in self.functions() {
            self.attempt(|module| {
                let before = module.functions[id].params.clone();
                forget(module, |function| function == id);
                before != module.functions[id].params
            });
            for position in 0..self.best.module.functions[id].params.len() {
                self.attempt(|module| {
                    let facts = &mut module.functions[id].params[position].facts;
                    let layout = facts.layout.clone();
                    let bare = ParamFacts {
                        layout,
                        ..ParamFacts::default()
                    };
                    std::mem::replace(facts, bare.clone()) != bare
                });
            }
        }
        self.attempt(|module| {
            let mut any = false;
            for function in module.functions.values_mut() {
                for op in function.ops.values_mut() {
                    any |= !op.flags.is_empty();
                    op.flags = ferrozyme_ir::Flags::NONE;
                }
            }
            any
        });
    }

    /// Replaces whole functions by ones that return zeros, and calls by constants.
    fn empty_functions(&mut self) {
        for id in self.functions() {
            self.attempt(|module| {
                let function = &mut module.functions[id];
                let body = function.body();
                if function.regions[body].ops.len() == 1 || function.results.contains(&Type::PTR) {
                    return false;
                }
                let zeros: Vec<Value> = (function.results.clone().into_iter())
                    .map(|ty| function.zero(ty))
                    .collect();
                let last = function.terminator(body);
                function.ops[last].operands = zeros.into_iter().collect();
                function.regions[body].ops = vec![last];
                true
            });
        }
    }

    /// Removes ranges of operations at once, from halves of a region down to pairs.
    fn remove_ranges(&mut self) {
        for id in self.functions() {
            for region in regions_of(&self.best.module.functions[id]) {
                let mut width = self.best.module.functions[id].regions[region].ops.len() / 2;
                while width >= 2 {
                    let mut start = 0;
                    loop {
                        let ops = &self.best.module.functions[id].regions[region].ops;
                        // The terminator stays.
                        if start + width >= ops.len() {
                            break;
                        }
                        let range: Vec<Op> = ops[start..start + width].to_vec();
                        let gone = self.attempt(|module| {
                            let function = &mut module.functions[id];
                            range.iter().rev().for_each(|&op| {
                                remove(function, region, op, &Stand::Zero);
                            });
                            true
                        });
                        if !gone {
                            start += width;
                        }
                    }
                    width /= 2;
                }
            }
        }
    }

    /// Removes operations one by one, the last first.
    fn remove_operations(&mut self) {
        for id in self.functions() {
            let mut places = Vec::new();
            visit(&self.best.module.functions[id], &mut |region, op| {
                places.push((region, op));
            });
            for (region, op) in places.into_iter().rev() {
                for stand in [
                    Stand::Zero,
                    Stand::Operand(0),
                    Stand::Operand(1),
                    Stand::One,
                ] {
                    let gone = self.attempt(|module| {
                        let free = promises_nothing(module);
                        let function = &mut module.functions[id];
                        if !holds(function, region, op) {
                            return false;
                        }
                        let data = &function.ops[op];
                        let pointers = data.results.iter().any(|&v| function.ty(v).is_ptr());
                        if pointers
                            && stand != Stand::Zero
                            && !free
                            && data.opcode != Opcode::Offset
                        {
                            return false;
                        }
                        remove(function, region, op, &stand)
                    });
                    if gone {
                        break;
                    }
                }
            }
        }
    }

    /// Puts the contents of a region in the place of the operation that holds it.
    fn unwrap_regions(&mut self) {
        for id in self.functions() {
            let mut places = Vec::new();
            visit(&self.best.module.functions[id], &mut |region, op| {
                places.push((region, op));
            });
            for (region, op) in places {
                let inner = self.best.module.functions[id].ops[op].regions.to_vec();
                for which in 0..inner.len() {
                    let done = self.attempt(|module| {
                        let function = &mut module.functions[id];
                        holds(function, region, op) && unwrap(function, region, op, which)
                    });
                    if done {
                        break;
                    }
                }
            }
        }
    }

    /// Replaces operands by constants, and constants by simpler ones.
    fn simplify_operands(&mut self) {
        for id in self.functions() {
            let mut ops = Vec::new();
            visit(&self.best.module.functions[id], &mut |_, op| ops.push(op));
            for op in ops.into_iter().rev() {
                for position in 0..self.best.module.functions[id].ops[op].operands.len() {
                    for choice in 0..3 {
                        let done = self.attempt(|module| {
                            let function = &mut module.functions[id];
                            simplify_operand(function, op, position, choice)
                        });
                        if done {
                            break;
                        }
                    }
                }
            }
        }
    }

    /// Removes functions and globals that nothing mentions, all at once or one by one.
    fn drop_unused_functions(&mut self) {
        let main = self.best.module.functions[self.best.main].name.clone();
        let text = print_module(&self.best.module);
        let mut kept: Vec<&str> = sections(&text);
        loop {
            let next: Vec<&str> = (kept.iter().copied())
                .filter(|section| is_needed(section, &kept, &main))
                .collect();
            if next.len() == kept.len() {
                break;
            }
            kept = next;
        }
        if self.attempt_text(&kept, &main) {
            return;
        }
        let mut kept: Vec<&str> = sections(&text);
        let mut position = 0;
        while position < kept.len() {
            let mut fewer = kept.clone();
            fewer.remove(position);
            if !is_needed(kept[position], &kept, &main) && self.attempt_text(&fewer, &main) {
                kept = fewer;
            } else {
                position += 1;
            }
        }
    }

    /// Takes over the program that these parts of a text make, if it still fails.
    fn attempt_text(&mut self, sections: &[&str], main: &str) -> bool {
        let Ok(module) = parse_module(&sections.join("\n\n")) else {
            return false;
        };
        let Some(main) = module.function_named(main) else {
            return false;
        };
        let candidate = Subject {
            module,
            main,
            seed: self.best.seed,
        };
        if self.left == 0 || !(self.fails)(&candidate) {
            return false;
        }
        self.left -= 1;
        self.best = candidate;
        true
    }
}

/// Whether a part of a text is `@main`, or says something about what another part mentions.
fn is_needed(section: &str, all: &[&str], main: &str) -> bool {
    if section.starts_with("file ") {
        return all.iter().any(|other| other.contains(" loc("));
    }
    let (name, rule) = match (symbol(section), section.strip_prefix("rule @")) {
        (Some(name), _) => (name, false),
        (None, Some(rest)) => (rest.split(' ').next().unwrap_or_default(), true),
        (None, None) => return true,
    };
    // A rule is of use only if its function is called.
    name == main
        || all.iter().any(|other| {
            *other != section && mentions(other, name) && !(rule && symbol(other) == Some(name))
        })
}

/// What stands for the results of an operation that is removed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stand {
    /// Zeros.
    Zero,
    /// Ones.
    One,
    /// The operand at a position, or the first of the right type behind it.
    Operand(usize),
}

/// Removes an operation from its region. False if its results cannot be replaced so.
fn remove(function: &mut Function, region: Region, op: Op, stand: &Stand) -> bool {
    let OpData {
        opcode,
        operands,
        results,
        ..
    } = function.ops[op].clone();
    if matches!(
        opcode,
        Opcode::Yield | Opcode::Again | Opcode::Return | Opcode::Trap
    ) {
        return false;
    }
    if results.is_empty() && *stand != Stand::Zero {
        return false;
    }
    let mut replacement = HashMap::new();
    for result in results {
        let ty = function.ty(result);
        let value = match stand {
            Stand::Zero => function.zero(ty),
            Stand::One if ty.is_float() => function.float(ty, 1.0),
            Stand::One if ty.is_int() => function.int(ty, 1),
            Stand::One => return false,
            Stand::Operand(position) => {
                let fitting = operands.iter().skip(*position);
                match fitting.copied().find(|&operand| function.ty(operand) == ty) {
                    Some(value) => value,
                    None => return false,
                }
            }
        };
        replacement.insert(result, value);
    }
    function.replace_operands(&replacement.into_iter().collect());
    function.regions[region].ops.retain(|&other| other != op);
    true
}

/// Puts the contents of one region of an operation in its place: a branch taken always, a loop run once.
fn unwrap(function: &mut Function, region: Region, op: Op, which: usize) -> bool {
    let data = function.ops[op].clone();
    let inner = data.regions[which];
    let last = function.terminator(inner);
    let end = function.ops[last].clone();
    let yielded = match end.opcode {
        Opcode::Yield => &end.operands[..],
        Opcode::Again => &end.operands[1..],
        _ => return false,
    };
    let initial = match data.opcode {
        // The counter is what it starts from.
        Opcode::For => std::iter::once(data.operands[0])
            .chain(data.operands[3..].iter().copied())
            .collect(),
        Opcode::Loop => data.operands.to_vec(),
        _ => Vec::new(),
    };
    let mut replacement: HashMap<Value, Value> = HashMap::new();
    for (&argument, value) in function.regions[inner].args.iter().zip(initial) {
        replacement.insert(argument, value);
    }
    for (&result, &value) in data.results.iter().zip(yielded) {
        replacement.insert(result, value);
    }
    let mut contents = std::mem::take(&mut function.regions[inner].ops);
    contents.pop();
    let ops = &mut function.regions[region].ops;
    let Some(position) = ops.iter().position(|&other| other == op) else {
        return false;
    };
    ops.splice(position..=position, contents);
    function.replace_operands(&replacement.into_iter().collect());
    true
}

fn simplify_operand(function: &mut Function, op: Op, position: usize, choice: usize) -> bool {
    let Some(&operand) = function.ops[op].operands.get(position) else {
        return false;
    };
    let ty = function.ty(operand);
    if ty.is_ptr() || ty.is_vector() {
        return false;
    }
    let new = if let Some(number) = function.int_of(operand) {
        match choice {
            0 if number != 0 => function.int(ty, 0),
            1 if number > 1 => function.int(ty, 1),
            2 if number > 2 => function.int(ty, number - 1),
            _ => return false,
        }
    } else if let Some(number) = function.float_of(operand) {
        match choice {
            0 if number != 1.0 && number != 0.0 => function.float(ty, 1.0),
            _ => return false,
        }
    } else if function.is_constant(operand) {
        return false;
    } else if ty.is_float() {
        match choice {
            0 => function.float(ty, 1.0),
            1 => function.float(ty, 0.5),
            _ => return false,
        }
    } else {
        match choice {
            0 => function.int(ty, 0),
            1 => function.int(ty, 1),
            _ => return false,
        }
    };
    function.ops[op].operands[position] = new;
    true
}

/// Removes operations without effect whose results nobody uses, so that one step of the search is enough for a chain.
fn remove_unused(module: &mut Module) {
    for function in module.functions.values_mut() {
        if function.body.is_none() {
            continue;
        }
        let mut uses: HashMap<Value, usize> = HashMap::new();
        let mut places = Vec::new();
        visit(function, &mut |region, op| {
            places.push((region, op));
            for &operand in &function.ops[op].operands {
                *uses.entry(operand).or_default() += 1;
            }
        });
        for (region, op) in places.into_iter().rev() {
            let data = &function.ops[op];
            let idle = matches!(
                data.opcode.effect(),
                ferrozyme_ir::Effect::Pure
                    | ferrozyme_ir::Effect::Partial
                    | ferrozyme_ir::Effect::Read
            ) || data.opcode == Opcode::Stack;
            let unused = (data.results.iter()).all(|value| uses.get(value).is_none_or(|&n| n == 0));
            if idle && unused {
                for operand in &data.operands {
                    if let Some(count) = uses.get_mut(operand) {
                        *count -= 1;
                    }
                }
                function.regions[region].ops.retain(|&other| other != op);
            }
        }
    }
}

/// Drops the facts of parameters and functions, but for layouts, which say what memory holds.
fn forget(module: &mut Module, which: impl Fn(FunctionId) -> bool) {
    for (id, function) in module.functions.iter_mut() {
        if !which(id) {
            continue;
        }
        for param in &mut function.params {
            let layout = param.facts.layout.take();
            param.facts = ParamFacts {
                layout,
                ..ParamFacts::default()
            };
        }
        function.facts.memory = MemoryEffect::Any;
        function.facts.willreturn = false;
        function.facts.noinline = false;
    }
}

fn promises_nothing(module: &Module) -> bool {
    module.functions.values().all(|function| {
        function.facts.memory == MemoryEffect::Any
            && function.params.iter().all(|param| {
                let facts = &param.facts;
                !(facts.noalias || facts.readonly || facts.writeonly || facts.nocapture)
            })
    })
}

fn visit(function: &Function, visitor: &mut impl FnMut(Region, Op)) {
    if let Some(body) = function.body {
        for_each_op(function, body, visitor);
    }
}

fn regions_of(function: &Function) -> Vec<Region> {
    let mut regions: Vec<Region> = function.body.into_iter().collect();
    visit(function, &mut |_, op| {
        regions.extend_from_slice(&function.ops[op].regions);
    });
    regions
}

fn holds(function: &Function, region: Region, op: Op) -> bool {
    function.regions[region].ops.contains(&op)
}

/// The parts of a module's text, one for each function, global, and so on.
fn sections(text: &str) -> Vec<&str> {
    let mut sections = Vec::new();
    let mut start = 0;
    let mut position = 0;
    for line in text.split_inclusive('\n') {
        let opens = ["func ", "global ", "declare ", "rule ", "file "];
        if opens.iter().any(|word| line.starts_with(word)) && position > start {
            sections.push(text[start..position].trim_end());
            start = position;
        }
        position += line.len();
    }
    sections.push(text[start..].trim_end());
    sections.retain(|section| !section.is_empty());
    sections
}

/// The name that a part defines.
fn symbol(section: &str) -> Option<&str> {
    let rest = (section.strip_prefix("func @"))
        .or_else(|| section.strip_prefix("global @"))
        .or_else(|| section.strip_prefix("declare @"))?;
    rest.split(['(', ':', ' ']).next()
}

fn mentions(section: &str, name: &str) -> bool {
    let sign = format!("@{name}");
    section.match_indices(&sign).any(|(at, _)| {
        let next = section[at + sign.len()..].chars().next();
        !next.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '\''))
    })
}
