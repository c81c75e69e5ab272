//! The one table of refusals. A row has, in this order: what is refused (the documentation's table is made of these lines), the code, the data, the message, and the way out.
//!
//! To add a refusal, add a row with the next free number of its group, make it where the problem is found, and describe it in `docs/refusals.md`; a test names what is missing there.
//! A message is one sentence without a full stop: what cannot be differentiated, and why. The code of a row that goes is not used again.

use crate::{Argument, Code, Words};

/// What the documentation says of a refusal.
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
        #[allow(missing_docs, reason = "the message says what each field is")]
        pub enum Refusal {
            $(#[doc = $meaning] $name $({ $($field: $ty),+ })?,)+
        }

        /// All refusals, by code.
        pub const ROWS: &[Row] = &[$(Row { code: Code($code), meaning: $meaning }),+];

        #[allow(unused_variables, reason = "not every sentence names all data")]
        impl Refusal {
            /// The number under which it stands in the documentation.
            pub fn code(&self) -> Code {
                match self {
                    $(Refusal::$name { .. } => Code($code),)+
                }
            }

            /// What is wrong, in one sentence without a full stop.
            pub fn message(&self, $words: &Words<'_>) -> String {
                match self {
                    $(Refusal::$name $({ $($field),+ })? => String::from($message),)+
                }
            }

            /// What the user can do.
            pub fn remedy(&self, $words: &Words<'_>) -> String {
                match self {
                    $(Refusal::$name $({ $($field),+ })? => String::from($remedy),)+
                }
            }
        }
    };
}

/// What shares the bytes of some memory.
const EITHER: &str = "a float or, at other times, a pointer or integer";

refusals! { w:
    // What is asked for.

    /// A request gives another number of activities than the function has arguments or results.
    101 ActivityCount { what: &'static str, wanted: usize, given: usize } =>
        format!("expected {wanted} {what} activities, but found {given}"),
        "give each argument and each result an activity that fits its type";

    /// A width is not possible in this mode.
    102 Width { width: u32, most: u32 } =>
        format!("width {width} is not possible in this mode, which takes 1 to {most}"),
        "give a width that the mode takes";

    /// What is to be discarded is not memory.
    103 DiscardedValue { index: usize, ty: String } =>
        format!("argument {index} of type {ty} is no memory that could be discarded"),
        "discard pointers only";

    /// An activity does not fit the type of its argument or result.
    104 UnfitActivity { activity: &'static str, what: &'static str, ty: String } =>
        format!("activity `{activity}` cannot be used for {what} of type {ty}"),
        "give each argument and each result an activity that fits its type";

    /// A returned pointer is duplicated in combined reverse mode.
    105 DuplicatedResult =>
        "a returned pointer cannot be duplicated where both sweeps run in one call: nobody could put a seed behind it",
        format!("use the split form, or {}", w.constant_result);

    /// There is no function of this name with a body.
    106 NoFunction { name: String } =>
        format!("there is no function {} with a body to differentiate", w.name(name)),
        "name a function of the program whose body is seen";

    /// The function to differentiate has no body.
    107 NoBody { function: String } =>
        format!("{} has no body to differentiate", w.name(function)),
        format!("make its body available, give it {}, or declare it {}", w.rule, w.inactive);

    /// A derivative needs itself.
    108 NeedsItself { function: String } =>
        format!("the derivative of {} needs itself", w.quote(function)),
        format!("give the function {}, or compute the inner derivative by hand", w.rule);

    /// A request that was made by hand, or by another version.
    109 UnreadableRequest { reason: String } =>
        format!("this derivative request cannot be read: {reason}"),
        "use the `ferrozyme` crate of the same version as `cargo ferrozyme`";

    /// A registration that was made by hand, or by another version.
    110 UnreadableRegistration { name: String } =>
        format!("the registration {} cannot be read", w.quote(name)),
        "use the `ferrozyme` crate of the same version as `cargo ferrozyme`";

    /// The platform is not supported.
    111 Target { triple: String } =>
        format!("there are no derivatives for `{triple}` yet"),
        "compile for x86-64 Linux";

    // Memory, and where its shadow is.

    /// Memory of an argument that is declared constant holds active values.
    201 ConstantArgument { argument: Argument } =>
        format!("derivatives would flow through the memory of {}, which is declared {}", w.argument(argument), w.constant),
        format!("declare {} {} and give it a shadow, or keep active values out of its memory", w.argument(argument), w.duplicated);

    /// Memory that a callee takes for a constant holds active values.
    202 ConstantMemory { function: String } =>
        format!("derivatives would flow through memory that {} takes for a constant", w.name(function)),
        format!("keep active values out of that memory; where derivatives are differentiated again, it may be what the inner one works with: give that one {}", w.rule);

    /// Memory that a closure captures holds active values.
    203 CapturedMemory =>
        "active values are kept in memory that the function captures",
        "make that memory (`Cell`, `RefCell`, what `&mut` refers to) inside of the function, or use `#[autodiff_reverse]` and give it a shadow";

    /// Memory behind a global that outlives the call holds active values.
    204 SharedGlobal { global: String } =>
        format!("derivatives would flow through memory that {} points to, which lives on between calls", w.name(global)),
        format!("keep such memory in arguments or local variables; if it is only read, read it in a function that is declared {}", w.inactive);

    /// Pointers in a global of another module lead to active memory.
    205 ForeignGlobal { global: String } =>
        format!("derivatives flow through {}, which is defined elsewhere and holds pointers whose shadows nobody knows", w.name(global)),
        format!("make the contents of {} available, or declare it inactive", w.name(global));

    /// An inactive function writes active memory.
    206 InactiveWrite =>
        "an inactive function writes memory that is active before or after",
        "copy what it gives into memory of its own before computing with it";

    /// Memory that may be constant is passed to a function whose derivative is not made here.
    207 ConstantPassed =>
        format!("memory that may be that of an argument declared {} is passed to a function whose derivative is not made here", w.constant),
        format!("declare the argument {} and give it a shadow, or work on a copy of its memory", w.duplicated);

    /// Memory of the caller that may hold a float or something else may receive constants.
    208 ConstantIntoUnion =>
        format!("memory of the caller that may hold {EITHER}{} is written to, and may receive words of an argument declared {}", w.union, w.constant),
        format!("declare the argument {} and give it a shadow, or work on a copy of its memory", w.duplicated);

    /// The shadow of a pointer to active memory cannot be found.
    209 LostShadow =>
        "the shadow of a pointer to active memory cannot be found where the pointer comes from",
        format!("keep pointers as pointers instead of integers{}", w.or_describe);

    /// An inactive function returns a pointer to active memory.
    210 InactiveResult { function: String } =>
        format!("{} is declared inactive, but the shadow of the pointer it returns is needed", w.name(function)),
        format!("give it {}, or do not declare it inactive", w.rule);

    // Bytes, and what they hold.

    /// Bytes may be floats or integers.
    301 UnknownLayout =>
        "cannot tell whether these bytes are floats or integers, and derivatives depend on it",
        format!("keep floats and integers in memory of their own{}", w.or_describe);

    /// Nothing says what the bytes at some offset of active memory are.
    302 UnknownBytes { what: UnknownBytes } =>
        format!("cannot tell what the bytes of active memory are: {}", what.describe()),
        format!("keep floats and integers in memory of their own{}", w.or_describe);

    /// Active memory holds floats of different types, or is used in parts of a float.
    303 MixedFloats =>
        "active memory is used as floats of different types, or in parts of a float",
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

    /// A float is put together from the bits of another by integer arithmetic.
    309 BitTrick =>
        "an active float is put together from the bits of another by integer arithmetic",
        format!("use the floating-point operation that this stands for (fabs, copysign, ldexp, …), give the function {}, or declare it {}", w.rule, w.inactive);

    /// A bit cast takes floats apart.
    310 BitCast { from: String, to: String } =>
        format!("a bit cast from {from} to {to} takes floats apart, so derivatives cannot pass through it"),
        "keep the floats in values of their own type, or compute with these bits in an inactive function";

    /// An active value is passed or returned as an integer.
    311 FloatAsInteger =>
        "an active float, or a pointer to active memory, is passed or returned as an integer by a function whose derivative is not made here",
        "pass and return it with its own type";

    /// The memory of a map.
    312 Map { function: String } =>
        format!("cannot tell floats from other words in {}, which works on a `HashMap` or `BTreeMap`", w.name(function)),
        "keep values that carry derivatives in a `Vec`, and only their positions in the `HashMap` or `BTreeMap`";

    // Calls.

    /// Active values go through a function without body and rule.
    401 NoRule { callee: String, forward: bool } =>
        format!("active values go through {}, which has neither a body nor a {} rule", w.name(callee), if *forward { "forward" } else { "derivative" }),
        format!("give {} {}, make its body available, or declare it {}", w.name(callee), w.rule, w.inactive);

    /// A function without body may be reached through a pointer.
    402 NoBodyBehindPointer { function: String } =>
        format!("active values may reach {} through a pointer, and it has no body to differentiate", w.name(function)),
        "make its body available, or call something else through the pointer";

    /// An indirect call of a function that comes with an argument or global.
    403 GivenCode =>
        "a function is called through a pointer in an argument or global, and which function that is cannot be told",
        format!("declare the argument {} or the global unchangeable, or choose the function inside the differentiated function", w.constant);

    /// An indirect call of a function that comes from constant memory.
    404 ConstantCode =>
        format!("a function is called through a pointer that may come from memory of an argument declared {}, and which function that is cannot be told", w.constant),
        "choose the function inside the differentiated function";

    /// An indirect call through a pointer without a shadow.
    405 NoTable =>
        "an active call goes through a pointer to a function whose derivative nobody gives",
        format!("declare the argument that the pointer comes from {}, and give it a shadow", w.duplicated);

    /// A rule reads memory in the reverse sweep that is overwritten before.
    406 OverwrittenForRule { index: usize } =>
        format!("the rule of this function reads memory behind argument {index} in the reverse sweep, which may be overwritten before"),
        "add an `augment` function to the rule, which keeps what the reverse sweep needs";

    /// A rule gives no shadow for the pointer that its function returns.
    407 RuleWithoutShadow =>
        "the rule of this function gives no shadow for the pointer it returns",
        "add an `augment` function to the rule";

    /// A forward rule cannot run once for each of several directions.
    408 UnrepeatableRule { callee: String, returns_pointer: bool } =>
        format!(
            "the forward rule of {} serves one direction, and may not run once for each of several, since it {}",
            w.name(callee),
            if *returns_pointer { "returns a pointer" } else { "may update memory in place" }
        ),
        "differentiate with width 1, or mark each pointer of the function `readonly` or `writeonly` where that is true";

    // What the program is written with.

    /// A thread is started.
    501 Thread =>
        "cannot differentiate code that starts a thread",
        "differentiate what each thread computes, and add up the gradients";

    /// Active values in an atomic variable.
    502 Atomic =>
        "cannot differentiate an atomic operation on active values",
        format!("keep active values out of atomic variables{}", w.threads);

    /// Active values in volatile memory.
    503 Volatile =>
        "cannot differentiate a volatile access to active memory",
        "read and write active values plainly";

    /// Active values in inline assembly.
    504 Assembly =>
        "cannot differentiate inline assembly",
        format!("write it in {}, or give the function that it stands in {}", w.plainly, w.rule);

    /// Active values in a call with variable arguments.
    505 Variadic =>
        "cannot differentiate a call with variable arguments",
        format!("call a function with fixed arguments, or put the call into a function with {}, or that is declared {}", w.rule, w.inactive);

    /// Active values in an instruction of the machine.
    506 MachineInstruction =>
        "cannot differentiate this instruction of the machine",
        format!("write it in {}, or give the function that it stands in {}", w.plainly, w.rule);

    /// Active values of the type `long double`.
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
        "return early in the ordinary way";

    /// Memory of unknown size is resized.
    510 UnknownSize =>
        "cannot differentiate a resize of memory whose size is not known",
        "allocate, copy and free instead of `realloc`";

    /// A number is changed while something is formatted.
    511 ChangedByFormatting =>
        "a number is changed while something is formatted, and nothing that formatting does is differentiated",
        "format outside of the differentiated function, or change the number before formatting";

    /// A number may go through text.
    512 ThroughText =>
        "a number that is written as text and read again would have no derivative, and this function does both",
        "pass numbers on as numbers; read constants outside of the differentiated function, or format there";

    /// Threads of OpenMP carry a value whose result depends on their number.
    513 CarriedByThreads =>
        "a value that threads of this region carry from one iteration to the next makes the result depend on their number",
        "make it a 'reduction', or end the region where its threads wait";

    /// Threads of OpenMP use their number, but not how many they are.
    514 ThreadNumber =>
        "the threads of this region use 'omp_get_thread_num', but not how many they are",
        "divide the work with '#pragma omp for', or by 'omp_get_num_threads()'";

    /// Control flow nests too deep.
    515 DeepNesting =>
        "cannot differentiate control flow that nests this deep",
        "split the function";

    /// A type that the Loop IR does not have.
    516 UnknownType { ty: String } =>
        format!("cannot differentiate values of LLVM's type {ty}"),
        "use f32, f64, integers of at most 128 bits, or pointers";

    /// A signature with a type that the Loop IR does not have.
    517 UnknownSignature { ty: String } =>
        format!("cannot differentiate a function of LLVM's type {ty}"),
        "pass such values through memory, or as f64 or integers";

    /// An instruction or intrinsic of LLVM that the Loop IR does not have.
    518 UnknownInstruction { what: String } =>
        format!("cannot differentiate {what}"),
        format!("keep it out of what is differentiated, or put it into a function with {}, or that is declared {}", w.rule, w.inactive);

    // Calls of Enzyme's entry points, and what C programs register.

    /// What is to be differentiated is not known.
    601 UnknownPrimal { entry: &'static str } =>
        format!("what is given to {} first is not a known function", w.quote(entry)),
        "name the function in the call, or let the functions through which it comes be inlined";

    /// A derivative is called with too many or too few arguments.
    602 ArgumentCount { function: String, wanted: usize, given: usize } =>
        format!(
            "too {} arguments are given for {}: it takes {wanted}, this call gives {given}",
            if given > wanted { "many" } else { "few" },
            w.name(function)
        ),
        "give each argument of the function, followed by its shadow where it has one";

    /// A shadow is missing.
    603 MissingShadow { argument: Argument } =>
        format!("the shadow of {} is missing", w.argument(argument)),
        "give the shadow behind the argument, or mark the argument 'enzyme_const'";

    /// There is no marker of this name.
    604 UnknownMarker { name: String } =>
        format!("unknown marker {}", w.quote(name)),
        "use one of Enzyme's markers: 'enzyme_dup', 'enzyme_const', 'enzyme_out', 'enzyme_width', …";

    /// A marker stands where it means nothing, or lacks what must follow it.
    605 MisplacedMarker { problem: &'static str } =>
        *problem,
        "docs/coming-from-enzyme.md lists the markers and what follows them";

    /// The tape is larger than the memory for it.
    606 TapeSize { function: String, bytes: u64 } =>
        format!("the tape of {} takes more than the {bytes} byte{} that 'enzyme_allocated' gives", w.name(function), if *bytes == 1 { "" } else { "s" }),
        "ask '__enzyme_augmentsize' how much it takes";

    /// A given value has another type than the argument.
    607 ArgumentType { argument: Argument, wanted: String, given: String } =>
        format!("{} is {wanted}, but what is given is {given}", w.argument(argument)),
        "convert the value to the type of the argument";

    /// An argument or result has a type without derivative.
    608 UndifferentiableType { argument: Argument, ty: String } =>
        format!("{} is {ty}, which cannot be differentiated", w.argument(argument)),
        "use 'float', 'double', pointers, or structures of them";

    /// An argument cannot have the activity that its marker says.
    609 MarkerOnType { argument: Argument, ty: String, marker: &'static str, instead: &'static str } =>
        format!("{} is {ty}, for which {} cannot be used in this mode", w.argument(argument), w.quote(marker)),
        *instead;

    /// The call wants a result that the derivative does not give.
    610 ResultType { given: String, wanted: String } =>
        format!("the derivative returns {given}, but what the call expects is {wanted}"),
        "declare the entry point with the type of what the derivative returns";

    /// The function returns its result in memory, which the entry point does not support.
    611 ResultInMemory { entry: &'static str, function: String } =>
        format!("{} cannot be used for {}, whose result is returned in memory", w.quote(entry), w.name(function)),
        "give the result through a pointer argument";

    /// The reverse sweep needs a seed or the tape.
    612 MissingTape { function: String, what: &'static str } =>
        format!("behind the arguments of {}, {what} must be given", w.name(function)),
        "give what the message names: the tape is what '__enzyme_augmentfwd' returned, and stands behind the seed";

    /// The entry point is not supported.
    613 UnknownEntry { name: String } =>
        format!("{} is not supported", w.quote(name)),
        "use '__enzyme_autodiff', '__enzyme_fwddiff', '__enzyme_augmentfwd' or '__enzyme_reverse'";

    /// The address of an entry point is taken.
    614 AddressOfEntry { name: String } =>
        format!("the address of {} is taken, which stands for no function", w.quote(name)),
        "call it by its name";

    /// An entry point is called with other arguments, or for another result, than it has.
    615 EntrySignature { entry: &'static str, takes: &'static str } =>
        format!("{} {takes}", w.quote(entry)),
        "docs/coming-from-enzyme.md lists the entry points and what they take";

    /// A variable has no shadow in a context.
    616 ContextVariable { variable: Option<String> } =>
        match variable {
            Some(variable) => format!("{} has no shadow in a context", w.name(variable)),
            None => "this is not the address of a known global variable".to_owned(),
        },
        "contexts have shadows of variables that are defined in the same file and hold no addresses that the program puts there while it runs";

    /// The declared shadow of a global variable does not fit it.
    617 UnfitGlobalShadow { global: String } =>
        format!("the shadow of {} must be another variable of the same type", w.name(global)),
        "declare a variable of the same type as its shadow";

    /// The declared shadow of a global variable serves one direction.
    618 GlobalShadowWidth { width: u32 } =>
        format!("'enzyme_shadow' declares a shadow for one direction, and this call wants {width}"),
        "use a context ('__enzyme_context'), which has shadows for several";

    /// A registered rule has another signature than its function wants.
    619 RuleSignature { rule: String, function: String, problem: &'static str } =>
        format!("{}, which is registered for {}, {problem}", w.name(rule), w.name(function)),
        "declare it with these parameters and this result";

    /// A function is registered like one of another type.
    620 UnlikeFunction { function: String, other: String } =>
        format!("{} cannot be like {}, which is a function of another type", w.name(function), w.name(other)),
        "register it like a function of the same type";

    /// A registration that cannot be read.
    621 Registration { name: String, problem: String } =>
        format!("the registration {} {problem}", w.quote(name)),
        "docs/coming-from-enzyme.md lists the registrations";

    // What only the run can tell: derivatives stop the program with these.

    /// Memory that a global variable pointed to before the derivative was called is active.
    701 NoShadowBehindGlobal =>
        "derivatives would flow through memory that a global variable pointed to before the derivative was called, and which has no shadow",
        "give the memory to the function as an argument with a shadow, or make and release it inside";

    /// Memory that code without derivatives made lies behind a pointer where floats are at other times.
    702 NoShadowBehindUnion =>
        "memory has no shadow that lies behind a pointer where floats are at other times: it was made by code without derivatives (a text that was put together, say)",
        "keep values that carry derivatives apart from it, in a vector, say, and only their positions beside it";

    /// An active value is stored to constant memory.
    703 StoredToConstant =>
        "an active value, or a pointer to active memory, is stored to memory of an argument without a shadow or to what a closure captures",
        "give it a shadow, or keep active values out of it";

    /// The shadow of a called function's address leads to no derivative.
    704 NoTableBehindShadow =>
        "a function is called through a pointer of which the shadow leads to no derivative",
        "make the shadow of the pointer with '__enzyme_virtualreverse'";

    /// Memory of an argument is released, and with it a gradient.
    705 LostGradient =>
        "memory of an argument was released, and with it a gradient that is not zero",
        "let the function work on a copy, or keep what it replaces; a container that grows needs room enough from the start, unless it is a `Vec`";

    /// Memory of an argument is released whose shadow holds a seed.
    706 LostSeed =>
        "memory of an argument was released, and its shadow is not zero: a seed is for what is there in the end",
        "set the shadow to zero, or let the function work on a copy";

    /// Memory of an argument is released that may hold a float or something else.
    707 UnclearRelease =>
        "memory of an argument was released in which floats share their place with pointers or numbers, and whether a gradient is lost with it cannot be told",
        "let the function work on a copy";

    /// Memory of an argument is released without its size.
    708 UnsizedRelease =>
        "memory of an argument was released without its size, and whether a gradient is lost with it cannot be told",
        "let the function work on a copy";

    /// A float or pointer that shares its place with something else is moved in parts.
    709 MovedInParts =>
        "a float with a derivative, or a pointer to memory with derivatives, is moved in parts",
        "move whole values, or keep floats apart from what is moved in parts";

    /// A float that shares its place with something else is taken for a pointer or number.
    710 TakenForNumber =>
        "a float with a derivative is moved or calculated with as if it were a pointer or a number",
        "keep floats apart from pointers and numbers, in fields of their own";

    /// An exception is thrown and caught inside.
    711 CaughtException =>
        "an exception was caught inside of a differentiated function, where derivatives cannot follow",
        "catch it around the derivative";

    /// `dynamic_cast` gives another address.
    712 CastElsewhere =>
        "dynamic_cast to a class that starts at another place in the object, in a differentiated function: derivatives cannot follow",
        "cast to the class that the object starts with";

    /// A context is used in another file.
    713 ForeignContext =>
        "a context of shadows is used in another file than the one that made it, which has other global variables",
        "make it there, or declare shadows with 'enzyme_shadow'";

    /// A function is called through a pointer of which nothing is known.
    714 UnknownTarget =>
        "a derivative called a function through a pointer of which nothing is known: no code with a derivative takes its address",
        "take the address of the function in code that is compiled together with the derivative";

    /// A function without derivative is called through a pointer.
    715 TargetWithoutDerivative { function: String, reason: String } =>
        format!("a derivative called {} through a pointer, which has no derivative: {reason}", w.quote(function)),
        "call another function there, or make that one differentiable";

    /// A function that is called through a pointer changes constant memory.
    716 TargetChangesConstant { function: String } =>
        format!("a derivative called {} through a pointer, which changes memory of an argument without a shadow", w.quote(function)),
        "give the argument a shadow";

    /// There is not enough memory for the tape or for shadows.
    717 OutOfMemory =>
        "a derivative asked for more memory than there is, for its tape or the shadows of what the program allocates",
        "differentiate smaller parts, or use forward mode";
}

/// What is not known of the bytes behind a pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnknownBytes {
    /// The memory itself.
    Memory,
    /// What lies behind the fields that are used.
    Rest,
    /// What is at an offset.
    Offset(i64),
    /// Which of several uses of an offset is meant.
    Conflict(i64),
}

impl UnknownBytes {
    fn describe(self) -> String {
        match self {
            UnknownBytes::Memory => "the pointer leads to no known memory".to_owned(),
            UnknownBytes::Rest => {
                "nothing says what lies behind the fields that are used".to_owned()
            }
            UnknownBytes::Offset(offset) => format!("nothing says what is at offset {offset}"),
            UnknownBytes::Conflict(offset) => {
                format!("what is at offset {offset} is used in ways that exclude each other")
            }
        }
    }
}
