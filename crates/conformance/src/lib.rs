//! The tests that every backend of tensor graphs must pass: what it computes is what the graph's interpreter computes.
//!
//! A backend's crate has one file of tests with [`backend_tests!`], which makes a test of each function here.
//!
//! ```ignore
//! // crates/mine/tests/conformance.rs
//! ferrozyme_conformance::backend_tests!(ferrozyme_mine::Mine);
//! ```
//!
//! | file | what is tested |
//! |---|---|
//! | `agreement.rs` | runs a graph on a backend and in the interpreter, and compares all that is received and all parameters |
//! | `graphs.rs` | random graphs with their gradients, types of elements, control |
//! | `kernels.rs` | sizes that fill several work-groups: contractions, reductions, softmax, layer normalisation, gathering and scattering |
//! | `host.rs` | feeders and receivers, and what happens when they err |
//! | `functions.rs` | Rust functions as operations, and what happens when they panic |

mod agreement;
pub mod functions;
pub mod graphs;
pub mod host;
pub mod kernels;

pub use agreement::check_agreement;

use ferrozyme_backend::{Backend, Error, Program, compile_with};
use ferrozyme_graph::Graph;

/// Compiles for a backend, or says on the standard error that a test is left out because the backend cannot be used here.
pub fn compile_or_skip(backend: &dyn Backend, graph: &Graph) -> Option<Program> {
    match compile_with(backend, graph) {
        Ok(program) => Some(program),
        Err(error @ Error::Missing { .. }) => {
            eprintln!("left out: {error}");
            None
        }
        Err(error) => panic!("the graph compiles, but: {error}\n{graph}"),
    }
}

/// Gives all tests to another macro, behind what it takes first.
#[macro_export]
macro_rules! with_all_tests {
    ($then:ident! { $($first:tt)* }) => {
        $crate::$then! { $($first)*
            graphs::random_graphs_give_what_the_interpreter_gives
            graphs::all_kinds_of_elements_travel
            graphs::each_precision_rounds_as_the_interpreter
            graphs::exponentials_are_right_to_both_ends
            graphs::loops_and_branches_run
            graphs::a_loop_may_run_no_times
            kernels::contractions_of_many_shapes
            kernels::contractions_with_batches_and_several_indices
            kernels::large_products_in_batches_over_two_axes
            kernels::long_columns_are_summed
            kernels::reductions_over_each_axis
            kernels::items_run_nests_of_different_lengths
            kernels::softmax_with_its_gradient
            kernels::layer_normalisation_with_its_gradient
            kernels::rows_are_gathered_and_scattered
            kernels::updates_are_in_place
            host::feeders_run_ahead_and_nothing_is_lost_between_runs
            host::errors_of_feeders_end_the_run_with_a_message
            host::errors_of_receivers_end_the_run_with_a_message
            functions::functions_are_called_with_their_derivatives
            functions::a_function_in_a_loop_is_called_each_time
            functions::a_panic_ends_the_run_where_it_is
            functions::a_function_that_is_not_known_is_named
        }
    };
}

/// Makes a test of each function of this crate, for the backend that an expression gives.
#[macro_export]
macro_rules! backend_tests {
    ($backend:expr) => {
        $crate::with_all_tests! { backend_tests! { $backend; } }
    };
    ($backend:expr; $($module:ident::$test:ident)*) => {
        $(
            #[test]
            fn $test() {
                $crate::$module::$test(&$backend);
            }
        )*
    };
}

/// A list of tests with their names.
#[doc(hidden)]
#[macro_export]
macro_rules! table_of_tests {
    ($($module:ident::$test:ident)*) => {
        &[$((stringify!($test), $crate::$module::$test as Test),)*]
    };
}

/// A test of a backend, which panics if it fails.
pub type Test = fn(&dyn Backend);

/// All tests with their names, for programs that run them where there is no Rust toolchain.
pub const ALL: &[(&str, Test)] = with_all_tests! { table_of_tests! {} };
