//! UNNEST and EXPLODE to dataflow nodes.

use datafusion::logical_expr::Unnest;

use super::{
    UnnestColumn,
    lower::{Goal, Lowering, plain_schema},
    properties::Properties,
};
use crate::{
    dataflow::Operator,
    error::{PlanError, PlanResult},
};

impl Lowering<'_> {
    /// Lowers lists in the SELECT list. The binder puts them between two projections: one makes the lists, the other uses their elements.
    pub(super) fn lower_unnest(&mut self, unnest: &Unnest) -> PlanResult<Properties> {
        let input = self.lower(&unnest.input, &Goal::default())?;
        if input.changing {
            return Err(PlanError::unsupported(
                "UNNEST over a table",
                None,
                Some("a row that is made of a list has no key; unnest a stream"),
            ));
        }
        if !unnest.struct_type_columns.is_empty() {
            return Err(PlanError::unsupported(
                "UNNEST of a struct",
                None,
                Some("select its fields"),
            ));
        }
        let schema = plain_schema(&unnest.schema);
        let mut lists = unnest.list_type_columns.iter();
        let columns = unnest
            .dependency_indices
            .iter()
            .map(|&from| {
                let is_list = unnest
                    .list_type_columns
                    .iter()
                    .any(|(list, _)| *list == from);
                match is_list {
                    true => UnnestColumn::Elements(from),
                    false => UnnestColumn::Repeated(from),
                }
            })
            .collect::<Vec<_>>();
        if lists.any(|(_, list)| list.depth != 1) {
            return Err(PlanError::unsupported("UNNEST of UNNEST", None, None));
        }
        let origins: Vec<Option<usize>> = columns
            .iter()
            .map(|column| match column {
                UnnestColumn::Repeated(from) => Some(*from),
                UnnestColumn::Elements(_) => None,
            })
            .collect();
        let key = input.key.through(&origins, &input.schema, &schema);
        let placement = input
            .placement
            .as_ref()
            .and_then(|placement| placement.through(&origins));
        let operator = Operator::Unnest { columns };
        let id = self.push(
            vec![input.id],
            operator,
            schema.clone(),
            input.slots,
            input.changing,
        );
        Ok(Properties {
            id,
            schema,
            key,
            placement,
            ..input
        })
    }
}
