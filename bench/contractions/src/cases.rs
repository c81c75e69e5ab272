//! Sizes and layouts.

use crate::native::{Element, View};

/// A product that is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Case {
    /// Rows, columns and terms.
    pub sizes: [usize; 3],
    /// Whether A lies in memory column by column.
    pub a_transposed: bool,
    /// Whether B does.
    pub b_transposed: bool,
}

/// Some sizes that are measured together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Group {
    /// Those of a transformer, and 2048³.
    Large,
    /// Squares from 1 to 4096.
    Squares,
    /// One or two sides are short.
    Thin,
    /// All sides are short.
    Small,
}

impl Group {
    /// The sizes.
    pub fn sizes(self) -> Vec<[usize; 3]> {
        match self {
            Group::Large => {
                let mut sizes = Vec::new();
                for k in [768, 2304, 3072] {
                    for n in [768, 2304, 3072] {
                        sizes.push([256, n, k]);
                    }
                }
                sizes.extend([[256, 50304, 768], [2048, 2048, 2048]]);
                sizes
            }
            Group::Squares => [
                1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256,
                384, 512, 768, 1024, 2048, 4096,
            ]
            .map(|side| [side; 3])
            .to_vec(),
            Group::Thin => {
                let mut sizes = Vec::new();
                for short in [1, 2, 3, 4, 7, 8] {
                    for long in [100, 1000] {
                        sizes.extend([
                            [short, long, long],
                            [long, short, long],
                            [long, long, short],
                        ]);
                        sizes.extend([
                            [short, short, long * 10],
                            [short, long * 10, short],
                            [long * 10, short, short],
                        ]);
                    }
                }
                sizes
            }
            Group::Small => {
                let mut sizes = Vec::new();
                let sides = [1, 2, 3, 4, 5, 7, 8, 13, 16, 24];
                for m in sides {
                    for n in sides {
                        for k in sides {
                            sizes.push([m, n, k]);
                        }
                    }
                }
                sizes
            }
        }
    }
}

impl Case {
    /// All four transpositions of these sizes.
    pub fn transpositions(sizes: [usize; 3]) -> [Case; 4] {
        [(false, false), (false, true), (true, false), (true, true)].map(
            |(a_transposed, b_transposed)| Case {
                sizes,
                a_transposed,
                b_transposed,
            },
        )
    }

    /// `NN`, `NT`, `TN` or `TT`.
    pub fn layout(&self) -> String {
        let letter = |transposed: bool| if transposed { 'T' } else { 'N' };
        format!("{}{}", letter(self.a_transposed), letter(self.b_transposed))
    }

    /// `256×768×3072`.
    pub fn size(&self) -> String {
        let [m, n, k] = self.sizes;
        format!("{m}×{n}×{k}")
    }

    /// Floating-point operations.
    pub fn operations(&self) -> f64 {
        let [m, n, k] = self.sizes.map(|size| size as f64);
        2.0 * m * n * k
    }
}

/// The matrices of a case.
pub struct Matrices<T> {
    case: Case,
    /// C, A and B.
    values: [Vec<T>; 3],
}

impl<T: Element> Matrices<T> {
    /// Filled with small integers.
    pub fn new(case: Case) -> Matrices<T> {
        let [m, n, k] = case.sizes;
        let filled = |count: usize, seed: usize| -> Vec<T> {
            let number = |index: usize| ((index * 7919 + seed) % 17) as f64 - 8.0;
            (0..count).map(|index| T::from_f64(number(index))).collect()
        };
        Matrices {
            case,
            values: [filled(m * n, 1), filled(m * k, 2), filled(k * n, 3)],
        }
    }

    /// Addresses and strides.
    pub fn views(&mut self) -> [View<T>; 3] {
        let [m, n, k] = self.case.sizes.map(|size| size as isize);
        let strides = |rows: isize, columns: isize, transposed: bool| match transposed {
            true => [1, rows],
            false => [columns, 1],
        };
        let all = [
            strides(m, n, false),
            strides(m, k, self.case.a_transposed),
            strides(k, n, self.case.b_transposed),
        ];
        let mut strides = all.into_iter();
        self.values.each_mut().map(|values| View {
            data: values.as_mut_ptr(),
            strides: strides.next().unwrap_or_default(),
        })
    }

    /// What C holds.
    pub fn result(&self) -> &[T] {
        &self.values[0]
    }
}
