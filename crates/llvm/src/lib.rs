//! A safe binding to the libLLVM of the user's own rustc. It knows nothing of the Loop IR; all `unsafe` code of the compiler is here.
//!
//! # The binding in one page
//!
//! LLVM is loaded once per process: `load(sysroot)?`, or by the first `Context::new()?` from `RUSTC`/`rustc`. A [`Context`] owns everything. All other handles are `Copy`, carry its
//! lifetime `'c`, compare by identity and hash: [`Module`], [`Type`], [`Value`], [`Block`], [`Metadata`], [`Attribute`]. A handle of something that was deleted (`Module::dispose`, the source of
//! `Module::link`, `Value::erase`, `Value::erase_blocks`, passes) panics when it is used; `handle.rs` says how that is known. An accessor asked of the wrong kind of value panics, too.
//!
//! | wanted | call |
//! |---|---|
//! | modules | `context.create_module(name)`, `.parse_bitcode(name, bytes)?`, `.parse_bitcode_lazily(..)?`, `.parse_text(..)?`; `module.to_bitcode()`, `.to_string()`, `.link(source)?`, `.verify()?`, `.duplicate()` |
//! | symbols | `module.functions()`, `.globals()`, `.aliases()`, `.function(name)`, `.global(name)`, `.symbol(name)`, `.add_function(name, type)`, `.declare(..)`, `.add_global(..)`, `.intrinsic("llvm.fma", &[double])` |
//! | types | `context.integer(64)`, `.double()`, `.pointer()`, `.structure(&[..], packed)`; `of.array(n)`, `.vector(n)`, `result.function(&[..], variadic)`; `of.kind()`, `.fields()`, `.element()`, `.length()`, `.parameters()`, `.result()` |
//! | any value | `value.kind()`, `.ty()`, `.name()`, `.opcode()`, `.is(Opcode::Load)`, `.operands()`, `.users()`, `.replace_uses_with(..)`; printing with `{}` |
//! | instructions | `.block()`, `.next_instruction()`, `.int_predicate()`, `.no_signed_wrap()`, `.fast_math()`, `.gep_source_type()`, `.gep_flags()`, `.alignment()`, `.is_volatile()`, `.ordering()`, `.allocated_type()`, `.successors()`, `.condition()`, `.switch_cases()`, `.incoming()`, `.called()`, `.called_function()`, `.called_intrinsic()`, `.called_type()`, `.arguments()`, `.operand_bundles()`, `.duplicate_instruction()`, `.erase()` |
//! | constants | `of.constant(i128)`, `.float_from_bits(..)`, `.float_constant(f64)`, `.zero()`, `.undef()`, `.poison()`, `context.bytes(..)`; `value.as_signed()`, `.as_unsigned()`, `.as_bits()`, `.as_float_bits()`, `.is_zero()`, `.is_undef()`, `.raw_bytes()`, `.element(i)`; constant expressions have `opcode()` and `operands()` |
//! | globals | `.value_type()`, `.linkage()`, `.is_declaration()`, `.initialiser()`, `.is_global_constant()`, `.is_thread_local()`, `.section()`, `.parameters()`, `.blocks()`, `.instructions()`, `.delete_body()`, `.personality()` |
//! | attributes | `function_or_call.attribute(Place::Parameter(0), "noalias")`, `.has_attribute(..)`, `.attribute_value(place, "align")`, `.text_attribute(Place::Function, "alloc-family")`, `.add_attribute(place, context.attribute("nounwind", 0))`; `.call_has_attribute(..)` also asks the callee |
//! | metadata | `instruction.metadata(context, "range")`, `.range_metadata(context)`, `.source_places(context)` (innermost first), `Metadata::node(..)` |
//! | building | `let builder = context.builder(); builder.at_end(context.append_block(function, "entry")); builder.binary(Opcode::Add, a, b)` … |
//! | passes | `module.run_passes("default<O2>", Some(&machine), PassOptions::default())?`, `function.run_passes("sroa", ..)?` |
//! | code | `TargetMachine::new(&TargetDescription { cpu: "native".into(), ..Default::default() })?`, `.emit_object(module)?`, `.emit_assembly(module)?` |
//! | layout | `let layout = DataLayout::of(module); layout.size(of)`, `.alignment(of)`, `.field_offset(of, i)` |
//! | messages | `context.take_diagnostics()` |

#![allow(
    unsafe_code,
    reason = "the binding calls foreign functions; the safe types in these files are what the rest of the project sees"
)]

mod attribute;
mod block;
mod builder;
pub mod compile;
mod constant;
mod context;
mod debug_type;
mod examine;
mod global;
mod handle;
mod instruction;
pub mod jit;
mod memory;
mod metadata;
mod module;
mod opcode;
mod passes;
mod selection;
mod sys;
mod target;
mod toolchain;
mod types;
mod value;

pub use attribute::{Attribute, AttributeData, Place, attribute_number};
pub use block::Block;
pub use builder::Builder;
pub use context::{Context, Diagnostic, load, loaded_toolchain};
pub use debug_type::{DebugKind, DebugType};
pub use instruction::OperandBundle;
pub use memory::return_freed_memory;
pub use metadata::{Metadata, SourcePlace};
pub use module::{FlagBehaviour, LlvmError, Module};
pub use opcode::{
    AtomicOperation, FastMath, FloatPredicate, GepFlags, IntPredicate, Linkage, Opcode, Ordering,
    ThreadLocalMode, UnnamedAddress, Visibility,
};
pub use passes::{NO_MASKED_LOOPS, PassOptions};
pub use target::{
    CodeModel, CodegenLevel, DataLayout, RelocationModel, TargetDescription, TargetMachine,
    host_triple,
};
pub use toolchain::{KNOWN_MAJOR, LoadError, Toolchain, Version};
pub use types::{Type, TypeKind};
pub use value::{Value, ValueKind};
