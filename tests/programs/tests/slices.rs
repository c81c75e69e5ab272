//! Loops over slices, the most common differentiated code.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::Field;

#[autodiff_reverse(dsquares, Duplicated, Active)]
#[autodiff_forward(bsquares, Dual, Dual)]
fn squares(x: &[f64]) -> f64 {
    let mut sum = 0.0;
    for i in 0..x.len() {
        sum += x[i] * x[i];
    }
    sum
}

#[test]
fn sum_of_squares() {
    Field::new("sum of squares", squares)
        .reverse(dsquares)
        .forward(bsquares)
        .closed_form(|x| x.iter().map(|x| 2.0 * x).collect())
        .check(&[1.0, -2.0, 0.5, 3.0])
        .check(&[])
        .check(&[4.0]);
}

#[autodiff_reverse(drosenbrock, Duplicated, Active)]
#[autodiff_forward(brosenbrock, Dual, Dual)]
fn rosenbrock(x: &[f64]) -> f64 {
    let mut sum = 0.0;
    for i in 0..x.len() - 1 {
        let a = x[i + 1] - x[i] * x[i];
        let b = 1.0 - x[i];
        sum += 100.0 * a * a + b * b;
    }
    sum
}

#[test]
fn rosenbrock_valley() {
    Field::new("Rosenbrock", rosenbrock)
        .reverse(drosenbrock)
        .forward(brosenbrock)
        .closed_form(|x| {
            let mut gradient = vec![0.0; x.len()];
            for i in 0..x.len() - 1 {
                let a = x[i + 1] - x[i] * x[i];
                gradient[i] += -400.0 * a * x[i] - 2.0 * (1.0 - x[i]);
                gradient[i + 1] += 200.0 * a;
            }
            gradient
        })
        .check(&[-1.2, 1.0, 0.7, 0.3]);
}

#[autodiff_reverse(ddot, Duplicated, Duplicated, Active)]
#[autodiff_forward(bdot, Dual, Dual, Dual)]
fn dot(x: &[f64], y: &[f64]) -> f64 {
    assert_eq!(x.len(), y.len());
    let mut sum = 0.0;
    for i in 0..x.len() {
        sum += x[i] * y[i];
    }
    sum
}

#[test]
fn dot_product_of_two_slices() {
    Field::new("dot product", |z| dot(&z[..3], &z[3..]))
        .reverse(|z, dz, seed| {
            let (dx, dy) = dz.split_at_mut(3);
            ddot(&z[..3], dx, &z[3..], dy, seed)
        })
        .forward(|z, v| bdot(&z[..3], &v[..3], &z[3..], &v[3..]))
        .closed_form(|z| [&z[3..], &z[..3]].concat())
        .check(&[1.0, 2.0, 3.0, -4.0, 5.0, 0.25]);
}

#[autodiff_reverse(dlog_sum_exp, Duplicated, Active)]
#[autodiff_forward(blog_sum_exp, Dual, Dual)]
fn log_sum_exp(x: &[f64]) -> f64 {
    let mut largest = f64::NEG_INFINITY;
    for &value in x {
        if value > largest {
            largest = value;
        }
    }
    let mut sum = 0.0;
    for &value in x {
        sum += (value - largest).exp();
    }
    largest + sum.ln()
}

#[test]
fn stable_log_sum_exp() {
    Field::new("log-sum-exp", log_sum_exp)
        .reverse(dlog_sum_exp)
        .forward(blog_sum_exp)
        .closed_form(|x| {
            let sum: f64 = x.iter().map(|x| x.exp()).sum();
            x.iter().map(|x| x.exp() / sum).collect()
        })
        .check(&[1.0, 3.0, -2.0, 2.5]);
}

#[autodiff_reverse(dhorner, Duplicated, Active, Active)]
#[autodiff_forward(bhorner, Dual, Dual, Dual)]
fn horner(coefficients: &[f64], x: f64) -> f64 {
    let mut value = 0.0;
    for &coefficient in coefficients.iter().rev() {
        value = value * x + coefficient;
    }
    value
}

#[test]
fn polynomial_by_horners_scheme() {
    // The last entry is the point, the others are the coefficients.
    Field::new("Horner", |z| horner(&z[..4], z[4]))
        .reverse(|z, dz, seed| {
            let (dc, dx) = dz.split_at_mut(4);
            let (value, gradient) = dhorner(&z[..4], dc, z[4], seed);
            dx[0] += gradient;
            value
        })
        .forward(|z, v| bhorner(&z[..4], &v[..4], z[4], v[4]))
        .closed_form(|z| {
            let x = z[4];
            vec![
                1.0,
                x,
                x * x,
                x * x * x,
                z[1] + 2.0 * z[2] * x + 3.0 * z[3] * x * x,
            ]
        })
        .check(&[1.0, -2.0, 0.5, 0.25, 1.5]);
}

#[autodiff_reverse(dgather, Duplicated, Const, Active)]
#[autodiff_forward(bgather, Dual, Const, Dual)]
fn gather(table: &[f64], indices: &[u32]) -> f64 {
    let mut product = 1.0;
    for &index in indices {
        product *= table[index as usize];
    }
    product
}

#[test]
fn entries_chosen_by_an_index_table() {
    let indices = [2u32, 0, 2, 3];
    Field::new("gather", |x| gather(x, &indices))
        .reverse(|x, dx, seed| dgather(x, dx, &indices, seed))
        .forward(|x, v| bgather(x, v, &indices))
        .closed_form(|x| {
            vec![
                x[2] * x[2] * x[3],
                0.0,
                2.0 * x[2] * x[0] * x[3],
                x[2] * x[2] * x[0],
            ]
        })
        .check(&[1.5, 7.0, -0.5, 2.0]);
}

#[autodiff_reverse(dhistogram, Duplicated, Const, Active)]
fn histogram(weights: &[f64], bins: &[u8]) -> f64 {
    let mut totals = [0.0; 4];
    for (i, &bin) in bins.iter().enumerate() {
        totals[usize::from(bin)] += weights[i];
    }
    totals.iter().map(|total| total * total).sum()
}

#[test]
fn scatter_into_bins() {
    let bins = [3u8, 0, 3, 1, 0];
    Field::new("histogram", |x| histogram(x, &bins))
        .reverse(|x, dx, seed| dhistogram(x, dx, &bins, seed))
        .closed_form(|x| {
            let (zero, one, three) = (x[1] + x[4], x[3], x[0] + x[2]);
            vec![2.0 * three, 2.0 * zero, 2.0 * three, 2.0 * one, 2.0 * zero]
        })
        .check(&[1.5, 7.0, -0.5, 2.0, 1.0]);
}

#[autodiff_reverse(dquadratic, Duplicated, Duplicated, Active)]
#[autodiff_forward(bquadratic, Dual, Dual, Dual)]
fn quadratic(matrix: &[f64], x: &[f64]) -> f64 {
    let n = x.len();
    let mut value = 0.0;
    for i in 0..n {
        let mut row = 0.0;
        for j in 0..n {
            row += matrix[i * n + j] * x[j];
        }
        value += row * x[i];
    }
    value
}

#[test]
fn quadratic_form_of_a_flat_matrix() {
    Field::new("quadratic form", |z| quadratic(&z[..9], &z[9..]))
        .reverse(|z, dz, seed| {
            let (dm, dx) = dz.split_at_mut(9);
            dquadratic(&z[..9], dm, &z[9..], dx, seed)
        })
        .forward(|z, v| bquadratic(&z[..9], &v[..9], &z[9..], &v[9..]))
        .closed_form(|z| {
            let (m, x) = (&z[..9], &z[9..]);
            let mut gradient: Vec<f64> = (0..9).map(|k| x[k / 3] * x[k % 3]).collect();
            gradient.extend((0..3).map(|i| {
                (0..3)
                    .map(|j| (m[i * 3 + j] + m[j * 3 + i]) * x[j])
                    .sum::<f64>()
            }));
            gradient
        })
        .check(&[
            1.0, 2.0, -1.0, 0.5, 3.0, 0.25, -2.0, 1.5, 1.0, 0.5, -1.0, 2.0,
        ]);
}

#[autodiff_reverse(dtotal_variation, Duplicated, Const, Const, Active)]
#[autodiff_forward(btotal_variation, Dual, Const, Const, Dual)]
fn total_variation(image: &[f64], width: usize, height: usize) -> f64 {
    let mut sum = 0.0;
    for y in 0..height {
        for x in 0..width {
            let here = image[y * width + x];
            let right = if x + 1 < width {
                image[y * width + x + 1] - here
            } else {
                0.0
            };
            let below = if y + 1 < height {
                image[(y + 1) * width + x] - here
            } else {
                0.0
            };
            sum += (right * right + below * below + 1e-3).sqrt();
        }
    }
    sum
}

#[test]
fn total_variation_of_an_image() {
    let image: Vec<f64> = (0..12).map(|i| (f64::from(i) * 1.7).sin()).collect();
    Field::new("total variation", |x| total_variation(x, 4, 3))
        .reverse(|x, dx, seed| dtotal_variation(x, dx, 4, 3, seed))
        .forward(|x, v| btotal_variation(x, v, 4, 3))
        .check(&image);
}

#[autodiff_reverse(dsub, Duplicated, Const, Active)]
fn sub_slices(x: &[f64], depth: usize) -> f64 {
    let (left, right) = x.split_at(x.len() / 2);
    let [first, .., last] = x else { return 0.0 };
    let tail = &x[depth..];
    let inner = match tail {
        [] => 0.0,
        [only] => only * only,
        [a, rest @ ..] => a * rest.iter().sum::<f64>(),
    };
    left.first().unwrap_or(&1.0) * right.last().copied().unwrap_or(2.0) + first * last + inner
}

#[test]
fn sub_slices_and_slice_patterns() {
    for depth in 0..=4 {
        Field::new("sub-slices", |x| sub_slices(x, depth))
            .reverse(|x, dx, seed| dsub(x, dx, depth, seed))
            .check(&[1.5, -2.0, 0.5, 3.0]);
    }
}

#[autodiff_reverse(darray, Duplicated, Active)]
#[autodiff_forward(barray, Dual, Dual)]
fn triple_product(m: &[[f64; 3]; 3]) -> f64 {
    let [a, b, c] = m;
    let cross = [
        b[1] * c[2] - b[2] * c[1],
        b[2] * c[0] - b[0] * c[2],
        b[0] * c[1] - b[1] * c[0],
    ];
    a[0] * cross[0] + a[1] * cross[1] + a[2] * cross[2]
}

fn square(x: &[f64]) -> [[f64; 3]; 3] {
    std::array::from_fn(|i| std::array::from_fn(|j| x[i * 3 + j]))
}

#[test]
fn arrays_of_arrays() {
    Field::new("triple product", |x| triple_product(&square(x)))
        .reverse(|x, dx, seed| {
            let mut shadow = square(dx);
            let value = darray(&square(x), &mut shadow, seed);
            dx.copy_from_slice(shadow.as_flattened());
            value
        })
        .forward(|x, v| barray(&square(x), &square(v)))
        .check(&[1.0, 2.0, -1.0, 0.5, 3.0, 0.25, -2.0, 1.5, 1.0]);
}

#[autodiff_reverse(dsoftmax_loss, Duplicated, Const, Active)]
#[autodiff_forward(bsoftmax_loss, Dual, Const, Dual)]
fn softmax_loss(logits: &[f64], targets: &[usize]) -> f64 {
    let classes = logits.len() / targets.len();
    let mut loss = 0.0;
    let mut probabilities = vec![0.0; classes];
    for (row, &target) in logits.chunks(classes).zip(targets) {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for (probability, logit) in probabilities.iter_mut().zip(row) {
            *probability = (logit - largest).exp();
            sum += *probability;
        }
        for probability in &mut probabilities {
            *probability /= sum;
        }
        loss -= probabilities[target].ln();
    }
    loss / targets.len() as f64
}

#[test]
fn softmax_cross_entropy_with_a_reused_buffer() {
    let targets = [2usize, 0];
    Field::new("softmax cross-entropy", |x| softmax_loss(x, &targets))
        .reverse(|x, dx, seed| dsoftmax_loss(x, dx, &targets, seed))
        .forward(|x, v| bsoftmax_loss(x, v, &targets))
        .closed_form(|x| {
            let mut gradient = Vec::new();
            for (row, &target) in x.chunks(3).zip(&targets) {
                let sum: f64 = row.iter().map(|x| x.exp()).sum();
                gradient.extend(
                    row.iter()
                        .enumerate()
                        .map(|(i, x)| (x.exp() / sum - f64::from(u8::from(i == target))) / 2.0),
                );
            }
            gradient
        })
        .check(&[0.5, -1.0, 2.0, 1.5, 0.25, -0.75]);
}

/// A word that is a number or the address of one.
#[derive(Clone, Copy)]
union Word {
    number: f64,
    place: *const f64,
}

/// The product of two numbers, of which one is found behind an address if there are many.
fn product(x: &[f64], n: usize) -> f64 {
    let mut own = [Word { number: x[1] }; 2];
    own[n % 2] = Word {
        place: &raw const x[0],
    };
    let words: *const Word = match n > 5 {
        true => own.as_ptr(),
        false => x.as_ptr().cast(),
    };
    // SAFETY: both have two words, and each is read as what was put there.
    unsafe {
        let copy = [*words, *words.add(1)];
        match n > 5 {
            true => *copy[n % 2].place * copy[(n + 1) % 2].number,
            false => copy[0].number * copy[1].number,
        }
    }
}

#[autodiff_reverse(d_words_of_slice, Duplicated, Const, Active)]
fn words_of_slice(x: &[f64], n: usize) -> f64 {
    product(x, n)
}

#[autodiff_reverse(d_words_of_array, Duplicated, Const, Active)]
fn words_of_array(x: &[f64; 2], n: usize) -> f64 {
    product(x, n)
}

#[autodiff_reverse(d_words_of_arrays, Duplicated, Const, Active)]
fn words_of_arrays(x: &[[f64; 2]], n: usize) -> f64 {
    x.iter().map(|x| product(x, n)).sum()
}

#[autodiff_forward(f_words_of_slice, Dual, Const, Dual)]
fn words_forward(x: &[f64], n: usize) -> f64 {
    product(x, n)
}

#[test]
fn words_that_are_numbers_or_addresses() {
    for n in [1, 2, 6, 7] {
        let mut dx = [0.0; 2];
        assert_eq!(d_words_of_slice(&[3.0, 5.0], &mut dx, n, 1.0), 15.0);
        assert_eq!(dx, [5.0, 3.0], "slice, {n}");
        let mut dx = [0.0; 2];
        assert_eq!(d_words_of_array(&[3.0, 5.0], &mut dx, n, 1.0), 15.0);
        assert_eq!(dx, [5.0, 3.0], "array, {n}");
        let mut dx = [[0.0; 2]; 2];
        let x = [[3.0, 5.0], [7.0, 11.0]];
        assert_eq!(d_words_of_arrays(&x, &mut dx, n, 1.0), 92.0);
        assert_eq!(dx, [[5.0, 3.0], [11.0, 7.0]], "arrays, {n}");
        assert_eq!(f_words_of_slice(&[3.0, 5.0], &[1.0, 0.0], n), (15.0, 5.0));
        assert_eq!(f_words_of_slice(&[3.0, 5.0], &[0.0, 1.0], n), (15.0, 3.0));
    }
}
