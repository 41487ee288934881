//! What a partition should hold, after any crash.

use std::collections::BTreeMap;

use highwater_storage_log::{
    EmbeddedLog, Isolation, Log, ProducerFields, ProducerId, TopicPartition,
};

use crate::support::*;

/// One batch as it was appended, or a marker.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub base: i64,
    pub values: Vec<String>,
    pub producer: Option<ProducerFields>,
    /// `Some(commit)` for a marker.
    pub marker: Option<bool>,
}

impl Entry {
    fn end(&self) -> i64 {
        self.base
            + if self.marker.is_some() {
                1
            } else {
                self.values.len() as i64
            }
    }
}

/// What the partition should hold.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub entries: Vec<Entry>,
    /// Written or not: the last call failed in the middle.
    pub uncertain: Option<Entry>,
    pub acknowledged: i64,
    /// Log start that is certain, and the one a failed call may have set.
    pub log_start: i64,
    pub log_start_maybe: i64,
    /// Retention was at work when it was stopped: the log may start anywhere between the two.
    pub retention_uncertain: bool,
    /// Of each key only the last committed record has to be there.
    pub compacted: bool,
}

impl Model {
    pub fn end(&self) -> i64 {
        self.entries.last().map_or(0, Entry::end)
    }

    /// Next sequence and whether a transaction is open, of a producer with epoch 0.
    pub fn producer(&self, id: i64) -> (i32, bool) {
        let mut state = (0, false);
        for entry in &self.entries {
            let Some(fields) = entry.producer.filter(|fields| fields.id.0 == id) else {
                continue;
            };
            match entry.marker {
                Some(_) => state.1 = false,
                None => {
                    state = (
                        fields.base_sequence + entry.values.len() as i32,
                        fields.transactional,
                    )
                }
            }
        }
        state
    }

    /// What a read-committed reader sees, and the last stable offset.
    pub fn committed(&self) -> (Vec<(i64, String)>, i64) {
        let mut open: BTreeMap<i64, i64> = BTreeMap::new();
        let mut aborted: Vec<(i64, i64, i64)> = Vec::new();
        for entry in &self.entries {
            let Some(fields) = entry.producer.filter(|fields| fields.transactional) else {
                continue;
            };
            match entry.marker {
                None => drop(open.entry(fields.id.0).or_insert(entry.base)),
                Some(commit) => {
                    let first = open
                        .remove(&fields.id.0)
                        .expect("a marker ends a transaction");
                    if !commit {
                        aborted.push((fields.id.0, first, entry.base));
                    }
                }
            }
        }
        let stable = open.values().copied().min().unwrap_or(self.end());
        let hidden = |entry: &Entry| {
            entry.producer.is_some_and(|fields| {
                fields.transactional
                    && aborted.iter().any(|(id, first, last)| {
                        *id == fields.id.0 && (*first..=*last).contains(&entry.base)
                    })
            })
        };
        let seen = self
            .entries
            .iter()
            .filter(|entry| entry.marker.is_none() && entry.base < stable && !hidden(entry));
        (numbered(seen), stable)
    }

    /// Holds a log that was opened after a crash against this model and takes over what it kept.
    pub fn check(&mut self, log: &EmbeddedLog, at: &TopicPartition) {
        let offsets = log.offsets(at).expect("the partition opens");
        assert_eq!(
            offsets.durable, offsets.log_end,
            "what was found is durable"
        );
        self.check_running(log, at);
        // What a call that failed may have left on disk has shown itself by now.
        self.log_start_maybe = self.log_start;
        self.retention_uncertain = false;
    }

    /// The same for a log that has been running since.
    pub fn check_running(&mut self, log: &EmbeddedLog, at: &TopicPartition) {
        let offsets = log.offsets(at).expect("the partition is open");
        let end = offsets.log_end.0;
        assert!(
            end >= self.acknowledged,
            "acknowledged up to {}, the log ends at {end}",
            self.acknowledged
        );
        let (start, expected) = (offsets.log_start.0, [self.log_start, self.log_start_maybe]);
        let between = self.retention_uncertain && (expected[0]..=expected[1]).contains(&start);
        assert!(
            expected.contains(&start) || between,
            "log start {start} is none of {expected:?}"
        );
        self.log_start = start;
        self.entries.extend(self.uncertain.take());
        self.entries.retain(|entry| entry.base < end);
        assert_eq!(self.end(), end, "the log ends with a whole batch");
        self.acknowledged = self.acknowledged.max(offsets.durable.0);

        let stored = values(log, at, self.log_start, Isolation::ReadUncommitted, 1 << 20);
        let all = numbered(self.entries.iter().filter(|entry| entry.marker.is_none()));
        self.assert_stored(&stored, &from(all, self.log_start));
        let (committed, stable) = self.committed();
        assert_eq!(offsets.last_stable.0, stable);
        if stable >= self.log_start {
            let committed = from(committed, self.log_start);
            let seen = values(log, at, self.log_start, Isolation::ReadCommitted, 200);
            self.assert_stored(&seen, &committed);
            let last: BTreeMap<u64, &(i64, String)> = committed
                .iter()
                .map(|record| (key_of(&record.1), record))
                .collect();
            for record in last.values() {
                assert!(seen.contains(record), "{record:?} is the last of its key");
            }
        }
        for id in 1..=3 {
            let (next, open) = self.producer(id);
            let known = log.producer(at, ProducerId(id)).expect("producer");
            let known = known.map_or((0, false), |state| {
                (state.last_sequence + 1, state.open_transaction.is_some())
            });
            assert_eq!(known, (next, open), "producer {id}");
        }
    }
}

impl Model {
    fn assert_stored(&self, stored: &[(i64, String)], expected: &[(i64, String)]) {
        if !self.compacted {
            assert_eq!(stored, expected);
            return;
        }
        let mut rest = expected.iter();
        for record in stored {
            assert!(
                rest.any(|expected| expected == record),
                "{record:?} was never written, or out of order"
            );
        }
    }
}

/// Key of the record with that value.
pub fn key_of(value: &str) -> u64 {
    value.bytes().map(u64::from).sum::<u64>() % 6
}

fn numbered<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<(i64, String)> {
    entries
        .flat_map(|entry| (entry.base..).zip(entry.values.iter().cloned()))
        .collect()
}

fn from(values: Vec<(i64, String)>, start: i64) -> Vec<(i64, String)> {
    values
        .into_iter()
        .filter(|(offset, _)| *offset >= start)
        .collect()
}
