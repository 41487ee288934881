//! What can be wrong with a statement.
//!
//! Every variant carries the offending token and, where the statement's text told it, its position. Nearly all of them are the user's mistakes;
//! [`PlanError::DataFusion`] keeps errors of the binder that have no word of their own here and [`PlanError::Internal`] is a bug in this crate.

use datafusion::error::DataFusionError;
use sqlparser::tokenizer::Location;

/// Result of planning.
pub type PlanResult<T> = Result<T, PlanError>;

/// Where a token stands in the script: line and column, both counted from 1, columns in characters.
pub type Position = Location;

/// A planning error. Exhaustive on purpose: the server's map to SQLSTATE has no wildcard, so a new variant cannot fall through it.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// No stream or table has this name.
    #[error("\"{name}\" does not exist")]
    UnknownRelation {
        /// The name.
        name: String,
        /// Where it stands.
        position: Option<Position>,
        /// The nearest existing name.
        hint: Option<String>,
    },
    /// No column in scope has this name.
    #[error("column \"{name}\" does not exist")]
    UnknownColumn {
        /// The name, with its qualifier when one was written.
        name: String,
        /// Where it stands.
        position: Option<Position>,
        /// The nearest existing name.
        hint: Option<String>,
    },
    /// More than one column in scope has this name.
    #[error("column reference \"{name}\" is ambiguous")]
    AmbiguousColumn {
        /// The name.
        name: String,
        /// Where it stands.
        position: Option<Position>,
    },
    /// No function has this name.
    #[error("function \"{name}\" does not exist")]
    UnknownFunction {
        /// The name.
        name: String,
        /// Where it stands.
        position: Option<Position>,
        /// The nearest existing name.
        hint: Option<String>,
    },
    /// Types do not fit together.
    #[error("{message}")]
    TypeMismatch {
        /// What does not fit what.
        message: String,
        /// Where it stands.
        position: Option<Position>,
        /// How to make them fit.
        hint: Option<String>,
    },
    /// A type that cannot be.
    #[error("type {name} is not valid: {reason}")]
    InvalidType {
        /// The type as SQL spells it.
        name: String,
        /// Why.
        reason: String,
    },
    /// No type has this name.
    #[error("type \"{name}\" does not exist")]
    UnknownType {
        /// The name.
        name: String,
    },
    /// A stream or table of this name exists.
    #[error("\"{name}\" already exists")]
    DuplicateRelation {
        /// The name.
        name: String,
    },
    /// Two columns of one relation have the same name.
    #[error("column \"{name}\" is named more than once")]
    DuplicateColumn {
        /// The name.
        name: String,
        /// Where the second one stands.
        position: Option<Position>,
    },
    /// A column has the name of a pseudo column or of a window bound.
    #[error("\"{name}\" is reserved and cannot name a column")]
    ReservedName {
        /// The name.
        name: String,
        /// Where it stands.
        position: Option<Position>,
        /// What to do instead.
        hint: Option<String>,
    },
    /// The key of a relation breaks a rule.
    #[error("{message}")]
    InvalidKey {
        /// Which rule.
        message: String,
        /// Where the column stands.
        position: Option<Position>,
        /// What to do instead.
        hint: Option<String>,
    },
    /// A WITH clause names a property that does not exist.
    #[error("property \"{name}\" does not exist")]
    UnknownProperty {
        /// The name.
        name: String,
        /// The nearest existing name.
        hint: Option<String>,
    },
    /// A property of a WITH clause cannot have this value, or cannot stand here.
    #[error("property \"{name}\": {reason}")]
    InvalidProperty {
        /// The property.
        name: String,
        /// What is wrong with it.
        reason: String,
        /// What would be right.
        hint: Option<String>,
    },
    /// A clause, function or type that has no continuous form, or none yet.
    #[error("{what} is not supported")]
    Unsupported {
        /// What was asked for, as a noun with its place: `JOIN in a continuous query`.
        what: String,
        /// Where it stands.
        position: Option<Position>,
        /// What to do instead.
        hint: Option<String>,
    },
    /// The query is not valid SQL for another reason.
    #[error("{message}")]
    InvalidQuery {
        /// What is wrong.
        message: String,
        /// Where it stands.
        position: Option<Position>,
        /// What to do instead.
        hint: Option<String>,
    },
    /// The binder or the optimizer failed.
    #[error("could not plan the query")]
    DataFusion(#[source] DataFusionError),
    /// A bug in this crate.
    #[error("internal error in the planner: {0}")]
    Internal(String),
}

impl PlanError {
    /// Where the offending token stands, when known.
    pub fn position(&self) -> Option<Position> {
        match self {
            Self::UnknownRelation { position, .. }
            | Self::UnknownColumn { position, .. }
            | Self::AmbiguousColumn { position, .. }
            | Self::UnknownFunction { position, .. }
            | Self::TypeMismatch { position, .. }
            | Self::DuplicateColumn { position, .. }
            | Self::ReservedName { position, .. }
            | Self::InvalidKey { position, .. }
            | Self::Unsupported { position, .. }
            | Self::InvalidQuery { position, .. } => *position,
            Self::InvalidType { .. }
            | Self::UnknownType { .. }
            | Self::DuplicateRelation { .. }
            | Self::UnknownProperty { .. }
            | Self::InvalidProperty { .. }
            | Self::DataFusion(_)
            | Self::Internal(_) => None,
        }
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::UnknownRelation { hint, .. }
            | Self::UnknownColumn { hint, .. }
            | Self::UnknownFunction { hint, .. }
            | Self::TypeMismatch { hint, .. }
            | Self::ReservedName { hint, .. }
            | Self::InvalidKey { hint, .. }
            | Self::UnknownProperty { hint, .. }
            | Self::InvalidProperty { hint, .. }
            | Self::Unsupported { hint, .. }
            | Self::InvalidQuery { hint, .. } => hint.as_deref(),
            Self::AmbiguousColumn { .. } => {
                Some("write the relation's name before the column: relation.column")
            }
            Self::DuplicateColumn { .. } => Some("give one of them another name with AS"),
            Self::UnknownType { .. } => Some("CREATE TYPE gives a name to a type"),
            Self::InvalidType { .. }
            | Self::DuplicateRelation { .. }
            | Self::DataFusion(_)
            | Self::Internal(_) => None,
        }
    }

    /// A clause without a continuous form; callers add position and hint.
    pub(crate) fn unsupported(
        what: impl Into<String>,
        position: Option<Position>,
        hint: Option<&str>,
    ) -> Self {
        Self::Unsupported {
            what: what.into(),
            position,
            hint: hint.map(str::to_owned),
        }
    }

    /// A query that breaks a rule of SQL.
    pub(crate) fn invalid(
        message: impl Into<String>,
        position: Option<Position>,
        hint: Option<&str>,
    ) -> Self {
        Self::InvalidQuery {
            message: message.into(),
            position,
            hint: hint.map(str::to_owned),
        }
    }
}
