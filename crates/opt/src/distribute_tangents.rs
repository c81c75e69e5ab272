//! Loop distribution for forward mode in many directions: the tangents of each direction get a loop of their own, which is skipped where it would add nothing but zeros.
//!
//! ```text
//! for %i = 0 to %n step 1 {                      if %t ≠ 0 {
//!   %x[i] …                                        for %i = 0 to %n step 1 { %a'[i] += %t · %x[i] }
//!   %a[i] += %s · %x[i]                   →      }
//!   %a'[i] += %t · %x[i]                         for %i = 0 to %n step 1 { %x[i] …  %a[i] += %s · %x[i]  %y[i] = … }
//!   %y[i] = …                                    for %i = 0 to %n step 1 { %y'[i] = %t · %x[%k[i]] }
//!   %y'[i] = %t · %x[%k[i]]                      …
//!   …
//! }
//! ```
//!
//! A loop that carries all directions has more values than there are registers, and more arrays than LLVM's vectoriser can tell apart. Besides, most tangents are zero in forward mode with many
//! directions, but which ones is known only at run time.
//!
//! The pass looks at counted loops without inner loops, and without branches but checks that stop the program. Tangents are known by the permission to ignore the sign of zero (`nsz`), which
//! forward mode with many directions gives to nothing else. An array that they are stored to gets its loop if nothing else in the loop accesses the array, and if the operands are cheap to recompute:
//!
//! - ahead of the original loop, if that never stops the program and has not yet written what they are loaded from;
//! - otherwise behind it, if it does not write at all what they are loaded from. The checks have passed by then. A check that fails now leaves tangents of earlier iterations unwritten.
//!
//! A sum that adds nothing if some loop-invariant values are zero is guarded by a test of these. A zero tangent proves that nothing changes in its direction, even if it is multiplied with an infinite value or NaN.
//! What is no such sum gets a loop only if there are many arrays, since the original loop is as good for a few.

use crate::alias::Aliases;
use crate::copy_operations::copy_operation;
use crate::distribution::Site;
use crate::with_function::with_function;
use ferrozyme_ir::{
    Builder, Cursor, Effect, Flags, FloatPredicate, Function, FunctionId, IntPredicate, Module, Op,
    OpView, Opcode, Region, Value, all_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;

/// From how many arrays on each gets a loop of its own though it is not known when it could be skipped.
const MANY: usize = 8;

/// How many values from outside are compared with zero ahead of one loop.
const MAX_FACTORS: usize = 64;

/// How many arrays of one function get loops of their own.
const MAX_LOOPS: usize = 1024;

/// How many pairs of arrays are compared for one loop.
const MAX_PAIRS: usize = 10_000;

/// How many values are looked at for one array.
const MAX_VALUES: usize = 2048;

/// Distributes tangents into loops of their own; returns how many loops.
pub fn distribute_tangents(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        let plans = find(module, function);
        for plan in &plans {
            apply(function, plan);
        }
        plans.len()
    })
}

/// Tangents in one array that get a loop of their own.
struct Plan {
    around: Op,
    /// The position of the loop.
    region: Region,
    site: Site,
    /// The operations that store the tangents.
    stores: Vec<Op>,
    /// The backward slice of the stores in the loop, in the order of the text, themselves included.
    slice: Vec<Op>,
    /// What of that is the same in all iterations.
    fixed: FxHashSet<Op>,
    /// If there are any and all of them are zero, nothing is added.
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
        let looked_at = LoopOfTangents::new(&aliases, around);
        plans.extend(looked_at.plans());
        if plans.len() > MAX_LOOPS {
            break;
        }
    }
    plans
}

/// Whether a loop has step one, carries nothing, and only computes, loads, stores and checks.
fn is_plain(function: &Function, op: Op) -> bool {
    let data = &function.ops[op];
    data.opcode == Opcode::For
        && data.results.is_empty()
        && function.int_of(data.step()) == Some(1)
        && function.regions[data.body()].ops.iter().all(|&inner| {
            let opcode = function.ops[inner].opcode;
            matches!(opcode, Opcode::Load | Opcode::Store | Opcode::Yield)
                || matches!(opcode.effect(), Effect::Pure | Effect::Partial)
                || is_check(function, inner)
        })
}

/// Whether an operation does nothing, or stops the program.
fn is_check(function: &Function, op: Op) -> bool {
    let data = &function.ops[op];
    data.opcode == Opcode::If
        && data.results.is_empty()
        && (data.regions.iter())
            .all(|&region| function.ends_in_trap(region) || function.regions[region].ops.len() == 1)
}

struct LoopOfTangents<'a, 'm> {
    aliases: &'a Aliases<'m>,
    around: Op,
    body: Region,
    /// Whether it may stop the program.
    checks: bool,
    /// The roots of loads and stores, with their operations.
    accesses: FxHashMap<Value, Vec<Op>>,
    /// The roots of stores, in the order of the text.
    written: Vec<Value>,
    /// The stores.
    stores: Vec<Op>,
    /// How many values may still be looked at.
    budget: Cell<usize>,
}

impl<'a, 'm> LoopOfTangents<'a, 'm> {
    fn new(aliases: &'a Aliases<'m>, around: Op) -> LoopOfTangents<'a, 'm> {
        let function = aliases.function();
        let body = function.ops[around].body();
        let mut accesses: FxHashMap<Value, Vec<Op>> = FxHashMap::default();
        let mut written: Vec<Value> = Vec::new();
        let mut stores = Vec::new();
        let ops = &function.regions[body].ops;
        for &op in ops.iter().filter(|&&op| !is_check(function, op)) {
            let (read, stored) = (aliases.reads(op), aliases.writes(op));
            for access in read.accesses.iter().chain(&stored.accesses) {
                accesses.entry(access.root).or_default().push(op);
            }
            if !stored.accesses.is_empty() {
                stores.push(op);
            }
            for access in stored.accesses {
                if !written.contains(&access.root) {
                    written.push(access.root);
                }
            }
        }
        LoopOfTangents {
            aliases,
            around,
            body,
            checks: ops.iter().any(|&op| is_check(function, op)),
            accesses,
            written,
            stores,
            budget: Cell::new(0),
        }
    }

    fn plans(&self) -> Vec<Plan> {
        // One alone is as well where it is.
        let pairs = self.written.len() * self.accesses.len();
        if self.written.len() < 2 || pairs > MAX_PAIRS {
            return Vec::new();
        }
        let mut plans: Vec<Plan> = (self.written.iter())
            .filter_map(|&root| self.plan_for(root))
            .collect();
        if plans.len() < MANY {
            plans.retain(|plan| !plan.factors.is_empty());
        }
        plans
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
        let (stores, loads): (Vec<Op>, Vec<Op>) =
            (own.iter()).partition(|&&op| function.ops[op].opcode == Opcode::Store);
        if !stores.iter().all(|&store| self.stores_tangent(store)) {
            return None;
        }
        let loads: FxHashSet<Op> = loads.into_iter().collect();
        let slice = self.slice(&stores, &loads)?;
        let site = self.site(&slice, &loads)?;
        let factors = self.factors(&stores, &loads).unwrap_or_default();
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
            site,
            stores,
            slice,
            fixed,
            factors,
        })
    }

    fn stores_tangent(&self, store: Op) -> bool {
        let function = self.aliases.function();
        let value = function.ops[store].value();
        !function.ty(value).is_vector()
            && function
                .def_op(value)
                .is_some_and(|(op, _)| function.ops[op].flags.contains(Flags::NSZ))
    }

    /// Values from outside the loop; if all of them are zero, the stores add nothing. None if that is not known, or if they do not add.
    fn factors(&self, stores: &[Op], loads: &FxHashSet<Op>) -> Option<Vec<Value>> {
        let mut factors = Vec::new();
        let mut sums = FxHashSet::default();
        for &store in stores {
            let (load, term) = self.sum_in_memory(store)?;
            self.zero_if(term, &mut factors)?;
            sums.insert(load);
        }
        (sums == *loads).then_some(factors)
    }

    /// Where the slice may run, in which the loads are of the array that it stores to.
    fn site(&self, slice: &[Op], own: &FxHashSet<Op>) -> Option<Site> {
        let function = self.aliases.function();
        let is_load = |op: &&Op| function.ops[**op].opcode == Opcode::Load && !own.contains(op);
        let others = || slice.iter().filter(is_load);
        if !self.checks && others().all(|&load| !self.reads_what_was_written(load)) {
            return Some(Site::Ahead);
        }
        others()
            .all(|&load| self.reads_what_stays(load))
            .then_some(Site::Behind)
    }

    /// The load and the term of `store f64 (fadd nsz (load %p), %term), %p`.
    fn sum_in_memory(&self, store: Op) -> Option<(Op, Value)> {
        let function = self.aliases.function();
        let sum = function.ops[store].value();
        let (addition, _) = function.def_op(sum)?;
        let data = &function.ops[addition];
        let is_old = |value: Value| self.aliases.load_before(store, value);
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

    /// Whether a load reads what the loop may have written before.
    fn reads_what_was_written(&self, load: Op) -> bool {
        let read = self.aliases.reads(load).accesses;
        self.stores.iter().any(|&store| {
            let written = self.aliases.writes(store).accesses;
            written.iter().any(|written| {
                let meets = |read| {
                    let (earlier, later) = ((store, written), (load, read));
                    (self.aliases).may_overwrite_within(earlier, later, Some(self.around), false)
                };
                read.iter().any(meets)
            })
        })
    }

    /// Whether anything but the slice uses what it computes from the array as it was before.
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

    /// What the stores take in the loop, if it is cheap; the loads are all of the array that is stored to.
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
                if !is_cheap(function.ops[made].opcode) {
                    return None;
                }
                pending.push(made);
            }
        }
        if !own.is_subset(&slice) {
            return None;
        }
        let mut slice: Vec<Op> = slice.into_iter().collect();
        slice.sort_by_key(|&op| self.aliases.structure().order(op));
        Some(slice)
    }
}

/// Whether an operation costs little if it is repeated in each direction.
fn is_cheap(opcode: Opcode) -> bool {
    use Opcode::{Add, Fadd, Fma, Fmul, Fneg, Fsub, Load, Mul, Offset, Sub};
    matches!(
        opcode,
        Load | Offset | Fadd | Fsub | Fmul | Fma | Fneg | Add | Sub | Mul
    )
}

/// Builds the loop of the tangents, and removes the stores from the original one.
fn apply(function: &mut Function, plan: &Plan) {
    let data = function.ops[plan.around].clone();
    let [from, to, step] = data.bounds();
    let mut place = Cursor::before(function, plan.region, plan.around);
    if plan.site == Site::Behind {
        place = Cursor::after(function, plan.region, plan.around);
    }
    let mut values: FxHashMap<Value, Value> = FxHashMap::default();
    let mut b = Builder::at(function, place);
    b.location = data.location;

    // Loop-invariant loads run only if the loop would have run them.
    let runs = b.icmp(IntPredicate::Slt, from, to);
    let (_, then, otherwise) = b.if_else(runs, &[]);
    b.inside(otherwise, |b| b.yields(&[]));
    b.go_to_end(then);
    for &op in plan.slice.iter().filter(|op| plan.fixed.contains(op)) {
        let copy = copy_operation(b.function, op, &mut values);
        b.insert(copy);
    }
    if let Some(any) = differs_from_zero(&mut b, &plan.factors, &values) {
        let (_, add, leave) = b.if_else(any, &[]);
        b.yields(&[]);
        b.inside(leave, |b| b.yields(&[]));
        b.go_to_end(add);
    }
    let (copy, body) = b.for_loop(from, to, step, &[]);
    b.function.ops[copy].flags = data.flags;
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

/// Whether one of the factors, or of their copies, is not zero; none if there are no factors.
fn differs_from_zero(
    b: &mut Builder<'_>,
    factors: &[Value],
    copies: &FxHashMap<Value, Value>,
) -> Option<Value> {
    let mut any = None;
    for &factor in factors {
        let factor = copies.get(&factor).copied().unwrap_or(factor);
        let ty = b.ty(factor);
        let zero = b.zero(ty);
        let differs = b.fcmp(FloatPredicate::Une, factor, zero);
        any = Some(match any {
            None => differs,
            Some(others) => b.binary(Opcode::Or, others, differs),
        });
    }
    any
}
