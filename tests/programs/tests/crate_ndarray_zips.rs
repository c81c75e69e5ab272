//! Code with ndarray as its users write it: several arrays at once.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::Field;
use ndarray::{Array2, Axis, Zip, concatenate, s};

const TWELVE: [f64; 12] = [
    2.0, 0.5, -0.3, 0.1, 1.5, 0.4, -0.2, 0.3, 1.8, 0.7, -0.4, 0.9,
];

#[autodiff_reverse(dzipped, Duplicated, Active)]
#[autodiff_forward(bzipped, Dual, Dual)]
fn zips(x: &[f64]) -> f64 {
    let a = Array2::from_shape_fn((3, 4), |(i, j)| x[i * 4 + j].sin());
    let mut out = Array2::zeros((3, 4));
    Zip::from(&mut out)
        .and(&a)
        .and(&a.slice(s![.., ..;-1]))
        .for_each(|out, a, b| *out = a * b + a);
    let both = concatenate(Axis(0), &[a.view(), out.view()]).unwrap();
    let scaled = &both
        / &both
            .map_axis(Axis(1), |row| row.dot(&row).sqrt())
            .insert_axis(Axis(1));
    scaled
        .outer_iter()
        .enumerate()
        .map(|(i, row)| row.sum() * i as f64)
        .sum::<f64>()
        + out.fold_axis(Axis(0), 0.0, |sum, x| sum + x * x).sum()
}

#[test]
fn zips_and_axes() {
    Field::new("ndarray Zip", zips)
        .reverse(dzipped)
        .forward(bzipped)
        .check(&TWELVE);
}
