//! What a client is told when a statement fails, as one line that a case can match.

use std::fmt;

use tokio_postgres::error::ErrorPosition;

/// A failed statement. It prints as `SQLSTATE at POSITION: message; detail: ..; hint: ..`, leaving out what the server did not send.
#[derive(Debug, Clone)]
pub struct WireError {
    code: Option<String>,
    line: String,
}

impl WireError {
    /// A failure on the client's side: a lost connection, an answer that breaks the protocol, a wrong directive.
    pub fn client(message: impl Into<String>) -> Self {
        Self {
            code: None,
            line: message.into(),
        }
    }

    /// The SQLSTATE, when the server answered with an error.
    pub fn code(&self) -> Option<&str> {
        self.code.as_deref()
    }
}

impl From<tokio_postgres::Error> for WireError {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else {
            return Self::client(format!("no answer from the server: {error}"));
        };
        let mut line = db.code().code().to_owned();
        if let Some(ErrorPosition::Original(position)) = db.position() {
            line.push_str(&format!(" at {position}"));
        }
        line.push_str(": ");
        line.push_str(db.message());
        if let Some(detail) = db.detail() {
            line.push_str(&format!("; detail: {detail}"));
        }
        if let Some(hint) = db.hint() {
            line.push_str(&format!("; hint: {hint}"));
        }
        Self {
            code: Some(db.code().code().to_owned()),
            line,
        }
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl std::error::Error for WireError {}
