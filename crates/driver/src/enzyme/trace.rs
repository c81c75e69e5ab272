//! What a value is, seen through casts, variables that are set once, and functions that only return something: in unoptimised code even constants travel through memory.

use ferrozyme_llvm::{Opcode, Value, ValueKind};

/// How far a value is followed.
const MAX_STEPS: usize = 64;

/// The value behind casts, through memory that holds one value ever.
pub(super) fn trace(mut value: Value<'_>) -> Value<'_> {
    for _ in 0..MAX_STEPS {
        match step(value) {
            Some(next) => value = next,
            None => break,
        }
    }
    value
}

fn step(value: Value<'_>) -> Option<Value<'_>> {
    let is_cast = matches!(
        value.opcode(),
        Some(
            Opcode::BitCast
                | Opcode::PtrToInt
                | Opcode::IntToPtr
                | Opcode::SExt
                | Opcode::ZExt
                | Opcode::Trunc
                | Opcode::AddrSpaceCast
        )
    );
    if is_cast {
        return Some(value.operand(0));
    }
    if value.kind() == ValueKind::Alias {
        return value.aliasee();
    }
    if !value.is_instruction() {
        return None;
    }
    match value.opcode()? {
        Opcode::Load => {
            let address = value.operand(0);
            match address.kind() {
                ValueKind::GlobalVariable if address.is_global_constant() => address
                    .initialiser()
                    .filter(|initial| initial.ty() == value.ty()),
                _ if address.is_instruction() && address.is(Opcode::Alloca) => {
                    only_store_to(address).filter(|stored| stored.ty() == value.ty())
                }
                _ => None,
            }
        }
        Opcode::Call => {
            let function = value.called_function()?;
            let returns: Vec<Value<'_>> = function
                .instructions()
                .filter(|instruction| instruction.is(Opcode::Ret))
                .collect();
            let [one] = returns.as_slice() else {
                return None;
            };
            (one.operand_count() == 1)
                .then(|| trace(one.operand(0)))
                .filter(|returned| returned.is_constant())
        }
        _ => None,
    }
}

/// What is stored in a variable whose address goes nowhere and that is set once.
fn only_store_to(variable: Value<'_>) -> Option<Value<'_>> {
    let mut stored = None;
    for user in variable.users() {
        match user.opcode()? {
            Opcode::Load => {}
            Opcode::Store if user.operand(1) == variable && stored.is_none() => {
                stored = Some(user.operand(0));
            }
            Opcode::Call
                if user.called_intrinsic().is_some_and(|name| {
                    name.starts_with("llvm.lifetime.") || name.starts_with("llvm.dbg.")
                }) => {}
            _ => return None,
        }
    }
    stored
}
