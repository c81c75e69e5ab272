//! Source for library functions that come as machine code only: `library.c`, compiled when a unit calls one of them.

use crate::Failure;
use crate::clang::Clang;
use std::path::Path;

/// The source.
const SOURCE: &str = include_str!("library.c");

/// The functions that it exports.
pub(crate) const SYMBOLS: &[&str] = &[
    "qsort",
    "bsearch",
    "__memcpy_chk",
    "__memmove_chk",
    "__memset_chk",
    "pthread_once",
    "_ZNSt8__detail15_List_node_base7_M_hookEPS0_",
    "_ZNSt8__detail15_List_node_base9_M_unhookEv",
    "_ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_",
    "_ZNSt8__detail15_List_node_base10_M_reverseEv",
    "_ZNSt8__detail15_List_node_base4swapERS0_S1_",
    "_ZSt18_Rb_tree_incrementPSt18_Rb_tree_node_base",
    "_ZSt18_Rb_tree_incrementPKSt18_Rb_tree_node_base",
    "_ZSt18_Rb_tree_decrementPSt18_Rb_tree_node_base",
    "_ZSt18_Rb_tree_decrementPKSt18_Rb_tree_node_base",
    "_ZSt29_Rb_tree_insert_and_rebalancebPSt18_Rb_tree_node_baseS0_RS_",
    "_ZSt28_Rb_tree_rebalance_for_erasePSt18_Rb_tree_node_baseRS_",
    "__kmpc_for_static_init_4",
    "__kmpc_for_static_init_4u",
    "__kmpc_for_static_init_8",
    "__kmpc_for_static_init_8u",
    "__kmpc_for_static_fini",
    "__kmpc_barrier",
    "__kmpc_push_num_threads",
    "__kmpc_serialized_parallel",
    "__kmpc_end_serialized_parallel",
    "__kmpc_critical",
    "__kmpc_critical_with_hint",
    "__kmpc_end_critical",
    "__kmpc_end_single",
    "__kmpc_end_master",
    "__kmpc_end_masked",
    "__kmpc_ordered",
    "__kmpc_end_ordered",
    "__kmpc_dispatch_fini_4",
    "__kmpc_dispatch_fini_4u",
    "__kmpc_dispatch_fini_8",
    "__kmpc_dispatch_fini_8u",
    "__kmpc_dispatch_deinit",
    "__kmpc_end_reduce",
    "__kmpc_end_reduce_nowait",
    "__kmpc_single",
    "__kmpc_master",
    "__kmpc_masked",
    "__kmpc_reduce",
    "__kmpc_reduce_nowait",
    "__kmpc_global_thread_num",
    "__kmpc_flush",
    "omp_get_thread_num",
    "omp_get_num_threads",
    "omp_get_max_threads",
    "omp_in_parallel",
];

/// The bitcode of the library, if a unit that asks for derivatives mentions one of its functions.
pub(crate) fn for_unit(
    clang: &Clang,
    unit: &[u8],
    folder: &Path,
) -> Result<Option<Vec<u8>>, Failure> {
    let mentions = |name: &str| unit.windows(name.len()).any(|here| here == name.as_bytes());
    if !mentions("__enzyme_") || !SYMBOLS.iter().any(|symbol| mentions(symbol)) {
        return Ok(None);
    }
    compile(clang, folder).map(Some)
}

/// Compiles the library.
pub(crate) fn compile(clang: &Clang, folder: &Path) -> Result<Vec<u8>, Failure> {
    let (source, bitcode) = (folder.join("library.c"), folder.join("library.bc"));
    let failed = |error: std::io::Error| crate::compile::unreadable(&source, &error);
    std::fs::write(&source, SOURCE).map_err(failed)?;
    let options = [
        "-O1",
        "-fno-builtin",
        "-Xclang",
        "-disable-llvm-passes",
        "-gline-tables-only",
        "-w",
        "-c",
        "-emit-llvm",
        "-o",
    ];
    let mut command: Vec<std::ffi::OsString> = options.map(Into::into).to_vec();
    command.extend([bitcode.clone().into(), "-x".into(), "c".into()]);
    command.push(source.clone().into());
    clang.run(command)?;
    std::fs::read(&bitcode).map_err(failed)
}
