//! ADBench's instances: where they are, and all objectives behind one face.

use crate::text::BadFile;
use crate::{ba, gmm, hand, lstm};
use ferrozyme::SparseMatrix;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const HAND_COMPLICATED: &str = "hand complicated";

/// The data files in a folder, each with the name of its objective. Parts of ADBench's data may be missing.
///
/// # Errors
/// If a folder cannot be read, or there is none.
pub fn find(folder: &Path) -> Result<Vec<(&'static str, PathBuf)>, String> {
    let mut found = Vec::new();
    for (group, places) in [
        ("gmm", &["gmm/1k", "gmm/10k", "gmm/2.5M"][..]),
        ("ba", &["ba"]),
        ("lstm", &["lstm"]),
        ("hand simple", &["hand/simple_small", "hand/simple_big"]),
        (
            HAND_COMPLICATED,
            &["hand/complicated_small", "hand/complicated_big"],
        ),
    ] {
        for place in places {
            let folder = folder.join(place);
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(format!("{}: {error}", folder.display())),
            };
            let mut files: Vec<PathBuf> = entries
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| path.extension().is_some_and(|end| end == "txt"))
                .filter(|path| path.file_stem().is_some_and(|name| name != "test"))
                .collect();
            files.sort();
            found.extend(files.into_iter().map(|file| (group, file)));
        }
    }
    if found.is_empty() {
        return Err(format!(
            "{} has no instances of ADBench (--data names the folder with `gmm`, `ba`, `lstm` and `hand`)",
            folder.display()
        ));
    }
    Ok(found)
}

/// An instance of any objective.
pub enum Problem {
    Gmm(gmm::Instance),
    Ba(ba::Instance),
    Lstm(lstm::Instance),
    Hand(hand::Instance),
}

/// A gradient, a dense Jacobian or a sparse one.
pub enum Derivative {
    Dense(Vec<f64>),
    Sparse(SparseMatrix<f64>),
}

impl Default for Derivative {
    fn default() -> Derivative {
        Derivative::Dense(Vec::new())
    }
}

impl Derivative {
    /// All entries.
    pub fn values(&self) -> &[f64] {
        match self {
            Derivative::Dense(values) => values,
            Derivative::Sparse(matrix) => matrix.values(),
        }
    }

    /// Where the entries of a sparse one are: starts of rows, and columns.
    pub fn places(&self) -> Option<(&[usize], &[usize])> {
        match self {
            Derivative::Dense(_) => None,
            Derivative::Sparse(matrix) => Some((matrix.starts(), matrix.places())),
        }
    }
}

impl Problem {
    /// Reads an instance of the objective of this name.
    ///
    /// # Errors
    /// If the file is bad.
    pub fn read(group: &str, path: &Path) -> Result<Problem, BadFile> {
        Ok(match group {
            "gmm" => {
                let replicated = path.to_string_lossy().contains("2.5M");
                Problem::Gmm(gmm::Instance::read(path, replicated)?)
            }
            "ba" => Problem::Ba(ba::Instance::read(path)?),
            "lstm" => Problem::Lstm(lstm::Instance::read(path)?),
            _ => Problem::Hand(read_hand(path, group == HAND_COMPLICATED)?),
        })
    }

    /// The value of the objective, written to memory of earlier calls.
    pub fn objective(&self, result: &mut Vec<f64>) {
        match self {
            Problem::Gmm(instance) => *result = vec![instance.objective()],
            Problem::Ba(instance) => instance.write_errors(result),
            Problem::Lstm(instance) => *result = vec![instance.objective()],
            Problem::Hand(instance) => *result = instance.objective(),
        }
    }

    /// Its derivative by Ferrozyme, into memory that earlier calls have left.
    pub fn derivative(&self, result: &mut Derivative) {
        match self {
            Problem::Gmm(instance) => *result = Derivative::Dense(instance.gradient()),
            Problem::Ba(instance) => match result {
                Derivative::Sparse(matrix) => instance.write_jacobian(matrix),
                Derivative::Dense(_) => *result = Derivative::Sparse(instance.jacobian()),
            },
            Problem::Lstm(instance) => *result = Derivative::Dense(instance.gradient()),
            Problem::Hand(instance) => *result = Derivative::Dense(instance.jacobian()),
        }
    }

    /// The same by hand.
    pub fn derivative_by_hand(&self, result: &mut Derivative) {
        match self {
            Problem::Gmm(instance) => *result = Derivative::Dense(instance.gradient_by_hand()),
            Problem::Ba(instance) => match result {
                Derivative::Sparse(matrix) => instance.write_jacobian_by_hand(matrix),
                Derivative::Dense(_) => *result = Derivative::Sparse(instance.jacobian_by_hand()),
            },
            Problem::Lstm(instance) => *result = Derivative::Dense(instance.gradient_by_hand()),
            Problem::Hand(instance) => *result = Derivative::Dense(instance.jacobian_by_hand()),
        }
    }
}

/// The model's files lie beside the instances; big instances have vertices of their own.
fn read_hand(path: &Path, complicated: bool) -> Result<hand::Instance, BadFile> {
    let folder = path
        .parent()
        .and_then(Path::parent)
        .unwrap_or(Path::new("."));
    let model = folder.join("model");
    let vertices = match path.to_string_lossy().contains("_big") {
        true => folder.join("simple_big/model/vertices.txt"),
        false => model.join("vertices.txt"),
    };
    let model = hand::Model::read(&model, &vertices)?;
    hand::Instance::read(path, model, complicated)
}
