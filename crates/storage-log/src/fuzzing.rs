//! What the fuzz targets run: each decoder of stored bytes, on any bytes. They check more than that nothing panics: what is taken comes back the same.
//!
//! The targets are in `fuzz/` (cargo-fuzz); `tests/log/mutations.rs` runs the same functions on mutations of the kept corpus.

use std::{ops::Range, path::Path};

use bytes::Bytes;

use crate::{
    BatchView, EncodedBatch,
    embedded::{
        compaction::CompactionState,
        index::{self, SegmentIndex},
        small_file::FileKind,
        snapshot,
    },
};

/// Offsets and times that look-ups are tried with.
const PROBES: [i64; 7] = [i64::MIN, -1, 0, 1, 1_000, 1 << 40, i64::MAX];

/// Where a batch has its length and its checksum, and from where on that counts.
const LENGTH: Range<usize> = 8..12;
const CRC: Range<usize> = 17..21;
const CHECKED_FROM: usize = 21;
/// The same of a snapshot.
const SNAPSHOT_CRC: Range<usize> = 2..6;
const SNAPSHOT_CHECKED_FROM: usize = 6;

/// Record batches, as they are read from a segment and as a client sends them. Bytes whose checksum is wrong are tried once more with the right one, or
/// nothing behind it would ever be reached.
pub fn batch(data: &[u8]) {
    decode_batch(data);
    if let Some(checked) = data.get(CHECKED_FROM..) {
        let mut sound = data.to_vec();
        sound[CRC].copy_from_slice(&crc32c::crc32c(checked).to_be_bytes());
        let length = u32::try_from(data.len() - LENGTH.end).unwrap_or(u32::MAX);
        sound[LENGTH].copy_from_slice(&length.to_be_bytes());
        decode_batch(&sound);
    }
}

fn decode_batch(data: &[u8]) {
    if let Ok(encoded) = EncodedBatch::from_bytes(data.to_vec()) {
        assert_eq!(encoded.as_bytes(), data, "what is taken is taken as it is");
    }
    let Ok(view) = BatchView::parse(Bytes::copy_from_slice(data)) else {
        return;
    };
    assert_eq!(view.as_bytes(), data);
    assert!(view.base_offset() <= view.last_offset());
    let _ = view.control();
    let Ok(records) = view.records() else { return };
    let mut whole = true;
    for record in &records {
        whole &= record.is_ok_and(|record| {
            assert!((view.base_offset()..=view.last_offset()).contains(&record.offset));
            record.to_record().is_ok()
        });
    }
    if whole {
        check_filter(&view);
    }
}

/// A batch that is taken apart and put together has the same records.
fn check_filter(view: &BatchView) {
    let Ok(filtered) = view.filter(|_| true) else {
        return;
    };
    let encoded = filtered.encode(None).unwrap_or_default();
    let again = BatchView::parse(Bytes::from(encoded)).map(|again| again.records());
    let (Ok(Ok(again)), Ok(records)) = (again, view.records()) else {
        panic!("a batch that was put together again cannot be read");
    };
    let pairs = records.iter().zip(again.iter());
    for (record, again) in pairs {
        let both = (
            record.and_then(|record| record.to_record()),
            again.and_then(|again| again.to_record()),
        );
        assert!(
            matches!(&both, (Ok(record), Ok(again)) if record == again),
            "{both:?}"
        );
    }
    assert_eq!(records.iter().count(), again.iter().count());
}

/// The indexes of a segment and the producers' snapshot.
pub fn index(data: &[u8]) {
    let half = data.len() / 2;
    for (offsets, times) in [
        (data, &[][..]),
        (&[][..], data),
        (&data[..half], &data[half..]),
    ] {
        if let Some(index) = SegmentIndex::decode(0, offsets, times) {
            assert_eq!(index.encode_offsets(), offsets);
            assert_eq!(index.encode_times(), times);
            for probe in PROBES {
                index.start_for(probe);
                index.offset_before_timestamp(probe);
            }
        }
    }
    if let Some(aborted) = index::decode_aborted(data) {
        assert_eq!(index::encode_aborted(&aborted), data);
    }
    decode_snapshot(data);
    if let Some(checked) = data.get(SNAPSHOT_CHECKED_FROM..) {
        let mut sound = data.to_vec();
        sound[SNAPSHOT_CRC].copy_from_slice(&crc32c::crc32c(checked).to_be_bytes());
        decode_snapshot(&sound);
    }
}

fn decode_snapshot(data: &[u8]) {
    if let Some(producers) = snapshot::decode(data) {
        // When a producer without a batch was last seen is not stored, so bytes are compared, not tables.
        let encoded = snapshot::encode(&producers);
        let again = snapshot::decode(&encoded).map(|again| snapshot::encode(&again));
        assert_eq!(again, Some(encoded));
    }
}

/// Manifests: the small files, with and without a valid frame.
pub fn manifest(data: &[u8]) {
    let path = Path::new("file");
    for name in [
        "highwater-topic",
        "highwater-seal",
        "highwater-log-start",
        "highwater-recovery-point",
        "highwater-compaction",
        "highwater-exchange",
    ] {
        let kind = FileKind { name, version: 1 };
        if let Ok(body) = kind.unframe(path, data) {
            assert_eq!(kind.frame(&body), data, "a frame has one form only");
        }
        let framed = kind.frame(data);
        assert!(matches!(kind.unframe(path, &framed), Ok(body) if body == data));
    }
    crate::embedded::decode_manifests(data);
    let _ = serde_json::from_slice::<CompactionState>(data);
}
