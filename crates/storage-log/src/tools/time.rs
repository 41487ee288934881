//! Times on the command line and in output.

use chrono::{DateTime, SecondsFormat};

use super::error::ToolError;

/// Milliseconds since the epoch from a number of them, or from a time as RFC 3339 has it.
pub(super) fn parse(argument: &'static str, text: &str) -> Result<i64, ToolError> {
    if let Ok(ms) = text.parse() {
        return Ok(ms);
    }
    DateTime::parse_from_rfc3339(text)
        .map(|time| time.timestamp_millis())
        .map_err(|_| ToolError::Argument {
            argument,
            value: text.into(),
            reason: "milliseconds since 1970, or a time like 2026-12-01T13:45:00Z".into(),
        })
}

/// A time for people; the number itself where there is no such date.
pub(super) fn show(ms: i64) -> String {
    DateTime::from_timestamp_millis(ms).map_or_else(
        || ms.to_string(),
        |time| time.to_rfc3339_opts(SecondsFormat::Millis, true),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_or_dates() {
        assert_eq!(parse("--from", "-5").expect("number"), -5);
        let ms = parse("--from", "2026-12-01T01:00:00+01:00").expect("date");
        assert_eq!(show(ms), "2026-12-01T00:00:00.000Z");
        assert!(parse("--from", "yesterday").is_err());
        assert_eq!(show(i64::MAX), i64::MAX.to_string());
    }
}
