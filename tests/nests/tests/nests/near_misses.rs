//! Nests that look like matrix products and are not.

use super::tests;

static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

/// No matrix product.
// raised: 0
fn matrix_vector(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        let mut sum = 0.0;
        for l in 0..k {
            sum += a[i * k + l] * b[l];
        }
        c[i] = sum + n as f64;
    }
}

// loops: no product of two matrices
fn no_sum(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            for l in 0..k {
                c[(i * n + j) * k + l] = a[i * k + l] * b[l * n + j];
            }
        }
    }
}

// raised: 0
fn three_by_three(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for t in 0..m {
        for i in 0..3 {
            for j in 0..3 {
                let mut sum = 0.0;
                for l in 0..3 {
                    sum += a[t * 9 + i * 3 + l] * b[t * 9 + l * 3 + j];
                }
                c[t * 9 + i * 3 + j] = sum + (k * n) as f64;
            }
        }
    }
}

/// Several pairs of indices add to one place; the gradients of both matrices are products.
// raised: 2
// loops: iterations may store to the same place
fn convolution(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    c.fill(0.0);
    for i in 0..m {
        for j in 0..n {
            for l in 0..k {
                c[i + j] += a[i * k + l] * b[l * n + j];
            }
        }
    }
}

/// The result is a factor.
// raised: 0
fn in_place(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let _ = a;
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..n {
                sum += c[i * n + l] * b[l * n + j];
            }
            c[i * n + j] = sum / (1 + k) as f64;
        }
    }
}

/// Each row takes the one above it.
// raised: 0
fn row_above(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let _ = a;
    for i in 1..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..n {
                sum += c[(i - 1) * n + l] * b[l * n + j];
            }
            c[i * n + j] = sum / (4 * k) as f64;
        }
    }
}

/// Each row takes the one below it, before that is changed.
// raised: 0
fn row_below(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let _ = a;
    for i in 0..m - 1 {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..n {
                sum += c[(i + 1) * n + l] * b[l * n + j];
            }
            c[i * n + j] = sum / (4 * k) as f64;
        }
    }
}

/// All partial sums are stored.
// raised: 0
fn running_sums(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
                c[(i * n + j) * k + l] = sum;
            }
        }
    }
}

/// An index that is no multiple of a counter.
// loops: not an array with one stride for each loop
fn squared_index(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * l + j];
            }
            c[i * n + j] = sum;
        }
    }
}

// loops: not an array with one stride for each loop
fn index_modulo(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[(l * 7 + j * 3) % (k * n)];
            }
            c[i * n + j] = sum;
        }
    }
}

/// An index that wraps.
// loops: not an array with one stride for each loop
fn index_in_few_bits(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                let place = (l as u8).wrapping_mul(37).wrapping_add(j as u8);
                sum += a[i * k + l] * b[place as usize];
            }
            c[i * n + j] = sum;
        }
    }
}

/// An index from memory.
// loops: not an array with one stride for each loop
fn looked_up(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let order: Vec<usize> = (0..k).map(|l| (l * 5 + 2) % k).collect();
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[order[l] * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}

/// The sum shrinks from term to term.
// raised: 0
fn decay(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum = 0.75 * sum + a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}

// raised: 0
fn sine_of_products(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += (0.01 * a[i * k + l] * b[l * n + j]).sin();
            }
            c[i * n + j] = sum;
        }
    }
}

// raised: 0
fn positive_terms_only(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                if (i + j + l) % 3 != 0 {
                    sum += a[i * k + l] * b[l * n + j];
                }
            }
            c[i * n + j] = sum;
        }
    }
}

// raised: 0
fn stops_early(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                if i + j + l > m {
                    break;
                }
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}

/// A maximum, not a sum.
// raised: 0
fn largest_product(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut largest = -10.0f64;
            for l in 0..k {
                largest = largest.max(a[i * k + l] * b[l * n + j]);
            }
            c[i * n + j] = largest;
        }
    }
}

/// Three factors with two indices each.
// raised: 0
fn three_matrices(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    c.fill(0.0);
    for i in 0..m {
        for j in 0..m {
            for l in 0..m {
                c[i * m + j] += a[i * m + l] * b[l * m + j] * a[j * m + i] / (k * n) as f64;
            }
        }
    }
}

/// A weight for each term.
// raised: 0
fn weighted(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let (b, weights) = b.split_at(k * n);
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j] * weights[l];
            }
            c[i * n + j] = sum;
        }
    }
}

/// Rows depend on the rows before them.
// raised: 0
fn forward_substitution(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let _ = b;
    for i in 0..m {
        for l in 0..i {
            for j in 0..n {
                c[i * n + j] -= a[i * m + l] * c[l * n + j] / (4 * k) as f64;
            }
        }
    }
}

/// Only two rows of the result, each set many times.
// raised: 0
fn alternating_rows(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[(i % 2) * n + j] = sum;
        }
    }
}

/// The place is set in each iteration of the loop that sums up.
// raised: 0
fn set_again_and_again(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            for l in 0..k {
                c[i * n + j] = a[i * k + l] * b[l * n + j];
            }
        }
    }
}

/// The product changes what is multiplied next.
// raised: 0
fn a_factor_changes(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let mut factors = a.to_vec();
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += factors[i * k + l] * b[l * n + j];
            }
            c[i * n + j] = sum;
            factors[i * k] = 0.125 * sum;
        }
    }
}

// raised: 0
fn result_read_in_the_nest(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let mut total = 0.0;
    for l in 0..k {
        for i in 0..m {
            for j in 0..n {
                c[i * n + j] += a[i * k + l] * b[l * n + j];
                total += c[i * n + j] * 0.01;
            }
        }
    }
    c[0] += total;
}

/// Rows behind pointers.
// loops: not an array with one stride for each loop
fn rows_of_their_own(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let rows: Vec<Vec<f64>> = a.chunks(k).map(|row| row.to_vec()).collect();
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += rows[i][l] * b[l * n + j];
            }
            c[i * n + j] = sum;
        }
    }
}

/// Rows of the result overlap, which is found out when the program runs.
// raised: 3
fn overlapping_rows(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    let step = n.min(5);
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            c[i * step + j] = sum;
        }
    }
}

/// A side effect in each iteration.
// raised: 2
// loops: the loops may stop the program
fn counted(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
                COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
            c[i * n + j] = sum;
        }
    }
}

/// A check that may fail in the middle, after parts of the result are written.
// raised: 0
fn checked_inside(a: &[f64], b: &[f64], c: &mut [f64], m: usize, k: usize, n: usize) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for l in 0..k {
                sum += a[i * k + l] * b[l * n + j];
            }
            assert!(sum.is_finite());
            c[i * n + j] = sum;
        }
    }
}

tests! {
    matrix_vector<f64>(|m, k, _| [m * k, k, m]),
    no_sum<f64>(|m, k, n| [m * k, k * n, m * k * n]),
    three_by_three<f64>(|m, _, _| [9 * m, 9 * m, 9 * m]),
    convolution<f64>(|m, k, n| [m * k, k * n, m + n]),
    in_place<f64>(|m, _, n| [0, n * n, m * n]),
    row_above<f64>(|m, _, n| [0, n * n, m * n]),
    row_below<f64>(|m, _, n| [0, n * n, m * n]),
    running_sums<f64>(|m, k, n| [m * k, k * n, m * k * n]),
    squared_index<f64>(|m, k, n| [m * k, k * k + n, m * n]),
    index_modulo<f64>,
    index_in_few_bits<f64>(|m, k, n| [m * k, 256, m * n]),
    looked_up<f64>,
    decay<f64>,
    sine_of_products<f64>,
    positive_terms_only<f64>,
    stops_early<f64>,
    largest_product<f64>,
    three_matrices<f64>(|m, _, _| [m * m, m * m, m * m]),
    weighted<f64>(|m, k, n| [m * k, k * n + k, m * n]),
    forward_substitution<f64>(|m, _, n| [m * m, 0, m * n]),
    alternating_rows<f64>(|m, k, n| [m * k, k * n, 2 * n]),
    set_again_and_again<f64>,
    a_factor_changes<f64>,
    result_read_in_the_nest<f64>,
    rows_of_their_own<f64>,
    overlapping_rows<f64>,
    counted<f64>,
    checked_inside<f64>,
}
