//! Writing a file so that it is there as a whole or not at all, whenever the program is killed.

use super::{FileError, Problem};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Replaces the file at `path` atomically: `write` fills a temporary file, which is synced and renamed. The old file stays until then.
pub fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), FileError> {
    let beside = beside(path);
    let attempt = || {
        let mut writer = BufWriter::with_capacity(1 << 20, File::create(&beside)?);
        write(&mut writer)?;
        let file = writer.into_inner().map_err(|error| error.into_error())?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        sync_folder(path)
    };
    attempt().map_err(|error: io::Error| {
        // The half-written file is of no use; that it cannot be removed would hide the real error.
        let _ = fs::remove_file(&beside);
        Problem::Io(error).at(path)
    })
}

/// The name under which a file is written before it is complete.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

/// A rename lasts when its folder has been written.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

/// Writes bytes that are already there.
pub fn replace_bytes(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace(path, |writer| writer.write_all(bytes))
}
