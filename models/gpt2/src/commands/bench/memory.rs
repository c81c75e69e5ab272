//! How much memory the program has in use at most, as Linux counts it.

use std::fs;

/// Starts counting again.
pub(super) fn forget_peak() {
    // Where that is not possible the peak is that of the whole run, which is still an upper bound.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Bytes in use at most since then; none where the system does not say.
pub(super) fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}
