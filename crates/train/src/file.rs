//! Tensors in files of the format safetensors, which are replaced as a whole: a process that is killed leaves the old file or the new one.
//!
//! A checksum of names, types and bytes is kept in the file. One that does not fit is an error; files of other programs have none.

use ferrozyme_graph::{CONDITION, INDEX, Scalar, TensorType};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What the matter with a file is.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What the matter is.
    pub problem: Box<Problem>,
}

/// What the matter with a file of tensors is.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Problem {
    /// It cannot be read or written.
    #[error("{0}")]
    Access(#[from] io::Error),
    /// It is damaged, or something else.
    #[error("the file is damaged, or no safetensors file: {0}")]
    Corrupt(String),
    /// A tensor is not there.
    #[error("the tensor `{name}` is missing, which should be {needed}")]
    Missing {
        /// The name.
        name: String,
        /// What it should be.
        needed: TensorType,
    },
    /// A tensor is there that nothing is loaded from.
    #[error("there is a tensor `{name}`, which nothing has that name for")]
    Additional {
        /// The name.
        name: String,
    },
    /// A tensor has another type.
    #[error("the tensor `{name}` is {found}, but it should be {needed}")]
    OtherType {
        /// The name.
        name: String,
        /// What it is.
        found: String,
        /// What it should be.
        needed: TensorType,
    },
    /// Two tensors would have the same name.
    #[error("two tensors would be called `{0}`")]
    SameName(String),
    /// The program does not give or take the values.
    #[error("{0}")]
    Program(ferrozyme_backend::Error),
}

impl Problem {
    pub(crate) fn at(self, path: &Path) -> FileError {
        FileError {
            path: path.to_owned(),
            problem: Box::new(self),
        }
    }
}

/// A tensor in a file.
pub(crate) struct Stored {
    pub(crate) name: String,
    pub(crate) ty: TensorType,
    pub(crate) bytes: Vec<u8>,
}

const CHECKSUM: &str = "ferrozyme.checksum";

fn type_in_file(element: Scalar) -> Dtype {
    match element {
        CONDITION => Dtype::BOOL,
        INDEX => Dtype::I32,
        Scalar::F16 => Dtype::F16,
        Scalar::Bf16 => Dtype::BF16,
        Scalar::F64 => Dtype::F64,
        // Tensors have no other elements.
        _ => Dtype::F32,
    }
}

/// The checksum of tensors in the order of their names.
fn checksum<'t>(tensors: impl Iterator<Item = (&'t str, Dtype, &'t [usize], &'t [u8])>) -> String {
    let mut tensors: Vec<_> = tensors.collect();
    tensors.sort_by_key(|tensor| tensor.0);
    let mut hasher = blake3::Hasher::new();
    for (name, ty, shape, bytes) in tensors {
        hasher.update(format!("{name:?} {ty:?} {shape:?} {}\n", bytes.len()).as_bytes());
        hasher.update(bytes);
    }
    hasher.finalize().to_hex().to_string()
}

/// Writes tensors.
pub(crate) fn write(path: &Path, tensors: &[Stored]) -> Result<(), FileError> {
    let bytes = encode(tensors).map_err(|problem| problem.at(path))?;
    replace(path, &bytes).map_err(|error| Problem::Access(error).at(path))
}

fn encode(tensors: &[Stored]) -> Result<Vec<u8>, Problem> {
    let mut names: Vec<&str> = tensors.iter().map(|tensor| &*tensor.name).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Problem::SameName(pair[0].to_owned()));
    }
    let views = tensors.iter().map(|tensor| {
        let (element, shape) = (type_in_file(tensor.ty.element), tensor.ty.shape.to_vec());
        Ok((
            &*tensor.name,
            TensorView::new(element, shape, &tensor.bytes)?,
        ))
    });
    let views: Result<Vec<_>, safetensors::SafeTensorError> = views.collect();
    let corrupt = |error: safetensors::SafeTensorError| Problem::Corrupt(error.to_string());
    let views = views.map_err(corrupt)?;
    let all = views.iter();
    let sum = checksum(all.map(|(name, view)| (*name, view.dtype(), view.shape(), view.data())));
    let notes = HashMap::from([(CHECKSUM.to_owned(), sum)]);
    serialize(views, Some(notes)).map_err(corrupt)
}

/// Replaces a file, all at once.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let mut file = File::create(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    // The new name is on the disk when the folder is.
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Reads the tensors of these names and types: all that are there.
pub(crate) fn read(
    path: &Path,
    wanted: &[(String, TensorType)],
) -> Result<Vec<Vec<u8>>, FileError> {
    let bytes = fs::read(path).map_err(|error| Problem::Access(error).at(path))?;
    decode(&bytes, wanted).map_err(|problem| problem.at(path))
}

fn decode(bytes: &[u8], wanted: &[(String, TensorType)]) -> Result<Vec<Vec<u8>>, Problem> {
    let corrupt = |error: safetensors::SafeTensorError| Problem::Corrupt(error.to_string());
    let found = SafeTensors::deserialize(bytes).map_err(corrupt)?;
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(corrupt)?;
    let notes = header.metadata().as_ref();
    if let Some(expected) = notes.and_then(|notes| notes.get(CHECKSUM)) {
        let all: Vec<(&str, TensorView<'_>)> = found.iter().collect();
        let all = all.iter();
        let sum =
            checksum(all.map(|(name, view)| (*name, view.dtype(), view.shape(), view.data())));
        if sum != *expected {
            return Err(Problem::Corrupt("its checksum is another one".to_owned()));
        }
    }
    let mut names = found.names();
    names.sort_unstable();
    let is_wanted = |name: &str| wanted.iter().any(|(wanted, _)| wanted == name);
    let mut values = Vec::new();
    for (name, needed) in wanted {
        let Ok(view) = found.tensor(name) else {
            return Err(Problem::Missing {
                name: name.clone(),
                needed: needed.clone(),
            });
        };
        if view.dtype() != type_in_file(needed.element) || view.shape() != &needed.shape[..] {
            return Err(Problem::OtherType {
                name: name.clone(),
                found: format!(
                    "{}{:?}",
                    format!("{:?}", view.dtype()).to_lowercase(),
                    view.shape()
                ),
                needed: needed.clone(),
            });
        }
        values.push(view.data().to_vec());
    }
    match names.into_iter().find(|name| !is_wanted(name)) {
        Some(name) => Err(Problem::Additional {
            name: name.to_owned(),
        }),
        None => Ok(values),
    }
}
