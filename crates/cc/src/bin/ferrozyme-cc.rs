//! The compiler driver for C.

fn main() -> std::process::ExitCode {
    ferrozyme_cc::run(ferrozyme_cc::Language::C)
}
