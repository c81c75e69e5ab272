//! Random Rust functions.
//!
//! A program is one module: a root function of a few floats, the functions, types and constants that it uses, and three functions by which the harness asks for its value, gradient and
//! directional derivative. Values stay bounded, so that finite differences can be trusted; branches compare with numbers that the inputs are not likely to be near.

mod changes;
mod floats;
mod folds;
mod helpers;
mod statements;
mod types;
mod values;
mod words;
mod writer;

use crate::program::Program;
use crate::tree::Tree;
use crate::trees;
use types::Type;
use writer::{Variable, Writer};

/// How a number is written, where the type of a literal alone may not be known.
pub const NUMBER: &str = "0.7_f64";

/// The program that calls the functions of all modules.
pub const HARNESS: &str = include_str!("harness.rs");

/// Makes the program of a seed.
pub fn generate(seed: u64) -> Program {
    let mut writer = Writer::new(seed);
    let inputs = 2 + writer.random.below(3);
    let interface = writer.choose(&[
        (50, Interface::Slice),
        (15, Interface::Floats),
        (15, Interface::Output),
        (12, Interface::InPlace),
        (8, Interface::Closure),
    ]);
    let root = writer.root(interface, inputs);
    let mut parts = trees![
        "use ferrozyme::{autodiff_forward, autodiff_reverse};\nuse std::cell::RefCell;\nuse std::rc::Rc;\n"
    ];
    parts.append(&mut writer.items);
    parts.push(root);
    parts.push(interface.calls(inputs).into());
    Program {
        seed,
        inputs,
        tree: Tree::List(parts),
    }
}

/// How the root takes its inputs and returns its results.
#[derive(Clone, Copy, Debug)]
enum Interface {
    /// `(x: &[f64]) -> f64`.
    Slice,
    /// `(x0: f64, x1: f64, …) -> f64`.
    Floats,
    /// `(x: &[f64], y: &mut [f64])`.
    Output,
    /// `(x: &mut [f64]) -> f64`.
    InPlace,
    /// A closure that is passed to `grad` and `jvp`.
    Closure,
}

impl Interface {
    /// The functions that the harness calls.
    fn calls(self, inputs: usize) -> String {
        match self {
            Interface::Slice => "
pub fn value(x: &[f64]) -> f64 { root(x) }
pub fn gradient(x: &[f64]) -> (f64, Vec<f64>) { let mut d = vec![0.0; x.len()]; let v = d_root(x, &mut d, 1.0); (v, d) }
pub fn tangent(x: &[f64], dx: &[f64]) -> (f64, f64) { t_root(x, dx) }
"
            .to_owned(),
            Interface::Floats => {
                let all = |text: &dyn Fn(usize) -> String| {
                    (0..inputs).map(text).collect::<Vec<_>>().join(", ")
                };
                let x = all(&|index| format!("x[{index}]"));
                let pairs = all(&|index| format!("x[{index}], dx[{index}]"));
                let d = all(&|index| format!("d{index}"));
                format!(
                    "
pub fn value(x: &[f64]) -> f64 {{ root({x}) }}
pub fn gradient(x: &[f64]) -> (f64, Vec<f64>) {{ let (v, {d}) = d_root({x}, 1.0); (v, vec![{d}]) }}
pub fn tangent(x: &[f64], dx: &[f64]) -> (f64, f64) {{ t_root({pairs}) }}
"
                )
            }
            Interface::Output => "
const SEEDS: [f64; 3] = [1.0, -0.6, 0.4];
fn weighted(y: &[f64]) -> f64 { y.iter().zip(SEEDS).map(|(y, w)| y * w).sum() }
pub fn value(x: &[f64]) -> f64 { let mut y = [0.1, 0.2, 0.3]; root(x, &mut y); weighted(&y) }
pub fn gradient(x: &[f64]) -> (f64, Vec<f64>) {
    let (mut d, mut y, mut dy) = (vec![0.0; x.len()], [0.1, 0.2, 0.3], SEEDS);
    d_root(x, &mut d, &mut y, &mut dy);
    (weighted(&y), d)
}
pub fn tangent(x: &[f64], dx: &[f64]) -> (f64, f64) {
    let (mut y, mut dy) = ([0.1, 0.2, 0.3], [0.0; 3]);
    t_root(x, dx, &mut y, &mut dy);
    (weighted(&y), weighted(&dy))
}
"
            .to_owned(),
            Interface::InPlace => "
pub fn value(x: &[f64]) -> f64 { root(&mut x.to_vec()) }
pub fn gradient(x: &[f64]) -> (f64, Vec<f64>) {
    let (mut x, mut d) = (x.to_vec(), vec![0.0; x.len()]);
    let v = d_root(&mut x, &mut d, 1.0);
    (v, d)
}
pub fn tangent(x: &[f64], dx: &[f64]) -> (f64, f64) { t_root(&mut x.to_vec(), &mut dx.to_vec()) }
"
            .to_owned(),
            Interface::Closure => "
pub fn value(x: &[f64]) -> f64 { root(x, 0.3) }
pub fn gradient(x: &[f64]) -> (f64, Vec<f64>) { let k = 0.3; ferrozyme::value_and_grad(|x: &[f64]| root(x, k), x) }
pub fn tangent(x: &[f64], dx: &[f64]) -> (f64, f64) { let k = 0.3; ferrozyme::jvp(|x: &[f64]| root(x, k), x, dx) }
"
            .to_owned(),
        }
    }
}

impl Writer {
    fn root(&mut self, interface: Interface, inputs: usize) -> Tree {
        let mut bind = |place: String, of: Type, mutable: bool| {
            self.scope.variables.push(Variable { place, of, mutable });
        };
        let slice = || Type::Slice(Box::new(Type::Float));
        let (attributes, signature) = match interface {
            Interface::Slice => {
                bind("(*x)".into(), slice(), false);
                (
                    "Duplicated, Active|Dual, Dual".to_owned(),
                    "x: &[f64]) -> f64".to_owned(),
                )
            }
            Interface::Floats => {
                let names: Vec<String> =
                    (0..inputs).map(|index| format!("x{index}: f64")).collect();
                for index in 0..inputs {
                    bind(format!("x{index}"), Type::Float, false);
                }
                (
                    format!(
                        "{0}Active|{1}Dual",
                        "Active, ".repeat(inputs),
                        "Dual, ".repeat(inputs)
                    ),
                    format!("{}) -> f64", names.join(", ")),
                )
            }
            Interface::Output => {
                bind("(*x)".into(), slice(), false);
                bind("(*y)".into(), slice(), true);
                (
                    "Duplicated, Duplicated|Dual, Dual".to_owned(),
                    "x: &[f64], y: &mut [f64])".to_owned(),
                )
            }
            Interface::InPlace => {
                bind("(*x)".into(), slice(), true);
                (
                    "Duplicated, Active|Dual, Dual".to_owned(),
                    "x: &mut [f64]) -> f64".to_owned(),
                )
            }
            Interface::Closure => {
                bind("(*x)".into(), slice(), false);
                bind("captured".into(), Type::Float, false);
                (String::new(), "x: &[f64], captured: f64) -> f64".to_owned())
            }
        };
        let returns = !matches!(interface, Interface::Output);
        self.scope.result = returns.then_some(Type::Float);
        if !matches!(interface, Interface::Floats) {
            for index in 0..inputs {
                // Those that are changed are reached by the slice alone.
                if !matches!(interface, Interface::InPlace) && index < 2 {
                    bind_place(self, format!("x[{index}]"));
                }
            }
        }
        let sum = self.binding_of(&Type::Float);
        let count = 2 + self.random.below(5);
        let mut statements = vec![Tree::Optional(vec![sum])];
        statements.extend(self.statements(count, 2));
        let result = self.bounded_result();
        let mut parts = Vec::new();
        if let Some((reverse, forward)) = attributes.split_once('|') {
            parts.push(
                format!(
                    "#[autodiff_reverse(d_root, {reverse})]\n#[autodiff_forward(t_root, {forward})]\n"
                )
                .into(),
            );
        }
        parts.push(format!("fn root({signature} {{\n").into());
        parts.extend(statements);
        match returns {
            true => parts.push(result),
            false => parts.extend(trees![
                "y[1] = ",
                result,
                ";\ny[0] = (y[0] + y[2] * y[1]).sin();"
            ]),
        }
        parts.push("\n}\n".into());
        Tree::List(parts)
    }
}

fn bind_place(writer: &mut Writer, place: String) {
    writer.scope.variables.push(Variable {
        place,
        of: Type::Float,
        mutable: false,
    });
}
