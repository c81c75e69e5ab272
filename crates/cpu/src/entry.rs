//! Adds to a lowered graph what connects it with this process, as Loop IR.
//!
//! ```text
//! func @__ferrozyme_run(%table: ptr)          the addresses of the host's functions and of its data, the number of its threads, and the arguments of @main, one after the other
//! func @__ferrozyme_feed(%number, %to)        calls the host's function with its data
//! func @__ferrozyme_receive(%number, %position, %from)
//! func @__ferrozyme_call_2(%number, %x, %y)   calls the host's function with its data, the number and the addresses in memory, one after the other
//! func @__ferrozyme_team(%count, %body, %context)     calls the host's function, which calls the body with each number on its threads
//! func @__ferrozyme_threads() -> (i64)                their number
//! ```

use ferrozyme_graph::lower::{CALL, FEED, RECEIVE};
use ferrozyme_ir::{
    Alignment, Builder, Function, FunctionId, Global, GlobalId, Module, Opcode, Payload, TEAM,
    THREADS, Type, Value,
};

/// Where the addresses of feeder, receiver, caller and the host's data are.
const FEEDER: i64 = 0;
const RECEIVER: i64 = 8;
const CALLER: i64 = 16;
const DATA: i64 = 24;
/// Where the address of what runs teams is, and the number of threads, which is an address in the table, too.
const TEAMS: i64 = 32;
const COUNT: i64 = 40;
/// Where the arguments of `@main` are.
const ARGUMENTS: i64 = 48;

/// Adds the function that runs the graph, under this name.
pub(crate) fn add_entry(module: &mut Module, main: FunctionId, name: &str) -> FunctionId {
    let hosts = module.globals.push(Global {
        name: "__ferrozyme_host".to_owned(),
        size: ARGUMENTS as u64,
        align: Alignment::natural(Type::PTR),
        constant: false,
        bytes: Some(vec![0; ARGUMENTS as usize]),
        relocations: Vec::new(),
        inactive: true,
        shared: false,
        thread_local: false,
        parts: Vec::new(),
        layout: None,
    });
    for (host, offset) in [(FEED, FEEDER), (RECEIVE, RECEIVER), (TEAM, TEAMS)] {
        if let Some(function) = module.function_named(host) {
            module.functions[function] = call_host(&module.functions[function], hosts, offset);
        }
    }
    if let Some(function) = module.function_named(THREADS) {
        module.functions[function] = count_threads(&module.functions[function], hosts);
    }
    for function in module.functions.values_mut() {
        if function.body.is_none() && function.name.starts_with(CALL) {
            *function = call_with_addresses(function, hosts);
        }
    }
    let mut run = Function::define(name, vec![Type::PTR.into()], Vec::new());
    let table = run.arguments()[0];
    let mut b = Builder::at_body(&mut run);
    let global = b.global_address(hosts);
    for offset in [FEEDER, RECEIVER, CALLER, DATA, TEAMS, COUNT] {
        let value = load(&mut b, table, offset);
        let at = b.offset_bytes(global, offset);
        b.store(value, at, Alignment::natural(Type::PTR));
    }
    let count = module.functions[main].params.len() as i64;
    let arguments: Vec<Value> = (0..count)
        .map(|position| load(&mut b, table, ARGUMENTS + 8 * position))
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
    call_pointer(&mut b, hosts, offset, &arguments);
    function
}

/// The function that gives the number of threads.
fn count_threads(declared: &Function, hosts: GlobalId) -> Function {
    let results = declared.results.clone();
    let mut function = Function::define(declared.name.clone(), Vec::new(), results);
    function.facts.inactive = true;
    let mut b = Builder::at_body(&mut function);
    let global = b.global_address(hosts);
    let at = b.offset_bytes(global, COUNT);
    let count = b.load(Type::I64, at, Alignment::natural(Type::I64));
    b.ret(&[count]);
    function
}

/// A function that stores all its arguments but the first in memory, and passes the first and the address of these on to the caller.
fn call_with_addresses(declared: &Function, hosts: GlobalId) -> Function {
    let mut function = Function::define(declared.name.clone(), declared.params.clone(), Vec::new());
    function.facts.noinline = true;
    let arguments = function.arguments().to_vec();
    let (&number, addresses) = arguments.split_first().expect("the number comes first");
    let mut b = Builder::at_body(&mut function);
    let bytes = b.i64(8 * addresses.len() as i64);
    let table = b.stack(bytes, Alignment::natural(Type::PTR));
    for (position, &address) in addresses.iter().enumerate() {
        let at = b.offset_bytes(table, 8 * position as i64);
        b.store(address, at, Alignment::natural(Type::PTR));
    }
    call_pointer(&mut b, hosts, CALLER, &[number, table]);
    function
}

/// Ends a function with a call of the one whose address is at an offset, with the host's data before the arguments.
fn call_pointer(b: &mut Builder<'_>, hosts: GlobalId, offset: i64, arguments: &[Value]) {
    let global = b.global_address(hosts);
    let target = load(b, global, offset);
    let data = load(b, global, DATA);
    let mut operands = vec![target, data];
    operands.extend(arguments);
    b.op(
        Opcode::CallIndirect,
        &operands,
        Payload::Results(Box::new([])),
        &[],
    );
    b.ret(&[]);
}
