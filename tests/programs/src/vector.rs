//! Checks of functions that write their results to memory: `fn(&[f64], &mut [f64])`.

use crate::{
    DIFFERENCES, EXACT, assert_all_close, assert_close, directional_derivative, random_vector,
};

type Primal<'a> = Box<dyn Fn(&[f64], &mut [f64]) + 'a>;
type Reverse<'a> = Box<dyn Fn(&[f64], &mut [f64], &mut [f64], &mut [f64]) + 'a>;
type Forward<'a> = Box<dyn Fn(&[f64], &[f64], &mut [f64], &mut [f64]) + 'a>;

/// A function from slice to slice, with its derivatives as the attributes generate them:
/// `reverse(x, dx, y, dy)` and `forward(x, bx, y, by)`. All of `y` must be overwritten.
pub struct Mapping<'a> {
    name: &'a str,
    outputs: usize,
    primal: Primal<'a>,
    reverse: Option<Reverse<'a>>,
    forward: Option<Forward<'a>>,
}

impl<'a> Mapping<'a> {
    /// A function with `outputs` results to check.
    pub fn new(name: &'a str, outputs: usize, primal: impl Fn(&[f64], &mut [f64]) + 'a) -> Self {
        Mapping {
            name,
            outputs,
            primal: Box::new(primal),
            reverse: None,
            forward: None,
        }
    }

    /// Its derivative in reverse mode.
    pub fn reverse(
        mut self,
        reverse: impl Fn(&[f64], &mut [f64], &mut [f64], &mut [f64]) + 'a,
    ) -> Self {
        self.reverse = Some(Box::new(reverse));
        self
    }

    /// Its derivative in forward mode.
    pub fn forward(
        mut self,
        forward: impl Fn(&[f64], &[f64], &mut [f64], &mut [f64]) + 'a,
    ) -> Self {
        self.forward = Some(Box::new(forward));
        self
    }

    /// Checks everything that was specified, at `x`.
    #[track_caller]
    pub fn check(self, x: &[f64]) -> Self {
        let name = self.name;
        let evaluate = |x: &[f64]| {
            let mut y = vec![f64::NAN; self.outputs];
            (self.primal)(x, &mut y);
            y
        };
        let values = evaluate(x);
        assert!(
            values.iter().all(|value| value.is_finite()),
            "the test of {name} is at fault: the primal gives {values:?} at {x:?}"
        );
        let direction = random_vector(x.len(), 3);
        let seed = random_vector(self.outputs, 5);
        let along = directional_derivative(evaluate, x, &direction);
        let tangent = self.forward.as_ref().map(|forward| {
            let mut y = vec![f64::NAN; self.outputs];
            // The old contents of the output's tangent must not matter: forward mode overwrites it.
            let mut tangent = random_vector(self.outputs, 13);
            forward(x, &direction, &mut y, &mut tangent);
            assert_all_close(
                &format!("{name}: values from forward mode"),
                &y,
                &values,
                1e-12,
            );
            assert_all_close(
                &format!("{name}: tangents against finite differences"),
                &tangent,
                &along,
                DIFFERENCES,
            );
            tangent
        });
        if let Some(reverse) = &self.reverse {
            let start = random_vector(x.len(), 17);
            let mut shadow = start.clone();
            let mut y = vec![f64::NAN; self.outputs];
            let mut consumed = seed.clone();
            reverse(x, &mut shadow, &mut y, &mut consumed);
            assert_all_close(
                &format!("{name}: values from reverse mode"),
                &y,
                &values,
                1e-12,
            );
            assert_all_close(
                &format!("{name}: seed after use"),
                &consumed,
                &vec![0.0; self.outputs],
                0.0,
            );
            let gradient: Vec<f64> = shadow
                .iter()
                .zip(&start)
                .map(|(after, before)| after - before)
                .collect();
            let backward: f64 = gradient.iter().zip(&direction).map(|(g, v)| g * v).sum();
            let product =
                |tangent: &[f64]| -> f64 { tangent.iter().zip(&seed).map(|(t, u)| t * u).sum() };
            assert_close(
                &format!("{name}: ⟨v, Jᵀu⟩ against finite differences"),
                backward,
                product(&along),
                DIFFERENCES,
            );
            if let Some(tangent) = tangent {
                assert_close(
                    &format!("{name}: ⟨v, Jᵀu⟩ against ⟨Jv, u⟩"),
                    backward,
                    product(&tangent),
                    EXACT,
                );
            }
            // One direction does not see every entry: check each row of the Jacobian with unit seeds.
            self.check_rows(x);
        }
        self
    }

    /// The gradient of each result, against finite differences.
    #[track_caller]
    fn check_rows(&self, x: &[f64]) {
        let Some(reverse) = &self.reverse else { return };
        for row in 0..self.outputs {
            let mut gradient = vec![0.0; x.len()];
            let mut seed = vec![0.0; self.outputs];
            seed[row] = 1.0;
            reverse(
                x,
                &mut gradient,
                &mut vec![f64::NAN; self.outputs],
                &mut seed,
            );
            let expected = crate::gradient_by_differences(
                |x| {
                    let mut y = vec![f64::NAN; self.outputs];
                    (self.primal)(x, &mut y);
                    y[row]
                },
                x,
            );
            assert_all_close(
                &format!("{}: gradient of result {row}", self.name),
                &gradient,
                &expected,
                DIFFERENCES,
            );
        }
    }
}
