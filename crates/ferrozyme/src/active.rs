//! Which arguments need derivatives, and values that carry none.

use crate::Float;
use crate::interface::__ferrozyme_inactive;

/// Which arguments of a function need derivatives: the last argument of a rule of
/// [`custom_derivative`](macro@crate::custom_derivative).
///
/// A rule need not compute the derivatives of other arguments. For an argument behind a reference, the shadow is `None` if it needs no derivative.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Active(u64);

impl Active {
    /// From a mask with a bit for each argument.
    #[doc(hidden)]
    pub fn from_bits(bits: u64) -> Active {
        Active(bits)
    }

    /// Whether the argument with this number, from 0 on, needs a derivative.
    ///
    /// ```
    /// # let active = ferrozyme::Active::from_bits(0b10);
    /// assert!(!active.argument(0));
    /// assert!(active.argument(1));
    /// ```
    pub fn argument(self, index: usize) -> bool {
        index < 64 && self.0 >> index & 1 == 1
    }

    /// Whether any argument does.
    ///
    /// ```
    /// # let active = ferrozyme::Active::from_bits(0b10);
    /// assert!(active.any());
    /// ```
    pub fn any(self) -> bool {
        self.0 != 0
    }

    /// Whether one of these arguments does.
    ///
    /// ```
    /// # let active = ferrozyme::Active::from_bits(0b10);
    /// assert!(active.any_of([0, 1]));
    /// assert!(!active.any_of([0, 2]));
    /// ```
    pub fn any_of(self, arguments: impl IntoIterator<Item = usize>) -> bool {
        arguments.into_iter().any(|index| self.argument(index))
    }

    /// The numbers of those that do, in order.
    ///
    /// ```
    /// # let active = ferrozyme::Active::from_bits(0b101);
    /// assert!(active.arguments().eq([0, 2]));
    /// ```
    pub fn arguments(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |&index| self.argument(index))
    }
}

impl std::fmt::Debug for Active {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Active")?;
        formatter.debug_list().entries(self.arguments()).finish()
    }
}

/// Returns its argument, which derivatives treat as a constant.
///
/// ```
/// use ferrozyme::{grad, stop_gradient};
///
/// assert_eq!(grad(|x: f64| x * x, 3.0), 6.0);
/// assert_eq!(grad(|x: f64| stop_gradient(x) * x, 3.0), 3.0);
/// ```
///
/// For whole functions there is the attribute [`inactive`](macro@crate::inactive).
pub fn stop_gradient<T: Float>(value: T) -> T {
    __ferrozyme_inactive(move || value)
}
