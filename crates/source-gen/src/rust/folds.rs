//! Expressions that make one float of a value of any type.

use super::types::Type;
use super::writer::Writer;
use crate::tree::Tree;
use crate::trees;

impl Writer {
    /// A float computed from the value at a place, which is not changed.
    pub(super) fn fold(&mut self, of: &Type, place: &str, depth: usize) -> Tree {
        self.spend();
        if depth > 0
            && !matches!(of, Type::Float | Type::Count)
            && self.budget > 0
            && self.random.percent(22)
        {
            return self.fold_by_helper(of, place);
        }
        let next = depth.saturating_sub(1);
        match of {
            Type::Float => Tree::Float(trees![place]),
            Type::Count => Tree::Float(trees![format!("({place} as f64 * 0.25)")]),
            Type::Vec(element) | Type::Slice(element) => self.fold_elements(element, place, next),
            Type::Array(element, length) => {
                if self.random.percent(50) {
                    return self.fold_elements(element, place, next);
                }
                let index = self.random.below(*length);
                self.fold(element, &format!("{place}[{index}]"), next)
            }
            Type::Boxed(inner) => self.fold(inner, &format!("(*{place})"), depth),
            Type::Shared(inner) => {
                let name = self.name("r");
                let fold = self.fold(inner, &format!("(*{name})"), next);
                Tree::Float(trees![
                    "({ let ",
                    Tree::Define(name),
                    format!(" = {place}.borrow(); "),
                    fold,
                    " })"
                ])
            }
            Type::Option(inner) => self.fold_option(inner, place, next),
            Type::Result(inner, error) => {
                let (name, other) = (self.name("e"), self.name("e"));
                let right = self.fold(inner, &format!("(*{name})"), next);
                let wrong = self.fold(error, &format!("(*{other})"), next);
                Tree::Float(trees![
                    format!("(match &{place} {{ Ok("),
                    Tree::Define(name),
                    ") => ",
                    right,
                    ", Err(",
                    Tree::Define(other),
                    ") => ",
                    wrong,
                    " })"
                ])
            }
            Type::Tuple(parts) => {
                let places: Vec<(Type, String)> = parts
                    .iter()
                    .enumerate()
                    .map(|(index, part)| (part.clone(), format!("{place}.{index}")))
                    .collect();
                self.fold_parts(&places, next)
            }
            Type::Struct(index) => {
                let fields = self.types.structs[*index].fields.clone();
                if fields.iter().any(|(_, of)| of.is_none()) {
                    return self.fold_list(*index, place);
                }
                let places: Vec<(Type, String)> = fields
                    .into_iter()
                    .filter_map(|(name, of)| Some((of?, format!("{place}.{name}"))))
                    .collect();
                self.fold_parts(&places, next)
            }
            Type::Enum(index) => self.fold_enum(*index, place, next),
            Type::Dyn(_) => {
                let argument = self.float(0);
                Tree::Float(trees![format!("{place}.apply("), argument, ")"])
            }
        }
    }

    fn fold_option(&mut self, inner: &Type, place: &str, next: usize) -> Tree {
        let name = self.name("e");
        let some = self.fold(inner, &format!("(*{name})"), next);
        let none = self.float(0);
        match self.random.below(3) {
            0 => Tree::Float(trees![
                format!("{place}.as_ref().map_or("),
                none,
                ", |",
                Tree::Define(name),
                "| ",
                some,
                ")"
            ]),
            1 => Tree::Float(trees![
                "(if let Some(",
                Tree::Define(name),
                format!(") = &{place} {{ "),
                some,
                " } else { ",
                none,
                " })"
            ]),
            _ => Tree::Float(trees![
                format!("(match &{place} {{ Some("),
                Tree::Define(name),
                ") => ",
                some,
                ", None => ",
                none,
                " })"
            ]),
        }
    }

    fn fold_enum(&mut self, index: usize, place: &str, next: usize) -> Tree {
        let the_enum = self.types.enums[index].clone();
        let mut parts = trees![format!("(match &{place} {{ ")];
        for (variant, held) in &the_enum.variants {
            let names: Vec<String> = held.iter().map(|_| self.name("e")).collect();
            parts.push(format!("{}::{variant}", the_enum.name).into());
            self.pattern(&names, &mut parts);
            let places: Vec<(Type, String)> = held
                .iter()
                .zip(&names)
                .map(|(of, name)| (of.clone(), format!("(*{name})")))
                .collect();
            parts.push(" => ".into());
            parts.push(match places.is_empty() {
                true => self.float(0),
                false => self.fold_parts(&places, next),
            });
            parts.push(", ".into());
        }
        parts.push("})".into());
        Tree::Float(parts)
    }

    /// The names in a pattern of a variant.
    pub(super) fn pattern(&mut self, names: &[String], parts: &mut Vec<Tree>) {
        for (index, name) in names.iter().enumerate() {
            parts.push(if index == 0 { "(" } else { ", " }.into());
            parts.push(Tree::Define(name.clone()));
        }
        if !names.is_empty() {
            parts.push(")".into());
        }
    }

    /// One part, or several of them added up.
    fn fold_parts(&mut self, places: &[(Type, String)], depth: usize) -> Tree {
        if places.is_empty() {
            return self.float(0);
        }
        let first = self.random.below(places.len());
        let (of, place) = &places[first];
        let mut sum = self.fold(of, place, depth);
        for (index, (of, place)) in places.iter().enumerate() {
            if index == first || self.random.percent(40) {
                continue;
            }
            let other = self.fold(of, place, depth);
            let operator = self.random.pick(&["+", "-", "*"]);
            sum = Tree::Float(trees!["(", sum, format!(" {operator} "), other, ")"]);
        }
        sum
    }

    /// A float of the elements of a vector or array.
    fn fold_elements(&mut self, element: &Type, place: &str, depth: usize) -> Tree {
        let name = self.name("e");
        let inner = format!("(*{name})");
        match self.random.below(10) {
            0 | 1 | 8 | 9 => {
                let fold = self.fold(element, &inner, depth);
                let adaptor = self.random.pick(&[
                    "",
                    "",
                    "",
                    ".rev()",
                    ".skip(1)",
                    ".take(2)",
                    ".step_by(2)",
                ]);
                Tree::Float(trees![
                    format!("{place}.iter(){adaptor}.map(|"),
                    Tree::Define(name),
                    "| ",
                    fold,
                    ").sum::<f64>()"
                ])
            }
            2 => {
                let sum = self.name("s");
                let fold = self.fold(element, &inner, depth);
                Tree::Float(trees![
                    format!("{place}.iter().fold(0.3_f64, |"),
                    Tree::Define(sum.clone()),
                    ", ",
                    Tree::Define(name),
                    format!("| ({sum} * 0.8 + "),
                    fold,
                    ").sin())"
                ])
            }
            3 => {
                let index = self.count();
                let (fold, other) = (self.fold(element, &inner, depth), self.float(0));
                Tree::Float(trees![
                    format!("{place}.get("),
                    index,
                    ").map_or(",
                    other,
                    ", |",
                    Tree::Define(name),
                    "| ",
                    fold,
                    ")"
                ])
            }
            4 => {
                let method = self.random.pick(&["first", "last"]);
                let (fold, other) = (self.fold(element, &inner, depth), self.float(0));
                Tree::Float(trees![
                    format!("(match {place}.{method}() {{ Some("),
                    Tree::Define(name),
                    ") => ",
                    fold,
                    ", None => ",
                    other,
                    " })"
                ])
            }
            5 => {
                let fold = self.fold(element, &format!("{name}[0]"), depth);
                let other = self.fold(element, &format!("{name}[1]"), depth);
                Tree::Float(trees![
                    format!("{place}.windows(2).map(|"),
                    Tree::Define(name),
                    "| ",
                    fold,
                    " * ",
                    other,
                    ").sum::<f64>()"
                ])
            }
            6 => {
                let index = self.name("i");
                let index_place = index.clone();
                let fold = self.with(&index_place, &Type::Count, false, |writer| {
                    writer.fold(element, &inner, depth)
                });
                Tree::Float(trees![
                    format!("{place}.iter().enumerate().map(|("),
                    Tree::Define(index.clone()),
                    ", ",
                    Tree::Define(name),
                    format!(")| (0.5 + {index} as f64) * "),
                    fold,
                    ").sum::<f64>()"
                ])
            }
            _ => {
                let sum = self.name("s");
                let fold = self.fold(element, &inner, depth);
                Tree::Float(trees![
                    "({ let mut ",
                    Tree::Define(sum.clone()),
                    " = 0.0_f64; for ",
                    Tree::Define(name),
                    format!(" in &{place} {{ {sum} += "),
                    fold,
                    format!("; }} {sum} }})")
                ])
            }
        }
    }

    /// A call of a function that folds a list, element by element: recursive, or by a loop.
    fn fold_list(&mut self, index: usize, place: &str) -> Tree {
        let value = Type::Struct(index);
        let wanted = format!("list{index}_");
        if let Some(helper) = self
            .helpers
            .iter()
            .find(|helper| helper.name.starts_with(&wanted))
        {
            return Tree::Float(trees![format!("{}(&{place})", helper.name)]);
        }
        let name = self.name(&wanted);
        self.helpers.push(super::writer::Helper {
            name: name.clone(),
            parameters: Vec::new(),
            result: Type::Float,
            recursive: false,
            // Nobody but this function calls it.
            depth: usize::MAX,
        });
        let the_struct = self.types.structs[index].clone();
        let scope = std::mem::take(&mut self.scope);
        let looped = self.random.percent(50);
        let here = if looped { "(*at)" } else { "(*list)" };
        let mut places = Vec::new();
        let mut next = String::new();
        for (field, of) in the_struct.fields {
            match of {
                Some(of) => places.push((of, format!("{here}.{field}"))),
                None => next = field,
            }
        }
        let fold = self.fold_parts(&places, 1);
        self.scope = scope;
        let attribute = self.inlining();
        let of = self.types.print(&value);
        let mut parts = trees![
            attribute,
            "fn ",
            Tree::Define(name.clone()),
            format!("(list: &{of}) -> f64 {{\n")
        ];
        if looped {
            parts.extend(trees![
                "let mut sum = 0.0_f64; let mut at = list;\nloop {\nsum = (sum * 0.7 + ",
                fold,
                format!(
                    ").sin();\nmatch &at.{next} {{ Some(more) => at = more, None => return sum }}\n}}\n}}\n"
                )
            ]);
        } else {
            parts.extend(trees![
                "let here: f64 = ",
                fold,
                format!(
                    ";\n(here + list.{next}.as_ref().map_or(0.2, |more| {name}(more))).tanh()\n}}\n"
                )
            ]);
        }
        self.item(&name, parts);
        Tree::Float(trees![format!("{name}(&{place})")])
    }

    /// A call of a function that takes the place of the value.
    fn fold_by_helper(&mut self, of: &Type, place: &str) -> Tree {
        let parameter = super::writer::Parameter::Reference(of.clone());
        self.call_with(&Type::Float, &[(parameter, format!("&{place}"))])
    }
}
