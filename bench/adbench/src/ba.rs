//! BA: bundle adjustment. Where cameras see points, and how wrong that is; the Jacobian is sparse.

use crate::text::{BadFile, Words};
use ferrozyme::SparseMatrix;
use std::path::Path;

/// Rotation (3), centre (3), focal length, principal point (2), radial distortion (2).
pub type Camera = [f64; 11];

/// One problem.
#[derive(Clone, Debug)]
pub struct Instance {
    pub cameras: Vec<Camera>,
    pub points: Vec<[f64; 3]>,
    pub weights: Vec<f64>,
    /// Which camera saw which point.
    pub observations: Vec<(usize, usize)>,
    pub features: Vec<[f64; 2]>,
}

impl Instance {
    /// Reads a problem: the file has one camera, point, weight and feature, which are replicated.
    ///
    /// # Errors
    /// If the file is bad.
    pub fn read(path: &Path) -> Result<Instance, BadFile> {
        let mut words = Words::open(path)?;
        let cameras: usize = words.number("a number of cameras")?;
        let points: usize = words.number("a number of points")?;
        let count: usize = words.number("a number of observations")?;
        if cameras == 0 || points == 0 {
            return Err(words.error("no cameras or no points".to_owned()));
        }
        let mut camera = [0.0; 11];
        camera.copy_from_slice(&words.floats(11, "a camera's parameter")?);
        let mut point = [0.0; 3];
        point.copy_from_slice(&words.floats(3, "a coordinate")?);
        let weight = words.number("a weight")?;
        let mut feature = [0.0; 2];
        feature.copy_from_slice(&words.floats(2, "a feature's coordinate")?);
        Ok(Instance {
            cameras: vec![camera; cameras],
            points: vec![point; points],
            weights: vec![weight; count],
            observations: (0..count).map(|i| (i % cameras, i % points)).collect(),
            features: vec![feature; count],
        })
    }

    /// The errors of the projections, two for each observation, then those of the weights.
    pub fn objective(&self) -> Vec<f64> {
        let mut errors = Vec::new();
        self.write_errors(&mut errors);
        errors
    }

    /// The same, overwriting earlier results.
    pub fn write_errors(&self, errors: &mut Vec<f64>) {
        let count = self.observations.len();
        errors.resize(3 * count, 0.0);
        let (projected, weighted) = errors.split_at_mut(2 * count);
        for (i, &(camera, point)) in self.observations.iter().enumerate() {
            let error = projection_error(
                &self.cameras[camera],
                &self.points[point],
                self.weights[i],
                &self.features[i],
            );
            projected[2 * i..2 * i + 2].copy_from_slice(&error);
            weighted[i] = weight_error(self.weights[i]);
        }
    }

    /// The Jacobian by Ferrozyme: each observation depends on a camera, a point and a weight.
    pub fn jacobian(&self) -> SparseMatrix<f64> {
        let mut matrix = self.empty_matrix();
        self.write_jacobian(&mut matrix);
        matrix
    }

    /// The same, overwriting a matrix.
    pub fn write_jacobian(&self, matrix: &mut SparseMatrix<f64>) {
        matrix.clear();
        let count = self.observations.len();
        let x = self.parameters();
        let [first_point, first_weight] = self.firsts();
        matrix.push_blocks(
            &x,
            0..count,
            |&i| {
                let (camera, point) = self.observations[i];
                let mut places = [first_weight + i; 15];
                for j in 0..11 {
                    places[j] = 11 * camera + j;
                }
                for j in 0..3 {
                    places[11 + j] = first_point + 3 * point + j;
                }
                places
            },
            |&i, x: &[f64; 15]| {
                let camera = std::array::from_fn(|j| x[j]);
                projection_error(&camera, &[x[11], x[12], x[13]], x[14], &self.features[i])
            },
        );
        matrix.push_blocks(
            &x,
            0..count,
            |i| [first_weight + i],
            |_, [weight]: &[f64; 1]| [weight_error(*weight)],
        );
    }

    /// A matrix with room for the Jacobian.
    fn empty_matrix(&self) -> SparseMatrix<f64> {
        let [_, first_weight] = self.firsts();
        let count = self.observations.len();
        SparseMatrix::with_capacity(first_weight + count, 3 * count, 31 * count)
    }

    /// Cameras, points and weights in the order of the Jacobian's columns.
    fn parameters(&self) -> Vec<f64> {
        let [_, first_weight] = self.firsts();
        let mut x = Vec::with_capacity(first_weight + self.weights.len());
        x.extend(self.cameras.as_flattened());
        x.extend(self.points.as_flattened());
        x.extend(&self.weights);
        x
    }

    /// The columns of the first point and of the first weight.
    fn firsts(&self) -> [usize; 2] {
        let first_point = 11 * self.cameras.len();
        [first_point, first_point + 3 * self.points.len()]
    }

    /// The Jacobian by hand.
    pub fn jacobian_by_hand(&self) -> SparseMatrix<f64> {
        let mut matrix = self.empty_matrix();
        self.write_jacobian_by_hand(&mut matrix);
        matrix
    }

    /// The same, overwriting a matrix.
    pub fn write_jacobian_by_hand(&self, matrix: &mut SparseMatrix<f64>) {
        matrix.clear();
        let [first_point, first_weight] = self.firsts();
        for (i, &(camera, point)) in self.observations.iter().enumerate() {
            let both = rows_by_hand(
                &self.cameras[camera],
                &self.points[point],
                self.weights[i],
                &self.features[i],
            );
            for row in both {
                let cameras = (11 * camera..).zip(row.camera);
                let points = (first_point + 3 * point..).zip(row.point);
                let weight = [(first_weight + i, row.weight)];
                matrix.push_row(cameras.chain(points).chain(weight));
            }
        }
        for (i, &weight) in self.weights.iter().enumerate() {
            matrix.push_row([(first_weight + i, -2.0 * weight)]);
        }
    }
}

/// The derivatives of one error.
#[derive(Clone, Copy, Default)]
struct Row {
    camera: Camera,
    point: [f64; 3],
    weight: f64,
}

fn projection_error(
    camera: &Camera,
    point: &[f64; 3],
    weight: f64,
    feature: &[f64; 2],
) -> [f64; 2] {
    let [x, y] = project(camera, point);
    [weight * (x - feature[0]), weight * (y - feature[1])]
}

fn weight_error(weight: f64) -> f64 {
    1.0 - weight * weight
}

fn project(camera: &Camera, point: &[f64; 3]) -> [f64; 2] {
    let [r0, r1, r2, c0, c1, c2, focal, u0, v0, k1, k2] = *camera;
    let away = [point[0] - c0, point[1] - c1, point[2] - c2];
    let seen = rotate(&[r0, r1, r2], &away);
    let (x, y) = (seen[0] / seen[2], seen[1] / seen[2]);
    let square = x * x + y * y;
    let distortion = 1.0 + k1 * square + k2 * square * square;
    [focal * x * distortion + u0, focal * y * distortion + v0]
}

/// Rotates a vector about an axis, by the length of the axis.
fn rotate(axis: &[f64; 3], x: &[f64; 3]) -> [f64; 3] {
    let square = dot(axis, axis);
    if square == 0.0 {
        let across = cross(axis, x);
        return [x[0] + across[0], x[1] + across[1], x[2] + across[2]];
    }
    let angle = square.sqrt();
    let (sine, cosine) = angle.sin_cos();
    let unit = axis.map(|a| a / angle);
    let across = cross(&unit, x);
    let along = dot(&unit, x) * (1.0 - cosine);
    std::array::from_fn(|i| x[i] * cosine + across[i] * sine + unit[i] * along)
}

fn dot(a: &[f64; 3], b: &[f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: &[f64; 3], b: &[f64; 3]) -> [f64; 3] {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

/// Both rows as one would derive them: forwards through the rotation, whose Jacobian is shared.
fn rows_by_hand(camera: &Camera, point: &[f64; 3], weight: f64, feature: &[f64; 2]) -> [Row; 2] {
    let [r0, r1, r2, c0, c1, c2, focal, u0, v0, k1, k2] = *camera;
    let axis = [r0, r1, r2];
    let away = [point[0] - c0, point[1] - c1, point[2] - c2];
    let seen = rotate(&axis, &away);
    let (by_axis, by_away) = rotation_derivatives(&axis, &away);

    let inverse = 1.0 / seen[2];
    let flat = [seen[0] * inverse, seen[1] * inverse];
    let square = dot(&[flat[0], flat[1], 0.0], &[flat[0], flat[1], 0.0]);
    let distortion = 1.0 + square * (k1 + k2 * square);
    let slope = 2.0 * (k1 + 2.0 * k2 * square);
    let centre = [u0, v0];
    std::array::from_fn(|i| {
        let other = 1 - i;
        // The distorted coordinate by the two flat ones.
        let mut by_flat = [0.0; 2];
        by_flat[i] = focal * (distortion + slope * flat[i] * flat[i]);
        by_flat[other] = focal * slope * flat[i] * flat[other];
        let by_seen = [
            by_flat[0] * inverse,
            by_flat[1] * inverse,
            -(by_flat[0] * flat[0] + by_flat[1] * flat[1]) * inverse,
        ];
        let through = |matrix: &[[f64; 3]; 3]| -> [f64; 3] {
            std::array::from_fn(|j| {
                weight
                    * (by_seen[0] * matrix[0][j]
                        + by_seen[1] * matrix[1][j]
                        + by_seen[2] * matrix[2][j])
            })
        };
        let (axis, away) = (through(&by_axis), through(&by_away));
        let mut row = Row {
            point: away,
            weight: focal * flat[i] * distortion + centre[i] - feature[i],
            ..Row::default()
        };
        row.camera[..3].copy_from_slice(&axis);
        row.camera[3..6].copy_from_slice(&away.map(|d| -d));
        row.camera[6] = weight * flat[i] * distortion;
        row.camera[7 + i] = weight;
        row.camera[9] = weight * focal * flat[i] * square;
        row.camera[10] = weight * focal * flat[i] * square * square;
        row
    })
}

/// The derivatives of [`rotate`] by the axis and by the vector: rows are coordinates of the result.
fn rotation_derivatives(axis: &[f64; 3], x: &[f64; 3]) -> ([[f64; 3]; 3], [[f64; 3]; 3]) {
    let square = dot(axis, axis);
    if square == 0.0 {
        let [x0, x1, x2] = *x;
        let [a0, a1, a2] = *axis;
        return (
            [[0.0, x2, -x1], [-x2, 0.0, x0], [x1, -x0, 0.0]],
            [[1.0, -a2, a1], [a2, 1.0, -a0], [-a1, a0, 1.0]],
        );
    }
    let angle = square.sqrt();
    let (sine, cosine) = angle.sin_cos();
    let unit = axis.map(|a| a / angle);
    let [u0, u1, u2] = unit;
    let rest = 1.0 - cosine;
    let by_x = [
        [
            cosine + u0 * u0 * rest,
            u0 * u1 * rest - u2 * sine,
            u0 * u2 * rest + u1 * sine,
        ],
        [
            u1 * u0 * rest + u2 * sine,
            cosine + u1 * u1 * rest,
            u1 * u2 * rest - u0 * sine,
        ],
        [
            u2 * u0 * rest - u1 * sine,
            u2 * u1 * rest + u0 * sine,
            cosine + u2 * u2 * rest,
        ],
    ];
    let across = cross(&unit, x);
    let along = dot(&unit, x);
    let by_angle: [f64; 3] =
        std::array::from_fn(|i| -x[i] * sine + across[i] * cosine + unit[i] * along * sine);
    // By the unit vector, before its length is taken out.
    let [x0, x1, x2] = *x;
    let turned = [[0.0, x2, -x1], [-x2, 0.0, x0], [x1, -x0, 0.0]];
    let by_unit: [[f64; 3]; 3] = std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            let same = if i == j { along } else { 0.0 };
            turned[i][j] * sine + (same + unit[i] * x[j]) * rest
        })
    });
    let by_axis = std::array::from_fn(|i| {
        let radial = dot(&by_unit[i], &unit);
        std::array::from_fn(|j| by_angle[i] * unit[j] + (by_unit[i][j] - radial * unit[j]) / angle)
    });
    (by_axis, by_x)
}
