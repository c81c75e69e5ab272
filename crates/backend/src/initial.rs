//! What parameters hold before the first run, as bytes that are made piece by piece: no second copy of all parameters is in memory while a graph is compiled.

use crate::bytes::append_number;
use ferrozyme_graph::{Literal, TensorType};

/// How many elements a piece has at most.
const PIECE: usize = 1 << 18;

/// What a parameter holds before the first run.
#[derive(Clone, Debug)]
pub struct Initial {
    ty: TensorType,
    value: Literal,
}

impl Initial {
    /// Of a parameter of this type.
    pub fn new(ty: TensorType, value: Literal) -> Initial {
        Initial { ty, value }
    }

    /// How many bytes it has.
    pub fn size(&self) -> usize {
        self.ty.bytes()
    }

    /// The bytes of the one element that stands everywhere, if all are the same.
    pub fn splat(&self) -> Option<Vec<u8>> {
        let is_splat = match &self.value {
            Literal::Splat(_) => true,
            Literal::Dense(all) => all
                .windows(2)
                .all(|pair| pair[0].to_bits() == pair[1].to_bits()),
        };
        is_splat.then(|| self.bytes(0..1))
    }

    /// All bytes in pieces, each with the offset that it begins at.
    pub fn pieces(&self) -> impl Iterator<Item = (usize, Vec<u8>)> {
        let (count, size) = (self.ty.shape.count(), self.ty.element.bytes() as usize);
        (0..count).step_by(PIECE).map(move |first| {
            let end = count.min(first + PIECE);
            (first * size, self.bytes(first..end))
        })
    }

    fn bytes(&self, elements: std::ops::Range<usize>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(elements.len() * self.ty.element.bytes() as usize);
        for position in elements {
            append_number(self.ty.element, self.value.at(position), &mut bytes);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes_of;
    use ferrozyme_graph::Scalar;
    use ferrozyme_graph::interpret::Array;

    #[test]
    fn pieces_are_the_bytes_of_the_whole() {
        let count = 2 * PIECE + 3;
        let numbers: Vec<f64> = (0..count).map(|at| at as f64).collect();
        for value in [Literal::Dense(numbers.into()), Literal::Splat(-0.0)] {
            let ty = TensorType::new(Scalar::F32, [count]);
            let whole = bytes_of(&Array::from_literal(&ty, &value));
            let initial = Initial::new(ty, value);
            assert_eq!(initial.size(), whole.len());
            let mut joined = Vec::new();
            for (offset, piece) in initial.pieces() {
                assert_eq!(offset, joined.len());
                joined.extend(piece);
            }
            assert!(joined == whole);
        }
    }
}
