//! Small results that are made at once: what SHOW, DESCRIBE and EXPLAIN answer.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, Float64Array, Int64Array, StringArray},
    datatypes::{Field, Schema, SchemaRef},
    record_batch::RecordBatch,
};

use crate::{
    session::{Rows, SessionResult},
    sqlstate::SqlError,
};

/// A result that is built column by column.
pub struct SmallResult {
    tag: &'static str,
    fields: Vec<Field>,
    columns: Vec<ArrayRef>,
}

impl SmallResult {
    /// A result without columns.
    pub fn new(tag: &'static str) -> Self {
        Self {
            tag,
            fields: Vec::new(),
            columns: Vec::new(),
        }
    }

    /// Adds a text column.
    pub fn text<S: Into<String>>(self, name: &str, values: impl IntoIterator<Item = S>) -> Self {
        let values = values.into_iter().map(|value| Some(value.into()));
        self.optional_text(name, values)
    }

    /// Adds a text column with NULLs.
    pub fn optional_text(
        self,
        name: &str,
        values: impl IntoIterator<Item = Option<String>>,
    ) -> Self {
        let values: StringArray = values.into_iter().collect();
        self.column(name, Arc::new(values))
    }

    /// Adds a column of numbers.
    pub fn number(self, name: &str, values: impl IntoIterator<Item = Option<i64>>) -> Self {
        let values: Int64Array = values.into_iter().collect();
        self.column(name, Arc::new(values))
    }

    /// Adds a column of numbers with a fraction.
    pub fn real(self, name: &str, values: impl IntoIterator<Item = Option<f64>>) -> Self {
        let values: Float64Array = values.into_iter().collect();
        self.column(name, Arc::new(values))
    }

    fn column(mut self, name: &str, values: ArrayRef) -> Self {
        self.fields
            .push(Field::new(name, values.data_type().clone(), true));
        self.columns.push(values);
        self
    }

    /// The rows as a batch.
    pub fn batch(self) -> SessionResult<RecordBatch> {
        let schema: SchemaRef = Arc::new(Schema::new(self.fields));
        RecordBatch::try_new(schema, self.columns).map_err(SqlError::from)
    }

    /// The rows.
    pub fn finish(self) -> SessionResult<Rows> {
        let tag = self.tag;
        let batch = self.batch()?;
        Ok(Rows {
            schema: batch.schema(),
            stream: Box::pin(futures::stream::iter([Ok(batch)])),
            tag,
            endless: false,
        })
    }
}
