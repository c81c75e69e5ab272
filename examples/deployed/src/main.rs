//! Learns exclusive or, with graphs that were compiled when this program was built: nothing is compiled when it runs, and it needs no LLVM.
//!
//! ```text
//! cargo run --release -p ferrozyme-example-deployed
//! ```

ferrozyme_linked::include_graph!("learn");
ferrozyme_linked::include_graph!("answer");

use ferrozyme_linked::Error;

const X: [[f32; 2]; 4] = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]];
const TARGET: [[f32; 1]; 4] = [[0.0], [1.0], [1.0], [0.0]];

/// A graph that knows what another one has learnt.
fn learnt() -> Result<Answer, Error> {
    let mut learn = Learn::new();
    learn.feed_x(|x| *x = X);
    learn.feed_target(|target| *target = TARGET);
    let mut step = 0;
    learn.receive_loss(move |loss| {
        step += 1;
        if step % 100 == 0 {
            println!("step {step}  loss {loss:.6}");
        }
    });
    learn.run()?;
    let mut answer = Answer::new();
    answer.set_parameter_first_weight(&*learn.parameter_first_weight()?)?;
    answer.set_parameter_first_bias(&*learn.parameter_first_bias()?)?;
    answer.set_parameter_second_weight(&*learn.parameter_second_weight()?)?;
    answer.set_parameter_second_bias(&*learn.parameter_second_bias()?)?;
    Ok(answer)
}

fn main() -> Result<(), Error> {
    println!("{}", Learn::REPORT);
    let mut answer = learnt()?;
    for question in X {
        answer.feed_x(move |x| *x = [question]);
        answer.receive_y(move |y| println!("{question:?}  {:.3}", y[0][0]));
        answer.run()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn it_learns_without_a_compiler() {
        let mut answer = learnt().unwrap();
        for (question, target) in X.into_iter().zip(TARGET) {
            let given: Arc<Mutex<f32>> = Arc::default();
            let into = given.clone();
            answer.feed_x(move |x| *x = [question]);
            answer.receive_y(move |y| *into.lock().unwrap() = y[0][0]);
            answer.run().unwrap();
            let given = *given.lock().unwrap();
            assert!((given - target[0]).abs() < 0.1, "{question:?} {given}");
        }
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        assert!(!maps.contains("libLLVM"), "a compiler was loaded");
    }
}
