//! Kafka's default partitioner, so that the embedded log and Kafka place every key alike.

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

#[cfg(test)]
mod tests {
    use super::*;

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
