//! The one lookup: what the table says of a function.

use crate::known::Known;
use crate::paths::{demangle, implements, is_of_std};
use crate::pattern::{Name, is_path, matches_path};
use crate::rows::ROWS;
use std::collections::HashMap;
use std::sync::LazyLock;

/// The table, arranged for looking up.
struct Index {
    /// What is known of single symbols.
    symbols: HashMap<&'static str, &'static [Known]>,
    /// Everything else.
    patterns: Vec<(&'static str, &'static [Known])>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let is_pattern = |(name, _): &(&str, _)| is_path(name) || name.contains('*');
    Index {
        symbols: rows().filter(|row| !is_pattern(row)).collect(),
        patterns: rows().filter(is_pattern).collect(),
    }
});

/// All names and patterns, with what is known.
pub(crate) fn rows() -> impl Iterator<Item = (&'static str, &'static [Known])> {
    let names = |&(names, known): &(&'static [&'static str], &'static [Known])| {
        names.iter().map(move |&name| (name, known))
    };
    ROWS.iter().flat_map(names)
}

/// What is wanted of what is known of a function.
pub fn find<T>(symbol: &str, wanted: impl Fn(&'static Known) -> Option<T>) -> Option<T> {
    find_by(&Name::new(symbol), wanted)
}

fn find_by<T>(name: &Name<'_>, wanted: impl Fn(&'static Known) -> Option<T>) -> Option<T> {
    let known = INDEX.symbols.get(name.symbol);
    let known = known.and_then(|known| known.iter().find_map(&wanted));
    known.or_else(|| {
        INDEX.patterns.iter().find_map(|(pattern, known)| {
            // Most rows are about something else, and paths take time to be made.
            let found = known.iter().find_map(&wanted)?;
            name.matches(pattern).then_some(found)
        })
    })
}

/// Whether this is known of a function.
pub fn is(symbol: &str, wanted: &Known) -> bool {
    is_by(&Name::new(symbol), wanted)
}

fn is_by(name: &Name<'_>, wanted: &Known) -> bool {
    find_by(name, |known| (known == wanted).then_some(())).is_some()
}

/// Whether nothing that goes through a function carries a derivative, and its body is of no interest.
pub fn is_outside(symbol: &str) -> bool {
    let name = Name::new(symbol);
    if is_by(&name, &Known::Outside) {
        return !is_by(&name, &Known::LookedInto);
    }
    // Of types of the standard library; `<f64 as core::fmt::Display>::fmt` is part of formatting.
    implementing(name.path(), &Known::Outside).is_some_and(is_of_std)
}

/// Whether a function of the program implements part of formatting, and may be run by it.
pub fn is_run_by_formatting(symbol: &str) -> bool {
    let path = demangle(symbol);
    implementing(&path, &Known::Formatting).is_some_and(|subject| !is_of_std(subject))
}

/// The type for which a path is part of an interface of which this is known.
fn implementing<'p>(path: &'p str, wanted: &Known) -> Option<&'p str> {
    let (subject, interface) = implements(path)?;
    let fits = |(pattern, known): &(&str, &[Known])| {
        known.contains(wanted) && is_path(pattern) && matches_path(pattern, interface)
    };
    INDEX.patterns.iter().any(fits).then_some(subject)
}

/// All functions of which something is known, by the names and patterns of the table.
pub fn functions<T>(
    wanted: impl Fn(&'static Known) -> Option<T>,
) -> impl Iterator<Item = (&'static str, T)> {
    rows().filter_map(move |(name, known)| Some((name, known.iter().find_map(&wanted)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique() {
        let mut seen = HashSet::new();
        for (name, _) in rows() {
            assert!(seen.insert(name), "{name} stands in the table twice");
        }
    }

    /// Derivatives go through what a function calls that it was given.
    #[test]
    fn machinery_that_calls_what_it_is_given_does_not_stay_outside() {
        for name in [
            "_RNvCsfLfy6EI15iL_7___rustc12___rust_alloc",
            "_RNvCsfLfy6EI15iL_7___rustc18___rust_start_panic",
            "_RNvCsfLfy6EI15iL_7___rustc35___rust_no_alloc_shim_is_unstable_v2",
        ] {
            assert!(is_outside(name), "{name}");
        }
        for name in [
            "__rust_try",
            "_RNvCsfLfy6EI15iL_7___rustc13___rust_unseen",
            "_RNvNvNvCs1_7program5CACHE27___rust_std_internal_init_fn",
            "_RINvNtNtCs7i2FqJ8Eoo4_3std3sys9backtrace28___rust_begin_short_backtraceNvCs1_1a4mainuEB1_",
        ] {
            assert!(!is_outside(name), "{name}");
        }
    }

    #[test]
    fn text_of_cpp_stays_outside_and_containers_do_not() {
        for name in [
            "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm",
            "_ZNSo9_M_insertIdEERSoT_",
            "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
        ] {
            assert!(is_outside(name), "{name}");
        }
        for name in [
            "_ZNSt7__cxx114listIdSaIdEE9push_backERKd",
            "_ZNSt6vectorIdSaIdEE9push_backERKd",
            "_ZNSt8__detail15_List_node_base7_M_hookEPS0_",
        ] {
            assert!(!is_outside(name), "{name}");
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
            assert!(is_outside(path), "{path}");
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
            assert!(!is_outside(path), "{path}");
        }
    }
}
