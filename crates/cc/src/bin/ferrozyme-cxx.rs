//! The compiler driver for C++. Its name is `ferrozyme-c++`, which cargo does not allow for a program; the build script makes a link of that name.

fn main() -> std::process::ExitCode {
    ferrozyme_cc::run(ferrozyme_cc::Language::Cpp)
}
