//! Reads the registrations of users: custom derivatives, and inactive functions.
//!
//! The macros write a constant with a special name for each; it holds a magic number and the addresses of functions.

use crate::constants::{Blob, Constants, ModuleConstants};
use crate::registrations::{
    Convention, Registration, RegistrationKind, RuleFunction, refused_at_variable,
};
use crate::report::Diagnostic;
use ferrozyme_library::demangle;
use ferrozyme_llvm::{Context, Module};
use ferrozyme_refusal::{RUST, Refusal};

/// What the names of these constants contain, in Rust programs: those of rules, and those of inactive functions.
pub const REGISTRATIONS: [&str; 2] = ["__FERROZYME_RULE", "__FERROZYME_INACTIVE"];

/// The registrations of a module, which is this input.
pub(crate) fn read_registrations<'c>(
    context: &'c Context,
    module: Module<'c>,
    source: usize,
) -> Result<Vec<Registration>, Diagnostic> {
    let constants = ModuleConstants::new(module);
    let constants = constants.of();
    let mut found = Vec::new();
    for global in module.globals() {
        let name = global.name();
        let [rule, inactive] = REGISTRATIONS.map(|known| name.contains(known));
        if global.is_declaration() || !(rule || inactive) {
            continue;
        }
        let unreadable = || {
            let name = demangle(&name);
            let refusal = Refusal::UnreadableRegistration { name };
            refused_at_variable(context, global, &refusal, &RUST)
        };
        let blob = constants.blob(global).ok_or_else(unreadable)?;
        let function = |at: u64| {
            let &(symbol, offset) = blob.addresses.get(&at)?;
            (symbol.is_function() && offset == 0).then(|| symbol.name())
        };
        let rule_function = |at: u64, results: u64| {
            Some(RuleFunction {
                symbol: function(at)?,
                results: read_text(&constants, &blob, results)?,
                convention: Convention::Rule,
            })
        };
        let magic: &[u8] = if rule { b"FZRUL001" } else { b"FZINA001" };
        if !blob.bytes.starts_with(magic) {
            return Err(unreadable());
        }
        found.push(Registration {
            primal: function(8).ok_or_else(unreadable)?,
            source,
            kind: match rule {
                false => RegistrationKind::Inactive,
                true => RegistrationKind::Rule {
                    forward: rule_function(16, 40),
                    augment: rule_function(24, 56),
                    reverse: rule_function(32, 72),
                },
            },
        });
    }
    Ok(found)
}

/// The text whose address and length stand in a constant; one without an address is empty.
fn read_text<C: Constants>(constants: &C, blob: &Blob<C::Symbol>, at: u64) -> Option<String> {
    let Some(&(symbol, offset)) = blob.addresses.get(&at) else {
        return Some(String::new());
    };
    let length = blob.bytes.get(at as usize + 8..at as usize + 16)?;
    let length = usize::try_from(u64::from_le_bytes(length.try_into().ok()?)).ok()?;
    let start = usize::try_from(offset).ok()?;
    let text = constants.blob(symbol)?;
    let bytes = text.bytes.get(start..start.checked_add(length)?)?;
    String::from_utf8(bytes.to_vec()).ok()
}
