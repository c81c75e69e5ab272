//! What a caller asks for: a function, what its arguments and results mean for the derivative, and the signatures that
//! follow from it.

use crate::error::Error;
use ferrozyme_ir::{Function, FunctionId, Module, Type};
use ferrozyme_refusal::Refusal;

/// More directions than this in one sweep are taken for a mistake.
const MAX_WIDTH: u32 = 4096;

/// What an argument or result means for the derivative.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Activity {
    /// It has no derivative.
    Const,
    /// A float: in reverse mode its gradient is a result (argument) or its seed an argument (result); in forward mode
    /// it comes with tangents.
    Active,
    /// A pointer with a shadow: memory of the same shape that holds derivatives.
    Duplicated,
}

impl Activity {
    /// The word for it in text files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Activity::Const => "const",
            Activity::Active => "active",
            Activity::Duplicated => "dup",
        }
    }

    /// The activity of this name.
    pub fn from_name(name: &str) -> Option<Activity> {
        match name {
            "const" => Some(Activity::Const),
            "active" => Some(Activity::Active),
            "dup" => Some(Activity::Duplicated),
            _ => None,
        }
    }
}

/// A derivative that is asked for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Request {
    /// The function to differentiate.
    pub function: FunctionId,
    /// One for each argument.
    pub args: Vec<Activity>,
    /// One for each result.
    pub results: Vec<Activity>,
    /// Whether the derivative returns the results of the function too.
    pub primal: bool,
    /// How many tangents forward mode carries in one sweep. Reverse mode takes 1.
    pub width: u32,
    /// For each argument, as far as the list goes: whether nobody looks at the memory behind it (not at its shadow) once the derivative
    /// has returned, so that what need not be computed for the derivative is not computed.
    pub discarded: Vec<bool>,
    /// Whether what adds up to one adjoint is added in the order in which a reverse sweep that follows the whole forward sweep meets it. Then
    /// combined and split reverse mode agree bit for bit; but loops that could be differentiated at once may need a tape.
    pub keep_order: bool,
    /// For each argument, as far as the list goes: whether its shadow is made for this derivative, and starts with the shapes of floats ([`put_shapes`](crate::put_shapes)). Then floats
    /// behind it may go where pointers and numbers are at other times; gradients of the caller's would be mistaken for such.
    pub shaped: Vec<bool>,
    /// What it costs, not what it computes.
    pub choices: Choices,
}

/// Choices that time and memory depend on. None of them may change a derivative by more than rounding: tests try them all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Choices {
    /// How the reverse sweep comes by values of the forward sweep.
    pub caching: Caching,
    /// Whether loops are differentiated at once where that is possible.
    pub at_once: bool,
    /// Whether combined reverse mode is the two functions of split reverse mode, one after the other.
    pub split: bool,
    /// Whether indirect calls are resolved if all of them can be (`resolved_calls.rs`).
    pub resolve: bool,
}

/// How the reverse sweep comes by values of the forward sweep where there is a choice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Caching {
    /// By what is cheaper.
    #[default]
    Planned,
    /// They are saved.
    Save,
    /// They are computed or loaded again.
    Recompute,
}

impl Default for Choices {
    fn default() -> Choices {
        Choices {
            caching: Caching::Planned,
            at_once: true,
            split: false,
            resolve: false,
        }
    }
}

impl Request {
    /// The request that a user means who says nothing: pointers are duplicated, floats active, the rest constant.
    pub fn usual(module: &Module, function: FunctionId) -> Request {
        let data = &module.functions[function];
        let of_arg = |ty: Type| match ty {
            _ if ty.is_ptr() => Activity::Duplicated,
            _ if ty.is_float() => Activity::Active,
            _ => Activity::Const,
        };
        Request {
            function,
            args: data.params.iter().map(|param| of_arg(param.ty)).collect(),
            results: data.results.iter().map(|&ty| of_arg(ty)).collect(),
            primal: true,
            width: 1,
            discarded: Vec::new(),
            keep_order: false,
            shaped: Vec::new(),
            choices: Choices::default(),
        }
    }

    /// Whether nobody looks at the memory behind an argument once the derivative has returned.
    pub fn is_discarded(&self, argument: usize) -> bool {
        self.discarded.get(argument).copied().unwrap_or(false)
    }

    /// Whether the shadow of each argument starts with the shapes of floats.
    pub(crate) fn shapes(&self) -> Vec<bool> {
        let mut shapes = self.shaped.clone();
        shapes.resize(self.args.len(), false);
        shapes
    }

    /// Says what is wrong with the request, if anything is.
    pub(crate) fn check(&self, function: &Function, reverse: bool) -> Result<(), Error> {
        match self.misfit(function, reverse) {
            Some(refusal) => Err(Error::of(&function.name, refusal)),
            None => Ok(()),
        }
    }

    fn misfit(&self, function: &Function, reverse: bool) -> Option<Refusal> {
        let counts = [
            ("argument", self.args.len(), function.params.len()),
            ("result", self.results.len(), function.results.len()),
        ];
        for (what, given, wanted) in counts {
            if given != wanted {
                return Some(Refusal::ActivityCount {
                    what,
                    wanted,
                    given,
                });
            }
        }
        let most = if reverse { 1 } else { MAX_WIDTH };
        if !(1..=most).contains(&self.width) {
            let width = self.width;
            return Some(Refusal::Width { width, most });
        }
        for (index, (param, _)) in function.params.iter().zip(&self.discarded).enumerate() {
            if self.is_discarded(index) && param.ty != Type::PTR {
                let ty = param.ty.to_string();
                return Some(Refusal::DiscardedValue { index, ty });
            }
        }
        let args = self.args.iter().zip(function.params.iter().map(|p| p.ty));
        let results = self.results.iter().zip(function.results.iter().copied());
        let mut all = args
            .map(|pair| ("argument", pair))
            .chain(results.map(|pair| ("result", pair)));
        let (what, (activity, ty)) = all.find(|&(_, (&activity, ty))| match activity {
            Activity::Const => false,
            Activity::Active => !ty.is_float(),
            Activity::Duplicated => ty != Type::PTR && (reverse || !ty.is_float()),
        })?;
        Some(Refusal::UnfitActivity {
            activity: activity.name(),
            what,
            ty: ty.to_string(),
        })
    }
}
