//! Where a training run is: everything that is needed to go on as if it had not been interrupted.
//!
//! The file has a header of its own, then parameters and the optimiser's two means as numbers of four bytes, and at the end a checksum of
//! all that stands before it.

use super::{FileError, Problem, read, read_exactly, read_floats, write_floats};
use crate::adamw::AdamW;
use crate::config::Config;
use crate::files::replace::replace;
use crate::initialise::random_parameters;
use crate::random::Random;
use crate::tensors::Parameters;
use std::io::{self, Read, Write};
use std::path::Path;

const MAGIC: [u8; 8] = *b"FZGPT2TR";
const VERSION: u64 = 1;
const WORDS: usize = 12;
const HEADER: u64 = 8 + 8 * WORDS as u64;
const CHECKSUM: u64 = blake3::OUT_LEN as u64;

/// Where a training run is.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The model's sizes.
    pub config: Config,
    /// The next step.
    pub step: u64,
    /// The next batch of the training data.
    pub batch: u64,
    /// Where the random numbers for samples are.
    pub random: Random,
    /// The model.
    pub parameters: Vec<f32>,
    /// The optimiser.
    pub optimiser: AdamW,
}

impl State {
    /// The start of a run with given parameters.
    pub fn with_parameters(config: Config, parameters: Vec<f32>, seed: u64) -> State {
        State {
            config,
            step: 0,
            batch: 0,
            random: Random::new(seed),
            optimiser: AdamW::new(parameters.len()),
            parameters,
        }
    }

    /// The start of a run with random parameters.
    pub fn random(config: Config, seed: u64) -> State {
        let parameters = random_parameters(&config, &mut Random::new(seed));
        State::with_parameters(config, parameters, seed)
    }
}

/// Reads the state at `path`.
pub fn load(path: &Path) -> Result<State, FileError> {
    read(path, parse)
}

/// Writes the state to `path`.
pub fn save(path: &Path, state: &State) -> Result<(), FileError> {
    replace(path, |writer| write(writer, state))
}

/// Reads a state of `length` bytes.
pub fn parse(reader: &mut impl Read, length: u64) -> Result<State, Problem> {
    let mut reader = Summed::new(reader);
    let mut magic = [0; 8];
    read_exactly(&mut reader, &mut magic)?;
    if magic != MAGIC {
        return Problem::malformed("no state of a training run");
    }
    let mut words = [0; WORDS];
    for word in &mut words {
        let mut bytes = [0; 8];
        read_exactly(&mut reader, &mut bytes)?;
        *word = u64::from_le_bytes(bytes);
    }
    let [version, step, batch, random, steps, sizes @ .., _] = words;
    if version != VERSION {
        return Problem::malformed(format!(
            "the state has version {version}; known is {VERSION}"
        ));
    }
    let [
        layers,
        heads,
        channels,
        vocabulary,
        padded_vocabulary,
        max_steps,
    ] = sizes.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    let config = Config {
        layers,
        heads,
        channels,
        vocabulary,
        padded_vocabulary,
        max_steps,
    };
    config
        .check()
        .map_err(|error| Problem::Malformed(error.to_string()))?;
    let Some(random) = Random::restore(random) else {
        return Problem::malformed("the state of the random numbers is 0");
    };
    let count = Parameters::total(&config);
    let expected = HEADER + 3 * 4 * count as u64 + CHECKSUM;
    if length != expected {
        return Problem::malformed(format!(
            "the file has {length} bytes, and the state of {count} parameters {expected}"
        ));
    }
    let mut numbers = || {
        let mut numbers = vec![0.0; count];
        read_floats(&mut reader, &mut numbers).map(|()| numbers)
    };
    let (parameters, means, squares) = (numbers()?, numbers()?, numbers()?);
    let sum = reader.sum.finalize();
    let mut written = [0; CHECKSUM as usize];
    read_exactly(reader.inner, &mut written)?;
    // This comparison takes the same time wherever the sums differ, which does no harm.
    if sum != written {
        return Problem::malformed("the checksum is wrong: the file is damaged");
    }
    Ok(State {
        config,
        step,
        batch,
        random,
        parameters,
        optimiser: AdamW {
            steps,
            means,
            squares,
        },
    })
}

/// Writes a state.
pub fn write(writer: &mut impl Write, state: &State) -> io::Result<()> {
    let mut writer = Summed::new(writer);
    writer.write_all(&MAGIC)?;
    let config = &state.config;
    let words: [u64; WORDS] = [
        VERSION,
        state.step,
        state.batch,
        state.random.state(),
        state.optimiser.steps,
        config.layers as u64,
        config.heads as u64,
        config.channels as u64,
        config.vocabulary as u64,
        config.padded_vocabulary as u64,
        config.max_steps as u64,
        0,
    ];
    for word in words {
        writer.write_all(&word.to_le_bytes())?;
    }
    let optimiser = &state.optimiser;
    for numbers in [&state.parameters, &optimiser.means, &optimiser.squares] {
        write_floats(&mut writer, numbers)?;
    }
    let sum = writer.sum.finalize();
    writer.inner.write_all(sum.as_bytes())
}

/// A reader or writer that computes the checksum of the bytes.
struct Summed<'a, I> {
    inner: &'a mut I,
    sum: blake3::Hasher,
}

impl<'a, I> Summed<'a, I> {
    fn new(inner: &'a mut I) -> Summed<'a, I> {
        Summed {
            inner,
            sum: blake3::Hasher::new(),
        }
    }
}

impl<R: Read> Read for Summed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.sum.update(&buffer[..count]);
        Ok(count)
    }
}

impl<W: Write> Write for Summed<'_, W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.sum.update(&buffer[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
