//! The form of cleanups in the Loop IR. The importer turns landing pads into cleanups, and the exporter turns cleanups into landing pads.
//!
//! A *cleanup* is a function with an attribute of ours. A call of it opens a scope in which it runs if anything unwinds; a call of [`CLEANUP_END`] closes the scope.

use ferrozyme_llvm::{Place, Value};

/// The attribute of functions that are cleanups.
pub const CLEANUP: &str = "ferrozyme-cleanup";

/// The function that ends what a cleanup is for.
pub const CLEANUP_END: &str = "__ferrozyme_cleanup_end";

/// Whether a function is a cleanup.
pub fn is_cleanup(function: Value<'_>) -> bool {
    function.is_function() && function.text_attribute(Place::Function, CLEANUP).is_some()
}
