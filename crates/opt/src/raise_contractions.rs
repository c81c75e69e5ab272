//! Raises loop nests that sum up products of array elements to `contract`, for which there are kernels.
//!
//! ```text
//! for %i: i64 = 0 to %m step 1 {                       %big = …                       ; are the trip counts worth it?
//!   for %j: i64 = 0 to %n step 1 {                     if %big {
//!     %s = for %l: i64 = 0 to %k step 1                  for %i … { for %j … {
//!         with (%a: f32 = 0.0) {                            %b = load f32 %bias[j]
//!       … %a + %x[i, l] * %w[j, l]                →          store f32 %b, %c[i, j]
//!     }                                                  } }
//!     %b = load f32 %bias[j]                             contract add f32 %c, %x, %w, 1.0 over left %m (…), right %n (…), sum %k (…)
//!     %t = fadd f32 %b, %s                             } else {
//!     store f32 %t, %c[i, j]                             … the nest as it was
//!   }                                                  }
//! }
//! ```
//!
//! A nest may hold other work, and several sums: each is taken out of it, to run ahead of it or behind it (`distribution.rs`). A sum is taken out if
//! - its place, and those of both factors, are arrays with a stride per loop (`raise_contractions/arrays.rs`), with trip counts known before the nest,
//! - there are loops that move only the place and one factor, for both factors, and loops that move only the factors: the sum has a
//!   matrix product in it,
//! - different places are different memory, by a proof or by a test when the program runs (`raise_contractions/distinct.rs`), and the rest of the nest may run before
//!   or after it.
//!
//! Sums are added up in another order than in the loops, so the pass is not for programs that live from that (`--strict`).

mod apply;
mod arrays;
mod assumptions;
mod distinct;
mod interchange;
mod narrow;
mod products;
mod tests_at_run_time;

use self::apply::apply;
use self::arrays::{Array, is_visible};
use self::assumptions::{as_inequalities, limited_bounds, tested_numbers};
use self::distinct::{Distinct, Moves, are_distinct};
use self::interchange::Interchange;
use self::narrow::{narrow_indices, tests_for};
use self::products::{Factors, Guard, Products, Reduction, Term};
use self::tests_at_run_time::test_for;
pub(crate) use self::tests_at_run_time::{Test, stretch_of, test_apart, test_for_iterations};
use crate::alias::{Access, Aliases};
use crate::distribution::{Conflict, Distribution, Meeting, Site, Statement};
use crate::ranges::{Place, Variables};
use crate::recurrence::Counted;
use crate::symbolic::Symbolic;
use crate::uses::Uses;
use crate::with_function::with_function;
use ferrozyme_ir::{
    Function, FunctionId, IndexClass, Module, Op, OpView, Opcode, Region, Type, Value, all_ops,
    for_each_op, returning_ops,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::rc::Rc;

/// How many nests of one function are looked at, and how large they may be.
const MAX_NESTS: usize = 256;
const MAX_OPERATIONS: usize = 600;

/// A product with fewer iterations in one of its three kinds of loops stays a loop.
const MIN_TRIPS: i64 = 8;

/// Raises sums of products to contractions; returns how many. What was raised before stays as it is.
pub fn raise_contractions(module: &mut Module, id: FunctionId) -> usize {
    raise_products(module, id, MIN_TRIPS)
}

/// Raises sums of products with at least so many iterations in each of the three kinds of loops.
fn raise_products(module: &mut Module, id: FunctionId, min_trips: i64) -> usize {
    with_function(module, id, |module, function| {
        let mut raised = 0;
        for _ in 0..MAX_NESTS {
            let Some(changes) = find(module, function, min_trips) else {
                break;
            };
            raised += changes.plans.len();
            apply(function, &changes);
        }
        raised
    })
}

/// What is to become of a nest.
struct Changes {
    /// The sums that are taken out of it; at least one.
    plans: Vec<Plan>,
    /// What is done with the rest.
    interchange: Option<Interchange>,
    /// Where it is tested whether that may be done.
    place: Rc<Place>,
    /// How many iterations each kind of loop must have.
    min_trips: i64,
}

/// A sum that is to become a contraction.
struct Plan {
    /// The outermost loop that it sums and counts over.
    nest: Op,
    /// The store that the sum is a term of.
    store: Op,
    site: Site,
    /// When the sum is computed at all.
    guards: Vec<Guard>,
    /// The destination, and both factors.
    arrays: [Array; 3],
    /// The indices of the contraction, outermost first; without those that are one with another.
    indices: Vec<Index>,
    /// The classes and trip counts of all loops.
    trips: Vec<(IndexClass, Symbolic)>,
    /// What must hold when the nest runs.
    tests: Vec<Test>,
    /// The numbers that are assumed not to be negative.
    assumed: Vec<Value>,
    /// What all products are multiplied with: values, and elements of memory.
    scalars: Vec<Value>,
    scalar_loads: Vec<Array>,
    negated: bool,
    /// The type of the elements.
    element: Type,
    rest: Rest,
}

/// Why a sum of products stays a loop; what is farther down was found out later.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Obstacle {
    /// This load, or the store, is not an element of an array with a stride for each loop.
    NoArray(Op),
    /// The trip count of this loop is not known before the nest.
    TripCount(Op),
    /// It is no matrix product: there are no loops that count only in the sum and one factor, for both factors, and loops that sum up.
    NoMatrixProduct,
    /// The trip counts are too small for a kernel.
    TooSmall,
    /// Different iterations may store to the same place.
    SamePlace,
    /// The place is set in each iteration of a loop that sums up.
    SetRepeatedly,
    /// What is stored is used for something else, or is not a sum.
    OtherUse,
    /// The nest may stop the program.
    MayStop,
    /// This operation of the nest touches the same memory, or may do so.
    Conflict(Op),
}

/// An index of a contraction.
struct Index {
    class: IndexClass,
    /// The trip counts of the loops that it stands for.
    counts: Vec<Symbolic>,
    /// Its strides in the three arrays.
    strides: [Symbolic; 3],
}

/// What is left of a store.
enum Rest {
    /// Nothing: the contraction adds to the place.
    Sum,
    /// Nothing: the contraction sets the place.
    Set,
    /// A load for other uses of what is stored: the contraction sets the place ahead of the nest.
    ReadBack(Access),
    /// The other terms: the initial value of the sum, or a zero, stands for it in its use.
    Others {
        used: (Op, usize),
        by: Option<Value>,
    },
}

/// The stores of a function that add up products of array elements, but are not raised, and why.
pub fn explain_contractions(module: &Module, id: FunctionId) -> Vec<(Op, Obstacle)> {
    let function = &module.functions[id];
    if function.body.is_none() || !has_product_in_nest(function) {
        return Vec::new();
    }
    let stores = candidates(function);
    let obstacles = |narrow: FxHashSet<Value>| {
        with_finder(module, function, MIN_TRIPS, narrow, |finder| {
            let found = stores.iter().map(|&store| match finder.plans_for(store) {
                (plans, Some(obstacle)) if plans.is_empty() => Some((store, obstacle)),
                _ => None,
            });
            found.collect::<Vec<_>>()
        })
    };
    let mut found = obstacles(FxHashSet::default());
    let narrow = narrow_indices(function);
    if !narrow.is_empty() {
        for (found, widened) in found.iter_mut().zip(obstacles(narrow)) {
            *found = found.and(widened);
        }
    }
    found.into_iter().flatten().collect()
}

/// What is to become of the first nest that sums can be taken out of.
fn find(module: &Module, function: &Function, min_trips: i64) -> Option<Changes> {
    let stores = candidates(function);
    if stores.is_empty() || !has_product_in_nest(function) {
        return None;
    }
    let changes = |narrow: FxHashSet<Value>| {
        with_finder(module, function, min_trips, narrow, |finder| {
            finder.changes(&stores)
        })
    };
    // Assumptions that are not needed would only be tested for nothing.
    changes(FxHashSet::default()).or_else(|| {
        let narrow = narrow_indices(function);
        if narrow.is_empty() {
            return None;
        }
        changes(narrow)
    })
}

/// Looks for sums under the assumption that the arithmetic before these extensions does not wrap.
fn with_finder<R>(
    module: &Module,
    function: &Function,
    min_trips: i64,
    narrow: FxHashSet<Value>,
    look: impl FnOnce(&Finder<'_, '_>) -> R,
) -> R {
    let bounds = limited_bounds(function);
    let aliases = Aliases::widening(module, function, narrow.clone());
    let assumed = as_inequalities(aliases.indices(), &bounds);
    let aliases = aliases.assuming(assumed);
    look(&Finder {
        function,
        aliases: &aliases,
        distribution: Distribution::new(module, &aliases, true),
        uses: Uses::by(function, returning_ops(function)),
        bounds,
        narrow,
        min_trips,
        variables: Variables::of(&aliases),
        places: RefCell::default(),
    })
}

/// The stores of floats, but those of nests that stay as they were beside contractions, for small trip counts.
fn candidates(function: &Function) -> Vec<Op> {
    let ops = returning_ops(function);
    let mut left_alone = FxHashSet::default();
    for &op in &ops {
        if let OpView::If {
            then, otherwise, ..
        } = function.view(op)
            && holds_contraction(function, then)
        {
            for_each_op(function, otherwise, &mut |_, op| {
                left_alone.insert(op);
            });
        }
    }
    let is_float_store = |op: &Op| {
        let data = &function.ops[*op];
        data.opcode == Opcode::Store && [Type::F32, Type::F64].contains(&function.ty(data.value()))
    };
    let stores = ops.into_iter().filter(is_float_store);
    stores.filter(|op| !left_alone.contains(op)).collect()
}

/// Whether a contraction stands in a region, by itself or under a condition that decides nothing else.
fn holds_contraction(function: &Function, region: Region) -> bool {
    let mut ops = function.regions[region].ops.iter();
    ops.any(|&op| match function.view(op) {
        OpView::If {
            then, otherwise, ..
        } => {
            let is_empty = |region: Region| function.regions[region].ops.len() == 1;
            is_empty(otherwise) && holds_contraction(function, then)
                || is_empty(then) && holds_contraction(function, otherwise)
        }
        _ => function.ops[op].opcode == Opcode::Contract,
    })
}

/// Whether there are loops three deep, and a product: otherwise there is nothing to find.
fn has_product_in_nest(function: &Function) -> bool {
    fn depth(function: &Function, region: Region) -> usize {
        let ops = function.regions[region].ops.iter();
        let inner = ops.map(|&op| {
            let data = &function.ops[op];
            let regions = data.regions.iter().map(|&region| depth(function, region));
            regions.max().unwrap_or(0) + usize::from(data.opcode == Opcode::For)
        });
        inner.max().unwrap_or(0)
    }
    let multiplies = |op: Op| function.ops[op].opcode == Opcode::Fmul;
    function.body.is_some_and(|body| depth(function, body) >= 3)
        && all_ops(function).into_iter().any(multiplies)
}

struct Finder<'a, 'f> {
    function: &'f Function,
    aliases: &'a Aliases<'f>,
    distribution: Distribution<'a, 'f>,
    uses: Uses,
    /// Bounds of loops, and the numbers that they are if those are not negative.
    bounds: Vec<(Value, Value)>,
    /// Indices that are taken not to wrap in fewer bits.
    narrow: FxHashSet<Value>,
    min_trips: i64,
    variables: Rc<Variables>,
    /// The places before nests that were asked for.
    places: RefCell<FxHashMap<Op, Rc<Place>>>,
}

/// A counted loop around a statement, and the conditions between it and the statement's next loop inside.
struct Around {
    counted: Counted,
    guards: Vec<Guard>,
}

impl Finder<'_, '_> {
    /// What is to become of the first nest that sums of these stores can be taken out of.
    fn changes(&self, stores: &[Op]) -> Option<Changes> {
        let mut plans: Vec<Plan> = Vec::new();
        for &store in stores {
            // What is read back for other uses is stored by the second of two stores, too.
            let stored = |op: Op| self.function.ops[op].value();
            let is_read_back = |plan: &Plan| {
                matches!(plan.rest, Rest::ReadBack(_)) && stored(plan.store) == stored(store)
            };
            if plans.iter().any(is_read_back) {
                continue;
            }
            for plan in self.plans_for(store).0 {
                if plans.first().is_none_or(|first| first.nest == plan.nest) {
                    plans.push(plan);
                }
            }
        }
        let nest = plans.first()?.nest;
        let interchange = self.interchange(nest, &plans);
        Some(Changes {
            plans,
            interchange,
            place: self.place_before(nest),
            min_trips: self.min_trips,
        })
    }

    /// Where tests for a nest are made.
    fn place_before(&self, nest: Op) -> Rc<Place> {
        let mut places = self.places.borrow_mut();
        let place = places.entry(nest).or_insert_with(|| {
            let structure = self.aliases.structure();
            let variables = self.variables.clone();
            Rc::new(Place::before(variables, self.function, structure, nest))
        });
        place.clone()
    }

    /// The sums that can be taken out of a store, out of the largest nest that lets them; and why others cannot, if there are any.
    fn plans_for(&self, store: Op) -> (Vec<Plan>, Option<Obstacle>) {
        let around = self.loops_around(store);
        let mut best = Vec::new();
        let mut obstacle = None;
        for start in (0..around.len()).rev() {
            let nest = around[start].counted.op;
            let mut operations = 0;
            let body = self.function.ops[nest].body();
            for_each_op(self.function, body, &mut |_, _| operations += 1);
            if operations > MAX_OPERATIONS {
                break;
            }
            let mut plans = Vec::new();
            for attempt in self.plans_within(store, &around[start..]) {
                match attempt {
                    Ok(plan) => plans.push(plan),
                    Err(found) => obstacle = obstacle.max(Some(found)),
                }
            }
            match plans.is_empty() {
                false => best = plans,
                true if best.is_empty() => {}
                true => break,
            }
        }
        (best, obstacle)
    }

    /// The counted loops around an operation, outermost first, up to the first other loop or `switch`.
    fn loops_around(&self, op: Op) -> Vec<Around> {
        let structure = self.aliases.structure();
        let mut around: Vec<Around> = Vec::new();
        let mut guards = Vec::new();
        let mut region = structure.region_of(op);
        while let Some(inner) = region {
            let Some(holder) = structure.op_of(inner) else {
                break;
            };
            match self.function.view(holder) {
                OpView::If {
                    condition, then, ..
                } => guards.push((condition, then == inner)),
                OpView::For { .. } => match self.aliases.indices().counted(holder) {
                    Some(counted) => around.push(Around {
                        counted: counted.clone(),
                        guards: std::mem::take(&mut guards),
                    }),
                    None => break,
                },
                _ => break,
            }
            region = structure.region_of(holder);
        }
        around.reverse();
        around
    }

    /// The sums of products of a store: how each can be taken out of these loops, or why not.
    fn plans_within(&self, store: Op, around: &[Around]) -> Vec<Result<Plan, Obstacle>> {
        let nest = around[0].counted.op;
        let products = Products {
            function: self.function,
            indices: self.aliases.indices(),
            uses: &self.uses,
            nest,
        };
        let guards: Vec<Guard> = around.iter().flat_map(|one| one.guards.clone()).collect();
        let (Some(terms), Some(place)) = (
            products.terms(store),
            self.aliases.writes(store).accesses.into_iter().next(),
        ) else {
            return Vec::new();
        };
        if !guards
            .iter()
            .all(|&(condition, _)| self.aliases.indices().is_defined_outside(condition, nest))
        {
            return Vec::new();
        }
        let own = terms.iter().find_map(|term| {
            let plain = term.scales.is_empty() && !term.negated;
            let load = self.aliases.load_before(store, term.value)?;
            (plain && self.uses.only(term.value).is_some()).then_some(load)
        });
        let sums = Sums {
            finder: self,
            products,
            store,
            place,
            own,
            around,
            guards,
            alone: terms.len() == 1 + usize::from(own.is_some()),
        };
        let mut attempts: Vec<Result<Plan, Obstacle>> =
            terms.iter().filter_map(|term| sums.plan(term)).collect();
        // A store is removed if nothing is left of it.
        let raised = attempts.iter().filter(|attempt| attempt.is_ok()).count();
        if raised + usize::from(own.is_some()) < terms.len() {
            for attempt in &mut attempts {
                if let Ok(Plan {
                    rest: Rest::Sum, ..
                }) = attempt
                {
                    *attempt = Err(Obstacle::OtherUse);
                }
            }
        }
        attempts
    }
}

/// The terms of one store.
struct Sums<'a, 'f> {
    finder: &'a Finder<'a, 'f>,
    products: Products<'a, 'f>,
    store: Op,
    place: Access,
    /// The load of the old sum, if the store adds to it.
    own: Option<Op>,
    around: &'a [Around],
    guards: Vec<Guard>,
    /// Whether there is one term besides the old sum.
    alone: bool,
}

impl Sums<'_, '_> {
    /// How a term becomes a contraction; none if it is no sum of products.
    fn plan(&self, term: &Term) -> Option<Result<Plan, Obstacle>> {
        let function = self.finder.function;
        let is_own = function
            .def_op(term.value)
            .is_some_and(|(op, _)| Some(op) == self.own);
        if is_own {
            return None;
        }
        let whole = term.used == (self.store, 0);
        let reduction = self.products.reduction(term.value, whole);
        let product = match &reduction {
            Some(sum) => &sum.product[..],
            None => &[term.value],
        };
        let factors = self.products.factors(product)?;
        let sums = reduction.is_some() || self.own.is_some();
        (sums && factors.loads.len() >= 2)
            .then(|| self.plan_sum(term, reduction.as_ref(), &factors))
    }

    /// How a sum of products becomes a contraction.
    fn plan_sum(
        &self,
        term: &Term,
        reduction: Option<&Reduction>,
        factors: &Factors,
    ) -> Result<Plan, Obstacle> {
        let mut loops: Vec<Counted> = self.around.iter().map(|one| one.counted.clone()).collect();
        let outer = loops.len();
        for &op in reduction.iter().flat_map(|sum| &sum.loops) {
            let counted = self.finder.aliases.indices().counted(op);
            loops.push(counted.ok_or(Obstacle::TripCount(op))?.clone());
        }
        let mut plan = self.draft(term, factors, &loops)?;
        // A store that adds nothing to what was there must not come twice to a place.
        let sums_outside = plan.trips[..outer]
            .iter()
            .any(|(class, _)| *class == IndexClass::Sum);
        if self.own.is_none() && sums_outside {
            return Err(Obstacle::SetRepeatedly);
        }
        let rest = self.rest(term, reduction).ok_or(Obstacle::OtherUse)?;
        plan.rest = self.with_other_uses(rest, plan.nest)?;
        plan.guards.extend(self.guards.iter().copied());
        if let Some(reduction) = reduction {
            plan.guards.extend(reduction.guards.iter().copied());
            plan.negated ^= reduction.negated;
        }
        let statement = Statement {
            store: self.store,
            place: self.place.clone(),
            own: self.own,
            reads: factors.loads.clone(),
        };
        let sites = match plan.rest {
            Rest::ReadBack(_) => &[Site::Ahead][..],
            Rest::Set => &[Site::Behind, Site::Ahead],
            _ if self.own.is_some() => &[Site::Ahead, Site::Behind],
            _ => &[Site::Behind],
        };
        let mut obstacle = None;
        let place = self.finder.place_before(plan.nest);
        for &site in sites {
            let mut tests = Vec::new();
            let mut excuse = |meeting: &Meeting<'_>| {
                let test = test_for(self.finder.aliases, &place, meeting);
                tests.extend(test.clone());
                test.is_some()
            };
            let distribution = &self.finder.distribution;
            match distribution.find_conflict(plan.nest, &statement, site, &mut excuse) {
                None => {
                    plan.site = site;
                    plan.tests.extend(tests);
                    return Ok(plan);
                }
                Some(Conflict::MayStop) => return Err(Obstacle::MayStop),
                // The first site is the one that most sums can be moved to.
                Some(Conflict::Memory(op)) => obstacle = obstacle.or(Some(op)),
            }
        }
        Err(obstacle.map_or(Obstacle::MayStop, Obstacle::Conflict))
    }

    /// What is left of the store without a term.
    fn rest(&self, term: &Term, reduction: Option<&Reduction>) -> Option<Rest> {
        let function = self.finder.function;
        let is_zero = |value: Value| function.float_of(value) == Some(0.0);
        Some(match reduction {
            Some(sum) if self.alone && is_zero(sum.initial) && self.guards_are_of_store(sum) => {
                match self.own.is_some() {
                    true => Rest::Sum,
                    false => Rest::Set,
                }
            }
            // The loop's own initial value is defined where the sum is used, unless a branch is in between.
            Some(sum) if sum.guards.is_empty() || is_zero(sum.initial) => Rest::Others {
                used: term.used,
                by: (!is_zero(sum.initial)).then_some(sum.initial),
            },
            Some(_) => return None,
            // All terms become contractions, or none.
            None if self.own.is_some() => Rest::Sum,
            None => return None,
        })
    }

    /// What is left of the store if what it stores is used elsewhere, too.
    fn with_other_uses(&self, rest: Rest, nest: Op) -> Result<Rest, Obstacle> {
        let function = self.finder.function;
        let stored = function.ops[self.store].value();
        if self.finder.uses.only(stored).is_some() {
            return Ok(rest);
        }
        let structure = self.finder.aliases.structure();
        let indices = self.finder.aliases.indices();
        // The address can be computed where the value was.
        let is_visible = |variable: Value| {
            let mut counters = self.around.iter().map(|one| one.counted.counter);
            indices.is_defined_outside(variable, nest) || counters.any(|other| other == variable)
        };
        let defined = function.def_op(stored);
        let beside = defined.and_then(|(op, _)| structure.region_of(op));
        let readable = indices.can_emit(&self.place.offset)
            && self.place.offset.variables().all(is_visible)
            && beside == structure.region_of(self.store);
        match rest {
            Rest::Set if readable => Ok(Rest::ReadBack(self.place.clone())),
            _ => Err(Obstacle::OtherUse),
        }
    }

    /// Whether a sum is computed wherever it is stored.
    fn guards_are_of_store(&self, sum: &Reduction) -> bool {
        sum.guards.is_empty()
    }

    /// The contraction that a product is over a nest, wherever it may run.
    fn draft(&self, term: &Term, factors: &Factors, loops: &[Counted]) -> Result<Plan, Obstacle> {
        let aliases = self.finder.aliases;
        let nest = loops[0].op;
        let no_array = |op: Op| Obstacle::NoArray(op);
        let destination = Array::of(aliases, &self.place, loops).ok_or(no_array(self.store))?;
        let mut operands = Vec::new();
        let mut scalar_loads = Vec::new();
        for &load in &factors.loads {
            let access = aliases.reads(load).accesses.into_iter().next();
            let array = access.and_then(|access| Array::of(aliases, &access, loops));
            let array = array.ok_or(no_array(load))?;
            let moves = (0..loops.len()).any(|position| array.moves(position));
            match moves {
                true => operands.push(array),
                false => scalar_loads.push(array),
            }
        }
        let no_product = Obstacle::NoMatrixProduct;
        let [mut left, mut right]: [Array; 2] = operands.try_into().map_err(|_| no_product)?;
        // The left operand is the one that the outermost index counts in.
        let mut positions = 0..loops.len();
        let first = positions.find(|&at| left.moves(at) != right.moves(at));
        let first = first.ok_or(no_product)?;
        if right.moves(first) {
            std::mem::swap(&mut left, &mut right);
        }
        let arrays = [destination, left, right];
        let mut indices = Vec::new();
        for (position, counted) in loops.iter().enumerate() {
            let moves = arrays.each_ref().map(|array| array.moves(position));
            let count = counted.trip_count();
            let count = count.filter(|count| is_visible(aliases, count, nest));
            let count = count.ok_or(Obstacle::TripCount(counted.op))?;
            indices.push(Index {
                class: IndexClass::of_arrays(moves).ok_or(no_product)?,
                counts: vec![count],
                strides: arrays
                    .each_ref()
                    .map(|array| array.strides[position].clone()),
            });
        }
        let trips: Vec<(IndexClass, Symbolic)> = (indices.iter())
            .map(|index| (index.class, index.counts[0].clone()))
            .collect();
        is_worthwhile(&trips, self.finder.min_trips)?;
        merge_indices(&mut indices);
        let distinct = match self.has_distinct_places(&trips, loops) {
            true => Some(Distinct::Always),
            false => self.distinct_places(&indices, nest),
        };
        let distinct = distinct.ok_or(Obstacle::SamePlace)?;
        let assumed = tested_numbers(aliases, &self.finder.bounds, nest);
        let place = self.finder.place_before(nest);
        let mut tests = tests_for(aliases, &self.finder.narrow, &place).map_err(no_array)?;
        tests.push(Test::Distinct(distinct));
        Ok(Plan {
            assumed: assumed.ok_or(Obstacle::TripCount(nest))?,
            nest,
            store: self.store,
            site: Site::Behind,
            guards: Vec::new(),
            arrays,
            indices,
            trips,
            tests,
            scalars: [&factors.scalars[..], &term.scales].concat(),
            scalar_loads,
            negated: factors.negated ^ term.negated,
            element: self.element(),
            rest: Rest::Sum,
        })
    }

    /// What different elements of the destination being different memory rests on.
    fn distinct_places(&self, indices: &[Index], nest: Op) -> Option<Distinct> {
        let counting = indices
            .iter()
            .filter(|index| index.class != IndexClass::Sum);
        let moves: Vec<Moves> = counting
            .map(|index| Moves {
                stride: index.strides[0].clone(),
                counts: index.counts.clone(),
                least: match is_alone(index, indices) {
                    true => self.finder.min_trips,
                    false => 1,
                },
            })
            .collect();
        let size = i64::try_from(self.element().bytes()).ok()?;
        are_distinct(self.finder.aliases, nest, &moves, size)
    }

    fn element(&self) -> Type {
        let function = self.finder.function;
        function.ty(function.ops[self.store].value())
    }

    /// Whether different iterations are known to store to different memory.
    fn has_distinct_places(&self, trips: &[(IndexClass, Symbolic)], loops: &[Counted]) -> bool {
        let aliases = self.finder.aliases;
        let place = (self.store, &self.place);
        trips
            .iter()
            .zip(loops)
            .filter(|((class, _), _)| *class != IndexClass::Sum)
            .all(|(_, counted)| !aliases.may_meet_later(place, place, counted.op))
    }
}

/// The kinds of loops that a matrix product has.
const PRODUCT: [IndexClass; 3] = [IndexClass::Left, IndexClass::Right, IndexClass::Sum];

/// Says if there is no matrix product in it that may be large enough.
fn is_worthwhile(trips: &[(IndexClass, Symbolic)], min_trips: i64) -> Result<(), Obstacle> {
    for class in PRODUCT {
        let mut of_class = trips.iter().filter(|(other, _)| *other == class).peekable();
        if of_class.peek().is_none() {
            return Err(Obstacle::NoMatrixProduct);
        }
        let known = of_class.try_fold(1, |trips: i64, (_, count)| {
            Some(trips.saturating_mul(count.is_constant()?))
        });
        if known.is_some_and(|trips| trips < min_trips) {
            return Err(Obstacle::TooSmall);
        }
    }
    Ok(())
}

/// Whether an index is the only one of a kind of loop that a product has.
fn is_alone(index: &Index, indices: &[Index]) -> bool {
    let of_class = indices.iter().filter(|other| other.class == index.class);
    of_class.count() == 1 && PRODUCT.contains(&index.class)
}

/// Makes one index of two where the outer one goes on where the inner one ends.
fn merge_indices(indices: &mut Vec<Index>) {
    let mut outer = 0;
    while outer < indices.len() {
        let found = (0..indices.len())
            .find(|&inner| inner != outer && goes_on_behind(&indices[outer], &indices[inner]));
        match found {
            Some(inner) => {
                let counts = indices[outer].counts.clone();
                indices[inner].counts.extend(counts);
                indices.remove(outer);
                outer = 0;
            }
            None => outer += 1,
        }
    }
}

/// Whether an iteration of one index moves as far as all iterations of another do.
fn goes_on_behind(outer: &Index, inner: &Index) -> bool {
    let distance = |stride: &Symbolic| {
        let mut counts = inner.counts.iter();
        counts.try_fold(stride.clone(), |distance, count| distance.mul(count))
    };
    let mut pairs = outer.strides.iter().zip(&inner.strides);
    outer.class == inner.class
        && pairs.all(|(outer, stride)| distance(stride).as_ref() == Some(outer))
}

#[cfg(test)]
mod tests;
