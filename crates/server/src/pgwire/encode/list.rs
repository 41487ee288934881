//! Arrays of one dimension.

use arrow::array::{Array, ListArray, timezone::Tz};
use bytes::{BufMut, BytesMut};

use super::{Cell, ColumnEncoder, Format};
use crate::{pgwire::types::wire_type, sqlstate::SqlError};

/// `{1,NULL,"a b"}`.
pub(super) fn text(array: &ListArray, zone: Tz) -> Result<Cell, SqlError> {
    let elements = ColumnEncoder::new(array.values(), Format::Text, zone)?;
    let offsets = array.offsets().clone();
    Ok(Box::new(move |row, out| {
        out.put_u8(b'{');
        for (position, element) in (offsets[row] as usize..offsets[row + 1] as usize).enumerate() {
            if position > 0 {
                out.put_u8(b',');
            }
            if elements.is_null(element) {
                out.put_slice(b"NULL");
                continue;
            }
            let start = out.len();
            elements.write(element, out)?;
            if needs_quotes(&out[start..]) {
                quote_tail(start, out);
            }
        }
        out.put_u8(b'}');
        Ok(())
    }))
}

/// Whether an element would be read as something else without quotes.
fn needs_quotes(element: &[u8]) -> bool {
    element.is_empty()
        || element.eq_ignore_ascii_case(b"null")
        || element.iter().any(|byte| {
            matches!(byte, b'{' | b'}' | b',' | b'"' | b'\\')
                || byte.is_ascii_whitespace()
                || *byte == 0x0b
        })
}

/// Puts quotes round everything from `start` on.
fn quote_tail(start: usize, out: &mut BytesMut) {
    let plain = out[start..].to_vec();
    out.truncate(start);
    out.put_u8(b'"');
    for byte in &plain {
        if matches!(byte, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(*byte);
    }
    out.put_u8(b'"');
}

/// `i32` dimensions, `i32` whether there are NULLs, `u32` element type, per dimension `i32` length and `i32` first index, then the
/// elements, each with its length.
pub(super) fn binary(array: &ListArray, zone: Tz) -> Result<Cell, SqlError> {
    let element_type = wire_type(array.values().data_type()).oid();
    let elements = ColumnEncoder::new(array.values(), Format::Binary, zone)?;
    let offsets = array.offsets().clone();
    Ok(Box::new(move |row, out| {
        let range = offsets[row] as usize..offsets[row + 1] as usize;
        let has_nulls = range.clone().any(|element| elements.is_null(element));
        out.put_i32(if range.is_empty() { 0 } else { 1 });
        out.put_i32(i32::from(has_nulls));
        out.put_u32(element_type);
        if !range.is_empty() {
            out.put_i32(offsets[row + 1] - offsets[row]);
            out.put_i32(1);
        }
        for element in range {
            elements.write_sized(element, out)?;
        }
        Ok(())
    }))
}
