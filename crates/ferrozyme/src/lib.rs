//! Derivatives of ordinary Rust functions, made ahead of time, on the stable toolchain.
//!
//! Write a function as you would anyway: loops, structs, vectors, iterators, recursion, crates of others. Ferrozyme differentiates it as it
//! is, after optimisation, when the program is linked, and the derivative is machine code like any other.
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
//! Derivatives are made by a driver, which takes the place of the linker. Install it once, add this crate to your dependencies, and
//! write `cargo ferrozyme` where you would write `cargo`:
//!
//! ```sh
//! cargo ferrozyme run
//! cargo ferrozyme test
//! cargo ferrozyme build --release
//! ```
//!
//! Nothing else is needed: no nightly toolchain, no settings of profiles, no LLVM. A plain `cargo check` works for editors; a plain `cargo
//! build` stops with a message that says to use the driver.
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
//! [`autodiff_forward`](macro@autodiff_forward) and [`autodiff_reverse`](macro@autodiff_reverse) stand on a function, method or function of a trait, and make
//! its derivative a function beside it. They reach further than closures: any types of arguments, which of them take part, several derivatives at once.
//!
//! # Shadows
//!
//! The derivative of a value behind a reference is kept in a *shadow*: a value of the same type and shape. Gradients are added to what it holds.
//! [`shadow_of`] makes one of zeros, and derivatives check shapes at every call: a vector in a shadow that is too short is a panic that names it,
//! not undefined behaviour. [`#[derive(Differentiable)]`](macro@Differentiable) extends both to your own types.
//! In generic functions, name `Differentiable` among the bounds of the numbers that slices are made of (`T: Real + Differentiable`): otherwise nothing is known of the slices'
//! layout when the derivative is made, and it may keep far more in memory than it needs.
//!
//! # Taking matters into your own hands
//!
//! [`custom_derivative`](macro@custom_derivative) gives a derivative of your own to a function, [`inactive`](macro@inactive) says that a function has none, and
//! [`stop_gradient`] the same of a value.

mod active;
mod functions;
mod interface;
mod shadow;

// The macros name this crate from outside, and its own examples and tests are inside.
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

/// Makes the forward-mode derivative of a function: derivatives in given directions, beside the function's results.
///
/// `#[autodiff_forward(NAME, WIDTH, ACTIVITY, …)]` puts a function `NAME` after the one that it stands on. It has an activity for each argument (`self`
/// included), and one for the result unless that is `()`. `WIDTH` is the number of directions at once, and 1 if it is left out.
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
/// Tangents of what the function writes are overwritten; those of what it only reads are left alone.
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
/// `#[autodiff_reverse(NAME, WIDTH, ACTIVITY, …)]` puts a function `NAME` after the one that it stands on. It has an activity for each argument (`self`
/// included), and one for the result unless that is `()`. `WIDTH` is the number of gradients, and 1 if it is left out: the function then runs once for each, and what it
/// changes behind `&mut` is put back in between (what it prints, it prints so often).
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
/// Shadows are added to, and not set to zero first. Where the function writes to a `Duplicated` argument, the shadow holds the seed, and is zero
/// afterwards. With a width, each gradient has shadows of its own, which is how results behind `&mut` get several seeds at once; the seed `dret` of a result that is
/// returned is one for all.
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
/// The derivative panics if a shadow does not have the shape of what it shadows: slices and vectors of the same length, enums of the same variant. It panics where the function panics;
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

/// Says what lies where in a struct or enum, and how to make its shadow: implements [`trait@Differentiable`] and [`Shadow`].
///
/// Fields may have any type. Those that are [`trait@Differentiable`] are described, and checked at every call of a derivative; of others the compiler finds out
/// what it needs from how they are used. Type parameters get the bound `Differentiable`.
///
/// - `#[differentiable(inactive)]` on a field: nobody wants its derivative, and a shadow has a clone of it. It can not be shared data (`Rc`, `&`), since the clone would be the same data, nor a type that may
///   hide such data: one without the derive, unless it is known from the standard library or smaller than a pointer. With `#[differentiable(inactive, unshared)]` you promise that there is none.
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

/// Gives a function a derivative of your own, which is used in place of one made from its body.
///
/// `#[custom_derivative(forward = RULE, reverse = RULE, augment = RULE)]` names the functions that are the rules; give those that are needed. It stands on a free function
/// without type parameters that takes floats, integers and references, and returns a float or nothing. Where only the rule of the other mode is given,
/// a derivative is made from the body.
///
/// A rule takes the function's arguments, each followed by its tangent or shadow, and at the end an [`Active`] that says which arguments need derivatives.
/// What is behind a reference has a shadow only if it needs a derivative, so that shadows are options:
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
/// - `augment`, if there is one, runs in place of the function in the forward sweep of reverse mode. It returns a pair of the function's result and anything that it wants to keep (or only the
///   latter, if there is no result), which `reverse` gets after the seed. It is needed where the memory that `reverse` reads may have changed by then.
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

/// Says that no derivatives go through a function: what it returns and writes is constant, whatever it is given.
///
/// For functions that report, count or decide, and whose insides should not be looked at. It stands on functions and methods, generic ones, too.
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

/// What generated code uses. Changes without notice.
#[doc(hidden)]
pub mod __private {
    pub use crate::interface::*;
    pub use crate::shadow::shadow_of_field;
}
