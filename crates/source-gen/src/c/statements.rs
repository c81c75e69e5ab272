//! Statements and blocks of them.

use super::writer::{Kind, Variable, Writer};
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

    /// Statements in a scope of their own, which free what they allocate.
    fn block(&mut self, depth: usize) -> Vec<Tree> {
        let variables = self.scope.variables.len();
        let owned = std::mem::take(&mut self.scope.owned);
        let count = 1 + self.random.below(2);
        let mut statements = self.statements(count, depth);
        for inner in self.scope.owned.clone().iter().rev() {
            statements.push(Tree::Optional(trees![format!("free({inner});\n")]));
        }
        self.scope.variables.truncate(variables);
        self.scope.owned = owned;
        statements
    }

    fn statement(&mut self, depth: usize) -> Tree {
        if !self.spend() {
            return self.accumulate(0);
        }
        let nested = if depth > 0 { 1 } else { 0 };
        let memory = if self.call_depth < 3 { 1 } else { 0 };
        match self.choose(&[
            (14, 0),
            (16, 1),
            (14, 2),
            (12, 3),
            (12, 4),
            (10 * nested, 5),
            (8 * nested, 6),
            (5 * nested, 7),
            (5 * nested, 8),
            (6, 9),
            (6, 10),
            (12 * memory, 11),
            (8, 12),
            (6, 13),
            (6, 14),
            (6, 15),
            (25, 16),
        ]) {
            0 => {
                let value = self.double(3);
                let name = self.name("v");
                self.bind(name.clone(), Kind::Double, true);
                Tree::List(trees!["double ", Tree::Define(name), " = ", value, ";\n"])
            }
            1 => self.array(),
            2 => self.structure(),
            3 => self.accumulate(3),
            4 => self.change_doubles(),
            5 => self.for_loop(depth),
            6 => self.if_else(depth),
            7 => self.while_loop(depth),
            8 => self.switch(depth),
            9 => self.early_exit(),
            10 => self.function_pointer(),
            11 => self.allocated(),
            12 => self.change_struct(),
            13 => self.alias(),
            14 => self.list(),
            15 => self.reallocated(),
            _ => self.idiom(),
        }
    }

    /// A double in scope takes something up.
    fn accumulate(&mut self, depth: usize) -> Tree {
        let value = self.double(depth);
        let target = self.variable_of(&Kind::Double, true);
        match target {
            Some(Variable { place, .. }) => match self.random.below(3) {
                0 => Tree::List(trees![format!("{place} = sin("), value, ");\n"]),
                1 => Tree::List(trees![format!("{place} += 0.3 * sin("), value, ");\n"]),
                _ => Tree::List(trees![
                    format!("{place} = tanh({place} * 0.7 + "),
                    value,
                    ");\n"
                ]),
            },
            None => Tree::List(trees!["(void)(", value, ");\n"]),
        }
    }

    /// A local array.
    fn array(&mut self) -> Tree {
        let length = self.random.pick(&[2, 3, 4, 6]);
        let name = self.name("v");
        let mut parts = trees!["double ", Tree::Define(name.clone())];
        match self.random.below(3) {
            0 => {
                parts.push(format!("[{length}] = {{").into());
                for _ in 0..length {
                    let value = self.double(1);
                    parts.extend(trees![value, ", "]);
                }
                parts.push("};\n".into());
            }
            1 => {
                let index = self.name("i");
                parts.push(format!("[{length}];\nfor (int ").into());
                self.bind(index.clone(), Kind::Int, false);
                let value = self.double(2);
                self.scope.variables.pop();
                parts.extend(trees![
                    Tree::Define(index.clone()),
                    format!(" = 0; {index} < {length}; {index}++) {name}[{index}] = "),
                    value,
                    ";\n"
                ]);
            }
            _ => {
                parts.push(format!("[{length}];\n").into());
                parts.push(match self.doubles(length, false) {
                    Some((place, _)) => format!("memcpy({name}, {place}, sizeof {name});\n").into(),
                    None => format!("memset({name}, 0, sizeof {name});\n").into(),
                });
            }
        }
        self.bind(name, Kind::Doubles(length), true);
        Tree::List(parts)
    }

    /// Memory from `malloc`, here or by a function.
    fn allocated(&mut self) -> Tree {
        let name = self.name("v");
        if self.random.percent(35) {
            let index = self.some_struct();
            let length = 1 + self.random.below(3);
            let kind = Kind::Structs(index, length);
            let declaration = self.declare(&kind, "");
            let value = self.call_for_memory(&kind);
            self.scope.owned.push(name.clone());
            self.bind(name.clone(), kind, true);
            return Tree::List(trees![declaration, Tree::Define(name), " = ", value, ";\n"]);
        }
        let length = self.random.pick(&[2, 3, 4, 6]);
        let kind = Kind::Doubles(length);
        if self.random.percent(50) {
            let value = self.call_for_memory(&kind);
            self.scope.owned.push(name.clone());
            self.bind(name.clone(), kind, true);
            return Tree::List(trees!["double *", Tree::Define(name), " = ", value, ";\n"]);
        }
        let index = self.name("i");
        self.bind(index.clone(), Kind::Int, false);
        let value = self.double(2);
        self.scope.variables.pop();
        let function = self
            .random
            .pick(&["malloc(N * sizeof(double))", "calloc(N, sizeof(double))"]);
        let function = function.replace('N', &length.to_string());
        self.scope.owned.push(name.clone());
        self.bind(name.clone(), kind, true);
        Tree::List(trees![
            "double *",
            Tree::Define(name.clone()),
            format!(" = {function};\nfor (int "),
            Tree::Define(index.clone()),
            format!(" = 0; {index} < {length}; {index}++) {name}[{index}] = "),
            value,
            ";\n"
        ])
    }

    /// Memory that grows.
    fn reallocated(&mut self) -> Tree {
        let (name, index, space) = (self.name("v"), self.name("i"), self.name("k"));
        self.bind(index.clone(), Kind::Int, false);
        let value = self.double(2);
        self.scope.variables.pop();
        self.scope.owned.push(name.clone());
        self.bind(name.clone(), Kind::Doubles(4), true);
        Tree::List(trees![
            "double *",
            Tree::Define(name.clone()),
            " = 0;\nint ",
            Tree::Define(space.clone()),
            " = 0;\nfor (int ",
            Tree::Define(index.clone()),
            format!(
                " = 0; {index} < 4; {index}++) {{\nif ({index} == {space}) {{ {space} = {space} ? 2 * {space} : 1; {name} = realloc({name}, {space} * sizeof(double)); }}\n{name}[{index}] = "
            ),
            value,
            ";\n}\n"
        ])
    }

    /// A struct by value.
    fn structure(&mut self) -> Tree {
        let index = self.some_struct();
        let kind = Kind::Struct(index);
        let value = match self.variable_of(&kind, false) {
            Some(variable) if self.random.percent(25) => variable.place.into(),
            _ => self.initial(&kind, 2),
        };
        let name = self.name("v");
        let declaration = self.declare(&kind, "");
        self.bind(name.clone(), kind, true);
        Tree::List(trees![declaration, Tree::Define(name), " = ", value, ";\n"])
    }

    fn change_doubles(&mut self) -> Tree {
        let Some((place, length)) = self.doubles(1, true) else {
            return self.array();
        };
        match self.random.below(7) {
            0 => {
                let index = self.name("i");
                self.bind(index.clone(), Kind::Int, false);
                let value = self.double(2);
                self.scope.variables.pop();
                Tree::List(trees![
                    "for (int ",
                    Tree::Define(index.clone()),
                    format!(
                        " = 0; {index} < {length}; {index}++) {place}[{index}] = sin({place}[{index}] * 0.8 + "
                    ),
                    value,
                    ");\n"
                ])
            }
            1 => match self.doubles(length, false) {
                Some((other, _)) => {
                    format!("memmove({place}, {other}, {length} * sizeof(double));\n").into()
                }
                None => format!("memset({place}, 0, {length} * sizeof(double));\n").into(),
            },
            2 => {
                let (one, other) = (self.index(length).print(), self.index(length).print());
                format!(
                    "{{ double kept = {place}[{one}]; {place}[{one}] = {place}[{other}]; {place}[{other}] = kept; }}\n"
                )
                .into()
            }
            3 if length > 1 => format!(
                "memmove({place}, {place} + 1, {} * sizeof(double));\n",
                length - 1
            )
            .into(),
            4 if self.call_depth < 3 => self.call_with_output(&place, length),
            5 => {
                // By a pointer that walks.
                let (at, value) = (self.name("q"), self.double(1));
                Tree::List(trees![
                    "for (double *",
                    Tree::Define(at.clone()),
                    format!(" = {place}; {at} < {place} + {length}; {at}++) *{at} = tanh(*{at} + "),
                    value,
                    ");\n"
                ])
            }
            _ => {
                let (index, value) = (self.index(length), self.double(2));
                Tree::List(trees![
                    format!("{place}["),
                    index,
                    "] = sin(",
                    value,
                    ");\n"
                ])
            }
        }
    }

    /// A function that writes through a pointer.
    fn call_with_output(&mut self, place: &str, length: usize) -> Tree {
        let name = self.name("h");
        let scope = std::mem::take(&mut self.scope);
        self.call_depth += 1;
        let (out, a) = (self.name("p"), self.name("p"));
        self.bind(out.clone(), Kind::Doubles(length), true);
        self.bind(a.clone(), Kind::Double, true);
        let count = 1 + self.random.below(3);
        let mut body = self.statements(count, 1);
        let index = self.random.below(length);
        let value = self.summary();
        body.extend(trees![format!("{out}[{index}] += "), value, ";\n"]);
        for owned in self.scope.owned.clone().iter().rev() {
            body.push(Tree::Optional(trees![format!("free({owned});\n")]));
        }
        self.call_depth -= 1;
        self.scope = scope;
        let attribute = self.inlining();
        let parts = trees![
            "static ",
            attribute,
            "void P(",
            Tree::Define(name.clone()),
            ")(double *",
            Tree::Define(out),
            ", double ",
            Tree::Define(a),
            ") {\n",
            body,
            "}\n"
        ];
        self.item(&name, parts);
        let argument = self.double(1);
        Tree::List(trees![format!("P({name})({place}, "), argument, ");\n"])
    }

    fn change_struct(&mut self) -> Tree {
        let found = self.variable(|variable| {
            variable.mutable && matches!(variable.kind, Kind::Struct(_) | Kind::Structs(..))
        });
        let Some(variable) = found else {
            return self.structure();
        };
        let (index, place) = match variable.kind {
            Kind::Struct(index) => (index, variable.place),
            Kind::Structs(index, length) => {
                let element = self.index(length).print();
                if length > 1 && self.random.percent(25) {
                    let of = self.structs[index].name.clone();
                    return format!(
                        "{{ {of} kept = {0}[{element}]; {0}[{element}] = {0}[0]; {0}[0] = kept; }}\n",
                        variable.place
                    )
                    .into();
                }
                (index, format!("{}[{element}]", variable.place))
            }
            _ => unreachable!("chosen for its kind"),
        };
        let fields = self.structs[index].fields.clone();
        if fields.is_empty() || self.random.percent(15) {
            let value = self.initial(&Kind::Struct(index), 2);
            return Tree::List(trees![format!("{place} = "), value, ";\n"]);
        }
        let (field, kind) = fields[self.random.below(fields.len())].clone();
        match kind {
            Kind::Doubles(length) => {
                let (element, value) = (self.index(length), self.double(2));
                Tree::List(trees![
                    format!("{place}{field}["),
                    element,
                    "] = sin(",
                    value,
                    ");\n"
                ])
            }
            Kind::Int => {
                let value = self.int();
                Tree::List(trees![format!("{place}{field} = ("), value, ") % 5;\n"])
            }
            kind => {
                let value = self.initial(&kind, 2);
                let bounded = if kind == Kind::Double { "sin" } else { "" };
                Tree::List(trees![
                    format!("{place}{field} = {bounded}("),
                    value,
                    ");\n"
                ])
            }
        }
    }

    /// Another name for the same memory.
    fn alias(&mut self) -> Tree {
        let name = self.name("q");
        if self.random.percent(40)
            && let Some(variable) = self
                .variable(|variable| variable.mutable && matches!(variable.kind, Kind::Struct(_)))
        {
            let declaration = self.declare(&variable.kind, "*");
            self.bind(format!("(*{name})"), variable.kind, true);
            return Tree::List(trees![
                declaration,
                Tree::Define(name),
                format!(" = &{};\n", variable.place)
            ]);
        }
        // One of two arrays, which is decided when it runs.
        let (Some((one, a)), Some((other, b))) = (self.doubles(2, true), self.doubles(2, true))
        else {
            return self.array();
        };
        let condition = self.condition();
        self.bind(name.clone(), Kind::Doubles(a.min(b)), true);
        Tree::List(trees![
            "double *",
            Tree::Define(name),
            " = ",
            condition,
            format!(" ? {one} : {other};\n")
        ])
    }

    /// A function pointer.
    fn function_pointer(&mut self) -> Tree {
        let name = self.name("c");
        let (one, other, index) = (self.function(), self.function(), self.index(2));
        self.bind(name.clone(), Kind::Function, true);
        if self.random.percent(40) {
            let table = self.name("functions");
            let parts = trees![
                "static double (*const P(",
                Tree::Define(table.clone()),
                format!(")[2])(double) = {{{one}, {other}}};\n")
            ];
            self.item(&table, parts);
            return Tree::List(trees![
                "double (*",
                Tree::Define(name),
                format!(")(double) = P({table})["),
                index,
                "];\n"
            ]);
        }
        Tree::List(trees![
            "double (*",
            Tree::Define(name),
            ")(double) = ",
            index,
            format!(" ? {one} : {other};\n")
        ])
    }

    /// A list of allocated elements, folded and released.
    fn list(&mut self) -> Tree {
        let lists: Vec<usize> = (0..self.structs.len())
            .filter(|index| self.structs[*index].next.is_some())
            .collect();
        if lists.is_empty() {
            return self.structure();
        }
        let index = lists[self.random.below(lists.len())];
        let Some(next) = self.structs[index].next.clone() else {
            return self.structure();
        };
        let of = self.structs[index].name.clone();
        let (head, counter, node, result) = (
            self.name("l"),
            self.name("i"),
            self.name("l"),
            self.name("v"),
        );
        self.bind(counter.clone(), Kind::Int, false);
        let value = self.initial(&Kind::Struct(index), 1);
        self.scope.variables.pop();
        let fold = self.fold(&Kind::Struct(index), &format!("(*{head})"), 2);
        self.bind(result.clone(), Kind::Double, true);
        let count = 1 + self.random.below(4);
        Tree::List(trees![
            format!("{of} *"),
            Tree::Define(head.clone()),
            " = 0;\nfor (int ",
            Tree::Define(counter.clone()),
            format!(" = 0; {counter} < {count}; {counter}++) {{\n{of} *"),
            Tree::Define(node.clone()),
            format!(" = malloc(sizeof({of}));\n*{node} = "),
            value,
            format!(";\n{node}->{next} = {head};\n{head} = {node};\n}}\ndouble "),
            Tree::Define(result),
            " = ",
            fold,
            format!(
                ";\nwhile ({head}) {{ {of} *gone = {head}; {head} = {head}->{next}; free(gone); }}\n"
            )
        ])
    }

    fn for_loop(&mut self, depth: usize) -> Tree {
        let index = self.name("i");
        let limit = match self.random.percent(60) {
            true => (1 + self.random.below(4)).to_string().into(),
            false => self.int(),
        };
        self.scope.loops += 1;
        self.bind(index.clone(), Kind::Int, false);
        let block = self.block(depth - 1);
        self.scope.variables.pop();
        self.scope.loops -= 1;
        Tree::Around {
            before: trees![
                "for (int ",
                Tree::Define(index.clone()),
                format!(" = 0; {index} < "),
                limit,
                format!("; {index}++) {{\n")
            ],
            inner: block,
            after: trees!["}\n"],
        }
    }

    fn while_loop(&mut self, depth: usize) -> Tree {
        let counter = self.name("k");
        let condition = self.condition();
        self.scope.loops += 1;
        self.bind(counter.clone(), Kind::Int, false);
        let block = self.block(depth - 1);
        self.scope.variables.pop();
        self.scope.loops -= 1;
        let limit = 2 + self.random.below(4);
        let mut before = trees!["int ", Tree::Define(counter.clone()), " = 0;\n"];
        if self.random.percent(50) {
            before.extend(trees![
                format!("while ({counter} < {limit} && "),
                condition,
                format!(") {{\n{counter}++;\n")
            ]);
            return Tree::Around {
                before,
                inner: block,
                after: trees!["}\n"],
            };
        }
        before.push(format!("do {{\n{counter}++;\n").into());
        Tree::Around {
            before,
            inner: block,
            after: trees![
                format!("}} while ({counter} < {limit} && "),
                condition,
                ");\n"
            ],
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

    fn switch(&mut self, depth: usize) -> Tree {
        let value = self.int();
        // `break` leaves the switch here, and `continue` the loop around it.
        let loops = std::mem::replace(&mut self.scope.loops, 0);
        let mut parts = trees!["switch (", value, ") {\n"];
        for case in 0..1 + self.random.below(3) {
            let block = self.block(depth - 1);
            let ending = self.random.pick(&["} break;\n", "} break;\n", "}\n"]);
            parts.extend(trees![format!("case {case}: {{\n"), block, ending]);
        }
        let block = self.block(depth - 1);
        parts.extend(trees!["default: {\n", block, "}\n}\n"]);
        self.scope.loops = loops;
        Tree::List(parts)
    }

    /// `return`, `break` or `continue` under a condition. Memory allocated before leaks then, as in many programs.
    fn early_exit(&mut self) -> Tree {
        let condition = self.condition();
        if self.scope.loops > 0 && self.random.percent(60) {
            let keyword = self.random.pick(&["break", "continue"]);
            return Tree::List(trees!["if ", condition, format!(" {keyword};\n")]);
        }
        match self.scope.result.clone() {
            Some(kind @ (Kind::Double | Kind::Struct(_))) => {
                let value = self.initial(&kind, 1);
                Tree::List(trees!["if ", condition, " return ", value, ";\n"])
            }
            _ => self.accumulate(2),
        }
    }
}
