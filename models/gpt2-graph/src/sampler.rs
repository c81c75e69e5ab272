//! Text from a model: the logits of one window of tokens by a compiled graph.
//!
//! The window is as long as a sequence may be. Tokens behind the last one that is known have no influence on what comes before them, so zeros fill the rest.

use crate::model::Model;
use crate::training::{TrainError, set_numbers};
use ferrozyme_device::{Program, compile};
use ferrozyme_graph::{Graph, INDEX, TensorType};
use gpt2::random::Random;
use gpt2::sample::draw;
use gpt2::{Batch, Config};
use std::sync::{Arc, Mutex};

/// A model that continues texts.
pub struct Sampler {
    window: usize,
    program: Program,
    tokens: Arc<Mutex<Vec<i32>>>,
    logits: Arc<Mutex<Vec<f32>>>,
}

impl Sampler {
    /// Compiles a model with these parameters for a device, for texts of which the last `window` tokens count.
    pub fn new(
        config: Config,
        parameters: &[f32],
        window: usize,
        device: &str,
    ) -> Result<Sampler, TrainError> {
        if window > config.max_steps {
            return Err(TrainError::TooLong(window, config.max_steps));
        }
        let mut g = Graph::new();
        let model = Model::new(&mut g, config);
        let batch = Batch {
            sequences: 1,
            steps: window,
        };
        let logits = model.logits(&mut g, batch);
        // The row that counts.
        let last = g.feed_of("last", TensorType::new(INDEX, [1]));
        let row = g.gather(logits, last, 0);
        g.receive("logits", &[row]);
        let mut program = compile(&g, device)?;
        set_numbers(&mut program, &model.held, parameters)?;
        let logits: Arc<Mutex<Vec<f32>>> = Arc::default();
        let into = logits.clone();
        program.receiver("logits", move |tensors| {
            let row = tensors[0].elements.iter().map(|&x| x as f32).collect();
            *into.lock().expect("nobody panics while it is locked") = row;
        });
        Ok(Sampler {
            window,
            program,
            tokens: Arc::default(),
            logits,
        })
    }

    /// Appends `count` tokens, each drawn by the probabilities that the model gives after those before it. A low `temperature` prefers what is likely; at 0 only the likeliest token is taken.
    ///
    /// # Panics
    /// If there are no tokens to begin with.
    pub fn continue_text(
        &mut self,
        tokens: &mut Vec<u32>,
        count: usize,
        temperature: f64,
        random: &mut Random,
    ) -> Result<(), TrainError> {
        for _ in 0..count {
            let known = &tokens[tokens.len().saturating_sub(self.window)..];
            let last = known.len() - 1;
            let mut window: Vec<i32> = known.iter().map(|&token| token as i32).collect();
            window.resize(self.window, 0);
            *self
                .tokens
                .lock()
                .expect("nobody panics while it is locked") = window;
            // New feeders, since others have run ahead.
            let fed = self.tokens.clone();
            self.program.feeder("tokens", move || {
                fed.lock()
                    .expect("nobody panics while it is locked")
                    .clone()
            });
            self.program.feeder("last", move || vec![last as i32]);
            self.program.run()?;
            let logits = self
                .logits
                .lock()
                .expect("nobody panics while it is locked");
            tokens.push(draw(&logits, temperature, random) as u32);
        }
        Ok(())
    }
}
