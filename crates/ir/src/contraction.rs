//! Contractions: sums of products over arrays in memory, of which the matrix product is one.
//!
//! ```text
//! contract add f32 %c, %a, %b, %factor over left %m (%c_m, %a_m), right %n (%c_n, %b_n), sum %k (%a_k, %b_k) align 4
//! ```
//!
//! adds `factor · Σₖ a[i,k]·b[k,j]` to each `c[i,j]`, and `contract set` writes it there. Each index has a class, which says in which of the
//! three arrays it counts, a trip count, and for each of these arrays a stride in bytes. There may be several indices of a class, or none.
//!
//! The destination overlaps neither operand, and its elements are distinct. Sums are added up in any order, those of half precision of both kinds in single precision ([`sum_type`]). A trip count that is not positive is zero: then
//! `add` does nothing; `set` writes zeros if only sums are empty.

use crate::function::{OpData, Payload, Value};
use crate::types::{Scalar, Type};
use smallvec::SmallVec;
use std::fmt;

/// The type that a contraction of these elements adds up in.
pub fn sum_type(element: Type) -> Type {
    match element.scalar() {
        Scalar::F16 | Scalar::Bf16 => Type::F32,
        _ => element,
    }
}

/// In which arrays an index of a contraction counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IndexClass {
    /// In all three.
    Batch,
    /// In the destination and the left operand.
    Left,
    /// In the destination and the right operand.
    Right,
    /// In both operands: the sum runs over it.
    Sum,
}

impl IndexClass {
    /// All classes.
    pub const ALL: [IndexClass; 4] = [
        IndexClass::Batch,
        IndexClass::Left,
        IndexClass::Right,
        IndexClass::Sum,
    ];

    /// The name in the text form.
    pub fn name(self) -> &'static str {
        match self {
            IndexClass::Batch => "batch",
            IndexClass::Left => "left",
            IndexClass::Right => "right",
            IndexClass::Sum => "sum",
        }
    }

    /// The class of an index that counts in these arrays: destination, left operand, right operand. None if it counts in fewer than two.
    pub fn of_arrays(counts_in: [bool; 3]) -> Option<IndexClass> {
        IndexClass::ALL
            .into_iter()
            .find(|class| class.arrays() == counts_in)
    }

    /// Whether an index of this class counts in the destination, in the left and in the right operand.
    pub fn arrays(self) -> [bool; 3] {
        match self {
            IndexClass::Batch => [true, true, true],
            IndexClass::Left => [true, true, false],
            IndexClass::Right => [true, false, true],
            IndexClass::Sum => [false, true, true],
        }
    }

    /// How many strides an index of this class has.
    pub fn strides(self) -> usize {
        self.arrays().into_iter().filter(|&counts| counts).count()
    }
}

impl fmt::Display for IndexClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An index of a contraction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContractionIndex<V = Value> {
    /// In which arrays it counts.
    pub class: IndexClass,
    /// Its trip count.
    pub count: V,
    /// By how many bytes it moves in the destination, the left and the right operand; none where it does not count.
    pub strides: [Option<V>; 3],
}

/// A contraction with its operands by name. `V` is what stands for an operand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Contraction<V = Value> {
    /// Where the first elements of the destination, the left and the right operand are.
    pub arrays: [V; 3],
    /// What each sum is multiplied with.
    pub factor: V,
    /// Whether the sums are added to the destination; otherwise they are written there.
    pub add: bool,
    /// The indices, outermost first.
    pub indices: SmallVec<[ContractionIndex<V>; 4]>,
}

impl Contraction {
    /// The operands in the order in which `contract` takes them.
    pub fn operands(&self) -> SmallVec<[Value; 16]> {
        let mut operands: SmallVec<[Value; 16]> = SmallVec::from_slice(&self.arrays);
        operands.push(self.factor);
        for index in &self.indices {
            operands.push(index.count);
            operands.extend(index.strides.into_iter().flatten());
        }
        operands
    }

    /// The classes of the indices.
    pub fn classes(&self) -> Box<[IndexClass]> {
        self.indices.iter().map(|index| index.class).collect()
    }
}

impl OpData {
    /// The contraction that an operation is, with its operands by name.
    pub fn contraction(&self) -> Option<Contraction> {
        self.contraction_with(&self.operands)
    }

    /// As [`contraction`](Self::contraction), with what stands for the operands: `values` correspond to them one by one. None also for an operation that
    /// does not verify, which is printed nevertheless.
    pub fn contraction_with<V: Copy>(&self, values: &[V]) -> Option<Contraction<V>> {
        let Payload::Contract { add, indices, .. } = &self.payload else {
            return None;
        };
        let &[destination, left, right, factor, ref extents @ ..] = values else {
            return None;
        };
        let mut extents = extents.iter().copied();
        let indices = indices
            .iter()
            .map(|&class| {
                let count = extents.next()?;
                let mut strides = [None; 3];
                for (stride, counts) in strides.iter_mut().zip(class.arrays()) {
                    if counts {
                        *stride = Some(extents.next()?);
                    }
                }
                Some(ContractionIndex {
                    class,
                    count,
                    strides,
                })
            })
            .collect::<Option<_>>()?;
        Some(Contraction {
            arrays: [destination, left, right],
            factor,
            add: *add,
            indices,
        })
    }
}
