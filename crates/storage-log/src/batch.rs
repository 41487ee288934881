//! Kafka's record batch, format v2: the one unit on disk, in replication and on the wire.
//!
//! | at | bytes | field | in CRC |
//! |---|---|---|---|
//! | 0 | 8 | base offset | no: the log stamps it in place |
//! | 8 | 4 | length of all that follows this field | no |
//! | 12 | 4 | partition leader epoch | no |
//! | 16 | 1 | magic, always 2 | no |
//! | 17 | 4 | CRC-32C of all that follows this field | - |
//! | 21 | 2 | attributes: codec (bits 0-2), log append time (3), transactional (4), control (5), delete horizon (6) | yes |
//! | 23 | 4 | last offset delta | yes |
//! | 27 | 8 | base timestamp | yes |
//! | 35 | 8 | largest timestamp | yes |
//! | 43 | 8 | producer id, -1 without | yes |
//! | 51 | 2 | producer epoch | yes |
//! | 53 | 4 | base sequence | yes |
//! | 57 | 4 | number of records | yes |
//! | 61 | | records, compressed as a whole | yes |
//!
//! All numbers of the header are big-endian. A record is `length, attributes (1 byte), timestamp delta, offset delta, key length, key, value
//! length, value, header count, headers`, where every number but the attributes is a zigzag varint and length -1 is null.
//!
//! Bytes are never trusted: decoding checks every length against what is there before it allocates or slices, bounds what a compressed
//! batch may expand to, and answers with a [`BatchError`].

mod builder;
mod compression;
mod control;
mod filter;
mod header;
mod on_append;
mod record;
mod varint;
mod view;

use std::io;

pub use builder::{BatchBuilder, EncodedBatch};
pub use compression::{Compression, MAX_UNCOMPRESSED_BYTES};
pub use control::{ControlKind, ControlMarker};
pub use header::ProducerFields;
pub(crate) use header::{BatchHeader, HEADER_BYTES, next_sequence, stamp};
pub use record::{Headers, RecordIter, RecordRef, Records};
pub use view::BatchView;

/// Why bytes are not a valid record batch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// Fewer bytes than the header, or than the header says.
    #[error("record batch is cut short: {have} of {need} bytes")]
    Truncated {
        /// What is there.
        have: usize,
        /// What is needed.
        need: usize,
    },
    /// Bytes follow the batch where just one was expected.
    #[error("{extra} bytes follow the record batch")]
    TrailingBytes {
        /// How many.
        extra: usize,
    },
    /// An older format, or no batch at all.
    #[error("record batch has magic {found}, only 2 is supported")]
    Magic {
        /// What was found.
        found: i8,
    },
    /// Checksum mismatch.
    #[error("record batch has checksum {stored:08x}, its bytes have {computed:08x}")]
    Checksum {
        /// What the header says.
        stored: u32,
        /// What the bytes give.
        computed: u32,
    },
    /// A header field has a value it cannot have.
    #[error("record batch has {field} {value}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        value: i64,
    },
    /// The codec refused the compressed records.
    #[error("{codec} records cannot be decompressed")]
    Decompression {
        /// The codec.
        codec: Compression,
        /// Its answer.
        #[source]
        source: io::Error,
    },
    /// The records would expand beyond the limit.
    #[error("{codec} records expand to more than {limit} bytes")]
    TooLarge {
        /// The codec.
        codec: Compression,
        /// The limit.
        limit: usize,
    },
    /// A record is malformed.
    #[error("record {index} of the batch has a malformed {part}")]
    Record {
        /// Its number in the batch, from 0.
        index: usize,
        /// Which part.
        part: &'static str,
    },
    /// There are fewer or more records than the header says.
    #[error("record batch does not hold the {expected} records that it says")]
    RecordCount {
        /// What the header says.
        expected: usize,
    },
}

#[cfg(test)]
mod tests;
