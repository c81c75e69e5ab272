//! Files that are cut off, hold something else than numbers, or do not fit: an error that says where and what.

use ferrozyme_adbench::{ba, gmm, hand, lstm};
use std::path::{Path, PathBuf};

/// Writes a file to a folder of the tests' own.
fn written(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("the folder can be written to");
    path
}

#[track_caller]
fn assert_says<T>(read: Result<T, impl std::fmt::Display>, expected: &str) {
    let Err(error) = read else {
        panic!("a bad file was read");
    };
    let error = error.to_string();
    assert!(error.contains(expected), "`{error}` lacks `{expected}`");
}

#[test]
fn mixtures() {
    let read = |name: &str, text: &str| gmm::Instance::read(&written(name, text), false);
    assert_says(read("empty", ""), ":1: ends where a dimension should be");
    assert_says(
        read("word", "2 1\nmany"),
        ":2: `many` is not a number of points",
    );
    assert_says(read("none", "0 1 1"), "no dimensions or no components");
    assert_says(
        read("short", "1 1 2\n0.5\n0.5\n"),
        "ends where a factor should be",
    );
    let huge = format!("{0} {0} 1\n", usize::MAX / 2);
    assert_says(read("huge", &huge), "no memory holds so many numbers");
    let nowhere = gmm::Instance::read(Path::new("nowhere/at/all.txt"), false);
    assert_says(nowhere, "nowhere/at/all.txt: cannot be read");
}

#[test]
fn adjustments_and_networks() {
    let adjustment = ba::Instance::read(&written("ba", "1 0 3"));
    assert_says(adjustment, "no cameras or no points");
    let adjustment = ba::Instance::read(&written("ba-short", "1 1 3\n1 2 3"));
    assert_says(adjustment, "ends where a camera's parameter should be");
    let network = lstm::Instance::read(&written("lstm", "1 2 x"));
    assert_says(network, "`x` is not");
}

#[test]
fn hands() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hand");
    std::fs::create_dir_all(&folder).expect("the folder can be written to");
    let vertices = written("hand/vertices.txt", "0:0:0:0:0:0:0:0:1:0:1.0\n");
    written("hand/triangles.txt", "0:0:7\n");
    let bone = |name: &str, parent: i32| format!("{name}:{parent}{}\n", ":1.0".repeat(32));
    written("hand/bones.txt", &bone("wrist", 3));
    assert_says(
        hand::Model::read(&folder, &vertices),
        "hangs on one that comes later",
    );
    written("hand/bones.txt", &bone("wrist", -1));
    assert_says(
        hand::Model::read(&folder, &vertices),
        "there are 1 bones instead of 22",
    );
    written("hand/bones.txt", &bone("wrist", -1).repeat(22));
    assert_says(
        hand::Model::read(&folder, &vertices),
        "there is no vertex 7",
    );
    written("hand/triangles.txt", "0:0:0\n");
    let model = hand::Model::read(&folder, &vertices).expect("good");
    let instance = hand::Instance::read(&written("hand.txt", "1 26\n5 0 0 0\n"), model, false);
    assert_says(instance, "5 is not in the model");
}

#[test]
fn folders() {
    use ferrozyme_adbench::instances::find;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("some");
    std::fs::create_dir_all(folder.join("lstm")).expect("the folder can be written to");
    assert_says(find(&folder), "has no instances of ADBench");
    std::fs::write(folder.join("lstm/one.txt"), "").expect("the folder can be written to");
    let found = find(&folder).expect("one is enough");
    assert_eq!(found, [("lstm", folder.join("lstm/one.txt"))]);
    std::fs::remove_file(folder.join("lstm/one.txt")).expect("it was just written");
}
