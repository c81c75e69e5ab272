//! Linking: derivatives that need more than their unit are made from the units that objects and static libraries carry.

use crate::Failure;
use crate::arguments::{Arguments, Item};
use crate::clang::Clang;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Links; `objects` are those of the sources, in order.
pub(crate) fn link(
    clang: &Clang,
    arguments: &Arguments,
    objects: &[PathBuf],
    folder: &Path,
) -> Result<(), Failure> {
    let _ = folder;
    let mut objects = objects.iter();
    let mut command: Vec<OsString> = Vec::new();
    if let Some(output) = &arguments.output {
        command.extend(["-o".into(), output.into()]);
    }
    for item in &arguments.items {
        match item {
            Item::Source { .. } => command.extend(objects.next().map(OsString::from)),
            Item::Other { path, language } => {
                if let Some(language) = language {
                    command.extend(["-x".into(), language.clone()]);
                }
                command.push(path.into());
                if language.is_some() {
                    command.extend(["-x".into(), "none".into()]);
                }
            }
            Item::Option(option) => command.extend(option.iter().cloned()),
        }
    }
    clang.run(command)
}
