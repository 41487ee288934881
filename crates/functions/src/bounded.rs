//! Bounds on DataFusion's functions that make as much as a number says: `REPEAT('x', 2147483647)` would take gigabytes for one row.
//!
//! ksqlDB's functions have the same bounds built in. A row, and a run of rows, that asks for more fails before anything is made.

use std::sync::Arc;

use arrow::{
    array::{Array, AsArray, Int64Array, StringArray},
    compute::cast,
    datatypes::{DataType, FieldRef, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit},
};
use datafusion::{
    common::{Result, exec_err},
    execution::FunctionRegistry,
    logical_expr::{
        ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
        ScalarUDFImpl, Signature,
    },
};

/// Bytes, or characters, of one text.
const MAX_TEXT: i128 = 16 << 20;
/// The same of all texts of a run of rows.
const MAX_TEXTS: i128 = 256 << 20;
/// Elements of one list.
const MAX_ELEMENTS: i128 = 1 << 20;
/// The same of all lists of a run of rows.
const MAX_ALL_ELEMENTS: i128 = 16 << 20;

const NANOS_PER_MILLI: i128 = 1_000_000;
/// A day on which clocks go forward by two hours, in nanoseconds.
const SHORTEST_DAY: i128 = 22 * 3_600 * 1_000 * NANOS_PER_MILLI;
/// The same of a month.
const SHORTEST_MONTH: i128 = 28 * SHORTEST_DAY;

/// The functions by name, with what tells the size of their result.
const BOUNDED: [(&str, Size); 7] = [
    ("lpad", Size::Length),
    ("rpad", Size::Length),
    ("repeat", Size::Copies),
    ("array_repeat", Size::Elements),
    ("array_resize", Size::Elements),
    ("generate_series", Size::Series),
    ("range", Size::Series),
];

/// What tells how much a row makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Size {
    /// The second argument is the text's length.
    Length,
    /// The second argument is how often the first one is repeated.
    Copies,
    /// The second argument is the number of elements.
    Elements,
    /// Start, stop and step.
    Series,
}

/// Puts the bounded functions into the place of the unbounded ones. Before others of these names are registered.
pub(crate) fn register(registry: &mut dyn FunctionRegistry) -> Result<()> {
    for (name, size) in BOUNDED {
        if let Ok(inner) = registry.udf(name) {
            let bounded = ScalarUDF::new_from_impl(Bounded { inner, size });
            registry.register_udf(Arc::new(bounded))?;
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    size: Size,
}

impl Bounded {
    fn check(&self, args: &ScalarFunctionArgs) -> Result<()> {
        let (one, all, what) = match self.size {
            Size::Length | Size::Copies => (MAX_TEXT, MAX_TEXTS, "characters"),
            Size::Elements | Size::Series => (MAX_ELEMENTS, MAX_ALL_ELEMENTS, "elements"),
        };
        let name = self.name();
        let mut total: i128 = 0;
        for size in self.sizes(args)? {
            total += size.max(0);
            if size > one {
                return exec_err!("{name} would make {size} {what}; a row may make {one}");
            }
            if total > all {
                return exec_err!("{name} would make more than {all} {what} in all its rows");
            }
        }
        Ok(())
    }

    /// How much each row makes; rows with NULL make nothing.
    fn sizes(&self, args: &ScalarFunctionArgs) -> Result<Vec<i128>> {
        let rows = args.number_rows;
        let numbers = |at: usize| numbers(args.args.get(at), rows);
        let at = |numbers: &Option<Int64Array>, row: usize| -> Option<i128> {
            let numbers = numbers.as_ref()?;
            numbers
                .is_valid(row)
                .then(|| i128::from(numbers.value(row)))
        };
        Ok(match self.size {
            Size::Length | Size::Elements => {
                let counts = numbers(1)?;
                (0..rows).map(|row| at(&counts, row).unwrap_or(0)).collect()
            }
            Size::Copies => {
                let (texts, counts) = (texts(args.args.first(), rows)?, numbers(1)?);
                (0..rows)
                    .map(|row| {
                        let length = texts.as_ref().map_or(0, |texts| texts.value_length(row));
                        i128::from(length) * at(&counts, row).unwrap_or(0)
                    })
                    .collect()
            }
            Size::Series if args.args.get(2).is_some_and(is_interval) => {
                steps_of_time(&args.args, rows)?
            }
            Size::Series => {
                let (first, second, step) = (numbers(0)?, numbers(1)?, numbers(2)?);
                (0..rows)
                    .map(|row| {
                        let (start, stop) = match (at(&first, row), at(&second, row)) {
                            (Some(start), Some(stop)) => (start, stop),
                            (Some(stop), None) => (0, stop),
                            _ => return 0,
                        };
                        let step = at(&step, row).unwrap_or(1).abs().max(1);
                        (stop - start).abs() / step
                    })
                    .collect()
            }
        })
    }
}

fn is_interval(value: &ColumnarValue) -> bool {
    matches!(value.data_type(), DataType::Interval(_))
}

/// How many moments a series from the first argument to the second has at the least step that the third can mean. A step of several units
/// whose signs differ may come to nothing, and the series would never end.
fn steps_of_time(args: &[ColumnarValue], rows: usize) -> Result<Vec<i128>> {
    let moments = |at: usize| -> Result<Int64Array> {
        let moments = args[at].to_array(rows)?;
        let moments = cast(&moments, &DataType::Timestamp(TimeUnit::Millisecond, None))?;
        Ok(cast(&moments, &DataType::Int64)?
            .as_primitive::<Int64Type>()
            .clone())
    };
    let (first, last) = (moments(0)?, moments(1)?);
    let month_day_nano = DataType::Interval(IntervalUnit::MonthDayNano);
    let steps = cast(&args[2].to_array(rows)?, &month_day_nano)?;
    let steps = steps.as_primitive::<IntervalMonthDayNanoType>();
    (0..rows)
        .map(|row| {
            if first.is_null(row) || last.is_null(row) || steps.is_null(row) {
                return Ok(0);
            }
            let (months, days, nanos) = IntervalMonthDayNanoType::to_parts(steps.value(row));
            let parts = [
                i128::from(months) * SHORTEST_MONTH,
                i128::from(days) * SHORTEST_DAY,
                i128::from(nanos),
            ];
            if parts.iter().any(|&part| part > 0) && parts.iter().any(|&part| part < 0) {
                return exec_err!("the parts of a series' step must have one sign");
            }
            let step: i128 = parts.iter().sum();
            let span =
                (i128::from(last.value(row)) - i128::from(first.value(row))) * NANOS_PER_MILLI;
            Ok(span.abs() / step.abs().max(1))
        })
        .collect()
}

/// An argument that is a whole number.
fn numbers(value: Option<&ColumnarValue>, rows: usize) -> Result<Option<Int64Array>> {
    match value {
        Some(value) if value.data_type().is_integer() => {
            let array = cast(&value.to_array(rows)?, &DataType::Int64)?;
            Ok(Some(array.as_primitive::<Int64Type>().clone()))
        }
        _ => Ok(None),
    }
}

fn texts(value: Option<&ColumnarValue>, rows: usize) -> Result<Option<StringArray>> {
    match value {
        Some(value) => {
            let array = cast(&value.to_array(rows)?, &DataType::Utf8)?;
            Ok(Some(array.as_string::<i32>().clone()))
        }
        None => Ok(None),
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(arguments)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.check(&args)?;
        self.inner.invoke_with_args(args)
    }
}
