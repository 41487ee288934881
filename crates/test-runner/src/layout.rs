//! How the records of one topic are written, and test values to bytes and back.
//!
//! A test file tells values as JSON; what stands in the topic is what the formats of the stream or table over it say. A DELIMITED value is one
//! text, a KAFKA value has its column's type, BYTES are base64.

use arrow::datatypes::{DataType, Field, Fields};
use base64::{Engine, prelude::BASE64_STANDARD};
use highwater_formats::windowed_key;
use highwater_planner::catalog::{FormatName, Relation, WINDOWEND, WINDOWSTART};

use crate::{case::Topic, json::Json, record::TestWindow};

/// Formats of a topic's records.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Of keys, without the window's bounds.
    pub key: Side,
    /// Of values.
    pub value: Side,
    windows: Option<Windows>,
}

#[derive(Debug, Clone, Copy)]
enum Windows {
    /// The key holds the start.
    OfSize(i64),
    /// The key holds both bounds.
    Sessions,
}

/// The format of keys or of values.
#[derive(Debug, Clone)]
pub struct Side {
    format: String,
    /// The type of the whole value; `None` when nothing is known of it.
    pub data_type: Option<DataType>,
}

impl Layout {
    /// As a stream or table says.
    pub fn of_relation(relation: &Relation) -> Self {
        let bound =
            |name: &str| relation.window.is_some() && matches!(name, WINDOWSTART | WINDOWEND);
        let columns = |key: bool| {
            relation
                .columns
                .iter()
                .filter(|column| column.headers.is_none())
                .filter(|column| column.key == key && !(key && bound(&column.name)))
                .map(|column| Field::new(&column.name, column.data_type.clone(), true))
                .collect::<Vec<_>>()
        };
        let (keys, values) = (columns(true), columns(false));
        // A key of one column is always bare, one of several never.
        let bare_key = keys.len() == 1;
        let bare_value = values.len() == 1 && relation.value_format.wrapped == Some(false);
        Self {
            key: Side::new(&relation.key_format, keys, bare_key),
            value: Side::new(&relation.value_format, values, bare_value),
            windows: relation
                .window
                .as_ref()
                .map(|window| match window.shape.size() {
                    Some(size) => {
                        Windows::OfSize(i64::try_from(size.as_millis()).unwrap_or(i64::MAX))
                    }
                    None => Windows::Sessions,
                }),
        }
    }

    /// As a case says of a topic that no stream or table is over.
    pub fn of_topic(topic: Option<&Topic>) -> Self {
        let side = |format: Option<&String>, default: &str| Side {
            format: format.map_or(default, String::as_str).to_uppercase(),
            data_type: None,
        };
        Self {
            key: side(topic.and_then(|topic| topic.key_format.as_ref()), "KAFKA"),
            value: side(topic.and_then(|topic| topic.value_format.as_ref()), "JSON"),
            windows: None,
        }
    }

    /// The bytes of a key.
    pub fn encode_key(
        &self,
        key: &Json,
        window: Option<TestWindow>,
    ) -> Result<Option<Vec<u8>>, String> {
        let Some(inner) = self.key.encode(key)? else {
            return Ok(None);
        };
        let Some(window) = window else {
            return Ok(Some(inner));
        };
        let mut bytes = Vec::with_capacity(inner.len() + 16);
        if window.session {
            windowed_key::encode_session_window(&inner, window.start, window.end, &mut bytes);
        } else {
            windowed_key::encode_time_window(&inner, window.start, &mut bytes);
        }
        Ok(Some(bytes))
    }

    /// What the bytes of a key say.
    pub fn decode_key(&self, bytes: Option<&[u8]>) -> (Json, Option<TestWindow>) {
        let Some(bytes) = bytes else {
            return (Json::Null, None);
        };
        let windowed = self.windows.and_then(|windows| match windows {
            Windows::OfSize(size) => windowed_key::decode_time_window(bytes)
                .map(|(inner, start)| (inner, start, start.saturating_add(size), false)),
            Windows::Sessions => windowed_key::decode_session_window(bytes)
                .map(|(inner, start, end)| (inner, start, end, true)),
        });
        let (inner, window) = match windowed {
            Some((inner, start, end, session)) => {
                let window = TestWindow {
                    start,
                    end,
                    session,
                };
                (inner, Some(window))
            }
            None => (bytes, None),
        };
        (self.key.decode(inner), window)
    }
}

impl Side {
    fn new(format: &FormatName, columns: Vec<Field>, bare: bool) -> Self {
        let data_type = match (bare || format.name == "KAFKA", columns.as_slice()) {
            (true, [column]) => Some(column.data_type().clone()),
            _ => Some(DataType::Struct(Fields::from(columns))),
        };
        Self {
            format: format.name.clone(),
            data_type,
        }
    }

    /// The bytes of a value; `None` for `null`.
    pub fn encode(&self, value: &Json) -> Result<Option<Vec<u8>>, String> {
        if *value == Json::Null {
            return Ok(None);
        }
        match self.format.as_str() {
            "JSON" => Ok(Some(value.to_string().into_bytes())),
            "KAFKA" => self.encode_kafka(value).map(Some),
            _ => Ok(Some(plain(value).into_bytes())),
        }
    }

    fn encode_kafka(&self, value: &Json) -> Result<Vec<u8>, String> {
        let text = plain(value);
        let misfit = || format!("{value} does not fit its KAFKA column");
        Ok(match &self.data_type {
            Some(DataType::Int32) => {
                let number: i32 = text.parse().map_err(|_| misfit())?;
                number.to_be_bytes().to_vec()
            }
            Some(DataType::Int64) => {
                let number: i64 = text.parse().map_err(|_| misfit())?;
                number.to_be_bytes().to_vec()
            }
            Some(DataType::Float64) => {
                let number: f64 = text.parse().map_err(|_| misfit())?;
                number.to_be_bytes().to_vec()
            }
            Some(DataType::Binary) => BASE64_STANDARD.decode(&text).map_err(|_| misfit())?,
            _ => text.into_bytes(),
        })
    }

    /// What the bytes of a value say. Bytes that are not of the format are shown as text.
    pub fn decode(&self, bytes: &[u8]) -> Json {
        let text = || Json::Text(String::from_utf8_lossy(bytes).into_owned());
        match self.format.as_str() {
            "JSON" => std::str::from_utf8(bytes)
                .ok()
                .and_then(|json| Json::parse(json).ok())
                .unwrap_or_else(text),
            "KAFKA" => self.decode_kafka(bytes).unwrap_or_else(text),
            _ => text(),
        }
    }

    fn decode_kafka(&self, bytes: &[u8]) -> Option<Json> {
        Some(match &self.data_type {
            Some(DataType::Int32) => {
                Json::from(i64::from(i32::from_be_bytes(bytes.try_into().ok()?)))
            }
            Some(DataType::Int64) => Json::from(i64::from_be_bytes(bytes.try_into().ok()?)),
            Some(DataType::Float64) => {
                Json::Number(f64::from_be_bytes(bytes.try_into().ok()?).to_string())
            }
            Some(DataType::Binary) => Json::Text(BASE64_STANDARD.encode(bytes)),
            _ => return None,
        })
    }
}

/// A value without the quotes of a text.
fn plain(value: &Json) -> String {
    match value {
        Json::Text(text) => text.clone(),
        other => other.to_string(),
    }
}
