//! The state of the generator of Rust programs: names, types, helpers, and the scope.

use super::types::{Enum, Struct, Trait, Type, Types};
use crate::tree::Tree;
use crate::trees;
use ferrozyme_gen::Random;

/// Writes one program.
pub(super) struct Writer {
    pub(super) random: Random,
    pub(super) types: Types,
    /// Functions, types and constants so far.
    pub(super) items: Vec<Tree>,
    /// Functions that can be called.
    pub(super) helpers: Vec<Helper>,
    /// Arrays of floats that are constant: the name and the length.
    pub(super) tables: Vec<(String, usize)>,
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
    /// Variables and their bindings.
    pub(super) variables: Vec<Variable>,
    /// Names that can be called with a float and return one.
    pub(super) callables: Vec<String>,
    /// The function's result type.
    pub(super) result: Option<Type>,
    /// In how many loops the place is.
    pub(super) loops: usize,
    /// Whether it is within a closure, where `return` and `break` mean something else.
    pub(super) closure: bool,
    /// A call of the function itself, if it may be made.
    pub(super) recursion: Option<(usize, String)>,
}

/// A variable.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    /// How the value that it holds or refers to is written.
    pub(super) place: String,
    /// The type of that value.
    pub(super) of: Type,
    /// Whether the value may be changed.
    pub(super) mutable: bool,
}

/// A function that can be called.
#[derive(Clone, Debug)]
pub(super) struct Helper {
    pub(super) name: String,
    pub(super) parameters: Vec<Parameter>,
    pub(super) result: Type,
    /// Whether the first parameter says how deep the recursion goes.
    pub(super) recursive: bool,
    /// From which depth of calls on it may be called.
    pub(super) depth: usize,
}

/// A parameter of a helper.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Parameter {
    /// `T`.
    Value(Type),
    /// `&T`.
    Reference(Type),
    /// `&mut T`.
    Mutable(Type),
    /// `&[T]`.
    Slice(Type),
    /// `&mut [f64]`.
    Output,
    /// `&dyn Fn(f64) -> f64`.
    Dynamic,
    /// `impl Fn(f64) -> f64`.
    Generic,
}

impl Writer {
    pub(super) fn new(seed: u64) -> Writer {
        let mut random = Random::new(seed);
        let budget = random.pick(&[30, 50, 80, 80, 150, 300]);
        Writer {
            random,
            types: Types::default(),
            items: Vec::new(),
            helpers: Vec::new(),
            tables: Vec::new(),
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
        if number < 0.0 {
            format!("({number:?}_f64)")
        } else {
            format!("{number:?}_f64")
        }
    }

    /// Variables of a type, as places.
    pub(super) fn places(&self, of: &Type) -> Vec<String> {
        let fitting = self
            .scope
            .variables
            .iter()
            .filter(|variable| variable.of == *of);
        fitting.map(|variable| variable.place.clone()).collect()
    }

    /// One of the variables that satisfy a condition.
    pub(super) fn variable(
        &mut self,
        condition: impl Fn(&Self, &Variable) -> bool,
    ) -> Option<Variable> {
        let fitting: Vec<&Variable> = self
            .scope
            .variables
            .iter()
            .filter(|variable| condition(self, variable))
            .collect();
        if fitting.is_empty() {
            return None;
        }
        // Recent variables are used most.
        let count = fitting.len();
        let recent = count.min(4);
        let index = match self.random.percent(60) {
            true => count - 1 - self.random.below(recent),
            false => self.random.below(count),
        };
        Some(
            self.scope
                .variables
                .iter()
                .filter(|variable| condition(self, variable))
                .nth(index)
                .expect("counted above")
                .clone(),
        )
    }

    /// Writes something with one more variable in scope.
    pub(super) fn with<R>(
        &mut self,
        place: &str,
        of: &Type,
        mutable: bool,
        write: impl FnOnce(&mut Writer) -> R,
    ) -> R {
        let count = self.scope.variables.len();
        self.scope.variables.push(Variable {
            place: place.to_owned(),
            of: of.clone(),
            mutable,
        });
        let written = write(self);
        self.scope.variables.truncate(count);
        written
    }

    /// Writes something while a variable is borrowed, so that it is neither read nor changed.
    pub(super) fn without<R>(&mut self, place: &str, write: impl FnOnce(&mut Writer) -> R) -> R {
        let before = self.scope.variables.clone();
        let root = root_of(place);
        self.scope
            .variables
            .retain(|variable| root_of(&variable.place) != root);
        let written = write(self);
        self.scope.variables = before;
        written
    }

    /// Writes something within a closure: variables in scope can only be read.
    pub(super) fn within_closure<R>(&mut self, write: impl FnOnce(&mut Writer) -> R) -> R {
        let before = self.scope.clone();
        self.scope.closure = true;
        self.scope.recursion = None;
        for variable in &mut self.scope.variables {
            variable.mutable = false;
        }
        let written = write(self);
        self.scope = before;
        written
    }

    /// A type that a value in the program may have.
    pub(super) fn some_type(&mut self, depth: usize) -> Type {
        if depth == 0 {
            return match self.random.percent(85) {
                true => Type::Float,
                false => Type::Count,
            };
        }
        // Deep types are rarer than flat ones.
        let depth = if self.random.percent(55) { 1 } else { depth };
        let inner = |writer: &mut Writer| Box::new(writer.some_type(depth - 1));
        match self.choose(&[
            (20, 0),
            (26, 1),
            (9, 2),
            (12, 3),
            (8, 4),
            (12, 5),
            (6, 6),
            (18, 7),
            (10, 8),
            (5, 9),
            (4, 10),
        ]) {
            0 => Type::Float,
            1 => Type::Vec(inner(self)),
            2 => Type::Boxed(inner(self)),
            3 => Type::Option(inner(self)),
            4 => Type::Result(inner(self), Box::new(self.some_type(0))),
            5 => {
                let count = 2 + self.random.below(2);
                Type::Tuple((0..count).map(|_| self.some_type(depth - 1)).collect())
            }
            6 => Type::Array(inner(self), 2 + self.random.below(3)),
            7 => self.some_struct(depth),
            8 => self.some_enum(depth),
            9 => self.some_trait(depth),
            _ => Type::Shared(inner(self)),
        }
    }

    /// A struct, one that exists or a new one.
    pub(super) fn some_struct(&mut self, depth: usize) -> Type {
        let count = self.types.structs.len();
        if count > 0 && (count > 4 || self.random.percent(60)) {
            return Type::Struct(self.random.below(count));
        }
        let name = self.name("S");
        let mut fields: Vec<(String, Option<Type>)> = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            let of = self.some_type(depth.saturating_sub(1));
            fields.push((self.name("f"), Some(of)));
        }
        if self.random.percent(25) {
            fields.push((self.name("n"), None));
            // A list of numbers at least.
            fields.push((self.name("f"), Some(Type::Float)));
        }
        let mut parts = trees![
            "#[derive(Clone, Debug)]\nstruct ",
            Tree::Define(name.clone()),
            " {\n"
        ];
        for (field, of) in &fields {
            let of = match of {
                Some(of) => self.types.print(of),
                None => format!("Option<Box<{name}>>"),
            };
            parts.push(Tree::Define(field.clone()));
            parts.push(Tree::Text(format!(": {of},\n")));
        }
        parts.push("}\n".into());
        self.item(&name, parts);
        self.types.structs.push(Struct { name, fields });
        Type::Struct(self.types.structs.len() - 1)
    }

    /// An enum, one that exists or a new one.
    fn some_enum(&mut self, depth: usize) -> Type {
        let count = self.types.enums.len();
        if count > 0 && (count > 2 || self.random.percent(60)) {
            return Type::Enum(self.random.below(count));
        }
        let name = self.name("E");
        let mut variants = Vec::new();
        for _ in 0..2 + self.random.below(3) {
            let held = match self.choose(&[(30, 0), (20, 1), (50, 2)]) {
                // A float in one variant often lies where another has a pointer.
                0 => vec![Type::Float],
                1 => vec![Type::Boxed(Box::new(Type::Float))],
                _ => {
                    let count = self.random.below(3);
                    let inner = |_| self.some_type(depth.saturating_sub(1));
                    (0..count).map(inner).collect()
                }
            };
            variants.push((self.name("K"), held));
        }
        let mut parts = trees![
            "#[derive(Clone, Debug)]\nenum ",
            Tree::Define(name.clone()),
            " {\n"
        ];
        for (variant, held) in &variants {
            let held: Vec<String> = held.iter().map(|of| self.types.print(of)).collect();
            parts.push(Tree::Define(variant.clone()));
            parts.push(match held.is_empty() {
                true => ",\n".into(),
                false => Tree::Text(format!("({}),\n", held.join(", "))),
            });
        }
        parts.push("}\n".into());
        self.item(&name, parts);
        self.types.enums.push(Enum { name, variants });
        Type::Enum(self.types.enums.len() - 1)
    }

    /// A trait, one that exists or a new one, with structs that implement it.
    fn some_trait(&mut self, depth: usize) -> Type {
        let count = self.types.traits.len();
        if count > 0 && (count > 1 || self.random.percent(70)) {
            return Type::Dyn(self.random.below(count));
        }
        let name = self.name("T");
        let parts = trees![
            "trait ",
            Tree::Define(name.clone()),
            format!(
                ": std::fmt::Debug {{\nfn apply(&self, a: f64) -> f64;\nfn change(&mut self, a: f64);\nfn copy(&self) -> Box<dyn {name}>;\n}}\n\
                 impl Clone for Box<dyn {name}> {{ fn clone(&self) -> Self {{ self.copy() }} }}\n"
            )
        ];
        self.item(&name, parts);
        let mut structs = Vec::new();
        for _ in 0..2 {
            let Type::Struct(index) = self.some_struct(depth.saturating_sub(1)) else {
                continue;
            };
            if !structs.contains(&index) {
                structs.push(index);
            }
        }
        let index = self.types.traits.len();
        self.types.traits.push(Trait {
            name: name.clone(),
            structs: structs.clone(),
        });
        for of in structs {
            self.implementation(&name, of);
        }
        Type::Dyn(index)
    }

    /// How a struct implements a trait.
    fn implementation(&mut self, name: &str, of: usize) {
        let scope = std::mem::take(&mut self.scope);
        let depth = std::mem::replace(&mut self.call_depth, 9);
        let value = Type::Struct(of);
        let struct_name = self.types.structs[of].name.clone();
        let apply = self.with("a", &Type::Float, false, |writer| {
            writer.with("(*self)", &value, false, |writer| {
                let fold = writer.fold(&value, "(*self)", 2);
                let float = writer.float(1);
                Tree::Float(trees!["(", fold, " * ", float, ").sin()"])
            })
        });
        let change = self.with("a", &Type::Float, false, |writer| {
            Tree::Optional(vec![writer.change(&value, "(*self)", 2)])
        });
        let attribute = self.inlining();
        let parts = trees![
            format!("impl {name} for {struct_name} {{\n"),
            attribute,
            "fn apply(&self, a: f64) -> f64 {\n",
            apply,
            "\n}\nfn change(&mut self, a: f64) {\n",
            change,
            format!("\n}}\nfn copy(&self) -> Box<dyn {name}> {{ Box::new(self.clone()) }}\n}}\n")
        ];
        self.items.push(Tree::Item {
            name: None,
            needs: vec![name.to_owned(), struct_name],
            parts,
        });
        self.scope = scope;
        self.call_depth = depth;
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
            0 => Tree::Optional(trees!["#[inline(never)]\n"]),
            1 => Tree::Optional(trees!["#[inline]\n"]),
            _ => "".into(),
        }
    }
}

/// The variable that a place belongs to.
pub(super) fn root_of(place: &str) -> String {
    place
        .trim_start_matches(['(', '*', '&'])
        .chars()
        .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
        .collect()
}
