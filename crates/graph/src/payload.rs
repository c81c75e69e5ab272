//! The part of an operation that is neither operand nor region.

use crate::graph::Parameter;
use crate::types::TensorType;
use ferrozyme_ir::{Effect, FloatPredicate, Form, IndexClass, IntPredicate, Opcode};
use smallvec::SmallVec;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The part of an operation that is neither operand nor region. The table says which kind an operation has.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Payload {
    /// Nothing.
    None,
    /// `parameter`, `update`.
    Parameter(Parameter),
    /// `constant`.
    Constant(Literal, TensorType),
    /// `iota`: along which axis it counts.
    Iota(usize, TensorType),
    /// `random`: the seed.
    Random(u64, TensorType),
    /// `feed`: the name by which the host feeds it.
    Feed(Box<str>, TensorType),
    /// `receive`: the name by which the host receives it.
    Receive(Box<str>),
    /// `call` and `call_vjp`: the name of the function, and the types of the results.
    Call(Box<str>, Box<[TensorType]>),
    /// `reshape` and `cast`: the type of the result.
    Type(TensorType),
    /// `permute`: for each axis of the result, the axis of the operand.
    Permutation(Box<[usize]>),
    /// `broadcast`: the new axes of the result, ascending, and their sizes.
    Broadcast(Box<[(usize, usize)]>),
    /// `slice`: what is taken of each axis.
    Slice(Box<[Stretch]>),
    /// `pad`: the zeros along each axis.
    Pad(Box<[Padding]>),
    /// `concat`, `gather`, `scatter_add`: along which axis.
    Axis(usize),
    /// `reduce`: how, and over which axes, ascending.
    Reduce(Reduction, Box<[usize]>),
    /// `contract`.
    Contract(Indices),
    /// An elementwise operation.
    Function(Function),
}

/// The elements of a constant, as floats, which represent the elements of all types exactly.
#[derive(Clone, Debug)]
pub enum Literal {
    /// All are the same.
    Splat(f64),
    /// In row-major order.
    Dense(Arc<[f64]>),
}

impl Literal {
    /// The element at a position.
    pub fn at(&self, position: usize) -> f64 {
        match self {
            Literal::Splat(value) => *value,
            Literal::Dense(values) => values[position],
        }
    }

    fn bits(&self) -> impl Iterator<Item = u64> + '_ {
        let values = match self {
            Literal::Splat(value) => std::slice::from_ref(value),
            Literal::Dense(values) => values,
        };
        values.iter().map(|value| value.to_bits())
    }
}

/// Bit for bit, so that −0 is not 0.
impl PartialEq for Literal {
    fn eq(&self, other: &Literal) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
            && self.bits().eq(other.bits())
    }
}

impl Eq for Literal {}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for bits in self.bits() {
            bits.hash(state);
        }
    }
}

impl From<f64> for Literal {
    fn from(value: f64) -> Literal {
        Literal::Splat(value)
    }
}

impl From<Vec<f64>> for Literal {
    fn from(values: Vec<f64>) -> Literal {
        Literal::Dense(values.into())
    }
}

/// The elements `start`, `start + step`, … of an axis, below `end`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stretch {
    /// The first.
    pub start: usize,
    /// Behind the last.
    pub end: usize,
    /// The distance of neighbours, at least 1.
    pub step: usize,
}

impl Stretch {
    /// All of an axis.
    pub fn all(size: usize) -> Stretch {
        Stretch {
            start: 0,
            end: size,
            step: 1,
        }
    }

    /// How many elements are taken.
    pub fn count(self) -> usize {
        self.end.saturating_sub(self.start).div_ceil(self.step)
    }

    /// The zeros that put what is taken of an axis of this size back in its place.
    pub fn padding(self, size: usize) -> Padding {
        let covered = self.start + (self.count() - 1) * self.step + 1;
        Padding {
            low: self.start,
            high: size - covered,
            between: self.step - 1,
        }
    }
}

/// The zeros that are put around the elements of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Padding {
    /// Before the first.
    pub low: usize,
    /// After the last.
    pub high: usize,
    /// Between each two.
    pub between: usize,
}

impl Padding {
    /// The size of a padded axis.
    pub fn size(self, size: usize) -> usize {
        self.low + (size - 1) * (self.between + 1) + 1 + self.high
    }

    /// Where the elements of an axis of this size are afterwards.
    pub fn stretch(self, size: usize) -> Stretch {
        let step = self.between + 1;
        Stretch {
            start: self.low,
            end: self.low + (size - 1) * step + 1,
            step,
        }
    }
}

macro_rules! reductions {
    ($($(#[doc = $doc:literal])+ $name:ident $text:literal,)*) => {
        /// How elements are combined.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum Reduction { $($(#[doc = $doc])+ $name,)* }

        impl Reduction {
            /// All of them.
            pub const ALL: &'static [Reduction] = &[$(Reduction::$name,)*];

            /// The name in the text form.
            pub fn name(self) -> &'static str {
                match self { $(Reduction::$name => $text,)* }
            }
        }
    };
}

reductions! {
    /// Their sum, in any order.
    Sum "sum",
    /// The largest, NaN where one is NaN. The first of equal ones is it.
    Max "max",
    /// The smallest, NaN where one is NaN. The first of equal ones is it.
    Min "min",
    /// Where the largest is along the one axis, as `i32`: the first of equal ones, and a NaN before all others.
    Argmax "argmax",
}

impl Reduction {
    /// The reduction of this name.
    pub fn from_name(name: &str) -> Option<Reduction> {
        let mut all = Reduction::ALL.iter().copied();
        all.find(|reduction| reduction.name() == name)
    }
}

/// A function of the Loop IR that is applied element by element: one with a single result that is always defined.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Function {
    /// A function of the table of mathematical functions, an operation on integers, or `select`.
    Of(Opcode),
    /// A comparison of floats.
    FloatCompare(FloatPredicate),
    /// A comparison of integers.
    IntCompare(IntPredicate),
}

impl Function {
    /// The function that an operation of the Loop IR without a payload computes.
    pub fn from_opcode(opcode: Opcode) -> Option<Function> {
        use Opcode::{Add, And, Mul, Or, Select, Smax, Smin, Sub, Xor};
        let is_known = match opcode.form() {
            Form::FloatUnary | Form::FloatBinary | Form::FloatTernary | Form::FloatAndInt => true,
            Form::FloatToExponent => true,
            // All others can be undefined.
            _ => matches!(
                opcode,
                Add | Sub | Mul | And | Or | Xor | Smin | Smax | Select
            ),
        };
        (is_known && opcode.effect() == Effect::Pure).then_some(Function::Of(opcode))
    }

    /// The operation of the Loop IR.
    pub fn opcode(self) -> Opcode {
        match self {
            Function::Of(opcode) => opcode,
            Function::FloatCompare(_) => Opcode::Fcmp,
            Function::IntCompare(_) => Opcode::Icmp,
        }
    }

    /// The payload of that operation.
    pub fn payload(self) -> ferrozyme_ir::Payload {
        match self {
            Function::Of(_) => ferrozyme_ir::Payload::None,
            Function::FloatCompare(predicate) => ferrozyme_ir::Payload::FloatPredicate(predicate),
            Function::IntCompare(predicate) => ferrozyme_ir::Payload::IntPredicate(predicate),
        }
    }
}

/// As in the text form: `fadd`, `fcmp olt`.
impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.opcode())?;
        match self {
            Function::Of(_) => Ok(()),
            Function::FloatCompare(predicate) => write!(f, " {}", predicate.name()),
            Function::IntCompare(predicate) => write!(f, " {}", predicate.name()),
        }
    }
}

/// Which indices count along the axes of the operands and of the result of `contract`, as in `(ab, bc -> ac)`.
///
/// Indices are numbered in the order in which they are first named, so that equal contractions are equal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Indices {
    /// For each axis of the left operand, its index.
    pub left: SmallVec<[u8; 4]>,
    /// For each axis of the right operand, its index.
    pub right: SmallVec<[u8; 4]>,
    /// For each axis of the result, its index.
    pub result: SmallVec<[u8; 4]>,
}

impl Indices {
    /// With any names of indices, or why that is no contraction.
    pub fn new<T: Copy + PartialEq>(
        left: &[T],
        right: &[T],
        result: &[T],
    ) -> Result<Indices, String> {
        let mut names: Vec<T> = Vec::new();
        let mut number = |axes: &[T]| -> SmallVec<[u8; 4]> {
            let number = |&name: &T| {
                let known = names.iter().position(|&other| other == name);
                let position = known.unwrap_or_else(|| {
                    names.push(name);
                    names.len() - 1
                });
                u8::try_from(position).unwrap_or(u8::MAX)
            };
            axes.iter().map(number).collect()
        };
        let indices = Indices {
            left: number(left),
            right: number(right),
            result: number(result),
        };
        if names.len() > LETTERS {
            return Err(format!("a contraction has at most {LETTERS} indices"));
        }
        for axes in indices.arrays() {
            let repeated = |(at, index): (usize, &u8)| axes[..at].contains(index);
            if axes.iter().enumerate().any(repeated) {
                return Err(format!("{indices} has an index twice in one tensor"));
            }
        }
        let alone = (0..names.len() as u8).find(|&index| indices.class(index).is_none());
        match alone {
            None => Ok(indices),
            Some(index) => Err(format!(
                "index `{}` of {indices} counts in one tensor only: `reduce` or `broadcast` it instead",
                letter(index)
            )),
        }
    }

    /// From the notation of einsum: `ij,jk->ik`.
    pub fn parse(text: &str) -> Result<Indices, String> {
        let parts = text.split_once("->").and_then(|(operands, result)| {
            let (left, right) = operands.split_once(',')?;
            Some([left, right, result].map(|part| part.trim().chars().collect::<Vec<char>>()))
        });
        let Some([left, right, result]) = parts else {
            return Err(format!(
                "`{text}` is no contraction, which looks like `ij,jk->ik`"
            ));
        };
        Indices::new(&left, &right, &result)
    }

    /// The indices of the result, the left and the right operand.
    pub fn arrays(&self) -> [&[u8]; 3] {
        [&self.result, &self.left, &self.right]
    }

    /// The number of indices.
    pub fn count(&self) -> u8 {
        let all = self.arrays().into_iter().flatten();
        all.map(|index| index + 1).max().unwrap_or(0)
    }

    /// In which tensors an index counts; none if in fewer than two.
    pub fn class(&self, index: u8) -> Option<IndexClass> {
        IndexClass::of_arrays(self.arrays().map(|axes| axes.contains(&index)))
    }
}

const LETTERS: usize = 26;

fn letter(index: u8) -> char {
    char::from(b'a' + index.min(LETTERS as u8 - 1))
}

/// As `(ab, bc -> ac)`.
impl fmt::Display for Indices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = |axes: &[u8]| axes.iter().map(|&index| letter(index)).collect::<String>();
        let [result, left, right] = self.arrays().map(letters);
        write!(f, "({left}, {right} -> {result})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contractions_are_equal_whatever_their_indices_are_called() {
        let product = Indices::parse("ij,jk->ik").unwrap();
        assert_eq!(product, Indices::parse(" xz , zy -> xy ").unwrap());
        assert_eq!(product.to_string(), "(ab, bc -> ac)");
        assert_eq!(product.class(1), Some(IndexClass::Sum));
        assert_eq!(Indices::parse(",->").unwrap().to_string(), "(,  -> )");
    }

    #[test]
    fn what_is_no_contraction_says_why() {
        let error = |text: &str| Indices::parse(text).unwrap_err();
        assert!(error("ij,jk").contains("looks like"));
        assert!(error("ii,ij->j").contains("twice"));
        assert!(error("ij,jk->i").contains("index `c`"));
        assert!(error("i,j->ijk").contains("one tensor only"));
    }

    #[test]
    fn only_functions_that_are_always_defined_are_elementwise() {
        for opcode in [Opcode::Fadd, Opcode::Sinpi, Opcode::Powi, Opcode::Select] {
            assert!(Function::from_opcode(opcode).is_some(), "{opcode}");
        }
        for opcode in [Opcode::Sdiv, Opcode::Shl, Opcode::Sincos, Opcode::Load] {
            assert!(Function::from_opcode(opcode).is_none(), "{opcode}");
        }
    }

    #[test]
    fn slices_and_pads_undo_each_other() {
        let stretch = Stretch {
            start: 1,
            end: 8,
            step: 3,
        };
        assert_eq!(stretch.count(), 3);
        let padding = stretch.padding(9);
        assert_eq!(padding.size(3), 9);
        assert_eq!(padding.stretch(3), stretch);
    }
}
