//! Every kind of derivative compiles in every place: the functions whose signatures are compared with those of rustc's own macros.

#![cfg(ferrozyme)]
#![allow(
    dead_code,
    unused,
    clippy::all,
    missing_docs,
    unreachable_pub,
    unsafe_code
)]

use ferrozyme::*;

include!("../../macros/tests/data/signatures.rs");
