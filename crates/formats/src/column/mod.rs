//! Growable Arrow columns that can be cut back.
//!
//! Arrow's own builders only grow. A decoder writes a record's fields straight into the columns, so when the record turns out to be bad
//! half-way through, what was written of it must go again: every column here has `truncate`.

mod builder;
mod fixed;
mod validity;
mod varlen;

pub(crate) use builder::{ColumnBuilder, ListColumn, MapColumn, StructColumn};
