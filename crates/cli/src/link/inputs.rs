//! The modules of a link: which of them request derivatives, which of them the program needs, and which defines a symbol.
//!
//! *Guarantees* that a module that the linker would not take from an archive is not differentiated: live modules are found as the linker finds them, from
//! the objects through undefined symbols to the members that define them.

use super::archive;
use super::bitcode::{self, is_bitcode};
use super::files::{File, Kind, is_native_object};
use crate::messages;
use ferrozyme_driver::{Diagnostic, Input, Inputs, Origin, REGISTRATIONS, REQUEST};
use memchr::memmem;
use object::{Object, ObjectSection, ObjectSymbol};
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

/// The modules of a link.
pub struct LinkInputs<'a> {
    modules: Vec<Module<'a>>,
    definitions: HashMap<&'a [u8], usize>,
    requesting: Vec<usize>,
    registering: Vec<usize>,
    /// Modules that ask for derivatives but are not needed by the program.
    unneeded: Vec<usize>,
    /// The modules that the linker will take, at least; all, until the undefined symbols of the command line are known.
    live: Vec<bool>,
}

/// An object or a member of an archive.
struct Module<'a> {
    file: &'a File,
    member: Option<usize>,
    name: &'a str,
    contents: &'a [u8],
    /// The range of the bitcode in the contents, once it was requested.
    bitcode: OnceCell<Option<Range<usize>>>,
    hash: OnceCell<blake3::Hash>,
}

/// Where the contents of a module go when they are replaced.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The file on the link line.
    pub file: &'a File,
    /// The number of the member.
    pub member: Option<usize>,
}

impl<'a> LinkInputs<'a> {
    /// Finds out about the modules in files, in the order of the link.
    ///
    /// # Errors
    /// If a request cannot be served: machine code that asks for a derivative, bitcode without a symbol table.
    pub fn new(
        files: impl Iterator<Item = &'a File> + Clone,
    ) -> Result<LinkInputs<'a>, Diagnostic> {
        let modules: Vec<Module<'a>> = files.clone().flat_map(modules_of).collect();
        let live = vec![true; modules.len()];
        let mut inputs = LinkInputs {
            modules,
            live,
            definitions: HashMap::new(),
            requesting: Vec::new(),
            registering: Vec::new(),
            unneeded: Vec::new(),
        };
        inputs.definitions = inputs.find_definitions(files).map_err(Diagnostic::error)?;
        inputs.find_requests()?;
        Ok(inputs)
    }

    /// Leaves the requests of unneeded modules alone. `undefined` are symbols that the command line needs. Registrations count
    /// wherever they are: nothing refers to them, and the functions that they register may be in another module.
    pub fn drop_unneeded(&mut self, undefined: &[String]) {
        let live = self.find_live(undefined);
        let (needed, unneeded) = self.requesting.iter().partition(|&&index| live[index]);
        self.requesting = needed;
        self.unneeded = unneeded;
        self.live = live;
    }

    /// How many modules' requests were left alone.
    pub fn unneeded(&self) -> usize {
        self.unneeded.len()
    }

    /// The position of a module on the link line.
    pub fn place(&self, index: usize) -> Place<'a> {
        Place {
            file: self.modules[index].file,
            member: self.modules[index].member,
        }
    }

    /// The hash of a module's bitcode.
    pub fn hash(&self, index: usize) -> blake3::Hash {
        let module = &self.modules[index];
        *module.hash.get_or_init(|| {
            let range = module.bitcode().unwrap_or_default();
            blake3::hash(&module.contents[range])
        })
    }

    /// Whether a module's bitcode has this hash.
    pub fn is_original(&self, index: usize, hash: &str) -> bool {
        index < self.modules.len() && self.hash(index).to_hex().as_str() == hash
    }

    /// The definitions of symbols. Of several definitions the first on the link line counts, objects before archives.
    fn find_definitions(
        &self,
        files: impl Iterator<Item = &'a File>,
    ) -> Result<HashMap<&'a [u8], usize>, String> {
        let mut definitions = HashMap::new();
        for (index, module) in self.modules.iter().enumerate() {
            if module.member.is_none() {
                for name in module.defined() {
                    definitions.entry(name).or_insert(index);
                }
            }
        }
        let mut first = 0;
        for file in files {
            let Kind::Archive(members) = &file.kind else {
                first += 1;
                continue;
            };
            let found = archive::index(&file.bytes, members)
                .map_err(|error| format!("cannot read {}: {error}", file.path.display()))?;
            match found {
                Some(found) => {
                    for (name, number) in found {
                        definitions.entry(name).or_insert(first + number);
                    }
                }
                None => {
                    for index in first..first + members.len() {
                        for name in self.modules[index].defined() {
                            definitions.entry(name).or_insert(index);
                        }
                    }
                }
            }
            first += members.len();
        }
        Ok(definitions)
    }

    fn find_requests(&mut self) -> Result<(), Diagnostic> {
        let request = memmem::Finder::new(REQUEST);
        let registrations = REGISTRATIONS.map(memmem::Finder::new);
        for (index, module) in self.modules.iter().enumerate() {
            if module.file.std {
                continue;
            }
            let requests = request.find(module.contents).is_some();
            let registers = registrations
                .iter()
                .any(|finder| finder.find(module.contents).is_some());
            if !requests && !registers {
                continue;
            }
            if !is_bitcode(module.contents) {
                let asks = requests
                    && module
                        .needed()
                        .is_some_and(|mut names| names.any(is_request));
                if asks {
                    return Err(Diagnostic {
                        remedy: Some("packages that request derivatives must depend on `ferrozyme`, and must not turn off `-C linker-plugin-lto`".to_owned()),
                        ..Diagnostic::error(format!(
                            "{} asks for a derivative, but holds machine code instead of bitcode",
                            module.describe()
                        ))
                    });
                }
                continue;
            }
            let Some(symbols) = bitcode::symbols(module.contents) else {
                return Err(Diagnostic::error(format!(
                    "the bitcode of {} has no symbol table that can be read",
                    module.describe()
                )));
            };
            if symbols
                .iter()
                .any(|symbol| symbol.undefined && is_request(symbol.name))
            {
                self.requesting.push(index);
            }
            if symbols.iter().any(|symbol| {
                !symbol.undefined
                    && registrations
                        .iter()
                        .any(|finder| finder.find(symbol.name).is_some())
            }) {
                self.registering.push(index);
            }
        }
        Ok(())
    }

    /// Which modules the linker will take, at least.
    fn find_live(&self, undefined: &[String]) -> Vec<bool> {
        let mut live = vec![false; self.modules.len()];
        let mut work: Vec<usize> = Vec::new();
        let mut reach = |index: usize, work: &mut Vec<usize>| {
            if !live[index] {
                live[index] = true;
                work.push(index);
            }
        };
        for (index, module) in self.modules.iter().enumerate() {
            if module.member.is_none() || module.file.whole {
                reach(index, &mut work);
            }
        }
        for name in undefined {
            if let Some(&index) = self.definitions.get(name.as_bytes()) {
                reach(index, &mut work);
            }
        }
        while let Some(index) = work.pop() {
            let module = &self.modules[index];
            // The standard library does not refer to anything above it but what objects define.
            if module.file.std {
                continue;
            }
            match module.needed() {
                Some(names) => {
                    for name in names {
                        if let Some(&next) = self.definitions.get(name) {
                            reach(next, &mut work);
                        }
                    }
                }
                // What cannot be read may need anything.
                None => (0..self.modules.len()).for_each(|next| reach(next, &mut work)),
            }
        }
        live
    }
}

impl Inputs for LinkInputs<'_> {
    fn requesting(&self) -> Vec<usize> {
        self.requesting.clone()
    }

    fn registering(&self) -> Vec<usize> {
        self.registering.clone()
    }

    fn program(&self) -> Vec<usize> {
        let holds_bitcode = |&index: &usize| {
            let module = &self.modules[index];
            self.live[index] && !module.file.std && module.bitcode().is_some()
        };
        (0..self.modules.len()).filter(holds_bitcode).collect()
    }

    fn get(&self, index: usize) -> Result<Input<'_>, String> {
        let module = self
            .modules
            .get(index)
            .ok_or_else(|| format!("there is no module {index}"))?;
        let range = module
            .bitcode()
            .ok_or_else(|| format!("{} holds no bitcode", module.describe()))?;
        let archive = module.file.path.clone();
        Ok(Input {
            name: module.name.to_owned(),
            bitcode: Cow::Borrowed(&module.contents[range]),
            origin: match module.member {
                None => Origin::Object,
                Some(_) if module.file.std => Origin::Std { archive },
                Some(_) => Origin::Member { archive },
            },
        })
    }

    fn defining(&self, symbol: &str) -> Option<usize> {
        let index = *self.definitions.get(symbol.as_bytes())?;
        self.modules[index].bitcode().map(|_| index)
    }

    fn progress(&self, step: &str) {
        messages::tell_progress(step);
    }
}

fn is_request(name: &[u8]) -> bool {
    name.starts_with(REQUEST.as_bytes())
}

fn modules_of(file: &File) -> Vec<Module<'_>> {
    let module = |member, name, contents| Module {
        file,
        member,
        name,
        contents,
        bitcode: OnceCell::new(),
        hash: OnceCell::new(),
    };
    match &file.kind {
        Kind::Object => {
            let name = file.path.file_name().and_then(|name| name.to_str());
            vec![module(None, name.unwrap_or_default(), &file.bytes)]
        }
        Kind::Archive(members) => members
            .iter()
            .enumerate()
            .map(|(number, member)| {
                let contents = &file.bytes[member.range.clone()];
                module(Some(number), member.name.as_str(), contents)
            })
            .collect(),
    }
}

impl<'a> Module<'a> {
    fn describe(&self) -> String {
        match self.member {
            None => self.file.path.display().to_string(),
            Some(_) => format!("{}({})", self.file.path.display(), self.name),
        }
    }

    /// Where the bitcode is: all of the contents, or a section of machine code (`.llvmbc`, as the standard library has it).
    fn bitcode(&self) -> Option<Range<usize>> {
        let find = || {
            if is_bitcode(self.contents) {
                return Some(0..self.contents.len());
            }
            if !is_native_object(self.contents) {
                return None;
            }
            let file = object::File::parse(self.contents).ok()?;
            let (start, size) = file.section_by_name(".llvmbc")?.file_range()?;
            let start = usize::try_from(start).ok()?;
            let range = start..start.checked_add(usize::try_from(size).ok()?)?;
            self.contents
                .get(range.clone())
                .is_some_and(is_bitcode)
                .then_some(range)
        };
        self.bitcode.get_or_init(find).clone()
    }

    /// The symbols that it exports.
    fn defined(&self) -> Vec<&'a [u8]> {
        if is_bitcode(self.contents) {
            let symbols = bitcode::symbols(self.contents).unwrap_or_default();
            let defined = symbols
                .into_iter()
                .filter(|symbol| symbol.global && !symbol.undefined);
            return defined.map(|symbol| symbol.name).collect();
        }
        native_definitions(self.contents)
    }

    /// The symbols that it imports; `None` if they are not known.
    fn needed(&self) -> Option<Box<dyn Iterator<Item = &'a [u8]> + 'a>> {
        if is_bitcode(self.contents) {
            let symbols = bitcode::symbols(self.contents)?;
            let needed = symbols.into_iter().filter(|symbol| symbol.undefined);
            return Some(Box::new(needed.map(|symbol| symbol.name)));
        }
        if !is_native_object(self.contents) {
            // The metadata of an rlib.
            return Some(Box::new(std::iter::empty()));
        }
        let file = object::File::parse(self.contents).ok()?;
        let needed: Vec<&[u8]> = file
            .symbols()
            .filter(|symbol| symbol.is_undefined())
            .filter_map(|symbol| symbol.name_bytes().ok())
            .collect();
        Some(Box::new(needed.into_iter()))
    }
}

/// The symbols that machine code exports; none for other contents.
pub fn native_definitions(contents: &[u8]) -> Vec<&[u8]> {
    if !is_native_object(contents) {
        return Vec::new();
    }
    let Ok(file) = object::File::parse(contents) else {
        return Vec::new();
    };
    file.symbols()
        .filter(|symbol| symbol.is_global() && !symbol.is_undefined())
        .filter_map(|symbol| symbol.name_bytes().ok())
        .collect()
}
