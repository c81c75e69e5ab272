//! The part of cargo's configuration that decides with which flags, linker and wrapper rustc runs.
//!
//! `CARGO_ENCODED_RUSTFLAGS` replaces all flags of the configuration, so the driver must add the user's flags again. The
//! rules are cargo's (<https://doc.rust-lang.org/cargo/reference/config.html>): files from the folder upwards and in cargo's
//! home, with includes; then environment variables; then `--config`. Lists are joined, the more important last.

use cargo_platform::{Cfg, Platform};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use toml::{Table, Value};

/// The merged configuration.
#[derive(Clone, Debug, Default)]
pub struct Config {
    table: Table,
    /// Looks up environment variables; a parameter so that tests need not set any.
    environment: Vec<(String, String)>,
}

/// Which list of flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    /// `rustflags`.
    Rustc,
    /// `rustdocflags`.
    Rustdoc,
}

impl Program {
    fn key(self) -> &'static str {
        match self {
            Program::Rustc => "rustflags",
            Program::Rustdoc => "rustdocflags",
        }
    }

    fn variable(self) -> &'static str {
        match self {
            Program::Rustc => "RUSTFLAGS",
            Program::Rustdoc => "RUSTDOCFLAGS",
        }
    }
}

impl Config {
    /// The configuration for a command in a folder; `options` are the values of `--config`.
    ///
    /// # Errors
    /// If a file cannot be read or understood. (Cargo would say the same, in more words.)
    pub fn load(
        folder: &Path,
        home: Option<&Path>,
        options: &[String],
        environment: Vec<(String, String)>,
    ) -> Result<Config, String> {
        let mut files: Vec<PathBuf> = folder
            .ancestors()
            .filter_map(|folder| config_file(&folder.join(".cargo")))
            .collect();
        if let Some(file) = home.and_then(config_file)
            && !files.contains(&file)
        {
            files.push(file);
        }
        let mut config = Config {
            table: Table::new(),
            environment,
        };
        for file in files.iter().rev() {
            merge_table(&mut config.table, load_file(file, 0)?);
        }
        for option in options {
            let path = folder.join(option);
            let table = if path.is_file() {
                load_file(&path, 0)?
            } else {
                let table = Table::from_str(option)
                    .map_err(|error| format!("cannot understand `--config {option}`: {error}"))?;
                absolute_paths(table, folder)
            };
            merge_table(&mut config.table, table);
        }
        Ok(config)
    }

    /// The flags for a target that cargo would use: the first of four sources that has any.
    pub fn flags(&self, program: Program, triple: &str, cfgs: &[Cfg]) -> Vec<String> {
        let encoded = format!("CARGO_ENCODED_{}", program.variable());
        if let Some(flags) = self.variable(&encoded) {
            return flags
                .split('\x1f')
                .filter(|flag| !flag.is_empty())
                .map(str::to_owned)
                .collect();
        }
        if let Some(flags) = self.variable(program.variable()) {
            return split_words(flags);
        }
        let mut flags = Vec::new();
        let name = format!(
            "CARGO_TARGET_{}_{}",
            in_capitals(triple),
            program.variable()
        );
        for table in self.target_tables(triple, cfgs) {
            flags.extend(
                table
                    .get(program.key())
                    .map(string_list)
                    .unwrap_or_default(),
            );
        }
        flags.extend(self.variable(&name).map(split_words).unwrap_or_default());
        if !flags.is_empty() {
            return flags;
        }
        let mut flags = self
            .value(&["build", program.key()])
            .map(string_list)
            .unwrap_or_default();
        let name = format!("CARGO_BUILD_{}", program.variable());
        flags.extend(self.variable(&name).map(split_words).unwrap_or_default());
        flags
    }

    /// The targets to build for, if not the host.
    pub fn targets(&self) -> Vec<String> {
        match self.variable("CARGO_BUILD_TARGET") {
            Some(target) => vec![target.to_owned()],
            None => self
                .value(&["build", "target"])
                .map(|value| match value {
                    Value::String(target) => vec![target.clone()],
                    other => string_list(other),
                })
                .unwrap_or_default(),
        }
    }

    /// The linker for a target.
    pub fn linker(&self, triple: &str, cfgs: &[Cfg]) -> Option<PathBuf> {
        let name = format!("CARGO_TARGET_{}_LINKER", in_capitals(triple));
        self.variable(&name).map(PathBuf::from).or_else(|| {
            self.target_tables(triple, cfgs)
                .find_map(|table| table.get("linker")?.as_str().map(PathBuf::from))
        })
    }

    /// The program that runs in the place of rustc and gets it as the first argument.
    pub fn rustc_wrapper(&self) -> Option<OsString> {
        let wrapper = self
            .variable("RUSTC_WRAPPER")
            .or_else(|| self.variable("CARGO_BUILD_RUSTC_WRAPPER"))
            .or_else(|| self.value(&["build", "rustc-wrapper"])?.as_str())?;
        // An empty one overrides sources of lower precedence.
        (!wrapper.is_empty()).then(|| wrapper.into())
    }

    /// The compiler.
    pub fn rustc(&self) -> PathBuf {
        self.variable("RUSTC")
            .or_else(|| self.variable("CARGO_BUILD_RUSTC"))
            .or_else(|| self.value(&["build", "rustc"])?.as_str())
            .map_or_else(|| PathBuf::from("rustc"), PathBuf::from)
    }

    /// The tables `target.<triple>` and `target.'cfg(…)'` that apply, the former first.
    fn target_tables<'a>(
        &'a self,
        triple: &'a str,
        cfgs: &'a [Cfg],
    ) -> impl Iterator<Item = &'a Table> {
        let tables = self.table.get("target").and_then(Value::as_table);
        let exact = tables
            .and_then(|tables| tables.get(triple))
            .and_then(Value::as_table);
        let matching = tables
            .into_iter()
            .flatten()
            .filter(move |(key, _)| {
                key.starts_with("cfg(")
                    && Platform::from_str(key).is_ok_and(|platform| platform.matches(triple, cfgs))
            })
            .filter_map(|(_, table)| table.as_table());
        exact.into_iter().chain(matching)
    }

    fn value(&self, path: &[&str]) -> Option<&Value> {
        let (last, tables) = path.split_last()?;
        let mut table = &self.table;
        for key in tables {
            table = table.get(*key)?.as_table()?;
        }
        table.get(*last)
    }

    fn variable(&self, name: &str) -> Option<&str> {
        let mut variables = self.environment.iter();
        let (_, value) = variables.find(|(variable, _)| variable == name)?;
        Some(value)
    }
}

/// The configuration file in such a folder. Of both names, cargo prefers the old one.
fn config_file(folder: &Path) -> Option<PathBuf> {
    ["config", "config.toml"]
        .map(|name| folder.join(name))
        .into_iter()
        .find(|path| path.is_file())
}

/// The maximum depth of includes.
const MAX_DEPTH: usize = 16;

fn load_file(path: &Path, depth: usize) -> Result<Table, String> {
    if depth > MAX_DEPTH {
        return Err(format!(
            "{}: configurations include each other",
            path.display()
        ));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let mut own = Table::from_str(&text)
        .map_err(|error| format!("cannot understand {}: {error}", path.display()))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut table = Table::new();
    for (file, optional) in included(own.remove("include")) {
        let file = folder.join(file);
        if optional && !file.exists() {
            continue;
        }
        merge_table(&mut table, load_file(&file, depth + 1)?);
    }
    let base = folder.parent().unwrap_or(folder);
    merge_table(&mut table, absolute_paths(own, base));
    Ok(table)
}

/// The files that `include` names, and whether they may be missing.
fn included(value: Option<Value>) -> Vec<(String, bool)> {
    match value {
        Some(Value::String(path)) => vec![(path, false)],
        Some(Value::Array(values)) => values
            .into_iter()
            .flat_map(|value| included(Some(value)))
            .collect(),
        Some(Value::Table(table)) => {
            let optional = table.get("optional").and_then(Value::as_bool) == Some(true);
            let path = table.get("path").and_then(Value::as_str);
            path.map(|path| (path.to_owned(), optional))
                .into_iter()
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Programs with a slash in their name are relative to the folder that holds `.cargo`.
fn absolute_paths(mut table: Table, base: &Path) -> Table {
    let absolute = |value: Option<&mut Value>| {
        if let Some(Value::String(path)) = value
            && path.contains('/')
        {
            *path = base.join(&*path).to_string_lossy().into_owned();
        }
    };
    if let Some(Value::Table(build)) = table.get_mut("build") {
        absolute(build.get_mut("rustc"));
        absolute(build.get_mut("rustc-wrapper"));
    }
    if let Some(Value::Table(targets)) = table.get_mut("target") {
        for (_, target) in targets.iter_mut() {
            absolute(
                target
                    .as_table_mut()
                    .and_then(|target| target.get_mut("linker")),
            );
        }
    }
    table
}

fn merge_table(low: &mut Table, high: Table) {
    for (key, value) in high {
        match (low.get_mut(&key), value) {
            (Some(Value::Table(low)), Value::Table(high)) => merge_table(low, high),
            (Some(Value::Array(low)), Value::Array(high)) => low.extend(high),
            (_, value) => {
                low.insert(key, value);
            }
        }
    }
}

/// A list of strings, which may be written as one string with spaces.
fn string_list(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => split_words(text),
        Value::Array(values) => values
            .iter()
            .filter_map(|value| value.as_str().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    }
}

fn split_words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn in_capitals(triple: &str) -> String {
    triple.to_uppercase().replace(['-', '.'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIPLE: &str = "x86_64-unknown-linux-gnu";

    fn load(files: &[(&str, &str)], options: &[&str], environment: &[(&str, &str)]) -> Config {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("inside")).expect("writable");
            std::fs::write(path, text).expect("writable");
        }
        let inner = folder.path().join("work/inner");
        std::fs::create_dir_all(&inner).expect("writable");
        let environment = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let home = folder.path().join("home");
        Config::load(&inner, Some(&home), &options, environment.collect()).expect("well-formed")
    }

    fn flags(config: &Config) -> String {
        let cfgs = ["unix", "target_os=\"linux\""].map(|text| Cfg::from_str(text).expect("a cfg"));
        config.flags(Program::Rustc, TRIPLE, &cfgs).join(" ")
    }

    #[test]
    fn lists_of_all_files_are_joined() {
        let files = [
            ("home/config.toml", "build.rustflags = ['home']"),
            ("work/.cargo/config.toml", "build.rustflags = ['work']"),
            (
                "work/inner/.cargo/config.toml",
                "include = 'more.toml'\nbuild.rustflags = ['inner']",
            ),
            ("work/inner/.cargo/more.toml", "build.rustflags = ['more']"),
        ];
        let config = load(&files, &["build.rustflags=['option']"], &[]);
        assert_eq!(flags(&config), "home work more inner option");
    }

    #[test]
    fn flags_of_targets_replace_those_of_build() {
        let text = "build.rustflags = 'build'\n\
            target.'cfg(unix)'.rustflags = ['unix']\n\
            target.'cfg(windows)'.rustflags = ['windows']\n\
            target.x86_64-unknown-linux-gnu.rustflags = ['triple']\n";
        let files = [("work/.cargo/config.toml", text)];
        assert_eq!(flags(&load(&files, &[], &[])), "triple unix");
        let variable = (
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS",
            "variable",
        );
        assert_eq!(
            flags(&load(&files, &[], &[variable])),
            "triple unix variable"
        );
        let plain = ("RUSTFLAGS", " plain  -Cx ");
        assert_eq!(flags(&load(&files, &[], &[variable, plain])), "plain -Cx");
        let encoded = ("CARGO_ENCODED_RUSTFLAGS", "a b\x1fc");
        assert_eq!(flags(&load(&files, &[], &[plain, encoded])), "a b c");
    }

    #[test]
    fn programs_with_a_slash_are_relative_to_the_file() {
        let text =
            "target.x86_64-unknown-linux-gnu.linker = 'tools/ld'\nbuild.rustc-wrapper = 'sccache'";
        let config = load(&[("work/.cargo/config.toml", text)], &[], &[]);
        let linker = config.linker(TRIPLE, &[]).expect("set");
        assert!(linker.ends_with("work/tools/ld"), "{}", linker.display());
        assert_eq!(config.rustc_wrapper(), Some("sccache".into()));
        let off = load(
            &[("work/.cargo/config.toml", text)],
            &[],
            &[("RUSTC_WRAPPER", "")],
        );
        assert_eq!(off.rustc_wrapper(), None);
        assert_eq!(config.rustc(), Path::new("rustc"));
    }
}
