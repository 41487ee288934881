//! Dialect ksql: what the words of a query mean where ksqlDB and PostgreSQL differ.
//!
//! The dialect of a statement decides; where nothing else is said, a rule here holds for dialect ksql alone. [`rewrite`] turns the tree into one that means the same under DataFusion's rules: literals get ksqlDB's types, comparisons are never NULL, event
//! time is a BIGINT. `arithmetic` plans operators whose meaning depends on the types of their operands. `keys` says which columns of a
//! result make its key, and in which order.

mod arithmetic;
mod divide;
mod keys;
mod rewrite;

pub use arithmetic::ksql_operators;
pub(crate) use keys::{PartitionKey, add_bounds, order_keys, partition_key};
pub(crate) use rewrite::rewrite;
