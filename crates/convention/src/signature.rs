//! How LLVM's types appear in the Loop IR, which has no aggregates.
//!
//! Import and export agree on this file. A structure or array that a function takes or returns becomes its *leaves*, the scalars and vectors in it, in order; `{ ptr, { i64, double } }` is
//! `ptr, i64, f64`. A function that returns nothing has no results, one that returns an aggregate as many as it has leaves.

use ferrozyme_ir as ir;

use ferrozyme_llvm::{Builder, Context, Type, TypeKind, Value};

/// The Loop IR's type for a scalar or vector of LLVM's; none if it has none (`x86_fp80`, integers beyond 128 bits, other address spaces, aggregates).
pub fn loop_type(of: Type<'_>) -> Option<ir::Type> {
    let scalar = |of: Type<'_>| match of.kind() {
        TypeKind::Integer(width) if (1..=128).contains(&width) => {
            Some(ir::Scalar::Int(width as u8))
        }
        TypeKind::Half => Some(ir::Scalar::F16),
        TypeKind::BFloat => Some(ir::Scalar::Bf16),
        TypeKind::Float => Some(ir::Scalar::F32),
        TypeKind::Double => Some(ir::Scalar::F64),
        TypeKind::Pointer if of.address_space() == 0 => Some(ir::Scalar::Ptr),
        _ => None,
    };
    match of.kind() {
        TypeKind::Vector => Some(ir::Type::vector_of(
            scalar(of.element())?,
            u16::try_from(of.length()).ok()?,
        )),
        _ => Some(ir::Type::scalar_of(scalar(of)?)),
    }
}

/// LLVM's type for one of the Loop IR.
pub fn llvm_type(context: &Context, of: ir::Type) -> Type<'_> {
    let scalar = match of.scalar() {
        ir::Scalar::Int(width) => context.integer(u32::from(width)),
        ir::Scalar::F16 => context.half(),
        ir::Scalar::Bf16 => context.bfloat(),
        ir::Scalar::F32 => context.float(),
        ir::Scalar::F64 => context.double(),
        ir::Scalar::Ptr => context.pointer(),
    };
    if of.is_vector() {
        scalar.vector(u32::from(of.lanes()))
    } else {
        scalar
    }
}

/// The types of the parts of an aggregate.
fn parts(of: Type<'_>) -> Option<Vec<Type<'_>>> {
    match of.kind() {
        TypeKind::Struct => Some(of.fields()),
        TypeKind::Array => Some(vec![of.element(); usize::try_from(of.length()).ok()?]),
        _ => None,
    }
}

/// The leaves of a type; `void` has none. None if some part has no counterpart in the Loop IR.
pub fn leaves(of: Type<'_>) -> Option<Vec<ir::Type>> {
    if of.is_void() {
        return Some(Vec::new());
    }
    match parts(of) {
        None => Some(vec![loop_type(of)?]),
        Some(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(leaves(part)?);
            }
            Some(all)
        }
    }
}

/// Takes a value apart into its leaves.
pub fn take_apart<'c>(builder: &Builder<'c>, value: Value<'c>) -> Vec<Value<'c>> {
    let of = value.ty();
    if of.is_void() {
        return Vec::new();
    }
    match parts(of) {
        None => vec![value],
        Some(parts) => (0..parts.len() as u32)
            .flat_map(|index| take_apart(builder, builder.extract_value(value, index)))
            .collect(),
    }
}

/// Puts a value of a type together from its leaves, which are taken from the front of the list. None if they do not fit.
pub fn put_together<'c>(
    builder: &Builder<'c>,
    of: Type<'c>,
    leaves: &mut impl Iterator<Item = Value<'c>>,
) -> Option<Value<'c>> {
    match parts(of) {
        None => leaves.next().filter(|leaf| leaf.ty() == of),
        Some(parts) => {
            let mut whole = of.poison();
            for (index, part) in parts.into_iter().enumerate() {
                let part = put_together(builder, part, leaves)?;
                whole = builder.insert_value(whole, part, index as u32);
            }
            Some(whole)
        }
    }
}

/// LLVM's function type for parameters and results of the Loop IR: several results become a structure.
pub fn function_type<'c>(
    context: &'c Context,
    params: &[ir::Type],
    results: &[ir::Type],
) -> Type<'c> {
    let parameters: Vec<Type<'c>> = params
        .iter()
        .map(|param| llvm_type(context, *param))
        .collect();
    let result = match results {
        [] => context.void(),
        [one] => llvm_type(context, *one),
        several => context.structure(
            &several
                .iter()
                .map(|of| llvm_type(context, *of))
                .collect::<Vec<_>>(),
            false,
        ),
    };
    result.function(&parameters, false)
}
