//! Checks the derivatives of all programs.

mod check;
mod programs;

use check::Program;
use ferrozyme::{grad, jvp};

macro_rules! check {
    ($name:ident, $size:expr, $exact:expr) => {
        Program {
            name: stringify!($name),
            function: programs::$name,
            gradient: |x| grad(programs::$name, x),
            tangent: |x, direction| jvp(programs::$name, x, direction),
            size: $size,
            exact: $exact,
        }
        .check();
    };
}

fn main() {
    check!(sum_of_squares, 50_000, true);
    check!(dot_product, 20_000, true);
    check!(log_sum_exp, 20_000, true);
    check!(two_sums, 50_000, true);
    check!(heat_by_turns, 20_000, true);
    check!(blurred, 10_000, true);
    check!(windows, 20_000, true);
    check!(histogram, 20_000, false);
    check!(from_a_table, 20_000, false);
    check!(gathered, 20_000, false);
    check!(sparse_product, 20_000, false);
    check!(energy_of_particles, 600, false);
    check!(step_of_particles, 600, false);
    check!(shared_weights, 20_016, false);
    check!(nested, 300, true);
    check!(layer, 64 * 64 + 64 * 40, false);
    check!(softmax_of_rows, 20_000, true);
    check!(paths, 2_000, true);
    check!(collected, 20_000, true);
    check!(filtered, 20_000, true);
    println!("all are right");
}
