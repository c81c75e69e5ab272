//! clang's arguments as the driver reads them: inputs, the output, and the last stage. All others are passed on.

use crate::Language;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// How far the compiler goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// To a program or library.
    Link,
    /// To objects: `-c`.
    Object,
    /// To assembly: `-S`.
    Assembly,
    /// Something that does not concern the driver: preprocessing, checking, showing.
    Other,
}

/// The arguments, sorted.
pub(crate) struct Arguments {
    pub(crate) stage: Stage,
    pub(crate) output: Option<PathBuf>,
    /// In order, as the linker needs them.
    pub(crate) items: Vec<Item>,
    /// The optimisation level: 0 to 3.
    pub(crate) level: u8,
    /// Whether the program is to have debug information.
    pub(crate) debug: bool,
    /// Whether objects are bitcode.
    pub(crate) bitcode: bool,
    /// Whether derivatives may have versions for higher levels of the processor: not with `--no-multiversion`, which is ours, nor where a processor is chosen.
    pub(crate) multiversion: bool,
    /// How dependencies are to be written, if they are.
    pub(crate) dependencies: Dependencies,
}

/// One argument, with its value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    /// Something in a language that is compiled here.
    Source {
        path: PathBuf,
        /// What `-x` says of it.
        language: Option<OsString>,
    },
    /// Something else that is compiled or linked.
    Other {
        path: PathBuf,
        language: Option<OsString>,
    },
    /// An option and its value.
    Option(Vec<OsString>),
}

/// The options about dependencies.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Dependencies {
    /// `-MD` or `-MMD`.
    pub(crate) wanted: Option<OsString>,
    /// `-MF`
    pub(crate) file: Option<OsString>,
    /// `-MT`, `-MQ`, `-MP`, `-MG`, `-MV`
    pub(crate) others: Vec<OsString>,
}

/// Options whose value is the next argument.
const WITH_VALUE: &[&str] = &[
    "--param",
    "--sysroot",
    "-A",
    "-B",
    "-D",
    "-F",
    "-G",
    "-I",
    "-L",
    "-T",
    "-U",
    "-Xanalyzer",
    "-Xarch_host",
    "-Xassembler",
    "-Xclang",
    "-Xlinker",
    "-Xopenmp-target",
    "-Xpreprocessor",
    "-arch",
    "-aux-info",
    "-cxx-isystem",
    "-dumpdir",
    "-e",
    "-framework",
    "-gcc-toolchain",
    "-idirafter",
    "-imacros",
    "-imultilib",
    "-include",
    "-include-pch",
    "-iprefix",
    "-iquote",
    "-isysroot",
    "-isystem",
    "-isystem-after",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-iwithsysroot",
    "-l",
    "-mllvm",
    "-rpath",
    "-target",
    "-u",
    "-working-directory",
    "-z",
];

/// Options with which clang does something that does not concern the driver.
const OTHER: &[&str] = &[
    "-###",
    "--analyze",
    "--help",
    "--version",
    "-E",
    "-M",
    "-MM",
    "-V",
    "-fsyntax-only",
    "-help",
    "--precompile",
    "-emit-ast",
    "-cc1",
    "-cc1as",
    "--autocomplete",
];

/// The one option that is not clang's: derivatives exist once.
pub(crate) const NO_MULTIVERSION: &str = "--no-multiversion";

impl Arguments {
    /// Sorts arguments; response files are read.
    ///
    /// # Errors
    /// If there is something to compile or link, but it cannot be read from the arguments.
    pub(crate) fn read(language: Language, given: Vec<OsString>) -> Result<Arguments, String> {
        let given = expand_response_files(given)?;
        let mut read = Arguments {
            stage: Stage::Link,
            output: None,
            items: Vec::new(),
            level: 0,
            debug: false,
            bitcode: false,
            multiversion: true,
            dependencies: Dependencies::default(),
        };
        let mut rest = given.into_iter();
        let mut spoken: Option<OsString> = None;
        let mut only_inputs = false;
        while let Some(argument) = rest.next() {
            let text = argument.to_string_lossy().into_owned();
            if only_inputs || text == "-" || !text.starts_with('-') {
                read.add_input(language, argument.into(), spoken.clone());
                continue;
            }
            let mut value = || {
                rest.next()
                    .ok_or_else(|| format!("argument to '{text}' is missing (expected 1 value)"))
            };
            match text.as_str() {
                "--" => only_inputs = true,
                "-c" => read.go_to(Stage::Object),
                "-S" => read.go_to(Stage::Assembly),
                "-o" => read.output = Some(value()?.into()),
                "-x" => spoken = Some(value()?).filter(|spoken| spoken != "none"),
                "-MD" | "-MMD" => read.dependencies.wanted = Some(argument),
                "-MF" => read.dependencies.file = Some(value()?),
                "-MT" | "-MQ" | "-MJ" => {
                    let value = value()?;
                    read.dependencies.others.extend([argument, value]);
                }
                "-MP" | "-MG" | "-MV" => read.dependencies.others.push(argument),
                "-emit-llvm" => {
                    read.bitcode = true;
                    read.items.push(Item::Option(vec![argument]));
                }
                // Objects carry their units for derivatives, which bitcode could not.
                "-flto" | "-fno-lto" | "-ffat-lto-objects" => {}
                NO_MULTIVERSION => read.multiversion = false,
                option if WITH_VALUE.contains(&option) => {
                    let value = value()?;
                    read.items.push(Item::Option(vec![argument, value]));
                }
                option => {
                    if OTHER.contains(&option)
                        || option.starts_with("-print-")
                        || option.starts_with("--print-")
                        || option.starts_with("-dump")
                    {
                        read.stage = Stage::Other;
                    }
                    if let Some(file) = option.strip_prefix("-o") {
                        read.output = Some(file.into());
                        continue;
                    }
                    if let Some(language) = option.strip_prefix("-x") {
                        spoken = Some(language.into()).filter(|spoken: &OsString| spoken != "none");
                        continue;
                    }
                    if let Some(file) = option.strip_prefix("-MF") {
                        read.dependencies.file = Some(file.into());
                        continue;
                    }
                    if option.starts_with("-MT") || option.starts_with("-MQ") {
                        read.dependencies.others.push(argument);
                        continue;
                    }
                    if let Some(level) = option.strip_prefix("-O") {
                        read.level = level_of(level);
                    }
                    if option.starts_with("-flto=") {
                        continue;
                    }
                    read.multiversion &= !option.starts_with("-march=");
                    if let Some(level) = option.strip_prefix("-g") {
                        let no_level = ["gcc", "gcolumn", "gno-", "gsplit", "gz"];
                        if !no_level.iter().any(|other| option[1..].starts_with(other)) {
                            read.debug = level != "0";
                        }
                    }
                    read.items.push(Item::Option(vec![argument]));
                }
            }
        }
        let inputs = read
            .items
            .iter()
            .filter(|item| !matches!(item, Item::Option(_)))
            .count();
        let libraries_only = inputs == 0;
        if libraries_only {
            // `-v` alone, or a mistake that clang explains.
            read.stage = Stage::Other;
        }
        if read.stage != Stage::Link
            && read.stage != Stage::Other
            && read.output.is_some()
            && inputs > 1
        {
            return Err("cannot specify -o when generating multiple output files".to_owned());
        }
        Ok(read)
    }

    fn go_to(&mut self, stage: Stage) {
        if self.stage != Stage::Other && self.stage != Stage::Assembly {
            self.stage = stage;
        }
    }

    fn add_input(&mut self, driver: Language, path: PathBuf, language: Option<OsString>) {
        let source = match &language {
            Some(language) => is_language(language),
            None => is_source(driver, &path),
        };
        self.items.push(match source {
            true => Item::Source { path, language },
            false => Item::Other { path, language },
        });
    }

    /// All options, without inputs, output, stage and dependencies.
    pub(crate) fn options(&self) -> impl Iterator<Item = &OsString> {
        self.items
            .iter()
            .filter_map(|item| match item {
                Item::Option(option) => Some(option),
                _ => None,
            })
            .flatten()
    }

    /// The folders that these options name, in order: `-L folder` and `-Lfolder`.
    pub(crate) fn folders(&self, names: &[&str]) -> Vec<PathBuf> {
        let named = |option: &[OsString]| match option {
            [name, folder] => names.iter().any(|one| name == one).then(|| folder.into()),
            [one] => names
                .iter()
                .find_map(|name| one.to_str()?.strip_prefix(name))
                .map(PathBuf::from),
            _ => None,
        };
        let options = self.items.iter().filter_map(|item| match item {
            Item::Option(option) => Some(option.as_slice()),
            _ => None,
        });
        options.filter_map(named).collect()
    }

    /// The folders in which headers are looked for.
    pub(crate) fn include_folders(&self) -> Vec<PathBuf> {
        self.folders(&["-iquote", "-isystem", "-idirafter", "-I"])
    }
}

/// An optimisation level as a number; `-O` alone is `-O1`, as in clang.
fn level_of(level: &str) -> u8 {
    match level {
        "" | "1" | "g" => 1,
        "0" => 0,
        "2" | "s" | "z" => 2,
        _ => 3,
    }
}

fn is_language(language: &OsStr) -> bool {
    ["c", "c++", "cpp-output", "c++-cpp-output", "ir"]
        .iter()
        .any(|known| language == *known)
}

fn is_source(driver: Language, path: &Path) -> bool {
    let Some(extension) = path.extension().and_then(OsStr::to_str) else {
        return path == Path::new("-") && driver == Language::C;
    };
    [
        "c", "i", "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "ii", "ll", "bc",
    ]
    .contains(&extension)
}

/// Replaces `@file` by the contents of the file, as clang does.
fn expand_response_files(given: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let mut all = Vec::new();
    let mut work: Vec<(OsString, u32)> = given.into_iter().rev().map(|one| (one, 0)).collect();
    while let Some((argument, depth)) = work.pop() {
        let file = argument.to_str().and_then(|text| text.strip_prefix('@'));
        let content = file.and_then(|file| std::fs::read_to_string(file).ok());
        match content {
            Some(_) if depth > 16 => return Err("response files contain each other".to_owned()),
            Some(content) => {
                let words = split_words(&content);
                work.extend(words.into_iter().rev().map(|word| (word.into(), depth + 1)));
            }
            None => all.push(argument),
        }
    }
    Ok(all)
}

/// The words of a response file: quotes and backslashes as in a shell.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => {
                if let Some(next) = characters.next() {
                    word.get_or_insert_default().push(next);
                }
            }
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Arguments {
        let given = line.split_whitespace().map(OsString::from).collect();
        Arguments::read(Language::C, given).expect("the arguments are good")
    }

    #[test]
    fn stages_follow_from_options() {
        assert_eq!(read("a.c -o a").stage, Stage::Link);
        assert_eq!(read("-c a.c").stage, Stage::Object);
        assert_eq!(read("-c -S a.c").stage, Stage::Assembly);
        assert_eq!(read("-E a.c").stage, Stage::Other);
        assert_eq!(read("--version").stage, Stage::Other);
        assert_eq!(read("-v").stage, Stage::Other);
    }

    #[test]
    fn values_are_no_inputs() {
        let read = read("-I include.c -o out.c -MF x.c -Xclang y.c -O2 -g a.c lib.a -lm");
        let inputs: Vec<_> = read
            .items
            .iter()
            .filter_map(|item| match item {
                Item::Source { path, .. } | Item::Other { path, .. } => path.to_str(),
                Item::Option(_) => None,
            })
            .collect();
        assert_eq!(inputs, ["a.c", "lib.a"]);
        assert_eq!((read.level, read.debug), (2, true));
    }

    #[test]
    fn words_are_split_as_in_a_shell() {
        assert_eq!(
            split_words("-DX=\"a b\" 'c d'\\ e\n\"\" f"),
            ["-DX=a b", "c d e", "", "f"]
        );
    }
}
