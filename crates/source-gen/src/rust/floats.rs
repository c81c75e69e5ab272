//! Expressions of floats: bounded, and smooth but for branches.

use super::types::Type;
use super::writer::Writer;
use crate::tree::Tree;
use crate::trees;

impl Writer {
    /// An expression of type `f64`.
    pub(super) fn float(&mut self, depth: usize) -> Tree {
        if depth == 0 || !self.spend() {
            return self.float_leaf();
        }
        let next = depth - 1;
        match self.choose(&[
            (30, 0),
            (14, 1),
            (14, 2),
            (8, 3),
            (10, 4),
            (10, 5),
            (5, 6),
            (5, 7),
            (5, 8),
            (4, 9),
            (4, 10),
            (30, 11),
            (14, 12),
            (6, 13),
            (8, 14),
            (4, 15),
        ]) {
            0 => self.float_leaf(),
            1 => self.binary(next, "(", " + ", ")"),
            2 => self.binary(next, "(", " * ", ")"),
            3 => self.binary(next, "(", " - ", ")"),
            4 => self.unary(next, "", ".sin()"),
            5 => self.unary(next, "", ".tanh()"),
            6 => {
                let (a, b) = (self.float(next), self.float(0));
                Tree::Float(trees!["(", a, " / (1.5 + ", b, ".powi(2)))"])
            }
            7 => self.unary(next, "(0.5 + ", ".powi(2)).sqrt()"),
            8 => self.unary(next, "(1.2 + ", ".powi(2)).ln()"),
            9 => self.unary(next, "(-", ".powi(2)).exp()"),
            10 => {
                let method = self.random.pick(&["max", "min", "hypot", "atan2"]);
                if method == "hypot" || method == "atan2" {
                    let (a, b) = (self.float(next), self.float(next));
                    return Tree::Float(trees![a, format!(".{method}(2.5 + "), b, ".tanh())"]);
                }
                self.binary(next, "", &format!(".{method}("), ")")
            }
            11 => {
                let wanted =
                    |_: &Writer, variable: &super::writer::Variable| variable.of != Type::Count;
                match self.variable(wanted) {
                    Some(variable) => {
                        let fold = self.fold(&variable.of, &variable.place, next.min(2));
                        match variable.of == Type::Float {
                            true => fold,
                            false => Tree::Float(trees!["(", fold, ").tanh()"]),
                        }
                    }
                    None => self.float_leaf(),
                }
            }
            12 => self.call(&Type::Float, next),
            13 => {
                let (condition, a, b) = (self.condition(), self.float(next), self.float(next));
                Tree::Float(trees!["(if ", condition, " { ", a, " } else { ", b, " })"])
            }
            14 => {
                if self.scope.callables.is_empty() {
                    // A closure that is called on the spot.
                    let name = self.name("a");
                    let body = self.within_closure(|writer| {
                        writer.with(&name, &Type::Float, false, |writer| writer.float(next))
                    });
                    let argument = self.float(0);
                    return Tree::Float(trees![
                        "(|",
                        Tree::Define(name),
                        ": f64| ",
                        body,
                        ")(",
                        argument,
                        ")"
                    ]);
                }
                let index = self.random.below(self.scope.callables.len());
                let callable = self.scope.callables[index].clone();
                let argument = self.float(next);
                Tree::Float(trees![format!("{callable}("), argument, ")"])
            }
            _ => {
                // A value that is made only to be read.
                let of = self.some_type(2);
                let value = self.value(&of, next);
                let name = self.name("t");
                let fold = self.with(&name, &of, false, |writer| writer.fold(&of, &name, 1));
                let of = self.types.print(&of);
                Tree::Float(trees![
                    "({ let ",
                    Tree::Define(name),
                    format!(": {of} = "),
                    value,
                    "; (",
                    fold,
                    ").sin() })"
                ])
            }
        }
    }

    /// A short expression of type `f64`.
    pub(super) fn float_leaf(&mut self) -> Tree {
        if self.random.percent(6) {
            return Tree::Text(self.number());
        }
        if self.random.percent(6) {
            return self.table();
        }
        if let Some(variable) = self.variable(|_, variable| variable.of == Type::Float) {
            return Tree::Float(trees![variable.place]);
        }
        if self.budget > 0
            && let Some(variable) = self.variable(|_, variable| variable.of != Type::Count)
        {
            return self.fold(&variable.of, &variable.place, 0);
        }
        Tree::Text(self.number())
    }

    /// An element of a constant table.
    fn table(&mut self) -> Tree {
        if self.tables.len() < 2 {
            let name = self.name("TABLE");
            let length = 2 + self.random.below(4);
            let numbers: Vec<String> = (0..length).map(|_| self.number()).collect();
            let keyword = self.random.pick(&["static", "const"]);
            let parts = trees![
                keyword,
                " ",
                Tree::Define(name.clone()),
                format!(": [f64; {length}] = [{}];\n", numbers.join(", "))
            ];
            self.item(&name, parts);
            self.tables.push((name, length));
        }
        let index = self.random.below(self.tables.len());
        let (name, length) = self.tables[index].clone();
        let index = self.count();
        Tree::Float(trees![format!("{name}["), index, format!(" % {length}]")])
    }

    /// A small number that is not a float.
    pub(super) fn count(&mut self) -> Tree {
        if self.random.percent(50)
            && let Some(variable) = self.variable(|_, variable| variable.of == Type::Count)
        {
            return variable.place.into();
        }
        if self.random.percent(15)
            && let Some(variable) = self.variable(|_, variable| matches!(variable.of, Type::Vec(_)))
        {
            return format!("({}.len() % 4)", variable.place).into();
        }
        if self.random.percent(15) {
            let condition = self.condition();
            return Tree::List(trees!["usize::from(", condition, ")"]);
        }
        self.random.below(5).to_string().into()
    }

    /// A condition, which is not likely to be at its edge.
    pub(super) fn condition(&mut self) -> Tree {
        if self.random.percent(15) {
            let count = self.count();
            let limit = self.random.below(4);
            let comparison = self.random.pick(&[">", "<", "==", "!="]);
            return Tree::List(trees!["(", count, format!(" {comparison} {limit})")]);
        }
        let comparison = self.random.pick(&[">", "<"]);
        let (float, number) = (self.float(1), self.number());
        Tree::List(trees!["(", float, format!(" {comparison} {number})")])
    }

    fn unary(&mut self, depth: usize, before: &str, after: &str) -> Tree {
        let inner = self.float(depth);
        Tree::Float(trees![before, inner, after])
    }

    fn binary(&mut self, depth: usize, before: &str, between: &str, after: &str) -> Tree {
        let (a, b) = (self.float(depth), self.float(depth));
        Tree::Float(trees![before, a, between, b, after])
    }
}
