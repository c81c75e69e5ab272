//! Finds the function that a user passed to `grad` and its relatives.
//!
//! Their requests are in generic functions of the `ferrozyme` crate, so the name and location of a request are the library's. The user's function is the first function outside the libraries that the primal calls: a
//! closure or a named function. Debug information names it, or the symbol if it was not inlined.

use crate::report::Location;
use crate::requests::Given;
use ferrozyme_library::{demangle, is_of_standard_library};
use ferrozyme_llvm::{Context, Value};
use std::collections::{HashSet, VecDeque};

/// How many functions are looked into: a few of the libraries stand between the primal and the user's function.
const MAX_FUNCTIONS: usize = 32;

/// Finds the user's function behind a primal of the function interface.
pub(crate) fn find_given<'c>(context: &'c Context, primal: Value<'c>) -> Option<Given> {
    let mut work = VecDeque::from([primal]);
    let mut seen = HashSet::from([primal]);
    while let Some(function) = work.pop_front() {
        let name = function.name();
        if is_of_user(&name) {
            let place = function.function_place(context);
            return Some(Given {
                name: demangle(&name),
                location: place.map(Location::from),
            });
        }
        for instruction in function.instructions() {
            // From the outside inwards.
            let places = instruction.source_places(context);
            let own = places
                .into_iter()
                .rev()
                .find(|place| is_of_user(&place.linkage_name));
            if let Some(place) = own {
                return Some(Given {
                    name: demangle(&place.linkage_name),
                    location: Some(place.into()),
                });
            }
            if instruction.is_call()
                && let Some(callee) = instruction.called_function()
                && seen.len() < MAX_FUNCTIONS
                && seen.insert(callee)
            {
                work.push_back(callee);
            }
        }
    }
    None
}

/// Whether a symbol is of the program, not of the libraries that stand between it and a derivative.
fn is_of_user(symbol: &str) -> bool {
    if !symbol.starts_with("_ZN") && !symbol.starts_with("_R") {
        return false;
    }
    // Also what the interface asks of types of the program, or of `f64`.
    !is_of_standard_library(symbol) && !demangle(symbol).contains("ferrozyme::")
}
