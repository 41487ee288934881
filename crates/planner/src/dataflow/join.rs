//! JOIN of tables to dataflow nodes.
//!
//! Shape: each input gets its join columns as plain columns, moves to where its join key belongs, and the join stands behind both. What the join
//! columns add is projected away again, so the output has the logical node's columns.
//!
//! A row of the result is identified by the key of the side whose rows match at most one row of the other, else by the keys of both. A full
//! join of two tables on their keys has one row a key, which is in neither column alone: `COALESCE(l.key, r.key)`, or USING, makes it
//! whole ([`Properties::merged`]).

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::{
    common::{DFSchema, NullEquality},
    logical_expr::{Expr, Join, JoinType, LogicalPlan},
    physical_expr::{
        PhysicalExpr, ScalarFunctionExpr,
        expressions::{CaseExpr, Column, IsNotNullExpr},
    },
};

use super::{
    lower::{Goal, Lowering, column_of, plain_schema, with_names_of},
    properties::{Key, Placement, Properties},
};
use crate::{
    dataflow::{JoinKind, Operator},
    error::{PlanError, PlanResult, Position},
    explain::expression_text,
    with::default_key_format,
};

impl Lowering<'_> {
    /// Lowers a join of two tables.
    pub(super) fn lower_join(&mut self, join: &Join, goal: &Goal) -> PlanResult<Properties> {
        let position = first_relation(&join.right).and_then(|name| self.located.relation(name));
        let kind = kind_of(join, position)?;
        let left = self.lower(&join.left, &Goal::default())?;
        let right = self.lower(&join.right, &Goal::default())?;
        check_inputs(&left, &right, position)?;
        let (left_on, right_on): (Vec<&Expr>, Vec<&Expr>) =
            join.on.iter().map(|(left, right)| (left, right)).unzip();
        let (left, left_keys) = self.with_join_columns(left, &left_on, join.left.schema())?;
        let (right, right_keys) = self.with_join_columns(right, &right_on, join.right.schema())?;
        let widths = [&left, &right].map(|side| side.schema.fields().len());
        let (left, right) = self.meet(left, right, &left_keys, &right_keys, goal);
        let shifted: Vec<usize> = right_keys.iter().map(|column| column + widths[0]).collect();
        let schema = joined_schema(&left.schema, &right.schema);
        let (key, merged) = result_key(
            kind,
            &left,
            &right,
            &left_keys,
            &right_keys,
            &shifted,
            goal,
            join,
        );
        let placement = match kind {
            JoinKind::Inner | JoinKind::Left => left.placement.clone(),
            JoinKind::Right => right.placement.clone().map(|placement| Placement {
                columns: placement
                    .columns
                    .iter()
                    .map(|column| column + widths[0])
                    .collect(),
                ..placement
            }),
            // Whoever has no partner is placed by a column that is NULL.
            JoinKind::Full => None,
        };
        // Rows of one join key are one changing row where the key is whole.
        let order = match &key {
            Key::Columns(columns) if merged.is_none() => columns.clone(),
            _ => Vec::new(),
        };
        let operator = Operator::Join {
            kind,
            left: left_keys,
            right: right_keys,
            order,
        };
        let id = self.push(
            vec![left.id, right.id],
            operator,
            schema.clone(),
            left.slots,
            true,
        );
        let merged = merged.map(|pairs| Merged {
            pairs,
            names: left
                .placement
                .as_ref()
                .map(|placement| placement.names.clone())
                .unwrap_or_default(),
            format: left.placement.map(|placement| placement.format),
        });
        let joined = Properties {
            id,
            schema,
            slots: left.slots,
            changing: true,
            key,
            placement,
            window: None,
            merged,
        };
        self.finish_join(
            join,
            joined,
            [&join.left, &join.right].map(|side| side.schema().fields().len()),
            widths[0],
        )
    }

    /// Takes the join columns off again, and applies what the ON condition asks beside equality.
    fn finish_join(
        &mut self,
        join: &Join,
        joined: Properties,
        logical_widths: [usize; 2],
        right_begins: usize,
    ) -> PlanResult<Properties> {
        let columns = (0..logical_widths[0])
            .chain((0..logical_widths[1]).map(|column| right_begins + column));
        let expressions = columns
            .map(|column| {
                let name = joined.schema.field(column).name();
                Arc::new(Column::new(name, column)) as Arc<dyn PhysicalExpr>
            })
            .collect();
        let output = self.project(joined, expressions, plain_schema(&join.schema))?;
        let Some(filter) = &join.filter else {
            return Ok(output);
        };
        let predicate = with_names_of(&self.physical(filter, &join.schema)?, &output.schema)?;
        let id = self.push(
            vec![output.id],
            Operator::Filter { predicate },
            output.schema.clone(),
            output.slots,
            true,
        );
        Ok(Properties { id, ..output })
    }

    /// Makes sure that the expressions which are compared are columns of the input.
    fn with_join_columns(
        &mut self,
        input: Properties,
        on: &[&Expr],
        schema: &DFSchema,
    ) -> PlanResult<(Properties, Vec<usize>)> {
        let mut expressions: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
        let mut fields: Vec<FieldRef> = Vec::new();
        for (position, field) in input.schema.fields().iter().enumerate() {
            expressions.push(Arc::new(Column::new(field.name(), position)));
            fields.push(field.clone());
        }
        let mut keys = Vec::with_capacity(on.len());
        for expr in on {
            let physical = with_names_of(&self.physical(expr, schema)?, &input.schema)?;
            match column_of(&physical) {
                Some(column) => keys.push(column),
                None => {
                    let data_type = physical
                        .data_type(&input.schema)
                        .map_err(PlanError::DataFusion)?;
                    let name = expression_text(&physical);
                    fields.push(Arc::new(Field::new(name, data_type, true)));
                    keys.push(expressions.len());
                    expressions.push(physical);
                }
            }
        }
        if expressions.len() == input.schema.fields().len() {
            return Ok((input, keys));
        }
        let schema = Arc::new(Schema::new(fields));
        Ok((self.project(input, expressions, schema)?, keys))
    }

    /// Brings equal keys into one slot. An input that is placed by them already stays where it is.
    fn meet(
        &mut self,
        left: Properties,
        right: Properties,
        left_keys: &[usize],
        right_keys: &[usize],
        goal: &Goal,
    ) -> (Properties, Properties) {
        let placed = |side: &Properties, keys: &[usize]| {
            side.placement
                .clone()
                .filter(|placement| placement.columns == keys)
        };
        let names_of = |side: &Properties, keys: &[usize]| -> Vec<String> {
            keys.iter()
                .map(|column| side.schema.field(*column).name().clone())
                .collect()
        };
        let types: Vec<&DataType> = left_keys
            .iter()
            .map(|column| left.schema.field(*column).data_type())
            .collect();
        let (names, format) = match placed(&left, left_keys).or_else(|| placed(&right, right_keys))
        {
            Some(placement) => (placement.names, placement.format),
            None => (
                names_of(&left, left_keys),
                default_key_format(types.into_iter()),
            ),
        };
        let slots = match self.target.slots {
            Some(slots) if goal.result => slots,
            _ => left.slots.max(right.slots),
        };
        let wanted = |keys: &[usize]| Placement {
            columns: keys.to_vec(),
            names: names.clone(),
            format: format.clone(),
        };
        let left = self.place(left, wanted(left_keys), slots);
        let right = self.place(right, wanted(right_keys), slots);
        (left, right)
    }
}

/// A full join on keys: pairs of output columns of which one holds the key, or both do.
#[derive(Debug, Clone)]
pub(crate) struct Merged {
    /// Left and right column of each part of the key.
    pub pairs: Vec<(usize, usize)>,
    /// How the join's inputs were placed.
    names: Vec<String>,
    format: Option<crate::catalog::FormatName>,
}

impl Merged {
    /// The same seen through a projection that keeps the columns as they are.
    pub fn through(&self, origins: &[Option<usize>]) -> Option<Self> {
        let find = |column: usize| origins.iter().position(|origin| *origin == Some(column));
        let pairs = self
            .pairs
            .iter()
            .map(|(left, right)| Some((find(*left)?, find(*right)?)))
            .collect::<Option<_>>()?;
        Some(Self {
            pairs,
            ..self.clone()
        })
    }

    /// The key and placement of a projection that puts the two columns of each pair together.
    pub fn made_whole(
        &self,
        expressions: &[Arc<dyn PhysicalExpr>],
    ) -> Option<(Key, Option<Placement>)> {
        let columns: Vec<usize> = self
            .pairs
            .iter()
            .map(|(left, right)| {
                expressions.iter().position(|expr| {
                    coalesced(expr)
                        .is_some_and(|pair| pair == (*left, *right) || pair == (*right, *left))
                })
            })
            .collect::<Option<_>>()?;
        let placement = self.format.clone().map(|format| Placement {
            columns: columns.clone(),
            names: self.names.clone(),
            format,
        });
        Some((Key::Columns(columns), placement))
    }
}

/// The two columns of which an expression gives the first that is not NULL. DataFusion writes COALESCE as CASE when it simplifies.
fn coalesced(expr: &Arc<dyn PhysicalExpr>) -> Option<(usize, usize)> {
    if let Some(function) = expr.downcast_ref::<ScalarFunctionExpr>() {
        return match function.args() {
            [first, second] if function.name() == "coalesce" => {
                Some((column_of(first)?, column_of(second)?))
            }
            _ => None,
        };
    }
    let case = expr.downcast_ref::<CaseExpr>()?;
    let ([(when, then)], None) = (case.when_then_expr(), case.expr()) else {
        return None;
    };
    let tested = column_of(when.downcast_ref::<IsNotNullExpr>()?.arg())?;
    (column_of(then)? == tested).then_some((tested, column_of(case.else_expr()?)?))
}

/// The relation that a join's right side begins with, for messages.
fn first_relation(plan: &LogicalPlan) -> Option<&str> {
    match plan {
        LogicalPlan::TableScan(scan) => Some(scan.table_name.table()),
        other => other.inputs().into_iter().find_map(first_relation),
    }
}

fn kind_of(join: &Join, position: Option<Position>) -> PlanResult<JoinKind> {
    let refuse = |what: &str, hint: &str| Err(PlanError::unsupported(what, position, Some(hint)));
    let kind = match join.join_type {
        JoinType::Inner => JoinKind::Inner,
        JoinType::Left => JoinKind::Left,
        JoinType::Right => JoinKind::Right,
        JoinType::Full => JoinKind::Full,
        other => {
            return refuse(
                &format!("{other} JOIN in a continuous query"),
                "run it as a pull query",
            );
        }
    };
    if join.on.is_empty() || join.null_equality != NullEquality::NullEqualsNothing {
        return refuse(
            "a JOIN without an equality of columns in a continuous query",
            "write ON l.column = r.column, or run it as a pull query",
        );
    }
    if join.filter.is_some() && kind != JoinKind::Inner {
        return refuse(
            "a condition other than equality in the ON of an outer JOIN",
            "join a table that is filtered already, or put the condition into WHERE",
        );
    }
    Ok(kind)
}

fn check_inputs(
    left: &Properties,
    right: &Properties,
    position: Option<Position>,
) -> PlanResult<()> {
    if !left.changing || !right.changing {
        return Err(PlanError::unsupported(
            "JOIN with a stream in a continuous query",
            position,
            Some("only tables can be joined so far; GROUP BY makes a table of a stream"),
        ));
    }
    if left.window.is_some() || right.window.is_some() {
        return Err(PlanError::unsupported(
            "JOIN with a windowed table in a continuous query",
            position,
            Some("run it as a pull query"),
        ));
    }
    Ok(())
}

/// What identifies a row of the result, and for a full join on keys the pairs of columns that hold the key together.
#[allow(clippy::too_many_arguments)] // Both sides, each in its own and in the output's positions.
fn result_key(
    kind: JoinKind,
    left: &Properties,
    right: &Properties,
    left_keys: &[usize],
    right_keys: &[usize],
    shifted: &[usize],
    goal: &Goal,
    join: &Join,
) -> (Key, Option<Vec<(usize, usize)>>) {
    let width = left.schema.fields().len();
    let right_key = match &right.key {
        Key::Columns(columns) => {
            Key::Columns(columns.iter().map(|column| column + width).collect())
        }
        other => other.clone(),
    };
    let determined = |key: &Key, on: &[usize]| matches!(key, Key::Columns(columns) if columns.iter().all(|column| on.contains(column)));
    let left_single = determined(&left.key, left_keys);
    let right_single = determined(&right.key, right_keys);
    let both = || match (&left.key, &right_key) {
        (Key::Columns(left), Key::Columns(right)) => {
            Key::Columns(left.iter().chain(right).copied().collect())
        }
        (Key::Columns(_), lost) | (lost, _) => lost.clone(),
    };
    // Where both would do, the one that the result has.
    let left_width = join.left.schema().fields().len();
    let selected = |key: &Key, begins: usize, logical: usize| match key {
        Key::Columns(columns) => columns.iter().all(|column| {
            let position = column - begins + logical;
            goal.columns.iter().any(|(wished, _)| *wished == position)
        }),
        Key::Lost { .. } | Key::None => false,
    };
    let key = match kind {
        JoinKind::Inner if left_single && right_single => {
            if !selected(&left.key, 0, 0) && selected(&right_key, width, left_width) {
                right_key
            } else {
                left.key.clone()
            }
        }
        JoinKind::Inner | JoinKind::Left if right_single => left.key.clone(),
        JoinKind::Inner | JoinKind::Right if left_single => right_key,
        _ => both(),
    };
    let whole = kind == JoinKind::Full && left_single && right_single;
    let merged = whole.then(|| {
        left_keys
            .iter()
            .copied()
            .zip(shifted.iter().copied())
            .collect()
    });
    (key, merged)
}

fn joined_schema(left: &SchemaRef, right: &SchemaRef) -> SchemaRef {
    let fields: Vec<FieldRef> = left
        .fields()
        .iter()
        .chain(right.fields())
        .cloned()
        .collect();
    Arc::new(Schema::new(fields))
}
