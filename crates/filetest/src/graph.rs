//! Checks of tensor graphs: files that end in `fzg` hold a graph in place of a module of the Loop IR.

mod gradient;
mod lowered;
mod outcome;

use crate::check::text::{mark_error, same_program};
use crate::check::{Output, no_check};
use crate::file::{Detail, Directive};
pub use crate::graph::gradient::{add_gradients, gradcheck};
pub use crate::graph::lowered::{
    compare_derivatives, same_when_lowered, same_when_planned, same_with_plan,
};
use crate::graph::outcome::nearly_same_results;
pub use crate::graph::outcome::{Outcome as GraphOutcome, same_results};
use crate::scan::Scanner;
use crate::{Outcome, file, run_checks};
use ferrozyme_graph::fuse::{fuse, print_fusion};
use ferrozyme_graph::interpret::{Array, Fault, Machine};
use ferrozyme_graph::lower::{Fusion, lower};
use ferrozyme_graph::memory::{plan_memory, print_plan};
use ferrozyme_graph::opt::{FOR_DEVICES, ON_DEMAND, PASSES, optimise, pass_named};
use ferrozyme_graph::{Def, Graph, Payload, Tensor, TensorType, parse, print, verify};
use ferrozyme_ir::print_module;
use std::fmt::Write;

/// One kind of check.
struct Check {
    /// The word behind `; test:`.
    name: &'static str,
    /// Its syntax and meaning.
    usage: &'static str,
    perform: fn(&str, &Directive) -> Result<Output, String>,
}

const CHECKS: &[Check] = &[
    Check {
        name: "print",
        usage: "print: the graph as text; it must read back to the same text",
        perform: print_graph,
    },
    Check {
        name: "parse-error",
        usage: "parse-error: why the text is no graph",
        perform: parse_error,
    },
    Check {
        name: "tree",
        usage: "tree: the graph as trees",
        perform: print_tree,
    },
    Check {
        name: "run",
        usage: "run: what is received and the parameters afterwards, with what `; feed: x = [1.0, 2.0]` lines feed",
        perform: run_graph,
    },
    Check {
        name: "pass",
        usage: "pass name [name…]: the graph after these passes, which must give the same results; `optimise` stands for all, again and again",
        perform: pass,
    },
    Check {
        name: "lower",
        usage: "lower: the graph as Loop IR, which must give the same results",
        perform: print_lowered,
    },
    Check {
        name: "fuse",
        usage: "fuse: the kernels after fusion, with their operations, and why each has a buffer",
        perform: print_fused,
    },
    Check {
        name: "memory",
        usage: "memory: where each tensor is after fusion, and the size of the arena",
        perform: print_memory,
    },
    Check {
        name: "backward",
        usage: "backward %y: the graph with the gradients of %y, which are received",
        perform: backward,
    },
    Check {
        name: "backward-error",
        usage: "backward-error %y: why %y has no gradient",
        perform: backward_error,
    },
    Check {
        name: "gradcheck",
        usage: "gradcheck %y: the gradients of %y by all parameters against finite differences, with what `; feed:` lines feed",
        perform: check_gradient,
    },
];

/// How many operations a run may take.
const STEP_LIMIT: u64 = 1_000_000;

/// As [`run`](crate::run), for a file that holds a graph.
pub fn run(text: &str, bless: bool) -> Result<Outcome, String> {
    let file = file::read(text)?;
    run_checks(text, &file, bless, |directive| {
        match CHECKS.iter().find(|check| check.name == directive.kind()) {
            Some(check) => (check.perform)(file.source, directive),
            None => Err(no_check(directive, CHECKS.iter().map(|check| check.usage))),
        }
    })
}

fn read(source: &str) -> Result<Graph, String> {
    let graph = parse(source).map_err(|error| format!("the text is no graph: {error}"))?;
    check(&graph)?;
    Ok(graph)
}

fn check(graph: &Graph) -> Result<(), String> {
    verify(graph).map_err(|error| format!("the graph is not well formed: {error}"))?;
    let text = print::print(graph);
    let again = parse(&text).map_err(|error| format!("{error} in\n{text}"))?;
    match print::print(&again) == text {
        true => Ok(()),
        false => Err(format!(
            "what was printed reads back as something else:\n{text}\n{again}"
        )),
    }
}

fn print_graph(source: &str, _: &Directive) -> Result<Output, String> {
    let text = print::print(&read(source)?);
    Ok(Output::Text(match same_program(source, &text) {
        true => "as written".to_owned(),
        false => text,
    }))
}

fn parse_error(source: &str, _: &Directive) -> Result<Output, String> {
    match parse(source) {
        Ok(_) => Err("the text is a graph after all".to_owned()),
        Err(error) => Ok(Output::Text(mark_error(source, &error))),
    }
}

fn print_tree(source: &str, _: &Directive) -> Result<Output, String> {
    Ok(Output::Text(read(source)?.tree()))
}

fn run_graph(source: &str, directive: &Directive) -> Result<Output, String> {
    let graph = read(source)?;
    let feeds = read_feeds(&graph, &directive.details)?;
    let (mut text, fault) = execute(&graph, feeds, STEP_LIMIT);
    if let Some(fault) = fault {
        let _ = writeln!(text, "fault: {fault}");
    }
    Ok(Output::Text(text))
}

/// What a pass that asks for floats of eight bits may change: two factors and their sum are rounded, here where products follow each other.
const SHORT_FLOATS: f64 = 1.0 / 64.0;

fn pass(source: &str, directive: &Directive) -> Result<Output, String> {
    let before = read(source)?;
    let mut graph = before.clone();
    let mut rounding: f64 = 0.0;
    for name in directive.arguments().split_whitespace() {
        if ON_DEMAND.iter().any(|&(other, _)| other == name) {
            rounding = SHORT_FLOATS;
        }
        match (name, pass_named(name)) {
            ("optimise", _) => drop(optimise(&mut graph)),
            (_, Some(pass)) => drop(pass(&mut graph)),
            (_, None) => {
                let known: Vec<&str> = PASSES
                    .iter()
                    .chain(ON_DEMAND)
                    .chain(FOR_DEVICES)
                    .map(|&(name, _)| name)
                    .collect();
                return Err(format!(
                    "`{name}` is no pass; these are: {}",
                    known.join(", ")
                ));
            }
        }
    }
    check(&graph)?;
    nearly_same_results(&before, &graph, rounding)?;
    Ok(Output::Text(print::print(&graph)))
}

fn print_lowered(source: &str, _: &Directive) -> Result<Output, String> {
    let graph = read(source)?;
    let fusion = Fusion::default();
    same_when_lowered(&graph, &fusion)?;
    Ok(Output::Text(print_module(&lower(&graph, &fusion).module)))
}

fn print_fused(source: &str, _: &Directive) -> Result<Output, String> {
    let graph = read(source)?;
    let (fusion, report) = fuse(&graph);
    same_when_lowered(&graph, &fusion)?;
    Ok(Output::Text(print_fusion(&graph, &fusion, &report)))
}

fn print_memory(source: &str, _: &Directive) -> Result<Output, String> {
    let graph = read(source)?;
    let (fusion, _) = fuse(&graph);
    same_when_planned(&graph, &fusion)?;
    let plan = plan_memory(&graph, &fusion);
    Ok(Output::Text(print_plan(&graph, &plan)))
}

/// The tensor of this name (`%y`), which must be visible at the end of the graph.
pub fn find_tensor(graph: &Graph, name: &str) -> Result<Tensor, String> {
    let tensor = name
        .strip_prefix('%')
        .and_then(|name| graph.tensor_named(name))
        .ok_or_else(|| format!("the graph has no tensor {name}"))?;
    let home = match graph.tensors[tensor].def {
        Def::Result(op, _) => graph.ops[op].region,
        Def::Argument(region, _) => region,
    };
    match home == graph.body() {
        true => Ok(tensor),
        false => Err(format!(
            "{name} belongs to a loop or branch: yield it from there"
        )),
    }
}

fn named(graph: &Graph, directive: &Directive) -> Result<Tensor, String> {
    find_tensor(graph, directive.arguments())
}

fn backward(source: &str, directive: &Directive) -> Result<Output, String> {
    let mut graph = read(source)?;
    let tensor = named(&graph, directive)?;
    add_gradients(&mut graph, tensor)?;
    check(&graph)?;
    Ok(Output::Text(print::print(&graph)))
}

fn backward_error(source: &str, directive: &Directive) -> Result<Output, String> {
    let mut graph = read(source)?;
    let tensor = named(&graph, directive)?;
    match add_gradients(&mut graph, tensor) {
        Ok(()) => Err("there is a gradient after all".to_owned()),
        Err(error) => Ok(Output::Text(error)),
    }
}

fn check_gradient(source: &str, directive: &Directive) -> Result<Output, String> {
    let graph = read(source)?;
    let tensor = named(&graph, directive)?;
    gradcheck(&graph, tensor, &read_feeds(&graph, &directive.details)?)?;
    Ok(Output::Passed)
}

/// What is received, the parameters afterwards, and the fault that ended the run, if one did.
pub fn execute(
    graph: &Graph,
    feeds: Vec<(String, Array)>,
    step_limit: u64,
) -> (String, Option<Fault>) {
    let mut machine = Machine::new(graph);
    machine.set_step_limit(step_limit);
    for (name, value) in feeds {
        machine.feed(&name, move || value.clone());
    }
    let mut out = String::new();
    let fault = machine.run().err();
    for (name, tensors) in machine.all_received() {
        let tensors: Vec<String> = tensors.iter().map(ToString::to_string).collect();
        let _ = writeln!(out, "{name}: {}", tensors.join(", "));
    }
    for (parameter, data) in &graph.parameters {
        let _ = writeln!(out, "@{}: {}", data.name, machine.parameter(parameter));
    }
    (out, fault)
}

fn read_feeds(graph: &Graph, details: &[Detail<'_>]) -> Result<Vec<(String, Array)>, String> {
    let read = |detail: &Detail<'_>| {
        read_feed(graph, detail.text).map_err(|message| format!("line {}: {message}", detail.line))
    };
    details.iter().map(read).collect()
}

/// Reads `x = [1.0, 2.0]` or `x = 1.0`, which has the type of the operation that is fed.
pub fn read_feed(graph: &Graph, text: &str) -> Result<(String, Array), String> {
    let (name, numbers) = text
        .split_once('=')
        .ok_or("a feed looks like `x = [1.0, 2.0]`")?;
    let name = name.trim();
    let mut found: Option<TensorType> = None;
    graph.for_each_op(graph.body(), &mut |_, op| {
        if let Payload::Feed(other, ty) = &graph.ops[op].payload
            && &**other == name
        {
            found = Some(ty.clone());
        }
    });
    let ty = found.ok_or_else(|| format!("the graph has no feed \"{name}\""))?;
    let mut scanner = Scanner::new(numbers);
    let mut values = Vec::new();
    if numbers.trim_start().starts_with('[') {
        scanner.expect("[")?;
        values = scanner.list("]", read_number)?;
    } else {
        let value = read_number(&mut scanner)?;
        values.resize(ty.shape.count(), value);
    }
    scanner.finish()?;
    if values.len() != ty.shape.count() {
        return Err(format!(
            "\"{name}\" is {ty} with {} elements, but {} were given",
            ty.shape.count(),
            values.len()
        ));
    }
    Ok((name.to_owned(), Array::new(ty, values)))
}

fn read_number(scanner: &mut Scanner<'_>) -> Result<f64, String> {
    let mut ahead = *scanner;
    match ahead.word().and_then(|word| word.parse().ok()) {
        Some(number) => {
            *scanner = ahead;
            Ok(number)
        }
        None => Err(scanner.complain("a number")),
    }
}
