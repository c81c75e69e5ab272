//! Training: batch, gradient, step, and so on, from any state.

use crate::adamw::Settings;
use crate::config::Batch;
use crate::data::{Data, Loader};
use crate::engine::{Backward, Engine};
use crate::files::state::State;
use crate::tensors::Parameters;
use thiserror::Error;

/// Why training cannot start.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TrainError {
    /// The data is too short.
    #[error("{0} tokens are too few for {1} batches of {2} sequences of {3} tokens")]
    TooFewTokens(usize, &'static str, usize, usize),
    /// The sequences are too long.
    #[error("sequences of {0} tokens are too long for a model with {1} positions")]
    TooLong(usize, usize),
    /// The data does not belong to the model.
    #[error("the data has the token {0}, and the model a vocabulary of {1}")]
    UnknownToken(u32, usize),
    /// The state is not complete.
    #[error("the model has {1} parameters, and {0} are given")]
    WrongParameters(usize, usize),
}

/// How to train.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How much text in one step.
    pub batch: Batch,
    /// The optimiser.
    pub optimiser: Settings,
    /// The kind of backward pass.
    pub backward: Backward,
    /// Threads.
    pub threads: usize,
    /// Whether to repeat the first batch.
    pub overfit: bool,
}

/// A run.
pub struct Training<'a> {
    plan: Plan,
    /// Where the run is.
    pub state: State,
    engine: Engine<f32>,
    grads: Vec<f32>,
    training: Loader<'a>,
    validation: Loader<'a>,
}

impl<'a> Training<'a> {
    /// A run that starts, or resumes, from `state`.
    pub fn new(plan: Plan, state: State, data: &'a Data) -> Result<Training<'a>, TrainError> {
        let Plan { batch, .. } = plan;
        let config = state.config;
        if batch.steps > config.max_steps {
            return Err(TrainError::TooLong(batch.steps, config.max_steps));
        }
        let expected = Parameters::total(&config);
        if state.parameters.len() != expected {
            return Err(TrainError::WrongParameters(
                state.parameters.len(),
                expected,
            ));
        }
        let loader = |tokens: &'a [u32], what| {
            if let Some(&token) = tokens.iter().find(|&&t| t as usize >= config.vocabulary) {
                return Err(TrainError::UnknownToken(token, config.vocabulary));
            }
            let (sequences, steps) = (batch.sequences, batch.steps);
            Loader::new(tokens, batch).ok_or(TrainError::TooFewTokens(
                tokens.len(),
                what,
                sequences,
                steps,
            ))
        };
        let mut training = loader(&data.training, "training")?;
        training.next = state.batch;
        Ok(Training {
            plan,
            engine: Engine::new(config, batch, plan.backward, plan.threads),
            grads: vec![0.0; expected],
            training,
            validation: loader(&data.validation, "validation")?,
            state,
        })
    }

    /// Takes one step and returns the loss of its batch before the step.
    pub fn step(&mut self) -> f32 {
        if self.plan.overfit {
            self.training.next = 0;
        }
        let (tokens, targets) = self.training.load();
        let State {
            parameters,
            optimiser,
            ..
        } = &mut self.state;
        let loss = self
            .engine
            .gradient(parameters, &mut self.grads, tokens, targets);
        optimiser.step(
            &self.plan.optimiser,
            parameters,
            &self.grads,
            self.plan.threads,
        );
        self.state.step += 1;
        self.state.batch = self.training.next;
        loss
    }

    /// The mean loss over the first `batches` batches of the validation data, or as many as there are.
    pub fn validate(&mut self, batches: u64) -> f32 {
        let batches = batches.clamp(1, self.validation.batches());
        self.validation.next = 0;
        let mut sum = 0.0;
        for _ in 0..batches {
            let (tokens, targets) = self.validation.load();
            sum += self.engine.loss(&self.state.parameters, tokens, targets);
        }
        sum / batches as f32
    }
}
