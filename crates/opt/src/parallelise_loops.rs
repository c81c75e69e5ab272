//! Runs the iterations of loops that are meant for several threads (`for parallel`) on several threads.
//!
//! ```text
//! for parallel %i: i64 = 0 to %n step 1 {        %blocks = … threads, 1 if the loop is short or memory overlaps
//!   … load f64 %x[i]                             if %blocks > 1 {
//!   store f64 …, %y[i]                             store %x, %y, %n, … in a context
//! }                                        ──▶     call @__ferrozyme_team(%blocks, @f.parallel, %context)
//!                                                } else {
//!                                                  … the loop as it was
//!                                                }
//! ```
//!
//! Each block of successive iterations is one body of a team. That a loop is meant for several threads is a wish of the program, and no proof: a loop qualifies only if it is known that different iterations do not
//! touch the same memory (`sharing.rs`), or if that is tested before it runs. Sums are no obstacle:
//!
//! - A float that is carried and only added to is a sum of each block; the sums of the blocks are added up in their order.
//! - Where iterations add to the same memory (as reverse sweeps do to the shadow of what several iterations read), neighbours are kept apart, blocks have copies, or the additions are atomic (`strategies.rs`).
//!
//! So the result has the same bits whenever there are as many threads, but for atomic additions. A loop with anything else in common stays as it was; [`Outcome`] says why.
//!
//! *Assumes* that contractions have been raised, which would not be found in the new functions. *Guarantees* that only one loop of a nest runs on several threads.

mod captures;
mod copies;
mod outline;
mod profit;
mod sharing;
mod strategies;

use crate::alias::Aliases;
use crate::raise_contractions::Test;
use crate::ranges::{Place, Variables};
use crate::uses::Uses;
use crate::with_function::with_function;
use captures::Captures;
use ferrozyme_ir::{Flags, Function, FunctionId, Module, Op, Opcode, Region, returning_ops};
use sharing::{Carried, Sharing};
use std::rc::Rc;
use strategies::SharedSum;

/// How loops are run on several threads.
#[derive(Clone, Copy, Debug)]
pub struct ParallelOptions {
    /// Whether sums may be added up in another order.
    pub reorder: bool,
    /// The least work of a loop, in simple operations, that is worth several threads.
    pub least_work: u64,
}

impl Default for ParallelOptions {
    fn default() -> ParallelOptions {
        ParallelOptions {
            reorder: true,
            // Some ten microseconds: several times what it takes to begin and end a team.
            least_work: 50_000,
        }
    }
}

/// What has become of a loop that is meant for several threads.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The loop.
    pub op: Op,
    /// What it does on several threads, or why it runs on one.
    pub choice: Result<Choice, Obstacle>,
}

/// How a loop runs on several threads.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Choice {
    /// The number of tests that are made before it runs.
    pub tests: usize,
    /// The number of carried sums.
    pub sums: usize,
    /// The sums in memory that iterations share, by the operations that store them, and what is done about them.
    pub shared: Vec<(Op, Strategy)>,
}

/// What is done where iterations add to the same memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Strategy {
    /// Only iterations at most this far from each other add to the same place: every second block runs first, then the others.
    Neighbours(i64),
    /// Each block adds to a copy; the copies are added up in the order of the blocks.
    Copies,
    /// Additions are atomic.
    Atomic,
}

/// Why a loop does not run on several threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// It carries a value from one iteration to the next that is no sum.
    Carried,
    /// This operation may touch any memory.
    AnyMemory(Op),
    /// These two operations may touch the same memory in different iterations.
    Conflict(Op, Op),
    /// It touches memory at too many places to compare them all.
    TooManyAccesses,
}

/// Runs loops of a function on several threads, however short they are; returns how many.
pub fn parallelise_loops(module: &mut Module, id: FunctionId) -> usize {
    let options = ParallelOptions {
        least_work: 0,
        ..ParallelOptions::default()
    };
    let outcomes = parallelise_loops_with(module, id, &options);
    outcomes.iter().filter(|one| one.choice.is_ok()).count()
}

/// Runs loops of a function on several threads; says of each that is meant for it what has become of it.
pub fn parallelise_loops_with(
    module: &mut Module,
    id: FunctionId,
    options: &ParallelOptions,
) -> Vec<Outcome> {
    let is_meant = |function: &Function, op: Op| {
        let data = &function.ops[op];
        data.opcode == Opcode::For && data.flags.contains(Flags::PARALLEL)
    };
    let function = &module.functions[id];
    if function.body.is_none()
        || !returning_ops(function)
            .iter()
            .any(|&op| is_meant(function, op))
    {
        return Vec::new();
    }
    let mut outcomes: Vec<Outcome> = Vec::new();
    loop {
        let (plans, found) = find_plans(module, &module.functions[id], options);
        let is_known = |op: Op| outcomes.iter().any(|one| one.op == op);
        let new: Vec<Outcome> = found.into_iter().filter(|one| !is_known(one.op)).collect();
        outcomes.extend(new);
        with_function(module, id, |module, function| {
            for plan in &plans {
                outline::apply(module, function, plan, options);
            }
        });
        // What is to be tested before the loops that follow may consist of integers that this one gave.
        if !plans.last().is_some_and(Plan::gives_integers) {
            return outcomes;
        }
    }
}

/// A loop that is to run on several threads.
struct Plan {
    op: Op,
    /// What must hold when it runs.
    tests: Vec<Test>,
    /// What it carries.
    carried: Vec<Carried>,
    /// The sums in memory that iterations share.
    shared: Vec<SharedSum>,
    captures: Captures,
    work: profit::Work,
    /// How much longer it takes where additions are atomic.
    waits: Option<profit::Work>,
    place: Place,
}

fn find_plans(
    module: &Module,
    function: &Function,
    options: &ParallelOptions,
) -> (Vec<Plan>, Vec<Outcome>) {
    let aliases = Aliases::new(module, function);
    let finder = Finder {
        module,
        function,
        uses: Uses::by(function, returning_ops(function)),
        variables: Variables::of(&aliases),
        aliases,
        options,
    };
    let (mut plans, mut outcomes) = (Vec::new(), Vec::new());
    finder.visit(function.body(), &mut plans, &mut outcomes);
    (plans, outcomes)
}

struct Finder<'a> {
    module: &'a Module,
    function: &'a Function,
    aliases: Aliases<'a>,
    uses: Uses,
    variables: Rc<Variables>,
    options: &'a ParallelOptions,
}

impl Finder<'_> {
    /// Looks in a region for loops, outer ones first: within one that runs on several threads there is nothing to find.
    fn visit(&self, region: Region, plans: &mut Vec<Plan>, outcomes: &mut Vec<Outcome>) {
        if self.function.ends_in_trap(region) {
            return;
        }
        for &op in &self.function.regions[region].ops {
            if plans.last().is_some_and(Plan::gives_integers) {
                return;
            }
            let data = &self.function.ops[op];
            if data.opcode == Opcode::For && data.flags.contains(Flags::PARALLEL) {
                let choice = self.plan_for(op).map(|plan| {
                    let choice = plan.choice();
                    plans.push(plan);
                    choice
                });
                let found = choice.is_ok();
                outcomes.push(Outcome { op, choice });
                if found {
                    continue;
                }
            }
            for &inner in &data.regions {
                self.visit(inner, plans, outcomes);
            }
        }
    }

    fn plan_for(&self, op: Op) -> Result<Plan, Obstacle> {
        let structure = self.aliases.structure();
        let place = Place::before(self.variables.clone(), self.function, structure, op);
        let sharing = Sharing::of(self, &place)?;
        let atomic = sharing.shared.iter();
        let atomic = atomic.filter(|sum| sum.strategy == Strategy::Atomic);
        let additions: Vec<Op> = atomic.flat_map(SharedSum::stores).collect();
        Ok(Plan {
            op,
            place,
            work: profit::Work::of(&self.aliases, op),
            waits: profit::Work::of_atomic_additions(&self.aliases, op, &additions),
            captures: Captures::of(self, op, &sharing),
            tests: sharing.tests,
            carried: sharing.carried,
            shared: sharing.shared,
        })
    }
}

impl Plan {
    /// In how many rounds the blocks run: in two if some that are next to each other may not run together.
    fn rounds(&self) -> i64 {
        let strategies = self.shared.iter().map(|sum| sum.strategy);
        let neighbours = |strategy| matches!(strategy, Strategy::Neighbours(_));
        if strategies.into_iter().any(neighbours) {
            2
        } else {
            1
        }
    }

    /// Whether results of the loop are integers.
    fn gives_integers(&self) -> bool {
        let mut carried = self.carried.iter();
        carried.any(|carried| matches!(carried, Carried::Any(_)))
    }

    /// How long a block must be at least.
    fn least_block(&self) -> i64 {
        let distances = self.shared.iter().map(|sum| match sum.strategy {
            Strategy::Neighbours(distance) => distance,
            _ => 1,
        });
        distances.max().unwrap_or(1)
    }

    fn choice(&self) -> Choice {
        let shared = self.shared.iter();
        Choice {
            tests: self.tests.len(),
            sums: self.carried.len(),
            shared: shared.map(|sum| (sum.store(), sum.strategy)).collect(),
        }
    }
}

#[cfg(test)]
mod tests;
