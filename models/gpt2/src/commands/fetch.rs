//! `gpt2 fetch`: downloads tinyshakespeare and published weights.

use anyhow::{Result, bail};
use clap::Args;
use gpt2::fetch::{DOWNLOADS, download, is_there};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// What to download: tinyshakespeare, 124M
    #[arg(required = true)]
    names: Vec<String>,
    /// The folder to download to
    #[arg(short, long, default_value = ".")]
    out: PathBuf,
    /// Another server that has the same paths, such as http://localhost:8000
    #[arg(long)]
    server: Option<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    for name in &options.names {
        let Some(file) = DOWNLOADS.iter().find(|file| file.name == name) else {
            let known: Vec<&str> = DOWNLOADS.iter().map(|file| file.name).collect();
            bail!(
                "there is no `{name}` to download; there are {}",
                known.join(" and ")
            );
        };
        let path = options.out.join(file.file);
        if is_there(&path, file.checksum)? {
            println!("{} is already there", path.display());
            continue;
        }
        let server = options.server.as_deref().unwrap_or(file.server);
        let url = format!("{}{}", server.trim_end_matches('/'), file.path);
        let bar = ProgressBar::new(0);
        let style = "{bar:30} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left";
        bar.set_style(ProgressStyle::with_template(style)?.progress_chars("━╸ "));
        download(&url, &path, file.checksum, |done, length| {
            bar.set_length(length.unwrap_or(done));
            bar.set_position(done);
        })?;
        bar.finish();
        println!("{} is complete", path.display());
    }
    Ok(())
}
