//! The trait of types that Ferrozyme knows the inside of.

use super::{Layout, Places};

/// A type that Ferrozyme knows the inside of: which of its bytes are floats, what its pointers point to, and how large
/// what it owns is.
///
/// Derivatives work for types without it: the compiler then infers what lies where from how it is used. With it, the
/// compiler need not guess. Shadows are checked to have the same shape as what they shadow (the lengths of vectors,
/// the variants of enums) at every call, without it as far as debug information tells.
///
/// Scalars, references, pointers, slices, arrays, tuples, `Box`, `Vec`, `VecDeque`, `Rc`, `Arc`, `Cell`, `Option`, `Result` and
/// `String` have it. For your own structs and enums, derive it:
///
/// ```
/// use ferrozyme::{Differentiable, autodiff_reverse, shadow_of};
///
/// #[derive(Differentiable)]
/// struct Layer {
///     weights: Vec<Vec<f64>>,
///     bias: f64,
/// }
///
/// #[autodiff_reverse(d_energy, Duplicated, Active)]
/// fn energy(layer: &Layer) -> f64 {
///     let squares = |row: &Vec<f64>| row.iter().map(|w| w * w).sum::<f64>();
///     layer.weights.iter().map(squares).sum::<f64>() * layer.bias
/// }
///
/// let layer = Layer { weights: vec![vec![1.0, 2.0], vec![3.0]], bias: 0.5 };
/// let mut gradient = shadow_of(&layer);
/// d_energy(&layer, &mut gradient, 1.0);
/// assert_eq!(gradient.weights, [vec![1.0, 2.0], vec![3.0]]);
/// assert_eq!(gradient.bias, 14.0);
/// ```
///
/// # Safety
/// The constants must describe the type truly, because derivatives are computed from them. Derive the trait rather than
/// implementing it by hand: what is in it changes with the compiler.
pub unsafe trait Differentiable {
    /// What lies where in the type's bytes; for a slice, in those of one element.
    #[doc(hidden)]
    const LAYOUT: &'static Layout;

    /// The layout that a value is one or several of, one after the other: an array's is that of its elements.
    #[doc(hidden)]
    const ELEMENTS: &'static Layout = Self::LAYOUT;

    /// Whether nothing in the value itself can change behind a shared reference.
    #[doc(hidden)]
    const FROZEN: bool;

    /// Whether all values of the type have the same shape, so that there is nothing to compare.
    #[doc(hidden)]
    const FLAT: bool;

    /// Whether the shadow has the shape of the value. Asked at every call, and differentiated with the derivative that asks, so that it
    /// does nothing but look at lengths and variants.
    #[doc(hidden)]
    fn same_shape(&self, _shadow: &Self) -> bool {
        true
    }

    /// Where a shadow differs that does not have the shape of the value, for people.
    #[doc(hidden)]
    fn compare(&self, _shadow: &Self) -> Result<(), Mismatch> {
        Ok(())
    }

    /// Makes a shadow fit for a function that changes the value: its vectors get the capacity of those that they shadow, because they grow together,
    /// and what is not in use (spare capacity, the bytes of other variants) becomes zero.
    #[doc(hidden)]
    fn fit(&self, _shadow: &mut Self) {}

    /// Whether a clone may lead to the same memory as the value: by a pointer in its own bytes.
    #[doc(hidden)]
    const SHARES_0: bool = true;
    /// The same, also by a pointer in memory that it owns. Each has its own constant, since a type may own values of itself.
    #[doc(hidden)]
    const SHARES_1: bool = true;
    /// The same, one step further.
    #[doc(hidden)]
    const SHARES_2: bool = true;
    /// The same, one more step further.
    #[doc(hidden)]
    const SHARES_3: bool = true;

    /// Notes where memory that a shadow owns lies beside floats.
    #[doc(hidden)]
    fn places(&self, _places: &mut Places) {}
}

/// Where and how a shadow differs from what it shadows.
#[derive(Debug)]
pub struct Mismatch {
    /// The way from the argument to the place, such as `.layers[3]`.
    pub path: String,
    /// What the primal has there.
    pub primal: String,
    /// What the shadow has there.
    pub shadow: String,
}

impl Mismatch {
    /// Two things that should have the same length.
    pub fn lengths(primal: usize, shadow: usize) -> Result<(), Mismatch> {
        match primal == shadow {
            true => Ok(()),
            false => Err(Mismatch::new(
                format!("length {primal}"),
                format!("length {shadow}"),
            )),
        }
    }

    /// Two descriptions that should be the same.
    #[cold]
    pub fn new(primal: impl Into<String>, shadow: impl Into<String>) -> Mismatch {
        Mismatch {
            path: String::new(),
            primal: primal.into(),
            shadow: shadow.into(),
        }
    }

    /// The same, seen from one step further out.
    #[cold]
    pub fn inside(mut self, step: impl std::fmt::Display) -> Mismatch {
        self.path.insert_str(0, &step.to_string());
        self
    }
}
