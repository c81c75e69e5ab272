//! Expressions of doubles: bounded, and smooth but for branches.

use super::writer::{Kind, Writer};
use crate::tree::Tree;
use crate::trees;

impl Writer {
    /// An expression of type `double`.
    pub(super) fn double(&mut self, depth: usize) -> Tree {
        if depth == 0 || !self.spend() {
            return self.double_leaf();
        }
        let next = depth - 1;
        match self.choose(&[
            (28, 0),
            (14, 1),
            (14, 2),
            (8, 3),
            (10, 4),
            (10, 5),
            (5, 6),
            (5, 7),
            (4, 8),
            (4, 9),
            (20, 10),
            (16, 11),
            (6, 12),
            (8, 13),
        ]) {
            0 => self.double_leaf(),
            1 => self.binary(next, "(", " + ", ")"),
            2 => self.binary(next, "(", " * ", ")"),
            3 => self.binary(next, "(", " - ", ")"),
            4 => self.unary(next, "sin(", ")"),
            5 => self.unary(next, "tanh(", ")"),
            6 => {
                let (a, b) = (self.double(next), self.double(0));
                Tree::Float(trees!["(", a, " / (1.5 + cos(", b, ")))"])
            }
            7 => self.unary(next, "sqrt(1.5 + sin(", "))"),
            8 => self.unary(next, "exp(-fabs(", "))"),
            9 => {
                let function = self.random.pick(&["fmax", "fmin"]);
                self.binary(next, &format!("{function}("), ", ", ")")
            }
            10 => {
                let wanted = |kind: &Kind| !matches!(kind, Kind::Int | Kind::Double);
                match self.variable(|variable| wanted(&variable.kind)) {
                    Some(variable) => {
                        let fold = self.fold(&variable.kind, &variable.place, 2);
                        Tree::Float(trees!["tanh(", fold, ")"])
                    }
                    None => self.double_leaf(),
                }
            }
            11 => self.call(&Kind::Double, next),
            12 => {
                let (condition, a, b) = (self.condition(), self.double(next), self.double(next));
                Tree::Float(trees!["(", condition, " ? ", a, " : ", b, ")"])
            }
            _ => match self.variable_of(&Kind::Function, false) {
                Some(variable) => {
                    let argument = self.double(next);
                    Tree::Float(trees![format!("{}(", variable.place), argument, ")"])
                }
                None => self.double_leaf(),
            },
        }
    }

    /// A short expression of type `double`.
    pub(super) fn double_leaf(&mut self) -> Tree {
        if self.random.percent(6) {
            return Tree::Text(self.number());
        }
        if self.random.percent(8) {
            return self.table();
        }
        if self.random.percent(35)
            && let Some((place, length)) = self.doubles(1, false)
        {
            let index = self.index(length);
            return Tree::Float(trees![format!("{place}["), index, "]"]);
        }
        match self.variable_of(&Kind::Double, false) {
            Some(variable) => Tree::Float(trees![variable.place]),
            None => match self.doubles(1, false) {
                Some((place, _)) => Tree::Float(trees![format!("{place}[0]")]),
                None => Tree::Text(self.number()),
            },
        }
    }

    /// A double made of a value.
    pub(super) fn fold(&mut self, kind: &Kind, place: &str, depth: usize) -> Tree {
        match kind {
            Kind::Double => Tree::Float(trees![place]),
            Kind::Int => Tree::Float(trees![format!("(0.25 * {place})")]),
            Kind::Doubles(length) => {
                if self.random.percent(30) && *length > 1 {
                    let other = self.random.below(*length);
                    return Tree::Float(trees![format!("({place}[0] - {place}[{other}])")]);
                }
                let index = self.index(*length);
                Tree::Float(trees![format!("{place}["), index, "]"])
            }
            Kind::Function => {
                let argument = self.double(0);
                Tree::Float(trees![format!("{place}("), argument, ")"])
            }
            Kind::Structs(index, length) => {
                let element = self.index(*length).print();
                self.fold(&Kind::Struct(*index), &format!("{place}[{element}]"), depth)
            }
            Kind::Struct(index) => {
                let the_struct = self.structs[*index].clone();
                if the_struct.next.is_some() && depth > 0 {
                    return self.fold_list(*index, place);
                }
                let mut sum: Option<Tree> = None;
                for (field, kind) in &the_struct.fields {
                    if sum.is_some() && self.random.percent(40) {
                        continue;
                    }
                    let fold = self.fold(kind, &format!("{place}{field}"), depth);
                    let operator = self.random.pick(&["+", "-", "*"]);
                    sum = Some(match sum {
                        Some(sum) => {
                            Tree::Float(trees!["(", sum, format!(" {operator} "), fold, ")"])
                        }
                        None => fold,
                    });
                }
                sum.unwrap_or_else(|| Tree::Text("0.5".into()))
            }
        }
    }

    /// A call of a function that folds a list, recursively or by a loop.
    fn fold_list(&mut self, index: usize, place: &str) -> Tree {
        let wanted = format!("list{index}_");
        let prefix = format!("P({wanted}");
        if let Some(known) = self
            .helpers
            .iter()
            .find(|helper| helper.name.starts_with(&prefix))
        {
            return Tree::Float(trees![format!("{}(&{place})", known.name)]);
        }
        let name = self.name(&wanted);
        let the_struct = self.structs[index].clone();
        self.helpers.push(super::writer::Helper {
            name: format!("P({name})"),
            parameters: Vec::new(),
            result: Kind::Double,
            recursive: false,
            // Nobody but this function calls it.
            depth: usize::MAX,
        });
        let scope = std::mem::take(&mut self.scope);
        let next = the_struct.next.clone().unwrap_or_default();
        let fold = self.fold(&Kind::Struct(index), "(*list)", 0);
        self.scope = scope;
        let attribute = self.inlining();
        let mut parts = trees![
            "static ",
            attribute,
            "double P(",
            Tree::Define(name.clone()),
            format!(")(const {} *list) {{\n", the_struct.name)
        ];
        match self.random.percent(50) {
            true => parts.extend(trees![
                format!(
                    "double sum = 0.1;\nfor (; list; list = list->{next}) sum = sin(sum * 0.7 + "
                ),
                fold,
                ");\nreturn sum;\n}\n"
            ]),
            false => parts.extend(trees![
                "if (!list) return 0.2;\ndouble here = ",
                fold,
                format!(";\nreturn tanh(here + P({name})(list->{next}));\n}}\n")
            ]),
        }
        self.item(&name, parts);
        Tree::Float(trees![format!("P({name})(&{place})")])
    }

    /// An element of a constant table.
    fn table(&mut self) -> Tree {
        if self.tables.len() < 2 {
            let name = self.name("table");
            let length = 2 + self.random.below(4);
            let numbers: Vec<String> = (0..length).map(|_| self.number()).collect();
            let parts = trees![
                "static const double P(",
                Tree::Define(name.clone()),
                format!(")[{length}] = {{{}}};\n", numbers.join(", "))
            ];
            self.item(&name, parts);
            self.tables.push((name, length));
        }
        let index = self.random.below(self.tables.len());
        let (name, length) = self.tables[index].clone();
        let index = self.index(length);
        Tree::Float(trees![format!("P({name})["), index, "]"])
    }

    /// A small number that is not negative.
    pub(super) fn int(&mut self) -> Tree {
        if self.random.percent(55)
            && let Some(variable) = self.variable_of(&Kind::Int, false)
        {
            return variable.place.into();
        }
        if self.random.percent(15) {
            return self.condition();
        }
        self.random.below(5).to_string().into()
    }

    /// A position below a length.
    pub(super) fn index(&mut self, length: usize) -> Tree {
        if self.random.percent(50)
            && let Some(variable) = self.variable_of(&Kind::Int, false)
        {
            return format!("{} % {length}", variable.place).into();
        }
        self.random.below(length).to_string().into()
    }

    /// A condition, which is not likely to be at its edge.
    pub(super) fn condition(&mut self) -> Tree {
        if self.random.percent(15)
            && let Some(variable) = self.variable_of(&Kind::Int, false)
        {
            let limit = self.random.below(4);
            let comparison = self.random.pick(&[">", "<", "==", "!="]);
            return format!("({} {comparison} {limit})", variable.place).into();
        }
        let comparison = self.random.pick(&[">", "<"]);
        let (double, number) = (self.double(1), self.number());
        Tree::List(trees!["(", double, format!(" {comparison} {number})")])
    }

    fn unary(&mut self, depth: usize, before: &str, after: &str) -> Tree {
        let inner = self.double(depth);
        Tree::Float(trees![before, inner, after])
    }

    fn binary(&mut self, depth: usize, before: &str, between: &str, after: &str) -> Tree {
        let (a, b) = (self.double(depth), self.double(depth));
        Tree::Float(trees![before, a, between, b, after])
    }
}
