//! Random numbers that are the same on every machine: xorshift64*, as llm.c uses it.

/// A stream of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of a seed. Neighbouring seeds have unrelated streams.
    pub fn new(seed: u64) -> Random {
        // One round of splitmix64: a state of 0 would stay 0, and small seeds would start alike.
        let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Random {
            state: (state ^ (state >> 31)).max(1),
        }
    }

    /// What [`Random::restore`] continues from.
    pub fn state(&self) -> u64 {
        self.state
    }

    /// Continues a stream. There is none for 0, which no stream ever reaches.
    pub fn restore(state: u64) -> Option<Random> {
        (state != 0).then_some(Random { state })
    }

    fn bits(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number in 0..1.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number of the normal distribution with mean 0 and deviation 1.
    pub fn normal(&mut self) -> f64 {
        // Box and Muller; 1 − u is never 0.
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_right() {
        let mut random = Random::new(3);
        let numbers: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = numbers.iter().sum::<f64>() / 20_000.0;
        let variance = numbers.iter().map(|x| x * x).sum::<f64>() / 20_000.0;
        assert!(
            mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05,
            "{mean} {variance}"
        );
    }

    #[test]
    fn a_stream_goes_on_where_it_was() {
        let mut random = Random::new(0);
        random.uniform();
        let mut again = Random::restore(random.state()).unwrap();
        assert_eq!(random.uniform(), again.uniform());
        assert_eq!(Random::restore(0), None);
    }
}
