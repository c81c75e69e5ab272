//! Random programs and the laws they must keep.

pub mod feature;
pub mod profile;
pub mod program;
pub mod random;

pub use feature::{Feature, Features};
pub use profile::Profile;
pub use program::{Program, generate};
pub use random::Random;
