//! The trait of types whose layout Ferrozyme knows.

use super::{Layout, Places};

/// A type whose layout Ferrozyme knows: which of its bytes are floats, what its pointers point to, and the size of the
/// memory that it owns.
///
/// Types without it can be differentiated too; the compiler then infers their layout from use. With it, the
/// compiler need not guess. At every call, shadows are checked to have the same shape as their values (the lengths of vectors,
/// the variants of enums); without the trait, as far as debug information describes the type.
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
/// The constants must describe the type correctly, because derivatives are computed from them. Derive the trait rather than
/// implementing it by hand: its items change with the compiler.
pub unsafe trait Differentiable {
    /// The layout of the type's bytes; for a slice, of one element.
    #[doc(hidden)]
    const LAYOUT: &'static Layout;

    /// The layout of which a value is one or several in a row: for an array, the layout of its elements.
    #[doc(hidden)]
    const ELEMENTS: &'static Layout = Self::LAYOUT;

    /// How many of these a value is; for a slice, one element.
    #[doc(hidden)]
    const ELEMENT_COUNT: usize = 1;

    /// Whether the value itself has no interior mutability.
    #[doc(hidden)]
    const FROZEN: bool;

    /// Whether all values of the type have the same shape, so that no comparison is needed.
    #[doc(hidden)]
    const FLAT: bool;

    /// Whether the shadow has the shape of the value. It runs at every call, and is differentiated along with the derivative that calls it, so it
    /// only compares lengths and variants.
    #[doc(hidden)]
    fn same_shape(&self, _shadow: &Self) -> bool {
        true
    }

    /// Describes where a shadow differs in shape from the value.
    #[doc(hidden)]
    fn compare(&self, _shadow: &Self) -> Result<(), Mismatch> {
        Ok(())
    }

    /// Prepares a shadow for a function that changes the value: its vectors get the capacity of the vectors that they shadow, because they grow together,
    /// and unused bytes (spare capacity, the bytes of other variants) become zero.
    #[doc(hidden)]
    fn fit(&self, _shadow: &mut Self) {}

    /// Whether a clone may point to the same memory as the value, by a pointer in its own bytes.
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

    /// Records where memory that a shadow owns is next to floats.
    #[doc(hidden)]
    fn places(&self, _places: &mut Places) {}
}

/// Where and how a shadow differs in shape from its value.
#[derive(Debug)]
pub struct Mismatch {
    /// The path from the argument to the place, such as `.layers[3]`.
    pub path: String,
    /// The primal's side.
    pub primal: String,
    /// The shadow's side.
    pub shadow: String,
}

impl Mismatch {
    /// Two lengths that should be equal.
    pub fn lengths(primal: usize, shadow: usize) -> Result<(), Mismatch> {
        match primal == shadow {
            true => Ok(()),
            false => Err(Mismatch::new(
                format!("length {primal}"),
                format!("length {shadow}"),
            )),
        }
    }

    /// Two descriptions that should be equal.
    #[cold]
    pub fn new(primal: impl Into<String>, shadow: impl Into<String>) -> Mismatch {
        Mismatch {
            path: String::new(),
            primal: primal.into(),
            shadow: shadow.into(),
        }
    }

    /// The same difference, with one more step at the start of the path.
    #[cold]
    pub fn inside(mut self, step: impl std::fmt::Display) -> Mismatch {
        self.path.insert_str(0, &step.to_string());
        self
    }
}
