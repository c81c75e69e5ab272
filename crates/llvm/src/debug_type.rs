//! Types as debug information describes them.

use crate::context::{Context, copy_text};
use crate::metadata::Metadata;
use crate::sys::call;
use crate::value::Value;

/// A type, or a member of one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DebugType<'c>(Metadata<'c>);

/// What a type is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DebugKind {
    /// A number.
    Basic,
    /// A structure, also an enum of Rust's: then its one element is of kind `Variants`.
    Structure,
    /// The variants of an enum.
    Variants,
    /// Fields that share their place.
    Union,
    /// An array.
    Array,
    /// A pointer or reference.
    Pointer,
    /// A field or variant.
    Member,
    /// Anything else.
    Other,
}

// Numbers of `LLVMMetadataKind`.
const TUPLE: u32 = 4;
const BASIC: u32 = 11;
const DERIVED: u32 = 12;
const COMPOSITE: u32 = 13;
const SUBROUTINE: u32 = 14;
const NAMESPACE: u32 = 20;
const TEMPLATE_TYPE: u32 = 22;

fn kind_of(metadata: Metadata<'_>) -> u32 {
    call!(LLVMGetMetadataKind(metadata.raw()))
}

impl<'c> DebugType<'c> {
    fn new(metadata: Metadata<'c>) -> Option<DebugType<'c>> {
        (BASIC..=SUBROUTINE)
            .contains(&kind_of(metadata))
            .then_some(DebugType(metadata))
    }

    /// What it is.
    pub fn kind(self) -> DebugKind {
        match (kind_of(self.0), call!(LLVMGetDINodeTag(self.0.raw()))) {
            (BASIC, _) => DebugKind::Basic,
            (COMPOSITE, 0x01) => DebugKind::Array,
            (COMPOSITE, 0x13) => DebugKind::Structure,
            (COMPOSITE, 0x17) => DebugKind::Union,
            (COMPOSITE, 0x33) => DebugKind::Variants,
            (DERIVED, 0x0d) => DebugKind::Member,
            (DERIVED, 0x0f) => DebugKind::Pointer,
            _ => DebugKind::Other,
        }
    }

    /// Its name, without the modules that it is in.
    pub fn name(self) -> String {
        let mut length = 0;
        let start = call!(LLVMDITypeGetName(self.0.raw(), &mut length));
        copy_text(start, length)
    }

    /// Its size in bytes.
    pub fn size(self) -> u64 {
        call!(LLVMDITypeGetSizeInBits(self.0.raw())) / 8
    }

    /// Its alignment in bytes; 0 if it is not told.
    pub fn alignment(self) -> u64 {
        u64::from(call!(LLVMDITypeGetAlignInBits(self.0.raw()))) / 8
    }

    /// Where a member is, in bytes.
    pub fn offset(self) -> u64 {
        call!(LLVMDITypeGetOffsetInBits(self.0.raw())) / 8
    }

    /// The modules that it is in, outermost first.
    pub fn modules(self) -> Vec<String> {
        let mut names = Vec::new();
        // The operands of types and of modules begin with file and scope.
        let mut scope = self.0.operands().get(1).copied().flatten();
        while let Some(module) = scope.filter(|&scope| kind_of(scope) == NAMESPACE) {
            let operands = module.operands();
            let name = operands.get(2).copied().flatten();
            names.push(name.and_then(Metadata::as_text).unwrap_or_default());
            scope = operands.get(1).copied().flatten();
        }
        names.reverse();
        names
    }

    /// The operands behind file, scope and name, with their numbers.
    fn own_operands(self) -> impl Iterator<Item = (usize, Metadata<'c>)> {
        let operands = self.0.operands().into_iter().enumerate().skip(3);
        operands.filter_map(|(index, operand)| Some((index, operand?)))
    }

    /// What a pointer points to, what an array has elements of, what a member is.
    pub fn base(self) -> Option<DebugType<'c>> {
        self.own_operands()
            .find_map(|(_, operand)| DebugType::new(operand))
    }

    /// The fields of a structure, or the variants of an enum.
    pub fn members(self) -> Vec<DebugType<'c>> {
        let mut lists = self
            .own_operands()
            .filter(|&(_, operand)| kind_of(operand) == TUPLE);
        let first = lists.next();
        let elements = first.map_or(Vec::new(), |(_, list)| list.operands());
        let types = elements.into_iter().flatten().filter_map(DebugType::new);
        types.collect()
    }

    /// The types that a generic type is made for.
    pub fn arguments(self) -> Vec<DebugType<'c>> {
        let lists = self.own_operands().map(|(_, operand)| operand);
        template_types(lists)
    }

    /// The member that tells the variants of an enum apart.
    pub fn discriminator(self) -> Option<DebugType<'c>> {
        self.own_operands()
            .filter_map(|(_, operand)| DebugType::new(operand))
            .find(|operand| operand.kind() == DebugKind::Member)
    }

    /// The value of the discriminator that stands for a variant. All others stand for the variant without one.
    pub fn variant_value(self) -> Option<Value<'c>> {
        let operands = self.0.operand_values();
        let base = self
            .own_operands()
            .find(|&(_, operand)| DebugType::new(operand).is_some());
        let (base, _) = base?;
        let behind = operands.into_iter().skip(base + 1).flatten();
        behind.into_iter().find(|value| value.as_bits().is_some())
    }
}

/// The types in the lists of generic arguments among metadata.
fn template_types<'c>(lists: impl Iterator<Item = Metadata<'c>>) -> Vec<DebugType<'c>> {
    let lists = lists.filter(|&list| kind_of(list) == TUPLE);
    let entries = lists.flat_map(|list| list.operands()).flatten();
    let arguments = entries.filter(|&entry| kind_of(entry) == TEMPLATE_TYPE);
    let types = arguments.flat_map(|argument| argument.operands()).flatten();
    types.filter_map(DebugType::new).collect()
}

impl<'c> Value<'c> {
    /// The types that a generic function is made for, as its debug information says.
    pub fn generic_arguments(self, context: &'c Context) -> Vec<DebugType<'c>> {
        let Some(subprogram) = self.subprogram(context) else {
            return Vec::new();
        };
        template_types(subprogram.operands().into_iter().flatten())
    }
}
