//! Tests of the analysis by what it prints.

mod arrays;
mod calls;
mod copies;
mod limits;
mod structures;
mod words;

use super::{Bytes, Class, Kind, Known, Objects, ObjectsCache};
use expect_test::{Expect, expect};
use ferrozyme_ir::{Module, Scalar, parse_module};

fn module(text: &str) -> Module {
    let module = parse_module(text).unwrap_or_else(|error| panic!("{error}"));
    if let Err(error) = ferrozyme_ir::verify_module(&module) {
        panic!("{error:?}");
    }
    module
}

/// Compares what is found for the last function of a module.
fn check(text: &str, expect: Expect) {
    let module = module(text);
    let function = module
        .functions
        .keys()
        .next_back()
        .expect("there is a function");
    let objects = Objects::analyse(&module, function, &mut ObjectsCache::new(), None);
    expect.assert_eq(&objects.print(&module));
}
