//! Errors of parsing and planning: nearly all of them are the user's mistakes, with a place in the text.

use highwater_planner::PlanError;

use super::{SqlError, code};

impl SqlError {
    /// The parser's error about this script.
    pub fn from_sql(error: &highwater_sql::SqlError, script: &str) -> Self {
        use highwater_sql::SqlError as Parse;
        let code = match error {
            Parse::Syntax { .. } => code::SYNTAX_ERROR,
            Parse::Unsupported { .. } => code::FEATURE_NOT_SUPPORTED,
            Parse::TooComplex { .. } => code::STATEMENT_TOO_COMPLEX,
            Parse::InvalidText { .. } => code::CHARACTER_NOT_IN_REPERTOIRE,
        };
        let hint = error.hint().map(str::to_owned);
        Self {
            code,
            message: error.to_string(),
            detail: None,
            hint,
            position: Some(error.position(script)),
        }
    }

    /// The planner's error about a statement whose positions count in this text.
    pub fn from_plan(error: &PlanError, text: &str) -> Self {
        let code = match error {
            PlanError::UnknownRelation { .. } => code::UNDEFINED_TABLE,
            PlanError::UnknownColumn { .. } => code::UNDEFINED_COLUMN,
            PlanError::AmbiguousColumn { .. } => code::AMBIGUOUS_COLUMN,
            PlanError::UnknownFunction { .. } => code::UNDEFINED_FUNCTION,
            PlanError::TypeMismatch { .. } => code::DATATYPE_MISMATCH,
            PlanError::InvalidType { .. } => code::INVALID_PARAMETER_VALUE,
            PlanError::UnknownType { .. } => code::UNDEFINED_OBJECT,
            PlanError::DuplicateRelation { .. } => code::DUPLICATE_TABLE,
            PlanError::DuplicateColumn { .. } => code::DUPLICATE_COLUMN,
            PlanError::ReservedName { .. } => code::RESERVED_NAME,
            PlanError::InvalidKey { .. } => code::INVALID_TABLE_DEFINITION,
            PlanError::UnknownProperty { .. } | PlanError::InvalidProperty { .. } => {
                code::INVALID_PARAMETER_VALUE
            }
            PlanError::Unsupported { .. } => code::FEATURE_NOT_SUPPORTED,
            PlanError::InvalidQuery { .. } => code::INVALID_QUERY,
            PlanError::DataFusion(error) => return Self::from_datafusion(error, text),
            PlanError::Internal(_) => code::INTERNAL_ERROR,
        };
        let located = Self {
            code,
            message: error.to_string(),
            detail: None,
            hint: error.hint().map(str::to_owned),
            position: None,
        };
        match error.position() {
            Some(position) => located.with_line_and_column(text, position.line, position.column),
            None => located,
        }
    }
}
