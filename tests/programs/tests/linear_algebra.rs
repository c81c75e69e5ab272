//! Dense linear algebra as it stands in textbooks: factorisations in place, iterations, eigenvalues.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{Field, Mapping};

/// A symmetric positive definite matrix of order `n` that depends smoothly on `x`.
fn positive_definite(x: &[f64], n: usize) -> Vec<f64> {
    let mut a = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..n {
            a[i * n + j] = (x[i] * x[j]).cos() * 0.3;
        }
        a[i * n + i] += n as f64 + x[i] * x[i];
    }
    a
}

fn cholesky_in_place(a: &mut [f64], n: usize) -> bool {
    for j in 0..n {
        for k in 0..j {
            let factor = a[j * n + k];
            for i in j..n {
                a[i * n + j] -= a[i * n + k] * factor;
            }
        }
        let pivot = a[j * n + j];
        if pivot <= 0.0 {
            return false;
        }
        let root = pivot.sqrt();
        for i in j..n {
            a[i * n + j] /= root;
        }
    }
    true
}

#[autodiff_reverse(dlog_determinant, Duplicated, Const, Active)]
#[autodiff_forward(blog_determinant, Dual, Const, Dual)]
fn log_determinant(matrix: &[f64], n: usize) -> f64 {
    let mut a = matrix.to_vec();
    if !cholesky_in_place(&mut a, n) {
        return f64::NEG_INFINITY;
    }
    let mut sum = 0.0;
    for i in 0..n {
        sum += a[i * n + i].ln();
    }
    2.0 * sum
}

#[test]
fn cholesky_log_determinant() {
    let a = positive_definite(&[0.5, -1.0, 2.0, 0.25], 4);
    // Only the lower triangle is read: the gradient is twice the inverse below the diagonal, and the inverse on it.
    let inverse = invert(&a, 4);
    Field::new("log determinant by Cholesky", |a| log_determinant(a, 4))
        .reverse(|a, da, seed| dlog_determinant(a, da, 4, seed))
        .forward(|a, v| blog_determinant(a, v, 4))
        .closed_form(|_| {
            (0..16)
                .map(|k| match (k / 4).cmp(&(k % 4)) {
                    std::cmp::Ordering::Less => 0.0,
                    std::cmp::Ordering::Equal => inverse[k],
                    std::cmp::Ordering::Greater => 2.0 * inverse[k],
                })
                .collect()
        })
        .check(&a);
}

/// The inverse by Gauss–Jordan elimination, for closed forms.
fn invert(a: &[f64], n: usize) -> Vec<f64> {
    let mut left = a.to_vec();
    let mut right: Vec<f64> = (0..n * n)
        .map(|k| f64::from(u8::from(k / n == k % n)))
        .collect();
    for p in 0..n {
        let scale = 1.0 / left[p * n + p];
        for j in 0..n {
            left[p * n + j] *= scale;
            right[p * n + j] *= scale;
        }
        for i in (0..n).filter(|&i| i != p) {
            let factor = left[i * n + p];
            for j in 0..n {
                left[i * n + j] -= factor * left[p * n + j];
                right[i * n + j] -= factor * right[p * n + j];
            }
        }
    }
    right
}

#[autodiff_reverse(dcholesky_factor, Duplicated, Duplicated)]
#[autodiff_forward(bcholesky_factor, Dual, Dual)]
fn cholesky_factor(a: &[f64], l: &mut [f64]) {
    let n = (a.len() as f64).sqrt() as usize;
    for i in 0..n {
        for j in 0..=i {
            let mut sum = a[i * n + j];
            for k in 0..j {
                sum -= l[i * n + k] * l[j * n + k];
            }
            l[i * n + j] = if i == j {
                sum.sqrt()
            } else {
                sum / l[j * n + j]
            };
        }
        for j in i + 1..n {
            l[i * n + j] = 0.0;
        }
    }
}

#[test]
fn cholesky_factor_as_output() {
    Mapping::new("Cholesky–Banachiewicz", 9, cholesky_factor)
        .reverse(dcholesky_factor)
        .forward(bcholesky_factor)
        .check(&positive_definite(&[0.5, -1.0, 2.0], 3));
}

/// LU with partial pivoting on rows that own their memory; returns the sign of the permutation.
fn lu_in_place(a: &mut Vec<Vec<f64>>, b: &mut [f64]) -> Option<f64> {
    let n = a.len();
    let mut sign = 1.0;
    for p in 0..n {
        let mut best = p;
        for i in p + 1..n {
            if a[i][p].abs() > a[best][p].abs() {
                best = i;
            }
        }
        if a[best][p] == 0.0 {
            return None;
        }
        if best != p {
            a.swap(p, best);
            b.swap(p, best);
            sign = -sign;
        }
        for i in p + 1..n {
            let factor = a[i][p] / a[p][p];
            a[i][p] = factor;
            for j in p + 1..n {
                a[i][j] -= factor * a[p][j];
            }
            b[i] -= factor * b[p];
        }
    }
    Some(sign)
}

#[autodiff_reverse(dsolve, Duplicated, Duplicated, Active)]
#[autodiff_forward(bsolve, Dual, Dual, Dual)]
fn solve_and_weigh(matrix: &[f64], right: &[f64]) -> f64 {
    let n = right.len();
    let mut a: Vec<Vec<f64>> = matrix.chunks(n).map(|row| row.to_vec()).collect();
    let mut x = right.to_vec();
    let Some(sign) = lu_in_place(&mut a, &mut x) else {
        return 0.0;
    };
    for i in (0..n).rev() {
        for j in i + 1..n {
            let known = x[j];
            x[i] -= a[i][j] * known;
        }
        x[i] /= a[i][i];
    }
    let determinant = sign * (0..n).map(|i| a[i][i]).product::<f64>();
    x.iter()
        .enumerate()
        .map(|(i, x)| x * (i + 1) as f64)
        .sum::<f64>()
        + 0.1 * determinant
}

#[test]
fn lu_with_pivoting() {
    let z = [
        0.1, 2.0, -1.0, 3.0, 0.2, 1.5, -0.5, 1.0, 2.5, 1.0, -2.0, 0.5,
    ];
    Field::new("LU with pivoting", |z| solve_and_weigh(&z[..9], &z[9..]))
        .reverse(|z, dz, seed| {
            let (da, db) = dz.split_at_mut(9);
            dsolve(&z[..9], da, &z[9..], db, seed)
        })
        .forward(|z, v| bsolve(&z[..9], &v[..9], &z[9..], &v[9..]))
        .check(&z);
}

#[autodiff_reverse(dflat_lu, Duplicated, Duplicated)]
#[autodiff_forward(bflat_lu, Dual, Dual)]
fn solve_flat(a_and_b: &[f64], x: &mut [f64]) {
    // A permutation vector instead of swapped rows, and the matrix flat.
    let n = x.len();
    let mut a = a_and_b[..n * n].to_vec();
    let mut order: Vec<usize> = (0..n).collect();
    for p in 0..n {
        let best = (p..n)
            .max_by(|&i, &j| {
                a[order[i] * n + p]
                    .abs()
                    .total_cmp(&a[order[j] * n + p].abs())
            })
            .unwrap();
        order.swap(p, best);
        let pivot_row = order[p];
        for &row in &order[p + 1..] {
            let factor = a[row * n + p] / a[pivot_row * n + p];
            a[row * n + p] = factor;
            for j in p + 1..n {
                a[row * n + j] -= factor * a[pivot_row * n + j];
            }
        }
    }
    for i in 0..n {
        let mut sum = a_and_b[n * n + order[i]];
        for j in 0..i {
            sum -= a[order[i] * n + j] * x[j];
        }
        x[i] = sum;
    }
    for i in (0..n).rev() {
        let mut sum = x[i];
        for j in i + 1..n {
            sum -= a[order[i] * n + j] * x[j];
        }
        x[i] = sum / a[order[i] * n + i];
    }
}

#[test]
fn lu_with_a_permutation_vector() {
    Mapping::new("LU with a permutation vector", 3, solve_flat)
        .reverse(dflat_lu)
        .forward(bflat_lu)
        .check(&[
            0.1, 2.0, -1.0, 3.0, 0.2, 1.5, -0.5, 1.0, 2.5, 1.0, -2.0, 0.5,
        ]);
}

#[autodiff_reverse(dgauss_seidel, Duplicated, Duplicated, Duplicated)]
#[autodiff_forward(bgauss_seidel, Dual, Dual, Dual)]
fn gauss_seidel(a: &[f64], b: &[f64], x: &mut [f64]) {
    let n = b.len();
    x.fill(0.0);
    for _ in 0..60 {
        let mut change = 0.0f64;
        for i in 0..n {
            let mut sum = b[i];
            for j in 0..n {
                if j != i {
                    sum -= a[i * n + j] * x[j];
                }
            }
            let next = sum / a[i * n + i];
            change = change.max((next - x[i]).abs());
            x[i] = next;
        }
        if change < 1e-14 {
            break;
        }
    }
}

#[test]
fn gauss_seidel_until_convergence() {
    let mut z = positive_definite(&[0.5, -1.0, 2.0, 0.25], 4);
    z.extend([1.0, -2.0, 0.5, 3.0]);
    Mapping::new("Gauss–Seidel", 4, |z, x| {
        gauss_seidel(&z[..16], &z[16..], x)
    })
    .reverse(|z, dz, x, dx| {
        let (da, db) = dz.split_at_mut(16);
        dgauss_seidel(&z[..16], da, &z[16..], db, x, dx)
    })
    .forward(|z, v, x, tx| bgauss_seidel(&z[..16], &v[..16], &z[16..], &v[16..], x, tx))
    .check(&z);
}

#[autodiff_reverse(dconjugate, Duplicated, Const, Active)]
#[autodiff_forward(bconjugate, Dual, Const, Dual)]
fn conjugate_gradients(b: &[f64], a: &[f64]) -> f64 {
    let n = b.len();
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let mut x = vec![0.0; n];
    let mut residual = b.to_vec();
    let mut direction = residual.clone();
    let mut square = dot(&residual, &residual);
    for _ in 0..n {
        let image: Vec<f64> = a.chunks(n).map(|row| dot(row, &direction)).collect();
        let step = square / dot(&direction, &image);
        for i in 0..n {
            x[i] += step * direction[i];
            residual[i] -= step * image[i];
        }
        let next = dot(&residual, &residual);
        if next < 1e-24 {
            break;
        }
        let factor = next / square;
        square = next;
        for i in 0..n {
            direction[i] = residual[i] + factor * direction[i];
        }
    }
    dot(&x, b)
}

#[test]
fn conjugate_gradient_solver() {
    // b · A⁻¹ b: the gradient is 2 A⁻¹ b, to the precision of the solver.
    let a = positive_definite(&[0.5, -1.0, 2.0], 3);
    Field::new("conjugate gradients", |b| conjugate_gradients(b, &a))
        .reverse(|b, db, seed| dconjugate(b, db, &a, seed))
        .forward(|b, v| bconjugate(b, v, &a))
        .check(&[1.0, -2.0, 0.5]);
}

#[autodiff_reverse(dhouseholder, Duplicated, Active)]
#[autodiff_forward(bhouseholder, Dual, Dual)]
fn least_squares(points: &[f64]) -> f64 {
    // QR by Householder reflections of a matrix with the columns 1, t, t², then the sum of the residuals' squares.
    let rows = points.len() / 2;
    let columns = 3;
    let mut a: Vec<Vec<f64>> = (0..rows)
        .map(|i| (0..columns).map(|p| points[i].powi(p)).collect())
        .collect();
    let columns = columns as usize;
    let mut b = points[rows..].to_vec();
    for k in 0..columns {
        let norm = (k..rows).map(|i| a[i][k] * a[i][k]).sum::<f64>().sqrt();
        let alpha = if a[k][k] > 0.0 { -norm } else { norm };
        let mut v: Vec<f64> = (k..rows).map(|i| a[i][k]).collect();
        v[0] -= alpha;
        let square: f64 = v.iter().map(|v| v * v).sum();
        for j in k..columns {
            let dot: f64 = v.iter().zip(&a[k..]).map(|(v, row)| v * row[j]).sum();
            for (v, row) in v.iter().zip(&mut a[k..]) {
                row[j] -= 2.0 * dot / square * v;
            }
        }
        let dot: f64 = v.iter().zip(&b[k..]).map(|(v, b)| v * b).sum();
        for (v, b) in v.iter().zip(&mut b[k..]) {
            *b -= 2.0 * dot / square * v;
        }
    }
    b[columns..].iter().map(|b| b * b).sum()
}

#[test]
fn householder_least_squares() {
    Field::new("Householder QR", least_squares)
        .reverse(dhouseholder)
        .forward(bhouseholder)
        .check(&[0.0, 0.5, 1.0, 1.5, 2.5, 1.0, 0.25, 2.0, -1.0, 3.0]);
}

#[autodiff_reverse(dpower, Duplicated, Const, Active)]
#[autodiff_forward(bpower, Dual, Const, Dual)]
fn largest_eigenvalue(a: &[f64], n: usize) -> f64 {
    let mut v = vec![1.0; n];
    let mut eigenvalue = 0.0;
    for _ in 0..400 {
        let mut w = vec![0.0; n];
        for i in 0..n {
            for j in 0..n {
                w[i] += a[i * n + j] * v[j];
            }
        }
        let norm = w.iter().map(|w| w * w).sum::<f64>().sqrt();
        for w in &mut w {
            *w /= norm;
        }
        let done = (norm - eigenvalue as f64).abs() < 1e-15;
        eigenvalue = norm;
        v = w;
        if done {
            break;
        }
    }
    eigenvalue
}

#[test]
fn power_iteration() {
    Field::new("power iteration", |a| largest_eigenvalue(a, 3))
        .reverse(|a, da, seed| dpower(a, da, 3, seed))
        .forward(|a, v| bpower(a, v, 3))
        .check(&[4.0, 1.0, 0.5, 1.0, 2.0, 0.25, 0.5, 0.25, 1.0]);
}

#[autodiff_reverse(djacobi, Duplicated, Duplicated)]
#[autodiff_forward(bjacobi, Dual, Dual)]
fn eigenvalues(matrix: &[f64; 9], values: &mut [f64; 3]) {
    let mut a = [[0.0; 3]; 3];
    for i in 0..3 {
        for j in 0..3 {
            a[i][j] = 0.5 * (matrix[3 * i + j] + matrix[3 * j + i]);
        }
    }
    for _ in 0..8 {
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            if a[p][q].abs() < 1e-300 {
                continue;
            }
            let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
            let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
            let c = 1.0 / (t * t + 1.0).sqrt();
            let s = t * c;
            for k in 0..3 {
                let (left, right) = (a[k][p], a[k][q]);
                a[k][p] = c * left - s * right;
                a[k][q] = s * left + c * right;
            }
            for k in 0..3 {
                let (left, right) = (a[p][k], a[q][k]);
                a[p][k] = c * left - s * right;
                a[q][k] = s * left + c * right;
            }
        }
    }
    *values = [a[0][0], a[1][1], a[2][2]];
}

#[test]
fn eigenvalues_by_jacobi_rotations() {
    let array = |x: &[f64]| <[f64; 9]>::try_from(x).unwrap();
    Mapping::new("Jacobi eigenvalues", 3, |x, y| {
        eigenvalues(&array(x), y.try_into().unwrap())
    })
    .reverse(|x, dx, y, dy| {
        djacobi(
            &array(x),
            dx.try_into().unwrap(),
            y.try_into().unwrap(),
            dy.try_into().unwrap(),
        )
    })
    .forward(|x, v, y, ty| {
        bjacobi(
            &array(x),
            &array(v),
            y.try_into().unwrap(),
            ty.try_into().unwrap(),
        )
    })
    .check(&[4.0, 1.0, 0.5, 1.0, 2.0, 0.25, 0.5, 0.25, 1.0]);
}

#[autodiff_reverse(dtridiagonal, Duplicated, Duplicated)]
#[autodiff_forward(btridiagonal, Dual, Dual)]
fn thomas(bands: &[f64], x: &mut [f64]) {
    let n = x.len();
    let (lower, rest) = bands.split_at(n);
    let (diagonal, rest) = rest.split_at(n);
    let (upper, right) = rest.split_at(n);
    let mut c = vec![0.0; n];
    c[0] = upper[0] / diagonal[0];
    x[0] = right[0] / diagonal[0];
    for i in 1..n {
        let m = 1.0 / (diagonal[i] - lower[i] * c[i - 1]);
        c[i] = upper[i] * m;
        x[i] = (right[i] - lower[i] * x[i - 1]) * m;
    }
    for i in (0..n - 1).rev() {
        x[i] -= c[i] * x[i + 1];
    }
}

#[test]
fn tridiagonal_solver() {
    let mut bands = vec![-1.0, -0.5, 0.25, 0.75];
    bands.extend([
        4.0, 3.5, 5.0, 4.5, 1.0, -1.0, 0.5, 0.25, 1.0, 2.0, -3.0, 0.5,
    ]);
    Mapping::new("Thomas algorithm", 4, thomas)
        .reverse(dtridiagonal)
        .forward(btridiagonal)
        .check(&bands);
}
