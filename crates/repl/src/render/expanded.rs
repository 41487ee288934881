//! One column a line, for rows that are wider than the terminal:
//!
//! ```text
//! -[ record 1 ]-----------
//! carrier    | UA
//! flights    | 123
//! ```

use std::io::{self, Write};

use super::{
    Row, RowWriter, cell_lines,
    width::{display_width, pad_right},
};

/// The width of a record's title line where nothing else sets it.
const TITLE_WIDTH: usize = 40;

/// Writes rows as blocks of lines.
pub(super) struct Expanded {
    columns: Vec<String>,
    name_width: usize,
    title_width: usize,
    record: u64,
}

impl Expanded {
    /// Blocks for a terminal of `limit` columns. Values are never cut here: the terminal wraps them.
    pub fn new(columns: Vec<String>, limit: Option<usize>) -> Self {
        let name_width = columns
            .iter()
            .map(|name| display_width(name))
            .max()
            .unwrap_or(0);
        let title_width = limit.map_or(TITLE_WIDTH, |limit| limit.min(TITLE_WIDTH));
        Self {
            columns,
            name_width,
            title_width,
            record: 0,
        }
    }
}

impl RowWriter for Expanded {
    fn begin(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn rows(&mut self, rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
        for row in rows {
            self.record += 1;
            let title = format!("-[ record {} ]", self.record);
            writeln!(out, "{title:-<width$}", width = self.title_width)?;
            for (name, value) in self.columns.iter().zip(row) {
                for (index, line) in cell_lines(value.as_deref()).iter().enumerate() {
                    let name = if index == 0 { name.as_str() } else { "" };
                    let text = format!("{} | {line}", pad_right(name, self.name_width));
                    writeln!(out, "{}", text.trim_end())?;
                }
            }
        }
        Ok(())
    }
}
