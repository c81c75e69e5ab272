//! Training with a compiled graph: one run of the program is one step. The state of a run is that of the crate `gpt2`, so either goes on where the other was.

use crate::adamw::Optimiser;
use crate::model::{Held, Model};
use ferrozyme_device::{Program, Timeline, compile};
use ferrozyme_graph::interpret::Array;
use ferrozyme_graph::opt::lower_precision_to;
use ferrozyme_graph::{Graph, Parameter, Scalar, TensorType};
use gpt2::adamw::{AdamW, Settings};
use gpt2::data::Loader;
use gpt2::files::state::State;
use gpt2::{Batch, Config, Parameters};
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
}

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
    /// Where the run was when it started, without the numbers, which the program has.
    start: State,
    steps: u64,
    program: Program,
    model: Model,
    optimiser: Optimiser,
    loss: Arc<Mutex<f32>>,
}

impl Training {
    /// Compiles a run that starts, or resumes, from `state`, for the device of this name.
    pub fn new(
        plan: Plan,
        state: State,
        tokens: &Arc<[u32]>,
        device: &str,
    ) -> Result<Training, TrainError> {
        let Plan { batch, .. } = plan;
        let config = state.config;
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
        let mut program = compile(&graph, device)?;
        set_numbers(&mut program, &model.held, &state.parameters);
        let moments = [&state.optimiser.means, &state.optimiser.squares];
        for (number, moment) in moments.into_iter().enumerate() {
            set_numbers(
                &mut program,
                &held_moments(&model, &optimiser, number),
                moment,
            );
        }
        let steps = Array::new(
            graph.parameters[optimiser.steps].ty.clone(),
            vec![state.optimiser.steps as f64],
        );
        program.set_parameter(optimiser.steps, &steps);
        for (name, is_target) in [("tokens", false), ("targets", true)] {
            let tokens = tokens.clone();
            let mut next = state.batch;
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
        // The numbers are in the program from here on.
        let mut start = state;
        for numbers in numbers_of(&mut start) {
            *numbers = Vec::new();
        }
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
    pub fn state(&self) -> State {
        let mut state = self.start.clone();
        let total = Parameters::total(&state.config);
        for numbers in numbers_of(&mut state) {
            numbers.resize(total, 0.0);
        }
        state.step += self.steps;
        state.batch = match (self.plan.overfit, self.steps) {
            (true, 1..) => 1,
            _ => state.batch + self.steps,
        };
        state.optimiser.steps += self.steps;
        get(&self.program, &self.model.held, &mut state.parameters);
        let moments = [&mut state.optimiser.means, &mut state.optimiser.squares];
        for (number, moment) in moments.into_iter().enumerate() {
            let held = held_moments(&self.model, &self.optimiser, number);
            get(&self.program, &held, moment);
        }
        state
    }
}

/// One of the optimiser's two states, with the places of the parameters that they belong to.
fn held_moments(model: &Model, optimiser: &Optimiser, number: usize) -> Vec<Held> {
    let pairs = model.held.iter().zip(&optimiser.states);
    pairs
        .map(|(held, (_, states))| Held {
            parameter: states[number],
            range: held.range.clone(),
        })
        .collect()
}

/// Parameters and the optimiser's two states.
fn numbers_of(state: &mut State) -> [&mut Vec<f32>; 3] {
    let AdamW { means, squares, .. } = &mut state.optimiser;
    [&mut state.parameters, means, squares]
}

/// Gives parameters of a program the numbers at their places.
pub fn set_numbers(program: &mut Program, held: &[Held], numbers: &[f32]) {
    for Held { parameter, range } in held {
        let ty = type_of(program, *parameter);
        let elements = numbers[range.clone()].iter().map(|&x| f64::from(x));
        program.set_parameter(*parameter, &Array::new(ty, elements.collect()));
    }
}

/// Takes the numbers of parameters to their places.
fn get(program: &Program, held: &[Held], numbers: &mut [f32]) {
    for Held { parameter, range } in held {
        let value = program.parameter(*parameter);
        for (to, &from) in numbers[range.clone()].iter_mut().zip(&*value.elements) {
            *to = from as f32;
        }
    }
}

fn type_of(program: &Program, parameter: Parameter) -> TensorType {
    let ty = program.graph().parameters[parameter].ty.clone();
    debug_assert_eq!(ty.element, Scalar::F32);
    ty
}
