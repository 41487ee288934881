//! What commands print: lines for people, or JSON documents, one a line.

use std::{
    borrow::Cow,
    io::{self, BufWriter, StdoutLock, Write},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Serialize;
use serde_json::{Map, Value};

use super::error::ToolError;

/// Standard output, buffered. What is left in the buffer is lost unless [`Self::flush`] is called.
pub(super) struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    pub(super) fn new() -> Self {
        Self(BufWriter::with_capacity(64 << 10, io::stdout().lock()))
    }

    pub(super) fn line(&mut self, line: impl AsRef<str>) -> Result<(), ToolError> {
        self.bytes(line.as_ref().as_bytes())?;
        self.bytes(b"\n")
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Result<(), ToolError> {
        self.0.write_all(bytes).map_err(ToolError::output)
    }

    pub(super) fn json(&mut self, document: &impl Serialize) -> Result<(), ToolError> {
        serde_json::to_writer(&mut self.0, document)
            .map_err(|error| ToolError::output(error.into()))?;
        self.bytes(b"\n")
    }

    pub(super) fn flush(&mut self) -> Result<(), ToolError> {
        self.0.flush().map_err(ToolError::output)
    }
}

/// Adds bytes to a JSON object: as text under `name` if they are text, else in base 64 under `<name>_base64`.
pub(super) fn put_bytes(object: &mut Map<String, Value>, name: &str, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else {
        object.insert(name.into(), Value::Null);
        return;
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.into(), text.into()),
        Err(_) => object.insert(format!("{name}_base64"), STANDARD.encode(bytes).into()),
    };
}

/// The bytes that [`put_bytes`] has put there.
pub(super) fn take_bytes(
    object: &Map<String, Value>,
    name: &str,
) -> Result<Option<Vec<u8>>, String> {
    if let Some(encoded) = object.get(&format!("{name}_base64")) {
        let text = encoded
            .as_str()
            .ok_or(format!("\"{name}_base64\" is not a text"))?;
        let bytes = STANDARD
            .decode(text)
            .map_err(|error| format!("\"{name}_base64\": {error}"))?;
        return Ok(Some(bytes));
    }
    match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone().into_bytes())),
        // A document as a value is what people mean who write one there.
        Some(other) => Ok(Some(other.to_string().into_bytes())),
    }
}

/// Bytes for people: text as it is, anything else escaped.
pub(super) fn readable(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => text.into(),
        _ => bytes.escape_ascii().to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_json() {
        for bytes in [None, Some(&b"text"[..]), Some(&[0xff, 0]), Some(b"")] {
            let mut object = Map::new();
            put_bytes(&mut object, "key", bytes);
            assert_eq!(take_bytes(&object, "key").expect("valid").as_deref(), bytes);
        }
        let document: Map<_, _> = serde_json::from_str(r#"{"value":{"a":1}}"#).expect("JSON");
        assert_eq!(
            take_bytes(&document, "value").expect("valid").as_deref(),
            Some(&br#"{"a":1}"#[..])
        );
    }
}
