//! Nodes of a dataflow plan.

use std::{fmt, sync::Arc, time::Duration};

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::physical_expr::PhysicalExpr;

use crate::catalog::{FormatName, Relation, SourceKind};

/// Position of a node in its plan. State tables are named by (query, node), so a plan for the same statement must number its nodes alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// The dataflow of one query: nodes in topological order, the last one is the result.
#[derive(Debug, Clone)]
pub struct DataflowPlan {
    /// Inputs stand before their readers.
    pub nodes: Vec<Node>,
    /// Whether the result is a stream of facts or a table that changes.
    pub kind: SourceKind,
    /// Positions of the key columns in the result's schema: what identifies a row of a table, what the record key of a stream holds.
    pub key: Vec<usize>,
    /// The number of slots of the result.
    pub slots: u32,
    /// Set when the result is a windowed table.
    pub window: Option<WindowSpec>,
}

impl DataflowPlan {
    /// The node that makes the result.
    pub fn root(&self) -> &Node {
        self.nodes.last().expect("a plan has at least its source")
    }

    /// The relations that the plan reads.
    pub fn sources(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.nodes.iter().filter_map(|node| match &node.operator {
            Operator::Source { relation, .. } => Some(relation),
            _ => None,
        })
    }
}

/// One operator with its place in the graph.
#[derive(Debug, Clone)]
pub struct Node {
    /// Position in the plan.
    pub id: NodeId,
    /// The nodes whose deltas it takes, by position.
    pub inputs: Vec<NodeId>,
    /// What it does.
    pub operator: Operator,
    /// Columns of its output, without the hidden event time.
    pub schema: SchemaRef,
    /// How many slots its output is spread over.
    pub slots: u32,
    /// False when its output only ever inserts.
    pub changing: bool,
}

/// What a node does.
#[derive(Debug, Clone)]
pub enum Operator {
    /// Reads a relation: its topic, or in memory what another query of the pipeline writes to it. The output has the columns at `projection`
    /// of the relation's declared columns followed by the pseudo columns `rowtime`, `rowpartition`, `rowoffset`
    /// (positions `columns.len()`, `+ 1`, `+ 2`).
    Source {
        /// What is read.
        relation: Arc<Relation>,
        /// Which columns, by position as above.
        projection: Vec<usize>,
        /// Records of a stream without a value are marked as such, which ksqlDB's queries pass on; else they are rows of NULLs.
        marks: bool,
    },
    /// Keeps rows for which the predicate is TRUE.
    Filter {
        /// Boolean expression over the input.
        predicate: Arc<dyn PhysicalExpr>,
    },
    /// Computes columns.
    Project {
        /// One expression per output column.
        expressions: Vec<Arc<dyn PhysicalExpr>>,
    },
    /// Copies each row into the windows that its event time falls into, adding `windowstart` and `windowend` as the last two columns, and
    /// drops the rows whose window has closed for good. It stands behind the exchange, since stream time is kept per slot.
    AssignWindows {
        /// Shape and grace.
        window: WindowSpec,
    },
    /// Moves each row to slot `murmur2(key) % slots` of its encoded key: where the record key of a topic with as many partitions would put it.
    Exchange {
        /// Key columns of the input, in the order that they are encoded.
        keys: Vec<usize>,
        /// The names that the encoded key has for them.
        names: Vec<String>,
        /// How the key is encoded.
        format: FormatName,
        /// Number of slots behind it.
        slots: u32,
    },
    /// Groups and folds. Output: the group columns in order, then one column per call. Changes replace: -1 old, +1 new.
    Aggregate {
        /// Group columns of the input; with windows the last two are `windowstart` and `windowend`. Empty for one global group.
        group: Vec<usize>,
        /// What is folded.
        calls: Vec<AggregateCall>,
        /// Set when groups are windows: state is dropped when the window closes.
        window: Option<WindowSpec>,
        /// EMIT FINAL: a window's row is given once, when it closes.
        finals_only: bool,
        /// A group whose rows have all been taken back keeps its row, as ksqlDB's do.
        keeps_empty: bool,
    },
    /// Groups by session windows and folds. Output: the group columns in order, `windowstart` and `windowend`, then one column per call.
    SessionAggregate {
        /// Group columns of the input.
        group: Vec<usize>,
        /// What is folded.
        calls: Vec<AggregateCall>,
        /// Its shape is a session.
        window: WindowSpec,
        /// EMIT FINAL: a session's row is given once, when it closes.
        finals_only: bool,
    },
    /// Joins two inputs on equal columns. Output: the left columns, then the right ones; NULL where an outer join has no partner. It stands
    /// behind exchanges that bring equal keys into one slot.
    Join {
        /// Which rows without a partner stay.
        kind: JoinKind,
        /// Join columns of the left input.
        left: Vec<usize>,
        /// Join columns of the right input, in the same order and of the same types.
        right: Vec<usize>,
        /// Output columns that tell rows of one join key apart; changes of one such row are sent together.
        order: Vec<usize>,
    },
    /// Appends two or more inputs of equal schema.
    Union,
    /// Gives rows the event time that a column tells.
    Retime {
        /// BIGINT, TIMESTAMP, or a text in the format.
        column: usize,
        /// Java date pattern of a text.
        format: Option<String>,
    },
    /// Makes a row of each element of one or more lists, taken in step; a list that is shorter than the longest of its row ends with NULLs, and a
    /// row whose lists are all empty or NULL makes none.
    Unnest {
        /// Where each output column comes from.
        columns: Vec<UnnestColumn>,
    },
}

/// A column of an [`Operator::Unnest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnnestColumn {
    /// An input column as it stands, once for each row that is made.
    Repeated(usize),
    /// The elements of an input column.
    Elements(usize),
}

/// Kinds of joins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JoinKind {
    /// Only pairs.
    Inner,
    /// Left rows without a partner stay.
    Left,
    /// Right rows without a partner stay.
    Right,
    /// Both.
    Full,
}

impl fmt::Display for JoinKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inner => "inner",
            Self::Left => "left",
            Self::Right => "right",
            Self::Full => "full",
        })
    }
}

/// One aggregate of an [`Operator::Aggregate`].
#[derive(Debug, Clone)]
pub struct AggregateCall {
    /// Which function.
    pub function: AggregateFunction,
    /// Argument column of the input; `None` for COUNT(*).
    pub argument: Option<usize>,
    /// FILTER (WHERE ..) as a Boolean column of the input.
    pub filter: Option<usize>,
    /// DISTINCT was given.
    pub distinct: bool,
    /// Result type.
    pub output_type: DataType,
    /// Column name of the result.
    pub name: String,
}

/// The aggregates that have an incremental form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateFunction {
    /// COUNT(*), COUNT(x).
    Count,
    /// SUM.
    Sum,
    /// AVG.
    Avg,
    /// MIN.
    Min,
    /// MAX.
    Max,
    /// SUM as ksqlDB has it: of the argument's type, and zero over nothing.
    SumOrZero,
    /// AVG as ksqlDB has it: DOUBLE, and zero over nothing.
    AvgOrZero,
    /// SUM_LIST: the sum of all elements of all lists.
    SumList,
    /// COLLECT_LIST: the first so many values, NULLs too.
    CollectList {
        /// Most values.
        limit: usize,
    },
    /// COLLECT_SET: the first so many different values.
    CollectSet {
        /// Most values.
        limit: usize,
    },
    /// EARLIEST_BY_OFFSET.
    Earliest {
        /// A list of so many; `None` for the one value.
        count: Option<usize>,
        /// NULL is no value.
        ignore_nulls: bool,
    },
    /// LATEST_BY_OFFSET.
    Latest {
        /// A list of so many; `None` for the one value.
        count: Option<usize>,
        /// NULL is no value.
        ignore_nulls: bool,
    },
    /// TOPK.
    TopK {
        /// Most values.
        count: usize,
    },
    /// TOPKDISTINCT.
    TopKDistinct {
        /// Most values.
        count: usize,
    },
    /// HISTOGRAM: how often each text occurs.
    Histogram,
    /// ATTR: the value, if there is only one.
    Attr,
    /// The variance of a sample.
    Variance,
    /// The standard deviation of a sample.
    StandardDeviation,
    /// CORRELATION of pairs.
    Correlation,
}

impl fmt::Display for AggregateFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Count => "count",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::Min => "min",
            Self::Max => "max",
            Self::SumOrZero => "sum",
            Self::AvgOrZero => "avg",
            Self::SumList => "sum_list",
            Self::CollectList { .. } => "collect_list",
            Self::CollectSet { .. } => "collect_set",
            Self::Earliest { .. } => "earliest_by_offset",
            Self::Latest { .. } => "latest_by_offset",
            Self::TopK { .. } => "topk",
            Self::TopKDistinct { .. } => "topkdistinct",
            Self::Histogram => "histogram",
            Self::Attr => "attr",
            Self::Variance => "variance",
            Self::StandardDeviation => "stddev",
            Self::Correlation => "correlation",
        })
    }
}

/// A window with its lifetimes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WindowSpec {
    /// Shape.
    pub shape: WindowShape,
    /// A window takes records until stream time passes its end by this much.
    pub grace: Duration,
    /// How long after its start (a session: after its end) a window's row stays in the table; `None` keeps it for ever.
    pub retention: Option<Duration>,
}

/// The shape of windows. Those by time are aligned to the epoch in UTC, and both their bounds are known from the event time alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WindowShape {
    /// Back to back.
    Tumbling {
        /// Length.
        size: Duration,
    },
    /// Overlapping.
    Hopping {
        /// Length.
        size: Duration,
        /// Distance between starts.
        advance: Duration,
    },
    /// From a key's first row to its last one, as long as none is further from the next than the gap.
    Session {
        /// Longest time between two rows of a session.
        gap: Duration,
    },
}

impl WindowShape {
    /// Length of windows by time; sessions have none of their own.
    pub fn size(&self) -> Option<Duration> {
        match self {
            Self::Tumbling { size } | Self::Hopping { size, .. } => Some(*size),
            Self::Session { .. } => None,
        }
    }
}

/// Where a persistent query's result goes.
#[derive(Debug, Clone)]
pub struct Sink {
    /// The stream or table that the query writes; its columns are the result's schema in order.
    pub relation: Arc<Relation>,
}
