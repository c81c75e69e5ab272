//! The terms of the source languages, from which messages are composed. A language is one value of [`Terms`].

use std::ops::Deref;

/// The terms of a source language.
#[derive(Debug)]
pub struct Terms {
    /// Opening and closing quotes of a name.
    pub quotes: (&'static str, &'static str),
    /// The language, in "write it in …".
    pub plainly: &'static str,
    /// The activity of a constant argument or result.
    pub constant: &'static str,
    /// The activity of an argument with a shadow.
    pub duplicated: &'static str,
    /// How to declare a result constant.
    pub constant_result: &'static str,
    /// A custom derivative.
    pub rule: &'static str,
    /// The property of functions without a derivative.
    pub inactive: &'static str,
    /// The way out of unknown types in memory, besides separate memory.
    pub or_describe: &'static str,
    /// The construct that most likely makes a word hold a float or something else.
    pub union: &'static str,
    /// The way out of such words.
    pub keep_apart: &'static str,
    /// The way out of a word that cannot be passed by value.
    pub by_reference: &'static str,
    /// The construct that shares memory between values of different types.
    pub share: &'static str,
    /// How to use several threads.
    pub threads: &'static str,
    /// The way out of code that cannot be accelerated.
    pub not_accelerated: &'static str,
}

/// The Loop IR itself: what file tests and `loopir` show.
pub const LOOP_IR: Terms = Terms {
    quotes: ("@", ""),
    plainly: "plain operations",
    constant: "`const`",
    duplicated: "`dup`",
    constant_result: "declare the result `const`",
    rule: "a derivative rule",
    inactive: "inactive",
    or_describe: ", or describe the layout of the argument that holds this memory",
    union: "",
    keep_apart: "keep the two apart, in fields of their own",
    by_reference: "pass a pointer to what holds it, or have the function inlined",
    share: "",
    threads: "",
    not_accelerated: "remove the request, or request the functions inside that compute",
};

/// Rust.
pub const RUST: Terms = Terms {
    quotes: ("`", "`"),
    plainly: "plain Rust",
    constant: "`Const`",
    duplicated: "`Duplicated` (in forward mode `Dual`)",
    constant_result: "declare the result `Const`",
    rule: "a derivative rule (`#[custom_derivative]`)",
    inactive: "inactive (`#[inactive]`)",
    or_describe: ", or describe the type of the argument that holds this memory (`#[derive(Differentiable)]`)",
    union: " (an enum?)",
    keep_apart: "keep the two apart, in fields of their own",
    by_reference: "pass a reference to what holds it, or mark the function `#[inline(always)]`",
    share: "",
    threads: "; instead of sharing them between threads, differentiate the computation of each thread",
    not_accelerated: "remove `#[accelerate]`, or put it on the functions inside that compute",
};

/// C and C++, with Enzyme's markers.
pub const C: Terms = Terms {
    quotes: ("'", "'"),
    plainly: "plain C",
    constant: "'enzyme_const'",
    duplicated: "'enzyme_dup'",
    constant_result: "give 'enzyme_const_return'",
    rule: "a derivative rule ('__enzyme_register_gradient_…')",
    inactive: "inactive ('__enzyme_inactivefn_…')",
    or_describe: "",
    union: " (a union?)",
    keep_apart: "keep the two apart: a struct in the place of a union",
    by_reference: "pass the union by its address, or mark the function '__attribute__((always_inline))'",
    share: " (members of a union share theirs)",
    threads: "; threads are supported in regions of OpenMP only",
    not_accelerated: "call the function itself, or accelerate the functions inside that compute",
};

/// The terms of a language, with its names for symbols.
pub struct Words<'a> {
    /// The terms.
    pub terms: &'a Terms,
    /// Maps a symbol to its path in the source.
    pub path_of: &'a dyn Fn(&str) -> String,
}

impl Words<'static> {
    /// Symbols keep their names.
    pub fn of(terms: &'static Terms) -> Words<'static> {
        Words {
            terms,
            path_of: &|symbol| symbol.to_owned(),
        }
    }
}

impl Words<'_> {
    /// A symbol, in quotes.
    pub fn name(&self, symbol: &str) -> String {
        self.quote(&(self.path_of)(symbol))
    }

    /// A name or type that is not a symbol, in quotes.
    pub fn quote(&self, text: &str) -> String {
        let (before, behind) = self.terms.quotes;
        format!("{before}{text}{behind}")
    }

    /// An argument, as part of a sentence.
    pub fn argument(&self, argument: &Argument) -> String {
        match argument {
            Argument::Index(index) => format!("argument {index}"),
            Argument::Named(name) => format!("the argument {}", self.quote(name)),
            Argument::Number { number, function } => {
                format!("argument {number} of {}", self.name(function))
            }
            Argument::Result { function } => format!("the result of {}", self.name(function)),
        }
    }
}

impl Deref for Words<'_> {
    type Target = Terms;

    fn deref(&self) -> &Terms {
        self.terms
    }
}

/// An argument or the result of a differentiated function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Argument {
    /// By its index in the Loop IR, from 0 on.
    Index(u32),
    /// By its name in the source.
    Named(String),
    /// By its number in the source, from 1 on.
    Number {
        /// The number.
        number: usize,
        /// The symbol of the function.
        function: String,
    },
    /// The result.
    Result {
        /// The symbol of the function.
        function: String,
    },
}
