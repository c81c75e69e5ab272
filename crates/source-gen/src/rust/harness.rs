//! Calls value, gradient and directional derivatives of each function, compares them with finite differences and each other, and prints the result.

/// A function and how to call it.
struct Case {
    name: &'static str,
    inputs: usize,
    seed: u64,
    value: fn(&[f64]) -> f64,
    gradient: fn(&[f64]) -> (f64, Vec<f64>),
    tangent: fn(&[f64], &[f64]) -> (f64, f64),
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for case in cases() {
        if !wanted.is_empty() && !wanted.iter().any(|name| name == case.name) {
            continue;
        }
        for point in 0..2 {
            println!("start {} {point}", case.name);
            let x = inputs(case.seed, point, case.inputs);
            check(&case, &x);
        }
    }
    println!("end");
}

fn check(case: &Case, x: &[f64]) {
    let Some(value) = quietly(|| (case.value)(x)) else {
        println!("unclear the function panics");
        return;
    };
    if !value.is_finite() || value.abs() > 1e3 {
        println!("unclear the value is {value:e}");
        return;
    }
    let (primal, gradient) = (case.gradient)(x);
    let (again, repeated) = (case.gradient)(x);
    let scale = gradient.iter().fold(1.0_f64, |scale, g| scale.max(g.abs()));
    if !(close(primal, value, 1e-9) && close(again, value, 1e-9)) {
        println!("wrong the primal returns {value:e}, the derivative {primal:e} and {again:e}");
        return;
    }
    let differs = |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits() && !(a - b == 0.0);
    if gradient.iter().zip(&repeated).any(differs) {
        println!("wrong the gradient is {gradient:?} and then {repeated:?}");
        return;
    }
    let mut clear = true;
    for index in 0..x.len() {
        let mut direction = vec![0.0; x.len()];
        direction[index] = 1.0;
        let (primal, tangent) = (case.tangent)(x, &direction);
        if !close(primal, value, 1e-9) {
            println!("wrong the primal returns {value:e}, forward mode {primal:e}");
            return;
        }
        let difference = difference(case.value, x, index);
        let reverse = gradient[index];
        if let Some(difference) = difference {
            let scale = difference.abs().max(1.0);
            for (mode, derivative) in [("reverse", reverse), ("forward", tangent)] {
                if !((derivative - difference).abs() <= 1e-4 * scale) {
                    println!("wrong by x{index}: {mode} mode {derivative:e}, differences {difference:e}");
                    return;
                }
            }
        }
        clear &= difference.is_some();
        let both_nan = reverse.is_nan() && tangent.is_nan() && difference.is_none();
        if !((reverse - tangent).abs() <= 1e-8 * scale) && !both_nan {
            println!("wrong by x{index}: reverse mode {reverse:e}, forward mode {tangent:e}");
            return;
        }
    }
    let numbers: Vec<String> = std::iter::once(&value)
        .chain(&gradient)
        .map(|number| format!("{:016x}", number.to_bits()))
        .collect();
    println!("{} {}", if clear { "right" } else { "edge" }, numbers.join(" "));
}

/// The partial derivative by finite differences; none where they do not agree with each other, near an edge.
fn difference(function: fn(&[f64]) -> f64, x: &[f64], index: usize) -> Option<f64> {
    let at = |step: f64| {
        let mut x = x.to_vec();
        x[index] += step;
        quietly(|| function(&x)).unwrap_or(f64::NAN)
    };
    let central = |h: f64| (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
    let side = |h: f64| (4.0 * at(h) - at(2.0 * h) - 3.0 * at(0.0)) / (2.0 * h);
    let (left, right) = (side(-1e-5), side(1e-5));
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-5 * a.abs().max(1.0);
    if !near(left, right) {
        return None;
    }
    let [large, middle, small] = [2e-3, 2e-4, 2e-5].map(central);
    if near(large, middle) || near(middle, small) {
        return near(middle, left).then_some(middle);
    }
    None
}

fn quietly(function: impl Fn() -> f64) -> Option<f64> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(function)).ok()
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(1.0)
}

/// Inputs that are the same for the same seed: SplitMix64.
fn inputs(seed: u64, point: u64, count: usize) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (point << 60);
    let next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let bits = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let unit = ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        -1.3 + 2.6 * unit
    };
    std::iter::repeat_with(next).take(count).collect()
}
