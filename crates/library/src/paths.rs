//! Paths of Rust's functions, and whose they are.

/// The path of a symbol, for people. That of a symbol of another language is the symbol.
pub fn demangle(symbol: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(symbol))
}

/// The type, and what stands behind it, of a path like `<Type as interface>::method`.
pub(crate) fn implements(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix('<')?.split_once(" as ")
}

/// Whether a type is one of the standard library, and so is everything in it.
pub(crate) fn is_of_std(ty: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    ty.split(|c| !is_part(c))
        .filter_map(|path| path.split_once("::"))
        .all(|(root, _)| matches!(root, "core" | "alloc" | "std" | ""))
}

/// Whether a function belongs to the standard library of Rust or C++, also one made from it for types of the program.
pub fn is_of_standard_library(symbol: &str) -> bool {
    if ["_ZSt", "_ZNSt", "_ZNKSt", "_ZN9__gnu_cxx"]
        .iter()
        .any(|start| symbol.starts_with(start))
    {
        return true;
    }
    let path = demangle(symbol);
    let of_crate = |path: &str| {
        ["core::", "alloc::", "std::", "hashbrown::"]
            .iter()
            .any(|name| path.starts_with(name))
    };
    let subject = path.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '_');
    let subject = subject.trim_start_matches("mut ");
    let subject = subject.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '_');
    let interface = path.split_once(" as ").map(|(_, interface)| interface);
    // `<f64 as core::iter::Sum>::sum` is the library's, `<program::Point as core::ops::Add>::add` the program's.
    let first = subject
        .split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':')
        .next();
    let is_primitive = first.is_some_and(|first| !first.contains("::"));
    // Methods that primitive types have by themselves (`<*const T>::is_null`) are always the library's.
    let is_own_method = path.starts_with('<') && interface.is_none();
    of_crate(subject) || is_primitive && (is_own_method || interface.is_some_and(of_crate))
}

#[cfg(test)]
mod tests {
    use super::is_of_standard_library;

    #[test]
    fn the_library_is_told_from_the_program() {
        for (symbol, library) in [
            (
                "_ZN4core4iter6traits8iterator8Iterator3map17h0123456789abcdefE",
                true,
            ),
            (
                "_ZN54_$LT$f64$u20$as$u20$core..iter..traits..accum..Sum$GT$3sum17h0123456789abcdefE",
                true,
            ),
            (
                "_ZN56_$LT$program..Point$u20$as$u20$core..ops..arith..Add$GT$3add17h0123456789abcdefE",
                false,
            ),
            ("_RNvMNtCs0_4core3ptrPp7is_null", true),
            ("_ZN7program6doubled17h0123456789abcdefE", false),
            ("_ZNSt6vectorIdSaIdEE9push_backERKd", true),
            ("residual", false),
        ] {
            assert_eq!(is_of_standard_library(symbol), library, "{symbol}");
        }
    }
}
