//! Words that are a float at times and an address at others: enums and unions that functions make, move and look at.

use super::types::Type;
use super::writer::{Variable, Writer};
use crate::tree::Tree;
use crate::trees;

impl Writer {
    /// Words in an array, which functions make, move and read. The sum of what they hold, or lead to.
    pub(super) fn words(&mut self) -> Tree {
        let [of, make, pass, put, read] = ["T", "h", "h", "h", "h"].map(|prefix| self.name(prefix));
        match self.random.below(3) {
            0 => self.words_of_enum(&of, [&make, &pass, &put, &read], false),
            1 => self.words_of_enum(&of, [&make, &pass, &put, &read], true),
            _ => self.words_of_union(&of, [&make, &pass, &put, &read]),
        }
        let [list, result, index] = ["v", "v", "i"].map(|prefix| self.name(prefix));
        let floats = [self.float(2), self.float(1), self.float(2)];
        let conditions = [self.condition(), self.condition(), self.condition()];
        let mut parts = trees!["let mut ", Tree::Define(list.clone()), " = ["];
        for (float, condition) in floats.into_iter().zip(conditions) {
            parts.extend(trees![format!("{make}("), float, ", ", condition, "), "]);
        }
        parts.extend(trees!["];\n"]);
        let moves = [
            format!("{list}.swap(0, 2);\n"),
            format!("{list}.reverse();\n"),
            format!("{list}.rotate_left(1);\n"),
            format!(
                "{{ let [a, b, c] = {list}; {list} = [{pass}(b, true), {pass}(c, false), a]; }}\n"
            ),
            format!(
                "for {index} in 0..2 {{ let w = std::mem::replace(&mut {list}[{index}], {make}(0.4, true)); {put}(&mut {list}, {index} + 1, w); }}\n"
            ),
        ];
        for _ in 0..1 + self.random.below(3) {
            let chosen = self.random.below(moves.len());
            parts.push(Tree::Optional(vec![moves[chosen].clone().into()]));
        }
        self.scope.variables.push(Variable {
            place: result.clone(),
            of: Type::Float,
            mutable: true,
        });
        parts.extend(trees![
            "let mut ",
            Tree::Define(result),
            format!(": f64 = {list}.iter().enumerate().map(|(i, w)| {read}(w) * (i + 1) as f64).sum::<f64>().sin();\n")
        ]);
        Tree::List(parts)
    }

    /// An `enum` with a float, or the bits of one, and a box.
    fn words_of_enum(&mut self, of: &str, [make, pass, put, read]: [&str; 4], as_bits: bool) {
        let (held, bits, float) = match as_bits {
            true => ("u64", "f64::to_bits(a)", "f64::from_bits(*b)"),
            false => ("f64", "a", "*b"),
        };
        self.item(
            of,
            trees![
                "enum ",
                Tree::Define(of.to_owned()),
                format!(" {{ Number({held}), Boxed(Box<f64>) }}\n")
            ],
        );
        self.word_function(
            make,
            format!(
                "(a: f64, number: bool) -> {of} {{ if number {{ {of}::Number({bits}) }} else {{ {of}::Boxed(Box::new(a * 0.5)) }} }}\n"
            ),
        );
        self.word_function(
            pass,
            format!(
                "(w: {of}, whole: bool) -> {of} {{ match w {{ {of}::Number(b) => {of}::Number(b), w if whole => w, {of}::Boxed(b) => {of}::Boxed(Box::new(*b * 1.5)) }} }}\n"
            ),
        );
        self.word_function(
            put,
            format!("(list: &mut [{of}; 3], at: usize, w: {of}) {{ list[at] = w; }}\n"),
        );
        self.word_function(
            read,
            format!(
                "(w: &{of}) -> f64 {{ match w {{ {of}::Number(b) => {float}, {of}::Boxed(b) => **b * **b }} }}\n"
            ),
        );
    }

    /// A struct of a tag and a `union`. Its words are moved as whatever type the function chooses.
    fn words_of_union(&mut self, of: &str, [make, pass, put, read]: [&str; 4]) {
        let union = self.name("T");
        let moved = ["number", "bits", "place"];
        let (first, second) = (self.random.pick(&moved), self.random.pick(&moved));
        self.item(
            &union,
            trees![
                "#[derive(Clone, Copy)]\nunion ",
                Tree::Define(union.clone()),
                " { number: f64, bits: u64, place: *mut f64 }\n"
            ],
        );
        self.item(
            of,
            trees![
                "#[derive(Clone, Copy)]\nstruct ",
                Tree::Define(of.to_owned()),
                format!(" {{ word: {union}, is_number: bool }}\n")
            ],
        );
        self.word_function(
            make,
            format!(
                "(a: f64, number: bool) -> {of} {{ let word = if number {{ {union} {{ number: a }} }} else {{ {union} {{ place: Box::into_raw(Box::new(a * 0.5)) }} }}; {of} {{ word, is_number: number }} }}\n"
            ),
        );
        self.word_function(
            pass,
            format!(
                "(w: {of}, whole: bool) -> {of} {{ if whole {{ return w; }} let {first} = unsafe {{ w.word.{first} }}; {of} {{ word: {union} {{ {first} }}, ..w }} }}\n"
            ),
        );
        let value = self.name("h");
        self.word_function(
            &value,
            format!(
                "(list: &mut [{of}; 3], at: usize, {second}: {}, is_number: bool) {{ list[at] = {of} {{ word: {union} {{ {second} }}, is_number }}; }}\n",
                match second {
                    "number" => "f64",
                    "bits" => "u64",
                    _ => "*mut f64",
                }
            ),
        );
        self.word_function(
            put,
            format!(
                "(list: &mut [{of}; 3], at: usize, w: {of}) {{ {value}(list, at, unsafe {{ w.word.{second} }}, w.is_number); }}\n"
            ),
        );
        self.word_function(
            read,
            format!(
                "(w: &{of}) -> f64 {{ unsafe {{ if w.is_number {{ w.word.number }} else {{ *w.word.place * *w.word.place }} }} }}\n"
            ),
        );
    }

    fn word_function(&mut self, name: &str, rest: String) {
        let attribute = self.inlining();
        self.item(
            name,
            trees![attribute, "fn ", Tree::Define(name.to_owned()), rest],
        );
    }
}
