//! What the log must keep for the pipeline, whatever the retention of its topics says.
//!
//! INVARIANT: everything from the positions of the oldest kept checkpoint on stays as it is, and so does what lies behind the position of a query that
//! was stopped and may be resumed, or of one that still catches up. A replay therefore reads what the first run read.

use std::collections::{BTreeMap, BTreeSet};

use highwater_planner::catalog::RelationId;
use highwater_storage_log::{Offset, TopicPartition};

use crate::{error::ExecResult, pipeline::Pipeline};

/// Partitions that the log was told to keep something of.
#[derive(Debug, Default)]
pub struct Holds(BTreeSet<TopicPartition>);

impl Pipeline {
    /// Tells the log what will be read again, and lets go of the rest.
    pub fn hold_inputs(&mut self) -> ExecResult<()> {
        let wanted = self.read_again()?;
        let released = std::mem::take(&mut self.holds.0);
        for partition in released.iter().filter(|held| !wanted.contains_key(held)) {
            // The topic may be gone, and then nothing is held.
            let _ = self.log.hold_from(partition, None);
        }
        for (partition, from) in wanted {
            if let Err(error) = self.log.hold_from(&partition, Some(from)) {
                tracing::debug!(%partition, %error, "a partition that does not work needs no hold");
            }
            self.holds.0.insert(partition);
        }
        Ok(())
    }

    /// From where on each partition will be read again: by a recovery from any kept checkpoint, or by a query that is resumed.
    fn read_again(&self) -> ExecResult<BTreeMap<TopicPartition, Offset>> {
        let mut from: BTreeMap<TopicPartition, Offset> = BTreeMap::new();
        let mut want = |partition: TopicPartition, offset: Offset| {
            let oldest = from.entry(partition).or_insert(offset);
            *oldest = offset.min(*oldest);
        };
        for manifest in self.checkpoints.manifests()? {
            for read in &manifest.sources {
                let Some(source) = self.sources.get(&RelationId(read.relation)) else {
                    continue;
                };
                for (partition, position) in source.partitions().iter().zip(&read.positions) {
                    want(partition.clone(), Offset(*position));
                }
            }
        }
        for (partition, offset) in self.catching_up.iter().flat_map(|query| &query.reads_from) {
            want(partition.clone(), *offset);
        }
        for query in &self.queries {
            let Some(stopped_at) = &query.stopped_at else {
                continue;
            };
            for relation in self.topic_relations(&query.graph, Some(&query.definition.output)) {
                let positions = stopped_at.get(&relation.id).into_iter().flatten();
                for (number, position) in (0..).zip(positions) {
                    want(
                        TopicPartition::new(relation.topic.as_str(), number),
                        *position,
                    );
                }
            }
        }
        Ok(from)
    }
}
