//! The contents of constants of an LLVM module as bytes and addresses.

use ferrozyme_llvm::{DataLayout, Module, Opcode, TypeKind, Value, ValueKind};
use std::collections::BTreeMap;

/// A constant in memory: its bytes, and the addresses that stand among them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Blob<S> {
    /// The bytes; those of addresses are zero.
    pub(crate) bytes: Vec<u8>,
    /// Addresses by offset: a symbol and a distance from it.
    pub(crate) addresses: BTreeMap<u64, (S, i64)>,
}

/// What is known of constants at link time.
pub(crate) trait Constants {
    /// What has an address.
    type Symbol: Copy;
    /// The contents of a constant.
    fn blob(&self, symbol: Self::Symbol) -> Option<Blob<Self::Symbol>>;
    /// The address that a function without arguments returns, if it does nothing else.
    fn returned_address(&self, function: Self::Symbol) -> Option<(Self::Symbol, i64)>;
}

/// The constants of a module.
pub(crate) struct ModuleConstants {
    layout: DataLayout,
}

impl ModuleConstants {
    pub(crate) fn new(module: Module<'_>) -> ModuleConstants {
        ModuleConstants {
            layout: DataLayout::of(module),
        }
    }

    /// Those of values of one context.
    pub(crate) fn of<'m, 'c>(&'m self) -> ContextConstants<'m, 'c> {
        ContextConstants {
            layout: &self.layout,
            context: std::marker::PhantomData,
        }
    }
}

/// Implements [`Constants`] for values.
pub(crate) struct ContextConstants<'m, 'c> {
    layout: &'m DataLayout,
    context: std::marker::PhantomData<Value<'c>>,
}

impl<'c> Constants for ContextConstants<'_, 'c> {
    type Symbol = Value<'c>;

    fn blob(&self, symbol: Value<'c>) -> Option<Blob<Value<'c>>> {
        if symbol.kind() != ValueKind::GlobalVariable || !symbol.is_global_constant() {
            return None;
        }
        let initialiser = symbol.initialiser()?;
        let mut blob = Blob {
            bytes: vec![0; usize::try_from(self.layout.size(symbol.value_type())).ok()?],
            addresses: Default::default(),
        };
        self.write(initialiser, 0, &mut blob)?;
        Some(blob)
    }

    fn returned_address(&self, function: Value<'c>) -> Option<(Value<'c>, i64)> {
        if function.kind() != ValueKind::Function {
            return None;
        }
        let [block] = function.blocks()[..] else {
            return None;
        };
        let terminator = block.terminator()?;
        if !terminator.is(Opcode::Ret) || terminator.operand_count() != 1 {
            return None;
        }
        address_of(self.layout, terminator.operand(0))
    }
}

impl<'c> ContextConstants<'_, 'c> {
    /// Writes a constant to its place; `None` if it holds something that is neither a number nor an address.
    fn write(&self, constant: Value<'c>, at: u64, blob: &mut Blob<Value<'c>>) -> Option<()> {
        let ty = constant.ty();
        if constant.is_undef() || constant.is_zero() {
            return Some(());
        }
        if let Some(bytes) = constant.raw_bytes() {
            return put(blob, at, bytes);
        }
        match ty.kind() {
            TypeKind::Integer(_) => {
                let size = self.layout.store_size(ty) as usize;
                let bits = constant.as_bits()?.to_le_bytes();
                put(blob, at, bits.get(..size)?)
            }
            TypeKind::Float | TypeKind::Double | TypeKind::Half => {
                let size = self.layout.store_size(ty) as usize;
                put(blob, at, &constant.as_float_bits()?.to_le_bytes()[..size])
            }
            TypeKind::Pointer => {
                blob.addresses
                    .insert(at, address_of(self.layout, constant)?);
                Some(())
            }
            TypeKind::Struct => (0..ty.fields().len() as u32).try_for_each(|index| {
                let offset = self.layout.field_offset(ty, index);
                self.write(constant.element(index)?, at + offset, blob)
            }),
            TypeKind::Array => {
                let stride = self.layout.size(ty.element());
                (0..ty.length()).try_for_each(|index| {
                    self.write(constant.element(index as u32)?, at + index * stride, blob)
                })
            }
            _ => None,
        }
    }
}

/// A symbol and the distance from it.
pub(crate) fn address_of<'c>(layout: &DataLayout, value: Value<'c>) -> Option<(Value<'c>, i64)> {
    match value.kind() {
        ValueKind::GlobalVariable | ValueKind::Function => Some((value, 0)),
        ValueKind::ConstantExpression if value.is(Opcode::GetElementPtr) => {
            let operands = value.operands();
            let (base, offset) = address_of(layout, operands[0])?;
            let mut of = value.gep_source_type();
            let mut distance = operands[1].as_signed()? * i128::from(layout.size(of));
            for index in &operands[2..] {
                let index = index.as_signed()?;
                if of.kind() == TypeKind::Struct {
                    let field = u32::try_from(index).ok()?;
                    distance += i128::from(layout.field_offset(of, field));
                    of = of.fields()[field as usize];
                } else {
                    of = of.element();
                    distance += index * i128::from(layout.size(of));
                }
            }
            Some((base, offset + i64::try_from(distance).ok()?))
        }
        _ => None,
    }
}

fn put<S>(blob: &mut Blob<S>, at: u64, bytes: &[u8]) -> Option<()> {
    let start = usize::try_from(at).ok()?;
    blob.bytes
        .get_mut(start..start + bytes.len())?
        .copy_from_slice(bytes);
    Some(())
}
