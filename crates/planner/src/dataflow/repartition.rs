//! Where rows must move to meet their key.

use highwater_sql::SourceKind;

use crate::{
    dataflow::{
        Operator,
        lower::Lowering,
        properties::{Placement, Properties},
    },
    error::{PlanError, PlanResult},
};

impl Lowering<'_> {
    /// The same rows, each in the slot that `wanted` gives it. Adds an exchange unless they are there already: with one slot on both sides, or
    /// when the input is placed by the same key.
    pub(super) fn place(&mut self, input: Properties, wanted: Placement, slots: u32) -> Properties {
        let alone = input.slots == 1 && slots == 1;
        let placed = input.slots == slots
            && input
                .placement
                .as_ref()
                .is_some_and(|own| own.satisfies(&wanted));
        if alone || placed {
            return Properties {
                placement: Some(wanted),
                ..input
            };
        }
        let operator = Operator::Exchange {
            keys: wanted.columns.clone(),
            names: wanted.names.clone(),
            format: wanted.format.clone(),
            slots,
        };
        let id = self.push(
            vec![input.id],
            operator,
            input.schema.clone(),
            slots,
            input.changing,
        );
        Properties {
            id,
            slots,
            placement: Some(wanted),
            ..input
        }
    }

    /// The rows of a stream without a key stay in the partition that they came in, so there must be as many behind as before.
    pub(super) fn check_unplaced(&self, input: &Properties, slots: u32) -> PlanResult<()> {
        if input.slots == slots {
            return Ok(());
        }
        debug_assert!(
            !input.changing || self.target.kind != Some(SourceKind::Table),
            "a table's rows are placed by key"
        );
        Err(PlanError::InvalidProperty {
            name: "partitions".to_owned(),
            reason: format!(
                "the result has no key, so its rows stay in their {} partitions, not {slots}",
                input.slots
            ),
            hint: Some("leave the property out, or select the key columns".to_owned()),
        })
    }
}
