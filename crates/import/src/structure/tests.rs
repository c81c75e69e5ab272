//! Graphs by hand with the expected form, and random graphs that must do the same in both forms.
//!
//! In both, a block tells a tape what it has seen (its number and a mixture of its parameters and of the values it uses), and
//! asks another tape how to go on.

mod random;
mod shapes;

use super::{Block, Edge, End, Graph, Name, Operand, StructureError, Translate, Writer, structure};
use ferrozyme_ir::interpret::{Datum, Machine};
use ferrozyme_ir::{
    Function, FunctionId, IntPredicate, Location, Module, Opcode, Type, verify_module,
};
use std::cell::RefCell;

/// Blocks that note what they see and ask how to go on.
///
/// A block defines two values: its mixture, and the answer (as a number, or as a truth value if it ends in a branch).
struct Notes<'a> {
    graph: &'a Graph,
    note: FunctionId,
    ask: FunctionId,
}

impl Translate for Notes<'_> {
    type Error = std::convert::Infallible;

    fn block(&mut self, writer: &mut Writer<'_>, block: u32) -> Result<(), Self::Error> {
        let data = &self.graph.blocks[block as usize];
        let mut mixture = writer.function.int(Type::I64, i128::from(block));
        for &name in data.params.iter().chain(&data.uses) {
            let value = writer.read(name);
            let mut builder = writer.builder();
            let factor = builder.i64(31);
            let product = builder.binary(Opcode::Mul, mixture, factor);
            mixture = builder.binary(Opcode::Add, product, value);
        }
        let mut builder = writer.builder();
        let number = builder.i64(i64::from(block));
        builder.call(self.note, &[number, mixture], &[]);
        writer.define(data.defines[0], mixture);
        if let Some(&answer) = data.defines.get(1) {
            let mut builder = writer.builder();
            let call = builder.call(self.ask, &[], &[Type::I64]);
            let mut value = builder.function.result(call);
            if matches!(data.end, End::Branch(..)) {
                let zero = builder.i64(0);
                value = builder.icmp(IntPredicate::Ne, value, zero);
            }
            writer.define(answer, value);
        }
        Ok(())
    }

    fn trap(&mut self, writer: &mut Writer<'_>, _: u32) -> Result<(), Self::Error> {
        writer.builder().trap("end");
        Ok(())
    }

    fn location(&mut self, _: u32) -> Option<Location> {
        None
    }
}

/// A module whose first function is the graph in structured form.
fn structured(
    graph: &Graph,
    results: usize,
) -> Result<Module, StructureError<std::convert::Infallible>> {
    let mut module = Module::new();
    let main = module
        .functions
        .push(Function::define("main", vec![], vec![Type::I64; results]));
    let params = vec![Type::I64.into(), Type::I64.into()];
    let note = module
        .functions
        .push(Function::declare("note", params, vec![]));
    let ask = module
        .functions
        .push(Function::declare("ask", vec![], vec![Type::I64]));
    let mut notes = Notes { graph, note, ask };
    structure(graph.clone(), &mut module.functions[main], &mut notes)?;
    verify_module(&module).unwrap_or_else(|errors| panic!("{errors:?}"));
    Ok(module)
}

/// What a run leaves behind: the notes, and the results if it came to its end.
type Outcome = (Vec<(i64, i64)>, Option<Vec<i64>>);

/// Runs a module with these answers; it stops when there are no more.
fn run_structured(module: &Module, answers: &[i64]) -> Outcome {
    let noted = RefCell::new(Vec::new());
    let notes = &noted;
    let mut left = answers.iter().copied();
    let main = module.function_named("main").expect("it was made");
    let result = {
        let number = |datum: &Datum| datum.as_i64().expect("an i64 that is defined");
        let mut machine = Machine::new(module);
        machine.define_external(
            "note",
            Box::new(move |_, args| {
                notes
                    .borrow_mut()
                    .push((number(&args[0]), number(&args[1])));
                Ok(vec![])
            }),
        );
        machine.define_external(
            "ask",
            Box::new(move |_, _| match left.next() {
                Some(answer) => Ok(vec![Datum::i64(answer)]),
                None => Err("enough".to_owned()),
            }),
        );
        machine.set_step_limit(20_000);
        machine.call(main, &[])
    };
    let results = match result {
        Ok(values) => Some(
            values
                .iter()
                .map(|value| value.as_i64().expect("defined"))
                .collect(),
        ),
        Err(fault) => {
            let text = fault.to_string();
            let expected = ["enough", "end", "step limit"]
                .iter()
                .any(|part| text.contains(part));
            assert!(expected, "{text}");
            None
        }
    };
    (noted.into_inner(), results)
}

/// Runs a graph with these answers.
fn run_graph(graph: &Graph, answers: &[i64]) -> Outcome {
    let mut notes = Vec::new();
    let mut left = answers.iter().copied();
    let mut values: Vec<i64> = vec![0; graph.types.len()];
    let mut block = 0;
    for _ in 0..2_000 {
        let data = &graph.blocks[block];
        let mut mixture = block as i64;
        for &name in data.params.iter().chain(&data.uses) {
            mixture = mixture.wrapping_mul(31).wrapping_add(values[name as usize]);
        }
        notes.push((block as i64, mixture));
        values[data.defines[0] as usize] = mixture;
        let mut answer = 0;
        if let Some(&name) = data.defines.get(1) {
            let Some(given) = left.next() else {
                return (notes, None);
            };
            answer = given;
            values[name as usize] = answer;
        }
        let read = |operand: &Operand| match *operand {
            Operand::Named(name) => values[name as usize],
            Operand::Constant(_) => panic!("the graphs here have no constants"),
        };
        let edge = match &data.end {
            End::Jump(edge) => edge,
            End::Branch(_, edges) => &edges[usize::from(answer == 0)],
            End::Switch(_, cases, edges) => {
                let answer = i128::from(answer);
                let position = cases.iter().position(|case| case.contains(&answer));
                &edges[position.unwrap_or(cases.len())]
            }
            End::Return(operands) => {
                let results = operands.iter().map(read).collect();
                return (notes, Some(results));
            }
            End::Trap => return (notes, None),
        };
        let args: Vec<i64> = edge.args.iter().map(read).collect();
        for (&param, arg) in graph.blocks[edge.target as usize].params.iter().zip(args) {
            values[param as usize] = arg;
        }
        block = edge.target as usize;
    }
    (notes, None)
}

/// Compares both forms on some answers. Endless runs without questions are cut off in both, so only their start is compared.
fn check_same(graph: &Graph, module: &Module, answers: &[i64]) {
    let (graph_notes, graph_results) = run_graph(graph, answers);
    let (notes, results) = run_structured(module, answers);
    let common = graph_notes.len().min(notes.len());
    assert!(graph_notes.len() == notes.len() || common > 100);
    assert_eq!(graph_notes[..common], notes[..common]);
    assert_eq!(graph_results, results);
}

/// Builds graphs whose blocks have the values that [`Notes`] expects.
#[derive(Default)]
struct Sketch {
    graph: Graph,
}

impl Sketch {
    fn name(&mut self, ty: Type) -> Name {
        self.graph.types.push(ty);
        self.graph.types.len() as Name - 1
    }

    /// A block with some parameters, for now with a trap at its end.
    fn block(&mut self, params: usize) -> u32 {
        let params = (0..params).map(|_| self.name(Type::I64)).collect();
        let mixture = self.name(Type::I64);
        self.graph.blocks.push(Block {
            params,
            uses: Vec::new(),
            defines: vec![mixture],
            end: End::Trap,
            small: true,
        });
        self.graph.blocks.len() as u32 - 1
    }

    fn mixture(&self, block: u32) -> Name {
        self.graph.blocks[block as usize].defines[0]
    }

    fn edge(&self, target: u32, args: &[Name]) -> Edge {
        Edge {
            target,
            args: args.iter().map(|&name| Operand::Named(name)).collect(),
        }
    }

    fn jump(&mut self, from: u32, target: u32, args: &[Name]) {
        self.graph.blocks[from as usize].end = End::Jump(self.edge(target, args));
    }

    fn branch(&mut self, from: u32, then: (u32, &[Name]), otherwise: (u32, &[Name])) {
        let answer = self.name(Type::I1);
        let edges = [
            self.edge(then.0, then.1),
            self.edge(otherwise.0, otherwise.1),
        ];
        let block = &mut self.graph.blocks[from as usize];
        block.defines.push(answer);
        block.end = End::Branch(Operand::Named(answer), edges);
    }

    fn switch(&mut self, from: u32, targets: &[(u32, &[Name])]) {
        let answer = self.name(Type::I64);
        let edges: Vec<Edge> = targets
            .iter()
            .map(|(to, args)| self.edge(*to, args))
            .collect();
        let cases = (0..edges.len() as i128 - 1)
            .map(|case| vec![case])
            .collect();
        let block = &mut self.graph.blocks[from as usize];
        block.defines.push(answer);
        block.end = End::Switch(Operand::Named(answer), cases, edges);
    }

    fn ret(&mut self, from: u32, values: &[Name]) {
        let values = values.iter().map(|&name| Operand::Named(name)).collect();
        self.graph.blocks[from as usize].end = End::Return(values);
    }
}

/// The structured form without notes and mixtures.
fn form_of(module: &Module) -> String {
    let text = ferrozyme_ir::print_module(module);
    let main = text.split("\n\n").find(|part| part.contains("@main"));
    let lines = main.unwrap_or_default().lines();
    let told = |line: &&str| {
        ![" mul i64", " add i64", "@note"]
            .iter()
            .any(|part| line.contains(part))
    };
    lines.filter(told).map(|line| format!("{line}\n")).collect()
}
