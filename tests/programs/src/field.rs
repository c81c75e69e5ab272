//! Checks of functions of a slice with one result: `fn(&[f64]) -> f64`.

use crate::{
    DIFFERENCES, EXACT, assert_all_close, assert_close, directional_derivative,
    gradient_by_differences, random_vector,
};

type Primal<'a> = Box<dyn Fn(&[f64]) -> f64 + 'a>;
type Reverse<'a> = Box<dyn Fn(&[f64], &mut [f64], f64) -> f64 + 'a>;
type Forward<'a> = Box<dyn Fn(&[f64], &[f64]) -> (f64, f64) + 'a>;
type Gradient<'a> = Box<dyn Fn(&[f64]) -> Vec<f64> + 'a>;

/// A function of many variables, with its derivatives as the attributes generate them for a slice argument:
/// `reverse(x, dx, seed) -> value` and `forward(x, direction) -> (value, tangent)`.
pub struct Field<'a> {
    name: &'a str,
    primal: Primal<'a>,
    reverse: Option<Reverse<'a>>,
    forward: Option<Forward<'a>>,
    closed_form: Option<Gradient<'a>>,
}

impl<'a> Field<'a> {
    /// A function to check.
    pub fn new(name: &'a str, primal: impl Fn(&[f64]) -> f64 + 'a) -> Self {
        Field {
            name,
            primal: Box::new(primal),
            reverse: None,
            forward: None,
            closed_form: None,
        }
    }

    /// Its derivative in reverse mode.
    pub fn reverse(mut self, reverse: impl Fn(&[f64], &mut [f64], f64) -> f64 + 'a) -> Self {
        self.reverse = Some(Box::new(reverse));
        self
    }

    /// Its derivative in forward mode.
    pub fn forward(mut self, forward: impl Fn(&[f64], &[f64]) -> (f64, f64) + 'a) -> Self {
        self.forward = Some(Box::new(forward));
        self
    }

    /// Its gradient as a formula.
    pub fn closed_form(mut self, gradient: impl Fn(&[f64]) -> Vec<f64> + 'a) -> Self {
        self.closed_form = Some(Box::new(gradient));
        self
    }

    /// Checks everything that was specified, at `x`.
    #[track_caller]
    pub fn check(self, x: &[f64]) -> Self {
        let name = self.name;
        let value = (self.primal)(x);
        assert!(
            value.is_finite(),
            "the test of {name} is at fault: the primal is {value} at {x:?}"
        );
        let differences = gradient_by_differences(&self.primal, x);
        let expected = self.closed_form.as_ref().map(|gradient| gradient(x));
        if let Some(expected) = &expected {
            let what =
                format!("the test of {name} is at fault: closed form against finite differences");
            assert_all_close(&what, expected, &differences, DIFFERENCES);
        }
        let gradient = self.reverse.as_ref().map(|reverse| {
            let mut gradient = vec![0.0; x.len()];
            let returned = reverse(x, &mut gradient, 1.0);
            assert_close(
                &format!("{name}: value from reverse mode"),
                returned,
                value,
                1e-12,
            );
            assert_all_close(
                &format!("{name}: gradient against finite differences"),
                &gradient,
                &differences,
                DIFFERENCES,
            );
            if let Some(expected) = &expected {
                assert_all_close(
                    &format!("{name}: gradient against closed form"),
                    &gradient,
                    expected,
                    EXACT,
                );
            }
            self.check_accumulation(x, &gradient);
            gradient
        });
        if let Some(forward) = &self.forward {
            let direction = random_vector(x.len(), 7);
            let (returned, tangent) = forward(x, &direction);
            assert_close(
                &format!("{name}: value from forward mode"),
                returned,
                value,
                1e-12,
            );
            let along = directional_derivative(|x| vec![(self.primal)(x)], x, &direction)[0];
            assert_close(
                &format!("{name}: tangent against finite differences"),
                tangent,
                along,
                DIFFERENCES,
            );
            if let Some(gradient) = gradient.or(expected) {
                let product: f64 = gradient.iter().zip(&direction).map(|(g, v)| g * v).sum();
                assert_close(
                    &format!("{name}: tangent against gradient times direction"),
                    tangent,
                    product,
                    EXACT,
                );
            }
        }
        self
    }

    /// The gradient is scaled by the seed and added to the shadow.
    #[track_caller]
    fn check_accumulation(&self, x: &[f64], gradient: &[f64]) {
        let Some(reverse) = &self.reverse else { return };
        let start = random_vector(x.len(), 11);
        let mut shadow = start.clone();
        reverse(x, &mut shadow, -2.5);
        let expected: Vec<f64> = start
            .iter()
            .zip(gradient)
            .map(|(start, g)| start - 2.5 * g)
            .collect();
        assert_all_close(
            &format!("{}: shadow that held something, seed -2.5", self.name),
            &shadow,
            &expected,
            EXACT,
        );
    }
}

/// Checks the gradient and the tangents of a `fn(&[f64]) -> f64`, made by the function interface, at a point.
#[macro_export]
macro_rules! check_function {
    ($function:expr, $point:expr) => {
        $crate::Field::new(stringify!($function), $function)
            .reverse(|x, dx, seed| {
                let (value, gradient) = ferrozyme::value_and_grad($function, x);
                for (dx, entry) in dx.iter_mut().zip(gradient) {
                    *dx += seed * entry;
                }
                value
            })
            .forward(|x, v| ferrozyme::jvp($function, x, v))
            .check($point)
    };
}
