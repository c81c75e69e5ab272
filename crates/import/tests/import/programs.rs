//! What people write: imported from what rustc makes of it, and run beside the original.

macro_rules! programs {
    ($($(#[$attribute:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $result:ty)? $body:block)*) => {
        $(
            $(#[$attribute])*
            #[cfg_attr(not(test), unsafe(no_mangle))]
            #[allow(clippy::needless_range_loop, clippy::manual_memcpy, clippy::explicit_counter_loop)]
            pub fn $name($($arg: $ty),*) $(-> $result)? $body
        )*
    };
}

programs! {
    fn sum(x: &[f64]) -> f64 {
        x.iter().sum()
    }

    fn dot(x: &[f64], y: &[f64]) -> f64 {
        let mut sum = 0.0;
        for i in 0..x.len() {
            sum += x[i] * y[i];
        }
        sum
    }

    fn zip(x: &[f64], y: &[f64]) -> f64 {
        x.iter().zip(y).map(|(a, b)| a * b).sum()
    }

    fn matrix_times_vector(a: &[f64], x: &[f64], y: &mut [f64]) {
        let n = x.len();
        for i in 0..y.len() {
            let mut sum = 0.0;
            for j in 0..n {
                sum += a[i * n + j] * x[j];
            }
            y[i] = sum;
        }
    }

    fn matrix_product(a: &[f64], b: &[f64], c: &mut [f64], n: usize) {
        for i in 0..n {
            for j in 0..n {
                let mut sum = 0.0;
                for k in 0..n {
                    sum += a[i * n + k] * b[k * n + j];
                }
                c[i * n + j] = sum;
            }
        }
    }

    fn windows(x: &[f64]) -> f64 {
        x.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum()
    }

    fn second_differences(x: &[f64], y: &mut [f64]) {
        for (i, w) in x.windows(3).enumerate() {
            y[i] = w[0] - 2.0 * w[1] + w[2];
        }
    }

    fn chunks(x: &[f64]) -> f64 {
        x.chunks(3).map(|chunk| chunk.iter().product::<f64>()).sum()
    }

    fn chunks_of(x: &[f64], n: usize) -> f64 {
        x.chunks(n).map(|chunk| chunk.iter().product::<f64>()).sum()
    }

    fn chunks_exact(x: &[f64]) -> f64 {
        x.chunks_exact(4).map(|c| c[0] * c[1] + c[2] * c[3]).sum()
    }

    fn rows_into(x: &[f64], y: &mut [f64], n: usize) {
        for (row, out) in x.chunks(n).zip(y.iter_mut()) {
            *out = row.iter().sum();
        }
    }

    fn backwards(x: &[f64]) -> f64 {
        let mut sum = 0.0;
        for (i, v) in x.iter().enumerate().rev() {
            sum = sum * 0.5 + v * i as f64;
        }
        sum
    }

    fn every_other(x: &[f64]) -> f64 {
        let mut sum = 0.0;
        for i in (0..x.len()).step_by(2) {
            sum += x[i];
        }
        sum
    }

    fn counting_down(x: &[f64]) -> f64 {
        let mut i = x.len();
        let mut sum = 1.0;
        while i > 0 {
            i -= 1;
            sum += x[i] * sum;
        }
        sum
    }

    fn with_their_end(x: &[f64], n: usize) -> f64 {
        let mut sum = 0.0;
        for i in 1..=n {
            sum += x[i - 1] / i as f64;
        }
        sum
    }

    fn harmonic(n: i32) -> f64 {
        let mut sum = 0.0;
        for i in 1..=n {
            sum += 1.0 / i as f64;
        }
        sum
    }

    fn scaled_sum(a: f64, x: &[f64], y: &mut [f64]) {
        for (y, x) in y.iter_mut().zip(x) {
            *y += a * x;
        }
    }

    fn bend(x: &mut [f64]) {
        for v in x {
            if *v < 0.0 {
                *v = 0.0;
            } else if *v > 1.0 {
                *v = 1.0 + v.ln();
            }
        }
    }

    fn softmax(x: &mut [f64]) {
        let largest = x.iter().cloned().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for v in x.iter_mut() {
            *v = (*v - largest).exp();
            sum += *v;
        }
        for v in x.iter_mut() {
            *v /= sum;
        }
    }

    fn joined(x: &[f64], y: &[f64]) -> f64 {
        x.iter().chain(y).map(|v| v.exp()).sum()
    }

    fn filtered(x: &[f64]) -> f64 {
        x.iter().filter(|v| **v > 0.0).map(|v| v.ln()).sum()
    }

    fn some_in_between(x: &[f64]) -> f64 {
        x.iter().skip(2).take(5).sum()
    }

    fn collected(x: &[f64]) -> f64 {
        let doubled: Vec<f64> = x.iter().map(|v| v * 2.0).collect();
        doubled.iter().rev().fold(1.0, |a, b| a * 0.5 + b)
    }

    fn rows(x: &[f64]) -> f64 {
        let rows: Vec<Vec<f64>> = x.iter().map(|v| vec![*v; 3]).collect();
        let mut sum = 0.0;
        for row in &rows {
            for v in row {
                sum += v.sin();
            }
        }
        sum
    }

    fn grown(x: &[f64]) -> f64 {
        let mut squares = Vec::new();
        for v in x {
            squares.push(v * v);
        }
        squares.iter().sum()
    }

    fn cloned(x: &[f64]) -> f64 {
        let mut copy = x.to_vec();
        copy[0] = 3.0;
        copy.iter().product()
    }

    fn found(x: &[f64], limit: f64) -> f64 {
        for v in x {
            if *v > limit {
                return *v * 2.0;
            }
        }
        0.0
    }

    fn until_both(x: f64) -> f64 {
        let mut y = x;
        let mut i = 0;
        while y < 100.0 && i < 20 {
            y *= 1.5;
            i += 1;
        }
        y
    }

    fn square_root(x: f64) -> f64 {
        let mut y = x;
        for _ in 0..50 {
            let step = (y * y - x) / (2.0 * y);
            y -= step;
            if step.abs() < 1e-12 {
                break;
            }
        }
        y
    }

    fn adaptive_steps(x: f64) -> f64 {
        let (mut t, mut y, mut h) = (0.0, x, 0.1);
        while t < 1.0 {
            if t + h > 1.0 {
                h = 1.0 - t;
            }
            let slope = -y;
            if (h * slope).abs() < 0.1 {
                y += h * slope;
                t += h;
                h *= 1.5;
            } else {
                h *= 0.5;
            }
        }
        y
    }

    fn cholesky(a: &mut [f64], n: usize) {
        for i in 0..n {
            for j in 0..=i {
                let mut sum = a[i * n + j];
                for k in 0..j {
                    sum -= a[i * n + k] * a[j * n + k];
                }
                if i == j {
                    a[i * n + i] = sum.sqrt();
                } else {
                    a[i * n + j] = sum / a[j * n + j];
                }
            }
        }
    }

    fn determinant(x: &[f64], n: usize) -> f64 {
        let mut a: Vec<Vec<f64>> = x.chunks(n).map(<[f64]>::to_vec).collect();
        let mut product = 1.0;
        for k in 0..n {
            let mut pivot = k;
            for i in k + 1..n {
                if a[i][k].abs() > a[pivot][k].abs() {
                    pivot = i;
                }
            }
            if pivot != k {
                a.swap(pivot, k);
                product = -product;
            }
            product *= a[k][k];
            for i in k + 1..n {
                let factor = a[i][k] / a[k][k];
                for j in k..n {
                    let above = a[k][j];
                    a[i][j] -= factor * above;
                }
            }
        }
        product
    }

    fn fourier(re: &mut [f64], im: &mut [f64]) {
        let n = re.len();
        let mut j = 0;
        for i in 1..n {
            let mut bit = n >> 1;
            while j & bit != 0 {
                j ^= bit;
                bit >>= 1;
            }
            j ^= bit;
            if i < j {
                re.swap(i, j);
                im.swap(i, j);
            }
        }
        let mut length = 2;
        while length <= n {
            let angle = std::f64::consts::TAU / length as f64;
            let half = length / 2;
            for i in (0..n).step_by(length) {
                for k in 0..half {
                    let (s, c) = (angle * k as f64).sin_cos();
                    let (ur, ui) = (re[i + k], im[i + k]);
                    let (xr, xi) = (re[i + k + half], im[i + k + half]);
                    let (vr, vi) = (xr * c - xi * s, xr * s + xi * c);
                    re[i + k] = ur + vr;
                    im[i + k] = ui + vi;
                    re[i + k + half] = ur - vr;
                    im[i + k + half] = ui - vi;
                }
            }
            length <<= 1;
        }
    }

    fn relaxed(x: &mut [f64], b: &[f64]) {
        let n = b.len();
        for _ in 0..10 {
            for i in 1..n - 1 {
                x[i] = 0.5 * (x[i - 1] + x[i + 1] + b[i]);
            }
        }
    }

    fn copied(a: &mut [f64], b: &[f64]) {
        a.copy_from_slice(b);
        a.reverse();
    }

    fn sorted(x: &mut [f64]) {
        x.sort_by(|a, b| a.partial_cmp(b).unwrap());
    }

    fn median(x: &[f64]) -> f64 {
        let mut copy = x.to_vec();
        copy.sort_unstable_by(f64::total_cmp);
        copy[copy.len() / 2]
    }

    fn shapes(x: &[f64]) -> f64 {
        let area = |shape: Shape| match shape {
            Shape::Circle(r) => std::f64::consts::PI * r * r,
            Shape::Rectangle(a, b) => a * b,
            Shape::Nothing => 0.0,
        };
        let mut sum = 0.0;
        for (i, v) in x.iter().enumerate() {
            sum += area(match i % 3 {
                0 => Shape::Circle(*v),
                1 => Shape::Rectangle(*v, sum),
                _ => Shape::Nothing,
            });
        }
        sum
    }

    fn options(x: &[f64]) -> f64 {
        let options: Vec<Option<f64>> = x.iter().map(|v| (*v > 1.0).then_some(v.sqrt())).collect();
        options.iter().flatten().sum()
    }

    fn tree(x: &[f64]) -> f64 {
        sum_tree(&build_tree(x))
    }

    fn behind_traits(x: &[f64]) -> f64 {
        let functions: Vec<Box<dyn Curve>> = x
            .iter()
            .map(|v| -> Box<dyn Curve> {
                if *v > 1.0 { Box::new(Line(*v)) } else { Box::new(Wave(*v, 2.0)) }
            })
            .collect();
        functions.iter().fold(0.5, |y, curve| curve.at(y))
    }

    fn through_pointers(x: f64, n: usize) -> f64 {
        let table: [fn(f64) -> f64; 3] = [f64::sin, |x| x * x, twice];
        let mut y = x;
        for i in 0..n {
            y = table[i % 3](y);
        }
        y
    }

    fn narrow(x: &[f64]) -> f64 {
        let narrow: Vec<f32> = x.iter().map(|v| *v as f32).collect();
        narrow.iter().map(|v| f64::from((v * v + 0.1).sqrt())).sum()
    }

    fn whole_numbers(x: &[f64]) -> f64 {
        let mut hash: u64 = 14695981039346656037;
        for v in x {
            let n = *v as i64;
            hash = (hash ^ n.unsigned_abs()).wrapping_mul(1099511628211).rotate_left(7);
            hash ^= u64::from(n.leading_zeros()) + u64::from((n as u32).count_ones());
            hash = hash.saturating_sub(n.checked_mul(n).map_or(1, |n| n as u64));
            hash ^= (n.cmp(&3) as i64 as u64).swap_bytes();
        }
        (hash >> 40) as f64
    }

    fn mathematics(x: f64) -> f64 {
        let trigonometry = x.sin() + x.cos() * x.tan() + x.atan() + x.atan2(2.0) + (x * 0.1).asin() + (x * 0.1).acos();
        let hyperbolic = x.sinh() + x.cosh() + x.tanh() + x.asinh() + (x + 1.0).acosh() + (x * 0.1).atanh();
        let powers = x.exp() + x.exp2() + x.exp_m1() + x.ln() + x.log2() + x.log10() + x.ln_1p() + x.powf(1.5) + x.powi(3);
        let roots = x.sqrt() + x.cbrt() + x.hypot(2.0) + x.mul_add(2.0, 1.0);
        let rounding = x.floor() + x.ceil() + x.round() + x.trunc() + x.fract() + x.round_ties_even() + x.rem_euclid(0.7);
        let others = x.abs() + x.signum() + x.copysign(-1.0) + x.max(1.0) + x.min(2.0) + x.clamp(0.5, 1.5) + x.recip() + x % 0.3;
        let classes = [x.is_nan(), x.is_finite(), x.is_normal(), x.is_sign_negative(), (x * 0.0).is_subnormal()];
        let bits = classes.iter().enumerate().fold(0, |bits, (i, class)| bits | (i32::from(*class) << i));
        trigonometry + hyperbolic + powers + roots + rounding + others + f64::from(bits)
    }

    fn overflow_is_checked(x: &[f64]) -> f64 {
        let mut total: i32 = 0;
        for v in x {
            total = total.wrapping_mul(31).wrapping_add(*v as i32);
            let (next, over) = total.overflowing_add(1 << 30);
            total = if over { total.saturating_add(i32::MAX) } else { next };
        }
        f64::from(total)
    }
}

pub enum Shape {
    Circle(f64),
    Rectangle(f64, f64),
    Nothing,
}

pub struct Tree {
    value: f64,
    left: Option<Box<Tree>>,
    right: Option<Box<Tree>>,
}

fn build_tree(x: &[f64]) -> Tree {
    let (value, rest) = match x.split_first() {
        Some((value, rest)) => (*value, rest),
        None => (1.0, x),
    };
    let (left, right) = rest.split_at(rest.len() / 2);
    let branch = |x: &[f64]| (!x.is_empty()).then(|| Box::new(build_tree(x)));
    Tree {
        value,
        left: branch(left),
        right: branch(right),
    }
}

fn sum_tree(tree: &Tree) -> f64 {
    let below = |branch: &Option<Box<Tree>>| branch.as_ref().map_or(0.5, |branch| sum_tree(branch));
    tree.value * tree.value + below(&tree.left) * below(&tree.right)
}

pub trait Curve {
    fn at(&self, x: f64) -> f64;
}

pub struct Line(f64);
pub struct Wave(f64, f64);

impl Curve for Line {
    fn at(&self, x: f64) -> f64 {
        self.0 * x
    }
}

impl Curve for Wave {
    fn at(&self, x: f64) -> f64 {
        self.0 * x.sin() + self.1
    }
}

fn twice(x: f64) -> f64 {
    2.0 * x
}
