//! Which loops are independent, and which carried values may be summed up in any order.
//!
//! A loop is *independent* if no iteration touches what another one writes; the proof is that of `ferrozyme_opt::alias`. A carried value is a *reduction* if the body does nothing with it but to combine it by
//! an operation whose order does not matter: integers, maxima and minima, and sums of floats that are marked `reassoc`.

use ferrozyme_ir::{
    Flags, Function, Module, Op, OpView, Opcode, Payload, Type, Value, for_each_op,
};
use ferrozyme_opt::Uses;
use ferrozyme_opt::alias::{Access, Aliases};
use rustc_hash::FxHashSet;

/// How many pairs of accesses are looked at for one loop.
const MAX_PAIRS: usize = 4096;

/// The number of iterations of a loop that counts from 0 by 1 to a constant.
pub(crate) fn constant_count(function: &Function, op: Op) -> Option<u64> {
    let OpView::For { from, to, step, .. } = function.view(op) else {
        return None;
    };
    let known = (function.int_of(from)?, function.int_of(step)?);
    let count = u64::try_from(function.int_of(to)?).ok()?;
    (known == (0, 1)).then_some(count)
}

/// The independent loops of a kernel among those with a constant trip count. None if its buffers may overlap.
pub(crate) fn independent_loops(module: &Module, function: &Function) -> FxHashSet<Op> {
    let mut found = FxHashSet::default();
    // Everything here tells memory apart by the parameter that leads to it.
    let mut pointers = function.params.iter().filter(|param| param.ty.is_ptr());
    if !pointers.all(|param| param.facts.noalias) {
        return found;
    }
    let aliases = Aliases::new(module, function);
    for_each_op(function, function.body(), &mut |_, op| {
        if constant_count(function, op).is_some() && is_independent(&aliases, op) {
            found.insert(op);
        }
    });
    found
}

fn is_independent(aliases: &Aliases<'_>, around: Op) -> bool {
    let function = aliases.function();
    let mut writes: Vec<(Op, Access)> = Vec::new();
    let mut all: Vec<(Op, Access)> = Vec::new();
    let mut is_known = true;
    for_each_op(function, function.ops[around].regions[0], &mut |_, op| {
        let opcode = function.ops[op].opcode;
        if matches!(
            opcode,
            Opcode::Call
                | Opcode::CallIndirect
                | Opcode::Alloc
                | Opcode::Free
                | Opcode::Stack
                | Opcode::Loop
        ) {
            is_known = false;
        }
        // What stands in regions is visited itself.
        if !function.ops[op].regions.is_empty() {
            return;
        }
        let (read, written) = (aliases.reads(op), aliases.writes(op));
        is_known &= !read.elsewhere && !written.elsewhere;
        writes.extend(written.accesses.iter().map(|access| (op, access.clone())));
        let both = read.accesses.into_iter().chain(written.accesses);
        all.extend(both.map(|access| (op, access)));
    });
    if !is_known || writes.len() * all.len() > MAX_PAIRS {
        return false;
    }
    let apart = |a: &(Op, Access), b: &(Op, Access)| {
        !aliases.may_share(a.1.root, b.1.root)
            || !aliases.may_meet_later((a.0, &a.1), (b.0, &b.1), around)
    };
    // Atomic additions may meet each other in any order.
    let is_atomic = |op: Op| function.ops[op].opcode == Opcode::AtomicAdd;
    writes.iter().all(|write| {
        all.iter().all(|other| {
            (is_atomic(write.0) && is_atomic(other.0))
                || (apart(write, other) && apart(other, write))
        })
    })
}

/// For each carried value of a loop the operation that combines it with what an iteration adds. None if one is used otherwise.
pub(crate) fn reductions(function: &Function, uses: &Uses, op: Op) -> Option<Vec<Opcode>> {
    let positions = 0..function.carried(op).len();
    positions
        .map(|position| reduction(function, uses, op, position))
        .collect()
}

fn reduction(function: &Function, uses: &Uses, op: Op, position: usize) -> Option<Opcode> {
    let region = function.ops[op].regions[0];
    let carried = function.carried(op)[position];
    let OpView::Yield { values } = function.view(function.terminator(region)) else {
        return None;
    };
    if uses.of_value(carried).len() != 1 {
        return None;
    }
    let (by, index) = function.def_op(values[position])?;
    if let OpView::For { initial, .. } = function.view(by) {
        let is_passed_on =
            initial.get(index) == Some(&carried) && uses.of_value(values[position]).len() == 1;
        return if is_passed_on {
            reduction(function, uses, by, index)
        } else {
            None
        };
    }
    let OpView::Binary(opcode, a, b) = function.view(by) else {
        return None;
    };
    let is_combined =
        (a == carried) != (b == carried) && uses.of_value(values[position]).len() == 1;
    let any_order = match opcode {
        Opcode::Fadd => function.ops[by].flags.contains(Flags::REASSOC),
        Opcode::Add | Opcode::Smax | Opcode::Smin | Opcode::Umax | Opcode::Umin => true,
        Opcode::Fmaximum | Opcode::Fminimum => true,
        _ => false,
    };
    (is_combined && any_order).then_some(opcode)
}

/// What leaves every number as it is when a reduction combines them.
pub(crate) fn identity(function: &mut Function, opcode: Opcode, ty: Type) -> Value {
    let bits = ty.scalar().bits();
    match opcode {
        Opcode::Fmaximum => function.float(ty, f64::NEG_INFINITY),
        Opcode::Fminimum => function.float(ty, f64::INFINITY),
        Opcode::Smax => function.int(ty, -(1i128 << (bits - 1))),
        Opcode::Smin => function.int(ty, (1i128 << (bits - 1)) - 1),
        Opcode::Umin => function.int(ty, -1),
        _ => function.zero(ty),
    }
}

/// The roots of all addresses that operations of a list and in them store to.
pub(crate) fn written_roots(function: &Function, ops: &[Op]) -> FxHashSet<Value> {
    let mut roots = FxHashSet::default();
    visit_all(function, ops, &mut |op| match function.view(op) {
        OpView::Store { address, .. } | OpView::AtomicAdd { address, .. } => {
            roots.insert(root(function, address));
        }
        OpView::Copy { destination, .. }
        | OpView::Move { destination, .. }
        | OpView::Fill { destination, .. }
        | OpView::Contract { destination, .. } => {
            roots.insert(root(function, destination));
        }
        _ => {}
    });
    roots
}

/// Whether an operation of a list, or in one, loads from one of these roots.
pub(crate) fn reads_from(function: &Function, ops: &[Op], roots: &FxHashSet<Value>) -> bool {
    let mut reads = false;
    visit_all(function, ops, &mut |op| match function.view(op) {
        OpView::Load { address, .. } => reads |= roots.contains(&root(function, address)),
        OpView::Copy { source, .. } | OpView::Move { source, .. } => {
            reads |= roots.contains(&root(function, source));
        }
        _ => {}
    });
    reads
}

/// Visits operations and those in their regions.
pub(crate) fn visit_all(function: &Function, ops: &[Op], visit: &mut impl FnMut(Op)) {
    for &op in ops {
        visit(op);
        for &region in &function.ops[op].regions {
            for_each_op(function, region, &mut |_, op| visit(op));
        }
    }
}

/// The pointer that an address is counted from.
pub(crate) fn root(function: &Function, mut address: Value) -> Value {
    while let Some(OpView::Offset { base, .. }) = function.definition(address) {
        address = base;
    }
    address
}

/// Whether an operation computes from its operands only.
pub(crate) fn is_pure(function: &Function, op: Op) -> bool {
    let data = &function.ops[op];
    data.regions.is_empty()
        && !matches!(data.payload, Payload::Callee(_))
        && matches!(
            data.opcode.effect(),
            ferrozyme_ir::Effect::Pure | ferrozyme_ir::Effect::Partial
        )
}
