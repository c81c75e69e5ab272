//! Derivatives of problems that are made up here, for where ADBench's data is absent: automatic against hand-written, and against finite differences.

use ferrozyme_adbench::check::{TOLERANCE, largest_error};
use ferrozyme_adbench::{ba, gmm, hand, lstm};

/// Numbers between -1 and 1 that are the same each time.
fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// The derivative along a direction by central differences.
fn slope(f: impl Fn(f64) -> f64) -> f64 {
    let step = 1e-5;
    (f(step) - f(-step)) / (2.0 * step)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn moved(x: &[f64], direction: &[f64], by: f64) -> Vec<f64> {
    x.iter().zip(direction).map(|(x, d)| x + by * d).collect()
}

fn assert_near(what: &str, found: f64, expected: f64) {
    let error = (found - expected).abs() / expected.abs().max(1.0);
    assert!(error < 1e-6, "{what}: {found} instead of {expected}");
}

#[test]
fn mixtures() {
    for (dimension, components, count) in [(1, 1, 3), (2, 3, 7), (5, 4, 11)] {
        let factors = components * dimension * (dimension + 1) / 2;
        let instance = gmm::Instance {
            dimension,
            components,
            alphas: numbers(components, 1),
            means: numbers(components * dimension, 2),
            factors: numbers(factors, 3),
            points: numbers(count * dimension, 4),
            wishart: gmm::Wishart { gamma: 0.7, m: 2 },
        };
        let gradient = instance.gradient();
        assert!(largest_error(&gradient, &instance.gradient_by_hand()) <= TOLERANCE);
        let direction = numbers(gradient.len(), 5);
        let expected = slope(|by| {
            let (alphas, rest) = direction.split_at(components);
            let (means, factors) = rest.split_at(components * dimension);
            let there = gmm::Instance {
                alphas: moved(&instance.alphas, alphas, by),
                means: moved(&instance.means, means, by),
                factors: moved(&instance.factors, factors, by),
                ..instance.clone()
            };
            there.objective()
        });
        assert_near("mixture", dot(&gradient, &direction), expected);
    }
}

#[test]
fn networks() {
    for (layers, width, count) in [(1, 1, 2), (2, 3, 6), (3, 5, 9)] {
        let instance = lstm::Instance {
            layers,
            width,
            main: numbers(8 * layers * width, 1),
            extra: numbers(3 * width, 2),
            state: numbers(2 * layers * width, 3),
            sequence: numbers(count * width, 4),
        };
        let gradient = instance.gradient();
        assert!(largest_error(&gradient, &instance.gradient_by_hand()) <= TOLERANCE);
        let direction = numbers(gradient.len(), 5);
        let expected = slope(|by| {
            let (main, extra) = direction.split_at(instance.main.len());
            let there = lstm::Instance {
                main: moved(&instance.main, main, by),
                extra: moved(&instance.extra, extra, by),
                ..instance.clone()
            };
            there.objective()
        });
        assert_near("network", dot(&gradient, &direction), expected);
    }
}

#[test]
fn adjustments() {
    for still in [false, true] {
        let camera = |seed: u64| -> ba::Camera {
            let numbers = numbers(11, seed);
            std::array::from_fn(|i| match i {
                // A camera that is not turned takes another way through the code.
                0..3 if still => 0.0,
                5 => numbers[i] - 6.0,
                _ => numbers[i],
            })
        };
        let points = numbers(9, 7);
        let instance = ba::Instance {
            cameras: vec![camera(1), camera(2)],
            points: points.chunks(3).map(|p| [p[0], p[1], p[2]]).collect(),
            weights: numbers(4, 8),
            observations: vec![(0, 0), (1, 2), (0, 1), (1, 1)],
            features: vec![[0.1, -0.2]; 4],
        };
        let (found, by_hand) = (instance.jacobian(), instance.jacobian_by_hand());
        assert!(largest_error(found.values(), by_hand.values()) <= TOLERANCE);
        assert_eq!(found.places(), by_hand.places());
        assert_eq!(found.starts(), by_hand.starts());
        assert_eq!(found.places().len(), 31 * 4);
    }
}

/// A hand with the real one's bones, three fingers' breadth of vertices, and weights that spread over all bones.
fn hand_model() -> hand::Model {
    let affine = |seed: u64| -> hand::Affine {
        let numbers = numbers(12, seed);
        std::array::from_fn(|i| {
            std::array::from_fn(|j| f64::from(i == j) + 0.3 * numbers[4 * i + j])
        })
    };
    let bones: Vec<hand::Bone> = (0..22)
        .map(|bone: u64| hand::Bone {
            parent: match bone {
                0 => None,
                // Fingers begin at bones 1, 5, 9, 13 and 17; they and the last bone hang on the wrist.
                _ if bone % 4 == 1 => Some(0),
                _ => Some(bone as usize - 1),
            },
            base_relative: affine(2 * bone + 1),
            inverse_base_absolute: affine(2 * bone + 2),
        })
        .collect();
    let count = 9;
    hand::Model {
        positions: numbers(3 * count, 50)
            .chunks(3)
            .map(|p| [p[0], p[1], p[2]])
            .collect(),
        weights: numbers(22 * count, 51),
        triangles: vec![[0, 1, 2], [3, 4, 5], [8, 7, 6]],
        bones,
    }
}

#[test]
fn hands() {
    for complicated in [false, true] {
        let instance = hand::Instance {
            model: hand_model(),
            correspondences: vec![2, 0, 1, 1],
            points: numbers(12, 60)
                .chunks(3)
                .map(|p| [p[0], p[1], p[2]])
                .collect(),
            pose: numbers(26, 61),
            places: complicated.then(|| numbers(8, 62)),
        };
        let (found, by_hand) = (instance.jacobian(), instance.jacobian_by_hand());
        assert!(largest_error(&found, &by_hand) <= TOLERANCE);
        // The columns of the pose are the last 26.
        let errors = instance.objective();
        let direction = numbers(26, 63);
        let columns = &found[found.len() - 26 * errors.len()..];
        for row in 0..errors.len() {
            let along: f64 = (0..26)
                .map(|i| direction[i] * columns[i * errors.len() + row])
                .sum();
            let expected = slope(|by| {
                let there = hand::Instance {
                    pose: moved(&instance.pose, &direction, by),
                    ..instance.clone()
                };
                there.objective()[row]
            });
            assert_near("hand", along, expected);
        }
    }
}
