//! The sizes that kernels are built with: vector width, register tile and cache blocks of each processor level.
//!
//! A tile of `rows × vectors` accumulators, the `vectors` operands of one step and one broadcast scalar fit the vector registers: 32 with AVX-512, 16 before. More vectors than
//! rows mean fewer loads per multiplication, because a row costs a broadcast for each step and a vector costs one load.

use crate::emit::Head;
use ferrozyme_ir::{ProcessorLevel, Scalar};

/// The levels that kernels are built for, the lowest first: none is the baseline of x86-64.
pub const LEVELS: [Option<ProcessorLevel>; 3] =
    [None, Some(ProcessorLevel::V3), Some(ProcessorLevel::V4)];

/// The sizes of the kernels for one type of element at one level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) element: Scalar,
    pub(crate) level: Option<ProcessorLevel>,
    /// Elements of a vector register.
    pub(crate) lanes: u16,
    /// Rows of the largest tile, a power of two.
    pub(crate) rows: u16,
    /// Vectors in a row of the largest tile.
    pub(crate) vectors: u16,
    /// How many terms of the sums are added up before the results are stored. A panel of the second operand, `depth` × a row of the tile, comes from the second-level cache, which keeps up
    /// with the tile; each visit of a tile of the result costs more, as measured (`bench/contractions`), so that fewer terms are slower.
    pub(crate) depth: u64,
    /// How many rows of the first operand are packed together: `row_block × depth` should stay in the second-level cache.
    pub(crate) row_block: u64,
    /// How many columns of the second operand stay packed while several blocks of the first pass by.
    pub(crate) column_block: u64,
    /// How many multiplications are worth a thread: those of [`CYCLES`].
    pub(crate) grain: u64,
}

/// For how many cycles a thread has work, at least, if it computes as fast as the processor can: about twenty microseconds, a few times what it takes to wake it.
const CYCLES: u64 = 50_000;

impl Shape {
    pub(crate) fn new(element: Scalar, level: Option<ProcessorLevel>) -> Shape {
        let bytes = element.bytes();
        let (vector, rows, vectors): (u64, u16, u16) = match level {
            None | Some(ProcessorLevel::V2) => (16, 4, 2),
            Some(ProcessorLevel::V3) => (32, 4, 3),
            Some(ProcessorLevel::V4) => (64, 8, 3),
        };
        let (depth, row_bytes): (u64, u64) = match level {
            None | Some(ProcessorLevel::V2) => (256, 512 << 10),
            Some(ProcessorLevel::V3) => (384, 512 << 10),
            Some(ProcessorLevel::V4) => (if bytes == 4 { 768 } else { 512 }, 1 << 20),
        };
        let lanes = vector / bytes;
        let width = lanes * u64::from(vectors);
        let per_cycle = match level {
            None | Some(ProcessorLevel::V2) => lanes,
            Some(ProcessorLevel::V3 | ProcessorLevel::V4) => 2 * lanes,
        };
        let in_units =
            |bytes_of_block: u64, unit: u64| bytes_of_block / bytes / depth / unit * unit;
        Shape {
            element,
            level,
            lanes: lanes as u16,
            rows,
            vectors,
            depth,
            row_block: in_units(row_bytes, u64::from(rows)),
            column_block: in_units(2 << 20, width),
            grain: per_cycle * CYCLES,
        }
    }

    /// Bytes of one element.
    pub(crate) fn bytes(&self) -> u64 {
        self.element.bytes()
    }

    /// Columns of the largest tile.
    pub(crate) fn width(&self) -> u64 {
        u64::from(self.lanes) * u64::from(self.vectors)
    }

    /// Whether a product and a sum are one instruction.
    pub(crate) fn fused(&self) -> bool {
        self.level >= Some(ProcessorLevel::V3)
    }

    /// The beginning of one of the functions that this level needs; the name of the function for all products has no part.
    pub(crate) fn head(&self, part: &str) -> Head {
        let level = self.level.map_or("v1", ProcessorLevel::name);
        let separator = if part.is_empty() { "" } else { "_" };
        Head {
            name: format!(
                "__ferrozyme_contract_{}_{level}{separator}{part}",
                self.element
            ),
            element: self.element,
            level: self.level,
        }
    }
}
