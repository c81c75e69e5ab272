//! The gradient of a function of a slice: the example of the README.

use ferrozyme::autodiff_reverse;

#[autodiff_reverse(d_energy, Duplicated, Active)]
fn energy(x: &[f64]) -> f64 {
    x.windows(2)
        .map(|pair| (pair[1] - pair[0]).powi(2))
        .sum::<f64>()
        .sqrt()
}

fn main() {
    let (x, mut gradient) = ([1.0, 4.0, 8.0], [0.0; 3]);
    let value = d_energy(&x, &mut gradient, 1.0);
    println!("{value} {gradient:?}");
}
