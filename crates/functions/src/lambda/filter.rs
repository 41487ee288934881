//! FILTER.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, ListArray},
    buffer::{NullBuffer, OffsetBuffer},
    compute::{filter, prep_null_mask_filter},
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
use crate::scalar::{array::element_field, map::map_array};

/// See the module.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Filter {
    signature: HigherOrderSignature,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            signature: HigherOrderSignature::user_defined(Volatility::Immutable),
        }
    }
}

impl HigherOrderUDFImpl for Filter {
    fn name(&self) -> &str {
        "filter"
    }

    fn signature(&self) -> &HigherOrderSignature {
        &self.signature
    }

    fn coerce_value_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [collection] => Ok(vec![collection_type(self.name(), collection)?]),
            _ => plan_err!("function filter takes an array or a map, and a lambda"),
        }
    }

    fn lambda_parameters(
        &self,
        _step: usize,
        fields: &[ValueOrLambda<FieldRef, Option<FieldRef>>],
    ) -> Result<LambdaParametersProgress> {
        let collection = value_at(self.name(), fields, 0)?;
        Ok(LambdaParametersProgress::Complete(vec![item_fields(
            collection.data_type(),
        )]))
    }

    fn return_field_from_args(&self, args: HigherOrderReturnFieldArgs) -> Result<FieldRef> {
        let collection = value_at(self.name(), args.arg_fields, 0)?;
        match args.arg_fields.get(1) {
            Some(ValueOrLambda::Lambda(body))
                if matches!(body.data_type(), DataType::Boolean | DataType::Null) => {}
            _ => return plan_err!("the lambda of function filter must give a BOOLEAN"),
        }
        Ok(Arc::new(Field::new(
            self.name(),
            collection.data_type().clone(),
            true,
        )))
    }

    fn clear_null_values(&self) -> bool {
        false
    }

    fn invoke_with_args(&self, args: HigherOrderFunctionArgs) -> Result<ColumnarValue> {
        let array = value_at(self.name(), &args.args, 0)?.to_array(args.number_rows)?;
        let collection = Collection::new(&array)?;
        let verdict = collection.apply(&lambda_at(self.name(), &args.args, 1)?)?;
        let keep = match verdict.data_type() {
            DataType::Boolean if verdict.null_count() > 0 => {
                prep_null_mask_filter(verdict.as_boolean())
            }
            DataType::Boolean => verdict.as_boolean().clone(),
            _ => BooleanArray::from(vec![false; collection.len()]),
        };
        let items: Vec<ArrayRef> = collection
            .items
            .iter()
            .map(|item| Ok(filter(item, &keep)?))
            .collect::<Result<_>>()?;
        let lengths: Vec<usize> = collection
            .ranges
            .iter()
            .map(|range| match range {
                Some(range) => keep.slice(range.start, range.len()).true_count(),
                None => 0,
            })
            .collect();
        let valid: Vec<bool> = collection.ranges.iter().map(Option::is_some).collect();
        let data_type = args.return_field.data_type();
        Ok(ColumnarValue::Array(match items.as_slice() {
            [elements] => Arc::new(ListArray::try_new(
                element_field(data_type)?,
                OffsetBuffer::from_lengths(lengths),
                Arc::clone(elements),
                Some(NullBuffer::from(valid)),
            )?),
            [keys, values] => map_array(
                data_type,
                Arc::clone(keys),
                Arc::clone(values),
                lengths,
                valid,
            )?,
            _ => return plan_err!("function filter takes an array or a map"),
        }))
    }
}
