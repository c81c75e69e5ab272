//! Loop nests written in different ways. The comment above each says what becomes of it in its derivative (see `ferrozyme_nests::expectations`).
//!
//! `crates/cli/tests/driver/nests.rs` compares that with the derivatives, and runs the tests.

mod iterators;
mod libraries;
mod loops;
mod near_misses;
mod shared_loops;

/// A derivative and a test for each nest: of its value and its gradient, with arrays of other lengths than those of plain products if it says so.
macro_rules! tests {
    ($($nest:ident<$number:ty>$(($lengths:expr))?),* $(,)?) => {
        $(
            #[cfg(test)]
            mod $nest {
                #[ferrozyme::autodiff_reverse(
                    gradient, Duplicated, Duplicated, Duplicated, Const, Const, Const
                )]
                fn $nest(
                    a: &[$number],
                    b: &[$number],
                    c: &mut [$number],
                    m: usize,
                    k: usize,
                    n: usize,
                ) {
                    super::$nest(a, b, c, m, k, n);
                }

                #[test]
                fn value_and_gradient() {
                    let lengths = crate::tests!(@lengths $($lengths)?);
                    ferrozyme_nests::nest::check($nest, gradient, lengths);
                }
            }
        )*
    };
    (@lengths) => {
        |m, k, n| [m * k, k * n, m * n]
    };
    (@lengths $lengths:expr) => {
        $lengths
    };
}
use tests;
