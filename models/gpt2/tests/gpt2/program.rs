//! The program: commands as users give them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

fn gpt2(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpt2"));
    command.args(arguments);
    command
}

/// What a command prints. A model that has learnt little may print bytes that are no text.
fn run(arguments: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = gpt2(arguments).output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8_lossy(&stdout).into_owned()
}

fn refused(arguments: &[&str]) -> String {
    let output = gpt2(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

/// The arguments of a short run with one thread.
fn train<'a>(folder: &'a str, steps: &'a str) -> Vec<&'a str> {
    let arguments = "train --model tiny --batch 2 --length 16 --threads 1 --sample-length 5 --checkpoint-every 2 --resume";
    let mut arguments: Vec<&str> = arguments.split(' ').collect();
    arguments.extend(["--out", folder, "--steps", steps]);
    arguments
}

/// The losses in a log, as they stand there.
fn losses(folder: &Path) -> Vec<(u64, String)> {
    let text = fs::read_to_string(folder.join("log.jsonl")).unwrap();
    text.lines()
        .map(|line| {
            let entry: serde_json::Value = serde_json::from_str(line).unwrap();
            let what = format!(
                "{} {} {}",
                entry["loss"], entry["validation"], entry["sample"]
            );
            (entry["step"].as_u64().unwrap(), what)
        })
        .collect()
}

#[test]
fn a_run_that_is_killed_again_and_again_has_the_same_losses() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, killed) = (folder.path().join("whole"), folder.path().join("killed"));
    run(&train(whole.to_str().unwrap(), "30"));
    let expected = losses(&whole);
    assert_eq!(expected.len(), 30);

    let arguments = train(killed.to_str().unwrap(), "30");
    for attempt in 0..6 {
        let mut child = gpt2(&arguments).stdout(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(30 + 37 * attempt));
        // It may have finished before.
        let _ = child.kill();
        child.wait().unwrap();
    }
    run(&arguments);
    assert_eq!(losses(&killed), expected);
    assert_eq!(
        fs::read(killed.join("model.bin")).unwrap(),
        fs::read(whole.join("model.bin")).unwrap()
    );
    assert!(
        fs::read_to_string(killed.join("curve.svg"))
            .unwrap()
            .contains("</svg>")
    );
}

#[test]
fn a_model_is_trained_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let output = run(&train(out.to_str().unwrap(), "3"));
    assert!(output.contains("step 0: validation loss 5.5"), "{output}");
    let model = out.join("model.bin");
    let model = model.to_str().unwrap();

    let text = run(&[
        "sample", "--model", model, "--prompt", "The", "--length", "4",
    ]);
    assert!(text.starts_with("The"), "{text}");
    let again = run(&[
        "sample", "--model", model, "--prompt", "The", "--length", "4",
    ]);
    assert_eq!(text, again);

    let state = out.join("run.state");
    let loss = |model: &str| run(&["eval", "--model", model, "--validation", "--batch", "1"]);
    // Three steps are better than none: ln 257 is 5.549.
    let output = loss(model);
    let number = output.strip_prefix("loss ").unwrap().split(',').next();
    assert!(number.unwrap().parse::<f64>().unwrap() < 5.5, "{output}");
    assert_eq!(loss(model), loss(state.to_str().unwrap()));

    let picture = folder.path().join("curves.svg");
    run(&[
        "plot",
        out.to_str().unwrap(),
        "--out",
        picture.to_str().unwrap(),
    ]);
    assert!(
        fs::read_to_string(picture)
            .unwrap()
            .contains("run, training")
    );
}

#[test]
fn gradients_are_checked_and_measured() {
    let output = run(&["gradcheck"]);
    assert!(output.ends_with("all gradients agree\n"), "{output}");
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("overhead.svg");
    let arguments = "bench --model tiny --batch 1 --length 4 --rounds 1 --threads 1 --svg";
    let mut arguments: Vec<&str> = arguments.split(' ').collect();
    arguments.push(picture.to_str().unwrap());
    let output = run(&arguments);
    assert!(output.contains("whole model, 1 thread"), "{output}");
    assert!(fs::read_to_string(&picture).unwrap().contains("automatic"));
}

#[test]
fn figures_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "figures --model tiny --batch 1 --length 4 --steps 2 --overfit-steps 1 --rounds 1 --threads 1 --out";
    let mut arguments: Vec<&str> = arguments.split(' ').collect();
    arguments.push(folder.path().to_str().unwrap());
    run(&arguments);
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    for (name, what) in [
        ("overfit.svg", "hand-written, training"),
        ("training.svg", "automatic, validation"),
        ("overhead.svg", "whole model, 1 thread"),
    ] {
        assert!(read(name).contains(what), "{name}");
    }
    assert!(read("training.txt").contains("largest difference: "));
    assert!(read("overhead.txt").contains("whole model, 1 thread"));
}

#[test]
fn a_program_in_c_is_measured_beside() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("gpt2-c");
    let line = r#"{"name": "whole model", "language": "C", "openmp": true, "threads": 2, "forward": 0.5, "manual": 1.5, "automatic": 2.0}"#;
    fs::write(&program, format!("#!/bin/sh\necho '{line}'\n")).unwrap();
    make_executable(&program);
    let rows = folder.path().join("rows.json");
    let arguments = "bench --model tiny --batch 1 --length 4 --rounds 1 --threads 1 --whole";
    let mut arguments: Vec<&str> = arguments.split(' ').collect();
    arguments.extend(["--c", program.to_str().unwrap()]);
    arguments.extend(["--json", rows.to_str().unwrap()]);
    let output = run(&arguments);
    assert!(
        output.contains("C, OpenMP, 2 threads: whole model"),
        "{output}"
    );
    let rows = fs::read_to_string(&rows).unwrap();
    assert_eq!(rows.lines().count(), 2);
    assert!(rows.contains(r#""language":"Rust""#), "{rows}");

    fs::write(&program, "#!/bin/sh\necho nonsense\n").unwrap();
    let error = refused(&arguments);
    assert!(error.contains("printed `nonsense`"), "{error}");
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn mistakes_are_explained() {
    let error = refused(&["train", "--model", "gigantic"]);
    assert!(
        error.starts_with("error: there is no model `gigantic`; give a file"),
        "{error}"
    );
    let error = refused(&["eval", "--model", "no/such.bin"]);
    assert!(
        error.starts_with("error: no/such.bin: No such file"),
        "{error}"
    );
    let error = refused(&["train", "--model", "tiny", "--length", "999"]);
    assert_eq!(
        error,
        "error: sequences of 999 tokens are too long for a model with 128 positions\n"
    );
    let error = refused(&["fetch", "everything"]);
    assert_eq!(
        error,
        "error: there is no `everything` to download; there are tinyshakespeare and 124M\n"
    );

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.safetensors");
    fs::write(&file, "not a model").unwrap();
    let error = refused(&["sample", "--model", file.to_str().unwrap()]);
    assert!(error.contains("no safetensors file"), "{error}");
}
