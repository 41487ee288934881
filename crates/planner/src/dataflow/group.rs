//! GROUP BY and DISTINCT to dataflow nodes.
//!
//! Shape: `Project` (keys, arguments, filters) -> `Exchange` by the keys -> [`AssignWindows`] -> `Aggregate`. The projection makes every key and
//! argument a plain column, and names the keys as the result will, so that the exchange encodes exactly the record key that the result's
//! topic gets. Windows are assigned behind the exchange, since stream time is kept per slot.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use datafusion::{
    common::DFSchema,
    logical_expr::{Aggregate, Expr, LogicalPlan, expr},
    physical_expr::{PhysicalExpr, expressions::Column},
};

use super::{
    lower::{Goal, Lowering, with_names_of},
    properties::{Key, Placement, Properties},
    step_functions::refuse_over_changes,
};
use crate::{
    bind::AssignWindows,
    catalog::{WINDOWEND, WINDOWSTART},
    dataflow::{AggregateCall, AggregateFunction, Operator, WindowSpec},
    error::{PlanError, PlanResult},
    explain::expression_text,
    with::default_key_format,
};

/// The node that assigns windows directly under an aggregate.
pub(super) fn assign_windows(plan: &LogicalPlan) -> Option<&AssignWindows> {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => assign_windows(&alias.input),
        LogicalPlan::Extension(extension) => {
            extension.node.as_any().downcast_ref::<AssignWindows>()
        }
        _ => None,
    }
}

/// The columns that a grouping needs of its input.
#[derive(Default)]
struct Columns {
    expressions: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<FieldRef>,
}

impl Columns {
    /// The position of a key column, which has a name of its own and comes first.
    fn add_key(&mut self, expr: Arc<dyn PhysicalExpr>, name: &str, data_type: DataType) -> usize {
        self.fields
            .push(Arc::new(Field::new(name, data_type, true)));
        self.expressions.push(expr);
        self.expressions.len() - 1
    }

    /// The position of an argument, shared with whatever equals it.
    fn add_argument(
        &mut self,
        expr: Arc<dyn PhysicalExpr>,
        input: &SchemaRef,
    ) -> PlanResult<usize> {
        if let Some(position) = self
            .expressions
            .iter()
            .position(|own| own.as_ref() == expr.as_ref())
        {
            return Ok(position);
        }
        let data_type = expr.data_type(input).map_err(PlanError::DataFusion)?;
        let name = expression_text(&expr);
        self.fields
            .push(Arc::new(Field::new(name, data_type, true)));
        self.expressions.push(expr);
        Ok(self.expressions.len() - 1)
    }
}

/// A grouping ready to be made into nodes.
struct Grouping {
    columns: Columns,
    /// How many of the columns are keys; they come first.
    keys: usize,
    calls: Vec<AggregateCall>,
    windows: Option<WindowSpec>,
}

impl Lowering<'_> {
    /// Lowers GROUP BY, or an aggregate over everything.
    pub(super) fn lower_aggregate(
        &mut self,
        aggregate: &Aggregate,
        goal: &Goal,
    ) -> PlanResult<Properties> {
        let windows = assign_windows(&aggregate.input);
        let input = match windows {
            Some(windows) => self.lower(&windows.input, &Goal::default())?,
            None => self.lower(&aggregate.input, &Goal::default())?,
        };
        if windows.is_some() && input.changing {
            let hint =
                "windows collect the rows of a stream by event time; group a table without WINDOW";
            return Err(PlanError::unsupported(
                "WINDOW over a table",
                None,
                Some(hint),
            ));
        }
        let schema = aggregate.input.schema();
        let keys = match windows {
            Some(_) => split_bounds(&aggregate.group_expr)?,
            None => &aggregate.group_expr[..],
        };
        let mut columns = Columns::default();
        for (position, expr) in keys.iter().enumerate() {
            let key = self.input_expression(expr, schema, &input)?;
            let field = aggregate.schema.field(position);
            let name = wished_name(goal, position).unwrap_or(field.name());
            columns.add_key(key, name, field.data_type().clone());
        }
        let mut calls = Vec::with_capacity(aggregate.aggr_expr.len());
        for (position, expr) in aggregate.aggr_expr.iter().enumerate() {
            let position = aggregate.group_expr.len() + position;
            let output_type = aggregate.schema.field(position).data_type().clone();
            let name = wished_name(goal, position);
            calls.push(self.call(expr, schema, &input, &mut columns, output_type, name)?);
        }
        let grouping = Grouping {
            columns,
            keys: keys.len(),
            calls,
            windows: windows.map(|windows| windows.spec),
        };
        self.group(input, grouping, goal)
    }

    /// Lowers SELECT DISTINCT: every column is a key and nothing is folded.
    pub(super) fn lower_distinct(
        &mut self,
        plan: &LogicalPlan,
        goal: &Goal,
    ) -> PlanResult<Properties> {
        let input = self.lower(plan, &Goal::default())?;
        let mut columns = Columns::default();
        for (position, field) in input.schema.fields().iter().enumerate() {
            let name = wished_name(goal, position).unwrap_or(field.name());
            columns.add_key(
                Arc::new(Column::new(field.name(), position)),
                name,
                field.data_type().clone(),
            );
        }
        let keys = columns.expressions.len();
        let grouping = Grouping {
            columns,
            keys,
            calls: Vec::new(),
            windows: None,
        };
        self.group(input, grouping, goal)
    }

    fn group(
        &mut self,
        input: Properties,
        grouping: Grouping,
        goal: &Goal,
    ) -> PlanResult<Properties> {
        let Grouping {
            columns,
            keys,
            calls,
            windows,
        } = grouping;
        let wanted = self.wanted_placement(&columns, keys, goal);
        let slots = match (keys, goal.result) {
            (0, _) => 1,
            (_, true) => self.target.slots.unwrap_or(input.slots),
            (_, false) => input.slots,
        };
        let projected_schema = Arc::new(Schema::new(columns.fields));
        let projected = self.project(input, columns.expressions, projected_schema)?;
        let mut placed = self.place(projected, wanted.clone(), slots);
        let mut group: Vec<usize> = (0..keys).collect();
        if let Some(window) = windows {
            let width = placed.schema.fields().len();
            group.extend([width, width + 1]);
            placed.schema = add_bounds(&placed.schema);
            let operator = Operator::AssignWindows { window };
            placed.id = self.push(
                vec![placed.id],
                operator,
                placed.schema.clone(),
                slots,
                placed.changing,
            );
        }
        let schema = output_schema(&placed.schema, &group, &calls);
        let key = (0..group.len()).collect();
        let operator = Operator::Aggregate {
            group,
            calls,
            window: windows,
        };
        let id = self.push(vec![placed.id], operator, schema.clone(), slots, true);
        // The aggregate's output begins with its keys, in the order that the projection has them.
        Ok(Properties {
            id,
            schema,
            slots,
            changing: true,
            key: Key::Columns(key),
            placement: Some(wanted),
            window: windows,
        })
    }

    /// Rows of one group meet in one slot; in the result's last grouping, in the slot of the result's record key: its columns in the order, by
    /// the names and in the format that the result will have.
    fn wanted_placement(&self, columns: &Columns, keys: usize, goal: &Goal) -> Placement {
        let mut ordered: Vec<usize> = Vec::with_capacity(keys);
        let wished = goal.columns.iter().map(|(column, _)| *column);
        for position in wished.chain(0..keys) {
            if position < keys && !ordered.contains(&position) {
                ordered.push(position);
            }
        }
        let types: Vec<&DataType> = ordered
            .iter()
            .map(|position| columns.fields[*position].data_type())
            .collect();
        let chosen = self.target.key_format.clone().filter(|_| goal.result);
        Placement {
            names: ordered
                .iter()
                .map(|position| columns.fields[*position].name().clone())
                .collect(),
            format: chosen.unwrap_or_else(|| default_key_format(types.into_iter())),
            columns: ordered,
        }
    }

    fn call(
        &self,
        expr: &Expr,
        schema: &DFSchema,
        input: &Properties,
        columns: &mut Columns,
        output_type: DataType,
        name: Option<&String>,
    ) -> PlanResult<AggregateCall> {
        let expr::AggregateFunction { func, params } = aggregate_function(expr)?;
        let function = match func.name() {
            "count" => AggregateFunction::Count,
            "sum" => AggregateFunction::Sum,
            "avg" => AggregateFunction::Avg,
            "min" => AggregateFunction::Min,
            "max" => AggregateFunction::Max,
            other => {
                return Err(PlanError::unsupported(
                    format!("the aggregate {other} in a continuous query"),
                    None,
                    None,
                ));
            }
        };
        if !params.order_by.is_empty() || params.null_treatment.is_some() {
            return Err(PlanError::unsupported(
                format!("ORDER BY or IGNORE NULLS in {function}"),
                None,
                None,
            ));
        }
        let argument = match params.args.as_slice() {
            [Expr::Literal(value, _)]
                if function == AggregateFunction::Count && !params.distinct && !value.is_null() =>
            {
                None
            }
            [argument] => {
                let argument = self.input_expression(argument, schema, input)?;
                Some(columns.add_argument(argument, &input.schema)?)
            }
            _ => {
                return Err(PlanError::unsupported(
                    format!("{function} of several arguments"),
                    None,
                    None,
                ));
            }
        };
        let filter = match &params.filter {
            Some(filter) => {
                let filter = self.input_expression(filter, schema, input)?;
                Some(columns.add_argument(filter, &input.schema)?)
            }
            None => None,
        };
        // MIN and MAX of a set are those of the bag.
        let distinct =
            params.distinct && !matches!(function, AggregateFunction::Min | AggregateFunction::Max);
        let argument_name = argument.map_or("*", |column| columns.fields[column].name().as_str());
        let name = name
            .cloned()
            .unwrap_or_else(|| format!("{function}({argument_name})"));
        Ok(AggregateCall {
            function,
            argument,
            filter,
            distinct,
            output_type,
            name,
        })
    }

    /// An expression over the grouping's input. `schema` may have the windows' bounds behind the input's columns; no argument can use them.
    fn input_expression(
        &self,
        expr: &Expr,
        schema: &DFSchema,
        input: &Properties,
    ) -> PlanResult<Arc<dyn PhysicalExpr>> {
        let width = input.schema.fields().len();
        let uses_bound = expr.column_refs().iter().any(|column| {
            schema
                .maybe_index_of_column(column)
                .is_some_and(|position| position >= width)
        });
        if uses_bound {
            let what = format!("{WINDOWSTART} or {WINDOWEND} in GROUP BY or in an aggregate");
            return Err(PlanError::unsupported(
                what,
                None,
                Some("use rowtime, or a query over the windowed table"),
            ));
        }
        refuse_over_changes([expr], input.changing)?;
        with_names_of(&self.physical(expr, schema)?, &input.schema)
    }
}

/// The group columns before the bounds, which binding has put last.
fn split_bounds(group: &[Expr]) -> PlanResult<&[Expr]> {
    let is = |expr: &Expr, name: &str| matches!(expr, Expr::Column(column) if column.name == name);
    match group {
        [keys @ .., start, end] if is(start, WINDOWSTART) && is(end, WINDOWEND) => Ok(keys),
        _ => Err(PlanError::Internal(
            "the windows' bounds are not the last group columns".to_owned(),
        )),
    }
}

fn aggregate_function(expr: &Expr) -> PlanResult<&expr::AggregateFunction> {
    match expr {
        Expr::Alias(alias) => aggregate_function(&alias.expr),
        Expr::AggregateFunction(function) => Ok(function),
        other => Err(PlanError::Internal(format!("{other} is not an aggregate"))),
    }
}

/// The final name of a group column, if the result has it.
fn wished_name(goal: &Goal, position: usize) -> Option<&String> {
    goal.columns
        .iter()
        .find(|(column, _)| *column == position)
        .map(|(_, name)| name)
}

/// The group columns, then one column per call.
fn output_schema(input: &SchemaRef, group: &[usize], calls: &[AggregateCall]) -> SchemaRef {
    let mut fields: Vec<FieldRef> = group
        .iter()
        .map(|column| input.fields()[*column].clone())
        .collect();
    fields.extend(
        calls
            .iter()
            .map(|call| Arc::new(Field::new(&call.name, call.output_type.clone(), true))),
    );
    Arc::new(Schema::new(fields))
}

fn add_bounds(schema: &SchemaRef) -> SchemaRef {
    let mut fields: Vec<FieldRef> = schema.fields().iter().cloned().collect();
    for name in [WINDOWSTART, WINDOWEND] {
        fields.push(Arc::new(Field::new(
            name,
            DataType::Timestamp(TimeUnit::Millisecond, None),
            true,
        )));
    }
    Arc::new(Schema::new(fields))
}
