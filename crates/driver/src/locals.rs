//! Names for file-local symbols, by which derivatives in another file can refer to them.

use ferrozyme_llvm::{Linkage, Module, Opcode, Value, Visibility};
use std::hash::{DefaultHasher, Hash, Hasher};

/// What the names of local memory start with that was made visible. It is told by its name since a unit may be linked, or compiled once more, long after it got it.
pub(crate) const PROMOTED_PREFIX: &str = "__ferrozyme_static_";

/// Makes local memory that is written visible under a name that only this module gives. Gives the names.
pub(crate) fn promote_locals(source: Module<'_>, identity: &str) -> Vec<String> {
    let mut names = Vec::new();
    for global in source.globals().collect::<Vec<_>>() {
        let name = global.name();
        if global.is_declaration()
            || global.is_global_constant()
            || global.linkage() == Linkage::Appending
        {
            continue;
        }
        if name.starts_with(PROMOTED_PREFIX) {
            names.push(name);
        } else if is_local(global) {
            let promoted = promoted_name(source, identity, &name);
            global.set_name(&promoted);
            global
                .set_linkage(Linkage::External)
                .set_visibility(Visibility::Hidden);
            names.push(promoted);
        }
    }
    names
}

/// The name that local memory of a module gets: its own ends it, for messages.
pub(crate) fn promoted_name(source: Module<'_>, identity: &str, name: &str) -> String {
    let mut hasher = DefaultHasher::new();
    (source.name(), identity, name).hash(&mut hasher);
    format!("{PROMOTED_PREFIX}{:016x}_{name}", hasher.finish())
}

/// The name that memory had before it got that of [`promoted_name`].
pub(crate) fn own_name(symbol: &str) -> &str {
    let promoted = symbol.strip_prefix(PROMOTED_PREFIX);
    let own = promoted.and_then(|rest| rest.split_once('_'));
    own.map_or(symbol, |(_, name)| name)
}

/// Variables of C that only their module knows and that it only reads are constants: derivatives see what is in such tables, functions above all. Takes complete modules.
pub(crate) fn mark_tables(source: Module<'_>) {
    for global in source.globals() {
        if is_local(global) && !global.is_declaration() && is_only_read(global) {
            global.set_global_constant(true);
        }
    }
}

/// Whether nothing but reading is done with a variable.
fn is_only_read(global: Value<'_>) -> bool {
    let mut addresses = vec![global];
    while let Some(address) = addresses.pop() {
        for user in address.users() {
            match user.opcode() {
                Some(Opcode::GetElementPtr | Opcode::BitCast | Opcode::AddrSpaceCast) => {
                    addresses.push(user);
                }
                Some(Opcode::Load) if !user.is_volatile() => {}
                _ => return false,
            }
        }
    }
    true
}

pub(crate) fn is_local(symbol: Value<'_>) -> bool {
    matches!(symbol.linkage(), Linkage::Internal | Linkage::Private)
}
