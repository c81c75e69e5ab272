//! Matrix products as Loop IR, for the processors of x86-64.
//!
//! [`contraction`] adds one function to a module, with all that it calls:
//!
//! ```text
//! func @__ferrozyme_contract_f32(%c: ptr, %c_m: i64, %c_n: i64, %a: ptr, %a_m: i64, %a_k: i64, %b: ptr, %b_k: i64, %b_n: i64,
//!                                %m: i64, %n: i64, %k: i64, %alpha: f32, %add: i1)
//! ```
//! It computes `C[i, j] = alpha·Σ_k A[i, k]·B[k, j]`, added to what C holds if `%add`. Strides are in bytes and may be anything: negative, zero for A and B, one element in
//! either direction or in none. Sizes may be zero.
//!
//! *Assumes* that C overlaps neither A nor B, that no two indices lead to the same element of C, and that elements are aligned as their type is. *Guarantees* that nothing else is read or written.
//! The terms are added in another order than a loop would. Large products are computed on as many threads as the program has ([`ferrozyme_ir::TEAM`]), with the same bits for any number of them.

mod contract;
mod emit;
mod pack;
mod packed;
mod shape;
mod share;
mod strip;
#[cfg(test)]
mod tests;
mod tile;
mod transpose;

pub use shape::LEVELS;

use contract::{ContractOperands, define_contract};
use emit::{Code, Head};
use ferrozyme_ir::{
    FunctionId, IntPredicate, MemoryEffect, Module, ProcessorLevel, Scalar, Type, Value,
};
use shape::Shape;

/// Adds the function for products of elements of a type, unless the module has it. It asks for the processor's level and calls the function for that.
///
/// # Panics
/// If the element is neither `f32` nor `f64`.
pub fn contraction(module: &mut Module, element: Scalar) -> FunctionId {
    let head = Head {
        name: format!("__ferrozyme_contract_{element}"),
        element,
        level: None,
    };
    if let Some(known) = module.function_named(&head.name) {
        return known;
    }
    let kernels: Vec<_> = LEVELS
        .into_iter()
        .map(|level| (level, contraction_for(module, element, level)))
        .collect();
    let ask = module.processor_level();
    let function = ContractOperands::define(module, head, |code, given| {
        let level = code.call(ask, &[], &[Type::I32]);
        let level = code.function.result(level);
        dispatch(code, level, &given.arguments(), &kernels);
    });
    describe(module, function);
    function
}

/// Calls the function for the highest level that the processor has. The levels are ascending; the first is that of all processors.
fn dispatch(
    code: &mut Code<'_>,
    level: Value,
    arguments: &[Value],
    kernels: &[(Option<ProcessorLevel>, FunctionId)],
) {
    match kernels {
        [] => {}
        [(_, kernel)] => code.run(*kernel, arguments),
        [lower @ .., (needed, kernel)] => {
            let number = needed.map_or(0, ProcessorLevel::number);
            let number = code.function.int(Type::I32, number.into());
            let has = code.icmp(IntPredicate::Sge, level, number);
            code.either(
                has,
                |code| code.run(*kernel, arguments),
                |code| dispatch(code, level, arguments, lower),
            );
        }
    }
}

/// Adds the function for one level, as [`contraction`] does for all. It must only be called where the processor has that level.
///
/// # Panics
/// If the element is neither `f32` nor `f64`.
pub fn contraction_for(
    module: &mut Module,
    element: Scalar,
    level: Option<ProcessorLevel>,
) -> FunctionId {
    assert!(
        matches!(element, Scalar::F32 | Scalar::F64),
        "there are no kernels for {element}"
    );
    let function = define_contract(module, &Shape::new(element, level));
    describe(module, function);
    function
}

/// Says what callers may know of a product.
fn describe(module: &mut Module, function: FunctionId) {
    let function = &mut module.functions[function];
    function.facts.memory = MemoryEffect::Args;
    function.facts.willreturn = true;
    let pointers = function.params.iter_mut().filter(|param| param.ty.is_ptr());
    for (index, param) in pointers.enumerate() {
        let is_result = index == 0;
        param.facts.nocapture = true;
        param.facts.noalias = is_result;
        param.facts.readonly = !is_result;
    }
}
