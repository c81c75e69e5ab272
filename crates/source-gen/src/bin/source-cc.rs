//! `ferrozyme-cc`, built with this package.

fn main() -> std::process::ExitCode {
    ferrozyme_cc::run(ferrozyme_cc::Language::C)
}
