//! Reads a call of an entry point: the primal, and the argument, shadow and activity of each of its parameters.

use super::entries::{Entry, Marker, marker};
use super::thunk::plain_name;
use crate::report::Diagnostic;
use crate::requests::location_of;
use crate::trace::trace;
use ferrozyme_ir::Layout;
use ferrozyme_llvm::{AttributeData, Context, Opcode, Place, Type, TypeKind, Value};
use ferrozyme_refusal::{self as refusal, C, Refusal};

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
    /// The shadows of global variables.
    pub(super) context: Option<Value<'c>>,
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
    /// Which part of the argument of the source it is: small structures are passed in two registers.
    pub(super) part: SourcePart,
    /// What is in the memory that it leads to, where that is known for certain.
    pub(super) layout: Option<Layout>,
}

/// What a parameter is in the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SourcePart {
    Whole,
    First,
    Second,
}

impl ReadCall<'_> {
    /// The number of an argument in the source, from 1 on.
    pub(super) fn number_of(&self, index: usize) -> usize {
        number_of(&self.arguments, index)
    }
}

fn number_of(arguments: &[Argument<'_>], index: usize) -> usize {
    let before = arguments.iter().take(index + 1).filter(|argument| {
        argument.activity != ArgumentActivity::Result && argument.part != SourcePart::Second
    });
    before.count()
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

/// A refusal of what a call asks for.
pub(super) fn refuse<'c>(context: &'c Context, call: Value<'c>, refusal: &Refusal) -> Problem {
    let location = location_of(context, call);
    Box::new(Diagnostic::refused_at(location, refusal, &C))
}

/// Reads a call.
pub(super) fn read_call<'c>(
    context: &'c Context,
    entry: Entry,
    call: Value<'c>,
) -> Result<ReadCall<'c>, Problem> {
    let problem = |refusal: Refusal| refuse(context, call, &refusal);
    let mut operands = call.arguments().into_iter().enumerate();
    let mut next = operands.next();
    let mut result_memory = None;
    if let Some((0, memory)) = next
        && let Some(of) = memory_type(call, 0, "sret")
    {
        result_memory = Some((memory, of));
        next = operands.next();
    }
    let primal = next
        .map(|(_, function)| trace(function))
        .filter(|primal| primal.is_function());
    let Some(primal) = primal else {
        let entry = entry.name();
        return Err(problem(Refusal::UnknownPrimal { entry }));
    };
    let mut reader = Reader {
        entry,
        call,
        primal,
        parameters: primal.value_type().parameters(),
        problem: &problem,
        arguments: Vec::new(),
        width: 1,
        interleave: false,
        active_result: None,
        // The forward sweep gives the result, unless it is told not to.
        with_primal: matches!(entry, Entry::Augmented | Entry::Accelerate),
        extras: Vec::new(),
        tape: None,
        keep_tape: false,
        context: None,
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
        context: reader.context,
    })
}

struct Reader<'c, 'p> {
    entry: Entry,
    call: Value<'c>,
    primal: Value<'c>,
    parameters: Vec<Type<'c>>,
    problem: &'p dyn Fn(Refusal) -> Problem,
    arguments: Vec<Argument<'c>>,
    width: u32,
    interleave: bool,
    active_result: Option<bool>,
    with_primal: bool,
    extras: Vec<Value<'c>>,
    tape: Option<Value<'c>>,
    keep_tape: bool,
    context: Option<Value<'c>>,
}

/// The operands of a call that are still to be read, with their places.
type Operands<'o, 'c> = std::iter::Copied<std::slice::Iter<'o, (u32, Value<'c>)>>;

/// What markers say of the argument that follows them.
#[derive(Default)]
struct Said<'c> {
    activity: Option<ArgumentActivity>,
    stride: Option<Value<'c>>,
    by_reference: bool,
}

impl<'c> Reader<'c, '_> {
    /// What is said of the whole call may stand behind what depends on it.
    fn read_flags(&mut self, operands: &[(u32, Value<'c>)]) -> Result<(), Problem> {
        let mut rest = operands.iter();
        while let Some((_, operand)) = rest.next() {
            match marker(*operand)
                .transpose()
                .map_err(|name| (self.problem)(Refusal::UnknownMarker { name }))?
            {
                Some(Marker::Width) => {
                    let width = rest
                        .next()
                        .and_then(|(_, width)| trace(*width).as_unsigned())
                        .and_then(|width| u32::try_from(width).ok())
                        .filter(|width| *width > 0);
                    self.width = width.ok_or_else(|| {
                        (self.problem)(Refusal::MisplacedMarker {
                            problem: "'enzyme_width' must be followed by a constant greater than zero",
                        })
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
                        return Err((self.problem)(Refusal::TapeSize {
                            function: plain_name(self.primal),
                            bytes: size,
                        }));
                    }
                }
                Some(Marker::Tape) => self.tape = rest.next().map(|(_, tape)| *tape),
                Some(Marker::Context) => {
                    self.context = rest.next().map(|(_, context)| *context);
                    // A context says for how many directions it is, where that can be seen.
                    if let Some(width) = self.context.and_then(width_of_context) {
                        self.width = width;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read(&mut self, operands: &[(u32, Value<'c>)]) -> Result<(), Problem> {
        self.add_result_memory();
        let mut rest = operands.iter().copied();
        let mut said = Said::default();
        while let Some((place, operand)) = rest.next() {
            match marker(operand) {
                Some(Ok(Marker::Const)) => said.activity = Some(ArgumentActivity::Const),
                Some(Ok(Marker::Out)) => said.activity = Some(ArgumentActivity::Out),
                Some(Ok(Marker::Dup { needed, strided })) => {
                    said.activity = Some(ArgumentActivity::Dup { needed });
                    if strided {
                        said.stride = rest.next().map(|(_, stride)| stride);
                    }
                }
                Some(Ok(Marker::Width | Marker::Allocated | Marker::Tape | Marker::Context)) => {
                    rest.next();
                }
                Some(Ok(Marker::ByReference)) => {
                    said.by_reference = true;
                    rest.next();
                }
                Some(_) => {}
                None if self.arguments.len() == self.parameters.len() => {
                    self.read_more(operand, &rest)?;
                }
                None => {
                    let said = std::mem::take(&mut said);
                    self.read_argument(said, place, operand, &mut rest)?;
                }
            }
        }
        self.check_complete()
    }

    /// A primal that writes its result to memory gets memory of the call's own.
    fn add_result_memory(&mut self) {
        if memory_type(self.primal, 0, "sret").is_some() {
            self.arguments.push(Argument {
                of: self.parameters[0],
                activity: ArgumentActivity::Result,
                primal: None,
                shadows: Shadows::Each(Vec::new()),
                by_reference: false,
                part: SourcePart::Whole,
                layout: None,
            });
        }
    }

    /// An operand for which there is no parameter any more.
    fn read_more(&mut self, operand: Value<'c>, rest: &Operands<'_, 'c>) -> Result<(), Problem> {
        if self.interleave && self.take_late_shadows(operand) {
            return Ok(());
        }
        if self.entry == Entry::SplitReverse {
            self.extras.push(operand);
            return Ok(());
        }
        let more = rest.clone().filter(|(_, rest)| marker(*rest).is_none());
        Err(self.wrong_count(self.arguments.len() + 1 + more.count()))
    }

    /// An argument with its shadows, of which one part is read and markers have said something.
    fn read_argument(
        &mut self,
        said: Said<'c>,
        place: u32,
        operand: Value<'c>,
        rest: &mut Operands<'_, 'c>,
    ) -> Result<(), Problem> {
        let mut parts = vec![self.parameters[self.arguments.len()]];
        let mut primals = vec![operand];
        if let Some(&second) = self.parameters.get(self.arguments.len() + 1)
            && !said.by_reference
            && starts_structure(self.call, place)
        {
            parts.push(second);
            primals.extend(rest.next().map(|(_, operand)| operand));
        }
        let activity = said.activity.unwrap_or_else(|| self.usual(&parts));
        let shadows = match activity {
            ArgumentActivity::Dup { .. } if !self.interleave => {
                self.read_shadows(parts.len(), said.stride, rest)?
            }
            _ => vec![Shadows::Each(Vec::new()); parts.len()],
        };
        let names = match parts.len() {
            1 => [SourcePart::Whole].iter(),
            _ => [SourcePart::First, SourcePart::Second].iter(),
        };
        let parts = parts.into_iter().zip(primals).zip(shadows).zip(names);
        self.arguments
            .extend(parts.map(|(((of, primal), shadows), part)| Argument {
                of,
                activity,
                primal: Some(primal),
                shadows,
                by_reference: said.by_reference,
                part: *part,
                layout: None,
            }));
        Ok(())
    }

    /// The shadows that follow an argument, for each of its parts; those of one direction stand together.
    fn read_shadows(
        &self,
        parts: usize,
        stride: Option<Value<'c>>,
        rest: &mut Operands<'_, 'c>,
    ) -> Result<Vec<Shadows<'c>>, Problem> {
        let mut next = || {
            let shadow = rest.next().filter(|(_, shadow)| marker(*shadow).is_none());
            shadow
                .map(|(_, shadow)| shadow)
                .ok_or_else(|| self.missing_shadow(self.arguments.len()))
        };
        if let Some(stride) = stride {
            let mut shadows = vec![Shadows::Each(Vec::new()); parts];
            shadows[0] = Shadows::Strided {
                first: next()?,
                stride,
            };
            return Ok(shadows);
        }
        let mut lanes = vec![Vec::new(); parts];
        for _ in 0..self.width {
            for part in &mut lanes {
                part.push(next()?);
            }
        }
        Ok(lanes.into_iter().map(Shadows::Each).collect())
    }

    /// All parameters must have been given, and all shadows; who asks for the size of a tape gives none.
    fn check_complete(&self) -> Result<(), Problem> {
        if self.entry == Entry::TapeSize {
            return Ok(());
        }
        if self.arguments.len() != self.parameters.len() {
            return Err(self.wrong_count(self.arguments.len()));
        }
        let width = self.width as usize;
        let lacks = |argument: &Argument<'_>| {
            matches!(argument.activity, ArgumentActivity::Dup { .. })
                && matches!(&argument.shadows, Shadows::Each(shadows) if shadows.len() != width)
        };
        match self.arguments.iter().position(lacks) {
            Some(index) => Err(self.missing_shadow(index)),
            None => Ok(()),
        }
    }

    /// Gives the shadow to the first argument that still wants one; whether there is such an argument.
    fn take_late_shadows(&mut self, shadow: Value<'c>) -> bool {
        let width = self.width as usize;
        let wanted = |argument: &Argument<'c>| match &argument.shadows {
            Shadows::Each(shadows) if matches!(argument.activity, ArgumentActivity::Dup { .. }) => {
                width.saturating_sub(shadows.len())
            }
            _ => 0,
        };
        let Some(mut index) = self.arguments.iter().position(|one| wanted(one) > 0) else {
            return false;
        };
        // Both parts of a structure come together, for each direction.
        if let Some(second) = self.arguments.get(index + 1)
            && second.part == SourcePart::Second
            && wanted(second) > wanted(&self.arguments[index])
        {
            index += 1;
        }
        if let Shadows::Each(shadows) = &mut self.arguments[index].shadows {
            shadows.push(shadow);
        }
        true
    }

    /// What an argument means of which nothing is said, by the types of its parts.
    fn usual(&self, parts: &[Type<'c>]) -> ArgumentActivity {
        if self.entry == Entry::Accelerate {
            return ArgumentActivity::Const;
        }
        if parts.iter().all(|part| is_all_floats(*part)) {
            return match self.entry {
                Entry::Forward => ArgumentActivity::Dup { needed: true },
                _ => ArgumentActivity::Out,
            };
        }
        let kinds = [TypeKind::Pointer, TypeKind::Struct, TypeKind::Array];
        let has_shadow = |part: &Type<'c>| kinds.contains(&part.kind()) || part.is_float();
        match parts.iter().any(has_shadow) {
            true => ArgumentActivity::Dup { needed: true },
            false => ArgumentActivity::Const,
        }
    }

    fn wrong_count(&self, given: usize) -> Problem {
        let hidden = usize::from(memory_type(self.primal, 0, "sret").is_some());
        (self.problem)(Refusal::ArgumentCount {
            function: plain_name(self.primal),
            wanted: self.primal.parameter_count() as usize - hidden,
            given: given - hidden,
        })
    }

    /// `index` is that of an argument that was read, or that of the next.
    fn missing_shadow(&self, index: usize) -> Problem {
        let next = usize::from(index == self.arguments.len());
        let argument = refusal::Argument::Number {
            number: number_of(&self.arguments, index) + next,
            function: plain_name(self.primal),
        };
        (self.problem)(Refusal::MissingShadow { argument })
    }
}

/// Whether an operand of a call is the first of the two registers in which clang passes a structure or a complex number: they are loaded from one piece of memory whose type has no name, from addresses that have none either.
/// Those of the parts of a complex variable are called `z.realp` and `z.imagp`, in bitcode that keeps names.
///
/// ```text
/// %0 = getelementptr inbounds nuw { i64, ptr }, ptr %m, i32 0, i32 0        %1 = load i64, ptr %0
/// %2 = getelementptr inbounds nuw { i64, ptr }, ptr %m, i32 0, i32 1        %3 = load ptr, ptr %2
/// call double (ptr, ...) @__enzyme_autodiff(ptr noundef @f, i64 %1, ptr %3)
/// ```
fn starts_structure(call: Value<'_>, place: u32) -> bool {
    let arguments = call.arguments();
    let register = |place: u32| {
        let operand = *arguments.get(place as usize)?;
        if !operand.is_instruction() || !operand.is(Opcode::Load) {
            return None;
        }
        let address = operand.operand(0);
        if !address.is_instruction() || !address.is(Opcode::GetElementPtr) {
            return None;
        }
        let of = address.gep_source_type();
        let fields = (of.kind() == TypeKind::Struct && of.struct_name().is_none())
            .then(|| of.fields().len())?;
        let field = address.operands().last()?.as_unsigned()?;
        (fields == 2 && address.operand_count() == 3 && address.name().is_empty())
            .then_some((address.operand(0), field))
    };
    match (register(place), register(place + 1)) {
        (Some((first, 0)), Some((second, 1))) => first == second,
        _ => false,
    }
}

/// The number of directions of a context that is made in sight.
fn width_of_context(context: Value<'_>) -> Option<u32> {
    let made = trace(context);
    let is_made = made.is_instruction()
        && made.is_call()
        && made
            .called_function()
            .is_some_and(|callee| callee.name().contains(Entry::Context.name()));
    let width = is_made
        .then(|| made.arguments().first().copied())
        .flatten()?;
    trace(width)
        .as_unsigned()
        .and_then(|width| u32::try_from(width).ok())
        .filter(|width| *width > 0)
}

/// A type as C calls it.
pub(super) fn c_type(of: Type<'_>) -> String {
    match of.kind() {
        TypeKind::Integer(1) => "bool".to_owned(),
        TypeKind::Integer(8) => "char".to_owned(),
        TypeKind::Integer(16) => "short".to_owned(),
        TypeKind::Integer(32) => "int".to_owned(),
        TypeKind::Integer(64) => "long".to_owned(),
        TypeKind::Integer(128) => "__int128".to_owned(),
        TypeKind::Half => "_Float16".to_owned(),
        TypeKind::Pointer => "a pointer".to_owned(),
        TypeKind::Struct => match of.struct_name() {
            Some(name) => name.replacen('.', " ", 1),
            None => "a structure".to_owned(),
        },
        TypeKind::Vector => format!("a vector of {}", c_type(of.element())),
        TypeKind::Array => format!("an array of {}", c_type(of.element())),
        _ => match of.to_string().as_str() {
            "x86_fp80" => "long double".to_owned(),
            "fp128" => "__float128".to_owned(),
            other => other.to_owned(),
        },
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
