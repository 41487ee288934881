//! COPY: data from the client, and rows to it in COPY's text and CSV formats.
//!
//! In the text format a row is a line of fields between delimiters; backslash escapes delimiter, line ends and itself, and NULL is a text
//! of its own (`\N`). In CSV a field is quoted when it holds the delimiter, a quote or a line end, or reads like NULL.

use arrow::{
    array::{ArrayRef, timezone::Tz},
    datatypes::Schema,
    record_batch::RecordBatch,
};
use bytes::{BufMut, Bytes, BytesMut};
use highwater_sql::{CopyFormat, CopyOptions};
use pgwire::messages::copy;

use super::{
    connection::Connection,
    encode::{ColumnEncoder, Format, Unencodable},
    link::Halt,
    message::{Frontend, violation},
    rows::{OpenRows, RowFormat, Sent, framed},
};
use crate::{
    session::{CopyIn, Rows},
    sqlstate::{SqlError, code},
};

impl Connection {
    /// Takes COPY data until the client ends it; answers the number of rows.
    pub(super) async fn copy_in(&mut self, mut target: Box<dyn CopyIn>) -> Result<u64, Halt> {
        let columns = i16::try_from(target.columns())
            .map_err(|_| SqlError::internal("too many columns for COPY"))?;
        self.outbound.push(&copy::CopyInResponse::new(
            0,
            columns,
            vec![0; target.columns()],
        ))?;
        let deadline = self.deadline();
        loop {
            let frame = self
                .link
                .next_frame_attended(deadline, &mut self.outbound)
                .await?;
            match Frontend::parse(frame)? {
                Frontend::CopyData(data) => self.link.attend(deadline, target.data(data)).await??,
                // Its outcome must be told: rows may be durable already.
                Frontend::CopyDone => return Ok(self.link.settle(target.finish()).await??),
                Frontend::CopyFail(reason) => {
                    let message = format!("COPY from stdin failed: {reason}");
                    return Err(SqlError::new(code::QUERY_CANCELED, message).into());
                }
                // Drivers send Sync right behind the Execute that begins a COPY.
                Frontend::Flush | Frontend::Sync => {}
                Frontend::Terminate => return Err(Halt::Gone),
                _ => {
                    return Err(Halt::Fatal(violation(
                        "unexpected message type during COPY from stdin",
                    )));
                }
            }
        }
    }

    /// Sends rows in COPY format; answers their number.
    pub(super) async fn copy_out(&mut self, rows: Rows, options: CopyOptions) -> Result<u64, Halt> {
        let columns = rows.schema.fields().len();
        let count =
            i16::try_from(columns).map_err(|_| SqlError::internal("too many columns for COPY"))?;
        self.outbound
            .push(&copy::CopyOutResponse::new(0, count, vec![0; columns]))?;
        if options.header {
            self.outbound
                .buffer()
                .extend_from_slice(&header(&rows.schema, &options));
        }
        let deadline = self.deadline();
        let mut rows = OpenRows::new(rows, RowFormat::Copy(options), self.zone());
        let sent = rows.send(None, self.client(deadline)).await?;
        self.outbound.push(&copy::CopyDone::new())?;
        match sent {
            Sent::All(count) => Ok(count),
            Sent::Some => Err(SqlError::internal("COPY stopped before its end").into()),
        }
    }
}

/// Writes the CopyData messages of one batch, a line each.
pub(super) struct CopyRowEncoder {
    columns: Vec<ColumnEncoder>,
    style: Style,
}

impl CopyRowEncoder {
    /// Chooses the encoders.
    pub(super) fn new(
        batch: &RecordBatch,
        options: &CopyOptions,
        zone: Tz,
    ) -> Result<Self, SqlError> {
        let encoder = |array: &ArrayRef| ColumnEncoder::new(array, Format::Text, zone);
        let columns = batch
            .columns()
            .iter()
            .map(encoder)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            columns,
            style: Style::new(options),
        })
    }

    /// Writes one row, or nothing if it cannot be written.
    pub(super) fn write(&self, row: usize, out: &mut BytesMut) -> Result<(), Unencodable> {
        framed(b'd', out, |out| {
            let single = self.columns.len() == 1;
            for (position, column) in self.columns.iter().enumerate() {
                if position > 0 {
                    out.put_u8(self.style.delimiter);
                }
                if column.is_null(row) {
                    out.put_slice(&self.style.null);
                    continue;
                }
                let start = out.len();
                column.write(row, out)?;
                self.style.escape_tail(start, single, out);
            }
            out.put_u8(b'\n');
            Ok(())
        })
    }
}

/// How fields become a line.
struct Style {
    csv: bool,
    delimiter: u8,
    null: Bytes,
    quote: u8,
    escape: u8,
}

impl Style {
    fn new(options: &CopyOptions) -> Self {
        Self {
            csv: options.format == CopyFormat::Csv,
            delimiter: options.delimiter,
            null: Bytes::copy_from_slice(options.null.as_bytes()),
            quote: options.quote,
            escape: options.escape,
        }
    }

    /// Escapes the field that begins at `start`, if it needs that.
    fn escape_tail(&self, start: usize, single: bool, out: &mut BytesMut) {
        let field = &out[start..];
        if self.csv {
            // A line of `\.` alone would end the data.
            let reads_as_other = *field == *self.null || (single && field == b"\\.");
            let needs_quotes = |byte: &u8| {
                *byte == self.delimiter || *byte == self.quote || matches!(byte, b'\n' | b'\r')
            };
            if !reads_as_other && !field.iter().any(needs_quotes) {
                return;
            }
        } else if !field.iter().any(|byte| self.text_escape(*byte).is_some()) {
            return;
        }
        let plain = field.to_vec();
        out.truncate(start);
        if self.csv {
            out.put_u8(self.quote);
            for byte in plain {
                if byte == self.quote || byte == self.escape {
                    out.put_u8(self.escape);
                }
                out.put_u8(byte);
            }
            out.put_u8(self.quote);
        } else {
            for byte in plain {
                match self.text_escape(byte) {
                    Some(letter) => out.put_slice(&[b'\\', letter]),
                    None => out.put_u8(byte),
                }
            }
        }
    }

    /// What follows the backslash that stands for a byte of the text format.
    fn text_escape(&self, byte: u8) -> Option<u8> {
        match byte {
            b'\\' => Some(b'\\'),
            0x08 => Some(b'b'),
            0x0c => Some(b'f'),
            b'\n' => Some(b'n'),
            b'\r' => Some(b'r'),
            b'\t' => Some(b't'),
            0x0b => Some(b'v'),
            delimiter if delimiter == self.delimiter => Some(delimiter),
            _ => None,
        }
    }
}

/// The CopyData message with the columns' names.
fn header(schema: &Schema, options: &CopyOptions) -> BytesMut {
    let style = Style::new(options);
    let mut out = BytesMut::new();
    let written = framed(b'd', &mut out, |out| {
        for (position, field) in schema.fields().iter().enumerate() {
            if position > 0 {
                out.put_u8(style.delimiter);
            }
            let start = out.len();
            out.put_slice(field.name().as_bytes());
            style.escape_tail(start, schema.fields().len() == 1, out);
        }
        out.put_u8(b'\n');
        Ok(())
    });
    debug_assert!(
        written.is_ok(),
        "names are far shorter than a message may be"
    );
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int64Array, StringArray};

    use super::*;

    fn lines(options: &CopyOptions, names: &[Option<&str>]) -> Vec<String> {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter(
            (0..names.len()).map(|n| (n != 1).then_some(n as i64)),
        ));
        let names: ArrayRef = Arc::new(StringArray::from(names.to_vec()));
        let batch =
            RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("name", names, true)])
                .unwrap();
        let encoder = CopyRowEncoder::new(&batch, options, "+00:00".parse().unwrap()).unwrap();
        (0..batch.num_rows())
            .map(|row| {
                let mut out = BytesMut::new();
                encoder.write(row, &mut out).unwrap();
                assert_eq!(out[0], b'd');
                assert_eq!(
                    u32::from_be_bytes(out[1..5].try_into().unwrap()) as usize,
                    out.len() - 1
                );
                String::from_utf8(out[5..].to_vec()).unwrap()
            })
            .collect()
    }

    fn text() -> CopyOptions {
        let null = "\\N".to_owned();
        CopyOptions {
            format: CopyFormat::Text,
            header: false,
            delimiter: b'\t',
            null,
            quote: b'"',
            escape: b'"',
        }
    }

    fn csv() -> CopyOptions {
        CopyOptions {
            format: CopyFormat::Csv,
            delimiter: b',',
            null: String::new(),
            ..text()
        }
    }

    #[test]
    fn text_escapes_what_would_end_a_field() {
        let names = [
            Some("plain"),
            None,
            Some("tab\tback\\slash\nline"),
            Some("\\N"),
            Some(""),
        ];
        assert_eq!(
            lines(&text(), &names),
            [
                "0\tplain\n",
                "\\N\t\\N\n",
                "2\ttab\\tback\\\\slash\\nline\n",
                "3\t\\\\N\n",
                "4\t\n"
            ]
        );
        let piped = CopyOptions {
            delimiter: b'|',
            ..text()
        };
        assert_eq!(lines(&piped, &[Some("a|b")]), ["0|a\\|b\n"]);
    }

    #[test]
    fn csv_quotes_what_would_be_read_otherwise() {
        let names = [
            Some("plain"),
            None,
            Some("a,b"),
            Some("say \"hi\""),
            Some(""),
            Some("two\nlines"),
            Some("ä b"),
        ];
        assert_eq!(
            lines(&csv(), &names),
            [
                "0,plain\n",
                ",\n",
                "2,\"a,b\"\n",
                "3,\"say \"\"hi\"\"\"\n",
                "4,\"\"\n",
                "5,\"two\nlines\"\n",
                "6,ä b\n"
            ]
        );
    }

    #[test]
    fn the_header_names_the_columns() {
        let fields = ["a", "b,c"]
            .map(|name| arrow::datatypes::Field::new(name, arrow::datatypes::DataType::Utf8, true));
        let out = header(&Schema::new(fields.to_vec()), &csv());
        assert_eq!(&out[5..], b"a,\"b,c\"\n");
    }
}
