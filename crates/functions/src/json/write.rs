//! A tree to text without blanks.

use std::fmt::Write as _;

use highwater_formats::java_text::write_big_decimal;

use super::Json;

/// Appends a value.
pub(crate) fn write(out: &mut String, json: &Json) {
    match json {
        Json::Null => out.push_str("null"),
        Json::Boolean(value) => out.push_str(if *value { "true" } else { "false" }),
        Json::Number(digits) => write_big_decimal(out, digits),
        Json::Text(text) => write_string(out, text),
        Json::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        Json::Object(fields) => {
            out.push('{');
            for (index, (key, value)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(out, key);
                out.push(':');
                write(out, value);
            }
            out.push('}');
        }
    }
}

/// Appends a string in quotes, with escapes where JSON wants them.
pub(crate) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04X}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
