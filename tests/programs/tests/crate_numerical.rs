//! Published crates with numerical algorithms of their own: root finding, special functions, differential equations.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{
    DIFFERENCES, EXACT, Field, Scalar, assert_all_close, assert_close, gradient_by_differences,
};
use ode_solvers::dop_shared::OutputType;
use ode_solvers::{Dopri5, Rk4, SVector, System, Vector2};

#[autodiff_reverse(dcubic, Duplicated, Active)]
#[autodiff_forward(bcubic, Dual, Dual)]
fn cubic(c: &[f64]) -> f64 {
    match roots::find_roots_cubic(c[0], c[1], c[2], c[3]) {
        roots::Roots::One([a]) => a,
        roots::Roots::Three([a, b, c]) => a * b + c * c,
        _ => 0.0,
    }
}

#[test]
fn roots_of_a_cubic_in_closed_form() {
    // One real root, and three. (Where the first coefficient is 1, the crate takes a way that does not read it.)
    Field::new("roots: cubic with one root", cubic)
        .reverse(dcubic)
        .forward(bcubic)
        .check(&[1.1, 0.5, 2.0, -3.5]);
    Field::new("roots: cubic with three roots", cubic)
        .reverse(dcubic)
        .forward(bcubic)
        .check(&[1.1, -0.5, -4.0, 1.0]);
}

#[autodiff_reverse(dnewton, Active, Active)]
#[autodiff_forward(bnewton, Dual, Dual)]
fn newton(p: f64) -> f64 {
    let mut convergency = roots::SimpleConvergency {
        eps: 1e-14,
        max_iter: 50,
    };
    let root = roots::find_root_newton_raphson(
        1.0,
        |x: f64| x * x * x + p * x - 2.0,
        |x: f64| 3.0 * x * x + p,
        &mut convergency,
    );
    root.unwrap_or(f64::NAN)
}

#[test]
fn newton_raphson() {
    Scalar::new("roots: Newton–Raphson", newton)
        .reverse(dnewton)
        .forward(bnewton)
        .check(&[0.7, 1.9]);
}

#[autodiff_reverse(dgamma, Active, Active)]
#[autodiff_forward(bgamma, Dual, Dual)]
fn log_gamma(x: f64) -> f64 {
    statrs::function::gamma::ln_gamma(x)
}

#[test]
fn logarithm_of_gamma() {
    Scalar::new("statrs: ln_gamma", log_gamma)
        .reverse(dgamma)
        .forward(bgamma)
        .check(&[0.3, 1.7, 8.5]);
    for x in [0.3, 1.7, 8.5] {
        let gradient = dgamma(x, 1.0).1;
        assert_close(
            "digamma",
            gradient,
            statrs::function::gamma::digamma(x),
            1e-9,
        );
    }
}

#[autodiff_reverse(derf, Active, Active)]
#[autodiff_forward(berf, Dual, Dual)]
fn error_function(x: f64) -> f64 {
    statrs::function::erf::erf(x)
}

#[test]
fn error_function_by_its_series() {
    Scalar::new("statrs: erf", error_function)
        .reverse(derf)
        .forward(berf)
        .check(&[-1.2, 0.05, 0.4, 2.5]);
}

#[autodiff_reverse(dbeta, Duplicated, Active)]
#[autodiff_forward(bbeta, Dual, Dual)]
fn regularised_beta(x: &[f64]) -> f64 {
    statrs::function::beta::beta_reg(x[0], x[1], x[2])
}

#[test]
fn incomplete_beta_by_continued_fractions() {
    Field::new("statrs: beta_reg", regularised_beta)
        .reverse(dbeta)
        .forward(bbeta)
        .check(&[2.5, 1.5, 0.4]);
}

/// A damped oscillator as the crate wants systems to be.
struct Oscillator {
    frequency: f64,
    damping: f64,
}

impl System<f64, Vector2<f64>> for Oscillator {
    fn system(&self, _time: f64, y: &Vector2<f64>, dy: &mut Vector2<f64>) {
        dy[0] = y[1];
        dy[1] = -self.frequency * self.frequency * y[0] - self.damping * y[1];
    }
}

#[autodiff_reverse(dfixed, Duplicated, Active)]
#[autodiff_forward(bfixed, Dual, Dual)]
fn fixed_steps(x: &[f64]) -> f64 {
    let system = Oscillator {
        frequency: x[0],
        damping: x[1],
    };
    let mut stepper = Rk4::new(system, 0.0, Vector2::new(x[2], 0.0), 1.0, 0.05);
    if stepper.integrate().is_err() {
        return f64::NAN;
    }
    let last = stepper.y_out().last().unwrap();
    last[0] * last[1]
}

#[test]
fn runge_kutta_of_a_crate() {
    Field::new("ode_solvers: RK4", fixed_steps)
        .reverse(dfixed)
        .forward(bfixed)
        .check(&[2.0, 0.3, 1.5]);
}

#[autodiff_reverse(dadaptive, Duplicated, Active)]
#[autodiff_forward(badaptive, Dual, Dual)]
fn adaptive_steps(x: &[f64]) -> f64 {
    let system = Oscillator {
        frequency: x[0],
        damping: x[1],
    };
    // Every step's end is noted, and nothing between.
    let mut stepper = Dopri5::from_param(
        system,
        0.0,
        1.0,
        0.1,
        Vector2::new(x[2], 0.0),
        1e-12,
        1e-12,
        0.9,
        0.04,
        0.2,
        10.0,
        1.0,
        0.0,
        100_000,
        1000,
        OutputType::Sparse,
    );
    if stepper.integrate().is_err() {
        return f64::NAN;
    }
    let last: SVector<f64, 2> = *stepper.y_out().last().unwrap();
    last.dot(&SVector::from([1.0, 0.5]))
}

fn exact(x: &[f64]) -> f64 {
    let (w, decay) = (x[0], x[1] / 2.0);
    let turn = (w * w - decay * decay).sqrt();
    let (sin, cos) = turn.sin_cos();
    x[2] * (-decay).exp() * (cos + decay / turn * sin - 0.5 * w * w / turn * sin)
}

/// The choice of steps jumps when the parameters move, so the solver is compared with the exact solution, not with its own
/// finite differences.
#[test]
fn dormand_prince_of_a_crate() {
    let x = [2.0, 0.3, 1.5];
    let expected = gradient_by_differences(exact, &x);
    assert_close(
        "the test is at fault: solver against exact solution",
        adaptive_steps(&x),
        exact(&x),
        1e-9,
    );
    let mut gradient = [0.0; 3];
    let value = dadaptive(&x, &mut gradient, 1.0);
    assert_close("ode_solvers: value", value, adaptive_steps(&x), 1e-12);
    assert_all_close("ode_solvers: gradient", &gradient, &expected, DIFFERENCES);
    let direction = [0.5, -1.0, 2.0];
    let (_, tangent) = badaptive(&x, &direction);
    let product: f64 = gradient.iter().zip(&direction).map(|(g, v)| g * v).sum();
    assert_close("ode_solvers: both modes", tangent, product, EXACT);
}
