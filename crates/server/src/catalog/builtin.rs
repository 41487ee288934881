//! What every server has without a statement: the command topic and the processing log.

use std::sync::Arc;

use arrow::datatypes::DataType;
use highwater_planner::catalog::{Column, FormatName, Relation, RelationId, SourceKind};

use super::RelationEntry;
use crate::planning::StatementStyle;

/// The topic of catalog changes.
pub const COMMAND_TOPIC: &str = "_highwater_commands";
/// The topic of records that could not be decoded.
pub const PROCESSING_LOG_TOPIC: &str = "_highwater_processing_log";
/// Names of topics and relations of our own begin like this; `SHOW TOPICS` leaves them out.
pub const INTERNAL_PREFIX: &str = "_highwater_";
/// The stream over [`PROCESSING_LOG_TOPIC`].
pub const PROCESSING_LOG: &str = "processing_log";
/// First id that statements get; smaller ones are built in.
pub const FIRST_ID: u64 = 100;

/// `processing_log`: one row per record that could not be decoded, with its bytes and where it stands. Its `rowtime` is when it was found.
pub fn processing_log() -> RelationEntry {
    let column = |name: &str, data_type| Column {
        headers: None,
        name: name.to_owned(),
        data_type,
        key: false,
    };
    let format = |name: &str| FormatName {
        name: name.to_owned(),
        delimiter: None,
        wrapped: None,
    };
    let relation = Relation {
        id: RelationId(1),
        name: PROCESSING_LOG.to_owned(),
        kind: SourceKind::Stream,
        columns: vec![
            column("source", DataType::Utf8),
            column("topic", DataType::Utf8),
            column("partition", DataType::Int32),
            column("offset", DataType::Int64),
            column("reason", DataType::Utf8),
            column("key", DataType::Binary),
            column("value", DataType::Binary),
        ],
        topic: PROCESSING_LOG_TOPIC.to_owned(),
        partitions: 1,
        key_format: format("NONE"),
        value_format: format("JSON"),
        timestamp: None,
        window: None,
        read_only: false,
        query: None,
    };
    RelationEntry {
        relation: Arc::new(relation),
        statement: "built in".to_owned(),
        style: StatementStyle::default(),
        earlier: Vec::new(),
    }
}
