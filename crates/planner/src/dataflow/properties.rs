//! What is known of a node's output beyond its columns.

use arrow::datatypes::SchemaRef;

use crate::{
    catalog::{FormatName, WINDOWEND, WINDOWSTART},
    dataflow::{NodeId, WindowSpec, join::Merged},
};

/// Facts about the output of a lowered logical node. Its columns are the logical node's, position by position.
#[derive(Debug, Clone)]
pub(crate) struct Properties {
    /// The dataflow node that makes it.
    pub id: NodeId,
    /// Its columns.
    pub schema: SchemaRef,
    /// How many slots it is spread over.
    pub slots: u32,
    /// Whether rows can be retracted.
    pub changing: bool,
    /// What identifies a row of a table, or what the record key of a stream holds.
    pub key: Key,
    /// Which columns decide a row's slot.
    pub placement: Option<Placement>,
    /// Set when the rows of a table stand for windows.
    pub window: Option<WindowSpec>,
    /// Set behind a full join on keys: each part of the key is in one of two columns.
    pub merged: Option<Merged>,
}

/// The key columns of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// By position. Empty for a table of one row.
    Columns(Vec<usize>),
    /// There was a key, but this column of it is not there any more.
    Lost {
        /// Its name.
        column: String,
    },
    /// There is no key.
    None,
}

/// Rows sit in slot `murmur2(key) % slots` for the key that these columns make in this format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placement {
    /// By position, in the order that they are encoded.
    pub columns: Vec<usize>,
    /// The names that the encoded key has for them.
    pub names: Vec<String>,
    /// How it is encoded.
    pub format: FormatName,
}

impl Placement {
    /// Whether rows placed so are also placed as `other` says. Names count only where the encoded key holds them.
    pub fn satisfies(&self, other: &Self) -> bool {
        let named = self.format.name == "JSON" && self.columns.len() > 1;
        self.columns == other.columns
            && self.format == other.format
            && (!named || self.names == other.names)
    }

    /// The same placement seen through a projection; `origins` tells where each output column comes from unchanged.
    pub fn through(&self, origins: &[Option<usize>]) -> Option<Self> {
        let columns = self
            .columns
            .iter()
            .map(|column| position_of(*column, origins))
            .collect::<Option<_>>()?;
        Some(Self {
            columns,
            names: self.names.clone(),
            format: self.format.clone(),
        })
    }
}

impl Key {
    /// The same key seen through a projection. A window's bound that the output has more than once is the one under its own name.
    pub fn through(
        &self,
        origins: &[Option<usize>],
        input: &SchemaRef,
        output: &SchemaRef,
    ) -> Self {
        let Self::Columns(columns) = self else {
            return self.clone();
        };
        let mut kept = Vec::with_capacity(columns.len());
        for column in columns {
            let name = input.field(*column).name();
            let is_bound = matches!(name.as_str(), WINDOWSTART | WINDOWEND);
            let own = output
                .index_of(name)
                .ok()
                .filter(|position| is_bound && origins[*position] == Some(*column));
            match own.or_else(|| position_of(*column, origins)) {
                Some(position) => kept.push(position),
                None => {
                    return Self::Lost {
                        column: name.clone(),
                    };
                }
            }
        }
        Self::Columns(kept)
    }
}

/// The first output column that holds an input column.
fn position_of(column: usize, origins: &[Option<usize>]) -> Option<usize> {
    origins.iter().position(|origin| *origin == Some(column))
}
