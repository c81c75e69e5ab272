//! Statements that change a value in its place.

use super::types::Type;
use super::writer::{Parameter, Writer};
use crate::tree::Tree;
use crate::trees;

impl Writer {
    /// A statement that changes the value at a place, which must not be borrowed.
    pub(super) fn change(&mut self, of: &Type, place: &str, depth: usize) -> Tree {
        self.without(place, |writer| writer.change_hidden(of, place, depth))
    }

    fn change_hidden(&mut self, of: &Type, place: &str, depth: usize) -> Tree {
        let next = depth.saturating_sub(1);
        if !self.spend() {
            return match of {
                Type::Slice(element) => self.change_elements(element, place, 0),
                _ => self.assign(of, place, 0),
            };
        }
        if !matches!(of, Type::Float | Type::Count | Type::Slice(_))
            && let Some(change) = self.change_whole(of, place, next)
        {
            return change;
        }
        match of {
            Type::Float => {
                let (a, b) = (self.float(depth.min(2)), self.float(0));
                match self.random.below(3) {
                    0 => Tree::List(trees![format!("{place} = ("), a, ").sin();\n"]),
                    1 => Tree::List(trees![
                        format!("{place} = ({place} * 0.6 + "),
                        a,
                        ").tanh();\n"
                    ]),
                    _ => Tree::List(trees![
                        format!("{place} += 0.3 * ("),
                        a,
                        " * ",
                        b,
                        ").sin();\n"
                    ]),
                }
            }
            Type::Count => {
                let count = self.count();
                Tree::List(trees![format!("{place} = ({place} + "), count, ") % 5;\n"])
            }
            Type::Vec(element) => self.change_vec(element, place, depth),
            Type::Slice(element) => self.change_elements(element, place, next),
            Type::Array(element, length) => match self.random.below(3) {
                0 => format!("{place}.swap(0, {});\n", length - 1).into(),
                1 => self.change_elements(element, place, next),
                _ => {
                    let index = self.random.below(*length);
                    self.change(element, &format!("{place}[{index}]"), next)
                }
            },
            Type::Boxed(inner) => self.change(inner, &format!("(*{place})"), depth),
            Type::Shared(inner) => {
                let name = self.name("r");
                let change = self.change(inner, &format!("(*{name})"), next);
                Tree::Around {
                    before: trees![
                        "{ let mut ",
                        Tree::Define(name),
                        format!(" = {place}.borrow_mut();\n")
                    ],
                    inner: vec![change],
                    after: trees!["}\n"],
                }
            }
            Type::Option(inner) => self.change_option(inner, place, next),
            Type::Result(inner, error) => {
                let (right, wrong) = (self.name("e"), self.name("e"));
                let change = self.change(inner, &format!("(*{right})"), next);
                let other = self.change(error, &format!("(*{wrong})"), next);
                Tree::List(trees![
                    format!("match &mut {place} {{ Ok("),
                    Tree::Define(right),
                    ") => { ",
                    Tree::Optional(vec![change]),
                    " } Err(",
                    Tree::Define(wrong),
                    ") => { ",
                    Tree::Optional(vec![other]),
                    " } }\n"
                ])
            }
            Type::Tuple(parts) => {
                let index = self.random.below(parts.len());
                self.change(&parts[index], &format!("{place}.{index}"), next)
            }
            Type::Struct(index) => self.change_struct(*index, place, next),
            Type::Enum(index) => match self.random.percent(30) {
                true => self.assign(of, place, next),
                false => self.change_enum(*index, place, next),
            },
            Type::Dyn(_) => {
                let argument = self.float(1);
                Tree::List(trees![format!("{place}.change("), argument, ");\n"])
            }
        }
    }

    /// A statement that replaces the value as a whole or hands it to a helper, in some cases.
    fn change_whole(&mut self, of: &Type, place: &str, next: usize) -> Option<Tree> {
        match self.random.below(12) {
            0 => {
                let parameter = Parameter::Mutable(of.clone());
                let call = self.call_with(&Type::Float, &[(parameter, format!("&mut {place}"))]);
                Some(self.accumulated(call))
            }
            1 => Some(self.assign(of, place, next)),
            2 => {
                // Change places with another.
                let wanted = of.clone();
                let other =
                    self.variable(|_, variable| variable.mutable && variable.of == wanted)?;
                Some(format!("std::mem::swap(&mut {place}, &mut {});\n", other.place).into())
            }
            3 => {
                let value = self.value(of, next);
                let (old, fold) = self.used_up(of, next);
                Some(Tree::List(trees![
                    "{ let ",
                    Tree::Define(old),
                    format!(" = std::mem::replace(&mut {place}, "),
                    value,
                    "); ",
                    fold,
                    " }\n"
                ]))
            }
            _ => None,
        }
    }

    /// A name for a value, and a statement that computes with it.
    fn used_up(&mut self, of: &Type, depth: usize) -> (String, Tree) {
        let name = self.name("e");
        let fold = self.fold(of, &name, depth);
        (name, self.accumulated(fold))
    }

    fn change_struct(&mut self, index: usize, place: &str, next: usize) -> Tree {
        let fields = self.types.structs[index].fields.clone();
        let (field, field_type) = fields[self.random.below(fields.len())].clone();
        let list = fields.iter().find(|(_, of)| of.is_none());
        match (field_type, list) {
            (Some(of), Some((next_field, _))) if self.random.percent(50) => {
                // All elements of the list.
                let (at, more) = (self.name("p"), self.name("p"));
                let change = self.change(&of, &format!("(*{at}).{field}"), next);
                Tree::List(trees![
                    "{ let mut ",
                    Tree::Define(at.clone()),
                    format!(" = &mut {place}; loop {{\n"),
                    Tree::Optional(vec![change]),
                    format!("match &mut {at}.{next_field} {{ Some("),
                    Tree::Define(more.clone()),
                    format!(") => {at} = {more}, None => break }} }} }}\n")
                ])
            }
            (Some(of), _) => self.change(&of, &format!("{place}.{field}"), next),
            (None, _) => {
                let value = self.value(&Type::Struct(index), next.min(1));
                match self.random.below(3) {
                    0 => Tree::List(trees![
                        format!("{place}.{field} = Some(Box::new("),
                        value,
                        "));\n"
                    ]),
                    1 => format!("{place}.{field} = None;\n").into(),
                    _ => {
                        let name = self.name("p");
                        Tree::List(trees![
                            "if let Some(",
                            Tree::Define(name.clone()),
                            format!(") = {place}.{field}.take() {{ {place} = *{name}; }}\n")
                        ])
                    }
                }
            }
        }
    }

    fn change_enum(&mut self, index: usize, place: &str, next: usize) -> Tree {
        let the_enum = self.types.enums[index].clone();
        let mut parts = trees![format!("match &mut {place} {{\n")];
        for (variant, held) in &the_enum.variants {
            let names: Vec<String> = held.iter().map(|_| self.name("e")).collect();
            parts.push(format!("{}::{variant}", the_enum.name).into());
            self.pattern(&names, &mut parts);
            parts.push(" => {\n".into());
            if !held.is_empty() {
                let chosen = self.random.below(held.len());
                let inner = format!("(*{})", names[chosen]);
                let change = self.change(&held[chosen], &inner, next);
                parts.push(Tree::Optional(vec![change]));
            }
            parts.push("}\n".into());
        }
        parts.push("}\n".into());
        Tree::List(parts)
    }

    fn change_vec(&mut self, element: &Type, place: &str, depth: usize) -> Tree {
        let next = depth.saturating_sub(1);
        let choice = self.random.below(17);
        match choice {
            0..=2 => {
                let value = self.value(element, next);
                Tree::List(trees![
                    format!("if {place}.len() < 9 {{ {place}.push("),
                    value,
                    "); }\n"
                ])
            }
            3 => {
                let (name, fold) = self.used_up(element, next);
                Tree::List(trees![
                    "if let Some(",
                    Tree::Define(name),
                    format!(") = {place}.pop() {{ "),
                    fold,
                    " }\n"
                ])
            }
            4 | 5 => self.sort_vec(element, place),
            6 | 7 => {
                let (a, b) = (self.count(), self.count());
                Tree::List(trees![
                    format!("if !{place}.is_empty() {{ let n = {place}.len(); {place}.swap("),
                    a,
                    " % n, ",
                    b,
                    " % n); }\n"
                ])
            }
            8 => {
                let value = self.value(element, next);
                let index = self.count();
                Tree::List(trees![
                    format!("if {place}.len() < 9 {{ let n = {place}.len(); {place}.insert("),
                    index,
                    " % (n + 1), ",
                    value,
                    "); }\n"
                ])
            }
            9 => {
                let method = self.random.pick(&["remove", "swap_remove"]);
                let index = self.count();
                let (name, fold) = self.used_up(element, next);
                Tree::List(trees![
                    format!("if {place}.len() > 1 {{ let n = {place}.len(); let "),
                    Tree::Define(name),
                    format!(" = {place}.{method}("),
                    index,
                    " % n); ",
                    fold,
                    " }\n"
                ])
            }
            10 => {
                let method = self.random.pick(&[
                    "reverse()",
                    "truncate(3)",
                    "rotate_left(usize::from(n > 1))",
                    "clear()",
                    "dedup_by(|_, _| false)",
                ]);
                format!("{{ let n = {place}.len(); {place}.{method}; }}\n").into()
            }
            11 => {
                let name = self.name("e");
                let fold = self.fold(element, &format!("(*{name})"), 0);
                let number = self.number();
                Tree::List(trees![
                    format!("{place}.retain(|"),
                    Tree::Define(name),
                    "| ",
                    fold,
                    format!(" < {number});\n")
                ])
            }
            12 => {
                let other = self.value(&Type::Vec(Box::new(element.clone())), next);
                let method = self.random.pick(&["extend", "extend", "splice"]);
                let call = match method {
                    "splice" => format!("{place}.splice(0..usize::from(!{place}.is_empty()), "),
                    _ => format!("{place}.extend("),
                };
                Tree::List(trees![
                    format!("if {place}.len() < 6 {{ {call}"),
                    other,
                    "); }\n"
                ])
            }
            13 => {
                let (name, fold) = self.used_up(element, next);
                Tree::Around {
                    before: trees![
                        "for ",
                        Tree::Define(name),
                        format!(" in {place}.drain(..) {{\n")
                    ],
                    inner: vec![fold],
                    after: trees!["}\n"],
                }
            }
            _ => self.change_elements(element, place, next),
        }
    }

    fn sort_vec(&mut self, element: &Type, place: &str) -> Tree {
        let (a, b) = (self.name("e"), self.name("e"));
        let key = self.fold(element, &format!("(*{a})"), 0);
        // The same text with the other name: one key for both.
        let other = renamed(&key, &a, &b);
        let method = self.random.pick(&["sort_by", "sort_unstable_by"]);
        Tree::List(trees![
            format!("{place}.{method}(|"),
            Tree::Define(a),
            ", ",
            Tree::Define(b),
            "| (",
            key,
            ").total_cmp(&(",
            other,
            ")));\n"
        ])
    }

    fn change_elements(&mut self, element: &Type, place: &str, depth: usize) -> Tree {
        let name = self.name("e");
        let index = self.name("i");
        let inner = format!("(*{name})");
        let change = self.with(&index, &Type::Count, false, |writer| {
            writer.change(element, &inner, depth)
        });
        Tree::Around {
            before: trees![
                "for (",
                Tree::Define(index),
                ", ",
                Tree::Define(name),
                format!(") in {place}.iter_mut().enumerate() {{\n")
            ],
            inner: vec![change],
            after: trees!["}\n"],
        }
    }

    fn change_option(&mut self, inner: &Type, place: &str, depth: usize) -> Tree {
        let name = self.name("e");
        match self.random.below(5) {
            0 => {
                let value = self.value(inner, depth);
                Tree::List(trees![format!("{place} = Some("), value, ");\n"])
            }
            1 => {
                let fold = self.fold(inner, &name, depth);
                let fold = self.accumulated(fold);
                Tree::List(trees![
                    "if let Some(",
                    Tree::Define(name),
                    format!(") = {place}.take() {{ "),
                    fold,
                    " }\n"
                ])
            }
            2 => {
                let value = self.value(inner, depth);
                let change = self.change(inner, &format!("(*{name})"), depth);
                Tree::List(trees![
                    "{ let ",
                    Tree::Define(name),
                    format!(" = {place}.get_or_insert("),
                    value,
                    ");\n",
                    Tree::Optional(vec![change]),
                    "}\n"
                ])
            }
            _ => {
                let change = self.change(inner, &format!("(*{name})"), depth);
                Tree::Around {
                    before: trees![
                        "if let Some(",
                        Tree::Define(name),
                        format!(") = &mut {place} {{\n")
                    ],
                    inner: vec![change],
                    after: trees!["}\n"],
                }
            }
        }
    }

    fn assign(&mut self, of: &Type, place: &str, depth: usize) -> Tree {
        let value = self.value(of, depth);
        Tree::List(trees![format!("{place} = "), value, ";\n"])
    }

    /// A statement that keeps a float, so that it matters.
    pub(super) fn accumulated(&mut self, float: Tree) -> Tree {
        let target = self.variable(|_, variable| variable.mutable && variable.of == Type::Float);
        match target {
            Some(target) => {
                let place = target.place;
                Tree::Optional(trees![
                    format!("{place} = ({place} * 0.7 + "),
                    float,
                    ").sin();\n"
                ])
            }
            None => Tree::Optional(trees!["let _ = ", float, ";\n"]),
        }
    }
}

/// The same text with another name.
fn renamed(tree: &Tree, from: &str, to: &str) -> Tree {
    let mut tree = tree.clone();
    rename(&mut tree, from, to);
    tree
}

fn rename(tree: &mut Tree, from: &str, to: &str) {
    if let Tree::Text(text) = tree {
        *text = text.replace(&format!("(*{from})"), &format!("(*{to})"));
    }
    for part in tree.parts_mut() {
        rename(part, from, to);
    }
}
