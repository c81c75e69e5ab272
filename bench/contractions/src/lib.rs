//! Matrix products by the kernels of `ferrozyme-kernels`, by plain loops and by libraries.
//!
//! | file | what lives there |
//! |---|---|
//! | `native.rs` | Loop IR as machine code in this process |
//! | `plain.rs` | the loops that people write, as Loop IR |
//! | `contestants.rs` | all that multiplies matrices, behind one type |
//! | `blas.rs` | libraries with C's interface of BLAS, found at run time |
//! | `openmp.rs` | the threads that the kernels can use |
//! | `cases.rs` | sizes and layouts |
//! | `measure.rs` | timing: contestants take turns, the fastest time of each counts |
//! | `report.rs` | tables and the chart |

pub mod blas;
pub mod cases;
pub mod contestants;
pub mod measure;
pub mod native;
pub mod openmp;
pub mod plain;
pub mod report;
