//! What is written parses to what it was written from; what is garbage is refused without harm.

use std::time::Duration;

use highwater_sql::{
    ColumnDef, ColumnRole, Copy, CopyDirection, CopyFormat, CopyOptions, CopyTarget, CreateAs,
    CreateSource, Drop, Emit, Explain, ExplainTarget, Insert, InsertSource, Print, Properties,
    PropertyValue, Query, QueryTarget, SavepointAction, Show, SourceKind, SqlType, Statement,
    Window, WindowKind, parse_script, parse_statement, sqlparser,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use sqlparser::ast::Expr;

/// Names: plain, quoted, and words that mean something to the grammar.
fn name() -> BoxedStrategy<String> {
    let words = [
        "a",
        "flights",
        "emit",
        "window",
        "changes",
        "final",
        "tumbling",
        "partition",
        "stream",
        "table",
        "key",
        "all",
        "select",
        "from",
        "with",
        "values",
        "extended",
        "query",
        "cursor",
        "next",
        "forward",
        "topics",
        "timeout",
        "delete",
        "topic",
        "if",
        "analyze",
        "Mixed Case",
        "ünïcode",
        "1digit",
        "dot.ted",
        "quo\"te",
        "semi;colon",
        "line\nbreak",
        "--",
        "/*",
        "$tag$",
        "user",
        "end",
        "prepare",
    ];
    prop_oneof![3 => select(words.map(str::to_string).to_vec()), 1 => "[a-zA-Z_][a-zA-Z0-9_]{0,8}"]
        .boxed()
}

/// Texts for literals, rich in what literals escape.
fn text() -> BoxedStrategy<String> {
    vec(
        select(vec![
            "'", "\"", "\\", "''", "a", "ö", ";", "--", "$$", "\n", "\t", " ", "%", "/*", "",
        ]),
        0..6,
    )
    .prop_map(|parts| parts.concat())
    .boxed()
}

/// Lower-case names of variables and properties.
fn property_name() -> BoxedStrategy<String> {
    prop_oneof![
        "[a-z_][a-z0-9_]{0,8}",
        "[a-z]{1,4}\\.[a-z]{1,4}(\\.[a-z]{1,4})?",
        Just("select".to_string()),
        Just("it's".to_string())
    ]
    .boxed()
}

fn duration(low: u64) -> impl Strategy<Value = Duration> {
    prop_oneof![
        low..100_000,
        (low.max(1)..100).prop_map(|n| n * 1000),
        (low.max(1)..100).prop_map(|n| n * 3_600_000)
    ]
    .prop_map(Duration::from_millis)
}

fn sql_type() -> BoxedStrategy<SqlType> {
    let simple = vec![
        SqlType::Boolean,
        SqlType::SmallInt,
        SqlType::Int,
        SqlType::BigInt,
        SqlType::Real,
        SqlType::Double,
        SqlType::String,
        SqlType::Bytes,
        SqlType::Time,
        SqlType::Date,
        SqlType::Timestamp,
        SqlType::TimestampTz,
    ];
    let decimal = (1_u8..=76)
        .prop_flat_map(|precision| (Just(precision), 0..=i8::try_from(precision).unwrap()));
    let leaf = prop_oneof![
        select(simple),
        decimal.prop_map(|(precision, scale)| SqlType::Decimal(precision, scale))
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|element| SqlType::Array(Box::new(element))),
            (inner.clone(), inner.clone())
                .prop_map(|(key, value)| SqlType::Map(Box::new(key), Box::new(value))),
            vec((name(), inner), 1..4)
                .prop_map(|fields| SqlType::Struct(
                    without_repeats(fields, |(name, _)| name.clone())
                )),
        ]
    })
    .boxed()
}

/// The items whose key did not come before.
fn without_repeats<T>(items: Vec<T>, key: impl Fn(&T) -> String) -> Vec<T> {
    let mut seen = std::collections::HashSet::new();
    items
        .into_iter()
        .filter(|item| seen.insert(key(item)))
        .collect()
}

fn properties() -> impl Strategy<Value = Properties> {
    let value = prop_oneof![
        text().prop_map(PropertyValue::String),
        "-?[0-9]{1,9}(\\.[0-9]{1,3})?".prop_map(PropertyValue::Number),
        any::<bool>().prop_map(PropertyValue::Boolean),
    ];
    vec((property_name(), value), 0..4)
        .prop_map(|items| Properties(without_repeats(items, |(name, _)| name.clone())))
}

/// Expressions, as text: the standard tree has far more forms than can be built by hand.
fn expression() -> BoxedStrategy<String> {
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
                    "[1]"
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
            inner
                .clone()
                .prop_map(|operand| format!("CAST({operand} AS VARCHAR)")),
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

/// A parsed query made of random clauses.
fn query() -> BoxedStrategy<Query> {
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
                let partition_by = partition_by
                    .iter()
                    .map(|text| parsed_expression(text))
                    .collect();
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

fn window() -> BoxedStrategy<Option<Window>> {
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

fn emit() -> impl Strategy<Value = Option<Emit>> {
    option::of(select(vec![Emit::Changes, Emit::Final]))
}

fn parsed(text: &str) -> Statement {
    parse_statement(text)
        .unwrap_or_else(|error| panic!("{text}\n{error} at {}", error.position(text)))
        .statement
}

fn parsed_expression(text: &str) -> Expr {
    match parsed(&format!("INSERT INTO t VALUES ({text})")) {
        Statement::Insert(Insert {
            source: InsertSource::Values(mut rows),
            ..
        }) => rows.remove(0).remove(0),
        other => panic!("not a row: {other:?}"),
    }
}

fn kind() -> impl Strategy<Value = SourceKind> {
    select(vec![SourceKind::Stream, SourceKind::Table])
}

fn create_source() -> BoxedStrategy<Statement> {
    let role = select(vec![
        ColumnRole::Value,
        ColumnRole::Key,
        ColumnRole::PrimaryKey,
    ]);
    let column = (name(), sql_type(), role).prop_map(|(name, data_type, role)| ColumnDef {
        name,
        data_type,
        role,
    });
    (
        kind(),
        any::<bool>(),
        any::<bool>(),
        name(),
        vec(column, 1..4),
        properties(),
    )
        .prop_map(|(kind, or_replace, if_not_exists, name, columns, with)| {
            let columns = without_repeats(columns, |column| column.name.clone());
            Statement::CreateSource(CreateSource {
                kind,
                or_replace,
                if_not_exists,
                name,
                columns,
                with,
            })
        })
        .boxed()
}

fn create_as() -> BoxedStrategy<Statement> {
    (
        kind(),
        any::<bool>(),
        any::<bool>(),
        name(),
        properties(),
        query(),
    )
        .prop_map(|(kind, or_replace, if_not_exists, name, with, query)| {
            Statement::CreateAs(CreateAs {
                kind,
                or_replace,
                if_not_exists,
                name,
                with,
                query,
            })
        })
        .boxed()
}

fn insert() -> BoxedStrategy<Statement> {
    let values = vec(
        vec(expression().prop_map(|text| parsed_expression(&text)), 1..3),
        1..3,
    )
    .prop_map(InsertSource::Values);
    let source = prop_oneof![values, query().prop_map(InsertSource::Query)];
    (name(), vec(name(), 0..3), source)
        .prop_map(|(name, columns, source)| {
            let columns = without_repeats(columns, Clone::clone);
            Statement::Insert(Insert {
                name,
                columns,
                source,
            })
        })
        .boxed()
}

fn copy() -> BoxedStrategy<Statement> {
    let target = prop_oneof![
        (name(), vec(name(), 0..3))
            .prop_map(|(name, columns)| CopyTarget::Relation { name, columns }),
        query().prop_map(CopyTarget::Query),
    ];
    let null = select(vec!["", "\\N", "NULL", "it's"]).prop_map(str::to_string);
    (
        target,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        select(vec![b'\t', b'|', b'#', b'~']),
        null,
        select(vec![b'"', b'\'', b'`']),
        select(vec![b'"', b'\\']),
    )
        .prop_map(
            |(target, from, csv, header, delimiter, null, quote, escape)| {
                let from = from && matches!(target, CopyTarget::Relation { .. });
                let direction = if from {
                    CopyDirection::FromStdin
                } else {
                    CopyDirection::ToStdout
                };
                let (format, quote, escape) = if csv {
                    (CopyFormat::Csv, quote, escape)
                } else {
                    (CopyFormat::Text, b'"', b'"')
                };
                Statement::Copy(Copy {
                    target,
                    direction,
                    options: CopyOptions {
                        format,
                        header,
                        delimiter,
                        null,
                        quote,
                        escape,
                    },
                })
            },
        )
        .boxed()
}

fn query_target() -> impl Strategy<Value = QueryTarget> {
    prop_oneof![name().prop_map(QueryTarget::Id), Just(QueryTarget::All)]
}

fn explain() -> BoxedStrategy<Statement> {
    let statement = prop_oneof![
        create_source(),
        create_as(),
        insert(),
        query().prop_map(Statement::Query)
    ];
    let target = prop_oneof![
        statement.prop_map(|s| ExplainTarget::Statement(Box::new(s))),
        name().prop_map(ExplainTarget::Query)
    ];
    (any::<bool>(), target)
        .prop_map(|(analyze, target)| Statement::Explain(Explain { analyze, target }))
        .boxed()
}

fn small_statement() -> BoxedStrategy<Statement> {
    let show = prop_oneof![
        select(vec![
            Show::Streams,
            Show::Tables,
            Show::Topics { all: true },
            Show::Topics { all: false },
            Show::Queries,
            Show::All
        ]),
        property_name().prop_map(Show::Variable),
    ];
    let savepoint = prop_oneof![
        name().prop_map(SavepointAction::Set),
        name().prop_map(SavepointAction::Release),
        name().prop_map(SavepointAction::RollbackTo)
    ];
    prop_oneof![
        (kind(), any::<bool>(), name(), any::<bool>()).prop_map(
            |(kind, if_exists, name, delete_topic)| Statement::Drop(Drop {
                kind,
                if_exists,
                name,
                delete_topic
            })
        ),
        query_target().prop_map(Statement::Terminate),
        query_target().prop_map(Statement::Pause),
        query_target().prop_map(Statement::Resume),
        show.prop_map(Statement::Show),
        (name(), any::<bool>()).prop_map(|(name, extended)| Statement::Describe { name, extended }),
        (
            name(),
            any::<bool>(),
            option::of(1..9_u64),
            option::of(1..9_u64)
        )
            .prop_map(
                |(topic, from_beginning, interval, limit)| Statement::Print(Print {
                    topic,
                    from_beginning,
                    interval,
                    limit
                })
            ),
        (property_name(), option::of(text()))
            .prop_map(|(name, value)| Statement::Set { name, value }),
        option::of(property_name()).prop_map(Statement::Unset),
        (option::of(any::<u64>()), name(), option::of(duration(0))).prop_map(
            |(count, name, timeout)| Statement::Fetch {
                count,
                name,
                timeout
            }
        ),
        option::of(name()).prop_map(Statement::Close),
        any::<bool>().prop_map(|read_only| Statement::Begin { read_only }),
        savepoint.prop_map(Statement::Savepoint),
        option::of(name()).prop_map(Statement::Deallocate),
        option::of(name()).prop_map(Statement::Unlisten),
        select(vec![
            Statement::Commit,
            Statement::Rollback,
            Statement::Discard,
            Statement::Empty
        ]),
    ]
    .boxed()
}

fn statement() -> BoxedStrategy<Statement> {
    let declare = (name(), any::<bool>(), query())
        .prop_map(|(name, hold, query)| Statement::Declare { name, hold, query });
    prop_oneof![
        create_source(),
        create_as(),
        insert(),
        copy(),
        explain(),
        query().prop_map(Statement::Query),
        declare,
        small_statement(),
    ]
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(debug_assertions) { 300 } else { 3000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn written_statements_parse_to_themselves(statement in statement()) {
        let text = statement.to_string();
        let again = parse_statement(&text);
        prop_assert!(again.is_ok(), "{}\n{}", text, again.unwrap_err());
        let again = again.unwrap().statement;
        prop_assert_eq!(&again, &statement, "{}", text);
        prop_assert_eq!(again.to_string(), text);
    }

    #[test]
    fn statements_in_a_script_stay_apart(statements in vec(small_statement(), 1..5)) {
        let script: Vec<String> = statements.iter().map(ToString::to_string).collect();
        let again: Vec<Statement> = parse_script(&script.join(" ;\n")).unwrap().into_iter().map(|parsed| parsed.statement).collect();
        let expected: Vec<Statement> = statements.into_iter().filter(|statement| *statement != Statement::Empty).collect();
        prop_assert_eq!(again, if expected.is_empty() { vec![Statement::Empty] } else { expected });
    }

    /// Pieces of SQL in any order: no panic, a place within the text, and what parses can be written.
    #[test]
    fn garbage_is_refused_without_harm(pieces in vec(select(PIECES.to_vec()), 0..24), glue in select(vec![" ", "", "\n"])) {
        let text = pieces.join(glue);
        match parse_script(&text) {
            Ok(statements) => {
                for parsed in statements {
                    prop_assert_eq!(&text[parsed.span.range()], parsed.text.as_str());
                    prop_assert!(parse_statement(&parsed.text).is_ok());
                }
            }
            Err(error) => {
                prop_assert!(text.get(error.span().range()).is_some(), "{}: {:?}", text, error);
                prop_assert!(error.position(&text) <= text.chars().count() + 1);
            }
        }
    }
}

/// What garbage is made of.
const PIECES: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "EMIT",
    "CHANGES",
    "WINDOW",
    "TUMBLING",
    "(SIZE 1 HOUR)",
    "PARTITION BY",
    "CREATE",
    "STREAM",
    "TABLE",
    "AS",
    "WITH",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ".",
    "->",
    "::",
    ":=",
    "=>",
    "=",
    "<",
    ">",
    ">>>",
    "*",
    "+",
    "-",
    "--",
    "/*",
    "*/",
    "'",
    "''",
    "\"",
    "`",
    "$$",
    "$a$",
    "$1",
    "E'",
    "U&'",
    "X'",
    "\\",
    "1",
    "1.5",
    "1e",
    "a",
    "ö",
    "s",
    "INSERT INTO",
    "VALUES",
    "COPY",
    "STDIN",
    "SET",
    "SHOW",
    "BEGIN",
    "FETCH",
    "DECLARE",
    "CURSOR FOR",
    "CASE",
    "WHEN",
    "END",
    "CAST(",
    "ARRAY<",
    "STRUCT(",
    "MAP(",
    "INTERVAL",
    "NOT",
    "IN",
    "JOIN",
    "ON",
    "UNION",
    "\u{202E}",
    "\u{FEFF}",
    "\u{A0}",
    "\0",
    "LIMIT",
    "FINAL",
    "EXPLAIN",
    "OVER",
    "FILTER",
    "AT TIME ZONE",
    "TO",
    "PRINT",
];
