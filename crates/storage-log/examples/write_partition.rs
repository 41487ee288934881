//! Writes a small data folder with everything that segments can hold: all codecs, headers, tombstones, committed, aborted and open transactions.
//! Kafka's own tool must read it without a complaint:
//!
//! ```text
//! cargo run -p highwater-storage-log --example write_partition -- /tmp/sample
//! kafka-dump-log.sh --deep-iteration --print-data-log --files /tmp/sample/sample-0/00000000000000000000.log
//! kafka-dump-log.sh --files /tmp/sample/sample-0/00000000000000000000.index    # likewise .timeindex, .txnindex, .snapshot
//! ```

use std::path::Path;

use highwater_storage_log::{
    BatchBuilder, Compression, EmbeddedLog, Log, LogOptions, LogResult, Offset, ProducerFields,
    ProducerId, TopicConfig, TopicPartition,
};

const CODECS: [Compression; 5] = [
    Compression::None,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];

fn main() -> LogResult<()> {
    let Some(dir) = std::env::args().nth(1) else {
        eprintln!("usage: write_partition <folder>");
        std::process::exit(2);
    };
    let options = LogOptions {
        segment_bytes: 8_000,
        index_interval_bytes: 500,
        ..LogOptions::default()
    };
    let log = EmbeddedLog::open(Path::new(&dir), options)?;
    // The second topic is compacted in the end: gaps, batches with a part of their records or none, tombstones with a horizon.
    let mut compacted = TopicConfig::with_partitions(1);
    compacted
        .settings
        .insert("cleanup.policy".into(), "compact".into());
    log.create_topic("sample", TopicConfig::with_partitions(1))?;
    log.create_topic("compacted", compacted)?;
    for topic in ["sample", "compacted"] {
        fill(&log, &TopicPartition::new(topic, 0))?;
    }
    log.maintain()
}

fn fill(log: &EmbeddedLog, at: &TopicPartition) -> LogResult<()> {
    let mut sequences = [0; 3];
    let mut now = 1_700_000_000_000;
    for round in 0..60usize {
        let mut builder = BatchBuilder::with_compression(CODECS[round % CODECS.len()]);
        for i in 0..=round % 7 {
            now += 250;
            // Every fifth record is a late one.
            let timestamp = if i % 5 == 4 { now - 60_000 } else { now };
            let key = format!("key-{}", i % 3);
            let value =
                format!("value {i} of round {round}, with some words to compress, to compress");
            let value = (i % 6 != 5).then_some(value.as_bytes());
            builder.push(
                timestamp,
                Some(key.as_bytes()),
                value,
                &[("source", Some(b"sample")), ("empty", None)],
            );
        }
        let records = builder.len() as i32;
        let id = round % 4;
        let producer = (id < 3).then(|| ProducerFields {
            id: ProducerId(100 + id as i64),
            epoch: 0,
            base_sequence: sequences[id],
            transactional: id > 0,
        });
        log.append(at, builder.finish(producer))?;
        if id < 3 {
            sequences[id] += records;
        }
        if round % 8 == 6 {
            log.end_transaction(at, ProducerId(101), 0, true)?;
            log.end_transaction(at, ProducerId(102), 0, round % 16 == 6)?;
        }
    }
    log.sync(at, Offset(log.offsets(at)?.log_end.0))?;
    println!("{at}: {:?}", log.offsets(at)?);
    Ok(())
}
