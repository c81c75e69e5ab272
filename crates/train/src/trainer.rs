//! Trains a program step by step.
//!
//! A run of the program does as many steps as take about half a second. Before it the values of all parameters are kept: when a step in it fails, they are put back and the steps before
//! the failure are done again, so that a failed run ends exactly before the step that failed.

use crate::checkpoint::{self, Snapshot};
use crate::curve;
use crate::file::{FileError, Problem, replace};
use crate::log::{Line, Log};
use crate::steps::{LOSS, TrainingLoop};
use ferrozyme_backend::{Element, Program, array_of, bytes_of};
use ferrozyme_graph::interpret::Array;
use ferrozyme_graph::{INDEX, Opcode, Payload};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use thiserror::Error;

/// Why training ended early. All steps before the one that is named are done; with a folder, their checkpoint, log and curve are written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A loss is infinite or not a number.
    #[error("the loss of step {step} is {loss}")]
    NotFinite {
        /// The step.
        step: u64,
        /// The loss.
        loss: f64,
    },
    /// A feeder, a receiver or a Rust function of the graph panicked or erred, or the device failed.
    #[error("step {step}: {problem}")]
    Run {
        /// The step, or one shortly before.
        step: u64,
        /// What happened.
        problem: ferrozyme_backend::Error,
    },
    /// A file of the run cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A feeder is for a tensor that the loop does not feed once in each step.
    #[error(
        "\"{name}\" is fed at {times} places of the graph: a feeder by steps needs a tensor that is fed at one, directly in the body of the training loop"
    )]
    Feeds {
        /// The name.
        name: String,
        /// At how many places it is fed.
        times: usize,
    },
}

/// How long a run of the program should take, in seconds: there is no progress, and no checkpoint, during it.
const RUN: f64 = 0.5;

/// Registers a feeder that begins with a step.
type Start = Box<dyn FnMut(&mut Program, u64)>;

/// What feeds under one name.
struct Feeding {
    start: Start,
    /// The step that it works on, or that it did not come back from.
    working: Arc<Mutex<Option<u64>>>,
}

/// Trains a program that has a [`training_loop`](crate::training_loop).
pub struct Trainer {
    program: Program,
    states: TrainingLoop,
    feedings: Vec<Feeding>,
    losses: Arc<Mutex<Vec<(u64, f64)>>>,
    /// How many steps are done.
    step: u64,
    /// The last loss.
    loss: f64,
    /// How many steps a run has.
    per_run: u64,
    folder: Option<Folder>,
    checkpoint_every: u64,
    examples: Option<u64>,
    quiet: bool,
}

/// Where the files of a run are.
struct Folder {
    path: PathBuf,
    log: Log,
    /// The seconds of the runs before this one.
    seconds: f64,
}

impl Folder {
    fn checkpoint(&self) -> PathBuf {
        self.path.join("checkpoint.safetensors")
    }
}

/// A step is not done twice, so a value that a panic left behind is no worse than another.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Trainer {
    /// Of a program and its loop, from step 0 on.
    pub fn new(mut program: Program, states: TrainingLoop) -> Trainer {
        let losses: Arc<Mutex<Vec<(u64, f64)>>> = Arc::default();
        let sink = losses.clone();
        program.receiver(LOSS, move |tensors| {
            let [step, loss] = [0, 1].map(|position: usize| tensors[position].scalar());
            lock(&sink).push((step as u64, loss));
        });
        Trainer {
            program,
            states,
            feedings: Vec::new(),
            losses,
            step: 0,
            loss: f64::NAN,
            per_run: 1,
            folder: None,
            checkpoint_every: 1000,
            examples: None,
            quiet: false,
        }
    }

    /// Writes checkpoint, `log.jsonl` and `curve.svg` to a folder, and goes on from the checkpoint that is there.
    pub fn in_folder(mut self, path: impl AsRef<Path>) -> Result<Trainer, Error> {
        let path = path.as_ref().to_owned();
        std::fs::create_dir_all(&path).map_err(|error| Problem::Access(error).at(&path))?;
        let saved = path.join("checkpoint.safetensors");
        if saved.exists() {
            checkpoint::load(&mut self.program, self.states.count, &saved)?;
            let step = self.program.parameter_bytes(self.states.step);
            let step = step.map_err(|error| checkpoint::failed(error, &saved))?;
            let ty = &self.program.graph().parameters[self.states.step].ty;
            self.step = array_of(ty, &step).scalar() as u64;
        }
        let log = Log::open(&path.join("log.jsonl"), self.step)?;
        let last = log.lines.last();
        self.loss = last.map_or(f64::NAN, |line| line.loss);
        let seconds = last.map_or(0.0, |line| line.seconds);
        self.folder = Some(Folder { path, log, seconds });
        Ok(self)
    }

    /// Writes a checkpoint after each so many steps, and at the end; after 1000 if nothing is said.
    #[must_use]
    pub fn with_checkpoint_every(self, steps: u64) -> Trainer {
        Trainer {
            checkpoint_every: steps.max(1),
            ..self
        }
    }

    /// Shows the throughput in examples, of which each step has so many.
    #[must_use]
    pub fn with_examples_per_step(self, examples: u64) -> Trainer {
        Trainer {
            examples: Some(examples),
            ..self
        }
    }

    /// Without a progress bar.
    #[must_use]
    pub fn quiet(self) -> Trainer {
        Trainer {
            quiet: true,
            ..self
        }
    }

    /// What `feed` of this name gives in a step. It is called ahead of time, on a thread of its own, and must give the same for the same step: after an error or a restart, steps are done again.
    pub fn feeder<T: Element>(
        &mut self,
        name: &str,
        next: impl FnMut(u64) -> Vec<T> + Send + 'static,
    ) -> Result<(), Error> {
        let count = self.fed_elements(name)?;
        let next = Arc::new(Mutex::new(next));
        let working: Arc<Mutex<Option<u64>>> = Arc::default();
        let (name, seen) = (name.to_owned(), working.clone());
        let start = move |program: &mut Program, mut step: u64| {
            *lock(&seen) = None;
            let (next, seen) = (next.clone(), seen.clone());
            program.feeder(&name, move || {
                // The first step that fails stays: feeders work ahead.
                lock(&seen).get_or_insert(step);
                let tensor = (*lock(&next))(step);
                let mut working = lock(&seen);
                if tensor.len() == count && *working == Some(step) {
                    *working = None;
                }
                step += 1;
                tensor
            });
        };
        self.feedings.push(Feeding {
            start: Box::new(start),
            working,
        });
        Ok(())
    }

    /// The number of elements of a tensor that is fed once in each step.
    fn fed_elements(&self, name: &str) -> Result<usize, Error> {
        let graph = self.program.graph();
        let (mut counting, mut feeds) = (None, Vec::new());
        graph.for_each_op(graph.body(), &mut |region, op| match (
            graph.ops[op].opcode,
            &graph.ops[op].payload,
        ) {
            (Opcode::Update, Payload::Parameter(own)) if *own == self.states.step => {
                counting = Some(region);
            }
            (Opcode::Feed, Payload::Feed(own, ty)) if **own == *name => {
                feeds.push((region, ty.shape.count()));
            }
            _ => {}
        });
        match feeds[..] {
            [(region, count)] if Some(region) == counting => Ok(count),
            _ => Err(Error::Feeds {
                name: name.to_owned(),
                times: feeds.len(),
            }),
        }
    }

    /// How many steps are done.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// The program, with the parameters as they are now.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The program, to receive from it or to change parameters.
    pub fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }

    /// Trains until so many steps are done in all, those before a restart included. Returns the last loss.
    pub fn train(&mut self, steps: u64) -> Result<f64, Error> {
        let start = Instant::now();
        let bar = self.progress_bar(steps);
        self.start_feeders();
        while self.step < steps {
            let boundary = (self.step / self.checkpoint_every + 1) * self.checkpoint_every;
            let end = steps.min(boundary).min(self.step + self.per_run);
            let (begun, first) = (Instant::now(), self.step);
            self.steps_until(end, start)?;
            let pace = begun.elapsed().as_secs_f64() / (end - first) as f64;
            self.per_run = ((RUN / pace.max(1e-9)) as u64).clamp(1, 2 * self.per_run);
            self.show(&bar);
            if self.step == boundary {
                self.save_checkpoint()?;
            }
        }
        bar.finish();
        self.save_all()?;
        Ok(self.loss)
    }

    /// Does the steps to this one in one run. After an error, those before the failure are done.
    fn steps_until(&mut self, end: u64, start: Instant) -> Result<(), Error> {
        let first = self.step;
        let before = Snapshot::take(&self.program, self.states.count);
        let before = before.map_err(|problem| Error::Run {
            step: first,
            problem,
        })?;
        let (failed, error) = match self.run(end - first) {
            Ok(losses) => match losses.iter().find(|(_, loss)| !loss.is_finite()) {
                None => return Ok(self.done(&losses, start)?),
                Some(&(step, loss)) => (step, Error::NotFinite { step, loss }),
            },
            Err(problem) => {
                let working = self.feedings.iter().filter_map(|own| *lock(&own.working));
                // A feeder is ahead of the program, but never of the steps before the one that it fails in.
                // What else fails does so in the step behind the last one whose loss is known.
                let known = first + lock(&self.losses).len() as u64;
                let step = working.min().unwrap_or(known).clamp(first, end - 1);
                (step, Error::Run { step, problem })
            }
        };
        self.go_back(&before, failed, start)?;
        self.save_all()?;
        Err(error)
    }

    /// Puts the parameters back and does the steps before the one that failed again.
    fn go_back(&mut self, before: &Snapshot, failed: u64, start: Instant) -> Result<(), Error> {
        let first = self.step;
        let lost = |problem| Error::Run {
            step: first,
            problem,
        };
        before.restore(&mut self.program).map_err(lost)?;
        self.start_feeders();
        if failed > first {
            match self.run(failed - first) {
                Ok(losses) => self.done(&losses, start)?,
                // It does not fail in the same way again; what was before is still known.
                Err(_) => before.restore(&mut self.program).map_err(lost)?,
            }
        }
        // What feeders have made ahead is of no use any more.
        self.start_feeders();
        Ok(())
    }

    /// Runs the program for so many steps. Returns their losses.
    fn run(&mut self, steps: u64) -> Result<Vec<(u64, f64)>, ferrozyme_backend::Error> {
        lock(&self.losses).clear();
        let count = bytes_of(&Array::splat(INDEX, steps as f64));
        self.program
            .set_parameter_bytes(self.states.count, &count)?;
        self.program.run()?;
        Ok(std::mem::take(&mut *lock(&self.losses)))
    }

    /// Counts and logs steps.
    fn done(&mut self, losses: &[(u64, f64)], start: Instant) -> Result<(), FileError> {
        self.step += losses.len() as u64;
        if let Some(&(_, loss)) = losses.last() {
            self.loss = loss;
        }
        let Some(folder) = &mut self.folder else {
            return Ok(());
        };
        let seconds = folder.seconds + start.elapsed().as_secs_f64();
        let line = |&(step, loss): &(u64, f64)| Line {
            step,
            loss,
            seconds,
        };
        let lines: Vec<Line> = losses.iter().map(line).collect();
        let written = folder.log.append(&lines);
        written.map_err(|error| Problem::Access(error).at(&folder.path.join("log.jsonl")))
    }

    fn start_feeders(&mut self) {
        for feeding in &mut self.feedings {
            (feeding.start)(&mut self.program, self.step);
        }
    }

    fn save_checkpoint(&self) -> Result<(), FileError> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let path = folder.checkpoint();
        // A checkpoint is not ahead of the log.
        let synced = folder.log.sync();
        synced.map_err(|error| Problem::Access(error).at(&folder.path.join("log.jsonl")))?;
        checkpoint::save(&self.program, self.states.count, &path)
    }

    fn save_all(&self) -> Result<(), FileError> {
        self.save_checkpoint()?;
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let path = folder.path.join("curve.svg");
        let svg = curve::draw(&folder.log.lines).map_err(|error| error.to_string());
        let svg = svg.map_err(|error| Problem::Access(std::io::Error::other(error)).at(&path))?;
        let written = replace(&path, |file| Ok(file.write_all(svg.as_bytes())?));
        written.map_err(|problem| problem.at(&path))
    }

    fn progress_bar(&self, steps: u64) -> ProgressBar {
        if self.quiet {
            return ProgressBar::hidden();
        }
        let style =
            ProgressStyle::with_template("{wide_bar} step {pos} of {len}, {eta} left, {msg}");
        let bar = ProgressBar::new(steps).with_style(style.expect("the template is well formed"));
        bar.set_position(self.step);
        // So that what is left is not estimated from steps of an earlier run.
        bar.reset_eta();
        bar
    }

    fn show(&self, bar: &ProgressBar) {
        let pace = bar.per_sec();
        let throughput = match self.examples {
            Some(examples) => format!("{:.0} examples/s", pace * examples as f64),
            None => format!("{pace:.1} steps/s"),
        };
        bar.set_message(format!("loss {:.4}, {throughput}", self.loss));
        bar.set_position(self.step);
    }
}
