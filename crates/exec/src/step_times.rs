//! How often steps commit, and how long each takes from its cut to its commit.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// Upper bounds of the histogram's buckets: from what an idle disk takes to what somebody should look into.
const BOUNDS: [Duration; 12] = [
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// Steps that the rate and the quantiles are taken from at the most.
const RECENT: usize = 1024;

/// How far back they go.
const RECENT_TIME: Duration = Duration::from_secs(10);

/// What is kept of the steps: a histogram of all, and the times of the last ones.
#[derive(Default)]
pub struct StepTimes {
    total: Duration,
    count: u64,
    /// One more than there are bounds: the last one counts what is above all of them.
    buckets: [u64; BOUNDS.len() + 1],
    recent: VecDeque<(Instant, Duration)>,
}

/// The steps of a pipeline since the process began.
#[derive(Debug, Clone, PartialEq)]
pub struct StepStats {
    /// How many have committed.
    pub count: u64,
    /// Time from cut to commit of all of them together.
    pub total: Duration,
    /// By upper bound, how many took at most as long; those above the last bound are in `count` only.
    pub buckets: Vec<(Duration, u64)>,
    /// Steps per second in the last ten seconds.
    pub per_second: f64,
    /// What half of the steps of the last ten seconds took at most, as far as there were any; of many steps, the last thousand count.
    pub median: Option<Duration>,
    /// What all but one in a hundred of them took at most.
    pub p99: Option<Duration>,
}

impl StepTimes {
    /// Notes a step that commits now.
    pub fn note(&mut self, now: Instant, took: Duration) {
        self.count += 1;
        self.total += took;
        let bucket = BOUNDS.partition_point(|bound| *bound < took);
        self.buckets[bucket] += 1;
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((now, took));
    }

    /// What is known by now.
    pub fn stats(&self, now: Instant) -> StepStats {
        let mut up_to = 0;
        let buckets = BOUNDS.iter().zip(&self.buckets).map(|(bound, count)| {
            up_to += count;
            (*bound, up_to)
        });
        let age = |at: &Instant| now.saturating_duration_since(*at);
        let recent = self.recent.iter().filter(|(at, _)| age(at) <= RECENT_TIME);
        let mut times: Vec<Duration> = recent.map(|(_, took)| *took).collect();
        times.sort_unstable();
        // Where more steps came than are remembered, those that are cover less time.
        let covered = match self.recent.front() {
            Some((first, _)) if self.recent.len() == RECENT => age(first).min(RECENT_TIME),
            _ => RECENT_TIME,
        };
        let quantile = |per_cent: usize| {
            let last = times.len().checked_sub(1)?;
            Some(times[last * per_cent / 100])
        };
        StepStats {
            count: self.count,
            total: self.total,
            buckets: buckets.collect(),
            per_second: times.len() as f64 / covered.as_secs_f64().max(f64::MIN_POSITIVE),
            median: quantile(50),
            p99: quantile(99),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_histogram_counts_all_and_the_rate_what_is_recent() {
        let mut times = StepTimes::default();
        let begin = Instant::now();
        let second = Duration::from_secs(1);
        for number in 0..100 {
            let took = Duration::from_millis(if number == 99 { 7_000 } else { 3 });
            times.note(begin + second, took);
        }
        let stats = times.stats(begin + 2 * second);
        assert_eq!(stats.count, 100);
        assert_eq!(stats.total, Duration::from_millis(99 * 3 + 7_000));
        assert_eq!(stats.buckets[1], (Duration::from_millis(2), 0));
        assert_eq!(stats.buckets[2], (Duration::from_millis(5), 99));
        assert_eq!(stats.buckets.last().map(|(_, count)| *count), Some(99));
        assert_eq!(stats.per_second, 10.0);
        assert_eq!(stats.median, Some(Duration::from_millis(3)));
        assert_eq!(stats.p99, Some(Duration::from_millis(3)));
        let later = times.stats(begin + 20 * second);
        assert_eq!(
            (later.count, later.per_second, later.median),
            (100, 0.0, None)
        );
    }

    #[test]
    fn a_rate_beyond_what_is_remembered_is_that_of_the_last_steps() {
        let mut times = StepTimes::default();
        let begin = Instant::now();
        let steps = 3 * RECENT as u32;
        for number in 0..steps {
            times.note(begin + number * Duration::from_millis(1), Duration::ZERO);
        }
        let rate = times
            .stats(begin + steps * Duration::from_millis(1))
            .per_second;
        assert!((999.0..=1001.0).contains(&rate), "{rate}");
    }
}
