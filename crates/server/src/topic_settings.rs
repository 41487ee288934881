//! What a CREATE says about the topic that it makes, in the log's words.

use highwater_planner::catalog::Relation;
use highwater_sql::{PropertyValue, Statement};
use highwater_storage_log::TopicConfig;

/// The property `retention_ms` of WITH, and the topic setting that it stands for. The planner has checked the value.
const RETENTION_MS: (&str, &str) = ("retention_ms", "retention.ms");

/// Partitions and settings of a new relation's topic.
pub fn topic_config(statement: &Statement, relation: &Relation) -> TopicConfig {
    let mut config = TopicConfig::with_partitions(relation.partitions);
    let properties = match statement {
        Statement::CreateSource(create) => &create.with.0[..],
        Statement::CreateAs(create) => &create.with.0[..],
        _ => &[],
    };
    for (name, value) in properties {
        if name == RETENTION_MS.0
            && let PropertyValue::Number(text) | PropertyValue::String(text) = value
        {
            config.settings.insert(RETENTION_MS.1.into(), text.clone());
        }
    }
    config
}
