//! Filters on a table's key as seeks.
//!
//! A seek is an equality on each of the first key columns, then at most one range on the next. `IN` and `OR` of equalities multiply seeks.
//! Every value is of exactly the key column's type: where a comparison needs a cast of the column, key order is not the order compared.

use std::{collections::HashSet, ops::Bound};

use arrow::{array::ArrayRef, datatypes::DataType};
use datafusion::{
    logical_expr::{Between, BinaryExpr, Expr, Operator, expr::InList, utils::split_conjunction},
    scalar::ScalarValue,
};
use highwater_exec::KeyRange;

use super::table::seekable;

/// More seeks than this are no better than a scan.
const MAX_SEEKS: usize = 1024;

/// A column of the key.
#[derive(Debug, Clone)]
pub struct KeyColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
}

/// What filters make of a scan.
#[derive(Debug, Default)]
pub struct Seeks {
    /// Disjoint ranges to read; empty for the whole table.
    pub ranges: Vec<KeyRange>,
    /// For each filter, whether the ranges came from it.
    pub used: Vec<bool>,
    /// The ranges for people.
    pub text: String,
}

/// What one comparison says of a key column.
#[derive(Debug, Clone, PartialEq)]
enum Constraint {
    OneOf(Vec<ScalarValue>),
    Above(Bound<ScalarValue>),
    Below(Bound<ScalarValue>),
}

struct Found {
    filter: usize,
    column: usize,
    constraint: Constraint,
}

/// Turns filters, all of which must hold, into seeks.
pub fn plan_seeks(filters: &[&Expr], key: &[KeyColumn]) -> Seeks {
    let mut found = Vec::new();
    for (filter, expr) in filters.iter().enumerate() {
        for part in split_conjunction(expr) {
            for (column, constraint) in constraints(part, key) {
                found.push(Found {
                    filter,
                    column,
                    constraint,
                });
            }
        }
    }
    let mut seeks = Seeks {
        used: vec![false; filters.len()],
        ..Seeks::default()
    };
    let mut prefixes: Vec<Vec<ScalarValue>> = vec![Vec::new()];
    let mut text = Vec::new();
    let (mut lower, mut upper) = (Bound::Unbounded, Bound::Unbounded);
    for (column, KeyColumn { name, .. }) in key.iter().enumerate() {
        let here: Vec<&Found> = found
            .iter()
            .filter(|found| found.column == column)
            .collect();
        let equality = here.iter().find_map(|found| match &found.constraint {
            Constraint::OneOf(values) if prefixes.len() * values.len() <= MAX_SEEKS => {
                Some((found.filter, values))
            }
            _ => None,
        });
        if let Some((filter, values)) = equality {
            seeks.used[filter] = true;
            prefixes = extend(&prefixes, values);
            text.push(equality_text(name, values));
            continue;
        }
        for found in here {
            match &found.constraint {
                Constraint::Above(bound) => lower = tighter(lower, bound, |new, old| new > old),
                Constraint::Below(bound) => upper = tighter(upper, bound, |new, old| new < old),
                Constraint::OneOf(_) => continue,
            }
            seeks.used[found.filter] = true;
        }
        text.extend(range_text(name, &lower, &upper));
        break;
    }
    if text.is_empty() {
        return seeks;
    }
    seeks.text = format!("[{}]", text.join(", "));
    seeks.ranges = prefixes
        .iter()
        .filter_map(|prefix| key_range(prefix, &lower, &upper))
        .collect();
    // A value without an array form cannot happen for key types; should it, the scan reads everything and the filters do their work.
    if seeks.ranges.len() != prefixes.len() {
        return Seeks {
            used: vec![false; filters.len()],
            ..Seeks::default()
        };
    }
    seeks
}

fn extend(prefixes: &[Vec<ScalarValue>], values: &[ScalarValue]) -> Vec<Vec<ScalarValue>> {
    prefixes
        .iter()
        .flat_map(|prefix| {
            values
                .iter()
                .map(move |value| [prefix.as_slice(), std::slice::from_ref(value)].concat())
        })
        .collect()
}

fn tighter(
    old: Bound<ScalarValue>,
    new: &Bound<ScalarValue>,
    is_tighter: impl Fn(&ScalarValue, &ScalarValue) -> bool,
) -> Bound<ScalarValue> {
    let (Bound::Included(old_value) | Bound::Excluded(old_value)) = &old else {
        return new.clone();
    };
    let (Bound::Included(new_value) | Bound::Excluded(new_value)) = new else {
        return old;
    };
    let same_but_open = new_value == old_value && matches!(new, Bound::Excluded(_));
    if same_but_open || is_tighter(new_value, old_value) {
        new.clone()
    } else {
        old
    }
}

fn key_range(
    prefix: &[ScalarValue],
    lower: &Bound<ScalarValue>,
    upper: &Bound<ScalarValue>,
) -> Option<KeyRange> {
    let array = |value: &ScalarValue| value.to_array().ok();
    let bound = |bound: &Bound<ScalarValue>| -> Option<Bound<ArrayRef>> {
        Some(match bound {
            Bound::Included(value) => Bound::Included(array(value)?),
            Bound::Excluded(value) => Bound::Excluded(array(value)?),
            Bound::Unbounded => Bound::Unbounded,
        })
    };
    Some(KeyRange {
        prefix: prefix.iter().map(array).collect::<Option<_>>()?,
        lower: bound(lower)?,
        upper: bound(upper)?,
    })
}

fn equality_text(name: &str, values: &[ScalarValue]) -> String {
    match values {
        [value] => format!("{name} = {value}"),
        values => format!("{name} in {} values", values.len()),
    }
}

fn range_text(name: &str, lower: &Bound<ScalarValue>, upper: &Bound<ScalarValue>) -> Vec<String> {
    let text = |bound: &Bound<ScalarValue>, open: &str, closed: &str| match bound {
        Bound::Included(value) => Some(format!("{name} {closed} {value}")),
        Bound::Excluded(value) => Some(format!("{name} {open} {value}")),
        Bound::Unbounded => None,
    };
    [text(lower, ">", ">="), text(upper, "<", "<=")]
        .into_iter()
        .flatten()
        .collect()
}

fn constraints(expr: &Expr, key: &[KeyColumn]) -> Vec<(usize, Constraint)> {
    match expr {
        Expr::Between(Between {
            expr,
            negated: false,
            low,
            high,
        }) => {
            let (Some((column, low)), Some((_, high))) =
                (pair(expr, low, key), pair(expr, high, key))
            else {
                return Vec::new();
            };
            vec![
                (column, Constraint::Above(Bound::Included(low))),
                (column, Constraint::Below(Bound::Included(high))),
            ]
        }
        Expr::InList(InList {
            expr,
            list,
            negated: false,
        }) => {
            let values: Option<Vec<(usize, ScalarValue)>> =
                list.iter().map(|item| pair(expr, item, key)).collect();
            match values {
                Some(values) if !values.is_empty() => {
                    vec![(
                        values[0].0,
                        one_of(values.into_iter().map(|(_, value)| value)),
                    )]
                }
                _ => Vec::new(),
            }
        }
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Or,
            right,
        }) => either(constraints(left, key), constraints(right, key))
            .into_iter()
            .collect(),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            comparison(left, *op, right, key).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// `a = 1 OR a = 2`.
fn either(
    left: Vec<(usize, Constraint)>,
    right: Vec<(usize, Constraint)>,
) -> Option<(usize, Constraint)> {
    match (left.as_slice(), right.as_slice()) {
        ([(left, Constraint::OneOf(first))], [(right, Constraint::OneOf(second))])
            if left == right =>
        {
            Some((*left, one_of(first.iter().chain(second).cloned())))
        }
        _ => None,
    }
}

fn comparison(
    left: &Expr,
    op: Operator,
    right: &Expr,
    key: &[KeyColumn],
) -> Option<(usize, Constraint)> {
    let (op, (column, value)) = match pair(left, right, key) {
        Some(found) => (op, found),
        None => (op.swap()?, pair(right, left, key)?),
    };
    let constraint = match op {
        Operator::Eq => Constraint::OneOf(vec![value]),
        Operator::Gt => Constraint::Above(Bound::Excluded(value)),
        Operator::GtEq => Constraint::Above(Bound::Included(value)),
        Operator::Lt => Constraint::Below(Bound::Excluded(value)),
        Operator::LtEq => Constraint::Below(Bound::Included(value)),
        _ => return None,
    };
    Some((column, constraint))
}

/// A key column and a literal of its type.
fn pair(column: &Expr, literal: &Expr, key: &[KeyColumn]) -> Option<(usize, ScalarValue)> {
    let (Expr::Column(column), Expr::Literal(value, _)) = (column, literal) else {
        return None;
    };
    let at = key.iter().position(|key| key.name == column.name)?;
    let data_type = &key[at].data_type;
    if value.is_null() || !seekable(data_type) {
        return None;
    }
    let same = value.data_type() == *data_type;
    let both_text = value.data_type().is_string() && data_type.is_string();
    match (same, both_text) {
        (true, _) => Some((at, value.clone())),
        (false, true) => Some((at, value.cast_to(data_type).ok()?)),
        (false, false) => None,
    }
}

/// Without repetitions, since each value is one seek and its rows must come once.
fn one_of(values: impl Iterator<Item = ScalarValue>) -> Constraint {
    let mut seen = HashSet::new();
    Constraint::OneOf(values.filter(|value| seen.insert(value.clone())).collect())
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::{col, lit};

    use super::*;

    fn key() -> Vec<KeyColumn> {
        vec![
            KeyColumn {
                name: "carrier".to_owned(),
                data_type: DataType::Utf8,
            },
            KeyColumn {
                name: "day".to_owned(),
                data_type: DataType::Int64,
            },
        ]
    }

    fn seeks(filters: &[Expr]) -> Seeks {
        let filters: Vec<&Expr> = filters.iter().collect();
        plan_seeks(&filters, &key())
    }

    #[test]
    fn equality_then_range_is_one_seek() {
        let seeks = seeks(&[
            col("carrier").eq(lit("UA")),
            col("day").gt(lit(3_i64)),
            col("day").lt_eq(lit(9_i64)),
        ]);
        assert_eq!(seeks.text, "[carrier = UA, day > 3, day <= 9]");
        assert_eq!(
            (seeks.ranges.len(), seeks.used.as_slice()),
            (1, [true, true, true].as_slice())
        );
        assert_eq!(seeks.ranges[0].prefix.len(), 1);
        assert!(matches!(seeks.ranges[0].lower, Bound::Excluded(_)));
        assert!(matches!(seeks.ranges[0].upper, Bound::Included(_)));
    }

    #[test]
    fn lists_multiply_and_repeat_nothing() {
        let carriers = col("carrier")
            .eq(lit("UA"))
            .or(col("carrier").eq(lit("AA")))
            .or(col("carrier").eq(lit("UA")));
        let seeks = seeks(&[
            carriers,
            col("day").in_list(vec![lit(1_i64), lit(2_i64), lit(1_i64)], false),
        ]);
        assert_eq!(seeks.ranges.len(), 4);
        assert_eq!(seeks.text, "[carrier in 2 values, day in 2 values]");
    }

    #[test]
    fn a_gap_in_the_key_ends_the_seek() {
        let seeks = seeks(&[col("day").eq(lit(1_i64))]);
        assert!(seeks.ranges.is_empty());
        assert_eq!(seeks.used, [false]);
    }

    #[test]
    fn other_types_and_other_columns_are_no_seeks() {
        let seeks = seeks(&[
            col("carrier").eq(lit(1_i64)),
            col("delay").gt(lit(1_i64)),
            col("carrier").not_eq(lit("UA")),
        ]);
        assert!(seeks.ranges.is_empty());
        assert_eq!(seeks.used, [false, false, false]);
    }

    #[test]
    fn the_tighter_of_two_bounds_holds() {
        let seeks = seeks(&[
            col("carrier").gt_eq(lit("B")),
            lit("D").gt_eq(col("carrier")),
            col("carrier").gt(lit("B")),
            col("carrier").lt(lit("X")),
        ]);
        assert_eq!(seeks.text, "[carrier > B, carrier <= D]");
    }
}
