//! Lowered graphs on the interpreter of the Loop IR, and their derivatives by its differentiator.

use super::gradient::{Direction, add_gradients, gradient_of};
use super::outcome::{Outcome, are_close};
use ferrozyme_diff::{Request, differentiate_reverse};
use ferrozyme_graph::interpret::{Array, Machine, call};
use ferrozyme_graph::lower::{
    CALL, Exchange, FEED, Fusion, Lowered, POISON, RECEIVE, lower, lower_planned, lower_poisoned,
};
use ferrozyme_graph::memory::{MemoryPlan, check_memory, plan_memory};
use ferrozyme_graph::{
    Graph, Opcode, ParameterData, Payload, Scalar, Shape, Tensor, TensorType, verify,
};
use ferrozyme_ir::interpret::{Datum, Machine as LoopMachine, Memory, Pointer};
use ferrozyme_ir::{Module, verify_module};
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// The bytes of a tensor as a lowered graph has them in memory.
fn write(memory: &mut Memory, at: Pointer, value: &Array) -> Result<(), String> {
    let written = match value.ty.element {
        Scalar::F64 => memory.write_f64s(at, &value.elements),
        Scalar::F32 => {
            let values: Vec<f32> = value.elements.iter().map(|&value| value as f32).collect();
            memory.write_f32s(at, &values)
        }
        Scalar::Int(1) => {
            let bytes: Vec<u8> = value.elements.iter().map(|&value| value as u8).collect();
            memory.write_bytes(at, &bytes)
        }
        Scalar::Int(32) => {
            let values = value
                .elements
                .iter()
                .flat_map(|&value| (value as i32).to_le_bytes());
            memory.write_bytes(at, &values.collect::<Vec<u8>>())
        }
        other => return Err(format!("tests know no elements of type {other}")),
    };
    written.map_err(|fault| fault.to_string())
}

fn read(memory: &Memory, at: Pointer, ty: &TensorType) -> Result<Array, String> {
    let count = ty.shape.count();
    let elements: Result<Vec<f64>, _> = match ty.element {
        Scalar::F64 => memory.read_f64s(at, count),
        Scalar::F32 => {
            let values = memory.read_f32s(at, count);
            values.map(|values| values.into_iter().map(f64::from).collect())
        }
        Scalar::Int(1) => {
            let bytes = memory.read_bytes(at, count as u64);
            bytes.map(|bytes| bytes.into_iter().map(f64::from).collect())
        }
        Scalar::Int(32) => memory.read_bytes(at, 4 * count as u64).map(|bytes| {
            let words = bytes.chunks_exact(4);
            let number = |word: &[u8]| i32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            words.map(|word| f64::from(number(word))).collect()
        }),
        other => return Err(format!("tests know no elements of type {other}")),
    };
    let elements = elements.map_err(|fault| fault.to_string())?;
    Ok(Array::new(ty.clone(), elements))
}

fn allocate(machine: &mut LoopMachine<'_>, value: &Array) -> Result<Pointer, String> {
    let at = machine.allocate(value.ty.shape.count() as u64 * 8, 16);
    write(machine, at, value)?;
    Ok(at)
}

fn check_module(module: &Module) -> Result<(), String> {
    verify_module(module).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        errors.join("\n")
    })
}

impl Outcome {
    /// Of a run of a lowered graph, with the same feeds as [`of`](Outcome::of), and with an arena of this size if it needs one.
    pub fn of_lowered(
        graph: &Graph,
        lowered: &Lowered,
        arena: Option<usize>,
    ) -> Result<Outcome, String> {
        check_module(&lowered.module)?;
        let received: RefCell<Vec<(Box<str>, Vec<Array>)>> = RefCell::default();
        let exchange = |number: &Datum| -> Result<&Exchange, String> {
            let number = number
                .as_i64()
                .and_then(|n| lowered.exchanges.get(n as usize));
            number.ok_or_else(|| "there is no such exchange".to_owned())
        };
        let mut parameters = Vec::new();
        let mut machine = LoopMachine::new(&lowered.module);
        machine.check_promises();
        let mut feeders: FxHashMap<Box<str>, Direction> = FxHashMap::default();
        machine.define_external(
            FEED,
            Box::new(move |memory, arguments| {
                let exchange = exchange(&arguments[0])?;
                let numbers = feeders.entry(exchange.name.clone());
                let numbers = numbers.or_insert_with(Direction::new);
                let ty = exchange.types[0].clone();
                let elements = (0..ty.shape.count()).map(|_| numbers.next());
                let value = Array::new(ty, elements.collect());
                write(memory, pointer(&arguments[1])?, &value)?;
                Ok(Vec::new())
            }),
        );
        let into = &received;
        machine.define_external(
            RECEIVE,
            Box::new(move |memory, arguments| {
                let exchange = exchange(&arguments[0])?;
                let position = arguments[1].as_i64().unwrap_or(0) as usize;
                let value = read(memory, pointer(&arguments[2])?, &exchange.types[position])?;
                let mut received = into.borrow_mut();
                if position == 0 {
                    received.push((exchange.name.clone(), Vec::new()));
                }
                let last = received.last_mut().ok_or("nothing was received")?;
                last.1.push(value);
                Ok(Vec::new())
            }),
        );
        define_calls(&mut machine, graph, lowered);
        machine.define_external(
            POISON,
            Box::new(|memory, arguments| {
                let bytes = arguments[1].as_i64().unwrap_or(0) as usize;
                let poison = memory.write_bytes(pointer(&arguments[0])?, &vec![0xff; bytes]);
                poison.map_err(|fault| fault.to_string())?;
                Ok(Vec::new())
            }),
        );
        for data in graph.parameters.values() {
            let value = Array::from_literal(&data.ty, &data.initial);
            parameters.push(allocate(&mut machine, &value)?);
        }
        let mut arguments: Vec<Datum> = parameters.iter().map(|&at| Datum::ptr(at)).collect();
        if let Some(bytes) = arena {
            let bytes = bytes.max(1);
            let arena = machine.allocate(bytes as u64, 64);
            // Nothing is there before it is written.
            let poison = machine.write_bytes(arena, &vec![0xff; bytes]);
            poison.map_err(|fault| fault.to_string())?;
            arguments.push(Datum::ptr(arena));
        }
        machine
            .call(lowered.main, &arguments)
            .map_err(|fault| fault.to_string())?;
        let (pieces, bytes) = machine.live_heap();
        if pieces > 0 {
            return Err(format!("{bytes} bytes were never freed"));
        }
        let values = graph.parameters.values().zip(&parameters);
        let values = values.map(|(data, &at)| read(&machine, at, &data.ty));
        let parameters = values.collect::<Result<_, _>>()?;
        drop(machine);
        Ok(Outcome {
            received: received.into_inner(),
            parameters,
        })
    }
}

/// Has a machine call the Rust functions of a graph.
fn define_calls<'m>(machine: &mut LoopMachine<'m>, graph: &'m Graph, lowered: &'m Lowered) {
    let functions = lowered.module.functions.values();
    for function in functions.filter(|function| function.name.starts_with(CALL)) {
        machine.define_external(
            &function.name,
            Box::new(move |memory, arguments| {
                let number = arguments[0].as_i64();
                let made = number.and_then(|number| lowered.calls.get(number as usize));
                let made = made.ok_or("there is no such call")?;
                let addresses = arguments[1..].iter().map(pointer);
                let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
                let (from, to) = addresses.split_at(made.operands.len());
                let operands = from.iter().zip(&made.operands);
                let operands = operands.map(|(&at, ty)| read(memory, at, ty));
                let operands = operands.collect::<Result<Vec<_>, _>>()?;
                let function = graph.function_named(&made.name);
                let function = function.ok_or("there is no such function")?;
                let results = call(function, made.derivative, &operands, &made.results)?;
                for (&at, value) in to.iter().zip(&results) {
                    write(memory, at, value)?;
                }
                Ok(Vec::new())
            }),
        );
    }
}

fn pointer(datum: &Datum) -> Result<Pointer, String> {
    datum.as_ptr().ok_or_else(|| "no address".to_owned())
}

/// Whether a graph and what it is lowered to come to the same; says where not.
pub fn same_when_lowered(graph: &Graph, fusion: &Fusion) -> Result<(), String> {
    compare_outcomes(graph, &lower(graph, fusion), None)
}

/// As [`same_when_lowered`], with tensors in an arena; the plan must hold, too.
pub fn same_when_planned(graph: &Graph, fusion: &Fusion) -> Result<(), String> {
    let plan = plan_memory(graph, fusion);
    check_memory(graph, fusion, &plan)?;
    same_with_plan(graph, fusion, &plan)
}

/// As [`same_when_planned`], for a plan that may not hold.
pub fn same_with_plan(graph: &Graph, fusion: &Fusion, plan: &MemoryPlan) -> Result<(), String> {
    let lowered = lower_planned(graph, fusion, plan);
    compare_outcomes(graph, &lowered, Some(plan.arena))?;
    // Nobody reads what the plan takes for dead.
    let poisoned = lower_poisoned(graph, fusion, plan);
    compare_outcomes(graph, &poisoned, Some(plan.arena))
        .map_err(|problem| format!("with dead memory overwritten, {problem}"))
}

fn compare_outcomes(graph: &Graph, lowered: &Lowered, arena: Option<usize>) -> Result<(), String> {
    let expected = Outcome::of(graph);
    let actual = Outcome::of_lowered(graph, lowered, arena);
    match (expected, actual) {
        (Ok(expected), Ok(actual)) => expected.compare(&actual),
        (Err(_), Err(_)) => Ok(()),
        (Ok(_), Err(fault)) => Err(format!("lowered, it fails: {fault}")),
        (Err(fault), Ok(_)) => Err(format!("lowered, it does not fail: {fault}")),
    }
}

/// Compares the graph's gradients of a tensor with one element with the derivative of the lowered graph that the Loop IR's differentiator makes. The graph must not exchange anything but `receive` that tensor.
pub fn compare_derivatives(graph: &Graph, tensor: Tensor, fusion: &Fusion) -> Result<(), String> {
    let mut derivative = graph.clone();
    add_gradients(&mut derivative, tensor)?;
    let mut machine = Machine::new(&derivative);
    machine.run().map_err(|fault| fault.to_string())?;
    // The result as a parameter, whose shadow is the seed.
    let mut primal = graph.clone();
    let result = primal.parameters.push(ParameterData {
        name: "result".into(),
        ty: TensorType::new(Scalar::F64, Shape::scalar()),
        initial: 0.0.into(),
    });
    for data in primal.ops.values_mut() {
        if data.opcode == Opcode::Receive {
            data.opcode = Opcode::Update;
            data.payload = Payload::Parameter(result);
        }
    }
    verify(&primal).map_err(|error| error.to_string())?;
    let mut lowered = lower(&primal, fusion);
    let mut request = Request::usual(&lowered.module, lowered.main);
    request.primal = false;
    let reverse = differentiate_reverse(&mut lowered.module, &request)
        .map_err(|error| format!("no derivative: {error}"))?;
    check_module(&lowered.module)?;
    let mut loops = LoopMachine::new(&lowered.module);
    let mut arguments = Vec::new();
    let mut shadows = Vec::new();
    for (parameter, data) in &primal.parameters {
        let value = Array::from_literal(&data.ty, &data.initial);
        arguments.push(Datum::ptr(allocate(&mut loops, &value)?));
        let seed = if parameter == result { 1.0 } else { 0.0 };
        let shadow = Array::from_literal(&data.ty, &seed.into());
        let shadow = allocate(&mut loops, &shadow)?;
        shadows.push(shadow);
        arguments.push(Datum::ptr(shadow));
    }
    loops
        .call(reverse, &arguments)
        .map_err(|fault| fault.to_string())?;
    for ((parameter, data), &shadow) in graph.parameters.iter().zip(&shadows) {
        let by_loops = read(&loops, shadow, &data.ty)?;
        let by_graph = match machine.received(&gradient_of(graph, parameter)) {
            Some(received) => received[0].clone(),
            None => Array::from_literal(&data.ty, &0.0.into()),
        };
        if !are_close(&by_graph, &by_loops) {
            return Err(format!(
                "the gradient by @{} is {by_graph}, but the Loop IR's is {by_loops}",
                data.name
            ));
        }
    }
    Ok(())
}
