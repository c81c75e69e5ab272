//! Idioms of C libraries: buffers that own memory, tagged unions, work arrays behind global pointers, rows of pointers, callbacks with a context, type objects, `qsort`.

use super::writer::{Kind, Variable, Writer};
use crate::tree::Tree;
use crate::trees;

impl Writer {
    /// One of the idioms.
    pub(super) fn idiom(&mut self) -> Tree {
        match self.random.below(10) {
            0 => self.buffer(),
            1 => self.work_array(),
            2 => self.two_buffers(),
            3 => self.rows(),
            4 => self.callback(),
            5 => self.type_object(),
            6 => self.sorted(),
            7 => self.matrix(),
            8 => self.words(),
            _ => self.copied_struct(),
        }
    }

    /// A struct that owns memory which grows, made, filled and folded by functions.
    fn buffer(&mut self) -> Tree {
        let [tag, make, push, sum] = ["S", "h", "h", "h"].map(|prefix| self.name(prefix));
        let of = format!("struct P({tag})");
        let parts = trees![
            "struct P(",
            Tree::Define(tag.clone()),
            ") { double *data; int count, space; double scale; };\n"
        ];
        self.item(&tag, parts);
        let attributes = [self.inlining(), self.inlining(), self.inlining()];
        let [first, second, third] = attributes;
        self.item(
            &make,
            trees![
                "static ",
                first,
                format!("{of} P("),
                Tree::Define(make.clone()),
                format!(
                    ")(double a, int n) {{\n{of} b = {{malloc(n * sizeof(double)), 0, n, sin(a)}};\nfor (int i = 0; i < n - 1; i++) b.data[b.count++] = a * (i + 1);\nreturn b;\n}}\n"
                )
            ],
        );
        self.item(
            &push,
            trees![
                "static ",
                second,
                "void P(",
                Tree::Define(push.clone()),
                format!(
                    ")({of} *b, double a) {{\nif (b->count == b->space) {{ b->space *= 2; b->data = realloc(b->data, b->space * sizeof(double)); }}\nb->data[b->count++] = a;\n}}\n"
                )
            ],
        );
        self.item(
            &sum,
            trees![
                "static ",
                third,
                "double P(",
                Tree::Define(sum.clone()),
                format!(
                    ")(const {of} *b) {{\ndouble s = 0;\nfor (int i = 0; i < b->count; i++) s = sin(s + b->scale * b->data[i]);\nreturn s;\n}}\n"
                )
            ],
        );
        let (name, index, result) = (self.name("v"), self.name("i"), self.name("v"));
        let length = 1 + self.random.below(3);
        let start = self.double(1);
        self.bind(index.clone(), Kind::Int, false);
        let value = self.double(2);
        self.scope.variables.pop();
        let limit = self.int();
        self.bind(result.clone(), Kind::Double, true);
        Tree::List(trees![
            format!("{of} "),
            Tree::Define(name.clone()),
            format!(" = P({make})("),
            start,
            format!(", {length});\n"),
            Tree::Optional(trees![
                "for (int ",
                Tree::Define(index.clone()),
                format!(" = 0; {index} < "),
                limit,
                format!("; {index}++) P({push})(&{name}, "),
                value,
                ");\n"
            ]),
            "double ",
            Tree::Define(result),
            format!(" = P({sum})(&{name});\nfree({name}.data);\n")
        ])
    }

    /// A global pointer to memory that the root makes.
    fn work_array(&mut self) -> Tree {
        if self.call_depth > 0 || self.scope.loops > 0 {
            return self.rows();
        }
        let name = self.name("work");
        self.item(
            &name,
            trees!["static double *P(", Tree::Define(name.clone()), ");\n"],
        );
        let index = self.name("i");
        self.bind(index.clone(), Kind::Int, false);
        let value = self.double(1);
        self.scope.variables.pop();
        let place = format!("P({name})");
        self.scope.owned.push(place.clone());
        // Visible to all functions that are written from here on, which run after this.
        self.scope.variables.push(Variable {
            place: place.clone(),
            kind: Kind::Doubles(4),
            mutable: true,
        });
        let user = self.work_array_user(&place);
        Tree::List(trees![
            format!("{place} = malloc(4 * sizeof(double));\nfor (int "),
            Tree::Define(index.clone()),
            format!(" = 0; {index} < 4; {index}++) {place}[{index}] = "),
            value,
            ";\n",
            Tree::Optional(vec![user])
        ])
    }

    /// A function that works in a global array.
    fn work_array_user(&mut self, place: &str) -> Tree {
        let (name, a) = (self.name("h"), self.name("a"));
        let scope = std::mem::take(&mut self.scope);
        let depth = std::mem::replace(&mut self.call_depth, 3);
        self.bind(a.clone(), Kind::Double, false);
        self.bind(place, Kind::Doubles(4), true);
        let (one, other) = (self.double(2), self.double(2));
        self.scope = scope;
        self.call_depth = depth;
        let attribute = self.inlining();
        let parts = trees![
            "static ",
            attribute,
            "void P(",
            Tree::Define(name.clone()),
            ")(double ",
            Tree::Define(a),
            format!(") {{\n{place}[1] = "),
            one,
            format!(";\n{place}[3] = sin({place}[0] + "),
            other,
            ");\n}\n"
        ];
        self.item(&name, parts);
        let argument = self.double(1);
        Tree::List(trees![format!("P({name})("), argument, ");\n"])
    }

    /// Two arrays that change their parts in each iteration.
    fn two_buffers(&mut self) -> Tree {
        let [one, other, kept, index, inner] =
            ["v", "v", "q", "i", "i"].map(|prefix| self.name(prefix));
        let count = 1 + self.random.below(4);
        let start = self.double(1);
        self.bind(inner.clone(), Kind::Int, false);
        let value = self.double(1);
        self.scope.variables.pop();
        self.scope.owned.extend([one.clone(), other.clone()]);
        self.bind(one.clone(), Kind::Doubles(3), true);
        Tree::List(trees![
            "double *",
            Tree::Define(one.clone()),
            " = calloc(3, sizeof(double)), *",
            Tree::Define(other.clone()),
            format!(" = calloc(3, sizeof(double));\n{one}[1] = "),
            start,
            ";\nfor (int ",
            Tree::Define(index.clone()),
            format!(" = 0; {index} < {count}; {index}++) {{\nfor (int "),
            Tree::Define(inner.clone()),
            format!(
                " = 0; {inner} < 3; {inner}++) {other}[{inner}] = sin({one}[{inner}] + 0.5 * {one}[({inner} + 1) % 3] + "
            ),
            value,
            ");\ndouble *",
            Tree::Define(kept.clone()),
            format!(" = {one};\n{one} = {other};\n{other} = {kept};\n}}\n")
        ])
    }

    /// An array of pointers to arrays.
    fn rows(&mut self) -> Tree {
        let (Some((one, a)), Some((other, b))) = (self.doubles(2, true), self.doubles(2, true))
        else {
            return self.matrix();
        };
        let name = self.name("rows");
        let value = self.double(2);
        let (row, column) = (self.index(2).print(), self.index(a.min(b)).print());
        self.bind(format!("{name}[{row}]"), Kind::Doubles(a.min(b)), true);
        Tree::List(trees![
            "double *",
            Tree::Define(name.clone()),
            format!("[2] = {{{one}, {other}}};\n{name}[{row}][{column}] += 0.3 * sin("),
            value,
            ");\n"
        ])
    }

    /// A function that takes a function and its context.
    fn callback(&mut self) -> Tree {
        let [tag, function, apply, context, result] =
            ["S", "h", "h", "v", "v"].map(|prefix| self.name(prefix));
        let of = format!("struct P({tag})");
        let parts = trees![
            "struct P(",
            Tree::Define(tag.clone()),
            ") { double a, *b; int n; };\n"
        ];
        self.item(&tag, parts);
        let attribute = self.inlining();
        self.item(
            &function,
            trees![
                "static double P(",
                Tree::Define(function.clone()),
                format!(
                    ")(double t, void *context) {{\n{of} *c = context;\nc->a = sin(c->a + t);\nreturn c->a * c->b[0] + c->n;\n}}\n"
                )
            ],
        );
        self.item(
            &apply,
            trees![
                "static ",
                attribute,
                "double P(",
                Tree::Define(apply.clone()),
                ")(double (*f)(double, void *), void *context, int n) {\ndouble s = 0;\nfor (int i = 0; i < n; i++) s = tanh(s + f(s, context));\nreturn s;\n}\n"
            ],
        );
        let Some((place, _)) = self.doubles(1, false) else {
            return self.matrix();
        };
        let (a, count) = (self.double(2), self.int());
        self.bind(result.clone(), Kind::Double, true);
        Tree::List(trees![
            format!("{of} "),
            Tree::Define(context.clone()),
            " = {",
            a,
            format!(", (double *){place}, 1}};\ndouble "),
            Tree::Define(result),
            format!(" = P({apply})(P({function}), &{context}, "),
            count,
            ");\n"
        ])
    }

    /// A struct with a function, one of two, found through a pointer.
    fn type_object(&mut self) -> Tree {
        let [tag, one, other, pointer, result] =
            ["S", "object", "object", "object", "v"].map(|prefix| self.name(prefix));
        let (first, second) = (self.function(), self.function());
        let of = format!("struct P({tag})");
        let parts = trees![
            "struct P(",
            Tree::Define(tag.clone()),
            ") { const char *name; double (*call)(double); double scale; };\n"
        ];
        self.item(&tag, parts);
        for (name, function) in [(&one, first), (&other, second)] {
            let number = self.number();
            self.item(
                name,
                trees![
                    format!("static const {of} P("),
                    Tree::Define(name.clone()),
                    format!(") = {{\"{name}\", {function}, {number}}};\n")
                ],
            );
        }
        let (condition, argument) = (self.condition(), self.double(2));
        let global = self.random.percent(50);
        let place = match global {
            true => {
                self.item(
                    &pointer,
                    trees![
                        format!("static const {of} *P("),
                        Tree::Define(pointer.clone()),
                        format!(") = &P({one});\n")
                    ],
                );
                format!("P({pointer})")
            }
            false => pointer.clone(),
        };
        self.bind(result.clone(), Kind::Double, true);
        let declaration = match global {
            true => Tree::List(Vec::new()),
            false => Tree::List(trees![
                format!("const {of} *"),
                Tree::Define(pointer),
                ";\n"
            ]),
        };
        Tree::List(trees![
            declaration,
            format!("{place} = "),
            condition,
            format!(" ? &P({one}) : &P({other});\ndouble "),
            Tree::Define(result),
            format!(" = {place}->scale * {place}->call("),
            argument,
            ");\n"
        ])
    }

    /// Numbers in order, by the library's function.
    fn sorted(&mut self) -> Tree {
        let Some((place, length)) = self.doubles(2, true) else {
            return self.matrix();
        };
        let compare = self.name("h");
        self.item(
            &compare,
            trees![
                "static int P(",
                Tree::Define(compare.clone()),
                ")(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return (x > y) - (x < y); }\n"
            ],
        );
        format!("qsort({place}, {length}, sizeof(double), P({compare}));\n").into()
    }

    /// A small matrix in two dimensions.
    fn matrix(&mut self) -> Tree {
        let (name, i, j, result) = (
            self.name("m"),
            self.name("i"),
            self.name("i"),
            self.name("v"),
        );
        self.bind(i.clone(), Kind::Int, false);
        self.bind(j.clone(), Kind::Int, false);
        let value = self.double(2);
        self.scope
            .variables
            .truncate(self.scope.variables.len() - 2);
        self.bind(result.clone(), Kind::Double, true);
        Tree::List(trees![
            "double ",
            Tree::Define(name.clone()),
            "[2][3], ",
            Tree::Define(result.clone()),
            " = 0;\nfor (int ",
            Tree::Define(i.clone()),
            format!(" = 0; {i} < 2; {i}++)\nfor (int "),
            Tree::Define(j.clone()),
            format!(" = 0; {j} < 3; {j}++) {name}[{i}][{j}] = "),
            value,
            format!(
                ";\nfor (int i = 0; i < 2; i++)\nfor (int j = 0; j < 3; j++) {result} += {name}[i][j] * {name}[1 - i][2 - j];\n{result} = sin({result});\n"
            )
        ])
    }

    /// Structs of a tag and a union, which functions make, move as one of its types, and read.
    fn words(&mut self) -> Tree {
        let [tag, make, put, swap, read] =
            ["S", "h", "h", "h", "h"].map(|prefix| self.name(prefix));
        let of = format!("struct P({tag})");
        let members = [
            ("number", "double "),
            ("place", "double *"),
            ("bits", "long "),
        ];
        let (member, held) = self.random.pick(&members);
        self.item(
            &tag,
            trees![
                "struct P(",
                Tree::Define(tag.clone()),
                ") { int kind; union { double number, *place; long bits; } as; };\n"
            ],
        );
        let mut function = |name: &String, result: &str, rest: String| {
            let attribute = self.inlining();
            let start = Tree::Define(name.clone());
            let parts = trees!["static ", attribute, format!("{result} P("), start, rest];
            self.item(name, parts);
        };
        function(
            &make,
            &of,
            format!(
                ")(double *a, int kind) {{\n{of} w;\nw.kind = kind;\nif (kind) w.as.number = sin(*a); else w.as.place = a;\nreturn w;\n}}\n"
            ),
        );
        function(
            &put,
            "void",
            format!(
                ")({of} *list, int at, {held}value, int kind) {{\nlist[at].as.{member} = value;\nlist[at].kind = kind;\n}}\n"
            ),
        );
        function(
            &swap,
            "void",
            format!(
                ")({of} *a, {of} *b) {{\n{held}kept = a->as.{member};\na->as.{member} = b->as.{member};\nb->as.{member} = kept;\nint kind = a->kind;\na->kind = b->kind;\nb->kind = kind;\n}}\n"
            ),
        );
        function(
            &read,
            "double",
            format!(
                ")(const {of} *w) {{ return w->kind ? w->as.number : *w->as.place * *w->as.place; }}\n"
            ),
        );
        let [numbers, list, result] = ["v", "v", "v"].map(|prefix| self.name(prefix));
        let (one, other, first, second) = (
            self.double(2),
            self.double(1),
            self.condition(),
            self.condition(),
        );
        self.bind(result.clone(), Kind::Double, true);
        Tree::List(trees![
            "double ",
            Tree::Define(numbers.clone()),
            "[2] = {",
            one,
            ", ",
            other,
            format!("}};\n{of} "),
            Tree::Define(list.clone()),
            format!("[3] = {{P({make})({numbers}, "),
            first,
            format!("), P({make})({numbers} + 1, "),
            second,
            format!("), P({make})({numbers}, 1)}};\n"),
            Tree::Optional(vec![format!("P({swap})({list}, {list} + 2);\n").into()]),
            Tree::Optional(vec![
                format!("P({put})({list}, 1, {list}[0].as.{member}, {list}[0].kind);\n").into()
            ]),
            Tree::Optional(vec![format!("P({swap})({list} + 1, {list});\n").into()]),
            "double ",
            Tree::Define(result),
            format!(
                " = sin(P({read})({list}) + 2 * P({read})({list} + 1) - P({read})({list} + 2));\n"
            )
        ])
    }

    /// A struct that is copied byte by byte.
    fn copied_struct(&mut self) -> Tree {
        let found = self.variable(|variable| matches!(variable.kind, Kind::Struct(_)));
        let Some(variable) = found else {
            return self.matrix();
        };
        let name = self.name("v");
        let declaration = self.declare(&variable.kind, "");
        self.bind(name.clone(), variable.kind, true);
        Tree::List(trees![
            declaration,
            Tree::Define(name.clone()),
            format!(";\nmemcpy(&{name}, &{}, sizeof {name});\n", variable.place)
        ])
    }
}
