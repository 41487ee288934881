//! What a topic's settings change about a batch on its way into the log: its codec (`compression.type`) and its time (`message.timestamp.type`).

use super::{
    EncodedBatch,
    compression::{Compression, MAX_UNCOMPRESSED_BYTES},
    header::HEADER_BYTES,
};
use crate::error::{LogError, LogResult};

impl EncodedBatch {
    /// The same records under another codec. As in the builder, a batch that compression would not make smaller is left uncompressed.
    pub(crate) fn with_compression(self, codec: Compression) -> LogResult<Self> {
        let current = self.header().codec().unwrap_or_default();
        if current == codec {
            return Ok(self);
        }
        let mut header = *self.header();
        let stored = &self.as_bytes()[HEADER_BYTES..];
        let records = current.decompress(stored, MAX_UNCOMPRESSED_BYTES)?;
        let mut bytes = vec![0; HEADER_BYTES];
        codec
            .compress(&records, &mut bytes)
            .map_err(LogError::io(|| {
                format!("compress a batch with codec {codec}")
            }))?;
        if codec == Compression::None || bytes.len() - HEADER_BYTES < records.len() {
            header.set_codec(codec);
        } else {
            header.set_codec(Compression::None);
            bytes.truncate(HEADER_BYTES);
            bytes.extend_from_slice(&records);
        }
        Ok(Self::seal(header, bytes))
    }

    /// The same records with `now_ms` as the time of each.
    pub(crate) fn with_append_time(self, now_ms: i64) -> Self {
        let (mut header, bytes) = self.into_parts();
        header.set_log_append_time(now_ms);
        Self::seal(header, bytes)
    }
}
