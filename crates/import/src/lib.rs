//! Imports LLVM functions into the Loop IR.
//!
//! [`import`] takes the roots and all functions with a body that they reach, except opaque ones: these, and
//! functions without a body, are declared with their attributes. Globals are imported with their contents.
//!
//! It assumes that LLVM has optimised the module (no vectoriser, no unrolling), and that [cold code is outlined](crate::outline), so
//! that a panic is a call and `unreachable`. Instructions that the Loop IR lacks (fences, atomic exchanges, inline assembly)
//! are outlined into LLVM functions, which are called like any other ([`opaque`]).
//!
//! It guarantees a module that verifies. A function that cannot be imported is only declared, with the reason in
//! [`Imported::opaque`]: the differentiator decides whether that matters.
//!
//! | file | what it does |
//! |---|---|
//! | `structure/` | control flow: from blocks to regions |
//! | `body.rs` | a function: its values and blocks, and the translation of each block |
//! | `arithmetic.rs`, `memory.rs`, `vector.rs` | instructions by kind |
//! | `call.rs`, `cleanup.rs`, `allocation.rs` | calls, panics, what is done when a callee unwinds, allocation |
//! | `intrinsic.rs`, `overflow.rs`, `float_class.rs`, `libm.rs` | functions that the Loop IR has operations for |
//! | `library.rs`, `library.fz` | functions that it has none for, and that have derivatives: rules for them, as Loop IR |
//! | `constant.rs`, `globals.rs` | constants and global variables |
//! | `facts.rs` | attributes |
//! | `opaque.rs`, `pointers.rs`, `resize.rs` | what is changed in LLVM's function before: instructions that move into functions of their own, pointers that were integers, `realloc` |
//! | `location.rs` | source locations |

mod allocation;
mod arithmetic;
pub mod assembly;
mod body;
mod call;
mod catches;
mod cleanup;
mod constant;
mod error;
mod facts;
mod float_class;
mod globals;
mod intrinsic;
mod libm;
mod library;
mod location;
mod long_double;
mod memory;
mod opaque;
pub mod outline;
mod overflow;
mod pointers;
mod resize;
mod structure;
mod vector;

pub use error::ImportError;

use ferrozyme_convention::signature::leaves;
use ferrozyme_ir as ir;
use ferrozyme_llvm::{Context, DataLayout, Module, Value};
use ferrozyme_refusal::Refusal;
use ir::{Function, FunctionId, GlobalId, Type};
use location::Locations;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// What the importer is to leave alone.
pub struct ImportOptions<'a> {
    /// Which functions are declared only, although they have a body.
    pub is_opaque: &'a dyn Fn(Value<'_>) -> bool,
    /// Of which functions without a body nothing that goes through them carries a derivative.
    pub is_inactive: &'a dyn Fn(&str) -> bool,
}

/// What was imported.
#[derive(Debug)]
pub struct Imported {
    /// The functions and globals, by their names in LLVM.
    pub module: ir::Module,
    /// Functions that have a body in LLVM but could not be imported, and why.
    pub opaque: FxHashMap<FunctionId, ImportError>,
    /// Functions that were made for instructions which the Loop IR has no word for, and why these have no derivative.
    pub moved: FxHashMap<FunctionId, Refusal>,
}

/// Imports functions and what they need.
///
/// # Errors
/// If a root does not exist, or cannot be imported.
pub fn import<'c>(
    context: &'c Context,
    module: Module<'c>,
    roots: &[&str],
    options: &ImportOptions<'_>,
) -> Result<Imported, ImportError> {
    let mut importer = Importer {
        context,
        llvm: module,
        layout: DataLayout::of(module),
        options,
        module: ir::Module::new(),
        functions: FxHashMap::default(),
        globals: FxHashMap::default(),
        queue: VecDeque::new(),
        opaque: FxHashMap::default(),
        moved: FxHashMap::default(),
        locations: Locations::default(),
        brought: FxHashMap::default(),
    };
    let mut wanted = Vec::new();
    for root in roots {
        let function = module
            .function(root)
            .filter(|function| !function.is_declaration());
        let Some(function) = function else {
            let name = (*root).to_owned();
            return Err(ImportError {
                function: name.clone(),
                refusal: Refusal::NoFunction { name },
                instruction: None,
                places: Vec::new(),
            });
        };
        let id = importer.function(function);
        importer.enqueue(function, id);
        wanted.push(id);
    }
    while let Some((function, id)) = importer.queue.pop_front() {
        if importer.module.functions[id].body.is_some() || importer.opaque.contains_key(&id) {
            continue;
        }
        match importer.import_body(function, id) {
            Ok(()) => {}
            Err(error) if wanted.contains(&id) => return Err(error),
            Err(error) => {
                importer.opaque.insert(id, error);
            }
        }
    }
    let moved = importer.moved.into_iter();
    let functions = &importer.functions;
    Ok(Imported {
        module: importer.module,
        opaque: importer.opaque,
        moved: moved
            .filter_map(|(function, moved)| Some((*functions.get(&function)?, moved.refusal)))
            .collect(),
    })
}

/// The import in progress.
struct Importer<'c, 'o> {
    context: &'c Context,
    llvm: Module<'c>,
    layout: DataLayout,
    options: &'o ImportOptions<'o>,
    module: ir::Module,
    functions: FxHashMap<Value<'c>, FunctionId>,
    globals: FxHashMap<Value<'c>, GlobalId>,
    /// Functions whose bodies are still to be imported.
    queue: VecDeque<(Value<'c>, FunctionId)>,
    opaque: FxHashMap<FunctionId, ImportError>,
    /// Functions that were made for instructions which the Loop IR has no word for.
    moved: FxHashMap<Value<'c>, opaque::MovedOut>,
    locations: Locations<'c>,
    /// Functions that came along as Loop IR, by name.
    brought: FxHashMap<String, FunctionId>,
}

impl<'c> Importer<'c, '_> {
    /// The function of the Loop IR for one of LLVM's; its body is imported later if it has one that matters.
    fn function(&mut self, function: Value<'c>) -> FunctionId {
        if let Some(&id) = self.functions.get(&function) {
            return id;
        }
        self.name_global(function);
        let name = function.name();
        let (declared, problem) = match self.signature(function) {
            Some((params, results)) => (Function::declare(name, params, results), None),
            None => {
                let problem = ImportError {
                    function: name.clone(),
                    refusal: Refusal::UnknownSignature {
                        ty: function.value_type().to_string(),
                    },
                    instruction: None,
                    places: function.function_place(self.context).into_iter().collect(),
                };
                (Function::declare(name, vec![], vec![]), Some(problem))
            }
        };
        let id = self.module.functions.push(declared);
        self.functions.insert(function, id);
        self.module.functions[id].facts = self.function_facts(function);
        match problem {
            Some(problem) => {
                self.opaque.insert(id, problem);
            }
            None if self.has_imported_body(function) => self.enqueue(function, id),
            None => {
                let name = &self.module.functions[id].name;
                let inactive = (self.options.is_inactive)(name) || self.is_inactive(function);
                let writes_constants = inactive && self.writes_constants(function);
                let facts = &mut self.module.functions[id].facts;
                facts.inactive |= inactive;
                facts.writes_constants |= writes_constants;
                if !inactive {
                    self.add_library_rule(id);
                }
            }
        }
        id
    }

    /// Whether the body of a function is to be imported.
    fn has_imported_body(&self, function: Value<'c>) -> bool {
        !function.is_declaration()
            && !self.is_moved_out(function)
            && !(self.options.is_opaque)(function)
    }

    fn enqueue(&mut self, function: Value<'c>, id: FunctionId) {
        self.queue.push_back((function, id));
    }

    /// Parameters and results in terms of the Loop IR; none if a type has no counterpart or there are variable arguments.
    fn signature(&self, function: Value<'c>) -> Option<(Vec<ir::Param>, Vec<Type>)> {
        let of = function.value_type();
        if of.is_variadic() {
            return None;
        }
        let mut params = Vec::new();
        let mut ranges = None;
        for (index, param) in of.parameters().into_iter().enumerate() {
            let leaves = leaves(param)?;
            let single = leaves.len() == 1;
            for ty in leaves {
                let mut param = ir::Param::from(ty);
                if single {
                    param.facts = self.param_facts(function, index as u32, ty);
                }
                if single && ty.is_int() && !ty.is_vector() {
                    let ranges = ranges.get_or_insert_with(|| self.param_ranges(function));
                    param.facts.range = ranges[index];
                }
                params.push(param);
            }
        }
        Some((params, leaves(of.result())?))
    }

    /// Gives a global a name if it has none, so that it is found again by it.
    fn name_global(&self, global: Value<'c>) {
        if global.name().is_empty() {
            global.set_name("__ferrozyme_unnamed");
        }
    }
}
