//! Logical nodes to dataflow nodes.
//!
//! Every logical node becomes zero or more dataflow nodes whose output has the logical node's columns, position by position; that is what lets
//! expressions be made against the logical schema and evaluated by position. Nodes are numbered in the order they are made, inputs before
//! readers, so equal logical plans give equal numbers.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::{
    common::{DFSchema, tree_node::Transformed, tree_node::TreeNode},
    execution::context::ExecutionProps,
    logical_expr::{
        Distinct, Expr, ExprSchemable, Filter, LogicalPlan, Projection, TableScan, Union,
        physical_planning_context::PhysicalPlanningContext,
    },
    physical_expr::{PhysicalExpr, create_physical_expr, expressions::Column},
};
use highwater_sql::SourceKind;

use super::{
    group::assign_windows,
    lambda_variables::apart_from_columns,
    properties::{Key, Placement, Properties},
    source::source_properties,
    step_functions::refuse_over_changes,
};
use crate::{
    bind::{Located, PartitionKey, RelationSource},
    catalog::{FormatName, TimestampColumn, WINDOWEND, WINDOWSTART},
    dataflow::{DataflowPlan, Node, NodeId, Operator},
    error::{PlanError, PlanResult},
    types::{has_map, stored_type},
    with::default_key_format,
};

/// What the result must be like.
#[derive(Debug, Clone, Default)]
pub(crate) struct Target {
    /// The kind of relation that it becomes; `None` for a push query, which takes any result as it is.
    pub kind: Option<SourceKind>,
    /// Number of slots of a keyed result; `None` keeps the input's.
    pub slots: Option<u32>,
    /// Format of its record keys, when it was chosen.
    pub key_format: Option<FormatName>,
    /// Windows give their row once, when they close.
    pub finals_only: bool,
    /// ksqlDB's rules: groups keep their rows when all that was in them has been taken back, and NULL is no group.
    pub ksql: bool,
    /// The column that tells the event time of the result's rows.
    pub timestamp: Option<TimestampColumn>,
    /// PARTITION BY.
    pub partition: Option<PartitionKey>,
}

/// A lowered query.
#[derive(Debug)]
pub(crate) struct Lowered {
    /// The dataflow.
    pub plan: DataflowPlan,
    /// The format that its exchanges place the result by: what its record keys must be written in.
    pub key_format: FormatName,
}

/// Lowers a rewritten logical plan.
pub(crate) fn lower(plan: &LogicalPlan, target: &Target, located: &Located) -> PlanResult<Lowered> {
    let mut lowering = Lowering {
        nodes: Vec::new(),
        target,
        located,
        properties: ExecutionProps::new(),
        context: Default::default(),
    };
    let named = plan
        .schema()
        .fields()
        .iter()
        .map(|field| field.name().clone())
        .enumerate()
        .collect();
    let root = lowering.lower(
        plan,
        &Goal {
            columns: named,
            result: true,
        },
    )?;
    lowering.finish(root)
}

/// Which columns of an output the result's record key may hold, so that an exchange below can place rows as the result will be placed.
#[derive(Debug, Default)]
pub(super) struct Goal {
    /// Position and final name, in the order of the result.
    pub columns: Vec<(usize, String)>,
    /// Only rows are dropped and columns renamed or computed between here and the result.
    pub result: bool,
}

/// A plan in the making.
pub(super) struct Lowering<'a> {
    nodes: Vec<Node>,
    pub target: &'a Target,
    pub located: &'a Located<'a>,
    properties: ExecutionProps,
    context: PhysicalPlanningContext,
}

impl Lowering<'_> {
    /// Lowers one logical node with everything below it.
    pub(super) fn lower(&mut self, plan: &LogicalPlan, goal: &Goal) -> PlanResult<Properties> {
        match plan {
            LogicalPlan::TableScan(scan) => self.lower_scan(scan),
            LogicalPlan::SubqueryAlias(alias) => self.lower(&alias.input, goal),
            LogicalPlan::Filter(filter) => self.lower_filter(filter, goal),
            LogicalPlan::Projection(projection) => self.lower_projection(projection, goal),
            LogicalPlan::Aggregate(aggregate) => self.lower_aggregate(aggregate, goal),
            LogicalPlan::Distinct(Distinct::All(input)) => self.lower_distinct(input, goal),
            LogicalPlan::Join(join) => self.lower_join(join, goal),
            LogicalPlan::Union(union) => self.lower_union(union),
            LogicalPlan::Unnest(unnest) => self.lower_unnest(unnest),
            LogicalPlan::Extension(_) if assign_windows(plan).is_some() => Err(
                PlanError::Internal("a window without its aggregate".to_owned()),
            ),
            other => Err(no_continuous_form(other)),
        }
    }

    /// Adds a node.
    pub(super) fn push(
        &mut self,
        inputs: Vec<NodeId>,
        operator: Operator,
        schema: SchemaRef,
        slots: u32,
        changing: bool,
    ) -> NodeId {
        let id = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.nodes.push(Node {
            id,
            inputs,
            operator,
            schema,
            slots,
            changing,
        });
        id
    }

    /// An expression over the output of a logical node.
    pub(super) fn physical(
        &self,
        expr: &Expr,
        schema: &DFSchema,
    ) -> PlanResult<Arc<dyn PhysicalExpr>> {
        let stripped = strip_round_trips(expr.clone(), schema)?;
        let expression = create_physical_expr(&stripped, schema, &self.properties, &self.context)
            .map_err(|error| self.located.error(error))?;
        apart_from_columns(expression)
    }

    fn lower_scan(&mut self, scan: &TableScan) -> PlanResult<Properties> {
        let Some(source) = scan.source.downcast_ref::<RelationSource>() else {
            return Err(PlanError::Internal(format!(
                "\"{}\" is not a relation of the catalog",
                scan.table_name
            )));
        };
        if !scan.filters.is_empty() || scan.fetch.is_some() {
            return Err(PlanError::Internal(
                "a scan took over a filter or a limit".to_owned(),
            ));
        }
        let relation = source.relation.clone();
        let available = scan.source.schema();
        let projection = match &scan.projection {
            Some(columns) => columns.clone(),
            None => (0..available.fields().len()).collect(),
        };
        let next = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        let properties = source_properties(next, &relation, &available, &projection);
        let marks = self.target.ksql && relation.kind == SourceKind::Stream;
        let operator = Operator::Source {
            relation,
            projection,
            marks,
        };
        let id = self.push(
            Vec::new(),
            operator,
            properties.schema.clone(),
            properties.slots,
            properties.changing,
        );
        debug_assert_eq!(id, next, "properties name the node that was made");
        Ok(properties)
    }

    fn lower_filter(&mut self, filter: &Filter, goal: &Goal) -> PlanResult<Properties> {
        let input = self.lower(&filter.input, goal)?;
        refuse_over_changes([&filter.predicate], input.changing)?;
        let predicate = self.physical(&filter.predicate, filter.input.schema())?;
        let predicate = with_names_of(&predicate, &input.schema)?;
        let operator = Operator::Filter { predicate };
        let id = self.push(
            vec![input.id],
            operator,
            input.schema.clone(),
            input.slots,
            input.changing,
        );
        Ok(Properties { id, ..input })
    }

    fn lower_projection(&mut self, projection: &Projection, goal: &Goal) -> PlanResult<Properties> {
        let input_schema = projection.input.schema();
        let expressions: Vec<Arc<dyn PhysicalExpr>> = projection
            .expr
            .iter()
            .map(|expr| self.physical(expr, input_schema))
            .collect::<PlanResult<_>>()?;
        let origins: Vec<Option<usize>> = expressions.iter().map(column_of).collect();
        let passed = goal
            .columns
            .iter()
            .filter_map(|(column, name)| Some((origins[*column]?, name.clone())))
            .collect();
        let input = self.lower(
            &projection.input,
            &Goal {
                columns: passed,
                result: goal.result,
            },
        )?;
        refuse_over_changes(&projection.expr, input.changing)?;
        let schema = plain_schema(&projection.schema);
        self.project(input, expressions, schema)
    }

    /// Computes columns, unless they are the input's as they stand. A projection of a projection becomes one where no work is doubled.
    pub(super) fn project(
        &mut self,
        input: Properties,
        expressions: Vec<Arc<dyn PhysicalExpr>>,
        schema: SchemaRef,
    ) -> PlanResult<Properties> {
        let expressions: Vec<Arc<dyn PhysicalExpr>> = expressions
            .iter()
            .map(|expr| with_names_of(expr, &input.schema))
            .collect::<PlanResult<_>>()?;
        let origins: Vec<Option<usize>> = expressions.iter().map(column_of).collect();
        let whole = input
            .merged
            .as_ref()
            .and_then(|merged| merged.made_whole(&expressions));
        let merged = input
            .merged
            .as_ref()
            .and_then(|merged| merged.through(&origins));
        let (key, placement) = whole.unwrap_or_else(|| {
            let key = input.key.through(&origins, &input.schema, &schema);
            let placement = input
                .placement
                .as_ref()
                .and_then(|placement| placement.through(&origins));
            (key, placement)
        });
        let (reads, expressions) = self.merge_projections(input.id, expressions)?;
        let below = &self.nodes[reads.0 as usize].schema;
        let same = expressions
            .iter()
            .map(column_of)
            .eq((0..below.fields().len()).map(Some));
        let id = if same && schema == *below {
            reads
        } else {
            let operator = Operator::Project { expressions };
            self.push(
                vec![reads],
                operator,
                schema.clone(),
                input.slots,
                input.changing,
            )
        };
        Ok(Properties {
            id,
            schema,
            key,
            placement,
            merged,
            ..input
        })
    }

    /// Takes off a projection that was just made for these expressions, and writes them over its input instead.
    fn merge_projections(
        &mut self,
        input: NodeId,
        expressions: Vec<Arc<dyn PhysicalExpr>>,
    ) -> PlanResult<(NodeId, Vec<Arc<dyn PhysicalExpr>>)> {
        let Some(Node {
            id,
            inputs,
            operator: Operator::Project { expressions: inner },
            ..
        }) = self.nodes.last()
        else {
            return Ok((input, expressions));
        };
        let (true, [reads]) = (*id == input, inputs.as_slice()) else {
            return Ok((input, expressions));
        };
        let is_column = |expr: &Arc<dyn PhysicalExpr>| column_of(expr).is_some();
        if !expressions.iter().all(is_column) && !inner.iter().all(is_column) {
            return Ok((input, expressions));
        }
        let merged = expressions
            .iter()
            .map(|expr| substitute(expr, inner))
            .collect::<PlanResult<_>>()?;
        let reads = *reads;
        self.nodes.pop();
        Ok((reads, merged))
    }

    fn lower_union(&mut self, union: &Union) -> PlanResult<Properties> {
        let mut inputs = Vec::with_capacity(union.inputs.len());
        for input in &union.inputs {
            inputs.push(self.lower(input, &Goal::default())?);
        }
        let Some(first) = inputs.first().cloned() else {
            return Err(PlanError::Internal("a union without inputs".to_owned()));
        };
        if inputs.iter().any(|input| input.changing != first.changing) {
            let hint = "group the stream first, so that both are tables";
            return Err(PlanError::unsupported(
                "UNION of a stream and a table",
                None,
                Some(hint),
            ));
        }
        let alike = inputs
            .iter()
            .all(|input| input.slots == first.slots && input.key == first.key);
        let key = if alike && !first.changing {
            first.key.clone()
        } else {
            Key::None
        };
        let placement = first.placement.clone().filter(|placement| {
            let same = |input: &Properties| {
                input
                    .placement
                    .as_ref()
                    .is_some_and(|own| own.satisfies(placement))
            };
            alike && inputs.iter().all(same)
        });
        let slots = inputs
            .iter()
            .map(|input| input.slots)
            .max()
            .unwrap_or(first.slots);
        let schema = plain_schema(&union.schema);
        let ids = inputs.iter().map(|input| input.id).collect();
        let id = self.push(ids, Operator::Union, schema.clone(), slots, first.changing);
        Ok(Properties {
            id,
            schema,
            slots,
            changing: first.changing,
            key,
            placement,
            window: None,
            merged: None,
        })
    }

    /// Takes event time from the column that the statement names.
    fn retime(&mut self, root: Properties) -> PlanResult<Properties> {
        let Some(TimestampColumn { column, format }) = self.target.timestamp.clone() else {
            return Ok(root);
        };
        let Ok(position) = root.schema.index_of(&column) else {
            return Err(PlanError::UnknownColumn {
                name: column,
                position: None,
                hint: Some("the column that TIMESTAMP names must be selected".to_owned()),
            });
        };
        let operator = Operator::Retime {
            column: position,
            format,
        };
        let id = self.push(
            vec![root.id],
            operator,
            root.schema.clone(),
            root.slots,
            root.changing,
        );
        Ok(Properties { id, ..root })
    }

    /// The key that PARTITION BY gives the result.
    fn partition(&self, root: Properties) -> PlanResult<Properties> {
        let Some(partition) = &self.target.partition else {
            return Ok(root);
        };
        if root.changing {
            return Err(PlanError::invalid(
                "only streams can be partitioned, and this is a table",
                None,
                Some("a table's rows stand where its key is"),
            ));
        }
        if root.window.is_some() {
            return Err(PlanError::invalid(
                "a windowed stream cannot be partitioned anew",
                None,
                Some("its windows are part of its key"),
            ));
        }
        let key = match partition.columns.is_empty() {
            true => Key::None,
            false => Key::Columns(partition.columns.clone()),
        };
        Ok(Properties { key, ..root })
    }

    fn finish(mut self, root: Properties) -> PlanResult<Lowered> {
        let root = self.partition(root)?;
        let kind = if root.changing {
            SourceKind::Table
        } else {
            SourceKind::Stream
        };
        check_kind(kind, &root, self.target.kind)?;
        let (key, root) = match (&root.key, self.target.kind) {
            (_, None) => (columns_or_none(&root.key), root),
            (Key::Columns(columns), Some(_)) => self.place_result(columns.clone(), root)?,
            (Key::Lost { column }, Some(SourceKind::Stream)) if self.target.ksql => {
                return Err(PlanError::InvalidKey {
                    message: format!("the key column \"{column}\" is not selected"),
                    position: None,
                    hint: Some("the key must be in the SELECT list: add it".to_owned()),
                });
            }
            (_, Some(SourceKind::Stream)) => {
                self.check_unplaced(&root, self.target.slots.unwrap_or(root.slots))?;
                (Vec::new(), root)
            }
            (lost, Some(SourceKind::Table)) => return Err(missing_key(lost)),
        };
        let root = self.retime(root)?;
        let key_format = self.key_format(&root, &key);
        let plan = DataflowPlan {
            nodes: self.nodes,
            kind,
            key,
            slots: root.slots,
            window: root.window,
        };
        Ok(Lowered { plan, key_format })
    }

    /// Puts the result's rows where its record keys belong. Returns the key with the window's bounds last.
    fn place_result(
        &mut self,
        columns: Vec<usize>,
        root: Properties,
    ) -> PlanResult<(Vec<usize>, Properties)> {
        let is_bound = |column: &usize| {
            root.window.is_some()
                && matches!(
                    root.schema.field(*column).name().as_str(),
                    WINDOWSTART | WINDOWEND
                )
        };
        let (mut bounds, mut placed): (Vec<usize>, Vec<usize>) =
            columns.into_iter().partition(is_bound);
        if root.window.is_some() && bounds.len() != 2 {
            return Err(PlanError::InvalidKey {
                message: "the windows' bounds are part of the key and must keep their names"
                    .to_owned(),
                position: None,
                hint: Some("select windowstart and windowend without another name".to_owned()),
            });
        }
        let schema = &root.schema;
        if let Some(column) = placed
            .iter()
            .find(|column| has_map(schema.field(**column).data_type()))
        {
            return Err(PlanError::InvalidKey {
                message: format!(
                    "the key column \"{}\" holds a map",
                    schema.field(*column).name()
                ),
                position: None,
                hint: Some(
                    "a map has no order, so equal keys could be written in different bytes"
                        .to_owned(),
                ),
            });
        }
        placed.sort_unstable();
        bounds.sort_by_key(|column| root.schema.field(*column).name() == WINDOWEND);
        let key: Vec<usize> = placed.iter().chain(&bounds).copied().collect();
        if placed.is_empty() {
            return Ok((key, root));
        }
        let wanted = Placement {
            names: placed
                .iter()
                .map(|column| root.schema.field(*column).name().clone())
                .collect(),
            format: self.key_format(&root, &placed),
            columns: placed,
        };
        let slots = self.target.slots.unwrap_or(root.slots);
        Ok((key, self.place(root, wanted, slots)))
    }

    /// The record key's format: as chosen, else as the rows are placed already, else by the columns' types.
    fn key_format(&self, root: &Properties, key: &[usize]) -> FormatName {
        let placed_by_key =
            |placement: &&Placement| placement.columns.iter().all(|column| key.contains(column));
        match (
            &self.target.key_format,
            root.placement.as_ref().filter(placed_by_key),
        ) {
            (Some(chosen), _) => chosen.clone(),
            (None, Some(placement)) => placement.format.clone(),
            (None, None) => {
                let types: Vec<_> = key
                    .iter()
                    .map(|column| root.schema.field(*column).data_type())
                    .collect();
                default_key_format(types.into_iter())
            }
        }
    }
}

fn columns_or_none(key: &Key) -> Vec<usize> {
    match key {
        Key::Columns(columns) => columns.clone(),
        Key::Lost { .. } | Key::None => Vec::new(),
    }
}

fn check_kind(kind: SourceKind, root: &Properties, wanted: Option<SourceKind>) -> PlanResult<()> {
    match (kind, wanted) {
        (SourceKind::Table, Some(SourceKind::Stream)) => {
            let message = "the query's result is a table, since its rows change";
            Err(PlanError::invalid(
                message,
                None,
                Some("write CREATE TABLE .. AS"),
            ))
        }
        (SourceKind::Stream, Some(SourceKind::Table)) => {
            let message = "the query's result is a stream, since its rows never change";
            let hint = match root.key {
                Key::Columns(_) => {
                    "write CREATE STREAM .. AS, or keep one row per key with GROUP BY"
                }
                Key::Lost { .. } | Key::None => "write CREATE STREAM .. AS, or add GROUP BY",
            };
            Err(PlanError::invalid(message, None, Some(hint)))
        }
        _ => Ok(()),
    }
}

fn missing_key(key: &Key) -> PlanError {
    match key {
        Key::Lost { column } => PlanError::InvalidKey {
            message: format!("the key column \"{column}\" is not selected"),
            position: None,
            hint: Some("a table needs its whole key: add the column to the SELECT list".to_owned()),
        },
        Key::Columns(_) | Key::None => PlanError::InvalidKey {
            message: "the result has no key".to_owned(),
            position: None,
            hint: Some("add GROUP BY or SELECT DISTINCT".to_owned()),
        },
    }
}

/// The input column that an expression is, if it is one as it stands.
pub(super) fn column_of(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// The same expression with every column under the name that the input has for it.
pub(super) fn with_names_of(
    expr: &Arc<dyn PhysicalExpr>,
    input: &SchemaRef,
) -> PlanResult<Arc<dyn PhysicalExpr>> {
    let columns: Vec<Arc<dyn PhysicalExpr>> = input
        .fields()
        .iter()
        .enumerate()
        .map(|(position, field)| {
            Arc::new(Column::new(field.name(), position)) as Arc<dyn PhysicalExpr>
        })
        .collect();
    substitute(expr, &columns)
}

/// The same expression with every column replaced by the expression at its position.
fn substitute(
    expr: &Arc<dyn PhysicalExpr>,
    columns: &[Arc<dyn PhysicalExpr>],
) -> PlanResult<Arc<dyn PhysicalExpr>> {
    let replaced = expr.clone().transform_up(|part| {
        match column_of(&part).and_then(|column| columns.get(column)) {
            Some(column) => Ok(Transformed::yes(column.clone())),
            None => Ok(Transformed::no(part)),
        }
    });
    Ok(replaced.map_err(PlanError::DataFusion)?.data)
}

/// The columns of a logical node without qualifiers and metadata, all nullable.
pub(super) fn plain_schema(schema: &DFSchema) -> SchemaRef {
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .map(|field| Field::new(field.name(), field.data_type().clone(), true))
        .collect();
    Arc::new(Schema::new(fields))
}

/// Takes off casts to a type that no relation stores and back. A group column whose function gives such a type is cast to be grouped, cast
/// back for the expressions over it and cast again to be stored; without the two it is the key column as it stands.
fn strip_round_trips(expr: Expr, schema: &DFSchema) -> PlanResult<Expr> {
    let stripped = expr.transform_up(|expr| {
        let (outer, inner) = match &expr {
            Expr::Cast(outer) => match outer.expr.as_ref() {
                Expr::Cast(inner) => (outer, inner),
                _ => return Ok(Transformed::no(expr)),
            },
            _ => return Ok(Transformed::no(expr)),
        };
        let original = inner.expr.get_type(schema)?;
        let through = inner.field.data_type();
        if *outer.field.data_type() == original && stored_type(through).as_ref() == Some(&original)
        {
            return Ok(Transformed::yes(inner.expr.as_ref().clone()));
        }
        Ok(Transformed::no(expr))
    });
    Ok(stripped.map_err(PlanError::DataFusion)?.data)
}

fn no_continuous_form(plan: &LogicalPlan) -> PlanError {
    let what = match plan {
        LogicalPlan::Sort(_) => "ORDER BY",
        LogicalPlan::Limit(_) => "LIMIT",
        LogicalPlan::Window(_) => "a window function",
        LogicalPlan::Subquery(_) => "a subquery in an expression",
        LogicalPlan::EmptyRelation(_) => "a SELECT that reads nothing",
        LogicalPlan::Values(_) => "VALUES",
        LogicalPlan::Distinct(_) => "DISTINCT ON",
        LogicalPlan::RecursiveQuery(_) => "WITH RECURSIVE",
        _ => "this clause",
    };
    PlanError::unsupported(
        format!("{what} in a continuous query"),
        None,
        Some("run it as a pull query"),
    )
}
