//! The one renderer of plans.
//!
//! One operator a line, from sources to sink, each at most [`WIDTH`] characters wide: its number, its name, what it does. Lists that do not fit
//! are cut and say how many items are missing. A line says which nodes it reads only when that is not simply the one above.

use std::{fmt, time::Duration};

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr_common::physical_expr::fmt_sql;

use crate::{
    catalog::{FormatName, QueryId, Relation, SourceKind},
    dataflow::{AggregateCall, DataflowPlan, Node, NodeId, Operator, WindowShape, WindowSpec},
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
        Operator::Filter { predicate } => line.text(&fmt_sql(predicate.as_ref()).to_string()),
        Operator::Project { expressions } => {
            let columns = expressions
                .iter()
                .zip(node.schema.fields())
                .map(|(expr, field)| {
                    let text = fmt_sql(expr.as_ref()).to_string();
                    if text == *field.name() {
                        text
                    } else {
                        format!("{text} AS {}", field.name())
                    }
                });
            line.list("", columns.collect(), "", 0);
        }
        Operator::AssignWindows { window } => line.text(&window.to_string()),
        Operator::Exchange { keys, .. } => {
            let reserved = slots(node.slots).len() + 2;
            if keys.is_empty() {
                line.text("all rows");
            } else {
                line.list("by ", names(&node.schema, keys), "", reserved);
            }
            line.text(&format!(", {}", slots(node.slots)));
        }
        Operator::Aggregate { group, calls, .. } => {
            let state = format!(", state {}", state_table(query, node.id));
            let input = input_schema(plan, node);
            let group = input.map(|schema| names(schema, group)).unwrap_or_default();
            let calls: Vec<String> = calls.iter().map(|call| explain_call(call, input)).collect();
            if group.is_empty() {
                line.list("", calls, "", state.len());
            } else if calls.is_empty() {
                line.list("by ", group, "", state.len());
            } else {
                line.list("by ", group, "", state.len() + 20);
                line.list(": ", calls, "", state.len());
            }
            line.text(&state);
        }
        Operator::Union => line.list(
            "of ",
            node.inputs.iter().map(|id| format!("n{}", id.0)).collect(),
            "",
            0,
        ),
        Operator::Distinct => line.text(&format!("state {}", state_table(query, node.id))),
    }
    if let [input] = node.inputs[..]
        && input.0 + 1 != node.id.0
    {
        line.text(&format!(", reads n{}", input.0));
    }
    line.finish()
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
    let formats = format!(
        ", topic {}, {}, {}",
        relation.topic,
        format_text("value", &relation.value_format),
        slots(relation.partitions)
    );
    if plan.key.is_empty() {
        line.text(", no key");
    } else {
        line.list(", key ", names(schema, &plan.key), "", formats.len() + 10);
        line.text(&format!(" {}", relation.key_format.name));
    }
    line.text(&formats);
    line.finish()
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
        Operator::Distinct => "distinct",
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
    text
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

    /// Items between `open` and `close`, as many as leave `reserved` characters for what follows; at least one.
    fn list(&mut self, open: &str, items: Vec<String>, close: &str, reserved: usize) {
        self.0.push_str(open);
        let budget = WIDTH.saturating_sub(reserved + close.len());
        let count = items.len();
        for (position, item) in items.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            let rest = format!(", +{} more", count - position);
            let is_last = position + 1 == count;
            let needed =
                separator.len() + item.chars().count() + if is_last { 0 } else { rest.len() };
            if position > 0 && self.0.chars().count() + needed > budget {
                self.0.push_str(&rest);
                break;
            }
            self.0.push_str(separator);
            self.0.push_str(item);
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

/// A length of time in the largest unit that divides it.
struct Length(Duration);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let units = [
            (86_400_000, "d"),
            (3_600_000, "h"),
            (60_000, "min"),
            (1_000, "s"),
        ];
        match units
            .into_iter()
            .find(|(unit, _)| millis > 0 && millis % unit == 0)
        {
            Some((unit, name)) => write!(f, "{}{name}", millis / unit),
            None => write!(f, "{millis}ms"),
        }
    }
}
