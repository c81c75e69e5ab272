//! Structs of mixed fields, with shadows of the same type; methods on them.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::{Field, assert_close};

/// Numbers of both precisions among integers, flags and arrays.
#[derive(Clone, Debug, Default)]
struct Camera {
    id: u32,
    focal: f64,
    enabled: bool,
    centre: [f64; 2],
    gain: f32,
    order: u8,
    distortion: (f64, f64),
}

impl Camera {
    fn from_slice(x: &[f64]) -> Camera {
        Camera {
            id: 17,
            focal: x[0],
            enabled: true,
            centre: [x[1], x[2]],
            gain: 0.5,
            order: 2,
            distortion: (x[3], x[4]),
        }
    }

    fn add_to(&self, x: &mut [f64]) {
        for (x, value) in x.iter_mut().zip([
            self.focal,
            self.centre[0],
            self.centre[1],
            self.distortion.0,
            self.distortion.1,
        ]) {
            *x += value;
        }
    }
}

#[autodiff_reverse(dproject, Duplicated, Duplicated, Active)]
#[autodiff_forward(bproject, Dual, Dual, Dual)]
fn project(camera: &Camera, point: &[f64; 3]) -> f64 {
    if !camera.enabled {
        return 0.0;
    }
    let (x, y) = (point[0] / point[2], point[1] / point[2]);
    let square = x * x + y * y;
    let mut factor = 1.0 + camera.distortion.0 * square;
    if camera.order >= 2 {
        factor += camera.distortion.1 * square * square;
    }
    let u = camera.centre[0] + camera.focal * factor * x;
    let v = camera.centre[1] + camera.focal * factor * y;
    (u * u + v * v) * f64::from(camera.gain) + f64::from(camera.id) * u
}

#[test]
fn struct_of_mixed_fields() {
    let point = |x: &[f64]| [x[5], x[6], x[7]];
    Field::new("camera", |x| project(&Camera::from_slice(x), &point(x)))
        .reverse(|x, dx, seed| {
            let mut dcamera = Camera::default();
            let mut dpoint = [0.0; 3];
            let value = dproject(
                &Camera::from_slice(x),
                &mut dcamera,
                &point(x),
                &mut dpoint,
                seed,
            );
            dcamera.add_to(dx);
            for i in 0..3 {
                dx[5 + i] += dpoint[i];
            }
            assert_eq!(
                (dcamera.id, dcamera.enabled, dcamera.order),
                (0, false, 0),
                "fields without derivative stay as they were"
            );
            value
        })
        .forward(|x, v| {
            // The gain is no variable here, so its tangent is zero.
            let tangent = Camera {
                gain: 0.0,
                ..Camera::from_slice(v)
            };
            bproject(&Camera::from_slice(x), &tangent, &point(x), &point(v))
        })
        .check(&[1.5, 0.25, -0.5, 0.1, 0.05, 0.5, -0.75, 2.0]);
}

#[test]
fn gradient_of_a_single_precision_field() {
    let camera = Camera::from_slice(&[1.5, 0.25, -0.5, 0.1, 0.05]);
    let point = [0.5, -0.75, 2.0];
    let mut dcamera = Camera::default();
    dproject(&camera, &mut dcamera, &point, &mut [0.0; 3], 1.0);
    let with_gain = |gain: f32| {
        project(
            &Camera {
                gain,
                ..camera.clone()
            },
            &point,
        )
    };
    // The result is linear in the gain.
    assert_close(
        "gain",
        f64::from(dcamera.gain),
        with_gain(1.0) - with_gain(0.0),
        1e-6,
    );
}

/// A model that owns its memory: the shadow owns as much.
#[derive(Clone, Debug)]
struct Network {
    name: String,
    layers: Vec<Layer>,
    scale: f64,
}

#[derive(Clone, Debug)]
struct Layer {
    inputs: usize,
    weights: Vec<f64>,
    bias: Vec<f64>,
    activation: Activation,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Activation {
    Tanh,
    Softplus,
    Identity,
}

impl Network {
    fn from_slice(x: &[f64]) -> Network {
        Network {
            name: "small".to_string(),
            layers: vec![
                Layer {
                    inputs: 2,
                    weights: x[0..6].to_vec(),
                    bias: x[6..9].to_vec(),
                    activation: Activation::Tanh,
                },
                Layer {
                    inputs: 3,
                    weights: x[9..15].to_vec(),
                    bias: x[15..17].to_vec(),
                    activation: Activation::Softplus,
                },
                Layer {
                    inputs: 2,
                    weights: x[17..19].to_vec(),
                    bias: x[19..20].to_vec(),
                    activation: Activation::Identity,
                },
            ],
            scale: x[20],
        }
    }

    fn parameters(&self) -> Vec<f64> {
        let mut all: Vec<f64> = self
            .layers
            .iter()
            .flat_map(|layer| layer.weights.iter().chain(&layer.bias))
            .copied()
            .collect();
        all.push(self.scale);
        all
    }

    #[autodiff_reverse(evaluate_reverse, Duplicated, Duplicated, Active)]
    #[autodiff_forward(evaluate_forward, Dual, Dual, Dual)]
    fn evaluate(&self, input: &[f64]) -> f64 {
        let mut values = input.to_vec();
        for layer in &self.layers {
            values = layer.apply(&values);
        }
        assert_eq!(
            values.len(),
            1,
            "network {} must end in one value",
            self.name
        );
        self.scale * values[0]
    }
}

impl Layer {
    fn apply(&self, input: &[f64]) -> Vec<f64> {
        let mut output = self.bias.clone();
        for (row, output) in self.weights.chunks_exact(self.inputs).zip(&mut output) {
            for (weight, input) in row.iter().zip(input) {
                *output += weight * input;
            }
            *output = match self.activation {
                Activation::Tanh => output.tanh(),
                Activation::Softplus => output.exp().ln_1p(),
                Activation::Identity => *output,
            };
        }
        output
    }
}

#[test]
fn network_that_owns_vectors() {
    let x: Vec<f64> = (0..23).map(|i| (f64::from(i) * 1.3).sin() * 0.8).collect();
    Field::new("network", |x| Network::from_slice(x).evaluate(&x[21..]))
        .reverse(|x, dx, seed| {
            let mut shadow = Network::from_slice(&[0.0; 21]);
            let (dnetwork, dinput) = dx.split_at_mut(21);
            let value =
                Network::from_slice(x).evaluate_reverse(&mut shadow, &x[21..], dinput, seed);
            for (total, gradient) in dnetwork.iter_mut().zip(shadow.parameters()) {
                *total += gradient;
            }
            assert_eq!(shadow.layers[0].activation, Activation::Tanh);
            value
        })
        .forward(|x, v| {
            Network::from_slice(x).evaluate_forward(&Network::from_slice(v), &x[21..], &v[21..])
        })
        .check(&x);
}

/// Small values that are passed and returned by value inside, with operators.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Vector {
    x: f64,
    y: f64,
    z: f64,
}

impl std::ops::Add for Vector {
    type Output = Vector;
    fn add(self, other: Vector) -> Vector {
        Vector {
            x: self.x + other.x,
            y: self.y + other.y,
            z: self.z + other.z,
        }
    }
}

impl std::ops::Sub for Vector {
    type Output = Vector;
    fn sub(self, other: Vector) -> Vector {
        Vector {
            x: self.x - other.x,
            y: self.y - other.y,
            z: self.z - other.z,
        }
    }
}

impl std::ops::Mul<Vector> for f64 {
    type Output = Vector;
    fn mul(self, v: Vector) -> Vector {
        Vector {
            x: self * v.x,
            y: self * v.y,
            z: self * v.z,
        }
    }
}

impl std::ops::AddAssign for Vector {
    fn add_assign(&mut self, other: Vector) {
        *self = *self + other;
    }
}

impl Vector {
    fn dot(self, other: Vector) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }
    fn length(self) -> f64 {
        self.dot(self).sqrt()
    }
    fn normalised(self) -> Vector {
        (1.0 / self.length()) * self
    }
}

struct Sphere {
    centre: Vector,
    radius: f64,
}

#[autodiff_reverse(dshade, Duplicated, Duplicated, Active)]
#[autodiff_forward(bshade, Dual, Dual, Dual)]
fn shade(sphere: &Sphere, light: &Vector) -> f64 {
    let origin = Vector {
        x: 0.0,
        y: 0.0,
        z: -5.0,
    };
    let mut total = 0.0;
    for i in -2..=2 {
        let direction = Vector {
            x: 0.1 * f64::from(i),
            y: 0.05,
            z: 1.0,
        }
        .normalised();
        let offset = origin - sphere.centre;
        let b = offset.dot(direction);
        let discriminant = b * b - (offset.dot(offset) - sphere.radius * sphere.radius);
        if discriminant <= 0.0 {
            continue;
        }
        let hit = origin + (-b - discriminant.sqrt()) * direction;
        let mut normal = (hit - sphere.centre).normalised();
        normal += 0.1 * direction;
        total += normal.dot((*light - hit).normalised()).max(0.0);
    }
    total
}

#[test]
fn ray_tracer_with_operators() {
    let vector = |x: &[f64]| Vector {
        x: x[0],
        y: x[1],
        z: x[2],
    };
    let sphere = |x: &[f64]| Sphere {
        centre: vector(x),
        radius: x[3],
    };
    Field::new("ray tracer", |x| shade(&sphere(x), &vector(&x[4..])))
        .reverse(|x, dx, seed| {
            let mut dsphere = sphere(&[0.0; 4]);
            let mut dlight = vector(&[0.0; 3]);
            let value = dshade(
                &sphere(x),
                &mut dsphere,
                &vector(&x[4..]),
                &mut dlight,
                seed,
            );
            let Vector { x, y, z } = dsphere.centre;
            for (total, gradient) in
                dx.iter_mut()
                    .zip([x, y, z, dsphere.radius, dlight.x, dlight.y, dlight.z])
            {
                *total += gradient;
            }
            value
        })
        .forward(|x, v| bshade(&sphere(x), &sphere(v), &vector(&x[4..]), &vector(&v[4..])))
        .check(&[0.1, -0.05, 0.3, 1.2, 3.0, 4.0, -6.0]);
}

/// A result that is a struct, through memory.
#[derive(Clone, Debug, Default, PartialEq)]
struct Moments {
    count: usize,
    mean: f64,
    spread: f64,
    extremes: [f64; 2],
}

#[autodiff_reverse(dmeasure, Duplicated, Duplicated)]
#[autodiff_forward(bmeasure, Dual, Dual)]
fn measure(x: &[f64], moments: &mut Moments) {
    moments.count = x.len();
    moments.mean = x.iter().sum::<f64>() / x.len() as f64;
    moments.spread = x
        .iter()
        .map(|x| (x - moments.mean).powi(2))
        .sum::<f64>()
        .sqrt();
    moments.extremes = [f64::INFINITY, f64::NEG_INFINITY];
    for &x in x {
        moments.extremes[0] = moments.extremes[0].min(x);
        moments.extremes[1] = moments.extremes[1].max(x);
    }
}

#[test]
fn struct_as_output() {
    let x = [1.0, 4.0, -2.0, 0.5];
    let seed = Moments {
        count: 0,
        mean: 2.0,
        spread: -1.0,
        extremes: [0.5, 3.0],
    };
    let mut dx = [0.0; 4];
    let (mut moments, mut consumed) = (Moments::default(), seed.clone());
    dmeasure(&x, &mut dx, &mut moments, &mut consumed);
    assert_eq!(moments.count, 4);
    assert_eq!(moments.extremes, [-2.0, 4.0]);
    // The seeds are taken, and what is no float is stored as the primal does it, so that a shadow has the shape of its primal.
    let empty = Moments {
        count: 4,
        ..Moments::default()
    };
    assert_eq!(consumed, empty);
    let expected = ferrozyme_programs::gradient_by_differences(
        |x| {
            let mut moments = Moments::default();
            measure(x, &mut moments);
            2.0 * moments.mean - moments.spread
                + 0.5 * moments.extremes[0]
                + 3.0 * moments.extremes[1]
        },
        &x,
    );
    ferrozyme_programs::assert_all_close("struct as output", &dx, &expected, 1e-7);

    let direction = [0.5, -1.0, 2.0, 0.25];
    let (mut moments, mut tangent) = (Moments::default(), Moments::default());
    bmeasure(&x, &direction, &mut moments, &mut tangent);
    let forward =
        2.0 * tangent.mean - tangent.spread + 0.5 * tangent.extremes[0] + 3.0 * tangent.extremes[1];
    let backward: f64 = dx.iter().zip(&direction).map(|(g, v)| g * v).sum();
    assert_close("struct as output: both modes", forward, backward, 1e-10);
}

/// Packed and nested tuples, references in structs, and a newtype.
struct Metres(f64);

struct View<'a> {
    samples: &'a [f64],
    window: (usize, usize),
    height: &'a Metres,
}

#[autodiff_reverse(dview, Duplicated, Duplicated, Active)]
fn view(samples: &[f64], height: &f64) -> f64 {
    let height = Metres(*height);
    let view = View {
        samples,
        window: (1, 3),
        height: &height,
    };
    let inside = &view.samples[view.window.0..=view.window.1];
    let ((first, second), rest) = ((inside[0], inside[1]), &inside[2..]);
    view.height.0 * first * second + rest.iter().sum::<f64>() * view.height.0.powi(2)
}

#[test]
fn struct_of_references() {
    Field::new("view", |x| view(&x[..4], &x[4]))
        .reverse(|x, dx, seed| {
            let (dsamples, dheight) = dx.split_at_mut(4);
            dview(&x[..4], dsamples, &x[4], &mut dheight[0], seed)
        })
        .closed_form(|x| {
            let h = x[4];
            vec![0.0, h * x[2], h * x[1], h * h, x[1] * x[2] + 2.0 * h * x[3]]
        })
        .check(&[1.0, 2.0, 3.0, 4.0, 1.5]);
}
