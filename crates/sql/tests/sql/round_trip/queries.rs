//! Expressions and queries.

use highwater_sql::{
    Changes, ChangesStart, Emit, Insert, InsertSource, Query, Statement, Window, WindowKind,
    parse_statement, sqlparser::ast::Expr,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::names::{duration, name, text};

/// Expressions, as text: the standard tree has far more forms than can be built by hand.
pub fn expression() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        name().prop_map(|name| format!("\"{}\"", name.replace('"', "\"\""))),
        text().prop_map(|text| format!("'{}'", text.replace('\'', "''"))),
        text().prop_map(|text| format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))),
        select(vec![
            "1",
            "1.5e3",
            "a.b",
            "NULL",
            "TRUE",
            "$1",
            "emit",
            "window",
            "INTERVAL '1 day'",
            "DATE '2013-01-01'",
            "DECIMAL '1.5'",
            "now()"
        ])
        .prop_map(str::to_string),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let binary = select(vec![
            "+",
            "-",
            "*",
            "/",
            "||",
            "=",
            "<>",
            "AND",
            "OR",
            "LIKE",
            "IS DISTINCT FROM",
            "<=",
            "%",
            "~",
        ]);
        prop_oneof![
            (inner.clone(), binary, inner.clone())
                .prop_map(|(left, op, right)| format!("{left} {op} {right}")),
            (
                select(vec!["-", "+ ", "~ ", "NOT ", "- ~ ", "- - ", "@ "]),
                inner.clone()
            )
                .prop_map(|(op, operand)| format!("{op} {operand}")),
            inner.clone().prop_map(|operand| format!("({operand})")),
            (
                inner.clone(),
                select(vec![
                    "::int",
                    "::numeric(10,2)",
                    " IS NULL",
                    " IS NOT TRUE",
                    " AT TIME ZONE 'UTC'",
                    "[1]",
                    "->f",
                    "->f[1]->g",
                    "->*",
                ])
            )
                .prop_map(|(operand, suffix)| format!("({operand}){suffix}")),
            (inner.clone(), inner.clone())
                .prop_map(|(low, high)| format!("a BETWEEN ({low}) AND ({high})")),
            vec(inner.clone(), 1..4).prop_map(|items| format!("a IN ({})", items.join(", "))),
            vec(inner.clone(), 0..4).prop_map(|arguments| format!("f({})", arguments.join(", "))),
            vec(inner.clone(), 1..4).prop_map(|items| format!("ARRAY[{}]", items.join(", "))),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("STRUCT(f := {a}, \"G\" := {b})")),
            (inner.clone(), inner.clone())
                .prop_map(|(a, b)| format!("MAP('k' := {a}, 'l' := {b})")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| format!("CASE WHEN {a} THEN {b} ELSE {c} END")),
            (inner.clone(), select(CAST_TYPES.to_vec()))
                .prop_map(|(operand, data_type)| format!("CAST({operand} AS {data_type})")),
            inner
                .clone()
                .prop_map(|body| format!("transform(a, x => {body})")),
            inner
                .clone()
                .prop_map(|body| format!("reduce(a, 0, (x, \"Y\") => {body})")),
            inner
                .clone()
                .prop_map(|pattern| format!("a LIKE ({pattern}) ESCAPE '!'")),
            inner
                .clone()
                .prop_map(|operand| format!("trim(both 'x' from {operand})")),
            inner
                .clone()
                .prop_map(|operand| format!("a->b->\"C\" = ({operand})")),
            inner
                .clone()
                .prop_map(|operand| format!("count(*) FILTER (WHERE {operand})")),
            inner.prop_map(|operand| format!("sum(a) OVER (PARTITION BY {operand} ORDER BY b)")),
        ]
    })
    .boxed()
}

/// Types in casts, in both dialects' spellings.
const CAST_TYPES: &[&str] = &[
    "VARCHAR",
    "BYTES",
    "DECIMAL(4, 2)",
    "INT ARRAY",
    "ARRAY<ARRAY<INT>>",
    "MAP<STRING, ARRAY<INT>>",
    "MAP<STRING, MAP<STRING, INT>> ARRAY",
    "STRUCT<a INT, \"B\" MAP<STRING, DATE>>",
    "address",
];

/// A parsed query made of random clauses.
pub fn query() -> BoxedStrategy<Query> {
    let optional = |keyword: &'static str| {
        option::of(expression())
            .prop_map(move |e| e.map_or(String::new(), |e| format!(" {keyword} {e}")))
    };
    let from = select(vec![
        " FROM s",
        " FROM s AS emit",
        " FROM a LEFT JOIN b ON a.x = b.x",
        " FROM (SELECT 1 AS x) AS t",
        " FROM window",
        " FROM a JOIN b WITHIN 1 HOUR ON a.x = b.x",
        " FROM a LEFT JOIN b WITHIN (2 MINUTES, 0 SECONDS) GRACE PERIOD 1 DAY ON a.x = b.x JOIN c ON a.x = c.x",
        " FROM a JOIN b ON a.x = b.x FULL JOIN c WITHIN 5 SECONDS ON b.x = c.x",
    ]);
    (
        vec(expression(), 1..3),
        from,
        optional("WHERE"),
        optional("GROUP BY"),
        optional("HAVING"),
        optional("ORDER BY"),
        option::of(0..9_u8),
        window(),
        vec(expression(), 0..3),
        emit(),
    )
        .prop_map(
            |(items, from, filter, group, having, order, limit, window, partition_by, emit)| {
                let limit = limit.map_or(String::new(), |limit| format!(" LIMIT {limit}"));
                let text = format!(
                    "SELECT {}{from}{filter}{group}{having}{order}{limit}",
                    items.join(", ")
                );
                let Statement::Query(query) = parsed(&text) else {
                    panic!("not a query: {text}");
                };
                let partition_by = parsed_partition_by(&partition_by);
                Query {
                    window,
                    partition_by,
                    emit,
                    ..query
                }
            },
        )
        .boxed()
}

pub fn window() -> BoxedStrategy<Option<Window>> {
    let kind = prop_oneof![
        duration(1).prop_map(|size| WindowKind::Tumbling { size }),
        (duration(1), 1..5_u32).prop_map(|(advance, times)| WindowKind::Hopping {
            size: advance * times,
            advance
        }),
        duration(1).prop_map(|gap| WindowKind::Session { gap }),
    ];
    option::of(
        (kind, option::of(duration(1)), option::of(duration(0))).prop_map(
            |(kind, retention, grace)| Window {
                kind,
                retention,
                grace,
            },
        ),
    )
    .boxed()
}

pub fn emit() -> impl Strategy<Value = Option<Emit>> {
    let start = prop_oneof![
        Just(ChangesStart::Setting),
        Just(ChangesStart::Snapshot),
        (0..=i64::MAX as u64).prop_map(ChangesStart::After),
    ];
    let changes = (start, any::<bool>())
        .prop_map(|(start, with_step)| Emit::Changes(Changes { start, with_step }));
    option::of(prop_oneof![changes, Just(Emit::Final)])
}

pub fn parsed(text: &str) -> Statement {
    parse_statement(text)
        .unwrap_or_else(|error| panic!("{text}\n{error} at {}", error.position(text)))
        .statement
}

fn parsed_partition_by(list: &[String]) -> Vec<Expr> {
    if list.is_empty() {
        return Vec::new();
    }
    match parsed(&format!("SELECT * FROM s PARTITION BY {}", list.join(", "))) {
        Statement::Query(query) => query.partition_by,
        other => panic!("not a query: {other:?}"),
    }
}

pub fn parsed_expression(text: &str) -> Expr {
    match parsed(&format!("INSERT INTO t VALUES ({text})")) {
        Statement::Insert(Insert {
            source: InsertSource::Values(mut rows),
            ..
        }) => rows.remove(0).remove(0),
        other => panic!("not a row: {other:?}"),
    }
}
