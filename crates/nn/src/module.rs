//! Modules: what has parameters, under names.
//!
//! The name of a parameter is the path of fields that leads to it, as in safetensors files of other frameworks: `encoder.layers.0.norm1.weight`. `#[derive(Module)]` makes the paths of a struct;
//! fields of vectors, arrays and tuples are numbered. The name that a parameter has in its graph is another one: it need not follow the fields.

use ferrozyme_graph::Parameter;
use rustc_hash::FxHashSet;

/// Something with parameters.
///
/// ```
/// use ferrozyme_graph::Graph;
/// use ferrozyme_nn::{Linear, Module};
///
/// #[derive(Module)]
/// struct Model {
///     layers: Vec<Linear>,
///     head: Linear,
///     #[module(skip)]
///     scale: f64,
/// }
///
/// let mut g = Graph::new();
/// let model = Model {
///     layers: vec![Linear::new(&mut g, "first", 2, 3), Linear::without_bias(&mut g, "second", 3, 3)],
///     head: Linear::new(&mut g, "head", 3, 1),
///     scale: 0.5,
/// };
/// let names: Vec<String> = model.entries().into_iter().map(|entry| entry.name).collect();
/// assert_eq!(
///     names,
///     ["layers.0.weight", "layers.0.bias", "layers.1.weight", "head.weight", "head.bias"]
/// );
/// # let _ = model.scale;
/// ```
pub trait Module {
    /// Names its parts, in a fixed order.
    fn visit(&self, visitor: &mut Visitor);

    /// All parameters and states with their names, each once: under the first of its names.
    fn entries(&self) -> Vec<Entry> {
        let mut visitor = Visitor::default();
        self.visit(&mut visitor);
        let mut seen = FxHashSet::default();
        visitor.entries.retain(|entry| seen.insert(entry.parameter));
        visitor.entries
    }

    /// The parameters that are trained, each once.
    fn parameters(&self) -> Vec<Parameter> {
        let trained = self.entries().into_iter().filter(|entry| entry.trained);
        trained.map(|entry| entry.parameter).collect()
    }
}

/// A parameter of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The path to it.
    pub name: String,
    /// The parameter.
    pub parameter: Parameter,
    /// Whether it is trained. Others are states: moving averages, counters.
    pub trained: bool,
}

/// Collects the parameters of modules.
#[derive(Default)]
pub struct Visitor {
    path: Vec<String>,
    entries: Vec<Entry>,
}

impl Visitor {
    /// A part of this name.
    pub fn part<M: Module + ?Sized>(&mut self, name: &str, part: &M) {
        self.path.push(name.to_owned());
        part.visit(self);
        self.path.pop();
    }

    fn found(&mut self, parameter: Parameter, trained: bool) {
        self.entries.push(Entry {
            name: self.path.join("."),
            parameter,
            trained,
        });
    }
}

impl Module for Parameter {
    fn visit(&self, visitor: &mut Visitor) {
        visitor.found(*self, true);
    }
}

/// A parameter that no optimiser trains, but that is saved with the others: a moving average or a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State(pub Parameter);

impl Module for State {
    fn visit(&self, visitor: &mut Visitor) {
        visitor.found(self.0, false);
    }
}

impl<M: Module + ?Sized> Module for Box<M> {
    fn visit(&self, visitor: &mut Visitor) {
        (**self).visit(visitor);
    }
}

impl<M: Module> Module for Option<M> {
    fn visit(&self, visitor: &mut Visitor) {
        if let Some(part) = self {
            part.visit(visitor);
        }
    }
}

impl<M: Module> Module for [M] {
    fn visit(&self, visitor: &mut Visitor) {
        for (number, part) in self.iter().enumerate() {
            visitor.part(&number.to_string(), part);
        }
    }
}

impl<M: Module> Module for Vec<M> {
    fn visit(&self, visitor: &mut Visitor) {
        self[..].visit(visitor);
    }
}

impl<M: Module, const COUNT: usize> Module for [M; COUNT] {
    fn visit(&self, visitor: &mut Visitor) {
        self[..].visit(visitor);
    }
}
