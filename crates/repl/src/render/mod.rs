//! Rows and errors as text.
//!
//! A [`ResultPrinter`] takes rows one at a time and writes them in runs. A run is measured as a whole, so a short result is
//! aligned exactly; a result without an end is written a run at a time, and later runs widen the columns where they must.
//!
//! INVARIANT: what is written for a terminal of n columns is at most n columns wide, unless a single value fills the line, and
//! carries no control character of a value, so data cannot drive the terminal.

mod csv_lines;
mod diagnostic;
mod expanded;
mod json_lines;
mod table;
mod width;

use std::{
    fmt,
    io::{self, Write},
    str::FromStr,
};

pub(crate) use diagnostic::Diagnostic;
pub(crate) use json_lines::ColumnKind;
pub(crate) use width::{pad_left, pad_right, truncate};

/// How results are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// Aligned columns, or one column a line after `\x`.
    #[default]
    Table,
    /// RFC 4180, with a line of names.
    Csv,
    /// One JSON object a line.
    Json,
}

impl FromStr for OutputFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_lowercase().trim_matches('\'') {
            "table" | "tabular" => Ok(Self::Table),
            "csv" => Ok(Self::Csv),
            "json" => Ok(Self::Json),
            other => Err(format!(
                "the output format is table, csv or json, not {other:?}"
            )),
        }
    }
}

impl fmt::Display for OutputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Table => "table",
            Self::Csv => "csv",
            Self::Json => "json",
        })
    }
}

/// What decides how a result looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// The format.
    pub format: OutputFormat,
    /// One column a line (`\x`).
    pub expanded: bool,
    /// Columns of the terminal; `None` when the result goes elsewhere and nothing may be cut.
    pub terminal_width: Option<usize>,
}

/// A row: one text a column, `None` for NULL.
pub(crate) type Row = Vec<Option<String>>;

/// What stands for NULL in tables.
const NULL: &str = "NULL";

/// Rows that are held back to be measured together. Bounds the memory of a long result.
const RUN_ROWS: usize = 1_000;

/// One way to write rows.
trait RowWriter: Send {
    /// What stands before the first row.
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()>;

    /// A run of rows.
    fn rows(&mut self, rows: &[Row], out: &mut dyn Write) -> io::Result<()>;
}

/// Writes one result.
pub(crate) struct ResultPrinter {
    style: Style,
    columns: Vec<String>,
    kinds: Vec<ColumnKind>,
    run: Vec<Row>,
    /// Chosen when the first run is known.
    writer: Option<Box<dyn RowWriter>>,
    shown: u64,
}

impl ResultPrinter {
    /// A printer for a result with these columns. `kinds` matter to JSON only; missing ones are text.
    pub fn new(style: Style, columns: Vec<String>, kinds: Vec<ColumnKind>) -> Self {
        Self {
            style,
            columns,
            kinds,
            run: Vec::new(),
            writer: None,
            shown: 0,
        }
    }

    /// Takes a row. It is not written before [`Self::flush`].
    pub fn push(&mut self, row: Row) {
        self.run.push(row);
    }

    /// Whether rows wait to be written.
    pub fn is_pending(&self) -> bool {
        !self.run.is_empty()
    }

    /// Whether so many rows wait that they should be written now.
    pub fn is_full(&self) -> bool {
        self.run.len() >= RUN_ROWS
    }

    /// Rows written and waiting.
    pub fn count(&self) -> u64 {
        self.shown + self.run.len() as u64
    }

    /// Writes what waits while more may come.
    pub fn flush(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.write_run(true, out)
    }

    /// Ends the result with its row count, where the format has one.
    pub fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.write_run(false, out)?;
        if self.style.format == OutputFormat::Table {
            writeln!(out, "({})", row_count(self.shown))?;
        }
        out.flush()
    }

    /// Writes what waits; before the first run also what stands above it.
    fn write_run(&mut self, goes_on: bool, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = match self.writer.take() {
            Some(writer) => writer,
            None => {
                let mut writer = self.choose_writer(goes_on);
                writer.begin(out)?;
                writer
            }
        };
        writer.rows(&self.run, out)?;
        self.writer = Some(writer);
        self.shown += self.run.len() as u64;
        self.run.clear();
        out.flush()
    }

    fn choose_writer(&self, goes_on: bool) -> Box<dyn RowWriter> {
        let columns = self.columns.clone();
        let Style {
            format,
            expanded,
            terminal_width,
        } = self.style;
        match format {
            OutputFormat::Csv => Box::new(csv_lines::CsvLines::new(columns)),
            OutputFormat::Json => Box::new(json_lines::JsonLines::new(columns, self.kinds.clone())),
            OutputFormat::Table if expanded => {
                Box::new(expanded::Expanded::new(columns, terminal_width))
            }
            OutputFormat::Table => match table::Table::new(&columns, &self.run, terminal_width) {
                Some(mut table) => {
                    if goes_on {
                        table.leave_room();
                    }
                    Box::new(table)
                }
                None => Box::new(expanded::Expanded::new(columns, terminal_width)),
            },
        }
    }
}

/// `1 row`, `2 rows`.
pub(crate) fn row_count(rows: u64) -> String {
    match rows {
        1 => "1 row".to_owned(),
        rows => format!("{rows} rows"),
    }
}

/// A value's lines, with control characters made visible. An empty value has one empty line.
fn cell_lines(value: Option<&str>) -> Vec<String> {
    let text = value.unwrap_or(NULL);
    let mut lines: Vec<String> = text.split('\n').map(visible).collect();
    // A final line feed ends the last line, it does not start another one.
    if lines.len() > 1 && lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// Control characters as escapes, so that a value cannot move the cursor or change colours.
pub(crate) fn visible(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => shown.push_str("    "),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests;
