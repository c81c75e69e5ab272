//! Loop distribution for forward mode: sums whose terms are zero if a loop-invariant value is zero get a loop of their own, which is skipped then.
//!
//! ```text
//! for %i = 0 to %n step 1 {                      if %t ≠ 0 {
//!   %x[i] …                                        for %i = 0 to %n step 1 { %a'[i] += %t · %x[i] }
//!   %a[i] += %s · %x[i]                   →      }
//!   %a'[i] += %t · %x[i]                         for %i = 0 to %n step 1 { %x[i] …  %a[i] += %s · %x[i] }
//! }
//! ```
//!
//! In forward mode with many directions most tangents are zero, but which ones is known only at run time. Besides, loops that
//! carry all directions have more values than there are registers, and spill.
//!
//! A zero tangent proves that nothing changes in its direction, even if it is multiplied with an infinite value or NaN. That holds for tangents only, so the pass applies to
//! sums that ignore the sign of zero (`nsz`), which forward mode with many directions emits; in
//! counted loops without branches and inner loops; to sums in memory that nothing else in the loop accesses, if their operands are cheap to
//! recompute and loaded from memory that the loop does not write.

use crate::alias::Aliases;
use crate::behaviour::is_plain_loop;
use crate::copy_operations::copy_operation;
use crate::with_function::with_function;
use ferrozyme_ir::{
    Builder, Cursor, Flags, FloatPredicate, Function, FunctionId, IntPredicate, Module, Op, OpView,
    Opcode, Region, Value, all_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;

/// How many values from outside are compared with zero ahead of one loop.
const MAX_FACTORS: usize = 64;

/// How many arrays of one function get loops of their own.
const MAX_LOOPS: usize = 1024;

/// How many pairs of arrays are compared for one loop.
const MAX_PAIRS: usize = 10_000;

/// How many values are looked at for one array.
const MAX_VALUES: usize = 2048;

/// Distributes such sums into loops of their own; returns how many.
pub fn skip_zero_terms(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        let plans = find(module, function);
        for plan in &plans {
            apply(function, plan);
        }
        plans.len()
    })
}

/// Sums in one array that get a loop of their own.
struct Plan {
    around: Op,
    /// The position of the loop.
    region: Region,
    /// The operations that store the sums.
    stores: Vec<Op>,
    /// The backward slice of the sums in the loop, in the order of the text, the stores included.
    slice: Vec<Op>,
    /// What of that is the same in all iterations.
    fixed: FxHashSet<Op>,
    /// If all these are zero, nothing is added.
    factors: Vec<Value>,
}

fn find(module: &Module, function: &Function) -> Vec<Plan> {
    let mut plans = Vec::new();
    if function.body.is_none() {
        return plans;
    }
    let loops: Vec<Op> = all_ops(function)
        .into_iter()
        .filter(|&op| is_plain(function, op))
        .collect();
    if loops.is_empty() {
        return plans;
    }
    let aliases = Aliases::new(module, function);
    for around in loops {
        let looked_at = LoopOfSums::new(&aliases, around);
        plans.extend(looked_at.plans());
        if plans.len() > MAX_LOOPS {
            break;
        }
    }
    plans
}

/// Whether a loop has step one, carries nothing, and only computes, loads and stores.
fn is_plain(function: &Function, op: Op) -> bool {
    let data = &function.ops[op];
    is_plain_loop(function, op)
        && data.results.is_empty()
        && function.int_of(data.step()) == Some(1)
}

struct LoopOfSums<'a, 'm> {
    aliases: &'a Aliases<'m>,
    around: Op,
    body: Region,
    /// The roots of loads and stores, with their operations.
    accesses: FxHashMap<Value, Vec<Op>>,
    /// The roots of stores, in the order of the text.
    written: Vec<Value>,
    /// How many values may still be looked at.
    budget: Cell<usize>,
}

impl<'a, 'm> LoopOfSums<'a, 'm> {
    fn new(aliases: &'a Aliases<'m>, around: Op) -> LoopOfSums<'a, 'm> {
        let function = aliases.function();
        let body = function.ops[around].regions[0];
        let mut accesses: FxHashMap<Value, Vec<Op>> = FxHashMap::default();
        let mut written: Vec<Value> = Vec::new();
        for &op in &function.regions[body].ops {
            let (read, stored) = (aliases.reads(op), aliases.writes(op));
            for access in read.accesses.iter().chain(&stored.accesses) {
                accesses.entry(access.root).or_default().push(op);
            }
            for access in stored.accesses {
                if !written.contains(&access.root) {
                    written.push(access.root);
                }
            }
        }
        LoopOfSums {
            aliases,
            around,
            body,
            accesses,
            written,
            budget: Cell::new(0),
        }
    }

    fn plans(&self) -> Vec<Plan> {
        // One alone is as well where it is.
        let pairs = self.written.len() * self.accesses.len();
        if self.written.len() < 2 || pairs > MAX_PAIRS {
            return Vec::new();
        }
        self.written
            .iter()
            .filter_map(|&root| self.plan_for(root))
            .collect()
    }

    fn plan_for(&self, root: Value) -> Option<Plan> {
        let function = self.aliases.function();
        let own = &self.accesses[&root];
        self.budget.set(MAX_VALUES);
        let apart = self
            .accesses
            .keys()
            .all(|&other| other == root || !self.aliases.may_share(root, other));
        if !apart {
            return None;
        }
        let mut stores = Vec::new();
        let mut loads = FxHashSet::default();
        let mut factors: Vec<Value> = Vec::new();
        for &op in own {
            if function.ops[op].opcode != Opcode::Store {
                continue;
            }
            let (load, term) = self.sum_in_memory(op)?;
            self.zero_if(term, &mut factors)?;
            loads.insert(load);
            stores.push(op);
        }
        let all_own = own
            .iter()
            .all(|op| stores.contains(op) || loads.contains(op));
        if !all_own || factors.is_empty() {
            return None;
        }
        let slice = self.slice(&stores, &loads)?;
        if self.is_seen_elsewhere(&slice, &loads) {
            return None;
        }
        let fixed = slice
            .iter()
            .copied()
            .filter(|&op| {
                let results = &function.ops[op].results;
                !results.is_empty() && results.iter().all(|&value| self.is_fixed(value))
            })
            .collect();
        // What there was no room to look at may be fixed as well, and is taken not to be.
        if self.budget.get() == 0 {
            return None;
        }
        Some(Plan {
            around: self.around,
            region: self.aliases.structure().region_of(self.around)?,
            stores,
            slice,
            fixed,
            factors,
        })
    }

    /// The load and the term of `store f64 (fadd nsz (load %p), %term), %p`.
    fn sum_in_memory(&self, store: Op) -> Option<(Op, Value)> {
        let function = self.aliases.function();
        let sum = function.ops[store].value();
        if function.ty(sum).is_vector() {
            return None;
        }
        let (addition, _) = function.def_op(sum)?;
        let data = &function.ops[addition];
        let is_old = |value: Value| self.aliases.load_before(store, value);
        if !data.flags.contains(Flags::NSZ) {
            return None;
        }
        let (a, b) = (*data.operands.first()?, *data.operands.get(1)?);
        match data.opcode {
            Opcode::Fadd => is_old(a)
                .map(|load| (load, b))
                .or_else(|| Some((is_old(b)?, a))),
            Opcode::Fsub => Some((is_old(a)?, b)),
            _ => None,
        }
    }

    /// Whether one more value may be looked at.
    fn is_affordable(&self) -> bool {
        let left = self.budget.get().checked_sub(1);
        self.budget.set(left.unwrap_or(0));
        left.is_some()
    }

    fn is_inside(&self, op: Op) -> bool {
        self.aliases.structure().region_of(op) == Some(self.body)
    }

    /// Adds to `factors` values from outside the loop; if all of them are zero, so is the value.
    fn zero_if(&self, value: Value, factors: &mut Vec<Value>) -> Option<()> {
        let function = self.aliases.function();
        if self.is_fixed(value) {
            if function.is_constant(value) {
                // A constant that is zero needs no comparison.
                return (function.float_of(value) == Some(0.0)).then_some(());
            }
            if !factors.contains(&value) {
                factors.push(value);
            }
            return (factors.len() <= MAX_FACTORS).then_some(());
        }
        if !self.is_affordable() {
            return None;
        }
        let either = |a: Value, b: Value, factors: &mut Vec<Value>| {
            let length = factors.len();
            for factor in [a, b] {
                if self.zero_if(factor, factors).is_some() {
                    return Some(());
                }
                factors.truncate(length);
            }
            None
        };
        match function.definition(value)? {
            OpView::Binary(Opcode::Fmul, a, b) => either(a, b, factors),
            OpView::Ternary(Opcode::Fma, a, b, c) => {
                either(a, b, factors)?;
                self.zero_if(c, factors)
            }
            OpView::Unary(Opcode::Fneg, a) => self.zero_if(a, factors),
            OpView::Binary(Opcode::Fadd | Opcode::Fsub, a, b) => {
                self.zero_if(a, factors)?;
                self.zero_if(b, factors)
            }
            _ => None,
        }
    }

    /// Whether a value is loop-invariant, and available before the loop.
    fn is_fixed(&self, value: Value) -> bool {
        let indices = self.aliases.indices();
        if indices.is_defined_outside(value, self.around) {
            return true;
        }
        let function = self.aliases.function();
        let Some((op, _)) = function.def_op(value).filter(|_| self.is_affordable()) else {
            return false;
        };
        let data = &function.ops[op];
        let steady = match data.opcode {
            Opcode::Load => self.reads_what_stays(op),
            Opcode::Offset => true,
            _ => false,
        };
        steady && data.operands.iter().all(|&operand| self.is_fixed(operand))
    }

    /// Whether a load reads memory that the loop does not write.
    fn reads_what_stays(&self, load: Op) -> bool {
        self.aliases.reads(load).accesses.iter().all(|access| {
            let mut written = self.written.iter();
            written.all(|&other| !self.aliases.may_share(access.root, other))
        })
    }

    /// Whether anything but the slice uses what it computes from the sums as they were before.
    fn is_seen_elsewhere(&self, slice: &[Op], own: &FxHashSet<Op>) -> bool {
        let function = self.aliases.function();
        let mut old = own.clone();
        let uses_old = |op: Op, old: &FxHashSet<Op>| {
            let mut operands = function.ops[op].operands.iter();
            operands.any(|&operand| {
                let made = function.def_op(operand);
                made.is_some_and(|(made, _)| old.contains(&made))
            })
        };
        for &op in slice {
            if uses_old(op, &old) {
                old.insert(op);
            }
        }
        let slice: FxHashSet<Op> = slice.iter().copied().collect();
        let mut others = function.regions[self.body].ops.iter();
        others.any(|&op| !slice.contains(&op) && uses_old(op, &old))
    }

    /// What the sums take in the loop, if it is cheap and may be taken from memory ahead of the loop.
    fn slice(&self, stores: &[Op], own: &FxHashSet<Op>) -> Option<Vec<Op>> {
        let function = self.aliases.function();
        let mut slice: FxHashSet<Op> = stores.iter().copied().collect();
        let mut pending = stores.to_vec();
        while let Some(op) = pending.pop() {
            for &operand in &function.ops[op].operands {
                let Some((made, _)) = function.def_op(operand) else {
                    continue;
                };
                if !self.is_inside(made) || !slice.insert(made) {
                    continue;
                }
                let opcode = function.ops[made].opcode;
                let fine = match opcode {
                    Opcode::Load => own.contains(&made) || self.reads_what_stays(made),
                    Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fma | Opcode::Fneg => true,
                    Opcode::Offset | Opcode::Add | Opcode::Sub | Opcode::Mul => true,
                    _ => false,
                };
                if !fine {
                    return None;
                }
                pending.push(made);
            }
        }
        let mut slice: Vec<Op> = slice.into_iter().collect();
        slice.sort_by_key(|&op| self.aliases.structure().order(op));
        Some(slice)
    }
}

/// Builds the loop of the sums before the original loop, and removes the stores from that.
fn apply(function: &mut Function, plan: &Plan) {
    let data = function.ops[plan.around].clone();
    let [from, to, step] = data.bounds();
    let ahead = Cursor::before(function, plan.region, plan.around);
    let mut values: FxHashMap<Value, Value> = FxHashMap::default();
    let mut b = Builder::at(function, ahead);
    b.location = data.location;

    // These loads run only if the loop would have run them.
    let runs = b.icmp(IntPredicate::Slt, from, to);
    let (_, then, otherwise) = b.if_else(runs, &[]);
    b.inside(otherwise, |b| b.yields(&[]));
    b.go_to_end(then);
    for &op in plan.slice.iter().filter(|op| plan.fixed.contains(op)) {
        let copy = copy_operation(b.function, op, &mut values);
        b.insert(copy);
    }
    let mut any = None;
    for &factor in &plan.factors {
        let factor = values.get(&factor).copied().unwrap_or(factor);
        let ty = b.ty(factor);
        let zero = b.zero(ty);
        let differs = b.fcmp(FloatPredicate::Une, factor, zero);
        any = Some(match any {
            None => differs,
            Some(others) => b.binary(Opcode::Or, others, differs),
        });
    }
    let any = any.expect("there is something to compare");
    let (_, add, leave) = b.if_else(any, &[]);
    b.yields(&[]);
    b.inside(leave, |b| b.yields(&[]));
    b.go_to_end(add);
    let (_, body) = b.for_loop(from, to, step, &[]);
    b.yields(&[]);
    let old = b.function.regions[data.regions[0]].args[0];
    let counter = b.function.regions[body].args[0];
    b.function.values[counter].range = b.function.values[old].range;
    values.insert(old, counter);
    b.go_to_end(body);
    for &op in plan.slice.iter().filter(|op| !plan.fixed.contains(op)) {
        let copy = copy_operation(b.function, op, &mut values);
        b.insert(copy);
    }
    b.yields(&[]);
    function.retain_ops(data.body(), |_, op| !plan.stores.contains(&op));
}
