//! Functions of text. Positions count characters, from 1.

use std::fmt::Write as _;

use arrow::{array::ArrayRef, datatypes::Int32Type};
use datafusion::common::Result;
use md5::{Digest, Md5};

use crate::{
    call::{Call, value},
    function::{Category, Function, Overload},
    scalar::{bytes::write_hex, substring},
    signature::{Kind, Param, param},
    step_clock,
};

pub(super) const TEXT: Param = param("text", Kind::Text, "the text");
pub(super) const BYTES: Param = param("bytes", Kind::Bytes, "the bytes");
const TEXTS: Param = param("texts", Kind::Text, "the texts; NULL counts as nothing");
const BYTE_PARTS: Param = param("bytes", Kind::Bytes, "the bytes; NULL counts as nothing");

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "chr",
        Category::String,
        "The character of a code point, given as a number or as the escape `\\uXXXX`.",
        &[
            Overload::new(&[param("code", Kind::Int, "a code point")], Kind::Text, chr_of_number),
            Overload::new(
                &[param("escape", Kind::Text, "one or more escapes `\\uXXXX`")],
                Kind::Text,
                chr_of_escape,
            ),
        ],
        &[("chr(72)", "'H'"), ("chr('\\u00e9')", "'é'")],
    )
    .ksql_only(),
    Function::new(
        "concat",
        Category::String,
        "Texts or bytes one behind the other.",
        &[
            Overload::new(&[TEXTS], Kind::Text, concat_texts).variadic(),
            Overload::new(&[BYTE_PARTS], Kind::Bytes, concat_bytes).variadic(),
        ],
        &[("concat('stream', NULL, 'line')", "'streamline'")],
    )
    .ksql_only(),
    Function::new(
        "concat_ws",
        Category::String,
        "Texts or bytes one behind the other with a separator between them; NULL ones are left out.",
        &[
            Overload::new(
                &[param("separator", Kind::Text, "what stands between; NULL gives NULL"), TEXTS],
                Kind::Text,
                join_texts,
            )
            .variadic(),
            Overload::new(
                &[param("separator", Kind::Bytes, "what stands between; NULL gives NULL"), BYTE_PARTS],
                Kind::Bytes,
                join_bytes,
            )
            .variadic(),
        ],
        &[("concat_ws('-', 'a', NULL, 'b')", "'a-b'")],
    )
    .ksql_only(),
    Function::new(
        "elt",
        Category::String,
        "The n-th of the texts; NULL when there is none.",
        &[Overload::new(
            &[param("n", Kind::Int, "its number, from 1"), param("texts", Kind::Text, "the texts")],
            Kind::Text,
            |call| {
                let (n, texts) = (call.int(0), call.texts_from(1));
                Ok(call.texts(|row| {
                    let n = value!(n.get(row));
                    let index = value!(usize::try_from(n).ok().and_then(|n| n.checked_sub(1)));
                    Ok(value!(texts.get(index)).get(row))
                }))
            },
        )
        .variadic()],
        &[("elt(2, 'low', 'high')", "'high'")],
    ),
    Function::new(
        "field",
        Category::String,
        "The number of the first of the texts that equals a text; 0 when none does or it is NULL.",
        &[Overload::new(
            &[param("text", Kind::Text, "what is looked for"), param("texts", Kind::Text, "the texts")],
            Kind::Int,
            |call| {
                let (wanted, texts) = (call.text(0), call.texts_from(1));
                Ok(call.numbers::<Int32Type>(|row| {
                    let found = wanted
                        .get(row)
                        .and_then(|wanted| texts.iter().position(|text| text.get(row) == Some(wanted)));
                    Ok(Some(found.map_or(0, |index| count(index + 1))))
                }))
            },
        )
        .variadic()],
        &[("field('high', 'low', 'high')", "2"), ("field(NULL, 'low')", "0")],
    ),
    Function::new(
        "initcap",
        Category::String,
        "Every word with an upper-case first letter and the others in lower case.",
        &[Overload::new(&[TEXT], Kind::Text, initcap)],
        &[("initcap('the QUICK fox')", "'The Quick Fox'")],
    )
    .ksql_only(),
    Function::new(
        "instr",
        Category::String,
        "Where a text stands in another, from 1; 0 when it does not. A position below zero searches backwards from there, counted from the end.",
        &[
            Overload::new(&[TEXT, SUBSTRING], Kind::Int, instr),
            Overload::new(&[TEXT, SUBSTRING, POSITION], Kind::Int, instr),
            Overload::new(
                &[TEXT, SUBSTRING, POSITION, param("occurrence", Kind::Int, "which one, from 1")],
                Kind::Int,
                instr,
            ),
        ],
        &[("instr('banana', 'an')", "2"), ("instr('banana', 'an', 3)", "4"), ("instr('banana', 'an', -1, 2)", "2")],
    )
    .ksql_only(),
    Function::new(
        "lcase",
        Category::String,
        "A text in lower case.",
        &[Overload::new(&[TEXT], Kind::Text, |call| {
            in_case(call, str::make_ascii_lowercase, str::to_lowercase)
        })],
        &[("lcase('ABC')", "'abc'")],
    ),
    Function::new(
        "ucase",
        Category::String,
        "A text in upper case.",
        &[Overload::new(&[TEXT], Kind::Text, |call| {
            in_case(call, str::make_ascii_uppercase, str::to_uppercase)
        })],
        &[("ucase('abc')", "'ABC'")],
    ),
    Function::new(
        "len",
        Category::String,
        "The number of characters of a text, or of bytes.",
        &[
            Overload::new(&[TEXT], Kind::Int, |call| {
                let text = call.text(0);
                Ok(call.numbers::<Int32Type>(|row| Ok(text.get(row).map(|text| count(text.chars().count())))))
            }),
            Overload::new(&[BYTES], Kind::Int, |call| {
                let bytes = call.bytes(0);
                Ok(call.numbers::<Int32Type>(|row| Ok(bytes.get(row).map(|bytes| count(bytes.len())))))
            }),
        ],
        &[("len('tea')", "3")],
    ),
    Function::new(
        "md5",
        Category::String,
        "The MD5 digest of a text, as hexadecimal digits.",
        &[Overload::new(&[TEXT], Kind::Text, |call| {
            let text = call.text(0);
            Ok(call.write_texts(|row, out| {
                write_hex(out, &Md5::digest(value!(text.get(row))), false);
                Ok(Some(()))
            }))
        })],
        &[("md5('tea')", "'7239ea2b5dc943f61f3c0a0276c20974'")],
    ),
    Function::new(
        "replace",
        Category::String,
        "A text with every occurrence of another replaced.",
        &[Overload::new(
            &[TEXT, param("from", Kind::Text, "what is replaced"), param("to", Kind::Text, "what takes its place")],
            Kind::Text,
            |call| {
                let (text, from, to) = (call.text(0), call.text(1), call.text(2));
                Ok(call.write_texts(|row, out| {
                    let (text, from, to) = (value!(text.get(row)), value!(from.get(row)), value!(to.get(row)));
                    let mut end = 0;
                    for (at, found) in text.match_indices(from) {
                        out.push_str(&text[end..at]);
                        out.push_str(to);
                        end = at + found.len();
                    }
                    out.push_str(&text[end..]);
                    Ok(Some(()))
                }))
            },
        )],
        &[("replace('a-b-c', '-', '+')", "'a+b+c'")],
    )
    .ksql_only(),
    Function::new(
        "substring",
        Category::String,
        "A part of a text or of bytes. A position below zero counts from the end.",
        &[
            Overload::new(&[TEXT, substring::POSITION], Kind::Text, substring::texts),
            Overload::new(&[TEXT, substring::POSITION, substring::LENGTH], Kind::Text, substring::texts),
            Overload::new(&[BYTES, substring::POSITION], Kind::Bytes, substring::bytes),
            Overload::new(&[BYTES, substring::POSITION, substring::LENGTH], Kind::Bytes, substring::bytes),
        ],
        &[("substring('stream', 3)", "'ream'"), ("substring('stream', -3, 2)", "'ea'")],
    )
    .ksql_only(),
    Function::new(
        "trim",
        Category::String,
        "A text without blanks and control characters at its ends.",
        &[Overload::new(&[TEXT], Kind::Text, |call| {
            let text = call.text(0);
            Ok(call.texts(|row| Ok(text.get(row).map(|text| text.trim_matches(|c: char| c <= ' ')))))
        })],
        &[("trim('  tea ')", "'tea'")],
    )
    .ksql_only(),
    Function::new(
        "uuid",
        Category::String,
        "A random UUID, or the UUID of 16 bytes.",
        &[
            Overload::new(&[], Kind::Text, |call| {
                Ok(call.write_texts(|_, out| {
                    write_uuid(out, &random_uuid());
                    Ok(Some(()))
                }))
            }),
            Overload::new(&[BYTES], Kind::Text, |call| {
                let bytes = call.bytes(0);
                Ok(call.write_texts(|row, out| {
                    let bytes = value!(bytes.get(row));
                    match <&[u8; 16]>::try_from(bytes) {
                        Ok(bytes) => write_uuid(out, bytes),
                        Err(_) => return Err(format!("a UUID has 16 bytes, not {}", bytes.len())),
                    }
                    Ok(Some(()))
                }))
            }),
        ],
        &[],
    )
    .ksql_only()
    .reading_step(),
];

const SUBSTRING: Param = param("part", Kind::Text, "what is looked for");
const POSITION: Param = param("position", Kind::Int, "where the search begins");

/// A count as INT; no text or array is longer.
pub(super) fn count(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

/// A text in one case: ASCII in place, anything else by Unicode's rules.
fn in_case(call: &Call, ascii: fn(&mut str), unicode: fn(&str) -> String) -> Result<ArrayRef> {
    let text = call.text(0);
    Ok(call.write_texts(|row, out| {
        let text = value!(text.get(row));
        if text.is_ascii() {
            out.push_str(text);
            ascii(out);
        } else {
            out.push_str(&unicode(text));
        }
        Ok(Some(()))
    }))
}

fn chr_of_number(call: &Call) -> Result<ArrayRef> {
    let code = call.int(0);
    Ok(call.write_texts(|row, out| {
        let code = value!(code.get(row));
        match u32::try_from(code).ok().and_then(char::from_u32) {
            Some(character) => out.push(character),
            None => return Err(format!("{code} is no code point of a character")),
        }
        Ok(Some(()))
    }))
}

/// Every `\uXXXX` becomes its character, two halves of a surrogate pair become one.
fn chr_of_escape(call: &Call) -> Result<ArrayRef> {
    let text = call.text(0);
    Ok(call.write_texts(|row, out| {
        let text = value!(text.get(row));
        let units = text
            .split("\\u")
            .skip(1)
            .map(|digits| match digits.len() {
                4 => u16::from_str_radix(digits, 16).ok(),
                _ => None,
            })
            .collect::<Option<Vec<u16>>>();
        match units {
            Some(units) if text.starts_with("\\u") => {
                for character in char::decode_utf16(units) {
                    out.push(
                        character.map_err(|_| format!("\"{text}\" has half a surrogate pair"))?,
                    );
                }
                Ok(Some(()))
            }
            _ => Ok(None),
        }
    }))
}

fn concat_texts(call: &Call) -> Result<ArrayRef> {
    let texts = call.texts_from(0);
    Ok(call.write_texts(|row, out| {
        texts
            .iter()
            .filter_map(|text| text.get(row))
            .for_each(|text| out.push_str(text));
        Ok(Some(()))
    }))
}

fn concat_bytes(call: &Call) -> Result<ArrayRef> {
    let parts: Vec<_> = (0..call.count())
        .map(|position| call.bytes(position))
        .collect();
    Ok(call.write_bytes(|row, out| {
        parts
            .iter()
            .filter_map(|part| part.get(row))
            .for_each(|part| out.extend_from_slice(part));
        Ok(Some(()))
    }))
}

fn join_texts(call: &Call) -> Result<ArrayRef> {
    let (separator, texts) = (call.text(0), call.texts_from(1));
    Ok(call.write_texts(|row, out| {
        let separator = value!(separator.get(row));
        for (index, text) in texts.iter().filter_map(|text| text.get(row)).enumerate() {
            if index > 0 {
                out.push_str(separator);
            }
            out.push_str(text);
        }
        Ok(Some(()))
    }))
}

fn join_bytes(call: &Call) -> Result<ArrayRef> {
    let separator = call.bytes(0);
    let parts: Vec<_> = (1..call.count())
        .map(|position| call.bytes(position))
        .collect();
    Ok(call.write_bytes(|row, out| {
        let separator = value!(separator.get(row));
        for (index, part) in parts.iter().filter_map(|part| part.get(row)).enumerate() {
            if index > 0 {
                out.extend_from_slice(separator);
            }
            out.extend_from_slice(part);
        }
        Ok(Some(()))
    }))
}

fn initcap(call: &Call) -> Result<ArrayRef> {
    let text = call.text(0);
    Ok(call.write_texts(|row, out| {
        let mut first = true;
        for character in value!(text.get(row)).chars() {
            if first {
                out.extend(character.to_uppercase());
            } else {
                out.extend(character.to_lowercase());
            }
            first = character.is_whitespace();
        }
        Ok(Some(()))
    }))
}

fn instr(call: &Call) -> Result<ArrayRef> {
    let (text, part) = (call.text(0), call.text(1));
    let optional = |position| (call.count() > position).then(|| call.int(position));
    let (position, occurrence) = (optional(2), optional(3));
    Ok(call.numbers::<Int32Type>(|row| {
        let (text, part) = (value!(text.get(row)), value!(part.get(row)));
        let position = match &position {
            Some(position) => value!(position.get(row)),
            None => 1,
        };
        let occurrence = match &occurrence {
            Some(occurrence) => value!(occurrence.get(row)),
            None => 1,
        };
        Ok(Some(find(text, part, position, occurrence)))
    }))
}

/// See `instr`.
fn find(text: &str, part: &str, position: i32, occurrence: i32) -> i32 {
    let Some(skipped) = usize::try_from(occurrence)
        .ok()
        .and_then(|n| n.checked_sub(1))
    else {
        return 0;
    };
    let length = count(text.chars().count());
    // Byte positions where the text may be, in the order of the search.
    let starts = text.char_indices().map(|(at, _)| at);
    let matches = |at: &usize| text[*at..].starts_with(part);
    let found = if position > 0 {
        let first = usize::try_from(position - 1).unwrap_or(0);
        starts.skip(first).filter(matches).nth(skipped)
    } else if position < 0 {
        let last = length.saturating_add(position);
        let Ok(last) = usize::try_from(last) else {
            return 0;
        };
        let candidates: Vec<usize> = starts.take(last + 1).collect();
        candidates.into_iter().rev().filter(matches).nth(skipped)
    } else {
        None
    };
    found.map_or(0, |at| count(text[..at].chars().count() + 1))
}

/// A version 4 UUID.
fn random_uuid() -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&step_clock::draw().to_be_bytes());
    bytes[8..].copy_from_slice(&step_clock::draw().to_be_bytes());
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    bytes
}

fn write_uuid(out: &mut String, bytes: &[u8; 16]) {
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_goes_both_ways() {
        assert_eq!(find("banana", "an", 1, 1), 2);
        assert_eq!(find("banana", "an", 1, 2), 4);
        assert_eq!(find("banana", "an", 5, 1), 0);
        assert_eq!(find("banana", "an", -1, 1), 4);
        assert_eq!(find("banana", "an", -4, 1), 2);
        assert_eq!(find("banana", "an", -20, 1), 0);
        assert_eq!(find("banana", "an", 0, 1), 0);
        assert_eq!(find("banana", "an", 1, 0), 0);
        assert_eq!(find("héhé", "é", -1, 2), 2);
    }
}
