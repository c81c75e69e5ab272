//! Iterations that end when they have found something: Newton's method, bisection, secants, minimisation inside.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{Field, Scalar};

#[autodiff_reverse(dsquare_root, Active, Active)]
#[autodiff_forward(bsquare_root, Dual, Dual)]
fn square_root(a: f64) -> f64 {
    let mut x = a;
    while (x * x - a).abs() > 1e-14 * a {
        x = 0.5 * (x + a / x);
    }
    x
}

#[test]
fn newton_for_a_square_root() {
    Scalar::new("Newton square root", square_root)
        .reverse(dsquare_root)
        .forward(bsquare_root)
        .check(&[0.5, 2.0, 9.5]);
}

/// Newton's method for any function and its slope.
fn newton(f: impl Fn(f64) -> f64, slope: impl Fn(f64) -> f64, start: f64) -> Option<f64> {
    let mut x = start;
    for _ in 0..50 {
        let step = f(x) / slope(x);
        x -= step;
        if step.abs() < 1e-15 * (1.0 + x.abs()) {
            return Some(x);
        }
    }
    None
}

#[autodiff_reverse(dkepler, Active, Active, Active)]
#[autodiff_forward(bkepler, Dual, Dual, Dual)]
fn kepler(anomaly: f64, eccentricity: f64) -> f64 {
    let root = newton(
        |e| e - eccentricity * e.sin() - anomaly,
        |e| 1.0 - eccentricity * e.cos(),
        anomaly,
    );
    root.unwrap_or(f64::NAN).sin()
}

#[test]
fn keplers_equation() {
    Field::new("Kepler", |x| kepler(x[0], x[1]))
        .reverse(|x, dx, seed| {
            let (value, a, b) = dkepler(x[0], x[1], seed);
            dx[0] += a;
            dx[1] += b;
            value
        })
        .forward(|x, v| bkepler(x[0], v[0], x[1], v[1]))
        .closed_form(|x| {
            let e = newton(
                |e| e - x[1] * e.sin() - x[0],
                |e| 1.0 - x[1] * e.cos(),
                x[0],
            )
            .unwrap();
            let slope = 1.0 - x[1] * e.cos();
            vec![e.cos() / slope, e.cos() * e.sin() / slope]
        })
        .check(&[1.2, 0.3]);
}

#[autodiff_reverse(dbracket, Duplicated, Active)]
#[autodiff_forward(bbracket, Dual, Dual)]
fn bisect_then_polish(c: &[f64]) -> f64 {
    // Bisection alone would have no derivative; the last Newton steps carry it.
    let f = |x: f64| c[0] * x * x * x + c[1] * x + c[2];
    let (mut low, mut high) = (-4.0, 4.0);
    for _ in 0..30 {
        let middle = 0.5 * (low + high);
        if (f(low) < 0.0) == (f(middle) < 0.0) {
            low = middle
        } else {
            high = middle
        }
    }
    let mut x = low;
    for _ in 0..3 {
        x -= f(x) / (3.0 * c[0] * x * x + c[1]);
    }
    x
}

#[test]
fn bisection_with_newton_at_the_end() {
    Field::new("bisection and Newton", bisect_then_polish)
        .reverse(dbracket)
        .forward(bbracket)
        .closed_form(|c| {
            let x = bisect_then_polish(c);
            let slope = 3.0 * c[0] * x * x + c[1];
            vec![-x * x * x / slope, -x / slope, -1.0 / slope]
        })
        .check(&[1.0, 2.0, -3.5]);
}

#[autodiff_reverse(dsecant, Active, Active)]
#[autodiff_forward(bsecant, Dual, Dual)]
fn secant(a: f64) -> f64 {
    let f = |x: f64| x.exp() - a * x - 2.0;
    let (mut x0, mut x1) = (1.0, 2.0);
    let (mut f0, mut f1) = (f(x0), f(x1));
    let mut left = 40;
    while f1.abs() > 1e-13 && left > 0 {
        let next = x1 - f1 * (x1 - x0) / (f1 - f0);
        (x0, f0) = (x1, f1);
        x1 = next;
        f1 = f(x1);
        left -= 1;
    }
    // One exact Newton step: the secant's own derivative is not that of the root.
    x1 - f1 / (x1.exp() - a)
}

#[test]
fn secant_method() {
    Scalar::new("secant", secant)
        .reverse(dsecant)
        .forward(bsecant)
        .closed_form(|a| {
            let x = secant(a);
            x / (x.exp() - a)
        })
        .check(&[0.5, 1.5]);
}

#[autodiff_reverse(dsystem, Duplicated, Active)]
#[autodiff_forward(bsystem, Dual, Dual)]
fn newton_for_a_system(p: &[f64]) -> f64 {
    let (mut x, mut y) = (2.0, 1.0);
    for iteration in 0.. {
        let (f, g) = (x * x + y * y - p[0], x * y - p[1]);
        let (fx, fy, gx, gy) = (2.0 * x, 2.0 * y, y, x);
        let determinant = fx * gy - fy * gx;
        let (dx, dy) = (
            (f * gy - g * fy) / determinant,
            (fx * g - gx * f) / determinant,
        );
        x -= dx;
        y -= dy;
        if dx.abs() + dy.abs() < 1e-15 || iteration > 60 {
            break;
        }
    }
    x * x * y
}

#[test]
fn system_of_two_equations() {
    Field::new("Newton for a system", newton_for_a_system)
        .reverse(dsystem)
        .forward(bsystem)
        .check(&[5.0, 1.5]);
}

#[autodiff_reverse(dinner, Duplicated, Active)]
#[autodiff_forward(binner, Dual, Dual)]
fn descend(x: &[f64]) -> f64 {
    // Gradient descent with a line search inside the function that is differentiated.
    let objective = |w: f64| (x[0] * w - 1.0).powi(2) + x[1] * w.powi(4);
    let slope = |w: f64| 2.0 * x[0] * (x[0] * w - 1.0) + 4.0 * x[1] * w.powi(3);
    let mut w = 0.1;
    for _ in 0..8 {
        let g = slope(w);
        let mut rate = 0.25;
        while objective(w - rate * g) > objective(w) {
            rate *= 0.5;
        }
        w -= rate * g;
    }
    w * w
}

#[test]
fn descent_with_line_search() {
    Field::new("descent", descend)
        .reverse(dinner)
        .forward(binner)
        .check(&[1.5, 0.3]);
}
