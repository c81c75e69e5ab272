//! Machine code in this process.

#![allow(
    unsafe_code,
    reason = "compiled code is called by its address, and calls back"
)]

use crate::entry::{RUN, add_entry};
use ferrozyme_backend::{Error, Host};
use ferrozyme_export::{ExportOptions, export};
use ferrozyme_ir::{FunctionId, Module, Opcode, Scalar, all_ops, verify_module};
use ferrozyme_llvm::compile::{OptimisationLevel, compile};
use ferrozyme_llvm::jit::Jit;
use ferrozyme_llvm::{CodegenLevel, Context, Linkage, TargetDescription};
use ferrozyme_opt::lower_contractions;
use std::ffi::c_void;

/// A compiled graph.
pub(crate) struct Native {
    jit: Jit,
}

/// The addresses that the machine code takes: the host's functions and data, then the arguments.
type Run = unsafe extern "C" fn(*const *const c_void);

impl Native {
    /// Compiles a lowered graph for this processor.
    pub(crate) fn compile(mut module: Module, main: FunctionId) -> Result<Native, Error> {
        let problem = |error: &dyn std::fmt::Display| Error::Compile(error.to_string());
        let run = add_entry(&mut module, main);
        define_contractions(&mut module);
        verify_module(&module).map_err(|errors| problem(&errors[0]))?;
        let context = Context::new().map_err(|error| problem(&error))?;
        let into = context.create_module("graph");
        let exported = export(&module, &[run], into, &ExportOptions::default())
            .map_err(|error| problem(&error))?;
        for function in exported {
            function.set_linkage(Linkage::External);
        }
        let target = TargetDescription {
            cpu: "native".to_owned(),
            level: CodegenLevel::Aggressive,
            ..TargetDescription::default()
        };
        let object =
            compile(into, OptimisationLevel::O3, &target).map_err(|error| problem(&error))?;
        let jit = Jit::new().map_err(|error| problem(&error))?;
        jit.add_object(&object).map_err(|error| problem(&error))?;
        Ok(Native { jit })
    }

    /// Runs the graph, with the addresses of its parameters and its arena.
    pub(crate) fn run(&self, host: &mut Host<'_>, arguments: &[*mut u8]) -> Result<(), Error> {
        let address = self.jit.address(RUN);
        let address = address.map_err(|error| Error::Compile(error.to_string()))?;
        // SAFETY: `entry.rs` defines this function with this type.
        let run = unsafe { std::mem::transmute::<usize, Run>(address as usize) };
        let (feed, receive): (Feed, Receive) = (feed, receive);
        let mut table: Vec<*const c_void> = vec![
            feed as *const c_void,
            receive as *const c_void,
            std::ptr::from_mut(host).cast(),
        ];
        table.extend(
            arguments
                .iter()
                .map(|&argument| argument.cast_const().cast()),
        );
        // SAFETY: the memory is that of the parameters and the arena, in their order and of their sizes, and the host lives until the call returns.
        unsafe { run(table.as_ptr()) };
        Ok(())
    }
}

type Feed = extern "C" fn(*mut Host<'_>, i64, *mut u8);
type Receive = extern "C" fn(*mut Host<'_>, i64, i64, *const u8);

extern "C" fn feed(host: *mut Host<'_>, number: i64, to: *mut u8) {
    // SAFETY: `run` passes the address of a host that nobody else uses meanwhile, and the code gives the buffer of the exchange of this number.
    let (host, to) = unsafe {
        let host = &mut *host;
        let bytes = host.bytes_of(number as usize, 0);
        (host, std::slice::from_raw_parts_mut(to, bytes))
    };
    host.feed(number as usize, to);
}

extern "C" fn receive(host: *mut Host<'_>, number: i64, position: i64, from: *const u8) {
    // SAFETY: as for `feed`.
    let (host, from) = unsafe {
        let host = &mut *host;
        let bytes = host.bytes_of(number as usize, position as usize);
        (host, std::slice::from_raw_parts(from, bytes))
    };
    host.receive(number as usize, position as usize, from);
}

/// Contractions become calls of kernels, which are added.
fn define_contractions(module: &mut Module) {
    let functions: Vec<FunctionId> = module.functions.keys().collect();
    for id in functions {
        let function = &module.functions[id];
        if function.body.is_none() {
            continue;
        }
        let contracted = |scalar: Scalar| {
            all_ops(function).into_iter().any(|op| {
                let contraction = function.ops[op].contraction();
                function.ops[op].opcode == Opcode::Contract
                    && contraction.is_some_and(|c| function.ty(c.factor).scalar() == scalar)
            })
        };
        let needed = [Scalar::F32, Scalar::F64].map(|scalar| contracted(scalar).then_some(scalar));
        for scalar in needed.into_iter().flatten() {
            ferrozyme_kernels::contraction(module, scalar);
        }
        lower_contractions(module, id);
    }
}
