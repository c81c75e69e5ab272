//! Results in memory: seeds in `&mut` outputs, updates in place, several outputs, and the variants that leave the primal out.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{
    EXACT, Field, Mapping, assert_all_close, assert_close, gradient_by_differences,
};

#[autodiff_reverse(dmultiply, Duplicated, Duplicated, Const, Duplicated)]
#[autodiff_forward(bmultiply, Dual, Dual, Const, Dual)]
fn multiply(a: &[f64], b: &[f64], n: usize, c: &mut [f64]) {
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

#[test]
fn matrix_product_with_seeds() {
    let x: Vec<f64> = (0..18).map(|i| (f64::from(i) * 0.9).cos()).collect();
    Mapping::new("matrix product", 9, |x, y| multiply(&x[..9], &x[9..], 3, y))
        .reverse(|x, dx, y, dy| {
            let (da, db) = dx.split_at_mut(9);
            dmultiply(&x[..9], da, &x[9..], db, 3, y, dy)
        })
        .forward(|x, v, y, ty| bmultiply(&x[..9], &v[..9], &x[9..], &v[9..], 3, y, ty))
        .check(&x);
}

#[autodiff_reverse(dspherical, Duplicated, Duplicated)]
#[autodiff_forward(bspherical, Dual, Dual)]
fn spherical(from: &[f64; 3], to: &mut [f64; 3]) {
    let [radius, polar, azimuth] = *from;
    to[0] = radius * polar.sin() * azimuth.cos();
    to[1] = radius * polar.sin() * azimuth.sin();
    to[2] = radius * polar.cos();
}

#[test]
fn arrays_as_outputs() {
    let array = |x: &[f64]| <[f64; 3]>::try_from(x).unwrap();
    Mapping::new("spherical coordinates", 3, |x, y| {
        spherical(&array(x), y.try_into().unwrap())
    })
    .reverse(|x, dx, y, dy| {
        dspherical(
            &array(x),
            dx.try_into().unwrap(),
            y.try_into().unwrap(),
            dy.try_into().unwrap(),
        )
    })
    .forward(|x, v, y, ty| {
        bspherical(
            &array(x),
            &array(v),
            y.try_into().unwrap(),
            ty.try_into().unwrap(),
        )
    })
    .check(&[2.0, 0.7, -1.3]);
}

#[autodiff_reverse(dsmooth, Duplicated, Const)]
#[autodiff_forward(bsmooth, Dual, Const)]
fn smooth(x: &mut [f64], sweeps: usize) {
    let n = x.len();
    for _ in 0..sweeps {
        for i in 1..n - 1 {
            x[i] = 0.25 * x[i - 1] + 0.5 * x[i] * x[i] + 0.25 * x[i + 1];
        }
    }
}

/// The shadow of memory that is both read and written goes in as the seed and comes out as the gradient.
#[test]
fn update_in_place() {
    let start = [0.5, -0.25, 1.0, 0.75, -0.5];
    for sweeps in [0, 1, 4] {
        let evaluate = |x: &[f64]| {
            let mut x = x.to_vec();
            smooth(&mut x, sweeps);
            x
        };
        let seed = [1.0, -2.0, 0.5, 3.0, 0.25];
        let (mut x, mut dx) = (start.to_vec(), seed.to_vec());
        dsmooth(&mut x, &mut dx, sweeps);
        assert_all_close("smooth in place: values", &x, &evaluate(&start), 1e-14);
        let expected = gradient_by_differences(
            |x| evaluate(x).iter().zip(&seed).map(|(y, u)| y * u).sum(),
            &start,
        );
        assert_all_close("smooth in place: gradient", &dx, &expected, 1e-7);

        let direction = [0.3, -0.7, 1.1, 0.2, -0.4];
        let (mut x, mut tangent) = (start.to_vec(), direction.to_vec());
        bsmooth(&mut x, &mut tangent, sweeps);
        let product: f64 = dx.iter().zip(&direction).map(|(g, v)| g * v).sum();
        let other: f64 = tangent.iter().zip(&seed).map(|(t, u)| t * u).sum();
        assert_close(
            "smooth in place: ⟨v, Jᵀu⟩ against ⟨Jv, u⟩",
            product,
            other,
            EXACT,
        );
    }
}

#[autodiff_reverse(dstatistics, Duplicated, Duplicated, Duplicated, Active)]
#[autodiff_forward(bstatistics, Dual, Dual, Dual, Dual)]
fn statistics(x: &[f64], mean: &mut f64, variance: &mut f64) -> f64 {
    let n = x.len() as f64;
    *mean = x.iter().sum::<f64>() / n;
    *variance = x.iter().map(|x| (x - *mean) * (x - *mean)).sum::<f64>() / n;
    *mean / (*variance + 1.0).sqrt()
}

/// Two outputs in memory and a returned one, each with its own seed.
#[test]
fn several_outputs() {
    let x = [1.0, 2.5, -0.5, 4.0];
    let seeds = [0.5, -2.0, 3.0];
    let combined = |x: &[f64]| {
        let (mut mean, mut variance) = (0.0, 0.0);
        let value = statistics(x, &mut mean, &mut variance);
        seeds[0] * mean + seeds[1] * variance + seeds[2] * value
    };
    let expected = gradient_by_differences(combined, &x);
    let mut dx = vec![0.0; 4];
    let (mut mean, mut dmean, mut variance, mut dvariance) = (0.0, seeds[0], 0.0, seeds[1]);
    let value = dstatistics(
        &x,
        &mut dx,
        &mut mean,
        &mut dmean,
        &mut variance,
        &mut dvariance,
        seeds[2],
    );
    assert_close("mean", mean, 1.75, 1e-14);
    assert_close("variance", variance, 2.8125, 1e-14);
    assert_close("value", value, 1.75 / 3.8125f64.sqrt(), 1e-14);
    assert_all_close("gradient of several outputs", &dx, &expected, 1e-7);
    assert_eq!((dmean, dvariance), (0.0, 0.0), "the seeds are consumed");

    let direction = [1.0, -1.0, 0.5, 0.25];
    let (mut mean, mut tmean, mut variance, mut tvariance) = (0.0, 9.0, 0.0, 9.0);
    let (_, tangent) = bstatistics(
        &x,
        &direction,
        &mut mean,
        &mut tmean,
        &mut variance,
        &mut tvariance,
    );
    let product: f64 = dx.iter().zip(&direction).map(|(g, v)| g * v).sum();
    assert_close(
        "tangents of several outputs",
        seeds[0] * tmean + seeds[1] * tvariance + seeds[2] * tangent,
        product,
        EXACT,
    );
}

#[autodiff_reverse(daccumulate, Duplicated, Duplicated)]
#[autodiff_forward(baccumulate, Dual, Dual)]
fn accumulate(x: &[f64], total: &mut [f64]) {
    for (i, total) in total.iter_mut().enumerate() {
        *total += x[i] * x[i];
    }
}

/// A value that is added to stays an input: its seed survives.
#[test]
fn accumulation_into_an_output() {
    let (x, mut dx) = ([1.0, -2.0, 3.0], [0.0; 3]);
    let (mut total, mut dtotal) = ([10.0, 20.0, 30.0], [1.0, 0.5, -2.0]);
    daccumulate(&x, &mut dx, &mut total, &mut dtotal);
    assert_eq!(total, [11.0, 24.0, 39.0]);
    assert_eq!(dx, [2.0, -2.0, -12.0]);
    assert_eq!(dtotal, [1.0, 0.5, -2.0]);

    let (mut total, mut ttotal) = ([10.0, 20.0, 30.0], [1.0, 0.5, -2.0]);
    baccumulate(&x, &[1.0, 1.0, 1.0], &mut total, &mut ttotal);
    assert_eq!(total, [11.0, 24.0, 39.0]);
    assert_eq!(ttotal, [3.0, -3.5, 4.0]);
}

#[autodiff_reverse(dlayer, Duplicated, Duplicated, DuplicatedOnly)]
fn layer(weights: &[f64], input: &[f64], output: &mut [f64]) {
    let n = input.len();
    for (o, output) in output.iter_mut().enumerate() {
        let mut sum = 0.0;
        for i in 0..n {
            sum += weights[o * n + i] * input[i];
        }
        *output = sum.tanh();
    }
}

/// With `DuplicatedOnly` the primal output is unspecified, but the gradient is the same.
#[test]
fn output_of_no_interest() {
    let x: Vec<f64> = (0..9).map(|i| (f64::from(i) * 0.7).sin()).collect();
    let seed = [0.5, -1.5];
    let expected = gradient_by_differences(
        |x| {
            let mut y = [0.0; 2];
            layer(&x[..6], &x[6..], &mut y);
            y[0] * seed[0] + y[1] * seed[1]
        },
        &x,
    );
    let mut dx = vec![0.0; 9];
    let (dw, di) = dx.split_at_mut(6);
    let (mut y, mut dy) = ([0.0; 2], seed);
    // SAFETY: the output's memory is writable, and nothing reads it afterwards.
    unsafe { dlayer(&x[..6], dw, &x[6..], di, &mut y, &mut dy) };
    assert_all_close("gradient with DuplicatedOnly", &dx, &expected, 1e-7);
}

#[autodiff_reverse(dnorm_only, Duplicated, ActiveOnly)]
#[autodiff_forward(bnorm_only, Dual, DualOnly)]
#[autodiff_forward(bnorm_const, Dual, Const)]
fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

#[autodiff_reverse(dproduct_only, Active, Active, ActiveOnly)]
#[autodiff_reverse(dproduct_one, Active, Const, ActiveOnly)]
#[autodiff_forward(bproduct_only, Dual, Dual, DualOnly)]
fn product(x: f64, y: f64) -> f64 {
    x * y * y
}

#[test]
fn derivative_without_the_value() {
    let mut dx = [0.0; 2];
    dnorm_only(&[3.0, 4.0], &mut dx, 10.0);
    assert_all_close("ActiveOnly of a slice", &dx, &[6.0, 8.0], 1e-14);
    assert_close(
        "DualOnly of a slice",
        bnorm_only(&[3.0, 4.0], &[1.0, -1.0]),
        -0.2,
        1e-14,
    );
    assert_close(
        "Const return",
        bnorm_const(&[3.0, 4.0], &[1.0, -1.0]),
        5.0,
        1e-14,
    );
    assert_eq!(dproduct_only(3.0, 2.0, 1.0), (4.0, 12.0));
    assert_eq!(dproduct_one(3.0, 2.0, 2.0), 8.0);
    assert_eq!(bproduct_only(3.0, 1.0, 2.0, -1.0), -8.0);
}

#[autodiff_reverse(dpartial, Duplicated, Duplicated)]
fn partial(x: &[f64], y: &mut [f64]) {
    y[0] = x[0] * x[1];
    y[2] = y[0] * x[2];
}

/// An entry of the output that the function does not write keeps value and seed.
#[test]
fn output_written_in_part() {
    let (mut dx, mut y, mut dy) = ([0.0; 3], [7.0, 8.0, 9.0], [1.0, 5.0, 2.0]);
    partial(&[2.0, 3.0, 4.0], &mut y);
    assert_eq!(y, [6.0, 8.0, 24.0]);
    dpartial(&[2.0, 3.0, 4.0], &mut dx, &mut y, &mut dy);
    assert_eq!(y, [6.0, 8.0, 24.0]);
    assert_eq!(dy, [0.0, 5.0, 0.0]);
    assert_eq!(dx, [27.0, 18.0, 12.0]);
}

#[autodiff_reverse(dwith_scratch, Duplicated, Duplicated, Active)]
fn with_scratch(x: &[f64], scratch: &mut [f64]) -> f64 {
    for i in 0..x.len() {
        scratch[i] = x[i].exp();
    }
    let mut sum = 0.0;
    for i in 0..x.len() {
        scratch[i] *= scratch[i];
        sum += scratch[i];
    }
    sum
}

/// Memory that the caller lends as scratch space: its shadow is scratch space, too.
#[test]
fn scratch_space() {
    Field::new("scratch space", |x| {
        with_scratch(x, &mut vec![0.0; x.len()])
    })
    .reverse(|x, dx, seed| {
        dwith_scratch(
            x,
            dx,
            &mut vec![0.0; x.len()],
            &mut vec![0.0; x.len()],
            seed,
        )
    })
    .closed_form(|x| x.iter().map(|x| 2.0 * (2.0 * x).exp()).collect())
    .check(&[0.5, -1.0, 0.25]);
}
