//! Numbers are moved between files and the program piece by piece: no second copy of them is in memory.

use ferrozyme_bench_memory::peak_of;
use gpt2::adamw::Settings;
use gpt2::data::{Data, OWN_TEXT};
use gpt2::encoding::Encoding;
use gpt2::files::state::{self, Progress};
use gpt2::{Batch, Config, Parameters};
use gpt2_graph::training::{Plan, Training};
use std::sync::Arc;

#[test]
fn a_state_is_written_and_read_without_a_copy_of_its_numbers() {
    // A large table, of which a piece is a small part.
    let config = Config::named("tiny").expect("it has a name");
    let config = config.with_vocabulary(50_000);
    let all = 3 * 4 * Parameters::total(&config);
    let plan = Plan {
        batch: Batch {
            sequences: 1,
            steps: 4,
        },
        optimiser: Settings::default(),
        overfit: false,
        factors: None,
        budget: None,
    };
    let data: Arc<[u32]> = Data::from_text(OWN_TEXT, Encoding::Bytes).training.into();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.state");
    let mut training = Training::new(plan, Progress::start(config, 1), &data, "cpu").unwrap();
    let numbers: Vec<f32> = (0..Parameters::total(&config)).map(|x| x as f32).collect();

    let (set, while_set) = peak_of(|| training.set_parameters(&numbers));
    set.unwrap();
    let (saved, while_saved) = peak_of(|| training.save(&path));
    saved.unwrap();
    let reader = state::open(&path).unwrap();
    let (loaded, while_loaded) = peak_of(|| training.load(reader));
    loaded.unwrap();
    for peak in [while_set, while_saved, while_loaded] {
        // Nothing is counted where the C library is another one.
        assert!(peak.is_none_or(|peak| peak < all / 8), "{peak:?} of {all}");
    }
    assert_eq!(training.state().unwrap().parameters, numbers);
    let (config, parameters) = state::load_parameters(&path).unwrap();
    assert!(config == training.progress().config && parameters == numbers);
}
