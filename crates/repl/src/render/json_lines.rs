//! One JSON object a line. Values come from the server as text; the column's type says which of them are numbers, booleans or
//! JSON already.

use std::io::{self, Write};

use tokio_postgres::types::Type;

use super::{Row, RowWriter};

/// How a column's text becomes a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    /// A string.
    Text,
    /// A number, when it is finite.
    Number,
    /// `t` and `f`.
    Boolean,
    /// JSON text, taken as it is.
    Json,
}

impl ColumnKind {
    /// The kind of a PostgreSQL type.
    pub fn of(data_type: &Type) -> Self {
        match *data_type {
            Type::INT2
            | Type::INT4
            | Type::INT8
            | Type::FLOAT4
            | Type::FLOAT8
            | Type::NUMERIC
            | Type::OID => Self::Number,
            Type::BOOL => Self::Boolean,
            Type::JSON | Type::JSONB => Self::Json,
            _ => Self::Text,
        }
    }
}

/// Writes rows as JSON objects.
pub(super) struct JsonLines {
    columns: Vec<(String, ColumnKind)>,
}

impl JsonLines {
    /// Objects with these fields; a column without a kind is text.
    pub fn new(columns: Vec<String>, kinds: Vec<ColumnKind>) -> Self {
        let kinds = kinds.into_iter().chain(std::iter::repeat(ColumnKind::Text));
        Self {
            columns: columns.into_iter().zip(kinds).collect(),
        }
    }
}

impl RowWriter for JsonLines {
    fn begin(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
        for row in rows {
            let fields = self.columns.iter().zip(row).map(|((name, kind), value)| {
                format!(
                    "{}:{}",
                    json_string(name),
                    json_value(*kind, value.as_deref())
                )
            });
            writeln!(out, "{{{}}}", fields.collect::<Vec<_>>().join(","))?;
        }
        Ok(())
    }
}

fn json_value(kind: ColumnKind, value: Option<&str>) -> String {
    match (kind, value) {
        (_, None) => "null".to_owned(),
        (ColumnKind::Json, Some(text)) => text.to_owned(),
        (ColumnKind::Boolean, Some("t" | "true")) => "true".to_owned(),
        (ColumnKind::Boolean, Some("f" | "false")) => "false".to_owned(),
        (ColumnKind::Number, Some(text)) if is_json_number(text) => text.to_owned(),
        (_, Some(text)) => json_string(text),
    }
}

/// JSON's grammar of numbers: no NaN or Infinity, a digit on both sides of the point.
fn is_json_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let leading_zero =
        digits.starts_with('0') && digits[1..].starts_with(|c: char| c.is_ascii_digit());
    digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.ends_with(|c: char| c.is_ascii_digit())
        && !digits.contains(".e")
        && !leading_zero
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}

fn json_string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
