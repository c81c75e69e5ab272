//! Function multiversioning: functions exist once for each level of the processor, and the program takes the one for the processor that is there.
//!
//! A program that is compiled for any x86-64 has vectors of 16 bytes. An *entry* (a function that the program calls, or whose address it takes) becomes a choice, which is made by each call:
//!
//! ```text
//! func @f(%x: ptr) {          func @f(%x: ptr) {                               func @f.baseline(%x: ptr) {
//!   for … {                     %level = call @__ferrozyme_processor_level()     for … { … }
//!     call @g(%x)               switch i32 %level {                            }
//!   }                ──▶          case 4 { call @f.v4(%x)                      func @f.v4(%x: ptr) level(v4) {
//! }                               …                                              for … { call @g.v4(%x) }
//!                                 default { call @f.baseline(%x)               }
//! ```
//!
//! The versions of a level call each other without a choice. Only functions that profit have versions: those with a loop that computes with floats and may run more than a few times, and those from which
//! such a function is called. Addresses of functions stay what they are, since programs compare them.
//!
//! A version computes what the original does, with other instructions: products and sums are fused only where the operations permit it.

use ferrozyme_ir::{
    Builder, Constant, Function, FunctionId, IntPredicate, Module, Opcode, Payload, ProcessorLevel,
    Region, Symbol, Type, Value, ValueDef, all_ops, type_passed_by_level,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// A loop that runs at most as often is not worth a version: the choice would cost more than wider vectors win.
const FEW_ITERATIONS: u64 = 16;

/// Makes versions of functions for these levels; returns how many.
///
/// The program calls the functions `entries`. A function that `is_elsewhere`, by its name, is not the one of this module: it is called as it is, and no version has its name.
pub fn multiversion(
    module: &mut Module,
    entries: &[FunctionId],
    levels: &[ProcessorLevel],
    is_elsewhere: &dyn Fn(&str) -> bool,
) -> usize {
    let reached = reached_from(module, entries, is_elsewhere);
    let versioned = worth_versions(module, &reached);
    let addressed = addressed_functions(module, &reached);
    let chosen: Vec<FunctionId> = (reached.iter().copied())
        .filter(|id| versioned.contains(id))
        .filter(|id| entries.contains(id) || addressed.contains(id))
        .filter(|&id| module.functions[id].type_passed_by_level().is_none())
        .collect();
    if chosen.is_empty() || levels.is_empty() || is_bound_to_level(module, &versioned) {
        return 0;
    }
    let names = module.functions.values().map(|one| one.name.clone());
    let mut names = Names {
        taken: names.collect(),
        is_elsewhere,
    };
    let originals: Vec<FunctionId> = (reached.iter().copied())
        .filter(|id| versioned.contains(id))
        .collect();
    let mut made = Vec::new();
    for &level in levels {
        let mut versions = FxHashMap::default();
        for &original in &originals {
            let mut version = module.functions[original].clone();
            version.name = names.fresh(&format!("{}.{level}", version.name));
            version.facts.level = Some(level);
            versions.insert(original, module.functions.push(version));
        }
        for &version in versions.values() {
            redirect_calls(&mut module.functions[version], &versions);
        }
        made.push((level, versions));
    }
    let mut baselines = FxHashMap::default();
    for &id in &chosen {
        let mut baseline = module.functions[id].clone();
        baseline.name = names.fresh(&format!("{}.baseline", baseline.name));
        // The choice stays small: it is all that lies between the caller and the other versions.
        baseline.facts.noinline = true;
        baselines.insert(id, module.functions.push(baseline));
    }
    let choices = chosen.iter().map(|&id| {
        let of_level = made.iter().map(|(level, versions)| (*level, versions[&id]));
        (id, of_level.collect(), baselines[&id])
    });
    let choices: Vec<(FunctionId, Vec<_>, FunctionId)> = choices.collect();
    // Below a choice nothing is chosen any more.
    for &id in originals.iter().chain(baselines.values()) {
        redirect_calls(&mut module.functions[id], &baselines);
    }
    let asked = module.processor_level();
    for (id, of_level, baseline) in choices {
        module.functions[id] = choice(&module.functions[id], asked, &of_level, baseline);
    }
    levels.len() * originals.len()
}

/// Names for new functions.
struct Names<'a> {
    taken: FxHashSet<String>,
    is_elsewhere: &'a dyn Fn(&str) -> bool,
}

impl Names<'_> {
    fn fresh(&mut self, wanted: &str) -> String {
        let numbered = (1..).map(|number| format!("{wanted}.{number}"));
        let mut candidates = std::iter::once(wanted.to_owned()).chain(numbered);
        let is_free = |name: &String| !self.taken.contains(name) && !(self.is_elsewhere)(name);
        let name = candidates.find(is_free).expect("some number is free");
        self.taken.insert(name.clone());
        name
    }
}

/// The functions with bodies here that may be called from some, by their names or their addresses. Those of a level are what they shall be.
fn reached_from(
    module: &Module,
    entries: &[FunctionId],
    is_elsewhere: &dyn Fn(&str) -> bool,
) -> Vec<FunctionId> {
    let mut found: FxHashSet<FunctionId> = FxHashSet::default();
    let mut order = Vec::new();
    let mut globals = FxHashSet::default();
    let mut pending: Vec<Symbol> = entries.iter().map(|&id| Symbol::Function(id)).collect();
    while let Some(symbol) = pending.pop() {
        match symbol {
            Symbol::Global(id) => {
                if globals.insert(id) {
                    let relocations = &module.globals[id].relocations;
                    pending.extend(relocations.iter().map(|&(_, symbol)| symbol));
                }
            }
            Symbol::Function(id) => {
                let function = &module.functions[id];
                let is_here = function.body.is_some()
                    && function.facts.level.is_none()
                    && (entries.contains(&id) || !is_elsewhere(&function.name));
                if is_here && found.insert(id) {
                    order.push(id);
                    pending.extend(called_by(function).map(Symbol::Function));
                    pending.extend(addresses_in(function));
                }
            }
        }
    }
    order
}

/// The functions that a function calls by their names.
fn called_by(function: &Function) -> impl Iterator<Item = FunctionId> {
    let ops = all_ops(function).into_iter();
    ops.filter_map(
        |op| match (&function.ops[op].payload, function.ops[op].opcode) {
            (Payload::Callee(callee), Opcode::Call) => Some(*callee),
            _ => None,
        },
    )
}

/// The symbols whose addresses are constants of a function.
fn addresses_in(function: &Function) -> impl Iterator<Item = Symbol> {
    let values = function.values.values();
    values.filter_map(|value| match value.def {
        ValueDef::Constant(Constant::Function(id)) => Some(Symbol::Function(id)),
        ValueDef::Constant(Constant::Global(id)) => Some(Symbol::Global(id)),
        _ => None,
    })
}

/// The functions whose address is taken, in code that is reached or in a global.
fn addressed_functions(module: &Module, reached: &[FunctionId]) -> FxHashSet<FunctionId> {
    let constants = reached
        .iter()
        .flat_map(|&id| addresses_in(&module.functions[id]));
    let globals = module.globals.values();
    let tables = globals.flat_map(|global| global.relocations.iter().map(|&(_, symbol)| symbol));
    constants
        .chain(tables)
        .filter_map(|symbol| match symbol {
            Symbol::Function(id) => Some(id),
            Symbol::Global(_) => None,
        })
        .collect()
}

/// Those of some functions that have a loop worth a version, that call such a function, or that take or return vectors in registers that depend on the level.
fn worth_versions(module: &Module, reached: &[FunctionId]) -> FxHashSet<FunctionId> {
    let mut callers: FxHashMap<FunctionId, Vec<FunctionId>> = FxHashMap::default();
    let mut pending = Vec::new();
    for &id in reached {
        let function = &module.functions[id];
        for callee in called_by(function) {
            callers.entry(callee).or_default().push(id);
        }
        if has_loop_over_floats(function) {
            pending.push(id);
        }
    }
    let mut worth = FxHashSet::default();
    while let Some(id) = pending.pop() {
        if worth.insert(id) {
            pending.extend(callers.get(&id).into_iter().flatten());
        }
    }
    if worth.is_empty() {
        return worth;
    }
    let by_level = |id: &FunctionId| module.functions[*id].type_passed_by_level().is_some();
    worth.extend(reached.iter().copied().filter(by_level));
    worth
}

/// Whether one of these functions passes vectors that depend on the level to a function that is not among them.
fn is_bound_to_level(module: &Module, versioned: &FxHashSet<FunctionId>) -> bool {
    versioned.iter().any(|&id| {
        let function = &module.functions[id];
        let by_level = |values: &[Value]| {
            let mut types = values.iter().map(|&value| function.ty(value));
            types.any(type_passed_by_level)
        };
        all_ops(function).into_iter().any(|op| {
            let data = &function.ops[op];
            let leaves = match (&data.payload, data.opcode) {
                (Payload::Callee(callee), _) => !versioned.contains(callee),
                (_, opcode) => opcode == Opcode::CallIndirect,
            };
            leaves && (by_level(&data.operands) || by_level(&data.results))
        })
    })
}

/// Whether a function computes with floats in a loop that may have more than a few iterations.
fn has_loop_over_floats(function: &Function) -> bool {
    fn visit(function: &Function, region: Region, iterations: u64) -> bool {
        function.regions[region].ops.iter().any(|&op| {
            let data = &function.ops[op];
            let computes = data.opcode.math().is_some()
                && data
                    .results
                    .iter()
                    .any(|&result| function.ty(result).is_float());
            if computes && iterations > FEW_ITERATIONS {
                return true;
            }
            let inside = match data.opcode {
                Opcode::For => iterations.saturating_mul(iterations_of(function, data.bounds())),
                Opcode::Loop => u64::MAX,
                _ => iterations,
            };
            let mut regions = data.regions.iter();
            regions.any(|&inner| visit(function, inner, inside))
        })
    }
    function.body.is_some_and(|body| visit(function, body, 1))
}

/// How often a counted loop runs; the largest number if that is not constant.
fn iterations_of(function: &Function, bounds: [Value; 3]) -> u64 {
    let [from, to, step] = bounds.map(|bound| function.int_of(bound));
    let (Some(from), Some(to), Some(step)) = (from, to, step) else {
        return u64::MAX;
    };
    let distance = match step > 0 {
        true => to.saturating_sub(from),
        false => from.saturating_sub(to),
    };
    let size = step.unsigned_abs().max(1);
    let trips = u128::try_from(distance).unwrap_or(0).div_ceil(size);
    u64::try_from(trips).unwrap_or(u64::MAX)
}

fn redirect_calls(function: &mut Function, to: &FxHashMap<FunctionId, FunctionId>) {
    for op in all_ops(function) {
        let data = &mut function.ops[op];
        if let (Payload::Callee(callee), Opcode::Call) = (&mut data.payload, data.opcode)
            && let Some(&other) = to.get(callee)
        {
            *callee = other;
        }
    }
}

/// A function that takes the place of another, and calls its version for the processor's level.
fn choice(
    original: &Function,
    asked: FunctionId,
    of_level: &[(ProcessorLevel, FunctionId)],
    baseline: FunctionId,
) -> Function {
    let (name, results) = (original.name.clone(), original.results.clone());
    let mut function = Function::define(name, original.params.clone(), results.clone());
    function.facts = original.facts.clone();
    let arguments = function.arguments().to_vec();
    let mut builder = Builder::at_body(&mut function);
    let level = builder.call(asked, &[], &[Type::I32]);
    let level = builder.function.ops[level].results[0];
    let mut tests = Vec::new();
    for &(needed, version) in of_level.iter().rev() {
        let number = builder.function.int(Type::I32, needed.number().into());
        let has = builder.icmp(IntPredicate::Sge, level, number);
        let (test, then, otherwise) = builder.if_else(has, &results);
        builder.go_to_end(then);
        call_and_yield(&mut builder, version, &arguments, &results);
        builder.go_to_end(otherwise);
        tests.push(test);
    }
    call_and_yield(&mut builder, baseline, &arguments, &results);
    // From the innermost test outwards each yields what it found.
    for pair in tests.windows(2).rev() {
        let around = builder.function.ops[pair[0]].regions[1];
        let found = builder.function.ops[pair[1]].results.to_vec();
        builder.go_to_end(around);
        builder.yields(&found);
    }
    let body = builder.function.body();
    builder.go_to_end(body);
    let found = builder.function.ops[tests[0]].results.to_vec();
    builder.ret(&found);
    function
}

fn call_and_yield(
    builder: &mut Builder<'_>,
    callee: FunctionId,
    arguments: &[Value],
    results: &[Type],
) {
    let op = builder.call(callee, arguments, results);
    let found = builder.function.ops[op].results.to_vec();
    builder.yields(&found);
}

#[cfg(test)]
mod tests {
    use super::multiversion;
    use expect_test::{Expect, expect};
    use ferrozyme_ir::interpret::{Datum, Machine};
    use ferrozyme_ir::{Module, ProcessorLevel, parse_module, print_module, verify_module};

    /// A module with versions of `@main`. `@elsewhere` is not the one of this module.
    fn versions_of(text: &str) -> (Module, usize) {
        let mut module = parse_module(text).expect("it parses");
        verify_module(&module).expect("it verifies");
        let main = module.function_named("main").expect("there is @main");
        let levels = [ProcessorLevel::V3, ProcessorLevel::V4];
        let is_elsewhere = |name: &str| name == "elsewhere" || name == "main.v4";
        let made = multiversion(&mut module, &[main], &levels, &is_elsewhere);
        verify_module(&module).unwrap_or_else(|errors| panic!("{errors:?}"));
        (module, made)
    }

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&print_module(&versions_of(text).0));
    }

    fn check_unchanged(text: &str) {
        let (module, made) = versions_of(text);
        let before = parse_module(text).expect("it parses");
        assert_eq!(print_module(&module), print_module(&before));
        assert_eq!(made, 0);
    }

    const SUM: &str = "
        func @sum(%n: i64) -> (f64) {
          %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
            %b = fadd f64 %a, 1.5
            yield %b
          }
          return %s
        }";

    #[test]
    fn the_program_chooses_once() {
        check(
            &format!(
                "{SUM}
                 func @small(%x: f64) -> (f64) {{
                   %y = fmul f64 %x, 2.0
                   return %y
                 }}
                 func @elsewhere(%n: i64) -> (f64) {{
                   %s = call @sum(%n)
                   return %s
                 }}
                 func @main(%n: i64) -> (f64) {{
                   %s = call @sum(%n)
                   %t = call @small(%s)
                   %u = call @elsewhere(%n)
                   %v = fadd f64 %t, %u
                   return %v
                 }}"
            ),
            expect![[r#"
                func @sum(%n: i64) -> (f64) {
                  %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                    %b = fadd f64 %a, 1.5
                    yield %b
                  }
                  return %s
                }

                func @small(%x: f64) -> (f64) {
                  %y = fmul f64 %x, 2.0
                  return %y
                }

                func @elsewhere(%n: i64) -> (f64) {
                  %s = call @sum(%n)
                  return %s
                }

                func @main(%0: i64) -> (f64) {
                  %1 = call @__ferrozyme_processor_level()
                  %2 = icmp sge i32 %1, 4
                  %3 = if %2 -> (f64) {
                    %4 = call @main.v4.1(%0)
                    yield %4
                  } else {
                    %5 = icmp sge i32 %1, 3
                    %6 = if %5 -> (f64) {
                      %7 = call @main.v3(%0)
                      yield %7
                    } else {
                      %8 = call @main.baseline(%0)
                      yield %8
                    }
                    yield %6
                  }
                  return %3
                }

                func @main.v3(%n: i64) -> (f64) level(v3) {
                  %s = call @sum.v3(%n)
                  %t = call @small(%s)
                  %u = call @elsewhere(%n)
                  %v = fadd f64 %t, %u
                  return %v
                }

                func @sum.v3(%n: i64) -> (f64) level(v3) {
                  %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                    %b = fadd f64 %a, 1.5
                    yield %b
                  }
                  return %s
                }

                func @main.v4.1(%n: i64) -> (f64) level(v4) {
                  %s = call @sum.v4(%n)
                  %t = call @small(%s)
                  %u = call @elsewhere(%n)
                  %v = fadd f64 %t, %u
                  return %v
                }

                func @sum.v4(%n: i64) -> (f64) level(v4) {
                  %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                    %b = fadd f64 %a, 1.5
                    yield %b
                  }
                  return %s
                }

                func @main.baseline(%n: i64) -> (f64) noinline {
                  %s = call @sum(%n)
                  %t = call @small(%s)
                  %u = call @elsewhere(%n)
                  %v = fadd f64 %t, %u
                  return %v
                }

                declare @__ferrozyme_processor_level() -> (i32) memory(none) willreturn inactive
            "#]],
        );
    }

    #[test]
    fn functions_behind_addresses_choose_too() {
        check(
            &format!(
                "{SUM}
                 func @main(%n: i64) -> (f64) {{
                   %s = call_indirect @sum(i64 %n) -> (f64)
                   %t = call @sum(%n)
                   %u = fadd f64 %s, %t
                   return %u
                 }}"
            ),
            expect![[r#"
                func @sum(%0: i64) -> (f64) {
                  %1 = call @__ferrozyme_processor_level()
                  %2 = icmp sge i32 %1, 4
                  %3 = if %2 -> (f64) {
                    %4 = call @sum.v4(%0)
                    yield %4
                  } else {
                    %5 = icmp sge i32 %1, 3
                    %6 = if %5 -> (f64) {
                      %7 = call @sum.v3(%0)
                      yield %7
                    } else {
                      %8 = call @sum.baseline(%0)
                      yield %8
                    }
                    yield %6
                  }
                  return %3
                }

                func @main(%0: i64) -> (f64) {
                  %1 = call @__ferrozyme_processor_level()
                  %2 = icmp sge i32 %1, 4
                  %3 = if %2 -> (f64) {
                    %4 = call @main.v4.1(%0)
                    yield %4
                  } else {
                    %5 = icmp sge i32 %1, 3
                    %6 = if %5 -> (f64) {
                      %7 = call @main.v3(%0)
                      yield %7
                    } else {
                      %8 = call @main.baseline(%0)
                      yield %8
                    }
                    yield %6
                  }
                  return %3
                }

                func @main.v3(%n: i64) -> (f64) level(v3) {
                  %s = call_indirect @sum(i64 %n) -> (f64)
                  %t = call @sum.v3(%n)
                  %u = fadd f64 %s, %t
                  return %u
                }

                func @sum.v3(%n: i64) -> (f64) level(v3) {
                  %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                    %b = fadd f64 %a, 1.5
                    yield %b
                  }
                  return %s
                }

                func @main.v4.1(%n: i64) -> (f64) level(v4) {
                  %s = call_indirect @sum(i64 %n) -> (f64)
                  %t = call @sum.v4(%n)
                  %u = fadd f64 %s, %t
                  return %u
                }

                func @sum.v4(%n: i64) -> (f64) level(v4) {
                  %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                    %b = fadd f64 %a, 1.5
                    yield %b
                  }
                  return %s
                }

                func @main.baseline(%n: i64) -> (f64) noinline {
                  %s = call_indirect @sum(i64 %n) -> (f64)
                  %t = call @sum.baseline(%n)
                  %u = fadd f64 %s, %t
                  return %u
                }

                func @sum.baseline(%n: i64) -> (f64) noinline {
                  %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                    %b = fadd f64 %a, 1.5
                    yield %b
                  }
                  return %s
                }

                declare @__ferrozyme_processor_level() -> (i32) memory(none) willreturn inactive
            "#]],
        );
    }

    #[test]
    fn each_processor_gets_its_version() {
        let (module, made) = versions_of(&format!(
            "{SUM}
             func @main(%n: i64) -> (f64) {{
               %s = call @sum(%n)
               return %s
             }}"
        ));
        assert_eq!(made, 4);
        let main = module.function_named("main").expect("there is @main");
        let levels = [
            None,
            Some(ProcessorLevel::V2),
            Some(ProcessorLevel::V3),
            Some(ProcessorLevel::V4),
        ];
        for level in levels {
            let mut machine = Machine::new(&module);
            machine.set_processor_level(level);
            let found = machine.call(main, &[Datum::i64(4)]);
            assert_eq!(found.expect("it runs"), [Datum::f64(6.0)]);
        }
    }

    #[test]
    fn what_does_not_profit_stays() {
        check_unchanged(
            "func @main(%p: ptr, %n: i64) -> (i64, f64) {
               %s = for %i: i64 = 0 to %n step 1 with (%a: i64 = 0) {
                 %b = add i64 %a, %i
                 yield %b
               }
               %t = for %j: i64 = 0 to 4 step 1 with (%c: f64 = 0.0) {
                 %d = for %k: i64 = 8 to 0 step -2 with (%e: f64 = %c) {
                   %f = fadd f64 %e, 1.0
                   yield %f
                 }
                 yield %d
               }
               return %s, %t
             }",
        );
    }

    #[test]
    fn vectors_keep_their_registers() {
        check_unchanged(
            "declare @unknown(<4 x f64>) -> (f64)
             func @main(%x: <2 x f64>, %n: i64) -> (f64) {
               %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {
                 %b = call @unknown(splat(0.0))
                 %c = fadd f64 %a, %b
                 yield %c
               }
               return %s
             }",
        );
    }
}
