//! Answers, compared row by row without keeping or sorting them.
//!
//! A digest is the number of rows and the sum of their hashes, so order does not matter and repeated rows count. Two answers that differ have
//! the same digest with a chance of one in 2^128.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    pin::pin,
};

use anyhow::Result;
use futures::TryStreamExt;
use tokio_postgres::{Client, SimpleQueryMessage, SimpleQueryRow};

use crate::server::told;

/// Rows that differ which are shown.
const SHOWN: usize = 3;
/// Rows of which differences are looked for; the others are only told by number.
const LOOKED_AT: u64 = 2_000_000;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Digest {
    pub(super) rows: u64,
    sums: [u64; 2],
}

/// Two answers to the same question.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) continuous: Digest,
    pub(super) batch: Digest,
    /// Some rows that only the continuous query has.
    pub(super) unexpected: Vec<String>,
    /// Some rows that only the batch query has.
    pub(super) missing: Vec<String>,
}

impl Digest {
    fn add(&mut self, hashes: [u64; 2]) {
        self.rows += 1;
        for (sum, hash) in self.sums.iter_mut().zip(hashes) {
            *sum = sum.wrapping_add(hash);
        }
    }
}

/// Asks both queries; `None` when they have the same rows.
pub(super) async fn compare(
    client: &Client,
    continuous: &str,
    batch: &str,
) -> Result<Option<Difference>> {
    let ours = digest(client, continuous).await?;
    let theirs = digest(client, batch).await?;
    if ours == theirs {
        return Ok(None);
    }
    let mut difference = Difference {
        continuous: ours,
        batch: theirs,
        unexpected: Vec::new(),
        missing: Vec::new(),
    };
    if ours.rows.max(theirs.rows) <= LOOKED_AT {
        difference.unexpected = rows_without(client, continuous, batch).await?;
        difference.missing = rows_without(client, batch, continuous).await?;
    }
    Ok(Some(difference))
}

async fn digest(client: &Client, query: &str) -> Result<Digest> {
    let mut digest = Digest::default();
    each_row(client, query, |row| digest.add(hashes(row))).await?;
    Ok(digest)
}

/// Some rows of a query that another one does not have.
async fn rows_without(client: &Client, query: &str, other: &str) -> Result<Vec<String>> {
    let mut known = HashSet::new();
    each_row(client, other, |row| {
        known.insert(hashes(row));
    })
    .await?;
    let mut found = Vec::new();
    each_row(client, query, |row| {
        if found.len() < SHOWN && !known.contains(&hashes(row)) {
            let values = (0..row.len()).map(|column| row.get(column).unwrap_or("NULL"));
            found.push(values.collect::<Vec<_>>().join(" | "));
        }
    })
    .await?;
    Ok(found)
}

async fn each_row(
    client: &Client,
    query: &str,
    mut take: impl FnMut(&SimpleQueryRow),
) -> Result<()> {
    let messages = client.simple_query_raw(query).await.map_err(told)?;
    let mut messages = pin!(messages);
    while let Some(message) = messages.try_next().await.map_err(told)? {
        if let SimpleQueryMessage::Row(row) = message {
            take(&row);
        }
    }
    Ok(())
}

fn hashes(row: &SimpleQueryRow) -> [u64; 2] {
    hashes_of((0..row.len()).map(|column| row.get(column)))
}

fn hashes_of<'v>(values: impl Iterator<Item = Option<&'v str>> + Clone) -> [u64; 2] {
    [0u8, 1].map(|which| {
        let mut hasher = DefaultHasher::new();
        which.hash(&mut hasher);
        for value in values.clone() {
            value.hash(&mut hasher);
        }
        hasher.finish()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(rows: &[&[Option<&str>]]) -> Digest {
        let mut digest = Digest::default();
        for row in rows {
            digest.add(hashes_of(row.iter().copied()));
        }
        digest
    }

    #[test]
    fn order_does_not_matter_and_all_else_does() {
        let (a, b) = ([Some("1"), Some("x")], [Some("2"), None]);
        let whole = digest_of(&[&a, &b]);
        assert_eq!(whole, digest_of(&[&b, &a]));
        assert_ne!(whole, digest_of(&[&a, &a]));
        assert_ne!(whole, digest_of(&[&a, &b, &b]));
        assert_ne!(whole, digest_of(&[&a, &[Some("2"), Some("")]]));
        assert_ne!(
            digest_of(&[&[Some("1"), Some("23")]]),
            digest_of(&[&[Some("12"), Some("3")]])
        );
    }
}
