//! Reads what users say of functions beside requests: rules of their own, and that a function is inactive.
//!
//! The macros leave a constant for each, whose name says so; it holds a magic number and the addresses of functions.

use crate::constants::ModuleConstants;
use crate::descriptor::Constants;
use ferrozyme_llvm::Module;

const RULE_NAME: &str = "__FERROZYME_RULE";
const INACTIVE_NAME: &str = "__FERROZYME_INACTIVE";

/// Something said of a function, which is named by its symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Registration {
    /// The function.
    pub(crate) primal: String,
    /// What is said of it.
    pub(crate) kind: RegistrationKind,
}

/// What is said of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RegistrationKind {
    /// Nothing that goes through it carries a derivative.
    Inactive,
    /// Its derivative is given: the symbols of the functions of an `ir::Rule`.
    Rule {
        forward: Option<String>,
        augment: Option<String>,
        reverse: Option<String>,
    },
}

impl Registration {
    /// All functions that are named.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = &str> {
        let (forward, augment, reverse) = match &self.kind {
            RegistrationKind::Inactive => (&None, &None, &None),
            RegistrationKind::Rule {
                forward,
                augment,
                reverse,
            } => (forward, augment, reverse),
        };
        [forward, augment, reverse]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .chain([self.primal.as_str()])
    }
}

/// The registrations of a module.
pub(crate) fn read_registrations(module: Module<'_>) -> Result<Vec<Registration>, String> {
    let constants = ModuleConstants::new(module);
    let constants = constants.of();
    let mut found = Vec::new();
    for global in module.globals() {
        let name = global.name();
        let rule = name.contains(RULE_NAME);
        if global.is_declaration() || !(rule || name.contains(INACTIVE_NAME)) {
            continue;
        }
        let unreadable = || format!("the registration `{name}` cannot be read");
        let blob = constants.blob(global).ok_or_else(unreadable)?;
        let function = |at: u64| {
            let &(symbol, offset) = blob.addresses.get(&at)?;
            (symbol.is_function() && offset == 0).then(|| symbol.name())
        };
        let magic: &[u8] = if rule { b"FZRUL001" } else { b"FZINA001" };
        if !blob.bytes.starts_with(magic) {
            return Err(format!("{}: it is of another version", unreadable()));
        }
        found.push(Registration {
            primal: function(8).ok_or_else(unreadable)?,
            kind: match rule {
                false => RegistrationKind::Inactive,
                true => RegistrationKind::Rule {
                    forward: function(16),
                    augment: function(24),
                    reverse: function(32),
                },
            },
        });
    }
    Ok(found)
}
