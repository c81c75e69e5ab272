//! Weights of GPT-2 as Hugging Face keeps them: tensors by name, of each layer on its own, weights input by input.

use super::{FileError, Problem};
use crate::config::Config;
use crate::files::replace::replace_bytes;
use crate::tensors::{Parameters, row, row_mut};
use half::{bf16, f16};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, View};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

/// Reads the weights at `path`.
pub fn load(path: &Path) -> Result<(Config, Vec<f32>), FileError> {
    let read = || parse(&std::fs::read(path)?);
    read().map_err(|problem| problem.at(path))
}

/// Writes weights to `path`, in single precision and without the padding of the vocabulary.
pub fn save(path: &Path, config: &Config, parameters: &[f32]) -> Result<(), FileError> {
    let bytes = serialise(config, parameters).map_err(|problem| problem.at(path))?;
    replace_bytes(path, &bytes)
}

/// A tensor of the file and where it goes.
struct Place<S> {
    name: String,
    shape: Vec<usize>,
    /// Whether rows and columns change places.
    transposed: bool,
    tensor: S,
}

/// Reads the content of a file.
pub fn parse(bytes: &[u8]) -> Result<(Config, Vec<f32>), Problem> {
    let malformed = |error| Problem::Malformed(format!("no safetensors file: {error}"));
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(malformed)?;
    let file = SafeTensors::deserialize(bytes).map_err(malformed)?;
    let prefix = match file.tensor("transformer.wte.weight") {
        Ok(_) => "transformer.",
        Err(_) => "",
    };
    let find = |name: &str| {
        let name = format!("{prefix}{name}");
        file.tensor(&name)
            .map_err(|_| Problem::Malformed(format!("the file has no tensor {name}")))
    };
    let heads = metadata
        .metadata()
        .as_ref()
        .and_then(|entries| entries.get("heads")?.parse().ok());
    let config = sizes(find, heads)?;
    let mut parameters = vec![0.0; Parameters::total(&config)];
    for place in places(&config, Parameters::cut(&mut *parameters, &config)) {
        let tensor = find(&place.name)?;
        if tensor.shape() != place.shape {
            return Problem::malformed(format!(
                "the tensor {} has the shape {:?}, where {:?} was expected",
                place.name,
                tensor.shape(),
                place.shape
            ));
        }
        let numbers = numbers(&place.name, &tensor)?;
        if place.transposed {
            transpose(&numbers, place.shape[1], place.tensor);
        } else {
            place.tensor.copy_from_slice(&numbers);
        }
    }
    Ok((config, parameters))
}

/// The content of a file.
pub fn serialise(config: &Config, parameters: &[f32]) -> Result<Vec<u8>, Problem> {
    let metadata = HashMap::from([
        // What Hugging Face's library asks for.
        ("format".to_owned(), "pt".to_owned()),
        ("heads".to_owned(), config.heads.to_string()),
    ]);
    let places = places(config, Parameters::cut(parameters, config));
    let tensors = places.into_iter().map(|place| (place.name.clone(), place));
    safetensors::serialize(tensors, Some(metadata))
        .map_err(|error| Problem::Malformed(error.to_string()))
}

/// Finds the sizes of the model. The number of heads is not written anywhere, except in files of this program; all published models
/// have heads of 64 numbers.
fn sizes<'a>(
    find: impl Fn(&str) -> Result<TensorView<'a>, Problem>,
    heads: Option<usize>,
) -> Result<Config, Problem> {
    let rows_and_channels = |name: &str| {
        let tensor = find(name)?;
        match *tensor.shape() {
            [rows, channels] => Ok((rows, channels)),
            ref shape => Problem::malformed(format!("the tensor {name} has the shape {shape:?}")),
        }
    };
    let (vocabulary, channels) = rows_and_channels("wte.weight")?;
    let (max_steps, _) = rows_and_channels("wpe.weight")?;
    let layers = (0..)
        .take_while(|layer| find(&format!("h.{layer}.ln_1.weight")).is_ok())
        .count();
    let Some(heads) = heads.or(channels.is_multiple_of(64).then_some(channels / 64)) else {
        return Problem::malformed(format!(
            "the file does not say how many heads there are, and {channels} channels are no multiple of 64"
        ));
    };
    let config = Config {
        layers,
        heads,
        channels,
        vocabulary,
        padded_vocabulary: vocabulary.next_multiple_of(64),
        max_steps,
    };
    match config.check() {
        Ok(()) => Ok(config),
        Err(error) => Problem::malformed(error.to_string()),
    }
}

/// The rows of a tensor, of which the file has one for each layer.
trait Rows: Sized {
    fn rows(self, length: usize) -> impl Iterator<Item = Self>;
    fn first(self, length: usize) -> Self;
}

impl Rows for &[f32] {
    fn rows(self, length: usize) -> impl Iterator<Item = Self> {
        self.chunks_exact(length)
    }
    fn first(self, length: usize) -> Self {
        &self[..length]
    }
}

impl Rows for &mut [f32] {
    fn rows(self, length: usize) -> impl Iterator<Item = Self> {
        self.chunks_exact_mut(length)
    }
    fn first(self, length: usize) -> Self {
        &mut self[..length]
    }
}

/// Which tensor of the file belongs to which part of which tensor of the model.
fn places<S: Rows>(config: &Config, p: Parameters<S>) -> Vec<Place<S>> {
    let (c, v) = (config.channels, config.vocabulary);
    let mut places = Vec::new();
    let mut add = |name: String, tensor: S, shape: &[usize], transposed| {
        places.push(Place {
            name,
            shape: shape.to_vec(),
            transposed,
            tensor,
        });
    };
    add("wte.weight".into(), p.wte.first(v * c), &[v, c], false);
    add("wpe.weight".into(), p.wpe, &[config.max_steps, c], false);
    let mut add_layers = |name: &str, tensor: S, shape: &[usize]| {
        let rows = tensor.rows(shape.iter().product());
        for (layer, tensor) in rows.enumerate() {
            add(format!("h.{layer}.{name}"), tensor, shape, shape.len() == 2);
        }
    };
    add_layers("ln_1.weight", p.ln1w, &[c]);
    add_layers("ln_1.bias", p.ln1b, &[c]);
    add_layers("attn.c_attn.weight", p.qkvw, &[c, 3 * c]);
    add_layers("attn.c_attn.bias", p.qkvb, &[3 * c]);
    add_layers("attn.c_proj.weight", p.attprojw, &[c, c]);
    add_layers("attn.c_proj.bias", p.attprojb, &[c]);
    add_layers("ln_2.weight", p.ln2w, &[c]);
    add_layers("ln_2.bias", p.ln2b, &[c]);
    add_layers("mlp.c_fc.weight", p.fcw, &[c, 4 * c]);
    add_layers("mlp.c_fc.bias", p.fcb, &[4 * c]);
    add_layers("mlp.c_proj.weight", p.fcprojw, &[4 * c, c]);
    add_layers("mlp.c_proj.bias", p.fcprojb, &[c]);
    add("ln_f.weight".into(), p.lnfw, &[c], false);
    add("ln_f.bias".into(), p.lnfb, &[c], false);
    places
}

/// The numbers of a tensor in single precision.
fn numbers(name: &str, tensor: &TensorView) -> Result<Vec<f32>, Problem> {
    let data = tensor.data();
    let halves = || data.as_chunks().0.iter().copied();
    match tensor.dtype() {
        Dtype::F32 => {
            let singles = data.as_chunks().0.iter().copied();
            Ok(singles.map(f32::from_le_bytes).collect())
        }
        Dtype::F16 => Ok(halves().map(|b| f16::from_le_bytes(b).to_f32()).collect()),
        Dtype::BF16 => Ok(halves().map(|b| bf16::from_le_bytes(b).to_f32()).collect()),
        other => Problem::malformed(format!(
            "the tensor {name} has numbers of type {other:?}; known are F32, F16 and BF16"
        )),
    }
}

/// Columns of `input`, whose rows are `length` long, become rows of `output`.
fn transpose(input: &[f32], length: usize, output: &mut [f32]) {
    let rows = input.len() / length;
    for column in 0..length {
        let output = row_mut(output, column, rows);
        for (index, number) in output.iter_mut().enumerate() {
            *number = row(input, index, length)[column];
        }
    }
}

impl View for Place<&[f32]> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let bytes = |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        if self.transposed {
            let mut numbers = vec![0.0; self.tensor.len()];
            transpose(self.tensor, self.shape[0], &mut numbers);
            bytes(&numbers)
        } else {
            bytes(self.tensor)
        }
    }

    fn data_len(&self) -> usize {
        4 * self.tensor.len()
    }
}
