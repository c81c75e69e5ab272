//! The state of the generator of C programs: names, structs, helpers, and the scope.

use crate::tree::Tree;
use crate::trees;
use ferrozyme_gen::Random;

/// Writes one program.
pub(super) struct Writer {
    pub(super) random: Random,
    /// Functions, types and tables so far.
    pub(super) items: Vec<Tree>,
    pub(super) structs: Vec<Struct>,
    pub(super) helpers: Vec<Helper>,
    /// Constant arrays: name and length.
    pub(super) tables: Vec<(String, usize)>,
    /// Global variables; the root sets each of them first.
    pub(super) globals: Vec<Variable>,
    /// The scope.
    pub(super) scope: Scope,
    /// How many more nodes may be written before everything is made as short as possible.
    pub(super) budget: i64,
    /// How deep calls of helpers go from here.
    pub(super) call_depth: usize,
    names: usize,
}

/// The scope of the current function.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub(super) variables: Vec<Variable>,
    /// The function's result type.
    pub(super) result: Option<Kind>,
    /// Memory that the function has allocated and must free.
    pub(super) owned: Vec<String>,
    /// In how many loops the place is; `continue` must not skip what ends one.
    pub(super) loops: usize,
    /// A call of the function itself, if it may be made.
    pub(super) recursion: Option<(usize, String)>,
}

/// The type of a variable.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    /// `double`.
    Double,
    /// `int`, small and not negative.
    Int,
    /// An array of doubles, or a pointer to this many.
    Doubles(usize),
    /// A struct, by its position.
    Struct(usize),
    /// An array of structs, or a pointer to this many.
    Structs(usize, usize),
    /// `double (*)(double)`.
    Function,
}

/// A variable.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    /// How it is written.
    pub(super) place: String,
    pub(super) kind: Kind,
    pub(super) mutable: bool,
}

/// A struct of the program.
#[derive(Clone, Debug)]
pub(super) struct Struct {
    /// Its name with `struct`.
    pub(super) name: String,
    /// The access path and types of its fields.
    pub(super) fields: Vec<(String, Kind)>,
    /// The field that points to the next element of a list.
    pub(super) next: Option<String>,
}

/// A function that can be called.
#[derive(Clone, Debug)]
pub(super) struct Helper {
    /// Its name as it is called.
    pub(super) name: String,
    pub(super) parameters: Vec<Parameter>,
    /// Its result: several doubles or structs are a pointer to allocated memory.
    pub(super) result: Kind,
    pub(super) recursive: bool,
    /// From which depth of calls on it may be called.
    pub(super) depth: usize,
}

/// A parameter of a helper.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Parameter {
    /// By value.
    Value(Kind),
    /// `const double *`, to this many.
    Input(usize),
    /// `double *`, to this many.
    Output(usize),
    /// A pointer to a struct.
    Pointer(usize),
}

impl Writer {
    pub(super) fn new(seed: u64) -> Writer {
        let mut random = Random::new(seed);
        let budget = random.pick(&[30, 50, 80, 80, 150, 300]);
        Writer {
            random,
            items: Vec::new(),
            structs: Vec::new(),
            helpers: Vec::new(),
            tables: Vec::new(),
            globals: Vec::new(),
            scope: Scope::default(),
            budget,
            call_depth: 0,
            names: 0,
        }
    }

    /// A new name.
    pub(super) fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    /// Counts written statements; false once the budget is spent.
    pub(super) fn spend(&mut self) -> bool {
        self.budget -= 1;
        self.budget > 0
    }

    /// One of the choices, each as likely as its weight says.
    pub(super) fn choose<T: Copy>(&mut self, choices: &[(u32, T)]) -> T {
        let weights = choices.iter().map(|(weight, _)| *weight);
        let index = self.random.weighted(weights);
        choices[index.expect("one of the weights is not zero")].1
    }

    /// A number as it is written.
    pub(super) fn number(&mut self) -> String {
        let number = self.random.between(-150, 150) as f64 / 100.0;
        match number < 0.0 {
            true => format!("({number:?})"),
            false => format!("{number:?}"),
        }
    }

    /// One of the variables that satisfy a condition, recent ones more often.
    pub(super) fn variable(&mut self, condition: impl Fn(&Variable) -> bool) -> Option<Variable> {
        let all = self.globals.iter().chain(&self.scope.variables);
        let fitting: Vec<&Variable> = all.filter(|variable| condition(variable)).collect();
        if fitting.is_empty() {
            return None;
        }
        let recent = fitting.len().min(4);
        let index = match self.random.percent(60) {
            true => fitting.len() - 1 - self.random.below(recent),
            false => self.random.below(fitting.len()),
        };
        Some(fitting[index].clone())
    }

    /// A variable of a kind.
    pub(super) fn variable_of(&mut self, kind: &Kind, mutable: bool) -> Option<Variable> {
        self.variable(|variable| variable.kind == *kind && (variable.mutable || !mutable))
    }

    /// Doubles in memory, at least this many.
    pub(super) fn doubles(&mut self, count: usize, mutable: bool) -> Option<(String, usize)> {
        let found = self.variable(|variable| {
            matches!(variable.kind, Kind::Doubles(length) if length >= count)
                && (variable.mutable || !mutable)
        })?;
        match found.kind {
            Kind::Doubles(length) => Some((found.place, length)),
            _ => None,
        }
    }

    /// Puts a variable into scope.
    pub(super) fn bind(&mut self, place: impl Into<String>, kind: Kind, mutable: bool) {
        self.scope.variables.push(Variable {
            place: place.into(),
            kind,
            mutable,
        });
    }

    /// Adds an item that other code uses by its name.
    pub(super) fn item(&mut self, name: &str, parts: Vec<Tree>) {
        self.items.push(Tree::Item {
            name: Some(name.to_owned()),
            needs: Vec::new(),
            parts,
        });
    }

    /// The inlining attribute of a function.
    pub(super) fn inlining(&mut self) -> Tree {
        match self.choose(&[(50, 0), (10, 1), (40, 2)]) {
            0 => Tree::Optional(trees!["__attribute__((noinline))\n"]),
            1 => "inline ".into(),
            _ => "".into(),
        }
    }

    /// How a kind is declared, with a name.
    pub(super) fn declare(&self, kind: &Kind, name: &str) -> String {
        match kind {
            Kind::Double => format!("double {name}"),
            Kind::Int => format!("int {name}"),
            Kind::Doubles(_) => format!("double *{name}"),
            Kind::Struct(index) => format!("{} {name}", self.structs[*index].name),
            Kind::Structs(index, _) => format!("{} *{name}", self.structs[*index].name),
            Kind::Function => format!("double (*{name})(double)"),
        }
    }

    /// A struct, one that exists or a new one.
    pub(super) fn some_struct(&mut self) -> usize {
        let count = self.structs.len();
        if count > 0 && (count > 3 || self.random.percent(60)) {
            return self.random.below(count);
        }
        let tag = self.name("S");
        let name = format!("struct P({tag})");
        let mut parts = trees!["struct P(", Tree::Define(tag.clone()), ") {\n"];
        let mut fields = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            let field = self.name("f");
            let kind = self.choose(&[(40, 0), (10, 1), (16, 2), (12, 3), (8, 4), (6, 5)]);
            parts.push(match kind {
                1 => "int ".into(),
                3 if count > 0 => {
                    let inner = self.random.below(count);
                    fields.push((format!(".{field}"), Kind::Struct(inner)));
                    format!("{} ", self.structs[inner].name).into()
                }
                4 => {
                    // Two views of the same doubles.
                    let (one, other) = (self.name("f"), self.name("f"));
                    fields.push((format!(".{field}.{one}"), Kind::Doubles(2)));
                    fields.push((format!(".{field}.{other}.b"), Kind::Double));
                    format!("union {{ double {one}[2]; struct {{ double a, b; }} {other}; }} ")
                        .into()
                }
                5 => {
                    fields.push((format!(".{field}"), Kind::Function));
                    format!("double (*{field})(double);\n//").into()
                }
                _ => "double ".into(),
            });
            parts.push(Tree::Define(field.clone()));
            match kind {
                1 => fields.push((format!(".{field}"), Kind::Int)),
                2 => {
                    let length = 2 + self.random.below(2);
                    parts.push(format!("[{length}]").into());
                    fields.push((format!(".{field}"), Kind::Doubles(length)));
                }
                3 if count > 0 => {}
                4 | 5 => {}
                _ => fields.push((format!(".{field}"), Kind::Double)),
            }
            parts.push(";\n".into());
        }
        let next = self.random.percent(25).then(|| self.name("n"));
        if let Some(next) = &next {
            parts.extend(trees![
                format!("{name} *"),
                Tree::Define(next.clone()),
                ";\n"
            ]);
        }
        parts.push("};\n".into());
        self.item(&tag, parts);
        self.structs.push(Struct { name, fields, next });
        self.structs.len() - 1
    }
}
