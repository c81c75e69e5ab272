//! The link line: the arguments that rustc passes to a linker, in the form of GNU compiler drivers.
//!
//! All arguments keep their order. Only those that concern differentiation are interpreted: input files, the output, the optimisation
//! level and CPU for link-time optimisation, and the driver's own arguments, which are removed.
//!
//! ```text
//! -m64 symbols.o a.rcgu.o libdep.rlib -Wl,-plugin-opt=O3,-plugin-opt=mcpu=native -o app -pie --ferrozyme-sysroot=/…
//! ```

use ferrozyme_driver::{Level, Relocation};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Begins the arguments that are ours. They come through `-C link-arg`, so that cargo sees a change of them as a change of flags.
pub const OUR_PREFIX: &str = "--ferrozyme-";

/// The parsed link line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkLine {
    /// All arguments but ours, response files unpacked.
    pub arguments: Vec<OsString>,
    /// Whether they came in a response file, which means that they are too long for a command line.
    pub response_file: bool,
    /// Which of the arguments name files to link.
    pub inputs: Vec<usize>,
    /// Whether an archive among the inputs is linked as a whole: by index into `inputs`.
    pub whole: Vec<bool>,
    /// The file to write.
    pub output: Option<PathBuf>,
    /// The optimisation level, if given.
    pub level: Option<Level>,
    /// The CPU to compile for.
    pub cpu: Option<String>,
    /// Whether the code must run at any address.
    pub relocation: Relocation,
    /// The linker that the compiler driver is to use (`-fuse-ld=`).
    pub flavour: Option<String>,
    /// Symbols that are needed though nothing refers to them (`-u`).
    pub undefined: Vec<String>,
    /// Our own arguments.
    pub own: OwnArguments,
}

/// What `cargo ferrozyme` tells itself as the linker.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OwnArguments {
    /// The sysroot of the rustc that links.
    pub sysroot: Option<PathBuf>,
    /// The linker that rustc would have run.
    pub linker: Option<PathBuf>,
    /// Whether sums keep their order.
    pub strict: bool,
    /// Whether derivatives have one version only, for the target CPU.
    pub no_multiversion: bool,
}

/// Whether these are arguments for a linker that `cargo ferrozyme` set up.
pub fn is_link_line(arguments: &[OsString]) -> bool {
    match arguments {
        [only] => only.as_bytes().starts_with(b"@"),
        several => several
            .iter()
            .any(|argument| argument.as_bytes().starts_with(OUR_PREFIX.as_bytes())),
    }
}

/// Understands the arguments of a linker.
///
/// # Errors
/// If a response file cannot be read.
pub fn parse(arguments: &[OsString]) -> Result<LinkLine, String> {
    let mut unpacked = Vec::new();
    let response_file = unpack(arguments, &mut unpacked, 0)?;
    let mut line = LinkLine {
        arguments: Vec::with_capacity(unpacked.len()),
        response_file,
        inputs: Vec::new(),
        whole: Vec::new(),
        output: None,
        level: None,
        cpu: None,
        relocation: Relocation::Static,
        flavour: None,
        undefined: Vec::new(),
        own: OwnArguments::default(),
    };
    let mut whole = false;
    let mut unpacked = unpacked.into_iter();
    while let Some(argument) = unpacked.next() {
        let text = argument.to_string_lossy().into_owned();
        if let Some(own) = text.strip_prefix(OUR_PREFIX) {
            line.take_own(own, &argument);
            continue;
        }
        let index = line.arguments.len();
        line.arguments.push(argument);
        if let Some(options) = text.strip_prefix("-Wl,") {
            line.read_linker_options(options.split(','), &mut whole);
            continue;
        }
        match text.as_str() {
            "-o" | "--output" => {
                if let Some(value) = unpacked.next() {
                    line.output = Some(PathBuf::from(&value));
                    line.arguments.push(value);
                }
            }
            "-pie" | "--pie" | "-shared" | "--shared" | "-static-pie" => {
                line.relocation = Relocation::PositionIndependent;
            }
            "-no-pie" | "--no-pie" => line.relocation = Relocation::Static,
            "-Xlinker" => {
                if let Some(value) = unpacked.next() {
                    let option = value.to_string_lossy().into_owned();
                    line.read_linker_options(std::iter::once(option.as_str()), &mut whole);
                    line.arguments.push(value);
                }
            }
            // These take the next argument, which is not an input even if it names a file.
            "-L" | "-l" | "-T" | "-z" | "-e" | "-m" | "-h" | "-u" | "-B" | "-I" | "-rpath"
            | "-soname" | "-dynamic-linker" | "--version-script" | "--dynamic-list" | "-arch"
            | "-target" | "--sysroot" => {
                if let Some(value) = unpacked.next() {
                    if text == "-u" {
                        line.undefined.push(value.to_string_lossy().into_owned());
                    }
                    line.arguments.push(value);
                }
            }
            option if option.starts_with('-') => {
                if let Some(flavour) = option.strip_prefix("-fuse-ld=") {
                    line.flavour = Some(flavour.to_owned());
                } else {
                    // A linker that is called without a compiler driver gets its options bare.
                    line.read_linker_options(std::iter::once(option), &mut whole);
                }
            }
            _ => {
                line.inputs.push(index);
                line.whole.push(whole);
            }
        }
    }
    Ok(line)
}

impl LinkLine {
    /// The path of an input.
    pub fn input(&self, number: usize) -> &Path {
        Path::new(&self.arguments[self.inputs[number]])
    }

    fn take_own(&mut self, own: &str, argument: &OsStr) {
        let Some((name, _)) = own.split_once('=') else {
            self.own.strict |= own == "strict";
            self.own.no_multiversion |= own == "no-multiversion";
            return;
        };
        let value = &argument.as_bytes()[OUR_PREFIX.len() + name.len() + 1..];
        let value = PathBuf::from(OsStr::from_bytes(value));
        match name {
            "sysroot" => self.own.sysroot = Some(value),
            "linker" => self.own.linker = Some(value),
            // Another version of the driver may know more.
            _ => {}
        }
    }

    fn read_linker_options<'a>(
        &mut self,
        options: impl Iterator<Item = &'a str>,
        whole: &mut bool,
    ) {
        for option in options {
            match option {
                "--whole-archive" | "-whole-archive" => *whole = true,
                "--no-whole-archive" | "-no-whole-archive" => *whole = false,
                "-pie" | "--pie" | "-shared" | "--shared" => {
                    self.relocation = Relocation::PositionIndependent;
                }
                _ => {
                    if let Some(symbol) = option
                        .strip_prefix("--undefined=")
                        .or_else(|| option.strip_prefix("-u="))
                    {
                        self.undefined.push(symbol.to_owned());
                    }
                    let Some(plugin) = option
                        .strip_prefix("-plugin-opt=")
                        .or_else(|| option.strip_prefix("--plugin-opt="))
                    else {
                        continue;
                    };
                    match plugin {
                        "O0" => self.level = Some(Level::O0),
                        "O1" => self.level = Some(Level::O1),
                        "O2" => self.level = Some(Level::O2),
                        "O3" => self.level = Some(Level::O3),
                        _ => {
                            if let Some(cpu) = plugin.strip_prefix("mcpu=") {
                                self.cpu = Some(cpu.to_owned());
                            }
                        }
                    }
                }
            }
        }
    }
}

/// How deep response files may name further ones.
const MAX_DEPTH: usize = 8;

/// Puts the contents of response files in their place. Whether there were any.
fn unpack(
    arguments: &[OsString],
    unpacked: &mut Vec<OsString>,
    depth: usize,
) -> Result<bool, String> {
    let mut any = false;
    for argument in arguments {
        let Some(path) = argument.as_bytes().strip_prefix(b"@") else {
            unpacked.push(argument.clone());
            continue;
        };
        let path = Path::new(OsStr::from_bytes(path));
        if depth >= MAX_DEPTH {
            return Err(format!(
                "{}: response files name each other",
                path.display()
            ));
        }
        match std::fs::read(path) {
            Ok(contents) => {
                any = true;
                unpack(&split_response(&contents), unpacked, depth + 1)?;
            }
            // GCC passes on an argument that names no file.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && depth > 0 => {
                unpacked.push(argument.clone());
            }
            Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
        }
    }
    Ok(any)
}

/// The arguments in a response file: separated by white space, with quotes and backslashes as in a shell.
fn split_response(contents: &[u8]) -> Vec<OsString> {
    let mut arguments = Vec::new();
    let mut current: Option<Vec<u8>> = None;
    let mut quote = None;
    let mut bytes = contents.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, quote) {
            (b'\\', None | Some(b'"')) => {
                if let Some(escaped) = bytes.next() {
                    current.get_or_insert_default().push(escaped);
                }
            }
            (b'"' | b'\'', None) => {
                quote = Some(byte);
                current.get_or_insert_default();
            }
            (_, Some(open)) if open == byte => quote = None,
            (b' ' | b'\t' | b'\n' | b'\r', None) => {
                arguments.extend(current.take().map(OsString::from_vec));
            }
            _ => current.get_or_insert_default().push(byte),
        }
    }
    arguments.extend(current.take().map(OsString::from_vec));
    arguments
}

/// The contents of a response file with these arguments.
pub fn write_response(arguments: &[OsString]) -> Vec<u8> {
    let mut contents = Vec::new();
    for argument in arguments {
        for &byte in argument.as_bytes() {
            if matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\\' | b'"' | b'\'') {
                contents.push(b'\\');
            }
            contents.push(byte);
        }
        contents.push(b'\n');
    }
    contents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(arguments: &[&str]) -> LinkLine {
        let arguments: Vec<OsString> = arguments.iter().map(Into::into).collect();
        parse(&arguments).expect("no response file")
    }

    #[test]
    fn finds_inputs_output_and_options() {
        let line = line(&[
            "-m64",
            "symbols.o",
            "a.rcgu.o",
            "-Wl,-Bstatic",
            "-Wl,--whole-archive",
            "libdep.rlib",
            "-Wl,--no-whole-archive",
            "libother.rlib",
            "-L",
            "native",
            "-fuse-ld=lld",
            "-Wl,-plugin-opt=O3,-plugin-opt=mcpu=haswell",
            "-Wl,--undefined=entry",
            "-u",
            "second",
            "-o",
            "app",
            "-pie",
            "--ferrozyme-sysroot=/the sysroot",
            "--ferrozyme-linker=clang",
        ]);
        let inputs: Vec<&Path> = (0..line.inputs.len())
            .map(|index| line.input(index))
            .collect();
        assert_eq!(
            inputs,
            ["symbols.o", "a.rcgu.o", "libdep.rlib", "libother.rlib"].map(Path::new)
        );
        assert_eq!(line.whole, [false, false, true, false]);
        assert_eq!(line.output.as_deref(), Some(Path::new("app")));
        assert_eq!(line.level, Some(Level::O3));
        assert_eq!(line.cpu.as_deref(), Some("haswell"));
        assert_eq!(line.relocation, Relocation::PositionIndependent);
        assert_eq!(line.flavour.as_deref(), Some("lld"));
        assert_eq!(line.undefined, ["entry", "second"]);
        assert_eq!(line.own.sysroot.as_deref(), Some(Path::new("/the sysroot")));
        assert_eq!(line.own.linker.as_deref(), Some(Path::new("clang")));
        assert!(
            !line
                .arguments
                .iter()
                .any(|argument| argument.to_string_lossy().contains("ferrozyme"))
        );
    }

    #[test]
    fn response_files_round_trip() {
        let arguments: Vec<OsString> = ["a b.o", "c\\d", "\"quoted\"", "plain", "it's"]
            .iter()
            .map(Into::into)
            .collect();
        assert_eq!(split_response(&write_response(&arguments)), arguments);
        assert_eq!(
            split_response(b"'a b' \"c \\\" d\"\n\n  e\\ f ''"),
            ["a b", "c \" d", "e f", ""].map(OsString::from)
        );
    }
}
