//! Finds innermost loops without dependences between iterations, so that LLVM needs no run-time check to vectorise them.
//!
//! ```text
//! for %j: i64 = 0 to %width step 1 {
//!   %a = load f64 %w[j]            …  store f64 %a1, %w[j]
//!   %b = load f64 %w[width + j]    …  store f64 %b1, %w[width + j]
//! }
//! ```
//! Both places are in one array, a distance apart that LLVM does not know to be longer than the loop.

use ferrozyme_ir::{Function, Module, Op, Opcode, Region, all_ops};
use ferrozyme_opt::alias::{Access, Aliases};
use ferrozyme_opt::is_plain_loop;
use rustc_hash::FxHashSet;

/// How many pairs of accesses are looked at for one loop.
const MAX_PAIRS: usize = 2048;

/// The counted loops of a function that have no branches or loops inside, and no iteration of which touches what another writes.
///
/// Branches are left out because LLVM takes a loop that is marked as independent as one in which what is read behind a branch may be read in any case.
pub(super) fn independent_loops(module: &Module, function: &Function) -> FxHashSet<Op> {
    let plain: Vec<Op> = all_ops(function)
        .into_iter()
        .filter(|&op| is_plain(function, op))
        .collect();
    if plain.is_empty() {
        return FxHashSet::default();
    }
    let aliases = Aliases::new(module, function);
    plain
        .into_iter()
        .filter(|&op| is_independent(&aliases, op))
        .collect()
}

/// Whether a loop writes memory, and does nothing else than to compute, to load and to store.
fn is_plain(function: &Function, op: Op) -> bool {
    let stores = |region: Region| {
        let mut ops = function.regions[region].ops.iter();
        ops.any(|&inner| function.ops[inner].opcode == Opcode::Store)
    };
    is_plain_loop(function, op) && stores(function.ops[op].regions[0])
}

fn is_independent(aliases: &Aliases<'_>, around: Op) -> bool {
    let function = aliases.function();
    let ops = &function.regions[function.ops[around].regions[0]].ops;
    let mut writes: Vec<(Op, Access)> = Vec::new();
    let mut all: Vec<(Op, Access)> = Vec::new();
    for &op in ops {
        let (read, written) = (aliases.reads(op), aliases.writes(op));
        writes.extend(written.accesses.iter().map(|access| (op, access.clone())));
        let both = read.accesses.into_iter().chain(written.accesses);
        all.extend(both.map(|access| (op, access)));
    }
    if writes.len() * all.len() > MAX_PAIRS {
        return false;
    }
    let apart = |a: &(Op, Access), b: &(Op, Access)| {
        !aliases.may_share(a.1.root, b.1.root)
            || !aliases.may_meet_later((a.0, &a.1), (b.0, &b.1), around)
    };
    writes.iter().all(|write| {
        all.iter()
            .all(|other| apart(write, other) && apart(other, write))
    })
}
