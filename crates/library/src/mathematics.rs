//! Mathematical functions of C's library, by name.
//!
//! The name of the version for `f32` ends in `f`; `__exp_finite` is what older headers call `exp` where nothing is infinite.

use crate::known::{Known, Variant};
use crate::lookup::find;
use ferrozyme_ir::{MathFunction, Type};

/// The names in double precision that a name may stand for, each with the type that it then says.
pub fn base_name(name: &str) -> impl Iterator<Item = (&str, Type)> {
    let finite = name
        .strip_prefix("__")
        .and_then(|name| name.strip_suffix("_finite"));
    let name = finite.unwrap_or(name);
    let single = name.strip_suffix('f').map(|base| (base, Type::F32));
    [Some((name, Type::F64)), single].into_iter().flatten()
}

/// The function that C's library has under this name, if it is one of those of the table of mathematical functions.
pub fn mathematical(name: &str) -> Option<&'static MathFunction> {
    base_name(name).find_map(|(base, _)| MathFunction::named_in_c(base))
}

/// What C's library has under this name, if that is more or less than a row of that table.
pub fn variant(name: &str) -> Option<Variant> {
    base_name(name).find_map(|(base, _)| variant_of_base(base))
}

/// The same, by its name in double precision.
pub fn variant_of_base(base: &str) -> Option<Variant> {
    find(base, |known| match known {
        Known::Mathematics(variant) => Some(*variant),
        _ => None,
    })
}
