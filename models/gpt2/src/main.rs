//! `gpt2`: trains, samples, evaluates and measures GPT-2. See `gpt2 help`.

mod commands;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// GPT-2 in plain Rust loops, trained by the gradient that Ferrozyme makes of them
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train a model, from random parameters or from a file
    Train(commands::train::Options),
    /// Let a model write
    Sample(commands::sample::Options),
    /// Compute a model's loss on a text
    Eval(commands::eval::Options),
    /// Compare the automatic gradient with the hand-written one, and with finite differences
    Gradcheck(commands::gradcheck::Options),
    /// Measure the automatic gradient beside the hand-written one
    Bench(commands::bench::Options),
    /// Make the figures of a comparison: one batch learnt by heart, training, and times, automatic against hand-written
    Figures(commands::figures::Options),
    /// Draw the losses of several runs
    Plot(commands::plot::Options),
    /// Download tinyshakespeare or published weights
    Fetch(commands::fetch::Options),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Train(options) => commands::train::run(&options),
        Command::Sample(options) => commands::sample::run(&options),
        Command::Eval(options) => commands::eval::run(&options),
        Command::Gradcheck(options) => commands::gradcheck::run(&options),
        Command::Bench(options) => commands::bench::run(&options),
        Command::Figures(options) => commands::figures::run(&options),
        Command::Plot(options) => commands::plot::run(&options),
        Command::Fetch(options) => commands::fetch::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
