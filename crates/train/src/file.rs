//! Tensors in files of the format safetensors, which are replaced as a whole: a process that is killed leaves the old file or the new one.
//!
//! A checksum of names, types and bytes is kept in the file. One that does not fit is an error; files of other programs have none.
//!
//! Values are moved between a file and a program piece by piece, twice: once for the checksum, and once for themselves. No copy of them is in memory.

use ferrozyme_backend::Program;
use ferrozyme_graph::{CONDITION, INDEX, Parameter, Scalar, TensorType};
use safetensors::tensor::{Dtype, Metadata, TensorInfo};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
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

/// A parameter of a program, and the name of its value in a file.
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) parameter: Parameter,
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

/// How many bytes are moved at once.
const PIECE: usize = 1 << 20;
/// The length of a file's header stands in so many bytes before it.
const LENGTH: usize = 8;

fn corrupt(error: impl std::fmt::Display) -> Problem {
    Problem::Corrupt(error.to_string())
}

/// A checksum of names, types and bytes of tensors, which come in the order of their names.
#[derive(Default)]
struct Checksum(blake3::Hasher);

impl Checksum {
    fn begin_tensor(&mut self, name: &str, ty: Dtype, shape: &[usize], bytes: usize) {
        let head = format!("{name:?} {ty:?} {shape:?} {bytes}\n");
        self.0.update(head.as_bytes());
    }

    fn to_hex(&self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

/// Writes the values of parameters, piece by piece.
pub(crate) fn write(path: &Path, program: &Program, tensors: &[Named]) -> Result<(), FileError> {
    let header = header_of(program, tensors).map_err(|problem| problem.at(path))?;
    let outcome = replace(path, |file| {
        file.write_all(&(header.bytes.len() as u64).to_le_bytes())?;
        file.write_all(&header.bytes)?;
        for &parameter in &header.order {
            for_each_piece(program, parameter, |bytes| Ok(file.write_all(bytes)?))?;
        }
        Ok(())
    });
    outcome.map_err(|problem| problem.at(path))
}

/// The header of a file, and the parameters in the order of their bytes behind it.
struct Header {
    bytes: Vec<u8>,
    order: Vec<Parameter>,
}

fn header_of(program: &Program, tensors: &[Named]) -> Result<Header, Problem> {
    let ty = |parameter: Parameter| &program.graph().parameters[parameter].ty;
    let mut sorted: Vec<&Named> = tensors.iter().collect();
    sorted.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(Problem::SameName(pair[0].name.clone()));
    }
    let mut sum = Checksum::default();
    for Named { name, parameter } in &sorted {
        let ty = ty(*parameter);
        sum.begin_tensor(name, type_in_file(ty.element), &ty.shape, ty.bytes());
        for_each_piece(program, *parameter, |bytes| {
            sum.0.update(bytes);
            Ok(())
        })?;
    }
    // Large elements come first, so that all are aligned.
    sorted.sort_by_key(|named| std::cmp::Reverse(ty(named.parameter).element.bytes()));
    let mut end = 0;
    let infos = sorted.iter().map(|named| {
        let (start, ty) = (end, ty(named.parameter));
        end += ty.bytes();
        let info = TensorInfo {
            dtype: type_in_file(ty.element),
            shape: ty.shape.to_vec(),
            data_offsets: (start, end),
        };
        (named.name.clone(), info)
    });
    let notes = HashMap::from([(CHECKSUM.to_owned(), sum.to_hex())]);
    let metadata = Metadata::new(Some(notes), infos.collect()).map_err(corrupt)?;
    let mut bytes = serde_json::to_vec(&metadata).map_err(corrupt)?;
    bytes.resize(bytes.len().next_multiple_of(LENGTH), b' ');
    Ok(Header {
        bytes,
        order: sorted.iter().map(|named| named.parameter).collect(),
    })
}

fn for_each_piece(
    program: &Program,
    parameter: Parameter,
    mut take: impl FnMut(&[u8]) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let all = program.graph().parameters[parameter].ty.bytes();
    let mut buffer = vec![0; all.min(PIECE)];
    for start in (0..all).step_by(PIECE) {
        let piece = &mut buffer[..PIECE.min(all - start)];
        let read = program.read_bytes(parameter, start, piece);
        read.map_err(Problem::Program)?;
        take(piece)?;
    }
    Ok(())
}

/// Replaces a file, all at once: another one beside it is filled and takes its place.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let fill = || {
        let mut file = BufWriter::with_capacity(PIECE, File::create(&new)?);
        write(&mut file)?;
        let file = file.into_inner().map_err(|error| error.into_error())?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        // The new name is on the disk when the folder is.
        let folder = path.parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(())
    };
    fill().inspect_err(|_| {
        // A part of it would only fill the disk. That it cannot be removed would hide the real error.
        let _ = fs::remove_file(&new);
    })
}

/// Gives parameters the values in a file, piece by piece. The file must have all of them, and nothing else. What is wrong with it is found before anything is changed.
pub(crate) fn read(path: &Path, program: &mut Program, tensors: &[Named]) -> Result<(), FileError> {
    let mut read = || {
        let mut source = Source::open(path)?;
        source.check_sum()?;
        source.check_types(program, tensors)?;
        for Named { name, parameter } in tensors {
            source.for_each_piece(name, |offset, bytes| {
                let written = program.write_bytes(*parameter, offset, bytes);
                written.map_err(Problem::Program)
            })?;
        }
        Ok(())
    };
    read().map_err(|problem: Problem| problem.at(path))
}

/// An open file.
struct Source {
    file: File,
    metadata: Metadata,
    /// Where the bytes of the tensors begin.
    start: u64,
}

impl Source {
    fn open(path: &Path) -> Result<Source, Problem> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut size = [0; LENGTH];
        file.read_exact(&mut size).map_err(corrupt)?;
        let size = u64::from_le_bytes(size);
        // No more memory is taken than the file is long.
        let start = size.checked_add(LENGTH as u64);
        let Some(start) = start.filter(|&start| start <= length) else {
            return Err(corrupt("its header is longer than the file"));
        };
        let mut header = vec![0; size as usize];
        file.read_exact(&mut header)?;
        let metadata: Metadata = serde_json::from_slice(&header).map_err(corrupt)?;
        if start + metadata.data_len() as u64 != length {
            return Err(corrupt("it is not as long as its header says"));
        }
        Ok(Source {
            file,
            metadata,
            start,
        })
    }

    /// The checksum in the file is that of its tensors, if there is one.
    fn check_sum(&mut self) -> Result<(), Problem> {
        let notes = self.metadata.metadata().as_ref();
        let Some(expected) = notes.and_then(|notes| notes.get(CHECKSUM)).cloned() else {
            return Ok(());
        };
        let mut names = self.metadata.offset_keys();
        names.sort_unstable();
        let mut sum = Checksum::default();
        for name in names {
            let Some(info) = self.metadata.info(&name) else {
                continue;
            };
            let (begin, end) = info.data_offsets;
            sum.begin_tensor(&name, info.dtype, &info.shape, end - begin);
            self.for_each_piece(&name, |_, bytes| {
                sum.0.update(bytes);
                Ok(())
            })?;
        }
        match sum.to_hex() == expected {
            true => Ok(()),
            false => Err(corrupt("its checksum is another one")),
        }
    }

    fn check_types(&self, program: &Program, tensors: &[Named]) -> Result<(), Problem> {
        for Named { name, parameter } in tensors {
            let needed = &program.graph().parameters[*parameter].ty;
            let Some(info) = self.metadata.info(name) else {
                return Err(Problem::Missing {
                    name: name.clone(),
                    needed: needed.clone(),
                });
            };
            if info.dtype != type_in_file(needed.element) || info.shape != needed.shape[..] {
                let found = format!("{:?}", info.dtype).to_lowercase();
                return Err(Problem::OtherType {
                    name: name.clone(),
                    found: format!("{found}{:?}", info.shape),
                    needed: needed.clone(),
                });
            }
        }
        let mut names = self.metadata.offset_keys();
        names.sort_unstable();
        let is_wanted = |name: &String| tensors.iter().any(|named| named.name == *name);
        match names.into_iter().find(|name| !is_wanted(name)) {
            Some(name) => Err(Problem::Additional { name }),
            None => Ok(()),
        }
    }

    /// Reads a tensor in pieces, each with the offset that it begins at.
    fn for_each_piece(
        &mut self,
        name: &str,
        mut take: impl FnMut(usize, &[u8]) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let Some(info) = self.metadata.info(name) else {
            return Ok(());
        };
        let (begin, end) = info.data_offsets;
        self.file.seek(SeekFrom::Start(self.start + begin as u64))?;
        let all = end - begin;
        let mut buffer = vec![0; all.min(PIECE)];
        for start in (0..all).step_by(PIECE) {
            let piece = &mut buffer[..PIECE.min(all - start)];
            self.file.read_exact(piece)?;
            take(start, piece)?;
        }
        Ok(())
    }
}
