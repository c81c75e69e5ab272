//! Reads the text form of graphs.
//!
//! The parser checks syntax, names and types; what it returns verifies. No text makes it panic. The grammar, where `…,` repeats what is before it, with commas between:
//!
//! ```text
//! graph      = { parameter } "graph" region
//! parameter  = "parameter" @name ":" type "=" literal
//! region     = [ "(" %name ":" type …, ")" ] "{" { operation } [ "yield" %name …, ] "}"
//! operation  = [ %name …, "=" ] name before [ %name …, ] after { word region } [ ":" type …, ]
//! before     = [ @name | literal | number | string | reduction | predicate ]
//! after      = [ "[" number { ":" number } …, "]" | "axis" number | "(" [ letters ] "," [ letters ] "->" [ letters ] ")" ]
//! literal    = number | "[" number …, "]"
//! type       = element "[" [ number …, ] "]"
//! ```
//!
//! The table of operations says what each has before and after its operands, and the words before its regions. The types of results may be left out where they follow from the operands.

mod payload;

use crate::graph::{Graph, Region, Tensor};
use crate::infer::check_literal;
use crate::opcode::{Opcode, PayloadKind};
use crate::payload::{Function, Indices, Reduction};
use crate::types::{Shape, TensorType, element_from_name};
use ferrozyme_ir::lexer::{LexError, Lexer, Token};
use ferrozyme_ir::{FloatPredicate, IntPredicate, Opcode as Loop, ParseError};
use payload::{After, Before};
use rustc_hash::FxHashMap;

/// Reads a graph.
pub fn parse(text: &str) -> Result<Graph, ParseError> {
    let mut parser = Parser {
        lexer: Lexer::new(text, 0),
        token: Token::End,
        start: 0,
        graph: Graph::new(),
        scope: FxHashMap::default(),
        depth: 0,
    };
    parser.graph().map_err(|error| error.locate(text))?;
    Ok(parser.graph)
}

type Result<T = (), E = LexError> = std::result::Result<T, E>;

/// Regions in regions are read by recursion; no program nests more deeply.
const DEEPEST: usize = 100;

struct Parser<'t> {
    lexer: Lexer<'t>,
    /// The next token, not yet consumed.
    token: Token<'t>,
    /// The byte at which it starts.
    start: usize,
    graph: Graph,
    /// All tensors that were defined so far.
    scope: FxHashMap<String, Tensor>,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn graph(&mut self) -> Result {
        self.advance()?;
        while self.token == Token::Word("parameter") {
            self.advance()?;
            self.parameter()?;
        }
        self.word("graph")?;
        let body = self.graph.body();
        self.block(body)?;
        match self.token {
            Token::End => Ok(()),
            _ => self.expected("the end of the text"),
        }
    }

    fn parameter(&mut self) -> Result {
        let start = self.start;
        let name = self.symbol()?;
        self.mark(":")?;
        let ty = self.ty()?;
        self.mark("=")?;
        let mut before = Before::default();
        self.numbers(&mut before)?;
        let initial = self.at(start, before.literal(ty.element))?;
        self.at(start, check_literal(&initial, &ty))?;
        if self.graph.parameter_named(&name).is_some() {
            return self.error_at(start, format!("there is a parameter @{name} already"));
        }
        self.graph.parameters.push(crate::ParameterData {
            name: name.into(),
            ty,
            initial,
        });
        Ok(())
    }

    /// A region with its arguments.
    fn region(&mut self) -> Result<Region> {
        let mut names = Vec::new();
        let mut types = Vec::new();
        if self.token == Token::Mark("(") {
            self.advance()?;
            loop {
                names.push(self.new_name()?);
                self.mark(":")?;
                types.push(self.ty()?);
                if !self.comma()? {
                    break;
                }
            }
            self.mark(")")?;
        }
        let region = self.graph.new_region(&types);
        let arguments = self.graph.regions[region].arguments.clone();
        for (name, &argument) in names.into_iter().zip(&arguments) {
            self.define(name, argument)?;
        }
        self.graph.open.push(region);
        self.block(region)?;
        self.graph.open.pop();
        Ok(region)
    }

    /// The braces of a region and what is between them.
    fn block(&mut self, region: Region) -> Result {
        if self.depth == DEEPEST {
            return self.expected("less nesting");
        }
        self.depth += 1;
        self.mark("{")?;
        loop {
            match self.token {
                Token::Mark("}") => break,
                Token::Word("yield") if region != self.graph.body() => {
                    self.advance()?;
                    self.graph.regions[region].results = self.tensors()?.into();
                    break;
                }
                Token::End => return self.expected("`}`"),
                _ => self.operation()?,
            }
        }
        self.depth -= 1;
        self.mark("}")
    }

    fn operation(&mut self) -> Result {
        let mut names = Vec::new();
        if matches!(self.token, Token::Value(_)) {
            loop {
                names.push(self.new_name()?);
                if !self.comma()? {
                    break;
                }
            }
            self.mark("=")?;
        }
        let start = self.start;
        let (opcode, before) = self.name_and_before()?;
        // The next line may begin with a name, too.
        let takes_operands = !opcode.row().operands.is_empty();
        let operands = match self.token {
            Token::Value(_) if takes_operands => self.tensors()?,
            _ => Vec::new(),
        };
        let after = self.after(opcode)?;
        let mut regions = Vec::new();
        for word in opcode.row().regions {
            if !word.is_empty() {
                self.word(word)?;
            }
            regions.push(self.region()?);
        }
        let mut types = Vec::new();
        if self.token == Token::Mark(":") {
            self.advance()?;
            loop {
                types.push(self.ty()?);
                if !self.comma()? {
                    break;
                }
            }
        }
        let payload = self.at(start, payload::payload(opcode, before, after, &types))?;
        let inserted = self
            .graph
            .insert_at(None, opcode, &operands, payload, &regions);
        let op = self.at(start, inserted)?;
        let results = self.graph.ops[op].results.clone();
        let actual: Vec<&TensorType> = results
            .iter()
            .map(|&result| self.graph.ty(result))
            .collect();
        if !types.is_empty() && !types.iter().eq(actual.iter().copied()) {
            let message = format!("the results are {actual:?}");
            return self.error_at(start, message);
        }
        if names.len() != results.len() {
            let message = format!("the operation has {} results", results.len());
            return self.error_at(start, message);
        }
        for (name, result) in names.into_iter().zip(results) {
            self.define(name, result)?;
        }
        Ok(())
    }

    fn name_and_before(&mut self) -> Result<(Opcode, Before<'t>)> {
        let Token::Word(name) = self.token else {
            return self.expected("an operation");
        };
        let mut before = Before::default();
        let start = self.start;
        self.advance()?;
        let Some(opcode) = Opcode::from_name(name) else {
            before.function = match Loop::from_name(name) {
                Some(Loop::Fcmp) => self
                    .predicate(FloatPredicate::from_name)?
                    .map(Function::FloatCompare),
                Some(Loop::Icmp) => self
                    .predicate(IntPredicate::from_name)?
                    .map(Function::IntCompare),
                Some(opcode) => Function::from_opcode(opcode),
                None => None,
            };
            return match before.function {
                Some(_) => Ok((Opcode::Elementwise, before)),
                None => self.error_at(start, format!("there is no operation `{name}`")),
            };
        };
        match opcode.row().payload {
            PayloadKind::Parameter => {
                let start = self.start;
                let name = self.symbol()?;
                before.parameter = self.graph.parameter_named(&name);
                if before.parameter.is_none() {
                    return self.error_at(start, format!("there is no parameter @{name}"));
                }
            }
            PayloadKind::Constant => self.numbers(&mut before)?,
            PayloadKind::Iota | PayloadKind::Random => before.number = self.number()?,
            PayloadKind::Feed | PayloadKind::Receive | PayloadKind::Call => match &self.token {
                Token::String(string) => {
                    before.string = string.clone();
                    self.advance()?;
                }
                _ => return self.expected("a name in quotes"),
            },
            PayloadKind::Reduce => match &self.token {
                Token::Word(word) if Reduction::from_name(word).is_some() => {
                    before.reduction = Reduction::from_name(word);
                    self.advance()?;
                }
                _ => return self.expected("`sum`, `max`, `min` or `argmax`"),
            },
            _ => {}
        }
        Ok((opcode, before))
    }

    fn predicate<P>(&mut self, from_name: impl Fn(&str) -> Option<P>) -> Result<Option<P>> {
        let Token::Word(word) = self.token else {
            return self.expected("a predicate");
        };
        let predicate = from_name(word);
        if predicate.is_none() {
            return self.expected("a predicate");
        }
        self.advance()?;
        Ok(predicate)
    }

    fn after(&mut self, opcode: Opcode) -> Result<After> {
        let mut after = After::default();
        match opcode.row().payload {
            PayloadKind::Permutation
            | PayloadKind::Broadcast
            | PayloadKind::Slice
            | PayloadKind::Pad
            | PayloadKind::Reduce => {
                self.mark("[")?;
                while self.token != Token::Mark("]") {
                    let mut numbers = vec![self.number()?];
                    while self.token == Token::Mark(":") {
                        self.advance()?;
                        numbers.push(self.number()?);
                    }
                    after.list.push(numbers);
                    if !self.comma()? {
                        break;
                    }
                }
                self.mark("]")?;
            }
            PayloadKind::Axis => {
                self.word("axis")?;
                after.axis = self.number()?;
            }
            PayloadKind::Contract => {
                let start = self.start;
                self.mark("(")?;
                let left = self.letters()?;
                self.mark(",")?;
                let right = self.letters()?;
                self.mark("->")?;
                let result = self.letters()?;
                self.mark(")")?;
                let indices = Indices::new(left.as_bytes(), right.as_bytes(), result.as_bytes());
                after.indices = Some(self.at(start, indices)?);
            }
            _ => {}
        }
        Ok(after)
    }

    fn letters(&mut self) -> Result<&'t str> {
        match self.token {
            Token::Word(word) => {
                self.advance()?;
                Ok(word)
            }
            _ => Ok(""),
        }
    }

    /// A number or numbers in brackets.
    fn numbers(&mut self, before: &mut Before<'t>) -> Result {
        before.in_brackets = self.token == Token::Mark("[");
        if before.in_brackets {
            self.advance()?;
        }
        loop {
            match &self.token {
                Token::Number(_) | Token::Hex(_) | Token::Word("inf" | "-inf" | "nan") => {
                    before.numbers.push(self.token.clone());
                }
                _ => return self.expected("a number"),
            }
            self.advance()?;
            if !before.in_brackets || !self.comma()? {
                break;
            }
        }
        if before.in_brackets {
            self.mark("]")?;
        }
        Ok(())
    }

    fn ty(&mut self) -> Result<TensorType> {
        let start = self.start;
        let element = match self.token {
            Token::Word(word) => element_from_name(word),
            _ => None,
        };
        let Some(element) = element else {
            return self.expected("a type, such as `f32[2, 3]`");
        };
        self.advance()?;
        self.mark("[")?;
        let mut sizes: Vec<usize> = Vec::new();
        while self.token != Token::Mark("]") {
            sizes.push(self.number()?);
            if !self.comma()? {
                break;
            }
        }
        self.mark("]")?;
        let ty = TensorType::new(element, Shape::from(&sizes[..]));
        self.at(start, ty.check())?;
        Ok(ty)
    }

    // ---- tensors

    fn tensors(&mut self) -> Result<Vec<Tensor>> {
        let mut tensors = Vec::new();
        loop {
            let Token::Value(name) = &self.token else {
                return self.expected("a tensor");
            };
            match self.scope.get(&**name) {
                Some(&tensor) if self.graph.is_visible(tensor) => tensors.push(tensor),
                _ => {
                    let message = format!("%{name} is not defined here");
                    return self.error_at(self.start, message);
                }
            }
            self.advance()?;
            if !self.comma()? {
                return Ok(tensors);
            }
        }
    }

    fn new_name(&mut self) -> Result<(String, usize)> {
        let Token::Value(name) = &self.token else {
            return self.expected("the name of a tensor");
        };
        let named = (name.clone().into_owned(), self.start);
        self.advance()?;
        Ok(named)
    }

    fn define(&mut self, (name, start): (String, usize), tensor: Tensor) -> Result {
        // A number stands for no name.
        if !name.chars().all(|digit| digit.is_ascii_digit()) {
            self.graph.tensors[tensor].name = Some(name.clone().into());
        }
        match self.scope.insert(name.clone(), tensor) {
            None => Ok(()),
            Some(_) => self.error_at(start, format!("%{name} is defined twice")),
        }
    }

    // ---- tokens

    fn advance(&mut self) -> Result {
        (self.token, self.start) = self.lexer.next()?;
        Ok(())
    }

    fn mark(&mut self, mark: &'static str) -> Result {
        if self.token != Token::Mark(mark) {
            return self.expected(&format!("`{mark}`"));
        }
        self.advance()
    }

    fn word(&mut self, word: &'static str) -> Result {
        if self.token != Token::Word(word) {
            return self.expected(&format!("`{word}`"));
        }
        self.advance()
    }

    /// Whether a comma was there, which is then consumed.
    fn comma(&mut self) -> Result<bool> {
        let is_comma = self.token == Token::Mark(",");
        if is_comma {
            self.advance()?;
        }
        Ok(is_comma)
    }

    fn number<N: std::str::FromStr>(&mut self) -> Result<N> {
        let number = match self.token {
            Token::Number(digits) => digits.parse().ok(),
            _ => None,
        };
        match number {
            Some(number) => {
                self.advance()?;
                Ok(number)
            }
            None => self.expected("a whole number"),
        }
    }

    fn symbol(&mut self) -> Result<String> {
        let Token::Symbol(name) = &self.token else {
            return self.expected("the name of a parameter, such as `@w`");
        };
        let name = name.clone().into_owned();
        self.advance()?;
        Ok(name)
    }

    fn expected<T>(&self, what: &str) -> Result<T> {
        let found = self.token.describe();
        self.error_at(self.start, format!("expected {what}, but found {found}"))
    }

    fn error_at<T>(&self, position: usize, message: String) -> Result<T> {
        Err(LexError { position, message })
    }

    /// An error without a place gets this one.
    fn at<T>(&self, position: usize, result: Result<T, String>) -> Result<T> {
        result.map_err(|message| LexError { position, message })
    }
}
