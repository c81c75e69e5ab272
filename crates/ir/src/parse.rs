//! Reads the text form of the IR.
//!
//! Two passes over the text: the first reads everything but the bodies, so that bodies may refer to any function and
//! global of the module, in any order; the second reads the bodies.
//!
//! The parser checks syntax, names, and that an operand has the type that is written before it. A
//! constant has the type that its context requires. Everything else (what ends a region, what a condition may be) is
//! checked by the verifier, so that malformed programs can be written down. No text makes the parser panic.
//!
//! The grammar, where `…,` repeats what is before it, with commas between:
//!
//! ```text
//! module    = { file | global | declare | func | rule }
//! file      = "file" number string
//! global    = "global" @name ":" size "bytes" { "align" n | "const" | "inactive" | "shared" | "thread_local" | "parts" n { "," n } | "layout" layout } content
//! content   = ( "external" | "=" ( "zero" | x"hex" ) ) [ "{" offset ":" @name …, "}" ]
//! declare   = "declare" @name "(" [ type { fact } …, ] ")" results { property }
//! func      = "func" @name "(" [ %name ":" type { fact } [ "within" range ] …, ] ")" results { property } region
//! rule      = "rule" @name [ "forward" @name ] [ "augment" @name ] [ "reverse" @name ]
//! results   = [ "->" "(" type …, ")" ]
//! fact      = "noalias" | "readonly" | "writeonly" | "nocapture" | "discarded" | "align" n | "range" range | "layout" layout
//! property  = "memory" "(" ( "none" | "read" | "args" | "any" ) ")" | "noreturn" | "willreturn" | "inactive" | "writes_constants" | "noinline"
//!           | "level" "(" ( "v2" | "v3" | "v4" ) ")"
//! type      = scalar | "<" lanes "x" scalar ">"
//! scalar    = "i1" … "i128" | "f16" | "bf16" | "f32" | "f64" | "ptr"
//! range     = min "..=" max
//! layout    = "[" scalar [ layout ] "]" | "[" { offset ":" scalar [ layout ] …, } ";" stride "]"
//!
//! region    = "{" { statement } "}"
//! statement = [ %name …, "=" ] operation { flag } parts [ "range" ( range | "_" ) …, ] [ place ] regions
//! place     = "loc" "(" file ":" line ":" column { "from" file ":" line ":" column } ")"
//! constant  = number | 0xbits | "inf" | "-inf" | "nan" | "true" | "false" | "null" | "undef" | @name
//!           | "<" constant …, ">" | "splat" "(" constant ")"
//! ```
//!
//! The parts and regions of each operation are described at [`Opcode`](crate::Opcode) and [`Form`](crate::Form). Where
//! no alignment is written, `load`, `store` and `atomic_add` have that of their type, `stack` and `alloc` 16, and the
//! others 1. The `range` of a parameter is its callers' promise ([`ParamFacts`]), `within` what passes found out of the
//! value. A name in the text may be quoted (`%"a b"`); one that is a number stands for no name.

mod body;
mod operation;

use self::body::{Frame, Scope};
use crate::facts::{Alignment, Field, FunctionFacts, Layout, MemoryEffect, ParamFacts, Range};
use crate::function::{Function, Param};
use crate::lexer::{LexError, Lexer, Token};
use crate::literal::parse_integer;
use crate::module::{FunctionId, Global, GlobalId, Module, Rule, Symbol};
use crate::types::{Scalar, Type};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::fmt;

/// Reads a module.
pub fn parse_module(text: &str) -> Result<Module, ParseError> {
    let mut parser = Parser::new(text);
    parser.module().map_err(|error| error.locate(text))?;
    Ok(parser.module)
}

/// An error in a text, and its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// The line, from 1 on.
    pub line: u32,
    /// The character of the line, from 1 on.
    pub column: u32,
    /// The message.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for ParseError {}

impl LexError {
    /// The error with its position as line and column of the text.
    pub fn locate(self, text: &str) -> ParseError {
        let before = &text[..self.position];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ParseError {
            line: 1 + before.matches('\n').count() as u32,
            column: 1 + before[line_start..].chars().count() as u32,
            message: self.message,
        }
    }
}

type Result<T, E = LexError> = std::result::Result<T, E>;

/// A name in the text, and its byte offset.
type Place<'t> = (Cow<'t, str>, usize);

/// What calls need to know of a function.
struct Signature {
    params: Vec<Type>,
    results: Vec<Type>,
}

/// A body that waits for the second pass.
struct PendingBody<'t> {
    function: FunctionId,
    /// The byte behind its opening brace.
    start: usize,
    params: Vec<Place<'t>>,
}

struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    /// The next token, not yet consumed.
    token: Token<'t>,
    /// The byte at which it starts.
    start: usize,
    module: Module,
    symbols: FxHashMap<Cow<'t, str>, Symbol>,
    signatures: Vec<Signature>,
    bodies: Vec<PendingBody<'t>>,
    relocations: Vec<(GlobalId, u64, Place<'t>)>,
    rules: Vec<(Place<'t>, [Option<Place<'t>>; 3])>,
    /// The function whose body is being read.
    function: Function,
    scope: Scope<'t>,
    /// The operations whose regions are being read, from the outermost on.
    frames: Vec<Frame<'t>>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Parser<'t> {
        Parser {
            text,
            lexer: Lexer::new(text, 0),
            token: Token::End,
            start: 0,
            module: Module::new(),
            symbols: FxHashMap::default(),
            signatures: Vec::new(),
            bodies: Vec::new(),
            relocations: Vec::new(),
            rules: Vec::new(),
            function: Function::declare("", Vec::new(), Vec::new()),
            scope: Scope::default(),
            frames: Vec::new(),
        }
    }

    // ---- the module

    fn module(&mut self) -> Result<()> {
        self.jump(0)?;
        loop {
            match self.token {
                Token::Word("file") => self.file()?,
                Token::Word("global") => self.global()?,
                Token::Word("declare") => self.function(false)?,
                Token::Word("func") => self.function(true)?,
                Token::Word("rule") => self.rule()?,
                Token::End => break,
                _ => return self.expected("`file`, `global`, `declare`, `func` or `rule`"),
            }
        }
        for (global, offset, name) in std::mem::take(&mut self.relocations) {
            let symbol = self.resolve(&name)?;
            self.module.globals[global]
                .relocations
                .push((offset, symbol));
        }
        for (primal, derivatives) in std::mem::take(&mut self.rules) {
            let function = self.resolve_function(&primal)?;
            let mut derivatives = derivatives.into_iter().map(|name| match name {
                Some(name) => self.resolve_function(&name).map(Some),
                None => Ok(None),
            });
            let mut next = || derivatives.next().unwrap_or(Ok(None));
            let rule = Rule {
                forward: next()?,
                augment: next()?,
                reverse: next()?,
            };
            if self.module.rules.insert(function, rule).is_some() {
                return self.error_at(primal.1, format!("@{} has two rules", primal.0));
            }
        }
        for body in std::mem::take(&mut self.bodies) {
            self.body(body)?;
        }
        Ok(())
    }

    fn file(&mut self) -> Result<()> {
        self.advance()?;
        let start = self.start;
        let index: usize = self.integer("the number of the file")?;
        if index != self.module.files.len() {
            let next = self.module.files.len();
            return self.error_at(
                start,
                format!("files are numbered in order, the next is {next}"),
            );
        }
        let name = self.string("the name of the file")?;
        self.module.files.push(name);
        Ok(())
    }

    fn global(&mut self) -> Result<()> {
        self.advance()?;
        let name = self.symbol("the name of the global")?;
        self.expect(":")?;
        let size = self.integer("the size of the global")?;
        self.expect_word("bytes")?;
        let mut global = Global {
            name: name.0.clone().into_owned(),
            size,
            align: Alignment::ONE,
            constant: false,
            bytes: None,
            relocations: Vec::new(),
            inactive: false,
            shared: false,
            thread_local: false,
            parts: Vec::new(),
            layout: None,
        };
        loop {
            match self.token {
                Token::Word("align") => global.align = self.alignment()?,
                Token::Word("const") => {
                    self.advance()?;
                    global.constant = true;
                }
                Token::Word("inactive") => {
                    self.advance()?;
                    global.inactive = true;
                }
                Token::Word("shared") => {
                    self.advance()?;
                    global.shared = true;
                }
                Token::Word("thread_local") => {
                    self.advance()?;
                    global.thread_local = true;
                }
                Token::Word("parts") => {
                    self.advance()?;
                    loop {
                        global.parts.push(self.integer("where a part begins")?);
                        if !self.accept(",")? {
                            break;
                        }
                    }
                }
                Token::Word("layout") => global.layout = Some(self.layout_fact()?),
                _ => break,
            }
        }
        if !self.accept_word("external")? {
            if !self.accept("=")? {
                return self.expected("`=` and what the global holds, or `external`");
            }
            global.bytes = Some(match &mut self.token {
                Token::Bytes(bytes) => std::mem::take(bytes),
                Token::Word("zero") => Vec::new(),
                _ => return self.expected("bytes (`x\"…\"`) or `zero`"),
            });
            self.advance()?;
        }
        let id = self.module.globals.push(global);
        if self.accept("{")? {
            while !self.accept("}")? {
                let offset = self.integer("the offset of an address")?;
                self.expect(":")?;
                let target = self.symbol("the name of a global or function")?;
                self.relocations.push((id, offset, target));
                if !self.accept(",")? {
                    self.expect("}")?;
                    break;
                }
            }
        }
        self.define_symbol(name, Symbol::Global(id))
    }

    fn rule(&mut self) -> Result<()> {
        self.advance()?;
        let primal = self.symbol("the name of a function")?;
        let mut derivatives = [None, None, None];
        loop {
            let slot = match self.token {
                Token::Word("forward") => &mut derivatives[0],
                Token::Word("augment") => &mut derivatives[1],
                Token::Word("reverse") => &mut derivatives[2],
                _ => break,
            };
            self.advance()?;
            *slot = Some(self.symbol("the name of a function")?);
        }
        self.rules.push((primal, derivatives));
        Ok(())
    }

    /// A function's signature; its body, if it has one, is left for later.
    fn function(&mut self, defined: bool) -> Result<()> {
        self.advance()?;
        let name = self.symbol("the name of the function")?;
        let mut params = Vec::new();
        let mut names = Vec::new();
        let mut ranges = Vec::new();
        self.expect("(")?;
        while !self.accept(")")? {
            if defined {
                let Token::Value(name) = &mut self.token else {
                    return self.expected("a parameter such as `%x: f64`");
                };
                names.push((std::mem::take(name), self.start));
                self.advance()?;
                self.expect(":")?;
            }
            let ty = self.ty()?;
            let facts = self.param_facts()?;
            let within = match defined && self.accept_word("within")? {
                true => Some(self.range()?),
                false => None,
            };
            params.push(Param { ty, facts });
            ranges.push(within);
            if !self.accept(",")? {
                self.expect(")")?;
                break;
            }
        }
        let results = self.result_types()?;
        let facts = self.function_facts()?;
        self.signatures.push(Signature {
            params: params.iter().map(|param| param.ty).collect(),
            results: results.clone(),
        });
        let plain_name = name.0.clone().into_owned();
        let mut function = if defined {
            Function::define(plain_name, params, results)
        } else {
            Function::declare(plain_name, params, results)
        };
        function.facts = facts;
        if let Some(body) = function.body {
            for (index, range) in ranges.into_iter().enumerate() {
                let argument = function.regions[body].args[index];
                function.values[argument].range = range;
            }
        }
        let id = self.module.functions.push(function);
        self.define_symbol(name, Symbol::Function(id))?;
        if defined {
            if self.token != Token::Mark("{") {
                return self.expected("`{`");
            }
            self.bodies.push(PendingBody {
                function: id,
                start: self.start + 1,
                params: names,
            });
            self.skip_braces()?;
        }
        Ok(())
    }

    /// Skips a body. One that does not end is for the second pass to complain about.
    fn skip_braces(&mut self) -> Result<()> {
        let mut depth = 0usize;
        loop {
            match self.advance()? {
                Token::Mark("{") => depth += 1,
                Token::Mark("}") => depth -= 1,
                Token::End => return Ok(()),
                _ => {}
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    // ---- facts and types

    fn param_facts(&mut self) -> Result<ParamFacts> {
        let mut facts = ParamFacts::default();
        loop {
            let flag = match self.token {
                Token::Word("noalias") => &mut facts.noalias,
                Token::Word("readonly") => &mut facts.readonly,
                Token::Word("writeonly") => &mut facts.writeonly,
                Token::Word("nocapture") => &mut facts.nocapture,
                Token::Word("discarded") => &mut facts.discarded,
                Token::Word("align") => {
                    facts.align = self.alignment()?;
                    continue;
                }
                Token::Word("range") => {
                    self.advance()?;
                    facts.range = Some(self.range()?);
                    continue;
                }
                Token::Word("layout") => {
                    facts.layout = Some(self.layout_fact()?);
                    continue;
                }
                _ => return Ok(facts),
            };
            *flag = true;
            self.advance()?;
        }
    }

    fn function_facts(&mut self) -> Result<FunctionFacts> {
        let mut facts = FunctionFacts::default();
        loop {
            let flag = match self.token {
                Token::Word("noreturn") => &mut facts.noreturn,
                Token::Word("willreturn") => &mut facts.willreturn,
                Token::Word("inactive") => &mut facts.inactive,
                Token::Word("writes_constants") => &mut facts.writes_constants,
                Token::Word("noinline") => &mut facts.noinline,
                Token::Word("memory") => {
                    self.advance()?;
                    self.expect("(")?;
                    facts.memory = match self.token {
                        Token::Word("none") => MemoryEffect::None,
                        Token::Word("read") => MemoryEffect::Read,
                        Token::Word("args") => MemoryEffect::Args,
                        Token::Word("any") => MemoryEffect::Any,
                        _ => return self.expected("`none`, `read`, `args` or `any`"),
                    };
                    self.advance()?;
                    self.expect(")")?;
                    continue;
                }
                Token::Word("level") => {
                    self.advance()?;
                    self.expect("(")?;
                    facts.level = match self.token {
                        Token::Word(name) => name.parse().ok(),
                        _ => None,
                    };
                    if facts.level.is_none() {
                        return self.expected("`v2`, `v3` or `v4`");
                    }
                    self.advance()?;
                    self.expect(")")?;
                    continue;
                }
                _ => return Ok(facts),
            };
            *flag = true;
            self.advance()?;
        }
    }

    /// `align 8`.
    fn alignment(&mut self) -> Result<Alignment> {
        self.advance()?;
        let start = self.start;
        let bytes = self.integer("an alignment")?;
        match Alignment::new(bytes) {
            Some(align) => Ok(align),
            None => self.error_at(
                start,
                format!("an alignment is a power of two, and {bytes} is none"),
            ),
        }
    }

    /// `0..=10`.
    fn range(&mut self) -> Result<Range> {
        let min = self.integer("the lower end of a range")?;
        self.expect("..=")?;
        let max = self.integer("the upper end of a range")?;
        Ok(Range { min, max })
    }

    /// `layout [f64]`.
    fn layout_fact(&mut self) -> Result<Layout> {
        self.advance()?;
        self.lexer.in_layout = true;
        let layout = self.layout(0);
        self.lexer.in_layout = false;
        let layout = layout?;
        // The closing bracket is consumed last, with comments in force again.
        self.expect("]")?;
        Ok(layout)
    }

    /// A layout but for its closing bracket.
    fn layout(&mut self, depth: usize) -> Result<Layout> {
        if depth > 100 {
            return self.error_at(self.start, "layouts are nested more than 100 levels deep");
        }
        self.expect("[")?;
        let mut fields = Vec::new();
        if matches!(self.token, Token::Word(_)) {
            let field = self.field(0, depth)?;
            let stride = field.scalar.bytes();
            fields.push(field);
            return Ok(Layout { fields, stride });
        }
        while self.token != Token::Mark(";") {
            let offset = self.integer("the offset of a field, or a type")?;
            self.expect(":")?;
            fields.push(self.field(offset, depth)?);
            if !self.accept(",")? {
                break;
            }
        }
        if !self.accept(";")? {
            return self.expected("`,` or `;` and after how many bytes the fields repeat");
        }
        let stride = self.integer("after how many bytes the fields repeat")?;
        Ok(Layout { fields, stride })
    }

    fn field(&mut self, offset: u64, depth: usize) -> Result<Field> {
        let scalar = self.scalar()?;
        let pointee = if self.token == Token::Mark("[") {
            let layout = self.layout(depth + 1)?;
            self.expect("]")?;
            Some(Box::new(layout))
        } else {
            None
        };
        Ok(Field {
            offset,
            scalar,
            pointee,
        })
    }

    /// `-> (f64, i64)`, or nothing.
    fn result_types(&mut self) -> Result<Vec<Type>> {
        let mut types = Vec::new();
        if self.accept("->")? {
            self.expect("(")?;
            while !self.accept(")")? {
                types.push(self.ty()?);
                if !self.accept(",")? {
                    self.expect(")")?;
                    break;
                }
            }
        }
        Ok(types)
    }

    fn ty(&mut self) -> Result<Type> {
        if !self.accept("<")? {
            return Ok(Type::scalar_of(self.scalar()?));
        }
        let start = self.start;
        let lanes: u16 = self.integer("the number of lanes")?;
        if lanes == 0 {
            return self.error_at(start, "a vector has at least one lane");
        }
        self.expect_word("x")?;
        let scalar = self.scalar()?;
        self.expect(">")?;
        Ok(Type::vector_of(scalar, lanes))
    }

    fn scalar(&mut self) -> Result<Scalar> {
        let Token::Word(word) = self.token else {
            return self.expected("a type");
        };
        match scalar_named(word) {
            Some(scalar) => {
                self.advance()?;
                Ok(scalar)
            }
            None => match word.strip_prefix('i') {
                Some(bits) if !bits.is_empty() && bits.bytes().all(|bit| bit.is_ascii_digit()) => {
                    self.error_at(self.start, "integers have 1 to 128 bits")
                }
                _ => self.expected("a type"),
            },
        }
    }

    // ---- symbols

    fn define_symbol(&mut self, (name, start): Place<'t>, symbol: Symbol) -> Result<()> {
        let message = format!("@{name} is defined twice");
        match self.symbols.insert(name, symbol) {
            Some(_) => self.error_at(start, message),
            None => Ok(()),
        }
    }

    fn resolve(&self, (name, start): &Place<'t>) -> Result<Symbol> {
        match self.symbols.get(name) {
            Some(&symbol) => Ok(symbol),
            None => self.error_at(
                *start,
                format!("@{name} is neither a function nor a global of this module"),
            ),
        }
    }

    fn resolve_function(&self, name: &Place<'t>) -> Result<FunctionId> {
        match self.symbols.get(&name.0) {
            Some(&Symbol::Function(function)) => Ok(function),
            Some(Symbol::Global(_)) => {
                self.error_at(name.1, format!("@{} is a global, not a function", name.0))
            }
            None => self.error_at(
                name.1,
                format!("function @{} is not defined or declared", name.0),
            ),
        }
    }

    // ---- tokens

    /// Continues at another place of the text.
    fn jump(&mut self, position: usize) -> Result<()> {
        self.lexer = Lexer::new(self.text, position);
        self.advance()?;
        Ok(())
    }

    /// Consumes a token and returns it.
    fn advance(&mut self) -> Result<Token<'t>> {
        let (token, start) = self.lexer.next()?;
        self.start = start;
        Ok(std::mem::replace(&mut self.token, token))
    }

    fn accept(&mut self, mark: &'static str) -> Result<bool> {
        let found = self.token == Token::Mark(mark);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, mark: &'static str) -> Result<()> {
        match self.accept(mark)? {
            true => Ok(()),
            false => self.expected(&format!("`{mark}`")),
        }
    }

    fn accept_word(&mut self, word: &'static str) -> Result<bool> {
        let found = self.token == Token::Word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect_word(&mut self, word: &'static str) -> Result<()> {
        match self.accept_word(word)? {
            true => Ok(()),
            false => self.expected(&format!("`{word}`")),
        }
    }

    /// A whole number within the limits of its type.
    fn integer<T: TryFrom<i128>>(&mut self, what: &str) -> Result<T> {
        let Token::Number(text) = self.token else {
            return self.expected(what);
        };
        let number = parse_integer(text).and_then(|(negative, magnitude)| match negative {
            true => 0i128.checked_sub_unsigned(magnitude),
            false => i128::try_from(magnitude).ok(),
        });
        match number.and_then(|number| T::try_from(number).ok()) {
            Some(number) => {
                self.advance()?;
                Ok(number)
            }
            None => self.error_at(self.start, format!("{text} cannot be {what}")),
        }
    }

    fn string(&mut self, what: &str) -> Result<String> {
        match &mut self.token {
            Token::String(string) => {
                let string = std::mem::take(string);
                self.advance()?;
                Ok(string)
            }
            _ => self.expected(&format!("{what}, in quotes")),
        }
    }

    fn symbol(&mut self, what: &str) -> Result<Place<'t>> {
        let start = self.start;
        match &mut self.token {
            Token::Symbol(name) => {
                let name = std::mem::take(name);
                self.advance()?;
                Ok((name, start))
            }
            _ => self.expected(&format!("{what}, such as `@f`")),
        }
    }

    // ---- errors

    fn error_at<T>(&self, position: usize, message: impl Into<String>) -> Result<T> {
        Err(LexError {
            position,
            message: message.into(),
        })
    }

    /// Complains about the next token.
    fn expected<T>(&self, what: &str) -> Result<T> {
        let found = self.token.describe();
        self.error_at(self.start, format!("expected {what}, found {found}"))
    }
}

fn scalar_named(name: &str) -> Option<Scalar> {
    Some(match name {
        "f16" => Scalar::F16,
        "bf16" => Scalar::Bf16,
        "f32" => Scalar::F32,
        "f64" => Scalar::F64,
        "ptr" => Scalar::Ptr,
        _ => {
            let digits = name.strip_prefix('i')?;
            // `i08` and `i+8` are not accepted for `i8`.
            let canonical = digits.starts_with(|first: char| matches!(first, '1'..='9'));
            let bits: u8 = digits.parse().ok()?;
            return (canonical && bits <= 128).then_some(Scalar::Int(bits));
        }
    })
}
