//! Commit and abort markers: batches of one record that end a transaction.
//!
//! Key: version (i16, 0), kind (i16, 0 abort, 1 commit). Value: version (i16, 0), epoch of the coordinator (i32).

use super::{
    BatchError, BatchView, EncodedBatch,
    header::{BatchHeader, ProducerFields},
    record::RecordRef,
};
use crate::{error::LogResult, log::ProducerId};

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlKind {
    /// Its records do not exist for read-committed readers.
    Abort,
    /// Its records became visible.
    Commit,
}

/// Content of a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlMarker {
    /// How the transaction ended.
    pub kind: ControlKind,
    /// Epoch of the coordinator that ended it; 0 in our own markers, where the engine is the coordinator.
    pub coordinator_epoch: i32,
}

impl ControlMarker {
    /// Encodes a marker that ends the transaction of `producer`.
    pub(crate) fn encode(self, producer: ProducerId, epoch: i16, timestamp: i64) -> EncodedBatch {
        let kind = match self.kind {
            ControlKind::Abort => 0i16,
            ControlKind::Commit => 1,
        };
        let mut key = [0; 4];
        key[2..].copy_from_slice(&kind.to_be_bytes());
        let mut value = [0; 6];
        value[2..].copy_from_slice(&self.coordinator_epoch.to_be_bytes());

        let mut header = BatchHeader::for_records(1, timestamp, timestamp);
        header.set_producer(ProducerFields {
            id: producer,
            epoch,
            base_sequence: -1,
            transactional: true,
        });
        header.set_control();
        EncodedBatch::single_record(header, &key, &value)
    }

    /// Reads the marker from a control batch. `None` for kinds that do not end a transaction (Kafka's own quorum log has some).
    pub(crate) fn decode(batch: &BatchView) -> LogResult<Option<Self>> {
        debug_assert!(batch.is_control(), "only control batches hold markers");
        let records = batch.records()?;
        let Some(record) = records.iter().next() else {
            return Err(BatchError::RecordCount { expected: 1 }.into());
        };
        Ok(Self::from_record(&record?)?)
    }

    fn from_record(record: &RecordRef<'_>) -> Result<Option<Self>, BatchError> {
        let malformed = |part| BatchError::Record { index: 0, part };
        let key = record
            .key
            .and_then(|key| key.first_chunk::<4>())
            .ok_or_else(|| malformed("control key"))?;
        let kind = match i16::from_be_bytes([key[2], key[3]]) {
            0 => ControlKind::Abort,
            1 => ControlKind::Commit,
            _ => return Ok(None),
        };
        let value = record
            .value
            .and_then(|value| value.first_chunk::<6>())
            .ok_or_else(|| malformed("control value"))?;
        let coordinator_epoch = i32::from_be_bytes([value[2], value[3], value[4], value[5]]);
        Ok(Some(Self {
            kind,
            coordinator_epoch,
        }))
    }
}
