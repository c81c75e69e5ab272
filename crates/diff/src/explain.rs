//! Prints the analyses and the caching plan: what is saved, and why.

use crate::activity::{Activities, Giver, Question, analyse_activity};
use crate::differentiate::{Study, study_reverse};
use crate::error::Error;
use crate::objects::{Objects, ObjectsCache};
use crate::plan::{Decision, Plan, Reason};
use crate::request::{Activity, Request};
use crate::statics::assume_constants;
use crate::step::Step;
use ferrozyme_ir::{Function, Module, Names, Op, Opcode, Region, Value, all_ops, print_op_with};
use ferrozyme_opt::indices::{Counted, Indices};
use ferrozyme_opt::symbolic::Symbolic;
use std::fmt::Write;

/// What is active in a function: its values and its memory.
///
/// # Errors
/// If something active in it cannot be differentiated.
pub fn explain_activity(module: &Module, request: &Request) -> Result<String, Error> {
    let function = &module.functions[request.function];
    request.check(function, false)?;
    let objects = Objects::analyse(module, request.function, &mut ObjectsCache::new(), None);
    let activities = assume_constants(&mut module.clone(), |module, assumption| {
        analyse_activity(
            module,
            &objects,
            &Question {
                function: request.function,
                args: &request.args,
                results: &request.results,
                giver: Giver::User,
                constants: &[],
            },
            assumption,
        )
    })?;
    let names = Names::of(function);
    let mut text = heading("activity", function, request);
    write_memory(&mut text, &objects, &activities);
    for (index, &arg) in function.arguments().iter().enumerate() {
        let what = describe(&activities, &objects, function, arg);
        line(
            &mut text,
            what,
            &format!("{}: argument {index}", name_of(&names, arg)),
        );
    }
    for op in all_ops(function) {
        let data = &function.ops[op];
        for &region in &data.regions {
            for &arg in &function.regions[region].args {
                let what = describe(&activities, &objects, function, arg);
                line(
                    &mut text,
                    what,
                    &format!("{}: carried", name_of(&names, arg)),
                );
            }
        }
        let what = match data.results.first() {
            Some(&first) => describe(&activities, &objects, function, first),
            None => continue,
        };
        line(
            &mut text,
            what,
            print_op_with(module, function, &names, op).trim(),
        );
    }
    Ok(text)
}

/// What the reverse sweep of a function needs of the forward sweep, where it gets it from, what is saved and why.
///
/// # Errors
/// If something active in it cannot be differentiated.
pub fn explain_plan(module: &Module, request: &Request) -> Result<String, Error> {
    let mut scratch = module.clone();
    let study = study_reverse(&mut scratch, request)?;
    let mut text = heading("plan", &module.functions[request.function], request);
    let explanation = Explanation {
        module: &scratch,
        study: &study,
        function: &study.augmented.function,
        names: Names::of(&study.augmented.function),
        indices: Indices::of(&study.augmented.function),
    };
    explanation.write(&mut text);
    Ok(text)
}

fn heading(what: &str, function: &Function, request: &Request) -> String {
    let list = |activities: &[Activity]| -> String {
        let words: Vec<&str> = activities.iter().map(|a| a.name()).collect();
        words.join(", ")
    };
    format!(
        "{what} of @{} ({}) -> ({})\n",
        function.name,
        list(&request.args),
        list(&request.results)
    )
}

fn line(text: &mut String, word: &str, rest: &str) {
    let _ = writeln!(text, "  {word:<9} {rest}");
}

fn name_of(names: &Names, value: Value) -> String {
    names
        .get(value)
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn describe(
    activities: &Activities,
    objects: &Objects,
    function: &Function,
    value: Value,
) -> &'static str {
    if activities.is_active(value) {
        "active"
    } else if activities.has_shadow(objects, function, value) {
        "shadowed"
    } else {
        "constant"
    }
}

fn write_memory(text: &mut String, objects: &Objects, activities: &Activities) {
    for class in objects.classes() {
        let what = match (
            activities.is_active_class(class),
            activities.is_shadowed_class(class),
        ) {
            (true, _) => "active",
            (false, true) => "shadowed",
            (false, false) => "constant",
        };
        line(text, what, &format!("memory {class}"));
    }
}

/// A sum of products of factors, of which the first may be a number: like terms are put together.
fn total_of(terms: &[Vec<String>]) -> Option<String> {
    let mut sums: Vec<(u64, Vec<String>)> = Vec::new();
    for term in terms {
        let (number, rest) = match term.first().and_then(|first| first.parse().ok()) {
            Some(number) => (number, &term[1..]),
            None => (1, &term[..]),
        };
        match sums.iter_mut().find(|(_, other)| other == rest) {
            Some((sum, _)) => *sum += number,
            None => sums.push((number, rest.to_vec())),
        }
    }
    let words = sums.into_iter().map(|(number, mut factors)| {
        if number != 1 || factors.is_empty() {
            factors.insert(0, number.to_string());
        }
        factors.join("*")
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(" + "))
}

struct Explanation<'a> {
    module: &'a Module,
    study: &'a Study,
    function: &'a Function,
    names: Names,
    indices: Indices<'a>,
}

impl Explanation<'_> {
    fn plan(&self) -> &Plan {
        &self.study.plan
    }

    fn write(&self, text: &mut String) {
        let mut saved: Vec<Vec<String>> = Vec::new();
        for op in all_ops(self.function) {
            for &region in &self.function.ops[op].regions {
                for &arg in &self.function.regions[region].args {
                    self.write_value(text, arg, None, &mut saved);
                }
            }
            for &result in &self.function.ops[op].results {
                self.write_value(text, result, Some(op), &mut saved);
            }
        }
        for (index, range) in self.plan().ranges.iter().enumerate() {
            if range.used {
                self.write_range(text, index as u32, &mut saved);
            }
        }
        let total = match total_of(&saved) {
            Some(total) => format!("saved in all: {total} bytes"),
            None => "nothing is saved".to_owned(),
        };
        let _ = writeln!(text, "  {total}");
        if self.has_calls() {
            let _ = writeln!(text, "  besides, what the tapes of calls hold");
        }
    }

    fn has_calls(&self) -> bool {
        let steps = self.study.augmented.steps.values();
        steps
            .into_iter()
            .any(|step| matches!(step, Step::Call(call) if call.tape.is_some()))
    }

    /// The operation of a value, or the value itself.
    fn text_of(&self, value: Value, op: Option<Op>) -> String {
        match op {
            Some(op) if self.function.ops[op].regions.is_empty() => {
                let text = print_op_with(self.module, self.function, &self.names, op);
                match self.function.ops[op].results.len() {
                    1 => text.trim().to_owned(),
                    _ => format!("{} of {}", name_of(&self.names, value), text.trim()),
                }
            }
            _ => name_of(&self.names, value),
        }
    }

    fn write_value(
        &self,
        text: &mut String,
        value: Value,
        op: Option<Op>,
        saved: &mut Vec<Vec<String>>,
    ) {
        let what = self.text_of(value, op);
        match self.plan().decisions[value] {
            Decision::Unneeded => {}
            // A counter, which the reverse of the loop has anyway.
            Decision::Recompute if op.is_none() => {}
            Decision::Recompute => {
                let is_load = op.is_some_and(|op| self.function.ops[op].opcode == Opcode::Load);
                line(text, if is_load { "reload" } else { "recompute" }, &what);
            }
            Decision::FromRange(range) => {
                line(
                    text,
                    "reload",
                    &format!("{what} (from saved range {range})"),
                );
            }
            Decision::Stored => {
                let reload = self.plan().reloads[&value];
                let store = print_op_with(self.module, self.function, &self.names, reload.store);
                let mut way = format!("{what} (from where `{}` put it", store.trim());
                if let Some(times) = reload.times {
                    way += &format!(", times {}", name_of(&self.names, times));
                }
                line(text, "reload", &format!("{way})"));
            }
            Decision::Save => {
                let structure = self.indices.structure();
                let region = structure
                    .region_of_value(self.function, value)
                    .expect("a saved value has a place");
                if self.stays_a_value(region) {
                    line(text, "keep", &format!("{what} (stays a value)"));
                    return;
                }
                let size = self.size(value, region);
                let why = self.why(value);
                line(
                    text,
                    "save",
                    &format!("{what}: {} bytes, {why}", size.join("*")),
                );
                saved.push(size);
            }
        }
    }

    /// Whether what is kept of a region is kept as a value: it lies in no loop that is reversed later.
    fn stays_a_value(&self, region: Region) -> bool {
        let structure = self.indices.structure();
        let mut region = region;
        loop {
            let holder = structure.op_of(region);
            if self.plan().at_once.is_complete(holder, true) {
                return true;
            }
            let Some(holder) = holder else {
                return true;
            };
            if matches!(self.function.ops[holder].opcode, Opcode::For | Opcode::Loop) {
                return false;
            }
            match structure.region_of(holder) {
                Some(outer) => region = outer,
                None => return true,
            }
        }
    }

    /// How many bytes a value takes over all iterations of the loops around it, as factors.
    fn size(&self, value: Value, region: Region) -> Vec<String> {
        let mut factors = vec![self.function.ty(value).bytes().to_string()];
        factors.extend(self.iterations(region));
        factors
    }

    /// How often a region runs within what is differentiated at once, as factors.
    fn iterations(&self, region: Region) -> Vec<String> {
        let structure = self.indices.structure();
        let mut factors = Vec::new();
        let mut region = region;
        while let Some(op) = structure.op_of(region) {
            // What is differentiated at once uses the same memory in each iteration.
            if self.plan().at_once.ops.contains(&op) {
                break;
            }
            match self.function.ops[op].opcode {
                Opcode::For => factors.push(
                    match self.indices.counted(op).and_then(Counted::trip_count) {
                        Some(count) if self.is_known_outside(&count, op) => self.factor(&count),
                        _ => {
                            let counter = self.function.regions[region].args[0];
                            format!("trips({})", name_of(&self.names, counter))
                        }
                    },
                ),
                Opcode::Loop => factors.push(match self.study.augmented.trips.get(&op) {
                    Some(trips) => name_of(&self.names, trips.count),
                    None => "trips".to_owned(),
                }),
                _ => {}
            }
            match structure.region_of(op) {
                Some(outer) => region = outer,
                None => break,
            }
        }
        factors.reverse();
        factors
    }

    /// Whether an expression has one value wherever the total is read: it does not name the counter of a loop.
    fn is_known_outside(&self, expression: &Symbolic, op: Op) -> bool {
        let loops = self.indices.loops_around(op);
        loops
            .iter()
            .all(|&around| self.indices.is_invariant(expression, around))
    }

    fn factor(&self, expression: &Symbolic) -> String {
        let text = expression.to_text(&self.names);
        if text.contains(' ') {
            format!("({text})")
        } else {
            text
        }
    }

    fn write_range(&self, text: &mut String, index: u32, saved: &mut Vec<Vec<String>>) {
        let range = &self.plan().ranges[index as usize];
        let outside = self
            .indices
            .structure()
            .region_of(range.nest)
            .expect("a loop stands in a region");
        let mut size = vec![self.factor(&range.bytes)];
        size.extend(self.iterations(outside));
        let root = name_of(&self.names, range.root);
        let start = match range.start.is_constant() {
            Some(0) => root,
            _ => format!("{root} + {}", range.start.to_text(&self.names)),
        };
        let nest = self.function.ops[range.nest].regions[0];
        let counter = name_of(&self.names, self.function.regions[nest].args[0]);
        let what = format!(
            "range {index} from {start} behind the loop over {counter}: {} bytes, {}",
            size.join("*"),
            self.why_range(index)
        );
        line(text, "save", &what);
        saved.push(size);
    }

    fn why(&self, value: Value) -> String {
        match self.plan().reasons.get(&value) {
            Some(&reason) => self.because(reason),
            None => "since recomputing it costs more".to_owned(),
        }
    }

    fn why_range(&self, index: u32) -> String {
        match self.plan().ranges[index as usize].reason {
            Some(reason) => self.because(reason),
            None => String::new(),
        }
    }

    fn because(&self, reason: Reason) -> String {
        match reason {
            Reason::Overwritten(by) => {
                let by = print_op_with(self.module, self.function, &self.names, by);
                format!("since `{}` may overwrite what was read", by.trim())
            }
            Reason::OverwrittenByCaller => {
                "since the caller may overwrite what was read".to_owned()
            }
            Reason::Stack => "since the stack it was read from is gone then".to_owned(),
            Reason::Unsteady => {
                "since floats and pointers share its place in the shadow".to_owned()
            }
            Reason::Carried => "since it is carried between iterations".to_owned(),
            Reason::Region => "since it comes out of a region".to_owned(),
            Reason::Call => "since a call gave it".to_owned(),
            Reason::Allocation => "since it is the address of new memory".to_owned(),
            Reason::Dear => "since recomputing it costs more".to_owned(),
        }
    }
}
