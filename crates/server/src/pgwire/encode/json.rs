//! STRUCT, MAP and nested ARRAY values as JSON text.
//!
//! Numbers are numbers, except NaN and infinities, which JSON lacks: they are strings, as PostgreSQL's `to_json` has them. Dates and times
//! are ISO 8601 strings, BYTES are `\x..` strings. A map's keys become strings.

use arrow::{
    array::{Array, ArrayRef, AsArray, timezone::Tz},
    datatypes::{DataType, Float32Type, Float64Type},
};
use bytes::{BufMut, BytesMut};

use super::{Cell, Unencodable, datetime, number, plain, text};
use crate::sqlstate::SqlError;

/// The JSON encoder of a column.
pub(super) fn cell(array: &ArrayRef, zone: Tz) -> Result<Cell, SqlError> {
    let array = &plain(array)?;
    Ok(match array.data_type() {
        DataType::Boolean => {
            let array = array.as_boolean().clone();
            Box::new(move |row, out| put(out, if array.value(row) { b"true" } else { b"false" }))
        }
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>().values().clone();
            Box::new(move |row, out| {
                let value = values[row];
                quoted_unless(value.is_finite(), out, |out| number::write_f32(value, out));
                Ok(())
            })
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>().values().clone();
            Box::new(move |row, out| {
                let value = values[row];
                quoted_unless(value.is_finite(), out, |out| number::write_f64(value, out));
                Ok(())
            })
        }
        DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => text::cell(array, zone)?,
        DataType::Timestamp(unit, in_zone) => {
            let (values, unit, in_zone) =
                (text::timestamps(array, *unit), *unit, in_zone.is_some());
            Box::new(move |row, out| {
                quoted_unless(false, out, |out| match in_zone {
                    true => datetime::write_timestamptz(values[row], unit, zone, b'T', out),
                    false => datetime::write_timestamp(values[row], unit, b'T', out),
                });
                Ok(())
            })
        }
        DataType::List(_) => list(array, zone)?,
        DataType::Struct(_) => record(array, zone)?,
        DataType::Map(..) => map(array, zone)?,
        _ => string(array, zone)?,
    })
}

/// An encoder for values of a column that may be NULL.
struct Member {
    array: ArrayRef,
    cell: Cell,
}

impl Member {
    fn new(array: &ArrayRef, zone: Tz) -> Result<Self, SqlError> {
        Ok(Self {
            array: array.clone(),
            cell: cell(array, zone)?,
        })
    }

    fn write(&self, row: usize, out: &mut BytesMut) -> Result<(), Unencodable> {
        if self.array.is_null(row) || *self.array.data_type() == DataType::Null {
            put(out, b"null")
        } else {
            (self.cell)(row, out)
        }
    }
}

fn list(array: &ArrayRef, zone: Tz) -> Result<Cell, SqlError> {
    let array = array.as_list::<i32>();
    let elements = Member::new(array.values(), zone)?;
    let offsets = array.offsets().clone();
    Ok(Box::new(move |row, out| {
        out.put_u8(b'[');
        for (position, element) in (offsets[row] as usize..offsets[row + 1] as usize).enumerate() {
            if position > 0 {
                out.put_u8(b',');
            }
            elements.write(element, out)?;
        }
        put(out, b"]")
    }))
}

fn record(array: &ArrayRef, zone: Tz) -> Result<Cell, SqlError> {
    let array = array.as_struct();
    let names = array.fields().iter().map(|field| {
        let mut name = BytesMut::new();
        write_string(field.name().as_bytes(), &mut name);
        name.put_u8(b':');
        name.freeze()
    });
    let members = array
        .columns()
        .iter()
        .map(|column| Member::new(column, zone))
        .collect::<Result<Vec<_>, _>>()?;
    let members: Vec<_> = names.zip(members).collect();
    Ok(Box::new(move |row, out| {
        out.put_u8(b'{');
        for (position, (name, member)) in members.iter().enumerate() {
            if position > 0 {
                out.put_u8(b',');
            }
            out.put_slice(name);
            member.write(row, out)?;
        }
        put(out, b"}")
    }))
}

fn map(array: &ArrayRef, zone: Tz) -> Result<Cell, SqlError> {
    let array = array.as_map();
    let keys = string(&plain(array.keys())?, zone)?;
    let values = Member::new(array.values(), zone)?;
    let offsets = array.offsets().clone();
    Ok(Box::new(move |row, out| {
        out.put_u8(b'{');
        for (position, entry) in (offsets[row] as usize..offsets[row + 1] as usize).enumerate() {
            if position > 0 {
                out.put_u8(b',');
            }
            keys(entry, out)?;
            out.put_u8(b':');
            values.write(entry, out)?;
        }
        put(out, b"}")
    }))
}

/// A column's text as JSON strings.
fn string(array: &ArrayRef, zone: Tz) -> Result<Cell, SqlError> {
    let text = text::cell(array, zone)?;
    Ok(Box::new(move |row, out| {
        let start = out.len();
        text(row, out)?;
        let plain = out[start..].to_vec();
        out.truncate(start);
        write_string(&plain, out);
        Ok(())
    }))
}

fn write_string(text: &[u8], out: &mut BytesMut) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.put_u8(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => out.put_slice(&[b'\\', *byte]),
            b'\n' => out.put_slice(b"\\n"),
            b'\r' => out.put_slice(b"\\r"),
            b'\t' => out.put_slice(b"\\t"),
            0..=0x1f => {
                out.put_slice(b"\\u00");
                out.put_u8(HEX[usize::from(byte >> 4)]);
                out.put_u8(HEX[usize::from(byte & 15)]);
            }
            _ => out.put_u8(*byte),
        }
    }
    out.put_u8(b'"');
}

fn quoted_unless(bare: bool, out: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    if bare {
        return write(out);
    }
    out.put_u8(b'"');
    write(out);
    out.put_u8(b'"');
}

fn put(out: &mut BytesMut, bytes: &[u8]) -> Result<(), Unencodable> {
    out.put_slice(bytes);
    Ok(())
}
