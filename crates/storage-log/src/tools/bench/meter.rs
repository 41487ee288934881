//! Wall time, CPU time and memory of this process, as /proc tells them.

use std::{fs, time::Instant};

/// Ticks a second of /proc/self/stat; Linux has shown 100 to programs on every machine for decades.
const TICKS_A_SECOND: f64 = 100.0;

/// A measurement that is running.
#[derive(Debug)]
pub struct Meter {
    wall: Instant,
    cpu: f64,
}

/// What a measurement took.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    /// Wall seconds.
    pub wall: f64,
    /// CPU seconds of all threads, the system's share included.
    pub cpu: f64,
}

impl Meter {
    /// Starts now.
    pub fn start() -> Self {
        Self {
            cpu: cpu_seconds(),
            wall: Instant::now(),
        }
    }

    /// What it took until now.
    pub fn stop(&self) -> Taken {
        Taken {
            wall: self.wall.elapsed().as_secs_f64(),
            // At least a tick, for short measurements.
            cpu: (cpu_seconds() - self.cpu).max(1.0 / TICKS_A_SECOND),
        }
    }
}

impl Taken {
    /// Megabytes a second.
    pub fn megabytes(self, bytes: usize) -> f64 {
        bytes as f64 / 1e6 / self.wall
    }

    /// Megabytes a second of CPU time: what one core does when nothing else runs on it.
    pub fn megabytes_per_core(self, bytes: usize) -> f64 {
        bytes as f64 / 1e6 / self.cpu
    }

    /// Things a second.
    pub fn rate(self, count: usize) -> f64 {
        count as f64 / self.wall
    }

    /// Things a second of CPU time.
    pub fn rate_per_core(self, count: usize) -> f64 {
        count as f64 / self.cpu
    }
}

/// CPU time of this process so far; 0 where there is no /proc.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program stands in brackets and may hold anything; numbers follow the last one.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks: f64 = fields
        .split_ascii_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    ticks / TICKS_A_SECOND
}

/// Memory of this process that is not backed by files, in MiB; 0 where there is no /proc.
pub fn memory_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) / 1024.0
}

/// The value below which that part of them lies.
pub fn percentile(values: &mut [f64], part: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let at = (values.len() as f64 * part) as usize;
    values
        .get(at.min(values.len().saturating_sub(1)))
        .copied()
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_and_memory_is_used() {
        let meter = Meter::start();
        let mut sum = 0u64;
        while meter.wall.elapsed().as_millis() < 60 {
            sum = std::hint::black_box(sum + 1);
        }
        let taken = meter.stop();
        assert!(taken.wall >= 0.06 && taken.cpu > 0.0, "{taken:?}");
        assert!(memory_mib() > 0.1);
    }

    #[test]
    fn percentiles_are_values() {
        let mut values: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 0.5), 501.0);
        assert_eq!(percentile(&mut values, 0.999), 1000.0);
        assert_eq!(percentile(&mut [], 0.5), 0.0);
    }
}
