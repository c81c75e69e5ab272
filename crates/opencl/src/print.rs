//! Prints kernels as OpenCL C.
//!
//! ```text
//! func @tanh_1_0(%y: ptr, %x: ptr, %status: ptr) {       __kernel void tanh_1_0(__global uchar *restrict b0, ulong o0, …) {
//!   %group = call @__ferrozyme_group()                     const ulong v4 = get_group_id(0);
//!   %a = load f32 %p align 4                      ─▶       const float v9 = *(const __global float *)(v8);
//!   %t = tanh f32 %a                                       const float v10 = tanh(v9);
//!   …                                                      …
//! ```
//!
//! Each value is a variable. Regions are blocks; what an `if` yields and what a loop carries is assigned to variables in front of it. An address is a pointer to bytes in one address space: global, local, constant or private. A kernel
//! gets each buffer as memory object and offset, since parts of memory objects are not portable. Integers are unsigned, and operations say where they are signed. Half precision of both kinds is kept in a `float`
//! that is rounded after each operation.
//!
//! *Assumes* kernels as `ferrozyme_gpu` makes them. What OpenCL C cannot express is an error that names the operation.

mod body;
mod mathematics;
mod operation;

use body::Body;
use ferrozyme_backend::Error;
use ferrozyme_export::own_functions;
use ferrozyme_gpu::{GpuProgram, Kernel};
use ferrozyme_ir::{Function, Global, Module, Scalar, Type};
use std::fmt::Write;

/// What all programs begin with.
const PRELUDE: &str = include_str!("print/prelude.cl");
/// What programs with `f64` begin with.
const DOUBLES: &str = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
/// What programs begin with that add to an `f64` in memory in one step.
const ATOMIC_DOUBLES: &str = include_str!("print/atomic_doubles.cl");
/// What programs begin with that compute polygamma functions: how they are called.
const POLYGAMMA: &str = "__ferrozyme_polygamma";

const INFALLIBLE: &str = "writing to a string does not fail";

/// All kernels of a program as one text.
pub fn print_program(program: &GpuProgram) -> Result<String, Error> {
    let mut kernels = String::new();
    for kernel in &program.kernels {
        print_kernel(&program.module, kernel, &mut kernels)?;
    }
    let mut out = String::new();
    let needs_own = kernels.contains(POLYGAMMA);
    if kernels.contains("double") || needs_own {
        out.push_str(DOUBLES);
    }
    out.push_str(PRELUDE);
    if kernels.contains("atomic_add_f64") {
        out.push_str(ATOMIC_DOUBLES);
    }
    print_globals(&program.module, &mut out)?;
    if needs_own {
        let own = own_functions();
        print_globals(own, &mut out)?;
        for function in own.functions.values() {
            writeln!(out, "{};", signature(function)?).expect(INFALLIBLE);
        }
        for function in own.functions.values() {
            let body = Body::print(own, function, None)?;
            writeln!(out, "{} {{\n{body}}}\n", signature(function)?).expect(INFALLIBLE);
        }
    }
    out.push_str(&kernels);
    Ok(out)
}

/// The name of a function or global in OpenCL C.
pub(crate) fn kernel_name(name: &str) -> String {
    let allowed = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' => character,
        _ => '_',
    };
    // No name of the language begins like that.
    let clean: String = name.chars().map(allowed).collect();
    match clean.starts_with("__") {
        true => clean,
        false => format!("f_{clean}"),
    }
}

/// The type of a variable.
fn type_name(ty: Type) -> Result<&'static str, Error> {
    Ok(match (ty.is_vector(), ty.scalar()) {
        (false, Scalar::Int(1)) => "bool",
        (false, Scalar::Int(8)) => "uchar",
        (false, Scalar::Int(16)) => "ushort",
        (false, Scalar::Int(32)) => "uint",
        (false, Scalar::Int(64)) => "ulong",
        (false, Scalar::F16 | Scalar::Bf16 | Scalar::F32) => "float",
        (false, Scalar::F64) => "double",
        _ => {
            return Err(Error::Compile(format!(
                "OpenCL C has no type for {ty} (a bug in Ferrozyme)"
            )));
        }
    })
}

fn print_kernel(module: &Module, kernel: &Kernel, out: &mut String) -> Result<(), Error> {
    let function = &module.functions[kernel.function];
    let parameters: Vec<String> = (0..function.params.len())
        .map(|number| format!("__global uchar *restrict b{number}, ulong o{number}"))
        .collect();
    writeln!(
        out,
        "__kernel __attribute__((reqd_work_group_size({}, 1, 1)))\nvoid {}({}) {{",
        kernel.items,
        kernel_name(&kernel.name),
        parameters.join(", ")
    )
    .expect(INFALLIBLE);
    if kernel.local > 0 {
        let bytes = kernel.local;
        writeln!(out, "  __local ulong local_memory[{}];", bytes.div_ceil(8)).expect(INFALLIBLE);
    }
    out.push_str(&Body::print(module, function, Some(kernel))?);
    out.push_str("}\n\n");
    Ok(())
}

/// A function that is no kernel.
fn signature(function: &Function) -> Result<String, Error> {
    let result = match function.results[..] {
        [] => "void",
        [ty] => type_name(ty)?,
        _ => {
            return Err(Error::Compile(format!(
                "@{} has several results, which OpenCL C has not (a bug in Ferrozyme)",
                function.name
            )));
        }
    };
    let mut parameters = Vec::new();
    for (param, &argument) in function.params.iter().zip(function.arguments()) {
        let name = body::variable(argument);
        parameters.push(format!("{} {name}", type_name(param.ty)?));
    }
    let (name, parameters) = (kernel_name(&function.name), parameters.join(", "));
    Ok(format!("{result} {name}({parameters})"))
}

/// Constants in memory.
fn print_globals(module: &Module, out: &mut String) -> Result<(), Error> {
    for global in module.globals.values() {
        let Global { name, bytes, .. } = global;
        let (Some(bytes), true) = (bytes, global.constant) else {
            return Err(Error::Compile(format!(
                "the global @{name} is not constant (a bug in Ferrozyme)"
            )));
        };
        // Words, so that the memory is aligned.
        let words: Vec<String> = bytes
            .chunks(8)
            .map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                format!("{:#x}", u64::from_le_bytes(word))
            })
            .collect();
        let (name, count) = (kernel_name(name), words.len().max(1));
        let words = words.join(", ");
        writeln!(out, "__constant ulong {name}[{count}] = {{{words}}};").expect(INFALLIBLE);
    }
    Ok(())
}
