//! Random programs and the laws they must keep.
//!
//! [`generate`] makes a program from a seed, [`laws::check`] checks it, [`shrink`](mod@shrink) makes a failing one small, and
//! [`soak`](mod@soak) does all of that for as many seeds as one likes; the command of the same name is its front. Tensor graphs are made in [`graph`], and their laws are in [`graph_laws`]; `soak-graphs` checks them.
//!
//! ```
//! use ferrozyme_gen::laws::{Law, Subject, Tally, check};
//! use ferrozyme_gen::{Profile, generate};
//! let program = generate(1, Profile::of_seed(1));
//! let subject = Subject { module: program.module, main: program.main, seed: 1 };
//! check(&subject, &[Law::Text, Law::Run], &mut Tally::default()).unwrap();
//! ```

pub mod feature;
pub mod graph;
pub mod graph_laws;
pub mod inputs;
pub mod laws;
pub mod profile;
pub mod program;
pub mod random;
pub mod shrink;
pub mod soak;
pub mod state;

pub use feature::{Feature, Features};
pub use inputs::Inputs;
pub use profile::Profile;
pub use program::{Program, generate};
pub use random::Random;
pub use state::State;
