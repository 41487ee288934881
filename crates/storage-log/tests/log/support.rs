//! Small helpers shared by the tests.

use highwater_storage_log::{
    BatchBuilder, EmbeddedLog, EncodedBatch, Isolation, Log, LogResult, Offset, ProducerFields,
    ProducerId, TopicChange, TopicConfig, TopicPartition,
};

/// The partition that single-partition tests use.
pub fn partition() -> TopicPartition {
    TopicPartition::new("events", 0)
}

pub fn with_topic(log: &EmbeddedLog) -> TopicPartition {
    log.create_topic("events", TopicConfig::with_partitions(1))
        .expect("create");
    partition()
}

/// A batch of the given values, timestamps 1000, 1001, ..
pub fn batch(values: &[&str]) -> EncodedBatch {
    batch_from(values, None)
}

pub fn batch_from(values: &[&str], producer: Option<ProducerFields>) -> EncodedBatch {
    let mut builder = BatchBuilder::new();
    for (i, value) in (0i64..).zip(values) {
        builder.push(1_000 + i, Some(b"key"), Some(value.as_bytes()), &[]);
    }
    builder.finish(producer)
}

/// Producer fields of a batch inside a transaction.
pub fn transactional(producer: i64, epoch: i16, base_sequence: i32) -> Option<ProducerFields> {
    Some(ProducerFields {
        id: ProducerId(producer),
        epoch,
        base_sequence,
        transactional: true,
    })
}

/// Producer fields of a batch outside any transaction.
pub fn idempotent(producer: i64, epoch: i16, base_sequence: i32) -> Option<ProducerFields> {
    Some(ProducerFields {
        id: ProducerId(producer),
        epoch,
        base_sequence,
        transactional: false,
    })
}

/// All values from `from` on with their offsets, read in steps of `max_bytes`.
pub fn values(
    log: &EmbeddedLog,
    at: &TopicPartition,
    from: i64,
    isolation: Isolation,
    max_bytes: usize,
) -> Vec<(i64, String)> {
    try_values(log, at, from, isolation, max_bytes).expect("read")
}

pub fn try_values(
    log: &EmbeddedLog,
    at: &TopicPartition,
    from: i64,
    isolation: Isolation,
    max_bytes: usize,
) -> LogResult<Vec<(i64, String)>> {
    let mut values = Vec::new();
    let mut next = Offset(from);
    loop {
        let fetch = log.read(at, next, max_bytes, isolation)?;
        for batch in &fetch.batches {
            let records = batch.records()?;
            for record in &records {
                let record = record?;
                if record.offset >= next {
                    let value = record.value.expect("value");
                    values.push((
                        record.offset.0,
                        String::from_utf8(value.to_vec()).expect("text"),
                    ));
                }
            }
        }
        if fetch.next_offset == next {
            return Ok(values);
        }
        next = fetch.next_offset;
    }
}

/// All values that a read-committed reader sees.
pub fn committed(log: &EmbeddedLog, at: &TopicPartition) -> Vec<String> {
    values(log, at, 0, Isolation::ReadCommitted, 1 << 20)
        .into_iter()
        .map(|(_, value)| value)
        .collect()
}

/// A change of settings.
pub fn changed(settings: &[(&str, &str)]) -> TopicChange {
    let settings = settings
        .iter()
        .map(|(name, value)| ((*name).into(), Some((*value).into())));
    TopicChange {
        partitions: None,
        settings: settings.collect(),
    }
}
