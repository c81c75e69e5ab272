//! Finite differences in `f64`: central differences at two steps, extrapolated to fourth order.

/// The derivative at zero of a function of one variable.
fn derivative_at_zero(f: impl Fn(f64) -> f64, step: f64) -> f64 {
    let central = |h: f64| (f(h) - f(-h)) / (2.0 * h);
    (4.0 * central(step / 2.0) - central(step)) / 3.0
}

/// The gradient of `f` at `x`, one entry at a time.
pub fn gradient_by_differences(f: impl Fn(&[f64]) -> f64, x: &[f64]) -> Vec<f64> {
    (0..x.len())
        .map(|i| {
            let moved = |h: f64| {
                let mut x = x.to_vec();
                x[i] += h;
                f(&x)
            };
            derivative_at_zero(moved, 1e-3 * x[i].abs().max(0.1))
        })
        .collect()
}

/// The derivative of each result of `f` at `x` along `direction`.
pub fn directional_derivative(
    f: impl Fn(&[f64]) -> Vec<f64>,
    x: &[f64],
    direction: &[f64],
) -> Vec<f64> {
    let smallest = x
        .iter()
        .fold(1.0f64, |smallest, entry| smallest.min(entry.abs().max(0.1)));
    let step = 1e-3 * smallest;
    let at = |h: f64| {
        let moved: Vec<f64> = x.iter().zip(direction).map(|(x, v)| x + h * v).collect();
        f(&moved)
    };
    let (left, right) = (at(-step), at(step));
    let (near_left, near_right) = (at(-step / 2.0), at(step / 2.0));
    (0..left.len())
        .map(|i| {
            (4.0 * (near_right[i] - near_left[i]) / step - (right[i] - left[i]) / (2.0 * step))
                / 3.0
        })
        .collect()
}
