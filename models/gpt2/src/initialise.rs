//! Random parameters to start training from.

use crate::config::Config;
use crate::random::Random;
use crate::real::Real;
use crate::tensors::Parameters;

/// Weights are normal with deviation 0.02, those of the two projections into the residual stream divided by √(2 · layers); biases are
/// 0 and the weights of layer norms 1.
pub fn random_parameters<T: Real>(config: &Config, random: &mut Random) -> Vec<T> {
    let mut parameters = vec![T::ZERO; Parameters::total(config)];
    let p = Parameters::cut(&mut *parameters, config);
    let mut normal = |tensor: &mut [T], deviation: f64| {
        for x in tensor {
            *x = T::of(deviation * random.normal());
        }
    };
    let residual = 0.02 / (2.0 * config.layers as f64).sqrt();
    // Rows for padding are never looked up; zeros keep their logits harmless.
    normal(&mut p.wte[..config.vocabulary * config.channels], 0.02);
    normal(p.wpe, 0.02);
    normal(p.qkvw, 0.02);
    normal(p.attprojw, residual);
    normal(p.fcw, 0.02);
    normal(p.fcprojw, residual);
    for weights in [p.ln1w, p.ln2w, p.lnfw] {
        weights.fill(T::ONE);
    }
    parameters
}
