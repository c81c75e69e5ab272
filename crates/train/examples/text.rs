//! Learns to write: a recurrent network that guesses the next character of a text.
//!
//! ```text
//! cargo run --release -p ferrozyme-train --example text                 a text that it makes up
//! cargo run --release -p ferrozyme-train --example text -- FILE         a text of yours
//! ```
//!
//! Writes log, curve and checkpoint to `target/text`, and prints what the network writes.

use ferrozyme_cpu::compile;
use ferrozyme_graph::{Graph, INDEX, Tensor, TensorType};
use ferrozyme_nn::loss::cross_entropy;
use ferrozyme_nn::{Adam, Embedding, Gru, Layer, Linear, Module, Schedule, clip_by_norm, softmax};
use ferrozyme_train::{Trainer, load, save, training_loop};
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex};

const LENGTH: usize = 32;
const BATCH: usize = 16;
const SIZE: usize = 64;
const STEPS: u64 = 400;

#[derive(Module)]
struct Writer {
    characters: Embedding,
    memory: Gru,
    head: Linear,
}

impl Writer {
    fn new(g: &mut Graph, characters: usize) -> Writer {
        Writer {
            characters: Embedding::new(g, "characters", characters, 16),
            memory: Gru::new(g, "memory", 16, SIZE),
            head: Linear::new(g, "head", SIZE, characters),
        }
    }

    /// The logits of the characters behind those of `text`, and the state of the memory.
    fn guess(&self, g: &mut Graph, text: Tensor, state: Option<Tensor>) -> (Tensor, Tensor) {
        let x = self.characters.forward(g, text);
        let (outputs, state) = self.memory.run(g, x, state);
        (self.head.forward(g, outputs), state)
    }
}

/// Sentences that are put together at random.
fn sentences() -> String {
    const WHO: [&str; 5] = [
        "the miller",
        "a grey cat",
        "my aunt",
        "the old ferry",
        "a small child",
    ];
    const DOES: [&str; 5] = [
        "looks for",
        "forgets",
        "brings home",
        "sings about",
        "waits for",
    ];
    const WHAT: [&str; 5] = [
        "the river",
        "a lost key",
        "warm bread",
        "two lanterns",
        "the evening",
    ];
    let mut state = 1u32;
    let mut choose = |from: &[&'static str; 5]| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        from[(state >> 16) as usize % 5]
    };
    let mut sentence = || format!("{} {} {}.\n", choose(&WHO), choose(&DOES), choose(&WHAT));
    (0..500).map(|_| sentence()).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let text = match std::env::args().nth(1) {
        Some(path) => std::fs::read_to_string(path)?,
        None => sentences(),
    };
    let mut alphabet: Vec<char> = text.chars().collect();
    alphabet.sort_unstable();
    alphabet.dedup();
    let number = |character| {
        alphabet
            .binary_search(&character)
            .expect("it is in the text")
    };
    let text: Arc<Vec<i32>> = Arc::new(text.chars().map(|c| number(c) as i32).collect());
    if text.len() < 2 * LENGTH {
        return Err(format!("the text needs at least {} characters", 2 * LENGTH).into());
    }
    let folder = Path::new("target/text");

    let mut g = Graph::new();
    let writer = Writer::new(&mut g, alphabet.len());
    let parameters = writer.parameters();
    let adam = Adam::new(&mut g, 0.0, &parameters);
    let schedule = Schedule::cosine(0.01, 0.0005, STEPS as u32).after_warmup(10);
    let states = training_loop(&mut g, |g, step| {
        let ty = TensorType::new(INDEX, [LENGTH, BATCH]);
        let (text, next) = (g.feed_of("text", ty.clone()), g.feed_of("next", ty));
        let (logits, _) = writer.guess(g, text, None);
        let loss = cross_entropy(g, logits, next);
        let mut gradients = g.backward(loss);
        clip_by_norm(g, &mut gradients, &parameters, 1.0);
        let rate = schedule.rate(g, step);
        adam.step_at(g, rate, &gradients);
        loss
    });
    let program = compile(&g)?;
    println!("{}", program.report());
    let mut trainer = Trainer::new(program, states)
        .in_folder(folder)?
        .with_checkpoint_every(100)
        .with_examples_per_step((LENGTH * BATCH) as u64);
    // Stretches of the text that depend on the step, moved by 0 or 1.
    let stretch = |text: Arc<Vec<i32>>, by: usize| {
        move |step: u64| -> Vec<i32> {
            let start = |row: u64| {
                let mixed = (step * BATCH as u64 + row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                (mixed >> 20) as usize % (text.len() - LENGTH)
            };
            let at = |position: usize, row: usize| text[start(row as u64) + position + by];
            let all = (0..LENGTH).flat_map(|position| (0..BATCH).map(move |row| (position, row)));
            all.map(|(position, row)| at(position, row)).collect()
        }
    };
    trainer.feeder("text", stretch(text.clone(), 0))?;
    trainer.feeder("next", stretch(text, 1))?;
    let loss = trainer.train(STEPS)?;
    println!(
        "loss {loss:.4}; curve in {}",
        folder.join("curve.svg").display()
    );
    let file = folder.join("writer.safetensors");
    save(&file, &writer, trainer.program())?;
    write(&file, &alphabet)
}

/// Has the network write 300 characters: a program of its own, with the parameters from the file.
fn write(file: &Path, alphabet: &[char]) -> Result<(), Box<dyn Error>> {
    let mut g = Graph::new();
    let writer = Writer::new(&mut g, alphabet.len());
    // The memory lasts from run to run.
    let memory = g.parameter("state", [1, SIZE], 0.0);
    let last = g.feed_of("character", TensorType::new(INDEX, [1, 1]));
    let state = g.read(memory);
    let (logits, state) = writer.guess(&mut g, last, Some(state));
    g.update(memory, state);
    let logits = g.reshape(logits, [alphabet.len()]);
    let probabilities = softmax(&mut g, logits);
    g.receive("probabilities", &[probabilities]);
    let mut program = compile(&g)?;
    load(file, &writer, &mut program)?;
    let character = Arc::new(Mutex::new(0));
    let (feed, receive) = (character.clone(), character.clone());
    let mut random = 7u32;
    program.receiver("probabilities", move |tensors| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let mut rest = f64::from(random >> 8) / f64::from(1u32 << 24);
        let below = |&probability: &f64| {
            rest -= probability;
            rest < 0.0
        };
        let chosen = tensors[0].elements.iter().position(below);
        *receive.lock().expect("no thread panics") = chosen.unwrap_or(0) as i32;
    });
    for _ in 0..300 {
        // A feeder is ahead of the program; a new one starts with the character of this run.
        let now = *feed.lock().expect("no thread panics");
        program.feeder("character", move || vec![now]);
        program.run()?;
        let now = *character.lock().expect("no thread panics");
        print!("{}", alphabet[now as usize]);
    }
    println!();
    Ok(())
}
