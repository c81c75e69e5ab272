//! Functions of the crate `libm` are those of C's mathematical library.
//!
//! They work on the bits of numbers, in ways that derivatives cannot follow, but what they compute is known by their names. Derivatives call the C functions, whose results differ in the
//! last bits at most; where every function has to be the one that the program calls (`--strict`), they are left as they are.

use crate::opaque::demangle;
use ferrozyme_llvm::import::is_mathematical;
use ferrozyme_llvm::{Module, Type, TypeKind};

/// Functions with a whole number among their arguments or results, which have the types of C's.
const WITH_INTEGERS: &[&str] = &[
    "ilogb", "ilogbf", "ldexp", "ldexpf", "scalbn", "scalbnf", "j0", "j0f", "j1", "j1f", "jn",
    "jnf", "y0", "y0f", "y1", "y1f", "yn", "ynf",
];

/// Puts C's functions in the place of the crate's.
pub(crate) fn call_library_functions(module: Module<'_>) {
    for function in module.functions().collect::<Vec<_>>() {
        let path = demangle(&function.name());
        let Some(name) = path
            .strip_prefix("libm::")
            .and_then(|rest| rest.rsplit("::").next())
        else {
            continue;
        };
        let known = is_mathematical(name) || WITH_INTEGERS.contains(&name);
        let ty = function.value_type();
        if !known
            || !is_of_floats(ty, name)
            || module
                .symbol(name)
                .is_some_and(|other| !other.is_declaration())
        {
            continue;
        }
        let library = module.declare(name, ty);
        function.replace_uses_with(library);
    }
}

/// Whether a function has floats of the type that its name says, and numbers of 32 bits, and nothing else.
fn is_of_floats(function: Type<'_>, name: &str) -> bool {
    let float = match name.ends_with('f') && name != "erf" {
        true => TypeKind::Float,
        false => TypeKind::Double,
    };
    let fits = |ty: Type<'_>| ty.kind() == float || ty.integer_width() == Some(32);
    fits(function.result()) && function.parameters().into_iter().all(fits)
}
