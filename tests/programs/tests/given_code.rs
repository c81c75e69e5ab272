//! Code that comes with an argument: function pointers and trait objects in memory with a shadow.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::Field;

fn squared(x: f64) -> f64 {
    x * x
}

fn cubed(x: f64) -> f64 {
    x * x * x
}

struct Layer {
    weights: Vec<f64>,
    activation: fn(f64) -> f64,
}

#[autodiff_reverse(dlayer, Duplicated, Duplicated, Active)]
#[autodiff_forward(blayer, Dual, Dual, Dual)]
fn layer(layer: &Layer, x: &[f64]) -> f64 {
    (layer.activation)(layer.weights.iter().zip(x).map(|(w, x)| w * x).sum())
}

#[test]
fn function_pointer_in_a_struct() {
    for activation in [squared as fn(f64) -> f64, cubed] {
        let of = |weights: &[f64]| Layer {
            weights: weights.to_vec(),
            activation,
        };
        Field::new("layer with its activation", |x| {
            layer(&of(&x[..2]), &x[2..])
        })
        .reverse(|x, dx, seed| {
            let (dweights, dinputs) = dx.split_at_mut(2);
            let mut shadow = of(dweights);
            let value = dlayer(&of(&x[..2]), &mut shadow, &x[2..], dinputs, seed);
            dweights.copy_from_slice(&shadow.weights);
            value
        })
        .forward(|x, v| blayer(&of(&x[..2]), &of(&v[..2]), &x[2..], &v[2..]))
        .check(&[1.0, 2.0, 0.5, 0.75]);
    }
}

trait Activation {
    fn apply(&self, x: f64) -> f64;
    fn parameter(&mut self) -> &mut f64;
}

struct Leaky(f64);

struct Polynomial {
    coefficients: Vec<f64>,
}

impl Activation for Leaky {
    fn apply(&self, x: f64) -> f64 {
        if x > 0.0 { x } else { x * self.0 }
    }
    fn parameter(&mut self) -> &mut f64 {
        &mut self.0
    }
}

impl Activation for Polynomial {
    fn apply(&self, x: f64) -> f64 {
        self.coefficients.iter().rev().fold(0.0, |y, c| y * x + c)
    }
    fn parameter(&mut self) -> &mut f64 {
        &mut self.coefficients[1]
    }
}

struct Network {
    activations: Vec<Box<dyn Activation>>,
}

fn network(slope: f64, coefficient: f64, constant: f64) -> Network {
    Network {
        activations: vec![
            Box::new(Leaky(slope)),
            Box::new(Polynomial {
                coefficients: vec![constant, coefficient, constant],
            }),
        ],
    }
}

#[autodiff_reverse(dnetwork, Duplicated, Duplicated, Active)]
fn run(network: &Network, x: &[f64]) -> f64 {
    let outputs = network.activations.iter().zip(x).map(|(a, &x)| a.apply(x));
    outputs.sum::<f64>() * x[0]
}

#[test]
fn boxed_trait_objects_in_a_struct() {
    Field::new("network of trait objects", |x| {
        run(&network(x[0], x[1], 0.5), &x[2..])
    })
    .reverse(|x, dx, seed| {
        let (dparameters, dinputs) = dx.split_at_mut(2);
        let mut shadow = network(0.0, 0.0, 0.0);
        let value = dnetwork(
            &network(x[0], x[1], 0.5),
            &mut shadow,
            &x[2..],
            dinputs,
            seed,
        );
        for (d, activation) in dparameters.iter_mut().zip(&mut shadow.activations) {
            *d += *activation.parameter();
        }
        value
    })
    .check(&[0.1, 1.5, -2.0, 0.75]);
}

#[autodiff_reverse(dobject, Duplicated, Active, Active)]
#[autodiff_forward(bobject, Dual, Dual, Dual)]
fn object(activation: &dyn Activation, x: f64) -> f64 {
    activation.apply(x) + x
}

#[test]
fn trait_object_with_a_shadow() {
    let mut shadow = Leaky(0.0);
    let (value, dx) = dobject(&Leaky(0.5), &mut shadow, -3.0, 1.0);
    assert_eq!((value, dx, shadow.0), (-4.5, 1.5, -3.0));
    let of = |coefficients: [f64; 2]| Polynomial {
        coefficients: coefficients.to_vec(),
    };
    let mut shadow = of([0.0, 0.0]);
    let (value, dx) = dobject(&of([1.0, 2.0]), &mut shadow, 3.0, 1.0);
    assert_eq!(
        (value, dx, shadow.coefficients),
        (10.0, 3.0, vec![1.0, 3.0])
    );
    let tangent = bobject(&of([1.0, 2.0]), &of([0.0, 1.0]), 3.0, 0.0);
    assert_eq!(tangent, (10.0, 3.0));
}
