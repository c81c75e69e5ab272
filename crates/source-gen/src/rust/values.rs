//! Expressions that make a value of any type.

use super::types::Type;
use super::writer::Writer;
use crate::tree::Tree;
use crate::trees;

impl Writer {
    /// An expression that makes a value of a type.
    pub(super) fn value(&mut self, of: &Type, depth: usize) -> Tree {
        match of {
            Type::Float => return self.float(depth.min(3)),
            Type::Count => return self.count(),
            _ => {}
        }
        if depth == 0 || !self.spend() {
            return self.construct(of, 0);
        }
        let next = depth - 1;
        match self.choose(&[(40, 0), (18, 1), (26, 2), (5, 3), (6, 4), (5, 5)]) {
            1 => {
                let places = self.places(of);
                if !places.is_empty() {
                    let place = &places[self.random.below(places.len())];
                    return match self.types.is_copy(of) {
                        true => place.clone().into(),
                        false => format!("{place}.clone()").into(),
                    };
                }
                self.construct(of, next)
            }
            2 => self.call(of, next),
            3 => {
                let condition = self.condition();
                let (a, b) = (self.value(of, next), self.value(of, next));
                Tree::List(trees!["(if ", condition, " { ", a, " } else { ", b, " })"])
            }
            4 => {
                // Made, changed, and handed on.
                let value = self.construct(of, next);
                let name = self.name("t");
                // The surrounding value may be borrowed already.
                let change = self.within_closure(|writer| writer.change(of, &name, next));
                let printed = self.types.print(of);
                Tree::List(trees![
                    "{ let mut ",
                    Tree::Define(name.clone()),
                    format!(": {printed} = "),
                    value,
                    "; ",
                    Tree::Optional(vec![change]),
                    format!(" {name} }}")
                ])
            }
            _ => self.construct(of, next),
        }
    }

    /// An expression that makes a value of a type from its parts.
    pub(super) fn construct(&mut self, of: &Type, depth: usize) -> Tree {
        let next = depth.saturating_sub(1);
        match of {
            Type::Float => self.float(depth.min(2)),
            Type::Count => self.count(),
            Type::Vec(element) => self.construct_vec(element, next),
            Type::Boxed(inner) => self.wrapped("Box::new(", inner, next, ")"),
            Type::Shared(inner) => self.wrapped("Rc::new(RefCell::new(", inner, next, "))"),
            Type::Option(inner) => {
                if self.random.percent(20) {
                    return Tree::Text(format!("None::<{}>", self.types.print(inner)));
                }
                if depth > 0 && self.random.percent(20) {
                    let condition = self.condition();
                    let value = self.value(inner, next);
                    return Tree::List(trees!["(", condition, ").then(|| ", value, ")"]);
                }
                self.wrapped("Some(", inner, next, ")")
            }
            Type::Result(inner, error) => {
                if depth > 0 && self.budget > 0 && self.random.percent(25) {
                    let good = self.wrapped("Ok(", inner, next, ")");
                    let bad = self.wrapped("Err(", error, next, ")");
                    return self.either(good, bad);
                }
                if self.random.percent(25) {
                    return self.wrapped("Err(", error, next, ")");
                }
                self.wrapped("Ok(", inner, next, ")")
            }
            Type::Tuple(parts) => {
                let mut tree = trees!["("];
                for part in parts {
                    tree.push(self.value(part, next));
                    tree.push(", ".into());
                }
                tree.push(")".into());
                Tree::List(tree)
            }
            Type::Array(element, length) => {
                if self.random.percent(20) {
                    let name = self.name("i");
                    let value = self.within_closure(|writer| {
                        writer.with(&name, &Type::Count, false, |writer| {
                            writer.value(element, next)
                        })
                    });
                    return Tree::List(trees![
                        "std::array::from_fn(|",
                        Tree::Define(name),
                        "| ",
                        value,
                        ")"
                    ]);
                }
                let mut tree = trees!["["];
                for _ in 0..*length {
                    tree.push(self.value(element, next));
                    tree.push(", ".into());
                }
                tree.push("]".into());
                Tree::List(tree)
            }
            Type::Struct(index) => {
                let the_struct = self.types.structs[*index].clone();
                let mut tree = trees![the_struct.name.clone(), " { "];
                for (field, field_type) in &the_struct.fields {
                    tree.push(format!("{field}: ").into());
                    tree.push(match field_type {
                        Some(field_type) => self.value(field_type, next),
                        None if depth == 0 || self.budget <= 0 || self.random.percent(40) => {
                            "None".into()
                        }
                        None => self.wrapped("Some(Box::new(", of, next, "))"),
                    });
                    tree.push(", ".into());
                }
                tree.push("}".into());
                Tree::List(tree)
            }
            Type::Enum(index) => {
                let variant = self.variant(*index, next);
                if depth > 0 && self.budget > 0 && self.random.percent(50) {
                    let other = self.variant(*index, next);
                    return self.either(variant, other);
                }
                variant
            }
            Type::Slice(_) => unreachable!("slices are not made, only borrowed"),
            Type::Dyn(index) => {
                let the_trait = self.types.traits[*index].clone();
                let of = the_trait.structs[self.random.below(the_trait.structs.len())];
                let value = self.value(&Type::Struct(of), next);
                Tree::List(trees![
                    "(Box::new(",
                    value,
                    format!(") as Box<dyn {}>)", the_trait.name)
                ])
            }
        }
    }

    /// One of two values, as the running program decides.
    fn either(&mut self, one: Tree, other: Tree) -> Tree {
        let condition = self.condition();
        Tree::List(trees![
            "(if ",
            condition,
            " { ",
            one,
            " } else { ",
            other,
            " })"
        ])
    }

    /// A variant of an enum.
    fn variant(&mut self, index: usize, depth: usize) -> Tree {
        let the_enum = self.types.enums[index].clone();
        let variant = self.random.below(the_enum.variants.len());
        let (variant, held) = &the_enum.variants[variant];
        let mut tree = trees![format!("{}::{variant}", the_enum.name)];
        for (position, part) in held.iter().enumerate() {
            tree.push(if position == 0 { "(" } else { ", " }.into());
            tree.push(self.value(part, depth));
        }
        if !held.is_empty() {
            tree.push(")".into());
        }
        Tree::List(tree)
    }

    fn construct_vec(&mut self, element: &Type, depth: usize) -> Tree {
        match self.choose(&[(30, 0), (10, 1), (20, 2), (14, 3), (14, 4), (6, 5)]) {
            1 => {
                let value = self.value(element, depth);
                let length = 1 + self.random.below(4);
                Tree::List(trees!["vec![", value, format!("; {length}]")])
            }
            2 => {
                let name = self.name("i");
                let value = self.within_closure(|writer| {
                    writer.with(&name, &Type::Count, false, |writer| {
                        writer.value(element, depth)
                    })
                });
                let count = self.count();
                Tree::List(trees![
                    "(0..",
                    count,
                    ").map(|",
                    Tree::Define(name),
                    "| ",
                    value,
                    ").collect::<Vec<_>>()"
                ])
            }
            3 => self.mapped(element, depth),
            4 => {
                // Grown one after the other.
                let (vector, index) = (self.name("t"), self.name("i"));
                let value = self.with(&index, &Type::Count, false, |writer| {
                    writer.value(element, depth)
                });
                let count = 1 + self.random.below(5);
                let printed = self.types.print(element);
                let start =
                    self.random
                        .pick(&["Vec::new()", "Vec::new()", "Vec::with_capacity(3)"]);
                Tree::List(trees![
                    "{ let mut ",
                    Tree::Define(vector.clone()),
                    format!(": Vec<{printed}> = {start}; for "),
                    Tree::Define(index),
                    format!(" in 0..{count} {{ {vector}.push("),
                    value,
                    format!("); }} {vector} }}")
                ])
            }
            5 => Tree::Text(format!("Vec::<{}>::new()", self.types.print(element))),
            _ => {
                let mut tree = trees!["vec!["];
                for _ in 0..1 + self.random.below(3) {
                    tree.push(self.value(element, depth));
                    tree.push(", ".into());
                }
                tree.push("]".into());
                Tree::List(tree)
            }
        }
    }

    /// A vector made from the elements of another.
    fn mapped(&mut self, element: &Type, depth: usize) -> Tree {
        let source = self.variable(|_, variable| {
            matches!(variable.of, Type::Vec(_) | Type::Array(..) | Type::Slice(_))
        });
        let Some(source) = source else {
            return Tree::Text(format!("Vec::<{}>::new()", self.types.print(element)));
        };
        let (Type::Vec(from) | Type::Array(from, _) | Type::Slice(from)) = &source.of else {
            return Tree::Text(format!("Vec::<{}>::new()", self.types.print(element)));
        };
        let name = self.name("e");
        let value = self.within_closure(|writer| {
            writer.with(&format!("(*{name})"), from, false, |writer| {
                writer.value(element, depth)
            })
        });
        if self.random.percent(25) {
            let kept = self.name("e");
            let fold = self.fold(from, &format!("(**{kept})"), 0);
            let number = self.number();
            return Tree::List(trees![
                format!("{}.iter().filter(|", source.place),
                Tree::Define(kept),
                "| ",
                fold,
                format!(" > {number}).map(|"),
                Tree::Define(name),
                "| ",
                value,
                ").collect::<Vec<_>>()"
            ]);
        }
        Tree::List(trees![
            format!("{}.iter().map(|", source.place),
            Tree::Define(name),
            "| ",
            value,
            ").collect::<Vec<_>>()"
        ])
    }

    fn wrapped(&mut self, before: &str, inner: &Type, depth: usize, after: &str) -> Tree {
        let value = self.value(inner, depth);
        Tree::List(trees![before, value, after])
    }
}
