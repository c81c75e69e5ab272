//! Functions beside the root, and calls of them.

use super::writer::{Helper, Kind, Parameter, Scope, Writer};
use crate::tree::Tree;
use crate::trees;

/// How deep calls go.
const DEEPEST: usize = 3;

impl Writer {
    /// An expression that calls a function for a value of this kind: a double or a struct. (Pointers are made by statements, which release them.)
    pub(super) fn call(&mut self, result: &Kind, depth: usize) -> Tree {
        if self.call_depth >= DEEPEST || self.budget <= 0 {
            return self.simple(result);
        }
        if let Some((index, remaining)) = self.scope.recursion.clone()
            && self.helpers[index].result == *result
        {
            // Once, or it takes forever.
            self.scope.recursion = None;
            return self.call_of(index, Some(remaining), depth);
        }
        let index = match self.known(result) {
            Some(index) if self.random.percent(55) => index,
            _ => self.helper(result),
        };
        self.call_of(index, None, depth)
    }

    /// A value without any call.
    fn simple(&mut self, kind: &Kind) -> Tree {
        match kind {
            Kind::Struct(index) => {
                if let Some(variable) = self.variable_of(kind, false) {
                    return variable.place.into();
                }
                let list = self.initial_list(*index, 0);
                let name = self.structs[*index].name.clone();
                Tree::List(trees![format!("({name})"), list])
            }
            Kind::Function => self.function().into(),
            Kind::Int => self.int(),
            _ => self.double_leaf(),
        }
    }

    /// A function that can be called from here.
    fn known(&mut self, result: &Kind) -> Option<usize> {
        let known: Vec<usize> = (0..self.helpers.len())
            .filter(|index| {
                let helper = &self.helpers[*index];
                helper.result == *result && helper.depth > self.call_depth && helper.depth < 9
            })
            .collect();
        match known.is_empty() {
            true => None,
            false => Some(known[self.random.below(known.len())]),
        }
    }

    /// A call of a function that returns memory which it has allocated.
    pub(super) fn call_for_memory(&mut self, result: &Kind) -> Tree {
        let known = self.known(result);
        let index = match known {
            Some(index) if self.random.percent(40) => index,
            _ => self.helper(result),
        };
        self.call_of(index, None, 1)
    }

    /// A function from double to double whose name can be a value.
    pub(super) fn function(&mut self) -> String {
        let known = self.helpers.iter().find(|helper| {
            helper.parameters == [Parameter::Value(Kind::Double)]
                && helper.result == Kind::Double
                && !helper.recursive
                && helper.depth == DEEPEST + 1
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
        self.bind(argument.clone(), Kind::Double, false);
        let body = self.double(2);
        self.scope = scope;
        self.call_depth = depth;
        let attribute = self.inlining();
        let parts = trees![
            "static ",
            attribute,
            "double P(",
            Tree::Define(name.clone()),
            ")(double ",
            Tree::Define(argument),
            ") { return ",
            body,
            "; }\n"
        ];
        self.item(&name, parts);
        self.helpers.push(Helper {
            name: format!("P({name})"),
            parameters: vec![Parameter::Value(Kind::Double)],
            result: Kind::Double,
            recursive: false,
            depth: DEEPEST + 1,
        });
        format!("P({name})")
    }

    /// Writes a function that returns a kind.
    fn helper(&mut self, result: &Kind) -> usize {
        let name = self.name("h");
        let recursive = matches!(result, Kind::Double) && self.random.percent(20);
        let mut parameters = vec![Parameter::Value(Kind::Double)];
        for _ in 0..self.random.below(3) {
            parameters.push(self.parameter());
        }
        let index = self.helpers.len();
        self.helpers.push(Helper {
            name: format!("P({name})"),
            parameters: parameters.clone(),
            result: result.clone(),
            recursive,
            // Not callable by other functions while it is being written.
            depth: 0,
        });
        let scope = std::mem::replace(
            &mut self.scope,
            Scope {
                result: Some(result.clone()),
                ..Scope::default()
            },
        );
        self.call_depth += 1;
        let attribute = self.inlining();
        let head = self.declare(result, "\u{0}");
        let (before, _) = head.split_once('\u{0}').unwrap_or((head.as_str(), ""));
        let mut parts = trees![
            "static ",
            attribute,
            format!("{before}P("),
            Tree::Define(name.clone()),
            ")("
        ];
        let remaining = self.name("d");
        if recursive {
            parts.extend(trees!["int ", Tree::Define(remaining.clone()), ", "]);
        }
        for (position, parameter) in parameters.iter().enumerate() {
            if position > 0 {
                parts.push(", ".into());
            }
            self.bind_parameter(parameter, &mut parts);
        }
        parts.push(") {\n".into());
        if recursive {
            let value = self.double_leaf();
            parts.extend(trees![
                format!("if ({remaining} <= 0) return "),
                value,
                ";\n"
            ]);
            self.scope.recursion = Some((index, format!("{remaining} - 1")));
        }
        let count = self.random.below(4);
        parts.extend(self.statements(count, 1));
        parts.extend(self.ending(result));
        parts.push("}\n".into());
        self.call_depth -= 1;
        self.scope = scope;
        self.item(&name, parts);
        self.helpers[index].depth = self.call_depth + 1;
        index
    }

    /// The last statements of a function: makes the result, releases memory, returns.
    pub(super) fn ending(&mut self, result: &Kind) -> Vec<Tree> {
        let mut parts = Vec::new();
        let name = self.name("r");
        match result {
            Kind::Double => {
                let value = self.summary();
                parts.extend(trees![
                    "double ",
                    Tree::Define(name.clone()),
                    " = ",
                    value,
                    ";\n"
                ]);
            }
            Kind::Struct(_) => {
                let declaration = self.declare(result, "");
                let made = self.variable_of(result, false);
                let value = match made {
                    Some(variable) => variable.place.into(),
                    None => self.initial(result, 2),
                };
                parts.extend(trees![
                    declaration,
                    Tree::Define(name.clone()),
                    " = ",
                    value,
                    ";\n"
                ]);
            }
            Kind::Doubles(length) => {
                parts.extend(trees![
                    "double *",
                    Tree::Define(name.clone()),
                    format!(" = malloc({length} * sizeof(double));\n")
                ]);
                for index in 0..*length {
                    let value = self.double(2);
                    parts.extend(trees![format!("{name}[{index}] = sin("), value, ");\n"]);
                }
            }
            Kind::Structs(index, length) => {
                let of = self.structs[*index].name.clone();
                parts.extend(trees![
                    format!("{of} *"),
                    Tree::Define(name.clone()),
                    format!(" = malloc({length} * sizeof({of}));\n")
                ]);
                for element in 0..*length {
                    let value = self.initial(&Kind::Struct(*index), 1);
                    parts.extend(trees![format!("{name}[{element}] = "), value, ";\n"]);
                }
            }
            Kind::Int | Kind::Function => {}
        }
        for owned in self.scope.owned.clone().iter().rev() {
            parts.push(Tree::Optional(trees![format!("free({owned});\n")]));
        }
        parts.push(format!("return {name};\n").into());
        parts
    }

    /// A double computed from the scope, so that all values matter.
    pub(super) fn summary(&mut self) -> Tree {
        let double = self.double(3);
        let mut sum = Tree::Float(trees!["(", double, ")"]);
        let variables = self.scope.variables.clone();
        for variable in variables.iter().rev().take(6) {
            let chance = if variable.mutable { 75 } else { 35 };
            if variable.kind != Kind::Int && self.random.percent(chance) {
                let fold = self.fold(&variable.kind, &variable.place, 2);
                sum = Tree::Float(trees![sum, " + ", Tree::Float(trees!["(", fold, ")"])]);
            }
        }
        Tree::Float(trees!["tanh(", sum, ")"])
    }

    fn parameter(&mut self) -> Parameter {
        match self.choose(&[(20, 0), (10, 1), (12, 2), (14, 3), (12, 4), (12, 5), (8, 6)]) {
            0 => Parameter::Value(Kind::Double),
            1 => Parameter::Value(Kind::Int),
            2 => Parameter::Value(Kind::Struct(self.some_struct())),
            3 => Parameter::Input(2 + self.random.below(2)),
            4 => Parameter::Output(2 + self.random.below(2)),
            5 => Parameter::Pointer(self.some_struct()),
            _ => Parameter::Value(Kind::Function),
        }
    }

    /// Puts a parameter into scope and writes it.
    fn bind_parameter(&mut self, parameter: &Parameter, parts: &mut Vec<Tree>) {
        let name = self.name("p");
        match parameter {
            Parameter::Value(Kind::Function) => {
                parts.extend(trees!["double (*", Tree::Define(name.clone()), ")(double)"]);
                self.bind(name, Kind::Function, false);
            }
            Parameter::Value(kind) => {
                let declaration = self.declare(kind, "");
                parts.extend(trees![declaration, Tree::Define(name.clone())]);
                let mutable = !matches!(kind, Kind::Int);
                self.bind(name, kind.clone(), mutable);
            }
            Parameter::Input(length) => {
                let mut restrict = self.random.pick(&["", "restrict "]);
                if !self.globals.is_empty() {
                    // The array may be a global one that the function, or one that it calls, writes to.
                    restrict = "";
                }
                parts.extend(trees![
                    format!("const double *{restrict}"),
                    Tree::Define(name.clone())
                ]);
                self.bind(name, Kind::Doubles(*length), false);
            }
            Parameter::Output(length) => {
                parts.extend(trees!["double *", Tree::Define(name.clone())]);
                self.bind(name, Kind::Doubles(*length), true);
            }
            Parameter::Pointer(index) => {
                let of = self.structs[*index].name.clone();
                parts.extend(trees![format!("{of} *"), Tree::Define(name.clone())]);
                self.bind(format!("(*{name})"), Kind::Struct(*index), true);
            }
        }
    }

    pub(super) fn call_of(
        &mut self,
        index: usize,
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
            if position > 0 {
                parts.push(", ".into());
            }
            let argument = self.argument(parameter, depth);
            parts.push(argument);
        }
        parts.push(")".into());
        match helper.result {
            Kind::Double => Tree::Float(parts),
            _ => Tree::List(parts),
        }
    }

    fn argument(&mut self, parameter: &Parameter, depth: usize) -> Tree {
        let depth = depth.min(2).saturating_sub(1);
        match parameter {
            Parameter::Value(Kind::Double) => self.double(depth),
            Parameter::Value(Kind::Int) => self.int(),
            Parameter::Value(Kind::Function) => match self.variable_of(&Kind::Function, false) {
                Some(variable) if self.random.percent(50) => variable.place.into(),
                _ => self.function().into(),
            },
            Parameter::Value(kind) => match self.variable_of(kind, false) {
                Some(variable) if self.random.percent(70) => variable.place.into(),
                _ => self.initial(kind, 1),
            },
            Parameter::Input(length) => match self.doubles(*length, false) {
                Some((place, _)) => place.into(),
                None => self.literal(*length),
            },
            // Memory of its own: the order in which arguments are evaluated is not known.
            Parameter::Output(length) => self.literal(*length),
            Parameter::Pointer(index) => {
                let value = self.initial_list(*index, 1);
                let name = self.structs[*index].name.clone();
                Tree::List(trees![format!("&({name})"), value])
            }
        }
    }

    /// An array in its place.
    fn literal(&mut self, length: usize) -> Tree {
        let mut parts = trees!["(double[]){"];
        for _ in 0..length {
            let value = self.double(0);
            parts.extend(trees![value, ", "]);
        }
        parts.push("}".into());
        Tree::List(parts)
    }

    /// An expression for a new value of a kind.
    pub(super) fn initial(&mut self, kind: &Kind, depth: usize) -> Tree {
        match kind {
            Kind::Double => self.double(depth.min(2)),
            Kind::Int => self.int(),
            Kind::Function => self.function().into(),
            Kind::Struct(index) => {
                if depth > 0 && self.budget > 0 && self.random.percent(35) {
                    return self.call(kind, depth - 1);
                }
                let list = self.initial_list(*index, depth);
                let name = self.structs[*index].name.clone();
                Tree::List(trees![format!("({name})"), list])
            }
            Kind::Doubles(_) | Kind::Structs(..) => self.call_for_memory(kind),
        }
    }

    /// The fields of a new struct between braces.
    fn initial_list(&mut self, index: usize, depth: usize) -> Tree {
        let the_struct = self.structs[index].clone();
        let mut parts = trees!["{"];
        for (field, kind) in &the_struct.fields {
            // The second view of a union would hide the first.
            if field.ends_with(".b") {
                continue;
            }
            match kind {
                Kind::Doubles(length) => {
                    for element in 0..*length {
                        let value = self.double(0);
                        parts.extend(trees![format!("{field}[{element}] = "), value, ", "]);
                    }
                }
                Kind::Struct(inner) => {
                    let value = self.initial_list(*inner, depth.saturating_sub(1));
                    parts.extend(trees![format!("{field} = "), value, ", "]);
                }
                _ => {
                    let value = self.initial(kind, depth.saturating_sub(1));
                    parts.extend(trees![format!("{field} = "), value, ", "]);
                }
            }
        }
        // Only within the block that it is written in: no list is returned.
        if let Some(next) = &the_struct.next {
            parts.push(format!(".{next} = 0").into());
        }
        parts.push("}".into());
        Tree::List(parts)
    }
}
