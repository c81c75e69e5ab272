//! Reads a call of an entry point: which function is meant, and what is given for each of its parameters.

use super::entries::{Entry, Marker, marker};
use super::trace::trace;
use crate::opaque::demangle;
use crate::report::Diagnostic;
use crate::requests::location_of;
use ferrozyme_llvm::{AttributeData, Context, Module, Place, Type, TypeKind, Value};

/// How large a tape is in memory that the caller gives: it is the address of the rest.
pub(super) const TAPE_SIZE: u64 = 8;

/// What is known of a call.
pub(super) struct ReadCall<'c> {
    pub(super) entry: Entry,
    pub(super) call: Value<'c>,
    /// The function that is differentiated.
    pub(super) primal: Value<'c>,
    pub(super) arguments: Vec<Argument<'c>>,
    pub(super) width: u32,
    /// Where the result is to be written, if it is not returned, and its type.
    pub(super) result_memory: Option<(Value<'c>, Type<'c>)>,
    /// Whether the result of the function has a derivative, if the call says so.
    pub(super) active_result: Option<bool>,
    /// Whether the result of the function comes back.
    pub(super) with_primal: bool,
    /// What stands behind all arguments: the seed of the reverse sweep, and the tape.
    pub(super) extras: Vec<Value<'c>>,
    /// The caller's memory for the tape.
    pub(super) tape: Option<Value<'c>>,
    /// Whether the tape is used again.
    pub(super) keep_tape: bool,
}

/// What is given for a parameter of the primal.
pub(super) struct Argument<'c> {
    /// The parameter's type.
    pub(super) of: Type<'c>,
    pub(super) activity: ArgumentActivity,
    /// The value, unless the parameter is memory for the result that nobody gives.
    pub(super) primal: Option<Value<'c>>,
    pub(super) shadows: Shadows<'c>,
    /// Whether value and shadows are behind the addresses that are given.
    pub(super) by_reference: bool,
}

/// What an argument means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ArgumentActivity {
    Const,
    Out,
    Dup {
        /// Whether anybody looks at the primal memory afterwards.
        needed: bool,
    },
    /// Memory of this call for the result of the primal.
    Result,
}

/// The shadows of an argument.
#[derive(Clone, Debug)]
pub(super) enum Shadows<'c> {
    /// As many as the width says, or none.
    Each(Vec<Value<'c>>),
    /// One behind the other, so many bytes apart.
    Strided { first: Value<'c>, stride: Value<'c> },
}

/// Boxed, since it is large and rare.
pub(super) type Problem = Box<Diagnostic>;

/// Reads a call.
pub(super) fn read_call<'c>(
    context: &'c Context,
    module: Module<'c>,
    entry: Entry,
    call: Value<'c>,
) -> Result<ReadCall<'c>, Problem> {
    let _ = module;
    let problem = |message: String| {
        Box::new(Diagnostic {
            location: location_of(context, call),
            ..Diagnostic::error(message)
        })
    };
    let mut operands = call.arguments().into_iter().enumerate();
    let mut next = operands.next();
    let mut result_memory = None;
    if let Some((0, memory)) = next
        && let Some(of) = memory_type(call, 0, "sret")
    {
        result_memory = Some((memory, of));
        next = operands.next();
    }
    let Some((_, function)) = next else {
        return Err(problem(format!(
            "'{}' needs the function to differentiate as its first argument",
            entry.name()
        )));
    };
    let primal = trace(function);
    if !primal.is_function() {
        return Err(Box::new(Diagnostic {
            remedy: Some(
                "name the function in the call, or let the functions through which it comes be inlined"
                    .to_owned(),
            ),
            ..*problem("what is to be differentiated is not a known function".to_owned())
        }));
    }
    let mut reader = Reader {
        entry,
        primal,
        problem: &problem,
        arguments: Vec::new(),
        width: 1,
        interleave: false,
        active_result: None,
        // The forward sweep gives the result, unless it is told not to.
        with_primal: entry == Entry::Augmented,
        extras: Vec::new(),
        tape: None,
        keep_tape: false,
    };
    let operands: Vec<(u32, Value<'c>)> = operands
        .map(|(index, operand)| (index as u32, operand))
        .collect();
    reader.read_flags(&operands)?;
    reader.read(&operands)?;
    Ok(ReadCall {
        entry,
        call,
        primal,
        arguments: reader.arguments,
        width: reader.width,
        result_memory,
        active_result: reader.active_result,
        with_primal: reader.with_primal,
        extras: reader.extras,
        tape: reader.tape,
        keep_tape: reader.keep_tape,
    })
}

struct Reader<'c, 'p> {
    entry: Entry,
    primal: Value<'c>,
    problem: &'p dyn Fn(String) -> Problem,
    arguments: Vec<Argument<'c>>,
    width: u32,
    interleave: bool,
    active_result: Option<bool>,
    with_primal: bool,
    extras: Vec<Value<'c>>,
    tape: Option<Value<'c>>,
    keep_tape: bool,
}

impl<'c> Reader<'c, '_> {
    /// What is said of the whole call may stand behind what depends on it.
    fn read_flags(&mut self, operands: &[(u32, Value<'c>)]) -> Result<(), Problem> {
        let mut rest = operands.iter();
        while let Some((_, operand)) = rest.next() {
            match marker(*operand)
                .transpose()
                .map_err(|name| (self.problem)(format!("unknown marker '{name}'")))?
            {
                Some(Marker::Width) => {
                    let width = rest
                        .next()
                        .and_then(|(_, width)| trace(*width).as_unsigned())
                        .and_then(|width| u32::try_from(width).ok())
                        .filter(|width| *width > 0);
                    self.width = width.ok_or_else(|| {
                        (self.problem)(
                            "'enzyme_width' must be followed by a constant greater than zero"
                                .to_owned(),
                        )
                    })?;
                }
                Some(Marker::Interleave) => self.interleave = true,
                Some(Marker::ConstReturn) => self.active_result = Some(false),
                Some(Marker::ActiveReturn) => self.active_result = Some(true),
                Some(Marker::PrimalReturn) => self.with_primal = true,
                Some(Marker::NoReturn) => self.with_primal = false,
                Some(Marker::KeepTape) => self.keep_tape = true,
                Some(Marker::Allocated) => {
                    let size = rest.next().and_then(|(_, size)| trace(*size).as_unsigned());
                    if let Some(size) = size
                        && size < TAPE_SIZE
                    {
                        let name = demangle(&self.primal.name());
                        let plural = if size == 1 { "" } else { "s" };
                        return Err((self.problem)(format!(
                            "the tape of '{name}' takes more than the {size} byte{plural} that enzyme_allocated gives"
                        )));
                    }
                }
                Some(Marker::Tape) => self.tape = rest.next().map(|(_, tape)| *tape),
                _ => {}
            }
        }
        Ok(())
    }

    fn read(&mut self, operands: &[(u32, Value<'c>)]) -> Result<(), Problem> {
        let parameters = self.primal.value_type().parameters();
        let mut rest = operands.iter().map(|(_, operand)| *operand);
        let mut said = None;
        let mut stride = None;
        let mut by_reference = false;
        if memory_type(self.primal, 0, "sret").is_some() {
            self.arguments.push(Argument {
                of: parameters[0],
                activity: ArgumentActivity::Result,
                primal: None,
                shadows: Shadows::Each(Vec::new()),
                by_reference: false,
            });
        }
        while let Some(operand) = rest.next() {
            match marker(operand) {
                Some(Ok(Marker::Const)) => said = Some(ArgumentActivity::Const),
                Some(Ok(Marker::Out)) => said = Some(ArgumentActivity::Out),
                Some(Ok(Marker::Dup { needed, strided })) => {
                    said = Some(ArgumentActivity::Dup { needed });
                    if strided {
                        stride = rest.next();
                    }
                }
                Some(Ok(Marker::Width | Marker::Allocated | Marker::Tape)) => drop(rest.next()),
                Some(Ok(Marker::ByReference)) => {
                    by_reference = true;
                    rest.next();
                }
                Some(_) => {}
                None => {
                    let Some(&of) = parameters.get(self.arguments.len()) else {
                        if self.interleave && self.take_late_shadows(operand) {
                            continue;
                        }
                        if self.entry == Entry::SplitReverse {
                            self.extras.push(operand);
                            continue;
                        }
                        let more = rest.filter(|rest| marker(*rest).is_none()).count();
                        return Err(self.wrong_count(self.arguments.len() + 1 + more, "too many"));
                    };
                    let activity = said.take().unwrap_or_else(|| self.usual(of));
                    let stride = stride.take();
                    let duplicated = matches!(activity, ArgumentActivity::Dup { .. });
                    let mut shadows = Shadows::Each(Vec::new());
                    if duplicated && !self.interleave {
                        let mut shadow = || {
                            let shadow = rest.next().filter(|shadow| marker(*shadow).is_none());
                            shadow.ok_or_else(|| self.missing_shadow(self.arguments.len() as u32))
                        };
                        shadows = match stride {
                            Some(stride) => Shadows::Strided {
                                first: shadow()?,
                                stride,
                            },
                            None => Shadows::Each(
                                (0..self.width)
                                    .map(|_| shadow())
                                    .collect::<Result<_, _>>()?,
                            ),
                        };
                    }
                    self.arguments.push(Argument {
                        of,
                        activity,
                        primal: Some(operand),
                        shadows,
                        by_reference: std::mem::take(&mut by_reference),
                    });
                }
            }
        }
        if self.entry == Entry::TapeSize {
            return Ok(());
        }
        if self.arguments.len() != parameters.len() {
            return Err(self.wrong_count(self.arguments.len(), "too few"));
        }
        let width = self.width as usize;
        let lacks = |argument: &Argument<'_>| {
            matches!(argument.activity, ArgumentActivity::Dup { .. })
                && matches!(&argument.shadows, Shadows::Each(shadows) if shadows.len() != width)
        };
        if let Some(index) = self.arguments.iter().position(lacks) {
            return Err(self.missing_shadow(index as u32));
        }
        Ok(())
    }

    /// Gives the shadow to the first argument that still wants one; whether there is such an argument.
    fn take_late_shadows(&mut self, shadow: Value<'c>) -> bool {
        let width = self.width as usize;
        for argument in &mut self.arguments {
            if let Shadows::Each(shadows) = &mut argument.shadows
                && matches!(argument.activity, ArgumentActivity::Dup { .. })
                && shadows.len() < width
            {
                shadows.push(shadow);
                return true;
            }
        }
        false
    }

    /// What an argument means of which nothing is said.
    fn usual(&self, of: Type<'c>) -> ArgumentActivity {
        match of.kind() {
            TypeKind::Pointer => ArgumentActivity::Dup { needed: true },
            _ if is_all_floats(of) => match self.entry {
                Entry::Forward => ArgumentActivity::Dup { needed: true },
                _ => ArgumentActivity::Out,
            },
            TypeKind::Struct | TypeKind::Array => ArgumentActivity::Dup { needed: true },
            _ => ArgumentActivity::Const,
        }
    }

    fn wrong_count(&self, given: usize, what: &str) -> Problem {
        let name = demangle(&self.primal.name());
        let hidden = u32::from(memory_type(self.primal, 0, "sret").is_some());
        (self.problem)(format!(
            "{what} arguments to the derivative of '{name}': it takes {}, this call gives {}",
            self.primal.parameter_count() - hidden,
            given - hidden as usize
        ))
    }

    fn missing_shadow(&self, index: u32) -> Problem {
        let name = demangle(&self.primal.name());
        (self.problem)(format!(
            "the shadow of argument {} of '{name}' is missing",
            index + 1
        ))
    }
}

/// Whether a value of this type consists of floats.
fn is_all_floats(of: Type<'_>) -> bool {
    match of.kind() {
        TypeKind::Vector | TypeKind::Array => is_all_floats(of.element()),
        TypeKind::Struct => of.fields().into_iter().all(is_all_floats),
        _ => of.is_float(),
    }
}

/// The type that `byval` or `sret` says of an argument of a call or a parameter of a function.
pub(super) fn memory_type<'c>(of: Value<'c>, index: u32, attribute: &str) -> Option<Type<'c>> {
    match of.attribute(Place::Parameter(index), attribute)?.data() {
        AttributeData::Type(_, of) => Some(of),
        _ => None,
    }
}
