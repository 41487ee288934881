//! Iterating over the records of a batch, borrowed from its (decompressed) bytes: nothing is allocated per record.

use bytes::Bytes;

use super::{BatchError, header::BatchHeader, varint::Reader};
use crate::{
    error::LogResult,
    log::{Offset, Record},
};

/// The smallest record: length, attributes, two deltas, null key, null value, no headers.
const MIN_RECORD_BYTES: usize = 7;

/// The records of one batch, decompressed.
#[derive(Debug, Clone)]
pub struct Records {
    header: BatchHeader,
    bytes: Bytes,
}

impl Records {
    pub(super) fn new(header: BatchHeader, bytes: Bytes) -> Self {
        Self { header, bytes }
    }

    /// Iterates in offset order. After an error the iteration ends.
    pub fn iter(&self) -> RecordIter<'_> {
        RecordIter {
            records: self,
            reader: Reader::new(&self.bytes),
            index: 0,
            expected: usize::try_from(self.header.record_count).unwrap_or(0),
            next_delta: 0,
        }
    }

    /// Number of records the header speaks of.
    pub fn len(&self) -> usize {
        usize::try_from(self.header.record_count).unwrap_or(0)
    }

    /// The encoded records.
    pub(super) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// There is none (compaction leaves such batches).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a> IntoIterator for &'a Records {
    type Item = LogResult<RecordRef<'a>>;
    type IntoIter = RecordIter<'a>;

    fn into_iter(self) -> RecordIter<'a> {
        self.iter()
    }
}

/// Iterator of [`Records::iter`].
#[derive(Debug)]
pub struct RecordIter<'a> {
    records: &'a Records,
    reader: Reader<'a>,
    index: usize,
    expected: usize,
    next_delta: i32,
}

impl<'a> RecordIter<'a> {
    /// Where in the encoded records the next one begins.
    pub(super) fn position(&self) -> usize {
        self.records.bytes.len() - self.reader.remaining()
    }

    fn decode(&mut self) -> Result<RecordRef<'a>, BatchError> {
        let header = &self.records.header;
        let index = self.index;
        let malformed = |part| move || BatchError::Record { index, part };

        let len = self
            .reader
            .varint()
            .and_then(|len| usize::try_from(len).ok())
            .ok_or_else(malformed("length"))?;
        let mut body = Reader::new(self.reader.take(len).ok_or_else(malformed("length"))?);
        body.byte().ok_or_else(malformed("attributes"))?;
        let timestamp_delta = body.varlong().ok_or_else(malformed("timestamp"))?;
        let offset_delta = body
            .varint()
            .filter(|delta| (self.next_delta..=header.last_offset_delta).contains(delta))
            .ok_or_else(malformed("offset"))?;
        let key = body.nullable().ok_or_else(malformed("key"))?;
        let value = body.nullable().ok_or_else(malformed("value"))?;
        let header_count = body
            .varint()
            .and_then(|count| usize::try_from(count).ok())
            .ok_or_else(malformed("header count"))?;
        // A header takes two bytes at least, so the count is bounded by what is there.
        if header_count > body.remaining() / 2 || (header_count == 0 && !body.is_empty()) {
            return Err(malformed("header count")());
        }
        self.next_delta = offset_delta + 1;
        let timestamp = if header.is_log_append_time() {
            header.max_timestamp
        } else {
            header.base_timestamp.wrapping_add(timestamp_delta)
        };
        Ok(RecordRef {
            offset: Offset(header.base_offset + i64::from(offset_delta)),
            timestamp,
            key,
            value,
            headers: Headers {
                reader: body,
                left: header_count,
                index,
            },
            source: &self.records.bytes,
        })
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = LogResult<RecordRef<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.index == self.expected {
            let whole = self.reader.is_empty();
            self.reader = Reader::new(&[]);
            return (!whole).then(|| {
                Err(BatchError::RecordCount {
                    expected: self.expected,
                }
                .into())
            });
        }
        let record = if self.reader.is_empty() {
            Err(BatchError::RecordCount {
                expected: self.expected,
            })
        } else {
            self.decode()
        };
        match &record {
            Ok(_) => self.index += 1,
            Err(_) => {
                self.index = self.expected;
                self.reader = Reader::new(&[]);
            }
        }
        Some(record.map_err(Into::into))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // The count comes from outside; what is there bounds it, one more for an error.
        let possible = self.reader.remaining() / MIN_RECORD_BYTES + 1;
        (0, Some((self.expected - self.index).min(possible) + 1))
    }
}

/// A record borrowed from its batch.
#[derive(Debug, Clone)]
pub struct RecordRef<'a> {
    /// Position in the partition.
    pub offset: Offset,
    /// Milliseconds since the epoch.
    pub timestamp: i64,
    /// Key bytes.
    pub key: Option<&'a [u8]>,
    /// Value bytes; `None` is a tombstone.
    pub value: Option<&'a [u8]>,
    headers: Headers<'a>,
    source: &'a Bytes,
}

impl<'a> RecordRef<'a> {
    /// The headers in order, decoded as they are asked for.
    pub fn headers(&self) -> Headers<'a> {
        self.headers.clone()
    }

    /// An owned record that shares the batch's bytes. Fails when its headers are malformed.
    pub fn to_record(&self) -> LogResult<Record> {
        let share = |bytes: &[u8]| self.source.slice_ref(bytes);
        let headers = self
            .headers()
            .map(|header| header.map(|(name, value)| (share(name), value.map(share))))
            .collect::<LogResult<Vec<_>>>()?;
        Ok(Record {
            offset: self.offset,
            timestamp: self.timestamp,
            key: self.key.map(share),
            value: self.value.map(share),
            headers,
        })
    }
}

/// Iterator of [`RecordRef::headers`]: name and value. After an error the iteration ends.
#[derive(Debug, Clone)]
pub struct Headers<'a> {
    reader: Reader<'a>,
    left: usize,
    index: usize,
}

impl<'a> Iterator for Headers<'a> {
    type Item = LogResult<(&'a [u8], Option<&'a [u8]>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let header = self
            .reader
            .nullable()
            .flatten()
            .and_then(|name| Some((name, self.reader.nullable()?)))
            .filter(|_| self.left > 0 || self.reader.is_empty());
        if header.is_none() {
            self.left = 0;
        }
        Some(header.ok_or_else(|| {
            BatchError::Record {
                index: self.index,
                part: "header",
            }
            .into()
        }))
    }
}
