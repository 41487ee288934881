//! What the machine has, as far as a default depends on it.

use std::fs;

/// Bytes of memory that this process can count on: the machine's, or what a control group leaves of it; `None` where neither is told.
pub fn memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.as_deref().and_then(total_of);
    // The group of a container stands at the root of what it sees; of version 2, then of version 1.
    let group = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ]
    .into_iter()
    .find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    match (machine, group) {
        (Some(machine), Some(group)) => Some(u64::min(machine, group)),
        (one, other) => one.or(other),
    }
}

/// The total in the text of `/proc/meminfo`.
fn total_of(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_read_in_kilobytes() {
        let text = "MemFree:  1 kB\nMemTotal:       24537680 kB\nMemAvailable: 7 kB\n";
        assert_eq!(total_of(text), Some(24_537_680 << 10));
        assert_eq!(total_of("MemTotal: much kB"), None);
        assert_eq!(total_of(""), None);
    }
}
