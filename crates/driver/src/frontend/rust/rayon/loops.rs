//! Marks the loops over the items of parallel iterators, so that derivatives can run them on several threads.
//!
//! ```text
//! for %i … { … } loc(core/…/iterator.rs from rayon/…/plumbing/mod.rs from rayon/…/sum.rs from main.rs:7:10)      for parallel %i … { … }
//! ```
//!
//! Which loops these are shows when all that an iterator consists of has been inlined, and by where they come from: there are no others whose code was inlined into the functions that split the items. The outermost loop of an iterator is the one over
//! its items. Iterators are told apart by the place in the program where they are used. What an iterator calls outside of its loop, and nobody else does, is a part of it that was not inlined.
//!
//! Nothing rests on the marks: what is missing runs on one thread, and a loop that is marked is proven to be independent.

use super::is_plumbing;
use ferrozyme_ir::{
    Flags, Function, FunctionId, Location, Module, Op, Opcode, Payload, Region, all_ops,
};
use std::collections::{HashMap, HashSet};

/// Marks them in all functions of a module.
pub(crate) fn mark_parallel_iterators(module: &mut Module) {
    let is_of = |test: fn(&str) -> bool| module.files.iter().map(|file| test(file)).collect();
    let files = Files {
        plumbing: is_of(is_plumbing),
        library: is_of(is_library),
    };
    if !files.plumbing.contains(&true) {
        return;
    }
    let sites = call_sites(module);
    let mut parts = Vec::new();
    let ids: Vec<FunctionId> = module.functions.keys().collect();
    for id in ids {
        parts.extend(mark_in(module, id, Some(&files)));
    }
    let mut seen = HashSet::new();
    while let Some(id) = parts.pop() {
        if sites.get(&id) == Some(&1) && seen.insert(id) {
            parts.extend(mark_in(module, id, None));
        }
    }
}

/// What files hold, by their numbers.
struct Files {
    /// The functions that split.
    plumbing: Vec<bool>,
    /// Code of rayon, and of what that is made of.
    library: Vec<bool>,
}

fn is_library(file: &str) -> bool {
    let parts = ["/rayon-", "library/core/", "library/alloc/", "library/std/"];
    parts.iter().any(|part| file.contains(part))
}

/// The use of an iterator: the place in the program, unless the function is a part of the iterator itself.
type Use = Option<Location>;

/// Marks the loops of iterators in a function, or its outermost ones if all of it belongs to one. Gives the functions that iterators call outside of their loops.
fn mark_in(module: &mut Module, id: FunctionId, files: Option<&Files>) -> Vec<FunctionId> {
    let Some(body) = module.functions[id].body else {
        return Vec::new();
    };
    let mut finder = Finder {
        module,
        function: &module.functions[id],
        files,
        around: Vec::new(),
        loops: Vec::new(),
        callees: Vec::new(),
    };
    finder.visit(body);
    let Finder { loops, callees, .. } = finder;
    for op in loops {
        let flags = &mut module.functions[id].ops[op].flags;
        *flags = flags.union(Flags::PARALLEL);
    }
    callees
}

struct Finder<'m> {
    module: &'m Module,
    function: &'m Function,
    files: Option<&'m Files>,
    /// The uses whose loops are around.
    around: Vec<Use>,
    loops: Vec<Op>,
    callees: Vec<FunctionId>,
}

impl Finder<'_> {
    fn visit(&mut self, region: Region) {
        let function = self.function;
        for &op in &function.regions[region].ops {
            let data = &function.ops[op];
            let found = self.use_of(data.location);
            let is_outermost = found.is_some_and(|found| !self.around.contains(&found));
            let is_loop = matches!(data.opcode, Opcode::For | Opcode::Loop);
            if is_outermost && is_loop {
                self.loops.push(op);
            } else if is_outermost {
                self.callees.extend(called_by(function, op));
            }
            let depth = self.around.len();
            self.around.extend(found.filter(|_| is_loop));
            for &inner in &data.regions {
                self.visit(inner);
            }
            self.around.truncate(depth);
        }
    }

    /// The use of the innermost iterator that an operation belongs to.
    fn use_of(&self, location: Option<Location>) -> Option<Use> {
        let Some(files) = self.files else {
            return Some(None);
        };
        let of = |table: &[bool], location: Location| {
            let file = self.module.locations[location].file as usize;
            table.get(file).copied().unwrap_or(false)
        };
        let next = |&location: &Location| self.module.locations[location].inlined_at;
        let mut chain = std::iter::successors(location, next);
        chain.find(|&location| of(&files.plumbing, location))?;
        Some(chain.find(|&location| !of(&files.library, location)))
    }
}

fn called_by(function: &Function, op: Op) -> Option<FunctionId> {
    match function.ops[op].payload {
        Payload::Callee(callee) if function.ops[op].opcode == Opcode::Call => Some(callee),
        _ => None,
    }
}

/// How often functions are called by name.
fn call_sites(module: &Module) -> HashMap<FunctionId, usize> {
    let mut sites = HashMap::new();
    let functions = module.functions.values();
    for function in functions.filter(|function| function.body.is_some()) {
        for op in all_ops(function) {
            if let Some(callee) = called_by(function, op) {
                *sites.entry(callee).or_default() += 1;
            }
        }
    }
    sites
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrozyme_ir::{parse_module, print_module, verify_module};

    #[test]
    fn the_outermost_loop_of_each_iterator_is_marked() {
        let mut module = parse_module(
            r#"file 0 "/p/src/main.rs"
             file 1 "/cargo/rayon-1.12.0/src/iter/plumbing/mod.rs"
             file 2 "/cargo/rayon-1.12.0/src/iter/sum.rs"
             declare @work(i64)
             func @f(%n: i64) {
               for %a: i64 = 0 to %n step 1 loc(0:3:5) {
                 for %b: i64 = 0 to %n step 1 loc(2:99:49 from 1:437:13 from 2:99:49 from 0:9:1) {
                   for %c: i64 = 0 to %n step 1 loc(0:8:5 from 1:437:13 from 2:99:49 from 0:9:1) {
                     call @work(%c) loc(0:9:5 from 1:437:13 from 2:99:49 from 0:9:1)
                     yield
                   }
                   for %d: i64 = 0 to %n step 1 loc(2:99:49 from 1:437:13 from 0:7:3 from 1:437:13 from 2:99:49 from 0:9:1) {
                     call @work(%d)
                     yield
                   }
                   yield
                 }
                 for %e: i64 = 0 to %n step 1 loc(2:99:49 from 1:437:13 from 0:10:1) {
                   call @work(%e)
                   yield
                 }
                 yield
               }
               call @inside(%n) loc(1:437:13 from 0:12:1)
               call @twice(%n) loc(1:437:13 from 0:12:1)
               call @twice(%n) loc(0:13:1)
               return
             }
             func @inside(%n: i64) {
               for %g: i64 = 0 to %n step 1 {
                 for %h: i64 = 0 to %n step 1 {
                   call @work(%h)
                   yield
                 }
                 yield
               }
               return
             }
             func @twice(%n: i64) {
               for %i: i64 = 0 to %n step 1 {
                 call @work(%i)
                 yield
               }
               return
             }"#,
        )
        .expect("it is a module");
        mark_parallel_iterators(&mut module);
        verify_module(&module).expect("it is one still");
        let text = print_module(&module).to_string();
        let marked = text
            .lines()
            .filter_map(|line| line.split("for parallel %").nth(1));
        let counters: Vec<&str> = marked.filter_map(|rest| rest.split(':').next()).collect();
        assert_eq!(counters, ["b", "d", "e", "g"]);
    }
}
