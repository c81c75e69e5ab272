//! The sizes of the published models.

use gpt2::{Config, Parameters};

#[test]
fn the_published_models_have_their_sizes() {
    for name in Config::NAMES {
        Config::named(name).unwrap().check().unwrap();
    }
    let config = Config::named("124M").unwrap();
    assert_eq!(Parameters::total(&config), 124_475_904);
    assert_eq!(Parameters::NAMES.len(), 16);
    assert_eq!(Parameters::shapes(&config)[4], [12, 3 * 768, 768]);
    // 1,557,611,200 is the number without padding.
    let config = Config::named("1558M").unwrap();
    assert_eq!(Parameters::total(&config), 1_557_611_200 + 47 * 1600);
}

#[test]
fn impossible_sizes_are_refused() {
    let config = Config::named("tiny").unwrap();
    let refused = |config: Config| config.check().unwrap_err().to_string();
    assert_eq!(
        refused(Config { heads: 0, ..config }),
        "no model has no heads"
    );
    assert_eq!(
        refused(Config { heads: 3, ..config }),
        "no model has 64 channels for 3 heads"
    );
    assert_eq!(
        refused(Config {
            padded_vocabulary: 10,
            ..config
        }),
        "no model has 50257 tokens in a table of 10 rows"
    );
    assert_eq!(
        refused(Config {
            layers: usize::MAX,
            ..config
        }),
        format!("no model has {} layers", usize::MAX)
    );
}
