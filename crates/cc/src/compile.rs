//! Compiles a source file to an object: clang makes bitcode of it, the driver adds the derivatives, clang makes the object.

use crate::arguments::{Arguments, Item, Stage};
use crate::clang::Clang;
use crate::embed::Record;
use crate::render;
use crate::{Failure, Language};
use ferrozyme_driver::{
    Level, Library, Options, Perturbation, Relocation, Severity, Unit, UnitOptions, UnitRequests,
    compile_unit,
};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Compiles all sources; returns the object of each, in order.
pub(crate) fn compile_all(
    clang: &Clang,
    arguments: &Arguments,
    folder: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let mut objects = Vec::new();
    let mut failed = None;
    for (number, item) in arguments.items.iter().enumerate() {
        let compiled = match item {
            Item::Source { path, language } => {
                let compilation = Compilation {
                    clang,
                    arguments,
                    path,
                    language: language.clone(),
                    folder,
                    number,
                };
                compilation.compile().map(|object| objects.push(object))
            }
            Item::Other { path, language } if arguments.stage != Stage::Link => {
                pass_on(clang, arguments, path, language.as_ref())
            }
            _ => Ok(()),
        };
        if let Err(failure) = compiled {
            // The other files are compiled all the same, as clang does.
            failed.get_or_insert(failure);
        }
    }
    match failed {
        Some(failure) => Err(failure),
        None => Ok(objects),
    }
}

/// Not C or C++: assembly, for example.
fn pass_on(
    clang: &Clang,
    arguments: &Arguments,
    path: &Path,
    language: Option<&OsString>,
) -> Result<(), Failure> {
    let mut command: Vec<OsString> = arguments.options().cloned().collect();
    command.push(match arguments.stage {
        Stage::Assembly => "-S".into(),
        _ => "-c".into(),
    });
    if let Some(output) = &arguments.output {
        command.extend(["-o".into(), output.into()]);
    }
    if let Some(language) = language {
        command.extend(["-x".into(), language.clone()]);
    }
    command.push(path.into());
    clang.run(command)
}

struct Compilation<'a> {
    clang: &'a Clang,
    arguments: &'a Arguments,
    path: &'a Path,
    language: Option<OsString>,
    folder: &'a Path,
    number: usize,
}

impl Compilation<'_> {
    fn compile(&self) -> Result<PathBuf, Failure> {
        let bitcode = self.temporary("bc");
        match self.preprocessed()? {
            Some(source) => self.clang.run(self.back_arguments(&source, &bitcode))?,
            None => self.clang.run(self.front_arguments(&bitcode))?,
        }
        let bytes = std::fs::read(&bitcode).map_err(|error| unreadable(&bitcode, &error))?;
        let identity = self.identity(&bytes);
        let record_file = self.temporary("record");
        let embeds = !self.arguments.bitcode && self.arguments.stage != Stage::Assembly;
        let options = driver_options(self.arguments.level, self.arguments.multiversion)?;
        let unit_options = UnitOptions {
            strip_debug_information: !self.arguments.debug,
            assembly: match embeds {
                true => crate::embed::assembly(&record_file),
                false => String::new(),
            },
            visible_statics: false,
            library: self.library(&bytes)?,
        };
        let name = self.path.to_string_lossy();
        let unit = compile_unit(&name, &identity, &bytes, &options, &unit_options)
            .map_err(|problems| render::show(&problems))?;
        self.warn(&unit);
        crate::explain::show(&unit.report, options.explain.as_ref());
        if embeds {
            let record = Record {
                identity,
                name: name.into_owned(),
                deferred: matches!(unit.requests, UnitRequests::Deferred(_)),
                strip_debug_information: !self.arguments.debug,
                level: self.arguments.level,
                no_multiversion: !self.arguments.multiversion,
                arguments: self.code_options(),
                defined: unit.defined.clone(),
            };
            record
                .write(&bytes, &record_file)
                .map_err(|error| unreadable(&record_file, &error))?;
        }
        let changed = self.temporary("out.bc");
        std::fs::write(&changed, &unit.bitcode).map_err(|error| unreadable(&changed, &error))?;
        let object = self.object();
        let mut command = self.code_options_raw();
        command.push(match self.arguments.stage {
            Stage::Assembly => "-S".into(),
            _ => "-c".into(),
        });
        command.extend(["-o".into(), object.clone().into()]);
        command.extend(["-x".into(), "ir".into(), changed.into()]);
        match unit.requests {
            UnitRequests::Made => self.compile_derivatives(command)?,
            _ => self.clang.run(command)?,
        }
        Ok(object)
    }

    /// Compiles a unit with derivatives in it, around what LLVM 22 does wrong with them: without masked loops, and, where the vectoriser of straight code leaves something malformed that clang does not get
    /// over, without that.
    fn compile_derivatives(&self, mut command: Vec<OsString>) -> Result<(), Failure> {
        let option = ferrozyme_llvm::NO_MASKED_LOOPS.to_string_lossy();
        let before = [
            "-mllvm".into(),
            option.into_owned().into(),
            "-fno-crash-diagnostics".into(),
        ];
        command.splice(0..0, before);
        let output = self.clang.output(&command)?;
        if !output.status.success() {
            let mut again = command;
            again.insert(0, "-fno-slp-vectorize".into());
            if self.clang.output(&again)?.status.success() {
                return Ok(());
            }
        }
        // Its messages are shown only if no other attempt follows.
        let _ = std::io::stderr().write_all(&output.stderr);
        crate::clang::succeeded(output.status)
    }

    /// Bodies of library functions that the unit calls.
    fn library(&self, bitcode: &[u8]) -> Result<Option<Library>, Failure> {
        let bitcode = crate::library::for_unit(self.clang, bitcode, self.folder)?;
        Ok(bitcode.map(|bitcode| Library {
            bitcode,
            symbols: &crate::library::SYMBOLS,
        }))
    }

    fn warn(&self, unit: &Unit) {
        for warning in &unit.report.warnings {
            debug_assert_eq!(warning.severity, Severity::Warning);
            eprint!("{}", render::text(warning));
        }
    }

    /// Identifies the unit: two files may have the same name, but not the same path.
    fn identity(&self, bitcode: &[u8]) -> String {
        let mut hasher = blake3::Hasher::new();
        let path = std::path::absolute(self.path).unwrap_or_else(|_| self.path.to_owned());
        hasher.update(path.as_os_str().as_encoded_bytes());
        if let Some(output) = &self.arguments.output {
            hasher.update(output.as_os_str().as_encoded_bytes());
        }
        hasher.update(bitcode);
        hasher.finalize().to_hex()[..16].to_owned()
    }

    fn temporary(&self, extension: &str) -> PathBuf {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy();
        self.folder
            .join(format!("{stem}-{}.{extension}", self.number))
    }

    /// Where the object goes.
    fn object(&self) -> PathBuf {
        match (self.arguments.stage, &self.arguments.output) {
            (Stage::Link, _) => self.temporary("o"),
            (_, Some(output)) => output.clone(),
            (stage, None) => {
                let extension = match (stage, self.arguments.bitcode) {
                    (Stage::Assembly, false) => "s",
                    (Stage::Assembly, true) => "ll",
                    (_, false) => "o",
                    (_, true) => "bc",
                };
                let name = self.path.file_name().unwrap_or_default();
                Path::new(name).with_extension(extension)
            }
        }
    }

    /// The source without directives, if it has attributes that the preprocessor cannot change.
    fn preprocessed(&self) -> Result<Option<PathBuf>, Failure> {
        if !crate::attributes::are_in(self.path, &self.arguments.include_folders()) {
            return Ok(None);
        }
        let source = self.temporary(match self.is_cpp() {
            true => "ii",
            false => "i",
        });
        let mut command = self.code_options_raw();
        command.extend(["-E".into(), "-o".into(), source.clone().into()]);
        self.add_source(&mut command);
        self.clang.run(command)?;
        let text = std::fs::read(&source).map_err(|error| unreadable(&source, &error))?;
        let Some(changed) = crate::attributes::annotated(&String::from_utf8_lossy(&text)) else {
            return Ok(None);
        };
        std::fs::write(&source, changed).map_err(|error| unreadable(&source, &error))?;
        Ok(Some(source))
    }

    fn is_cpp(&self) -> bool {
        match &self.language {
            Some(language) => language.to_string_lossy().contains("c++"),
            None => {
                self.clang.language() == Language::Cpp
                    || self
                        .path
                        .extension()
                        .is_some_and(|extension| extension != "c")
            }
        }
    }

    /// The source in its language, where headers of ours are found, with its dependencies.
    fn add_source(&self, command: &mut Vec<OsString>) {
        if let Some(headers) = crate::headers::folder(self.folder) {
            command.splice(0..0, ["-I".into(), headers.into()]);
        }
        self.add_dependencies(command);
        if let Some(language) = &self.language {
            command.extend(["-x".into(), language.clone()]);
        }
        command.push(self.path.into());
    }

    /// Unoptimised bitcode of a source that is preprocessed.
    fn back_arguments(&self, source: &Path, bitcode: &Path) -> Vec<OsString> {
        let mut command = self.bitcode_options(bitcode);
        command.push("-x".into());
        command.push(match self.is_cpp() {
            true => "c++-cpp-output".into(),
            false => "cpp-output".into(),
        });
        command.push(source.into());
        command
    }

    /// Unoptimised bitcode of a source.
    fn front_arguments(&self, bitcode: &Path) -> Vec<OsString> {
        let mut command = self.bitcode_options(bitcode);
        command.extend(crate::attributes::macros().into_iter().map(OsString::from));
        self.add_source(&mut command);
        command
    }

    /// Bitcode in which optimisation is not forbidden.
    fn bitcode_options(&self, bitcode: &Path) -> Vec<OsString> {
        let mut command: Vec<OsString> = self.code_options_raw();
        let fixed = [
            "-c",
            "-emit-llvm",
            "-Xclang",
            "-disable-llvm-passes",
            "-Xclang",
            "-disable-O0-optnone",
            "-Qunused-arguments",
            // By names the driver knows the parts of a complex number from one that is passed as a whole.
            "-fno-discard-value-names",
        ];
        command.extend(fixed.map(OsString::from));
        if !self.arguments.debug {
            // For messages; it is removed again.
            command.push("-gline-tables-only".into());
        }
        command.extend(["-o".into(), bitcode.into()]);
        command
    }

    /// Dependencies are those of the object that clang believes to be something else.
    fn add_dependencies(&self, command: &mut Vec<OsString>) {
        let dependencies = &self.arguments.dependencies;
        let Some(wanted) = &dependencies.wanted else {
            return;
        };
        let object = match self.arguments.stage {
            Stage::Link => Path::new(self.path.file_name().unwrap_or_default()).with_extension("o"),
            _ => self.object(),
        };
        command.push(wanted.clone());
        let file = dependencies
            .file
            .clone()
            .unwrap_or_else(|| object.with_extension("d").into());
        command.extend(["-MF".into(), file]);
        let named = dependencies.others.iter().any(|option| {
            let option = option.to_string_lossy();
            option.starts_with("-MT") || option.starts_with("-MQ")
        });
        if !named {
            command.extend(["-MQ".into(), object.into()]);
        }
        command.extend(dependencies.others.iter().cloned());
    }

    fn code_options_raw(&self) -> Vec<OsString> {
        let mut options: Vec<OsString> = self.arguments.options().cloned().collect();
        options.push("-Qunused-arguments".into());
        options
    }

    fn code_options(&self) -> Vec<String> {
        self.arguments
            .options()
            .map(|option| option.to_string_lossy().into_owned())
            .collect()
    }
}

/// How derivatives are made for code of an optimisation level, for one or several levels of the processor.
pub(crate) fn driver_options(level: u8, multiversion: bool) -> Result<Options, Failure> {
    let toolchain = ferrozyme_llvm::Toolchain::of_environment()
        .map_err(|error| Failure::Message(error.to_string()))?;
    Ok(Options {
        sysroot: toolchain.sysroot,
        level: match level {
            0 => Level::O0,
            1 => Level::O1,
            2 => Level::O2,
            _ => Level::O3,
        },
        cpu: None,
        relocation: Relocation::PositionIndependent,
        explain: crate::explain::wanted()?,
        strict: false,
        multiversion,
        perturbation: Perturbation::of_environment().map_err(Failure::Message)?,
    })
}

pub(crate) fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::Message(format!("{}: {error}", path.display()))
}
