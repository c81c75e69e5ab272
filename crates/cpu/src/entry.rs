//! Adds to a lowered graph what connects it with this process, as Loop IR.
//!
//! ```text
//! func @__ferrozyme_run(%table: ptr)          the addresses of the host's two functions and of its data, and the arguments of @main, one after the other
//! func @__ferrozyme_feed(%number, %to)        calls the host's function with its data
//! func @__ferrozyme_receive(%number, %position, %from)
//! ```

use ferrozyme_graph::lower::{FEED, RECEIVE};
use ferrozyme_ir::{
    Alignment, Builder, Function, FunctionId, Global, GlobalId, Module, Opcode, Payload, Type,
    Value,
};

/// The function that runs the graph.
pub(crate) const RUN: &str = "__ferrozyme_run";

/// Where the addresses of feeder, receiver and the host's data are.
const FEEDER: i64 = 0;
const RECEIVER: i64 = 8;
const DATA: i64 = 16;

pub(crate) fn add_entry(module: &mut Module, main: FunctionId) -> FunctionId {
    let hosts = module.globals.push(Global {
        name: "__ferrozyme_host".to_owned(),
        size: 24,
        align: Alignment::natural(Type::PTR),
        constant: false,
        bytes: Some(vec![0; 24]),
        relocations: Vec::new(),
        inactive: true,
        shared: false,
        thread_local: false,
        parts: Vec::new(),
        layout: None,
    });
    for (name, offset) in [(FEED, FEEDER), (RECEIVE, RECEIVER)] {
        if let Some(function) = module.function_named(name) {
            module.functions[function] = call_host(&module.functions[function], hosts, offset);
        }
    }
    let mut run = Function::define(RUN, vec![Type::PTR.into()], Vec::new());
    let table = run.arguments()[0];
    let mut b = Builder::at_body(&mut run);
    let global = b.global_address(hosts);
    for offset in [FEEDER, RECEIVER, DATA] {
        let value = load(&mut b, table, offset);
        let at = b.offset_bytes(global, offset);
        b.store(value, at, Alignment::natural(Type::PTR));
    }
    let count = module.functions[main].params.len() as i64;
    let arguments: Vec<Value> = (0..count)
        .map(|position| load(&mut b, table, 24 + 8 * position))
        .collect();
    b.call(main, &arguments, &[]);
    b.ret(&[]);
    module.functions.push(run)
}

fn load(b: &mut Builder<'_>, base: Value, offset: i64) -> Value {
    let at = b.offset_bytes(base, offset);
    b.load(Type::PTR, at, Alignment::natural(Type::PTR))
}

/// A function that passes its arguments on to the one whose address is at an offset, after the host's data.
fn call_host(declared: &Function, hosts: GlobalId, offset: i64) -> Function {
    let mut function = Function::define(declared.name.clone(), declared.params.clone(), Vec::new());
    function.facts.noinline = true;
    let arguments = function.arguments().to_vec();
    let mut b = Builder::at_body(&mut function);
    let global = b.global_address(hosts);
    let target = load(&mut b, global, offset);
    let data = load(&mut b, global, DATA);
    let mut operands = vec![target, data];
    operands.extend(arguments);
    b.op(
        Opcode::CallIndirect,
        &operands,
        Payload::Results(Box::new([])),
        &[],
    );
    b.ret(&[]);
    function
}
