//! Files: written data is read back, and a malformed file is an error that says why.

use gpt2::adamw::AdamW;
use gpt2::encoding::Encoding;
use gpt2::files::replace::replace;
use gpt2::files::state::State;
use gpt2::files::vocabulary::Vocabulary;
use gpt2::files::{Problem, checkpoint, safetensors, state, tokens, vocabulary};
use gpt2::random::Random;
use gpt2::{Config, Parameters};
use proptest::prelude::*;
use std::io::{self, Write};
use std::path::Path;

fn config() -> Config {
    Config {
        layers: 2,
        heads: 2,
        channels: 4,
        vocabulary: 5,
        padded_vocabulary: 64,
        max_steps: 3,
    }
}

/// Parameters in which padding is zero, as it is in files without it.
fn parameters() -> Vec<f32> {
    let config = config();
    let mut numbers: Vec<f32> = (0..Parameters::total(&config))
        .map(|i| i as f32 + 0.5)
        .collect();
    numbers[config.vocabulary * config.channels..config.padded_vocabulary * config.channels]
        .fill(0.0);
    numbers
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    bytes
}

fn checkpoint_bytes() -> Vec<u8> {
    written(|bytes| checkpoint::write(bytes, &config(), &parameters()))
}

fn state_bytes() -> Vec<u8> {
    written(|bytes| state::write(bytes, &some_state()))
}

fn some_state() -> State {
    let count = Parameters::total(&config());
    State {
        config: config(),
        step: 7,
        batch: 8,
        random: Random::new(9),
        parameters: parameters(),
        optimiser: AdamW {
            steps: 7,
            means: vec![0.25; count],
            squares: vec![0.75; count],
        },
    }
}

fn some_vocabulary() -> Vocabulary {
    Vocabulary {
        tokens: vec![b"a".to_vec(), b"bc".to_vec(), Vec::new()],
        end_of_text: 2,
    }
}

/// Reads bytes as a file of each kind.
fn parse<T>(
    bytes: &[u8],
    parse: impl Fn(&mut &[u8], u64) -> Result<T, Problem>,
) -> Result<T, String> {
    parse(&mut &*bytes, bytes.len() as u64).map_err(|problem| problem.to_string())
}

#[test]
fn everything_comes_back() {
    let (read_config, read) = parse(&checkpoint_bytes(), |r, n| checkpoint::parse(r, n)).unwrap();
    assert_eq!((read_config, read), (config(), parameters()));

    assert_eq!(
        parse(&state_bytes(), |r, n| state::parse(r, n)).unwrap(),
        some_state()
    );

    let bytes = written(|bytes| tokens::write(bytes, &[0, 50_256, 7]));
    assert_eq!(bytes.len(), 1024 + 6);
    assert_eq!(
        parse(&bytes, |r, n| tokens::parse(r, n)).unwrap(),
        [0, 50_256, 7]
    );

    let bytes = written(|bytes| vocabulary::write(bytes, &some_vocabulary()));
    let read = parse(&bytes, |r, n| vocabulary::parse(r, n)).unwrap();
    assert_eq!(read, some_vocabulary());
    assert_eq!(read.decode(&[1, 9, 0]), b"bca");

    let bytes = safetensors::serialise(&config(), &parameters()).unwrap();
    assert_eq!(
        safetensors::parse(&bytes).unwrap(),
        (config(), parameters())
    );
}

#[test]
fn weights_are_transposed_for_hugging_face() {
    let bytes = safetensors::serialise(&config(), &parameters()).unwrap();
    let file = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensor = file.tensor("h.1.mlp.c_fc.weight").unwrap();
    assert_eq!(tensor.shape(), [4, 16]);
    let number = |i: usize| f32::from_le_bytes(tensor.data()[4 * i..4 * i + 4].try_into().unwrap());
    let ours = parameters();
    let ours = &Parameters::cut(&*ours, &config()).fcw[64..];
    // Input 2 of output 5.
    assert_eq!(number(2 * 16 + 5), ours[5 * 4 + 2]);
    assert_eq!(file.tensor("wte.weight").unwrap().shape(), [5, 4]);
}

#[test]
fn names_may_have_a_prefix() {
    let bytes = safetensors::serialise(&config(), &parameters()).unwrap();
    let file = ::safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let tensors = file.tensors();
    let tensors = tensors
        .iter()
        .map(|(name, tensor)| (format!("transformer.{name}"), tensor));
    let metadata = [("heads".to_owned(), "2".to_owned())].into();
    let prefixed = ::safetensors::serialize(tensors, Some(metadata)).unwrap();
    assert_eq!(
        safetensors::parse(&prefixed).unwrap(),
        (config(), parameters())
    );
}

#[test]
fn half_precision_is_read() {
    let mut bytes = checkpoint_bytes();
    bytes[4] = 5;
    let singles = bytes.split_off(1024);
    // The upper half of each number.
    bytes.extend(singles.chunks(4).flat_map(|number| [number[2], number[3]]));
    let (_, read) = parse(&bytes, |r, n| checkpoint::parse(r, n)).unwrap();
    for (read, number) in read.iter().zip(parameters()) {
        assert!((read - number).abs() <= number / 128.0);
    }
}

#[test]
fn broken_files_say_what_is_wrong() {
    let read = |bytes: &[u8]| parse(bytes, |r, n| checkpoint::parse(r, n)).unwrap_err();
    let good = checkpoint_bytes();
    let changed = |at: usize, value: u32| {
        let mut bytes = good.clone();
        bytes[4 * at..4 * at + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    let count = Parameters::total(&config());
    for (bytes, message) in [
        (
            vec![],
            "no checkpoint of llm.c: it has 0 bytes, fewer than the header of 1024".to_owned(),
        ),
        (
            changed(0, 5),
            "no checkpoint of llm.c: its first number is 5, not 20240326".to_owned(),
        ),
        (
            changed(1, 4),
            "the checkpoint has version 4; known are 3 (f32) and 5 (bf16)".to_owned(),
        ),
        (
            changed(5, 3),
            "no model has 4 channels for 3 heads".to_owned(),
        ),
        (
            changed(4, u32::MAX),
            "no model has 4294967295 layers".to_owned(),
        ),
        (
            good[..good.len() - 1].to_vec(),
            format!(
                "the file has {} bytes, and a checkpoint of {count} parameters {}",
                good.len() - 1,
                good.len()
            ),
        ),
    ] {
        assert_eq!(read(&bytes), message);
    }

    let mut bytes = state_bytes();
    *bytes.last_mut().unwrap() ^= 1;
    let error = parse(&bytes, |r, n| state::parse(r, n)).unwrap_err();
    assert_eq!(error, "the checksum is wrong: the file is damaged");
    let error = parse(b"nothing of the kind", |r, n| state::parse(r, n)).unwrap_err();
    assert_eq!(error, "no state of a training run");

    let bytes = written(|bytes| vocabulary::write(bytes, &some_vocabulary()));
    let error = parse(&bytes[..bytes.len() - 2], |r, n| vocabulary::parse(r, n)).unwrap_err();
    assert_eq!(error, "the file ends within token 1 of 3");

    let error = safetensors::parse(b"short").unwrap_err().to_string();
    assert!(error.starts_with("no safetensors file: "), "{error}");

    let error = checkpoint::load(Path::new("no/such.bin"))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("no/such.bin: "), "{error}");
}

#[test]
fn an_interrupted_write_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    replace(&path, |writer| writer.write_all(b"old")).unwrap();
    let error = replace(&path, |writer| {
        writer.write_all(b"half of the new")?;
        Err(io::Error::other("interrupted"))
    })
    .unwrap_err();
    assert!(error.to_string().ends_with("file: interrupted"));
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    replace(&path, |writer| writer.write_all(b"new")).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"new");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_tokenizer_file_decodes_what_was_encoded() {
    let vocabulary = Encoding::Gpt2.to_vocabulary();
    assert_eq!(vocabulary.tokens.len(), 50_257);
    let text = "It was a bright cold day in April.";
    assert_eq!(
        vocabulary.decode(&Encoding::Gpt2.encode(text)),
        text.as_bytes()
    );
    let bytes = written(|bytes| vocabulary::write(bytes, &vocabulary));
    assert_eq!(
        parse(&bytes, |r, n| vocabulary::parse(r, n)).unwrap(),
        vocabulary
    );
}

/// Tries to read bytes as every format. It must only not panic.
fn read_as_everything(bytes: &[u8]) {
    let _ = parse(bytes, |r, n| checkpoint::parse(r, n));
    let _ = parse(bytes, |r, n| state::parse(r, n));
    let _ = parse(bytes, |r, n| tokens::parse(r, n));
    let _ = parse(bytes, |r, n| vocabulary::parse(r, n));
    let _ = safetensors::parse(bytes);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_crash(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        read_as_everything(&bytes);
    }

    #[test]
    fn damaged_files_are_read_without_a_crash(
        kind in 0..5,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        in_header: bool,
        length in any::<prop::sample::Index>(),
        cut: bool,
    ) {
        let mut bytes = match kind {
            0 => checkpoint_bytes(),
            1 => state_bytes(),
            2 => written(|bytes| tokens::write(bytes, &[1, 2, 3])),
            3 => written(|bytes| vocabulary::write(bytes, &some_vocabulary())),
            _ => safetensors::serialise(&config(), &parameters()).unwrap(),
        };
        for (at, value) in damage {
            let end = if in_header { 64 } else { bytes.len() };
            bytes[at.index(end)] = value;
        }
        if cut {
            bytes.truncate(length.index(bytes.len()));
        }
        read_as_everything(&bytes);
    }
}
