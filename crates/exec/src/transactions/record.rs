//! What the topic of the transactions says.

use highwater_storage_log::{BatchBuilder, EncodedBatch, Offset, ProducerId, TopicPartition};

use crate::error::{ExecError, ExecResult};

/// First byte of a commit record's value.
const COMMIT: u8 = 1;
/// First byte of the value that takes one back.
const ABORT: u8 = 2;

/// What a transaction wrote to one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub partition: TopicPartition,
    /// Offset of its first record.
    pub first: Offset,
    /// Behind its last record. Other producers' records may stand between.
    pub end: Offset,
}

/// See the module above.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The transaction of this producer is committed if all its parts are there.
    Commit(ProducerId, Vec<Part>),
    /// The transaction whose commit record has this offset is aborted, whatever is there of it.
    Abort(Offset),
    /// Everything before has been dealt with.
    Settled,
}

impl Record {
    /// A batch with this record alone.
    pub fn batch(&self) -> EncodedBatch {
        let mut builder = BatchBuilder::new();
        builder.push(0, None, self.encode().as_deref(), &[]);
        builder.finish(None)
    }

    fn encode(&self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        match self {
            Self::Settled => return None,
            Self::Abort(record) => {
                value.push(ABORT);
                value.extend_from_slice(&record.0.to_le_bytes());
            }
            Self::Commit(producer, parts) => {
                value.push(COMMIT);
                value.extend_from_slice(&producer.0.to_le_bytes());
                value.extend_from_slice(&(parts.len() as u32).to_le_bytes());
                for part in parts {
                    let topic = part.partition.topic.as_bytes();
                    value.extend_from_slice(&part.first.0.to_le_bytes());
                    value.extend_from_slice(&part.end.0.to_le_bytes());
                    value.extend_from_slice(&part.partition.partition.0.to_le_bytes());
                    // Topic names have at most 249 bytes.
                    value.extend_from_slice(&(topic.len() as u16).to_le_bytes());
                    value.extend_from_slice(topic);
                }
            }
        }
        Some(value)
    }

    /// Reads a record's value.
    pub fn decode(value: Option<&[u8]>) -> ExecResult<Self> {
        let Some(mut rest) = value else {
            return Ok(Self::Settled);
        };
        match take(&mut rest)? {
            [ABORT] => return Ok(Self::Abort(offset(&mut rest)?)),
            [COMMIT] => {}
            _ => return Err(corrupt("it has an unknown version")),
        }
        let producer = ProducerId(i64::from_le_bytes(take(&mut rest)?));
        let count = u32::from_le_bytes(take(&mut rest)?);
        let mut parts = Vec::new();
        for _ in 0..count {
            let (first, end) = (offset(&mut rest)?, offset(&mut rest)?);
            let number = u32::from_le_bytes(take(&mut rest)?);
            let length = u16::from_le_bytes(take(&mut rest)?);
            let (topic, behind) = rest
                .split_at_checked(length.into())
                .ok_or_else(|| corrupt("it ends too early"))?;
            rest = behind;
            let topic = std::str::from_utf8(topic).map_err(|_| corrupt("a topic is no text"))?;
            parts.push(Part {
                partition: TopicPartition::new(topic, number),
                first,
                end,
            });
        }
        Ok(Self::Commit(producer, parts))
    }
}

fn offset(rest: &mut &[u8]) -> ExecResult<Offset> {
    Ok(Offset(i64::from_le_bytes(take(rest)?)))
}

fn take<const N: usize>(rest: &mut &[u8]) -> ExecResult<[u8; N]> {
    let (head, tail) = rest
        .split_first_chunk()
        .ok_or_else(|| corrupt("it ends too early"))?;
    *rest = tail;
    Ok(*head)
}

fn corrupt(detail: &str) -> ExecError {
    ExecError::Corrupt {
        what: "a transaction's commit record".into(),
        detail: detail.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_survives_the_way_and_damage_is_an_error() {
        let part = |topic: &str, number, first, end| Part {
            partition: TopicPartition::new(topic, number),
            first: Offset(first),
            end: Offset(end),
        };
        let parts = vec![part("orders", 0, 7, 9), part("a.b-c", 3, 0, 1 << 40)];
        let record = Record::Commit(ProducerId(1 << 39), parts);
        for expected in [record, Record::Abort(Offset(7)), Record::Settled] {
            let value = expected.encode();
            assert_eq!(
                Record::decode(value.as_deref()).expect("a record"),
                expected
            );
            let value = value.unwrap_or_default();
            for length in 0..value.len() {
                let cut = Record::decode(Some(&value[..length]));
                assert!(cut.is_err(), "cut at {length}");
            }
        }
    }
}
