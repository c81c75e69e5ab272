//! A call of rustc: the properties that the wrapper needs.

use crate::link::line::{LinkLine, OUR_PREFIX, OwnArguments};
use ferrozyme_driver::{Level, Relocation};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What matters of rustc's arguments.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RustcCall {
    /// Whether it only prints information.
    pub asks: bool,
    /// Whether it writes linked files at all.
    emits_link: bool,
    /// Values of `--crate-type`.
    crate_types: Vec<String>,
    /// Whether it makes a test program.
    test: bool,
    /// Whether messages are JSON.
    pub json: bool,
    /// Whether texts in the JSON are coloured.
    pub coloured: bool,
    /// Whether texts in the JSON are single lines.
    pub short: bool,
    crate_name: String,
    out_folder: PathBuf,
    extra_filename: String,
    level: Option<Level>,
    cpu: Option<String>,
    debug_information: DebugInformation,
    /// Whether the crate is `ferrozyme`, or depends on it itself.
    uses_us: bool,
    strip: bool,
    sysroot: Option<PathBuf>,
    strict: bool,
    no_multiversion: bool,
}

impl RustcCall {
    /// Understands arguments; the first is the compiler.
    pub fn parse(arguments: &[OsString]) -> RustcCall {
        let mut call = RustcCall {
            emits_link: true,
            ..RustcCall::default()
        };
        let mut arguments = arguments
            .iter()
            .skip(1)
            .map(|argument| argument.to_string_lossy());
        while let Some(argument) = arguments.next() {
            let (name, value) = match argument.split_once('=') {
                Some((name, value)) if name.starts_with("--") => {
                    (name.to_owned(), value.to_owned())
                }
                _ => match argument.strip_prefix("-C") {
                    Some(option) if !option.is_empty() => ("-C".to_owned(), option.to_owned()),
                    _ if TAKE_VALUE.contains(&&*argument) => {
                        let value = arguments.next().unwrap_or_default().into_owned();
                        (argument.into_owned(), value)
                    }
                    _ => (argument.into_owned(), String::new()),
                },
            };
            call.read(&name, &value);
        }
        call
    }

    fn read(&mut self, name: &str, value: &str) {
        match name {
            // These are printed beside the compilation.
            "--print" if matches!(value, "link-args" | "native-static-libs") => {}
            "--print" | "-vV" | "-V" | "--version" => self.asks = true,
            "--test" => self.test = true,
            "--crate-type" => self.crate_types.extend(value.split(',').map(str::to_owned)),
            "--crate-name" => {
                self.crate_name = value.to_owned();
                self.uses_us |= value == "ferrozyme";
            }
            "--out-dir" => self.out_folder = PathBuf::from(value),
            "--emit" => {
                let mut kinds = value.split(',');
                self.emits_link = kinds.any(|kind| kind.split('=').next() == Some("link"));
            }
            "--error-format" => self.json = value == "json",
            "--json" => {
                self.coloured |= value.contains("diagnostic-rendered-ansi");
                self.short |= value.contains("diagnostic-short");
            }
            "-O" => self.level = Some(Level::O3),
            "-g" => self.debug_information = DebugInformation::Full,
            "--extern" => {
                let file = Path::new(value).file_name().unwrap_or_default();
                self.uses_us |= file.to_string_lossy().starts_with("libferrozyme-");
            }
            "-C" | "--codegen" => {
                let (name, value) = value.split_once('=').unwrap_or((value, ""));
                self.read_codegen(name, value);
            }
            _ => {}
        }
    }

    fn read_codegen(&mut self, name: &str, value: &str) {
        match name.replace('_', "-").as_str() {
            "extra-filename" => self.extra_filename = value.to_owned(),
            "opt-level" => {
                self.level = match value {
                    "0" => Some(Level::O0),
                    "1" => Some(Level::O1),
                    "2" | "s" | "z" => Some(Level::O2),
                    _ => Some(Level::O3),
                };
            }
            "debuginfo" => {
                self.debug_information = match value {
                    "0" | "none" => DebugInformation::None,
                    "2" | "full" => DebugInformation::Full,
                    _ => DebugInformation::Some,
                }
            }
            "strip" => self.strip = value != "none",
            // The functions themselves say what `native` is.
            "target-cpu" if value != "native" => self.cpu = Some(value.to_owned()),
            "link-arg" => {
                let own = value.strip_prefix(OUR_PREFIX);
                if let Some(sysroot) = own.and_then(|own| own.strip_prefix("sysroot=")) {
                    self.sysroot = Some(PathBuf::from(sysroot));
                }
                self.strict |= own == Some("strict");
                self.no_multiversion |= own == Some("no-multiversion");
            }
            _ => {}
        }
    }

    /// Flags that give our messages source lines and, in crates that may request derivatives, describe types for checks of shadows. If the
    /// user's profile has no debug information, the linker strips it again.
    pub fn flags_for_debug_information(&self) -> &'static [&'static str] {
        let asks_about_types = self.uses_us || self.links();
        match self.debug_information {
            _ if self.asks || self.sysroot.is_none() => &[],
            DebugInformation::Full => &[],
            DebugInformation::Some if asks_about_types => &["-Cdebuginfo=full"],
            DebugInformation::Some => &[],
            DebugInformation::None => match (asks_about_types, self.strip) {
                (true, true) => &["-Cdebuginfo=full"],
                (true, false) => &["-Cdebuginfo=full", "-Cstrip=debuginfo"],
                (false, true) => &["-Cdebuginfo=line-tables-only"],
                (false, false) => &["-Cdebuginfo=line-tables-only", "-Cstrip=debuginfo"],
            },
        }
    }

    /// Whether it compiles a package's build script, as cargo names it.
    pub fn is_build_script(&self) -> bool {
        self.crate_name.starts_with("build_script_")
            && self.crate_types.iter().any(|kind| kind == "bin")
    }

    /// Whether it ends with a linker.
    pub fn links(&self) -> bool {
        let linked =
            |kind: &String| matches!(kind.as_str(), "bin" | "dylib" | "cdylib" | "proc-macro");
        !self.asks && self.emits_link && (self.test || self.crate_types.iter().any(linked))
    }

    /// The static library that it makes, as a line that links it; `None` if it makes none with our flags.
    pub fn static_library(&self) -> Option<LinkLine> {
        let makes = !self.asks
            && self.emits_link
            && !self.test
            && self.crate_types.iter().any(|kind| kind == "staticlib");
        let sysroot = self.sysroot.clone().filter(|_| makes)?;
        let name = format!("lib{}{}.a", self.crate_name, self.extra_filename);
        let path = Path::new(&self.out_folder).join(name);
        Some(LinkLine {
            arguments: vec![path.clone().into_os_string()],
            response_file: false,
            inputs: vec![0],
            whole: vec![true],
            output: Some(path),
            level: self.level,
            cpu: self.cpu.clone(),
            relocation: Relocation::PositionIndependent,
            flavour: None,
            undefined: Vec::new(),
            own: OwnArguments {
                sysroot: Some(sysroot),
                linker: None,
                strict: self.strict,
                no_multiversion: self.no_multiversion,
            },
        })
    }
}

/// The user's level of debug information.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum DebugInformation {
    #[default]
    None,
    /// Without types.
    Some,
    Full,
}

/// Options of interest whose value may be the next argument.
const TAKE_VALUE: [&str; 10] = [
    "--extern",
    "--crate-type",
    "--crate-name",
    "--out-dir",
    "--emit",
    "--error-format",
    "--json",
    "--print",
    "-C",
    "--codegen",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: &str) -> RustcCall {
        let arguments: Vec<OsString> = arguments.split(' ').map(Into::into).collect();
        RustcCall::parse(&arguments)
    }

    #[test]
    fn knows_what_links() {
        assert!(call("rustc --crate-type bin --emit=dep-info,link").links());
        assert!(call("rustc --test --emit=dep-info,link").links());
        assert!(call("rustc --crate-type=proc-macro").links());
        assert!(!call("rustc --crate-type lib --emit=dep-info,metadata,link").links());
        assert!(!call("rustc --crate-type bin --emit=dep-info,metadata").links());
        assert!(!call("rustc -vV").links());
        assert!(call("rustc --crate-type bin --print=link-args").links());
        assert!(!call("rustc - --print=file-names --crate-type bin").links());
    }

    #[test]
    fn asks_for_lines_where_there_are_none() {
        let ours = "-Clink-arg=--ferrozyme-sysroot=/rust";
        let flags = |arguments: &str| {
            let arguments = format!("rustc --crate-type lib {arguments} {ours}");
            call(&arguments).flags_for_debug_information()
        };
        assert_eq!(flags("-C debuginfo=2"), &[] as &[&str]);
        assert_eq!(flags("-g"), &[] as &[&str]);
        assert_eq!(flags("-vV"), &[] as &[&str]);
        assert_eq!(
            flags("-C debuginfo=2 -C debuginfo=0 -C strip=symbols"),
            ["-Cdebuginfo=line-tables-only"]
        );
        assert_eq!(
            flags("-O"),
            ["-Cdebuginfo=line-tables-only", "-Cstrip=debuginfo"]
        );
        let none = call("rustc -O").flags_for_debug_information();
        assert_eq!(none, &[] as &[&str]);
        // Crates that may request derivatives describe their types.
        let uses = "--extern ferrozyme=/deps/libferrozyme-0.rlib";
        let full = ["-Cdebuginfo=full", "-Cstrip=debuginfo"];
        assert_eq!(flags(uses), full);
        assert_eq!(
            flags(&format!("-C debuginfo=1 {uses}")),
            ["-Cdebuginfo=full"]
        );
        assert_eq!(flags(&format!("-C debuginfo=2 {uses}")), &[] as &[&str]);
        assert_eq!(flags("--extern noprelude:x=/deps/libx-0.rlib --test"), full);
    }

    #[test]
    fn knows_static_libraries() {
        let arguments = "rustc --crate-name a --crate-type lib --crate-type staticlib --emit=link -C opt-level=3 \
            -C extra-filename=-1 --out-dir /deps -Clink-arg=--ferrozyme-sysroot=/rust -Clink-arg=--ferrozyme-strict -C target-cpu=haswell";
        let line = call(arguments).static_library().expect("makes one");
        assert_eq!(line.input(0), Path::new("/deps/liba-1.a"));
        assert_eq!(line.level, Some(Level::O3));
        assert_eq!(line.cpu.as_deref(), Some("haswell"));
        assert_eq!(line.own.sysroot.as_deref(), Some(Path::new("/rust")));
        assert!(line.own.strict);
        assert_eq!(call("rustc --crate-type staticlib").static_library(), None);
        assert_eq!(
            call(&arguments.replace("--emit=link", "--emit=metadata")).static_library(),
            None
        );
    }
}
