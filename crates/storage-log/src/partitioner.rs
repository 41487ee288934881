//! Kafka's default partitioner, so that the embedded log and Kafka place every key alike.

use crate::log::PartitionId;

/// MurmurHash2 (32 bits) exactly as Kafka's `Utils.murmur2`: fixed seed, little-endian blocks, wrapping arithmetic.
pub fn murmur2(key: &[u8]) -> i32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    const R: u32 = 24;

    // Kafka hashes the length as a Java int; keys of 4 GiB do not exist.
    let mut hash = SEED ^ key.len() as u32;
    let (blocks, tail) = key.as_chunks::<4>();
    for block in blocks {
        let mut k = u32::from_le_bytes(*block).wrapping_mul(M);
        k ^= k >> R;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (i, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * i);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^= hash >> 15;
    hash.cast_signed()
}

/// Partition of a key among `partitions`, which must not be 0.
pub fn partition_for_key(key: &[u8], partitions: u32) -> u32 {
    debug_assert!(partitions > 0, "a topic has at least one partition");
    (murmur2(key).cast_unsigned() & 0x7fff_ffff) % partitions.max(1)
}

/// Bytes of records without a key that go to one partition before it is the next one's turn: Kafka's default batch size, so that batches fill.
const STICKY_BYTES: usize = 16 * 1024;

/// Chooses partitions as Kafka's producer does: by key, and without one the same partition for a batch's worth of records, then the next.
#[derive(Debug, Clone)]
pub struct Partitioner {
    partitions: u32,
    current: u32,
    bytes: usize,
}

impl Partitioner {
    /// Chooses among that many partitions, which must not be 0.
    pub fn new(partitions: u32) -> Self {
        debug_assert!(partitions > 0, "a topic has at least one partition");
        Self {
            partitions: partitions.max(1),
            current: 0,
            bytes: 0,
        }
    }

    /// Where a record of that key and size goes.
    pub fn partition(&mut self, key: Option<&[u8]>, record_bytes: usize) -> PartitionId {
        let partition = match key {
            Some(key) => partition_for_key(key, self.partitions),
            None => {
                if self.bytes >= STICKY_BYTES {
                    self.current = (self.current + 1) % self.partitions;
                    self.bytes = 0;
                }
                self.bytes += record_bytes;
                self.current
            }
        };
        PartitionId(partition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_without_a_key_stick_to_a_partition_for_a_batch() {
        let mut partitioner = Partitioner::new(3);
        let of_key = partitioner.partition(Some(b"foobar"), 1_000_000);
        assert_eq!(of_key.0, partition_for_key(b"foobar", 3));
        let placed: Vec<_> = (0..70)
            .map(|_| partitioner.partition(None, 1024).0)
            .collect();
        let runs: Vec<_> = placed
            .chunk_by(|a, b| a == b)
            .map(|run| (run[0], run.len()))
            .collect();
        assert_eq!(runs, [(0, 16), (1, 16), (2, 16), (0, 16), (1, 6)]);
    }

    #[test]
    fn hashes_are_those_of_kafka() {
        let vectors: [(&[u8], i32); 6] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (
                b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8",
                -58_897_971,
            ),
            (b"abc", 479_470_107),
        ];
        for (key, hash) in vectors {
            assert_eq!(murmur2(key), hash, "{}", String::from_utf8_lossy(key));
        }
    }

    #[test]
    fn partitions_are_in_range_and_all_used() {
        let mut seen = [0; 7];
        for i in 0..1_000 {
            seen[partition_for_key(format!("key-{i}").as_bytes(), 7) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| n > 50), "{seen:?}");
    }
}
