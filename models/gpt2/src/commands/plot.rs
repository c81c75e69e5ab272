//! `gpt2 plot`: the losses of several runs in one picture.

use anyhow::{Result, bail};
use clap::Args;
use gpt2::curve::{self, curves_of};
use gpt2::log;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Folders that `gpt2 train --out` wrote. Curves are named after them
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// The picture to write
    #[arg(short, long, default_value = "curves.svg")]
    out: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut curves = Vec::new();
    for run in &options.runs {
        let entries = log::read(&run.join("log.jsonl"))?;
        if entries.is_empty() {
            bail!("{} has no log of a run", run.display());
        }
        let name = run.file_name().unwrap_or(run.as_os_str());
        curves.extend(curves_of(&name.to_string_lossy(), &entries));
    }
    curve::save(&options.out, "Loss of GPT-2", &curves)?;
    println!("wrote {}", options.out.display());
    Ok(())
}
