//! The four codecs in the framings that Kafka's Java client reads and writes.
//!
//! gzip is one member; snappy is the block framing of the Java library (not the official frame format); lz4 is the standard frame with
//! independent 64 KiB blocks, because Java's reader takes no linked ones; zstd is one frame.
//!
//! Decompression never produces more than [`MAX_UNCOMPRESSED_BYTES`], whatever a length field says.

use std::{
    fmt,
    io::{self, Read, Write},
};

use super::BatchError;

/// What the records of one batch may expand to: eight times the largest batch that is taken by default. Hostile input cannot take more.
pub const MAX_UNCOMPRESSED_BYTES: usize = 128 << 20;

/// Block size of Java's snappy framing.
const SNAPPY_BLOCK: usize = 32 * 1024;
const SNAPPY_MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
/// Magic, then "version" and "oldest compatible version" as big-endian 32-bit numbers, both 1.
const SNAPPY_HEADER_BYTES: usize = 16;

/// How the records of a batch are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Compression {
    /// As they are.
    #[default]
    None,
    /// gzip.
    Gzip,
    /// snappy in the framing of the Java library.
    Snappy,
    /// lz4 frame.
    Lz4,
    /// zstd.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "uncompressed",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        })
    }
}

impl Compression {
    pub(super) fn id(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    pub(super) fn from_id(id: i16) -> Option<Self> {
        [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd]
            .into_iter()
            .find(|codec| codec.id() == id)
    }

    /// Appends the compressed form of `records` to `out`.
    pub(super) fn compress(self, records: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Self::None => out.extend_from_slice(records),
            Self::Gzip => {
                let mut encoder =
                    flate2::write::GzEncoder::new(out, flate2::Compression::default());
                encoder.write_all(records)?;
                encoder.finish()?;
            }
            Self::Snappy => compress_snappy(records, out)?,
            Self::Lz4 => {
                let info = lz4_flex::frame::FrameInfo::new()
                    .block_mode(lz4_flex::frame::BlockMode::Independent)
                    .block_size(lz4_flex::frame::BlockSize::Max64KB);
                let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, out);
                encoder.write_all(records)?;
                encoder.finish().map_err(io::Error::other)?;
            }
            Self::Zstd => {
                let mut encoder = zstd::stream::Encoder::new(out, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                encoder.write_all(records)?;
                encoder.finish()?;
            }
        }
        Ok(())
    }

    /// Decompresses records that expand to at most `limit` bytes.
    pub(super) fn decompress(self, compressed: &[u8], limit: usize) -> Result<Vec<u8>, BatchError> {
        let failed = |source| BatchError::from((self, source));
        match self {
            Self::None => Ok(compressed.to_vec()),
            Self::Gzip => self.read_bounded(
                flate2::read::MultiGzDecoder::new(compressed),
                compressed.len(),
                limit,
            ),
            Self::Snappy => self.decompress_snappy(compressed, limit),
            Self::Lz4 => self.read_bounded(
                lz4_flex::frame::FrameDecoder::new(compressed),
                compressed.len(),
                limit,
            ),
            Self::Zstd => {
                let decoder = zstd::stream::Decoder::with_buffer(compressed).map_err(failed)?;
                self.read_bounded(decoder, compressed.len(), limit)
            }
        }
    }

    fn read_bounded(
        self,
        reader: impl Read,
        compressed_len: usize,
        limit: usize,
    ) -> Result<Vec<u8>, BatchError> {
        let mut out = Vec::with_capacity(compressed_len.saturating_mul(3).min(limit).min(1 << 20));
        // One byte more than allowed tells "exactly the limit" from "beyond it".
        let read = reader
            .take(limit as u64 + 1)
            .read_to_end(&mut out)
            .map_err(|source| BatchError::from((self, source)))?;
        if read > limit {
            return Err(BatchError::TooLarge { codec: self, limit });
        }
        Ok(out)
    }

    fn decompress_snappy(self, compressed: &[u8], limit: usize) -> Result<Vec<u8>, BatchError> {
        let mut out = Vec::new();
        let Some(mut rest) = compressed.strip_prefix(&SNAPPY_MAGIC) else {
            // Some clients write one raw block without any framing.
            self.append_snappy_block(compressed, &mut out, limit)?;
            return Ok(out);
        };
        rest = rest
            .get(SNAPPY_HEADER_BYTES - SNAPPY_MAGIC.len()..)
            .ok_or_else(|| self.malformed("framing header is cut short"))?;
        while !rest.is_empty() {
            let (len, after) = rest
                .split_first_chunk::<4>()
                .ok_or_else(|| self.malformed("block length is cut short"))?;
            let len = u32::from_be_bytes(*len) as usize;
            let (block, after) = after
                .split_at_checked(len)
                .ok_or_else(|| self.malformed("block is cut short"))?;
            self.append_snappy_block(block, &mut out, limit)?;
            rest = after;
        }
        Ok(out)
    }

    fn append_snappy_block(
        self,
        block: &[u8],
        out: &mut Vec<u8>,
        limit: usize,
    ) -> Result<(), BatchError> {
        let failed = |source: snap::Error| BatchError::from((self, io::Error::other(source)));
        let len = snap::raw::decompress_len(block).map_err(failed)?;
        if len > limit - out.len() {
            return Err(BatchError::TooLarge { codec: self, limit });
        }
        // A snappy block expands at most about 22 times; a length beyond that is a lie not worth the allocation.
        if len > block.len().saturating_mul(32) {
            return Err(self.malformed("block length is impossible"));
        }
        let start = out.len();
        out.resize(start + len, 0);
        let written = snap::raw::Decoder::new()
            .decompress(block, &mut out[start..])
            .map_err(failed)?;
        out.truncate(start + written);
        Ok(())
    }

    fn malformed(self, what: &'static str) -> BatchError {
        BatchError::from((self, io::Error::new(io::ErrorKind::InvalidData, what)))
    }
}

fn compress_snappy(records: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    out.extend_from_slice(&SNAPPY_MAGIC);
    out.extend_from_slice(&1i32.to_be_bytes());
    out.extend_from_slice(&1i32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    let mut block = vec![0; snap::raw::max_compress_len(SNAPPY_BLOCK.min(records.len()))];
    for chunk in records.chunks(SNAPPY_BLOCK) {
        let len = encoder
            .compress(chunk, &mut block)
            .map_err(io::Error::other)?;
        // A block of 32 KiB compresses to less than 40 KiB, so the length fits.
        out.extend_from_slice(&(len as u32).to_be_bytes());
        out.extend_from_slice(&block[..len]);
    }
    Ok(())
}
