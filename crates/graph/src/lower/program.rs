//! The function that runs a graph: it calls kernels in order, on buffers.
//!
//! A loop keeps a carried tensor in one buffer, which is that of the arguments and of the result.

use super::kernel::{Interface, define_kernel, kernel_key, memory_type};
use super::{CALL, Call, Exchange, FEED, Fusion, Lowered, POISON, RECEIVE};
use crate::graph::{Graph, Op, OpData, Parameter, Region, Tensor};
use crate::memory::{MemoryPlan, Place};
use crate::opcode::Opcode;
use crate::payload::Payload;
use crate::types::TensorType;
use cranelift_entity::{EntityRef, SecondaryMap};
use ferrozyme_ir as ir;
use ferrozyme_ir::{
    Alignment, Builder, Field, Function, FunctionId, IntPredicate, Layout, Module, Param, Type,
    Value,
};
use rustc_hash::FxHashMap;

pub(super) fn lower_program(
    graph: &Graph,
    fusion: &Fusion,
    memory: Option<&MemoryPlan>,
    poisons: bool,
) -> Lowered {
    let mut module = Module::new();
    let feed = Function::declare(FEED, vec![Type::I64.into(), Type::PTR.into()], Vec::new());
    let receive = [Type::I64, Type::I64, Type::PTR].map(Param::from);
    let receive = Function::declare(RECEIVE, receive.into(), Vec::new());
    let hosts = Hosts {
        feed: module.functions.push(feed),
        receive: module.functions.push(receive),
        poison: poisons.then(|| {
            let params = vec![Type::PTR.into(), Type::I64.into()];
            let poison = Function::declare(POISON, params, Vec::new());
            module.functions.push(poison)
        }),
    };
    let params = graph.parameters.values().map(|data| parameter(&data.ty));
    let mut params: Vec<Param> = params.collect();
    params.extend(memory.map(|_| Param::from(Type::PTR)));
    let mut main = Function::define("main", params, Vec::new());
    let arguments = main.arguments().to_vec();
    for (data, &argument) in graph.parameters.values().zip(&arguments) {
        main.set_name(argument, &*data.name);
    }
    if let (Some(&arena), Some(_)) = (arguments.last(), memory) {
        main.set_name(arena, "arena");
    }
    let mut program = Program {
        graph,
        fusion,
        plan: memory,
        module,
        b: Builder::at_body(&mut main),
        parameters: arguments,
        buffers: SecondaryMap::new(),
        temporaries: FxHashMap::default(),
        allocated: Vec::new(),
        kernels: FxHashMap::default(),
        exchanges: Vec::new(),
        sizes: FxHashMap::default(),
        calls: Vec::new(),
        hosts,
    };
    match memory {
        Some(plan) => program.place(plan),
        None => program.allocate(graph.body()),
    }
    program.region(graph.body());
    for buffer in std::mem::take(&mut program.allocated) {
        program.b.free(buffer);
    }
    program.b.ret(&[]);
    let (mut module, exchanges, calls) = (program.module, program.exchanges, program.calls);
    let sizes = program.sizes;
    let main = module.functions.push(main);
    Lowered {
        module,
        main,
        exchanges,
        sizes,
        calls,
    }
}

/// The memory of a parameter.
fn parameter(ty: &TensorType) -> Param {
    let memory = memory_type(ty.element);
    let mut param = Param::from(Type::PTR);
    param.facts.noalias = true;
    param.facts.nocapture = true;
    param.facts.layout = Some(Layout {
        fields: vec![Field {
            offset: 0,
            scalar: memory.scalar(),
            pointee: None,
        }],
        stride: memory.bytes(),
    });
    param
}

/// The bytes of a tensor in memory.
fn bytes_of(ty: &TensorType) -> usize {
    ty.shape.count() * memory_type(ty.element).bytes() as usize
}

/// The functions that the host defines.
struct Hosts {
    feed: FunctionId,
    receive: FunctionId,
    /// What overwrites dead memory, in tests.
    poison: Option<FunctionId>,
}

struct Program<'p> {
    graph: &'p Graph,
    fusion: &'p Fusion,
    plan: Option<&'p MemoryPlan>,
    module: Module,
    /// Builds `@main`.
    b: Builder<'p>,
    /// The arguments of `@main`.
    parameters: Vec<Value>,
    buffers: SecondaryMap<Tensor, Option<Value>>,
    /// Where arguments of a loop are kept that become other arguments of it.
    temporaries: FxHashMap<Tensor, Value>,
    allocated: Vec<Value>,
    /// Kernels by what they compute.
    kernels: FxHashMap<String, FunctionId>,
    exchanges: Vec<Exchange>,
    /// For each kernel, how many bytes the tensor behind each parameter has.
    sizes: FxHashMap<FunctionId, Vec<usize>>,
    calls: Vec<Call>,
    hosts: Hosts,
}

impl Program<'_> {
    // ---- buffers

    /// Finds the buffers in the arena, which is the last argument, and in parameters.
    fn place(&mut self, plan: &MemoryPlan) {
        for tensor in self.graph.tensors.keys() {
            if let Some(place) = plan.places[tensor] {
                self.buffers[tensor] = Some(self.address(place));
            }
            if let Some(place) = plan.temporaries[tensor] {
                let address = self.address(place);
                self.temporaries.insert(tensor, address);
            }
        }
    }

    fn address(&mut self, place: Place) -> Value {
        match place {
            Place::Parameter(parameter) => self.parameter(parameter),
            Place::Arena(offset) => {
                let arena = *self.parameters.last().expect("the arena is an argument");
                self.b.offset_bytes(arena, offset as i64)
            }
        }
    }

    /// Allocates the buffers of a region and of the regions in it.
    fn allocate(&mut self, region: Region) {
        for &op in &self.graph.regions[region].ops {
            let data = &self.graph.ops[op];
            match data.opcode {
                Opcode::For | Opcode::While => self.allocate_loop(data),
                _ => {
                    for &result in &data.results {
                        if !self.fusion.inlined.contains(result) {
                            let buffer = self.new_buffer(self.graph.ty(result));
                            self.buffers[result] = Some(buffer);
                        }
                    }
                }
            }
            for &inner in &data.regions {
                self.allocate(inner);
            }
        }
    }

    fn allocate_loop(&mut self, data: &OpData) {
        for &result in &data.results {
            let buffer = self.new_buffer(self.graph.ty(result));
            self.buffers[result] = Some(buffer);
        }
        for &region in &data.regions {
            let arguments = &self.graph.regions[region].arguments;
            let (counter, carried) = arguments.split_at(arguments.len() - data.results.len());
            for &counter in counter {
                let buffer = self.new_buffer(self.graph.ty(counter));
                self.buffers[counter] = Some(buffer);
            }
            for (&argument, &result) in carried.iter().zip(&data.results) {
                self.buffers[argument] = self.buffers[result];
            }
            for (position, &result) in self.graph.regions[region].results.iter().enumerate() {
                if self.graph.is_other_argument(region, position, result) {
                    let buffer = self.new_buffer(self.graph.ty(result));
                    self.temporaries.insert(result, buffer);
                }
            }
        }
    }

    fn new_buffer(&mut self, ty: &TensorType) -> Value {
        let bytes = self.b.i64(bytes_of(ty) as i64);
        let align = Alignment::new(16).expect("a power of two");
        let buffer = self.b.alloc(bytes, align, false);
        self.allocated.push(buffer);
        buffer
    }

    fn buffer(&self, tensor: Tensor) -> Value {
        self.buffers[tensor].expect("what is not inlined has a buffer")
    }

    fn copy(&mut self, to: Value, from: Value, ty: &TensorType) {
        if to == from {
            return;
        }
        let bytes = self.b.i64(bytes_of(ty) as i64);
        let align = Alignment::natural(memory_type(ty.element));
        self.b.copy(to, from, bytes, align);
    }

    // ---- operations

    fn region(&mut self, region: Region) {
        for &op in &self.graph.regions[region].ops {
            let data = &self.graph.ops[op];
            match (data.opcode, &data.payload) {
                (Opcode::Parameter, Payload::Parameter(parameter)) => {
                    let (to, from) = (self.buffer(data.results[0]), self.parameter(*parameter));
                    self.copy(to, from, self.graph.ty(data.results[0]));
                }
                (Opcode::Update, Payload::Parameter(parameter)) => {
                    let (to, from) = (self.parameter(*parameter), self.buffer(data.operands[0]));
                    self.copy(to, from, self.graph.ty(data.operands[0]));
                }
                (Opcode::Feed, Payload::Feed(name, _)) => {
                    let number = self.exchange(name, true, &data.results);
                    let to = self.buffer(data.results[0]);
                    self.b.call(self.hosts.feed, &[number, to], &[]);
                }
                (Opcode::Receive, Payload::Receive(name)) => {
                    let number = self.exchange(name, false, &data.operands);
                    for (position, &tensor) in data.operands.iter().enumerate() {
                        let position = self.b.i64(position as i64);
                        let from = self.buffer(tensor);
                        self.b
                            .call(self.hosts.receive, &[number, position, from], &[]);
                    }
                }
                (Opcode::Call | Opcode::CallVjp, Payload::Call(name, _)) => {
                    self.call_function(data, name);
                }
                (Opcode::For, _) => self.for_loop(data),
                (Opcode::While, _) => self.while_loop(data),
                (Opcode::If, _) => self.branch(data),
                _ => self.call_kernel(op),
            }
            self.poison(op);
        }
    }

    /// Overwrites what is dead after an operation, in tests.
    fn poison(&mut self, op: Op) {
        let (Some(callee), Some(plan)) = (self.hosts.poison, self.plan) else {
            return;
        };
        for range in &plan.dead[op] {
            let address = self.address(Place::Arena(range.start));
            let bytes = self.b.i64(range.len() as i64);
            self.b.call(callee, &[address, bytes], &[]);
        }
    }

    fn parameter(&self, parameter: Parameter) -> Value {
        self.parameters[parameter.index()]
    }

    /// The number of a new exchange.
    fn exchange(&mut self, name: &str, feeds: bool, tensors: &[Tensor]) -> Value {
        let types = tensors.iter().map(|&tensor| self.graph.ty(tensor).clone());
        self.exchanges.push(Exchange {
            name: name.into(),
            feeds,
            types: types.collect(),
        });
        self.b.i64(self.exchanges.len() as i64 - 1)
    }

    fn call_function(&mut self, data: &OpData, name: &str) {
        let types = |tensors: &[Tensor]| -> Vec<TensorType> {
            let types = tensors.iter().map(|&tensor| self.graph.ty(tensor).clone());
            types.collect()
        };
        let call = Call {
            name: name.into(),
            derivative: data.opcode == Opcode::CallVjp,
            operands: types(&data.operands),
            results: types(&data.results),
            location: data.location.map(ToString::to_string),
        };
        let number = self.b.i64(self.calls.len() as i64);
        self.calls.push(call);
        let mut arguments = vec![number];
        for &tensor in data.operands.iter().chain(&data.results) {
            arguments.push(self.buffer(tensor));
        }
        let callee = self.function_of_calls(arguments.len() - 1);
        self.b.call(callee, &arguments, &[]);
    }

    /// The host's function for calls with this number of addresses.
    fn function_of_calls(&mut self, addresses: usize) -> FunctionId {
        let name = format!("{CALL}{addresses}");
        self.module.function_named(&name).unwrap_or_else(|| {
            let mut params: Vec<Param> = vec![Type::I64.into()];
            params.resize(1 + addresses, Type::PTR.into());
            let declared = Function::declare(name, params, Vec::new());
            self.module.functions.push(declared)
        })
    }

    fn call_kernel(&mut self, op: Op) {
        let (graph, fusion) = (self.graph, self.fusion);
        let members = fusion.members(graph, &op);
        if members.is_empty() {
            return;
        }
        let inputs = fusion.inputs(graph, op);
        let results: Vec<Tensor> = members.iter().map(|&op| graph.ops[op].results[0]).collect();
        let shared: Vec<Option<usize>> = inputs
            .iter()
            .map(|&input| {
                let place = self.plan.and_then(|plan| plan.places[input])?;
                let is_there = |&result: &Tensor| {
                    self.plan.and_then(|plan| plan.places[result]) == Some(place)
                };
                results.iter().position(is_there)
            })
            .collect();
        let interface = Interface {
            members,
            inputs: &inputs,
            shared: &shared,
        };
        let key = kernel_key(graph, fusion, &interface);
        let kernel = match self.kernels.get(&key) {
            Some(&known) => known,
            None => {
                let made = define_kernel(graph, fusion, &mut self.module, &interface);
                self.kernels.insert(key, made);
                made
            }
        };
        let elsewhere = inputs.iter().zip(&shared);
        let elsewhere = elsewhere.filter(|(_, shared)| shared.is_none());
        let inputs = elsewhere.map(|(&input, _)| input);
        let tensors: Vec<Tensor> = results.iter().copied().chain(inputs).collect();
        let sizes = tensors.iter().map(|&tensor| bytes_of(graph.ty(tensor)));
        self.sizes.entry(kernel).or_insert_with(|| sizes.collect());
        let arguments = tensors.iter().map(|&tensor| self.buffer(tensor));
        let arguments: Vec<Value> = arguments.collect();
        self.b.call(kernel, &arguments, &[]);
    }

    // ---- control

    fn for_loop(&mut self, data: &OpData) {
        self.copy_all(&data.operands[1..], &data.results);
        let count = self.load(data.operands[0], Type::I32);
        let count = self.b.cast(ir::Opcode::Sext, count, Type::I64);
        let (zero, one) = (self.b.i64(0), self.b.i64(1));
        let (_, region) = self.b.for_loop(zero, count, one, &[]);
        let iteration = self.b.function.regions[region].args[0];
        self.inside(region, |program| {
            let body = data.regions[0];
            let counter = program.graph.regions[body].arguments[0];
            let number = program.b.cast(ir::Opcode::TruncInt, iteration, Type::I32);
            let buffer = program.buffer(counter);
            program
                .b
                .store(number, buffer, Alignment::natural(Type::I32));
            program.region(body);
            program.carry_on(body);
            program.b.yields(&[]);
        });
    }

    /// The condition is computed before the loop and at the end of each iteration.
    fn while_loop(&mut self, data: &OpData) {
        self.copy_all(&data.operands, &data.results);
        let (first, body) = (data.regions[0], data.regions[1]);
        let holds = self.condition(first);
        let (_, then, otherwise) = self.b.if_else(holds, &[]);
        self.inside(then, |program| {
            let (_, again) = program.b.loop_while(&[]);
            program.inside(again, |program| {
                program.region(body);
                program.carry_on(body);
                let holds = program.condition(first);
                program.b.again(holds, &[]);
            });
            program.b.yields(&[]);
        });
        self.inside(otherwise, |program| {
            program.b.yields(&[]);
        });
    }

    /// Runs the region that says whether a `while` goes on.
    fn condition(&mut self, region: Region) -> Value {
        self.region(region);
        self.load_condition(self.graph.regions[region].results[0])
    }

    fn branch(&mut self, data: &OpData) {
        let holds = self.load_condition(data.operands[0]);
        let (_, then, otherwise) = self.b.if_else(holds, &[]);
        for (region, inner) in [then, otherwise].into_iter().zip(&data.regions) {
            self.inside(region, |program| {
                program.region(*inner);
                let yielded = &program.graph.regions[*inner].results;
                program.copy_all(yielded, &data.results);
                program.b.yields(&[]);
            });
        }
    }

    /// Copies tensors into the buffers of others.
    fn copy_all(&mut self, from: &[Tensor], to: &[Tensor]) {
        for (&from, &to) in from.iter().zip(to) {
            let (source, target) = (self.buffer(from), self.buffer(to));
            self.copy(target, source, self.graph.ty(from));
        }
    }

    /// Copies what a body yields to the tensors that it carries, all at once.
    fn carry_on(&mut self, body: Region) {
        let data = &self.graph.regions[body];
        for (position, &result) in data.results.iter().enumerate() {
            if self.graph.is_other_argument(body, position, result) {
                let (to, from) = (self.temporaries[&result], self.buffer(result));
                self.copy(to, from, self.graph.ty(result));
            }
        }
        let carried = &data.arguments[data.arguments.len() - data.results.len()..];
        for (position, (&result, &argument)) in data.results.iter().zip(carried).enumerate() {
            let from = match self.graph.is_other_argument(body, position, result) {
                true => self.temporaries[&result],
                false => self.buffer(result),
            };
            let to = self.buffer(argument);
            self.copy(to, from, self.graph.ty(result));
        }
    }

    fn load(&mut self, tensor: Tensor, ty: Type) -> Value {
        let buffer = self.buffer(tensor);
        self.b.load(ty, buffer, Alignment::natural(ty))
    }

    fn load_condition(&mut self, tensor: Tensor) -> Value {
        let byte = self.load(tensor, Type::I8);
        let zero = self.b.zero(Type::I8);
        self.b.icmp(IntPredicate::Ne, byte, zero)
    }

    fn inside(&mut self, region: ir::Region, build: impl FnOnce(&mut Self)) {
        let outer = self.b.go_to_end(region);
        build(self);
        self.b.cursor = outer;
    }
}
