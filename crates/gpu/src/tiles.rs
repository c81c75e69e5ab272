//! Contractions: a group for each tile of the result, operands in local memory.
//!
//! The indices of each class count as one: batches, rows (`left`), columns (`right`) and terms (`sum`). A group computes a tile of rows × columns. It goes through the terms in steps; in each, its items copy a tile of both operands
//! to local memory, wait, and each adds to its block of the result, in registers.
//!
//! ```text
//! for %k0: i64 = 0 to %terms step 16 with (%c00 = 0.0, …) {
//!   ; left[row][k] and right[k][column] of this step, zero beyond the ends, to local memory
//!   call @__ferrozyme_barrier()
//!   for %k: i64 = 0 to 16 step 1 with (…) { %c00 = fma %a0, %b0, %c00 … }
//!   call @__ferrozyme_barrier()
//! }
//! ```
//! Half precision of both kinds is added up in single precision.

use crate::Abilities;
use crate::items::Items;
use crate::product::{self, Product, parameter_of};
use crate::stages::Extent;
use ferrozyme_ir::{
    Alignment, Builder, Contraction, ContractionIndex, Function, IndexClass, IntPredicate, Op,
    Opcode, Type, Value, sum_type,
};

/// Terms of one step.
const STEP: usize = 16;
/// Items of a group, along rows and along columns.
const SIDE: usize = 16;
/// Items of a group.
pub(crate) const TILE_ITEMS: u32 = (SIDE * SIDE) as u32;
/// What a row of a tile in local memory has more than it needs, so that items do not wait for the same bank.
const PADDING: usize = 1;

/// Rows and columns that an item may compute. The more, the fewer loads from local memory there are for each product.
const BLOCKS: [usize; 4] = [8, 4, 2, 1];

/// The contraction that an operation is, if trip counts and strides are constant and nothing is empty.
pub(crate) fn constant_contraction(function: &Function, op: Op) -> Option<Contraction<Value>> {
    let contraction = function.ops[op].contraction()?;
    let known = contraction.indices.iter().all(|index| {
        let strides = index.strides.iter().flatten();
        let mut strides = strides.map(|&stride| function.int_of(stride));
        function.int_of(index.count).is_some_and(|count| count > 0)
            && strides.all(|stride| stride.is_some())
    });
    known.then_some(contraction)
}

/// An index: its trip count and its strides in bytes in destination, left and right operand.
#[derive(Clone, Copy, Debug)]
struct Axis {
    count: usize,
    strides: [i64; 3],
}

/// All indices of a class, outermost first, with those that move as one made one.
fn axes(function: &Function, contraction: &Contraction, class: IndexClass) -> Vec<Axis> {
    let number = |value: Value| function.int_of(value).unwrap_or(0) as i64;
    let of = |index: &ContractionIndex| Axis {
        count: number(index.count) as usize,
        strides: index.strides.map(|stride| stride.map_or(0, number)),
    };
    let indices = contraction.indices.iter();
    let mut axes: Vec<Axis> = Vec::new();
    for axis in indices.filter(|index| index.class == class).map(of) {
        if axis.count == 1 {
            continue;
        }
        if let Some(outer) = axes.last_mut() {
            let follows = |(&outer, &inner): (&i64, &i64)| outer == inner * axis.count as i64;
            if outer.strides.iter().zip(&axis.strides).all(follows) {
                outer.count *= axis.count;
                outer.strides = axis.strides;
                continue;
            }
        }
        axes.push(axis);
    }
    axes
}

fn count(axes: &[Axis]) -> usize {
    axes.iter().map(|axis| axis.count).product()
}

/// How many bytes a point of axes lies behind the first one of an array.
fn bytes(b: &mut Builder<'_>, axes: &[Axis], array: usize, point: Value) -> Value {
    let mut rest = point;
    let mut sum: Option<Value> = None;
    for (position, axis) in axes.iter().enumerate().rev() {
        let coordinate = match position {
            0 => rest,
            _ => {
                let count = b.i64(axis.count as i64);
                let coordinate = b.binary(Opcode::Urem, rest, count);
                rest = b.binary(Opcode::Udiv, rest, count);
                coordinate
            }
        };
        let stride = b.i64(axis.strides[array]);
        let moved = b.binary(Opcode::Mul, coordinate, stride);
        sum = Some(match sum {
            Some(sum) => b.binary(Opcode::Add, sum, moved),
            None => moved,
        });
    }
    sum.unwrap_or_else(|| b.i64(0))
}

/// What is known of a contraction while its kernel is built.
struct Tiles {
    arrays: [Value; 3],
    factor: Value,
    add: bool,
    element: Type,
    /// The type that sums are added up in.
    sum: Type,
    batch: Vec<Axis>,
    rows: Vec<Axis>,
    columns: Vec<Axis>,
    terms: Vec<Axis>,
    /// Rows and columns that an item computes.
    block: usize,
    items: Items,
}

/// Fills the body of a stage that is a contraction, with the pure operations before it.
pub(crate) fn over_tiles(
    function: &mut Function,
    ops: &[Op],
    op: Op,
    items: Items,
    abilities: &Abilities,
) -> (Extent, Option<Product>) {
    let contraction = constant_contraction(function, op);
    let contraction = contraction.expect("the stage is one because its extent is known");
    let [batch, rows, columns, terms] = [
        IndexClass::Batch,
        IndexClass::Left,
        IndexClass::Right,
        IndexClass::Sum,
    ]
    .map(|class| axes(function, &contraction, class));
    let element = function.ty(contraction.factor);
    let tiles = Tiles {
        arrays: contraction.arrays,
        factor: contraction.factor,
        add: contraction.add,
        element,
        sum: sum_type(element),
        block: block_for([&batch, &rows, &columns].map(|axes| count(axes)), abilities),
        batch,
        rows,
        columns,
        terms,
        items,
    };
    let product = tiles.product(function);
    let mut b = Builder::at_body(function);
    for &before in ops.iter().filter(|&&other| other != op) {
        b.insert(before);
    }
    let extent = tiles.build(&mut b);
    b.ret(&[]);
    (extent, product)
}

/// The largest block whose tiles the result fills at least by half, and of which there are enough for all units of the device.
fn block_for([batches, rows, columns]: [usize; 3], abilities: &Abilities) -> usize {
    let fits = |&block: &usize| {
        let side = SIDE * block;
        let groups = batches * rows.div_ceil(side) * columns.div_ceil(side);
        rows.min(columns) >= side / 2 && groups >= abilities.units as usize
    };
    let block = BLOCKS.into_iter().find(fits);
    // Few tiles: those that are filled, but no more than that.
    let filled = |&block: &usize| rows.min(columns) >= SIDE * block;
    block.unwrap_or_else(|| BLOCKS[2..].iter().copied().find(filled).unwrap_or(1))
}

impl Tiles {
    /// The product of matrices that it is, if each class has one index at most, and batches have two.
    fn product(&self, function: &Function) -> Option<Product> {
        let bytes = self.element.bytes() as i64;
        let one = |axes: &[Axis]| match *axes {
            [] => Some(product::Extent::NONE),
            [Axis { count, strides }] if strides.iter().all(|stride| stride % bytes == 0) => {
                let strides = strides.map(|stride| stride / bytes);
                Some(product::Extent { count, strides })
            }
            _ => None,
        };
        // The fewer are outside.
        let mut batches = self.batch.clone();
        batches.sort_by_key(|axis| axis.count);
        let inner = batches.len().saturating_sub(1);
        let (outer, batch) = batches.split_at(inner);
        let [to, left, right] = self.arrays.map(|array| parameter_of(function, array));
        Some(Product {
            arrays: [to?, left?, right?],
            element: self.element.scalar(),
            factor: function.float_of(self.factor)?,
            add: self.add,
            outer: one(outer)?,
            batch: one(batch)?,
            row: one(&self.rows)?,
            column: one(&self.columns)?,
            term: one(&self.terms)?,
        })
    }

    /// Rows or columns of a tile.
    fn side(&self) -> usize {
        SIDE * self.block
    }

    fn pitch(&self) -> usize {
        self.side() + PADDING
    }

    fn build(&self, b: &mut Builder<'_>) -> Extent {
        let (m, n, k) = (count(&self.rows), count(&self.columns), count(&self.terms));
        let (down, across) = (m.div_ceil(self.side()), n.div_ceil(self.side()));
        let half = STEP * self.pitch() * self.sum.bytes() as usize;
        let memory = self.items.local(b, 2 * half);
        let left = memory;
        let right = b.offset_bytes(memory, half as i64);
        let (group, item) = (self.items.group(b), self.items.item(b));
        let [batch, tile] = split(b, group, down * across);
        let [tile_row, tile_column] = split(b, tile, across);
        let [item_row, item_column] = split(b, item, SIDE);
        let side = b.i64(self.side() as i64);
        let first_row = b.binary(Opcode::Mul, tile_row, side);
        let first_column = b.binary(Opcode::Mul, tile_column, side);
        let arrays = [0, 1, 2].map(|array| {
            let behind = bytes(b, &self.batch, array, batch);
            b.offset(self.arrays[array], behind, 1)
        });
        let (zero, end, step) = (b.i64(0), b.i64(k as i64), b.i64(STEP as i64));
        let start = b.zero(self.sum);
        let initial = vec![start; self.block * self.block];
        let (steps, body) = b.for_loop(zero, end, step, &initial);
        b.inside(body, |b| {
            let arguments = b.function.regions[body].args.to_vec();
            let first_term = arguments[0];
            self.copy_tile(b, 1, arrays[1], left, item, [first_row, first_term]);
            self.copy_tile(b, 2, arrays[2], right, item, [first_column, first_term]);
            self.items.barrier(b);
            let sums = self.multiply(b, [left, right], [item_row, item_column], &arguments[1..]);
            self.items.barrier(b);
            b.yields(&sums);
        });
        let sums = b.function.ops[steps].results.to_vec();
        for (position, sum) in sums.into_iter().enumerate() {
            let [row, column] = [
                (first_row, item_row, position / self.block, m),
                (first_column, item_column, position % self.block, n),
            ]
            .map(|(first, item, position, _)| {
                let position = b.i64((position * SIDE) as i64);
                let inside = b.binary(Opcode::Add, item, position);
                b.binary(Opcode::Add, first, inside)
            });
            self.store(b, arrays[0], [row, column], [m, n], sum);
        }
        Extent {
            groups: (count(&self.batch) * down * across) as u32,
            items: TILE_ITEMS,
            local: 2 * half,
            alone: false,
        }
    }

    /// Copies a tile of an operand to local memory, as `[term][row]`, or `[term][column]`. Beyond the ends it is zero.
    fn copy_tile(
        &self,
        b: &mut Builder<'_>,
        array: usize,
        from: Value,
        to: Value,
        item: Value,
        [first, first_term]: [Value; 2],
    ) {
        let lines = if array == 1 {
            &self.rows
        } else {
            &self.columns
        };
        let (count_lines, count_terms) = (count(lines), count(&self.terms));
        let stride = |axes: &[Axis]| {
            axes.last()
                .map_or(i64::MAX, |axis| axis.strides[array].abs())
        };
        // Neighbouring items read neighbouring elements.
        let terms_first = stride(&self.terms) < stride(lines);
        for part in 0..STEP * self.side() / (SIDE * SIDE) {
            let start = b.i64((part * SIDE * SIDE) as i64);
            let number = b.binary(Opcode::Add, item, start);
            let (line, term) = if terms_first {
                let [line, term] = split(b, number, STEP);
                (line, term)
            } else {
                let [term, line] = split(b, number, self.side());
                (line, term)
            };
            let (whole_line, whole_term) = (
                b.binary(Opcode::Add, first, line),
                b.binary(Opcode::Add, first_term, term),
            );
            let (line_there, safe_line) = limited(b, whole_line, count_lines);
            let (term_there, safe_term) = limited(b, whole_term, count_terms);
            let behind_line = bytes(b, lines, array, safe_line);
            let behind_term = bytes(b, &self.terms, array, safe_term);
            let behind = b.binary(Opcode::Add, behind_line, behind_term);
            let address = b.offset(from, behind, 1);
            let value = b.load(self.element, address, Alignment::natural(self.element));
            let value = self.widened(b, value);
            let zero = b.zero(self.sum);
            let there = b.binary(Opcode::And, line_there, term_there);
            let value = b.select(there, value, zero);
            let pitch = b.i64(self.pitch() as i64);
            let row = b.binary(Opcode::Mul, term, pitch);
            let place = b.binary(Opcode::Add, row, line);
            let place = b.offset(to, place, self.sum.bytes() as i64);
            b.store(value, place, Alignment::natural(self.sum));
        }
    }

    /// Adds the products of one step to the block of an item.
    fn multiply(
        &self,
        b: &mut Builder<'_>,
        tiles: [Value; 2],
        places: [Value; 2],
        sums: &[Value],
    ) -> Vec<Value> {
        let (zero, end, one) = (b.i64(0), b.i64(STEP as i64), b.i64(1));
        let (terms, body) = b.for_loop(zero, end, one, sums);
        b.inside(body, |b| {
            let arguments = b.function.regions[body].args.to_vec();
            let pitch = b.i64(self.pitch() as i64);
            let row = b.binary(Opcode::Mul, arguments[0], pitch);
            let size = self.sum.bytes() as i64;
            let mut lines = [Vec::new(), Vec::new()];
            for side in 0..2 {
                let first = b.binary(Opcode::Add, row, places[side]);
                let first = b.offset(tiles[side], first, size);
                for position in 0..self.block {
                    let at = b.offset_bytes(first, (position * SIDE) as i64 * size);
                    lines[side].push(b.load(self.sum, at, Alignment::natural(self.sum)));
                }
            }
            let mut next = Vec::new();
            for (position, &sum) in arguments[1..].iter().enumerate() {
                let left = lines[0][position / self.block];
                let right = lines[1][position % self.block];
                next.push(b.fma(left, right, sum));
            }
            b.yields(&next);
        });
        b.function.ops[terms].results.to_vec()
    }

    /// Stores an element of the result, if it is one.
    fn store(
        &self,
        b: &mut Builder<'_>,
        to: Value,
        [row, column]: [Value; 2],
        [m, n]: [usize; 2],
        sum: Value,
    ) {
        let (m, n) = (b.i64(m as i64), b.i64(n as i64));
        let row_there = b.icmp(IntPredicate::Ult, row, m);
        let column_there = b.icmp(IntPredicate::Ult, column, n);
        let there = b.binary(Opcode::And, row_there, column_there);
        let (_, then, otherwise) = b.if_else(there, &[]);
        b.inside(then, |b| {
            let behind_row = bytes(b, &self.rows, 0, row);
            let behind_column = bytes(b, &self.columns, 0, column);
            let behind = b.binary(Opcode::Add, behind_row, behind_column);
            let at = b.offset(to, behind, 1);
            let align = Alignment::natural(self.element);
            let factor = self.widened(b, self.factor);
            let mut value = match b.function.float_of(factor) {
                Some(1.0) => sum,
                _ => b.binary(Opcode::Fmul, sum, factor),
            };
            if self.add {
                let old = b.load(self.element, at, align);
                let old = self.widened(b, old);
                value = b.binary(Opcode::Fadd, old, value);
            }
            if self.sum != self.element {
                value = b.cast(Opcode::Fptrunc, value, self.element);
            }
            b.store(value, at, align);
            b.yields(&[]);
        });
        b.inside(otherwise, |b| b.yields(&[]));
    }

    fn widened(&self, b: &mut Builder<'_>, value: Value) -> Value {
        match (b.ty(value) == self.sum, b.function.float_of(value)) {
            (true, _) => value,
            (_, Some(number)) => b.float(self.sum, number),
            _ => b.cast(Opcode::Fpext, value, self.sum),
        }
    }
}

/// Quotient and remainder.
fn split(b: &mut Builder<'_>, number: Value, by: usize) -> [Value; 2] {
    let by = b.i64(by as i64);
    [Opcode::Udiv, Opcode::Urem].map(|opcode| b.binary(opcode, number, by))
}

/// Whether a number is below a limit, and the number or the last one below the limit.
fn limited(b: &mut Builder<'_>, number: Value, limit: usize) -> (Value, Value) {
    let (end, last) = (b.i64(limit as i64), b.i64(limit as i64 - 1));
    let there = b.icmp(IntPredicate::Ult, number, end);
    (there, b.binary(Opcode::Umin, number, last))
}
