//! The list of C's input functions, which write data from outside the program to memory of their arguments.

/// What such a function writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Input {
    /// Bytes, as they are.
    Bytes(Bytes),
    /// Numbers that are read from text, where a format says; it is the argument with this number.
    Formatted(usize),
    /// Text.
    Text,
}

/// Bytes that are written to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bytes {
    /// Which argument is the address.
    pub to: usize,
    /// Which arguments are multiplied to give the size of that memory.
    pub size: &'static [usize],
    /// How many bytes each unit of the result stands for: the argument with this number. If none, one; then a negative result means that nothing was read.
    pub unit: Option<usize>,
}

const fn bytes(to: usize, size: &'static [usize], unit: Option<usize>) -> Input {
    Input::Bytes(Bytes { to, size, unit })
}

/// All such functions by name.
pub const INPUT_FUNCTIONS: &[(&str, Input)] = &[
    ("__fread_chk", bytes(0, &[2, 3], Some(2))),
    ("__isoc23_fscanf", Input::Formatted(1)),
    ("__isoc23_scanf", Input::Formatted(0)),
    ("__isoc23_sscanf", Input::Formatted(1)),
    ("__isoc99_fscanf", Input::Formatted(1)),
    ("__isoc99_scanf", Input::Formatted(0)),
    ("__isoc99_sscanf", Input::Formatted(1)),
    ("__read_chk", bytes(1, &[2], None)),
    ("fgets", Input::Text),
    ("fread", bytes(0, &[1, 2], Some(1))),
    ("fread_unlocked", bytes(0, &[1, 2], Some(1))),
    ("fscanf", Input::Formatted(1)),
    ("getrandom", bytes(0, &[1], None)),
    ("pread", bytes(1, &[2], None)),
    ("pread64", bytes(1, &[2], None)),
    ("read", bytes(1, &[2], None)),
    ("recv", bytes(1, &[2], None)),
    ("recvfrom", bytes(1, &[2], None)),
    ("scanf", Input::Formatted(0)),
    ("sscanf", Input::Formatted(1)),
];

/// Whether a function is one of them.
pub(crate) fn is_input(name: &str) -> bool {
    INPUT_FUNCTIONS.iter().any(|(known, _)| *known == name)
}
