//! Checks of functions of one number: `fn(f64) -> f64`.

use crate::{DIFFERENCES, EXACT, assert_close, gradient_by_differences};

type Function<'a> = Box<dyn Fn(f64) -> f64 + 'a>;
type Pair<'a> = Box<dyn Fn(f64, f64) -> (f64, f64) + 'a>;

/// A function of one number, with its derivatives as the attributes generate them:
/// `reverse(x, seed) -> (value, gradient)` and `forward(x, direction) -> (value, tangent)`.
pub struct Scalar<'a> {
    name: &'a str,
    tolerance: f64,
    primal: Function<'a>,
    reverse: Option<Pair<'a>>,
    forward: Option<Pair<'a>>,
    closed_form: Option<Function<'a>>,
}

impl<'a> Scalar<'a> {
    /// A function to check.
    pub fn new(name: &'a str, primal: impl Fn(f64) -> f64 + 'a) -> Self {
        Scalar {
            name,
            tolerance: EXACT,
            primal: Box::new(primal),
            reverse: None,
            forward: None,
            closed_form: None,
        }
    }

    /// Its derivative in reverse mode.
    pub fn reverse(mut self, reverse: impl Fn(f64, f64) -> (f64, f64) + 'a) -> Self {
        self.reverse = Some(Box::new(reverse));
        self
    }

    /// Its derivative in forward mode.
    pub fn forward(mut self, forward: impl Fn(f64, f64) -> (f64, f64) + 'a) -> Self {
        self.forward = Some(Box::new(forward));
        self
    }

    /// Its derivative as a formula.
    pub fn closed_form(mut self, derivative: impl Fn(f64) -> f64 + 'a) -> Self {
        self.closed_form = Some(Box::new(derivative));
        self
    }

    /// The primal computes in `f32`: only a closed form can tell whether its derivatives are right, to the precision of `f32`.
    pub fn in_single_precision(mut self) -> Self {
        self.tolerance = crate::SINGLE;
        self
    }

    /// Checks everything that was specified, at each of `points`.
    #[track_caller]
    pub fn check(self, points: &[f64]) -> Self {
        for &x in points {
            self.check_at(x);
        }
        self
    }

    #[track_caller]
    fn check_at(&self, x: f64) {
        let name = format!("{} at {x:?}", self.name);
        let value = (self.primal)(x);
        assert!(
            value.is_finite(),
            "the test of {name} is at fault: the primal is {value}"
        );
        let in_double = self.tolerance == EXACT;
        let difference = gradient_by_differences(|x| (self.primal)(x[0]), &[x])[0];
        let expected = match &self.closed_form {
            Some(derivative) => {
                let expected = derivative(x);
                if in_double {
                    let what = format!(
                        "the test of {name} is at fault: closed form against finite differences"
                    );
                    assert_close(&what, expected, difference, DIFFERENCES);
                }
                expected
            }
            None => difference,
        };
        let tolerance = if self.closed_form.is_some() {
            self.tolerance
        } else {
            DIFFERENCES
        };
        let value_tolerance = if in_double { 1e-14 } else { 1e-6 };
        // A seed that is not one shows that it is used, and used once.
        for (mode, derivative) in [("reverse", &self.reverse), ("forward", &self.forward)] {
            let Some(derivative) = derivative else {
                continue;
            };
            let (returned, result) = derivative(x, -1.5);
            assert_close(
                &format!("{name}: value from {mode} mode"),
                returned,
                value,
                value_tolerance,
            );
            assert_close(
                &format!("{name}: derivative by {mode} mode (seed -1.5)"),
                result,
                -1.5 * expected,
                tolerance,
            );
        }
    }
}
