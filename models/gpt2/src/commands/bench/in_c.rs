//! The same model in C: a program of `models/gpt2-c` measures it, and says so in lines of JSON.

use super::row::Row;
use anyhow::{Context, Result, bail};
use gpt2::{Batch, Config};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// What to measure: single layers, the whole model, or both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) layers: bool,
    pub(super) whole: bool,
    pub(super) rounds: u64,
    pub(super) threads: usize,
}

/// Runs the program and hands on its rows as they come.
pub(super) fn measure(
    program: &Path,
    config: &Config,
    batch: &Batch,
    wanted: Wanted,
    mut add: impl FnMut(Row),
) -> Result<()> {
    let mut command = Command::new(program);
    command.arg("bench").stdout(Stdio::piped());
    match wanted {
        Wanted { whole: false, .. } => command.arg("layers"),
        Wanted { layers: false, .. } => command.arg("whole"),
        _ => &mut command,
    };
    for (name, number) in [
        ("layers", config.layers),
        ("heads", config.heads),
        ("channels", config.channels),
        ("vocabulary", config.vocabulary),
        ("padded_vocabulary", config.padded_vocabulary),
        ("max_steps", config.max_steps),
        ("sequences", batch.sequences),
        ("steps", batch.steps),
        ("rounds", wanted.rounds as usize),
        ("threads", wanted.threads),
    ] {
        command.arg(format!("{name}={number}"));
    }
    let name = program.display();
    let mut child = command
        .spawn()
        .with_context(|| format!("{name} cannot be run"))?;
    for line in child
        .stdout
        .take()
        .into_iter()
        .flat_map(|pipe| BufReader::new(pipe).lines())
    {
        let line = line?;
        let row = serde_json::from_str(&line)
            .with_context(|| format!("{name} printed `{line}`, which is no measurement"))?;
        add(row);
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{name} ended with {status}");
    }
    Ok(())
}
