//! Replaces inline assembly with a known meaning by LLVM IR, before optimisation: minima and maxima of packed floats and empty assembly around a value, as in Eigen, and square roots, as in the crate `libm`.
//!
//! ```text
//! %r = call <2 x double> asm "minpd $1, $0", "=x,x,0"(%a, %b)     ⇒     %c = fcmp olt <2 x double> %b, %a
//!                                                                       %r = select <2 x i1> %c, <2 x double> %b, <2 x double> %a
//! call void asm "", "=*imr|x,0"(ptr %p, <2 x double> %a)          ⇒     store <2 x double> %a, ptr %p
//! ```
//!
//! For equal operands and NaN the result is the last operand in Intel's order, as in the processor.

use ferrozyme_llvm::{Context, FloatPredicate, Module, Opcode, TypeKind, Value};

/// Replaces what is understood of the inline assembly of a module.
pub fn translate_assembly<'c>(context: &'c Context, module: Module<'c>) {
    let functions = module.functions().filter(|one| !one.is_declaration());
    let calls: Vec<Value<'c>> = functions
        .flat_map(|function| function.instructions())
        .filter(|instruction| instruction.is(Opcode::Call))
        .collect();
    for call in calls {
        let Some((template, constraints)) = call.called().inline_assembly() else {
            continue;
        };
        match template.trim().is_empty() {
            true => remove_barrier(context, call, &constraints),
            false if is_root(&template, &constraints) => take_root(context, module, call),
            false => choose(context, call, &template, &constraints),
        }
    }
}

/// A value that goes through assembly without a word of it stays what it is.
fn remove_barrier<'c>(context: &'c Context, call: Value<'c>, constraints: &str) {
    let parts: Vec<&str> = constraints
        .split(',')
        .filter(|part| !part.starts_with("~{"))
        .collect();
    let [output, "0"] = parts[..] else {
        return;
    };
    match (call.arguments().as_slice(), output) {
        (&[value], output) if !output.starts_with("=*") && value.ty() == call.ty() => {
            call.replace_uses_with(value);
        }
        (&[address, value], output) if output.starts_with("=*") && address.ty().is_pointer() => {
            let builder = context.builder();
            builder.before(call);
            builder.store(value, address);
        }
        _ => return,
    }
    call.erase();
}

/// Whether a template is the square root of the one float that goes through it: its registers, in whatever words, are one.
fn is_root(template: &str, constraints: &str) -> bool {
    let register = |operand: &str| {
        let operand = operand.trim().strip_prefix('$')?;
        let operand = operand.trim_start_matches('{').trim_end_matches('}');
        let number = operand.split(':').next()?;
        number.parse::<usize>().ok()
    };
    let Some((name, operands)) = template.trim().split_once(char::is_whitespace) else {
        return false;
    };
    let mut registers = operands.split(',').map(register);
    let mut parts = constraints
        .split(',')
        .filter(|part| !part.starts_with("~{"));
    matches!(name, "sqrtsd" | "sqrtss")
        && registers.all(|register| register == Some(0))
        && matches!(parts.next(), Some("=x" | "=&x"))
        && parts.next() == Some("0")
        && parts.next().is_none()
}

fn take_root<'c>(context: &'c Context, module: Module<'c>, call: Value<'c>) {
    let (of, arguments) = (call.ty(), call.arguments());
    let name = match of.kind() {
        TypeKind::Double => "llvm.sqrt.f64",
        TypeKind::Float => "llvm.sqrt.f32",
        _ => return,
    };
    if arguments.len() != 1 || arguments[0].ty() != of {
        return;
    }
    let builder = context.builder();
    builder.before(call);
    let root = module.declare(name, of.function(&[of], false));
    call.replace_uses_with(builder.call_function(root, &arguments));
    call.erase();
}

fn choose<'c>(context: &'c Context, call: Value<'c>, template: &str, constraints: &str) {
    let Some(choice) = read(template, constraints) else {
        return;
    };
    let arguments = call.arguments();
    let operands = [choice.first, choice.second].map(|index| arguments.get(index).copied());
    let [Some(first), Some(second)] = operands else {
        return;
    };
    let of = call.ty();
    let fits = of.kind() == TypeKind::Vector
        && of.element().kind() == choice.element
        && first.ty() == of
        && second.ty() == of;
    if !fits {
        return;
    }
    let builder = context.builder();
    builder.before(call);
    let taken = builder.compare_floats(choice.predicate, first, second);
    call.replace_uses_with(builder.select(taken, first, second));
    call.erase();
}

/// The first operand if it compares so with the second, otherwise the second.
#[derive(Debug, PartialEq)]
struct Choice {
    predicate: FloatPredicate,
    element: TypeKind,
    /// Which arguments of the call these are.
    first: usize,
    second: usize,
}

fn read(template: &str, constraints: &str) -> Option<Choice> {
    let (name, operands) = template.trim().split_once(char::is_whitespace)?;
    let operands: Vec<usize> = operands
        .split(',')
        .map(|operand| operand.trim().strip_prefix('$')?.parse().ok())
        .collect::<Option<_>>()?;
    let three = name.starts_with('v');
    let (predicate, element) = match name.trim_start_matches('v') {
        "minps" => (FloatPredicate::Olt, TypeKind::Float),
        "minpd" => (FloatPredicate::Olt, TypeKind::Double),
        "maxps" => (FloatPredicate::Ogt, TypeKind::Float),
        "maxpd" => (FloatPredicate::Ogt, TypeKind::Double),
        _ => return None,
    };
    let (second, first) = match operands[..] {
        [second, first, 0] if three => (second, first),
        [second, 0] if !three => (second, 0),
        _ => return None,
    };
    // The result is operand 0, then come the arguments. One of them may be what the result is before.
    let mut parts = constraints
        .split(',')
        .filter(|part| !part.starts_with("~{"));
    parts.next().filter(|output| *output == "=x")?;
    let inputs: Vec<&str> = parts.collect();
    let argument = |operand: usize| match operand {
        0 => inputs.iter().position(|input| *input == "0"),
        _ => (inputs.get(operand - 1) == Some(&"x")).then(|| operand - 1),
    };
    Some(Choice {
        predicate,
        element,
        first: argument(first)?,
        second: argument(second)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn square_roots_are_read() {
        let constraints = "=&x,0,~{dirflag},~{fpsr},~{flags}";
        assert!(is_root("sqrtsd ${0:x}, ${0:x}", constraints));
        assert!(is_root("sqrtss $0, $0", "=x,0"));
        assert!(!is_root("sqrtsd $1, $0", "=x,x"));
        assert!(!is_root("rsqrtss $0, $0", "=x,0"));
    }

    #[test]
    fn minima_and_maxima_are_read() {
        let clobbers = "~{dirflag},~{fpsr},~{flags}";
        let two = read("minpd $1, $0", &format!("=x,x,0,{clobbers}"));
        let expected = Choice {
            predicate: FloatPredicate::Olt,
            element: TypeKind::Double,
            first: 1,
            second: 0,
        };
        assert_eq!(two, Some(expected));
        let three = read("vmaxps $1, $2, $0", &format!("=x,x,x,{clobbers}"));
        let expected = Choice {
            predicate: FloatPredicate::Ogt,
            element: TypeKind::Float,
            first: 1,
            second: 0,
        };
        assert_eq!(three, Some(expected));
        assert_eq!(read("minpd $1, $0", "=x,*m,0"), None);
        assert_eq!(read("addpd $1, $0", "=x,x,0"), None);
    }
}
