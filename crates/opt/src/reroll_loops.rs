//! Rolls loops up again that add several terms of the same kind in each iteration.
//!
//! ```text
//! %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {      %m = mul nsw nuw i64 %n, 2
//!   %p = offset %x, %i * 16                                      %s = for %i: i64 = 0 to %m step 1 with (%a: f64 = 0.0) {
//!   %u = load f64 %p align 8                                       %p = offset %x, %i * 8
//!   %b = fadd f64 %a, %u                              →            %u = load f64 %p align 8
//!   %q = offset %p, 8                                              %b = fadd f64 %a, %u
//!   %v = load f64 %q align 8                                       yield %b
//!   %c = fadd f64 %b, %v                                         }
//!   yield %c
//! }
//! ```
//!
//! Terms are added in the same order as before. It applies to loops that carry nothing but such sums, and do nothing but compute and read: the terms
//! must be the same but for the places that they read, which lie at one distance from each other, over the end of an iteration, too.
//!
//! Who needs it: people who unroll by hand, partial sums that were [merged](crate::merge_partial_sums), and LLVM's full unrolling of inner loops of constant length.
//! rustc's optimiser does that before us in release builds: the loop over `k` of `for p in points { for k in 0..3 { s += p[k] * p[k] } }` is gone when we see it.

use crate::alike::Likeness;
use crate::carried::carried_by;
use crate::indices::Indices;
use crate::pointers::Pointers;
use crate::sums::{Addition, carried_sum, only_computes};
use crate::uses::Uses;
use crate::with_function::with_function;
use ferrozyme_ir::{
    Alignment, Builder, Cursor, Flags, Function, FunctionId, Module, Op, OpView, Opcode, Payload,
    Region, Structure, Type, Value, returning_ops,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Maximum number of offsets of an address.
const MAX_OFFSETS: usize = 8;

/// Rolls loops up again; says how many.
pub fn reroll_loops(module: &mut Module, id: FunctionId) -> usize {
    with_function(module, id, |module, function| {
        if function.body.is_none() {
            return 0;
        }
        let plans = {
            let indices = Indices::of(function);
            let pointers = Pointers::of(module, &indices);
            let finder = Finder {
                function,
                indices: &indices,
                pointers: &pointers,
                uses: Uses::of(function),
            };
            let loops = returning_ops(function);
            let plans: Vec<Plan> = loops.iter().filter_map(|&op| finder.plan(op)).collect();
            plans
        };
        for plan in &plans {
            apply(function, plan);
        }
        plans.len()
    })
}

/// A loop that is to be rolled up.
struct Plan {
    op: Op,
    /// How many terms one iteration adds.
    terms: usize,
    /// The first sum of each chain, which is what the body ends with from now on.
    sums: Vec<Value>,
    /// The reads of the first terms.
    reads: Vec<Read>,
    /// Whether the loop may have a negative bound, and then does not run.
    may_be_negative: bool,
}

/// A read in a first term, and what is known of those in its place in the others.
#[derive(Clone, Copy)]
struct Read {
    load: Op,
    align: Alignment,
}

struct Finder<'a> {
    function: &'a Function,
    indices: &'a Indices<'a>,
    pointers: &'a Pointers,
    uses: Uses,
}

impl Finder<'_> {
    fn plan(&self, op: Op) -> Option<Plan> {
        let data = &self.function.ops[op];
        if data.opcode != Opcode::For || data.results.is_empty() {
            return None;
        }
        let [from, to, step] = data.bounds();
        let plain = self.function.ty(from) == Type::I64
            && self.function.int_of(from) == Some(0)
            && self.function.int_of(step) == Some(1);
        let body = data.regions[0];
        if !plain || !only_computes(self.function, body) {
            return None;
        }
        let mut terms = None;
        let mut sums = Vec::new();
        let mut reads = Vec::new();
        let structure = self.indices.structure();
        for carried in carried_by(self.function, op) {
            let chain = carried_sum(self.function, structure, &self.uses, op, &carried)?;
            if chain.len() < 2 || terms.is_some_and(|terms| terms != chain.len()) {
                return None;
            }
            terms = Some(chain.len());
            sums.push(self.function.result(chain[0].op));
            self.compare_terms(op, &chain, &mut reads)?;
        }
        let counter = self.function.regions[body].args[0];
        let rewritable = |read: &Read| {
            let address = self.function.ops[read.load].address();
            self.can_narrow(body, address, counter, terms?)
                .then_some(())
        };
        let fine = !reads.is_empty() && reads.iter().all(|read| rewritable(read).is_some());
        fine.then_some(Plan {
            op,
            terms: terms?,
            sums,
            reads,
            may_be_negative: self.indices.interval_of_value(to).min < 0,
        })
    }

    /// Whether all additions of a chain add the same as the first but for the places read. Collects the reads of the first.
    fn compare_terms(&self, op: Op, chain: &[Addition], reads: &mut Vec<Read>) -> Option<()> {
        let body = self.function.ops[op].regions[0];
        let mut found: FxHashMap<Op, Read> = FxHashMap::default();
        let first = chain[0].terms(self.function);
        for (position, &addition) in chain.iter().enumerate().skip(1) {
            let mut likeness = Likeness::new(self.function, self.indices.structure(), [body, body]);
            let mut corresponds = |one: Op, other: Op| {
                let step = (position as i64, chain.len() as i64);
                let fits = self.are_neighbours(op, one, other, step).is_some();
                if fits {
                    let read = found.entry(one).or_insert(Read {
                        load: one,
                        align: self.alignment(one),
                    });
                    read.align = read.align.min(self.alignment(other));
                }
                fits
            };
            let other = addition.terms(self.function);
            let (one, another) = (
                &self.function.ops[chain[0].op],
                &self.function.ops[addition.op],
            );
            let alike = one.opcode == another.opcode
                && one.flags == another.flags
                && first
                    .iter()
                    .zip(&other)
                    .all(|(&first, &other)| likeness.holds(first, other, &mut corresponds));
            if !alike {
                return None;
            }
        }
        reads.extend(found.into_values());
        reads.sort_by_key(|read| self.indices.structure().order(read.load));
        Some(())
    }

    fn alignment(&self, load: Op) -> Alignment {
        match self.function.ops[load].payload {
            Payload::Align(align) => align,
            _ => Alignment::ONE,
        }
    }

    /// Whether a read is as far from that of the first term as its position says, and the first of the next iteration follows on the last.
    fn are_neighbours(
        &self,
        op: Op,
        first: Op,
        other: Op,
        (position, terms): (i64, i64),
    ) -> Option<()> {
        let [first, other] = [first, other].map(|load| self.function.ops[load].address());
        let root = self.pointers.root(first);
        if root != self.pointers.root(other) || self.indices.varies_in(root, op) {
            return None;
        }
        let counter = self.function.regions[self.function.ops[op].regions[0]].args[0];
        let start = self.pointers.offset(first);
        let apart = self.pointers.offset(other).sub(&start)?.is_constant()?;
        let stride = apart / position;
        let (by_counter, rest) = start.split(counter);
        let even = apart % position == 0
            && stride != 0
            && by_counter.is_constant() == stride.checked_mul(terms)
            && self.indices.is_invariant(&rest, op);
        even.then_some(())
    }

    /// Whether an address can be written for the longer loop: offsets by the counter from what was there before the loop.
    fn can_narrow(&self, body: Region, address: Value, counter: Value, terms: usize) -> bool {
        let mut address = address;
        let mut counted = false;
        for _ in 0..MAX_OFFSETS {
            let structure = self.indices.structure();
            if structure.region_of_value(self.function, address) != Some(body) {
                return counted;
            }
            let Some(OpView::Offset { base, index, scale }) = self.function.definition(address)
            else {
                return false;
            };
            if index == counter {
                if counted || scale % terms as i64 != 0 {
                    return false;
                }
                counted = true;
            } else if structure.region_of_value(self.function, index) == Some(body) {
                return false;
            }
            address = base;
        }
        false
    }
}

fn apply(function: &mut Function, plan: &Plan) {
    let data = function.ops[plan.op].clone();
    let body = data.regions[0];
    let counter = function.regions[body].args[0];
    let structure = Structure::of(function);
    let Some(region) = structure.region_of(plan.op) else {
        return;
    };

    // The bound.
    let ahead = Cursor::before(function, region, plan.op);
    let mut b = Builder::at(function, ahead);
    b.location = data.location;
    let mut to = data.to();
    if plan.may_be_negative {
        let zero = b.i64(0);
        to = b.binary(Opcode::Smax, to, zero);
    }
    let terms = b.i64(plan.terms as i64);
    let bound = b.op(Opcode::Mul, &[to, terms], Payload::None, &[Type::I64]);
    function.ops[bound].flags = Flags::NSW.union(Flags::NUW);
    *function.ops[plan.op].to_mut() = function.result(bound);

    // The addresses of the first terms' reads, each for itself: others may share parts of them.
    for read in &plan.reads {
        let address = function.ops[read.load].address();
        let narrow = narrowed(
            function, &structure, body, address, counter, plan.terms, read.load,
        );
        let load = &mut function.ops[read.load];
        *load.address_mut() = narrow;
        load.payload = Payload::Align(read.align);
    }
    let end = function.terminator(body);
    function.ops[end].operands = plan.sums.iter().copied().collect();
    // The counter goes further now.
    function.values[counter].range = None;
}

/// The same address where the counter goes through all terms; its operations stand right before the read.
fn narrowed(
    function: &mut Function,
    structure: &Structure,
    body: Region,
    address: Value,
    counter: Value,
    terms: usize,
    before: Op,
) -> Value {
    if structure.region_of_value(function, address) != Some(body) {
        return address;
    }
    let (op, _) = function
        .def_op(address)
        .expect("addresses in the body are offsets");
    let mut data = function.ops[op].clone();
    let base = data.base();
    *data.base_mut() = narrowed(function, structure, body, base, counter, terms, before);
    let counted = data.index() == counter;
    if let Payload::Scale(scale) = &mut data.payload
        && counted
    {
        *scale /= terms as i64;
    }
    data.results = SmallVec::new();
    let copy = function.new_op(data, &[Type::PTR]);
    Cursor::before(function, body, before).insert(function, copy);
    function.result(copy)
}

#[cfg(test)]
mod tests {
    use super::reroll_loops;
    use crate::testing::{check, check_same_results, check_unchanged};
    use crate::{Pass, remove_dead_code};
    use expect_test::expect;
    use ferrozyme_ir::interpret::Datum;

    const REROLL: Pass = |module, id| reroll_loops(module, id) + remove_dead_code(module, id);

    #[test]
    fn a_product_of_two_rows() {
        check(
            REROLL,
            "func @dot(%x: ptr, %w: ptr, %n: i64) -> (f32) {
               %m = lshr i64 %n, 1
               %s = for %i: i64 = 0 to %m step 1 with (%a: f32 = 0.0) {
                 %p = offset nuw inbounds %x, %i * 8
                 %q = offset nuw inbounds %w, %i * 8
                 %u = load f32 %p align 8
                 %v = load f32 %q align 4
                 %t = fmul f32 %u, %v
                 %b = fadd f32 %a, %t
                 %p1 = offset nuw inbounds %p, 4
                 %q1 = offset nuw inbounds %q, 4
                 %u1 = load f32 %p1 align 4
                 %v1 = load f32 %q1 align 4
                 %t1 = fmul f32 %u1, %v1
                 %c = fadd f32 %b, %t1
                 yield %c
               }
               return %s
             }",
            expect![[r#"
                func @dot(%x: ptr, %w: ptr, %n: i64) -> (f32) {
                  %m = lshr i64 %n, 1
                  %0 = mul nsw nuw i64 %m, 2
                  %s = for %i: i64 = 0 to %0 step 1 with (%a: f32 = 0.0) {
                    %1 = offset nuw inbounds %x, %i * 4
                    %u = load f32 %1 align 4
                    %2 = offset nuw inbounds %w, %i * 4
                    %v = load f32 %2 align 4
                    %t = fmul f32 %u, %v
                    %b = fadd f32 %a, %t
                    yield %b
                  }
                  return %s
                }
            "#]],
        );
    }

    #[test]
    fn results_stay_the_same() {
        let text = "func @main(%n: i64) -> (f64, f64) {
               %p = alloc 160 align 8
               for %k: i64 = 0 to 20 step 1 {
                 %q = offset %p, %k * 8
                 %f = sitofp i64 %k to f64
                 store f64 %f, %q align 8
                 yield
               }
               %from = offset %p, 8
               %s, %t = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.5, %d: f64 = 0.0) {
                 %x = offset %from, %i * 24
                 %u = load f64 %x align 8
                 %h = fmul f64 %u, 0.1
                 %b = fadd f64 %h, %a
                 %e = fma f64 %u, %h, %d
                 %x1 = offset %x, 8
                 %u1 = load f64 %x1 align 8
                 %h1 = fmul f64 %u1, 0.1
                 %b1 = fadd f64 %b, %h1
                 %e1 = fma f64 %u1, %h1, %e
                 %x2 = offset %x, 16
                 %u2 = load f64 %x2 align 8
                 %h2 = fmul f64 %u2, 0.1
                 %b2 = fadd f64 %b1, %h2
                 %e2 = fma f64 %u2, %h2, %e1
                 yield %b2, %e2
               }
               free %p
               return %s, %t
             }";
        let inputs: Vec<[Datum; 1]> = [-1, 0, 1, 5].map(|n| [Datum::i64(n)]).to_vec();
        let inputs: Vec<&[Datum]> = inputs.iter().map(|input| &input[..]).collect();
        check_same_results(REROLL, text, &inputs);
        let mut module = ferrozyme_ir::parse_module(text).unwrap();
        let main = module.function_named("main").unwrap();
        assert_eq!(reroll_loops(&mut module, main), 1);
    }

    #[test]
    fn terms_at_uneven_distances_stay() {
        for (stride, distance) in [(8, 8), (24, 8), (16, 4)] {
            check_unchanged(
                reroll_loops,
                &format!(
                    "func @f(%x: ptr, %n: i64) -> (f64) {{
                       %s = for %i: i64 = 0 to %n step 1 with (%a: f64 = 0.0) {{
                         %p = offset %x, %i * {stride}
                         %u = load f64 %p align 4
                         %b = fadd f64 %a, %u
                         %q = offset %p, {distance}
                         %v = load f64 %q align 4
                         %c = fadd f64 %b, %v
                         yield %c
                       }}
                       return %s
                     }}"
                ),
            );
        }
    }
}
