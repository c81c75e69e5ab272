//! The rows of the table: names, or [patterns](crate::pattern) of names, and what they are ([`Known`]).
//!
//! What only names a function stands where that function is handled and not here: entry points of our own interfaces (`__ferrozyme_…`, `__enzyme_…`), the functions of a runtime whose calls
//! are rewritten as a whole (`__kmpc_fork_call`, `__cxa_begin_catch`), and LLVM's intrinsics with a translation of their own (`llvm.memcpy`, `llvm.fshl`).

use crate::allocation::AllocationFunction;
use crate::known::Input::{self as From, Formatted, Text};
use crate::known::{Bytes, Known, Known::*, Variant::*};
use ferrozyme_ir::{Opcode, Type};

const fn bytes(to: usize, size: &'static [usize], unit: Option<usize>) -> Known {
    Input(From::Bytes(Bytes { to, size, unit }))
}

/// Rust's allocator, whose functions have mangled names (`_RNvCs…_7___rustc12___rust_alloc`).
const RUST: &str = "__rust_alloc";
/// C++'s operators: memory from `new` of one kind is released by `delete` of the same.
const NEW: &str = "_Znwm";
const NEW_ARRAY: &str = "_Znam";
const NEW_ALIGNED: &str = "_ZnwmSt11align_val_t";
const NEW_ARRAY_ALIGNED: &str = "_ZnamSt11align_val_t";

const fn allocates(family: &'static str, size: u32) -> AllocationFunction {
    AllocationFunction::allocates(family, size)
}

const fn releases(family: &'static str) -> AllocationFunction {
    AllocationFunction::releases(family)
}

macro_rules! rows {
    ($($($name:literal)+ => $($known:expr),+;)*) => {
        /// Names, and what each of them is.
        pub(crate) static ROWS: &[(&[&str], &[Known])] = &[$((&[$($name),+], &[$($known),+])),*];
    };
}

rows! {
    // ---- C's library: text, output, files

    "__assert_fail" "__ctype_b_loc" "__ctype_tolower_loc" "__ctype_toupper_loc" "__errno_location"
    "__stpcpy_chk" "__strcat_chk" "__strcpy_chk" "__strncat_chk" "__strncpy_chk"
    "bcmp" "memchr" "memcmp" "stpcpy" "strcasecmp" "strcat" "strchr" "strcmp" "strcpy" "strcspn" "strerror" "strftime" "strlen"
    "strncasecmp" "strncat" "strncmp" "strncpy" "strpbrk" "strrchr" "strspn" "strstr"
    "isalnum" "isalpha" "isblank" "iscntrl" "isdigit" "isgraph" "islower" "isprint" "ispunct" "isspace" "isupper" "isxdigit" "tolower" "toupper"
    "atoi" "atol" "atoll" "strtol" "strtoll" "strtoul" "strtoull"
    "__fprintf_chk" "__printf_chk" "__vfprintf_chk" "__vprintf_chk" "__vsnprintf_chk" "__vsprintf_chk"
    "fprintf" "fputc" "fputs" "fwrite" "perror" "printf" "putc" "putchar" "puts" "syslog" "vfprintf" "vprintf" "vsnprintf" "vsprintf" "write"
    "clearerr" "closedir" "fclose" "fcntl" "fdopen" "feof" "ferror" "fflush" "fileno" "fopen" "freopen" "fseek" "ftell" "isatty" "mkdir"
    "open" "open64" "opendir" "pclose" "popen" "rewind" "setbuf" "setlocale" "setvbuf" "tmpfile" "unlink" => Inactive;
    "__snprintf_chk" "__sprintf_chk" "snprintf" "sprintf" => Inactive, WritesText;
    "asprintf" "gcvt" => WritesText;
    "atof" "strtod" => Inactive, GivesFloat, ReadsText;
    "strtof" => ReadsText;

    // ---- C's library: the process, time, random numbers, locks, questions about numbers

    "abort" "asctime" "atexit" "clock" "clock_gettime" "ctime" "exit" "getenv" "getpid" "gettimeofday" "gmtime" "gmtime_r" "localtime" "localtime_r"
    "nanosleep" "sched_yield" "sysconf" "time" "usleep"
    "lrand48" "rand" "rand_r" "random" "srand" "srand48" "srandom"
    "pthread_mutex_destroy" "pthread_mutex_init" "pthread_mutex_lock" "pthread_mutex_trylock" "pthread_mutex_unlock"
    "pthread_rwlock_rdlock" "pthread_rwlock_unlock" "pthread_rwlock_wrlock" "pthread_self" "pthread_spin_lock" "pthread_spin_unlock"
    "__finite" "__finitef" "__fpclassify" "__fpclassifyf" "__isinf" "__isinff" "__isnan" "__isnanf" "__signbit" "__signbitf"
    "finite" "finitef" "isinf" "isinff" "isnan" "isnanf"
    "feclearexcept" "fegetround" "feraiseexcept" "fesetround" "fetestexcept"
    "omp_get_num_procs" "omp_get_max_threads" => Inactive;
    "drand48" "omp_get_wtime" => Inactive, GivesFloat;
    // It is the standard library that calls the system, for its locks.
    "syscall" => InactiveIn("rustc");

    // ---- numbers from outside

    "__fread_chk" => bytes(0, &[2, 3], Some(2));
    "fread" "fread_unlocked" => bytes(0, &[1, 2], Some(1));
    "getrandom" => bytes(0, &[1], None);
    "__read_chk" "pread" "pread64" "read" "recv" "recvfrom" => bytes(1, &[2], None);
    "__isoc23_scanf" "__isoc99_scanf" "scanf" => Input(Formatted(0));
    "__isoc23_fscanf" "__isoc99_fscanf" "fscanf" => Input(Formatted(1));
    "__isoc23_sscanf" "__isoc99_sscanf" "sscanf" => Input(Formatted(1)), ReadsText;
    "fgets" => Input(Text);

    // ---- memory

    "malloc" => Allocator(allocates("malloc", 0));
    "calloc" => Allocator(allocates("malloc", 1).zeroed().counted(0));
    "aligned_alloc" "memalign" => Allocator(allocates("malloc", 1).aligned(0));
    "posix_memalign" => AllocatesInto(allocates("malloc", 2).aligned(1));
    "realloc" => Allocator(AllocationFunction::reallocates("malloc", 1));
    "free" => Allocator(releases("malloc"));
    "*12___rust_alloc" => Allocator(allocates(RUST, 0).aligned(1)), Outside;
    "*19___rust_alloc_zeroed" => Allocator(allocates(RUST, 0).zeroed().aligned(1)), Outside;
    "*14___rust_realloc" => Allocator(AllocationFunction::reallocates(RUST, 3).told_size(1).aligned(2)), Outside;
    "*14___rust_dealloc" => Allocator(releases(RUST).told_size(1).aligned(2)), Outside;
    "_Znwm" => Allocator(allocates(NEW, 0));
    "_ZnwmRKSt9nothrow_t" => Allocator(allocates(NEW, 0).variant());
    "_ZdlPv" => Allocator(releases(NEW));
    "_ZdlPvRKSt9nothrow_t" => Allocator(releases(NEW).variant());
    "_ZdlPvm" => Allocator(releases(NEW).told_size(1).variant());
    "_Znam" => Allocator(allocates(NEW_ARRAY, 0));
    "_ZnamRKSt9nothrow_t" => Allocator(allocates(NEW_ARRAY, 0).variant());
    "_ZdaPv" => Allocator(releases(NEW_ARRAY));
    "_ZdaPvRKSt9nothrow_t" => Allocator(releases(NEW_ARRAY).variant());
    "_ZdaPvm" => Allocator(releases(NEW_ARRAY).told_size(1).variant());
    "_ZnwmSt11align_val_t" => Allocator(allocates(NEW_ALIGNED, 0).aligned(1));
    "_ZnwmSt11align_val_tRKSt9nothrow_t" => Allocator(allocates(NEW_ALIGNED, 0).aligned(1).variant());
    "_ZdlPvSt11align_val_t" => Allocator(releases(NEW_ALIGNED).aligned(1));
    "_ZdlPvSt11align_val_tRKSt9nothrow_t" => Allocator(releases(NEW_ALIGNED).aligned(1).variant());
    "_ZdlPvmSt11align_val_t" => Allocator(releases(NEW_ALIGNED).told_size(1).aligned(2).variant());
    "_ZnamSt11align_val_t" => Allocator(allocates(NEW_ARRAY_ALIGNED, 0).aligned(1));
    "_ZnamSt11align_val_tRKSt9nothrow_t" => Allocator(allocates(NEW_ARRAY_ALIGNED, 0).aligned(1).variant());
    "_ZdaPvSt11align_val_t" => Allocator(releases(NEW_ARRAY_ALIGNED).aligned(1));
    "_ZdaPvSt11align_val_tRKSt9nothrow_t" => Allocator(releases(NEW_ARRAY_ALIGNED).aligned(1).variant());
    "_ZdaPvmSt11align_val_t" => Allocator(releases(NEW_ARRAY_ALIGNED).told_size(1).aligned(2).variant());

    // ---- mathematics that is not one operation; all else is in the table of mathematical functions

    "scalbln" => Mathematics(LongExponent);
    "lround" "llround" => Mathematics(ToInteger(Opcode::Round));
    "lrint" "llrint" => Mathematics(ToInteger(Opcode::RoundEven));
    "cabs" => Mathematics(Magnitude);
    "carg" => Mathematics(Angle);
    "remquo" => Mathematics(RemainderAndQuotient);
    "lgamma_r" => Mathematics(LogGammaAndSign(Type::F64));
    "lgammaf_r" => Mathematics(LogGammaAndSign(Type::F32));
    "j0" => Mathematics(OfOrder(Opcode::Jn, 0)), NotReserved;
    "j1" => Mathematics(OfOrder(Opcode::Jn, 1)), NotReserved;
    "y0" => Mathematics(OfOrder(Opcode::Yn, 0)), NotReserved;
    "y1" => Mathematics(OfOrder(Opcode::Yn, 1)), NotReserved;
    "sincos" => Mathematics(SineAndCosine), NotReserved;
    "libm::*" => OfC;
    "matrixmultiply::gemm::sgemm" => ComputedBy("__ferrozyme_product_f32");
    "matrixmultiply::gemm::dgemm" => ComputedBy("__ferrozyme_product_f64");

    // ---- functions of C and C++ whose bodies are in `cc/src/library.c`

    "qsort" "bsearch" "__memcpy_chk" "__memmove_chk" "__memset_chk" "pthread_once"
    "_ZNSt8__detail15_List_node_base7_M_hookEPS0_" "_ZNSt8__detail15_List_node_base9_M_unhookEv"
    "_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_" "_ZNSt8__detail15_List_node_base10_M_reverseEv"
    "_ZNSt8__detail15_List_node_base4swapERS0_S1_"
    "_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base" "_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base"
    "_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base" "_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base"
    "_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_" "_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_"
    "__kmpc_for_static_init_4" "__kmpc_for_static_init_4u" "__kmpc_for_static_init_8" "__kmpc_for_static_init_8u" "__kmpc_for_static_fini"
    "__kmpc_barrier" "__kmpc_push_num_threads" "__kmpc_serialized_parallel" "__kmpc_end_serialized_parallel"
    "__kmpc_critical" "__kmpc_critical_with_hint" "__kmpc_end_critical" "__kmpc_end_single" "__kmpc_end_master" "__kmpc_end_masked"
    "__kmpc_ordered" "__kmpc_end_ordered"
    "__kmpc_dispatch_fini_4" "__kmpc_dispatch_fini_4u" "__kmpc_dispatch_fini_8" "__kmpc_dispatch_fini_8u" "__kmpc_dispatch_deinit"
    "__kmpc_end_reduce" "__kmpc_end_reduce_nowait" "__kmpc_single" "__kmpc_master" "__kmpc_masked" "__kmpc_reduce" "__kmpc_reduce_nowait"
    "__kmpc_global_thread_num" "__kmpc_flush" "omp_in_parallel" => Body;
    "omp_get_thread_num" "omp_get_num_threads" => Inactive, Body;

    // ---- C++'s library: output, text, clocks, the choice of sizes of hash tables. Nothing that calls what it is given

    "_ZNKSo*" "_ZNKSs*" "_ZNKSt5ctype*" "_ZNKSt6locale*" "_ZNKSt7__cxx1112basic_string*" "_ZNKSt7__cxx1118basic_stringstream*"
    "_ZNKSt7__cxx1119basic_ostringstream*" "_ZNKSt8__detail20_Prime_rehash_policy*" "_ZNKSt8ios_base*" "_ZNKSt9basic_ios*"
    "_ZNSaIc*" "_ZNSo*" "_ZNSs*" "_ZNSt11logic_error*" "_ZNSt13basic_ostream*" "_ZNSt13runtime_error*" "_ZNSt14basic_ofstream*"
    "_ZNSt15basic_streambuf*" "_ZNSt5ctype*" "_ZNSt6chrono3_V212system_clock3now*" "_ZNSt6chrono3_V212steady_clock3now*" "_ZNSt6locale*"
    "_ZNSt7__cxx1112basic_string*" "_ZNSt7__cxx1115basic_stringbuf*" "_ZNSt7__cxx1118basic_stringstream*" "_ZNSt7__cxx1119basic_ostringstream*"
    "_ZNSt7__cxx119to_string*" "_ZNSt8__detail20_Prime_rehash_policy*" "_ZNSt8ios_base*" "_ZNSt9basic_ios*" "_ZNSt9exception*"
    "_ZSt11_Hash_bytes*" "_ZSt16__ostream_insert*" "_ZSt4endl*" "_ZSt5flush*" "_ZStls*" "__cxa_*" "__dynamic_cast" => Outside;
    "_ZSt4cout" "_ZSt4cerr" "_ZSt4clog" => InactiveVariable;

    // ---- Rust's libraries: formatting, output, panics, locks, and the machinery of the runtime

    "core::fmt::*" "alloc::fmt::*" => Outside, Formatting;
    "std::io::Write*" => Formatting;
    "core::fmt::rt::Argument::*" "core::fmt::rt::<impl core::fmt::Arguments>::*" "core::fmt::Arguments::*" => LookedInto;
    // It only gives a number.
    "rayon_core::current_num_threads" => Outside;
    "core::num::flt2dec::*" "core::num::fmt::*" "std::io::stdio::*" "parking_lot::raw_mutex::*" "parking_lot::raw_rwlock::*" "parking_lot_core::*"
    "alloc::alloc::handle_alloc_error::*" "alloc::raw_vec::capacity_overflow::*" "alloc::raw_vec::handle_error::*"
    "core::cell::panic_already_borrowed::*" "core::cell::panic_already_mutably_borrowed::*" "core::option::expect_failed::*"
    "core::option::unwrap_failed::*" "core::panicking::*" "core::result::unwrap_failed::*" "core::slice::index::slice_end_index_len_fail::*"
    "core::slice::index::slice_index_fail::*" "core::slice::index::slice_index_order_fail::*" "core::slice::index::slice_start_index_len_fail::*"
    "core::str::slice_error_fail::*" "std::alloc::rust_oom::*" "std::panicking::begin_panic::*" "std::panicking::panic_count::*"
    "std::panicking::rust_panic_with_hook::*" "rust_eh_personality" => Outside;
    // Name by name: others of the runtime (`__rust_try`, `__rust_begin_short_backtrace`, initialisers of thread-locals) run code of the program.
    // The keys of hash maps are random.
    "*11RandomState3new4KEYS27___rust_std_internal_init_fn*"
    "__rustc::__rust_abort" "__rustc::__rust_alloc_error_handler" "__rustc::__rust_alloc_error_handler_should_panic_v2" "__rustc::__rust_drop_panic"
    "__rustc::__rust_foreign_exception" "__rustc::__rust_panic_cleanup" "__rustc::__rust_probestack" "__rustc::__rust_start_panic" => Outside;
    "*11RandomState3new4KEYS*" => HoldsNumbers;
    "std::io::stdio::_print" "std::io::stdio::_eprint" => Shows(0);
    "alloc::fmt::format::format_inner" "core::fmt::write" "<core::fmt::Formatter>::write_fmt" => Shows(1);
    "<f64 as core::fmt::*" "<f32 as core::fmt::*" "core::fmt::float::*" => WritesText;
    "core::num::dec2flt*" "core::num::*::dec2flt*" "<f64 as core::str::traits::FromStr>::*" "<f32 as core::str::traits::FromStr>::*" => ReadsText;
    // The inside of `Vec` is one piece of code for all types of elements. Only where it is inlined are sizes and alignments known, and memory of one type is not taken for memory of all.
    "alloc::raw_vec::*" => TakesLayouts;
    "__rustc::__rust_no_alloc_shim_is_unstable_v2" => Outside, Note;

    // ---- LLVM's intrinsics, without the types at the end of their names

    "llvm.assume" "llvm.donothing" "llvm.experimental.noalias.scope.decl" "llvm.invariant.end" "llvm.lifetime.end" "llvm.lifetime.start" "llvm.prefetch"
    "llvm.pseudoprobe" "llvm.sideeffect" "llvm.stackrestore" "llvm.var.annotation" "llvm.dbg.*" => Note;
    "llvm.annotation" "llvm.arithmetic.fence" "llvm.expect" "llvm.expect.with.probability" "llvm.launder.invariant.group" "llvm.ptr.annotation"
    "llvm.ssa.copy" "llvm.strip.invariant.group" => FirstArgument;
    "llvm.smin" => Operation(Opcode::Smin);
    "llvm.smax" => Operation(Opcode::Smax);
    "llvm.umin" => Operation(Opcode::Umin);
    "llvm.umax" => Operation(Opcode::Umax);
    "llvm.ctpop" => Operation(Opcode::Ctpop);
    "llvm.ctlz" => Operation(Opcode::Ctlz);
    "llvm.cttz" => Operation(Opcode::Cttz);
    "llvm.bswap" => Operation(Opcode::Bswap);
    "llvm.bitreverse" => Operation(Opcode::Bitreverse);
}
