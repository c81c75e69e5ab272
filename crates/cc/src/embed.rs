//! Embeds a copy of a unit's bitcode in its object, for requests in other units: in a section that the linker drops.

use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;

/// The section's name.
pub(crate) const SECTION: &str = ".ferrozyme.unit";

/// The magic number of a record.
const MAGIC: &[u8; 8] = b"FZUNIT02";

/// A unit's properties beside its bitcode.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// Identifies the unit.
    pub(crate) identity: String,
    /// The source file.
    pub(crate) name: String,
    /// Whether it calls derivatives that are left for the link.
    pub(crate) deferred: bool,
    pub(crate) strip_debug_information: bool,
    pub(crate) level: u8,
    /// Whether derivatives have one version only. Objects of earlier drivers do not say.
    #[serde(default)]
    pub(crate) no_multiversion: bool,
    /// The options that clang made the object with.
    pub(crate) arguments: Vec<String>,
    /// The symbols that it exports.
    pub(crate) defined: Vec<String>,
}

impl Record {
    /// The record of a unit that is in no object.
    pub(crate) fn of_library() -> Record {
        Record {
            identity: "library".to_owned(),
            name: "library.c".to_owned(),
            deferred: false,
            strip_debug_information: true,
            level: 2,
            no_multiversion: false,
            arguments: Vec::new(),
            defined: Vec::new(),
        }
    }

    /// Writes a record: magic number, lengths, description, bitcode.
    pub(crate) fn write(&self, bitcode: &[u8], to: &Path) -> std::io::Result<()> {
        let description = serde_json::to_vec(self)?;
        let mut file = std::io::BufWriter::new(std::fs::File::create(to)?);
        file.write_all(MAGIC)?;
        file.write_all(&(description.len() as u64).to_le_bytes())?;
        file.write_all(&(bitcode.len() as u64).to_le_bytes())?;
        file.write_all(&description)?;
        file.write_all(bitcode)?;
        file.flush()
    }
}

/// The records in a section: one, or several after `ld -r`.
pub(crate) fn read_all(mut section: &[u8]) -> Vec<(Record, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some((record, bitcode, rest)) = read_one(section) {
        all.push((record, bitcode.to_vec()));
        section = rest;
    }
    all
}

fn read_one(section: &[u8]) -> Option<(Record, &[u8], &[u8])> {
    // After `ld -r` there is padding between sections.
    let start = section
        .windows(MAGIC.len())
        .position(|here| here == MAGIC)?;
    let section = &section[start + MAGIC.len()..];
    let number = |at: usize| {
        let bytes = section.get(at..at + 8)?.try_into().ok()?;
        usize::try_from(u64::from_le_bytes(bytes)).ok()
    };
    let (description, bitcode) = (number(0)?, number(8)?);
    let end = 16_usize.checked_add(description)?;
    let record = serde_json::from_slice(section.get(16..end)?).ok()?;
    let rest = section.get(end..)?;
    Some((record, rest.get(..bitcode)?, rest.get(bitcode..)?))
}

/// The assembly that puts a file into the section. `e`: the linker leaves it out.
pub(crate) fn assembly(file: &Path) -> String {
    let path = file
        .to_string_lossy()
        .replace('\\', "\\\\")
        .replace('"', "\\\"");
    format!(".pushsection {SECTION},\"e\",@progbits\n.incbin \"{path}\"\n.popsection")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let record = Record {
            identity: "0123".to_owned(),
            name: "a.c".to_owned(),
            deferred: true,
            strip_debug_information: false,
            level: 2,
            no_multiversion: true,
            arguments: vec!["-O2".to_owned()],
            defined: vec!["f".to_owned()],
        };
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("record");
        record.write(b"bitcode", &path).expect("written");
        let mut bytes = std::fs::read(&path).expect("read");
        bytes.extend([0, 0, 0]);
        bytes.extend(std::fs::read(&path).expect("read"));
        let all = read_all(&bytes);
        assert_eq!(all.len(), 2);
        assert_eq!(all[1], (record, b"bitcode".to_vec()));
        assert!(read_all(&bytes[..40]).is_empty());
    }
}
