//! Text to bytes and back, and numbers in bytes.
//!
//! Encodings are `hex`, `utf8`, `ascii` and `base64`, in any case. What an encoding cannot hold is replaced, as Java does: `?` in bytes, U+FFFD in
//! text.

use std::fmt::Write as _;

use arrow::{
    array::{ArrayRef, ArrowPrimitiveType},
    datatypes::{Float64Type, Int32Type, Int64Type},
};
use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use crate::{
    call::{Call, value},
    function::{Category, Function, Overload},
    scalar::text::{BYTES, TEXT},
    signature::{Kind, Param, param},
};

/// Writes padding and does without it when reading.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

const ENCODING: Param = param("encoding", Kind::Text, "'hex', 'utf8', 'ascii' or 'base64'");
const ORDER: Param = param(
    "order",
    Kind::Text,
    "'BIG_ENDIAN' (also without it) or 'LITTLE_ENDIAN'",
);

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "to_bytes",
        Category::Bytes,
        "The bytes that a text stands for in an encoding.",
        &[Overload::new(&[TEXT, ENCODING], Kind::Bytes, |call| {
            let (text, encoding) = (call.text(0), call.text(1));
            Ok(call.write_bytes(|row, out| {
                let text = value!(text.get(row));
                *out = Encoding::named(value!(encoding.get(row)))?.bytes_of(text)?;
                Ok(Some(()))
            }))
        })],
        &[("from_bytes(to_bytes('4a4b', 'hex'), 'utf8')", "'JK'")],
    ),
    Function::new(
        "from_bytes",
        Category::Bytes,
        "Bytes as text in an encoding.",
        &[Overload::new(&[BYTES, ENCODING], Kind::Text, |call| {
            let (bytes, encoding) = (call.bytes(0), call.text(1));
            Ok(call.write_texts(|row, out| {
                let bytes = value!(bytes.get(row));
                Encoding::named(value!(encoding.get(row)))?.write_text(out, bytes, true);
                Ok(Some(()))
            }))
        })],
        &[("from_bytes(to_bytes('JK', 'utf8'), 'hex')", "'4A4B'")],
    ),
    Function::new(
        "encode",
        Category::String,
        "A text in one encoding as a text in another.",
        &[Overload::new(
            &[
                TEXT,
                param(
                    "from",
                    Kind::Text,
                    "the encoding it has: 'hex', 'utf8', 'ascii' or 'base64'",
                ),
                param("to", Kind::Text, "the encoding it gets"),
            ],
            Kind::Text,
            |call| {
                let (text, from, to) = (call.text(0), call.text(1), call.text(2));
                Ok(call.write_texts(|row, out| {
                    let text = value!(text.get(row));
                    let from = Encoding::named(value!(from.get(row)))?;
                    let to = Encoding::named(value!(to.get(row)))?;
                    if from == to {
                        out.push_str(text);
                    } else {
                        to.write_text(out, &from.bytes_of(text)?, false);
                    }
                    Ok(Some(()))
                }))
            },
        )],
        &[
            ("encode('JK', 'utf8', 'hex')", "'4a4b'"),
            ("encode('0x4A4B', 'hex', 'base64')", "'Sks='"),
        ],
    )
    .ksql_only(),
    Function::new(
        "int_from_bytes",
        Category::Bytes,
        "The INT in four bytes.",
        &[
            Overload::new(&[BYTES], Kind::Int, |call| {
                Ok(numbers::<Int32Type, 4>(call, i32::from_be_bytes))
            }),
            Overload::new(&[BYTES, ORDER], Kind::Int, |call| {
                Ok(numbers::<Int32Type, 4>(call, i32::from_be_bytes))
            }),
        ],
        &[("int_from_bytes(to_bytes('00000102', 'hex'))", "258")],
    ),
    Function::new(
        "bigint_from_bytes",
        Category::Bytes,
        "The BIGINT in eight bytes.",
        &[
            Overload::new(&[BYTES], Kind::BigInt, |call| {
                Ok(numbers::<Int64Type, 8>(call, i64::from_be_bytes))
            }),
            Overload::new(&[BYTES, ORDER], Kind::BigInt, |call| {
                Ok(numbers::<Int64Type, 8>(call, i64::from_be_bytes))
            }),
        ],
        &[(
            "bigint_from_bytes(to_bytes('0201000000000000', 'hex'), 'LITTLE_ENDIAN')",
            "258",
        )],
    ),
    Function::new(
        "double_from_bytes",
        Category::Bytes,
        "The DOUBLE in eight bytes.",
        &[
            Overload::new(&[BYTES], Kind::Double, |call| {
                Ok(numbers::<Float64Type, 8>(call, f64::from_be_bytes))
            }),
            Overload::new(&[BYTES, ORDER], Kind::Double, |call| {
                Ok(numbers::<Float64Type, 8>(call, f64::from_be_bytes))
            }),
        ],
        &[(
            "double_from_bytes(to_bytes('3FF8000000000000', 'hex'))",
            "1.5e0",
        )],
    ),
];

/// How bytes are written as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Hex,
    Utf8,
    Ascii,
    Base64,
}

impl Encoding {
    fn named(name: &str) -> Result<Self, String> {
        let encodings = [
            ("hex", Self::Hex),
            ("utf8", Self::Utf8),
            ("ascii", Self::Ascii),
            ("base64", Self::Base64),
        ];
        encodings
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, encoding)| *encoding)
            .ok_or_else(|| format!("\"{name}\" is no encoding: use hex, utf8, ascii or base64"))
    }

    fn bytes_of(self, text: &str) -> Result<Vec<u8>, String> {
        match self {
            Self::Hex => hex_bytes(text),
            Self::Utf8 => Ok(text.as_bytes().to_vec()),
            Self::Ascii => Ok(text
                .chars()
                .map(|character| match character.is_ascii() {
                    true => character as u8,
                    false => b'?',
                })
                .collect()),
            Self::Base64 => BASE64
                .decode(text)
                .map_err(|error| format!("no base64 text: {error}")),
        }
    }

    fn write_text(self, out: &mut String, bytes: &[u8], upper_hex: bool) {
        match self {
            Self::Hex => write_hex(out, bytes, upper_hex),
            Self::Utf8 => out.push_str(&String::from_utf8_lossy(bytes)),
            Self::Ascii => out.extend(bytes.iter().map(|byte| match byte.is_ascii() {
                true => char::from(*byte),
                false => char::REPLACEMENT_CHARACTER,
            })),
            Self::Base64 => BASE64.encode_string(bytes, out),
        }
    }
}

/// Reads hexadecimal digits: bare, as `0x..` (where a leading zero may be missing) or as `x'..'`.
fn hex_bytes(text: &str) -> Result<Vec<u8>, String> {
    let quoted = text
        .strip_prefix("x'")
        .or_else(|| text.strip_prefix("X'"))
        .and_then(|rest| rest.strip_suffix('\''));
    let (digits, pad) = match (quoted, text.strip_prefix("0x")) {
        (Some(digits), _) => (digits, false),
        (None, Some(digits)) => (digits, digits.len() % 2 == 1),
        (None, None) => (text, false),
    };
    let padded = if pad {
        format!("0{digits}")
    } else {
        digits.to_owned()
    };
    if padded.len() % 2 == 1 {
        return Err("an odd number of hexadecimal digits".to_owned());
    }
    padded
        .as_bytes()
        .chunks(2)
        .map(|pair| {
            let digit = |byte: u8| {
                char::from(byte)
                    .to_digit(16)
                    .and_then(|digit| u8::try_from(digit).ok())
            };
            match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => Ok(high << 4 | low),
                _ => Err(format!("\"{text}\" is not hexadecimal")),
            }
        })
        .collect()
}

/// Appends bytes as hexadecimal digits.
pub(super) fn write_hex(out: &mut String, bytes: &[u8], upper: bool) {
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = match upper {
            true => write!(out, "{byte:02X}"),
            false => write!(out, "{byte:02x}"),
        };
    }
}

fn numbers<T: ArrowPrimitiveType, const N: usize>(
    call: &Call,
    from_big_endian: impl Fn([u8; N]) -> T::Native,
) -> ArrayRef {
    let bytes = call.bytes(0);
    let order = (call.count() > 1).then(|| call.text(1));
    call.numbers::<T>(|row| {
        let bytes = value!(bytes.get(row));
        let little = match &order {
            None => false,
            Some(order) => is_little(value!(order.get(row)))?,
        };
        let mut number = <[u8; N]>::try_from(bytes)
            .map_err(|_| format!("the number has {N} bytes, not {}", bytes.len()))?;
        if little {
            number.reverse();
        }
        Ok(Some(from_big_endian(number)))
    })
}

fn is_little(order: &str) -> Result<bool, String> {
    if order.eq_ignore_ascii_case("LITTLE_ENDIAN") {
        Ok(true)
    } else if order.eq_ignore_ascii_case("BIG_ENDIAN") {
        Ok(false)
    } else {
        Err(format!(
            "\"{order}\" is no byte order: use BIG_ENDIAN or LITTLE_ENDIAN"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_in_three_spellings() {
        assert_eq!(hex_bytes("4a4B"), Ok(vec![0x4a, 0x4b]));
        assert_eq!(hex_bytes("0xa4b"), Ok(vec![0x0a, 0x4b]));
        assert_eq!(hex_bytes("X'4a'"), Ok(vec![0x4a]));
        assert_eq!(hex_bytes("x''"), Ok(vec![]));
        for bad in ["a4b", "x'a'", "x'4a", "0x0x", "zz", "é"] {
            assert!(hex_bytes(bad).is_err(), "{bad}");
        }
    }
}
