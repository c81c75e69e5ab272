//! How fast must a pendulum be pushed to stand upright after two seconds? Newton's method on the result of an integration, differentiated in forward mode.

use ferrozyme::{autodiff_forward, hessian};

/// The angle after two seconds, for an initial angular velocity.
#[autodiff_forward(angle_and_slope, Dual, Dual)]
fn angle(velocity: f64) -> f64 {
    let (mut angle, mut speed) = (0.0, velocity);
    let step = 1e-3;
    for _ in 0..2000 {
        let middle = speed - 0.5 * step * 9.81 * f64::sin(angle);
        angle += step * middle;
        speed = middle - 0.5 * step * 9.81 * f64::sin(angle);
    }
    angle
}

fn main() {
    let mut velocity = 6.3;
    for step in 0..8 {
        let (angle, slope) = angle_and_slope(velocity, 1.0);
        let error = angle - std::f64::consts::PI;
        println!("step {step}  velocity {velocity:.12}  error {error:+.3e}");
        velocity -= error / slope;
    }
    let curvature = hessian(|v: &[f64]| angle(v[0]), &[velocity]);
    println!(
        "second derivative of the angle there: {:.3}",
        curvature[0][0]
    );
}
