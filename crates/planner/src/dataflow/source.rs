//! Reading a relation.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use highwater_sql::SourceKind;

use crate::{
    catalog::{Relation, WINDOWEND, WINDOWSTART},
    dataflow::{
        DataflowPlan, Node, NodeId, Operator,
        properties::{Key, Placement, Properties},
    },
};

/// The plan that keeps a declared table: its source node alone.
pub fn plan_source_table(relation: Arc<Relation>) -> DataflowPlan {
    let projection: Vec<usize> = (0..relation.columns.len()).collect();
    let node = Node {
        id: NodeId(0),
        inputs: Vec::new(),
        schema: relation.schema(),
        slots: relation.partitions,
        changing: relation.kind == SourceKind::Table,
        operator: Operator::Source {
            relation: relation.clone(),
            projection,
            marks: false,
        },
    };
    DataflowPlan {
        nodes: vec![node],
        kind: relation.kind,
        key: relation.key_columns(),
        slots: relation.partitions,
        window: relation.window,
    }
}

/// What is known of a source that gives the columns at `projection`, positions counted as [`Operator::Source`] does.
pub(super) fn source_properties(
    id: NodeId,
    relation: &Relation,
    available: &SchemaRef,
    projection: &[usize],
) -> Properties {
    let fields: Vec<_> = projection
        .iter()
        .map(|column| available.field(*column).clone())
        .collect();
    let origins: Vec<Option<usize>> = projection.iter().map(|column| Some(*column)).collect();
    let key_columns = relation.key_columns();
    // A table without key columns has one row.
    let key = match relation.kind {
        SourceKind::Stream if key_columns.is_empty() => Key::None,
        SourceKind::Stream | SourceKind::Table => Key::Columns(key_columns.clone()),
    };
    let is_bound = |column: usize| {
        relation.window.is_some()
            && matches!(
                relation.columns[column].name.as_str(),
                WINDOWSTART | WINDOWEND
            )
    };
    let placed: Vec<usize> = key_columns
        .into_iter()
        .filter(|column| !is_bound(*column))
        .collect();
    let placement = Placement {
        names: placed
            .iter()
            .map(|column| relation.columns[*column].name.clone())
            .collect(),
        columns: placed,
        format: relation.key_format.clone(),
    };
    let schema = Arc::new(Schema::new(fields));
    Properties {
        id,
        slots: relation.partitions,
        changing: relation.kind == SourceKind::Table,
        key: key.through(&origins, available, &schema),
        placement: Some(placement)
            .filter(|placement| !placement.columns.is_empty())
            .and_then(|p| p.through(&origins)),
        window: relation.window,
        merged: None,
        schema,
    }
}
