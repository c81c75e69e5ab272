//! Where a training run is: everything that is needed to go on as if it had not been interrupted.
//!
//! The file has a header of its own, then parameters and the optimiser's two means as numbers of four bytes, and at the end a checksum of
//! all that stands before it.

use super::{FileError, Problem, opened, read, read_exactly, read_floats, write_floats};
use crate::adamw::AdamW;
use crate::config::Config;
use crate::files::replace::replace;
use crate::initialise::random_parameters;
use crate::random::Random;
use crate::tensors::Parameters;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

const MAGIC: [u8; 8] = *b"FZGPT2TR";
const VERSION: u64 = 1;
const WORDS: usize = 12;
const HEADER: u64 = 8 + 8 * WORDS as u64;
const CHECKSUM: u64 = blake3::OUT_LEN as u64;

/// Where a training run is, without the numbers of the model and the optimiser.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The model's sizes.
    pub config: Config,
    /// The next step.
    pub step: u64,
    /// The next batch of the training data.
    pub batch: u64,
    /// Where the random numbers for samples are.
    pub random: Random,
    /// Steps that the optimiser has taken.
    pub optimiser_steps: u64,
}

impl Progress {
    /// The start of a run.
    pub fn start(config: Config, seed: u64) -> Progress {
        Progress {
            config,
            step: 0,
            batch: 0,
            random: Random::new(seed),
            optimiser_steps: 0,
        }
    }
}

/// Where a training run is, with all numbers.
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

    /// Where the run is, without the numbers.
    pub fn progress(&self) -> Progress {
        Progress {
            config: self.config,
            step: self.step,
            batch: self.batch,
            random: self.random.clone(),
            optimiser_steps: self.optimiser.steps,
        }
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
    let mut reader = Reader::new(reader, length)?;
    let Progress {
        config,
        step,
        batch,
        random,
        optimiser_steps: steps,
    } = reader.progress().clone();
    let mut numbers = || {
        let mut numbers = vec![0.0; Parameters::total(&config)];
        reader.read(&mut numbers).map(|()| numbers)
    };
    let (parameters, means, squares) = (numbers()?, numbers()?, numbers()?);
    reader.finish()?;
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
    let mut writer = Writer::new(writer, &state.progress())?;
    let AdamW { means, squares, .. } = &state.optimiser;
    for numbers in [&state.parameters, means, squares] {
        writer.write(numbers)?;
    }
    writer.finish()
}

/// Opens the state at `path`, to take its numbers one after the other.
pub fn open(path: &Path) -> Result<Reader<BufReader<File>>, FileError> {
    let open = || {
        let (reader, length) = opened(path)?;
        Reader::new(reader, length)
    };
    open().map_err(|problem| problem.at(path))
}

/// Reads the model of the state at `path`.
pub fn load_parameters(path: &Path) -> Result<(Config, Vec<f32>), FileError> {
    let mut reader = open(path)?;
    let config = reader.progress().config;
    let mut read = || {
        let mut parameters = vec![0.0; Parameters::total(&config)];
        reader.read(&mut parameters)?;
        // What the optimiser knows counts for the checksum only.
        let mut rest = vec![0.0; 1 << 16];
        let mut left = 2 * parameters.len();
        while left > 0 {
            let piece = left.min(rest.len());
            reader.read(&mut rest[..piece])?;
            left -= piece;
        }
        Ok(parameters)
    };
    let read = read().and_then(|parameters| reader.finish().map(|()| (config, parameters)));
    read.map_err(|problem: Problem| problem.at(path))
}

/// A state whose numbers are read one after the other: parameters, the means of gradients, and those of their squares. They count only once [`finish`](Self::finish) has found the checksum right.
pub struct Reader<R> {
    progress: Progress,
    source: Summed<R>,
}

impl<R: Read> Reader<R> {
    /// Reads the header of a state of `length` bytes.
    pub fn new(reader: R, length: u64) -> Result<Reader<R>, Problem> {
        let mut source = Summed::new(reader);
        let mut magic = [0; 8];
        read_exactly(&mut source, &mut magic)?;
        if magic != MAGIC {
            return Problem::malformed("no state of a training run");
        }
        let mut words = [0; WORDS];
        for word in &mut words {
            let mut bytes = [0; 8];
            read_exactly(&mut source, &mut bytes)?;
            *word = u64::from_le_bytes(bytes);
        }
        let progress = progress_of(words)?;
        let count = Parameters::total(&progress.config);
        let expected = HEADER + 3 * 4 * count as u64 + CHECKSUM;
        if length != expected {
            return Problem::malformed(format!(
                "the file has {length} bytes, and the state of {count} parameters {expected}"
            ));
        }
        Ok(Reader { progress, source })
    }

    /// Where the run is.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Reads the next numbers.
    pub fn read(&mut self, numbers: &mut [f32]) -> Result<(), Problem> {
        read_floats(&mut self.source, numbers)
    }

    /// Compares the checksum of all that was read, which must be all numbers.
    pub fn finish(mut self) -> Result<(), Problem> {
        let sum = self.source.sum.finalize();
        let mut written = [0; CHECKSUM as usize];
        read_exactly(&mut self.source.inner, &mut written)?;
        // This comparison takes the same time wherever the sums differ, which does no harm.
        if sum != written {
            return Problem::malformed("the checksum is wrong: the file is damaged");
        }
        Ok(())
    }
}

fn progress_of(words: [u64; WORDS]) -> Result<Progress, Problem> {
    let [version, step, batch, random, optimiser_steps, sizes @ .., _] = words;
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
    Ok(Progress {
        config,
        step,
        batch,
        random,
        optimiser_steps,
    })
}

const TOO_MANY: &str = "the state has fewer numbers than are written";
const TOO_FEW: &str = "the state has more numbers than were written";

/// Writes a state whose numbers come one after the other, in the order of [`Reader`].
pub struct Writer<W> {
    target: Summed<W>,
    /// How many numbers are not written yet.
    left: usize,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    pub fn new(writer: W, progress: &Progress) -> io::Result<Writer<W>> {
        let mut target = Summed::new(writer);
        target.write_all(&MAGIC)?;
        let config = &progress.config;
        let words: [u64; WORDS] = [
            VERSION,
            progress.step,
            progress.batch,
            progress.random.state(),
            progress.optimiser_steps,
            config.layers as u64,
            config.heads as u64,
            config.channels as u64,
            config.vocabulary as u64,
            config.padded_vocabulary as u64,
            config.max_steps as u64,
            0,
        ];
        for word in words {
            target.write_all(&word.to_le_bytes())?;
        }
        Ok(Writer {
            target,
            left: 3 * Parameters::total(config),
        })
    }

    /// Writes the next numbers.
    pub fn write(&mut self, numbers: &[f32]) -> io::Result<()> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidInput, TOO_MANY);
        self.left = self.left.checked_sub(numbers.len()).ok_or_else(wrong)?;
        write_floats(&mut self.target, numbers)
    }

    /// Writes the checksum. It is an error if numbers are missing.
    pub fn finish(mut self) -> io::Result<()> {
        if self.left > 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, TOO_FEW));
        }
        let sum = self.target.sum.finalize();
        self.target.inner.write_all(sum.as_bytes())
    }
}

/// A reader or writer that computes the checksum of the bytes.
struct Summed<I> {
    inner: I,
    sum: blake3::Hasher,
}

impl<I> Summed<I> {
    fn new(inner: I) -> Summed<I> {
        Summed {
            inner,
            sum: blake3::Hasher::new(),
        }
    }
}

impl<R: Read> Read for Summed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.sum.update(&buffer[..count]);
        Ok(count)
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(buffer)?;
        self.sum.update(&buffer[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
