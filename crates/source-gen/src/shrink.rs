//! Shrinks a failing program: removes parts and replaces floats by simple ones, as long as it still fails.
//!
//! A program is a tree ([`crate::tree`]), so nothing here knows a language. Candidates are tried many at a time, because a build costs far more than a candidate does.

use crate::tree::Tree;
use std::collections::HashSet;

/// How many candidates are tried at a time.
pub const AT_A_TIME: usize = 12;

/// The smallest program found that still fails. `number` is how a float is written; `fail` says which of the candidates do; it is called at most `attempts` times.
pub fn shrink(
    program: &Tree,
    number: &str,
    mut attempts: usize,
    fail: &mut dyn FnMut(&[Tree]) -> Vec<bool>,
) -> Tree {
    let names = program.definitions();
    let mut small = program.clone();
    loop {
        let before = small.print();
        let mut position = 0;
        // Edits are numbered from the outside in, so that large parts go first.
        while attempts > 0 {
            let mut candidates = Vec::new();
            let mut next = position;
            while candidates.len() < AT_A_TIME {
                let mut candidate = small.clone();
                let mut countdown = next;
                if !edit(&mut candidate, number, &mut countdown) {
                    break;
                }
                next += 1;
                if is_worth_trying(&candidate, &small, &names) {
                    candidates.push((next, candidate));
                }
            }
            if candidates.is_empty() {
                break;
            }
            attempts -= 1;
            let trees: Vec<Tree> = candidates.iter().map(|(_, tree)| tree.clone()).collect();
            let failing = fail(&trees);
            // The smallest failing one; the edits before it were tried and are needed.
            let best = candidates
                .into_iter()
                .zip(failing)
                .filter(|(_, fails)| *fails)
                .map(|(candidate, _)| candidate)
                .min_by_key(|(_, tree)| tree.print().len());
            match best {
                Some((after, tree)) => {
                    small = tree;
                    position = after.saturating_sub(1);
                }
                None => position = next,
            }
        }
        if attempts == 0 || small.print() == before {
            return small;
        }
    }
}

fn is_worth_trying(candidate: &Tree, small: &Tree, names: &HashSet<String>) -> bool {
    candidate.print().len() < small.print().len() && candidate.is_complete(names)
}

/// Makes the edit with this number; false if there are fewer. The number is counted down on the way.
fn edit(tree: &mut Tree, literal: &str, number: &mut usize) -> bool {
    let take = |number: &mut usize| {
        let here = *number == 0;
        *number = number.wrapping_sub(1);
        here
    };
    match tree {
        Tree::Optional(_) if take(number) => {
            *tree = Tree::List(Vec::new());
            return true;
        }
        Tree::Around { inner, .. } => {
            if take(number) {
                *tree = Tree::List(Vec::new());
                return true;
            }
            if take(number) {
                *tree = Tree::List(std::mem::take(inner));
                return true;
            }
        }
        Tree::Float(parts) => {
            if take(number) {
                *tree = Tree::Text(literal.to_owned());
                return true;
            }
            let mut inner = Vec::new();
            for part in parts.iter() {
                floats_within(part, &mut inner);
            }
            if *number < inner.len() {
                *tree = inner.swap_remove(*number);
                return true;
            }
            *number -= inner.len();
        }
        _ => {}
    }
    tree.parts_mut()
        .into_iter()
        .any(|part| edit(part, literal, number))
}

/// The outermost floats within a tree.
fn floats_within(tree: &Tree, floats: &mut Vec<Tree>) {
    if let Tree::Float(_) = tree {
        floats.push(tree.clone());
        return;
    }
    for part in tree.parts() {
        floats_within(part, floats);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trees;

    #[test]
    fn what_does_not_matter_is_left_out() {
        let statement = |name: &str, value: &str| {
            Tree::Optional(trees![
                "let ",
                Tree::Define(name.into()),
                " = ",
                Tree::Float(trees!["sin(", Tree::Float(trees![value]), ")"]),
                ";"
            ])
        };
        let program = Tree::List(trees![
            statement("v1", "a"),
            statement("v2", "v1 * bug"),
            Tree::Around {
                before: trees!["if x {"],
                inner: vec![statement("v3", "v2")],
                after: trees!["}"],
            },
            "v2"
        ]);
        let mut fail = |candidates: &[Tree]| {
            let texts = candidates.iter().map(Tree::print);
            texts.map(|text| text.contains("bug")).collect()
        };
        let small = shrink(&program, "0.7", 100, &mut fail);
        assert_eq!(small.print(), "let v1 = a;let v2 = v1 * bug;v2");
    }
}
