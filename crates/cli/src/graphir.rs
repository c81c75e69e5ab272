//! The tool `graphir`: one subcommand for each operation on a text file of a tensor graph.
//!
//! Each command is a function from its arguments to the text it prints; only `main` writes.

use crate::source::{read_text, show_parse_error};
use clap::{Args, Parser, Subcommand};
use ferrozyme_filetest::graph::{add_gradients, execute, find_tensor, read_feed};
use ferrozyme_graph::fuse::{fuse, print_fusion};
use ferrozyme_graph::lower::lower_planned;
use ferrozyme_graph::memory::{fit_memory, plan_memory, print_plan};
use ferrozyme_graph::opt::optimise;
use ferrozyme_graph::print::print;
use ferrozyme_graph::{Graph, parse, verify};
use ferrozyme_ir::print_module;
use std::path::PathBuf;

/// Prints, differentiates, fuses, plans, lowers and runs text files of tensor graphs.
#[derive(Parser, Debug)]
#[command(name = "graphir", version, after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  graphir tree model.fzg
  graphir differentiate model.fzg %loss
  graphir plan --optimise model.fzg
  graphir plan --optimise --budget 100000 model.fzg
  graphir run model.fzg --feed 'x = [1.0, 2.0]' --feed 'scale = 0.5'

A file named `-` is the standard input, so that commands can be chained:
  graphir differentiate model.fzg %loss | graphir kernels --optimise -";

#[derive(Subcommand, Debug)]
enum Command {
    /// Prints a graph in canonical form.
    Print(Source),
    /// Prints each operation that has an effect, with the expression of its operands below it.
    Tree(Source),
    /// Prints a graph with the gradients of a tensor by all parameters, which are received.
    Differentiate {
        #[command(flatten)]
        source: Source,
        /// The tensor, such as `%loss`; of its elements, the sum is differentiated.
        tensor: String,
    },
    /// Prints the kernels, the operations that are fused into each, and why its result has a buffer.
    Fuse(Source),
    /// Prints where each tensor is in memory, and how much that takes.
    Plan {
        #[command(flatten)]
        source: Source,
        /// The most bytes that tensors may take: values are computed again to keep it.
        #[arg(long, value_name = "BYTES")]
        budget: Option<usize>,
    },
    /// Prints the kernels as Loop IR, with the function that calls them.
    Kernels(Source),
    /// Runs a graph in the interpreter; prints what is received, and the parameters afterwards.
    Run {
        #[command(flatten)]
        source: Source,
        /// What is fed under a name each time: `x = [1.0, 2.0]`, or `x = 1.0` for all elements.
        #[arg(long = "feed", value_name = "FEED")]
        feeds: Vec<String>,
        /// Stops after this many operations.
        #[arg(long, default_value_t = 1_000_000_000)]
        steps: u64,
    },
}

#[derive(Args, Debug)]
struct Source {
    /// The file, or `-` for the standard input.
    file: PathBuf,
    /// Runs all passes first.
    #[arg(long)]
    optimise: bool,
}

impl Source {
    /// The graph in the file, which must parse and verify.
    fn read(&self) -> Result<Graph, String> {
        let text = read_text(&self.file)?;
        let mut graph =
            parse(&text).map_err(|error| show_parse_error(&self.file, &text, &error))?;
        verify(&graph).map_err(|error| format!("error: {error}"))?;
        if self.optimise {
            optimise(&mut graph);
        }
        Ok(graph)
    }
}

/// Runs the command line; returns the text to print, or an error.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    match &arguments.command {
        Command::Print(source) => Ok(print(&source.read()?)),
        Command::Tree(source) => Ok(source.read()?.tree()),
        Command::Differentiate { source, tensor } => differentiate(source, tensor),
        Command::Fuse(source) => {
            let graph = source.read()?;
            let (fusion, report) = fuse(&graph);
            Ok(print_fusion(&graph, &fusion, &report))
        }
        Command::Plan { source, budget } => plan(source, *budget),
        Command::Kernels(source) => {
            let graph = source.read()?;
            let (fusion, _) = fuse(&graph);
            let plan = plan_memory(&graph, &fusion);
            let lowered = lower_planned(&graph, &fusion, &plan);
            Ok(print_module(&lowered.module))
        }
        Command::Run {
            source,
            feeds,
            steps,
        } => {
            let graph = source.read()?;
            let feeds: Result<Vec<_>, String> =
                feeds.iter().map(|feed| read_feed(&graph, feed)).collect();
            let feeds = feeds.map_err(|message| format!("error: {message}"))?;
            match execute(&graph, feeds, *steps) {
                (text, None) => Ok(text),
                (_, Some(fault)) => Err(format!("error: {fault}")),
            }
        }
    }
}

fn plan(source: &Source, budget: Option<usize>) -> Result<String, String> {
    let mut graph = source.read()?;
    let mut text = String::new();
    if let Some(budget) = budget {
        let fitted = fit_memory(&mut graph, budget).map_err(|error| format!("error: {error}"))?;
        text += &format!("{fitted}\n");
    }
    let (fusion, _) = fuse(&graph);
    text += &print_plan(&graph, &plan_memory(&graph, &fusion));
    Ok(text)
}

fn differentiate(source: &Source, tensor: &str) -> Result<String, String> {
    let mut graph = source.read()?;
    let add = |graph: &mut Graph| {
        let found = find_tensor(graph, tensor)?;
        match graph.ty(found).is_float() {
            true => add_gradients(graph, found),
            false => Err(format!(
                "{tensor} is {}: only floats have gradients",
                graph.ty(found)
            )),
        }
    };
    add(&mut graph).map_err(|message| format!("error: {message}"))?;
    Ok(print(&graph))
}
