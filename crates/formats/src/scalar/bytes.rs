//! Bytes as base64 text: the standard alphabet with padding.

use base64::{Engine, engine::general_purpose::STANDARD};

/// Appends `bytes` as base64.
pub(crate) fn write(out: &mut Vec<u8>, bytes: &[u8]) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // The buffer has exactly the length that padded base64 takes, so encoding cannot run out of room.
    let written = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
    out.truncate(start + written);
}

/// Appends the bytes that base64 `text` stands for; `None` leaves a partial value behind.
pub(crate) fn parse(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    STANDARD.decode_vec(text, out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_both_ways() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"!", "IQ=="),
            (b"ab", "YWI="),
            (b"abc", "YWJj"),
            (&[0xff, 0xfe], "//4="),
        ] {
            let mut out = b"x".to_vec();
            write(&mut out, bytes);
            assert_eq!(out[1..], *text.as_bytes());
            let mut back = Vec::new();
            parse(text.as_bytes(), &mut back).unwrap();
            assert_eq!(back, bytes);
        }
        assert!(parse(b"IQ", &mut Vec::new()).is_none());
        assert!(parse(b"I?==", &mut Vec::new()).is_none());
    }
}
