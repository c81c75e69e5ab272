//! Objectives and derivatives against ADBench's own numbers, and derivatives against hand-written ones.
//!
//! The environment variable FERROZYME_DATA names the folder in which `adbench` holds the data; without it, what needs the data is left out, and says so.

use ferrozyme_adbench::check::{TOLERANCE, largest_error};
use ferrozyme_adbench::{ba, gmm, hand, lstm};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The folder with the data, if it is there.
fn data() -> Option<PathBuf> {
    match std::env::var_os("FERROZYME_DATA") {
        Some(folder) => Some(Path::new(&folder).join("adbench")),
        None => {
            // Not by a macro, whose text is shown of tests that fail only.
            let note = "note: left out, since FERROZYME_DATA names no folder with ADBench's data";
            let _ = writeln!(std::io::stderr(), "{note}");
            None
        }
    }
}

fn golden(folder: &Path, name: &str) -> Value {
    let text = std::fs::read_to_string(folder.join("golden").join(name)).expect("readable");
    serde_json::from_str(&text).expect("JSON")
}

fn floats(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list");
    list.iter().map(|x| x.as_f64().expect("a number")).collect()
}

fn assert_agree(what: &str, found: &[f64], expected: &[f64]) {
    let error = largest_error(found, expected);
    assert!(error <= TOLERANCE, "{what}: {error:e} apart");
}

#[test]
fn gmm_has_the_golden_values() {
    let Some(folder) = data() else { return };
    let golden = golden(&folder, "gmm_test.json");
    let instance = gmm::Instance::read(&folder.join("gmm/test.txt"), false).expect("good");
    let objective = golden["objective"].as_f64().expect("a number");
    assert_agree("objective", &[instance.objective()], &[objective]);
    let gradient = floats(&golden["gradient"]);
    assert_agree("gradient", &instance.gradient(), &gradient);
    assert_agree("by hand", &instance.gradient_by_hand(), &gradient);
}

#[test]
fn gmm_agrees_with_the_hand_written() {
    let Some(folder) = data() else { return };
    for name in ["gmm_d2_K5", "gmm_d10_K5", "gmm_d20_K10"] {
        let path = folder.join(format!("gmm/1k/{name}.txt"));
        let instance = gmm::Instance::read(&path, false).expect("good");
        assert_agree(name, &instance.gradient(), &instance.gradient_by_hand());
    }
}

#[test]
fn lstm_has_the_golden_values() {
    let Some(folder) = data() else { return };
    let golden = golden(&folder, "lstm_l2_c1024.json");
    let instance = lstm::Instance::read(&folder.join("lstm/lstm_l2_c1024.txt")).expect("good");
    let objective = golden["objective_8dp"].as_f64().expect("a number");
    assert_agree("objective", &[instance.objective()], &[objective]);
    let gradient = floats(&golden["gradient"]);
    assert_agree("gradient", &instance.gradient(), &gradient);
    assert_agree("by hand", &instance.gradient_by_hand(), &gradient);
}

#[test]
fn ba_has_the_golden_values() {
    let Some(folder) = data() else { return };
    let golden = golden(&folder, "ba_test.json");
    let instance = ba::Instance::read(&folder.join("ba/test.txt")).expect("good");
    let errors = instance.objective();
    assert_agree("errors", &errors[..2], &floats(&golden["reproj_err_pair"]));
    let weight = golden["w_err"].as_f64().expect("a number");
    assert_agree("weights", &errors[20..21], &[weight]);
    let values = floats(&golden["J_vals_csr"]);
    for (name, jacobian) in [
        ("automatic", instance.jacobian()),
        ("by hand", instance.jacobian_by_hand()),
    ] {
        assert_eq!((jacobian.rows(), jacobian.columns()), (30, 62), "{name}");
        assert_eq!(jacobian.starts().len(), 31, "{name}");
        assert_agree(name, jacobian.values(), &values);
    }
    assert_eq!(
        instance.jacobian().places(),
        instance.jacobian_by_hand().places()
    );
}

#[test]
fn hand_has_the_golden_values() {
    let Some(folder) = data() else { return };
    for (name, file, complicated) in [
        ("hand_simple_test.json", "hand/test.txt", false),
        (
            "hand_complicated_test.json",
            "hand/hand_complicated.txt",
            true,
        ),
    ] {
        let golden = golden(&folder, name);
        let model = folder.join("hand/model");
        let model = hand::Model::read(&model, &model.join("vertices.txt")).expect("good");
        let instance = hand::Instance::read(&folder.join(file), model, complicated).expect("good");
        assert_agree(name, &instance.objective(), &floats(&golden["objective"]));
        assert_agree(name, &instance.jacobian(), &floats(&golden["J_colmajor"]));
        assert_agree(
            name,
            &instance.jacobian_by_hand(),
            &floats(&golden["J_colmajor"]),
        );
    }
}
