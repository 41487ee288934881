//! Producers as they were at some offset, in the format of Kafka's `.snapshot` files.
//!
//! Version (i16, 1), CRC-32C of all that follows (u32), number of entries (i32), then per producer: id (i64), epoch (i16), last sequence (i32), last
//! offset (i64), offsets in the last batch minus one (i32), timestamp (i64), coordinator epoch (i32), first offset of its open transaction or -1 (i64).
//!
//! A snapshot spares recovery the older segments; it is never the truth. One that is missing or damaged is passed over for an older one, at worst
//! for a scan of all that is stored.

use std::{collections::VecDeque, path::Path};

use crate::{
    disk::Disk,
    embedded::{layout::SegmentFile, small_file},
    error::LogResult,
    producer::{BatchPosition, ProducerEntry, ProducerTable},
};

const VERSION: i16 = 1;
const HEADER_BYTES: usize = 10;
const CRC_AT: usize = 2;
const ENTRY_BYTES: usize = 46;

/// Writes the snapshot of a partition at `offset`. The caller syncs the folder.
pub(crate) fn write(
    disk: &dyn Disk,
    dir: &Path,
    offset: i64,
    producers: &ProducerTable,
) -> LogResult<()> {
    small_file::replace(
        disk,
        &SegmentFile::Snapshot.path(dir, offset),
        &encode(producers),
    )
}

/// Reads a snapshot. `None` when there is none that can be trusted.
pub(crate) fn read(disk: &dyn Disk, dir: &Path, offset: i64) -> LogResult<Option<ProducerTable>> {
    let path = SegmentFile::Snapshot.path(dir, offset);
    let Some(bytes) = small_file::read_whole(disk, &path)? else {
        return Ok(None);
    };
    let producers = decode(&bytes);
    if producers.is_none() {
        tracing::warn!(path = %path.display(), "producer snapshot is damaged, producers are read from the log");
    }
    Ok(producers)
}

/// A snapshot's bytes.
pub(crate) fn encode(producers: &ProducerTable) -> Vec<u8> {
    let mut entries: Vec<_> = producers.iter().collect();
    entries.sort_unstable_by_key(|(id, _)| *id);
    let mut out = Vec::with_capacity(HEADER_BYTES + entries.len() * ENTRY_BYTES);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&[0; 4]);
    // A partition remembers some thousand producers.
    out.extend_from_slice(&(entries.len() as i32).to_be_bytes());
    for (id, entry) in entries {
        let last = entry.recent.back();
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&entry.epoch.to_be_bytes());
        out.extend_from_slice(&entry.last_sequence().to_be_bytes());
        out.extend_from_slice(&last.map_or(-1, |batch| batch.last_offset).to_be_bytes());
        out.extend_from_slice(&last.map_or(0, BatchPosition::offset_delta).to_be_bytes());
        out.extend_from_slice(&entry.last_timestamp.to_be_bytes());
        out.extend_from_slice(&entry.coordinator_epoch.to_be_bytes());
        out.extend_from_slice(&entry.open_transaction.unwrap_or(-1).to_be_bytes());
    }
    let crc = crc32c::crc32c(&out[CRC_AT + 4..]);
    out[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
    out
}

/// The producers in a snapshot's bytes; `None` when they are damaged.
pub(crate) fn decode(bytes: &[u8]) -> Option<ProducerTable> {
    let (version, rest) = bytes.split_first_chunk::<2>()?;
    let (crc, checked) = rest.split_first_chunk::<4>()?;
    let (count, entries) = checked.split_first_chunk::<4>()?;
    if i16::from_be_bytes(*version) != VERSION
        || u32::from_be_bytes(*crc) != crc32c::crc32c(checked)
    {
        return None;
    }
    let (entries, rest) = entries.as_chunks::<ENTRY_BYTES>();
    if !rest.is_empty() || i32::from_be_bytes(*count) as usize != entries.len() {
        return None;
    }
    let mut table = ProducerTable::default();
    for entry in entries {
        let (id, entry) = decode_entry(entry)?;
        table.insert(id, entry);
    }
    Some(table)
}

fn decode_entry(bytes: &[u8]) -> Option<(i64, ProducerEntry)> {
    let (id, bytes) = bytes.split_first_chunk::<8>()?;
    let (epoch, bytes) = bytes.split_first_chunk::<2>()?;
    let (last_sequence, bytes) = bytes.split_first_chunk::<4>()?;
    let (last_offset, bytes) = bytes.split_first_chunk::<8>()?;
    let (offset_delta, bytes) = bytes.split_first_chunk::<4>()?;
    let (timestamp, bytes) = bytes.split_first_chunk::<8>()?;
    let (coordinator_epoch, bytes) = bytes.split_first_chunk::<4>()?;
    let (first_open, _) = bytes.split_first_chunk::<8>()?;
    let last_sequence = i32::from_be_bytes(*last_sequence);
    let last_offset = i64::from_be_bytes(*last_offset);
    let offset_delta = i32::from_be_bytes(*offset_delta);
    let first_open = i64::from_be_bytes(*first_open);
    let has_batch = last_sequence >= 0;
    if has_batch && !(0..=last_offset).contains(&i64::from(offset_delta)) {
        return None;
    }
    let recent = has_batch
        .then(|| BatchPosition::ending_at(last_sequence, last_offset, offset_delta))
        .into_iter()
        .collect::<VecDeque<_>>();
    let entry = ProducerEntry {
        epoch: i16::from_be_bytes(*epoch),
        recent,
        open_transaction: (first_open >= 0).then_some(first_open),
        coordinator_epoch: i32::from_be_bytes(*coordinator_epoch),
        last_timestamp: i64::from_be_bytes(*timestamp),
        last_seen: last_offset,
    };
    Some((i64::from_be_bytes(*id), entry))
}
