//! Random numbers that are the same for the same seed on every machine and in every version.
//!
//! The generator is SplitMix64 (Steele, Lea and Flood, 2014): one addition and a mix of the bits per number. A seed
//! names a program forever, so nothing here may depend on a library that could change its sequence.

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Random {
        // Seeds are often 1, 2, 3…: a first mix keeps their sequences from resembling each other.
        Random {
            state: mix(seed ^ 0x5851_f42d_4c95_7f2d),
        }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: usize) -> usize {
        // The upper half of the product is uniform up to an error of limit/2^64.
        ((u128::from(self.bits()) * limit as u128) >> 64) as usize
    }

    /// A number from `min` to `max`, both included.
    pub fn between(&mut self, min: i64, max: i64) -> i64 {
        min + self.below((max - min + 1) as usize) as i64
    }

    /// True in `percent` of 100 cases.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent as usize
    }

    /// A number from `min` up to `max`.
    pub fn float(&mut self, min: f64, max: f64) -> f64 {
        let unit = (self.bits() >> 11) as f64 / (1u64 << 53) as f64;
        min + unit * (max - min)
    }

    /// One of the items, of which there is at least one.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// The position of one of the weights, each as likely as it is large; none if all are zero.
    pub fn weighted(&mut self, weights: impl Iterator<Item = u32> + Clone) -> Option<usize> {
        let total: u32 = weights.clone().sum();
        if total == 0 {
            return None;
        }
        let mut rest = self.below(total as usize) as u32;
        for (index, weight) in weights.enumerate() {
            if rest < weight {
                return Some(index);
            }
            rest -= weight;
        }
        None
    }
}

fn mix(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_a_seed_never_changes() {
        let mut random = Random::new(1);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        let mut again = Random::new(1);
        assert_eq!(first, (0..3).map(|_| again.bits()).collect::<Vec<_>>());
        assert_ne!(first[0], Random::new(2).bits());
        assert_eq!(first[0], 16_291_744_904_257_069_152);
    }

    #[test]
    fn numbers_stay_in_their_ranges() {
        let mut random = Random::new(7);
        for _ in 0..1000 {
            assert!(random.below(3) < 3);
            assert!((-2..=2).contains(&random.between(-2, 2)));
            assert!((1.0..2.0).contains(&random.float(1.0, 2.0)));
            assert!(matches!(random.weighted([0, 3, 0].into_iter()), Some(1)));
        }
        assert_eq!(random.weighted([0, 0].into_iter()), None);
    }
}
