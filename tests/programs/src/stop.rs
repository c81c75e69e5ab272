//! Programs that stop with a message.

use std::process::Command;

/// A derivative stops the program with this message: what does so runs in a process of its own, which is the test of this name again.
///
/// # Panics
/// If it goes on, or stops with another message.
#[track_caller]
pub fn assert_stops(test: &str, message: &str, run: impl FnOnce()) {
    const INSIDE: &str = "FERROZYME_TEST_STOPS";
    if std::env::var_os(INSIDE).is_some() {
        run();
        return;
    }
    let itself = std::env::current_exe().expect("the test has a path");
    let output = Command::new(itself)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("the test runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it does not stop: {errors}");
    assert!(errors.contains(message), "{errors}");
}
