//! Types in casts, by the words that columns are declared with.

use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef};
use datafusion::{
    common::{DataFusionError, Result, plan_err},
    logical_expr::planner::TypePlanner,
};
use highwater_sql::{SqlType, sql_type_of};
use sqlparser::ast;

use crate::types::{MAX_DECIMAL_DIGITS, arrow_type};

/// Plans the types that DataFusion does not have under our names: nested ones, BYTES, and those that CREATE TYPE names.
#[derive(Debug, Default, Clone, Copy)]
pub struct CastTypes;

impl TypePlanner for CastTypes {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> Result<Option<FieldRef>> {
        if let ast::DataType::Decimal(size)
        | ast::DataType::Numeric(size)
        | ast::DataType::Dec(size) = sql_type
        {
            check_decimal(size)?;
        }
        let Some(
            sql_type @ (SqlType::Array(_)
            | SqlType::Map(..)
            | SqlType::Struct(_)
            | SqlType::Bytes
            | SqlType::Named(_)),
        ) = sql_type_of(sql_type)
        else {
            return Ok(None);
        };
        let data_type =
            arrow_type(&sql_type).map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(Some(Arc::new(Field::new("", data_type, true))))
    }
}

/// DataFusion keeps only the low bits of such numbers: DECIMAL(294, 2) would be a DECIMAL(38, 2).
fn check_decimal(size: &ast::ExactNumberInfo) -> Result<()> {
    let (precision, scale) = match *size {
        ast::ExactNumberInfo::None => return Ok(()),
        ast::ExactNumberInfo::Precision(precision) => (precision, 0),
        ast::ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    if precision == 0 || precision > u64::from(MAX_DECIMAL_DIGITS) {
        return plan_err!(
            "DECIMAL({precision}, {scale}): the precision must be between 1 and {MAX_DECIMAL_DIGITS}"
        );
    }
    if u64::try_from(scale).map_or(true, |scale| scale > precision) {
        return plan_err!(
            "DECIMAL({precision}, {scale}): the scale must be between 0 and the precision"
        );
    }
    Ok(())
}
