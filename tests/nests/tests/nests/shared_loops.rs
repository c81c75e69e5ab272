//! Nests that do more than a product.

use super::tests;

#[inline(never)]
fn layer(input: &[f64], weights: &[f64], output: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += input[i * k + l] * weights[j * k + l];
            }
            output[i * n + j] = sum;
        }
    }
}

// raised: 0
fn activation(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = sum.tanh();
        }
    }
}

// raised: 1
// loops: another access may touch the same memory
fn row_by_row_activation(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = sum;
        }
        for j in 0..n {
            c[i * n + j] = c[i * n + j].sin();
        }
    }
}

/// One nest computes two products.
// raised: 6
fn two_products(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let (b, second) = b.split_at(k * n);
    let (c, d) = c.split_at_mut(m * n);
    for i in 0..m {
        for j in 0..n {
            let (mut one, mut other) = (0.0, 0.0);
            for l in 0..k {
                one += a[i * k + l] * b[l * n + j];
                other += a[i * k + l] * second[l * n + j];
            }
            c[i * n + j] = one;
            d[i * n + j] = other;
        }
    }
}

// raised: 6
fn difference_of_products(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let (b, second) = b.split_at(k * n);
    for i in 0..m {
        for j in 0..n {
            let (mut one, mut other) = (0.0, 0.0);
            for l in 0..k {
                one += a[i * k + l] * b[l * n + j];
                other += a[i * k + l] * second[l * n + j];
            }
            c[i * n + j] = one - other;
        }
    }
}

/// A sum of squares in the same loop.
// raised: 3
fn norms_of_rows_beside(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let (c, norms) = c.split_at_mut(m * n);
    for i in 0..m {
        let mut norm = 0.0;
        for l in 0..k {
            norm += a[i * k + l] * a[i * k + l];
        }
        norms[i] = norm;
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}

/// Attention without a mask: scores, softmax, values; the row of scores is memory of its own.
// raised: 0
fn softmax_of_rows(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        let mut largest = f64::MIN;
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            if sum > largest {
                largest = sum;
            }
            c[i * n + j] = sum;
        }
        let mut total = 0.0;
        for j in 0..n {
            c[i * n + j] = (c[i * n + j] - largest).exp();
            total += c[i * n + j];
        }
        for j in 0..n {
            c[i * n + j] /= total;
        }
    }
}

/// The sum is stored, and compared.
// raised: 1
fn largest_beside(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let (c, largest) = c.split_at_mut(m * n);
    for i in 0..m {
        largest[i] = -100.0;
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = sum;
            if sum > largest[i] {
                largest[i] = sum;
            }
        }
    }
}

// raised: 1
fn sum_of_all(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let mut total = 0.0;
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            total += sum * sum;
        }
    }
    c[0] = total;
}

/// Not inlined: the derivative calls that of the layer.
// raised: 3
fn layer_in_a_function(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    layer(a, b, c, m, k, n);
    for c in c.iter_mut() {
        *c = c.max(0.0);
    }
}

tests! {
    activation<f64>,
    row_by_row_activation<f64>,
    two_products<f64>(|m, k, n| [m * k, 2 * k * n, 2 * m * n]),
    difference_of_products<f64>(|m, k, n| [m * k, 2 * k * n, m * n]),
    norms_of_rows_beside<f64>(|m, k, n| [m * k, k * n, m * n + m]),
    softmax_of_rows<f64>,
    largest_beside<f64>(|m, k, n| [m * k, k * n, m * n + m]),
    sum_of_all<f64>,
    layer_in_a_function<f64>,
}
