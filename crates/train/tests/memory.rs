//! Values are moved between files and a program piece by piece: no second copy of them is in memory.

use ferrozyme_bench_memory::peak_of;
use ferrozyme_cpu::compile;
use ferrozyme_graph::Graph;
use ferrozyme_nn::{Linear, Module};
use ferrozyme_train::{load, save};

#[test]
fn parameters_are_written_and_read_without_a_copy() {
    let mut g = Graph::new();
    let net = Linear::new(&mut g, "net", 2000, 3000);
    let weight = net.parameters()[0];
    let mut program = compile(&g).unwrap();
    let before = program.parameter_bytes(weight).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.safetensors");
    let (saved, while_saved) = peak_of(|| save(&path, &net, &program));
    saved.unwrap();
    program
        .set_parameter_bytes(weight, &vec![0; before.len()])
        .unwrap();
    let (loaded, while_loaded) = peak_of(|| load(&path, &net, &mut program));
    loaded.unwrap();
    for peak in [while_saved, while_loaded] {
        // Nothing is counted where the C library is another one.
        assert!(
            peak.is_none_or(|peak| peak < before.len() / 6),
            "{peak:?} of {}",
            before.len()
        );
    }
    assert!(program.parameter_bytes(weight).unwrap() == before);
    // It is a file of that format: who reads it as a whole finds the same.
    let bytes = std::fs::read(&path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    assert!(file.tensor("weight").unwrap().data() == before);
}
