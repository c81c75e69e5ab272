//! The table of refusals. A row has, in this order: the meaning (a line of the documentation's table), the code, the data, the message, and the way out.
//!
//! To add a refusal, add a row with the next free number of its group, return it where the problem is found, and describe it in `docs/refusals.md`; a test names what is missing there.
//! A message is one sentence without a full stop: what cannot be differentiated, and why. The code of a removed row is never reused.

use crate::{Argument, Code, Words};

/// The documentation of a refusal.
#[derive(Debug)]
pub struct Row {
    /// Its code.
    pub code: Code,
    /// What is refused.
    pub meaning: &'static str,
}

macro_rules! refusals {
    ($words:ident: $(
        #[doc = $meaning:literal]
        $code:literal $name:ident $({ $($field:ident: $ty:ty),+ })? => $message:expr, $remedy:expr;
    )+) => {
        /// Why something has no derivative.
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[allow(missing_docs, reason = "the message explains each field")]
        pub enum Refusal {
            $(#[doc = $meaning] $name $({ $($field: $ty),+ })?,)+
        }

        /// All refusals, by code.
        pub const ROWS: &[Row] = &[$(Row { code: Code($code), meaning: $meaning }),+];

        #[allow(unused_variables, reason = "not every message uses all fields")]
        impl Refusal {
            /// Its code, which is also its section in the documentation.
            pub fn code(&self) -> Code {
                match self {
                    $(Refusal::$name { .. } => Code($code),)+
                }
            }

            /// The message: one sentence without a full stop.
            pub fn message(&self, $words: &Words<'_>) -> String {
                match self {
                    $(Refusal::$name $({ $($field),+ })? => String::from($message),)+
                }
            }

            /// The way out: what the user can do.
            pub fn remedy(&self, $words: &Words<'_>) -> String {
                match self {
                    $(Refusal::$name $({ $($field),+ })? => String::from($remedy),)+
                }
            }
        }
    };
}

/// The contents of a union word.
const EITHER: &str = "a float or, at other times, a pointer or integer";

refusals! { w:
    // The request.

    /// The number of activities differs from the number of arguments or results.
    101 ActivityCount { what: &'static str, wanted: usize, given: usize } =>
        format!("expected {wanted} {what} activities, but found {given}"),
        "give each argument and each result an activity that fits its type";

    /// The width is not supported in this mode.
    102 Width { width: u32, most: u32 } =>
        format!("width {width} is not supported in this mode, which takes 1 to {most}"),
        "give a width in this range";

    /// A discarded argument is not a pointer.
    103 DiscardedValue { index: usize, ty: String } =>
        format!("argument {index} of type {ty} is not a pointer, so it has no memory to discard"),
        "discard pointers only";

    /// An activity does not fit the type of its argument or result.
    104 UnfitActivity { activity: &'static str, what: &'static str, ty: String } =>
        format!("activity `{activity}` cannot be used for {what} of type {ty}"),
        "give each argument and each result an activity that fits its type";

    /// A returned pointer is duplicated in combined reverse mode.
    105 DuplicatedResult =>
        "a returned pointer cannot be duplicated in combined reverse mode: its shadow has no seed when the reverse sweep starts",
        format!("use split mode, or {}", w.constant_result);

    /// There is no function with this name and a body.
    106 NoFunction { name: String } =>
        format!("there is no function {} with a body to differentiate", w.name(name)),
        "name a function of the program that has a body";

    /// The function to differentiate has no body.
    107 NoBody { function: String } =>
        format!("{} has no body to differentiate", w.name(function)),
        format!("make its body available, give it {}, or declare it {}", w.rule, w.inactive);

    /// A derivative needs itself.
    108 NeedsItself { function: String } =>
        format!("the derivative of {} needs itself", w.quote(function)),
        format!("give the function {}, or compute the inner derivative by hand", w.rule);

    /// A request cannot be read: it was made by hand, or by another version of the crate.
    109 UnreadableRequest { reason: String } =>
        format!("this derivative request cannot be read: {reason}"),
        "use the `ferrozyme` crate of the same version as `cargo ferrozyme`";

    /// A registration cannot be read: it was made by hand, or by another version of the crate.
    110 UnreadableRegistration { name: String } =>
        format!("the registration {} cannot be read", w.quote(name)),
        "use the `ferrozyme` crate of the same version as `cargo ferrozyme`";

    /// The platform is not supported.
    111 Target { triple: String } =>
        format!("there are no derivatives for `{triple}` yet"),
        "compile for x86-64 Linux";

    // Memory and its shadow.

    /// Memory of an argument that is declared constant holds active values.
    201 ConstantArgument { argument: Argument } =>
        format!("derivatives would flow through the memory of {}, which is declared {}", w.argument(argument), w.constant),
        format!("declare {} {} and give it a shadow, or keep active values out of its memory", w.argument(argument), w.duplicated);

    /// Memory that a closure captures holds active values.
    203 CapturedMemory =>
        "active values are stored in memory that the closure captures",
        "allocate that memory (`Cell`, `RefCell`, the target of a `&mut`) inside the function, or use `#[autodiff_reverse]` and give it a shadow";

    /// Memory behind a global that outlives the call holds active values.
    204 SharedGlobal { global: String } =>
        format!("derivatives would flow through memory that {} points to, which outlives the call", w.name(global)),
        format!("keep such memory in arguments or local variables; if it is only read, read it in a function that is declared {}", w.inactive);

    /// Pointers in a global of another module lead to active memory.
    205 ForeignGlobal { global: String } =>
        format!("derivatives flow through {}, which is defined elsewhere and holds pointers whose shadows are not known", w.name(global)),
        format!("make the contents of {} available, or declare it inactive", w.name(global));

    /// An inactive function writes active memory.
    206 InactiveWrite =>
        "an inactive function writes memory that is active before or after",
        "let the function write to memory of its own, and copy from there";

    /// Memory that may be constant is passed to a function with a derivative rule, or to an indirect call.
    207 ConstantPassed =>
        format!("memory that may belong to an argument declared {} is passed to a function with a derivative rule, or to an indirect call", w.constant),
        format!("declare the argument {} and give it a shadow, or work on a copy of its memory", w.duplicated);

    /// Memory of the caller that may hold a float or something else may be written from constant memory.
    208 ConstantIntoUnion =>
        format!("memory of the caller that may hold {EITHER}{} is written to, and may receive words of an argument declared {}", w.union, w.constant),
        format!("declare the argument {} and give it a shadow, or work on a copy of its memory", w.duplicated);

    /// The shadow of a pointer to active memory cannot be found.
    209 LostShadow =>
        "cannot find the shadow of a pointer to active memory: it was loaded from memory without a shadow, or computed from integers",
        format!("keep pointers as pointers instead of integers{}", w.or_describe);

    /// An inactive function returns a pointer to active memory.
    210 InactiveResult { function: String } =>
        format!("{} is declared inactive, but the shadow of the pointer it returns is needed", w.name(function)),
        format!("give it {}, or do not declare it inactive", w.rule);

    // Types of bytes in memory.

    /// Active bytes may be floats or integers.
    301 UnknownLayout =>
        "cannot tell whether these bytes are floats or integers, and derivatives depend on it",
        format!("keep floats and integers in memory of their own{}", w.or_describe);

    /// The type of some bytes of active memory is unknown.
    302 UnknownBytes { what: UnknownBytes } =>
        format!("cannot tell what the bytes of active memory are: {}", what.describe()),
        format!("keep floats and integers in memory of their own{}", w.or_describe);

    /// Active memory is accessed as floats of different types, or in parts of a float.
    303 MixedFloats =>
        "active memory is accessed as floats of different types, or in parts of a float",
        format!("keep values of different types in memory of their own{}", w.share);

    /// Memory that may hold a float of one of several types, or something else, is copied.
    304 MixedCopy =>
        format!("cannot differentiate a copy of memory that may hold floats of different types and something else{}", w.union),
        format!("keep values of different types in memory of their own{}", w.share);

    /// Memory of the caller that may hold a float or something else is written to or moved from.
    305 UnionOfCaller =>
        format!("cannot differentiate a write to or a move from memory of the caller that may hold {EITHER}{}", w.union),
        format!("work on a copy that is made inside, or {}", w.keep_apart);

    /// Memory of the caller that may hold a float or something else is filled with bytes.
    306 UnionFilled =>
        format!("cannot differentiate a fill of memory of the caller that may hold {EITHER}{}", w.union),
        "work on a copy that is made inside";

    /// A word that may be a float or something else is passed by value.
    307 UnionByValue =>
        format!("cannot differentiate a call that passes a word by value which may be {EITHER}{}", w.union),
        w.by_reference;

    /// Memory that may hold a float or something else is passed through an indirect call.
    308 UnionToPointer =>
        format!("cannot differentiate an indirect call that passes memory which may hold {EITHER}{}", w.union),
        format!("call the function by its name, or {}", w.keep_apart);

    /// A float is computed from the bits of another float by integer arithmetic.
    309 BitTrick =>
        "an active float is computed from the bits of another float by integer arithmetic",
        format!("use the floating-point operation that this stands for (fabs, copysign, ldexp, …), give the function {}, or declare it {}", w.rule, w.inactive);

    /// A bit cast splits or joins floats.
    310 BitCast { from: String, to: String } =>
        format!("a bit cast from {from} to {to} splits or joins floats, so derivatives cannot pass through it"),
        "keep the floats in values of their own type, or compute with these bits in an inactive function";

    /// An active value is passed or returned as an integer.
    311 FloatAsInteger =>
        "an active float, or a pointer to active memory, is passed or returned as an integer by a function with a derivative rule, or by an indirect call",
        "pass and return it with its own type";

    /// The layout of a `HashMap` or `BTreeMap` with active values cannot be inferred.
    312 Map { function: String } =>
        format!("cannot tell floats from other words in {}, which works on a `HashMap` or `BTreeMap`", w.name(function)),
        "keep active values in a `Vec`, and only their indices in the `HashMap` or `BTreeMap`";

    // Calls.

    /// Active values go through a function with neither a body nor a derivative rule.
    401 NoRule { callee: String, forward: bool } =>
        format!("active values go through {}, which has neither a body nor a {} rule", w.name(callee), if *forward { "forward" } else { "derivative" }),
        format!("give {} {}, make its body available, or declare it {}", w.name(callee), w.rule, w.inactive);

    /// An active indirect call may reach a function without a body.
    402 NoBodyBehindPointer { function: String } =>
        format!("an active indirect call may reach {}, which has no body to differentiate", w.name(function)),
        "make its body available, or call another function through the pointer";

    /// The target of an indirect call comes from an argument or global, and cannot be determined.
    403 GivenCode =>
        "cannot determine the target of an indirect call: the function pointer comes from an argument or global",
        format!("declare the argument {} or the global constant, or select the function inside the differentiated function", w.constant);

    /// The target of an indirect call comes from constant memory, and cannot be determined.
    404 ConstantCode =>
        format!("cannot determine the target of an indirect call: the function pointer may come from memory of an argument declared {}", w.constant),
        "select the function inside the differentiated function";

    /// A derivative rule reads memory in the reverse sweep that is overwritten before.
    406 OverwrittenForRule { index: usize } =>
        format!("the derivative rule of this function reads memory of argument {index} in the reverse sweep, and the memory may be overwritten before"),
        "add an `augment` function to the rule that saves what the reverse sweep needs";

    /// A derivative rule returns no shadow for the pointer that its function returns.
    407 RuleWithoutShadow =>
        "the derivative rule of this function returns no shadow for the returned pointer",
        "add an `augment` function to the rule";

    /// A forward rule cannot run once per direction.
    408 UnrepeatableRule { callee: String, returns_pointer: bool } =>
        format!(
            "the forward rule of {} handles one direction, and cannot run once per direction because it {}",
            w.name(callee),
            if *returns_pointer { "returns a pointer" } else { "may update memory in place" }
        ),
        "differentiate with width 1, or mark each pointer of the function `readonly` or `writeonly` where that is true";

    // Constructs of the language.

    /// A thread is started.
    501 Thread =>
        "cannot differentiate code that starts a thread",
        "differentiate the computation of each thread, and add up the gradients";

    /// An atomic operation on active values.
    502 Atomic =>
        "cannot differentiate an atomic operation on active values",
        format!("keep active values out of atomic variables{}", w.threads);

    /// A volatile access to active memory.
    503 Volatile =>
        "cannot differentiate a volatile access to active memory",
        "use ordinary loads and stores for active values";

    /// Inline assembly on active values.
    504 Assembly =>
        "cannot differentiate inline assembly",
        format!("write it in {}, or give the enclosing function {}", w.plainly, w.rule);

    /// A call with variable arguments passes active values.
    505 Variadic =>
        "cannot differentiate a call with variable arguments",
        format!("call a function with fixed arguments, or put the call into a function that has {} or is declared {}", w.rule, w.inactive);

    /// A machine instruction on active values.
    506 MachineInstruction =>
        "cannot differentiate this machine instruction",
        format!("write it in {}, or give the enclosing function {}", w.plainly, w.rule);

    /// A computation with active values in `long double`.
    507 LongDouble =>
        "cannot differentiate a computation in 'long double'",
        "use 'double'";

    /// Panics are caught.
    508 CaughtPanic =>
        "cannot differentiate code that catches panics",
        "differentiate the function inside, and catch panics around the derivative";

    /// A function may return more than once.
    509 ReturnsTwice { callee: String } =>
        format!("cannot differentiate a call of {}, which may return more than once", w.name(callee)),
        "use ordinary early returns";

    /// Memory of unknown size is reallocated.
    510 UnknownSize =>
        "cannot differentiate a reallocation of memory of unknown size",
        "allocate, copy and free instead of `realloc`";

    /// A number is changed during formatting.
    511 ChangedByFormatting =>
        "a number is changed during formatting, which is not differentiated",
        "format outside the differentiated function, or change the number before formatting";

    /// A function both prints and parses numbers.
    512 ThroughText =>
        "this function both prints and parses numbers, and a number that is parsed from its own text would have no derivative",
        "pass numbers as floats; parse constants, or format, outside the differentiated function";

    /// The result of an OpenMP region depends on the number of threads, through a carried value.
    513 CarriedByThreads =>
        "a value that each thread carries from one iteration to the next makes the result of this region depend on the number of threads",
        "make it a 'reduction', or end the region at the barrier";

    /// An OpenMP region uses the thread id without the number of threads.
    514 ThreadNumber =>
        "this region uses the thread id ('omp_get_thread_num') without the number of threads",
        "divide the work with '#pragma omp for', or by 'omp_get_num_threads()'";

    /// Control flow is nested too deeply.
    515 DeepNesting =>
        "cannot differentiate control flow that is nested this deeply",
        "split the function";

    /// A value has a type that the Loop IR does not have.
    516 UnknownType { ty: String } =>
        format!("cannot differentiate values of LLVM's type {ty}"),
        "use f32, f64, integers of at most 128 bits, or pointers";

    /// A function has a type that the Loop IR does not have.
    517 UnknownSignature { ty: String } =>
        format!("cannot differentiate a function of LLVM's type {ty}"),
        "pass such values through memory, or as f64 or integers";

    /// An instruction or intrinsic of LLVM that the Loop IR does not have.
    518 UnknownInstruction { what: String } =>
        format!("cannot differentiate {what}"),
        format!("keep it out of differentiated code, or put it into a function that has {} or is declared {}", w.rule, w.inactive);

    // Calls of Enzyme's entry points, and registrations of C programs.

    /// The function to differentiate is not known at compile time.
    601 UnknownPrimal { entry: &'static str } =>
        format!("the first argument of {} is not a known function", w.quote(entry)),
        "name the function in the call, or have the wrappers that pass it on inlined";

    /// A derivative is called with too many or too few arguments.
    602 ArgumentCount { function: String, wanted: usize, given: usize } =>
        format!(
            "too {} arguments for {}: it takes {wanted}, this call passes {given}",
            if given > wanted { "many" } else { "few" },
            w.name(function)
        ),
        "pass each argument of the function, followed by its shadow if it has one";

    /// The shadow of an argument is missing.
    603 MissingShadow { argument: Argument } =>
        format!("the shadow of {} is missing", w.argument(argument)),
        "pass the shadow after the argument, or mark the argument 'enzyme_const'";

    /// A marker is unknown.
    604 UnknownMarker { name: String } =>
        format!("unknown marker {}", w.quote(name)),
        "use one of Enzyme's markers: 'enzyme_dup', 'enzyme_const', 'enzyme_out', 'enzyme_width', …";

    /// A marker is misplaced, or its operand is missing.
    605 MisplacedMarker { problem: &'static str } =>
        *problem,
        "docs/coming-from-enzyme.md lists the markers and their operands";

    /// The tape is larger than the memory that is provided for it.
    606 TapeSize { function: String, bytes: u64 } =>
        format!("the tape of {} needs more than the {bytes} byte{} of 'enzyme_allocated'", w.name(function), if *bytes == 1 { "" } else { "s" }),
        "'__enzyme_augmentsize' returns the size of the tape";

    /// A value in the call has another type than the argument.
    607 ArgumentType { argument: Argument, wanted: String, given: String } =>
        format!("{} is {wanted}, but the value in the call is {given}", w.argument(argument)),
        "convert the value to the type of the argument";

    /// The type of an argument or result cannot be differentiated.
    608 UndifferentiableType { argument: Argument, ty: String } =>
        format!("{} is {ty}, which cannot be differentiated", w.argument(argument)),
        "use 'float', 'double', pointers, or structures of them";

    /// A marker does not fit the type of its argument.
    609 MarkerOnType { argument: Argument, ty: String, marker: &'static str, instead: &'static str } =>
        format!("{} is {ty}, for which {} cannot be used in this mode", w.argument(argument), w.quote(marker)),
        *instead;

    /// The entry point is declared with another result than the derivative has.
    610 ResultType { given: String, wanted: String } =>
        format!("the derivative returns {given}, but the result of the call is {wanted}"),
        "declare the entry point with the result type of the derivative";

    /// The function returns its result in memory, which the entry point does not support.
    611 ResultInMemory { entry: &'static str, function: String } =>
        format!("{} cannot be used for {}, whose result is returned in memory", w.quote(entry), w.name(function)),
        "return the result through a pointer argument";

    /// A call of the reverse sweep lacks the seed or the tape.
    612 MissingTape { function: String, what: &'static str } =>
        format!("after the arguments of {}, the call must pass {what}", w.name(function)),
        "the tape is what '__enzyme_augmentfwd' returned; it follows the seed";

    /// The entry point is not supported.
    613 UnknownEntry { name: String } =>
        format!("{} is not supported", w.quote(name)),
        "use '__enzyme_autodiff', '__enzyme_fwddiff', '__enzyme_augmentfwd' or '__enzyme_reverse'";

    /// The address of an entry point is taken.
    614 AddressOfEntry { name: String } =>
        format!("the address of {} is taken, but it is not a function", w.quote(name)),
        "call it by its name";

    /// An entry point is declared or called with the wrong arguments or result.
    615 EntrySignature { entry: &'static str, takes: &'static str } =>
        format!("{} {takes}", w.quote(entry)),
        "docs/coming-from-enzyme.md lists the entry points and their arguments";

    /// A global has no shadow in a context.
    616 ContextVariable { variable: Option<String> } =>
        match variable {
            Some(variable) => format!("{} has no shadow in a context", w.name(variable)),
            None => "this is not the address of a known global variable".to_owned(),
        },
        "a context has shadows of the globals that are defined in the same file and to which the program stores no addresses";

    /// The declared shadow of a global variable does not fit it.
    617 UnfitGlobalShadow { global: String } =>
        format!("the shadow of {} must be another variable of the same type", w.name(global)),
        "declare a variable of the same type as its shadow";

    /// The declared shadow of a global variable has one direction.
    618 GlobalShadowWidth { width: u32 } =>
        format!("'enzyme_shadow' declares a shadow for one direction, and this call has {width}"),
        "use a context ('__enzyme_context'), which has shadows for several directions";

    /// A registered rule has the wrong signature for its function.
    619 RuleSignature { rule: String, function: String, problem: &'static str } =>
        format!("{}, which is registered for {}, {problem}", w.name(rule), w.name(function)),
        "declare it with these parameters and this result";

    /// A function is registered like one of another type.
    620 UnlikeFunction { function: String, other: String } =>
        format!("{} cannot be like {}, which is a function of another type", w.name(function), w.name(other)),
        "register it like a function of the same type";

    /// A registration is malformed.
    621 Registration { name: String, problem: String } =>
        format!("the registration {} {problem}", w.quote(name)),
        "docs/coming-from-enzyme.md lists the registrations";

    // Known only at run time: derivatives stop the program with these.

    /// Memory that a global variable pointed to before the derivative was called is active.
    701 NoShadowBehindGlobal =>
        "derivatives would flow through memory that a global variable pointed to before the derivative was called, and which has no shadow",
        "pass the memory as an argument with a shadow, or allocate and free it inside the function";

    /// A pointer beside an active value leads to memory without a shadow.
    702 NoShadowBehindUnion =>
        "a pointer beside an active value leads to memory without a shadow, which was allocated by code without derivatives (a formatted string?)",
        "keep active values in a vector of their own, and only their indices beside the pointer";

    /// An active value is stored to constant memory.
    703 StoredToConstant =>
        "an active value, or a pointer to active memory, is stored to memory of an argument without a shadow or of a closure's captures",
        "give that memory a shadow, or keep active values out of it";

    /// The shadow of a called function pointer leads to no derivative.
    704 NoTableBehindShadow =>
        "the shadow of a called function pointer leads to no derivative",
        "make the shadow of the pointer with '__enzyme_virtualreverse'";

    /// Memory of an argument is freed, and a gradient would be lost.
    705 LostGradient =>
        "memory of an argument was freed, and a gradient that is not zero would be lost with it",
        "let the function work on a copy, or keep the memory that it replaces; a container that grows, other than a `Vec`, needs enough capacity before the call";

    /// Memory of an argument is freed while its shadow holds a seed.
    706 LostSeed =>
        "memory of an argument was freed, and its shadow is not zero: a seed belongs to memory that exists when the function returns",
        "set the shadow to zero, or let the function work on a copy";

    /// Memory of an argument that may hold a float or something else is freed.
    707 UnclearRelease =>
        "memory of an argument was freed that may hold a float or, at other times, a pointer or integer, so a gradient may be lost",
        "let the function work on a copy";

    /// Memory of an argument is freed without its size.
    708 UnsizedRelease =>
        "memory of an argument was freed without its size, so a gradient may be lost",
        "let the function work on a copy";

    /// A float or pointer, in a place that may hold either, is moved in parts.
    709 MovedInParts =>
        "an active float, or a pointer to active memory, is moved in parts",
        "move whole values, or keep floats apart from values that are moved in parts";

    /// A float, in a place that may also hold a pointer or integer, is used as one.
    710 TakenForNumber =>
        "an active float is moved or used as if it were a pointer or an integer",
        "keep floats apart from pointers and integers, in fields of their own";

    /// An exception is caught in differentiated code.
    711 CaughtException =>
        "an exception was caught in a differentiated function, where derivatives cannot follow",
        "catch it around the derivative";

    /// A `dynamic_cast` changes the address.
    712 CastElsewhere =>
        "a dynamic_cast in a differentiated function changes the address (to a class at another offset of the object), which derivatives cannot follow",
        "cast to the class at the start of the object";

    /// A context is used in another file than its own.
    713 ForeignContext =>
        "a context of shadows is used in another file than the one that made it",
        "make the context in the file that uses it, or declare shadows with 'enzyme_shadow'";

    /// The target of an indirect call is unknown.
    714 UnknownTarget =>
        "a derivative called an unknown function through a pointer: no code with a derivative takes its address",
        "take the address of the function in code that is compiled together with the derivative";

    /// The target of an indirect call has no derivative.
    715 TargetWithoutDerivative { function: String, reason: String } =>
        format!("the target of an indirect call in a derivative, {}, has no derivative: {reason}", w.quote(function)),
        "call another function through the pointer, or make this one differentiable";

    /// The target of an indirect call changes constant memory.
    716 TargetChangesConstant { function: String } =>
        format!("the target of an indirect call in a derivative, {}, changes memory of an argument without a shadow", w.quote(function)),
        "give the argument a shadow";

    /// There is not enough memory for the tape or for shadows.
    717 OutOfMemory =>
        "a derivative is out of memory for its tape, or for shadows of the program's allocations",
        "differentiate smaller parts, or use forward mode";

    /// An address, in a place that may also hold a float, is moved as one.
    718 MovedAsFloat =>
        "an address, in a place that may also hold a float, was moved as a float, so that its shadow was left behind",
        "keep floats apart from pointers, in fields of their own";
}

/// What is unknown about the bytes behind a pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnknownBytes {
    /// The object.
    Memory,
    /// The bytes after the accessed fields.
    Rest,
    /// The bytes at an offset.
    Offset(i64),
    /// The bytes at an offset, which are used as incompatible types.
    Conflict(i64),
}

impl UnknownBytes {
    fn describe(self) -> String {
        match self {
            UnknownBytes::Memory => "the pointer points to no known memory".to_owned(),
            UnknownBytes::Rest => {
                "the type of the bytes after the accessed fields is unknown".to_owned()
            }
            UnknownBytes::Offset(offset) => format!("the type at offset {offset} is unknown"),
            UnknownBytes::Conflict(offset) => {
                format!("the bytes at offset {offset} are used as incompatible types")
            }
        }
    }
}
