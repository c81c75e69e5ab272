//! Writes the Rust type of a graph.

use super::Level;
use ferrozyme_backend::{Error, Planned};
use ferrozyme_graph::lower::Exchange;
use ferrozyme_graph::{Graph, INDEX, Opcode, Payload, Scalar, TensorType};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::panic::Location;

/// What the type is made of.
pub(super) struct Wrapper<'w> {
    pub(super) name: &'w str,
    pub(super) package: &'w str,
    pub(super) levels: &'w [Level],
    /// The graph before and after all passes.
    pub(super) given: &'w Graph,
    pub(super) graph: &'w Graph,
    pub(super) planned: &'w Planned,
}

/// Writing to a string does not fail.
const INFALLIBLE: &str = "writing to a string does not fail";

macro_rules! line {
    ($out:expr, $($text:tt)*) => {
        writeln!($out, $($text)*).expect(INFALLIBLE)
    };
}

/// A name as a word of Rust.
fn word(name: &str) -> String {
    let letter = |letter: char| match letter.is_ascii_alphanumeric() {
        true => letter.to_ascii_lowercase(),
        false => '_',
    };
    name.chars().map(letter).collect()
}

/// A word of snake case in camel case.
fn camel(word: &str) -> String {
    let part = |part: &str| -> String {
        let mut letters = part.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect()
    };
    word.split('_').map(part).collect()
}

/// The tensors of a type as nested arrays, if Rust has the elements.
fn nested(ty: &TensorType) -> Option<String> {
    let element = match ty.element {
        Scalar::F32 => "f32",
        Scalar::F64 => "f64",
        INDEX => "i32",
        _ => return None,
    };
    let wrap = |inner: String, size: &usize| format!("[{inner}; {size}]");
    Some(ty.shape.iter().rev().fold(element.to_owned(), wrap))
}

/// Types as `linked` reads them.
fn types(types: &[TensorType]) -> String {
    let one = |ty: &TensorType| format!("(\"{}\", &{:?})", ty.element, &ty.shape[..]);
    let all: Vec<String> = types.iter().map(one).collect();
    format!("&[{}]", all.join(", "))
}

impl Wrapper<'_> {
    /// The name of the function that runs the graph, for a level.
    pub(super) fn symbol(&self, level: u32) -> String {
        format!(
            "__ferrozyme_run_{}_{}_{level}",
            word(self.package),
            self.name
        )
    }

    /// The name of the library.
    pub(super) fn library(&self) -> String {
        format!("ferrozyme_{}_{}", word(self.package), self.name)
    }

    /// The file of Rust, and the bytes of parameters.
    pub(super) fn write(&self) -> Result<(String, Vec<u8>), Error> {
        let starts = self
            .name
            .starts_with(|first: char| first.is_ascii_lowercase());
        if !starts || word(self.name) != self.name {
            return Err(Error::Compile(format!(
                "`{}` is no name for a graph: it is one word of small letters, digits and `_`, because a type and files are named after it",
                self.name
            )));
        }
        self.check_exchanges()?;
        let functions = self.functions();
        let ty = camel(self.name);
        let mut bytes = Vec::new();
        let mut out = String::new();
        line!(out, "// Made by `ferrozyme_cpu::build`.\n");
        line!(
            out,
            "/// The graph `{}`, compiled when this crate was built.",
            self.name
        );
        line!(
            out,
            "pub struct {ty} {{\n    linked: ::ferrozyme_linked::Linked,\n}}\n"
        );
        line!(out, "#[allow(dead_code, clippy::all)]\nimpl {ty} {{");
        self.write_constants(&mut out);
        self.write_new(&mut out, &functions, &mut bytes);
        self.write_exchanges(&mut out);
        self.write_parameters(&mut out);
        line!(out, "    /// Runs the graph once.");
        line!(
            out,
            "    pub fn run(&mut self) -> Result<(), ::ferrozyme_linked::Error> {{\n        self.linked.run()\n    }}"
        );
        line!(out, "}}");
        if functions.is_empty() {
            line!(
                out,
                "\nimpl Default for {ty} {{\n    fn default() -> {ty} {{\n        {ty}::new()\n    }}\n}}"
            );
        }
        self.check_words(&out)?;
        Ok((out, bytes))
    }

    /// The names of the Rust functions that are called.
    fn functions(&self) -> BTreeSet<&str> {
        let calls = self.planned.lowered.calls.iter();
        calls.map(|call| &*call.name).collect()
    }

    /// Every tensor that is exchanged has elements that Rust has, and one type under one name. The error has the line that made the exchange.
    fn check_exchanges(&self) -> Result<(), Error> {
        let graph = self.given;
        let mut known: BTreeMap<(Opcode, &str), Vec<TensorType>> = BTreeMap::new();
        let mut problem: Option<String> = None;
        graph.for_each_op(graph.body(), &mut |_, op| {
            let data = &graph.ops[op];
            let (name, tensors) = match &data.payload {
                Payload::Feed(name, _) => (&**name, &data.results[..]),
                Payload::Receive(name) => (&**name, &data.operands[..]),
                _ => return,
            };
            let types: Vec<TensorType> = tensors.iter().map(|&t| graph.ty(t).clone()).collect();
            let mut complain = |message: String| {
                let at = data.location.map(|at: &Location<'_>| format!(" ({at})"));
                let at = at.unwrap_or_default();
                problem.get_or_insert(format!("{} \"{name}\" {message}{at}", data.opcode));
            };
            if let Some(ty) = types.iter().find(|ty| nested(ty).is_none()) {
                complain(format!("is {ty}: Rust has f32, f64 and i32, so `cast` it"));
            }
            match known.get(&(data.opcode, name)) {
                Some(other) if *other != types => {
                    let shown = |types: &[TensorType]| -> String {
                        let all: Vec<String> = types.iter().map(ToString::to_string).collect();
                        all.join(", ")
                    };
                    complain(format!(
                        "is {}, but elsewhere {}",
                        shown(&types),
                        shown(other)
                    ));
                }
                _ => drop(known.insert((data.opcode, name), types)),
            }
        });
        problem.map_or(Ok(()), |message| Err(Error::Compile(message)))
    }

    /// Names that are different in the graph are different words.
    fn check_words(&self, out: &str) -> Result<(), Error> {
        let mut seen = BTreeSet::new();
        let mut functions = out.lines().filter_map(|line| {
            let rest = line.trim_start().strip_prefix("pub fn ")?;
            rest.split(['(', '<']).next()
        });
        match functions.find(|word| !seen.insert(*word)) {
            None => Ok(()),
            Some(word) => Err(Error::Compile(format!(
                "`{word}` would stand for two things whose names differ in other signs only: give one of them another name"
            ))),
        }
    }

    /// The exchanges, each name once.
    fn exchanges(&self) -> Vec<&Exchange> {
        let mut seen = BTreeSet::new();
        let all = self.planned.lowered.exchanges.iter();
        all.filter(|exchange| seen.insert((exchange.feeds, &*exchange.name)))
            .collect()
    }

    fn write_constants(&self, out: &mut String) {
        line!(out, "    /// The kernels, and what memory they need.");
        line!(
            out,
            "    pub const REPORT: &'static str = include_str!(concat!(env!(\"OUT_DIR\"), \"/{}.txt\"));\n",
            self.name
        );
        let shape = |out: &mut String, name: String, what: String, ty: &TensorType| {
            line!(out, "    /// The shape of {what}.");
            line!(
                out,
                "    pub const {}: [usize; {}] = {:?};\n",
                name.to_uppercase(),
                ty.shape.len(),
                &ty.shape[..]
            );
        };
        for exchange in self.exchanges() {
            let kind = if exchange.feeds { "feed" } else { "receive" };
            for (position, ty) in exchange.types.iter().enumerate() {
                let mut name = format!("{kind}_{}", word(&exchange.name));
                if exchange.types.len() > 1 {
                    name += &format!("_{position}");
                }
                shape(out, name, format!("`{kind} {:?}`", exchange.name), ty);
            }
        }
        for data in self.graph.parameters.values() {
            let name = format!("parameter_{}", word(&data.name));
            shape(
                out,
                name,
                format!("the parameter {:?}", data.name),
                &data.ty,
            );
        }
    }

    fn write_new(&self, out: &mut String, functions: &BTreeSet<&str>, bytes: &mut Vec<u8>) {
        let ty = camel(self.name);
        let arguments = functions
            .iter()
            .map(|name| format!("{}: &::ferrozyme_linked::UserFunction", word(name)));
        let arguments: Vec<String> = arguments.collect();
        line!(
            out,
            "    /// The graph with the initial values of its parameters."
        );
        if !functions.is_empty() {
            line!(
                out,
                "    ///\n    /// # Panics\n    /// If a function has another name than its argument, takes or gives other elements, or lacks the derivative."
            );
            line!(out, "    #[track_caller]");
        }
        line!(out, "    #[allow(unsafe_code)]");
        line!(out, "    pub fn new({}) -> {ty} {{", arguments.join(", "));
        line!(
            out,
            "        #[link(name = \"{}\", kind = \"static\")]\n        unsafe extern \"C-unwind\" {{",
            self.library()
        );
        for &(level, _) in self.levels {
            line!(
                out,
                "            fn {}(table: *const *const ::core::ffi::c_void);",
                self.symbol(level)
            );
        }
        line!(out, "        }}");
        line!(
            out,
            "        const BYTES: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{}.bin\"));",
            self.name
        );
        line!(
            out,
            "        static PARTS: ::ferrozyme_linked::Parts = ::ferrozyme_linked::Parts {{\n            parameters: &["
        );
        let parameters = self.graph.parameters.values().zip(&self.planned.parameters);
        for (data, initial) in parameters {
            let value = match initial.splat() {
                Some(element) => format!("Splat(&{element:?})"),
                None => {
                    let start = bytes.len();
                    bytes.extend(initial.pieces().flat_map(|(_, piece)| piece));
                    format!(
                        "Bytes(BYTES.split_at({start}).1.split_at({}).0)",
                        initial.size()
                    )
                }
            };
            line!(
                out,
                "                ::ferrozyme_linked::Parameter {{ name: {:?}, bytes: {}, initial: ::ferrozyme_linked::Initial::{value} }},",
                data.name,
                initial.size()
            );
        }
        line!(out, "            ],\n            exchanges: &[");
        for exchange in &self.planned.lowered.exchanges {
            line!(
                out,
                "                ::ferrozyme_linked::Exchange {{ name: {:?}, feeds: {}, types: {} }},",
                exchange.name,
                exchange.feeds,
                types(&exchange.types)
            );
        }
        line!(out, "            ],\n            calls: &[");
        for call in &self.planned.lowered.calls {
            line!(
                out,
                "                ::ferrozyme_linked::Call {{ name: {:?}, derivative: {}, operands: {}, results: {}, location: {:?} }},",
                call.name,
                call.derivative,
                types(&call.operands),
                types(&call.results),
                call.location
            );
        }
        line!(
            out,
            "            ],\n            arena: {},\n        }};",
            self.planned.arena
        );
        line!(out, "        let run: ::ferrozyme_linked::Run = ");
        for &(level, _) in self.levels.iter().skip(1).rev() {
            line!(
                out,
                "            if ::ferrozyme_linked::has_level({level}) {{ {} }} else",
                self.symbol(level)
            );
        }
        line!(out, "            {{ {} }};", self.symbol(self.levels[0].0));
        let functions: Vec<String> = functions.iter().map(|name| word(name)).collect();
        line!(
            out,
            "        // SAFETY: the parts were written together with the functions."
        );
        line!(
            out,
            "        let linked = unsafe {{ ::ferrozyme_linked::Linked::new(run, &PARTS, &[{}]) }};",
            functions.join(", ")
        );
        line!(out, "        {ty} {{ linked }}\n    }}\n");
    }

    fn write_exchanges(&self, out: &mut String) {
        for exchange in self.exchanges() {
            let name = &exchange.name;
            let all: Vec<String> = exchange.types.iter().filter_map(nested).collect();
            if exchange.feeds {
                line!(
                    out,
                    "    /// What is fed as {name:?}. The function writes to a tensor that holds what was fed before; it is called ahead of time, on a thread of its own."
                );
                line!(
                    out,
                    "    pub fn feed_{}(&mut self, next: impl FnMut(&mut {}) + Send + 'static) {{",
                    word(name),
                    all[0]
                );
                line!(out, "        self.linked.feed({name:?}, next);\n    }}\n");
                continue;
            }
            let arguments: Vec<String> = all.iter().map(|ty| format!("&{ty}")).collect();
            line!(
                out,
                "    /// What is done with what is received as {name:?}. It is called on a thread of its own; `run` waits for it."
            );
            line!(
                out,
                "    pub fn receive_{}(&mut self, mut receive: impl FnMut({}) + Send + 'static) {{",
                word(name),
                arguments.join(", ")
            );
            line!(
                out,
                "        self.linked.receive({name:?}, move |tensors| receive("
            );
            for (position, ty) in all.iter().enumerate() {
                line!(
                    out,
                    "            &::ferrozyme_linked::Linked::tensor::<{ty}>(&tensors[{position}]),"
                );
            }
            line!(out, "        ));\n    }}\n");
        }
    }

    fn write_parameters(&self, out: &mut String) {
        for (number, data) in self.graph.parameters.values().enumerate() {
            let (name, word) = (&data.name, word(&data.name));
            let Some(ty) = nested(&data.ty) else {
                continue;
            };
            line!(out, "    /// The value of the parameter {name:?}.");
            line!(
                out,
                "    pub fn parameter_{word}(&self) -> Result<::ferrozyme_linked::Tensor<{ty}>, ::ferrozyme_linked::Error> {{\n        self.linked.value({number})\n    }}\n"
            );
            line!(out, "    /// Gives the parameter {name:?} another value.");
            line!(
                out,
                "    pub fn set_parameter_{word}(&mut self, value: &{ty}) -> Result<(), ::ferrozyme_linked::Error> {{\n        self.linked.set_value({number}, value)\n    }}\n"
            );
        }
        line!(
            out,
            "    /// The graph without types: parameters by number and as bytes, to load them from a file."
        );
        line!(
            out,
            "    pub fn linked(&mut self) -> &mut ::ferrozyme_linked::Linked {{\n        &mut self.linked\n    }}\n"
        );
    }
}
