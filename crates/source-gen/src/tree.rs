//! The tree of generated source, which allows shrinking for any language.
//!
//! A tree knows no grammar. It knows which parts may be left out, which expressions are floats, and which names are defined where; that is enough to make
//! candidates that mostly compile: a candidate that uses a name which it no longer defines is never tried ([`Tree::is_complete`]), and functions and types that
//! nobody names are not printed ([`Tree::print`]).

use std::collections::HashSet;

/// Part of a program's text.
#[derive(Clone, Debug)]
pub enum Tree {
    /// Text as it is. Names in it are uses.
    Text(String),
    /// The place where a name is defined. Names are unique in a program.
    Define(String),
    /// Parts one after the other.
    List(Vec<Tree>),
    /// An expression of the language's 64-bit float. Any float within it may take its place, and so may a number.
    Float(Vec<Tree>),
    /// A part that may be left out: a statement, an attribute.
    Optional(Vec<Tree>),
    /// A statement around others, which may replace it.
    Around {
        /// The text before the inner statements.
        before: Vec<Tree>,
        /// The inner statements.
        inner: Vec<Tree>,
        /// The text after them.
        after: Vec<Tree>,
    },
    /// A function, type or constant. With a name it is printed if the name is used; without one, if all names that it needs are defined.
    Item {
        /// The name by which it is used.
        name: Option<String>,
        /// The names that it belongs to.
        needs: Vec<String>,
        /// Its text.
        parts: Vec<Tree>,
    },
}

/// Text in a tree.
pub fn text(text: impl Into<String>) -> Tree {
    Tree::Text(text.into())
}

/// Makes a list of trees of a mixture of texts and trees.
#[macro_export]
macro_rules! trees {
    ($($part:expr),* $(,)?) => { vec![$($crate::tree::Tree::from($part)),*] };
}

impl From<&str> for Tree {
    fn from(value: &str) -> Tree {
        Tree::Text(value.to_owned())
    }
}

impl From<String> for Tree {
    fn from(value: String) -> Tree {
        Tree::Text(value)
    }
}

impl From<&String> for Tree {
    fn from(value: &String) -> Tree {
        Tree::Text(value.clone())
    }
}

impl From<Vec<Tree>> for Tree {
    fn from(value: Vec<Tree>) -> Tree {
        Tree::List(value)
    }
}

impl Tree {
    /// The program's text.
    pub fn print(&self) -> String {
        let kept = self.kept_items();
        let mut out = String::new();
        self.write(&kept, &mut out);
        out
    }

    /// Whether every name that the program uses is defined in it. `all` are the names of the program that this one was made from.
    pub fn is_complete(&self, all: &HashSet<String>) -> bool {
        let kept = self.kept_items();
        let (mut out, mut defined) = (String::new(), HashSet::new());
        self.write(&kept, &mut out);
        self.collect_definitions(&kept, &mut defined);
        identifiers(&out).all(|name| !all.contains(name) || defined.contains(name))
    }

    /// All names that are defined in it.
    pub fn definitions(&self) -> HashSet<String> {
        let mut defined = HashSet::new();
        self.collect_definitions(&|_| true, &mut defined);
        defined
    }

    /// Its parts, in the order of the text.
    pub fn parts(&self) -> Vec<&Tree> {
        match self {
            Tree::Text(_) | Tree::Define(_) => Vec::new(),
            Tree::List(parts) | Tree::Float(parts) | Tree::Optional(parts) => {
                parts.iter().collect()
            }
            Tree::Around {
                before,
                inner,
                after,
            } => before.iter().chain(inner).chain(after).collect(),
            Tree::Item { parts, .. } => parts.iter().collect(),
        }
    }

    /// Its parts, to be changed.
    pub fn parts_mut(&mut self) -> Vec<&mut Tree> {
        match self {
            Tree::Text(_) | Tree::Define(_) => Vec::new(),
            Tree::List(parts) | Tree::Float(parts) | Tree::Optional(parts) => {
                parts.iter_mut().collect()
            }
            Tree::Around {
                before,
                inner,
                after,
            } => before.iter_mut().chain(inner).chain(after).collect(),
            Tree::Item { parts, .. } => parts.iter_mut().collect(),
        }
    }

    /// How many nodes it has.
    pub fn size(&self) -> usize {
        1 + self.parts().into_iter().map(Tree::size).sum::<usize>()
    }

    /// The items to print: those that printed text names.
    fn kept_items(&self) -> impl Fn(&Tree) -> bool + use<> {
        let mut items = Vec::new();
        self.collect_items(&mut items);
        let names: HashSet<&String> = items.iter().filter_map(|item| item.name()).collect();
        let mut kept: HashSet<String> = HashSet::new();
        let mut done = vec![false; items.len()];
        let mut pending = String::new();
        self.write(&|_| false, &mut pending);
        loop {
            for name in identifiers(&pending) {
                if names.contains(&name.to_owned()) {
                    kept.insert(name.to_owned());
                }
            }
            pending.clear();
            for (item, done) in items.iter().zip(&mut done) {
                if !*done && item.is_kept(&kept) {
                    *done = true;
                    for part in item.parts() {
                        part.write(&|_| false, &mut pending);
                    }
                }
            }
            if pending.is_empty() {
                break;
            }
        }
        move |item| item.is_kept(&kept)
    }

    fn name(&self) -> Option<&String> {
        match self {
            Tree::Item { name, .. } => name.as_ref(),
            _ => None,
        }
    }

    fn is_kept(&self, kept: &HashSet<String>) -> bool {
        match self {
            Tree::Item { name, needs, .. } => {
                name.iter().chain(needs).all(|name| kept.contains(name))
            }
            _ => true,
        }
    }

    fn collect_items<'tree>(&'tree self, items: &mut Vec<&'tree Tree>) {
        if matches!(self, Tree::Item { .. }) {
            items.push(self);
        }
        for part in self.parts() {
            part.collect_items(items);
        }
    }

    fn collect_definitions(&self, kept: &dyn Fn(&Tree) -> bool, defined: &mut HashSet<String>) {
        if let Tree::Define(name) = self {
            defined.insert(name.clone());
        }
        if kept(self) || !matches!(self, Tree::Item { .. }) {
            for part in self.parts() {
                part.collect_definitions(kept, defined);
            }
        }
    }

    fn write(&self, kept: &dyn Fn(&Tree) -> bool, out: &mut String) {
        match self {
            Tree::Text(text) | Tree::Define(text) => out.push_str(text),
            Tree::Item { .. } if !kept(self) => {}
            _ => {
                for part in self.parts() {
                    part.write(kept, out);
                }
            }
        }
    }
}

/// The words of a text that may be names.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .filter(|word| word.starts_with(|letter: char| letter.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_printed_if_somebody_names_them() {
        let item = |name: &str, body: &str| Tree::Item {
            name: Some(name.to_owned()),
            needs: Vec::new(),
            parts: trees!["fn ", Tree::Define(name.to_owned()), body],
        };
        let tree = Tree::List(trees![
            item("h1", "{ h2 }\n"),
            item("h2", "{}\n"),
            item("h3", "{ h1 }\n"),
            "root { h1 }"
        ]);
        assert_eq!(tree.print(), "fn h1{ h2 }\nfn h2{}\nroot { h1 }");
        assert!(tree.is_complete(&tree.definitions()));
    }

    #[test]
    fn a_use_without_its_definition_is_noticed() {
        let whole = Tree::List(trees![
            Tree::Optional(trees!["let ", Tree::Define("v1".into()), " = 1;"]),
            "v1"
        ]);
        let all = whole.definitions();
        assert!(whole.is_complete(&all));
        assert!(!text("v1").is_complete(&all));
    }
}
