//! A context: the owner of types, constants, metadata and modules.
//!
//! Every other handle (`Module<'c>`, `Type<'c>`, `Value<'c>`, …) is a copyable pointer whose lifetime is that of the context. Modules belong to the context and are
//! freed with it, so a handle never outlives what it points to, unless that is deleted on purpose: then using it panics (`handle.rs`).

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::sync::{Mutex, OnceLock};

use crate::examine::find_difference;
use crate::metadata::ForeignLines;
use crate::sys::{self, Api, ContextRef, DiagnosticInfoRef, ModuleRef, OwnedText, Text, call};
use crate::toolchain::{LoadError, Toolchain};

/// See the file's head.
pub struct Context {
    pub(crate) raw: ContextRef,
    pub(crate) modules: RefCell<Vec<ModuleRef>>,
    /// Errors and warnings that LLVM reported and nobody has taken yet. Boxed: LLVM keeps its address.
    diagnostics: Box<Mutex<Vec<Diagnostic>>>,
    /// Lines that stand in another file than their function does.
    pub(crate) foreign_lines: RefCell<ForeignLines>,
}

/// A message of LLVM about a module.
#[derive(Clone, Debug)]
pub struct Diagnostic {
    /// Whether it is an error; otherwise a warning or a remark.
    pub is_error: bool,
    /// What LLVM says.
    pub text: String,
}

/// Loads LLVM from the toolchain with this sysroot (what `rustc --print sysroot` says). Does nothing if LLVM is loaded already.
///
/// # Errors
/// If there is none, or one that this binding does not fit.
pub fn load(sysroot: &Path) -> Result<(), LoadError> {
    examined(sys::load(Toolchain::at(sysroot)?)?)
}

/// Looks once at an LLVM that is newer than this binding.
fn examined(api: &'static Api) -> Result<(), LoadError> {
    static DIFFERENCE: OnceLock<Option<String>> = OnceLock::new();
    if api.is_known {
        return Ok(());
    }
    crate::target::initialise()?;
    match DIFFERENCE.get_or_init(|| find_difference(&Context::create())) {
        None => Ok(()),
        found => Err(api.version.too_new(&api.toolchain, found.clone())),
    }
}

/// The toolchain whose LLVM is loaded.
pub fn loaded_toolchain() -> Option<&'static Toolchain> {
    sys::loaded().map(|api| &api.toolchain)
}

impl Context {
    /// A new context. Loads LLVM from the toolchain of the environment unless [`load`] was called before.
    pub fn new() -> Result<Context, LoadError> {
        let api = match sys::loaded() {
            Some(api) => api,
            None => sys::load(Toolchain::of_environment()?)?,
        };
        examined(api)?;
        crate::target::initialise()?;
        Ok(Context::create())
    }

    fn create() -> Context {
        let raw = call!(LLVMContextCreate());
        let diagnostics = Box::new(Mutex::new(Vec::new()));
        let place: *const Mutex<Vec<Diagnostic>> = &*diagnostics;
        call!(LLVMContextSetDiagnosticHandler(
            raw,
            Some(collect),
            place.cast_mut().cast()
        ));
        Context {
            raw,
            modules: RefCell::default(),
            diagnostics,
            foreign_lines: RefCell::default(),
        }
    }

    /// Takes the messages that LLVM has reported since the last call.
    pub fn take_diagnostics(&self) -> Vec<Diagnostic> {
        std::mem::take(
            &mut *self
                .diagnostics
                .lock()
                .unwrap_or_else(|error| error.into_inner()),
        )
    }

    /// The errors among the messages so far, as one text.
    pub(crate) fn take_errors(&self) -> String {
        let errors: Vec<String> = self
            .take_diagnostics()
            .into_iter()
            .filter(|diagnostic| diagnostic.is_error)
            .map(|diagnostic| diagnostic.text)
            .collect();
        if errors.is_empty() {
            "LLVM gave no reason".to_owned()
        } else {
            errors.join("; ")
        }
    }

    /// The number of a metadata kind, for instance `range`.
    pub fn metadata_kind(&self, name: &str) -> u32 {
        call!(LLVMGetMDKindIDInContext(
            self.raw,
            text(name),
            name.len() as u32
        ))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        for module in self.modules.borrow_mut().drain(..) {
            call!(LLVMDisposeModule(module));
        }
        call!(LLVMContextDispose(self.raw));
    }
}

unsafe extern "C" fn collect(info: DiagnosticInfoRef, place: *mut c_void) {
    let is_error = call!(LLVMGetDiagInfoSeverity(info)) == 0;
    let text = take_text(call!(LLVMGetDiagInfoDescription(info)));
    // SAFETY: the place is the mutex that the context owns, and LLVM reports only while the context lives.
    let diagnostics = unsafe { &*place.cast::<Mutex<Vec<Diagnostic>>>() };
    diagnostics
        .lock()
        .unwrap_or_else(|error| error.into_inner())
        .push(Diagnostic { is_error, text });
}

/// Marks handles with the lifetime of their context, without claiming threads may share them.
pub(crate) type Of<'c> = PhantomData<&'c Context>;

/// The start of a Rust string, for functions that take a length.
pub(crate) fn text(string: &str) -> Text {
    string.as_ptr().cast::<c_char>()
}

/// A string that ends in zero, for functions that take no length. Zeros inside would end it early; names have none.
pub(crate) fn terminated(string: &str) -> CString {
    CString::new(string.replace('\0', "")).unwrap_or_default()
}

/// Takes over a message that LLVM allocated.
pub(crate) fn take_text(message: OwnedText) -> String {
    if message.is_null() {
        return String::new();
    }
    // SAFETY: LLVM's messages end in zero.
    let string = unsafe { CStr::from_ptr(message) }
        .to_string_lossy()
        .into_owned();
    call!(LLVMDisposeMessage(message));
    string
}

/// Copies a string that LLVM keeps.
pub(crate) fn copy_text(start: Text, length: usize) -> String {
    String::from_utf8_lossy(copy_bytes(start, length)).into_owned()
}

/// The bytes of a string that LLVM keeps.
pub(crate) fn copy_bytes<'a>(start: Text, length: usize) -> &'a [u8] {
    if start.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: LLVM says that there are so many bytes at this address.
    unsafe { std::slice::from_raw_parts(start.cast::<u8>(), length) }
}

/// Copies a string that ends in zero and that LLVM keeps.
pub(crate) fn copy_terminated(start: Text) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the string ends in zero.
    unsafe { CStr::from_ptr(start) }
        .to_string_lossy()
        .into_owned()
}
