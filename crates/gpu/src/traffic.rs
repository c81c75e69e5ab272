//! What a kernel moves and computes: bytes and floating-point operations, from its loops' trip counts.
//!
//! An address is counted as often as the loops that it depends on take it elsewhere: what an iteration reads again is in a cache. A branch is counted as if it ran, and a loop whose trip count is not constant as if it ran once.

use crate::parallel::{constant_count, is_pure};
use crate::tiles::constant_contraction;
use ferrozyme_ir::{Function, Op, OpView, Opcode, Region, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// What one run of a kernel moves and computes.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Traffic {
    /// The bytes that it reads and writes, each once.
    pub bytes: f64,
    /// Additions, subtractions, multiplications, divisions and mathematical functions, one each; two for a multiplication with an addition.
    pub operations: f64,
}

/// Counts what operations of a kernel's body do.
pub(crate) fn count_traffic(function: &Function, ops: &[Op]) -> Traffic {
    let mut counter = Counter {
        function,
        counts: Vec::new(),
        loop_of: FxHashMap::default(),
        depends: FxHashMap::default(),
        seen: FxHashSet::default(),
        traffic: Traffic::default(),
    };
    counter.visit(ops);
    counter.traffic
}

/// A set of loops around an operation, by their depth.
type Loops = u64;

struct Counter<'f> {
    function: &'f Function,
    /// The trip counts of the loops around the operation in hand, outermost first.
    counts: Vec<f64>,
    /// For counters and carried values, the loop in whose body they are.
    loop_of: FxHashMap<Value, Loops>,
    /// For values that were asked for, the loops that they depend on.
    depends: FxHashMap<Value, Loops>,
    /// Addresses that are counted, and whether they are written.
    seen: FxHashSet<(Value, bool)>,
    traffic: Traffic,
}

impl Counter<'_> {
    fn visit(&mut self, ops: &[Op]) {
        for &op in ops {
            self.count(op);
            for &region in &self.function.ops[op].regions {
                self.enter(op, region);
            }
        }
    }

    fn enter(&mut self, op: Op, region: Region) {
        let function = self.function;
        let data = &function.regions[region];
        let is_loop = matches!(function.ops[op].opcode, Opcode::For | Opcode::Loop);
        if is_loop {
            let bit = 1 << self.counts.len().min(63);
            self.loop_of
                .extend(data.args.iter().map(|&argument| (argument, bit)));
            let count = constant_count(function, op).unwrap_or(1);
            self.counts.push(count as f64);
        }
        self.visit(&data.ops);
        if is_loop {
            self.counts.pop();
        }
    }

    fn count(&mut self, op: Op) {
        let function = self.function;
        let times: f64 = self.counts.iter().product();
        match function.view(op) {
            OpView::Load { address, .. } => {
                let bytes = function.ty(function.result(op)).bytes() as f64;
                self.access(address, false, bytes);
            }
            OpView::Store { value, address, .. } => {
                self.access(address, true, function.ty(value).bytes() as f64);
            }
            OpView::AtomicAdd { value, address, .. } => {
                let bytes = function.ty(value).bytes() as f64;
                self.access(address, false, bytes);
                self.access(address, true, bytes);
                self.traffic.operations += times;
            }
            OpView::Fill { size, .. } => self.traffic.bytes += times * self.number(size),
            OpView::Copy { size, .. } | OpView::Move { size, .. } => {
                self.traffic.bytes += 2.0 * times * self.number(size);
            }
            OpView::Contract { .. } => self.contraction(op, times),
            _ if is_pure(function, op) => {
                let opcode = function.ops[op].opcode;
                self.traffic.operations += times
                    * match opcode {
                        Opcode::Fadd | Opcode::Fsub | Opcode::Fmul | Opcode::Fdiv => 1.0,
                        Opcode::Fma => 2.0,
                        _ if opcode.math().is_some() => 1.0,
                        _ => 0.0,
                    };
            }
            _ => {}
        }
    }

    fn access(&mut self, address: Value, written: bool, bytes: f64) {
        if self.seen.insert((address, written)) {
            let loops = self.dependences(address);
            let counts = self.counts.iter().enumerate();
            let distinct = counts.filter(|&(depth, _)| loops & (1 << depth.min(63)) != 0);
            let times: f64 = distinct.map(|(_, &count)| count).product();
            self.traffic.bytes += times * bytes;
        }
    }

    /// The loops that a value depends on.
    fn dependences(&mut self, value: Value) -> Loops {
        if let Some(&loops) = self.loop_of.get(&value).or(self.depends.get(&value)) {
            return loops;
        }
        let mut loops = 0;
        if let Some((op, _)) = self.function.def_op(value) {
            for &operand in &self.function.ops[op].operands {
                loops |= self.dependences(operand);
            }
        }
        self.depends.insert(value, loops);
        loops
    }

    fn number(&self, value: Value) -> f64 {
        self.function.int_of(value).unwrap_or(0) as f64
    }

    fn contraction(&mut self, op: Op, times: f64) {
        let Some(contraction) = constant_contraction(self.function, op) else {
            return;
        };
        let size = contraction_bytes(self.function, op);
        let mut points = times;
        let mut elements = [times; 3];
        for index in &contraction.indices {
            let count = self.number(index.count);
            points *= count;
            for (elements, stride) in elements.iter_mut().zip(index.strides) {
                if stride.is_some_and(|stride| self.number(stride) != 0.0) {
                    *elements *= count;
                }
            }
        }
        let [destination, left, right] = elements;
        let destination = if contraction.add { 2.0 } else { 1.0 } * destination;
        self.traffic.bytes += size * (destination + left + right);
        self.traffic.operations += 2.0 * points;
    }
}

/// The size of an element of a contraction.
fn contraction_bytes(function: &Function, op: Op) -> f64 {
    let factor = function.ops[op].contraction().map(|c| c.factor);
    factor.map_or(0.0, |factor| function.ty(factor).bytes() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrozyme_ir::parse_module;

    fn traffic_of(body: &str) -> Traffic {
        let text = format!("func @kernel(%to: ptr noalias, %from: ptr noalias) {{\n{body}\n}}\n");
        let module = parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let function = &module.functions[module.function_named("kernel").expect("it is there")];
        count_traffic(function, &function.regions[function.body()].ops)
    }

    #[test]
    fn what_is_read_again_is_counted_once() {
        // The sum of each of 10 rows of 20 numbers, each times the same 20 factors.
        let traffic = traffic_of(
            "  %factors = offset %from, 800 * 1
  for %i: i64 = 0 to 10 step 1 {
    %row = mul i64 %i, 20
    %sum = for %j: i64 = 0 to 20 step 1 with (%s: f32 = 0.0) {
      %at = add i64 %row, %j
      %p = offset %from, %at * 4
      %x = load f32 %p align 4
      %q = offset %factors, %j * 4
      %y = load f32 %q align 4
      %z = fmul f32 %x, %y
      %t = fadd f32 %s, %z
      yield %t
    }
    %r = offset %to, %i * 4
    store f32 %sum, %r align 4
    yield
  }
  return",
        );
        assert_eq!(traffic.bytes, 4.0 * (200.0 + 20.0 + 10.0));
        assert_eq!(traffic.operations, 400.0);
    }

    #[test]
    fn a_contraction_reads_each_array_once() {
        let traffic = traffic_of(
            "  %b = offset %from, 4096 * 1
  contract add f32 %to, %from, %b, 1.0 over left 8 (64, 128), right 16 (4, 4), sum 32 (4, 64) align 4
  return",
        );
        assert_eq!(traffic.bytes, 4.0 * (2.0 * 128.0 + 256.0 + 512.0));
        assert_eq!(traffic.operations, 2.0 * 8.0 * 16.0 * 32.0);
    }
}
