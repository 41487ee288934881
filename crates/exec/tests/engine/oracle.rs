//! The batch answer: DataFusion over all rows at once.

use std::sync::Arc;

use datafusion::prelude::SessionContext;

use crate::world::{Row, rows_as_batch, text_rows};

/// The sorted rows of `query` over the given bids.
pub fn answer(query: &str, rows: &[Row]) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let context = SessionContext::new();
        let batch = rows_as_batch(rows);
        let table = datafusion::datasource::MemTable::try_new(batch.schema(), vec![vec![batch]])
            .expect("a table");
        context
            .register_table("bids", Arc::new(table))
            .expect("a free name");
        let batches = context
            .sql(query)
            .await
            .expect("a plan")
            .collect()
            .await
            .expect("an answer");
        text_rows(&batches)
    })
}
