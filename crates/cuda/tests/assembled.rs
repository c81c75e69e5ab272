//! Without a GPU: the kernels of all graphs that backends are tested with are made as PTX, and assembled by NVIDIA's `ptxas` where it is found (on the path, or where `FERROZYME_PTXAS` says).

use ferrozyme_backend::{Backend, Error, Executable, Planned, compile_with};
use ferrozyme_cuda::{ABILITIES, print_ptx, stored_ptx};
use ferrozyme_gpu::prepare;
use ferrozyme_graph::{Graph, INDEX, Scalar, TensorType};
use std::process::Command;
use std::sync::Mutex;

/// Assembles kernels instead of running them.
#[derive(Default)]
struct Assembler {
    /// The last text that was made.
    ptx: Mutex<String>,
}

impl Backend for Assembler {
    fn name(&self) -> &'static str {
        "ptxas"
    }

    fn compile(&self, planned: Planned) -> Result<Box<dyn Executable>, Error> {
        let lowered = planned.lowered;
        let program = prepare(lowered, &ABILITIES)?;
        let folder = tempfile::tempdir().expect("there is room for files");
        for processor in ["sm_80", "sm_90"] {
            let ptx = stored_ptx(&program, processor, folder.path())?;
            assemble(&ptx, processor);
            *self.ptx.lock().unwrap() = ptx;
        }
        // Which is how tests are left out.
        Err(Error::Missing {
            backend: "ptxas",
            reason: "kernels are assembled, and not run".to_owned(),
        })
    }
}

fn assemble(ptx: &str, processor: &str) {
    let program = std::env::var("FERROZYME_PTXAS").unwrap_or_else(|_| "ptxas".to_owned());
    let folder = tempfile::tempdir().expect("there is room for files");
    let source = folder.path().join("kernels.ptx");
    std::fs::write(&source, ptx).expect("the file can be written");
    let output = Command::new(&program)
        .arg(format!("-arch={processor}"))
        .arg("-o")
        .arg(folder.path().join("kernels.cubin"))
        .arg(&source)
        .output();
    let Ok(output) = output else {
        eprintln!("left out: `{program}` cannot be run, so the kernels are not assembled");
        return;
    };
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{messages}\n{ptx}");
}

ferrozyme_conformance::backend_tests! { Assembler::default();
    graphs::random_graphs_give_what_the_interpreter_gives
    graphs::all_kinds_of_elements_travel
    graphs::each_precision_rounds_as_the_interpreter
    graphs::loops_and_branches_run
    kernels::contractions_of_many_shapes
    kernels::contractions_with_batches_and_several_indices
    kernels::long_columns_are_summed
    kernels::reductions_over_each_axis
    kernels::softmax_with_its_gradient
    kernels::layer_normalisation_with_its_gradient
    kernels::rows_are_gathered_and_scattered
    kernels::updates_are_in_place
}

#[test]
fn kernels_that_were_made_before_are_found() {
    struct Stored;
    impl Backend for Stored {
        fn name(&self) -> &'static str {
            "stored"
        }

        fn compile(&self, planned: Planned) -> Result<Box<dyn Executable>, Error> {
            let lowered = planned.lowered;
            let program = prepare(lowered, &ABILITIES)?;
            let folder = tempfile::tempdir().expect("there is room for files");
            let files = || std::fs::read_dir(folder.path()).unwrap().count();
            let made = stored_ptx(&program, "sm_90", folder.path())?;
            assert_eq!((files(), &made), (1, &print_ptx(&program, "sm_90")?));
            assert_eq!(stored_ptx(&program, "sm_90", folder.path())?, made);
            assert_eq!(files(), 1);
            stored_ptx(&program, "sm_80", folder.path())?;
            assert_eq!(files(), 2);
            Err(Error::Device("it ends here".to_owned()))
        }
    }
    let mut g = Graph::new();
    let x = g.feed("x", [5]);
    g.receive("x", &[x]);
    let y = g.exp(x);
    g.receive("y", &[y]);
    let outcome = compile_with(&Stored, &g).map(|_| ());
    assert_eq!(
        outcome.unwrap_err().to_string(),
        "the run failed: it ends here"
    );
}

/// The PTX of a graph.
fn ptx_of(graph: &Graph) -> String {
    let assembler = Assembler::default();
    match compile_with(&assembler, graph) {
        Err(Error::Missing { .. }) => assembler.ptx.into_inner().unwrap(),
        Err(error) => panic!("{error}"),
        Ok(_) => unreachable!("nothing runs"),
    }
}

#[test]
fn kernels_use_what_the_processor_has_for_them() {
    let mut g = Graph::new();
    let x = g.feed("x", [64, 500]);
    let sum = g.sum(x, &[1]);
    let product = g.contract("ab, cb -> ac", x, x);
    let indices = g.feed_of("i", TensorType::new(INDEX, [64]));
    let table = g.constant(TensorType::new(Scalar::F32, [10, 500]), 0.0);
    let scattered = g.scatter_add(table, indices, x, 0);
    g.receive("all", &[sum, product, scattered]);
    let ptx = ptx_of(&g);
    assert!(ptx.contains(".entry reduce"), "{ptx}");
    for wanted in [
        "bar.sync",
        "ld.shared.b32",
        "st.shared.b32",
        "fma.rn.f32",
        ".maxntid 256",
        "%ctaid.x",
    ] {
        assert!(ptx.contains(wanted), "{wanted} is missing:\n{ptx}");
    }
    let adds = ["atom.", "red."].iter().any(|add| {
        let mut lines = ptx.lines();
        lines.any(|line| line.trim_start().starts_with(add) && line.contains("add.f32"))
    });
    assert!(adds, "{ptx}");
    // Nothing is called that would have to be linked.
    assert!(!ptx.contains("call.uni"), "{ptx}");
}
