//! Globals that need no shadow, because the differentiated code stores only constants there.
//!
//! Tables and configurations are such globals: the program fills them before, and the differentiated functions only read them
//! ([`infer_inactive_globals`]), or fill them with constants on first use ([`assume_constants`]: `LazyLock`, caches of processor
//! features, seeds of hash functions). The shadow of a global cannot be observed, so it is needed only if an active value may be stored there.
//!
//! Pointers in globals are different: the memory behind them may have been allocated before the derivative was called, without a shadow. At the start of a derivative all
//! pointers in shadows of mutable globals are null. A derivative that follows such a pointer stops the program.

use crate::activity::reachable_from;
use crate::error::Error;
use crate::globals::constant_in_shadow;
use crate::memory::stop_if;
use crate::objects::{Class, Objects, ObjectsCache, Source};
use crate::shadowing::leads_on;
use ferrozyme_ir::{
    Builder, FunctionId, GlobalId, IntPredicate, Module, OpData, OpView, Opcode, Scalar, Value,
};
use ferrozyme_refusal::Refusal;
use rustc_hash::FxHashSet;

/// Declares globals inactive that no function of the module writes, nor what pointers in them lead to.
///
/// A global that no function of the module writes, but what its pointers lead to (floats, or more pointers), is declared shared: nobody but others put the pointers there, and nobody knows shadows of what they lead to.
pub fn infer_inactive_globals(module: &mut Module) {
    let candidates: Vec<GlobalId> = module
        .globals
        .iter()
        .filter(|(_, global)| !global.constant && !global.inactive)
        .map(|(id, _)| id)
        .collect();
    if candidates.is_empty() {
        return;
    }
    let mut written: FxHashSet<GlobalId> = FxHashSet::default();
    let mut assigned: FxHashSet<GlobalId> = FxHashSet::default();
    let mut leading: FxHashSet<GlobalId> = FxHashSet::default();
    let mut cache = ObjectsCache::new();
    let functions: Vec<FunctionId> = module.functions.keys().collect();
    for id in functions {
        if module.functions[id].body.is_none() {
            continue;
        }
        let objects = Objects::analyse(module, id, &mut cache, None);
        for class in objects.classes() {
            let globals: Vec<GlobalId> = objects
                .sources(class)
                .filter_map(|source| match source {
                    Source::Global(global) => Some(global),
                    _ => None,
                })
                .collect();
            if objects.is_written_here(class) {
                assigned.extend(&globals);
            }
            if objects.pointees(class).any(|to| leads_on(&objects, to)) {
                leading.extend(&globals);
            }
            let writes = || {
                let reached = reachable_from(&objects, class);
                reached.iter().any(|&class| objects.is_written_here(class))
            };
            if globals.iter().any(|global| !written.contains(global)) && writes() {
                written.extend(globals);
            }
        }
    }
    for id in candidates {
        let global = &mut module.globals[id];
        if !written.contains(&id) {
            global.inactive = true;
        } else if leading.contains(&id) && !assigned.contains(&id) && global.relocations.is_empty()
        {
            global.shared = true;
        }
    }
}

/// The globals that are assumed to hold constants while something is differentiated, and what becomes of that.
#[derive(Default)]
pub(crate) struct Assumption {
    /// They are declared inactive.
    pub(crate) constant: FxHashSet<GlobalId>,
    /// Those of them in which something was found that depends on active inputs.
    pub(crate) refuted: FxHashSet<GlobalId>,
}

/// Differentiates under the assumption that globals which start without derivatives in every call ([`Global::shared`](ferrozyme_ir::Global)) hold constants.
/// Where something that depends on active inputs turns out to be stored in one, or behind a pointer in one, all is done again without that assumption.
pub(crate) fn assume_constants<T>(
    module: &mut Module,
    mut attempt: impl FnMut(&mut Module, &mut Assumption) -> Result<T, Error>,
) -> Result<T, Error> {
    let mut assumption = Assumption {
        constant: module
            .globals
            .iter()
            .filter(|(_, global)| global.shared && !global.constant && !global.inactive)
            .map(|(id, _)| id)
            .collect(),
        refuted: FxHashSet::default(),
    };
    loop {
        if assumption.constant.is_empty() {
            return attempt(module, &mut assumption);
        }
        let untouched = module.clone();
        for &global in &assumption.constant {
            module.globals[global].inactive = true;
        }
        let result = attempt(module, &mut assumption);
        for &global in &assumption.constant {
            module.globals[global].inactive = false;
        }
        if assumption.refuted.is_empty() {
            return result;
        }
        *module = untouched;
        for global in assumption.refuted.drain() {
            assumption.constant.remove(&global);
        }
    }
}

/// Whether a module keeps pointers in globals that it can change, or of which the contents are not seen: then a pointer that is found in memory may have been put
/// there before the derivative ran, and have no shadow.
pub(crate) fn keeps_pointers_in_globals(module: &Module, cache: &mut ObjectsCache) -> bool {
    let is_unknown = |id: GlobalId| {
        let global = &module.globals[id];
        // The addresses in a shadow of a constant stay what they are.
        let changes = !global.constant && constant_in_shadow(module, id).is_none();
        (changes || global.bytes.is_none()) && !global.shared
    };
    let word = Scalar::Ptr.bytes();
    let mut globals = module.globals.iter();
    if !globals.any(|(id, global)| global.size >= word && is_unknown(id)) {
        return false;
    }
    let mut functions = module.functions.iter();
    functions.any(|(id, function)| {
        let holds = |objects: &Objects, class: Class| {
            let mut sources = objects.sources(class);
            sources.any(|source| matches!(source, Source::Global(global) if is_unknown(global)))
                && objects.pointees(class).next().is_some()
        };
        function.body.is_some() && {
            let objects = cache.get(module, id);
            objects.classes().any(|class| holds(&objects, class))
        }
    })
}

/// Stops the program where a pointer that was found in memory leads somewhere, and its shadow nowhere. Where it was found floats may be at other times (`in_union`).
pub(crate) fn stop_without_shadow(
    b: &mut Builder<'_>,
    pointer: Value,
    shadow: Value,
    in_union: bool,
) {
    let null = b.zero(b.ty(pointer));
    let leads = b.icmp(IntPredicate::Ne, pointer, null);
    let lost = b.icmp(IntPredicate::Eq, shadow, null);
    let both = b.binary(Opcode::And, leads, lost);
    let refusal = match in_union {
        // Code without derivatives put it there, as far as can be told.
        true => Refusal::NoShadowBehindUnion,
        false => Refusal::NoShadowBehindGlobal,
    };
    stop_if(b, both, &refusal);
}

/// The pointers among these that an operation goes on with. Who only moves one to memory, hands it on, compares or releases it may have a float, or what lies in the unused bytes of an enum: a whole value is read before
/// it is looked at.
pub(crate) fn followed(data: &OpData, is_doubtful: impl Fn(Value) -> bool) -> Vec<Value> {
    let operands = match data.view() {
        OpView::Store { address, .. } => &[address],
        OpView::Icmp(..) | OpView::Free { .. } | OpView::Select { .. } => &[][..],
        _ if matches!(
            data.opcode,
            Opcode::Yield | Opcode::Again | Opcode::For | Opcode::Loop
        ) =>
        {
            &[]
        }
        _ => &data.operands[..],
    };
    let operands = operands.iter().copied();
    operands.filter(|&pointer| is_doubtful(pointer)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferrozyme_ir::parse_module;

    #[test]
    fn what_is_only_read_is_inactive() {
        let mut module = parse_module(
            "global @read: 8 bytes align 8 external
             global @table: 16 bytes align 8 external
             global @behind: 8 bytes align 8 external
             global @written: 8 bytes align 8 external
             global @passed: 8 bytes align 8 external
             func @f(%x: f64) -> (f64) {
               %a = load f64 @read align 8
               %t = load ptr @table align 8
               %b = load f64 %t align 8
               call @look(@table)
               %p = load ptr @behind align 8
               store f64 %x, %p align 8
               store f64 %x, @written align 8
               call @fill(@passed)
               return %a
             }
             declare @look(ptr readonly nocapture) memory(args) inactive
             func @fill(%p: ptr) noinline {
               store f64 1.0, %p align 8
               return
             }",
        )
        .expect("the text is right");
        infer_inactive_globals(&mut module);
        let inactive: Vec<&str> = module
            .globals
            .values()
            .filter(|global| global.inactive)
            .map(|global| global.name.as_str())
            .collect();
        assert_eq!(inactive, ["read", "table"]);
        // What others put there, and what is behind is written.
        let shared: Vec<&str> = module
            .globals
            .values()
            .filter(|global| global.shared)
            .map(|global| global.name.as_str())
            .collect();
        assert_eq!(shared, ["behind"]);
    }
}
