//! `gpt2 gradcheck`: is the automatic gradient right?

use super::BatchOptions;
use anyhow::{Result, bail};
use clap::Args;
use gpt2::check::{Case, Difference, compare};
use gpt2::{Batch, Config};

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Compare with the hand-written gradient in single precision on a model of this name (tiny, small, 124M, …), besides the checks
    /// in double precision on very small models
    #[arg(short, long)]
    model: Option<String>,
    #[command(flatten)]
    batch: BatchOptions,
    /// For parameters and tokens
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut wrong = 0;
    for (layers, heads, channels, sequences, steps) in
        [(1, 1, 4, 1, 2), (2, 2, 8, 2, 5), (2, 3, 24, 1, 9)]
    {
        let config = Config {
            layers,
            heads,
            channels,
            vocabulary: 11,
            padded_vocabulary: 16,
            max_steps: 9,
        };
        let batch = Batch { sequences, steps };
        println!(
            "{layers} layers, {heads} heads, {channels} channels, {sequences} × {steps} tokens, double precision"
        );
        let mut case = Case::<f64>::random(config, batch, 0.3, options.seed);
        let (_, automatic) = case.automatic();
        let (_, manual) = case.manual();
        println!("  automatic and hand-written");
        wrong += report(&compare(&config, &manual, &automatic), 1e-10);
        println!("  automatic and finite differences");
        let differences = case.finite_differences(&automatic, 200, 1e-3);
        wrong += report(&compare(&config, &differences, &automatic), 1e-6);
    }
    if let Some(model) = &options.model {
        let (config, batch) = (super::named(model)?, options.batch.batch());
        if batch.steps > config.max_steps {
            bail!(
                "the model has {} positions, fewer than --length",
                config.max_steps
            );
        }
        println!(
            "{model}, {} × {} tokens, single precision",
            batch.sequences, batch.steps
        );
        let case = Case::<f32>::random(config, batch, 0.02, options.seed);
        let (loss, automatic) = case.automatic();
        let (manual_loss, manual) = case.manual();
        println!("  losses {loss} (automatic) and {manual_loss} (hand-written)");
        wrong += report(&compare(&config, &manual, &automatic), 1e-4);
    }
    if wrong > 0 {
        bail!("{wrong} tensors differ by too much");
    }
    println!("all gradients agree");
    Ok(())
}

/// Prints the differences and returns how many are too large.
fn report(differences: &[Difference], tolerance: f64) -> usize {
    let mut wrong = 0;
    for Difference {
        name,
        largest,
        relative,
    } in differences
    {
        let good = *relative <= tolerance;
        wrong += usize::from(!good);
        println!(
            "    {name:9} largest {largest:9.2e}  relative difference {relative:8.1e}  {}",
            if good { "good" } else { "WRONG" }
        );
    }
    wrong
}
