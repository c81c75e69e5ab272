//! What derivatives allocate. These tests are one, since the count is that of the whole process.

use ferrozyme_adbench::{gmm, lstm};
use ferrozyme_bench_memory::peak_of;
use std::io::Write;

fn mixture(count: usize) -> gmm::Instance {
    let (dimension, components) = (3, 4);
    let numbers = |count: usize| -> Vec<f64> { (0..count).map(|i| (i as f64).sin()).collect() };
    gmm::Instance {
        dimension,
        components,
        alphas: numbers(components),
        means: numbers(components * dimension),
        factors: numbers(components * dimension * (dimension + 1) / 2),
        points: numbers(count * dimension),
        wishart: gmm::Wishart { gamma: 0.7, m: 2 },
    }
}

/// The least of several peaks: the thread that runs tests may allocate at the same time.
fn least_peak<R>(work: impl Fn() -> R) -> Option<usize> {
    (0..5).filter_map(|_| peak_of(&work).1).min()
}

#[test]
fn derivatives_take_no_more_memory_than_they_should() {
    // A mixture's gradient needs scratch memory for one point, however many there are.
    let peaks = [10, 10_000].map(|count| {
        let instance = mixture(count);
        least_peak(|| instance.gradient())
    });
    let [Some(few), Some(many)] = peaks else {
        let _ = writeln!(
            std::io::stderr(),
            "note: left out, since nobody counts memory here"
        );
        return;
    };
    assert!(
        many <= few + 256,
        "{many} bytes for many points, {few} for few"
    );

    // A network's tape is at most half as large again as its four gates at all times.
    let (layers, width, count) = (2, 14, 512);
    let instance = lstm::Instance {
        layers,
        width,
        main: vec![0.1; 8 * layers * width],
        extra: vec![0.2; 3 * width],
        state: vec![0.3; 2 * layers * width],
        sequence: vec![0.4; count * width],
    };
    let gates = 4 * 8 * layers * width * (count - 1);
    let peak = least_peak(|| instance.gradient()).expect("counted above");
    assert!(
        2 * peak <= 3 * gates,
        "{peak} bytes, but the gates are {gates}"
    );
}
