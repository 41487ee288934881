//! Nested JSON as the text of a STRING column.
//!
//! An array becomes `[a, b]`, each element as it would be in a STRING column; an object becomes compact JSON with its names sorted, so that equal
//! objects give equal text. No result is longer than twice its source.

use crate::scalar::decimal;

use super::{
    cursor::{Cursor, Read},
    encode::write_string,
};

/// Appends the text of the value at the cursor.
pub(super) fn append_value(cursor: &mut Cursor<'_>, out: &mut Vec<u8>, depth: usize) -> Read<()> {
    match cursor.peek() {
        b'[' => {
            out.push(b'[');
            let mut first = true;
            cursor.array(depth, |cursor, depth| {
                if !std::mem::take(&mut first) {
                    out.extend_from_slice(b", ");
                }
                append_value(cursor, out, depth)
            })?;
            out.push(b']');
            Ok(())
        }
        b'"' => cursor.string()?.append_to(out),
        _ => append_json(cursor, out, depth),
    }
}

/// Appends the value at the cursor as compact JSON.
fn append_json(cursor: &mut Cursor<'_>, out: &mut Vec<u8>, depth: usize) -> Read<()> {
    match cursor.peek() {
        b'{' => append_object(cursor, out, depth),
        b'[' => {
            out.push(b'[');
            let mut first = true;
            cursor.array(depth, |cursor, depth| {
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                append_json(cursor, out, depth)
            })?;
            out.push(b']');
            Ok(())
        }
        b'"' => {
            let mut text = Vec::new();
            cursor.string()?.append_to(&mut text)?;
            write_string(out, &text);
            Ok(())
        }
        b'-' | b'0'..=b'9' => {
            decimal::write_big_decimal_text(out, cursor.number()?);
            Ok(())
        }
        _ => {
            // Only the three literals are left; they stand for themselves.
            let start = cursor.pos;
            cursor.skip_value(depth)?;
            out.extend_from_slice(&cursor.bytes[start..cursor.pos]);
            Ok(())
        }
    }
}

fn append_object(cursor: &mut Cursor<'_>, out: &mut Vec<u8>, depth: usize) -> Read<()> {
    let start = cursor.pos;
    // Values are written one behind the other, then put in the order of their names.
    let mut values = Vec::new();
    let mut fields: Vec<(Vec<u8>, std::ops::Range<usize>)> = Vec::new();
    cursor.object(
        depth,
        |cursor| {
            let mut name = Vec::new();
            cursor.string()?.append_to(&mut name)?;
            Ok(name)
        },
        |cursor, name, depth| {
            let from = values.len();
            append_json(cursor, &mut values, depth)?;
            fields.push((name, from..values.len()));
            Ok(())
        },
    )?;
    fields.sort_by(|left, right| left.0.cmp(&right.0));
    if fields.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(cursor.fault_at(start, "an object with the same field twice"));
    }
    out.push(b'{');
    for (index, (name, value)) in fields.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(out, &name);
        out.push(b':');
        out.extend_from_slice(&values[value]);
    }
    out.push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> String {
        let mut out = Vec::new();
        let mut cursor = Cursor::new(json.as_bytes());
        append_value(&mut cursor, &mut out, 0).unwrap();
        cursor.end().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nested_values_as_text() {
        for (json, expected) in [
            ("[]", "[]"),
            (r#"["not","a", 1, null]"#, "[not, a, 1, null]"),
            (r#"[[1,2],["x"]]"#, "[[1, 2], [x]]"),
            (
                r#"{ "b" : 1.50, "a" : [ "x", {"d":true,"c":"q\"\n"} ] }"#,
                r#"{"a":["x",{"c":"q\"\n","d":true}],"b":1.50}"#,
            ),
            (r#"[{"b":1,"a":1e5}]"#, r#"[{"a":1E+5,"b":1}]"#),
            ("{}", "{}"),
        ] {
            assert_eq!(text(json), expected, "{json}");
        }
    }

    #[test]
    fn a_repeated_field_is_a_fault() {
        let mut cursor = Cursor::new(br#"{"a":1,"a":2}"#);
        assert!(append_value(&mut cursor, &mut Vec::new(), 0).is_err());
    }
}
