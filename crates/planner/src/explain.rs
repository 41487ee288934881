//! The one renderer of plans.
//!
//! One operator a line, from sources to sink, each at most [`WIDTH`] characters wide: its number, its name, what it does. Lists that do not fit
//! are cut and say how many items are missing. A line says which nodes it reads only when that is not simply the one above.

use std::{fmt, sync::Arc, time::Duration};

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::{
    common::{
        ScalarValue,
        tree_node::{Transformed, TreeNode},
    },
    physical_expr::{
        PhysicalExpr,
        expressions::{CastExpr, Column, LambdaVariable, Literal},
    },
    physical_expr_common::physical_expr::fmt_sql,
};

use crate::{
    catalog::{FormatName, QueryId, Relation, SourceKind},
    dataflow::{AggregateCall, DataflowPlan, Node, NodeId, Operator, WindowShape, WindowSpec},
    types::sql_name,
};

/// Widest line.
const WIDTH: usize = 100;

/// The plan, one operator a line. With the sink, state tables have the query's name and the last line tells where results go.
pub fn explain_dataflow(plan: &DataflowPlan, sink: Option<&Relation>) -> Vec<String> {
    let query = sink.and_then(|relation| relation.query);
    let mut lines: Vec<String> = plan
        .nodes
        .iter()
        .map(|node| explain_node(plan, node, query))
        .collect();
    lines.push(explain_result(plan, sink));
    lines
}

fn explain_node(plan: &DataflowPlan, node: &Node, query: Option<QueryId>) -> String {
    let mut line = Line::new(&format!("n{}", node.id.0), operator_name(&node.operator));
    match &node.operator {
        Operator::Source { relation, .. } => {
            line.text(&format!("{} {}", kind_name(relation.kind), relation.name));
            let columns = node
                .schema
                .fields()
                .iter()
                .map(|field| field.name().clone());
            line.list(" (", columns.collect(), ")", slots(node.slots).len() + 2);
            line.text(&format!(", {}", slots(node.slots)));
        }
        Operator::Filter { predicate } => line.text(&expression_text(predicate)),
        Operator::Project { expressions } => {
            let columns = expressions.iter().zip(node.schema.fields());
            let columns = columns.map(|(expr, field)| renamed(expression_text(expr), field.name()));
            line.list("", columns.collect(), "", 0);
        }
        Operator::AssignWindows { window } => line.text(&window.to_string()),
        Operator::Exchange { names, format, .. } => {
            let behind = format!(" {}, {}", format.name, slots(node.slots));
            if names.is_empty() {
                line.text(&format!("all rows, {}", slots(node.slots)));
            } else {
                line.list("by (", names.clone(), ")", behind.len());
                line.text(&behind);
            }
        }
        Operator::Aggregate { group, calls, .. } => {
            let state = format!(", state {}", state_table(query, node.id));
            explain_aggregate(
                &mut line,
                input_schema(plan, node),
                group,
                calls,
                state.len(),
            );
            line.text(&state);
        }
        Operator::Union => line.list(
            "of ",
            node.inputs.iter().map(|id| format!("n{}", id.0)).collect(),
            "",
            0,
        ),
    }
    if let [input] = node.inputs[..]
        && input.0 + 1 != node.id.0
    {
        line.text(&format!(", reads n{}", input.0));
    }
    line.finish()
}

fn explain_aggregate(
    line: &mut Line,
    input: Option<&SchemaRef>,
    group: &[usize],
    calls: &[AggregateCall],
    reserved: usize,
) {
    let calls: Vec<String> = calls.iter().map(|call| explain_call(call, input)).collect();
    if group.is_empty() {
        return line.list("", calls, "", reserved);
    }
    let group = input.map(|schema| names(schema, group)).unwrap_or_default();
    if calls.is_empty() {
        return line.list("by (", group, ")", reserved);
    }
    // Both lists get their share: the groups leave room for a first call at least.
    let first_call = calls[0].len() + 12;
    line.list("by (", group, ")", reserved + first_call);
    line.list(": ", calls, "", reserved);
}

/// The last line: the relation, or the client.
fn explain_result(plan: &DataflowPlan, sink: Option<&Relation>) -> String {
    let schema = &plan.root().schema;
    let Some(relation) = sink else {
        let mut line = Line::new("", "client");
        line.text(kind_name(plan.kind));
        line.list(
            " (",
            schema
                .fields()
                .iter()
                .map(|field| field.name().clone())
                .collect(),
            ")",
            0,
        );
        return line.finish();
    };
    let mut line = Line::new("", "sink");
    line.text(&format!("{} {}", kind_name(relation.kind), relation.name));
    if relation.topic != relation.name {
        line.text(&format!(", topic {}", relation.topic));
    }
    let behind = format!(
        ", {}, {}",
        format_text("value", &relation.value_format),
        slots(relation.partitions)
    );
    if plan.key.is_empty() {
        line.text(", no key");
    } else {
        let format = format!(" {}", relation.key_format.name);
        line.list(
            ", key (",
            names(schema, &plan.key),
            ")",
            format.len() + behind.len(),
        );
        line.text(&format);
    }
    line.text(&behind);
    line.finish()
}

/// An expression as SQL: texts in quotes, types under their SQL names.
pub(crate) fn expression_text(expr: &Arc<dyn PhysicalExpr>) -> String {
    let rendered = expr.clone().transform_up(|part| {
        Ok(match special_text(&part) {
            // A column prints as its name, so it can stand for any text.
            Some(text) => {
                Transformed::yes(Arc::new(Column::new(&text, 0)) as Arc<dyn PhysicalExpr>)
            }
            None => Transformed::no(part),
        })
    });
    match rendered {
        Ok(rendered) => fmt_sql(rendered.data.as_ref()).to_string(),
        Err(_) => fmt_sql(expr.as_ref()).to_string(),
    }
}

/// The text of what prints as something else than SQL; the parts of `expr` have their texts already.
fn special_text(expr: &Arc<dyn PhysicalExpr>) -> Option<String> {
    if let Some(variable) = expr.downcast_ref::<LambdaVariable>() {
        return Some(variable.name().to_owned());
    }
    if let Some(literal) = expr.downcast_ref::<Literal>() {
        return literal_text(literal.value());
    }
    let cast = expr.downcast_ref::<CastExpr>()?;
    Some(format!(
        "CAST({} AS {})",
        fmt_sql(cast.expr().as_ref()),
        sql_name(cast.cast_type())
    ))
}

fn literal_text(value: &ScalarValue) -> Option<String> {
    if let Some(text) = value.try_as_str().flatten() {
        return Some(format!("'{}'", text.replace('\'', "''")));
    }
    let data_type = value.data_type();
    if value.is_null() || !data_type.is_temporal() {
        return None;
    }
    let text = value.cast_to(&DataType::Utf8).ok()?;
    Some(format!(
        "{} '{}'",
        sql_name(&data_type),
        text.try_as_str().flatten()?
    ))
}

fn renamed(text: String, name: &str) -> String {
    if text == name {
        text
    } else {
        format!("{text} AS {name}")
    }
}

/// A state table's name: the query and the node that owns it. A push query has a number of its own only while it runs.
fn state_table(query: Option<QueryId>, node: NodeId) -> String {
    match query {
        Some(query) => format!("q{query}.n{}", node.0),
        None => format!("n{}", node.0),
    }
}

fn operator_name(operator: &Operator) -> &'static str {
    match operator {
        Operator::Source { .. } => "source",
        Operator::Filter { .. } => "filter",
        Operator::Project { .. } => "project",
        Operator::AssignWindows { .. } => "windows",
        Operator::Exchange { .. } => "exchange",
        Operator::Aggregate { .. } => "aggregate",
        Operator::Union => "union",
    }
}

fn explain_call(call: &AggregateCall, input: Option<&SchemaRef>) -> String {
    let column =
        |position: usize| input.map_or("?", |schema| schema.field(position).name().as_str());
    let distinct = if call.distinct { "DISTINCT " } else { "" };
    let argument = call.argument.map_or("*", column);
    let mut text = format!("{}({distinct}{argument})", call.function);
    if let Some(filter) = call.filter {
        text.push_str(&format!(" FILTER ({})", column(filter)));
    }
    renamed(text, &call.name)
}

fn input_schema<'a>(plan: &'a DataflowPlan, node: &Node) -> Option<&'a SchemaRef> {
    let input = node.inputs.first()?;
    plan.nodes
        .iter()
        .find(|candidate| candidate.id == *input)
        .map(|input| &input.schema)
}

fn names(schema: &SchemaRef, columns: &[usize]) -> Vec<String> {
    columns
        .iter()
        .map(|column| schema.field(*column).name().clone())
        .collect()
}

fn kind_name(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Stream => "stream",
        SourceKind::Table => "table",
    }
}

fn slots(count: u32) -> String {
    if count == 1 {
        "1 slot".to_owned()
    } else {
        format!("{count} slots")
    }
}

fn format_text(role: &str, format: &FormatName) -> String {
    match &format.delimiter {
        Some(delimiter) => format!("{role} {} '{}'", format.name, delimiter.escape_default()),
        None => format!("{role} {}", format.name),
    }
}

/// A line that knows how wide it may become.
struct Line(String);

impl Line {
    fn new(number: &str, operator: &str) -> Self {
        Self(format!("{number:<4}{operator:<10}"))
    }

    fn text(&mut self, text: &str) {
        self.0.push_str(text);
    }

    /// Items between `open` and `close`: all that leave `reserved` characters for what follows, at least one.
    fn list(&mut self, open: &str, items: Vec<String>, close: &str, reserved: usize) {
        self.0.push_str(open);
        let budget = WIDTH.saturating_sub(reserved + close.len() + self.0.chars().count());
        let whole = items.join(", ");
        if whole.chars().count() <= budget {
            self.0.push_str(&whole);
        } else {
            self.0.push_str(&first_items(&items, budget));
        }
        self.0.push_str(close);
    }

    /// Cuts what is still too wide: one long expression.
    fn finish(self) -> String {
        let text = self.0.trim_end();
        if text.chars().count() <= WIDTH {
            return text.to_owned();
        }
        text.chars().take(WIDTH - 2).chain("..".chars()).collect()
    }
}

/// As many items as fit, and how many are missing.
fn first_items(items: &[String], budget: usize) -> String {
    let mut text = String::new();
    for (position, item) in items.iter().enumerate() {
        let separator = if position == 0 { "" } else { ", " };
        let missing = format!(", +{} more", items.len() - position - 1);
        let width = text.chars().count() + separator.len() + item.chars().count() + missing.len();
        if position > 0 && width > budget {
            text.push_str(&format!(", +{} more", items.len() - position));
            return text;
        }
        text.push_str(separator);
        text.push_str(item);
    }
    text
}

impl fmt::Display for WindowSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shape {
            WindowShape::Tumbling { size } => write!(f, "tumbling {}", Length(size))?,
            WindowShape::Hopping { size, advance } => {
                write!(f, "hopping {} every {}", Length(size), Length(advance))?;
            }
        }
        write!(f, ", grace {}", Length(self.grace))?;
        match self.retention {
            Some(retention) => write!(f, ", retention {}", Length(retention)),
            None => Ok(()),
        }
    }
}

/// A length of time in its units, largest first: `1h`, `23h59min30s`.
pub(crate) struct Length(pub Duration);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_millis();
        if rest == 0 {
            return f.write_str("0ms");
        }
        for (unit, name) in [
            (86_400_000, "d"),
            (3_600_000, "h"),
            (60_000, "min"),
            (1_000, "s"),
            (1, "ms"),
        ] {
            if rest >= unit {
                write!(f, "{}{name}", rest / unit)?;
                rest %= unit;
            }
        }
        Ok(())
    }
}
