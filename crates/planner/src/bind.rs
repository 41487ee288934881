//! Statements to DataFusion's logical plan.
//!
//! A query passes through: checks of clauses that have no continuous form (`check`), expansion of `*` (`wildcard`), names for unnamed
//! expressions (`name`), the window clause (`window`), then DataFusion's own binder over the relations of the catalog (`context`). What
//! DataFusion reports is turned into [`crate::PlanError`] with the token's position in `locate`.

mod aggregate;
mod cast_type;
mod check;
mod context;
mod ksql;
mod locate;
mod name;
mod pull;
mod query;
mod source;
mod units;
mod wildcard;
mod window;

pub(crate) use aggregate::{EngineCall, engine_call};
pub use cast_type::CastTypes;
pub(crate) use context::RelationSource;
pub(crate) use ksql::PartitionKey;
pub use ksql::ksql_operators;
pub(crate) use locate::Located;
pub use pull::rewrite_pull;
pub(crate) use query::{Purpose, bind_query};
pub use source::plan_create_source;
pub(crate) use source::{is_reserved, partitions_of, refuse_existing, topic_of};
pub use units::name_time_units;
pub(crate) use window::AssignWindows;
