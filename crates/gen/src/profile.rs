//! Which kinds of programs are made.

/// How much of what a program holds.
///
/// The weights say how often a statement is of a kind, relative to each other; 0 leaves the kind out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// What it is called on the command line.
    pub name: &'static str,
    /// About how many operations `@main` has at least and at most.
    pub operations: (i64, i64),
    /// How many functions there are besides `@main`, at most.
    pub helpers: usize,
    /// How deep regions nest.
    pub depth: u32,
    /// New scalars.
    pub scalars: u32,
    /// Loads, stores, copies and the like on arrays.
    pub memory: u32,
    /// Heap and stack memory, structures, lists, pointers in memory.
    pub objects: u32,
    /// Loops.
    pub loops: u32,
    /// Branches.
    pub branches: u32,
    /// Calls.
    pub calls: u32,
    /// Single precision and vectors.
    pub types: u32,
    /// In how many of 100 programs single precision and other things that cost accuracy occur.
    pub inexact: u32,
    /// In how many of 100 programs functions may have kinks and steps.
    pub kinks: u32,
}

impl Profile {
    /// All profiles.
    pub const ALL: &'static [Profile] = &[
        Profile {
            name: "default",
            operations: (10, 60),
            helpers: 3,
            depth: 3,
            scalars: 6,
            memory: 8,
            objects: 3,
            loops: 5,
            branches: 4,
            calls: 4,
            types: 1,
            inexact: 15,
            kinks: 30,
        },
        Profile {
            name: "scalar",
            operations: (4, 30),
            helpers: 2,
            depth: 2,
            scalars: 10,
            memory: 0,
            objects: 0,
            loops: 4,
            branches: 4,
            calls: 3,
            types: 1,
            inexact: 15,
            kinks: 30,
        },
        Profile {
            name: "memory",
            operations: (10, 60),
            helpers: 2,
            depth: 3,
            scalars: 2,
            memory: 10,
            objects: 8,
            loops: 4,
            branches: 3,
            calls: 2,
            types: 0,
            inexact: 0,
            kinks: 10,
        },
        Profile {
            name: "calls",
            operations: (10, 40),
            helpers: 5,
            depth: 2,
            scalars: 4,
            memory: 4,
            objects: 2,
            loops: 3,
            branches: 3,
            calls: 12,
            types: 0,
            inexact: 0,
            kinks: 10,
        },
        Profile {
            name: "loops",
            operations: (10, 60),
            helpers: 1,
            depth: 4,
            scalars: 3,
            memory: 8,
            objects: 2,
            loops: 10,
            branches: 4,
            calls: 1,
            types: 0,
            inexact: 0,
            kinks: 10,
        },
        Profile {
            name: "tiny",
            operations: (2, 12),
            helpers: 1,
            depth: 2,
            scalars: 5,
            memory: 6,
            objects: 3,
            loops: 5,
            branches: 4,
            calls: 3,
            types: 1,
            inexact: 10,
            kinks: 20,
        },
        Profile {
            name: "large",
            operations: (150, 400),
            helpers: 8,
            depth: 4,
            scalars: 6,
            memory: 8,
            objects: 3,
            loops: 4,
            branches: 4,
            calls: 4,
            types: 1,
            inexact: 15,
            kinks: 30,
        },
    ];

    /// The profile of this name.
    pub fn named(name: &str) -> Option<&'static Profile> {
        Profile::ALL.iter().find(|profile| profile.name == name)
    }

    /// The profile that a mixed run gives to a seed: mostly the default one, each of the others but `large` now and then.
    pub fn of_seed(seed: u64) -> &'static Profile {
        match seed % 16 {
            0 => &Profile::ALL[1],
            1 | 2 => &Profile::ALL[2],
            3 => &Profile::ALL[3],
            4 | 5 => &Profile::ALL[4],
            6..=8 => &Profile::ALL[5],
            _ => &Profile::ALL[0],
        }
    }
}
