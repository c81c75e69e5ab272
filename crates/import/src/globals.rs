//! Global variables with their contents: bytes, and addresses within them.

use super::Importer;
use super::constant::fixed_address;
use ferrozyme_ir::{Alignment, Global, GlobalId, Symbol};
use ferrozyme_llvm::{Type, TypeKind, Value, ValueKind};

/// Beyond this many bytes, contents are not looked at: tables of this size hold no addresses that matter.
const LARGEST: u64 = 1 << 24;

/// Part of the names of variables that `thread_local!` makes.
const LAZY_VARIABLE: &str = "__RUST_STD_INTERNAL_VAL";

impl<'c> Importer<'c, '_> {
    /// The global of the Loop IR for a variable of LLVM's.
    pub(super) fn global(&mut self, variable: Value<'c>) -> GlobalId {
        if let Some(&id) = self.globals.get(&variable) {
            return id;
        }
        self.name_global(variable);
        let of = variable.value_type();
        let size = if of.is_sized() {
            self.layout.size(of)
        } else {
            0
        };
        let align = match variable.alignment() {
            0 if of.is_sized() => self.layout.alignment(of),
            0 => 1,
            given => given,
        };
        let id = self.module.globals.push(Global {
            name: variable.name(),
            size,
            align: Alignment::new(u64::from(align)).unwrap_or_default(),
            constant: variable.is_global_constant(),
            bytes: None,
            relocations: Vec::new(),
            inactive: false,
            shared: false,
            thread_local: variable.is_thread_local(),
            parts: self.parts_of_lazy_variable(variable),
            layout: None,
        });
        // Before the contents, which may refer to the variable itself.
        self.globals.insert(variable, id);
        let initialiser = variable
            .initialiser()
            .filter(|_| size <= LARGEST && of.is_sized());
        let mut contents = Contents {
            bytes: vec![0; size as usize],
            addresses: Vec::new(),
        };
        if let Some(initialiser) = initialiser
            && self.lay_out(initialiser, 0, &mut contents).is_some()
        {
            let mut relocations: Vec<(u64, Symbol)> = Vec::new();
            for (offset, symbol) in contents.addresses {
                let symbol = match symbol.kind() {
                    ValueKind::Function => Symbol::Function(self.function(symbol)),
                    _ => Symbol::Global(self.global(symbol)),
                };
                relocations.push((offset, symbol));
            }
            relocations.sort_by_key(|&(offset, _)| offset);
            let used = contents.bytes.iter().rposition(|&byte| byte != 0);
            contents.bytes.truncate(used.map_or(0, |last| last + 1));
            let global = &mut self.module.globals[id];
            // What is never written and leads nowhere has no derivative.
            global.inactive = global.constant && relocations.is_empty();
            global.bytes = Some(contents.bytes);
            global.relocations = relocations;
        }
        id
    }

    /// Where the state begins and ends in a variable that each thread makes when it first needs it. Rust's library keeps the value and one byte of state
    /// in one variable; whoever has a pointer to the value cannot reach the state from there.
    fn parts_of_lazy_variable(&self, variable: Value<'c>) -> Vec<u64> {
        let of = variable.value_type();
        if !variable.is_thread_local()
            || !variable.name().contains(LAZY_VARIABLE)
            || of.kind() != TypeKind::Struct
        {
            return Vec::new();
        }
        let fields = of.fields();
        let is_byte = |field: &Type<'c>| self.layout.size(*field) == 1;
        // The value is nothing yet, and so one field; more of them are contents of something that is not made lazily.
        let state = match &fields[..] {
            [_, state] | [_, state, _] if is_byte(state) => 1,
            [state, _] if is_byte(state) => 0,
            _ => return Vec::new(),
        };
        let start = self.layout.field_offset(of, state);
        let mut parts = vec![start, start + 1];
        parts.retain(|&part| part > 0 && part < self.layout.size(of));
        parts
    }

    /// Writes a constant to its place; none if it has no form as bytes and addresses.
    fn lay_out(&self, constant: Value<'c>, offset: u64, contents: &mut Contents<'c>) -> Option<()> {
        if constant.is_zero() || constant.is_undef() {
            return Some(());
        }
        if let Some(bytes) = constant.raw_bytes() {
            return contents.write(offset, bytes);
        }
        let of = constant.ty();
        match of.kind() {
            TypeKind::Struct => {
                for index in 0..of.length() as u32 {
                    let field = offset + self.layout.field_offset(of, index);
                    self.lay_out(constant.element(index)?, field, contents)?;
                }
                Some(())
            }
            TypeKind::Array | TypeKind::Vector => {
                let stride = self.layout.size(of.element());
                for index in 0..of.length() {
                    self.lay_out(
                        constant.element(index as u32)?,
                        offset + stride * index,
                        contents,
                    )?;
                }
                Some(())
            }
            TypeKind::Pointer => {
                // An empty slice has the address of nothing: its alignment.
                if let Some(address) = fixed_address(constant) {
                    let size = self.store_size(of)?;
                    return contents.write(offset, &address.to_le_bytes()[..size]);
                }
                let symbol = self.address(constant)?;
                contents.addresses.push((offset, symbol));
                Some(())
            }
            _ => {
                let bits = constant
                    .as_bits()
                    .or_else(|| constant.as_float_bits().map(u128::from))?;
                let size = self.store_size(of)?;
                contents.write(offset, &bits.to_le_bytes()[..size])
            }
        }
    }

    fn store_size(&self, of: Type<'c>) -> Option<usize> {
        usize::try_from(self.layout.store_size(of))
            .ok()
            .filter(|&size| size <= 16)
    }

    /// The symbol whose address a constant is, without an offset.
    fn address(&self, constant: Value<'c>) -> Option<Value<'c>> {
        match constant.kind() {
            ValueKind::Function => Some(constant),
            ValueKind::GlobalVariable if !constant.is_thread_local() => Some(constant),
            ValueKind::Alias => self.address(constant.aliasee()?),
            _ => None,
        }
    }
}

struct Contents<'c> {
    bytes: Vec<u8>,
    addresses: Vec<(u64, Value<'c>)>,
}

impl Contents<'_> {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Option<()> {
        let start = usize::try_from(offset).ok()?;
        self.bytes
            .get_mut(start..start + bytes.len())?
            .copy_from_slice(bytes);
        Some(())
    }
}
