//! What is known of library functions by their names: one table ([`rows`]), and one lookup.
//!
//! ```
//! use ferrozyme_library::{Known, is, is_outside};
//!
//! assert!(is("sprintf", &Known::WritesText));
//! assert!(is_outside("_ZNSo9_M_insertIdEERSoT_"));
//! ```
//!
//! A row gives names and what all of them are ([`Known`]). What more than one row says of a function holds together. Whether a function of that name is the library's (it
//! has no body, its types fit) is for the caller to find out, who sees it. Mathematical functions have a table of their own in the Loop IR, which [`mathematical`] looks into.
//!
//! `docs/library.md` is made from the table.

mod allocation;
mod known;
mod lookup;
mod mathematics;
mod paths;
mod pattern;
mod rows;

pub use allocation::{AllocationFunction, AllocationRole};
pub use known::{Bytes, Input, Known, Variant};
pub use lookup::{find, functions, is, is_outside, is_run_by_formatting};
pub use mathematics::{base_name, mathematical, variant, variant_of_base};
pub use paths::{demangle, is_of_standard_library};
