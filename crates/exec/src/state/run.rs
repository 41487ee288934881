//! An immutable sorted run of changes to a result table: the overlay of one step, or of several merged ones.
//!
//! Keys and values stand back to back in two arenas; `ends` hold where each one ends. A missing value is a removal.

use std::{cmp::Ordering, sync::Arc};

use super::key::key_order;

/// See the module.
#[derive(Debug, Default)]
pub struct Run {
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    values: Vec<u8>,
    value_ends: Vec<usize>,
    present: Vec<bool>,
}

impl Run {
    /// Builds a run from entries in any order; of several for one key the last counts.
    pub fn from_entries(entries: Vec<(&[u8], Option<&[u8]>)>) -> Self {
        let order = key_order(entries.len(), |position| entries[position].0);
        let mut run = Self::default();
        run.reserve(
            entries.len(),
            entries.iter().map(|(key, _)| key.len()).sum(),
            entries
                .iter()
                .map(|(_, value)| value.map_or(0, <[u8]>::len))
                .sum(),
        );
        let mut sorted = order.iter().map(|&position| entries[position]).peekable();
        while let Some((key, value)) = sorted.next() {
            if sorted.peek().is_none_or(|next| next.0 != key) {
                run.push(key, value);
            }
        }
        run
    }

    fn reserve(&mut self, entries: usize, key_bytes: usize, value_bytes: usize) {
        self.keys.reserve_exact(key_bytes);
        self.values.reserve_exact(value_bytes);
        self.key_ends.reserve_exact(entries);
        self.value_ends.reserve_exact(entries);
        self.present.reserve_exact(entries);
    }

    /// Merges two runs; where both have a key, `newer` counts.
    pub fn merge(older: &Run, newer: &Run) -> Self {
        let mut run = Self::default();
        run.reserve(
            older.len() + newer.len(),
            older.keys.len() + newer.keys.len(),
            older.values.len() + newer.values.len(),
        );
        let (mut left, mut right) = (0, 0);
        while left < older.len() || right < newer.len() {
            let order = if left == older.len() {
                Ordering::Greater
            } else if right == newer.len() {
                Ordering::Less
            } else {
                older.key(left).cmp(newer.key(right))
            };
            match order {
                Ordering::Less => {
                    run.push(older.key(left), older.value(left));
                    left += 1;
                }
                Ordering::Equal => {
                    run.push(newer.key(right), newer.value(right));
                    left += 1;
                    right += 1;
                }
                Ordering::Greater => {
                    run.push(newer.key(right), newer.value(right));
                    right += 1;
                }
            }
        }
        run
    }

    fn push(&mut self, key: &[u8], value: Option<&[u8]>) {
        self.keys.extend_from_slice(key);
        self.values.extend_from_slice(value.unwrap_or_default());
        self.key_ends.push(self.keys.len());
        self.value_ends.push(self.values.len());
        self.present.push(value.is_some());
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.present.len()
    }

    /// The key at a position.
    pub fn key(&self, position: usize) -> &[u8] {
        slice(&self.keys, &self.key_ends, position)
    }

    /// The value at a position; `None` is a removal.
    pub fn value(&self, position: usize) -> Option<&[u8]> {
        self.present[position].then(|| slice(&self.values, &self.value_ends, position))
    }

    /// What the run says of `key`: nothing, a removal, or a value.
    pub fn get(&self, key: &[u8]) -> Option<Option<&[u8]>> {
        let position = self.lower_bound(key);
        (position < self.len() && self.key(position) == key).then(|| self.value(position))
    }

    /// Position of the first key at or behind `key`.
    pub fn lower_bound(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = (low + high) / 2;
            if self.key(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Bytes that it takes in memory.
    pub fn memory(&self) -> usize {
        let ends = (self.key_ends.len() + self.value_ends.len()) * size_of::<usize>();
        self.byte_len() + ends + self.present.len()
    }

    /// Bytes of all keys and values.
    pub fn byte_len(&self) -> usize {
        self.keys.len() + self.values.len()
    }

    /// The entries of several runs, oldest first, in key order; where more than one has a key, the newest counts.
    pub fn merged(runs: &[Arc<Run>]) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        // From new to old: of equal keys the first is the one that counts.
        let mut heads: Vec<(&Run, usize)> = runs.iter().rev().map(|run| (&**run, 0)).collect();
        std::iter::from_fn(move || {
            heads.retain(|(run, position)| *position < run.len());
            let mut newest: Option<(&Run, usize)> = None;
            for &(run, position) in &heads {
                if newest.is_none_or(|(least, at)| run.key(position) < least.key(at)) {
                    newest = Some((run, position));
                }
            }
            let (run, position) = newest?;
            let key = run.key(position);
            for (other, at) in &mut heads {
                if other.key(*at) == key {
                    *at += 1;
                }
            }
            Some((key, run.value(position)))
        })
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], position: usize) -> &'a [u8] {
    let start = if position == 0 { 0 } else { ends[position - 1] };
    &bytes[start..ends[position]]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(entries: &[(&str, Option<&str>)]) -> Run {
        Run::from_entries(
            entries
                .iter()
                .map(|(key, value)| (key.as_bytes(), value.map(str::as_bytes)))
                .collect(),
        )
    }

    fn rows(run: Run) -> Vec<(String, Option<String>)> {
        merged_rows(&[Arc::new(run)])
    }

    fn merged_rows(runs: &[Arc<Run>]) -> Vec<(String, Option<String>)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Run::merged(runs)
            .map(|(key, value)| (text(key), value.map(text)))
            .collect()
    }

    #[test]
    fn last_entry_of_a_key_counts() {
        let run = run(&[
            ("b", Some("1")),
            ("a", Some("2")),
            ("b", None),
            ("b", Some("3")),
        ]);
        assert_eq!(run.get(b"b"), Some(Some(&b"3"[..])));
        assert_eq!(run.get(b"c"), None);
        assert_eq!(
            rows(run),
            [
                ("a".into(), Some("2".into())),
                ("b".into(), Some("3".into()))
            ]
        );
    }

    #[test]
    fn merge_prefers_the_newer() {
        let older = run(&[("a", Some("1")), ("b", Some("1")), ("d", None)]);
        let newer = run(&[("b", None), ("c", Some("2")), ("d", Some("2"))]);
        let expected = [
            ("a".into(), Some("1".into())),
            ("b".into(), None),
            ("c".into(), Some("2".into())),
            ("d".into(), Some("2".into())),
        ];
        assert_eq!(rows(Run::merge(&older, &newer)), expected);
        let none = run(&[]);
        let runs = [older, none, newer].map(Arc::new);
        assert_eq!(merged_rows(&runs), expected);
    }
}
