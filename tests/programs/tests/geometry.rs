//! Geometry: hulls, clipping, distance fields, searches in space, sampling of images.

use ferrozyme::{autodiff_forward, autodiff_reverse};
use ferrozyme_programs::Field;

type Point = (f64, f64);

fn points(x: &[f64]) -> Vec<Point> {
    x.chunks_exact(2).map(|c| (c[0], c[1])).collect()
}

fn cross(o: Point, a: Point, b: Point) -> f64 {
    (a.0 - o.0) * (b.1 - o.1) - (a.1 - o.1) * (b.0 - o.0)
}

fn area(polygon: &[Point]) -> f64 {
    let mut twice = 0.0;
    for i in 0..polygon.len() {
        let (a, b) = (polygon[i], polygon[(i + 1) % polygon.len()]);
        twice += a.0 * b.1 - b.0 * a.1;
    }
    0.5 * twice
}

#[autodiff_reverse(dhull, Duplicated, Active)]
#[autodiff_forward(bhull, Dual, Dual)]
fn hull_area(x: &[f64]) -> f64 {
    let mut all = points(x);
    all.sort_by(|a, b| {
        a.0.partial_cmp(&b.0)
            .unwrap()
            .then(a.1.partial_cmp(&b.1).unwrap())
    });
    let half = |points: &mut dyn Iterator<Item = Point>| {
        let mut chain: Vec<Point> = Vec::new();
        for p in points {
            while chain.len() >= 2
                && cross(chain[chain.len() - 2], chain[chain.len() - 1], p) <= 0.0
            {
                chain.pop();
            }
            chain.push(p);
        }
        chain.pop();
        chain
    };
    let mut hull = half(&mut all.iter().copied());
    hull.extend(half(&mut all.iter().rev().copied()));
    area(&hull)
}

#[test]
fn convex_hull() {
    Field::new("convex hull", hull_area)
        .reverse(dhull)
        .forward(bhull)
        .check(&[0.0, 0.1, 2.0, -0.3, 1.0, 0.5, 2.5, 1.7, 0.2, 2.1, 1.2, 1.1]);
}

#[autodiff_reverse(dclip, Duplicated, Active)]
#[autodiff_forward(bclip, Dual, Dual)]
fn clipped_area(x: &[f64]) -> f64 {
    // The triangle of the first three points, cut off at each side of the one of the last three (Sutherland and Hodgman).
    let mut subject = points(&x[..6]);
    let clip = points(&x[6..]);
    for i in 0..clip.len() {
        let (a, b) = (clip[i], clip[(i + 1) % clip.len()]);
        let input = std::mem::take(&mut subject);
        for j in 0..input.len() {
            let (p, q) = (input[j], input[(j + 1) % input.len()]);
            let (inside_p, inside_q) = (cross(a, b, p), cross(a, b, q));
            if inside_p >= 0.0 {
                subject.push(p);
            }
            if (inside_p >= 0.0) != (inside_q >= 0.0) {
                let t = inside_p / (inside_p - inside_q);
                subject.push((p.0 + t * (q.0 - p.0), p.1 + t * (q.1 - p.1)));
            }
        }
    }
    area(&subject)
}

#[test]
fn clipping_of_polygons() {
    Field::new("clipping", clipped_area)
        .reverse(dclip)
        .forward(bclip)
        .check(&[0.0, 0.0, 3.0, 0.2, 1.0, 2.5, 0.5, -0.5, 2.5, 1.0, 0.3, 2.0]);
}

#[autodiff_reverse(dmarch, Duplicated, Active)]
#[autodiff_forward(bmarch, Dual, Dual)]
fn ray_march(scene: &[f64]) -> f64 {
    // A sphere and a box, blended; the ray steps as far as the distance allows, at most 60 times.
    let distance = |p: [f64; 3]| -> f64 {
        let sphere = ((p[0] - scene[0]).powi(2) + (p[1] - scene[1]).powi(2) + (p[2] - 3.0).powi(2))
            .sqrt()
            - scene[2];
        let q = [
            p[0].abs() - 0.5,
            (p[1] + 1.0).abs() - scene[3],
            (p[2] - 3.0).abs() - 0.5,
        ];
        let outside = q.iter().map(|q| q.max(0.0).powi(2)).sum::<f64>().sqrt();
        let cube = outside + q[0].max(q[1]).max(q[2]).min(0.0);
        let k = 0.3;
        let h = (0.5 + 0.5 * (cube - sphere) / k).clamp(0.0, 1.0);
        cube * (1.0 - h) + sphere * h - k * h * (1.0 - h)
    };
    let direction = [0.05, -0.1, 0.99];
    let mut t = 0.0;
    for _ in 0..60 {
        let d = distance([direction[0] * t, direction[1] * t, direction[2] * t]);
        if d < 1e-12 || t > 20.0 {
            break;
        }
        t += d;
    }
    t
}

#[test]
fn ray_marching() {
    Field::new("ray marching", ray_march)
        .reverse(dmarch)
        .forward(bmarch)
        .check(&[0.1, 0.2, 0.8, 0.4]);
}

/// A tree of points in the plane, cut by turns along x and y.
struct Tree {
    point: Point,
    below: Option<Box<Tree>>,
    above: Option<Box<Tree>>,
}

impl Tree {
    fn build(points: &mut [Point], depth: usize) -> Option<Box<Tree>> {
        if points.is_empty() {
            return None;
        }
        let key = |p: &Point| if depth % 2 == 0 { p.0 } else { p.1 };
        points.sort_by(|a, b| key(a).total_cmp(&key(b)));
        let middle = points.len() / 2;
        let point = points[middle];
        let (left, right) = points.split_at_mut(middle);
        Some(Box::new(Tree {
            point,
            below: Tree::build(left, depth + 1),
            above: Tree::build(&mut right[1..], depth + 1),
        }))
    }

    fn nearest(&self, to: Point, depth: usize, best: &mut f64) {
        let square = (self.point.0 - to.0).powi(2) + (self.point.1 - to.1).powi(2);
        if square < *best {
            *best = square;
        }
        let gap = if depth % 2 == 0 {
            to.0 - self.point.0
        } else {
            to.1 - self.point.1
        };
        let (near, far) = if gap < 0.0 {
            (&self.below, &self.above)
        } else {
            (&self.above, &self.below)
        };
        if let Some(near) = near {
            near.nearest(to, depth + 1, best);
        }
        if gap * gap < *best {
            if let Some(far) = far {
                far.nearest(to, depth + 1, best);
            }
        }
    }
}

#[autodiff_reverse(dnearest, Duplicated, Active)]
#[autodiff_forward(bnearest, Dual, Dual)]
fn chamfer(x: &[f64]) -> f64 {
    let (targets, queries) = x.split_at(8);
    let mut targets = points(targets);
    let Some(tree) = Tree::build(&mut targets, 0) else {
        return 0.0;
    };
    let mut sum = 0.0;
    for query in points(queries) {
        let mut best = f64::INFINITY;
        tree.nearest(query, 0, &mut best);
        sum += best;
    }
    sum
}

#[test]
fn nearest_neighbours_in_a_tree() {
    Field::new("nearest neighbours", chamfer)
        .reverse(dnearest)
        .forward(bnearest)
        .check(&[
            0.0, 0.1, 2.0, -0.3, 1.0, 0.5, 2.5, 1.7, 0.3, 0.4, 1.8, 0.2, 2.2, 1.9,
        ]);
}

#[autodiff_reverse(dwarp, Duplicated, Const, Active)]
#[autodiff_forward(bwarp, Dual, Const, Dual)]
fn warped_image(parameters: &[f64], width: usize) -> f64 {
    // The first four numbers are an affine map, the rest is the image, sampled between its pixels.
    let (map, image) = parameters.split_at(4);
    let height = image.len() / width;
    let sample = |x: f64, y: f64| -> f64 {
        let x = x.clamp(0.0, (width - 2) as f64 + 0.999);
        let y = y.clamp(0.0, (height - 2) as f64 + 0.999);
        let (column, row) = (x.floor() as usize, y.floor() as usize);
        let (s, t) = (x.fract(), y - y.floor());
        let at = |row: usize, column: usize| image[row * width + column];
        (1.0 - t) * ((1.0 - s) * at(row, column) + s * at(row, column + 1))
            + t * ((1.0 - s) * at(row + 1, column) + s * at(row + 1, column + 1))
    };
    let mut loss = 0.0;
    for row in 0..height {
        for column in 0..width {
            let (x, y) = (column as f64, row as f64);
            let value = sample(
                map[0] * x + map[1] * y + 0.21,
                map[2] * x + map[3] * y + 0.35,
            );
            loss += (value - image[row * width + column]).powi(2);
        }
    }
    loss
}

#[test]
fn sampling_between_pixels() {
    let mut x = vec![0.94, 0.06, -0.05, 0.91];
    x.extend((0..16).map(|i| (f64::from(i) * 1.3).sin()));
    Field::new("warped image", |x| warped_image(x, 4))
        .reverse(|x, dx, seed| dwarp(x, dx, 4, seed))
        .forward(|x, v| bwarp(x, v, 4))
        .check(&x);
}

#[derive(Clone, Copy)]
struct Quaternion([f64; 4]);

impl std::ops::Mul for Quaternion {
    type Output = Quaternion;
    fn mul(self, Quaternion(b): Quaternion) -> Quaternion {
        let Quaternion(a) = self;
        Quaternion([
            a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
            a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
            a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
            a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
        ])
    }
}

impl Quaternion {
    fn normalised(self) -> Quaternion {
        let norm = self.0.iter().map(|q| q * q).sum::<f64>().sqrt();
        Quaternion(self.0.map(|q| q / norm))
    }

    fn conjugate(self) -> Quaternion {
        let [w, x, y, z] = self.0;
        Quaternion([w, -x, -y, -z])
    }
}

#[autodiff_reverse(drobot, Duplicated, Active)]
#[autodiff_forward(brobot, Dual, Dual)]
fn robot_arm(joints: &[[f64; 4]; 3]) -> f64 {
    let mut pose = Quaternion([1.0, 0.0, 0.0, 0.0]);
    let mut tip = [0.0; 3];
    for (joint, length) in joints.iter().zip([1.0, 0.7, 0.4]) {
        pose = pose * Quaternion(*joint).normalised();
        let moved = pose * Quaternion([0.0, length, 0.0, 0.0]) * pose.conjugate();
        for (tip, step) in tip.iter_mut().zip(&moved.0[1..]) {
            *tip += step;
        }
    }
    let goal = [0.5, 1.0, 0.3];
    tip.iter().zip(goal).map(|(t, g)| (t - g).powi(2)).sum()
}

#[test]
fn robot_with_quaternions() {
    let joints = |x: &[f64]| -> [[f64; 4]; 3] {
        std::array::from_fn(|i| std::array::from_fn(|j| x[4 * i + j]))
    };
    Field::new("robot arm", |x| robot_arm(&joints(x)))
        .reverse(|x, dx, seed| {
            let mut shadow = joints(dx);
            let value = drobot(&joints(x), &mut shadow, seed);
            dx.copy_from_slice(shadow.as_flattened());
            value
        })
        .forward(|x, v| brobot(&joints(x), &joints(v)))
        .check(&[
            0.9, 0.1, -0.2, 0.3, 0.8, 0.3, 0.1, -0.4, 0.7, -0.2, 0.5, 0.2,
        ]);
}
