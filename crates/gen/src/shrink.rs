//! Makes a program smaller that shows a defect.
//!
//! A candidate is a copy of the program with one thing taken away: an operation whose results become a constant or another
//! value, a region unwrapped into its surroundings, a loop cut short, a function emptied, a fact forgotten. It replaces
//! the program if `fails` still says so; that must include whatever makes a program valid, as [`fails_the_same`] does.
//! This goes on until no candidate is left, so the result is minimal with respect to these steps.
//!
//! A fact must stay true: pointers are exchanged only where the module makes no promise about pointers.

mod edit;
pub(crate) mod sections;

use crate::laws::{Kind, Law, Subject, Tally, Violation, check};
use edit::{Stand, forget, promises_nothing, remove, remove_unused, simplify_operand, unwrap};
use ferrozyme_ir::{
    Flags, Function, FunctionId, Module, Op, Opcode, ParamFacts, Region, Type, Value, for_each_op,
    parse_module, print_module,
};
use sections::{is_needed, sections};

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

/// The first line of a failure, without names and numbers that change as a program shrinks.
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

/// The size of a program: operations first, then the complexity of the rest.
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
        // Usually dead code can be removed along with it; sometimes the defect is about dead code.
        let mut tidied = candidate.clone();
        let tidies = remove_unused(&mut tidied.module) > 0;
        for candidate in [tidies.then_some(tidied), Some(candidate)]
            .into_iter()
            .flatten()
        {
            self.left = self.left.saturating_sub(1);
            if (self.fails)(&candidate) {
                self.best = candidate;
                return true;
            }
        }
        false
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
                    op.flags = Flags::NONE;
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
