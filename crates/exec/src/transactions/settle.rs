//! What a start does about transactions that the last process left open.

use std::collections::BTreeMap;

use highwater_storage_log::{
    BatchView, Isolation, Log, LogResult, Offset, ProducerId, TopicConfig, TopicPartition,
};

use super::{
    FIRST_PRODUCER, TOPIC,
    record::{Part, Record},
    records_partition,
};
use crate::error::ExecResult;

/// Size of the topic's segments: whole ones are dropped when they are not needed any more.
const SEGMENT_BYTES: usize = 4 << 20;

/// Bytes of commit records that are read at a time.
const READ_BYTES: usize = 1 << 20;

/// Makes the topic if it is not there, and ends what the last process left: commits what has its record and all its parts, aborts the rest.
pub fn settle(log: &dyn Log) -> ExecResult<()> {
    if log.topic(TOPIC).is_none() {
        let mut config = TopicConfig::with_partitions(1);
        let setting = ("segment.bytes".to_owned(), SEGMENT_BYTES.to_string());
        config.settings.extend([setting]);
        log.create_topic(TOPIC, config)?;
    }
    let records = read(log)?;
    let open = open_transactions(log);
    if records.is_empty() && open.is_empty() {
        return Ok(());
    }
    // ORDER: all is decided before anything is ended, since markers take offsets, too.
    let decided: Vec<(Open, bool)> = open
        .into_iter()
        .map(|open| {
            let commit = is_committed(log, &records, &open);
            (open, commit)
        })
        .collect();
    for (open, commit) in decided {
        let Open {
            partition,
            producer,
            ..
        } = open;
        tracing::info!(%partition, producer = producer.0, commit, "ending a transaction that was left open");
        if let Some(marker) = log.end_transaction(&partition, producer, 0, commit)? {
            // ORDER: before the records go.
            log.sync(&partition, Offset(marker.0 + 1))?;
        }
    }
    let at = records_partition();
    let settled = log.append(&at, Record::Settled.batch())?.last_offset;
    log.sync(&at, Offset(settled.0 + 1))?;
    log.drop_below(&at, settled)?;
    Ok(())
}

/// The commit records that nothing has settled or taken back.
fn read(log: &dyn Log) -> ExecResult<Vec<(ProducerId, Vec<Part>)>> {
    let partition = records_partition();
    let mut records = BTreeMap::new();
    let mut next = log.offsets(&partition)?.log_start;
    loop {
        let fetch = log.read(&partition, next, READ_BYTES, Isolation::ReadUncommitted)?;
        if fetch.next_offset <= next {
            return Ok(records.into_values().collect());
        }
        for batch in &fetch.batches {
            for record in batch.records()?.iter() {
                let record = record?;
                match Record::decode(record.value)? {
                    Record::Settled => records.clear(),
                    Record::Commit(producer, parts) => {
                        records.insert(record.offset, (producer, parts));
                    }
                    Record::Abort(aborted) => drop(records.remove(&aborted)),
                }
            }
        }
        next = fetch.next_offset;
    }
}

/// A part of a transaction that is open in its partition.
struct Open {
    partition: TopicPartition,
    producer: ProducerId,
    first: Offset,
}

/// What is open of the producers of transactions. A partition that cannot be asked cannot be read either, and is left alone.
fn open_transactions(log: &dyn Log) -> Vec<Open> {
    let mut open = Vec::new();
    for topic in log.topics() {
        for number in 0..topic.config.partitions {
            let partition = TopicPartition::new(topic.name.clone(), number);
            let producers = log.open_transactions(&partition).unwrap_or_default();
            for (producer, _) in producers.into_iter().filter(|(id, _)| is_ours(*id)) {
                let known = log.producer(&partition, producer).ok().flatten();
                if let Some(first) = known.and_then(|known| known.open_transaction) {
                    open.push(Open {
                        partition: partition.clone(),
                        producer,
                        first,
                    });
                }
            }
        }
    }
    open
}

fn is_ours(producer: ProducerId) -> bool {
    (FIRST_PRODUCER..ProducerId::ENGINE_BASE).contains(&producer.0)
}

/// Whether the transaction that is open there has its record and all its parts.
fn is_committed(log: &dyn Log, records: &[(ProducerId, Vec<Part>)], open: &Open) -> bool {
    // A producer's newest record may be about its next transaction, which this partition has lost.
    let named = |part: &Part| part.partition == open.partition && part.first == open.first;
    // A record of an earlier life of these offsets would have been settled.
    records
        .iter()
        .find(|(producer, parts)| *producer == open.producer && parts.iter().any(named))
        .is_some_and(|(producer, parts)| parts.iter().all(|part| is_there(log, *producer, part)))
}

/// Whether the log holds that part, ended or not. A topic that was deleted since, or a partition that cannot be read, keeps nobody from having the other
/// parts.
fn is_there(log: &dyn Log, producer: ProducerId, part: &Part) -> bool {
    let at = |offset: Offset| -> LogResult<Option<BatchView>> {
        let fetch = log.read(&part.partition, offset, 1, Isolation::ReadUncommitted)?;
        let batch = fetch.batches.into_iter().next();
        Ok(batch.filter(|batch| batch.producer().map(|fields| fields.id) == Some(producer)))
    };
    let look = || -> LogResult<bool> {
        let offsets = log.offsets(&part.partition)?;
        if offsets.log_end < part.end {
            return Ok(false);
        }
        if offsets.log_start > part.first {
            return Ok(true);
        }
        let last = Offset(part.end.0 - 1);
        let begins = at(part.first)?.is_some_and(|batch| batch.base_offset() == part.first);
        Ok(begins && at(last)?.is_some_and(|batch| batch.last_offset() == last))
    };
    look().unwrap_or(true)
}
