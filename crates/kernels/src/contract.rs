//! The function for one level: chooses how a product is computed by its sizes and strides.

use crate::emit::{Code, parameters};
use crate::packed::define_packed;
use crate::shape::Shape;
use crate::share::define_sharing;
use crate::strip::{define_scatter, define_strip};
use ferrozyme_ir::{FunctionId, IntPredicate, Module, Opcode, Type};

parameters! {
    /// A product: `C[i, j] = alpha·Σ_k A[i, k]·B[k, j]`, added to C or not.
    ContractOperands {
        c: pointer,
        c_m: size,
        c_n: size,
        a: pointer,
        a_m: size,
        a_k: size,
        b: pointer,
        b_k: size,
        b_n: size,
        m: size,
        n: size,
        k: size,
        alpha: element,
        add: condition,
    }
}

/// Adds the function for one level, with all that it needs.
pub(crate) fn define_contract(module: &mut Module, shape: &Shape) -> FunctionId {
    let head = shape.head("");
    if let Some(known) = module.function_named(&head.name) {
        return known;
    }
    let scatter = define_scatter(module, shape);
    let strips: Vec<_> = (1..=shape.vectors)
        .map(|vectors| define_strip(module, shape, vectors, shape.lanes, scatter))
        .collect();
    let packed = define_packed(module, shape, &strips);
    let sharing = define_sharing(module, shape, packed);
    ContractOperands::define(module, head, |code, given| {
        let rows = code.compare(IntPredicate::Sgt, given.m, 0);
        let columns = code.compare(IntPredicate::Sgt, given.n, 0);
        let some = code.and(rows, columns);
        code.when(some, |code| {
            let terms = code.compare(IntPredicate::Sgt, given.k, 0);
            code.either(
                terms,
                |code| {
                    let given = turned(code, shape, given);
                    sharing.run(code, shape, &given);
                },
                |code| clear(code, shape, given),
            );
        });
    })
}

/// The same product with the columns of C in consecutive elements if either its rows or its columns are: Cᵀ = Bᵀ·Aᵀ.
fn turned(code: &mut Code<'_>, shape: &Shape, given: &ContractOperands) -> ContractOperands {
    let unit = shape.bytes() as i64;
    let columns = code.compare(IntPredicate::Ne, given.c_n, unit);
    let rows = code.compare(IntPredicate::Eq, given.c_m, unit);
    let turn = code.and(columns, rows);
    let mut choose = |a, b| code.select(turn, b, a);
    ContractOperands {
        c_m: choose(given.c_m, given.c_n),
        c_n: choose(given.c_n, given.c_m),
        a: choose(given.a, given.b),
        a_m: choose(given.a_m, given.b_n),
        a_k: choose(given.a_k, given.b_k),
        b: choose(given.b, given.a),
        b_k: choose(given.b_k, given.a_k),
        b_n: choose(given.b_n, given.a_m),
        m: choose(given.m, given.n),
        n: choose(given.n, given.m),
        ..*given
    }
}

/// A sum without terms: zeros, unless it is added to what is there.
fn clear(code: &mut Code<'_>, shape: &Shape, given: &ContractOperands) {
    let element = Type::scalar_of(shape.element);
    let ones = code.function.int(Type::I1, 1);
    let set = code.binary(Opcode::Xor, given.add, ones);
    code.when(set, |code| {
        code.repeat(given.m, [], |code, row, []| {
            let row = code.element(given.c, row, given.c_m);
            code.repeat(given.n, [], |code, column, []| {
                let at = code.element(row, column, given.c_n);
                let zero = code.zero(element);
                code.write(zero, at);
                []
            });
            []
        });
    });
}
