use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::log::{Offset, ProducerId};

const CODECS: [Compression; 5] = [
    Compression::None,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];

/// A record with everything: timestamp, key, value, headers.
type Sample = (
    i64,
    Option<Vec<u8>>,
    Option<Vec<u8>>,
    Vec<(String, Option<Vec<u8>>)>,
);

fn sample() -> impl Strategy<Value = Sample> {
    let bytes = || proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200));
    let headers = proptest::collection::vec(("[a-z]{0,8}", bytes()), 0..4);
    (any::<i64>(), bytes(), bytes(), headers)
}

fn encode(codec: Compression, samples: &[Sample]) -> EncodedBatch {
    let mut builder = BatchBuilder::with_compression(codec);
    for (timestamp, key, value, headers) in samples {
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_deref()))
            .collect();
        builder.push(*timestamp, key.as_deref(), value.as_deref(), &headers);
    }
    builder.finish(None)
}

/// Reads all that a batch holds, down to the headers.
fn read_all(bytes: Vec<u8>) -> crate::LogResult<Vec<Sample>> {
    let view = BatchView::parse(Bytes::from(bytes))?;
    let records = view.records()?;
    let mut all = Vec::new();
    for record in &records {
        let record = record?.to_record()?;
        let headers = record.headers.into_iter().map(|(name, value)| {
            (
                String::from_utf8_lossy(&name).into_owned(),
                value.map(|value| value.to_vec()),
            )
        });
        let [key, value] =
            [record.key, record.value].map(|bytes| bytes.map(|bytes| bytes.to_vec()));
        all.push((record.timestamp, key, value, headers.collect()));
    }
    Ok(all)
}

/// The batch with a checksum that fits whatever was changed in it.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

#[test]
fn a_batch_has_the_bytes_that_kafka_gives_it() {
    let mut builder = BatchBuilder::new();
    builder.push(1_000, Some(b"k"), Some(b"v"), &[("h", None)]);
    builder.push(1_001, None, Some(b""), &[]);
    let producer = ProducerFields {
        id: ProducerId(7),
        epoch: 3,
        base_sequence: 11,
        transactional: true,
    };
    let batch = builder.finish(Some(producer));
    #[rustfmt::skip]
    let expected: Vec<u8> = [
        &[0, 0, 0, 0, 0, 0, 0, 0][..],       // base offset
        &[0, 0, 0, 68],                      // length
        &[0, 0, 0, 0],                       // leader epoch
        &[2],                                // magic
        &batch.as_bytes()[17..21],           // checksum, see below
        &[0, 0b1_0000],                      // transactional
        &[0, 0, 0, 1],                       // last offset delta
        &[0, 0, 0, 0, 0, 0, 3, 0xe8],        // base timestamp
        &[0, 0, 0, 0, 0, 0, 3, 0xe9],        // largest timestamp
        &[0, 0, 0, 0, 0, 0, 0, 7],           // producer id
        &[0, 3],                             // producer epoch
        &[0, 0, 0, 11],                      // base sequence
        &[0, 0, 0, 2],                       // records
        &[22, 0, 0, 0, 2, b'k', 2, b'v', 2, 2, b'h', 1],
        &[12, 0, 2, 2, 1, 0, 0],
    ]
    .concat();
    assert_eq!(batch.as_bytes(), expected);
    let crc = crc32c::crc32c(&expected[21..]);
    assert_eq!(expected[17..21], crc.to_be_bytes());
}

#[test]
fn markers_are_those_of_kafka() {
    let marker = ControlMarker {
        kind: ControlKind::Commit,
        coordinator_epoch: 5,
    };
    let view = marker.encode(ProducerId(9), 2, 77).stamp(Offset(40));
    assert!(view.is_control() && view.is_transactional());
    assert_eq!(view.byte_len(), 78);
    let records = view.records().expect("records");
    let record = records.iter().next().expect("one").expect("valid");
    assert_eq!(
        (record.key, record.value),
        (Some(&[0, 0, 0, 1][..]), Some(&[0, 0, 0, 0, 0, 5][..]))
    );
    assert_eq!((record.offset, record.timestamp), (Offset(40), 77));
    assert_eq!(view.control().expect("marker"), Some(marker));
    assert!(
        EncodedBatch::from_bytes(view.as_bytes().to_vec()).is_err(),
        "clients may not write markers"
    );
}

#[test]
fn a_builder_can_be_used_again() {
    for codec in CODECS {
        let mut builder = BatchBuilder::with_compression(codec);
        for round in 0..3i64 {
            assert!(builder.is_empty());
            for i in 0..100 {
                builder.push(
                    round * 1_000 + i,
                    Some(b"the same key"),
                    Some(b"the same value"),
                    &[],
                );
            }
            assert_eq!(builder.len(), 100);
            let batch = builder.finish(None);
            assert_eq!(
                (batch.record_count(), batch.max_timestamp()),
                (100, round * 1_000 + 99)
            );
            assert_eq!(
                read_all(batch.as_bytes().to_vec()).expect("valid").len(),
                100,
                "{codec}"
            );
        }
    }
}

#[test]
fn what_does_not_compress_stays_as_it_is() {
    for codec in CODECS {
        let batch = encode(codec, &[(0, None, Some(vec![1, 2, 3]), Vec::new())]);
        let view = BatchView::parse(Bytes::copy_from_slice(batch.as_bytes())).expect("valid");
        assert_eq!(view.compression(), Compression::None);
    }
}

#[test]
fn bombs_are_stopped_at_the_limit() {
    let zeros = vec![0; 1 << 20];
    for codec in CODECS.into_iter().skip(1) {
        let mut compressed = Vec::new();
        codec.compress(&zeros, &mut compressed).expect("compress");
        assert_eq!(
            codec
                .decompress(&compressed, zeros.len())
                .expect("exactly the limit"),
            zeros,
            "{codec}"
        );
        let refused = codec.decompress(&compressed, zeros.len() - 1);
        assert!(
            matches!(refused, Err(BatchError::TooLarge { .. })),
            "{codec}: {refused:?}"
        );
    }
}

#[test]
fn snappy_without_framing_is_read_too() {
    let block = snap::raw::Encoder::new()
        .compress_vec(b"hello hello hello")
        .expect("compress");
    assert_eq!(
        Compression::Snappy
            .decompress(&block, 100)
            .expect("raw block"),
        b"hello hello hello"
    );
    // A block that says it holds 4 GiB.
    let lie = [0xff, 0xff, 0xff, 0xff, 0x0f, 0];
    assert!(matches!(
        Compression::Snappy.decompress(&lie, usize::MAX),
        Err(BatchError::Decompression { .. })
    ));
}

#[test]
fn wrong_counts_are_noticed() {
    let two = encode(
        Compression::None,
        &[(0, None, None, Vec::new()), (0, None, None, Vec::new())],
    );
    for count in [0u8, 1] {
        let mut bytes = two.as_bytes().to_vec();
        bytes[60] = count;
        let read = read_all(with_checksum(bytes));
        assert!(
            matches!(
                read,
                Err(crate::LogError::Batch(BatchError::RecordCount { .. }))
            ),
            "{count}: {read:?}"
        );
    }
    let mut bytes = two.as_bytes().to_vec();
    bytes[60] = 3;
    assert!(
        read_all(with_checksum(bytes)).is_err(),
        "more records than offsets"
    );
    let mut cut = two.as_bytes().to_vec();
    cut.pop();
    assert!(matches!(
        read_all(cut),
        Err(crate::LogError::Batch(BatchError::Truncated { .. }))
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn records_come_back(codec in 0..CODECS.len(), samples in proptest::collection::vec(sample(), 1..20)) {
        let batch = encode(CODECS[codec], &samples);
        prop_assert_eq!(batch.record_count(), samples.len());
        prop_assert_eq!(read_all(batch.as_bytes().to_vec()).expect("valid"), samples);
        EncodedBatch::from_bytes(batch.as_bytes().to_vec()).expect("valid to the last record");
    }

    /// Any change is noticed, except in the two fields outside the checksum that the log itself sets.
    #[test]
    fn flipped_bits_are_noticed(codec in 0..CODECS.len(), samples in proptest::collection::vec(sample(), 1..5), at in any::<prop::sample::Index>(), bit in 0..8) {
        let mut bytes = encode(CODECS[codec], &samples).as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= 1u8 << bit;
        if !(0..8).contains(&at) && !(12..16).contains(&at) {
            prop_assert!(BatchView::parse(Bytes::from(bytes)).is_err(), "byte {}", at);
        }
    }

    /// Hostile bytes under a checksum that fits: an error or some records, never a panic.
    #[test]
    fn hostile_batches_are_refused_or_read(
        codec in 0..CODECS.len(),
        samples in proptest::collection::vec(sample(), 1..5),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = encode(CODECS[codec], &samples).as_bytes().to_vec();
        for (at, value) in changes {
            // Offsets and length are left alone, or nothing would get past them.
            let at = 21 + at.index(bytes.len() - 21);
            bytes[at] = value;
        }
        let bytes = with_checksum(bytes);
        let _ = read_all(bytes.clone());
        let _ = EncodedBatch::from_bytes(bytes);
    }

    #[test]
    fn noise_is_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(BatchView::parse(Bytes::from(bytes)).is_err());
    }
}
