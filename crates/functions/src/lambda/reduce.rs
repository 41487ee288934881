//! REDUCE.
//!
//! The state has the type of the start value, unless the lambda gives a wider kind of number: `reduce(bigints, 0, ..)` counts in BIGINT. A NULL array
//! leaves the start value as it is.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, UInt32Array},
    compute::{cast, interleave, take},
    datatypes::{DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef},
};
use datafusion::{
    common::{Result, plan_err},
    logical_expr::{
        ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature,
        HigherOrderUDFImpl, LambdaParametersProgress, ValueOrLambda, Volatility,
    },
};

use super::{
    collection::{Collection, evaluate},
    collection_type, item_fields, lambda_at, value_at,
};
use crate::{
    scalar::array::index,
    types::{canonical, common_type, distance, sql_name},
};

/// See the module.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Reduce {
    signature: HigherOrderSignature,
}

impl Default for Reduce {
    fn default() -> Self {
        Self {
            signature: HigherOrderSignature::user_defined(Volatility::Immutable),
        }
    }
}

/// The type of the state, given the start value's and the type that the lambda makes of it.
fn state_type(start: &DataType, body: &DataType) -> Result<DataType> {
    let (start, body) = (canonical(start), canonical(body));
    if start == DataType::Null {
        return Ok(body);
    }
    match (&start, &body) {
        // Sums of decimals get a digit more each time; the state cannot.
        (
            DataType::Decimal128(_, _) | DataType::Decimal256(_, _),
            DataType::Decimal128(_, _) | DataType::Decimal256(_, _),
        ) => Ok(start),
        (DataType::Int32 | DataType::Int64, DataType::Decimal128(_, scale)) => {
            Ok(DataType::Decimal128(DECIMAL128_MAX_PRECISION, *scale))
        }
        _ => match common_type(&start, &body) {
            Some(common) if common == start || distance(&start, &body).is_some() => Ok(common),
            _ => plan_err!(
                "the lambda of function reduce gives {}, but the state is {}",
                sql_name(&body),
                sql_name(&start)
            ),
        },
    }
}

impl HigherOrderUDFImpl for Reduce {
    fn name(&self) -> &str {
        "reduce"
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn coerce_value_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [collection, start] => Ok(vec![
                collection_type(self.name(), collection)?,
                canonical(start),
            ]),
            _ => plan_err!("function reduce takes an array or a map, a start value and a lambda"),
        }
    }

    fn lambda_parameters(
        &self,
        _step: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        let collection = value_at(self.name(), fields, 0)?;
        let start = value_at(self.name(), fields, 1)?;
        let parameters = |state: &DataType| {
            let mut parameters: Vec<FieldRef> =
                vec![Arc::new(Field::new("state", state.clone(), true))];
            parameters.extend(item_fields(collection.data_type()));
            parameters
        };
        match fields.get(2) {
            Some(ValueOrLambda::Lambda(None)) => Ok(LambdaParametersProgress::Partial(vec![Some(
                parameters(start.data_type()),
            )])),
            Some(ValueOrLambda::Lambda(Some(body))) => {
                Ok(LambdaParametersProgress::Complete(vec![parameters(
                    &state_type(start.data_type(), body.data_type())?,
                )]))
            }
            _ => plan_err!("argument 3 of function reduce must be a lambda"),
        }
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        let start = value_at(self.name(), args.arg_fields, 1)?;
        let Some(ValueOrLambda::Lambda(body)) = args.arg_fields.get(2) else {
            return plan_err!("argument 3 of function reduce must be a lambda");
        };
        let state = state_type(start.data_type(), body.data_type())?;
        Ok(Arc::new(Field::new(self.name(), state, true)))
    }

    fn clear_null_values(&self) -> bool {
        false
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let array = value_at(self.name(), &args.args, 0)?.to_array(rows)?;
        let state_type = args.return_field.data_type();
        let start = value_at(self.name(), &args.args, 1)?.to_array(rows)?;
        let mut state = cast(&start, state_type)?;
        let lambda = lambda_at(self.name(), &args.args, 2)?;
        let collection = Collection::new(&array)?;
        // The rows that still have an element, and how many elements the longest has.
        let mut active: Vec<usize> = (0..rows).collect();
        for rank in 0.. {
            active.retain(|row| {
                collection.ranges[*row]
                    .as_ref()
                    .is_some_and(|range| range.len() > rank)
            });
            if active.is_empty() {
                break;
            }
            let elements: UInt32Array = active
                .iter()
                .filter_map(|row| collection.ranges[*row].as_ref())
                .map(|range| index(range.start + rank))
                .collect();
            let outer: UInt32Array = active.iter().map(|row| index(*row)).collect();
            let mut parameters = vec![take(&state, &outer, None)?];
            for item in &collection.items {
                parameters.push(take(item, &elements, None)?);
            }
            let next = cast(&evaluate(&lambda, &parameters, &outer)?, state_type)?;
            state = replace(&state, &active, &next)?;
        }
        Ok(ColumnarValue::Array(state))
    }
}

/// `state` with the rows `active` taken from `next`, in order.
fn replace(state: &ArrayRef, active: &[usize], next: &ArrayRef) -> Result<ArrayRef> {
    if active.len() == state.len() {
        return Ok(Arc::clone(next));
    }
    let mut choice: Vec<(usize, usize)> = (0..state.len()).map(|row| (0, row)).collect();
    for (position, row) in active.iter().enumerate() {
        choice[*row] = (1, position);
    }
    Ok(interleave(
        &[state.as_ref() as &dyn Array, next.as_ref()],
        &choice,
    )?)
}
