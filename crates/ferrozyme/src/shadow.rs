//! Shadows of zeros for values of any shape.

use std::cell::Cell;
use std::collections::VecDeque;
use std::marker::PhantomData;

use crate::interface::empty_like;

/// A value for which a shadow can be made: a value of the same shape whose floats are all zero.
///
/// The shadow of a `Vec` has the same capacity. The shadow of a `VecDeque` also starts in the same slot of its memory; derivatives check that.
///
/// `#[derive(Differentiable)]` implements it for structs and enums, together with
/// [`Differentiable`](crate::Differentiable), unless they hold references or raw pointers, or say
/// `#[differentiable(no_shadow)]`.
#[diagnostic::on_unimplemented(
    message = "no shadow can be made for `{Self}`",
    note = "derive `Differentiable` for it if it is a type of yours",
    note = "a field that takes no part in derivatives can be marked `#[differentiable(inactive)]`; it is then cloned",
    note = "`#[differentiable(no_shadow)]` on the type derives `Differentiable` without `Shadow`"
)]
pub trait Shadow {
    /// The type of the shadow: the value's own type, if the value owns all its parts.
    type Shadow;

    /// A value of the same shape. Floats are zero; integers and everything else without a derivative are copied.
    fn shadow(&self) -> Self::Shadow;
}

/// A shadow of a value: the same shape, with zeros in place of its floats; integers and everything else without a derivative are copied.
///
/// ```
/// use ferrozyme::shadow_of;
///
/// assert_eq!(shadow_of(&vec![vec![1.0, 2.0], vec![3.0]]), vec![vec![0.0, 0.0], vec![0.0]]);
/// assert_eq!(shadow_of(&(1.0, 3, [2.0; 2])), (0.0, 3, [0.0; 2]));
/// assert_eq!(shadow_of(&[1.0, 2.0][..]), vec![0.0, 0.0]);
/// ```
///
/// Pass it to a derivative, which adds the gradient to it:
///
/// ```
/// use ferrozyme::{autodiff_reverse, shadow_of};
///
/// #[autodiff_reverse(d_norm, Duplicated, Active)]
/// fn norm(rows: &Vec<Vec<f64>>) -> f64 {
///     rows.iter().flatten().map(|x| x * x).sum()
/// }
///
/// let rows = vec![vec![1.0, 2.0], vec![3.0]];
/// let mut gradient = shadow_of(&rows);
/// d_norm(&rows, &mut gradient, 1.0);
/// assert_eq!(gradient, [vec![2.0, 4.0], vec![6.0]]);
/// ```
pub fn shadow_of<T: ?Sized + Shadow>(value: &T) -> T::Shadow {
    value.shadow()
}

/// A shadow of the same type, for a field.
pub fn shadow_of_field<T: Shadow<Shadow = T>>(value: &T) -> T {
    value.shadow()
}

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl Shadow for $type {
            type Shadow = $type;

            fn shadow(&self) -> $type {
                0.0
            }
        }
    )*};
}

floats! { f32 f64 }

macro_rules! discrete {
    ($($type:ty)*) => {$(
        impl Shadow for $type {
            type Shadow = $type;

            fn shadow(&self) -> $type {
                self.clone()
            }
        }
    )*};
}

discrete! { bool char i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize String }

impl<T: ?Sized> Shadow for PhantomData<T> {
    type Shadow = PhantomData<T>;

    fn shadow(&self) -> PhantomData<T> {
        PhantomData
    }
}

impl<T: ?Sized + Shadow> Shadow for &T {
    type Shadow = T::Shadow;

    fn shadow(&self) -> T::Shadow {
        T::shadow(self)
    }
}

impl<T: ?Sized + Shadow> Shadow for &mut T {
    type Shadow = T::Shadow;

    fn shadow(&self) -> T::Shadow {
        T::shadow(self)
    }
}

impl<T: Shadow> Shadow for [T] {
    type Shadow = Vec<T::Shadow>;

    fn shadow(&self) -> Vec<T::Shadow> {
        self.iter().map(T::shadow).collect()
    }
}

impl<T: Shadow, const N: usize> Shadow for [T; N] {
    type Shadow = [T::Shadow; N];

    fn shadow(&self) -> [T::Shadow; N] {
        self.each_ref().map(T::shadow)
    }
}

impl<T: Shadow> Shadow for Vec<T> {
    type Shadow = Vec<T::Shadow>;

    fn shadow(&self) -> Vec<T::Shadow> {
        // They grow together, so they should have the same capacity.
        let mut shadow = Vec::with_capacity(self.capacity());
        shadow.extend(self.iter().map(T::shadow));
        shadow
    }
}

impl<T: Shadow> Shadow for VecDeque<T> {
    type Shadow = VecDeque<T::Shadow>;

    fn shadow(&self) -> VecDeque<T::Shadow> {
        // Elements must be in the same slots.
        let mut shadow = empty_like(self);
        shadow.extend(self.iter().map(T::shadow));
        shadow
    }
}

impl<T: Shadow> Shadow for Box<T> {
    type Shadow = Box<T::Shadow>;

    fn shadow(&self) -> Box<T::Shadow> {
        Box::new(T::shadow(self))
    }
}

impl<T: Shadow> Shadow for Box<[T]> {
    type Shadow = Box<[T::Shadow]>;

    fn shadow(&self) -> Box<[T::Shadow]> {
        self.iter().map(T::shadow).collect()
    }
}

impl<T: Shadow> Shadow for Option<T> {
    type Shadow = Option<T::Shadow>;

    fn shadow(&self) -> Option<T::Shadow> {
        self.as_ref().map(T::shadow)
    }
}

impl<T: Shadow, E: Shadow> Shadow for Result<T, E> {
    type Shadow = Result<T::Shadow, E::Shadow>;

    fn shadow(&self) -> Result<T::Shadow, E::Shadow> {
        self.as_ref().map(T::shadow).map_err(E::shadow)
    }
}

impl<T: Shadow + Copy> Shadow for Cell<T> {
    type Shadow = Cell<T::Shadow>;

    fn shadow(&self) -> Cell<T::Shadow> {
        Cell::new(self.get().shadow())
    }
}

macro_rules! tuples {
    ($(($($type:ident $index:tt),*))*) => {$(
        impl<$($type: Shadow),*> Shadow for ($($type,)*) {
            type Shadow = ($($type::Shadow,)*);

            #[allow(clippy::unused_unit)]
            fn shadow(&self) -> Self::Shadow {
                ($(self.$index.shadow(),)*)
            }
        }
    )*};
}

crate::for_each_tuple!(tuples);
