//! HAND: how far the points of a surface are from where a hand's model puts them; the Jacobian is dense.

use crate::text::{BadFile, Words};
use ferrozyme::autodiff_forward;
use std::path::Path;

/// The wrist, five fingers of four bones each, and the palm.
const BONES: usize = 22;

/// Pose: rotation (3), translation (3), four angles for each of five fingers.
pub const PARAMETERS: usize = 26;

/// An affine map: rows of a 3×4 matrix.
pub type Affine = [[f64; 4]; 3];

/// A bone.
#[derive(Clone, Debug)]
pub struct Bone {
    /// The bone that it hangs on; the first has none.
    pub parent: Option<usize>,
    pub base_relative: Affine,
    pub inverse_base_absolute: Affine,
}

/// The hand.
#[derive(Clone, Debug)]
pub struct Model {
    pub bones: Vec<Bone>,
    pub positions: Vec<[f64; 3]>,
    /// For each bone how much each vertex follows it.
    pub weights: Vec<f64>,
    pub triangles: Vec<[usize; 3]>,
}

/// One problem.
#[derive(Clone, Debug)]
pub struct Instance {
    pub model: Model,
    /// For each point the vertex that it belongs to, or the triangle.
    pub correspondences: Vec<usize>,
    pub points: Vec<[f64; 3]>,
    pub pose: Vec<f64>,
    /// Where in its triangle each point is, if points belong to triangles.
    pub places: Option<Vec<f64>>,
}

impl Model {
    /// Reads a model from its folder; vertices may come from another.
    ///
    /// # Errors
    /// If a file is bad.
    pub fn read(folder: &Path, vertices: &Path) -> Result<Model, BadFile> {
        let bones = read_bones(&folder.join("bones.txt"))?;
        let mut positions = Vec::new();
        let mut rows: Vec<Vec<(usize, f64)>> = Vec::new();
        let mut words = Words::open_fields(vertices)?;
        while !words.is_at_end() {
            let numbers = words.floats(8, "a vertex")?;
            positions.push([numbers[0], numbers[1], numbers[2]]);
            let count: usize = words.number("a number of bones")?;
            let mut row = Vec::new();
            for _ in 0..count {
                let bone: usize = words.number("a bone")?;
                if bone >= bones.len() {
                    return Err(words.error(format!("there is no bone {bone}")));
                }
                row.push((bone, words.number("a weight")?));
            }
            rows.push(row);
        }
        let mut weights = vec![0.0; bones.len() * positions.len()];
        for (vertex, row) in rows.iter().enumerate() {
            for &(bone, weight) in row {
                weights[bone * positions.len() + vertex] = weight;
            }
        }
        let mut triangles = Vec::new();
        let mut words = Words::open_fields(&folder.join("triangles.txt"))?;
        while !words.is_at_end() {
            let mut triangle = [0; 3];
            for corner in &mut triangle {
                *corner = words.number("a vertex")?;
                if *corner >= positions.len() {
                    return Err(words.error(format!("there is no vertex {corner}")));
                }
            }
            triangles.push(triangle);
        }
        Ok(Model {
            bones,
            positions,
            weights,
            triangles,
        })
    }
}

fn read_bones(path: &Path) -> Result<Vec<Bone>, BadFile> {
    let mut bones = Vec::new();
    let mut words = Words::open_fields(path)?;
    while !words.is_at_end() {
        words.word("a bone's name")?;
        let parent: i64 = words.number("a parent")?;
        let parent = usize::try_from(parent).ok();
        if parent.is_some_and(|parent| parent >= bones.len()) {
            return Err(words.error("a bone hangs on one that comes later".to_owned()));
        }
        let mut affine = || -> Result<Affine, BadFile> {
            let numbers = words.floats(16, "an entry of a matrix")?;
            Ok(std::array::from_fn(|i| {
                std::array::from_fn(|j| numbers[4 * i + j])
            }))
        };
        bones.push(Bone {
            parent,
            base_relative: affine()?,
            inverse_base_absolute: affine()?,
        });
    }
    if bones.len() != BONES {
        let reason = format!("there are {} bones instead of {BONES}", bones.len());
        return Err(BadFile::new(path, reason));
    }
    Ok(bones)
}

impl Instance {
    /// Reads a problem.
    ///
    /// # Errors
    /// If the file is bad, or does not fit the model.
    pub fn read(path: &Path, model: Model, complicated: bool) -> Result<Instance, BadFile> {
        let mut words = Words::open(path)?;
        let count: usize = words.number("a number of points")?;
        let parameters: usize = words.number("a number of parameters")?;
        if parameters != PARAMETERS {
            return Err(words.error(format!("there should be {PARAMETERS} parameters")));
        }
        let last = match complicated {
            true => model.triangles.len(),
            false => model.positions.len(),
        };
        let (mut correspondences, mut points) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let to: usize = words.number("a correspondence")?;
            if to >= last {
                return Err(words.error(format!("{to} is not in the model")));
            }
            correspondences.push(to);
            let point = words.floats(3, "a coordinate")?;
            points.push([point[0], point[1], point[2]]);
        }
        let places = match complicated {
            true => Some(words.floats(2 * count, "a place in a triangle")?),
            false => None,
        };
        let pose = words.floats(PARAMETERS, "a parameter")?;
        Ok(Instance {
            model,
            correspondences,
            points,
            pose,
            places,
        })
    }

    /// The errors, three for each point.
    pub fn objective(&self) -> Vec<f64> {
        let mut errors = vec![0.0; 3 * self.points.len()];
        match &self.places {
            None => simple(&self.pose, self, &mut errors),
            Some(places) => complicated(places, &self.pose, self, &mut errors),
        }
        errors
    }

    /// The Jacobian by Ferrozyme, column by column.
    pub fn jacobian(&self) -> Vec<f64> {
        let rows = 3 * self.points.len();
        let mut errors = vec![0.0; rows];
        match &self.places {
            None => {
                let mut jacobian = vec![0.0; 26 * rows];
                let directions = unit_directions::<26>(PARAMETERS);
                d_simple(&self.pose, &directions, self, &mut errors, &mut jacobian);
                jacobian
            }
            Some(places) => {
                let mut jacobian = vec![0.0; 28 * rows];
                let (by_places, by_pose) = jacobian.split_at_mut(2 * rows);
                // All first coordinates at once, then all second ones: each error depends on one place only.
                let mut directions = vec![0.0; 2 * places.len()];
                for pair in 0..places.len() / 2 {
                    directions[2 * pair] = 1.0;
                    directions[places.len() + 2 * pair + 1] = 1.0;
                }
                d_places(
                    places,
                    &directions,
                    &self.pose,
                    self,
                    &mut errors,
                    by_places,
                );
                let directions = unit_directions::<26>(PARAMETERS);
                d_pose(places, &self.pose, &directions, self, &mut errors, by_pose);
                jacobian
            }
        }
    }
}

impl Instance {
    /// The Jacobian as one would derive it, column by column: what moves is known for each parameter. A finger's angle moves the bones from its joint
    /// on, a rotation or translation of the whole moves everything.
    pub fn jacobian_by_hand(&self) -> Vec<f64> {
        let rows = 3 * self.points.len();
        let first = if self.places.is_some() { 2 } else { 0 };
        let mut jacobian = vec![0.0; (first + PARAMETERS) * rows];
        let posed = Posed::of(&self.pose, &self.model);
        if let Some(places) = &self.places {
            let vertices = posed.placed_vertices();
            for (i, &triangle) in self.correspondences.iter().enumerate() {
                let [a, b, c] = self.model.triangles[triangle];
                for axis in 0..3 {
                    jacobian[3 * i + axis] = vertices[c][axis] - vertices[a][axis];
                    jacobian[rows + 3 * i + axis] = vertices[c][axis] - vertices[b][axis];
                }
            }
            debug_assert_eq!(places.len(), 2 * self.points.len());
        }
        let mut moved = vec![[0.0; 3]; self.model.positions.len()];
        for (parameter, column) in jacobian[first * rows..].chunks_exact_mut(rows).enumerate() {
            posed.move_vertices(parameter, &mut moved);
            self.write_column(&moved, column);
        }
        jacobian
    }

    /// Subtracts the contribution of each error's vertex or triangle.
    fn write_column(&self, moved: &[[f64; 3]], column: &mut [f64]) {
        for (i, (&to, error)) in self
            .correspondences
            .iter()
            .zip(column.chunks_exact_mut(3))
            .enumerate()
        {
            match &self.places {
                None => {
                    for axis in 0..3 {
                        error[axis] = -moved[to][axis];
                    }
                }
                Some(places) => {
                    let [a, b, c] = self.model.triangles[to];
                    let (u, v) = (places[2 * i], places[2 * i + 1]);
                    for axis in 0..3 {
                        error[axis] = -(u * moved[a][axis]
                            + v * moved[b][axis]
                            + (1.0 - u - v) * moved[c][axis]);
                    }
                }
            }
        }
    }
}

/// A model in a pose, for the derivatives by hand.
struct Posed<'a> {
    pose: &'a [f64],
    model: &'a Model,
    absolute: Vec<Affine>,
    turn: [[f64; 3]; 3],
    /// The vertices before the whole is turned.
    vertices: Vec<[f64; 3]>,
}

impl<'a> Posed<'a> {
    fn of(pose: &'a [f64], model: &'a Model) -> Posed<'a> {
        let mut absolute: Vec<Affine> = Vec::with_capacity(model.bones.len());
        for (index, bone) in model.bones.iter().enumerate() {
            let relative = relative_of(index, bone, pose);
            absolute.push(match bone.parent {
                None => relative,
                Some(parent) => compose(&absolute[parent], &relative),
            });
        }
        let count = model.positions.len();
        let mut vertices = vec![[0.0; 3]; count];
        for (index, bone) in model.bones.iter().enumerate() {
            let transform = compose(&absolute[index], &bone.inverse_base_absolute);
            add_moved(model, index, &mut vertices, |position| {
                apply(&transform, position)
            });
        }
        Posed {
            pose,
            model,
            absolute,
            turn: rotation_of(&[pose[0], pose[1], pose[2]]),
            vertices,
        }
    }

    fn placed_vertices(&self) -> Vec<[f64; 3]> {
        let place = |vertex: &[f64; 3]| {
            let turned = turned_by(&self.turn, vertex);
            std::array::from_fn(|axis| turned[axis] + self.pose[3 + axis])
        };
        self.vertices.iter().map(place).collect()
    }

    /// How the vertices move with a parameter.
    fn move_vertices(&self, parameter: usize, moved: &mut [[f64; 3]]) {
        match parameter {
            0..3 => {
                let turn =
                    rotation_derivative(&[self.pose[0], self.pose[1], self.pose[2]], parameter);
                for (moved, vertex) in moved.iter_mut().zip(&self.vertices) {
                    *moved = turned_by(&turn, vertex);
                }
            }
            3..6 => {
                let mut along = [0.0; 3];
                along[parameter - 3] = 1.0;
                moved.fill(along);
            }
            _ => self.bend(parameter, moved),
        }
    }

    /// Moves with a finger's angle: the bones from its joint to the tip.
    fn bend(&self, parameter: usize, moved: &mut [[f64; 3]]) {
        let finger = (parameter - 6) / 4;
        let first = 4 * finger + [2, 2, 3, 4][(parameter - 6) % 4];
        let about_z = (parameter - 6) % 4 == 1;
        moved.fill([0.0; 3]);
        let mut above: Option<Affine> = None;
        for index in first..=4 * finger + 4 {
            let bone = &self.model.bones[index];
            let d_absolute = match above {
                // What hangs on a bone that moves moves with it.
                Some(parent) => compose(&parent, &relative_of(index, bone, self.pose)),
                None => {
                    let turn = joint_derivative(index, self.pose, about_z);
                    let parent = &self.absolute[bone.parent.expect("fingers hang on the wrist")];
                    let mut relative = compose_rotation(&bone.base_relative, &turn);
                    for row in &mut relative {
                        row[3] = 0.0;
                    }
                    compose_derivative_of_second(parent, &relative)
                }
            };
            let transform = compose(&d_absolute, &bone.inverse_base_absolute);
            add_moved(self.model, index, moved, |position| {
                apply(&transform, position)
            });
            above = Some(d_absolute);
        }
        for vertex in moved {
            *vertex = turned_by(&self.turn, vertex);
        }
    }
}

/// Adds the contribution of a bone to each vertex, by the vertex's weight.
fn add_moved(
    model: &Model,
    bone: usize,
    vertices: &mut [[f64; 3]],
    moved: impl Fn(&[f64; 3]) -> [f64; 3],
) {
    let count = model.positions.len();
    let weights = &model.weights[bone * count..(bone + 1) * count];
    for ((vertex, position), &weight) in vertices.iter_mut().zip(&model.positions).zip(weights) {
        if weight != 0.0 {
            let moved = moved(position);
            for axis in 0..3 {
                vertex[axis] += weight * moved[axis];
            }
        }
    }
}

fn relative_of(index: usize, bone: &Bone, pose: &[f64]) -> Affine {
    match joint_of(index) {
        None => bone.base_relative,
        Some((x, z)) => {
            let about_z = z.map_or(0.0, |z| pose[z]);
            compose_rotation(&bone.base_relative, &rotation_about(pose[x], about_z))
        }
    }
}

/// The derivative of a joint's rotation by its angle about x, or about z.
fn joint_derivative(index: usize, pose: &[f64], about_z: bool) -> [[f64; 3]; 3] {
    let (x, z) = joint_of(index).expect("only joints have angles");
    let (sx, cx) = pose[x].sin_cos();
    let (sz, cz) = z.map_or(0.0, |z| pose[z]).sin_cos();
    match about_z {
        false => [
            [0.0, sz * sx, sz * cx],
            [0.0, -cz * sx, -cz * cx],
            [0.0, cx, -sx],
        ],
        true => [
            [-sz, -cz * cx, cz * sx],
            [cz, -sz * cx, sz * sx],
            [0.0, 0.0, 0.0],
        ],
    }
}

/// The derivative of [`rotation_of`] by one coordinate of the axis.
fn rotation_derivative(axis: &[f64; 3], by: usize) -> [[f64; 3]; 3] {
    let square = axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2];
    let angle = square.sqrt();
    if angle < 1e-4 {
        return [[0.0; 3]; 3];
    }
    let unit = axis.map(|a| a / angle);
    let (s, c) = angle.sin_cos();
    let d_angle = unit[by];
    let d_unit: [f64; 3] = std::array::from_fn(|i| {
        let same = if i == by { 1.0 } else { 0.0 };
        (same - unit[i] * unit[by]) / angle
    });
    let across = |v: &[f64; 3]| [[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]];
    let (turned, d_turned) = (across(&unit), across(&d_unit));
    std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            let product = unit[i] * unit[j];
            let d_product = d_unit[i] * unit[j] + unit[i] * d_unit[j];
            let diagonal = if i == j { -s * d_angle } else { 0.0 };
            diagonal
                + d_product * (1.0 - c)
                + product * s * d_angle
                + d_turned[i][j] * s
                + turned[i][j] * c * d_angle
        })
    })
}

/// The derivative of [`compose`] where the second map moves: the first one's translation stays.
fn compose_derivative_of_second(a: &Affine, b: &Affine) -> Affine {
    let mut product = compose(a, b);
    for (row, first) in product.iter_mut().zip(a) {
        row[3] -= first[3];
    }
    product
}

fn turned_by(turn: &[[f64; 3]; 3], x: &[f64; 3]) -> [f64; 3] {
    std::array::from_fn(|i| turn[i][0] * x[0] + turn[i][1] * x[1] + turn[i][2] * x[2])
}

/// `WIDTH` directions of this many numbers in a row; each is a unit vector.
fn unit_directions<const WIDTH: usize>(count: usize) -> Vec<f64> {
    let mut directions = vec![0.0; WIDTH * count];
    for i in 0..count {
        directions[i * count + i] = 1.0;
    }
    directions
}

#[autodiff_forward(d_simple, 26, Dualv, Const, Dualv)]
fn simple(pose: &[f64], instance: &Instance, errors: &mut [f64]) {
    let vertices = place_vertices(pose, &instance.model);
    for (i, point) in instance.points.iter().enumerate() {
        let vertex = vertices[instance.correspondences[i]];
        for axis in 0..3 {
            errors[3 * i + axis] = point[axis] - vertex[axis];
        }
    }
}

#[autodiff_forward(d_places, 2, Dualv, Const, Const, Dualv)]
#[autodiff_forward(d_pose, 26, Const, Dualv, Const, Dualv)]
fn complicated(places: &[f64], pose: &[f64], instance: &Instance, errors: &mut [f64]) {
    let vertices = place_vertices(pose, &instance.model);
    for (i, point) in instance.points.iter().enumerate() {
        let [a, b, c] = instance.model.triangles[instance.correspondences[i]];
        let (u, v) = (places[2 * i], places[2 * i + 1]);
        for axis in 0..3 {
            let on_triangle =
                u * vertices[a][axis] + v * vertices[b][axis] + (1.0 - u - v) * vertices[c][axis];
            errors[3 * i + axis] = point[axis] - on_triangle;
        }
    }
}

/// Where the pose puts the vertices.
fn place_vertices(pose: &[f64], model: &Model) -> Vec<[f64; 3]> {
    let transforms = bone_transforms(pose, model);
    let turn = rotation_of(&[pose[0], pose[1], pose[2]]);
    let count = model.positions.len();
    let mut vertices = vec![[0.0; 3]; count];
    for (transform, weights) in transforms.iter().zip(model.weights.chunks_exact(count)) {
        for ((vertex, position), weight) in vertices.iter_mut().zip(&model.positions).zip(weights) {
            let moved = apply(transform, position);
            for axis in 0..3 {
                vertex[axis] += weight * moved[axis];
            }
        }
    }
    for vertex in &mut vertices {
        let turned: [f64; 3] = std::array::from_fn(|i| {
            turn[i][0] * vertex[0] + turn[i][1] * vertex[1] + turn[i][2] * vertex[2] + pose[3 + i]
        });
        *vertex = turned;
    }
    vertices
}

/// What becomes of each bone relative to how it rests.
fn bone_transforms(pose: &[f64], model: &Model) -> Vec<Affine> {
    let mut absolute: Vec<Affine> = Vec::with_capacity(model.bones.len());
    let mut transforms = Vec::with_capacity(model.bones.len());
    for (index, bone) in model.bones.iter().enumerate() {
        let relative = relative_of(index, bone, pose);
        let placed = match bone.parent {
            None => relative,
            Some(parent) => compose(&absolute[parent], &relative),
        };
        transforms.push(compose(&placed, &bone.inverse_base_absolute));
        absolute.push(placed);
    }
    transforms
}

/// The parameters by which a bone turns about x, and about z: the second, third and fourth bone of each finger turn.
fn joint_of(bone: usize) -> Option<(usize, Option<usize>)> {
    let (finger, joint) = (bone.checked_sub(1)? / 4, (bone - 1) % 4);
    let first = 6 + 4 * finger;
    match joint {
        _ if finger >= 5 => None,
        1 => Some((first, Some(first + 1))),
        2 => Some((first + 2, None)),
        3 => Some((first + 3, None)),
        _ => None,
    }
}

/// About x, then about z.
fn rotation_about(x: f64, z: f64) -> [[f64; 3]; 3] {
    let (sx, cx) = x.sin_cos();
    let (sz, cz) = z.sin_cos();
    [
        [cz, -sz * cx, sz * sx],
        [sz, cz * cx, -cz * sx],
        [0.0, sx, cx],
    ]
}

/// The rotation about an axis, by as much as the axis is long.
fn rotation_of(axis: &[f64; 3]) -> [[f64; 3]; 3] {
    let square = axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2];
    let angle = square.sqrt();
    if angle < 1e-4 {
        return [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    }
    let [x, y, z] = axis.map(|a| a / angle);
    let (s, c) = angle.sin_cos();
    let rest = 1.0 - c;
    [
        [x * x * rest + c, x * y * rest - z * s, x * z * rest + y * s],
        [x * y * rest + z * s, y * y * rest + c, y * z * rest - x * s],
        [x * z * rest - y * s, z * y * rest + x * s, z * z * rest + c],
    ]
}

fn compose_rotation(a: &Affine, b: &[[f64; 3]; 3]) -> Affine {
    std::array::from_fn(|i| {
        std::array::from_fn(|j| match j {
            3 => a[i][3],
            _ => a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j],
        })
    })
}

fn compose(a: &Affine, b: &Affine) -> Affine {
    std::array::from_fn(|i| {
        std::array::from_fn(|j| {
            let product = a[i][0] * b[0][j] + a[i][1] * b[1][j] + a[i][2] * b[2][j];
            if j == 3 { product + a[i][3] } else { product }
        })
    })
}

fn apply(a: &Affine, x: &[f64; 3]) -> [f64; 3] {
    std::array::from_fn(|i| a[i][0] * x[0] + a[i][1] * x[1] + a[i][2] * x[2] + a[i][3])
}
