//! What would stop the program on the processor is an error of the run on a device.

use ferrozyme_backend::{Error, compile_with};
use ferrozyme_graph::{Graph, INDEX, TensorType};
use ferrozyme_opencl::OpenCl;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

#[test]
fn an_index_out_of_range_ends_the_run_and_nothing_is_handed_over() {
    let mut g = Graph::new();
    let table = g.parameter_of(
        "table",
        TensorType::new(ferrozyme_graph::Scalar::F32, [4, 3]),
        2.0,
    );
    let table = g.read(table);
    let indices = g.feed_of("indices", TensorType::new(INDEX, [2]));
    let rows = g.gather(table, indices, 0);
    let sums = g.scatter_add(table, indices, rows, 0);
    g.receive("sums", &[sums]);
    let mut program = match compile_with(&OpenCl::default(), &g) {
        Ok(program) => program,
        Err(error @ Error::Missing { .. }) => return eprintln!("left out: {error}"),
        Err(error) => panic!("{error}"),
    };
    let (index, received) = (Arc::new(AtomicI32::new(3)), Arc::new(AtomicUsize::new(0)));
    let fed = index.clone();
    program.feeder("indices", move || vec![0, fed.load(Ordering::Relaxed)]);
    let count = received.clone();
    program.receiver("sums", move |_| {
        count.fetch_add(1, Ordering::Relaxed);
    });
    program.run().unwrap();
    assert_eq!(received.load(Ordering::Relaxed), 1);
    for beyond in [4, -1, i32::MIN] {
        index.store(beyond, Ordering::Relaxed);
        // A feeder may be one tensor ahead, which is fed first in the next run.
        let outcomes: Vec<_> = (0..4)
            .map(|_| program.run().map_err(|e| e.to_string()))
            .collect();
        let message = "the run failed: an index is out of range".to_owned();
        assert_eq!(outcomes.last().unwrap(), &Err(message));
    }
    let before = received.load(Ordering::Relaxed);
    index.store(1, Ordering::Relaxed);
    while program.run().is_err() {}
    assert_eq!(received.load(Ordering::Relaxed), before + 1);
}
