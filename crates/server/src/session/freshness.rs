//! Which snapshot a pull query gets.
//!
//! The engine's last committed step never goes back, so a session that always asks for the latest one reads monotonically; the question is
//! only how long to wait for it to cover what must be covered.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use highwater_exec::Snapshot;
use highwater_planner::catalog::Catalog;
use highwater_storage_log::{LogResult, Offset, TopicPartition};
use parking_lot::Mutex;

use super::{Session, SessionResult, TransactionStatus, variables::Freshness};
use crate::{catalog::CatalogState, server::Server, sqlstate::SqlError};

/// How long a pull query waits for its step when no statement_timeout is set: far beyond any step, short enough to hear of a stuck query.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// Ends (exclusive) of what a session wrote and has not yet seen in a snapshot.
///
/// Shared with the COPY that runs on behalf of the session.
#[derive(Debug, Default)]
pub struct Written {
    ends: Mutex<BTreeMap<TopicPartition, Offset>>,
}

impl Written {
    /// Notes what was written.
    pub fn note(&self, ends: impl IntoIterator<Item = (TopicPartition, Offset)>) {
        let mut known_ends = self.ends.lock();
        for (partition, end) in ends {
            let known = known_ends.entry(partition).or_insert(end);
            *known = (*known).max(end);
        }
    }

    fn to_vec(&self) -> Vec<(TopicPartition, Offset)> {
        self.ends
            .lock()
            .iter()
            .map(|(partition, end)| (partition.clone(), *end))
            .collect()
    }

    /// Forgets what a snapshot is known to cover; what was written meanwhile stays.
    fn forget(&self, covered: &[(TopicPartition, Offset)]) {
        let mut ends = self.ends.lock();
        for (partition, end) in covered {
            if ends.get(partition) == Some(end) {
                ends.remove(partition);
            }
        }
    }
}

impl Session {
    /// A snapshot as fresh as the session asks for. All queries of one `BEGIN READ ONLY` block get the same: the one of its first query.
    pub(crate) async fn snapshot(&mut self) -> SessionResult<Snapshot> {
        let fixed = self.transaction == TransactionStatus::InBlock && self.block.read_only;
        if let Some(snapshot) = self.block.snapshot.as_ref().filter(|_| fixed) {
            return Ok(snapshot.clone());
        }
        let snapshot = self.fresh_snapshot().await?;
        if fixed {
            self.block.snapshot = Some(snapshot.clone());
        }
        Ok(snapshot)
    }

    async fn fresh_snapshot(&mut self) -> SessionResult<Snapshot> {
        let wanted = match self.variables.freshness() {
            Freshness::Any => Vec::new(),
            Freshness::Session => self.written.to_vec(),
            Freshness::Strong => acknowledged(&self.server, &self.server.coordinator.catalog())?,
        };
        if wanted.is_empty() {
            return Ok(self.server.engine.snapshot());
        }
        let wait = self.variables.statement_timeout().unwrap_or(DEFAULT_WAIT);
        let engine = Arc::clone(&self.server.engine);
        let covered = wanted.clone();
        let snapshot = blocking(move || engine.snapshot_covering(&wanted, wait)).await??;
        self.written.forget(&covered);
        Ok(snapshot)
    }
}

/// The ends of all topics that clients write: what anyone may have been told is stored.
fn acknowledged(
    server: &Server,
    catalog: &CatalogState,
) -> LogResult<Vec<(TopicPartition, Offset)>> {
    let mut ends = BTreeMap::new();
    for relation in catalog
        .relations()
        .iter()
        .filter(|relation| relation.query.is_none())
    {
        for number in 0..relation.partitions {
            let partition = TopicPartition::new(relation.topic.as_str(), number);
            let end = server.log.offsets(&partition)?.log_end;
            ends.insert(partition, end);
        }
    }
    Ok(ends.into_iter().collect())
}

/// Runs something that blocks, away from the threads that talk to clients.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> SessionResult<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| SqlError::internal(format!("a blocking task ended early: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_while_waiting_is_kept() {
        let partition = TopicPartition::new("t", 0);
        let written = Written::default();
        written.note([(partition.clone(), Offset(5))]);
        let covered = written.to_vec();
        written.note([
            (partition.clone(), Offset(9)),
            (partition.clone(), Offset(7)),
        ]);
        written.forget(&covered);
        assert_eq!(written.to_vec(), [(partition, Offset(9))]);
        written.forget(&written.to_vec());
        assert!(written.to_vec().is_empty());
    }
}
