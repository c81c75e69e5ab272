//! `cargo ferrozyme`, built with this package.

fn main() {
    std::process::exit(ferrozyme_cli::cargo::run(
        std::env::args_os().skip(1).collect(),
    ));
}
