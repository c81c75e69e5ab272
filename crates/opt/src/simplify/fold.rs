//! Folds operations whose operands are constants, with the interpreter's own arithmetic, and loads of constant memory.

use ferrozyme_ir::interpret::{Bits, evaluate};
use ferrozyme_ir::{
    Constant, Effect, Form, Function, GlobalId, Module, Op, OpView, Opcode, Symbol, Type, Value,
    ones,
};
use smallvec::{SmallVec, smallvec};

/// The results of an operation, if they are constants.
pub(super) fn fold(
    module: &Module,
    function: &mut Function,
    op: Op,
) -> Option<SmallVec<[Value; 4]>> {
    let data = &function.ops[op];
    match data.opcode.effect() {
        Effect::Pure | Effect::Partial => {}
        Effect::Read => return fold_load(module, function, op),
        _ => return None,
    }
    let operands: Option<SmallVec<[Bits; 4]>> = data
        .operands
        .iter()
        .map(|&operand| {
            let constant = function.constant_of(operand)?;
            Bits::from_constant(function.ty(operand), constant)
        })
        .collect();
    let Some(operands) = operands else {
        return fold_undefined(function, op);
    };
    let types: SmallVec<[Type; 4]> = data
        .operands
        .iter()
        .map(|&operand| function.ty(operand))
        .collect();
    let result_types: SmallVec<[Type; 2]> = data
        .results
        .iter()
        .map(|&result| function.ty(result))
        .collect();
    let operands: SmallVec<[&Bits; 4]> = operands.iter().collect();
    // Undefined behaviour is not folded: it stays for the interpreter to report.
    let results = evaluate(
        data.opcode,
        &data.payload,
        data.flags,
        &types,
        &operands,
        &result_types,
    )
    .ok()?;
    let constants: Option<SmallVec<[Constant; 2]>> =
        results.iter().map(Bits::to_constant).collect();
    let values = constants?
        .into_iter()
        .zip(result_types)
        .map(|(constant, ty)| function.constant(ty, constant))
        .collect();
    Some(values)
}

/// Arithmetic on an undefined operand is undefined, whatever the others are, unless the operand is frozen.
fn fold_undefined(function: &mut Function, op: Op) -> Option<SmallVec<[Value; 4]>> {
    let data = &function.ops[op];
    let arithmetic = data.opcode.effect() == Effect::Pure
        && (!matches!(data.opcode.form(), Form::Special) || data.opcode == Opcode::Offset);
    let undefined = data
        .operands
        .iter()
        .any(|&operand| function.constant_of(operand) == Some(&Constant::Undef));
    if !arithmetic || !undefined {
        return None;
    }
    let (results, frozen) = (data.results.clone(), data.opcode == Opcode::Freeze);
    let undefined = results.iter().map(|&result| {
        let ty = function.ty(result);
        match frozen {
            true => function.zero(ty),
            false => function.undef(ty),
        }
    });
    Some(undefined.collect())
}

/// A load from memory that is never written.
fn fold_load(module: &Module, function: &mut Function, op: Op) -> Option<SmallVec<[Value; 4]>> {
    let data = &function.ops[op];
    let ty = function.ty(*data.results.first()?);
    let (global, offset) = constant_address(function, data.address())?;
    let global = &module.globals[global];
    let bytes = global.bytes.as_ref().filter(|_| global.constant)?;
    let size = ty.bytes();
    let end = offset.checked_add(size)?;
    if end > global.size {
        return None;
    }
    let overlapping = global
        .relocations
        .iter()
        .find(|(at, _)| at.saturating_add(8) > offset && *at < end);
    if let Some(&(at, symbol)) = overlapping {
        if ty != Type::PTR || at != offset {
            return None;
        }
        let constant = match symbol {
            Symbol::Function(id) => Constant::Function(id),
            Symbol::Global(id) => Constant::Global(id),
        };
        return Some(smallvec![function.constant(ty, constant)]);
    }
    let scalar = ty.scalar();
    let width = scalar.bytes();
    if ty.is_vector() && u64::from(scalar.bits()) != 8 * width {
        return None;
    }
    let lanes: Box<[u128]> = (0..u64::from(ty.lanes()))
        .map(|lane| {
            let start = offset + lane * width;
            // Little endian; what the global does not list is zero.
            let raw = (0..width).rev().fold(0u128, |raw, byte| {
                let at = usize::try_from(start + byte).unwrap_or(usize::MAX);
                (raw << 8) | u128::from(bytes.get(at).copied().unwrap_or(0))
            });
            raw & ones(scalar.bits())
        })
        .collect();
    let constant = match &*lanes {
        &[only] => Constant::Bits(only),
        _ => Constant::Lanes(lanes),
    };
    Some(smallvec![function.constant(ty, constant)])
}

/// The global and the byte within it that an address is, if both are plain to see.
fn constant_address(function: &Function, address: Value) -> Option<(GlobalId, u64)> {
    let mut address = address;
    let mut bytes: i128 = 0;
    loop {
        if let Some(constant) = function.constant_of(address) {
            return match *constant {
                Constant::Global(global) => Some((global, u64::try_from(bytes).ok()?)),
                _ => None,
            };
        }
        let OpView::Offset { base, index, scale } = function.definition(address)? else {
            return None;
        };
        let index = function.int_of(index)?;
        bytes = bytes.checked_add(index.checked_mul(i128::from(scale))?)?;
        address = base;
    }
}
