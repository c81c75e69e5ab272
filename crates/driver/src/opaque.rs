//! Which functions stay outside: their bodies are of no interest to a derivative.
//!
//! Formatting, printing, panics and the machinery of the runtime neither compute with the user's numbers in a way that has a
//! derivative nor are they small. They are called as they are; if a number that carries a derivative comes *out* of one, the differentiator refuses.

use ferrozyme_llvm::{Place, Value};

/// Paths of functions (as demangled) that stay outside, and through which nothing goes that carries a derivative. A path stands for everything below it.
///
/// Nothing here may run code that it is given: a closure passed to a function of this list would lose its derivative without a word.
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
    "std::alloc::rust_oom",
    "std::io::stdio",
    "std::panicking::begin_panic",
    "std::panicking::panic_count",
    "std::panicking::rust_panic_with_hook",
];

/// Functions of C++'s streams, by how their symbols start. Their bodies are in headers in part, and lead through tables of functions that are nobody's business here.
const STREAMS: &[&str] = &[
    "_ZNKSt5ctype",
    "_ZNKSt9basic_ios",
    "_ZNSi",
    "_ZNSo",
    "_ZNSt13basic_ostream",
    "_ZNSt8ios_base",
    "_ZNSt9basic_ios",
    "_ZSt16__ostream_insert",
    "_ZSt4endl",
    "_ZSt5flush",
    "_ZStlsI",
];

/// What the name of a function contains through which users say that no derivatives go.
const INACTIVE_NAME: &str = "__ferrozyme_inactive";

/// Whether a function stays outside: by what its declaration says, or by its name.
pub(crate) fn is_opaque(name: &str, symbol: Value<'_>) -> bool {
    if symbol.is_function() && symbol.has_attribute(Place::Function, "noreturn") {
        return true;
    }
    if name.contains("___rust_") || name.starts_with("__rust_") || name == "rust_eh_personality" {
        return true;
    }
    if name.contains(INACTIVE_NAME) || is_stream(name) {
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
        || is_stream(name)
}

/// Whether a function belongs to C++'s streams.
pub(crate) fn is_stream(name: &str) -> bool {
    STREAMS.iter().any(|start| name.starts_with(start))
}

/// The path of a symbol, for people.
pub(crate) fn demangle(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

fn is_opaque_path(path: &str) -> bool {
    // `<core::fmt::Formatter>::pad` and `<f64 as core::fmt::Display>::fmt` are below `core::fmt` as well.
    let subject = path.trim_start_matches('<');
    let starts = |path: &str| {
        OPAQUE_PATHS.iter().any(|opaque| {
            path.strip_prefix(opaque)
                .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
        })
    };
    if starts(subject) {
        return true;
    }
    path.starts_with('<')
        && path
            .split_once(" as ")
            .is_some_and(|(_, interface)| starts(interface))
}

#[cfg(test)]
mod tests {
    use super::is_opaque_path;

    #[test]
    fn formatting_and_panics_stay_outside() {
        for path in [
            "core::panicking::panic_fmt",
            "<core::fmt::Formatter>::pad",
            "<f64 as core::fmt::Display>::fmt",
            "std::io::stdio::_print",
            "<std::io::stdio::Stdout as std::io::Write>::write_fmt",
        ] {
            assert!(is_opaque_path(path), "{path}");
        }
        for path in [
            "alloc::raw_vec::RawVecInner::grow_one",
            "core::slice::sort::stable::driftsort_main",
            "user::core::fmt",
            "core::fmtx",
            "std::sync::poison::mutex::Mutex<T>::lock",
            "std::thread::local::LocalKey<T>::with",
            "std::panicking::catch_unwind",
            "<core::str::iter::Chars as core::iter::traits::iterator::Iterator>::fold",
        ] {
            assert!(!is_opaque_path(path), "{path}");
        }
    }
}
