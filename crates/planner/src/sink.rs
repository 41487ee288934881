//! The relation that a persistent query's result becomes.

use std::sync::Arc;

use datafusion::{
    common::tree_node::TreeNode, common::tree_node::TreeNodeRecursion, logical_expr::LogicalPlan,
};
use highwater_sql::{CreateAs, Dialect, Emit, SourceKind};

use crate::{
    PlanContext,
    bind::{RelationSource, is_reserved, partitions_of, topic_of},
    catalog::{Column, FormatName, QueryId, Relation, RelationId, WINDOWEND, WINDOWSTART},
    dataflow::{DataflowPlan, Lowered, Target},
    error::{PlanError, PlanResult},
    with::{WithClause, check_key_columns},
};

/// What the statement and its sources say of the result before it is planned.
pub(crate) struct SinkDraft<'a> {
    create: &'a CreateAs,
    with: WithClause,
    dialect: Dialect,
    /// What keys are written in where the source has none.
    default_key_format: String,
    topic: String,
    /// Number of partitions that the topic has or shall have.
    partitions: u32,
    /// Whether that number is fixed: by the statement, or by an existing topic.
    fixed: bool,
    /// The left-most source, whose formats are inherited.
    first: Arc<Relation>,
}

impl<'a> SinkDraft<'a> {
    /// Reads the WITH clause and what it inherits.
    pub fn new(create: &'a CreateAs, ctx: &PlanContext, plan: &LogicalPlan) -> PlanResult<Self> {
        let with = WithClause::read(&create.with, ctx.identifier_case)?;
        with.refuse_window()?;
        let sources = sources(plan)?;
        let Some(first) = sources.first().cloned() else {
            let what = "a SELECT that reads nothing in a continuous query";
            return Err(PlanError::unsupported(what, None, None));
        };
        let named = format!("{}{}", ctx.defaults.topic_prefix, create.name);
        let topic = topic_of(&named, &with);
        if let Some(source) = sources.iter().find(|source| source.topic == topic) {
            return Err(PlanError::InvalidProperty {
                name: "kafka_topic".to_owned(),
                reason: format!(
                    "the query reads topic \"{topic}\" itself, through \"{}\"",
                    source.name
                ),
                hint: Some("write to another topic".to_owned()),
            });
        }
        let partitions = partitions_of(&topic, &with, ctx, first.partitions)?;
        let fixed = with.partitions.is_some() || ctx.catalog.topic_partitions(&topic).is_some();
        Ok(Self {
            create,
            with,
            dialect: ctx.dialect,
            default_key_format: ctx
                .defaults
                .key_format
                .clone()
                .unwrap_or_else(|| "KAFKA".to_owned()),
            topic,
            partitions,
            fixed,
            first,
        })
    }

    /// What the dataflow must give.
    pub fn target(&self) -> Target {
        Target {
            kind: Some(self.create.kind),
            slots: Some(self.partitions),
            key_format: self
                .with
                .chosen_key_format()
                .or_else(|| self.inherited_key_format()),
            finals_only: self.create.query.emit == Some(Emit::Final),
            ksql: false,
            timestamp: self.with.timestamp_column(),
            partition: None,
        }
    }

    /// In ksqlDB a result's keys are written as those of its first source are, or as KAFKA where that has none.
    fn inherited_key_format(&self) -> Option<FormatName> {
        if self.dialect != Dialect::Ksql || self.with.has_key_format() {
            return None;
        }
        let source = &self.first.key_format;
        Some(match source.name.as_str() {
            "NONE" => FormatName {
                name: self.default_key_format.clone(),
                delimiter: None,
                wrapped: None,
            },
            _ => source.clone(),
        })
    }

    /// The relation, now that the result's columns and key are known.
    pub fn finish(
        self,
        lowered: &Lowered,
        id: RelationId,
        query: QueryId,
        ctx: &PlanContext,
    ) -> PlanResult<Relation> {
        let plan = &lowered.plan;
        let columns = columns(plan)?;
        if self.fixed && plan.slots != self.partitions {
            return Err(PlanError::InvalidProperty {
                name: "partitions".to_owned(),
                reason: format!(
                    "the result has one row and one partition, not {}",
                    self.partitions
                ),
                hint: Some("a result without GROUP BY columns needs partitions = 1".to_owned()),
            });
        }
        if self.create.kind == SourceKind::Table
            && plan.window.is_none()
            && self.with.retention_ms.is_some()
        {
            return Err(PlanError::InvalidProperty {
                name: "retention_ms".to_owned(),
                reason: "a table keeps the last row of each key for ever".to_owned(),
                hint: None,
            });
        }
        let bound = |name: &str| plan.window.is_some() && matches!(name, WINDOWSTART | WINDOWEND);
        let keys: Vec<&Column> = columns
            .iter()
            .filter(|column| column.key && !bound(&column.name))
            .collect();
        let timestamp = self.with.timestamp(&columns)?;
        let values: Vec<&Column> = columns.iter().filter(|column| !column.key).collect();
        let key_format = match keys.is_empty() || self.with.has_key_format() {
            true => self.with.key_format(&keys, ctx)?,
            false => {
                check_key_columns(&lowered.key_format.name, &keys)?;
                lowered.key_format.clone()
            }
        };
        let value_format = self
            .with
            .value_format(&values, Some(&self.first.value_format), ctx)?;
        Ok(Relation {
            id,
            name: self.create.name.clone(),
            kind: self.create.kind,
            topic: self.topic,
            partitions: plan.slots,
            key_format,
            value_format,
            timestamp,
            window: plan.window,
            read_only: false,
            query: Some(query),
            columns,
        })
    }
}

/// The result's columns. Window bounds keep their reserved names, nothing else may have one.
fn columns(plan: &DataflowPlan) -> PlanResult<Vec<Column>> {
    let mut columns: Vec<Column> = Vec::new();
    for (position, field) in plan.root().schema.fields().iter().enumerate() {
        let name = field.name();
        let key = plan.key.contains(&position);
        let bound =
            plan.window.is_some() && key && matches!(name.as_str(), WINDOWSTART | WINDOWEND);
        if is_reserved(name) && !bound {
            return Err(PlanError::ReservedName {
                name: name.clone(),
                position: None,
                hint: Some("give the column another name with AS".to_owned()),
            });
        }
        if columns.iter().any(|column| column.name == *name) {
            return Err(PlanError::DuplicateColumn {
                name: name.clone(),
                position: None,
            });
        }
        columns.push(Column {
            headers: None,
            name: name.clone(),
            data_type: field.data_type().clone(),
            key,
        });
    }
    Ok(columns)
}

/// The relations that a query reads, from left to right.
fn sources(plan: &LogicalPlan) -> PlanResult<Vec<Arc<Relation>>> {
    let mut sources = Vec::new();
    let visit = plan.apply(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            sources.extend(
                scan.source
                    .downcast_ref::<RelationSource>()
                    .map(|source| source.relation.clone()),
            );
        }
        Ok(TreeNodeRecursion::Continue)
    });
    visit.map_err(PlanError::DataFusion)?;
    Ok(sources)
}
