//! Opaque functions: their bodies are not differentiated.
//!
//! Formatting, printing, panics and the machinery of the runtime neither compute with the user's numbers in a way that has a
//! derivative nor are they small. They are called as they are; if a number that carries a derivative comes *out* of one, the differentiator refuses.

use ferrozyme_library::is_outside;
use ferrozyme_llvm::{Place, Value};

/// What the name of a function contains through which users say that no derivatives go.
pub(crate) const INACTIVE_NAME: &str = "__ferrozyme_inactive";

/// What the name contains, further, if such a function writes to no memory that others look at.
const READING: &str = "__ferrozyme_inactive_reading";

/// Whether a function stays outside: by what its declaration says, or by its name.
pub(crate) fn is_opaque(name: &str, symbol: Value<'_>) -> bool {
    let ends = || symbol.is_function() && symbol.has_attribute(Place::Function, "noreturn");
    ends() || is_inactive(name)
}

/// Whether nothing that goes through a function outside carries a derivative: it only shows values, or fails.
pub(crate) fn is_inactive(name: &str) -> bool {
    name.contains(INACTIVE_NAME) || is_outside(name)
}

/// Whether the user says of a function that no derivatives go through it, and it may write to memory.
pub(crate) fn may_write_constants(name: &str) -> bool {
    name.contains(INACTIVE_NAME) && !name.contains(READING)
}
