//! SPLIT and SPLIT_TO_MAP. Delimiters are taken as they are, never as patterns.

use std::{collections::HashMap, sync::Arc};

use arrow::array::{ArrayRef, BinaryBuilder, ListBuilder};
use datafusion::common::Result;

use crate::{
    call::{Call, Row, settle, value},
    function::{Category, Function, Overload},
    scalar::{
        array::element_field,
        json::{build_text_lists, build_text_maps},
        text::{BYTES, TEXT},
    },
    signature::{Kind, param},
};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "split",
        Category::String,
        "The parts of a text or of bytes between delimiters; with an empty delimiter, its characters.",
        &[
            Overload::new(
                &[
                    TEXT,
                    param("delimiter", Kind::Text, "what stands between the parts"),
                ],
                Kind::Array(&Kind::Text),
                |call| {
                    let (text, delimiter) = (call.text(0), call.text(1));
                    build_text_lists(call, |row| {
                        let (text, delimiter) = (value!(text.get(row)), value!(delimiter.get(row)));
                        Ok(Some(parts(text, delimiter)))
                    })
                },
            ),
            Overload::new(
                &[
                    BYTES,
                    param("delimiter", Kind::Bytes, "what stands between the parts"),
                ],
                Kind::Array(&Kind::Bytes),
                split_bytes,
            ),
        ],
        &[("split('a.b', '.')", "ARRAY['a', 'b']")],
    ),
    Function::new(
        "split_to_map",
        Category::String,
        "The entries of a text as a map; empty entries and entries without a value are left out.",
        &[Overload::new(
            &[
                TEXT,
                param(
                    "entry_delimiter",
                    Kind::Text,
                    "what stands between the entries",
                ),
                param(
                    "value_delimiter",
                    Kind::Text,
                    "what stands between key and value",
                ),
            ],
            Kind::Map(&Kind::Text, &Kind::Text),
            |call| {
                let (text, entry, value) = (call.text(0), call.text(1), call.text(2));
                build_text_maps(call, |row| {
                    let text = value!(text.get(row));
                    Ok(entries(
                        text,
                        value!(entry.get(row)),
                        value!(value.get(row)),
                    ))
                })
            },
        )],
        &[(
            "map_values(split_to_map('a=1;b=2', ';', '='))",
            "ARRAY['1', '2']",
        )],
    ),
];

fn parts<'t>(text: &'t str, delimiter: &str) -> Vec<&'t str> {
    if !delimiter.is_empty() {
        return text.split(delimiter).collect();
    }
    if text.is_empty() {
        return vec![text];
    }
    text.char_indices()
        .map(|(at, character)| &text[at..at + character.len_utf8()])
        .collect()
}

/// Key and value of each entry, in the order of the text; `None` for an empty delimiter.
fn entries<'t>(
    text: &'t str,
    entry_delimiter: &str,
    value_delimiter: &str,
) -> Option<Vec<(&'t str, &'t str)>> {
    if entry_delimiter.is_empty() || value_delimiter.is_empty() {
        return None;
    }
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut found: Vec<(&str, &str)> = Vec::new();
    for entry in text
        .split(entry_delimiter)
        .filter(|entry| !entry.is_empty())
    {
        let mut parts = entry.split(value_delimiter);
        if let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            match places.get(key) {
                Some(place) => found[*place].1 = value,
                None => {
                    places.insert(key, found.len());
                    found.push((key, value));
                }
            }
        }
    }
    Some(found)
}

fn split_bytes(call: &Call) -> Result<ArrayRef> {
    let (bytes, delimiter) = (call.bytes(0), call.bytes(1));
    let mut builder =
        ListBuilder::new(BinaryBuilder::new()).with_field(element_field(call.return_type())?);
    for row in 0..call.rows() {
        let parts = || -> Row<Vec<&[u8]>> {
            let (bytes, delimiter) = (value!(bytes.get(row)), value!(delimiter.get(row)));
            Ok(Some(byte_parts(bytes, delimiter)))
        };
        match settle(parts()) {
            Some(parts) => {
                parts
                    .iter()
                    .for_each(|part| builder.values().append_value(part));
                builder.append(true);
            }
            None => builder.append(false),
        }
    }
    Ok(Arc::new(builder.finish()))
}

fn byte_parts<'b>(bytes: &'b [u8], delimiter: &[u8]) -> Vec<&'b [u8]> {
    if bytes.is_empty() {
        return vec![bytes];
    }
    if delimiter.is_empty() {
        return bytes.chunks(1).collect();
    }
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while at + delimiter.len() <= bytes.len() {
        if bytes[at..].starts_with(delimiter) {
            parts.push(&bytes[start..at]);
            at += delimiter.len();
            start = at;
        } else {
            at += 1;
        }
    }
    parts.push(&bytes[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_between_delimiters() {
        assert_eq!(parts("..a..", "."), ["", "", "a", "", ""]);
        assert_eq!(parts("", "."), [""]);
        assert_eq!(parts("aé", ""), ["a", "é"]);
        assert_eq!(byte_parts(b"..a", b"."), [&b""[..], b"", b"a"]);
        assert_eq!(byte_parts(b"xyxyx", b"yx"), [&b"x"[..], b"", b""]);
        assert_eq!(byte_parts(b"ab", b""), [&b"a"[..], b"b"]);
    }
}
