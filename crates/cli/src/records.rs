//! Records which files were linked with derivatives, and by which driver.
//!
//! Cargo does not know that a finished program depends on the driver. So before a build, programs that another driver linked are removed,
//! and cargo links them again; nothing else is rebuilt.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The folder in the target directory for everything of ours.
pub const FOLDER: &str = "ferrozyme";

/// A file that was linked with derivatives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The file.
    pub output: PathBuf,
    /// The driver that made the derivatives.
    pub driver: String,
}

/// Identifies this very driver: its version and the hash of its program.
pub fn driver_identity() -> &'static str {
    static IDENTITY: OnceLock<String> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let program = std::env::current_exe().and_then(std::fs::read);
        let hash = program.map_or_else(
            |_| "unknown".to_owned(),
            |bytes| blake3::hash(&bytes).to_hex()[..32].to_owned(),
        );
        format!("{} {hash}", env!("CARGO_PKG_VERSION"))
    })
}

/// Writes a record. Where that fails, a later driver does not link the file again by itself.
pub fn write(folder: &Path, record: &Record) {
    let links = folder.join("links");
    let name = blake3::hash(record.output.as_os_str().as_encoded_bytes()).to_hex();
    if let Ok(text) = serde_json::to_vec(record) {
        let _ = std::fs::create_dir_all(&links);
        let _ = std::fs::write(links.join(format!("{}.json", &name[..32])), text);
    }
}

/// All records.
pub fn read(folder: &Path) -> Vec<Record> {
    let Ok(entries) = std::fs::read_dir(folder.join("links")) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| serde_json::from_slice(&std::fs::read(entry.path()).ok()?).ok())
        .collect()
}

/// Removes the files that another driver linked, so that cargo links them again.
pub fn remove_stale_links(folder: &Path) {
    let records = read(folder);
    if records.is_empty() {
        return;
    }
    let driver = driver_identity();
    for record in records {
        if record.driver != driver {
            // Files that are gone need no removal, and files that cannot be removed stay.
            let _ = std::fs::remove_file(&record.output);
        }
    }
}
