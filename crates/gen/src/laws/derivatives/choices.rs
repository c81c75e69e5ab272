//! Laws of choices that must not matter: the caching plan, which calls are inlined, the order of functions.

use super::{Experiment, Kind, Law, Violation};
use crate::laws::passes::{optimise_module_with, reverse_functions};
use crate::state::State;
use ferrozyme_diff::{Caching, Choices};
use ferrozyme_ir::{FunctionId, Module};
use ferrozyme_opt::{InlinePolicy, Inlining, OptimiseOptions, inline_calls};

/// Alternative choices for a reverse derivative.
const WAYS: [(Caching, bool, bool, bool); 9] = [
    (Caching::Save, false, false, false),
    (Caching::Recompute, true, false, false),
    (Caching::Planned, false, false, true),
    (Caching::Save, true, false, false),
    (Caching::Recompute, false, false, true),
    (Caching::Save, true, true, false),
    (Caching::Recompute, true, true, false),
    (Caching::Planned, true, false, true),
    (Caching::Planned, true, true, true),
];

impl Experiment<'_> {
    /// The gradient is the same whatever is saved, recomputed or differentiated at once, and whether indirect calls are resolved. Each program tries some choices.
    pub(super) fn choices_agree(&self, gradient: &State, seed: u64) -> Result<(), Violation> {
        let law = Law::Choices;
        for way in [seed, seed / WAYS.len() as u64 + seed + 1] {
            let (caching, at_once, split, resolve) = WAYS[(way % WAYS.len() as u64) as usize];
            let choices = Choices {
                caching,
                at_once,
                split,
                resolve,
            };
            let reverse = self
                .reverse_with(law, self.module, self.main, choices)
                .map_err(|violation| under(&format!("{choices:?}"), violation))?;
            let what = format!("the gradient under {choices:?}");
            self.close(law, &what, gradient, &reverse.gradient)?;
        }
        Ok(())
    }

    /// Both derivatives do not depend on which calls were inlined, nor on the order of functions. Each program tries some
    /// choices.
    pub(super) fn inlining_agrees(
        &self,
        tangent: &State,
        gradient: &State,
        seed: u64,
    ) -> Result<(), Violation> {
        if self.module.functions.len() < 2 {
            return Ok(());
        }
        for version in [seed % 4, (seed + 1 + seed / 4 % 3) % 4] {
            let (what, module, main) = match version {
                0 => (
                    "with all calls inlined",
                    self.inlined(Inlining::All),
                    self.main,
                ),
                1 => {
                    let module = self.inlined(Inlining::Half(seed));
                    ("with half of the calls inlined", module, self.main)
                }
                2 => {
                    let mut module = self.module.clone();
                    let options = OptimiseOptions {
                        inline: None,
                        ..OptimiseOptions::default()
                    };
                    optimise_module_with(&mut module, &options);
                    ("optimised without inlining", module, self.main)
                }
                _ => {
                    let (module, main) = reverse_functions(self.module, self.main);
                    ("with its functions in reverse order", module, main)
                }
            };
            self.version_agrees(what, &module, main, tangent, gradient)
                .map_err(|violation| under(what, violation))?;
        }
        Ok(())
    }

    fn inlined(&self, which: Inlining) -> Module {
        let mut module = self.module.clone();
        let functions: Vec<FunctionId> = module.functions.keys().collect();
        let policy = InlinePolicy::from(which);
        for function in functions {
            inline_calls(&mut module, function, &policy);
        }
        module
    }

    fn version_agrees(
        &self,
        what: &str,
        module: &Module,
        main: FunctionId,
        tangent: &State,
        gradient: &State,
    ) -> Result<(), Violation> {
        let law = Law::Inlining;
        let forward = self.forward(law, module, main)?;
        self.close(
            law,
            &format!("the tangent {what}"),
            tangent,
            &forward.tangent,
        )?;
        let reverse = self.reverse(law, module, main)?;
        self.close(
            law,
            &format!("the gradient {what}"),
            gradient,
            &reverse.gradient,
        )
    }
}

/// Says of a failure under what circumstances it happens.
fn under(what: &str, violation: Violation) -> Violation {
    match violation.kind {
        Kind::Wrong => violation,
        kind => Violation::new(violation.law, kind, format!("{what}: {}", violation.detail)),
    }
}
