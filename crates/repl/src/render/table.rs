//! Aligned columns:
//!
//! ```text
//!  carrier | flights | mean_delay
//! ---------+---------+------------
//!  UA      |     123 |       12.5
//! ```
//!
//! The first run decides on which side a column is aligned (right when every value is a number) and how wide it is. On a terminal
//! the widest text columns are cut until the line fits; numbers are never cut. Later runs may widen columns within the same line
//! width; the header is written again once it is so far away that the eye has lost it.

use std::io::{self, Write};

use super::{
    Row, RowWriter, cell_lines,
    width::{display_width, pad_left, pad_right, truncate},
};

/// In a result that goes on, columns start this wide where the line has room: counters grow.
const OPEN_WIDTH: usize = 9;
/// A column is not cut below this many terminal columns.
const MIN_WIDTH: usize = 8;
/// After this many lines a change of the widths repeats the header.
const HEADER_DISTANCE: usize = 20;

/// Writes rows as aligned columns.
pub(super) struct Table {
    columns: Vec<Column>,
    /// Columns of the terminal that a line may fill.
    limit: Option<usize>,
    lines_since_header: usize,
}

struct Column {
    name: String,
    width: usize,
    numeric: bool,
}

impl Table {
    /// A table laid out for its first run; `None` when a line cannot be made to fit.
    pub fn new(names: &[String], first: &[Row], limit: Option<usize>) -> Option<Self> {
        let columns = names
            .iter()
            .enumerate()
            .map(|(index, name)| Column {
                width: cells_width(first, index).max(display_width(name)),
                numeric: is_numeric(first, index),
                name: name.clone(),
            })
            .collect();
        let mut table = Self {
            columns,
            limit,
            lines_since_header: 0,
        };
        if let ([single], Some(limit)) = (table.columns.as_mut_slice(), limit) {
            // One column has nobody to give way to: its values are wrapped by the terminal, which shows all of them.
            single.width = single.width.min(limit.saturating_sub(2));
        }
        if !table.shrink() {
            return None;
        }
        Some(table)
    }

    /// Prepares for rows that will be wider than those of the first run.
    pub fn leave_room(&mut self) {
        for index in 0..self.columns.len() {
            let missing = OPEN_WIDTH.saturating_sub(self.columns[index].width);
            self.columns[index].width += missing.min(self.room());
        }
    }

    fn line_width(&self) -> usize {
        let cells: usize = self.columns.iter().map(|column| column.width + 2).sum();
        cells + self.columns.len().saturating_sub(1)
    }

    fn excess(&self) -> usize {
        self.limit
            .map_or(0, |limit| self.line_width().saturating_sub(limit))
    }

    /// Takes width from the widest text column until the line fits.
    fn shrink(&mut self) -> bool {
        while self.excess() > 0 {
            let widest = self
                .columns
                .iter_mut()
                .filter(|column| !column.numeric && column.width > MIN_WIDTH)
                .max_by_key(|column| column.width);
            match widest {
                Some(column) => column.width -= 1,
                None => return false,
            }
        }
        true
    }

    /// Widens columns for a later run; true when a width changed. Among several columns a number always gets its width; a text
    /// gets what the line has left.
    fn widen(&mut self, rows: &[Row]) -> bool {
        let several = self.columns.len() > 1;
        let mut changed = false;
        for index in 0..self.columns.len() {
            let missing = cells_width(rows, index).saturating_sub(self.columns[index].width);
            let more = if several && self.columns[index].numeric {
                missing
            } else {
                missing.min(self.room())
            };
            self.columns[index].width += more;
            changed |= more > 0;
        }
        changed
    }

    /// Columns of the terminal that a line leaves free.
    fn room(&self) -> usize {
        self.limit
            .map_or(usize::MAX, |limit| limit.saturating_sub(self.line_width()))
    }

    fn header(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.lines_since_header = 0;
        let names = self.columns.iter().map(|column| {
            let name = truncate(&column.name, column.width);
            // Names are centred over numbers and texts alike, as psql has them.
            let left = (column.width - display_width(&name)) / 2;
            pad_right(&format!("{:left$}{name}", ""), column.width)
        });
        write_line(&names.collect::<Vec<_>>(), out)?;
        let dashes: Vec<String> = self
            .columns
            .iter()
            .map(|column| "-".repeat(column.width + 2))
            .collect();
        writeln!(out, "{}", dashes.join("+"))
    }

    fn row(&mut self, row: &Row, out: &mut dyn Write) -> io::Result<()> {
        let cells: Vec<Vec<String>> = row
            .iter()
            .map(|value| cell_lines(value.as_deref()))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(1);
        for line in 0..height {
            let texts: Vec<String> = self
                .columns
                .iter()
                .zip(&cells)
                .map(|(column, lines)| {
                    let text = lines.get(line).map_or("", String::as_str);
                    let text = match self.limit {
                        Some(_) if self.columns.len() > 1 => truncate(text, column.width),
                        _ => text.into(),
                    };
                    if column.numeric {
                        pad_left(&text, column.width)
                    } else {
                        pad_right(&text, column.width)
                    }
                })
                .collect();
            write_line(&texts, out)?;
        }
        self.lines_since_header += height;
        Ok(())
    }
}

impl RowWriter for Table {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.header(out)
    }

    fn rows(&mut self, rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
        let changed = self.widen(rows);
        if changed && self.lines_since_header >= HEADER_DISTANCE {
            self.header(out)?;
        }
        for row in rows {
            self.row(row, out)?;
        }
        Ok(())
    }
}

/// One line, without the spaces that would end it.
fn write_line(cells: &[String], out: &mut dyn Write) -> io::Result<()> {
    let line = format!(" {}", cells.join(" | "));
    writeln!(out, "{}", line.trim_end())
}

fn cells_width(rows: &[Row], column: usize) -> usize {
    rows.iter()
        .filter_map(|row| row.get(column))
        .flat_map(|value| cell_lines(value.as_deref()))
        .map(|line| display_width(&line))
        .max()
        .unwrap_or(0)
}

/// Whether every value of a column that has one is a number, and there is at least one.
fn is_numeric(rows: &[Row], column: usize) -> bool {
    let mut values = rows
        .iter()
        .filter_map(|row| row.get(column)?.as_deref())
        .peekable();
    values.peek().is_some() && values.all(|value| value.parse::<f64>().is_ok())
}
