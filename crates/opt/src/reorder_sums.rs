//! Gives sums over the outer loops of a nest a nest of their own, in which these loops run inside.
//!
//! ```text
//! for %r = 0 to %n step 1 {                      for %o = 0 to %m step 1 {
//!   for %o = 0 to %m step 1 {                      for %r = 0 to %n step 1 {
//!     for %i = 0 to %k step 1 {                      for %i = 0 to %k step 1 {
//!       %w[o, i] += …                       →           %w[o, i] += …
//!       %x[r, i] += …                                  …
//!     }                                          for %r … { for %o … { for %i … { %x[r, i] += … } } }
//!   }
//! }
//! ```
//!
//! In the first order each row of `w` goes through the cache once for each `r`; in the second it stays there. This is how people write
//! the gradient of a matrix product, and the reverse sweep gives the other.
//!
//! It applies to sums in memory whose additions may be reordered (`reassoc`), in counted loops with bounds known before the nest, if the place
//! does not depend on the outer loops but on at least two inner ones, the innermost among them. The sum's own nest comes first, if it may run there (`distribution.rs`).

use crate::alias::{Access, Aliases};
use crate::copy_operations::copy_operation;
use crate::distribution::{Distribution, Site, Statement, slice_of};
use crate::uses::Uses;
use crate::with_function::with_function;
use ferrozyme_ir::{
    Builder, Cursor, Flags, Function, FunctionId, Module, Op, Opcode, Region, Value, returning_ops,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// How many sums of one function get nests of their own.
const MAX_SUMS: usize = 16;

/// Distributes sums into nests of their own; returns how many.
pub fn reorder_sums(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        let mut changes = 0;
        while changes < MAX_SUMS {
            let Some(plan) = find(module, function) else {
                break;
            };
            apply(function, &plan);
            changes += 1;
        }
        changes
    })
}

/// A sum that is to get a nest of its own.
struct Plan {
    /// The operation that stores the sum.
    store: Op,
    /// The loops around it, from the outermost one that moves inside on.
    loops: Vec<Op>,
    /// How many of those move inside.
    moved: usize,
    /// The operations that the sum takes, in the order of the text, the store included.
    slice: Vec<Op>,
}

fn find(module: &Module, function: &Function) -> Option<Plan> {
    function.body?;
    let aliases = Aliases::new(module, function);
    let finder = Finder {
        function,
        aliases: &aliases,
        distribution: Distribution::new(module, &aliases, false),
        uses: Uses::by(function, returning_ops(function)),
    };
    returning_ops(function)
        .into_iter()
        .filter(|&op| function.ops[op].opcode == Opcode::Store)
        .find_map(|store| finder.plan_for(store))
}

struct Finder<'a> {
    function: &'a Function,
    aliases: &'a Aliases<'a>,
    distribution: Distribution<'a, 'a>,
    uses: Uses,
}

impl Finder<'_> {
    fn plan_for(&self, store: Op) -> Option<Plan> {
        let load = self.sum_in_memory(store)?;
        let place = self.aliases.writes(store).accesses.into_iter().next()?;
        let around = self.counted_loops(store);
        let varies = |op: Op| self.varies(&place, op);
        // The outermost loop that does not matter for the place, and those that follow it and do not either.
        let start = around.iter().position(|&op| !varies(op))?;
        let loops = around[start..].to_vec();
        let moved = loops.iter().take_while(|&&op| !varies(op)).count();
        let inner = &loops[moved..];
        let worthwhile =
            inner.len() >= 2 && inner.iter().all(|&op| varies(op)) && self.has_known_bounds(&loops);
        if !worthwhile {
            return None;
        }
        let slice = slice_of(self.aliases, &[store], &loops, &FxHashMap::default())?;
        let reads = |op: &Op| *op != load && !self.aliases.reads(*op).is_empty();
        let statement = Statement {
            store,
            place,
            own: Some(load),
            reads: slice.iter().copied().filter(reads).collect(),
        };
        let conflict =
            (self.distribution).find_conflict(loops[0], &statement, Site::Ahead, &mut |_| false);
        conflict.is_none().then_some(Plan {
            store,
            loops,
            moved,
            slice,
        })
    }

    /// The load of `store f64 (fadd (load %p), %x), %p`, if it may be added in any order and nothing else uses the sum.
    fn sum_in_memory(&self, store: Op) -> Option<Op> {
        let single = |value: Value| self.uses.only(value).is_some();
        let sum = self.function.ops[store].value();
        let (addition, _) = self.function.def_op(sum)?;
        let data = &self.function.ops[addition];
        if data.opcode != Opcode::Fadd || !data.flags.contains(Flags::REASSOC) || !single(sum) {
            return None;
        }
        let mut old = data.operands.iter().filter(|&&operand| single(operand));
        old.find_map(|&operand| self.aliases.load_before(store, operand))
    }

    /// The loops around an operation, outermost first, from the last one that is not counted, or branch, on inwards.
    fn counted_loops(&self, op: Op) -> Vec<Op> {
        let structure = self.aliases.structure();
        let mut loops = Vec::new();
        let mut region = structure.region_of(op);
        while let Some(inner) = region {
            let Some(holder) = structure.op_of(inner) else {
                break;
            };
            let data = &self.function.ops[holder];
            if data.opcode != Opcode::For {
                break;
            }
            loops.push(holder);
            region = structure.region_of(holder);
        }
        loops.reverse();
        loops
    }

    /// Whether a place depends on the counter of a loop, or on something in it that is not understood.
    fn varies(&self, place: &Access, op: Op) -> bool {
        let indices = self.aliases.indices();
        let body = self.function.ops[op].regions[0];
        let counter = self.function.regions[body].args[0];
        let depends = |variable: Value| match indices.counted_by(variable) {
            Some(_) => variable == counter,
            None => indices.varies_in(variable, op),
        };
        place.offset.variables().any(depends) || indices.varies_in(place.root, op)
    }

    /// Whether the bounds of all loops are known before the first.
    fn has_known_bounds(&self, loops: &[Op]) -> bool {
        let indices = self.aliases.indices();
        loops.iter().all(|&op| {
            let bounds = self.function.ops[op].bounds();
            bounds
                .into_iter()
                .all(|bound| indices.is_defined_outside(bound, loops[0]))
        })
    }
}

/// Builds the nest of a sum before the nest that it comes from, and takes the sum out of that.
fn apply(function: &mut Function, plan: &Plan) {
    let structure = ferrozyme_ir::Structure::of(function);
    let region = structure
        .region_of(plan.loops[0])
        .expect("a loop stands in a region");
    let innermost = *plan.loops.last().expect("a sum stands in a nest");
    // The loops that the place depends on, but the innermost; those that it does not depend on; the innermost.
    let mut order: SmallVec<[Op; 4]> = SmallVec::new();
    order.extend_from_slice(&plan.loops[plan.moved..plan.loops.len() - 1]);
    order.extend_from_slice(&plan.loops[..plan.moved]);
    order.push(innermost);

    let ahead = Cursor::before(function, region, plan.loops[0]);
    let mut b = Builder::at(function, ahead);
    let mut values = FxHashMap::default();
    let mut built: Vec<Region> = Vec::new();
    // Where iterations are meant for several threads, those of the outermost loop are: they add to different places.
    let flags = order.iter().map(|&op| b.function.ops[op].flags);
    let any = flags.fold(Flags::NONE, Flags::union);
    for &op in &order {
        let data = b.function.ops[op].clone();
        b.location = data.location;
        let [from, to, step] = data.bounds();
        let (copy, body) = b.for_loop(from, to, step, &[]);
        b.function.ops[copy].flags = match built.is_empty() {
            true => any,
            false => data.flags,
        };
        let counter = b.function.regions[data.regions[0]].args[0];
        let again = b.function.regions[body].args[0];
        b.function.values[again].range = b.function.values[counter].range;
        values.insert(counter, again);
        built.push(body);
        b.go_to_end(body);
    }
    // What stood in one of the loops stands where that loop, and all that were around it, are around it again.
    let mut inner_ops: Vec<Vec<Op>> = vec![Vec::new(); built.len()];
    for &op in &plan.slice {
        let home = structure.region_of(op);
        let outside = plan
            .loops
            .iter()
            .position(|&holder| Some(b.function.ops[holder].regions[0]) == home)
            .map_or(plan.loops.len(), |position| position + 1);
        let depth = plan.loops[..outside]
            .iter()
            .filter_map(|holder| order.iter().position(|other| other == holder))
            .max()
            .unwrap_or(0);
        inner_ops[depth].push(copy_operation(b.function, op, &mut values));
    }
    for (&body, ops) in built.iter().zip(inner_ops) {
        // The loop inside, if there is one, stands there already.
        Cursor::at_start(body).insert_all(b.function, ops);
        b.go_to_end(body);
        b.yields(&[]);
    }
    let home = structure
        .region_of(plan.store)
        .expect("the store stands in a region");
    Cursor::before(function, home, plan.store).remove(function);
}
