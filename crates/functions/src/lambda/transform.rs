//! TRANSFORM.
//!
//! A map's new keys must be distinct and neither keys nor values NULL; otherwise the row is NULL, as in ksqlDB.

use std::{collections::HashSet, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, ListArray, UInt32Array},
    buffer::{NullBuffer, OffsetBuffer},
    compute::{cast, take},
    datatypes::{DataType, Field, FieldRef},
};
use datafusion::{
    common::{Result, plan_err},
    logical_expr::{
        ColumnarValue, HigherOrderFunctionArgs, HigherOrderReturnFieldArgs, HigherOrderSignature,
        HigherOrderUDFImpl, LambdaParametersProgress, ValueOrLambda, Volatility,
    },
};

use super::{collection::Collection, collection_type, item_fields, lambda_at, value_at};
use crate::{
    row_errors::report,
    scalar::{
        array::{element_field, index},
        map::map_array,
    },
    types::{list, map, sql_name},
};

/// See the module.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Transform {
    signature: HigherOrderSignature,
}

impl Default for Transform {
    fn default() -> Self {
        Self {
            signature: HigherOrderSignature::user_defined(Volatility::Immutable),
        }
    }
}

impl HigherOrderUDFImpl for Transform {
    fn name(&self) -> &str {
        "transform"
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn coerce_value_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [collection] => Ok(vec![collection_type(self.name(), collection)?]),
            _ => plan_err!(
                "function transform takes an array and a lambda, or a map and two lambdas"
            ),
        }
    }

    fn lambda_parameters(
        &self,
        _step: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        let items = item_fields(value_at(self.name(), fields, 0)?.data_type());
        match (items.len(), fields.len()) {
            (1, 2) => Ok(LambdaParametersProgress::Complete(vec![items])),
            (2, 3) => Ok(LambdaParametersProgress::Complete(vec![
                items.clone(),
                items,
            ])),
            (1, _) => plan_err!("function transform takes one lambda for an array"),
            _ => plan_err!(
                "function transform takes two lambdas for a map: of the key and of the value"
            ),
        }
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        let results: Vec<&DataType> = args
            .arg_fields
            .iter()
            .filter_map(|field| match field {
                ValueOrLambda::Lambda(body) => Some(body.data_type()),
                ValueOrLambda::Value(_) => None,
            })
            .collect();
        let data_type = match results.as_slice() {
            [element] => list((*element).clone()),
            [
                DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8,
                value,
            ] => map(DataType::Utf8, (*value).clone()),
            [key, _] => {
                return plan_err!(
                    "a map's keys must be VARCHAR, but the lambda gives {}",
                    sql_name(key)
                );
            }
            _ => return plan_err!("function transform takes one or two lambdas"),
        };
        Ok(Arc::new(Field::new(self.name(), data_type, true)))
    }

    fn clear_null_values(&self) -> bool {
        false
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let array = value_at(self.name(), &args.args, 0)?.to_array(args.number_rows)?;
        let collection = Collection::new(&array)?;
        let data_type = args.return_field.data_type();
        let first = collection.apply(&lambda_at(self.name(), &args.args, 1)?)?;
        let result = if collection.items.len() == 1 {
            elements(&collection, data_type, first)?
        } else {
            let values = collection.apply(&lambda_at(self.name(), &args.args, 2)?)?;
            entries(
                &collection,
                data_type,
                &cast(&first, &DataType::Utf8)?,
                &values,
            )?
        };
        Ok(ColumnarValue::Array(result))
    }
}

fn elements(collection: &Collection, data_type: &DataType, values: ArrayRef) -> Result<ArrayRef> {
    let lengths = collection
        .ranges
        .iter()
        .map(|range| range.as_ref().map_or(0, ExactSizeIterator::len));
    let valid: Vec<bool> = collection.ranges.iter().map(Option::is_some).collect();
    Ok(Arc::new(ListArray::try_new(
        element_field(data_type)?,
        OffsetBuffer::from_lengths(lengths),
        values,
        Some(NullBuffer::from(valid)),
    )?))
}

fn entries(
    collection: &Collection,
    data_type: &DataType,
    keys: &ArrayRef,
    values: &ArrayRef,
) -> Result<ArrayRef> {
    let texts = keys.as_string::<i32>();
    let mut kept: Vec<u32> = Vec::with_capacity(collection.len());
    let (mut lengths, mut valid) = (Vec::new(), Vec::new());
    for range in &collection.ranges {
        let sound = range.clone().map(|range| {
            let mut seen = HashSet::with_capacity(range.len());
            for entry in range {
                if texts.is_null(entry) || values.is_null(entry) {
                    return Err("a new key or value of the map is NULL".to_owned());
                }
                if !seen.insert(texts.value(entry)) {
                    return Err(format!(
                        "the new map would have key \"{}\" twice",
                        texts.value(entry)
                    ));
                }
            }
            Ok(())
        });
        let range = match sound {
            Some(Ok(())) => range.clone(),
            Some(Err(reason)) => {
                report(reason);
                None
            }
            None => None,
        };
        valid.push(range.is_some());
        let range = range.unwrap_or(0..0);
        lengths.push(range.len());
        kept.extend(range.map(index));
    }
    let kept = UInt32Array::from(kept);
    map_array(
        data_type,
        take(keys, &kept, None)?,
        take(values, &kept, None)?,
        lengths,
        valid,
    )
}
