//! Functions of the step's clock and seed, such as UNIX_TIMESTAMP(), over changing input.
//!
//! A row of a stream is evaluated once, and a step that runs again reads the clock and seed that its journal entry holds. A row of a table is
//! evaluated again when it goes: it would get another value then, and what was added could not be taken back. So they are refused there.

use datafusion::{
    common::tree_node::{TreeNode, TreeNodeRecursion},
    logical_expr::Expr,
};

use crate::error::{PlanError, PlanResult};

/// Refuses them in expressions over a table or an aggregate.
pub(super) fn refuse_over_changes<'e>(
    expressions: impl IntoIterator<Item = &'e Expr>,
    changing: bool,
) -> PlanResult<()> {
    if !changing {
        return Ok(());
    }
    for expression in expressions {
        let mut found = None;
        expression
            .apply(|part| {
                if let Expr::ScalarFunction(call) = part
                    && call.args.is_empty()
                    && highwater_functions::reads_step(&call.func)
                {
                    found = Some(call.func.name().to_owned());
                    return Ok(TreeNodeRecursion::Stop);
                }
                Ok(TreeNodeRecursion::Continue)
            })
            .map_err(PlanError::DataFusion)?;
        if let Some(name) = found {
            return Err(PlanError::unsupported(
                format!("{name}() over a table in a continuous query"),
                None,
                Some(
                    "its value would change with every update of a row; use rowtime, or read a stream",
                ),
            ));
        }
    }
    Ok(())
}
