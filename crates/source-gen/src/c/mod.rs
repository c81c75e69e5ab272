//! Random C functions.
//!
//! A program is one file that is included into a unit: a root function of a few doubles, the functions, types and tables that it uses, and three functions by which the harness asks for its value,
//! gradient and directional derivative. Names of file scope are written `P(name)`, which the unit makes different for each program.

mod floats;
mod helpers;
mod idioms;
mod statements;
mod writer;

use crate::program::Program;
use crate::tree::Tree;
use crate::trees;
use writer::{Kind, Variable, Writer};

/// How a number is written.
pub const NUMBER: &str = "0.7";

/// What units include first: the library and the functions that check.
pub const HARNESS: &str = include_str!("harness.h");

/// Makes the program of a seed.
pub fn generate(seed: u64) -> Program {
    let mut writer = Writer::new(seed);
    let inputs = 2 + writer.random.below(3);
    let interface = writer.choose(&[
        (50, Interface::Pointer),
        (20, Interface::Doubles),
        (20, Interface::Output),
        (10, Interface::InPlace),
    ]);
    let root = writer.root(interface, inputs);
    let mut parts = std::mem::take(&mut writer.items);
    parts.push(root);
    parts.push(interface.calls(inputs).into());
    Program {
        seed,
        inputs,
        tree: Tree::List(parts),
    }
}

/// How the root takes its inputs and returns its results.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Interface {
    /// `double root(const double *x)`.
    Pointer,
    /// `double root(double x0, double x1, …)`.
    Doubles,
    /// `void root(const double *x, double *y)`.
    Output,
    /// `double root(double *x)`, which changes its argument.
    InPlace,
}

impl Interface {
    /// The functions that the harness calls.
    fn calls(self, inputs: usize) -> String {
        let all =
            |text: &dyn Fn(usize) -> String| (0..inputs).map(text).collect::<Vec<_>>().join(", ");
        match self {
            Interface::Pointer => "
static double P(value)(const double *x) { return P(root)(x); }
static double P(gradient)(const double *x, double *d) { __enzyme_autodiff((void *)P(root), enzyme_dup, x, d); return P(root)(x); }
static double P(tangent)(const double *x, const double *d) { return __enzyme_fwddiff((void *)P(root), enzyme_dup, x, d); }
"
            .to_owned(),
            Interface::InPlace => "
static double P(value)(const double *x) { double c[8]; memcpy(c, x, sizeof c); return P(root)(c); }
static double P(gradient)(const double *x, double *d) { double c[8]; memcpy(c, x, sizeof c); __enzyme_autodiff((void *)P(root), enzyme_dup, c, d); return P(value)(x); }
static double P(tangent)(const double *x, const double *d) { double c[8], e[8]; memcpy(c, x, sizeof c); memcpy(e, d, sizeof e); return __enzyme_fwddiff((void *)P(root), enzyme_dup, c, e); }
"
            .to_owned(),
            Interface::Doubles => {
                let x = all(&|index| format!("x[{index}]"));
                let pairs = all(&|index| format!("enzyme_dup, x[{index}], d[{index}]"));
                let fields = all(&|index| format!("d{index}"));
                let store: String = (0..inputs)
                    .map(|index| format!("d[{index}] += g.d{index}; "))
                    .collect();
                format!(
                    "
struct P(gradients) {{ double {fields}; }};
extern struct P(gradients) P(__enzyme_autodiff)(void *, ...);
static double P(value)(const double *x) {{ return P(root)({x}); }}
static double P(gradient)(const double *x, double *d) {{ struct P(gradients) g = P(__enzyme_autodiff)((void *)P(root), {x}); {store}return P(root)({x}); }}
static double P(tangent)(const double *x, const double *d) {{ return __enzyme_fwddiff((void *)P(root), {pairs}); }}
"
                )
            }
            Interface::Output => "
static double P(value)(const double *x) { double y[3] = {0.1, 0.2, 0.3}; P(root)(x, y); return weighted(y); }
static double P(gradient)(const double *x, double *d) {
  double y[3] = {0.1, 0.2, 0.3}, s[3] = {1.0, -0.6, 0.4};
  __enzyme_autodiff((void *)P(root), enzyme_dup, x, d, enzyme_dup, y, s);
  return weighted(y);
}
static double P(tangent)(const double *x, const double *d) {
  double y[3] = {0.1, 0.2, 0.3}, s[3] = {0};
  __enzyme_fwddiff((void *)P(root), enzyme_dup, x, d, enzyme_dup, y, s);
  return weighted(s);
}
"
            .to_owned(),
        }
    }
}

impl Writer {
    fn root(&mut self, interface: Interface, inputs: usize) -> Tree {
        let (head, doubles) = match interface {
            Interface::Pointer => ("double P(root)(const double *x", None),
            Interface::InPlace => ("double P(root)(double *x", None),
            Interface::Output => ("void P(root)(const double *x, double *y", None),
            Interface::Doubles => ("double P(root)(", Some(inputs)),
        };
        let mut head = head.to_owned();
        match doubles {
            Some(count) => {
                let all: Vec<String> = (0..count).map(|index| format!("double x{index}")).collect();
                head.push_str(&all.join(", "));
                for index in 0..count {
                    self.bind(format!("x{index}"), Kind::Double, false);
                }
            }
            None => {
                let mutable = interface == Interface::InPlace;
                self.bind("x", Kind::Doubles(inputs), mutable);
            }
        }
        if interface == Interface::Output {
            self.bind("y", Kind::Doubles(3), true);
        } else {
            self.scope.result = Some(Kind::Double);
        }
        self.some_globals();
        let first = self.double(2);
        let name = self.name("v");
        self.bind(name.clone(), Kind::Double, true);
        let mut body = trees![Tree::Optional(trees![
            "double ",
            Tree::Define(name),
            " = ",
            first,
            ";\n"
        ])];
        let count = 2 + self.random.below(5);
        body.extend(self.statements(count, 2));
        match interface {
            Interface::Output => {
                let value = self.summary();
                body.extend(trees![
                    "y[1] = ",
                    value,
                    ";\ny[0] = sin(y[0] + y[2] * y[1]);\n"
                ]);
                for owned in self.scope.owned.clone().iter().rev() {
                    body.push(Tree::Optional(trees![format!("free({owned});\n")]));
                }
            }
            _ => body.extend(self.ending(&Kind::Double)),
        }
        let mut parts = trees![head, ") {\n"];
        // Nothing stays from one call to the next.
        for Variable { place, kind, .. } in self.globals.clone() {
            parts.push(match kind {
                Kind::Double => Tree::Optional(trees![format!("{place} = 0.2;\n")]),
                _ => Tree::Optional(trees![format!(
                    "for (int i = 0; i < 4; i++) {place}[i] = 0.1 * i;\n"
                )]),
            });
        }
        parts.extend(body);
        parts.push("}\n".into());
        Tree::List(trees!["static ", parts])
    }

    /// Global variables that functions read and write.
    fn some_globals(&mut self) {
        for _ in 0..2 {
            if self.random.percent(70) {
                continue;
            }
            let name = self.name("global");
            let array = self.random.percent(50);
            let parts = trees![
                "static double P(",
                Tree::Define(name.clone()),
                if array { ")[4];\n" } else { ");\n" }
            ];
            self.item(&name, parts);
            self.globals.push(Variable {
                place: format!("P({name})"),
                kind: if array {
                    Kind::Doubles(4)
                } else {
                    Kind::Double
                },
                mutable: true,
            });
        }
    }
}
