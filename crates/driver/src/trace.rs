//! What a value is, seen through casts, variables that are set once, and functions that only return something: in unoptimised code even constants travel through memory.

use ferrozyme_llvm::{Opcode, Place, Value, ValueKind};

/// How far a value is followed.
const MAX_STEPS: usize = 64;

/// The function that a call of an entry point is about, as it stands there: behind the memory for the result.
pub(crate) fn first_argument(call: Value<'_>) -> Option<Value<'_>> {
    let memory = call.attribute(Place::Parameter(0), "sret").is_some();
    call.arguments().get(usize::from(memory)).copied()
}

/// The value behind casts, through memory that holds one value ever.
pub(crate) fn trace(mut value: Value<'_>) -> Value<'_> {
    for _ in 0..MAX_STEPS {
        match step(value) {
            Some(next) => value = next,
            None => break,
        }
    }
    value
}

/// Whether two pointers show that they lead into the same memory: they are made from the same one, or from what one variable holds.
pub(crate) fn share_memory(one: Value<'_>, other: Value<'_>) -> bool {
    let (one, other) = (start(one), start(other));
    let loaded = |value: Value<'_>| value.is_instruction() && value.is(Opcode::Load);
    match loaded(one) && loaded(other) {
        true => same_place(one.operand(0), other.operand(0)),
        false => one == other && !one.is_zero(),
    }
}

/// What a pointer is an offset from.
pub(crate) fn start(mut pointer: Value<'_>) -> Value<'_> {
    for _ in 0..MAX_STEPS {
        pointer = trace(pointer);
        match pointer.opcode() {
            Some(Opcode::GetElementPtr) => pointer = pointer.operand(0),
            _ => break,
        }
    }
    pointer
}

/// Whether two addresses are the same variable, or the same field of one.
fn same_place(one: Value<'_>, other: Value<'_>) -> bool {
    let (one, other) = (trace(one), trace(other));
    let field = |value: Value<'_>| value.opcode() == Some(Opcode::GetElementPtr);
    one == other
        || field(one)
            && field(other)
            && one.operand_count() == other.operand_count()
            && one.gep_source_type() == other.gep_source_type()
            && same_place(one.operand(0), other.operand(0))
            && (1..one.operand_count()).all(|index| one.operand(index) == other.operand(index))
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

/// Whether anybody can see what is in a variable, or what a value is: unoptimised code stores results that nobody wants.
pub(crate) fn is_looked_at(value: Value<'_>) -> bool {
    value.users().into_iter().any(|user| match user.opcode() {
        Some(Opcode::ExtractValue) => is_looked_at(user),
        Some(Opcode::Store) if user.operand(0) == value => is_read(user.operand(1)),
        _ => true,
    })
}

/// Whether memory is read, as far as that shows from where its address goes.
pub(crate) fn is_read(address: Value<'_>) -> bool {
    if !address.is_instruction() {
        return true;
    }
    match address.opcode() {
        Some(Opcode::GetElementPtr) => is_read(address.operand(0)),
        Some(Opcode::Alloca) => address_is_read(address),
        _ => true,
    }
}

fn address_is_read(address: Value<'_>) -> bool {
    address.users().into_iter().any(|user| match user.opcode() {
        Some(Opcode::GetElementPtr) => address_is_read(user),
        Some(Opcode::Store) => user.operand(0) == address,
        Some(Opcode::Call | Opcode::Invoke) => {
            let result = user.attribute(Place::Parameter(0), "sret").is_some()
                && user
                    .arguments()
                    .iter()
                    .filter(|one| **one == address)
                    .count()
                    == 1
                && user.arguments()[0] == address;
            let mark = user
                .called_intrinsic()
                .is_some_and(|name| name.starts_with("llvm.lifetime."));
            !result && !mark
        }
        _ => true,
    })
}
