//! ADBench's measure of agreement.

/// The largest error of the benchmark's kind, |x − y| / max(1, |x| + |y|); infinite where lengths differ or a number is none.
pub fn largest_error(found: &[f64], expected: &[f64]) -> f64 {
    if found.len() != expected.len() {
        return f64::INFINITY;
    }
    found.iter().zip(expected).fold(0.0, |largest, (&x, &y)| {
        let error = (x - y).abs() / (x.abs() + y.abs()).max(1.0);
        if error.is_nan() {
            return f64::INFINITY;
        }
        f64::max(largest, error)
    })
}

/// What ADBench accepts.
pub const TOLERANCE: f64 = 1e-8;
