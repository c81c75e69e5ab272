//! All that multiplies matrices, behind one type.

#![allow(unsafe_code, reason = "matrices are given as addresses and strides")]

use crate::blas::Blas;
use crate::native::{Element, Function, Native, View};
use crate::plain;
use anyhow::Result;
use ferrozyme_export::Team;
use ferrozyme_ir::{FunctionId, Module};
use ferrozyme_kernels::contraction;

/// One that multiplies.
pub struct Contestant<T> {
    /// What tables call it.
    pub name: String,
    kind: Kind<T>,
}

enum Kind<T> {
    /// Ferrozyme's kernels.
    Kernels(
        Function<T>,
        #[allow(dead_code, reason = "it keeps the code alive")] Native<T>,
    ),
    /// Plain loops: for rows of B in consecutive elements, and for columns.
    Loops(
        [Function<T>; 2],
        #[allow(dead_code, reason = "it keeps the code alive")] Native<T>,
    ),
    Blas(Blas<T>),
    Crate(Multiply<T>),
}

/// A function of a crate: C, A and B with their strides in elements, sizes, factor, whether to add.
type Multiply<T> = unsafe fn([View<T>; 3], [usize; 3], T, bool);

/// An element that crates have functions for.
pub trait Multiplied: Element {
    /// The crate `gemm`.
    const GEMM: Multiply<Self>;
    /// The crate `matrixmultiply`.
    const MATRIXMULTIPLY: Multiply<Self>;
}

macro_rules! multiplied {
    ($ty:ty, $matrixmultiply:path) => {
        impl Multiplied for $ty {
            const GEMM: Multiply<$ty> = |[c, a, b], [m, n, k], alpha, add| {
                // SAFETY: as the caller of `Contestant::run` promises.
                unsafe {
                    gemm::gemm(
                        m,
                        n,
                        k,
                        c.data,
                        c.strides[1],
                        c.strides[0],
                        add,
                        a.data,
                        a.strides[1],
                        a.strides[0],
                        b.data,
                        b.strides[1],
                        b.strides[0],
                        1.0,
                        alpha,
                        false,
                        false,
                        false,
                        gemm::Parallelism::None,
                    );
                }
            };
            const MATRIXMULTIPLY: Multiply<$ty> = |[c, a, b], [m, n, k], alpha, add| {
                // SAFETY: as the caller of `Contestant::run` promises.
                unsafe {
                    $matrixmultiply(
                        m,
                        k,
                        n,
                        alpha,
                        a.data,
                        a.strides[0],
                        a.strides[1],
                        b.data,
                        b.strides[0],
                        b.strides[1],
                        if add { 1.0 } else { 0.0 },
                        c.data,
                        c.strides[0],
                        c.strides[1],
                    );
                }
            };
        }
    };
}

multiplied!(f32, matrixmultiply::sgemm);
multiplied!(f64, matrixmultiply::dgemm);

impl<T: Multiplied> Contestant<T> {
    /// The kernels, with the level of the processor limited to 0 (the baseline), 3 or 4, on one thread or those of a team.
    ///
    /// # Errors
    /// If LLVM is not there or refuses.
    pub fn kernels(highest_level: Option<u32>, team: Team) -> Result<Contestant<T>> {
        let mut module = Module::new();
        let function = contraction(&mut module, T::SCALAR);
        let name = module.functions[function].name.clone();
        let native = Native::new(&module, &[function], "x86-64", highest_level, team)?;
        let level = highest_level.map_or_else(String::new, |level| format!(" v{}", level.max(1)));
        let threads = match team {
            Team::Caller => "",
            Team::OpenMp | Team::OfProgram => " threads",
        };
        Ok(Contestant {
            name: format!("ours{level}{threads}"),
            kind: Kind::Kernels(native.function(&name)?, native),
        })
    }

    /// Plain loops, compiled for this processor.
    ///
    /// # Errors
    /// If LLVM is not there or refuses.
    pub fn loops() -> Result<Contestant<T>> {
        let module = plain::loops::<T>()?;
        let functions: Vec<FunctionId> = module.functions.keys().collect();
        let native = Native::new(&module, &functions, "native", None, Team::Caller)?;
        let [rows, dots] = plain::NAMES;
        Ok(Contestant {
            name: "loops".to_owned(),
            kind: Kind::Loops([native.function(rows)?, native.function(dots)?], native),
        })
    }

    /// The crates `gemm` and `matrixmultiply`.
    pub fn crates() -> [Contestant<T>; 2] {
        [("gemm", T::GEMM), ("matrixmultiply", T::MATRIXMULTIPLY)].map(|(name, function)| {
            Contestant {
                name: name.to_owned(),
                kind: Kind::Crate(function),
            }
        })
    }

    /// A library.
    ///
    /// # Errors
    /// If it is not there.
    pub fn library(name: &str, file: &str, threads: usize) -> Result<Contestant<T>> {
        Ok(Contestant {
            name: name.to_owned(),
            kind: Kind::Blas(Blas::load(file, threads)?),
        })
    }

    /// Computes `C = alpha·A·B`, or adds it; whether it can, with these strides.
    ///
    /// # Safety
    /// The views are of memory for matrices of these sizes, and C's overlaps no other.
    pub unsafe fn run(&self, views: [View<T>; 3], sizes: [usize; 3], alpha: T, add: bool) -> bool {
        // SAFETY: as the caller promises.
        unsafe {
            match &self.kind {
                Kind::Kernels(function, _) => function.call(views, sizes, alpha, add),
                Kind::Crate(function) => function(views, sizes, alpha, add),
                Kind::Blas(library) => return library.call(views, sizes, alpha, add),
                Kind::Loops([rows, dots], _) => {
                    let [c, a, b] = views;
                    if b.strides[1] == 1 && c.strides[1] == 1 {
                        rows.call(views, sizes, alpha, add);
                    } else if b.strides[0] == 1 && a.strides[1] == 1 {
                        dots.call(views, sizes, alpha, add);
                    } else {
                        return false;
                    }
                }
            }
        }
        true
    }
}
