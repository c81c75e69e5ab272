//! Products with indices: all orders and layouts, and what people write around them.

use super::tests;

/// Rows one after the other.
struct Matrix<'a> {
    columns: usize,
    elements: &'a [f64],
}

impl std::ops::Index<(usize, usize)> for Matrix<'_> {
    type Output = f64;
    fn index(&self, (row, column): (usize, usize)) -> &f64 {
        &self.elements[row * self.columns + column]
    }
}

// raised: 3
fn dot_order(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}

// raised: 3
fn dot_order_columns_first(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for j in 0..n {
        for i in 0..m {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}

// raised: 3
fn axpy_order(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    c.fill(0.0);
    for i in 0..m {
        for l in 0..k {
            let factor = a[i * k + l];
            for j in 0..n {
                c[i * n + j] += factor * b[l * n + j];
            }
        }
    }
}

// raised: 3
fn axpy_order_by_columns(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    c.fill(0.0);
    for j in 0..n {
        for l in 0..k {
            for i in 0..m {
                c[i * n + j] += a[i * k + l] * b[l * n + j];
            }
        }
    }
}

// raised: 3
fn outer_product_order(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    c.fill(0.0);
    for l in 0..k {
        for i in 0..m {
            for j in 0..n {
                c[i * n + j] += a[i * k + l] * b[l * n + j];
            }
        }
    }
}

// raised: 3
fn outer_product_order_by_columns(
    a: &[f64],
    b: &[f64],
    c: &mut [f64],
    m: usize,
    k: usize,
    n: usize,
) {
    c.fill(0.0);
    for l in 0..k {
        for j in 0..n {
            for i in 0..m {
                c[i * n + j] += a[i * k + l] * b[l * n + j];
            }
        }
    }
}

/// The inner loop adds to memory.
// raised: 3
fn sums_in_place(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = 0.0;
            for l in 0..k {
                c[i * n + j] += a[i * k + l] * b[l * n + j];
            }
        }
    }
}

// raised: 3
fn left_transposed(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[l * m + i] * b[l * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}

// raised: 3
fn right_transposed(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[j * k + l];
            }
            c[i * n + j] = sum;
        }
    }
}

// raised: 3
fn both_transposed(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[l * m + i] * b[j * k + l];
            }
            c[i * n + j] = sum;
        }
    }
}

// raised: 3
fn result_transposed(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[j * m + i] = sum;
        }
    }
}

// raised: 3
fn column_major(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    c.fill(0.0);
    for j in 0..n {
        for l in 0..k {
            for i in 0..m {
                c[j * m + i] += a[l * m + i] * b[j * k + l];
            }
        }
    }
}

/// Rows are farther apart than they are long.
// raised: 3
fn padded_rows(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * (k + 3) + l] * b[l * (n + 1) + j];
            }
            c[i * (n + 2) + j] = sum;
        }
    }
}

/// Loops that count down.
// raised: 3
fn reversed(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in (0..m).rev() {
        for j in (0..n).rev() {
            let mut sum = 0.0;
            for l in (0..k).rev() {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}

// raised: 3
fn while_loops(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let mut i = 0;
    while i < m {
        let mut j = 0;
        while j < n {
            let mut sum = 0.0;
            let mut l = 0;
            while l < k {
                sum += a[i * k + l] * b[l * n + j];
                l += 1;
            }
            c[i * n + j] = sum;
            j += 1;
        }
        i += 1;
    }
}

// raised: 3
fn bias_first(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let bias = &b[k * n..];
    for i in 0..m {
        for j in 0..n {
            let mut sum = bias[j];
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}

// raised: 3
fn bias_last(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let (b, bias) = b.split_at(k * n);
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = sum + bias[j];
        }
    }
}

// raised: 3
fn bias_in_a_loop_of_its_own(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let bias = &b[k * n..];
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = bias[j];
        }
        for l in 0..k {
            for j in 0..n {
                c[i * n + j] += a[i * k + l] * b[l * n + j];
            }
        }
    }
}

// raised: 3
fn scaled(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let scale = 1.0 / (k as f64).sqrt();
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = scale * sum;
        }
    }
}

// raised: 3
fn scaled_inside(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let scale = 1.0 / (k as f64).sqrt();
    c.fill(0.0);
    for i in 0..m {
        for l in 0..k {
            for j in 0..n {
                c[i * n + j] += scale * a[i * k + l] * b[l * n + j];
            }
        }
    }
}

// raised: 3
fn added_to_what_is_there(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] += sum;
        }
    }
}

// raised: 3
fn subtracted(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for l in 0..k {
            for j in 0..n {
                c[i * n + j] -= a[i * k + l] * b[l * n + j];
            }
        }
    }
}

// raised: 3
fn negated(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = -sum;
        }
    }
}

/// The general product of BLAS.
// raised: 3
fn alpha_and_beta(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let (alpha, beta) = (0.75, -0.5);
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = alpha * sum + beta * c[i * n + j];
        }
    }
}

// raised: 3
fn batch(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for batch in 0..a.len() / (m * k) {
        for i in 0..m {
            for j in 0..n {
                let mut sum = 0.0;
                for l in 0..k {
                    sum += a[(batch * m + i) * k + l] * b[(batch * k + l) * n + j];
                }
                c[(batch * m + i) * n + j] = sum;
            }
        }
    }
}

// raised: 3
fn batch_with_common_weights(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for batch in 0..a.len() / (m * k) {
        for i in 0..m {
            for j in 0..n {
                let mut sum = 0.0;
                for l in 0..k {
                    sum += a[(batch * m + i) * k + l] * b[j * k + l];
                }
                c[(batch * m + i) * n + j] = sum;
            }
        }
    }
}

/// Scores of attention without a mask: the heads of a token lie side by side.
// raised: 3
fn heads(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let heads = a.len() / (m * k);
    for h in 0..heads {
        for i in 0..m {
            for j in 0..n {
                let mut sum = 0.0;
                for l in 0..k {
                    sum += a[i * heads * k + h * k + l] * b[j * heads * k + h * k + l];
                }
                c[(h * m + i) * n + j] = sum;
            }
        }
    }
}

// raised: 3
fn sum_over_two_loops(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for p in 0..a.len() / (m * k) {
                for l in 0..k {
                    sum += a[(p * m + i) * k + l] * b[(p * k + l) * n + j];
                }
            }
            c[i * n + j] = sum;
        }
    }
}

/// Even and odd terms.
// raised: 4
fn two_accumulators(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let (mut even, mut odd) = (0.0, 0.0);
            for l in 0..k / 2 {
                even += a[i * k + 2 * l] * b[j * k + 2 * l];
                odd += a[i * k + 2 * l + 1] * b[j * k + 2 * l + 1];
            }
            c[i * n + j] = even + odd;
        }
    }
}

/// With a remainder.
// raised: 3
fn unrolled_by_four(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            let mut l = 0;
            while l + 4 <= k {
                sum += a[i * k + l] * b[j * k + l];
                sum += a[i * k + l + 1] * b[j * k + l + 1];
                sum += a[i * k + l + 2] * b[j * k + l + 2];
                sum += a[i * k + l + 3] * b[j * k + l + 3];
                l += 4;
            }
            while l < k {
                sum += a[i * k + l] * b[j * k + l];
                l += 1;
            }
            c[i * n + j] = sum;
        }
    }
}

/// Blocks of eight, by hand.
// raised: 3
fn tiled(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    c.fill(0.0);
    for l0 in (0..k).step_by(8) {
        for j0 in (0..n).step_by(8) {
            for i in 0..m {
                for l in l0..(l0 + 8).min(k) {
                    for j in j0..(j0 + 8).min(n) {
                        c[i * n + j] += a[i * k + l] * b[l * n + j];
                    }
                }
            }
        }
    }
}

/// Both factors are of one matrix.
// raised: 3
fn gram_matrix(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let _ = b;
    for i in 0..m {
        for j in 0..m {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * a[j * k + l];
            }
            c[i * m + j] = sum * n as f64;
        }
    }
}

// raised: 3
fn every_second_row(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in (0..2 * m).step_by(2) {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[j * k + l];
            }
            c[i * n + j] = sum;
        }
    }
}

// raised: 3
fn single_precision(a: &[f32], b: &[f32], c: &mut [f32], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[j * k + l];
            }
            c[i * n + j] = sum;
        }
    }
}

// raised: 3
fn fused_multiply_add(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum = a[i * k + l].mul_add(b[l * n + j], sum);
            }
            c[i * n + j] = sum;
        }
    }
}

// raised: 3
fn without_checks(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    assert!(a.len() >= m * k && b.len() >= k * n && c.len() >= m * n);
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                // The lengths were compared.
                sum += unsafe { a.get_unchecked(i * k + l) * b.get_unchecked(l * n + j) };
            }
            c[i * n + j] = sum;
        }
    }
}

// raised: 3
fn rows_as_slices(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        let row = &a[i * k..(i + 1) * k];
        let out = &mut c[i * n..(i + 1) * n];
        for j in 0..n {
            let column = &b[j * k..(j + 1) * k];
            let mut sum = 0.0;
            for l in 0..k {
                sum += row[l] * column[l];
            }
            out[j] = sum;
        }
    }
}

/// A matrix type with an index operator.
// raised: 3
fn through_a_type(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let (a, b) = (
        Matrix {
            columns: k,
            elements: a,
        },
        Matrix {
            columns: n,
            elements: b,
        },
    );
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[(i, l)] * b[(l, j)];
            }
            c[i * n + j] = sum;
        }
    }
}

/// The product is in memory that the function allocates.
// raised: 3
fn into_a_new_matrix(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let mut product = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            for l in 0..k {
                product[i * n + j] += a[i * k + l] * b[l * n + j];
            }
        }
    }
    for (c, product) in c.iter_mut().zip(&product) {
        *c = product.tanh();
    }
}

/// Two products, the second of the first.
// raised: 6
fn power(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let mut square = vec![0.0; k * k];
    for i in 0..k {
        for j in 0..k {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * a[l * k + j];
            }
            square[i * k + j] = sum;
        }
    }
    for i in 0..k {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += square[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = sum + m as f64;
        }
    }
}

tests! {
    dot_order<f64>,
    dot_order_columns_first<f64>,
    axpy_order<f64>,
    axpy_order_by_columns<f64>,
    outer_product_order<f64>,
    outer_product_order_by_columns<f64>,
    sums_in_place<f64>,
    left_transposed<f64>,
    right_transposed<f64>,
    both_transposed<f64>,
    result_transposed<f64>,
    column_major<f64>,
    padded_rows<f64>(|m, k, n| [m * (k + 3), k * (n + 1), m * (n + 2)]),
    reversed<f64>,
    while_loops<f64>,
    bias_first<f64>(|m, k, n| [m * k, k * n + n, m * n]),
    bias_last<f64>(|m, k, n| [m * k, k * n + n, m * n]),
    bias_in_a_loop_of_its_own<f64>(|m, k, n| [m * k, k * n + n, m * n]),
    scaled<f64>,
    scaled_inside<f64>,
    added_to_what_is_there<f64>,
    subtracted<f64>,
    negated<f64>,
    alpha_and_beta<f64>,
    batch<f64>(|m, k, n| [3 * m * k, 3 * k * n, 3 * m * n]),
    batch_with_common_weights<f64>(|m, k, n| [3 * m * k, k * n, 3 * m * n]),
    heads<f64>(|m, k, n| [2 * m * k, 2 * k * n, 2 * m * n]),
    sum_over_two_loops<f64>(|m, k, n| [2 * m * k, 2 * k * n, m * n]),
    two_accumulators<f64>,
    unrolled_by_four<f64>,
    tiled<f64>,
    gram_matrix<f64>(|m, k, _| [m * k, 0, m * m]),
    every_second_row<f64>(|m, k, n| [2 * m * k, k * n, 2 * m * n]),
    single_precision<f32>,
    fused_multiply_add<f64>,
    without_checks<f64>,
    rows_as_slices<f64>,
    through_a_type<f64>,
    into_a_new_matrix<f64>,
    power<f64>(|_, k, n| [k * k, k * n, k * n]),
}
