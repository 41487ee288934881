//! ksqlDB's aggregates for the binder: names, arguments, result types.
//!
//! The binder only resolves them; they run in the engine, so their batch form is refused. In dialect ksql they hide DataFusion's functions of the
//! same names; in dialect postgres a name that PostgreSQL or DataFusion has keeps its meaning.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::{
    common::{Result, ScalarValue, not_impl_err, plan_err},
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, Volatility,
        function::{AccumulatorArgs, StateFieldsArgs},
    },
};
use highwater_sql::Dialect;

use crate::{
    dataflow::AggregateFunction,
    defaults::PlanDefaults,
    error::{PlanError, PlanResult},
    types::sql_name,
};

/// Values that COLLECT_LIST and COLLECT_SET keep at the most: a group's state must be bounded by something.
const COLLECT_LIMIT: usize = i32::MAX as usize;

/// One of ksqlDB's aggregates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Sum,
    Avg,
    SumList,
    CollectList,
    CollectSet,
    CountDistinct,
    Earliest,
    Latest,
    TopK,
    TopKDistinct,
    Histogram,
    Attr,
    StandardDeviation,
    Variance,
    Correlation,
}

/// Name, kind, and whether only dialect ksql has it.
const AGGREGATES: [(&str, Kind, bool); 15] = [
    ("sum", Kind::Sum, true),
    ("avg", Kind::Avg, true),
    ("sum_list", Kind::SumList, false),
    ("collect_list", Kind::CollectList, false),
    ("collect_set", Kind::CollectSet, false),
    ("count_distinct", Kind::CountDistinct, false),
    ("earliest_by_offset", Kind::Earliest, false),
    ("latest_by_offset", Kind::Latest, false),
    ("topk", Kind::TopK, false),
    ("topkdistinct", Kind::TopKDistinct, false),
    ("histogram", Kind::Histogram, false),
    ("attr", Kind::Attr, false),
    ("stddev_sample", Kind::StandardDeviation, false),
    // ksqlDB's function of this name gives the variance.
    ("stddev_samp", Kind::Variance, true),
    ("correlation", Kind::Correlation, false),
];

/// The aggregate of this name, if the dialect has it from ksqlDB.
pub(crate) fn ksql_aggregate(
    name: &str,
    dialect: Dialect,
    defaults: &PlanDefaults,
) -> Option<Arc<AggregateUDF>> {
    let (name, kind, _) = AGGREGATES
        .iter()
        .find(|(own, _, ksql_only)| *own == name && (dialect == Dialect::Ksql || !ksql_only))?;
    Some(Arc::new(AggregateUDF::new_from_impl(KsqlAggregate {
        name,
        kind: *kind,
        limit: match kind {
            Kind::CollectList => defaults.collect_list_limit,
            Kind::CollectSet => defaults.collect_set_limit,
            _ => None,
        },
        signature: Signature::user_defined(Volatility::Immutable),
    })))
}

/// The names of ksqlDB's aggregates, for messages.
pub(crate) fn ksql_aggregate_names() -> impl Iterator<Item = &'static str> {
    AGGREGATES.iter().map(|(name, ..)| *name)
}

/// What the engine runs for a call: the function, the arguments that are columns of its input, and whether equal values count once.
pub(crate) struct EngineCall<'a> {
    /// The function.
    pub function: AggregateFunction,
    /// More than one are taken together as a struct.
    pub arguments: &'a [Expr],
    /// As DISTINCT.
    pub distinct: bool,
}

/// The engine's form of a call; `None` for an aggregate that is not ksqlDB's.
pub(crate) fn engine_call<'a>(
    function: &AggregateUDF,
    arguments: &'a [Expr],
) -> PlanResult<Option<EngineCall<'a>>> {
    let Some(aggregate) = function.inner().downcast_ref::<KsqlAggregate>() else {
        return Ok(None);
    };
    let call = |function, columns: usize| EngineCall {
        function,
        arguments: &arguments[..columns.min(arguments.len())],
        distinct: false,
    };
    Ok(Some(match aggregate.kind {
        Kind::Sum => call(AggregateFunction::SumOrZero, 1),
        Kind::Avg => call(AggregateFunction::AvgOrZero, 1),
        Kind::SumList => call(AggregateFunction::SumList, 1),
        Kind::CollectList => call(
            AggregateFunction::CollectList {
                limit: aggregate.limit.unwrap_or(COLLECT_LIMIT),
            },
            1,
        ),
        Kind::CollectSet => call(
            AggregateFunction::CollectSet {
                limit: aggregate.limit.unwrap_or(COLLECT_LIMIT),
            },
            1,
        ),
        Kind::CountDistinct => EngineCall {
            distinct: true,
            ..call(AggregateFunction::Count, 1)
        },
        Kind::Earliest | Kind::Latest => {
            let (count, ignore_nulls) = offset_options(aggregate.name, &arguments[1..])?;
            let function = match aggregate.kind {
                Kind::Earliest => AggregateFunction::Earliest {
                    count,
                    ignore_nulls,
                },
                _ => AggregateFunction::Latest {
                    count,
                    ignore_nulls,
                },
            };
            call(function, 1)
        }
        Kind::TopK | Kind::TopKDistinct => {
            let last = arguments.len() - 1;
            let count = literal_count(aggregate.name, &arguments[last])?;
            let function = match aggregate.kind {
                Kind::TopK => AggregateFunction::TopK { count },
                _ => AggregateFunction::TopKDistinct { count },
            };
            call(function, last)
        }
        Kind::Histogram => call(AggregateFunction::Histogram, 1),
        Kind::Attr => call(AggregateFunction::Attr, 1),
        Kind::StandardDeviation => call(AggregateFunction::StandardDeviation, 1),
        Kind::Variance => call(AggregateFunction::Variance, 1),
        Kind::Correlation => call(AggregateFunction::Correlation, 2),
    }))
}

/// `(c, n)`, `(c, ignore_nulls)`, `(c, n, ignore_nulls)`: the part behind the column.
fn offset_options(name: &str, options: &[Expr]) -> PlanResult<(Option<usize>, bool)> {
    let flag = |expr: &Expr| match literal(expr) {
        Some(ScalarValue::Boolean(Some(value))) => Some(*value),
        _ => None,
    };
    match options {
        [] => Ok((None, true)),
        [only] => match flag(only) {
            Some(ignore_nulls) => Ok((None, ignore_nulls)),
            None => Ok((Some(literal_count(name, only)?), true)),
        },
        [count, last] => match flag(last) {
            Some(ignore_nulls) => Ok((Some(literal_count(name, count)?), ignore_nulls)),
            None => Err(not_literal(name)),
        },
        _ => Err(not_literal(name)),
    }
}

fn literal(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value),
        Expr::Cast(cast) => literal(&cast.expr),
        Expr::Alias(alias) => literal(&alias.expr),
        _ => None,
    }
}

fn literal_count(name: &str, expr: &Expr) -> PlanResult<usize> {
    let count = match literal(expr) {
        Some(ScalarValue::Int32(Some(count))) => i64::from(*count),
        Some(ScalarValue::Int64(Some(count))) => *count,
        _ => return Err(not_literal(name)),
    };
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(PlanError::invalid(
            format!("{name} needs a number of values above 0, not {count}"),
            None,
            None,
        )),
    }
}

fn not_literal(name: &str) -> PlanError {
    PlanError::invalid(
        format!("{name} needs its options as literals"),
        None,
        Some("they decide how the state is kept, so no column can tell them"),
    )
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct KsqlAggregate {
    name: &'static str,
    kind: Kind,
    /// Most values that are kept, where a setting says so.
    limit: Option<usize>,
    signature: Signature,
}

impl KsqlAggregate {
    fn result(&self, arguments: &[DataType]) -> Option<DataType> {
        let list = |element: DataType| DataType::List(Arc::new(Field::new("item", element, true)));
        let whole = |data_type: &DataType| matches!(data_type, DataType::Int32 | DataType::Int64);
        match (self.kind, arguments) {
            (Kind::Sum, [argument]) if argument.is_numeric() => Some(argument.clone()),
            (Kind::Avg | Kind::StandardDeviation | Kind::Variance, [argument])
                if argument.is_numeric() =>
            {
                Some(DataType::Float64)
            }
            (Kind::Correlation, [x, y]) if x.is_numeric() && y.is_numeric() => {
                Some(DataType::Float64)
            }
            (Kind::SumList, [DataType::List(element)]) if element.data_type().is_numeric() => {
                Some(element.data_type().clone())
            }
            (Kind::CollectList | Kind::CollectSet, [argument]) => Some(list(argument.clone())),
            (Kind::CountDistinct, [_]) => Some(DataType::Int64),
            (Kind::Earliest | Kind::Latest, [argument])
            | (Kind::Earliest | Kind::Latest, [argument, DataType::Boolean])
            | (Kind::Attr, [argument]) => Some(argument.clone()),
            (Kind::Earliest | Kind::Latest, [argument, count])
            | (Kind::Earliest | Kind::Latest, [argument, count, DataType::Boolean])
            | (Kind::TopKDistinct | Kind::TopK, [argument, count])
                if whole(count) =>
            {
                Some(list(argument.clone()))
            }
            (Kind::TopK, [sort, others @ .., count]) if whole(count) => {
                let mut fields = vec![Field::new("sort_col", sort.clone(), true)];
                let others = others.iter().enumerate();
                fields.extend(others.map(|(position, data_type)| {
                    Field::new(format!("col{position}"), data_type.clone(), true)
                }));
                Some(list(DataType::Struct(Fields::from(fields))))
            }
            (Kind::Histogram, [DataType::Utf8]) => Some(histogram_type()),
            _ => None,
        }
    }
}

fn histogram_type() -> DataType {
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Int64, true),
    ]);
    DataType::Map(
        Arc::new(Field::new("entries", DataType::Struct(entries), false)),
        false,
    )
}

impl AggregateUDFImpl for KsqlAggregate {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.return_type(arguments)?;
        Ok(arguments.to_vec())
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match self.result(arguments) {
            Some(result) => Ok(result),
            None => {
                let given: Vec<String> = arguments.iter().map(sql_name).collect();
                plan_err!("{} cannot take ({})", self.name, given.join(", "))
            }
        }
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        not_impl_err!(
            "{} in a pull query is not supported; keep it in a table",
            self.name
        )
    }

    fn state_fields(&self, _: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(Vec::new())
    }
}
