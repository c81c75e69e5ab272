//! The graph as trees: each operation that has an effect, with the expression of its operands below it.
//!
//! A tensor that stands above already is only named, with `…`. For a program that multiplies a parameter by itself and stores the product:
//!
//! ```text
//! 0: for
//!     %0 = constant 10 : i32[]
//!   0: update @w
//!       %2 = fmul : f32[2]
//!         %1 = parameter @w : f32[2]
//!         %1 …
//! ```

use crate::graph::{Graph, Op, Region, Tensor};
use crate::print::{Names, describe};
use cranelift_entity::EntitySet;
use std::fmt::Write;

/// The graph as trees.
pub fn print_tree(graph: &Graph) -> String {
    let mut tree = Tree {
        graph,
        names: Names::of(graph),
        shown: EntitySet::new(),
        out: String::new(),
    };
    tree.region(graph.body(), 0);
    tree.out
}

impl Graph {
    /// The graph as trees: each operation that has an effect, with the expression of its operands below it.
    pub fn tree(&self) -> String {
        print_tree(self)
    }
}

struct Tree<'g> {
    graph: &'g Graph,
    names: Names,
    /// Tensors that stand above.
    shown: EntitySet<Tensor>,
    out: String,
}

impl Tree<'_> {
    fn region(&mut self, region: Region, depth: usize) {
        let data = &self.graph.regions[region];
        let is_root = |op: &&Op| {
            let data = &self.graph.ops[**op];
            data.results.is_empty() || !data.regions.is_empty()
        };
        let roots: Vec<Op> = data.ops.iter().filter(is_root).copied().collect();
        for (number, op) in roots.into_iter().enumerate() {
            let results = self.results(op);
            self.line(
                depth,
                &format!("{number}: {results}{}", describe(self.graph, op)),
            );
            self.below(op, depth);
        }
        if !data.results.is_empty() {
            self.line(depth, "yield");
            for &result in &data.results {
                self.tensor(result, depth + 2);
            }
        }
    }

    /// The operands and regions of an operation.
    fn below(&mut self, op: Op, depth: usize) {
        let data = &self.graph.ops[op];
        for &result in &data.results {
            self.shown.insert(result);
        }
        for &operand in &data.operands {
            self.tensor(operand, depth + 2);
        }
        for (&region, word) in data.regions.iter().zip(data.opcode.row().regions) {
            if !word.is_empty() {
                self.line(depth, word);
            }
            self.region(region, depth + 1);
        }
    }

    fn tensor(&mut self, tensor: Tensor, depth: usize) {
        let name = self.names.get(tensor).to_owned();
        if self.shown.contains(tensor) {
            return self.line(depth, &format!("{name} …"));
        }
        self.shown.insert(tensor);
        match self.graph.def_op(tensor) {
            None => self.line(depth, &format!("{name} : {}", self.graph.ty(tensor))),
            Some(op) => {
                // With the other results, if it has more.
                let results = self.graph.ops[op].results.iter();
                let types: Vec<String> = results
                    .clone()
                    .map(|&result| self.graph.ty(result).to_string())
                    .collect();
                self.shown.extend(results.copied());
                let (names, what) = (self.results(op), describe(self.graph, op));
                self.line(depth, &format!("{names}{what} : {}", types.join(", ")));
                for &operand in &self.graph.ops[op].operands {
                    self.tensor(operand, depth + 1);
                }
            }
        }
    }

    fn results(&self, op: Op) -> String {
        let results = &self.graph.ops[op].results;
        if results.is_empty() {
            return String::new();
        }
        let names: Vec<&str> = results
            .iter()
            .map(|&result| self.names.get(result))
            .collect();
        format!("{} = ", names.join(", "))
    }

    fn line(&mut self, depth: usize, text: &str) {
        let indentation = "  ".repeat(depth);
        writeln!(self.out, "{indentation}{text}").expect("writing to a string does not fail");
    }
}
