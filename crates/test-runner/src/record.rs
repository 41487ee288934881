//! Records as test files write them.

use std::fmt;

use crate::json::Json;

/// A record that goes in, or is expected to come out, or came out.
#[derive(Debug, Clone, PartialEq)]
pub struct TestRecord {
    /// Topic name.
    pub topic: String,
    /// `null` for a record without a key.
    pub key: Json,
    /// `null` for a tombstone.
    pub value: Json,
    /// Milliseconds since the epoch; `None` in an expectation that does not care.
    pub timestamp: Option<i64>,
    /// The window of a windowed key.
    pub window: Option<TestWindow>,
    /// In order; `None` in an expectation that does not care.
    pub headers: Option<Vec<(String, Json)>>,
}

/// The window that stands in a record's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestWindow {
    /// First instant.
    pub start: i64,
    /// First instant behind it; the last record's time of a session.
    pub end: i64,
    /// A session, whose key holds both bounds.
    pub session: bool,
}

/// A record of a test file that lacks something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("record {number}: {reason}")]
pub struct RecordError {
    /// Its place in the list, from 1.
    pub number: usize,
    /// What is wrong.
    pub reason: String,
}

impl TestRecord {
    /// Reads the elements of `inputs` or `outputs`.
    pub fn list(list: &[Json]) -> Result<Vec<Self>, RecordError> {
        list.iter()
            .enumerate()
            .map(|(position, record)| {
                Self::parse(record).map_err(|reason| RecordError {
                    number: position + 1,
                    reason,
                })
            })
            .collect()
    }

    fn parse(record: &Json) -> Result<Self, String> {
        let topic = record
            .get("topic")
            .and_then(Json::as_text)
            .ok_or("it names no topic")?
            .to_owned();
        let field = |name| record.get(name).cloned().unwrap_or(Json::Null);
        let timestamp = match record.get("timestamp") {
            None => None,
            Some(time) => Some(time.as_i64().ok_or("its timestamp is not a whole number")?),
        };
        let window = match record.get("window") {
            None | Some(Json::Null) => None,
            Some(window) => Some(TestWindow::parse(window).ok_or("its window lacks a bound")?),
        };
        let headers = match record.get("headers") {
            None => None,
            Some(headers) => Some(parse_headers(headers).ok_or("its headers are not a list")?),
        };
        Ok(Self {
            topic,
            key: field("key"),
            value: field("value"),
            timestamp,
            window,
            headers,
        })
    }

    /// As a test file writes it.
    pub fn to_json(&self) -> Json {
        let mut fields = vec![
            ("topic".to_owned(), Json::from(self.topic.as_str())),
            ("key".to_owned(), self.key.clone()),
            ("value".to_owned(), self.value.clone()),
        ];
        if let Some(timestamp) = self.timestamp {
            fields.push(("timestamp".to_owned(), Json::from(timestamp)));
        }
        if let Some(window) = self.window {
            fields.push(("window".to_owned(), window.to_json()));
        }
        if let Some(headers) = self.headers.as_ref().filter(|headers| !headers.is_empty()) {
            let headers = headers
                .iter()
                .map(|(key, value)| {
                    Json::Object(vec![
                        ("KEY".to_owned(), Json::from(key.as_str())),
                        ("VALUE".to_owned(), value.clone()),
                    ])
                })
                .collect();
            fields.push(("headers".to_owned(), Json::Array(headers)));
        }
        Json::Object(fields)
    }
}

impl fmt::Display for TestRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.to_json())
    }
}

impl TestWindow {
    fn parse(window: &Json) -> Option<Self> {
        let kind = window.get("type").and_then(Json::as_text);
        Some(Self {
            start: window.get("start")?.as_i64()?,
            end: window.get("end")?.as_i64()?,
            session: kind.is_some_and(|kind| kind.eq_ignore_ascii_case("session")),
        })
    }

    fn to_json(self) -> Json {
        let kind = if self.session { "session" } else { "time" };
        Json::Object(vec![
            ("start".to_owned(), Json::from(self.start)),
            ("end".to_owned(), Json::from(self.end)),
            ("type".to_owned(), Json::from(kind)),
        ])
    }
}

fn parse_headers(headers: &Json) -> Option<Vec<(String, Json)>> {
    headers
        .as_array()?
        .iter()
        .map(|header| {
            let key = header.get("KEY")?.as_text()?.to_owned();
            Some((key, header.get("VALUE").cloned().unwrap_or(Json::Null)))
        })
        .collect()
}
