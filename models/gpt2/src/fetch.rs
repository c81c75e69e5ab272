//! Downloads: public files that are known by their checksums.

use crate::files::replace::replace;
use crate::files::{FileError, Problem};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// A public file.
#[derive(Clone, Copy, Debug)]
pub struct Download {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its file name.
    pub file: &'static str,
    /// Where it is.
    pub server: &'static str,
    /// Its path there.
    pub path: &'static str,
    /// Its SHA-256, in hexadecimal.
    pub checksum: &'static str,
}

/// All files that can be fetched.
pub const DOWNLOADS: [Download; 2] = [
    Download {
        name: "tinyshakespeare",
        file: "tinyshakespeare.txt",
        server: "https://raw.githubusercontent.com",
        path: "/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
        checksum: "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    },
    Download {
        name: "124M",
        file: "gpt2-124M.safetensors",
        server: "https://huggingface.co",
        path: "/openai-community/gpt2/resolve/607a30d783dfa663caf39e06633721c8d4cfcd7e/model.safetensors",
        checksum: "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707",
    },
];

/// Downloads `url` to `path`, if its SHA-256 is `checksum`. `progress` is told how many bytes there are so far, and how many will be, if
/// that is known.
pub fn download(
    url: &str,
    path: &Path,
    checksum: &str,
    mut progress: impl FnMut(u64, Option<u64>),
) -> Result<(), FileError> {
    replace(path, |writer| {
        let response = ureq::get(url).call().map_err(io::Error::other)?;
        let header = response.headers().get("content-length");
        let length = header.and_then(|length| length.to_str().ok()?.parse().ok());
        let mut body = response
            .into_body()
            .into_with_config()
            .limit(u64::MAX)
            .reader();
        let mut done = 0;
        let sum = checksum_of(&mut body, |bytes| {
            writer.write_all(bytes)?;
            done += bytes.len() as u64;
            progress(done, length);
            Ok(())
        })?;
        if sum != checksum {
            let message = format!("{url} has the SHA-256 {sum}, not {checksum}: nothing is kept");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(())
    })
}

/// Whether the file at `path` is there, with this checksum.
pub fn is_there(path: &Path, checksum: &str) -> Result<bool, FileError> {
    let attempt = || match File::open(path) {
        Ok(mut file) => Ok(checksum_of(&mut file, |_| Ok(()))? == checksum),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    };
    attempt().map_err(|error| Problem::Io(error).at(path))
}

/// Reads to the end, passes on the bytes, and returns their SHA-256 in hexadecimal.
fn checksum_of(
    reader: &mut impl Read,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<String> {
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer)? {
            0 => break,
            count => {
                sum.update(&buffer[..count]);
                each(&buffer[..count])?;
            }
        }
    }
    let sum = sum.finalize();
    Ok(sum.iter().map(|byte| format!("{byte:02x}")).collect())
}
