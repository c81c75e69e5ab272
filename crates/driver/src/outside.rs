//! Numbers that come from outside the program, as text or as bytes: they are constants, and what was in their place before is gone.
//!
//! ```text
//! %n = call i32 @sscanf(ptr %text, ptr @"%lf", ptr %y)        %n = call i32 @sscanf(ptr %text, ptr @"%lf", ptr %new)
//!                                                       ⇒     %y' = select (%n > 0), (constant in %new), (what is in %y);  store double %y', ptr %y
//!
//! %n = call i64 @fread(ptr %y, i64 8, i64 %k, ptr %file)      %n = call i64 @fread(ptr %new, i64 8, i64 %k, ptr %file)
//!                                                       ⇒     memcpy(%y, %new, %n · 8)
//! ```
//!
//! Nobody sees what these functions write, so they are given memory of their own, and what they say they have written is copied from there as a program would. Other functions of this kind,
//! and formats that are not known, are refused if memory that carries derivatives is given to them.

use crate::detach::detached;
use crate::trace::trace;
use ferrozyme_library::{Bytes, Input, Known, functions};
use ferrozyme_llvm::{Context, IntPredicate, Module, Opcode, PassOptions, Place, Value};
use std::collections::HashSet;

/// Lets what comes from outside be constants.
pub(crate) fn copy_from_outside<'c>(context: &'c Context, module: Module<'c>) {
    let inputs = functions(|known| match known {
        Known::Input(input) => Some(input),
        _ => None,
    });
    for (name, input) in inputs {
        match input {
            Input::Bytes(bytes) => {
                for call in calls(context, module, name) {
                    read_aside(context, module, bytes, call);
                }
            }
            Input::Formatted(format) => {
                for call in calls(context, module, name) {
                    scan_aside(context, module, *format, call);
                }
            }
            Input::Text => {}
        }
    }
}

/// All calls of a function of C's library. None of them unwinds, so that none needs to be an `invoke`.
fn calls<'c>(context: &'c Context, module: Module<'c>, name: &str) -> Vec<Value<'c>> {
    let Some(function) = module.function(name).filter(|one| one.is_declaration()) else {
        return Vec::new();
    };
    function.add_attribute(Place::Function, context.attribute("nounwind", 0));
    let users = || {
        let users = function.users().into_iter();
        users.filter(|user| user.is_instruction() && user.is_call() && user.called() == function)
    };
    let unwinding: HashSet<Value<'c>> = users()
        .filter(|call| call.is(Opcode::Invoke))
        .filter_map(|call| call.block().map(|block| block.function()))
        .collect();
    for caller in unwinding {
        // What stays an `invoke` is refused like any other function that writes active memory.
        let _ = caller.run_passes("simplifycfg", None, PassOptions::default());
    }
    users().filter(|call| call.is(Opcode::Call)).collect()
}

fn read_aside<'c>(context: &'c Context, module: Module<'c>, reader: &Bytes, call: Value<'c>) {
    let arguments = call.arguments();
    let size = context.integer(64);
    let named = reader.size.iter().chain(&reader.unit);
    let fits = |at: &usize| arguments.get(*at).is_some_and(|one| one.ty() == size);
    let Some(next) = call.next_instruction() else {
        return;
    };
    if call.ty() != size || !named.into_iter().all(fits) {
        return;
    }
    let builder = context.builder();
    builder.before(call);
    builder.set_location(call.debug_location(context));
    let sizes = reader.size.iter().map(|at| arguments[*at]);
    let bytes = sizes.reduce(|a, b| builder.binary(Opcode::Mul, a, b));
    let allocate = module.declare("malloc", context.pointer().function(&[size], false));
    let release = module.declare("free", context.void().function(&[context.pointer()], false));
    let aside = builder.call_function(allocate, &[bytes.unwrap_or(size.constant(0))]);
    call.set_operand(reader.to as u32, aside);
    builder.before(next);
    builder.set_location(call.debug_location(context));
    let written = match reader.unit {
        Some(unit) => builder.binary(Opcode::Mul, call, arguments[unit]),
        None => {
            let zero = size.constant(0);
            let some = builder.compare_integers(IntPredicate::Sgt, call, zero);
            builder.select(some, call, zero)
        }
    };
    // Some say how much there was, which can be more than there was room for.
    let bytes = bytes.unwrap_or(size.constant(0));
    let too_much = builder.compare_integers(IntPredicate::Ugt, written, bytes);
    let written = builder.select(too_much, bytes, written);
    builder.copy(arguments[reader.to], 1, aside, 1, written);
    builder.call_function(release, &[aside]);
}

fn scan_aside<'c>(context: &'c Context, module: Module<'c>, format: usize, call: Value<'c>) {
    let arguments = call.arguments();
    let text = arguments
        .get(format)
        .and_then(|format| constant_text(*format));
    let Some(conversions) = text.and_then(conversions) else {
        return;
    };
    let (Some(next), Some(function)) = (
        call.next_instruction(),
        call.block().map(|block| block.function()),
    ) else {
        return;
    };
    let Some(entry) = function.instructions().next() else {
        return;
    };
    let builder = context.builder();
    for (at, conversion) in (format + 1..arguments.len()).zip(conversions) {
        let Conversion::Float { before, double } = conversion else {
            continue;
        };
        let float = match double {
            true => context.double(),
            false => context.float(),
        };
        builder.before(entry);
        let aside = builder.alloca(float);
        call.set_operand(at as u32, aside);
        builder.before(next);
        builder.set_location(call.debug_location(context));
        let known = call.ty().constant(i128::from(before));
        let written = builder.compare_integers(IntPredicate::Sgt, call, known);
        let read = builder.load(float, aside);
        let read = detached(context, module, &builder, read).unwrap_or(read);
        let old = builder.load(float, arguments[at]);
        let now = builder.select(written, read, old);
        builder.store(now, arguments[at]);
    }
}

/// The bytes of a constant string, without the zero at its end.
fn constant_text(value: Value<'_>) -> Option<&[u8]> {
    let global = trace(value);
    if !global.is_global() || !global.is_global_constant() {
        return None;
    }
    let bytes = global.initialiser()?.raw_bytes()?;
    bytes.split(|byte| *byte == 0).next()
}

/// What a format does with one argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Conversion {
    /// It writes a float, if this many others were written before.
    Float { before: u32, double: bool },
    /// It writes text or an integer.
    Other,
}

/// What a format does with the arguments behind it. None if it is not understood.
fn conversions(format: &[u8]) -> Option<Vec<Conversion>> {
    let mut found = Vec::new();
    let mut before = 0;
    let mut rest = format.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            continue;
        }
        let kept = rest.next_if_eq(&b'*').is_none();
        while rest.next_if(u8::is_ascii_digit).is_some() {}
        let mut length = Vec::new();
        while let Some(letter) = rest.next_if(|byte| b"hlLqjztm".contains(byte)) {
            length.push(letter);
        }
        let conversion = rest.next()?;
        if conversion == b'[' {
            // A bracket right at the start of a set is one of its members.
            rest.next_if_eq(&b'^');
            rest.next_if_eq(&b']');
            rest.find(|byte| *byte == b']')?;
        }
        let is_float = b"aefgAEFG".contains(&conversion);
        match conversion {
            b'%' => continue,
            _ if !kept => continue,
            _ if is_float && matches!(length[..], [] | [b'l']) => found.push(Conversion::Float {
                before,
                double: !length.is_empty(),
            }),
            b'n' => {
                found.push(Conversion::Other);
                continue;
            }
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'c' | b's' | b'[' | b'p' | b'C' | b'S' => {
                found.push(Conversion::Other);
            }
            _ => return None,
        }
        before += 1;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::{Conversion, conversions};

    #[test]
    fn formats() {
        let float = |before, double| Conversion::Float { before, double };
        let read = |format: &str| conversions(format.as_bytes());
        assert_eq!(read("%lf"), Some(vec![float(0, true)]));
        assert_eq!(
            read(" %*d,%3f%% %n%lg"),
            Some(vec![float(0, false), Conversion::Other, float(1, true)])
        );
        assert_eq!(
            read("%[^]%f]%5s%ld%le"),
            Some(vec![
                Conversion::Other,
                Conversion::Other,
                Conversion::Other,
                float(3, true)
            ])
        );
        for strange in ["%1$lf", "%", "%Lf", "%y", "%[a"] {
            assert_eq!(read(strange), None, "{strange}");
        }
    }
}
