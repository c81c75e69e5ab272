//! Linking: derivatives that need several units are made from the bitcode in objects and static libraries.

use crate::Failure;
use crate::arguments::{Arguments, Item};
use crate::clang::Clang;
use crate::compile::{driver_options, unreadable};
use crate::render;
use crate::units::{Place, Units};
use ferrozyme_driver::{UnitOptions, compile_unit, differentiate};
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Links; `objects` are those of the sources, in order.
pub(crate) fn link(
    clang: &Clang,
    arguments: &Arguments,
    objects: &[PathBuf],
    folder: &Path,
) -> Result<(), Failure> {
    let mut units = Units::find(arguments, objects);
    let mut changes = Changes::default();
    if units.any_deferred() {
        units.add_library(crate::library::compile(clang, folder)?);
        changes = make_deferred(clang, arguments, &units, folder)?;
    }
    let mut objects = objects.iter();
    let mut command: Vec<OsString> = Vec::new();
    if let Some(output) = &arguments.output {
        command.extend(["-o".into(), output.into()]);
    }
    // Before the libraries that they need.
    command.extend(changes.added.iter().map(OsString::from));
    for item in &arguments.items {
        match item {
            Item::Source { .. } => {
                command.extend(objects.next().map(|object| changes.instead_of(object)));
            }
            Item::Other { path, language } => {
                if let Some(language) = language {
                    command.extend(["-x".into(), language.clone()]);
                }
                command.push(changes.instead_of(path));
                if language.is_some() {
                    command.extend(["-x".into(), "none".into()]);
                }
            }
            Item::Option(option) => command.extend(option.iter().cloned()),
        }
    }
    clang.run(command)
}

/// Files that are linked in addition to the inputs, and files that replace inputs.
#[derive(Default)]
struct Changes {
    added: Vec<PathBuf>,
    replaced: HashMap<PathBuf, PathBuf>,
}

impl Changes {
    fn instead_of(&self, object: &Path) -> OsString {
        self.replaced
            .get(object)
            .map_or(object, PathBuf::as_path)
            .into()
    }
}

/// Makes the derivatives that units could not make alone.
fn make_deferred(
    clang: &Clang,
    arguments: &Arguments,
    units: &Units,
    folder: &Path,
) -> Result<Changes, Failure> {
    let multiversion = arguments.multiversion && units.multiversion();
    let options = driver_options(units.highest_level(), multiversion)?;
    let output = differentiate(units, &options).map_err(|problems| render::show(&problems))?;
    for warning in &output.report.warnings {
        eprint!("{}", render::text(warning));
    }
    crate::explain::show(&output.report, options.explain.as_ref());
    let mut changes = Changes::default();
    let object = folder.join("derivatives.o");
    std::fs::write(&object, &output.object).map_err(|error| unreadable(&object, &error))?;
    changes.added.push(object);
    for (index, _) in &output.rewritten {
        let unit = units.unit(*index);
        if unit.record.deferred {
            // Its memory was made visible when it was compiled.
            continue;
        }
        // Derivatives use memory that is local to this unit: it is compiled again with that memory visible.
        let options = driver_options(unit.record.level, !unit.record.no_multiversion)?;
        let unit_options = UnitOptions {
            strip_debug_information: unit.record.strip_debug_information,
            assembly: String::new(),
            visible_statics: true,
            library: None,
        };
        let again = compile_unit(
            &unit.record.name,
            &unit.record.identity,
            &unit.bitcode,
            &options,
            &unit_options,
        )
        .map_err(|problems| render::show(&problems))?;
        let bitcode = folder.join(format!("again-{index}.bc"));
        let object = folder.join(format!("again-{index}.o"));
        std::fs::write(&bitcode, &again.bitcode).map_err(|error| unreadable(&bitcode, &error))?;
        let mut command: Vec<OsString> = unit.record.arguments.iter().map(OsString::from).collect();
        command.extend(["-Qunused-arguments", "-c", "-o"].map(OsString::from));
        command.extend([object.clone().into(), "-x".into(), "ir".into()]);
        command.push(bitcode.into());
        clang.run(command)?;
        match &unit.place {
            Place::Object(path) => {
                changes.replaced.insert(path.clone(), object);
            }
            // Functions that are linked already are not taken from the library.
            Place::Member => changes.added.push(object),
            Place::Merged(path) => {
                return Err(Failure::Message(format!(
                    "a derivative needs memory that is local to '{}', which 'ld -r' has merged into '{}'; link the objects themselves",
                    unit.record.name,
                    path.display()
                )));
            }
        }
    }
    Ok(changes)
}
