//! SUBSTRING of text and bytes.
//!
//! The position is 1 for the first character; 0 means the same, below zero it counts from the end. What lies outside of the text is left out.

use arrow::array::ArrayRef;
use datafusion::common::Result;

use crate::{
    call::{Call, value},
    signature::{Kind, Param, param},
};

pub(super) const POSITION: Param = param(
    "position",
    Kind::Int,
    "where the part begins, from 1; from the end when below zero",
);
pub(super) const LENGTH: Param = param("length", Kind::Int, "its length; up to the end without it");

/// SUBSTRING of text.
pub(super) fn texts(call: &Call) -> Result<ArrayRef> {
    let (text, position) = (call.text(0), call.int(1));
    let length = (call.count() > 2).then(|| call.int(2));
    Ok(call.texts(|row| {
        let (text, position) = (value!(text.get(row)), value!(position.get(row)));
        let length = match &length {
            Some(length) => Some(value!(length.get(row))),
            None => None,
        };
        if text.is_ascii() {
            let (start, end) = bounds(text.len(), position, length);
            return Ok(Some(&text[start..end]));
        }
        let (start, end) = bounds(text.chars().count(), position, length);
        let byte = |index: usize| {
            text.char_indices()
                .nth(index)
                .map_or(text.len(), |(at, _)| at)
        };
        Ok(Some(&text[byte(start)..byte(end)]))
    }))
}

/// SUBSTRING of bytes.
pub(super) fn bytes(call: &Call) -> Result<ArrayRef> {
    let (bytes, position) = (call.bytes(0), call.int(1));
    let length = (call.count() > 2).then(|| call.int(2));
    Ok(call.write_bytes(|row, out| {
        let (bytes, position) = (value!(bytes.get(row)), value!(position.get(row)));
        let length = match &length {
            Some(length) => Some(value!(length.get(row))),
            None => None,
        };
        let (start, end) = bounds(bytes.len(), position, length);
        out.extend_from_slice(&bytes[start..end]);
        Ok(Some(()))
    }))
}

/// Start and end of the part; `start <= end <= size`.
fn bounds(size: usize, position: i32, length: Option<i32>) -> (usize, usize) {
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    let position = i64::from(position);
    let start = if position < 0 {
        (size + position).max(0)
    } else {
        (position - 1).clamp(0, size)
    };
    let end = match length {
        Some(length) => (start + i64::from(length)).clamp(start, size),
        None => size,
    };
    let index = |at: i64| usize::try_from(at).unwrap_or(0);
    (index(start), index(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_inside() {
        assert_eq!(bounds(6, 3, None), (2, 6));
        assert_eq!(bounds(6, 0, Some(2)), (0, 2));
        assert_eq!(bounds(6, -3, Some(2)), (3, 5));
        assert_eq!(bounds(6, -9, Some(2)), (0, 2));
        assert_eq!(bounds(6, 7, Some(2)), (6, 6));
        assert_eq!(bounds(6, 90, None), (6, 6));
        assert_eq!(bounds(6, 2, Some(-1)), (1, 1));
        assert_eq!(bounds(6, 2, Some(i32::MAX)), (1, 6));
    }
}
