//! Statements and blocks of them.

use super::types::Type;
use super::writer::{Variable, Writer};
use crate::tree::Tree;
use crate::trees;

impl Writer {
    /// Several statements. Variables that they define stay in scope.
    pub(super) fn statements(&mut self, count: usize, depth: usize) -> Vec<Tree> {
        (0..count)
            .map(|_| {
                let statement = self.statement(depth);
                match statement {
                    Tree::Around { .. } => statement,
                    _ => Tree::Optional(vec![statement]),
                }
            })
            .collect()
    }

    /// Statements in a scope of their own.
    fn block(&mut self, depth: usize) -> Vec<Tree> {
        let (variables, callables) = (self.scope.variables.len(), self.scope.callables.len());
        let count = 1 + self.random.below(2);
        let statements = self.statements(count, depth);
        self.scope.variables.truncate(variables);
        self.scope.callables.truncate(callables);
        statements
    }

    fn statement(&mut self, depth: usize) -> Tree {
        if !self.spend() {
            let float = self.float(0);
            return self.accumulated(float);
        }
        let nested = if depth > 0 { 1 } else { 0 };
        match self.choose(&[
            (34, 0),
            (34, 1),
            (10, 2),
            (10 * nested, 3),
            (8 * nested, 4),
            (5 * nested, 5),
            (4 * nested, 6),
            (6, 7),
            (8, 8),
            (5, 9),
            (4 * nested, 10),
            (5, 11),
            (4, 12),
        ]) {
            0 => self.binding(),
            1 => {
                match self.variable(|_, variable| variable.mutable && variable.of != Type::Float) {
                    Some(variable) => self.change(&variable.of, &variable.place, 3),
                    None => self.binding(),
                }
            }
            2 => {
                let float = self.float(3);
                self.accumulated(float)
            }
            3 => self.for_loop(depth),
            4 => self.if_else(depth),
            5 => self.while_loop(depth),
            6 => self.take_apart(depth),
            7 => self.early_exit(),
            8 => self.callable(),
            9 => self.question(),
            10 => self.mutating_closure(depth),
            12 => self.words(),
            _ => {
                let wanted = |_: &Writer, variable: &Variable| {
                    variable.mutable && !matches!(variable.of, Type::Float | Type::Count)
                };
                match self.variable(wanted) {
                    Some(variable) => self.call_that_changes(&variable),
                    None => self.binding(),
                }
            }
        }
    }

    /// `let mut v: T = …;`
    fn binding(&mut self) -> Tree {
        let of = match self.random.percent(25) {
            true => Type::Float,
            false => self.some_type(3),
        };
        self.binding_of(&of)
    }

    pub(super) fn binding_of(&mut self, of: &Type) -> Tree {
        let value = match self.random.percent(50) {
            true => self.call(of, 3),
            false => self.value(of, 3),
        };
        let name = self.name("v");
        self.scope.variables.push(Variable {
            place: name.clone(),
            of: of.clone(),
            mutable: true,
        });
        let of = self.types.print(of);
        Tree::List(trees![
            "let mut ",
            Tree::Define(name),
            format!(": {of} = "),
            value,
            ";\n"
        ])
    }

    fn for_loop(&mut self, depth: usize) -> Tree {
        let index = self.name("i");
        let over = self.variable(|_, variable| matches!(variable.of, Type::Vec(_)));
        self.scope.loops += 1;
        let tree = match over {
            Some(vector) if self.random.percent(45) => {
                let Type::Vec(element) = vector.of.clone() else {
                    unreachable!("chosen for its type");
                };
                let inner = format!("(*{index})");
                // The vector is borrowed: it can be read and not changed.
                let before = self.scope.variables.clone();
                let root = super::writer::root_of(&vector.place);
                for variable in &mut self.scope.variables {
                    if super::writer::root_of(&variable.place) == root {
                        variable.mutable = false;
                    }
                }
                let block = self.with(&inner, &element, false, |writer| writer.block(depth - 1));
                self.scope.variables = before;
                Tree::Around {
                    before: trees![
                        "for ",
                        Tree::Define(index),
                        format!(" in {}.iter() {{\n", vector.place)
                    ],
                    inner: block,
                    after: trees!["}\n"],
                }
            }
            _ => {
                let limit = match self.random.percent(50) {
                    true => (1 + self.random.below(4)).to_string().into(),
                    false => self.count(),
                };
                let block = self.with(&index, &Type::Count, false, |writer| {
                    writer.block(depth - 1)
                });
                Tree::Around {
                    before: trees!["for ", Tree::Define(index), " in 0..", limit, " {\n"],
                    inner: block,
                    after: trees!["}\n"],
                }
            }
        };
        self.scope.loops -= 1;
        tree
    }

    fn while_loop(&mut self, depth: usize) -> Tree {
        let counter = self.name("k");
        let condition = self.condition();
        self.scope.loops += 1;
        let block = self.with(&counter, &Type::Count, false, |writer| {
            writer.block(depth - 1)
        });
        self.scope.loops -= 1;
        let limit = 2 + self.random.below(4);
        if self.random.percent(50) {
            return Tree::Around {
                before: trees![
                    "let mut ",
                    Tree::Define(counter.clone()),
                    format!(" = 0;\nwhile {counter} < {limit} && "),
                    condition,
                    format!(" {{\n{counter} += 1;\n")
                ],
                inner: block,
                after: trees!["}\n"],
            };
        }
        Tree::Around {
            before: trees![
                "let mut ",
                Tree::Define(counter.clone()),
                format!(" = 0;\nloop {{\n{counter} += 1;\nif {counter} > {limit} {{ break; }}\n"),
                Tree::Optional(trees!["if ", condition, " { continue; }\n"]),
            ],
            inner: block,
            after: trees!["}\n"],
        }
    }

    fn if_else(&mut self, depth: usize) -> Tree {
        let condition = self.condition();
        let block = self.block(depth - 1);
        let mut after = trees!["}\n"];
        if self.random.percent(50) {
            let other = self.block(depth - 1);
            after = trees!["} else {\n", other, "}\n"];
        }
        Tree::Around {
            before: trees!["if ", condition, " {\n"],
            inner: block,
            after,
        }
    }

    /// A statement that takes a value apart and works with the parts.
    fn take_apart(&mut self, depth: usize) -> Tree {
        let wanted = |_: &Writer, variable: &Variable| matches!(variable.of, Type::Option(_));
        let Some(variable) = self.variable(wanted) else {
            return self.if_else(depth);
        };
        let Type::Option(inner) = variable.of.clone() else {
            unreachable!("chosen for its type");
        };
        let name = self.name("e");
        let block = self.without(&variable.place, |writer| {
            writer.with(&format!("(*{name})"), &inner, variable.mutable, |writer| {
                writer.block(depth - 1)
            })
        });
        let borrow = if variable.mutable { "&mut " } else { "&" };
        Tree::Around {
            before: trees![
                "if let Some(",
                Tree::Define(name),
                format!(") = {borrow}{} {{\n", variable.place)
            ],
            inner: block,
            after: trees!["}\n"],
        }
    }

    /// `return`, `break` or `continue` under a condition.
    fn early_exit(&mut self) -> Tree {
        let condition = self.condition();
        if self.scope.closure {
            let float = self.float(1);
            return self.accumulated(float);
        }
        if self.scope.loops > 0 && self.random.percent(60) {
            let keyword = self.random.pick(&["break", "continue"]);
            return Tree::List(trees!["if ", condition, format!(" {{ {keyword}; }}\n")]);
        }
        let value = match self.scope.result.clone() {
            Some(of) => self.value(&of, 2),
            None => "".into(),
        };
        Tree::List(trees!["if ", condition, " { return ", value, "; }\n"])
    }

    /// A closure, boxed closure or function pointer that can be called from here on.
    fn callable(&mut self) -> Tree {
        let name = self.name("c");
        let kind = self.random.below(4);
        let closure = |writer: &mut Writer| {
            let argument = writer.name("a");
            // It copies floats, so that variables in scope can be changed while it lives.
            let body = writer.within_closure(|writer| {
                let floats = |variable: &Variable| {
                    writer.types.is_copy(&variable.of) && !variable.place.contains('*')
                };
                writer.scope.variables = writer
                    .scope
                    .variables
                    .clone()
                    .into_iter()
                    .filter(floats)
                    .collect();
                // A function that is called from within may hold references.
                writer.scope.callables.clear();
                writer.with(&argument, &Type::Float, false, |writer| writer.float(2))
            });
            Tree::List(trees![
                "move |",
                Tree::Define(argument),
                ": f64| -> f64 { ",
                body,
                " }"
            ])
        };
        let tree = match kind {
            0 => {
                let body = closure(self);
                Tree::List(trees![
                    "let ",
                    Tree::Define(name.clone()),
                    " = ",
                    body,
                    ";\n"
                ])
            }
            1 => {
                let (condition, a, b) = (self.condition(), closure(self), closure(self));
                Tree::List(trees![
                    "let ",
                    Tree::Define(name.clone()),
                    ": Box<dyn Fn(f64) -> f64> = if ",
                    condition,
                    " { Box::new(",
                    a,
                    ") } else { Box::new(",
                    b,
                    ") };\n"
                ])
            }
            2 => {
                let vector = self.name("c");
                let (a, b, index) = (closure(self), closure(self), self.count());
                Tree::List(trees![
                    "let ",
                    Tree::Define(vector.clone()),
                    ": Vec<Box<dyn Fn(f64) -> f64>> = vec![Box::new(",
                    a,
                    "), Box::new(",
                    b,
                    ")];\nlet ",
                    Tree::Define(name.clone()),
                    format!(" = &{vector}["),
                    index,
                    " % 2];\n"
                ])
            }
            _ => {
                let functions = [self.plain_function(), self.plain_function()];
                let index = self.count();
                Tree::List(trees![
                    "let ",
                    Tree::Define(name.clone()),
                    format!(
                        ": fn(f64) -> f64 = [{} as fn(f64) -> f64, {}][",
                        functions[0], functions[1]
                    ),
                    index,
                    " % 2];\n"
                ])
            }
        };
        self.scope.callables.push(name);
        tree
    }

    /// A closure that changes its captures.
    fn mutating_closure(&mut self, depth: usize) -> Tree {
        let (name, argument) = (self.name("c"), self.name("a"));
        let (a, b) = (self.float(1), self.float(1));
        let before = self.scope.clone();
        self.scope.closure = true;
        self.scope.recursion = None;
        self.scope.loops = 0;
        let block = self.with(&argument, &Type::Float, false, |writer| {
            writer.block(depth - 1)
        });
        self.scope = before;
        Tree::List(trees![
            "{ let (a0, a1) = (",
            a,
            ", ",
            b,
            "); let mut ",
            Tree::Define(name.clone()),
            " = |",
            Tree::Define(argument),
            ": f64| {\n",
            block,
            format!("}}; {name}(a0); {name}(a1); }}\n")
        ])
    }

    /// `let v = …?;`
    fn question(&mut self) -> Tree {
        let (of, value) = match self.scope.result.clone() {
            _ if self.scope.closure => return self.binding(),
            Some(Type::Option(_)) => {
                let of = self.some_type(2);
                let value = self.value(&Type::Option(Box::new(of.clone())), 2);
                (of, value)
            }
            Some(Type::Result(_, error)) => {
                let of = self.some_type(2);
                let value = self.value(&Type::Result(Box::new(of.clone()), error.clone()), 2);
                (of, value)
            }
            _ => return self.binding(),
        };
        let name = self.name("v");
        self.scope.variables.push(Variable {
            place: name.clone(),
            of: of.clone(),
            mutable: true,
        });
        // The error's type must be known where the value is made in its place.
        let result = match &self.scope.result {
            Some(Type::Result(_, error)) => format!(
                "Result<{}, {}>",
                self.types.print(&of),
                self.types.print(error)
            ),
            _ => format!("Option<{}>", self.types.print(&of)),
        };
        let whole = self.name("q");
        Tree::List(trees![
            "let ",
            Tree::Define(whole.clone()),
            format!(": {result} = "),
            value,
            ";\nlet mut ",
            Tree::Define(name),
            format!(" = {whole}?;\n")
        ])
    }
}
