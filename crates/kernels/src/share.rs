//! Shares a product out among threads: each computes some columns of C, or some rows.
//!
//! ```text
//! units = columns / width of a tile, or rows / height of one         where the tiles of one thread end, those of the next begin
//! each body of the team: as many units as the others                 packs its part of one operand, and all of the other
//! ```
//! *Guarantees* that the result has the same bits for any number of threads: each element is computed in the tile in which one thread would compute it, and sums are not cut.
//!
//! The longer side of C is cut, so that the operand that every thread packs is the smaller one. Threads are asked for only if each gets enough work ([`Shape::grain`]); smaller products cost a few
//! multiplications and a comparison more.

use crate::contract::ContractOperands;
use crate::emit::{Code, define, pointer, size};
use crate::shape::Shape;
use ferrozyme_ir::{Alignment, FunctionId, IntPredicate, Module, Opcode, Type, Value};

/// The functions that a shared product calls.
#[derive(Clone, Copy)]
pub(crate) struct Sharing {
    threads: FunctionId,
    team: FunctionId,
    /// Computes one part.
    part: FunctionId,
    /// Computes a product on one thread.
    whole: FunctionId,
}

/// What the bodies of a team are given, a word each: the operands of the product, and how it is cut.
struct Context {
    operands: Vec<Value>,
    /// Whether columns are cut.
    by_columns: Value,
    /// How many rows or columns a part has; the last may have fewer.
    extent: Value,
}

/// Adds what shares out products that `whole` computes.
pub(crate) fn define_sharing(module: &mut Module, shape: &Shape, whole: FunctionId) -> Sharing {
    let head = shape.head("part");
    let params = [
        ("context", pointer(shape.element)),
        ("number", size(shape.element)),
    ];
    let part = define(module, head, &params, |code, arguments| {
        let &[context, number] = arguments else {
            unreachable!("a body has two arguments");
        };
        compute_part(code, shape, whole, context, number);
    });
    Sharing {
        threads: module.threads(),
        team: module.team(),
        part,
        whole,
    }
}

impl Sharing {
    /// Computes a product, on several threads if that is worth it and there are some.
    pub(crate) fn run(&self, code: &mut Code<'_>, shape: &Shape, given: &ContractOperands) {
        let area = code.mul(given.m, given.n);
        let products = code.mul(area, given.k);
        // How many threads have enough to do. Where this number of multiplications is out of range, any answer is right.
        let worth = code.div_by(products, shape.grain);
        let several = code.compare(IntPredicate::Sgt, worth, 1);
        let one = code.i64(1);
        let [threads] = code.choose(
            several,
            [Type::I64],
            |code| {
                let asked = code.call(self.threads, &[], &[Type::I64]);
                let threads = code.function.result(asked);
                [code.min(threads, worth)]
            },
            |_| [one],
        );
        let alone = code.compare(IntPredicate::Sle, threads, 1);
        code.either(
            alone,
            |code| code.run(self.whole, &given.arguments()),
            |code| self.share(code, shape, given, threads),
        );
    }

    /// Has a team compute a product.
    fn share(&self, code: &mut Code<'_>, shape: &Shape, given: &ContractOperands, threads: Value) {
        let by_columns = code.icmp(IntPredicate::Sge, given.n, given.m);
        let (wide, tall) = (
            code.i64(shape.width() as i64),
            code.i64(i64::from(shape.rows)),
        );
        let unit = code.select(by_columns, wide, tall);
        let range = code.select(by_columns, given.n, given.m);
        let units = code.div_up(range, unit);
        let units_of_part = code.div_up(units, threads);
        let extent = code.mul(units_of_part, unit);
        let parts = code.div_up(range, extent);
        let context = Context {
            operands: given.arguments(),
            by_columns,
            extent,
        };
        let context = context.store(code);
        let part = code.function_address(self.part);
        code.run(self.team, &[parts, part, context]);
    }
}

/// The body of a team: computes the part of this number.
fn compute_part(
    code: &mut Code<'_>,
    shape: &Shape,
    whole: FunctionId,
    context: Value,
    number: Value,
) {
    let (given, by_columns, extent) = load_context(code, shape, context);
    let first = code.mul(number, extent);
    let extent_of = |code: &mut Code<'_>, range: Value| {
        let left = code.sub(range, first);
        code.min(left, extent)
    };
    code.either(
        by_columns,
        |code| {
            let part = ContractOperands {
                c: code.element(given.c, first, given.c_n),
                b: code.element(given.b, first, given.b_n),
                n: extent_of(code, given.n),
                ..given
            };
            code.run(whole, &part.arguments());
        },
        |code| {
            let part = ContractOperands {
                c: code.element(given.c, first, given.c_m),
                a: code.element(given.a, first, given.a_m),
                m: extent_of(code, given.m),
                ..given
            };
            code.run(whole, &part.arguments());
        },
    );
}

/// Bytes of a word of the context.
const WORD: i64 = 8;

impl Context {
    /// Writes it to the stack.
    fn store(&self, code: &mut Code<'_>) -> Value {
        let words = self.operands.len() as i64 + 2;
        let bytes = code.i64(words * WORD);
        let context = code.stack(bytes, word_alignment());
        let own = [self.by_columns, self.extent];
        for (position, &value) in self.operands.iter().chain(&own).enumerate() {
            let at = code.offset_bytes(context, position as i64 * WORD);
            let value = match code.ty(value) {
                Type::I1 => code.cast(Opcode::Zext, value, Type::I64),
                _ => value,
            };
            code.store(value, at, word_alignment());
        }
        context
    }
}

/// Reads what [`Context::store`] wrote.
fn load_context(
    code: &mut Code<'_>,
    shape: &Shape,
    context: Value,
) -> (ContractOperands, Value, Value) {
    let mut position = 0;
    let mut word = |code: &mut Code<'_>, ty: Type| {
        let at = code.offset_bytes(context, position * WORD);
        position += 1;
        match ty {
            Type::I1 => {
                let word = code.load(Type::I64, at, word_alignment());
                code.compare(IntPredicate::Ne, word, 0)
            }
            _ => code.load(ty, at, word_alignment()),
        }
    };
    let operands = ContractOperands::each(shape.element, |ty| word(code, ty));
    let by_columns = word(code, Type::I1);
    let extent = word(code, Type::I64);
    (operands, by_columns, extent)
}

fn word_alignment() -> Alignment {
    Alignment::natural(Type::I64)
}
