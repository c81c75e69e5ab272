//! Objects behind `Box<dyn …>` that differ in what they hold: a float here, a pointer there.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::Field;

trait Shape {
    fn area(&self, scale: f64) -> f64;
}

struct Circle {
    radius: f64,
}

struct Rectangle {
    sides: [f64; 2],
}

struct Polygon {
    corners: Vec<(f64, f64)>,
}

impl Shape for Circle {
    fn area(&self, scale: f64) -> f64 {
        std::f64::consts::PI * (self.radius * scale).powi(2)
    }
}

impl Shape for Rectangle {
    fn area(&self, scale: f64) -> f64 {
        self.sides[0] * self.sides[1] * scale * scale
    }
}

impl Shape for Polygon {
    fn area(&self, scale: f64) -> f64 {
        let n = self.corners.len();
        let mut twice = 0.0;
        for i in 0..n {
            let (a, b) = (self.corners[i], self.corners[(i + 1) % n]);
            twice += a.0 * b.1 - b.0 * a.1;
        }
        0.5 * twice.abs() * scale * scale
    }
}

#[autodiff_reverse(dscene, Duplicated, Active)]
#[autodiff_forward(bscene, Dual, Dual)]
fn scene(x: &[f64]) -> f64 {
    // The objects are made inside, so what they hold is active.
    let mut shapes: Vec<Box<dyn Shape>> = Vec::new();
    shapes.push(Box::new(Circle { radius: x[0] }));
    if x[1] > 0.0 {
        shapes.push(Box::new(Rectangle {
            sides: [x[1], x[2]],
        }));
    }
    shapes.push(Box::new(Polygon {
        corners: vec![(0.0, 0.0), (x[3], x[0]), (x[2], x[1])],
    }));
    shapes
        .iter()
        .enumerate()
        .map(|(i, shape)| shape.area((i + 1) as f64))
        .sum()
}

#[test]
fn vector_of_boxed_trait_objects() {
    Field::new("Vec<Box<dyn Trait>>", scene)
        .reverse(dscene)
        .forward(bscene)
        .check(&[1.5, 2.0, 0.5, 3.0]);
    Field::new("Vec<Box<dyn Trait>>", scene)
        .reverse(dscene)
        .forward(bscene)
        .check(&[1.5, -2.0, 0.5, 3.0]);
}

/// A trait object with state that changes.
trait Filter {
    fn step(&mut self, input: f64) -> f64;
}

struct LowPass {
    factor: f64,
    state: f64,
}

struct Delay {
    buffer: Vec<f64>,
    position: usize,
}

impl Filter for LowPass {
    fn step(&mut self, input: f64) -> f64 {
        self.state += self.factor * (input - self.state);
        self.state
    }
}

impl Filter for Delay {
    fn step(&mut self, input: f64) -> f64 {
        let output = std::mem::replace(&mut self.buffer[self.position], input);
        self.position = (self.position + 1) % self.buffer.len();
        input - 0.5 * output
    }
}

#[autodiff_reverse(dfilters, Duplicated, Active, Active)]
#[autodiff_forward(bfilters, Dual, Dual, Dual)]
fn filter_chain(signal: &[f64], factor: f64) -> f64 {
    let mut chain: Vec<Box<dyn Filter>> = vec![
        Box::new(LowPass { factor, state: 0.0 }),
        Box::new(Delay {
            buffer: vec![0.0; 2],
            position: 0,
        }),
    ];
    let mut energy = 0.0;
    for &sample in signal {
        let output = chain
            .iter_mut()
            .fold(sample, |value, filter| filter.step(value));
        energy += output * output;
    }
    energy
}

#[test]
fn trait_objects_with_state() {
    Field::new("filters", |x| filter_chain(&x[..5], x[5]))
        .reverse(|x, dx, seed| {
            let (dsignal, dfactor) = dx.split_at_mut(5);
            let (value, gradient) = dfilters(&x[..5], dsignal, x[5], seed);
            dfactor[0] += gradient;
            value
        })
        .forward(|x, v| bfilters(&x[..5], &v[..5], x[5], v[5]))
        .check(&[1.0, 0.5, -2.0, 0.25, 3.0, 0.4]);
}

#[autodiff_reverse(dpipeline, Duplicated, Active)]
fn pipeline(x: &[f64]) -> f64 {
    let offset = x[1];
    let stages: Vec<Box<dyn Fn(f64) -> f64 + '_>> = vec![
        Box::new(|y| y * x[0]),
        Box::new(f64::sin),
        Box::new(move |y| y * y + offset),
        Box::new(|y| y * y),
    ];
    stages.iter().fold(x[2], |value, stage| stage(value))
}

#[test]
fn vector_of_boxed_closures() {
    Field::new("pipeline of closures", pipeline)
        .reverse(dpipeline)
        .check(&[0.5, 1.5, 2.0]);
}
