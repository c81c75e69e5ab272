//! Fusion: which tensors have no buffer, because their elements are computed in the kernels that use them.
//!
//! ```text
//! %p = contract %x, %w (ab, bc -> ac)         kernel %p: contract
//! %q = broadcast %b [0: 4]
//! %s = fadd %p, %q                     ─▶
//! %y = tanh %s                                kernel %y: tanh, fadd, broadcast
//! receive "y" %y
//! ```
//!
//! A tensor is inlined where that is legal: its operation is computed element by element, everyone who uses it computes elements too (the host, parameters and loops read memory), and stands in the same
//! region, since the bodies of loops run more often. And where it pays: each element is computed once, or costs hardly more than a load. Every tensor that keeps its buffer has a [`Reason`].
//!
//! Contractions read memory, but with any strides: views that have strides are inlined into them (`lower/strided.rs`). A contraction itself is inlined into a sum that alone uses it: it adds to the sum's buffer (`lower/sum.rs`).
//!
//! Then kernels are joined that read the same tensors, or one what the other computes, row by row (`fuse/join.rs`): a softmax or a layer norm is one kernel, as are all updates of an optimiser's state.
//!
//! Only then is it known which kernels compute an inlined tensor. Where they read more for it than it takes itself, it gets a buffer after all (`fuse/traffic.rs`), and kernels are joined anew.

mod join;
mod traffic;

use crate::graph::{Graph, Op, OpData, Region, Tensor};
use crate::lower::Fusion;
use crate::lower::arithmetic::sums_columns;
use crate::lower::strided::strided;
use crate::lower::sum::is_sum;
use crate::opcode::Opcode;
use crate::payload::{Literal, Payload};
use crate::print::{Names, describe};
use cranelift_entity::{EntitySet, SecondaryMap};
use ferrozyme_ir::{MathCost, Scalar};
use rustc_hash::FxHashMap;
use std::fmt;
use std::fmt::Write;

/// Why a tensor has a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Its operation is computed as a whole.
    Whole,
    /// An operation of this kind reads it from memory.
    ReadBy(Opcode),
    /// A region yields it.
    Yielded,
    /// It is used in another region, which may run more often.
    OtherRegion,
    /// Each element would be computed so many times.
    ComputedAgain(usize),
    /// Several kernels would read what it is computed from, which is more than it is itself.
    Traffic,
    /// The kernel would have too many operations.
    TooLong,
    /// It is a reduction over rows, which goes through them one after the other.
    Columns,
    /// It is a reduction, and another one goes through its elements: each group of items would compute many of them, one after the other.
    Nested,
    /// Its parts are computed one after the other, and are part of another one.
    Parts,
    /// Nobody uses it.
    Unused,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Whole => f.write_str("it is computed as a whole"),
            Reason::ReadBy(opcode) => write!(f, "`{opcode}` reads it from memory"),
            Reason::Yielded => f.write_str("a region yields it"),
            Reason::OtherRegion => f.write_str("it is used in another region"),
            Reason::ComputedAgain(times) => {
                write!(f, "each element would be computed {times} times")
            }
            Reason::Traffic => {
                f.write_str("several kernels would read more to compute it than it takes")
            }
            Reason::TooLong => f.write_str("the kernel would have too many operations"),
            Reason::Columns => f.write_str("it is reduced row by row"),
            Reason::Nested => f.write_str("another reduction goes through its elements"),
            Reason::Parts => f.write_str("its parts are computed one after the other"),
            Reason::Unused => f.write_str("nobody uses it"),
        }
    }
}

/// The most operations that an element is computed by, one from the other.
const LONGEST: usize = 40;
/// How often an element may be computed rather than kept in memory.
#[derive(Clone, Copy, Debug)]
pub struct Repeats {
    /// One that costs about a load.
    pub cheap: usize,
    /// One that costs more.
    pub slow: usize,
    /// Whether sums of long columns are split into sums of parts.
    pub splits_sums: bool,
}

impl Repeats {
    /// Where computing costs as much as memory.
    pub const PROCESSOR: Repeats = Repeats {
        cheap: 3,
        slow: 1,
        splits_sums: false,
    };
    /// Where units of computation wait for memory.
    pub const DEVICE: Repeats = Repeats {
        cheap: 16,
        slow: 8,
        splits_sums: true,
    };
}

/// How often tensors get buffers because of their traffic, and kernels are joined anew.
const ROUNDS: usize = 3;

/// A reduction over fewer elements is computed where another one uses it.
const MANY_TERMS: usize = 32;

/// What was chosen, and why.
#[derive(Clone, Debug, Default)]
pub struct FusionReport {
    /// Tensors that have a buffer although their operations have rules for elements, or feed kernels, and why.
    pub kept: Vec<(Tensor, Reason)>,
}

/// Chooses the tensors that are inlined, and the kernels that are joined, for a processor.
pub fn fuse(graph: &Graph) -> (Fusion, FusionReport) {
    fuse_for(graph, Repeats::PROCESSOR)
}

/// As [`fuse`], for what computes elements so often.
pub fn fuse_for(graph: &Graph, repeats: Repeats) -> (Fusion, FusionReport) {
    let (mut fusion, report) = choose_inlined(graph, repeats);
    join::join_kernels(graph, &mut fusion);
    (fusion, report)
}

/// Chooses the tensors that are inlined, which hardly depends on the order of operations.
pub(crate) fn choose_inlined(graph: &Graph, repeats: Repeats) -> (Fusion, FusionReport) {
    let mut kept = EntitySet::new();
    for _ in 0..ROUNDS {
        let (fusion, report) = choose_inlined_but(graph, repeats, &kept);
        let mut joined = fusion.clone();
        join::join_kernels(graph, &mut joined);
        let costly = traffic::costly(graph, &joined);
        if costly.is_empty() {
            return (fusion, report);
        }
        kept.extend(costly);
    }
    choose_inlined_but(graph, repeats, &kept)
}

/// As [`choose_inlined`], with buffers for some tensors whose traffic would be larger without.
fn choose_inlined_but(
    graph: &Graph,
    repeats: Repeats,
    kept: &EntitySet<Tensor>,
) -> (Fusion, FusionReport) {
    let mut fuser = Fuser {
        graph,
        repeats,
        kept,
        part: SecondaryMap::new(),
        uses: find_uses(graph),
        fusion: Fusion::default(),
        times: SecondaryMap::new(),
        length: SecondaryMap::new(),
        contracted: SecondaryMap::new(),
        reduced: SecondaryMap::new(),
        report: FusionReport::default(),
    };
    fuser.region(graph.body());
    fuser.report.kept.reverse();
    (fuser.fusion, fuser.report)
}

/// Who uses a tensor: operations, and regions that yield it.
#[derive(Clone, Default)]
struct Uses {
    ops: Vec<(Op, Region)>,
    yielded: bool,
}

fn find_uses(graph: &Graph) -> SecondaryMap<Tensor, Uses> {
    let mut uses: SecondaryMap<Tensor, Uses> = SecondaryMap::new();
    graph.for_each_op(graph.body(), &mut |region, op| {
        for &operand in &graph.ops[op].operands {
            uses[operand].ops.push((op, region));
        }
        for &inner in &graph.ops[op].regions {
            for &result in &graph.regions[inner].results {
                uses[result].yielded = true;
            }
        }
    });
    uses
}

struct Fuser<'g> {
    graph: &'g Graph,
    repeats: Repeats,
    kept: &'g EntitySet<Tensor>,
    uses: SecondaryMap<Tensor, Uses>,
    fusion: Fusion,
    /// How often an element of an inlined tensor is computed, in each place.
    times: SecondaryMap<Tensor, Times>,
    /// How many operations lead from an inlined tensor to the one that its kernel stores.
    length: SecondaryMap<Tensor, usize>,
    /// The operands of contractions that an inlined view is part of.
    contracted: SecondaryMap<Tensor, Vec<Tensor>>,
    /// Whether an inlined tensor is a part of a `concat`, as it is or in another shape or type.
    part: SecondaryMap<Tensor, bool>,
    /// Whether a reduction goes through the elements of an inlined tensor.
    reduced: SecondaryMap<Tensor, bool>,
    report: FusionReport,
}

impl Fuser<'_> {
    /// From the last operation to the first, so that it is known what becomes of those that use a tensor.
    fn region(&mut self, region: Region) {
        for &op in self.graph.regions[region].ops.iter().rev() {
            let data = &self.graph.ops[op];
            for &inner in &data.regions {
                self.region(inner);
            }
            let &[result] = &data.results[..] else {
                continue;
            };
            if data.opcode.row().evaluate.is_none() {
                continue;
            }
            match self.reason_to_keep(data, result, region) {
                None => {
                    self.fusion.inlined.insert(result);
                }
                Some(reason) => self.report.kept.push((result, reason)),
            }
        }
    }

    fn reason_to_keep(&mut self, data: &OpData, result: Tensor, region: Region) -> Option<Reason> {
        if data.opcode == Opcode::Contract && self.is_term_of_sum(data, result) {
            return None;
        }
        if data.opcode.row().element.is_none() {
            return Some(Reason::Whole);
        }
        let uses = &self.uses[result];
        if uses.yielded {
            return Some(Reason::Yielded);
        }
        if uses.ops.is_empty() {
            return Some(Reason::Unused);
        }
        let graph = self.graph;
        let mut times = Times::default();
        let mut length = 0;
        let (mut reduced, mut part) = (false, false);
        let mut contracted: Vec<Tensor> = Vec::new();
        for &(user, home) in &uses.ops {
            let user = &graph.ops[user];
            if home != region && (!is_number(data) || user.opcode == Opcode::Contract) {
                return Some(match user.opcode.row().evaluate {
                    Some(_) if user.opcode != Opcode::Contract => Reason::OtherRegion,
                    _ => Reason::ReadBy(user.opcode),
                });
            }
            if user.opcode == Opcode::Contract {
                contracted.push(result);
                continue;
            }
            if user.opcode.row().evaluate.is_none() {
                return Some(Reason::ReadBy(user.opcode));
            }
            let by = user.results[0];
            let inlined = self.fusion.inlined.contains(by);
            times.add_user(graph, user, inlined.then(|| &self.times[by]));
            contracted.extend(&self.contracted[by]);
            part |= match user.opcode {
                Opcode::Concat => true,
                Opcode::Reshape | Opcode::Cast => inlined && self.part[by],
                _ => false,
            };
            reduced |= user.opcode == Opcode::Reduce || (inlined && self.reduced[by]);
            length = length.max(1 + if inlined { self.length[by] } else { 0 });
        }
        let is_inlined = |tensor| tensor == result || self.fusion.inlined.contains(tensor);
        let has_strides = |&tensor: &Tensor| strided(graph, &is_inlined, tensor).is_some();
        if !contracted.iter().all(has_strides) {
            return Some(Reason::ReadBy(Opcode::Contract));
        }
        if sums_columns(graph, data) {
            return Some(Reason::Columns);
        }
        if reduced && terms(graph, data) >= MANY_TERMS {
            return Some(Reason::Nested);
        }
        let most = match cost(graph, data) {
            Cost::Nothing => usize::MAX,
            Cost::Load => self.repeats.cheap,
            Cost::More => self.repeats.slow,
        };
        if times.sum() > most {
            return Some(Reason::ComputedAgain(times.sum()));
        }
        if length > LONGEST {
            return Some(Reason::TooLong);
        }
        if part && data.opcode == Opcode::Concat {
            return Some(Reason::Parts);
        }
        if self.kept.contains(result) {
            return Some(Reason::Traffic);
        }
        self.times[result] = times;
        self.length[result] = length;
        self.contracted[result] = contracted;
        self.reduced[result] = reduced;
        self.part[result] = part;
        None
    }

    /// Whether a contraction is used by nothing but a sum that has a buffer, maybe through other sums.
    fn is_term_of_sum(&self, data: &OpData, result: Tensor) -> bool {
        let graph = self.graph;
        if !matches!(graph.ty(result).element, Scalar::F32 | Scalar::F64) {
            return false;
        }
        let mut tensor = result;
        loop {
            let uses = &self.uses[tensor];
            let &[(user, home)] = &uses.ops[..] else {
                return false;
            };
            let user = &graph.ops[user];
            if uses.yielded || home != data.region || !is_sum(user) {
                return false;
            }
            tensor = user.results[0];
            if !self.fusion.inlined.contains(tensor) {
                return true;
            }
        }
    }
}

/// How often an element is computed: for each kernel that does, by its result, and each set of coordinates there, which all elementwise operations have in common that lead to the same tensor. What several of them use is computed once.
#[derive(Clone, Default)]
struct Times(FxHashMap<(Tensor, Tensor), usize>);

impl Times {
    /// Adds what an operation uses; if its result is inlined, as often as that is computed.
    fn add_user(&mut self, graph: &Graph, user: &OpData, inlined: Option<&Times>) {
        let by = user.results[0];
        let Some(outer) = inlined else {
            self.at_least((by, by), repetitions(graph, user));
            return;
        };
        if matches!(
            user.opcode,
            Opcode::Elementwise | Opcode::Cast | Opcode::Detach
        ) {
            for (&place, &times) in &outer.0 {
                self.at_least(place, times);
            }
            return;
        }
        let mut kernels: FxHashMap<Tensor, usize> = FxHashMap::default();
        for (&(kernel, _), &times) in &outer.0 {
            *kernels.entry(kernel).or_default() += times;
        }
        for (kernel, times) in kernels {
            self.at_least((kernel, by), times * repetitions(graph, user));
        }
    }

    fn at_least(&mut self, place: (Tensor, Tensor), times: usize) {
        let known = self.0.entry(place).or_default();
        *known = (*known).max(times);
    }

    fn sum(&self) -> usize {
        self.0.values().sum()
    }
}

/// How often an operation uses each element of an operand, at most.
fn repetitions(graph: &Graph, user: &OpData) -> usize {
    match &user.payload {
        Payload::Broadcast(axes) => axes.iter().map(|&(_, size)| size).product(),
        Payload::Axis(_) if user.opcode != Opcode::Concat => {
            graph.ty(user.operands[1]).shape.count()
        }
        _ => 1,
    }
}

/// How many elements of its operand an element of an operation adds up.
fn terms(graph: &Graph, data: &OpData) -> usize {
    match data.opcode {
        Opcode::Reduce => {
            let count = |tensor: Tensor| graph.ty(tensor).shape.count();
            count(data.operands[0]) / count(data.results[0]).max(1)
        }
        _ => 1,
    }
}

/// Whether elements are numbers that need no memory: a constant that is the same everywhere, or the coordinate.
fn is_number(data: &OpData) -> bool {
    let is_splat = matches!(data.payload, Payload::Constant(Literal::Splat(_), _));
    is_splat || data.opcode == Opcode::Iota
}

/// Whether elements follow from the coordinates alone, by a few steps of whole numbers, as masks do.
fn is_made_of_numbers(graph: &Graph, data: &OpData) -> bool {
    const STEPS: usize = 4;
    fn within(graph: &Graph, data: &OpData, steps: usize) -> bool {
        let is_whole = |&tensor: &Tensor| !graph.ty(tensor).is_float();
        let operands = || {
            data.operands
                .iter()
                .filter_map(|&operand| graph.def_op(operand))
        };
        is_number(data)
            || (steps > 0
                && data.opcode == Opcode::Elementwise
                && data.operands.iter().all(is_whole)
                && operands().count() == data.operands.len()
                && operands().all(|op| within(graph, &graph.ops[op], steps - 1)))
    }
    within(graph, data, STEPS)
}

/// What an element costs, beside its operands.
enum Cost {
    /// Nothing, or another address.
    Nothing,
    /// About a load.
    Load,
    /// More.
    More,
}

fn cost(graph: &Graph, data: &OpData) -> Cost {
    if is_made_of_numbers(graph, data) {
        return Cost::Nothing;
    }
    match (data.opcode, &data.payload) {
        (Opcode::Broadcast | Opcode::Slice, _) => Cost::Nothing,
        (Opcode::Constant | Opcode::Permute | Opcode::Cast | Opcode::Detach, _) => Cost::Load,
        (Opcode::Elementwise, Payload::Function(function)) => {
            match function.opcode().math().map(|row| row.cost) {
                Some(MathCost::Slow | MathCost::Call) => Cost::More,
                _ => Cost::Load,
            }
        }
        (Opcode::Reshape, _) => {
            // Without axes that are merged or split, no coordinate is divided.
            let (from, to) = (data.operands[0], data.results[0]);
            let sizes = |tensor: Tensor| -> Vec<usize> {
                let shape = graph.ty(tensor).shape.iter();
                shape.copied().filter(|&size| size > 1).collect()
            };
            match sizes(from) == sizes(to) {
                true => Cost::Load,
                false => Cost::More,
            }
        }
        _ => Cost::More,
    }
}

/// The kernels with the operations that each computes, and why tensors that could be inlined are not.
pub fn print_fusion(graph: &Graph, fusion: &Fusion, report: &FusionReport) -> String {
    const INFALLIBLE: &str = "writing to a string does not fail";
    let names = Names::of(graph);
    let mut out = String::new();
    let mut joined_with: SecondaryMap<Tensor, Option<Tensor>> = SecondaryMap::new();
    graph.for_each_op(graph.body(), &mut |_, op| {
        let members = fusion.members(graph, &op);
        if members.len() > 1 {
            for &member in members {
                let last = graph.ops[op].results[0];
                joined_with[graph.ops[member].results[0]] = Some(last);
            }
        }
    });
    for &(tensor, reason) in &report.kept {
        let op = graph.def_op(tensor).expect("only results are reported");
        let mut parts = Vec::new();
        collect(graph, fusion, op, &mut parts);
        let parts: Vec<String> = parts.into_iter().map(|op| describe(graph, op)).collect();
        let name = names.get(tensor);
        let joined = joined_with[tensor].filter(|&last| last != tensor);
        let joined = joined.map(|last| format!(" (in the kernel of {})", names.get(last)));
        let joined = joined.unwrap_or_default();
        writeln!(out, "kernel {name}{joined}: {}; {reason}", parts.join(", ")).expect(INFALLIBLE);
    }
    out
}

/// An operation and those that are inlined into it, each once.
fn collect(graph: &Graph, fusion: &Fusion, op: Op, joined: &mut Vec<Op>) {
    if joined.contains(&op) {
        return;
    }
    joined.push(op);
    for &operand in &graph.ops[op].operands {
        if fusion.inlined.contains(operand)
            && let Some(inner) = graph.def_op(operand)
        {
            collect(graph, fusion, inner, joined);
        }
    }
}
