//! Functions beside the root, and calls of them.

use super::types::Type;
use super::writer::{Helper, Parameter, Scope, Variable, Writer};
use crate::tree::Tree;
use crate::trees;

/// How deep calls go.
const DEEPEST: usize = 3;

impl Writer {
    /// An expression that calls a function for a value of this type.
    pub(super) fn call(&mut self, of: &Type, depth: usize) -> Tree {
        if self.call_depth >= DEEPEST || self.budget <= 0 {
            return self.construct(of, depth);
        }
        if let Some((index, remaining)) = self.scope.recursion.clone()
            && self.helpers[index].result == *of
        {
            // Once, or it takes forever.
            self.scope.recursion = None;
            return self.call_of(index, &[], Some(remaining), depth);
        }
        let known: Vec<usize> = (0..self.helpers.len())
            .filter(|index| {
                self.helpers[*index].result == *of
                    && self.helpers[*index].depth > self.call_depth
                    && self.helpers[*index].depth < 9
            })
            .collect();
        if !known.is_empty() && self.random.percent(50) {
            let index = known[self.random.below(known.len())];
            return self.call_of(index, &[], None, depth);
        }
        let index = self.helper(of, &[]);
        self.call_of(index, &[], None, depth)
    }

    /// A call of a new function that takes certain arguments, and others.
    pub(super) fn call_with(&mut self, of: &Type, arguments: &[(Parameter, String)]) -> Tree {
        let wanted: Vec<Parameter> = arguments.iter().map(|(wanted, _)| wanted.clone()).collect();
        let known = (0..self.helpers.len()).find(|index| {
            let helper = &self.helpers[*index];
            helper.depth > self.call_depth
                && helper.depth < 9
                && helper.result == *of
                && helper.parameters.starts_with(&wanted)
                && !helper.recursive
        });
        let index = match known {
            Some(index) if self.random.percent(60) => index,
            _ if self.call_depth >= DEEPEST => return Tree::Text(self.number()),
            _ => self.helper(of, &wanted),
        };
        self.call_of(index, arguments, None, 1)
    }

    /// A statement that calls a function which changes a variable.
    pub(super) fn call_that_changes(&mut self, variable: &Variable) -> Tree {
        let argument = (
            Parameter::Mutable(variable.of.clone()),
            format!("&mut {}", variable.place),
        );
        let value = self.without(&variable.place, |writer| {
            writer.call_with(&Type::Float, &[argument])
        });
        self.accumulated(value)
    }

    /// A function from float to float whose name can be a value.
    pub(super) fn plain_function(&mut self) -> String {
        let known = self.helpers.iter().find(|helper| {
            helper.parameters == [Parameter::Value(Type::Float)]
                && helper.result == Type::Float
                && !helper.recursive
                && helper.depth > self.call_depth
        });
        if let Some(known) = known
            && self.random.percent(40)
        {
            return known.name.clone();
        }
        let name = self.name("h");
        let argument = self.name("a");
        let scope = std::mem::take(&mut self.scope);
        let depth = std::mem::replace(&mut self.call_depth, DEEPEST);
        let body = self.with(&argument, &Type::Float, false, |writer| writer.float(2));
        self.scope = scope;
        self.call_depth = depth;
        let attribute = self.inlining();
        let parts = trees![
            attribute,
            "fn ",
            Tree::Define(name.clone()),
            "(",
            Tree::Define(argument),
            ": f64) -> f64 { ",
            body,
            " }\n"
        ];
        self.item(&name, parts);
        self.helpers.push(Helper {
            name: name.clone(),
            parameters: vec![Parameter::Value(Type::Float)],
            result: Type::Float,
            recursive: false,
            depth: DEEPEST + 1,
        });
        name
    }

    /// Writes a function that returns a type, and takes these parameters before others.
    fn helper(&mut self, of: &Type, first: &[Parameter]) -> usize {
        let name = self.name("h");
        let mut parameters = first.to_vec();
        let recursive = first.is_empty() && self.random.percent(15);
        // The result of a function should depend on its inputs.
        if self.random.percent(80) {
            parameters.push(Parameter::Value(Type::Float));
        }
        for _ in 0..self.random.below(3) {
            let parameter = match self.parameter() {
                // A function that calls itself with another closure would need endlessly many types.
                Parameter::Generic if recursive => Parameter::Dynamic,
                parameter => parameter,
            };
            parameters.push(parameter);
        }
        let index = self.helpers.len();
        self.helpers.push(Helper {
            name: name.clone(),
            parameters: parameters.clone(),
            result: of.clone(),
            recursive,
            // Not callable by other functions while it is being written.
            depth: 0,
        });
        let scope = std::mem::replace(
            &mut self.scope,
            Scope {
                result: Some(of.clone()),
                ..Scope::default()
            },
        );
        self.call_depth += 1;
        let mut head = trees!["fn ", Tree::Define(name.clone()), "("];
        let remaining = self.name("d");
        if recursive {
            head.extend(trees![Tree::Define(remaining.clone()), ": usize, "]);
            self.scope.recursion = Some((index, format!("{remaining} - 1")));
        }
        for parameter in &parameters {
            let name = self.name("p");
            let printed = self.bind_parameter(parameter, &name);
            head.extend(trees![Tree::Define(name), format!(": {printed}, ")]);
        }
        let base = recursive.then(|| {
            let recursion = self.scope.recursion.take();
            let value = self.construct(of, 1);
            self.scope.recursion = recursion;
            Tree::List(trees![
                format!("if {remaining} == 0 {{ return "),
                value,
                "; }\n"
            ])
        });
        let count = self.random.below(4);
        let statements = self.statements(count, 1);
        let recursion = match recursive {
            true if self.scope.recursion.is_some() => {
                let call = self.call(of, 1);
                let printed = self.types.print(of);
                let name = self.name("v");
                self.scope.variables.push(Variable {
                    place: name.clone(),
                    of: of.clone(),
                    mutable: true,
                });
                Tree::List(trees![
                    "let mut ",
                    Tree::Define(name),
                    format!(": {printed} = "),
                    call,
                    ";\n"
                ])
            }
            _ => "".into(),
        };
        let result = match of {
            Type::Float => self.bounded_result(),
            _ => self.result(of),
        };
        self.call_depth -= 1;
        self.scope = scope;
        let attribute = self.inlining();
        let printed = self.types.print(of);
        let mut parts = trees![attribute, head, format!(") -> {printed} {{\n")];
        parts.extend(base);
        parts.extend(statements);
        parts.extend(trees![recursion, result, "\n}\n"]);
        self.item(&name, parts);
        self.helpers[index].depth = self.call_depth + 1;
        index
    }

    /// The last expression of a function that returns a float.
    pub(super) fn bounded_result(&mut self) -> Tree {
        let float = self.float(1);
        let mut sum = Tree::Float(trees!["(", float, ")"]);
        // All values should matter.
        let variables = self.scope.variables.clone();
        for variable in variables.iter().rev().take(6) {
            let chance = if variable.mutable { 90 } else { 35 };
            if variable.of != Type::Count && self.random.percent(chance) {
                let fold = self.fold(&variable.of, &variable.place, 2);
                sum = Tree::Float(trees![sum, " + ", Tree::Float(trees!["(", fold, ")"])]);
            }
        }
        Tree::Float(trees!["(", sum, ").tanh()"])
    }

    /// The last expression of a function.
    fn result(&mut self, of: &Type) -> Tree {
        let wanted = of.clone();
        let made = self.variable(|_, variable| {
            // A value that is not behind a reference can be moved.
            variable.of == wanted && variable.place.starts_with('v')
        });
        match made {
            Some(variable) if self.random.percent(70) => variable.place.into(),
            _ => self.value(of, 2),
        }
    }

    fn parameter(&mut self) -> Parameter {
        match self.choose(&[
            (30, 0),
            (14, 1),
            (16, 2),
            (10, 3),
            (12, 4),
            (8, 5),
            (5, 6),
            (5, 7),
        ]) {
            0 => Parameter::Value(Type::Float),
            1 => Parameter::Value(self.some_type(2)),
            2 => Parameter::Reference(self.some_type(2)),
            3 => Parameter::Mutable(self.some_type(2)),
            4 => Parameter::Slice(match self.random.percent(70) {
                true => Type::Float,
                false => self.some_type(1),
            }),
            5 => Parameter::Output,
            6 => Parameter::Dynamic,
            _ => Parameter::Generic,
        }
    }

    /// Puts a parameter into scope; returns how its type is written.
    fn bind_parameter(&mut self, parameter: &Parameter, name: &str) -> String {
        let behind = format!("(*{name})");
        let (place, of, mutable, printed) = match parameter {
            Parameter::Value(of) => (name, of.clone(), false, self.types.print(of)),
            Parameter::Reference(of) => {
                let printed = format!("&{}", self.types.print(of));
                (behind.as_str(), of.clone(), false, printed)
            }
            Parameter::Mutable(of) => {
                let printed = format!("&mut {}", self.types.print(of));
                (behind.as_str(), of.clone(), true, printed)
            }
            Parameter::Slice(of) => {
                let printed = format!("&[{}]", self.types.print(of));
                let of = Type::Slice(Box::new(of.clone()));
                (behind.as_str(), of, false, printed)
            }
            Parameter::Output => {
                let of = Type::Slice(Box::new(Type::Float));
                (behind.as_str(), of, true, "&mut [f64]".to_owned())
            }
            Parameter::Dynamic | Parameter::Generic => {
                self.scope.callables.push(name.to_owned());
                return match parameter {
                    Parameter::Dynamic => "&dyn Fn(f64) -> f64".to_owned(),
                    _ => "impl Fn(f64) -> f64".to_owned(),
                };
            }
        };
        self.scope.variables.push(Variable {
            place: place.to_owned(),
            of,
            mutable,
        });
        printed
    }

    fn call_of(
        &mut self,
        index: usize,
        given: &[(Parameter, String)],
        remaining: Option<String>,
        depth: usize,
    ) -> Tree {
        let helper = self.helpers[index].clone();
        let mut parts = trees![format!("{}(", helper.name)];
        if helper.recursive {
            let remaining = match remaining {
                Some(remaining) => remaining,
                None => (1 + self.random.below(4)).to_string(),
            };
            parts.push(format!("{remaining}, ").into());
        }
        for (position, parameter) in helper.parameters.iter().enumerate() {
            let argument = match given.get(position) {
                Some((_, argument)) => argument.clone().into(),
                None => self.argument(parameter, depth),
            };
            parts.push(argument);
            parts.push(", ".into());
        }
        parts.push(")".into());
        match helper.result {
            Type::Float => Tree::Float(parts),
            _ => Tree::List(parts),
        }
    }

    fn argument(&mut self, parameter: &Parameter, depth: usize) -> Tree {
        let depth = depth.min(2).saturating_sub(1);
        match parameter {
            Parameter::Value(of) => self.value(of, depth),
            Parameter::Reference(Type::Slice(of)) => {
                self.argument(&Parameter::Slice((**of).clone()), depth)
            }
            Parameter::Mutable(Type::Slice(of)) => {
                let value = self.construct(&Type::Vec(of.clone()), depth);
                Tree::List(trees!["&mut { ", value, " }"])
            }
            Parameter::Reference(of) => {
                let places = self.places(of);
                if !places.is_empty() && self.random.percent(75) {
                    let place = &places[self.random.below(places.len())];
                    return format!("&{place}").into();
                }
                let value = self.value(of, depth);
                Tree::List(trees!["&", value])
            }
            // Places are changed by statements alone.
            Parameter::Mutable(of) => {
                let value = self.construct(of, depth);
                // A block, because the value may be a place of its own.
                Tree::List(trees!["&mut { ", value, " }"])
            }
            Parameter::Slice(of) => {
                let wanted = of.clone();
                let place = self.variable(|_, variable| match &variable.of {
                    Type::Vec(of) | Type::Array(of, _) | Type::Slice(of) => **of == wanted,
                    _ => false,
                });
                match place {
                    Some(variable) => {
                        let part = self
                            .random
                            .pick(&["..", "..", "..", "..PLACE.len().min(2)"]);
                        let part = part.replace("PLACE", &variable.place);
                        format!("&{}[{part}]", variable.place).into()
                    }
                    None => {
                        let value = self.construct(&Type::Vec(Box::new(of.clone())), depth);
                        Tree::List(trees!["&", value])
                    }
                }
            }
            Parameter::Output => {
                let (a, b) = (self.float(0), self.float(0));
                Tree::List(trees!["&mut [", a, ", ", b, ", 0.0]"])
            }
            Parameter::Dynamic | Parameter::Generic => {
                let reference = if *parameter == Parameter::Dynamic {
                    "&"
                } else {
                    ""
                };
                if self.random.percent(25) {
                    let name = self.plain_function();
                    return format!("{reference}{name}").into();
                }
                let name = self.name("a");
                let body = self.within_closure(|writer| {
                    writer.with(&name, &Type::Float, false, |writer| writer.float(2))
                });
                Tree::List(trees![
                    reference,
                    "|",
                    Tree::Define(name),
                    ": f64| -> f64 { ",
                    body,
                    " }"
                ])
            }
        }
    }
}
