//! RFC 4180, with a line of names. NULL is an empty field; an empty text is `""`, so both can be told apart, as PostgreSQL's
//! COPY does it.

use std::io::{self, Write};

use super::{Row, RowWriter};

/// Writes rows as CSV.
pub(super) struct CsvLines {
    columns: Vec<String>,
}

impl CsvLines {
    /// CSV with these names in its first line.
    pub fn new(columns: Vec<String>) -> Self {
        Self { columns }
    }
}

impl RowWriter for CsvLines {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        let names = self.columns.iter().map(|name| Some(name.as_str()));
        write_record(names, out)
    }

    fn rows(&mut self, rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
        for row in rows {
            write_record(row.iter().map(Option::as_deref), out)?;
        }
        Ok(())
    }
}

fn write_record<'a>(
    fields: impl Iterator<Item = Option<&'a str>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            write!(out, ",")?;
        }
        match field {
            None => {}
            Some(text) if needs_quotes(text) => write!(out, "\"{}\"", text.replace('"', "\"\""))?,
            Some(text) => write!(out, "{text}")?,
        }
    }
    writeln!(out)
}

fn needs_quotes(text: &str) -> bool {
    text.is_empty() || text.contains([',', '"', '\n', '\r'])
}
