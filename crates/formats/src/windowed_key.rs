//! Keys of windowed tables: the key's own bytes, then where the window lies.
//!
//! | window | layout |
//! |---|---|
//! | by time (tumbling, hopping) | key, start: 8 bytes big endian |
//! | session | key, end: 8 bytes big endian, start: 8 bytes big endian |
//!
//! Bounds are milliseconds since the epoch. A record that is shorter than its bounds is not a windowed key.

/// Bytes of one bound.
const BOUND_LEN: usize = size_of::<i64>();

/// Appends a time window's key to `out`.
pub fn encode_time_window(key: &[u8], start: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(key);
    out.extend_from_slice(&start.to_be_bytes());
}

/// Splits a time window's key into key and start.
pub fn decode_time_window(bytes: &[u8]) -> Option<(&[u8], i64)> {
    split_bound(bytes)
}

/// Appends a session window's key to `out`.
pub fn encode_session_window(key: &[u8], start: i64, end: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(key);
    out.extend_from_slice(&end.to_be_bytes());
    out.extend_from_slice(&start.to_be_bytes());
}

/// Splits a session window's key into key, start and end.
pub fn decode_session_window(bytes: &[u8]) -> Option<(&[u8], i64, i64)> {
    let (rest, start) = split_bound(bytes)?;
    let (key, end) = split_bound(rest)?;
    Some((key, start, end))
}

fn split_bound(bytes: &[u8]) -> Option<(&[u8], i64)> {
    let at = bytes.len().checked_sub(BOUND_LEN)?;
    let (key, bound) = bytes.split_at(at);
    Some((key, i64::from_be_bytes(bound.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts() {
        let mut out = Vec::new();
        encode_time_window(b"k", 0x0102, &mut out);
        assert_eq!(out, b"k\0\0\0\0\0\0\x01\x02");
        assert_eq!(decode_time_window(&out), Some((&b"k"[..], 0x0102)));

        out.clear();
        encode_session_window(b"", -1, 5, &mut out);
        assert_eq!(
            out,
            [
                0, 0, 0, 0, 0, 0, 0, 5, 255, 255, 255, 255, 255, 255, 255, 255
            ]
        );
        assert_eq!(decode_session_window(&out), Some((&b""[..], -1, 5)));
    }

    #[test]
    fn short_keys_are_refused() {
        assert_eq!(decode_time_window(b"1234567"), None);
        assert_eq!(decode_session_window(b"123456789012345"), None);
    }
}
