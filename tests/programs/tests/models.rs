//! Whole models as people write them: statistics, filters, networks, physics, geometry.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{Field, random_vector};

/// A mixture of Gaussians with a triangular factor of each inverse covariance (one of the ADBench programs).
struct Mixture<'a> {
    weights: &'a [f64],
    means: &'a [f64],
    factors: &'a [f64],
}

#[autodiff_reverse(dmixture, Duplicated, Const, Const, Const, Active)]
#[autodiff_forward(bmixture, Dual, Const, Const, Const, Dual)]
fn mixture(parameters: &[f64], samples: &[f64], components: usize, dimension: usize) -> f64 {
    let (weights, rest) = parameters.split_at(components);
    let (means, factors) = rest.split_at(components * dimension);
    let model = Mixture {
        weights,
        means,
        factors,
    };
    let size = dimension * (dimension + 1) / 2;
    let normaliser = log_sum_exp(model.weights);
    let mut total = 0.0;
    let mut terms = vec![0.0; components];
    let mut centred = vec![0.0; dimension];
    for sample in samples.chunks_exact(dimension) {
        for k in 0..components {
            let factor = &model.factors[k * size..(k + 1) * size];
            for i in 0..dimension {
                centred[i] = sample[i] - model.means[k * dimension + i];
            }
            let mut square = 0.0;
            let mut log_diagonal = 0.0;
            let mut next = dimension;
            for i in 0..dimension {
                log_diagonal += factor[i];
                let mut entry = factor[i].exp() * centred[i];
                for j in 0..i {
                    entry += factor[next] * centred[j];
                    next += 1;
                }
                square += entry * entry;
            }
            terms[k] = model.weights[k] + log_diagonal - 0.5 * square;
        }
        total += log_sum_exp(&terms) - normaliser;
    }
    total
}

fn log_sum_exp(x: &[f64]) -> f64 {
    let largest = x.iter().cloned().fold(f64::NEG_INFINITY, f64::max);
    largest + x.iter().map(|x| (x - largest).exp()).sum::<f64>().ln()
}

#[test]
fn gaussian_mixture() {
    let (components, dimension) = (3, 2);
    let parameters = random_vector(components * (1 + dimension + 3), 21);
    let samples = random_vector(5 * dimension, 22);
    Field::new("Gaussian mixture", |p| {
        mixture(p, &samples, components, dimension)
    })
    .reverse(|p, dp, seed| dmixture(p, dp, &samples, components, dimension, seed))
    .forward(|p, v| bmixture(p, v, &samples, components, dimension))
    .check(&parameters);
}

#[autodiff_reverse(dbundle, Duplicated, Duplicated, Const, Active)]
#[autodiff_forward(bbundle, Dual, Dual, Const, Dual)]
fn bundle(camera: &[f64; 11], point: &[f64; 3], feature: &[f64; 2]) -> f64 {
    // Rotation by Rodrigues' formula, projection, radial distortion.
    let (rotation, centre) = (&camera[..3], &camera[3..6]);
    let moved = [
        point[0] - centre[0],
        point[1] - centre[1],
        point[2] - centre[2],
    ];
    let square: f64 = rotation.iter().map(|r| r * r).sum();
    let turned = if square > 1e-12 {
        let angle = square.sqrt();
        let (sin, cos) = angle.sin_cos();
        let axis: Vec<f64> = rotation.iter().map(|r| r / angle).collect();
        let cross = [
            axis[1] * moved[2] - axis[2] * moved[1],
            axis[2] * moved[0] - axis[0] * moved[2],
            axis[0] * moved[1] - axis[1] * moved[0],
        ];
        let dot: f64 = axis.iter().zip(&moved).map(|(a, m)| a * m).sum();
        std::array::from_fn(|i| moved[i] * cos + cross[i] * sin + axis[i] * dot * (1.0 - cos))
    } else {
        moved
    };
    let [x, y] = [turned[0] / turned[2], turned[1] / turned[2]];
    let radius = x * x + y * y;
    let distortion = 1.0 + camera[9] * radius + camera[10] * radius * radius;
    let u = camera[6] * distortion * x + camera[7];
    let v = camera[6] * distortion * y + camera[8];
    (u - feature[0]).powi(2) + (v - feature[1]).powi(2)
}

#[test]
fn bundle_adjustment() {
    let split = |x: &[f64]| -> ([f64; 11], [f64; 3]) {
        (x[..11].try_into().unwrap(), x[11..].try_into().unwrap())
    };
    let feature = [0.3, -0.2];
    let mut x = vec![0.1, -0.2, 0.3, 0.05, -0.1, 0.2, 1.5, 0.1, -0.1, 0.05, 0.01];
    x.extend([0.4, -0.3, 3.0]);
    let check = |x: &[f64]| {
        Field::new("bundle adjustment", |x| {
            bundle(&split(x).0, &split(x).1, &feature)
        })
        .reverse(|x, dx, seed| {
            let (mut dcamera, mut dpoint) = split(dx);
            let value = dbundle(
                &split(x).0,
                &mut dcamera,
                &split(x).1,
                &mut dpoint,
                &feature,
                seed,
            );
            dx[..11].copy_from_slice(&dcamera);
            dx[11..].copy_from_slice(&dpoint);
            value
        })
        .forward(|x, v| bbundle(&split(x).0, &split(v).0, &split(x).1, &split(v).1, &feature))
        .check(x);
    };
    check(&x);
}

#[autodiff_reverse(dhidden, Duplicated, Const, Active)]
#[autodiff_forward(bhidden, Dual, Const, Dual)]
fn hidden_markov(parameters: &[f64], observations: &[usize]) -> f64 {
    // Two states, three symbols; rows are softmaxes. The forward algorithm with scaling.
    let softmax = |row: &[f64]| -> Vec<f64> {
        let sum: f64 = row.iter().map(|x| x.exp()).sum();
        row.iter().map(|x| x.exp() / sum).collect()
    };
    let transition: Vec<Vec<f64>> = parameters[..4].chunks(2).map(softmax).collect();
    let emission: Vec<Vec<f64>> = parameters[4..10].chunks(3).map(softmax).collect();
    let mut belief = softmax(&parameters[10..12]);
    let mut likelihood = 0.0;
    for &symbol in observations {
        let mut next = vec![0.0; 2];
        for (from, b) in belief.iter().enumerate() {
            for to in 0..2 {
                next[to] += b * transition[from][to] * emission[to][symbol];
            }
        }
        let scale: f64 = next.iter().sum();
        likelihood += scale.ln();
        next.iter_mut().for_each(|p| *p /= scale);
        belief = next;
    }
    likelihood
}

#[test]
fn hidden_markov_model() {
    let observations = [0, 2, 1, 1, 0, 2];
    Field::new("hidden Markov model", |p| hidden_markov(p, &observations))
        .reverse(|p, dp, seed| dhidden(p, dp, &observations, seed))
        .forward(|p, v| bhidden(p, v, &observations))
        .check(&random_vector(12, 31));
}

#[autodiff_reverse(dkalman, Duplicated, Const, Active)]
#[autodiff_forward(bkalman, Dual, Const, Dual)]
fn kalman(noise: &[f64], measurements: &[f64]) -> f64 {
    type Matrix = [[f64; 2]; 2];
    fn multiply(a: &Matrix, b: &Matrix) -> Matrix {
        let mut c = [[0.0; 2]; 2];
        for i in 0..2 {
            for j in 0..2 {
                for k in 0..2 {
                    c[i][j] += a[i][k] * b[k][j];
                }
            }
        }
        c
    }
    fn transpose(a: &Matrix) -> Matrix {
        [[a[0][0], a[1][0]], [a[0][1], a[1][1]]]
    }
    let step = [[1.0, 0.1], [0.0, 1.0]];
    let (mut state, mut covariance) = ([0.0, 1.0], [[1.0, 0.0], [0.0, 1.0]]);
    let mut likelihood = 0.0;
    for &z in measurements {
        state = [state[0] + 0.1 * state[1], state[1]];
        covariance = multiply(&multiply(&step, &covariance), &transpose(&step));
        covariance[0][0] += noise[0] * noise[0];
        covariance[1][1] += noise[1] * noise[1];
        let variance = covariance[0][0] + noise[2] * noise[2];
        let innovation = z - state[0];
        let gain = [covariance[0][0] / variance, covariance[1][0] / variance];
        likelihood -= 0.5 * (innovation * innovation / variance + variance.ln());
        for i in 0..2 {
            state[i] += gain[i] * innovation;
        }
        let kept = [[1.0 - gain[0], 0.0], [-gain[1], 1.0]];
        covariance = multiply(&kept, &covariance);
    }
    likelihood
}

#[test]
fn kalman_filter() {
    let measurements = [0.1, 0.25, 0.2, 0.45, 0.5];
    Field::new("Kalman filter", |x| kalman(x, &measurements))
        .reverse(|x, dx, seed| dkalman(x, dx, &measurements, seed))
        .forward(|x, v| bkalman(x, v, &measurements))
        .check(&[0.3, 0.2, 0.5]);
}

/// A long short-term memory cell over a sequence, with its gates in one flat array of weights.
fn lstm_step(weights: &[f64], input: f64, hidden: &mut [f64], cell: &mut [f64]) {
    let n = hidden.len();
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let mut gates = vec![0.0; 4 * n];
    for (g, gate) in gates.iter_mut().enumerate() {
        let row = &weights[g * (n + 2)..(g + 1) * (n + 2)];
        *gate = row[n + 1] + row[n] * input;
        for i in 0..n {
            *gate += row[i] * hidden[i];
        }
    }
    for i in 0..n {
        let (forget, add) = (
            sigmoid(gates[i]),
            sigmoid(gates[n + i]) * gates[2 * n + i].tanh(),
        );
        cell[i] = forget * cell[i] + add;
        hidden[i] = sigmoid(gates[3 * n + i]) * cell[i].tanh();
    }
}

#[autodiff_reverse(dlstm, Duplicated, Duplicated, Const, Active)]
#[autodiff_forward(blstm, Dual, Dual, Const, Dual)]
fn lstm(weights: &[f64], sequence: &[f64], n: usize) -> f64 {
    let (mut hidden, mut cell) = (vec![0.0; n], vec![0.0; n]);
    let mut loss = 0.0;
    for pair in sequence.windows(2) {
        lstm_step(weights, pair[0], &mut hidden, &mut cell);
        let prediction: f64 = hidden.iter().sum();
        loss += (prediction - pair[1]).powi(2);
    }
    loss
}

#[test]
fn long_short_term_memory() {
    let (n, length) = (3, 5);
    let weights = 4 * n * (n + 2);
    let x = random_vector(weights + length, 41);
    Field::new("LSTM", |x| lstm(&x[..weights], &x[weights..], n))
        .reverse(|x, dx, seed| {
            let (dweights, dsequence) = dx.split_at_mut(weights);
            dlstm(&x[..weights], dweights, &x[weights..], dsequence, n, seed)
        })
        .forward(|x, v| {
            blstm(
                &x[..weights],
                &v[..weights],
                &x[weights..],
                &v[weights..],
                n,
            )
        })
        .check(&x);
}

#[autodiff_reverse(dlennard, Duplicated, Active)]
#[autodiff_forward(blennard, Dual, Dual)]
fn lennard_jones(positions: &[[f64; 3]]) -> f64 {
    let mut energy = 0.0;
    for (i, a) in positions.iter().enumerate() {
        for b in &positions[i + 1..] {
            let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
            if square > 9.0 {
                continue;
            }
            let sixth = square.recip().powi(3);
            energy += 4.0 * (sixth * sixth - sixth);
        }
    }
    energy
}

#[test]
fn molecules() {
    let triples =
        |x: &[f64]| -> Vec<[f64; 3]> { x.chunks(3).map(|c| [c[0], c[1], c[2]]).collect() };
    Field::new("Lennard-Jones", |x| lennard_jones(&triples(x)))
        .reverse(|x, dx, seed| {
            let mut shadow = triples(dx);
            let value = dlennard(&triples(x), &mut shadow, seed);
            dx.copy_from_slice(shadow.as_flattened());
            value
        })
        .forward(|x, v| blennard(&triples(x), &triples(v)))
        .check(&[
            0.0, 0.0, 0.0, 1.2, 0.1, 0.0, 0.3, 1.1, 0.2, 0.2, 0.4, 1.3, 5.0, 5.0, 5.0,
        ]);
}

#[autodiff_reverse(dwarping, Duplicated, Duplicated, Active)]
#[autodiff_forward(bwarping, Dual, Dual, Dual)]
fn dynamic_time_warping(a: &[f64], b: &[f64]) -> f64 {
    let mut table = vec![vec![f64::INFINITY; b.len() + 1]; a.len() + 1];
    table[0][0] = 0.0;
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let cost = (a[i - 1] - b[j - 1]).powi(2);
            let best = table[i - 1][j]
                .min(table[i][j - 1])
                .min(table[i - 1][j - 1]);
            table[i][j] = cost + best;
        }
    }
    table[a.len()][b.len()]
}

#[test]
fn dynamic_programming() {
    Field::new("dynamic time warping", |x| {
        dynamic_time_warping(&x[..4], &x[4..])
    })
    .reverse(|x, dx, seed| {
        let (da, db) = dx.split_at_mut(4);
        dwarping(&x[..4], da, &x[4..], db, seed)
    })
    .forward(|x, v| bwarping(&x[..4], &v[..4], &x[4..], &v[4..]))
    .check(&[0.0, 1.0, 2.5, 1.5, 0.2, 0.9, 2.0, 2.7, 1.1]);
}

#[autodiff_reverse(dspline, Duplicated, Active, Active)]
#[autodiff_forward(bspline, Dual, Dual, Dual)]
fn cubic_spline(values: &[f64], x: f64) -> f64 {
    // Natural spline through equidistant knots: a tridiagonal system for the curvatures, then evaluation.
    let n = values.len();
    let mut curvature = vec![0.0; n];
    let mut ratio = vec![0.0; n];
    for i in 1..n - 1 {
        let right = 6.0 * (values[i + 1] - 2.0 * values[i] + values[i - 1]);
        let pivot = 4.0 - ratio[i - 1];
        ratio[i] = 1.0 / pivot;
        curvature[i] = (right - curvature[i - 1]) / pivot;
    }
    for i in (1..n - 1).rev() {
        curvature[i] -= ratio[i] * curvature[i + 1];
    }
    let i = (x as usize).min(n - 2);
    let (t, u) = (x - i as f64, (i + 1) as f64 - x);
    curvature[i] / 6.0 * (u * u * u - u)
        + curvature[i + 1] / 6.0 * (t * t * t - t)
        + values[i] * u
        + values[i + 1] * t
}

#[test]
fn spline() {
    Field::new("cubic spline", |z| cubic_spline(&z[..5], z[5]))
        .reverse(|z, dz, seed| {
            let (dvalues, dx) = dz.split_at_mut(5);
            let (value, gradient) = dspline(&z[..5], dvalues, z[5], seed);
            dx[0] += gradient;
            value
        })
        .forward(|z, v| bspline(&z[..5], &v[..5], z[5], v[5]))
        .check(&[0.0, 1.0, 0.5, -0.5, 0.25, 2.3]);
}

#[autodiff_reverse(dconvolution, Duplicated, Duplicated, Const, Active)]
#[autodiff_forward(bconvolution, Dual, Dual, Const, Dual)]
fn convolutional(image: &[f64], kernel: &[f64; 9], width: usize) -> f64 {
    let height = image.len() / width;
    let mut features = vec![0.0; (width - 2) * (height - 2)];
    for y in 0..height - 2 {
        for x in 0..width - 2 {
            let mut sum = 0.0;
            for ky in 0..3 {
                for kx in 0..3 {
                    sum += image[(y + ky) * width + x + kx] * kernel[ky * 3 + kx];
                }
            }
            features[y * (width - 2) + x] = if sum > 0.0 { sum } else { 0.1 * sum };
        }
    }
    // Pool by maximum over 2 × 2, then average.
    let (pooled_width, pooled_height) = ((width - 2) / 2, (height - 2) / 2);
    let mut total = 0.0;
    for y in 0..pooled_height {
        for x in 0..pooled_width {
            let mut largest = f64::NEG_INFINITY;
            for (dy, dx) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                largest = largest.max(features[(2 * y + dy) * (width - 2) + 2 * x + dx]);
            }
            total += largest * largest;
        }
    }
    total / (pooled_width * pooled_height) as f64
}

#[test]
fn convolutional_network() {
    let x = random_vector(36 + 9, 51);
    let kernel = |x: &[f64]| <[f64; 9]>::try_from(&x[36..]).unwrap();
    Field::new("convolutional network", |x| {
        convolutional(&x[..36], &kernel(x), 6)
    })
    .reverse(|x, dx, seed| {
        let mut dkernel = kernel(dx);
        let value = dconvolution(&x[..36], &mut dx[..36], &kernel(x), &mut dkernel, 6, seed);
        dx[36..].copy_from_slice(&dkernel);
        value
    })
    .forward(|x, v| bconvolution(&x[..36], &v[..36], &kernel(x), &kernel(v), 6))
    .check(&x);
}

#[autodiff_reverse(dattention, Duplicated, Const, Const, Active)]
#[autodiff_forward(battention, Dual, Const, Const, Dual)]
fn attention(qkv: &[f64], steps: usize, channels: usize) -> f64 {
    let scale = 1.0 / (channels as f64).sqrt();
    let mut loss = 0.0;
    let mut scores = vec![0.0; steps];
    for t in 0..steps {
        let query = &qkv[t * 3 * channels..][..channels];
        let mut largest = f64::NEG_INFINITY;
        for s in 0..=t {
            let key = &qkv[s * 3 * channels + channels..][..channels];
            let mut dot = 0.0;
            for c in 0..channels {
                dot += query[c] * key[c];
            }
            scores[s] = dot * scale;
            largest = largest.max(scores[s]);
        }
        let mut sum = 0.0;
        for score in &mut scores[..=t] {
            *score = (*score - largest).exp();
            sum += *score;
        }
        for c in 0..channels {
            let mut output = 0.0;
            for s in 0..=t {
                output += scores[s] / sum * qkv[s * 3 * channels + 2 * channels + c];
            }
            loss += output * output * (c + 1) as f64;
        }
    }
    loss
}

#[test]
fn causal_attention() {
    Field::new("attention", |x| attention(x, 4, 2))
        .reverse(|x, dx, seed| dattention(x, dx, 4, 2, seed))
        .forward(|x, v| battention(x, v, 4, 2))
        .check(&random_vector(24, 61));
}

#[autodiff_reverse(dfactorisation, Duplicated, Const, Const, Active)]
fn factorisation(factors: &[f64], ratings: &[(u16, u16, f32)], rank: usize) -> f64 {
    let row = |i: u16| &factors[usize::from(i) * rank..(usize::from(i) + 1) * rank];
    let mut loss = 0.0;
    for &(user, item, rating) in ratings {
        let predicted: f64 = row(user).iter().zip(row(item)).map(|(u, i)| u * i).sum();
        let error = predicted - f64::from(rating);
        loss += error * error;
    }
    loss + 0.01 * factors.iter().map(|f| f * f).sum::<f64>()
}

#[test]
fn matrix_factorisation() {
    let ratings = [(0u16, 3u16, 4.5f32), (1, 3, 2.0), (2, 4, 3.5), (0, 4, 1.0)];
    Field::new("matrix factorisation", |x| factorisation(x, &ratings, 2))
        .reverse(|x, dx, seed| dfactorisation(x, dx, &ratings, 2, seed))
        .check(&random_vector(10, 71));
}

#[autodiff_reverse(dcurve, Duplicated, Active)]
#[autodiff_forward(bcurve, Dual, Dual)]
fn bezier_length(points: &[(f64, f64)]) -> f64 {
    // De Casteljau's scheme on a copy that shrinks; the length of the polygon through 16 points of the curve.
    let at = |t: f64| -> (f64, f64) {
        let mut level = points.to_vec();
        while level.len() > 1 {
            for i in 0..level.len() - 1 {
                let (a, b) = (level[i], level[i + 1]);
                level[i] = (a.0 + (b.0 - a.0) * t, a.1 + (b.1 - a.1) * t);
            }
            level.pop();
        }
        level[0]
    };
    let mut last = at(0.0);
    let mut length = 0.0;
    for i in 1..=16 {
        let next = at(f64::from(i) / 16.0);
        length += (next.0 - last.0).hypot(next.1 - last.1);
        last = next;
    }
    length
}

#[test]
fn curves() {
    let pairs = |x: &[f64]| -> Vec<(f64, f64)> { x.chunks(2).map(|c| (c[0], c[1])).collect() };
    Field::new("Bézier curve", |x| bezier_length(&pairs(x)))
        .reverse(|x, dx, seed| {
            let mut shadow = pairs(dx);
            let value = dcurve(&pairs(x), &mut shadow, seed);
            for (i, (a, b)) in shadow.into_iter().enumerate() {
                dx[2 * i] = a;
                dx[2 * i + 1] = b;
            }
            value
        })
        .forward(|x, v| bcurve(&pairs(x), &pairs(v)))
        .check(&[0.0, 0.1, 1.0, 2.0, 2.5, -1.0, 3.0, 0.5]);
}
