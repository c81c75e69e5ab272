//! Constants: plain ones are constants of the Loop IR, expressions become operations where they are used.

use super::Importer;
use super::error::{Result, unknown};
use ferrozyme_convention::signature::{leaves, loop_type};
use ferrozyme_ir::{self as ir, Constant, Function};
use ferrozyme_llvm::{Opcode, Type, TypeKind, Value, ValueKind};
use ferrozyme_refusal::Refusal;

/// One leaf of a constant.
#[derive(Clone, Copy)]
pub(super) enum Leaf<'c> {
    /// A constant of the Loop IR.
    Plain(ir::Value),
    /// An expression: an address with an offset, or arithmetic on addresses.
    Expression(Value<'c>, ir::Type),
}

impl<'c> Importer<'c, '_> {
    /// The leaves of a constant.
    pub(super) fn constant_leaves(
        &mut self,
        function: &mut Function,
        constant: Value<'c>,
    ) -> Result<Vec<Leaf<'c>>> {
        let mut found = Vec::new();
        self.add_leaves(function, constant, &mut found)?;
        Ok(found)
    }

    fn add_leaves(
        &mut self,
        function: &mut Function,
        constant: Value<'c>,
        found: &mut Vec<Leaf<'c>>,
    ) -> Result<()> {
        let of = constant.ty();
        if constant.is_undef() || constant.is_zero() {
            let types = leaves(of).ok_or_else(|| unknown_type(of))?;
            found.extend(types.into_iter().map(|ty| {
                Leaf::Plain(if constant.is_undef() {
                    function.undef(ty)
                } else {
                    function.zero(ty)
                })
            }));
            return Ok(());
        }
        if matches!(of.kind(), TypeKind::Struct | TypeKind::Array) {
            for index in 0..of.length() as u32 {
                let element = constant.element(index);
                let element = element
                    .ok_or_else(|| unknown(format!("the constant {constant} without elements")))?;
                self.add_leaves(function, element, found)?;
            }
            return Ok(());
        }
        let ty = loop_type(of).ok_or_else(|| unknown_type(of))?;
        let leaf = match constant.kind() {
            ValueKind::Function => {
                let id = self.function(constant);
                Leaf::Plain(function.constant(ty, Constant::Function(id)))
            }
            ValueKind::GlobalVariable => {
                let id = self.global(constant);
                Leaf::Plain(function.constant(ty, Constant::Global(id)))
            }
            ValueKind::Alias => match constant.aliasee() {
                Some(aliasee) => return self.add_leaves(function, aliasee, found),
                None => return Err(unknown("an alias of nothing")),
            },
            ValueKind::ConstantExpression => match fixed_address(constant) {
                Some(address) => Leaf::Plain(function.constant(ty, Constant::Bits(address))),
                None => Leaf::Expression(constant, ty),
            },
            _ => {
                let constant = plain_constant(constant, ty)
                    .ok_or_else(|| unknown(format!("the constant {constant}")))?;
                Leaf::Plain(function.constant(ty, constant))
            }
        };
        found.push(leaf);
        Ok(())
    }
}

/// The number that an address is, if it is made of nothing else.
pub(super) fn fixed_address(constant: Value<'_>) -> Option<u128> {
    let integer = constant.is(Opcode::IntToPtr).then(|| constant.operand(0))?;
    let fits = integer
        .ty()
        .integer_width()
        .is_some_and(|width| width <= 64);
    integer.as_bits().filter(|_| fits)
}

/// A number, or a vector of numbers.
fn plain_constant(constant: Value<'_>, ty: ir::Type) -> Option<Constant> {
    if !ty.is_vector() {
        return scalar_bits(constant).map(Constant::Bits);
    }
    let mut lanes = Vec::with_capacity(usize::from(ty.lanes()));
    for index in 0..u32::from(ty.lanes()) {
        let lane = constant.element(index)?;
        // A lane that is nothing in particular may as well be zero.
        lanes.push(if lane.is_undef() {
            0
        } else {
            scalar_bits(lane)?
        });
    }
    Some(Constant::Lanes(lanes.into_boxed_slice()))
}

fn scalar_bits(constant: Value<'_>) -> Option<u128> {
    if constant.is_zero() {
        return Some(0);
    }
    constant
        .as_bits()
        .or_else(|| constant.as_float_bits().map(u128::from))
}

pub(super) fn unknown_type(of: Type<'_>) -> Refusal {
    let name = of.to_string();
    if matches!(name.as_str(), "x86_fp80" | "fp128" | "ppc_fp128") {
        return Refusal::LongDouble;
    }
    Refusal::UnknownType { ty: name }
}
