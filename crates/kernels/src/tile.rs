//! The innermost kernel: a tile of C in vector registers.
//!
//! ```text
//! acc[i][v] = Σ_k splat(A[i, k]) · B[k, v]          i < rows, v < vectors
//! C[i, v] = alpha·acc[i][v]  or  C[i, v] + alpha·acc[i][v]
//! ```
//! *Assumes* that vectors of B and of C lie in consecutive elements. Rows of A may have any distance, along both of its indices: a packed panel is only a special case.

use crate::emit::{Code, lanes_of, parameters};
use crate::shape::Shape;
use ferrozyme_ir::{FunctionId, Module, Opcode, Type, Value};

/// The size of a tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TileSize {
    pub(crate) rows: u16,
    pub(crate) vectors: u16,
    /// Elements of one vector; 1 for scalars.
    pub(crate) lanes: u16,
}

impl TileSize {
    /// Columns of the tile.
    pub(crate) fn columns(self) -> u64 {
        u64::from(self.vectors) * u64::from(self.lanes)
    }
}

parameters! {
    /// What a tile is computed from.
    TileOperands {
        c: pointer,
        c_m: size,
        a: pointer,
        a_m: size,
        a_k: size,
        b: pointer,
        b_k: size,
        k: size,
        alpha: element,
        add: condition,
    }
}

/// Adds the function for a tile.
pub(crate) fn define_tile(module: &mut Module, shape: &Shape, size: TileSize) -> FunctionId {
    let head = shape.head(&format!(
        "tile_{}x{}x{}",
        size.rows, size.vectors, size.lanes
    ));
    TileOperands::define(module, head, |code, operands| {
        let sums = accumulate(code, shape, size, operands);
        store_tile(code, shape, size, operands, &sums);
    })
}

/// The sums of a tile, row after row.
fn accumulate(
    code: &mut Code<'_>,
    shape: &Shape,
    size: TileSize,
    operands: &TileOperands,
) -> Vec<Value> {
    let vector = lanes_of(shape.element, size.lanes);
    let zero = code.zero(vector);
    let rows: Vec<Value> = (0..u64::from(size.rows))
        .map(|row| code.mul_by(operands.a_m, row))
        .collect();
    let mut initial = vec![operands.a, operands.b];
    initial.resize(2 + usize::from(size.rows * size.vectors), zero);
    let results = code.repeat_with(operands.k, &initial, |code, _, carried| {
        let (a, b, sums) = (carried[0], carried[1], &carried[2..]);
        let columns: Vec<Value> = (0..i64::from(size.vectors))
            .map(|index| {
                let at = code.offset_bytes(b, index * vector.bytes() as i64);
                code.read(vector, at)
            })
            .collect();
        let mut next = vec![code.at(a, operands.a_k), code.at(b, operands.b_k)];
        for (&row, sums) in rows.iter().zip(sums.chunks(usize::from(size.vectors))) {
            let at = code.at(a, row);
            let scalar = code.read(Type::scalar_of(shape.element), at);
            let scalar = code.splat(vector, scalar);
            for (&column, &sum) in columns.iter().zip(sums) {
                next.push(multiply_add(code, shape, scalar, column, sum));
            }
        }
        next
    });
    results[2..].to_vec()
}

/// `a·b + c`, in one step where the processor can.
pub(crate) fn multiply_add(
    code: &mut Code<'_>,
    shape: &Shape,
    a: Value,
    b: Value,
    c: Value,
) -> Value {
    if shape.fused() {
        return code.fma(a, b, c);
    }
    let product = code.binary(Opcode::Fmul, a, b);
    code.binary(Opcode::Fadd, c, product)
}

fn store_tile(
    code: &mut Code<'_>,
    shape: &Shape,
    size: TileSize,
    operands: &TileOperands,
    sums: &[Value],
) {
    let vector = lanes_of(shape.element, size.lanes);
    let alpha = code.splat(vector, operands.alpha);
    let places = |code: &mut Code<'_>| -> Vec<Value> {
        let mut places = Vec::new();
        for row in 0..u64::from(size.rows) {
            let bytes = code.mul_by(operands.c_m, row);
            let start = code.at(operands.c, bytes);
            for index in 0..i64::from(size.vectors) {
                places.push(code.offset_bytes(start, index * vector.bytes() as i64));
            }
        }
        places
    };
    code.either(
        operands.add,
        |code| {
            for (at, &sum) in places(code).into_iter().zip(sums) {
                let before = code.read(vector, at);
                let after = multiply_add(code, shape, alpha, sum, before);
                code.write(after, at);
            }
        },
        |code| {
            for (at, &sum) in places(code).into_iter().zip(sums) {
                let scaled = code.binary(Opcode::Fmul, alpha, sum);
                code.write(scaled, at);
            }
        },
    );
}
