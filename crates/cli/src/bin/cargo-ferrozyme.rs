//! `cargo ferrozyme`: cargo with derivatives; also the linker and the wrapper that it makes cargo and rustc call.

#[cfg(unix)]
fn main() {
    std::process::exit(ferrozyme_cli::cargo::run(
        std::env::args_os().skip(1).collect(),
    ));
}

#[cfg(not(unix))]
fn main() {
    eprintln!("error: Ferrozyme does not support this platform; it runs on Linux, on x86-64");
    std::process::exit(1);
}
