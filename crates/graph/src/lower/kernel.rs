//! A kernel while it is being built.

use super::Fusion;
use crate::graph::{Graph, Op, OpData, Tensor};
use crate::types::{CONDITION, Shape, TensorType};
use ferrozyme_ir::{
    Alignment, Builder, Function, FunctionId, Global, GlobalId, IntPredicate, Module, Opcode,
    Param, Region, Scalar, Type, Value,
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
    /// The module's globals, for constants.
    module: &'k mut Module,
    /// The addresses of operands that have a buffer.
    inputs: FxHashMap<Tensor, Value>,
    /// Elements that have been emitted, in each of the regions that are being built.
    emitted: Vec<FxHashMap<(Tensor, Index), Value>>,
}

/// Defines the kernel that computes the result of an operation. Its arguments are the addresses of the result and of its inputs.
pub(super) fn define_kernel(
    graph: &Graph,
    module: &mut Module,
    op: Op,
    inputs: &[Tensor],
) -> FunctionId {
    let data = &graph.ops[op];
    let mut params: Vec<Param> = vec![Type::PTR.into(); inputs.len() + 1];
    for (position, param) in params.iter_mut().enumerate() {
        param.facts.noalias = true;
        param.facts.nocapture = true;
        param.facts.readonly = position > 0;
    }
    let name = format!(
        "{}_{}",
        data.label().replace(' ', "_"),
        module.functions.len()
    );
    let mut function = Function::define(name, params, Vec::new());
    let arguments = function.arguments().to_vec();
    let result = data.results[0];
    let mut kernel = Kernel {
        graph,
        b: Builder::at_body(&mut function),
        module,
        inputs: inputs
            .iter()
            .copied()
            .zip(arguments[1..].iter().copied())
            .collect(),
        emitted: vec![FxHashMap::default()],
    };
    match data.opcode.row().whole {
        Some(rule) => rule(&mut kernel, data, arguments[0]),
        None => {
            let ty = graph.ty(result);
            kernel.for_each(&ty.shape, &mut |kernel, index| {
                let value = kernel.compute(result, index);
                kernel.store(value, arguments[0], ty, index);
            });
        }
    }
    kernel.b.ret(&[]);
    module.functions.push(function)
}

/// What a kernel computes, as text: operations with the same text have the same kernel, with the inputs in the same order.
pub(super) fn kernel_key(graph: &Graph, fusion: &Fusion, op: Op) -> String {
    let mut key = String::new();
    write_key(graph, fusion, op, &mut Vec::new(), &mut key);
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

/// The tensors with buffers that an operation reads, itself or through inlined ones, in the order in which they are met.
pub(super) fn find_inputs(graph: &Graph, fusion: &Fusion, op: Op, inputs: &mut Vec<Tensor>) {
    for &operand in &graph.ops[op].operands {
        match graph.def_op(operand) {
            Some(inner) if fusion.inlined.contains(operand) => {
                find_inputs(graph, fusion, inner, inputs);
            }
            _ if inputs.contains(&operand) => {}
            _ => inputs.push(operand),
        }
    }
}

/// The type of an element as a value.
pub(super) fn value_type(element: Scalar) -> Type {
    Type::scalar_of(element)
}

/// The type of an element in memory.
pub(super) fn memory_type(element: Scalar) -> Type {
    match element {
        CONDITION => Type::I8,
        _ => Type::scalar_of(element),
    }
}

impl Kernel<'_> {
    /// The element of a tensor at an index: loaded, or computed where it is inlined.
    pub fn element(&mut self, tensor: Tensor, index: &[Value]) -> Value {
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
            CONDITION => self.b.cast(Opcode::Zext, value, memory),
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
            _ => self.b.binary(Opcode::Add, a, b),
        }
    }

    /// `a · factor`.
    pub fn times(&mut self, a: Value, factor: usize) -> Value {
        match (self.b.function.int_of(a), factor) {
            (_, 1) => a,
            (Some(a), _) => self.b.i64(a as i64 * factor as i64),
            _ => {
                let factor = self.b.i64(factor as i64);
                self.b.binary(Opcode::Mul, a, factor)
            }
        }
    }

    /// Quotient or remainder of a number that is not negative.
    pub fn divided(&mut self, opcode: Opcode, a: Value, by: usize) -> Value {
        match (by, opcode) {
            (1, Opcode::Udiv) => a,
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
