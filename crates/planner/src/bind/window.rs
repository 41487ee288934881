//! The WINDOW clause.
//!
//! The clause becomes a logical node, [`AssignWindows`], directly above the input of the outermost SELECT. It adds the columns `windowstart`
//! and `windowend`, and the GROUP BY gets both, so that binder and optimizer treat windows as two more group columns and need to know
//! nothing else. Filters that do not look at the window pass below the node.

use std::{
    cmp::Ordering, collections::HashMap, collections::HashSet, fmt, sync::Arc, time::Duration,
};

use arrow::datatypes::{DataType, Field, TimeUnit};
use datafusion::{
    common::{DFSchema, DFSchemaRef, Result, TableReference, plan_err},
    logical_expr::{
        Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore,
        planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning},
    },
};
use highwater_sql::{Emit, Window, WindowKind};
use sqlparser::ast::{self, SetExpr, TableFactor, Visit, Visitor};

use super::locate::{folded, position_of};
use crate::{
    catalog::{WINDOWEND, WINDOWSTART},
    dataflow::{WindowShape, WindowSpec},
    error::{PlanError, PlanResult, Position},
    explain::Length,
};

/// Windows take late records for this long after their start, unless GRACE PERIOD says otherwise.
const DEFAULT_GRACE: Duration = Duration::from_secs(24 * 60 * 60);
/// Most hopping windows that one row may fall into: each is a copy of the row.
const MAX_WINDOWS_PER_ROW: u128 = 10_000;
/// Stands for the windowed input in FROM until [`WindowPlanner`] plans it.
const MARKER: &str = "windowed input";

/// Checks a WINDOW clause and fills in its defaults.
pub(crate) fn window_spec(window: &Window, emit: Option<Emit>) -> PlanResult<WindowSpec> {
    let (shape, size) = match window.kind {
        WindowKind::Tumbling { size } => (WindowShape::Tumbling { size }, size),
        WindowKind::Hopping { size, advance } => (WindowShape::Hopping { size, advance }, size),
        WindowKind::Session { gap } => (WindowShape::Session { gap }, gap),
    };
    let length = match shape {
        WindowShape::Session { .. } => "the gap of SESSION",
        _ => "SIZE",
    };
    check_length(length, size)?;
    if let WindowShape::Hopping { size, advance } = shape {
        check_length("ADVANCE BY", advance)?;
        if advance > size {
            return Err(PlanError::invalid(
                "ADVANCE BY is longer than SIZE, so some rows would be in no window",
                None,
                None,
            ));
        }
        if size.as_millis().div_ceil(advance.as_millis()) > MAX_WINDOWS_PER_ROW {
            let message = format!("each row would be in more than {MAX_WINDOWS_PER_ROW} windows");
            return Err(PlanError::invalid(
                message,
                None,
                Some("make ADVANCE BY longer"),
            ));
        }
    }
    let grace = window.grace.unwrap_or_else(|| match emit {
        // Whoever waits for a window's last word does not want to wait for a day.
        Some(Emit::Final) => Duration::ZERO,
        _ => DEFAULT_GRACE.saturating_sub(size),
    });
    if let Some(retention) = window
        .retention
        .filter(|retention| *retention < size + grace)
    {
        let message = format!(
            "RETENTION ({}) is shorter than SIZE and GRACE PERIOD together ({})",
            Length(retention),
            Length(size + grace)
        );
        return Err(PlanError::invalid(message, None, None));
    }
    Ok(WindowSpec {
        shape,
        grace,
        retention: window.retention,
    })
}

fn check_length(clause: &str, length: Duration) -> PlanResult<()> {
    if length.as_millis() == 0 || !length.subsec_nanos().is_multiple_of(1_000_000) {
        return Err(PlanError::invalid(
            format!("{clause} must be a whole number of milliseconds above 0"),
            None,
            None,
        ));
    }
    Ok(())
}

/// Rewrites the outermost SELECT for its window: marks its input, and groups by the window's bounds.
pub(crate) fn group_by_window(
    query: &mut ast::Query,
    spec: WindowSpec,
) -> PlanResult<WindowPlanner> {
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(PlanError::unsupported(
            "WINDOW over a UNION",
            None,
            Some("put the UNION into a subquery in FROM"),
        ));
    };
    let start = position_of(select.select_token.0.span);
    refuse_bounds(select.selection.as_ref(), "WHERE")?;
    refuse_bounds(select.having.as_ref(), "HAVING")?;
    let ast::GroupByExpr::Expressions(groups, _) = &mut select.group_by else {
        return Err(PlanError::unsupported(
            "GROUP BY ALL with a WINDOW",
            start,
            Some("write the columns"),
        ));
    };
    groups.retain(|group| !is_bound(group));
    if groups.is_empty() {
        return Err(PlanError::invalid(
            "WINDOW needs a GROUP BY",
            start,
            Some("add GROUP BY column"),
        ));
    }
    groups
        .extend([WINDOWSTART, WINDOWEND].map(|name| ast::Expr::Identifier(ast::Ident::new(name))));
    let Some(input) = select.from.first_mut() else {
        return Err(PlanError::invalid("WINDOW needs a FROM", start, None));
    };
    let marker = TableFactor::TableFunction {
        expr: ast::Expr::Identifier(ast::Ident::new(MARKER)),
        alias: None,
    };
    let factor = std::mem::replace(&mut input.relation, marker);
    Ok(WindowPlanner { spec, factor })
}

fn is_bound(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Identifier(ident) => matches!(folded(ident).as_str(), WINDOWSTART | WINDOWEND),
        _ => false,
    }
}

/// The bounds exist only once rows are grouped.
fn refuse_bounds(clause: Option<&ast::Expr>, name: &str) -> PlanResult<()> {
    struct Finder;
    impl Visitor for Finder {
        type Break = Option<Position>;
        fn pre_visit_expr(&mut self, expr: &ast::Expr) -> std::ops::ControlFlow<Option<Position>> {
            match expr {
                ast::Expr::Identifier(ident) if is_bound(expr) => {
                    std::ops::ControlFlow::Break(position_of(ident.span))
                }
                _ => std::ops::ControlFlow::Continue(()),
            }
        }
    }
    match clause.map(|clause| clause.visit(&mut Finder)) {
        Some(std::ops::ControlFlow::Break(position)) => {
            let what = format!(
                "{WINDOWSTART} or {WINDOWEND} in {name} of the query that makes the windows"
            );
            let hint = "filter in a query over the windowed table";
            Err(PlanError::unsupported(what, position, Some(hint)))
        }
        _ => Ok(()),
    }
}

/// Plans the marked input: what stood there, under [`AssignWindows`].
#[derive(Debug)]
pub(crate) struct WindowPlanner {
    spec: WindowSpec,
    factor: TableFactor,
}

impl RelationPlanner for WindowPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::TableFunction {
            expr: ast::Expr::Identifier(ident),
            ..
        } = &relation
        else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        if ident.value != MARKER {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        let input = context.plan(self.factor.clone())?;
        let node = AssignWindows::try_new(self.spec, input)?;
        let plan = LogicalPlan::Extension(Extension {
            node: Arc::new(node),
        });
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(
            plan, None,
        ))))
    }
}

/// Copies each row into its windows and adds their bounds as two columns.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct AssignWindows {
    /// Which windows.
    pub spec: WindowSpec,
    /// Rows with event times.
    pub input: LogicalPlan,
    /// Qualifier of the two columns: the input's, so that `flights.windowstart` is a name too.
    qualifier: Option<TableReference>,
    schema: DFSchemaRef,
}

impl AssignWindows {
    fn try_new(spec: WindowSpec, input: LogicalPlan) -> Result<Self> {
        let qualifier = input
            .schema()
            .iter()
            .next()
            .and_then(|(qualifier, _)| qualifier.cloned());
        Self::with_qualifier(spec, input, qualifier)
    }

    fn with_qualifier(
        spec: WindowSpec,
        input: LogicalPlan,
        qualifier: Option<TableReference>,
    ) -> Result<Self> {
        if input
            .schema()
            .fields()
            .iter()
            .any(|field| field.name() == WINDOWSTART || field.name() == WINDOWEND)
        {
            return plan_err!(
                "WINDOW over an input that already has the columns {WINDOWSTART} or {WINDOWEND}"
            );
        }
        let mut fields: Vec<(Option<TableReference>, Arc<Field>)> = input
            .schema()
            .iter()
            .map(|(qualifier, field)| (qualifier.cloned(), field.clone()))
            .collect();
        for name in [WINDOWSTART, WINDOWEND] {
            let field = Field::new(
                name,
                DataType::Timestamp(TimeUnit::Millisecond, None),
                false,
            );
            fields.push((qualifier.clone(), Arc::new(field)));
        }
        let schema = Arc::new(DFSchema::new_with_metadata(fields, HashMap::new())?);
        Ok(Self {
            spec,
            input,
            qualifier,
            schema,
        })
    }
}

impl PartialOrd for AssignWindows {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        // Plans are compared only to tell equal ones; windows have no order.
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for AssignWindows {
    fn name(&self) -> &str {
        "AssignWindows"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        [WINDOWSTART.to_owned(), WINDOWEND.to_owned()].into()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "AssignWindows: {}", self.spec)
    }

    fn with_exprs_and_inputs(
        &self,
        _exprs: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Self> {
        match (inputs.pop(), inputs.is_empty()) {
            (Some(input), true) => Self::with_qualifier(self.spec, input, self.qualifier.clone()),
            _ => plan_err!("AssignWindows has one input"),
        }
    }

    fn necessary_children_exprs(&self, output_columns: &[usize]) -> Option<Vec<Vec<usize>>> {
        let width = self.input.schema().fields().len();
        Some(vec![
            output_columns
                .iter()
                .copied()
                .filter(|column| *column < width)
                .collect(),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const DAY: Duration = Duration::from_secs(86_400);

    fn message(kind: WindowKind) -> String {
        let window = Window {
            kind,
            retention: None,
            grace: None,
        };
        window_spec(&window, None)
            .expect_err("the window is refused")
            .to_string()
    }

    #[test]
    fn default_grace_is_what_is_left_of_a_day() {
        let grace = |size| {
            let kind = WindowKind::Tumbling { size };
            let window = Window {
                kind,
                retention: None,
                grace: None,
            };
            window_spec(&window, None).expect("valid").grace
        };
        assert_eq!(grace(SECOND * 3600), DAY - SECOND * 3600);
        assert_eq!(grace(DAY * 3), Duration::ZERO);
    }

    #[test]
    fn lengths_are_checked() {
        let size = Duration::from_micros(1500);
        assert_eq!(
            message(WindowKind::Tumbling { size }),
            "SIZE must be a whole number of milliseconds above 0"
        );
        let advance = Duration::ZERO;
        assert_eq!(
            message(WindowKind::Hopping {
                size: SECOND,
                advance
            }),
            "ADVANCE BY must be a whole number of milliseconds above 0"
        );
        let advance = SECOND * 2;
        assert_eq!(
            message(WindowKind::Hopping {
                size: SECOND,
                advance
            }),
            "ADVANCE BY is longer than SIZE, so some rows would be in no window"
        );
        let advance = SECOND;
        assert_eq!(
            message(WindowKind::Hopping { size: DAY, advance }),
            "each row would be in more than 10000 windows"
        );
    }
}
