//! Losses and gradients of a batch on several threads.
//!
//! The sequences of a batch are shared out among threads. Each computes the loss of its share with activations of its own, and
//! adds to a gradient of its own; the sums are taken in the order of the shares, so that the result depends on the number of
//! threads but not on their timing.

use crate::backward::gradient_by_hand;
use crate::config::{Batch, Config};
use crate::model::{evaluate, gradient, loss};
use crate::real::Real;
use crate::tensors::{Activations, Parameters};
use std::thread;

/// The kind of backward pass: automatic or hand-written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backward {
    /// Ferrozyme.
    Automatic,
    /// People: [`gradient_by_hand`].
    Manual,
}

/// Computes losses and gradients of batches of one size, and owns the memory for that.
pub struct Engine<T> {
    config: Config,
    batch: Batch,
    backward: Backward,
    shares: Vec<Share<T>>,
    /// Gradients of all shares but the first, which adds to the caller's. Empty until a gradient is requested.
    other_grads: Vec<Vec<T>>,
}

/// The sequences that one thread works on.
struct Share<T> {
    batch: Batch,
    activations: Vec<T>,
    /// Empty until a gradient is requested.
    activation_grads: Vec<T>,
}

/// The part of a batch that belongs to a share.
struct Part<'a, T> {
    tokens: &'a [u32],
    targets: &'a [u32],
    /// Which part of all sequences it is.
    weight: T,
}

impl<T: Real> Engine<T> {
    /// An engine that runs on at most `threads` threads, and no more than there are sequences.
    pub fn new(config: Config, batch: Batch, backward: Backward, threads: usize) -> Engine<T> {
        let count = threads.clamp(1, batch.sequences.max(1));
        let shares = (0..count)
            .map(|i| {
                let first = batch.sequences * i / count;
                let batch = Batch {
                    sequences: batch.sequences * (i + 1) / count - first,
                    steps: batch.steps,
                };
                Share {
                    batch,
                    activations: vec![T::ZERO; Activations::total(&config, &batch)],
                    activation_grads: Vec::new(),
                }
            })
            .collect();
        Engine {
            config,
            batch,
            backward,
            shares,
            other_grads: Vec::new(),
        }
    }

    /// The batches that the engine takes.
    pub fn batch(&self) -> Batch {
        self.batch
    }

    /// The mean loss of a batch; beside the hand-written backward pass, by the forward pass that it has.
    pub fn loss(&mut self, parameters: &[T], tokens: &[u32], targets: &[u32]) -> T {
        let function = match self.backward {
            Backward::Automatic => evaluate,
            Backward::Manual => loss,
        };
        let config = &self.config;
        let nothing = self.shares.iter().map(|_| ()).collect();
        let parts = parts(&self.shares, tokens, targets);
        sum_over_shares(&mut self.shares, parts, nothing, |share, part, ()| {
            let Share {
                batch, activations, ..
            } = share;
            part.weight
                * function(
                    config,
                    batch,
                    parameters,
                    activations,
                    part.tokens,
                    part.targets,
                )
        })
    }

    /// The mean loss of a batch, and its gradient, which overwrites `grads`.
    pub fn gradient(
        &mut self,
        parameters: &[T],
        grads: &mut [T],
        tokens: &[u32],
        targets: &[u32],
    ) -> T {
        let function = match self.backward {
            Backward::Automatic => gradient,
            Backward::Manual => gradient_by_hand,
        };
        let config = &self.config;
        let others = self.shares.len() - 1;
        self.other_grads
            .resize_with(others, || vec![T::ZERO; Parameters::total(config)]);
        let all_grads = std::iter::once(&mut *grads)
            .chain(self.other_grads.iter_mut().map(Vec::as_mut_slice))
            .collect();
        let parts = parts(&self.shares, tokens, targets);
        let value = sum_over_shares(&mut self.shares, parts, all_grads, |share, part, grads| {
            let Share {
                batch,
                activations,
                activation_grads,
            } = share;
            grads.fill(T::ZERO);
            activation_grads.clear();
            activation_grads.resize(activations.len(), T::ZERO);
            part.weight
                * function(
                    config,
                    batch,
                    parameters,
                    grads,
                    activations,
                    activation_grads,
                    part.tokens,
                    part.targets,
                    part.weight,
                )
        });
        add_all(grads, &self.other_grads);
        value
    }
}

/// Shares out the tokens of a batch.
fn parts<'a, T: Real>(
    shares: &[Share<T>],
    tokens: &'a [u32],
    targets: &'a [u32],
) -> Vec<Part<'a, T>> {
    let all: usize = shares.iter().map(|share| share.batch.tokens()).sum();
    assert_eq!(tokens.len(), all, "wrong number of tokens");
    assert_eq!(targets.len(), all, "wrong number of targets");
    let mut start = 0;
    shares
        .iter()
        .map(|share| {
            let range = start..start + share.batch.tokens();
            start = range.end;
            Part {
                weight: T::of(range.len() as f64 / all as f64),
                tokens: &tokens[range.clone()],
                targets: &targets[range],
            }
        })
        .collect()
}

/// Runs `work` on all shares at once, each with its part and its context, and adds the results in the order of the shares.
fn sum_over_shares<T: Real, C: Send>(
    shares: &mut [Share<T>],
    parts: Vec<Part<T>>,
    contexts: Vec<C>,
    work: impl Fn(&mut Share<T>, Part<T>, C) -> T + Sync,
) -> T {
    let work = &work;
    thread::scope(|scope| {
        let mut jobs = shares.iter_mut().zip(parts).zip(contexts);
        // The calling thread takes the first share.
        let first = jobs.next();
        let threads: Vec<_> = jobs
            .map(|((share, part), context)| scope.spawn(move || work(share, part, context)))
            .collect();
        let mut sum = T::ZERO;
        if let Some(((share, part), context)) = first {
            sum += work(share, part, context);
        }
        for thread in threads {
            sum += thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        sum
    })
}

/// Adds `others` to `sum`, each thread for its part of the numbers.
fn add_all<T: Real>(sum: &mut [T], others: &[Vec<T>]) {
    if others.is_empty() {
        return;
    }
    let length = sum.len().div_ceil(others.len() + 1).max(1);
    thread::scope(|scope| {
        for (i, sum) in sum.chunks_mut(length).enumerate() {
            scope.spawn(move || {
                for other in others {
                    for (sum, &x) in sum.iter_mut().zip(&other[i * length..]) {
                        *sum += x;
                    }
                }
            });
        }
    });
}
