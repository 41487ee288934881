//! Queries: the standard tree, with the streaming clauses that standard SQL lacks.

use std::time::Duration;

use sqlparser::ast as std_ast;

/// A query with the streaming clauses that standard SQL lacks. They belong to the outermost SELECT.
///
/// What ksqlDB has beyond the standard stands in the standard tree like this: `s->f` is a binary operation with the operator `->`, and
/// `s->*` one with a wildcard on its right; `x => e` is a lambda; `STRUCT(f := e)` is a struct of named expressions; `MAP(k := v)` a map.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// The standard part, with the streaming clauses taken out.
    pub body: Box<std_ast::Query>,
    /// `WITHIN ..` of the joins that have it, in the order of the joins.
    pub within: Vec<Within>,
    /// `WINDOW ..`.
    pub window: Option<Window>,
    /// `PARTITION BY ..`; `PARTITION BY NULL` is the one expression NULL.
    pub partition_by: Vec<std_ast::Expr>,
    /// `EMIT ..`.
    pub emit: Option<Emit>,
}

/// What a push or persistent query sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emit {
    /// `EMIT CHANGES ..`: every change.
    Changes(Changes),
    /// `EMIT FINAL`: a window's result once, when it closes.
    Final,
}

/// How the changes are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Changes {
    /// With which of them it begins.
    pub start: ChangesStart,
    /// `WITH STEP`: each row says which step it belongs to.
    pub with_step: bool,
}

/// With which change a push query begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChangesStart {
    /// Where the session's settings say; the next one unless they do.
    #[default]
    Setting,
    /// `WITH SNAPSHOT`: what is there first.
    Snapshot,
    /// `AFTER STEP n`: the first one behind this step.
    After(u64),
}

/// `WITHIN ..` of a join of two streams: how far apart in event time two records may be to meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Within {
    /// Which of the joins in FROM, counted from 0.
    pub join: usize,
    /// How much older the right record may be than the left one.
    pub before: Duration,
    /// How much younger the right record may be than the left one.
    pub after: Duration,
    /// `GRACE PERIOD n unit`.
    pub grace: Option<Duration>,
}

/// A window clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its shape.
    pub kind: WindowKind,
    /// `RETENTION n unit`.
    pub retention: Option<Duration>,
    /// `GRACE PERIOD n unit`.
    pub grace: Option<Duration>,
}

/// A window's shape. Windows are aligned to the epoch, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowKind {
    /// `TUMBLING (SIZE n unit)`.
    Tumbling {
        /// Length.
        size: Duration,
    },
    /// `HOPPING (SIZE n unit, ADVANCE BY n unit)`.
    Hopping {
        /// Length.
        size: Duration,
        /// Distance between starts.
        advance: Duration,
    },
    /// `SESSION (n unit)`.
    Session {
        /// A session ends after this long without a record.
        gap: Duration,
    },
}
