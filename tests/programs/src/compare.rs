//! Comparison of numbers, with messages that name what was compared.

/// Whether `got` is `want` up to `tolerance`, relative to the larger of 1 and the size of either.
pub fn within(got: f64, want: f64, tolerance: f64) -> bool {
    if got == want {
        return true;
    }
    (got - want).abs() <= tolerance * 1.0f64.max(got.abs()).max(want.abs())
}

/// Panics with both numbers unless `got` is `want` up to `tolerance`.
#[track_caller]
pub fn assert_close(what: &str, got: f64, want: f64, tolerance: f64) {
    assert!(
        within(got, want, tolerance),
        "{what}: got {got:?}, want {want:?} (off by {:e}, allowed {tolerance:e} relative)",
        (got - want).abs()
    );
}

/// Panics with the first entries that differ unless `got` is `want` up to `tolerance`, relative to the largest entry of `want`.
#[track_caller]
pub fn assert_all_close(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(
        got.len(),
        want.len(),
        "{what}: got {} entries, want {}",
        got.len(),
        want.len()
    );
    let scale = want
        .iter()
        .fold(1.0f64, |largest, entry| largest.max(entry.abs()));
    let wrong: Vec<String> = (0..got.len())
        .filter(|&i| !within(got[i] / scale, want[i] / scale, tolerance))
        .map(|i| format!("  [{i}] got {:?}, want {:?}", got[i], want[i]))
        .collect();
    assert!(
        wrong.is_empty(),
        "{what}: {} of {} entries differ by more than {tolerance:e} relative\n{}",
        wrong.len(),
        got.len(),
        wrong[..wrong.len().min(12)].join("\n")
    );
}

/// Numbers in -1..1 that are the same in every run: directions and seeds.
pub fn random_vector(length: usize, start: u64) -> Vec<f64> {
    let mut state = start.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        })
        .collect()
}
