//! JSON in text: read into a tree that keeps the order of keys and every digit, walked by a path, and written without blanks.
//!
//! Numbers stay text. Of equal keys in one object the last wins and the first keeps its place. Like Jackson's `readTree`, [`read`] stops behind the
//! first value and does not look at what follows.

mod path;
mod read;
mod write;

use std::borrow::Cow;

pub(crate) use path::Path;
pub(crate) use read::read;
pub(crate) use write::{write, write_string};

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json<'t> {
    /// `null`.
    Null,
    /// `true`, `false`.
    Boolean(bool),
    /// A number, as it was written.
    Number(&'t str),
    /// A string without its escapes.
    Text(Cow<'t, str>),
    /// An array.
    Array(Vec<Json<'t>>),
    /// An object.
    Object(Vec<(Cow<'t, str>, Json<'t>)>),
}

impl<'t> Json<'t> {
    /// The value of a key of an object.
    pub fn get(&self, key: &str) -> Option<&Json<'t>> {
        match self {
            Self::Object(fields) => fields
                .iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value),
            _ => None,
        }
    }
}

/// Puts a field into an object.
pub(crate) fn put<'t>(
    fields: &mut Vec<(Cow<'t, str>, Json<'t>)>,
    key: Cow<'t, str>,
    value: Json<'t>,
) {
    match fields.iter_mut().find(|(name, _)| *name == key) {
        Some(field) => field.1 = value,
        None => fields.push((key, value)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rewritten(text: &str) -> Option<String> {
        let json = read(text).ok()?;
        let mut out = String::new();
        write(&mut out, &json);
        Some(out)
    }

    #[test]
    fn order_digits_and_escapes_survive() {
        let cases = [
            (
                r#" { "b" : 1.2300 , "a":[true, null ,"x\u00e9\n\"/"] } tail"#,
                r#"{"b":1.2300,"a":[true,null,"xé\n\"/"]}"#,
            ),
            (r#""\ud83d\ude00""#, "\"😀\""),
            (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
            ("-0.5", "-0.5"),
            ("[]", "[]"),
            ("\"\\u0007\"", "\"\\u0007\""),
        ];
        for (text, expected) in cases {
            assert_eq!(rewritten(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_json() {
        for text in [
            "", " ", "abc", "{", "[1", "[1,]", "{\"a\"}", "{a:1}", "\"x", "01", "1.", "-", "+1",
            "\"\\x\"", "nul", "'a'",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(read(&"[".repeat(100_000)).is_err(), "nesting is bounded");
    }

    fn json_text() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            any::<bool>().prop_map(|value| value.to_string()),
            any::<i64>().prop_map(|value| value.to_string()),
            any::<String>().prop_map(|text| {
                let mut out = String::new();
                write_string(&mut out, &text);
                out
            }),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6)
                    .prop_map(|items| format!("[{}]", items.join(","))),
                prop::collection::btree_map("[a-z]{1,4}", inner, 0..6).prop_map(|fields| {
                    let fields: Vec<String> = fields
                        .iter()
                        .map(|(key, value)| format!("\"{key}\":{value}"))
                        .collect();
                    format!("{{{}}}", fields.join(","))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn compact_text_is_a_fixed_point(text in json_text()) {
            prop_assert_eq!(rewritten(&text), Some(text));
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>()) {
            let _ = read(&text);
        }
    }
}
