//! Caches derivatives, so that a link whose inputs did not change does not make them again.
//!
//! The key of an entry is the driver, the options and the requesting modules. The other inputs are known only
//! after the derivatives are made: the modules that were read on the way. They are recorded as queries with the hash of each
//! answer. An entry is valid if the same queries have the same answers.
//!
//! ```text
//! <target>/ferrozyme/cache/<key>/{questions.json, modules.json, object, module-0, module-1, …, report.json}
//! ```

use super::inputs::LinkInputs;
use ferrozyme_driver::{Input, Inputs, Options, Output, Report};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Entries that were not used for this long are removed.
const MAX_AGE: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// A query: something that a derivative depends on beside the requesting modules.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Question {
    /// The module that defines a symbol; `None` if there is none.
    Defining {
        symbol: String,
        answer: Option<String>,
    },
    /// All modules of the program.
    Program { answer: String },
}

/// A module that takes the place of another.
#[derive(Serialize, Deserialize)]
struct Rewritten {
    /// The number of the module in the link.
    index: usize,
    /// The hash of its inputs.
    original: String,
}

/// Inputs that record their queries.
pub struct Recorded<'a> {
    inputs: &'a LinkInputs<'a>,
    questions: RefCell<Vec<Question>>,
}

impl<'a> Recorded<'a> {
    /// No query yet.
    pub fn new(inputs: &'a LinkInputs<'a>) -> Recorded<'a> {
        Recorded {
            inputs,
            questions: RefCell::default(),
        }
    }
}

impl Inputs for Recorded<'_> {
    fn requesting(&self) -> Vec<usize> {
        self.inputs.requesting()
    }

    fn registering(&self) -> Vec<usize> {
        self.inputs.registering()
    }

    fn program(&self) -> Vec<usize> {
        self.questions.borrow_mut().push(ask_program(self.inputs));
        self.inputs.program()
    }

    fn get(&self, index: usize) -> Result<Input<'_>, String> {
        // Modules are got at because they ask, register, define or are of the program; all of that is recorded already.
        self.inputs.get(index)
    }

    fn defining(&self, symbol: &str) -> Option<usize> {
        let index = self.inputs.defining(symbol);
        self.questions
            .borrow_mut()
            .push(ask_defining(self.inputs, symbol));
        index
    }

    fn progress(&self, step: &str) {
        self.inputs.progress(step);
    }
}

/// A place for the derivatives of a link.
pub struct Entry {
    folder: PathBuf,
}

impl Entry {
    /// The entry for these inputs and options.
    pub fn new(cache: &Path, driver: &str, inputs: &LinkInputs<'_>, options: &Options) -> Entry {
        let mut hasher = blake3::Hasher::new();
        hasher.update(driver.as_bytes());
        // Options are plain data: writing them cannot fail.
        hasher.update(&serde_json::to_vec(options).unwrap_or_default());
        for part in [inputs.requesting(), inputs.registering()] {
            hasher.update(&part.len().to_le_bytes());
            for index in part {
                hasher.update(inputs.hash(index).as_bytes());
            }
        }
        let key = hasher.finalize().to_hex();
        Entry {
            folder: cache.join(&key[..32]),
        }
    }

    /// Where it is kept.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The cached output, if it is still valid.
    pub fn load(&self, inputs: &LinkInputs<'_>) -> Option<Output> {
        let questions: Vec<Question> =
            serde_json::from_slice(&std::fs::read(self.folder.join(QUESTIONS)).ok()?).ok()?;
        let holds = questions.iter().all(|question| match question {
            Question::Defining { symbol, .. } => ask_defining(inputs, symbol) == *question,
            Question::Program { .. } => ask_program(inputs) == *question,
        });
        if !holds {
            return None;
        }
        let modules: Vec<Rewritten> =
            serde_json::from_slice(&std::fs::read(self.folder.join(MODULES)).ok()?).ok()?;
        let rewritten = modules
            .into_iter()
            .enumerate()
            .map(|(number, module)| {
                // A link line in another order may give the same answers.
                if !inputs.is_original(module.index, &module.original) {
                    return None;
                }
                let bytes = std::fs::read(self.folder.join(module_name(number))).ok()?;
                Some((module.index, bytes))
            })
            .collect::<Option<_>>()?;
        let report: Report =
            serde_json::from_slice(&std::fs::read(self.folder.join(REPORT)).ok()?).ok()?;
        // Its age counts from its last use. Where that cannot be noted it is forgotten earlier, which does no harm.
        if let Ok(file) = std::fs::File::options()
            .append(true)
            .open(self.folder.join(QUESTIONS))
        {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(Output {
            rewritten,
            object: std::fs::read(self.folder.join(OBJECT)).ok()?,
            report,
        })
    }

    /// Caches an output. A cache that cannot be written is not an error.
    pub fn store(&self, recorded: &Recorded<'_>, output: &Output) -> std::io::Result<()> {
        let cache = self.folder.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(cache)?;
        remove_old_entries(cache);
        // Another link may do the same at the same time, so an entry is made aside and appears at once.
        let aside = tempfile::Builder::new().prefix("new-").tempdir_in(cache)?;
        let mut modules = Vec::new();
        for (number, (index, bytes)) in output.rewritten.iter().enumerate() {
            std::fs::write(aside.path().join(module_name(number)), bytes)?;
            modules.push(Rewritten {
                index: *index,
                original: recorded.inputs.hash(*index).to_hex().to_string(),
            });
        }
        std::fs::write(aside.path().join(MODULES), serde_json::to_vec(&modules)?)?;
        std::fs::write(aside.path().join(OBJECT), &output.object)?;
        std::fs::write(
            aside.path().join(REPORT),
            serde_json::to_vec(&output.report)?,
        )?;
        let mut questions = recorded.questions.borrow().clone();
        let mut seen = std::collections::HashSet::new();
        questions.retain(|question| seen.insert(question.clone()));
        std::fs::write(
            aside.path().join(QUESTIONS),
            serde_json::to_vec(&questions)?,
        )?;
        if self.folder.exists() {
            std::fs::remove_dir_all(&self.folder)?;
        }
        std::fs::rename(aside.keep(), &self.folder)
    }
}

const QUESTIONS: &str = "questions.json";
const MODULES: &str = "modules.json";
const OBJECT: &str = "object";
const REPORT: &str = "report.json";

fn module_name(number: usize) -> String {
    format!("module-{number}")
}

fn ask_defining(inputs: &LinkInputs<'_>, symbol: &str) -> Question {
    Question::Defining {
        symbol: symbol.to_owned(),
        answer: inputs
            .defining(symbol)
            .map(|index| inputs.hash(index).to_hex().to_string()),
    }
}

fn ask_program(inputs: &LinkInputs<'_>) -> Question {
    let mut hasher = blake3::Hasher::new();
    for index in inputs.program() {
        hasher.update(&index.to_le_bytes());
        hasher.update(inputs.hash(index).as_bytes());
    }
    Question::Program {
        answer: hasher.finalize().to_hex().to_string(),
    }
}

fn remove_old_entries(cache: &Path) {
    let Ok(entries) = std::fs::read_dir(cache) else {
        return;
    };
    for entry in entries.flatten() {
        let used = std::fs::metadata(entry.path().join(QUESTIONS))
            .and_then(|metadata| metadata.modified())
            .or_else(|_| entry.metadata().and_then(|metadata| metadata.modified()));
        let old = used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > MAX_AGE));
        if old {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
