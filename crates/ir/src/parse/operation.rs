//! Operations without regions, and operands.

use super::body::count;
use super::{Parser, Result};
use crate::contraction::IndexClass;
use crate::facts::Alignment;
use crate::function::{Constant, Payload, Value, float_to_bits};
use crate::lexer::{Lexer, Token};
use crate::literal::{parse_bits, parse_number, quiet_nan};
use crate::module::Symbol;
use crate::opcode::{FloatPredicate, Form, IntPredicate, Opcode};
use crate::types::{Scalar, Type};
use smallvec::{SmallVec, smallvec};

/// The parts of an operation, besides those that all operations have.
pub(super) struct Parts {
    pub(super) operands: SmallVec<[Value; 4]>,
    pub(super) payload: Payload,
    pub(super) results: SmallVec<[Type; 2]>,
}

impl Parts {
    fn pure(operands: SmallVec<[Value; 4]>, result: Type) -> Parts {
        Parts {
            operands,
            payload: Payload::None,
            results: smallvec![result],
        }
    }

    fn effect(operands: SmallVec<[Value; 4]>, payload: Payload) -> Parts {
        Parts {
            operands,
            payload,
            results: SmallVec::new(),
        }
    }
}

impl<'t> Parser<'t> {
    /// An operation, from behind its flags to before its facts.
    pub(super) fn operation(&mut self, opcode: Opcode) -> Result<Parts> {
        match opcode.form() {
            Form::IntUnary | Form::FloatUnary => {
                let ty = self.ty()?;
                Ok(Parts::pure(smallvec![self.typed_operand(ty)?], ty))
            }
            Form::IntBinary | Form::FloatBinary => {
                let ty = self.ty()?;
                Ok(Parts::pure(self.typed_operands(ty, 2)?, ty))
            }
            Form::FloatTernary => {
                let ty = self.ty()?;
                Ok(Parts::pure(self.typed_operands(ty, 3)?, ty))
            }
            Form::FloatAndInt => {
                let ty = self.ty()?;
                let float = self.typed_operand(ty)?;
                self.expect(",")?;
                let int = self.operand(Some(exponent_type(ty)))?;
                Ok(Parts::pure(smallvec![float, int], ty))
            }
            Form::FloatToExponent => {
                let ty = self.ty()?;
                let operand = self.typed_operand(ty)?;
                Ok(Parts::pure(smallvec![operand], exponent_type(ty)))
            }
            form @ (Form::FloatSplit | Form::FloatPair) => {
                let ty = self.ty()?;
                let second = match form {
                    Form::FloatSplit => exponent_type(ty),
                    _ => ty,
                };
                Ok(Parts {
                    operands: smallvec![self.typed_operand(ty)?],
                    payload: Payload::None,
                    results: smallvec![ty, second],
                })
            }
            form @ (Form::IntCompare | Form::FloatCompare) => {
                let payload = self.predicate(form)?;
                let ty = self.ty()?;
                Ok(Parts {
                    operands: self.typed_operands(ty, 2)?,
                    payload,
                    results: smallvec![ty.with_scalar(Scalar::Int(1))],
                })
            }
            Form::Cast => {
                let from = self.ty()?;
                let operand = self.typed_operand(from)?;
                self.expect_word("to")?;
                Ok(Parts::pure(smallvec![operand], self.ty()?))
            }
            Form::Terminator => self.terminator(opcode),
            Form::Special | Form::Structured => self.special(opcode),
        }
    }

    fn predicate(&mut self, form: Form) -> Result<Payload> {
        let word = match self.token {
            Token::Word(word) => word,
            _ => "",
        };
        let payload = match form {
            Form::IntCompare => IntPredicate::from_name(word).map(Payload::IntPredicate),
            _ => FloatPredicate::from_name(word).map(Payload::FloatPredicate),
        };
        match payload {
            Some(payload) => {
                self.advance()?;
                Ok(payload)
            }
            None if form == Form::IntCompare => {
                self.expected("how to compare: `eq`, `ne`, `slt`, `ult`, …")
            }
            None => self.expected("how to compare: `oeq`, `une`, `olt`, `ult`, …"),
        }
    }

    fn terminator(&mut self, opcode: Opcode) -> Result<Parts> {
        if opcode == Opcode::Trap {
            if let Token::Symbol(_) = self.token {
                let call = self.call()?;
                return Ok(Parts::effect(call.operands, call.payload));
            }
            let message = self.string("the message of the trap")?;
            return Ok(Parts::effect(
                SmallVec::new(),
                Payload::Message(message.into()),
            ));
        }
        let types = self.terminator_types(opcode);
        let mut operands = SmallVec::new();
        if self.is_operand() && !self.is_definition() {
            loop {
                operands.push(self.operand(types.get(operands.len()).copied())?);
                if !self.accept(",")? {
                    break;
                }
            }
        }
        Ok(Parts::effect(operands, Payload::None))
    }

    fn special(&mut self, opcode: Opcode) -> Result<Parts> {
        match opcode {
            Opcode::Select => {
                let ty = self.ty()?;
                let condition = self.condition(ty)?;
                self.expect(",")?;
                let mut operands: SmallVec<[Value; 4]> = smallvec![condition];
                operands.extend(self.typed_operands(ty, 2)?);
                Ok(Parts::pure(operands, ty))
            }
            Opcode::Splat
            | Opcode::Extract
            | Opcode::Insert
            | Opcode::Shuffle
            | Opcode::ReduceFadd => self.of_vectors(opcode),
            Opcode::Load => {
                let ty = self.ty()?;
                let address = self.operand(Some(Type::PTR))?;
                let align = self.alignment_or(Alignment::natural(ty))?;
                Ok(Parts {
                    operands: smallvec![address],
                    payload: Payload::Align(align),
                    results: smallvec![ty],
                })
            }
            Opcode::Store => {
                let ty = self.ty()?;
                let value = self.typed_operand(ty)?;
                self.expect(",")?;
                let address = self.operand(Some(Type::PTR))?;
                let align = self.alignment_or(Alignment::natural(ty))?;
                Ok(Parts::effect(
                    smallvec![value, address],
                    Payload::Align(align),
                ))
            }
            Opcode::AtomicAdd => {
                let ty = self.ty()?;
                let address = self.operand(Some(Type::PTR))?;
                self.expect(",")?;
                let value = self.typed_operand(ty)?;
                let align = self.alignment_or(Alignment::natural(ty))?;
                Ok(Parts {
                    operands: smallvec![address, value],
                    payload: Payload::Align(align),
                    results: smallvec![ty],
                })
            }
            Opcode::Offset => {
                let operands = self.operands(&[Type::PTR, Type::I64])?;
                let scale = match self.accept("*")? {
                    true => self.integer("the scale of an offset")?,
                    false => 1,
                };
                Ok(Parts {
                    operands,
                    payload: Payload::Scale(scale),
                    results: smallvec![Type::PTR],
                })
            }
            Opcode::Exclusive => {
                let operands = self.operands(&[Type::PTR, Type::I64])?;
                Ok(Parts::pure(operands, Type::PTR))
            }
            Opcode::Stack => {
                let bytes = self.operand(Some(Type::I64))?;
                let align = self.alignment_or(allocation_alignment())?;
                Ok(Parts {
                    operands: smallvec![bytes],
                    payload: Payload::Align(align),
                    results: smallvec![Type::PTR],
                })
            }
            Opcode::Alloc => {
                let bytes = self.operand(Some(Type::I64))?;
                let align = self.alignment_or(allocation_alignment())?;
                let zeroed = self.accept_word("zeroed")?;
                let family = self.family()?;
                Ok(Parts {
                    operands: smallvec![bytes],
                    payload: Payload::Alloc {
                        align,
                        zeroed,
                        family,
                    },
                    results: smallvec![Type::PTR],
                })
            }
            Opcode::Free => {
                let mut operands = smallvec![self.operand(Some(Type::PTR))?];
                if self.accept(",")? {
                    operands.push(self.operand(Some(Type::I64))?);
                }
                let align = self.alignment_or(Alignment::ONE)?;
                let family = self.family()?;
                Ok(Parts::effect(operands, Payload::Free { align, family }))
            }
            Opcode::Copy | Opcode::Move | Opcode::Fill => {
                let second = match opcode {
                    Opcode::Fill => Type::I8,
                    _ => Type::PTR,
                };
                let operands = self.operands(&[Type::PTR, second, Type::I64])?;
                let align = self.alignment_or(Alignment::ONE)?;
                Ok(Parts::effect(operands, Payload::Align(align)))
            }
            Opcode::Contract => self.contract(),
            Opcode::Call => self.call(),
            Opcode::CallIndirect => self.call_indirect(),
            other => self.expected(&format!("an operation other than `{other}`")),
        }
    }

    /// Operations that make and split vectors.
    fn of_vectors(&mut self, opcode: Opcode) -> Result<Parts> {
        let ty = self.ty()?;
        match opcode {
            Opcode::Splat => {
                let lane = self.operand(Some(ty.lane_type()))?;
                Ok(Parts::pure(smallvec![lane], ty))
            }
            Opcode::Extract => {
                let vector = self.typed_operand(ty)?;
                self.expect(",")?;
                let index = self.operand(Some(Type::I64))?;
                Ok(Parts::pure(smallvec![vector, index], ty.lane_type()))
            }
            Opcode::Insert => {
                let vector = self.typed_operand(ty)?;
                self.expect(",")?;
                let lane = self.operand(Some(ty.lane_type()))?;
                self.expect(",")?;
                let index = self.operand(Some(Type::I64))?;
                Ok(Parts::pure(smallvec![vector, lane, index], ty))
            }
            Opcode::Shuffle => {
                let operands = self.typed_operands(ty, 2)?;
                let start = self.start;
                let lanes = self.lanes()?;
                let Some(count) = u16::try_from(lanes.len()).ok().filter(|count| *count > 0) else {
                    return self.error_at(start, "a shuffle has between 1 and 65535 lanes");
                };
                Ok(Parts {
                    operands,
                    payload: Payload::Lanes(lanes.into()),
                    results: smallvec![Type::vector_of(ty.scalar(), count)],
                })
            }
            Opcode::ReduceFadd => {
                let vector = self.typed_operand(ty)?;
                Ok(Parts::pure(smallvec![vector], ty.lane_type()))
            }
            other => self.expected(&format!("an operation other than `{other}`")),
        }
    }

    fn contract(&mut self) -> Result<Parts> {
        let add = self.accept_word("add")?;
        if !add && !self.accept_word("set")? {
            return self.expected("`add` or `set`");
        }
        let ty = self.ty()?;
        let mut operands = self.operands(&[Type::PTR; 3])?;
        self.expect(",")?;
        operands.push(self.typed_operand(ty)?);
        let mut indices = Vec::new();
        if self.accept_word("over")? {
            loop {
                indices.push(self.contraction_index(&mut operands)?);
                if !self.accept(",")? {
                    break;
                }
            }
        }
        let align = self.alignment_or(Alignment::natural(ty))?;
        let indices = indices.into();
        Ok(Parts::effect(
            operands,
            Payload::Contract {
                align,
                add,
                indices,
            },
        ))
    }

    /// One index of a contraction, as in `left %m (%c_m, %a_m)`.
    fn contraction_index(&mut self, operands: &mut SmallVec<[Value; 4]>) -> Result<IndexClass> {
        for class in IndexClass::ALL {
            if !self.accept_word(class.name())? {
                continue;
            }
            operands.push(self.operand(Some(Type::I64))?);
            for stride in 0..class.strides() {
                self.expect(if stride == 0 { "(" } else { "," })?;
                operands.push(self.operand(Some(Type::I64))?);
            }
            self.expect(")")?;
            return Ok(class);
        }
        self.expected("the class of an index: `batch`, `left`, `right` or `sum`")
    }

    fn call(&mut self) -> Result<Parts> {
        let name = self.symbol("the function to call")?;
        let callee = self.resolve_function(&name)?;
        let index = callee.as_u32() as usize;
        let mut operands: SmallVec<[Value; 4]> = SmallVec::new();
        self.expect("(")?;
        while !self.accept(")")? {
            let params = &self.signatures[index].params;
            match params.get(operands.len()).copied() {
                Some(ty) => operands.push(self.operand(Some(ty))?),
                None => {
                    let takes = count(params.len(), "argument");
                    return self.error_at(self.start, format!("@{} takes {takes}", name.0));
                }
            }
            if !self.accept(",")? {
                self.expect(")")?;
                break;
            }
        }
        let signature = &self.signatures[index];
        if operands.len() < signature.params.len() {
            let message = format!(
                "@{} takes {}, but {} given",
                name.0,
                count(signature.params.len(), "argument"),
                match operands.len() {
                    0 => "none is".to_owned(),
                    1 => "1 is".to_owned(),
                    several => format!("{several} are"),
                }
            );
            return self.error_at(name.1, message);
        }
        Ok(Parts {
            operands,
            payload: Payload::Callee(callee),
            results: signature.results.iter().copied().collect(),
        })
    }

    fn call_indirect(&mut self) -> Result<Parts> {
        let mut operands: SmallVec<[Value; 4]> = smallvec![self.operand(Some(Type::PTR))?];
        self.expect("(")?;
        while !self.accept(")")? {
            let ty = self.ty()?;
            operands.push(self.typed_operand(ty)?);
            if !self.accept(",")? {
                self.expect(")")?;
                break;
            }
        }
        let results = self.result_types()?;
        Ok(Parts {
            operands,
            results: results.iter().copied().collect(),
            payload: Payload::Results(results.into()),
        })
    }

    /// `[0, 5]`.
    fn lanes(&mut self) -> Result<Vec<u16>> {
        let mut lanes = Vec::new();
        self.expect("[")?;
        while !self.accept("]")? {
            lanes.push(self.integer("the number of a lane")?);
            if !self.accept(",")? {
                self.expect("]")?;
                break;
            }
        }
        Ok(lanes)
    }

    fn alignment_or(&mut self, default: Alignment) -> Result<Alignment> {
        match self.token {
            Token::Word("align") => self.alignment(),
            _ => Ok(default),
        }
    }

    fn family(&mut self) -> Result<Box<str>> {
        Ok(match self.accept_word("family")? {
            true => self.string("the name of an allocator")?.into(),
            false => "".into(),
        })
    }

    // ---- operands

    /// The condition of a `select` of this type: one bit, or one for each lane.
    fn condition(&mut self, ty: Type) -> Result<Value> {
        let lanes = matches!(self.token, Token::Mark("<") | Token::Word("splat"));
        let condition = if lanes {
            ty.with_scalar(Scalar::Int(1))
        } else {
            Type::I1
        };
        self.operand(Some(condition))
    }

    /// As many operands as there are types; constants among them have those types.
    fn operands(&mut self, types: &[Type]) -> Result<SmallVec<[Value; 4]>> {
        let mut operands = SmallVec::new();
        for (index, &ty) in types.iter().enumerate() {
            if index > 0 {
                self.expect(",")?;
            }
            operands.push(self.operand(Some(ty))?);
        }
        Ok(operands)
    }

    /// Operands that have the type that is written before them.
    fn typed_operands(&mut self, ty: Type, number: usize) -> Result<SmallVec<[Value; 4]>> {
        let mut operands = SmallVec::new();
        for index in 0..number {
            if index > 0 {
                self.expect(",")?;
            }
            operands.push(self.typed_operand(ty)?);
        }
        Ok(operands)
    }

    /// An operand that has the type that is written before it.
    pub(super) fn typed_operand(&mut self, ty: Type) -> Result<Value> {
        let start = self.start;
        let operand = self.operand(Some(ty))?;
        let actual = self.function.ty(operand);
        if actual == ty {
            return Ok(operand);
        }
        let (token, _) = Lexer::new(self.text, start).next()?;
        let found = token.describe();
        self.error_at(start, format!("{found} has type {actual}, not {ty}"))
    }

    /// A value, or a constant of the given type.
    pub(super) fn operand(&mut self, ty: Option<Type>) -> Result<Value> {
        if let Token::Value(name) = &self.token {
            let value = self.lookup(name)?;
            self.advance()?;
            return Ok(value);
        }
        let Some(ty) = ty else {
            return self.expected("a value (nothing here gives a constant its type)");
        };
        let constant = if ty.is_vector() {
            self.vector_constant(ty)?
        } else {
            self.scalar_constant(ty.scalar())?
        };
        Ok(self.function.constant(ty, constant))
    }

    /// Whether the next token starts an operand.
    fn is_operand(&self) -> bool {
        match self.token {
            Token::Value(_) | Token::Symbol(_) | Token::Number(_) | Token::Hex(_) => true,
            Token::Mark(mark) => mark == "<",
            Token::Word(word) => matches!(
                word,
                "inf" | "-inf" | "nan" | "null" | "undef" | "true" | "false" | "splat"
            ),
            _ => false,
        }
    }

    /// Whether the next tokens are the results of a statement: nothing may follow a terminator, but that is the
    /// verifier's to say, and here the results must not be taken for the terminator's operands.
    fn is_definition(&self) -> bool {
        let mut lexer = self.lexer.clone();
        let mut token = self.token.clone();
        loop {
            match token {
                // A known value cannot be defined again, which is how this mostly ends at once.
                Token::Value(name) if self.lookup(&name).is_err() => {}
                _ => return false,
            }
            match lexer.next() {
                Ok((Token::Mark("="), _)) => return true,
                Ok((Token::Mark(","), _)) => {}
                _ => return false,
            }
            token = match lexer.next() {
                Ok((token, _)) => token,
                Err(_) => return false,
            };
        }
    }

    /// `<1.0, 2.0>`, `splat(1.0)` or `undef`.
    fn vector_constant(&mut self, ty: Type) -> Result<Constant> {
        let start = self.start;
        if self.accept_word("undef")? {
            return Ok(Constant::Undef);
        }
        if self.accept_word("splat")? {
            self.expect("(")?;
            let constant = self.scalar_constant(ty.scalar())?;
            self.expect(")")?;
            return Ok(constant);
        }
        if !self.accept("<")? {
            return self.expected(&format!("a value, or a constant of type {ty}"));
        }
        let mut lanes = Vec::new();
        loop {
            let lane = self.start;
            match self.scalar_constant(ty.scalar())? {
                Constant::Bits(raw) => lanes.push(raw),
                _ => return self.error_at(lane, "a lane is a number"),
            }
            if !self.accept(",")? {
                break;
            }
        }
        self.expect(">")?;
        if lanes.len() != usize::from(ty.lanes()) {
            let lanes = count(lanes.len(), "lane");
            return self.error_at(start, format!("{ty} does not have {lanes}"));
        }
        Ok(Constant::Lanes(lanes.into()))
    }

    fn scalar_constant(&mut self, scalar: Scalar) -> Result<Constant> {
        let constant = match &mut self.token {
            Token::Number(text) => match parse_number(scalar, text) {
                Ok(raw) => Constant::Bits(raw),
                Err(message) => return self.error_at(self.start, message),
            },
            Token::Hex(digits) => match parse_bits(scalar, digits) {
                Ok(raw) => Constant::Bits(raw),
                Err(message) => return self.error_at(self.start, message),
            },
            Token::Word("undef") => Constant::Undef,
            Token::Word("null") if scalar == Scalar::Ptr => Constant::Bits(0),
            Token::Word("true") if scalar == Scalar::Int(1) => Constant::Bits(1),
            Token::Word("false") if scalar == Scalar::Int(1) => Constant::Bits(0),
            Token::Word("nan") if scalar.is_float() => Constant::Bits(quiet_nan(scalar)),
            Token::Word("inf") if scalar.is_float() => {
                Constant::Bits(float_to_bits(scalar, f64::INFINITY))
            }
            Token::Word("-inf") if scalar.is_float() => {
                Constant::Bits(float_to_bits(scalar, f64::NEG_INFINITY))
            }
            Token::Symbol(name) if scalar == Scalar::Ptr => {
                let name = (std::mem::take(name), self.start);
                match self.resolve(&name)? {
                    Symbol::Function(function) => Constant::Function(function),
                    Symbol::Global(global) => Constant::Global(global),
                }
            }
            _ => return self.expected(&format!("a value, or a constant of type {scalar}")),
        };
        self.advance()?;
        Ok(constant)
    }
}

/// The default alignment of memory: that of C's `malloc`.
fn allocation_alignment() -> Alignment {
    Alignment::new(16).unwrap_or_default()
}

/// `i32` in the shape of a type.
fn exponent_type(ty: Type) -> Type {
    ty.with_scalar(Scalar::Int(32))
}
