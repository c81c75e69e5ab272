//! How cleanups are written in the Loop IR, which the importer makes of landing pads and the exporter makes landing pads of again.
//!
//! A *cleanup* is a function with an attribute of ours. A call of it opens what is to be done if anything unwinds, a call of [`CLEANUP_END`] closes it.

use ferrozyme_llvm::{Place, Value};

/// The attribute of functions that are cleanups.
pub const CLEANUP: &str = "ferrozyme-cleanup";

/// The function that ends what a cleanup is for.
pub const CLEANUP_END: &str = "__ferrozyme_cleanup_end";

/// Whether a function is a cleanup.
pub fn is_cleanup(function: Value<'_>) -> bool {
    function.is_function() && function.text_attribute(Place::Function, CLEANUP).is_some()
}
