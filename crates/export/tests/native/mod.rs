//! Runs functions of the Loop IR as machine code: exported, compiled, linked into this process.

#![allow(unsafe_code, reason = "compiled code is called by its address")]

use ferrozyme_export::{ExportOptions, export};
use ferrozyme_ir::interpret::{Bits, Datum};
use ferrozyme_ir::{Alignment, Builder, Function, FunctionId, Module, Type};
use ferrozyme_llvm::compile::{OptimisationLevel, compile};
use ferrozyme_llvm::jit::Jit;
use ferrozyme_llvm::{Context, Place, TargetDescription};

/// How far apart arguments are, and results. The widest vectors of the tests fit.
const SLOT: usize = 256;

/// An allocator with a family of its own, as other languages have.
const ALLOCATOR: &str = r#"
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
define noalias ptr @rust_take(i64 %size, i64 allocalign %align) #0 {
  %above = add i64 %size, 4095
  %rounded = and i64 %above, -4096
  %p = call ptr @aligned_alloc(i64 4096, i64 %rounded)
  ret ptr %p
}
define void @rust_give(ptr allocptr %p, i64 %size, i64 %align) #1 {
  call void @free(ptr %p)
  ret void
}
attributes #0 = { noinline allockind("alloc,uninitialized,aligned") allocsize(0) "alloc-family"="sized" }
attributes #1 = { noinline allockind("free") "alloc-family"="sized" }
define noalias ptr @other_take(i64 %size, i64 allocalign %align) #2 {
  %p = call ptr @rust_take(i64 %size, i64 %align)
  ret ptr %p
}
define void @other_give(ptr allocptr %p) #3 {
  call void @free(ptr %p)
  ret void
}
attributes #2 = { noinline allockind("alloc,uninitialized,aligned") allocsize(0) "alloc-family"="rust" }
attributes #3 = { noinline allockind("free") "alloc-family"="rust" }
"#;

/// Machine code of some functions.
pub(crate) struct Native {
    jit: Jit,
    functions: Vec<(FunctionId, Vec<Type>)>,
}

impl Native {
    /// Compiles functions of a module.
    pub(crate) fn new(
        module: &Module,
        functions: &[FunctionId],
        level: OptimisationLevel,
    ) -> Result<Native, String> {
        Native::with(module, functions, level, &ExportOptions::default())
    }

    /// Compiles functions of a module, exported in a certain way.
    pub(crate) fn with(
        module: &Module,
        functions: &[FunctionId],
        level: OptimisationLevel,
        options: &ExportOptions<'static>,
    ) -> Result<Native, String> {
        let mut module = module.clone();
        let entries: Vec<FunctionId> = functions
            .iter()
            .map(|&function| add_entry(&mut module, function))
            .collect();
        ferrozyme_ir::verify_module(&module)
            .map_err(|errors| format!("the entries do not verify: {}", errors[0]))?;
        let context = Context::new().map_err(|error| error.to_string())?;
        let into = context
            .parse_text("native", ALLOCATOR)
            .map_err(|error| error.to_string())?;
        let exported =
            export(&module, &entries, into, options).map_err(|error| error.to_string())?;
        for function in exported {
            function.set_linkage(ferrozyme_llvm::Linkage::External);
        }
        define_stops(into);
        into.verify().map_err(|error| format!("{error}\n{into}"))?;
        let target = TargetDescription {
            cpu: "native".to_owned(),
            ..TargetDescription::default()
        };
        let object = compile(into, level, &target).map_err(|error| error.to_string())?;
        let jit = Jit::new().map_err(|error| error.to_string())?;
        jit.add_object(&object).map_err(|error| error.to_string())?;
        let functions = functions
            .iter()
            .map(|&function| (function, module.functions[function].results.clone()))
            .collect();
        Ok(Native { jit, functions })
    }

    /// Calls a function. Pointers among the arguments are addresses of this process.
    pub(crate) fn call(
        &self,
        function: FunctionId,
        arguments: &[Datum],
    ) -> Result<Vec<Datum>, String> {
        let (_, results) = self
            .functions
            .iter()
            .find(|(known, _)| *known == function)
            .ok_or("the function was not compiled")?;
        let address = self
            .jit
            .address(&entry_name(function))
            .map_err(|error| error.to_string())?;
        // SAFETY: the entry has this type, and its slots are large and aligned enough.
        let entry: unsafe extern "C" fn(*const u8, *mut u8) =
            unsafe { std::mem::transmute(address as usize) };
        let mut given = slots(arguments.len());
        let mut taken = slots(results.len());
        for (slot, argument) in given.iter_mut().zip(arguments) {
            slot.0 = bytes_of(argument);
        }
        // SAFETY: as above; what the function does with its arguments is the test's to know.
        unsafe { entry(given.as_ptr().cast(), taken.as_mut_ptr().cast()) };
        Ok(taken
            .iter()
            .zip(results)
            .map(|(slot, &ty)| datum_of(ty, &slot.0))
            .collect())
    }
}

/// What the program calls to stop exists only in name; here it stops.
fn define_stops(module: ferrozyme_llvm::Module<'_>) {
    let context = module.context();
    let stops: Vec<_> = module
        .functions()
        .filter(|function| {
            function.is_declaration() && function.has_attribute(Place::Function, "noreturn")
        })
        .collect();
    for function in stops
        .into_iter()
        .filter(|function| function.intrinsic_number() == 0)
    {
        let builder = context.builder();
        builder.at_end(context.append_block(function, "entry"));
        if let Some(trap) = module.intrinsic("llvm.trap", &[]) {
            builder.call_function(trap, &[]);
        }
        builder.unreachable();
    }
}

#[derive(Clone)]
#[repr(C, align(64))]
struct Slot([u8; SLOT]);

fn slots(count: usize) -> Vec<Slot> {
    vec![Slot([0; SLOT]); count.max(1)]
}

fn entry_name(function: FunctionId) -> String {
    format!("__entry_{}", function.as_u32())
}

/// A function that takes its arguments from memory and leaves its results there.
fn add_entry(module: &mut Module, function: FunctionId) -> FunctionId {
    let code = &module.functions[function];
    let params: Vec<Type> = code.params.iter().map(|param| param.ty).collect();
    let results = code.results.clone();
    let mut entry = Function::define(
        entry_name(function),
        vec![Type::PTR.into(), Type::PTR.into()],
        Vec::new(),
    );
    let (given, taken) = (entry.arguments()[0], entry.arguments()[1]);
    let mut builder = Builder::at_body(&mut entry);
    let mut arguments = Vec::new();
    for (index, &ty) in params.iter().enumerate() {
        let slot = builder.offset_bytes(given, (index * SLOT) as i64);
        arguments.push(builder.load(ty, slot, Alignment::natural(ty)));
    }
    let call = builder.call(function, &arguments, &results);
    for index in 0..results.len() {
        let slot = builder.offset_bytes(taken, (index * SLOT) as i64);
        let value = builder.function.ops[call].results[index];
        let ty = builder.ty(value);
        builder.store(value, slot, Alignment::natural(ty));
    }
    builder.ret(&[]);
    module.functions.push(entry)
}

pub(crate) fn bytes_of(datum: &Datum) -> [u8; SLOT] {
    let mut bytes = [0; SLOT];
    let size = datum.ty.scalar().bytes() as usize;
    for lane in 0..usize::from(datum.ty.lanes()) {
        let raw = datum.lane(lane).raw().unwrap_or(0);
        bytes[lane * size..(lane + 1) * size].copy_from_slice(&raw.to_le_bytes()[..size]);
    }
    bytes
}

pub(crate) fn datum_of(ty: Type, bytes: &[u8]) -> Datum {
    let size = ty.scalar().bytes() as usize;
    let lane = |lane: usize| {
        let mut raw = [0; 16];
        raw[..size].copy_from_slice(&bytes[lane * size..(lane + 1) * size]);
        Some(u128::from_le_bytes(raw) & ferrozyme_ir::ones(ty.scalar().bits()))
    };
    let bits = if ty.is_vector() {
        Bits::from_lanes((0..usize::from(ty.lanes())).map(lane).collect())
    } else {
        Bits::from_scalar(lane(0))
    };
    Datum { ty, bits }
}

/// Whether a result of machine code is what the interpreter gives, floats up to a relative distance. Where the interpreter gives nothing in particular, anything is.
pub(crate) fn agrees(native: &Datum, expected: &Datum, distance: f64) -> bool {
    (0..usize::from(expected.ty.lanes())).all(|lane| {
        let (a, b) = (native.lane(lane), expected.lane(lane));
        if b.raw().is_none() || a.raw() == b.raw() {
            return true;
        }
        match (a.as_float(), b.as_float()) {
            (Some(x), Some(y)) if expected.ty.is_float() => close(x, y, distance),
            _ => false,
        }
    })
}

/// Whether two numbers are the same up to a distance relative to the larger and to 1.
pub(crate) fn close(x: f64, y: f64, distance: f64) -> bool {
    x == y
        || (x.is_nan() && y.is_nan())
        || (x - y).abs() <= distance * x.abs().max(y.abs()).max(1.0)
}
