//! Large products: both operands are packed, block by block, into memory that stays in the caches.
//!
//! ```text
//! for each block of columns                                  as many as stay packed; all, if A is one block of rows
//!   for each block of terms                                  its panels of B stay in the first-level cache
//!     for each block of rows                                 A's block is packed and stays in the second-level cache
//!       for each strip                                       its panel of B is packed when it is first needed
//!         tiles
//! ```
//! If all rows are one block, a panel of B is needed only once, and all panels are packed to the same place.

use crate::contract::ContractOperands;
use crate::emit::Code;
use crate::pack::{PackOperands, PanelSize, define_pack};
use crate::shape::Shape;
use crate::strip::{Strip, StripOperands};
use ferrozyme_ir::{Alignment, FunctionId, IntPredicate, Module, Type, Value};

/// Bytes for packed operands of small products.
const ON_STACK: i64 = 16 << 10;

/// The functions that large products call.
struct Parts {
    pack_a: FunctionId,
    /// For panels of one vector, two vectors, and so on, with the strips that use them.
    columns: Vec<(FunctionId, Strip)>,
}

/// Adds the function for large products, given the strips of one vector, two, and so on.
pub(crate) fn define_packed(module: &mut Module, shape: &Shape, strips: &[Strip]) -> FunctionId {
    let lines = PanelSize {
        vectors: 1,
        lanes: shape.rows,
    };
    let pack_a = define_pack(module, shape, lines);
    let mut columns = Vec::new();
    for (vectors, strip) in (1..).zip(strips) {
        let size = PanelSize {
            vectors,
            lanes: shape.lanes,
        };
        let pack = define_pack(module, shape, size);
        columns.push((pack, strip.clone()));
    }
    let parts = Parts { pack_a, columns };
    let head = shape.head("packed");
    ContractOperands::define(module, head, |code, given| {
        let blocks = Blocks::new(code, shape, given);
        blocks.columns(code, shape, given, &parts);
        code.when(blocks.allocated, |code| {
            code.free(blocks.buffer);
        });
    })
}

/// How the three indices are cut, and the memory for packed operands.
struct Blocks {
    rows: Value,
    columns: Value,
    terms: Value,
    /// Whether the memory is allocated, and not on the stack.
    allocated: Value,
    buffer: Value,
    /// Where panels of B are.
    panels: Value,
    /// From one panel of B to the next; 0 if all are packed to the same place.
    panel: Value,
}

impl Blocks {
    fn new(code: &mut Code<'_>, shape: &Shape, given: &ContractOperands) -> Blocks {
        let terms = even_blocks(code, given.k, shape.depth, 1);
        let rows = even_blocks(code, given.m, shape.row_block, u64::from(shape.rows));
        let one_block = code.icmp(IntPredicate::Sge, rows, given.m);
        let columns = even_blocks(code, given.n, shape.column_block, shape.width());
        let columns = code.select(one_block, given.n, columns);
        let width = shape.width() * shape.bytes();
        let panel_size = code.mul_by(terms, width);
        let zero = code.i64(0);
        let panel = code.select(one_block, zero, panel_size);
        let wide = code.i64(shape.width() as i64);
        let count = code.div_up(columns, wide);
        let one = code.i64(1);
        let count = code.select(one_block, one, count);
        let all_panels = code.mul(panel_size, count);
        let row_bytes = code.mul_by(terms, shape.bytes());
        let tall = code.i64(i64::from(shape.rows));
        let a_panels = code.div_up(rows, tall);
        let a_rows = code.mul(a_panels, tall);
        let a_size = code.mul(a_rows, row_bytes);
        let size = code.add(all_panels, a_size);
        // A cache line, which is a vector of the widest kind, too.
        let align = Alignment::new(64).unwrap_or_default();
        // Products that are over before an allocation pays have their memory on the stack.
        let on_stack = code.i64(ON_STACK);
        let stack = code.stack(on_stack, align);
        let allocated = code.icmp(IntPredicate::Sgt, size, on_stack);
        let [buffer] = code.choose(
            allocated,
            [Type::PTR],
            |code| [code.alloc(size, align, false)],
            |_| [stack],
        );
        let panels = code.at(buffer, a_size);
        Blocks {
            allocated,
            rows,
            columns,
            terms,
            buffer,
            panels,
            panel,
        }
    }

    fn columns(&self, code: &mut Code<'_>, shape: &Shape, given: &ContractOperands, parts: &Parts) {
        for_blocks(code, given.n, self.columns, |code, first, n| {
            let given = ContractOperands {
                c: code.element(given.c, first, given.c_n),
                b: code.element(given.b, first, given.b_n),
                n,
                ..*given
            };
            self.terms(code, shape, &given, parts);
        });
    }

    fn terms(&self, code: &mut Code<'_>, shape: &Shape, given: &ContractOperands, parts: &Parts) {
        for_blocks(code, given.k, self.terms, |code, first, k| {
            let later = code.compare(IntPredicate::Ne, first, 0);
            let given = ContractOperands {
                a: code.element(given.a, first, given.a_k),
                b: code.element(given.b, first, given.b_k),
                k,
                add: code.or(later, given.add),
                ..*given
            };
            self.rows(code, shape, &given, parts);
        });
    }

    fn rows(&self, code: &mut Code<'_>, shape: &Shape, given: &ContractOperands, parts: &Parts) {
        for_blocks(code, given.m, self.rows, |code, first, m| {
            let is_first = code.compare(IntPredicate::Eq, first, 0);
            let given = ContractOperands {
                c: code.element(given.c, first, given.c_m),
                a: code.element(given.a, first, given.a_m),
                m,
                ..*given
            };
            self.pack_rows(code, shape, &given, parts);
            self.strips(code, shape, &given, parts, is_first);
        });
    }

    /// Packs a block of A.
    fn pack_rows(
        &self,
        code: &mut Code<'_>,
        shape: &Shape,
        given: &ContractOperands,
        parts: &Parts,
    ) {
        let tall = code.i64(i64::from(shape.rows));
        let panel = code.mul_by(given.k, u64::from(shape.rows) * shape.bytes());
        for_blocks(code, given.m, tall, |code, first, lines| {
            let index = code.div(first, tall);
            let operands = PackOperands {
                to: code.element(self.buffer, index, panel),
                from: code.element(given.a, first, given.a_m),
                term: given.a_k,
                line: given.a_m,
                terms: given.k,
                lines,
            };
            code.run(parts.pack_a, &operands.arguments());
        });
    }

    /// All strips of a block of rows. The first block of rows packs the panels.
    fn strips(
        &self,
        code: &mut Code<'_>,
        shape: &Shape,
        given: &ContractOperands,
        parts: &Parts,
        is_first: Value,
    ) {
        let wide = shape.width();
        let full = code.div_by(given.n, wide);
        let unit = code.i64(shape.bytes() as i64);
        let zero = code.i64(0);
        let tall = u64::from(shape.rows);
        let strip = |code: &mut Code<'_>, index: Value, columns: Value, vectors: usize| {
            let (pack, ref strip) = parts.columns[vectors - 1];
            let first = code.mul_by(index, wide);
            let panel = code.element(self.panels, index, self.panel);
            code.when(is_first, |code| {
                let operands = PackOperands {
                    to: panel,
                    from: code.element(given.b, first, given.b_n),
                    term: given.b_k,
                    line: given.b_n,
                    terms: given.k,
                    lines: columns,
                };
                code.run(pack, &operands.arguments());
            });
            let operands = StripOperands {
                c: code.element(given.c, first, given.c_n),
                c_m: given.c_m,
                c_n: given.c_n,
                a: self.buffer,
                a_tile: code.mul_by(given.k, tall * shape.bytes()),
                a_m: unit,
                a_k: code.i64((tall * shape.bytes()) as i64),
                b: panel,
                b_k: code.i64((strip.columns * shape.bytes()) as i64),
                m: given.m,
                k: given.k,
                first: zero,
                end: columns,
                alpha: given.alpha,
                add: given.add,
            };
            code.run(strip.function, &operands.arguments());
        };
        let all = code.i64(wide as i64);
        code.repeat(full, [], |code, index, []| {
            strip(code, index, all, parts.columns.len());
            []
        });
        let done = code.mul(full, all);
        let left = code.sub(given.n, done);
        let lanes = i64::from(shape.lanes);
        for vectors in 1..=parts.columns.len() {
            let more = code.compare(IntPredicate::Sgt, left, (vectors as i64 - 1) * lanes);
            let enough = code.compare(IntPredicate::Sle, left, vectors as i64 * lanes);
            let fits = code.and(more, enough);
            code.when(fits, |code| strip(code, full, left, vectors));
        }
    }
}

/// The size of blocks if a range is cut into as few of them as possible that are at most so large, all about equal, and multiples of a unit.
fn even_blocks(code: &mut Code<'_>, range: Value, largest: u64, unit: u64) -> Value {
    let (largest, unit) = (code.i64(largest as i64), code.i64(unit as i64));
    let count = code.div_up(range, largest);
    let size = code.div_up(range, count);
    let units = code.div_up(size, unit);
    code.mul(units, unit)
}

/// Goes through a range in blocks; the body gets the first index of each and its size.
fn for_blocks(
    code: &mut Code<'_>,
    range: Value,
    size: Value,
    body: impl FnOnce(&mut Code<'_>, Value, Value),
) {
    let count = code.div_up(range, size);
    code.repeat(count, [], |code, index, []| {
        let first = code.mul(index, size);
        let left = code.sub(range, first);
        let size = code.min(left, size);
        body(code, first, size);
        []
    });
}
