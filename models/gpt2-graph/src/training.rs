//! Training with a compiled graph: one run of the program is one step. The state of a run is that of the crate `gpt2`, so either goes on where the other was.
//!
//! The numbers of the model and of the optimiser are in the program and nowhere else: files are read into it, and written from it, piece by piece.

use crate::adamw::Optimiser;
use crate::model::{Held, Model};
use ferrozyme_device::{Program, Timeline, compile_within};
use ferrozyme_graph::opt::lower_precision_to;
use ferrozyme_graph::{Graph, Parameter, Scalar};
use gpt2::adamw::{AdamW, Settings};
use gpt2::data::Loader;
use gpt2::files::replace::replace;
use gpt2::files::state::{Progress, Reader, State, Writer};
use gpt2::files::{FileError, Problem};
use gpt2::{Batch, Config, Parameters};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};
use thiserror::Error;

/// Why training cannot start or go on.
#[derive(Debug, Error)]
pub enum TrainError {
    /// The data is too short.
    #[error("{0} tokens are too few for a batch of {1} sequences of {2} tokens")]
    TooFewTokens(usize, usize, usize),
    /// The sequences are too long.
    #[error("sequences of {0} tokens are too long for a model with {1} positions")]
    TooLong(usize, usize),
    /// The data does not belong to the model.
    #[error("the data has the token {0}, and the model a vocabulary of {1}")]
    UnknownToken(u32, usize),
    /// The graph.
    #[error(transparent)]
    Graph(#[from] ferrozyme_device::Error),
    /// The numbers of a state cannot be read.
    #[error(transparent)]
    Numbers(#[from] Problem),
}

/// How many numbers are moved at once.
const PIECE: usize = 1 << 18;

/// How to train.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How much text in one step.
    pub batch: Batch,
    /// The optimiser.
    pub optimiser: Settings,
    /// Whether to repeat the first batch.
    pub overfit: bool,
    /// The type that factors of matrix products are rounded to. Otherwise they are of single precision, as everything else.
    pub factors: Option<Scalar>,
    /// The most bytes that the tensors of a step may take, beside parameters and the optimiser's state.
    pub budget: Option<usize>,
}

/// The graph of a step: loss, gradient, update; the loss is received.
pub fn step_graph(config: Config, plan: &Plan) -> (Graph, Model, Optimiser) {
    let mut g = Graph::new();
    let model = Model::new(&mut g, config);
    let optimiser = Optimiser::new(&mut g, plan.optimiser, &model.parameters());
    let loss = model.loss(&mut g, plan.batch);
    g.receive("loss", &[loss]);
    let gradients = g.backward(loss);
    optimiser.step(&mut g, &gradients);
    if let Some(element) = plan.factors {
        lower_precision_to(&mut g, element);
    }
    (g, model, optimiser)
}

/// A run.
pub struct Training {
    plan: Plan,
    /// Where the run was when it started.
    start: Progress,
    steps: u64,
    program: Program,
    model: Model,
    optimiser: Optimiser,
    loss: Arc<Mutex<f32>>,
}

impl Training {
    /// Compiles a run for the device of this name. All parameters are zero until they are given numbers.
    pub fn new(
        plan: Plan,
        start: Progress,
        tokens: &Arc<[u32]>,
        device: &str,
    ) -> Result<Training, TrainError> {
        let Plan { batch, .. } = plan;
        let config = start.config;
        if batch.steps > config.max_steps {
            return Err(TrainError::TooLong(batch.steps, config.max_steps));
        }
        let is_unknown = |token: &&u32| **token as usize >= config.vocabulary;
        if let Some(&token) = tokens.iter().find(is_unknown) {
            return Err(TrainError::UnknownToken(token, config.vocabulary));
        }
        if Loader::new(tokens, batch).is_none() {
            let (count, sequences) = (tokens.len(), batch.sequences);
            return Err(TrainError::TooFewTokens(count, sequences, batch.steps));
        }
        let (graph, model, optimiser) = step_graph(config, &plan);
        let mut program = compile_within(&graph, device, plan.budget)?;
        program.write_elements(optimiser.steps, 0, &[start.optimiser_steps as i32])?;
        for (name, is_target) in [("tokens", false), ("targets", true)] {
            let tokens = tokens.clone();
            let mut next = start.batch;
            program.feeder(name, move || {
                let mut loader = Loader::new(&tokens, batch).expect("it was checked");
                loader.next = if plan.overfit { 0 } else { next };
                next += 1;
                let (tokens, targets) = loader.load();
                let chosen = if is_target { targets } else { tokens };
                chosen.iter().map(|&token| token as i32).collect()
            });
        }
        let loss: Arc<Mutex<f32>> = Arc::default();
        let into = loss.clone();
        program.receiver("loss", move |tensors| {
            *into.lock().expect("nobody panics while it is locked") = tensors[0].scalar() as f32;
        });
        Ok(Training {
            plan,
            start,
            steps: 0,
            program,
            model,
            optimiser,
            loss,
        })
    }

    /// As [`new`](Self::new), with the numbers of a state.
    pub fn from_state(
        plan: Plan,
        state: &State,
        tokens: &Arc<[u32]>,
        device: &str,
    ) -> Result<Training, TrainError> {
        let mut training = Training::new(plan, state.progress(), tokens, device)?;
        let AdamW { means, squares, .. } = &state.optimiser;
        for (kind, numbers) in [&state.parameters, means, squares].into_iter().enumerate() {
            let held = training.held(kind);
            set_numbers(&mut training.program, &held, numbers)?;
        }
        Ok(training)
    }

    /// Gives the model these parameters.
    pub fn set_parameters(&mut self, numbers: &[f32]) -> Result<(), TrainError> {
        Ok(set_numbers(&mut self.program, &self.model.held, numbers)?)
    }

    /// Takes all numbers from a state; it is an error if that is another one than the run started with. After an error, the numbers are of no use.
    pub fn load(&mut self, mut from: Reader<impl Read>) -> Result<(), TrainError> {
        if *from.progress() != self.start {
            let problem =
                Problem::Malformed("it is not the state that the run started with".into());
            return Err(problem.into());
        }
        let mut buffer = vec![0.0; PIECE];
        for (parameter, elements) in self.pieces() {
            let numbers = &mut buffer[..elements.len()];
            from.read(numbers)?;
            self.program
                .write_elements(parameter, elements.start, numbers)?;
        }
        Ok(from.finish()?)
    }

    /// Takes one step and returns the loss of its batch before the step.
    pub fn step(&mut self) -> Result<f32, TrainError> {
        self.program.run()?;
        Ok(self.count_step())
    }

    /// As [`step`](Self::step), and measures each kernel. None, and no step is taken, on a device that has no kernels to measure.
    pub fn measured_step(&mut self) -> Result<Option<(f32, Timeline)>, TrainError> {
        let timeline = self.program.timeline()?;
        Ok(timeline.map(|timeline| (self.count_step(), timeline)))
    }

    fn count_step(&mut self) -> f32 {
        self.steps += 1;
        *self.loss.lock().expect("nobody panics while it is locked")
    }

    /// How the program was compiled.
    pub fn report(&self) -> &str {
        self.program.report()
    }

    /// Where the run is.
    pub fn progress(&self) -> Progress {
        let start = self.start.clone();
        Progress {
            step: start.step + self.steps,
            batch: match (self.plan.overfit, self.steps) {
                (true, 1..) => 1,
                _ => start.batch + self.steps,
            },
            optimiser_steps: start.optimiser_steps + self.steps,
            ..start
        }
    }

    /// Where the run is, with a copy of all numbers.
    pub fn state(&self) -> Result<State, TrainError> {
        let Progress {
            config,
            step,
            batch,
            random,
            optimiser_steps,
        } = self.progress();
        let numbers = |kind: usize| {
            let mut numbers = vec![0.0; Parameters::total(&config)];
            for Held { parameter, range } in self.held(kind) {
                let to = &mut numbers[range];
                self.program.read_elements(parameter, 0, to)?;
            }
            Ok::<_, TrainError>(numbers)
        };
        Ok(State {
            config,
            step,
            batch,
            random,
            parameters: numbers(0)?,
            optimiser: AdamW {
                steps: optimiser_steps,
                means: numbers(1)?,
                squares: numbers(2)?,
            },
        })
    }

    /// Writes the state to a file, piece by piece. Whatever happens meanwhile, the file is there as a whole, the old one or the new one.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        replace(path, |writer| self.write(writer))
    }

    fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        let mut writer = Writer::new(writer, &self.progress())?;
        let mut buffer = vec![0.0; PIECE];
        for (parameter, elements) in self.pieces() {
            let numbers = &mut buffer[..elements.len()];
            let read = self
                .program
                .read_elements(parameter, elements.start, numbers);
            read.map_err(io::Error::other)?;
            writer.write(numbers)?;
        }
        writer.finish()
    }

    /// The parameters of the model (0), or one of the optimiser's two states for each (1, 2), with their places.
    fn held(&self, kind: usize) -> Vec<Held> {
        let Some(number) = kind.checked_sub(1) else {
            return self.model.held.clone();
        };
        let pairs = self.model.held.iter().zip(&self.optimiser.states);
        pairs
            .map(|(held, (_, states))| Held {
                parameter: states[number],
                range: held.range.clone(),
            })
            .collect()
    }

    /// All numbers in the order of a file, as elements of parameters.
    fn pieces(&self) -> Vec<(Parameter, Range<usize>)> {
        let mut pieces = Vec::new();
        for kind in 0..3 {
            let mut held = self.held(kind);
            held.sort_by_key(|held| held.range.start);
            for Held { parameter, range } in held {
                let starts = (0..range.len()).step_by(PIECE);
                pieces.extend(starts.map(|start| {
                    let end = range.len().min(start + PIECE);
                    (parameter, start..end)
                }));
            }
        }
        pieces
    }
}

/// Gives parameters of a program the numbers at their places.
pub fn set_numbers(
    program: &mut Program,
    held: &[Held],
    numbers: &[f32],
) -> Result<(), ferrozyme_device::Error> {
    for Held { parameter, range } in held {
        for (index, piece) in numbers[range.clone()].chunks(PIECE).enumerate() {
            program.write_elements(*parameter, index * PIECE, piece)?;
        }
    }
    Ok(())
}
