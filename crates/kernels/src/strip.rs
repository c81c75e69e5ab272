//! A strip of C: all rows, as many columns as a tile has.
//!
//! Full tiles first, then smaller ones for the rows that are left, so that no row is computed that C does not have. A strip may be wider than what is wanted of it; it then goes through a
//! buffer on the stack, from which the wanted columns are taken one by one. So does a strip whose columns do not lie in consecutive elements.

use crate::emit::{Code, parameters};
use crate::shape::Shape;
use crate::tile::{TileOperands, TileSize, define_tile};
use ferrozyme_ir::{Alignment, FunctionId, IntPredicate, Module, Opcode, Type, Value};

parameters! {
    /// What a strip is computed from.
    StripOperands {
        c: pointer,
        c_m: size,
        c_n: size,
        a: pointer,
        /// From the elements of A that one full tile begins with to those of the next.
        a_tile: size,
        a_m: size,
        a_k: size,
        b: pointer,
        b_k: size,
        m: size,
        k: size,
        /// The first column that is wanted, counted from that of `c`.
        first: size,
        /// The column after the last that is wanted.
        end: size,
        alpha: element,
        add: condition,
    }
}

/// The functions of one width.
#[derive(Clone, Debug)]
pub(crate) struct Strip {
    pub(crate) function: FunctionId,
    pub(crate) columns: u64,
}

/// Adds the function for strips of a width, with the tiles that it needs.
pub(crate) fn define_strip(
    module: &mut Module,
    shape: &Shape,
    vectors: u16,
    lanes: u16,
    scatter: FunctionId,
) -> Strip {
    let mut tiles = Vec::new();
    let mut rows = shape.rows;
    while rows > 0 {
        let size = TileSize {
            rows,
            vectors,
            lanes,
        };
        tiles.push((size, define_tile(module, shape, size)));
        rows /= 2;
    }
    let columns = tiles[0].0.columns();
    let head = shape.head(&format!("strip_{vectors}x{lanes}"));
    let function = StripOperands::define(module, head, |code, strip| {
        let StripOperands {
            c_m,
            c_n,
            first,
            end,
            add,
            ..
        } = *strip;
        let unit = code.compare(IntPredicate::Eq, c_n, shape.bytes() as i64);
        let from_first = code.compare(IntPredicate::Eq, first, 0);
        let to_last = code.compare(IntPredicate::Eq, end, columns as i64);
        let whole = code.and(from_first, to_last);
        let direct = code.and(unit, whole);
        let size = shape.bytes() * columns * u64::from(shape.rows);
        let size = code.i64(size as i64);
        let align = Alignment::new(u64::from(lanes) * shape.bytes()).unwrap_or_default();
        let buffer = code.stack(size, align);
        code.either(
            direct,
            |code| {
                sweep(code, strip, &tiles, |code, tile, a, c, _| {
                    let operands = tile_operands(strip, a, c);
                    code.run(tile, &operands.arguments());
                });
            },
            |code| {
                let width = code.i64((shape.bytes() * columns) as i64);
                let set = code.zero(Type::I1);
                sweep(code, strip, &tiles, |code, tile, a, c, rows| {
                    let through = TileOperands {
                        c_m: width,
                        add: set,
                        ..tile_operands(strip, a, buffer)
                    };
                    code.run(tile, &through.arguments());
                    let rows = code.i64(i64::from(rows));
                    let taken = ScatterOperands {
                        c,
                        c_m,
                        c_n,
                        buffer,
                        buffer_m: width,
                        rows,
                        first,
                        end,
                        add,
                    };
                    code.run(scatter, &taken.arguments());
                });
            },
        );
    });
    Strip { function, columns }
}

fn tile_operands(strip: &StripOperands, a: Value, c: Value) -> TileOperands {
    TileOperands {
        c,
        c_m: strip.c_m,
        a,
        a_m: strip.a_m,
        a_k: strip.a_k,
        b: strip.b,
        b_k: strip.b_k,
        k: strip.k,
        alpha: strip.alpha,
        add: strip.add,
    }
}

/// Goes through all tiles of a strip, from the top. The tiles are of descending height, each half of the one before.
fn sweep(
    code: &mut Code<'_>,
    strip: &StripOperands,
    tiles: &[(TileSize, FunctionId)],
    run: impl Fn(&mut Code<'_>, FunctionId, Value, Value, u16),
) {
    let (largest, tile) = tiles[0];
    let full = code.div_by(strip.m, u64::from(largest.rows));
    let c_tile = code.mul_by(strip.c_m, u64::from(largest.rows));
    let [mut a, mut c] = code.repeat(full, [strip.a, strip.c], |code, _, [a, c]| {
        run(code, tile, a, c, largest.rows);
        [code.at(a, strip.a_tile), code.at(c, c_tile)]
    });
    for &(size, tile) in &tiles[1..] {
        let bit = code.i64(i64::from(size.rows));
        let left = code.binary(Opcode::And, strip.m, bit);
        let needed = code.compare(IntPredicate::Ne, left, 0);
        [a, c] = code.choose(
            needed,
            [Type::PTR; 2],
            |code| {
                run(code, tile, a, c, size.rows);
                let (a_rows, c_rows) = (
                    code.mul_by(strip.a_m, u64::from(size.rows)),
                    code.mul_by(strip.c_m, u64::from(size.rows)),
                );
                [code.at(a, a_rows), code.at(c, c_rows)]
            },
            |_| [a, c],
        );
    }
}

parameters! {
    /// Columns of a tile in a buffer, and where they go.
    ScatterOperands {
        c: pointer,
        c_m: size,
        c_n: size,
        buffer: pointer,
        buffer_m: size,
        rows: size,
        first: size,
        end: size,
        add: condition,
    }
}

/// Adds the function that takes columns of a tile out of a buffer.
pub(crate) fn define_scatter(module: &mut Module, shape: &Shape) -> FunctionId {
    let element = Type::scalar_of(shape.element);
    ScatterOperands::define(module, shape.head("scatter"), |code, given| {
        let ScatterOperands {
            c_m,
            c_n,
            buffer_m,
            rows,
            first,
            ..
        } = *given;
        let unit = code.i64(shape.bytes() as i64);
        let c = code.element(given.c, first, c_n);
        let buffer = code.element(given.buffer, first, unit);
        let columns = code.sub(given.end, first);
        let copy = |code: &mut Code<'_>, add: bool, stride: Value| {
            code.repeat(rows, [], |code, row, []| {
                let to = code.element(c, row, c_m);
                let from = code.element(buffer, row, buffer_m);
                code.repeat(columns, [], |code, column, []| {
                    let from = code.element(from, column, unit);
                    let to = code.element(to, column, stride);
                    let mut value = code.read(element, from);
                    if add {
                        let before = code.read(element, to);
                        value = code.binary(Opcode::Fadd, before, value);
                    }
                    code.write(value, to);
                    []
                });
                []
            });
        };
        // Consecutive elements go in vectors.
        let adjoin = code.icmp(IntPredicate::Eq, c_n, unit);
        code.either(
            adjoin,
            |code| {
                code.either(
                    given.add,
                    |code| copy(code, true, unit),
                    |code| copy(code, false, unit),
                )
            },
            |code| {
                code.either(
                    given.add,
                    |code| copy(code, true, c_n),
                    |code| copy(code, false, c_n),
                )
            },
        );
    })
}
