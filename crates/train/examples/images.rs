//! Classifies images with two convolutions.
//!
//! ```text
//! cargo run --release -p ferrozyme-train --example images                              images of digits that it draws itself
//! cargo run --release -p ferrozyme-train --example images -- IMAGES LABELS             IDX files of 28×28 images, as MNIST's
//! ```
//!
//! Writes log, curve and checkpoint to `target/images`; a run that is stopped goes on from there. The last tenth of the images is not trained on: how many of them are recognised is printed.

use ferrozyme_cpu::compile;
use ferrozyme_graph::{Graph, INDEX, Reduction, TensorType};
use ferrozyme_nn::loss::cross_entropy;
use ferrozyme_nn::{
    AdamW, Conv2d, Dropout, Flatten, Layer, Linear, Module, Relu, Schedule, Sequential, Window,
};
use ferrozyme_train::{Trainer, load, save, training_loop};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

const SIDE: usize = 28;
const BATCH: usize = 32;
const STEPS: u64 = 1500;

fn network(g: &mut Graph) -> Sequential {
    let strided = |size: usize| Window::of(size).with_stride(2).with_padding(size / 2);
    Sequential::new((
        Conv2d::new(g, "first", 1, 8, strided(5)),
        Relu,
        Conv2d::new(g, "second", 8, 16, strided(3)),
        Relu,
        Flatten,
        Dropout::new(g, "dropout", 0.2),
        Linear::new(g, "last", 16 * SIDE / 4 * SIDE / 4, 10),
    ))
}

/// Images with values between 0 and 1, and what they show.
struct Data {
    images: Vec<f32>,
    labels: Vec<i32>,
}

impl Data {
    fn rows(&self, rows: impl Iterator<Item = usize>) -> (Vec<f32>, Vec<i32>) {
        const SIZE: usize = SIDE * SIDE;
        let (mut images, mut labels) = (Vec::new(), Vec::new());
        for row in rows {
            images.extend_from_slice(&self.images[row * SIZE..(row + 1) * SIZE]);
            labels.push(self.labels[row]);
        }
        (images, labels)
    }

    /// How many are trained on.
    fn trained(&self) -> usize {
        self.labels.len() / 10 * 9
    }
}

/// A generator of random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// Digits as a display of seven bars shows them, at other places and in other sizes, with noise.
fn draw(count: usize) -> Data {
    // Bars: top, upper left, upper right, middle, lower left, lower right, bottom.
    const BARS: [u8; 10] = [
        0b1110111, 0b0010010, 0b1011101, 0b1011011, 0b0111010, 0b1101011, 0b1101111, 0b1010010,
        0b1111111, 0b1111011,
    ];
    let mut random = Random(1);
    let (mut images, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let digit = random.below(10);
        let (width, height) = (6 + random.below(6) as i64, 4 + random.below(4) as i64);
        let left = 2 + random.below(12) as i64;
        let top = 2 + random.below(8) as i64;
        for y in 0..SIDE as i64 {
            for x in 0..SIDE as i64 {
                let (x, y) = (x - left, y - top);
                let across = (0..=width).contains(&x);
                let on = |row: i64| (y - row * height).abs() <= 1 && across;
                let beside = |column: i64, row: i64| {
                    (x - column * width).abs() <= 1
                        && (row * height..=(row + 1) * height).contains(&y)
                };
                let bars = [
                    on(0),
                    beside(0, 0),
                    beside(1, 0),
                    on(1),
                    beside(0, 1),
                    beside(1, 1),
                    on(2),
                ];
                let lit = bars
                    .iter()
                    .enumerate()
                    .any(|(bar, &is_on)| is_on && BARS[digit as usize] >> (6 - bar) & 1 == 1);
                let noise = random.below(1000) as f32 / 1000.0;
                images.push(if lit { 1.0 - 0.5 * noise } else { 0.5 * noise });
            }
        }
        labels.push(digit as i32);
    }
    Data { images, labels }
}

/// Two files in the format of MNIST: a magic number, the sizes of the axes, and bytes.
fn read(images: &Path, labels: &Path) -> Result<Data, Box<dyn Error>> {
    let file = |path: &Path, axes: usize| -> Result<(Vec<usize>, Vec<u8>), Box<dyn Error>> {
        let bytes = std::fs::read(path)?;
        let word = |at: usize| -> Option<usize> {
            let word = bytes.get(4 * at..4 * at + 4)?;
            Some(u32::from_be_bytes(word.try_into().ok()?) as usize)
        };
        let wrong = || {
            format!(
                "{} is no IDX file of bytes with {axes} axes",
                path.display()
            )
        };
        if word(0) != Some(0x800 + axes) {
            return Err(wrong().into());
        }
        let sizes: Option<Vec<usize>> = (1..=axes).map(word).collect();
        let sizes = sizes.ok_or_else(wrong)?;
        let data = bytes[4 + 4 * axes..].to_vec();
        if data.len() != sizes.iter().product::<usize>() {
            return Err(wrong().into());
        }
        Ok((sizes, data))
    };
    let ((shape, pixels), (count, labels)) = (file(images, 3)?, file(labels, 1)?);
    if shape[1..] != [SIDE, SIDE] || shape[0] != count[0] || shape[0] < 20 {
        return Err(format!(
            "images of {shape:?} and {count:?} labels do not fit: at least 20 of 28×28 are needed"
        )
        .into());
    }
    Ok(Data {
        images: pixels
            .iter()
            .map(|&pixel| f32::from(pixel) / 255.0)
            .collect(),
        labels: labels.iter().map(|&label| i32::from(label)).collect(),
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let data = Arc::new(match &arguments[..] {
        [images, labels] => read(Path::new(images), Path::new(labels))?,
        _ => draw(8000),
    });
    let folder = Path::new("target/images");

    let mut g = Graph::new();
    let net = network(&mut g);
    let adam = AdamW::new(&mut g, 0.0, 0.01, &net.parameters());
    let schedule = Schedule::cosine(3e-3, 1e-4, STEPS as u32).after_warmup(20);
    let states = training_loop(&mut g, |g, step| {
        let images = g.feed("images", [BATCH, 1, SIDE, SIDE]);
        let labels = g.feed_of("labels", TensorType::new(INDEX, [BATCH]));
        let logits = net.forward(g, images);
        let loss = cross_entropy(g, logits, labels);
        let gradients = g.backward(loss);
        let rate = schedule.rate(g, step);
        adam.step_at(g, rate, &gradients);
        loss
    });
    let program = compile(&g)?;
    println!("{}", program.report());
    let trainer = Trainer::new(program, states).in_folder(folder)?;
    let mut trainer = trainer
        .with_checkpoint_every(100)
        .with_examples_per_step(BATCH as u64);
    // The same images for the same step, in whatever order steps are fed.
    let rows = |step: u64, data: &Data| {
        let mut random = Random(step.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let count = data.trained() as u64;
        let rows: Vec<usize> = (0..BATCH).map(|_| random.below(count) as usize).collect();
        data.rows(rows.into_iter())
    };
    let source = data.clone();
    trainer.feeder("images", move |step| rows(step, &source).0)?;
    let source = data.clone();
    trainer.feeder("labels", move |step| rows(step, &source).1)?;
    let loss = trainer.train(STEPS)?;
    println!(
        "loss {loss:.4}; curve in {}",
        folder.join("curve.svg").display()
    );
    let file = folder.join("network.safetensors");
    save(&file, &net, trainer.program())?;
    evaluate(&file, &data)
}

/// How many of the images that were not trained on a network from a file recognises.
fn evaluate(file: &Path, data: &Data) -> Result<(), Box<dyn Error>> {
    let rows = data.trained()..data.labels.len();
    let count = rows.len();
    let (images, labels) = data.rows(rows);
    let mut g = Graph::new();
    let net = network(&mut g);
    let x = g.feed("images", [count, 1, SIDE, SIDE]);
    let logits = net.evaluate(&mut g, x);
    let best = g.reduce(Reduction::Argmax, logits, &[1]);
    g.receive("best", &[best]);
    let mut program = compile(&g)?;
    load(file, &net, &mut program)?;
    program.feeder("images", move || images.clone());
    program.receiver("best", move |tensors| {
        let pairs = tensors[0].elements.iter().zip(&labels);
        let right = pairs
            .filter(|&(&best, &label)| best == f64::from(label))
            .count();
        println!("{right} of {count} are recognised");
    });
    Ok(program.run()?)
}
