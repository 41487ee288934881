//! Types in casts, by the words that columns are declared with.

use std::sync::Arc;

use arrow::datatypes::{Field, FieldRef};
use datafusion::{
    common::{DataFusionError, Result},
    logical_expr::planner::TypePlanner,
};
use highwater_sql::{SqlType, sql_type_of};
use sqlparser::ast;

use crate::types::arrow_type;

/// Plans the types that DataFusion does not have under our names: nested ones, BYTES, and those that CREATE TYPE names.
#[derive(Debug, Default, Clone, Copy)]
pub struct CastTypes;

impl TypePlanner for CastTypes {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> Result<Option<FieldRef>> {
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
