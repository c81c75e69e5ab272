//! The laws that must hold for every program.
//!
//! Each law is a plain function of a [`Subject`] that returns the first [`Violation`] it finds. [`check`] runs those that are
//! asked for, from the simplest on: a law may assume that the ones before it hold.

pub mod derivatives;
pub mod passes;
pub mod text;

use crate::inputs::{Inputs, Outputs};
use ferrozyme_ir::interpret::{Fault, FaultKind};
use ferrozyme_ir::{Flags, FunctionId, Module, VerifyError, all_ops};
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

macro_rules! laws {
    ($($(#[doc = $doc:literal])+ $name:ident $text:literal,)*) => {
        /// The laws, from the simplest on.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Law { $($(#[doc = $doc])+ $name,)* }

        impl Law {
            /// All of them.
            pub const ALL: &'static [Law] = &[$(Law::$name,)*];

            /// Its name on the command line and in summaries.
            pub fn name(self) -> &'static str {
                match self { $(Law::$name => $text,)* }
            }

            /// The law of this name.
            pub fn named(name: &str) -> Option<Law> {
                match name { $($text => Some(Law::$name),)* _ => None }
            }

            /// Its statement.
            pub fn statement(self) -> &'static str {
                match self { $(Law::$name => concat!($($doc,)+).trim_ascii(),)* }
            }
        }
    };
}

laws! {
    /// The program verifies.
    Verify "verify",
    /// It prints, and the printed text parses to the same program.
    Text "text",
    /// It runs without fault and leak, within its limits, to finite numbers, and the same each time.
    Run "run",
    /// Every pass preserves its meaning, and its result verifies.
    Passes "passes",
    /// All passes together do so too.
    Optimise "optimise",
    /// It computes the same if every loop that qualifies runs on several threads, whichever comes first.
    Threads "threads",
    /// The forward derivative verifies, runs without fault or leak, and returns the primal's results.
    Forward "forward",
    /// The reverse derivative verifies, runs without fault or leak, and returns the primal's results.
    Reverse "reverse",
    /// Forward and reverse mode agree: ⟨u, J·v⟩ = ⟨Jᵀ·u, v⟩.
    DotProduct "dot-product",
    /// The forward derivative agrees with finite differences where the program is smooth.
    Differences "differences",
    /// The gradient agrees with finite differences where the program is smooth.
    GradientDifferences "gradient-differences",
    /// Several directions in one sweep have the same tangents as in a sweep each.
    Width "width",
    /// The split reverse derivative equals the combined one, bit for bit if that keeps the order of sums.
    Split "split",
    /// The reverse derivative is the same with everything saved, with everything recomputed, and with no loop differentiated at once.
    Choices "choices",
    /// Both derivatives do not depend on which calls are inlined before, nor on the order of functions.
    Inlining "inlining",
    /// The forward derivative of the optimised program is that of the program.
    ForwardOfOptimised "forward-of-optimised",
    /// The reverse derivative of the optimised program is that of the program.
    ReverseOfOptimised "reverse-of-optimised",
    /// The optimised forward derivative is the forward derivative.
    OptimisedForward "optimised-forward",
    /// The optimised reverse derivative is the reverse derivative.
    OptimisedReverse "optimised-reverse",
    /// Nor does it change when every loop that qualifies runs on several threads.
    ReverseOnThreads "reverse-on-threads",
    /// Nor does it change when the program's memory is discarded.
    Discarded "discarded",
    /// Forward over reverse yields a symmetric second derivative that agrees with differences of the gradient.
    ForwardOverReverse "forward-over-reverse",
    /// Reverse over forward yields the same second derivative.
    ReverseOverForward "reverse-over-forward",
    /// Reverse over reverse yields the same second derivative.
    ReverseOverReverse "reverse-over-reverse",
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// In which way a law was broken. A smaller program shows the same defect only if this stays the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// The compiler panicked.
    Panic,
    /// The compiler refused a program that it should accept.
    Refused,
    /// The compiler refused a program because bytes that it copies are used nowhere, so their type is unknown.
    /// That is allowed: the user can describe the type.
    Unknown,
    /// The verifier rejects the program.
    Invalid,
    /// Two texts of the same program differ, or one does not parse.
    Text,
    /// Running failed.
    Fault(&'static str),
    /// A number is wrong.
    Wrong,
    /// A derivative is infinite or not a number.
    NotFinite,
    /// A second run has another result.
    Unsteady,
}

/// A law that does not hold for a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Which law.
    pub law: Law,
    /// In which way.
    pub kind: Kind,
    /// What happened, in words and numbers.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?}): {}", self.law, self.kind, self.detail)
    }
}

impl Violation {
    /// A violation.
    pub fn new(law: Law, kind: Kind, detail: impl Into<String>) -> Violation {
        Violation {
            law,
            kind,
            detail: detail.into(),
        }
    }

    /// A program that does not verify.
    pub(crate) fn invalid(law: Law, what: &str, errors: &[VerifyError]) -> Violation {
        let errors: Vec<String> = errors.iter().map(VerifyError::to_string).collect();
        let detail = format!("{what} does not verify: {}", errors.join("\n"));
        Violation::new(law, Kind::Invalid, detail)
    }

    /// A run that failed.
    pub(crate) fn fault(law: Law, what: &str, fault: &Fault) -> Violation {
        let kind = match &fault.kind {
            FaultKind::OutOfBounds { .. } => "out of bounds",
            FaultKind::UseAfterFree { .. } | FaultKind::StackMemoryOutlived { .. } => {
                "use after free"
            }
            FaultKind::NullAccess { .. } => "null",
            FaultKind::WildPointer { .. } => "wild pointer",
            FaultKind::Uninitialised { .. } => "uninitialised",
            FaultKind::Misaligned { .. } => "misaligned",
            FaultKind::DoubleFree { .. } | FaultKind::InvalidFree { .. } => "free",
            FaultKind::Leak { .. } => "leak",
            FaultKind::StepLimit { .. } | FaultKind::RecursionLimit { .. } => "endless",
            FaultKind::Trap { .. } => "trap",
            FaultKind::UndefUsed { .. } => "undef",
            FaultKind::PromiseBroken { .. } => "promise",
            FaultKind::Race { .. } => "race",
            _ => "other",
        };
        Violation::new(law, Kind::Fault(kind), format!("{what}: {fault}"))
    }
}

/// A program to be checked, and its inputs.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The program.
    pub module: Module,
    /// The function to run and differentiate.
    pub main: FunctionId,
    /// Determines the inputs and directions.
    pub seed: u64,
}

/// How often each law was checked and could not be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    checked: [u64; Law::ALL.len()],
    skipped: [u64; Law::ALL.len()],
    /// Operations that the programs themselves carried out.
    pub steps: u64,
}

impl Tally {
    /// How often a law was checked.
    pub fn checked(&self, law: Law) -> u64 {
        self.checked[law as usize]
    }

    /// How often a law could not be checked, because the program is not smooth at its inputs or not defined for it.
    pub fn skipped(&self, law: Law) -> u64 {
        self.skipped[law as usize]
    }

    /// Adds the counts of another.
    pub fn add(&mut self, other: &Tally) {
        for law in 0..Law::ALL.len() {
            self.checked[law] += other.checked[law];
            self.skipped[law] += other.skipped[law];
        }
        self.steps += other.steps;
    }

    /// Counts a law as skipped that was about to be checked.
    pub(crate) fn skip(&mut self, law: Law) {
        self.checked[law as usize] -= 1;
        self.skipped[law as usize] += 1;
    }
}

/// Checks laws on a program, in order, up to the first that is broken or cannot be checked. A panic of the compiler breaks
/// the law during which it happens.
pub fn check(subject: &Subject, laws: &[Law], tally: &mut Tally) -> Result<(), Violation> {
    CURRENT.set(Law::Verify);
    GUARDED.set(true);
    let result = catch_unwind(AssertUnwindSafe(|| check_unguarded(subject, laws, tally)));
    GUARDED.set(false);
    let result = result.unwrap_or_else(|payload| {
        let message = payload
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| payload.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        let place = PLACE.take().unwrap_or_default();
        let detail = format!("panicked{place}: {message}");
        Err(Violation::new(CURRENT.get(), Kind::Panic, detail))
    });
    match result {
        Err(violation) if violation.kind == Kind::Unknown => {
            tally.skip(violation.law);
            Ok(())
        }
        result => result,
    }
}

thread_local! {
    /// The law that is being checked on this thread, for panics.
    static CURRENT: Cell<Law> = const { Cell::new(Law::Verify) };
    /// Where the last panic on this thread happened, if [`remember_panics`] was called.
    static PLACE: Cell<Option<String>> = const { Cell::new(None) };
    /// Whether a panic on this thread is caught.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// From now on panics in [`check`] are remembered with their place for the violation's detail, instead of being printed.
pub fn remember_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if GUARDED.get() {
                PLACE.set(info.location().map(|location| format!(" at {location}")));
            } else {
                usual(info);
            }
        }));
    });
}

/// Says which law is being checked from here on, and counts it.
pub(crate) fn start(law: Law, tally: &mut Tally) {
    CURRENT.set(law);
    tally.checked[law as usize] += 1;
}

fn check_unguarded(subject: &Subject, laws: &[Law], tally: &mut Tally) -> Result<(), Violation> {
    start(Law::Verify, tally);
    text::verifies(subject)?;
    if laws.contains(&Law::Text) {
        start(Law::Text, tally);
        text::round_trip(subject)?;
    }
    start(Law::Run, tally);
    let (inputs, outputs) = runs(subject)?;
    tally.steps += outputs.steps;
    if laws.contains(&Law::Passes) {
        start(Law::Passes, tally);
        passes::each_keeps_meaning(subject, &inputs, &outputs)?;
    }
    if laws.contains(&Law::Optimise) {
        start(Law::Optimise, tally);
        passes::all_keep_meaning(subject, &inputs, &outputs)?;
    }
    if laws.contains(&Law::Threads) {
        start(Law::Threads, tally);
        passes::threads_keep_meaning(subject, &inputs, &outputs)?;
    }
    derivatives::check(subject, &inputs, &outputs, laws, tally)
}

/// The program runs, to the same finite numbers each time.
pub fn runs(subject: &Subject) -> Result<(Inputs, Outputs), Violation> {
    let inputs = Inputs::new(&subject.module, subject.main, subject.seed)
        .map_err(|message| Violation::new(Law::Run, Kind::Refused, message))?;
    let run = || {
        inputs
            .run(&subject.module, subject.main, &inputs.state)
            .map_err(|fault| Violation::fault(Law::Run, "the program fails", &fault))
    };
    let outputs = run()?;
    if !outputs.state.is_finite() {
        return Err(Violation::new(
            Law::Run,
            Kind::NotFinite,
            format!("the outputs are {:?}", outputs.state),
        ));
    }
    Ok((inputs, outputs))
}

/// Whether passes must preserve every bit of the results of a module, according to its flags.
pub(crate) fn is_exact(module: &Module) -> bool {
    let functions = module.functions.values();
    let mut flags = functions.flat_map(|function| {
        let ops = all_ops(function).into_iter();
        ops.map(|op| function.ops[op].flags)
    });
    flags.all(|flags| flags.intersection(Flags::FAST).is_empty())
}
