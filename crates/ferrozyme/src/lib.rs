//! Derivatives of ordinary Rust functions, compiled ahead of time, on the stable toolchain.
//!
//! Write a function as you would anyway: loops, structs, vectors, iterators, recursion, other crates. Ferrozyme differentiates it
//! after optimisation, when the program is linked, and compiles the derivative to machine code.
//!
//! ```
//! use ferrozyme::autodiff_reverse;
//!
//! #[autodiff_reverse(d_loss, Duplicated, Const, Active)]
//! fn loss(weights: &[f64], inputs: &[f64]) -> f64 {
//!     let output: f64 = weights.iter().zip(inputs).map(|(w, x)| w * x).sum();
//!     (output.tanh() - 1.0).powi(2)
//! }
//!
//! let weights = [0.1, 0.2, 0.3];
//! let mut gradient = [0.0; 3];
//! let value = d_loss(&weights, &mut gradient, &[1.0, 2.0, 3.0], 1.0);
//! assert_eq!(value, loss(&weights, &[1.0, 2.0, 3.0]));
//! assert!(gradient.iter().all(|g| *g < 0.0));
//! ```
//!
//! # Getting started
//!
//! A driver makes derivatives; it takes the place of the linker. Install it once, add this crate to your dependencies, and
//! write `cargo ferrozyme` where you would write `cargo`:
//!
//! ```sh
//! cargo ferrozyme run
//! cargo ferrozyme test
//! cargo ferrozyme build --release
//! ```
//!
//! Nothing else is needed: no nightly toolchain, no profile settings, no LLVM. A plain `cargo check` works, so editors do; a plain `cargo
//! build` stops with a message that names the driver.
//!
//! # Two interfaces
//!
//! **Functions** that take functions, in the style of JAX: no attribute, any closure.
//!
//! ```
//! use ferrozyme::{grad, hessian, jvp};
//!
//! let rosenbrock = |x: &[f64]| (1.0 - x[0]).powi(2) + 100.0 * (x[1] - x[0] * x[0]).powi(2);
//! assert_eq!(grad(rosenbrock, &[1.0, 1.0]), [0.0, 0.0]);
//! assert_eq!(hessian(rosenbrock, &[1.0, 1.0]), [[802.0, -400.0], [-400.0, 200.0]]);
//! assert_eq!(jvp(rosenbrock, &[0.0, 0.0], &[1.0, 0.0]), (1.0, -2.0));
//! ```
//!
//! | want | function | without allocation |
//! |---|---|---|
//! | gradient | [`grad`], [`value_and_grad`] | [`grad_into`], [`value_and_grad_into`] |
//! | derivative in a direction (forward mode) | [`jvp`] | [`jvp_into`] |
//! | gradient of weighted results (reverse mode) | [`vjp`] | [`vjp_into`] |
//! | Jacobian | [`jacobian`], [`jacobian_forward`], [`jacobian_reverse`] | [`jacobian_forward_into`], [`jacobian_reverse_into`] |
//! | sparse Jacobian, of a function that writes its results | [`sparse_jacobian`] (by colours, for a [`Pattern`]), [`sparse_jacobian_of_blocks`] (block by block) | [`SparseMatrix::push_blocks`] |
//! | Hessian times vector | [`hvp`] | [`hvp_into`] |
//! | Hessian | [`hessian`] | [`hessian_into`] |
//!
//! **Attributes**, those of Rust's own unstable `std::autodiff`, so that code moves between the two unchanged:
//! [`autodiff_forward`](macro@autodiff_forward) and [`autodiff_reverse`](macro@autodiff_reverse) apply to a function, method or function of a trait, and add
//! its derivative as a function beside it. They are more general than closures: any argument types, an activity for each argument, several derivatives in one call.
//!
//! # Shadows
//!
//! The derivative of a value behind a reference is stored in a *shadow*: a value of the same type and shape. Gradients are added to its contents.
//! [`shadow_of`] makes one of zeros, and derivatives check shapes at every call: a vector in a shadow that is too short is a panic that names it,
//! not undefined behaviour. [`#[derive(Differentiable)]`](macro@Differentiable) extends both to your own types.
//! In generic functions, add `Differentiable` to the bounds of the element types of slices (`T: Real + Differentiable`). Otherwise the layout of the slices is not known
//! when the derivative is made, and it may save far more than it needs.
//!
//! # Custom derivatives
//!
//! [`custom_derivative`](macro@custom_derivative) gives a function a derivative of your own, [`inactive`](macro@inactive) declares that a function has none, and
//! [`stop_gradient`] does the same for a value.

/// Calls a macro with all tuples that have our traits: the types of their fields, with the numbers of these.
macro_rules! for_each_tuple {
    ($macro:ident) => {
        $macro! {
            ()
            (A 0)
            (A 0, B 1)
            (A 0, B 1, C 2)
            (A 0, B 1, C 2, D 3)
            (A 0, B 1, C 2, D 3, E 4)
            (A 0, B 1, C 2, D 3, E 4, F 5)
            (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
            (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
            (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8)
            (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9)
            (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10)
            (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11)
        }
    };
}
use for_each_tuple;

mod active;
mod functions;
mod interface;
mod shadow;

// The macros refer to this crate by its external name, also in its own examples and tests.
extern crate self as ferrozyme;

pub use active::{Active, stop_gradient};
pub use functions::{
    Float, Input, Output, Pattern, SparseMatrix, grad, grad_into, hessian, hessian_into, hvp,
    hvp_into, jacobian, jacobian_forward, jacobian_forward_into, jacobian_reverse,
    jacobian_reverse_into, jvp, jvp_into, sparse_jacobian, sparse_jacobian_of_blocks,
    value_and_grad, value_and_grad_into, vjp, vjp_into,
};
pub use interface::Differentiable;
pub use shadow::{Shadow, shadow_of};

/// Makes the forward-mode derivative of a function: directional derivatives, beside the function's results.
///
/// `#[autodiff_forward(NAME, WIDTH, ACTIVITY, …)]` adds a function `NAME` after the annotated one. There is an activity for each argument (`self`
/// included), and one for the result unless that is `()`. `WIDTH` is the number of directions; the default is 1.
///
/// | activity | of | means |
/// |---|---|---|
/// | `Const` | arguments, the result | no derivative |
/// | `Dual` | arguments | followed by its tangent, of the same type (`WIDTH` of them): `x` by `bx_0`, `bx_1`, … |
/// | `DualOnly` | arguments | as `Dual`; the primal value is not wanted afterwards. Makes the derivative an `unsafe fn` |
/// | `Dualv` | slices | followed by one tangent that is `WIDTH` times as long |
/// | `DualvOnly` | slices | as `Dualv`; the primal value is not wanted afterwards |
/// | `Dual` | the result | returned with its tangent: `(R, R)`, or `[R; WIDTH + 1]` for a larger width |
/// | `DualOnly` | the result | only its tangent is returned: `R`, or `[R; WIDTH]` |
///
/// Tangents of memory that the function writes are overwritten; tangents of memory that it only reads do not change.
///
/// ```
/// use ferrozyme::autodiff_forward;
///
/// #[autodiff_forward(d_area, Dual, Const, Dual)]
/// fn area(width: f64, height: f64) -> f64 {
///     width * height
/// }
///
/// // fn d_area(width: f64, bwidth_0: f64, height: f64) -> (f64, f64)
/// assert_eq!(d_area(2.0, 1.0, 5.0), (10.0, 5.0));
/// ```
///
/// All columns of a Jacobian at once, with a width:
///
/// ```
/// use ferrozyme::autodiff_forward;
///
/// #[autodiff_forward(columns, 2, Dual, Dual)]
/// fn polynomial(x: &[f64]) -> f64 {
///     x[0] * x[0] * x[1]
/// }
///
/// let [value, by_x, by_y] = columns(&[3.0, 4.0], &[1.0, 0.0], &[0.0, 1.0]);
/// assert_eq!((value, by_x, by_y), (36.0, 24.0, 9.0));
/// ```
///
/// Attributes may be stacked, and a derivative may be differentiated again: forward mode over reverse mode is the Hessian times a vector.
///
/// ```
/// use ferrozyme::{autodiff_forward, autodiff_reverse};
///
/// #[autodiff_reverse(d_cube, Duplicated, Active)]
/// fn cube(x: &f64) -> f64 {
///     x * x * x
/// }
///
/// #[autodiff_forward(second, Dual, Dual)]
/// fn first(x: &f64, gradient: &mut f64) {
///     d_cube(x, gradient, 1.0);
/// }
///
/// let (mut gradient, mut product) = (0.0, 0.0);
/// second(&2.0, &1.0, &mut gradient, &mut product);
/// assert_eq!((gradient, product), (12.0, 12.0));
/// ```
pub use ferrozyme_macros::autodiff_forward;

/// Makes the reverse-mode derivative of a function: gradients with respect to all its arguments at once.
///
/// `#[autodiff_reverse(NAME, WIDTH, ACTIVITY, …)]` adds a function `NAME` after the annotated one. There is an activity for each argument (`self`
/// included), and one for the result unless that is `()`. `WIDTH` is the number of gradients; the default is 1. With a larger width the function runs once for each gradient, and memory
/// behind `&mut` is restored in between (but its output is printed each time).
///
/// | activity | of | means |
/// |---|---|---|
/// | `Const` | arguments, the result | no derivative |
/// | `Active` | floats | its gradient is returned, after the result |
/// | `Duplicated` | references, pointers | followed by its shadow, which its gradient is added to: `x: &T` by `dx_0: &mut T` (`WIDTH` of them) |
/// | `DuplicatedOnly` | references, pointers | as `Duplicated`; the primal value is not wanted afterwards. Makes the derivative an `unsafe fn` |
/// | `Active` | a float result, or a tuple or struct of floats | returned; its seed `dret`, of the same type, is the last argument |
/// | `ActiveOnly` | such a result | as `Active`, but not returned |
///
/// Gradients are added to shadows, which are not set to zero first. If the function writes to a `Duplicated` argument, the shadow holds the seed, and is zero
/// afterwards. With a width, each gradient has its own shadows, so results behind `&mut` get several seeds; the seed `dret` of a returned
/// result is the same for all.
///
/// ```
/// use ferrozyme::autodiff_reverse;
///
/// #[autodiff_reverse(d_area, Active, Active, Active)]
/// fn area(width: f64, height: f64) -> f64 {
///     width * height
/// }
///
/// // fn d_area(width: f64, height: f64, dret: f64) -> (f64, f64, f64)
/// assert_eq!(d_area(2.0, 5.0, 1.0), (10.0, 5.0, 2.0));
/// ```
///
/// Results behind a reference, with their seed in the shadow:
///
/// ```
/// use ferrozyme::autodiff_reverse;
///
/// #[autodiff_reverse(d_square, Duplicated, Duplicated)]
/// fn square(x: &[f64], y: &mut [f64]) {
///     for (x, y) in x.iter().zip(y) {
///         *y = x * x;
///     }
/// }
///
/// let (x, mut dx) = ([1.0, 2.0], [0.0; 2]);
/// let (mut y, mut dy) = ([0.0; 2], [1.0, 10.0]);
/// d_square(&x, &mut dx, &mut y, &mut dy);
/// assert_eq!(y, [1.0, 4.0]);
/// assert_eq!(dx, [2.0, 40.0]);
/// assert_eq!(dy, [0.0, 0.0]);
/// ```
///
/// Methods, and functions of traits, which get a derivative that implementors may replace:
///
/// ```
/// use ferrozyme::{Differentiable, autodiff_reverse, shadow_of};
///
/// trait Model {
///     #[autodiff_reverse(d_predict, Duplicated, Active, Active)]
///     fn predict(&self, x: f64) -> f64;
/// }
///
/// #[derive(Differentiable)]
/// struct Line {
///     slope: f64,
///     offset: f64,
/// }
///
/// impl Model for Line {
///     fn predict(&self, x: f64) -> f64 {
///         self.slope * x + self.offset
///     }
/// }
///
/// let line = Line { slope: 2.0, offset: 1.0 };
/// let mut gradient = shadow_of(&line);
/// assert_eq!(line.d_predict(&mut gradient, 3.0, 1.0), (7.0, 2.0));
/// assert_eq!((gradient.slope, gradient.offset), (3.0, 1.0));
/// ```
///
/// # Panics
/// The derivative panics if a shadow does not have the shape of its value: slices and vectors of the same length, enums of the same variant. It panics where the function panics;
/// shadows may then hold a part of the gradient.
///
/// ```should_panic
/// use ferrozyme::autodiff_reverse;
///
/// #[autodiff_reverse(d_sum, Duplicated, Active)]
/// fn sum(x: &[f64]) -> f64 {
///     x.iter().sum()
/// }
///
/// d_sum(&[1.0, 2.0, 3.0], &mut [0.0; 2], 1.0);
/// ```
pub use ferrozyme_macros::autodiff_reverse;

/// Describes the layout of a struct or enum, and how to make its shadow: implements [`trait@Differentiable`] and [`Shadow`].
///
/// Fields may have any type. Those that are [`trait@Differentiable`] are described, and checked at every call of a derivative; the layout of others is inferred
/// from their use. Type parameters get the bound `Differentiable`.
///
/// - `#[differentiable(inactive)]` on a field: it has no derivative, and a shadow has a clone of it. The field cannot be shared data (`Rc`, `&`), since the clone would be the same data, nor a type that may
///   contain such data: one without the derive, unless it is known from the standard library or smaller than a pointer. With `#[differentiable(inactive, unshared)]` you promise that it contains none.
/// - `#[differentiable(no_shadow)]` on the type: [`Shadow`] is not implemented. Nor is it for types that hold references or raw pointers.
///
/// ```
/// use ferrozyme::{Differentiable, shadow_of};
///
/// #[derive(Differentiable, Clone, PartialEq, Debug)]
/// enum Shape {
///     Circle { radius: f64 },
///     Polygon(Vec<[f64; 2]>),
/// }
///
/// #[derive(Differentiable)]
/// struct Drawing {
///     shapes: Vec<Shape>,
///     #[differentiable(inactive)]
///     title: &'static str,
/// }
///
/// let shapes = vec![Shape::Circle { radius: 2.0 }, Shape::Polygon(vec![[0.0, 1.0]; 3])];
/// let shadow = shadow_of(&Drawing { shapes, title: "two" });
/// assert_eq!(shadow.shapes, [Shape::Circle { radius: 0.0 }, Shape::Polygon(vec![[0.0; 2]; 3])]);
/// assert_eq!(shadow.title, "two");
/// ```
pub use ferrozyme_macros::Differentiable;

/// Gives a function a derivative of your own, which is used instead of differentiating its body.
///
/// `#[custom_derivative(forward = RULE, reverse = RULE, augment = RULE)]` names the functions that are the rules; give those that you need. It applies to a free function
/// without type parameters that takes floats, integers and references, and returns a float or nothing. If there is a rule only for the other mode,
/// the body is differentiated.
///
/// A rule takes the function's arguments, each followed by its tangent or shadow, and at the end an [`Active`] that says which arguments need derivatives.
/// Memory behind a reference has a shadow only if it needs a derivative, so shadows are options:
///
/// | argument | `forward` adds | `augment` and `reverse` add |
/// |---|---|---|
/// | `f64` (and `f32`) | its tangent `f64` | nothing: `reverse` returns its gradient |
/// | `&[f64]` | `Option<&[f64]>` | `Option<&[Cell<f64>]>` (the same memory may be behind several arguments) |
/// | `&mut [f64]` | `Option<&mut [f64]>` | `Option<&mut [f64]>` |
/// | `&T`, `&mut T` | `Option<&T>`, `Option<&mut T>` | `Option<&Cell<T>>`, `Option<&mut T>` |
/// | integers, `bool` | nothing | nothing |
///
/// - `forward` returns the result and its tangent as a pair.
/// - `reverse` gets the seed of a float result before `Active`, and returns the gradients of all floats: none, one, or a tuple.
///   All references are shared.
/// - `augment`, if there is one, runs in place of the function in the forward sweep of reverse mode. It returns a pair of the function's result and anything that it wants to save (or only the
///   latter, if there is no result), which `reverse` gets after the seed. It is needed if the memory that `reverse` reads may have changed by then.
///
/// ```
/// use ferrozyme::{Active, autodiff_reverse, custom_derivative};
///
/// // The derivative of the obvious formula overflows where that of the function does not.
/// #[custom_derivative(reverse = softplus_reverse)]
/// fn softplus(x: f64) -> f64 {
///     if x > 30.0 { x } else { x.exp().ln_1p() }
/// }
///
/// fn softplus_reverse(x: f64, seed: f64, _active: Active) -> f64 {
///     seed / (1.0 + (-x).exp())
/// }
///
/// #[autodiff_reverse(d_twice, Active, ActiveOnly)]
/// fn twice(x: f64) -> f64 {
///     2.0 * softplus(x)
/// }
///
/// assert_eq!(d_twice(0.0, 1.0), 1.0);
/// ```
///
/// A rule that computes no more than is needed:
///
/// ```
/// use ferrozyme::{Active, autodiff_reverse, custom_derivative};
/// use std::cell::Cell;
///
/// #[custom_derivative(reverse = dot_reverse)]
/// fn dot(x: &[f64], y: &[f64]) -> f64 {
///     x.iter().zip(y).map(|(x, y)| x * y).sum()
/// }
///
/// fn dot_reverse(
///     x: &[f64],
///     dx: Option<&[Cell<f64>]>,
///     y: &[f64],
///     dy: Option<&[Cell<f64>]>,
///     seed: f64,
///     _active: Active,
/// ) {
///     let add = |shadow: &[Cell<f64>], other: &[f64]| {
///         for (shadow, other) in shadow.iter().zip(other) {
///             shadow.set(shadow.get() + seed * other);
///         }
///     };
///     if let Some(dx) = dx {
///         add(dx, y);
///     }
///     if let Some(dy) = dy {
///         add(dy, x);
///     }
/// }
///
/// #[autodiff_reverse(d_norm, Duplicated, Active)]
/// fn norm(x: &[f64]) -> f64 {
///     dot(x, x)
/// }
///
/// let mut gradient = [0.0; 2];
/// d_norm(&[3.0, 4.0], &mut gradient, 1.0);
/// assert_eq!(gradient, [6.0, 8.0]);
/// ```
pub use ferrozyme_macros::custom_derivative;

/// Declares that no derivatives go through a function: its results, and the values that it writes, are constant, whatever its arguments are.
///
/// For functions that report, count or decide, and whose bodies should not be differentiated. It applies to functions and methods, also generic ones.
///
/// ```
/// use ferrozyme::{grad, inactive};
///
/// #[inactive]
/// fn step_size(x: f64) -> f64 {
///     if x.abs() > 1.0 { 0.5 } else { 0.25 }
/// }
///
/// assert_eq!(grad(|x: f64| step_size(x) * x * x, 2.0), 2.0);
/// ```
///
/// For values there is [`stop_gradient`].
pub use ferrozyme_macros::inactive;

/// Compiles a function the way derivatives are compiled: matrix products in its loops run on generated kernels, loops are vectorised with mathematical functions in them, and all is chosen
/// for the processor when the program runs.
///
/// A derivative has its own, fast copy of the function that it differentiates. This attribute gives the program one too, for where it calls the function without a derivative.
///
/// ```
/// use ferrozyme::accelerate;
///
/// #[accelerate]
/// fn product(a: &[f32], b: &[f32], c: &mut [f32], n: usize) {
///     for i in 0..n {
///         for j in 0..n {
///             let mut sum = 0.0;
///             for k in 0..n {
///                 sum += a[i * n + k] * b[k * n + j];
///             }
///             c[i * n + j] = sum;
///         }
///     }
/// }
///
/// let mut c = [0.0; 4];
/// product(&[1.0, 2.0, 3.0, 4.0], &[0.0, 1.0, 1.0, 0.0], &mut c, 2);
/// assert_eq!(c, [2.0, 1.0, 4.0, 3.0]);
/// ```
///
/// It applies to functions and methods with a body, also generic ones. All that the function calls and whose body is known is compiled with it. Derivatives see through the attribute: a function that
/// calls an accelerated one is differentiated as if the attribute were not there.
///
/// Sums may be added up in another order than in the source, as in derivatives, so the last bits of results can differ from those of a build without the attribute; `--strict` keeps
/// the order. A function that cannot be compiled this way (`catch_unwind` around code that may panic, say) is an error of the build, not silently a slow function.
pub use ferrozyme_macros::accelerate;

/// The interface of generated code. Changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::interface::*;
    pub use crate::shadow::shadow_of_field;
}
