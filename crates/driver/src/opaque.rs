//! Opaque functions: their bodies are not differentiated.
//!
//! Formatting, printing, panics and the machinery of the runtime neither compute with the user's numbers in a way that has a
//! derivative nor are they small. They are called as they are; if a number that carries a derivative comes *out* of one, the differentiator refuses.

use crate::frontend::c::DYNAMIC_CAST;
use ferrozyme_llvm::{Place, Value};

/// Paths of functions (as demangled) that stay outside, and through which nothing goes that carries a derivative. A path stands for everything below it.
///
/// Nothing here may run code that it is given: a closure passed to a function of this list would lose its derivative without a word. Formatting does, and is looked at (`frontend/rust/formatting.rs`).
const OPAQUE_PATHS: &[&str] = &[
    "alloc::alloc::handle_alloc_error",
    "alloc::fmt",
    "alloc::raw_vec::capacity_overflow",
    "alloc::raw_vec::handle_error",
    "core::cell::panic_already_borrowed",
    "core::cell::panic_already_mutably_borrowed",
    "core::fmt",
    "core::num::flt2dec",
    "core::num::fmt",
    "core::option::expect_failed",
    "core::option::unwrap_failed",
    "core::panicking",
    "core::result::unwrap_failed",
    "core::slice::index::slice_end_index_len_fail",
    "core::slice::index::slice_index_fail",
    "core::slice::index::slice_index_order_fail",
    "core::slice::index::slice_start_index_len_fail",
    "core::str::slice_error_fail",
    "parking_lot::raw_mutex",
    "parking_lot::raw_rwlock",
    "parking_lot_core",
    "std::alloc::rust_oom",
    "std::io::stdio",
    "std::panicking::begin_panic",
    "std::panicking::panic_count",
    "std::panicking::rust_panic_with_hook",
];

/// Functions below those paths that only put addresses together, and are looked into.
const TRANSPARENT_PATHS: &[&str] = &[
    "core::fmt::rt::Argument",
    "core::fmt::rt::<impl core::fmt::Arguments>",
    "core::fmt::Arguments",
];

/// Functions that show what they are given, from which parameter on; what stands before is where the text goes.
const SHOWING: &[(&str, usize)] = &[
    ("std::io::stdio::_print", 0),
    ("std::io::stdio::_eprint", 0),
    ("alloc::fmt::format::format_inner", 1),
    ("core::fmt::write", 1),
    ("<core::fmt::Formatter>::write_fmt", 1),
];

/// What the name of a function contains through which users say that no derivatives go.
pub(crate) const INACTIVE_NAME: &str = "__ferrozyme_inactive";

/// What the name contains, further, if such a function writes to no memory that others look at.
const READING: &str = "__ferrozyme_inactive_reading";

/// What the symbols of functions of C++'s library start with through which nothing goes that carries a derivative: output, text, clocks, and the choice of sizes of hash tables.
const INACTIVE_OF_CPP: &[&str] = &[
    "_ZNKSo",
    "_ZNKSs",
    "_ZNKSt5ctype",
    "_ZNKSt6locale",
    "_ZNKSt7__cxx1112basic_string",
    "_ZNKSt7__cxx1118basic_stringstream",
    "_ZNKSt7__cxx1119basic_ostringstream",
    "_ZNKSt8__detail20_Prime_rehash_policy",
    "_ZNKSt8ios_base",
    "_ZNKSt9basic_ios",
    "_ZNSaIc",
    "_ZNSo",
    "_ZNSs",
    "_ZNSt11logic_error",
    "_ZNSt13basic_ostream",
    "_ZNSt13runtime_error",
    "_ZNSt14basic_ofstream",
    "_ZNSt15basic_streambuf",
    "_ZNSt5ctype",
    "_ZNSt6chrono3_V212system_clock3now",
    "_ZNSt6chrono3_V212steady_clock3now",
    "_ZNSt6locale",
    "_ZNSt7__cxx1112basic_string",
    "_ZNSt7__cxx1115basic_stringbuf",
    "_ZNSt7__cxx1118basic_stringstream",
    "_ZNSt7__cxx1119basic_ostringstream",
    "_ZNSt7__cxx119to_string",
    "_ZNSt8__detail20_Prime_rehash_policy",
    "_ZNSt8ios_base",
    "_ZNSt9basic_ios",
    "_ZNSt9exception",
    "_ZSt11_Hash_bytes",
    "_ZSt16__ostream_insert",
    "_ZSt4endl",
    "_ZSt5flush",
    "_ZStls",
    "__cxa_",
];

/// Global objects of C++'s library through which nothing goes that carries a derivative.
const INACTIVE_GLOBALS: &[&str] = &["_ZSt4cout", "_ZSt4cerr", "_ZSt4clog"];

/// Whether nothing in a global variable carries a derivative.
pub(crate) fn is_inactive_global(name: &str) -> bool {
    INACTIVE_GLOBALS.contains(&name)
}

/// Whether a function of C++'s library only shows or describes values. Those that call what they are given are not among them.
pub(crate) fn is_inactive_of_cpp(name: &str) -> bool {
    INACTIVE_OF_CPP.iter().any(|start| name.starts_with(start)) || name == DYNAMIC_CAST
}

/// Whether a function stays outside: by what its declaration says, or by its name.
pub(crate) fn is_opaque(name: &str, symbol: Value<'_>) -> bool {
    if symbol.is_function() && symbol.has_attribute(Place::Function, "noreturn") {
        return true;
    }
    if name.contains("___rust_") || name.starts_with("__rust_") || name == "rust_eh_personality" {
        return true;
    }
    if name.contains(INACTIVE_NAME) || is_inactive_of_cpp(name) {
        return true;
    }
    is_opaque_path(&demangle(name))
}

/// Whether nothing that goes through a function outside carries a derivative: it only shows values, or fails.
pub(crate) fn is_inactive(name: &str) -> bool {
    is_opaque_path(&demangle(name))
        || name.contains("___rust_")
        || name.starts_with("__rust_")
        || name.contains(INACTIVE_NAME)
        || is_inactive_of_cpp(name)
}

/// Whether the user says of a function that no derivatives go through it, and it may write to memory.
pub(crate) fn may_write_constants(name: &str) -> bool {
    name.contains(INACTIVE_NAME) && !name.contains(READING)
}

/// The path of a symbol, for people.
pub(crate) fn demangle(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

fn is_opaque_path(path: &str) -> bool {
    // `<core::fmt::Formatter>::pad` and `<f64 as core::fmt::Display>::fmt` are below `core::fmt` as well.
    let subject = path.trim_start_matches('<');
    let starts = |path: &str| OPAQUE_PATHS.iter().any(|opaque| is_below(path, opaque));
    if starts(subject) {
        return !TRANSPARENT_PATHS.iter().any(|path| is_below(subject, path));
    }
    implements(path).is_some_and(|(subject, interface)| starts(interface) && is_of_std(subject))
}

fn is_below(path: &str, other: &str) -> bool {
    path.strip_prefix(other)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// From which parameter on a function only shows what it is given.
pub(crate) fn shown_from(name: &str) -> Option<usize> {
    let path = demangle(name);
    let (_, first) = SHOWING.iter().find(|(known, _)| *known == path)?;
    Some(*first)
}

/// Whether a function is one of the standard library's for formatting. Where it is generic, the program has its own of it.
pub(crate) fn is_machinery_of_formatting(name: &str) -> bool {
    let path = demangle(name);
    let subject = path.trim_start_matches('<');
    ["core::fmt::", "alloc::fmt::"]
        .iter()
        .any(|start| subject.starts_with(start))
}

/// Whether a function of the program implements part of formatting, and may be run by it.
pub(crate) fn is_formatting(name: &str) -> bool {
    const INTERFACES: [&str; 2] = ["core::fmt::", "std::io::Write"];
    implements(&demangle(name)).is_some_and(|(subject, interface)| {
        INTERFACES.iter().any(|start| interface.starts_with(start)) && !is_of_std(subject)
    })
}

/// The type, and what stands behind it, of a path like `<Type as interface>::method`.
fn implements(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix('<')?.split_once(" as ")
}

/// Whether a type is one of the standard library, and so is everything in it.
fn is_of_std(ty: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    ty.split(|c| !is_part(c))
        .filter_map(|path| path.split_once("::"))
        .all(|(root, _)| matches!(root, "core" | "alloc" | "std" | ""))
}

#[cfg(test)]
mod tests {
    use super::{is_inactive_of_cpp, is_opaque_path};

    #[test]
    fn text_of_cpp_stays_outside_and_containers_do_not() {
        for name in [
            "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm",
            "_ZNSo9_M_insertIdEERSoT_",
            "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
        ] {
            assert!(is_inactive_of_cpp(name), "{name}");
        }
        for name in [
            "_ZNSt7__cxx114listIdSaIdEE9push_backERKd",
            "_ZNSt6vectorIdSaIdEE9push_backERKd",
            "_ZNSt8__detail15_List_node_base7_M_hookEPS0_",
        ] {
            assert!(!is_inactive_of_cpp(name), "{name}");
        }
    }

    #[test]
    fn formatting_and_panics_stay_outside() {
        for path in [
            "core::panicking::panic_fmt",
            "<core::fmt::Formatter>::pad",
            "<f64 as core::fmt::Display>::fmt",
            "std::io::stdio::_print",
            "<std::io::stdio::Stdout as std::io::Write>::write_fmt",
            "<alloc::vec::Vec<f64> as core::fmt::Debug>::fmt",
        ] {
            assert!(is_opaque_path(path), "{path}");
        }
        for path in [
            "alloc::raw_vec::RawVecInner::grow_one",
            "core::slice::sort::stable::driftsort_main",
            "user::core::fmt",
            "core::fmtx",
            "core::fmt::rt::Argument::new_display",
            "<core::fmt::rt::Argument>::new_debug::<f64>",
            "<core::fmt::Arguments>::new::<7, 1>",
            "<user::Matrix as core::fmt::Display>::fmt",
            "<&user::Matrix as core::fmt::Debug>::fmt",
            "<alloc::vec::Vec<user::Matrix> as core::fmt::Debug>::fmt",
            "std::sync::poison::mutex::Mutex<T>::lock",
            "std::thread::local::LocalKey<T>::with",
            "std::panicking::catch_unwind",
            "<core::str::iter::Chars as core::iter::traits::iterator::Iterator>::fold",
        ] {
            assert!(!is_opaque_path(path), "{path}");
        }
    }
}
