//! The units that are embedded in the files of a link.

use crate::arguments::{Arguments, Item};
use crate::embed::{self, Record};
use ferrozyme_driver::{Input, Inputs, Origin};
use object::read::archive::ArchiveFile;
use object::{Object, ObjectSection, ObjectSymbol};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// All units of a link, in the order of the link line.
#[derive(Default)]
pub(crate) struct Units {
    units: Vec<Unit>,
    /// Which unit defines a symbol.
    defining: HashMap<String, usize>,
}

/// A unit.
pub(crate) struct Unit {
    pub(crate) record: Record,
    pub(crate) bitcode: Vec<u8>,
    pub(crate) place: Place,
}

/// Where a unit was found.
pub(crate) enum Place {
    Object(PathBuf),
    /// In a static library.
    Member,
    /// In an object with other units.
    Merged(PathBuf),
}

impl Units {
    /// Reads the files of a link.
    pub(crate) fn find(arguments: &Arguments, objects: &[PathBuf]) -> Units {
        let mut units = Units::default();
        let mut objects = objects.iter();
        let folders = arguments.folders(&["-L"]);
        for item in &arguments.items {
            match item {
                Item::Source { .. } => {
                    if let Some(object) = objects.next() {
                        units.add_file(object);
                    }
                }
                Item::Other { path, .. } => units.add_file(path),
                Item::Option(option) => {
                    if let Some(library) = static_library(option, &folders) {
                        units.add_file(&library);
                    }
                }
            }
        }
        units
    }

    fn add_file(&mut self, path: &Path) {
        // What cannot be read is for the linker to complain about.
        let Ok(bytes) = std::fs::read(path) else {
            return;
        };
        if let Ok(archive) = ArchiveFile::parse(bytes.as_slice()) {
            for member in archive.members().flatten() {
                if let Ok(member) = member.data(bytes.as_slice()) {
                    self.add_object(member, None);
                }
            }
            return;
        }
        self.add_object(&bytes, Some(path));
    }

    /// Adds the units of an object, which is in a static library if it has no path.
    fn add_object(&mut self, bytes: &[u8], path: Option<&Path>) {
        let Ok(file) = object::File::parse(bytes) else {
            return;
        };
        let Some(section) = file.section_by_name(embed::SECTION) else {
            return;
        };
        let records = embed::read_all(section.data().unwrap_or_default());
        let merged = records.len() > 1;
        for (record, bitcode) in records {
            let index = self.units.len();
            for symbol in &record.defined {
                self.defining.entry(symbol.clone()).or_insert(index);
            }
            self.units.push(Unit {
                record,
                bitcode,
                place: match path {
                    Some(path) if merged => Place::Merged(path.to_owned()),
                    Some(path) => Place::Object(path.to_owned()),
                    None => Place::Member,
                },
            });
            if merged {
                continue;
            }
            // Aliases, too.
            for symbol in file.symbols() {
                if symbol.is_definition()
                    && symbol.is_global()
                    && let Ok(name) = symbol.name()
                {
                    self.defining.entry(name.to_owned()).or_insert(index);
                }
            }
        }
    }

    /// Adds bodies of functions that no unit defines.
    pub(crate) fn add_library(&mut self, bitcode: Vec<u8>) {
        let index = self.units.len();
        self.units.push(Unit {
            record: Record::of_library(),
            bitcode,
            place: Place::Member,
        });
        for symbol in crate::library::SYMBOLS.iter() {
            self.defining.entry((*symbol).to_owned()).or_insert(index);
        }
    }

    /// Whether derivatives are still to be made.
    pub(crate) fn any_deferred(&self) -> bool {
        self.units.iter().any(|unit| unit.record.deferred)
    }

    /// The optimisation level that the derivatives get.
    pub(crate) fn highest_level(&self) -> u8 {
        let deferred = self.units.iter().filter(|unit| unit.record.deferred);
        deferred.map(|unit| unit.record.level).max().unwrap_or(0)
    }

    /// Whether the derivatives may have versions for higher levels of the processor.
    pub(crate) fn multiversion(&self) -> bool {
        let mut deferred = self.units.iter().filter(|unit| unit.record.deferred);
        deferred.all(|unit| !unit.record.no_multiversion)
    }

    /// A unit by its number.
    pub(crate) fn unit(&self, index: usize) -> &Unit {
        &self.units[index]
    }
}

impl Inputs for Units {
    fn requesting(&self) -> Vec<usize> {
        let deferred = self.units.iter().enumerate();
        deferred
            .filter(|(_, unit)| unit.record.deferred)
            .map(|(index, _)| index)
            .collect()
    }

    fn registering(&self) -> Vec<usize> {
        (0..self.units.len()).collect()
    }

    fn program(&self) -> Vec<usize> {
        // Units that are compiled already cannot export local functions under new names.
        Vec::new()
    }

    fn get(&self, index: usize) -> Result<Input<'_>, String> {
        let unit = self
            .units
            .get(index)
            .ok_or_else(|| format!("there is no unit {index}"))?;
        Ok(Input {
            name: unit.record.name.clone(),
            bitcode: Cow::Borrowed(&unit.bitcode),
            origin: Origin::Unit,
        })
    }

    fn defining(&self, symbol: &str) -> Option<usize> {
        self.defining.get(symbol).copied()
    }

    fn identity(&self, index: usize) -> String {
        self.units[index].record.identity.clone()
    }
}

/// The static library that `-l` finds in a folder that the user names.
fn static_library(option: &[std::ffi::OsString], folders: &[PathBuf]) -> Option<PathBuf> {
    let name = match option {
        [flag, name] if flag == "-l" => name.to_str()?,
        [one] => one.to_str()?.strip_prefix("-l")?,
        _ => return None,
    };
    let file = match name.strip_prefix(':') {
        Some(file) => file.to_owned(),
        None => format!("lib{name}.a"),
    };
    folders
        .iter()
        .map(|folder| folder.join(&file))
        .find(|path| path.is_file())
}
