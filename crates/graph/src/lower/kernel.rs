//! A kernel while it is being built.

use super::access::{Coordinate, accesses};
use super::arithmetic::{self, sums_columns};
use super::strided::{Strided, strided};
use super::sum::{Sum, split_sum};
use super::{Fusion, view};
use crate::graph::{Graph, Op, OpData, Tensor};
use crate::opcode::Opcode;
use crate::types::{CONDITION, Shape, TensorType};
use ferrozyme_ir::{
    Alignment, Builder, Function, FunctionId, Global, GlobalId, IntPredicate, Module,
    Opcode as Loop, Param, Region, Scalar, Type, Value,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The coordinates of an element, as `i64`.
pub(crate) type Index = SmallVec<[Value; 4]>;

/// Emits the value of the element at an index.
pub type ElementRule = fn(&mut Kernel<'_>, &OpData, &[Value]) -> Value;

/// Emits all of a tensor, into the buffer at an address.
pub type WholeRule = fn(&mut Kernel<'_>, &OpData, Value);

/// Builds the body of a nest of loops, given the coordinates and the carried values; returns their next values.
type NestBody<'b> = dyn FnMut(&mut Kernel<'_>, &[Value], &[Value]) -> Index + 'b;

/// A kernel while it is being built.
pub struct Kernel<'k> {
    /// The graph.
    pub graph: &'k Graph,
    /// Where operations are added.
    pub b: Builder<'k>,
    fusion: &'k Fusion,
    /// The module's globals, for constants.
    module: &'k mut Module,
    /// The addresses of tensors that have a buffer and are there already.
    inputs: FxHashMap<Tensor, Value>,
    /// Elements that have been emitted, in each of the regions that are being built.
    emitted: Vec<FxHashMap<(Tensor, Index), Value>>,
}

/// How a kernel goes through the elements of its result.
enum Strategy {
    /// It has a rule for all of them.
    Whole(WholeRule),
    /// It adds contractions to the other terms of a sum.
    Sum(Sum),
    /// It reduces row by row, into the result.
    Columns,
    /// It copies one part after the other.
    Parts,
    /// It computes each by itself.
    Elements,
}

fn strategy(graph: &Graph, fusion: &Fusion, op: Op) -> Strategy {
    let data = &graph.ops[op];
    if let Some(rule) = data.opcode.row().whole {
        return Strategy::Whole(rule);
    }
    if let Some(sum) = split_sum(graph, fusion, op) {
        return Strategy::Sum(sum);
    }
    match data.opcode {
        Opcode::Reduce if sums_columns(graph, data) => Strategy::Columns,
        Opcode::Concat => Strategy::Parts,
        _ => Strategy::Elements,
    }
}

/// Whether a kernel has read all that it reads for an element before it writes to it.
pub(super) fn reads_before_writing(graph: &Graph, fusion: &Fusion, op: Op) -> bool {
    !matches!(
        strategy(graph, fusion, op),
        Strategy::Columns | Strategy::Parts
    )
}

/// Whether a kernel computes each element by itself, so that it can be joined with others.
pub(crate) fn is_elementary(graph: &Graph, fusion: &Fusion, op: Op) -> bool {
    matches!(strategy(graph, fusion, op), Strategy::Elements)
}

/// Where a kernel reads and writes.
pub(super) struct Interface<'i> {
    /// The operations that it computes.
    pub(super) members: &'i [Op],
    /// The tensors that it reads.
    pub(super) inputs: &'i [Tensor],
    /// For each of these, the result that is in the same place, if one is.
    pub(super) shared: &'i [Option<usize>],
}

/// Defines the kernel that computes the results of operations that are joined. Its arguments are the addresses of the results and of its inputs that are elsewhere.
pub(super) fn define_kernel(
    graph: &Graph,
    fusion: &Fusion,
    module: &mut Module,
    interface: &Interface<'_>,
) -> FunctionId {
    let Interface {
        members,
        inputs,
        shared,
    } = *interface;
    let last = members[members.len() - 1];
    let data = &graph.ops[last];
    let own = shared.iter().filter(|shared| shared.is_none()).count();
    let mut params: Vec<Param> = vec![Type::PTR.into(); members.len() + own];
    for (position, param) in params.iter_mut().enumerate() {
        param.facts.noalias = true;
        param.facts.nocapture = true;
        param.facts.readonly = position >= members.len();
    }
    let name = format!(
        "{}_{}",
        data.label().replace(' ', "_"),
        module.functions.len()
    );
    let mut function = Function::define(name, params, Vec::new());
    let arguments = function.arguments().to_vec();
    let (results, mut elsewhere) = (&arguments[..members.len()], &arguments[members.len()..]);
    let mut addresses = FxHashMap::default();
    for (&input, shared) in inputs.iter().zip(shared) {
        let address = match shared {
            Some(result) => results[*result],
            None => {
                let (&first, rest) = elsewhere.split_first().expect("there are as many");
                elsewhere = rest;
                first
            }
        };
        addresses.insert(input, address);
    }
    let mut kernel = Kernel {
        graph,
        b: Builder::at_body(&mut function),
        fusion,
        module,
        inputs: addresses,
        emitted: vec![FxHashMap::default()],
    };
    match fusion.joint(last) {
        Some(joint) if members.len() > 1 => kernel.joint(members, joint.outer, results),
        _ => kernel.single(last, results[0]),
    }
    kernel.b.ret(&[]);
    module.functions.push(function)
}

/// What a kernel computes, as text: operations with the same text have the same kernel, with the inputs in the same order.
pub(super) fn kernel_key(graph: &Graph, fusion: &Fusion, interface: &Interface<'_>) -> String {
    let mut key = format!("{:?}", interface.shared);
    let mut seen = Vec::new();
    for &member in interface.members {
        write_key(graph, fusion, member, &mut seen, &mut key);
        seen.push(graph.ops[member].results[0]);
    }
    if let Some(&last) = interface.members.last()
        && let Some(joint) = fusion.joint(last)
    {
        key += &joint.outer.to_string();
    }
    key
}

fn write_key(graph: &Graph, fusion: &Fusion, op: Op, seen: &mut Vec<Tensor>, key: &mut String) {
    use std::fmt::Write;
    const INFALLIBLE: &str = "writing to a string does not fail";
    let data = &graph.ops[op];
    let ty = graph.ty(data.results[0]);
    write!(key, "{} {:?} {ty} (", data.opcode, data.payload).expect(INFALLIBLE);
    for &operand in &data.operands {
        if let Some(position) = seen.iter().position(|&other| other == operand) {
            write!(key, "#{position} ").expect(INFALLIBLE);
            continue;
        }
        seen.push(operand);
        match graph.def_op(operand) {
            Some(inner) if fusion.inlined.contains(operand) => {
                write_key(graph, fusion, inner, seen, key);
            }
            _ => write!(key, "{} ", graph.ty(operand)).expect(INFALLIBLE),
        }
    }
    key.push(')');
}

/// The type of an element as a value.
pub(super) fn value_type(element: Scalar) -> Type {
    Type::scalar_of(element)
}

/// The type of an element in memory.
pub(crate) fn memory_type(element: Scalar) -> Type {
    match element {
        CONDITION => Type::I8,
        _ => Type::scalar_of(element),
    }
}

impl Kernel<'_> {
    /// The result of one operation, into a buffer.
    fn single(&mut self, op: Op, to: Value) {
        let data = &self.graph.ops[op];
        let result = data.results[0];
        let ty = self.graph.ty(result).clone();
        match strategy(self.graph, self.fusion, op) {
            Strategy::Whole(rule) => rule(self, data, to),
            Strategy::Sum(sum) => arithmetic::sum(self, &sum, &ty, to),
            Strategy::Columns => arithmetic::reduce_columns(self, data, to),
            Strategy::Parts => view::concat_all(self, data, to),
            Strategy::Elements => self.for_each(&ty.shape, &mut |kernel, index| {
                let value = kernel.compute(result, index);
                kernel.store(value, to, &ty, index);
            }),
        }
    }

    /// The results of joined operations: for each index of the outer loops, elements that have no other coordinates as values, the others in loops of their own.
    fn joint(&mut self, members: &[Op], outer: usize, to: &[Value]) {
        let graph = self.graph;
        let results: Vec<(Tensor, Value)> = members
            .iter()
            .map(|&op| graph.ops[op].results[0])
            .zip(to.iter().copied())
            .collect();
        let shape: Shape = graph.ty(results[0].0).shape[..outer]
            .iter()
            .copied()
            .collect();
        let stages = self.stages(&results, outer);
        self.for_each(&shape, &mut |kernel, row| {
            let mut values = Vec::new();
            for stage in &stages {
                let ty = graph.ty(stage[0].0).clone();
                if ty.shape.len() == outer {
                    for &(tensor, to) in *stage {
                        values.push((kernel.compute(tensor, row), tensor, to));
                    }
                    continue;
                }
                let inner: Shape = ty.shape[outer..].iter().copied().collect();
                kernel.for_each(&inner, &mut |kernel, inner| {
                    let index: Index = row.iter().chain(inner).copied().collect();
                    let computed = stage
                        .iter()
                        .map(|&(tensor, _)| kernel.compute(tensor, &index));
                    let computed: Vec<Value> = computed.collect();
                    for (&(tensor, to), value) in stage.iter().zip(computed) {
                        kernel.store(value, to, graph.ty(tensor), &index);
                    }
                });
                // What follows in this row reads them from memory.
                kernel.inputs.extend(stage.iter().copied());
            }
            // Everything is read before anything is overwritten.
            for (value, tensor, to) in values {
                kernel.store(value, to, graph.ty(tensor), row);
            }
        });
    }

    /// Neighbours of one shape that share a loop: those that do not read each other at other places than their own.
    fn stages<'s>(
        &self,
        results: &'s [(Tensor, Value)],
        outer: usize,
    ) -> Vec<&'s [(Tensor, Value)]> {
        let graph = self.graph;
        let mut stages: Vec<&[(Tensor, Value)]> = Vec::new();
        let mut first = 0;
        for (position, &(tensor, _)) in results.iter().enumerate() {
            let shape = &graph.ty(tensor).shape;
            let own = Coordinate::of(shape);
            let stage = &results[first..position];
            let fits = stage
                .iter()
                .all(|&(other, _)| graph.ty(other).shape == *shape)
                && (shape.len() == outer
                    || accesses(
                        graph,
                        self.fusion,
                        graph.def_op(tensor).expect("it is a result"),
                    )
                    .into_iter()
                    .filter(|(read, _)| stage.iter().any(|(other, _)| other == read))
                    .all(|(_, at)| at.as_ref() == Some(&own)));
            if !fits {
                stages.push(stage);
                first = position;
            }
        }
        stages.push(&results[first..]);
        stages
    }

    /// The element of a tensor at an index: loaded, or computed where it is inlined.
    pub fn element(&mut self, tensor: Tensor, index: &[Value]) -> Value {
        // The same element has the same index, as `access.rs` assumes.
        let zero = self.b.i64(0);
        let sizes = self.graph.ty(tensor).shape.iter();
        let only = |(&at, &size): (&Value, &usize)| if size == 1 { zero } else { at };
        let index: &[Value] = &index.iter().zip(sizes).map(only).collect::<Index>();
        match self.inputs.get(&tensor) {
            Some(&address) => {
                let ty = self.graph.ty(tensor).clone();
                self.load(address, &ty, index)
            }
            None => self.compute(tensor, index),
        }
    }

    /// The element of a tensor at an index, computed from elements of operands, once in each region.
    fn compute(&mut self, tensor: Tensor, index: &[Value]) -> Value {
        let key = (tensor, Index::from_slice(index));
        let known = self.emitted.iter().rev().find_map(|scope| scope.get(&key));
        if let Some(&value) = known {
            return value;
        }
        let graph = self.graph;
        let op = graph.def_op(tensor).expect("only results are inlined");
        let data = &graph.ops[op];
        let rule = data.opcode.row().element;
        let rule = rule.expect("what has no rule for elements has a buffer");
        let value = rule(self, data, index);
        let scope = self.emitted.last_mut().expect("the body is open");
        scope.insert(key, value);
        value
    }

    /// The address of an input.
    pub fn input(&self, tensor: Tensor) -> Value {
        self.inputs[&tensor]
    }

    /// Whether a tensor is where a result is to be.
    pub(crate) fn is_at(&self, tensor: Tensor, to: Value) -> bool {
        self.inputs.get(&tensor) == Some(&to)
    }

    /// The view of an input that a tensor is, which has strides if a contraction reads it.
    pub(crate) fn strided(&self, tensor: Tensor) -> Strided {
        let is_inlined = |tensor| self.fusion.inlined.contains(tensor);
        let view = strided(self.graph, &is_inlined, tensor);
        view.expect("other views have a buffer")
    }

    // ---- memory

    /// Where an element is, counted in elements.
    pub fn position(&mut self, shape: &Shape, index: &[Value]) -> Value {
        let strides = shape.strides();
        let mut sum = self.b.i64(0);
        for (&at, &stride) in index.iter().zip(&strides) {
            let step = self.times(at, stride);
            sum = self.plus(sum, step);
        }
        sum
    }

    fn address(&mut self, base: Value, ty: &TensorType, index: &[Value]) -> Value {
        let position = self.position(&ty.shape, index);
        let bytes = memory_type(ty.element).bytes() as i64;
        self.b.offset(base, position, bytes)
    }

    /// Loads an element.
    pub fn load(&mut self, base: Value, ty: &TensorType, index: &[Value]) -> Value {
        let address = self.address(base, ty, index);
        let memory = memory_type(ty.element);
        let value = self.b.load(memory, address, Alignment::natural(memory));
        match ty.element {
            CONDITION => {
                let zero = self.b.zero(memory);
                self.b.icmp(IntPredicate::Ne, value, zero)
            }
            _ => value,
        }
    }

    /// Stores an element.
    pub fn store(&mut self, value: Value, base: Value, ty: &TensorType, index: &[Value]) {
        let memory = memory_type(ty.element);
        let value = match ty.element {
            CONDITION => self.b.cast(Loop::Zext, value, memory),
            _ => value,
        };
        let address = self.address(base, ty, index);
        self.b.store(value, address, Alignment::natural(memory));
    }

    /// Adds constant memory to the module.
    pub fn global(&mut self, bytes: Vec<u8>) -> GlobalId {
        let name = self.module.fresh_name("constant");
        self.module.globals.push(Global {
            name,
            size: bytes.len() as u64,
            align: Alignment::new(16).expect("a power of two"),
            constant: true,
            bytes: Some(bytes),
            relocations: Vec::new(),
            inactive: true,
            shared: false,
            thread_local: false,
            parts: Vec::new(),
            layout: None,
        })
    }

    // ---- integers, with constants folded

    /// `a + b`.
    pub fn plus(&mut self, a: Value, b: Value) -> Value {
        match (self.b.function.int_of(a), self.b.function.int_of(b)) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            (Some(a), Some(b)) => self.b.i64((a + b) as i64),
            _ => self.b.binary(Loop::Add, a, b),
        }
    }

    /// `a · factor`.
    pub fn times(&mut self, a: Value, factor: usize) -> Value {
        match (self.b.function.int_of(a), factor) {
            (_, 1) => a,
            (Some(a), _) => self.b.i64(a as i64 * factor as i64),
            _ => {
                let factor = self.b.i64(factor as i64);
                self.b.binary(Loop::Mul, a, factor)
            }
        }
    }

    /// Quotient or remainder of a number that is not negative.
    pub fn divided(&mut self, opcode: Loop, a: Value, by: usize) -> Value {
        match (by, opcode) {
            (1, Loop::Udiv) => a,
            (1, _) => self.b.i64(0),
            _ => {
                let by = self.b.i64(by as i64);
                self.b.binary(opcode, a, by)
            }
        }
    }

    // ---- control

    /// Loops over all indices of a shape.
    pub fn for_each(&mut self, shape: &Shape, body: &mut dyn FnMut(&mut Kernel<'_>, &[Value])) {
        self.nest(shape, &[], &mut |kernel, index, _| {
            body(kernel, index);
            Index::new()
        });
    }

    /// Loops over all indices of a shape, with carried values. Returns their last values.
    pub(crate) fn nest(
        &mut self,
        shape: &Shape,
        initial: &[Value],
        body: &mut NestBody<'_>,
    ) -> Index {
        self.nest_from(shape, &mut Index::new(), initial, body)
    }

    fn nest_from(
        &mut self,
        shape: &Shape,
        index: &mut Index,
        initial: &[Value],
        body: &mut NestBody<'_>,
    ) -> Index {
        let Some(&size) = shape.get(index.len()) else {
            return body(self, &index.clone(), initial);
        };
        if size == 1 {
            let zero = self.b.i64(0);
            index.push(zero);
            let results = self.nest_from(shape, index, initial, body);
            index.pop();
            return results;
        }
        let (zero, end, one) = (self.b.i64(0), self.b.i64(size as i64), self.b.i64(1));
        let (op, region) = self.b.for_loop(zero, end, one, initial);
        let arguments = self.b.function.regions[region].args.clone();
        index.push(arguments[0]);
        self.inside(region, |kernel| {
            let results = kernel.nest_from(shape, index, &arguments[1..], body);
            kernel.b.yields(&results);
        });
        index.pop();
        self.b.function.ops[op].results.iter().copied().collect()
    }

    /// One of two values, of which only the one that is needed is computed.
    pub fn either(
        &mut self,
        condition: Value,
        ty: Type,
        then: impl FnOnce(&mut Self) -> Value,
        otherwise: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let (op, then_region, else_region) = self.b.if_else(condition, &[ty]);
        self.inside(then_region, |kernel| {
            let value = then(kernel);
            kernel.b.yields(&[value]);
        });
        self.inside(else_region, |kernel| {
            let value = otherwise(kernel);
            kernel.b.yields(&[value]);
        });
        self.b.function.result(op)
    }

    /// Stops the program where a condition holds.
    pub fn stop_if(&mut self, condition: Value, message: &str) {
        let (_, then_region, else_region) = self.b.if_else(condition, &[]);
        self.inside(then_region, |kernel| {
            kernel.b.trap(message);
        });
        self.inside(else_region, |kernel| {
            kernel.b.yields(&[]);
        });
    }

    fn inside(&mut self, region: Region, build: impl FnOnce(&mut Self)) {
        let outer = self.b.go_to_end(region);
        self.emitted.push(FxHashMap::default());
        build(self);
        self.emitted.pop();
        self.b.cursor = outer;
    }
}
