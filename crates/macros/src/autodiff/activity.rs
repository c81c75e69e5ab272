//! Modes and activities, and where each activity is allowed.

use proc_macro2::Span;

/// The direction of differentiation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Tangents, beside the computation.
    Forward,
    /// Gradients, backwards through the computation.
    Reverse,
}

impl Mode {
    /// As in error messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Forward => "Forward",
            Mode::Reverse => "Reverse",
        }
    }

    /// The prefix of shadows' names.
    pub(crate) fn shadow_prefix(self) -> &'static str {
        match self {
            Mode::Forward => "b",
            Mode::Reverse => "d",
        }
    }

    /// As in the descriptor.
    pub(crate) fn code(self) -> u32 {
        match self {
            Mode::Forward => 0,
            Mode::Reverse => 1,
        }
    }
}

/// How an argument or the result takes part in a derivative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Const,
    Active,
    ActiveOnly,
    Duplicated,
    DuplicatedOnly,
    Dual,
    DualOnly,
    Dualv,
    DualvOnly,
}

impl Kind {
    /// All activities, in the order of their numbers in the descriptor.
    pub(crate) const ALL: [Kind; 9] = [
        Kind::Const,
        Kind::Active,
        Kind::ActiveOnly,
        Kind::Duplicated,
        Kind::DuplicatedOnly,
        Kind::Dual,
        Kind::DualOnly,
        Kind::Dualv,
        Kind::DualvOnly,
    ];

    /// As users write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Const => "Const",
            Kind::Active => "Active",
            Kind::ActiveOnly => "ActiveOnly",
            Kind::Duplicated => "Duplicated",
            Kind::DuplicatedOnly => "DuplicatedOnly",
            Kind::Dual => "Dual",
            Kind::DualOnly => "DualOnly",
            Kind::Dualv => "Dualv",
            Kind::DualvOnly => "DualvOnly",
        }
    }

    /// As in the descriptor.
    pub(crate) fn code(self) -> u32 {
        self as u32
    }

    /// Whether an argument may have it.
    pub(crate) fn suits_argument(self, mode: Mode) -> bool {
        match self {
            Kind::Const => true,
            Kind::Active | Kind::Duplicated | Kind::DuplicatedOnly => mode == Mode::Reverse,
            Kind::Dual | Kind::DualOnly | Kind::Dualv | Kind::DualvOnly => mode == Mode::Forward,
            Kind::ActiveOnly => false,
        }
    }

    /// Whether a result may have it.
    pub(crate) fn suits_result(self, mode: Mode) -> bool {
        match self {
            Kind::Const => true,
            Kind::Active | Kind::ActiveOnly => mode == Mode::Reverse,
            Kind::Dual | Kind::DualOnly => mode == Mode::Forward,
            _ => false,
        }
    }

    /// The same with a shadow for each lane.
    pub(crate) fn with_separate_lanes(self) -> Kind {
        match self {
            Kind::Dualv => Kind::Dual,
            Kind::DualvOnly => Kind::DualOnly,
            kind => kind,
        }
    }

    /// Whether the shadow is one argument for any width.
    pub(crate) fn is_flat(self) -> bool {
        matches!(self, Kind::Dualv | Kind::DualvOnly)
    }
}

/// An activity where the user wrote it.
#[derive(Clone, Copy)]
pub(crate) struct Activity {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}
