//! ksqlDB's language: its dialect, and what it has beyond PostgreSQL in either dialect.

use highwater_sql::sqlparser::ast::{
    BinaryOperator, Expr, OneOrManyWithParens, SelectItem, SetExpr,
};
use highwater_sql::{
    Dialect, IdentifierCase, Language, Query, Statement, Within, parse_script_in, parse_statement,
    parse_statement_in,
};

/// Parses `text` in both languages and compares its canonical text, which must mean the same again.
fn assert_canonical(text: &str, postgres: &str, ksql: &str) {
    for (language, canonical) in [(Language::POSTGRES, postgres), (Language::KSQL, ksql)] {
        let parsed = parse_statement_in(text, language)
            .unwrap_or_else(|error| panic!("{text}\n{error} at {}", error.position(text)));
        assert_eq!(parsed.canonical_text().unwrap(), canonical, "{text}");
    }
}

/// The query that `text` is in ksqlDB's dialect.
fn query(text: &str) -> Query {
    match parse_statement_in(text, Language::KSQL)
        .unwrap_or_else(|error| panic!("{text}\n{error} at {}", error.position(text)))
        .statement
    {
        Statement::Query(query) => query,
        other => panic!("{text}\nnot a query: {other:?}"),
    }
}

/// The items of a query's SELECT list.
fn items(query: &Query) -> &[SelectItem] {
    match query.body.body.as_ref() {
        SetExpr::Select(select) => &select.projection,
        other => panic!("not a SELECT: {other}"),
    }
}

/// `text` as an expression, fully in brackets.
fn tree(text: &str) -> String {
    let query = query(&format!("SELECT {text} FROM s"));
    match &items(&query)[0] {
        SelectItem::UnnamedExpr(expr) => bracketed(expr),
        other => panic!("not an expression: {other}"),
    }
}

/// Every operation in brackets, so that the shape of a tree can be read.
fn bracketed(expr: &Expr) -> String {
    match expr {
        Expr::BinaryOp { left, op, right } => {
            format!("({} {op} {})", bracketed(left), bracketed(right))
        }
        Expr::UnaryOp { op, expr } => format!("({op} {})", bracketed(expr)),
        Expr::IsNotDistinctFrom(left, right) => {
            format!("({} == {})", bracketed(left), bracketed(right))
        }
        Expr::Cast {
            expr, data_type, ..
        } => format!("cast({} as {data_type})", bracketed(expr)),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let chain: Vec<String> = access_chain.iter().map(ToString::to_string).collect();
            format!("({}){}", bracketed(root), chain.concat())
        }
        Expr::Lambda(lambda) => {
            let params: Vec<String> = match &lambda.params {
                OneOrManyWithParens::One(one) => vec![one.name.to_string()],
                OneOrManyWithParens::Many(many) => {
                    many.iter().map(|param| param.name.to_string()).collect()
                }
            };
            format!("({} => {})", params.join(" "), bracketed(&lambda.body))
        }
        Expr::Function(function) => {
            use highwater_sql::sqlparser::ast::{FunctionArg, FunctionArgExpr, FunctionArguments};
            let FunctionArguments::List(list) = &function.args else {
                return function.to_string();
            };
            let arguments: Vec<String> = list
                .args
                .iter()
                .map(|argument| match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => bracketed(expr),
                    other => other.to_string(),
                })
                .collect();
            format!("{}({})", function.name, arguments.join(", "))
        }
        other => other.to_string(),
    }
}

#[test]
fn names_fold_by_the_language() {
    let text = "SELECT Origin AS o, `Dest`, \"Carrier\".Name FROM Flights";
    for (case, expected) in [
        (
            IdentifierCase::Lower,
            "SELECT origin AS o, \"Dest\", \"Carrier\".name FROM flights",
        ),
        (
            IdentifierCase::Upper,
            "SELECT ORIGIN AS O, \"Dest\", \"Carrier\".NAME FROM FLIGHTS",
        ),
    ] {
        for dialect in [Dialect::Postgres, Dialect::Ksql] {
            let language = Language {
                dialect,
                identifier_case: case,
            };
            let parsed = parse_statement_in(text, language).unwrap();
            assert_eq!(parsed.canonical_text().unwrap(), expected);
            assert_eq!(parsed.language, language);
        }
    }
}

#[test]
fn names_of_statements_fold_like_those_of_queries() {
    assert_canonical(
        "create stream Flights (Id int key, `Tail` struct<Model string>) with (Kafka_Topic = 'Flights')",
        "CREATE STREAM flights (id INT KEY, \"Tail\" STRUCT<model STRING>) WITH (kafka_topic = 'Flights')",
        "CREATE STREAM FLIGHTS (ID INT KEY, \"Tail\" STRUCT<MODEL STRING>) WITH (kafka_topic = 'Flights')",
    );
    assert_canonical(
        "insert into public.Flights (Id) values (lower('A'))",
        "INSERT INTO flights (id) VALUES (lower('A'))",
        "INSERT INTO FLIGHTS (ID) VALUES (LOWER('A'))",
    );
    // Settings and properties are found without regard to case.
    assert_canonical(
        "SET Auto.Offset.Reset = 'Earliest'",
        "SET 'auto.offset.reset' = 'Earliest'",
        "SET 'auto.offset.reset' = 'Earliest'",
    );
}

#[test]
fn ksql_names_may_begin_with_a_digit_and_hold_an_at_sign() {
    let canonical = |text: &str| {
        parse_statement_in(text, Language::KSQL)
            .unwrap_or_else(|error| panic!("{text}\n{error}"))
            .canonical_text()
            .unwrap()
    };
    assert_eq!(
        canonical("CREATE STREAM 2013_flights (1st INT, mail@work STRING)"),
        "CREATE STREAM \"2013_FLIGHTS\" (\"1ST\" INT, \"MAIL@WORK\" STRING)"
    );
    assert_eq!(
        canonical("SELECT f.1st, mail@work, 1e3, 1.5, .5, 17 FROM 2013_flights f WHERE 1st>2"),
        "SELECT F.1ST, MAIL@WORK, 1e3, 1.5, .5, 17 FROM 2013_FLIGHTS F WHERE 1ST > 2"
    );
    assert!(parse_statement("CREATE STREAM 2013_flights (a INT)").is_err());
}

#[test]
fn words_that_only_postgres_reserves_are_names_in_ksql() {
    for word in [
        "user", "all", "any", "offset", "order", "primary", "default", "some", "fetch", "grant",
        "asc", "interval",
    ] {
        let text = format!("CREATE STREAM s ({word} INT)");
        let parsed = parse_statement_in(&text, Language::KSQL);
        assert!(parsed.is_ok(), "{text}: {:?}", parsed.err());
        assert!(parse_statement(&text).is_err(), "{text}");
    }
    for word in ["user", "session_user", "order", "struct", "array"] {
        let query = query(&format!(
            "SELECT {word}, s.{word}, {word} + 1 FROM s ORDER BY {word}"
        ));
        let SelectItem::UnnamedExpr(Expr::Identifier(name)) = &items(&query)[0] else {
            panic!("{word}: {:?}", items(&query)[0]);
        };
        assert_eq!(name.value, word.to_uppercase());
    }
}

#[test]
fn operators_bind_as_in_ksql() {
    for (text, shape) in [
        ("a + b * c % d", "(A + ((B * C) % D))"),
        ("a || b + c", "(A || (B + C))"),
        ("a + 'x' = b || c", "((A + 'x') = (B || C))"),
        ("NOT a = b AND c OR d", "(((NOT (A = B)) AND C) OR D)"),
        ("-a * b", "((- A) * B)"),
        ("a != b", "(A <> B)"),
        ("a IS NOT DISTINCT FROM b OR c", "((A == B) OR C)"),
        ("a->b->c + 1", "(((A -> B) -> C) + 1)"),
        ("a->b[1]->c", "(((A -> B))[1] -> C)"),
        ("a[1]->b[2]['k']", "(((A)[1] -> B))[2]['k']"),
        ("f(a)->b", "(F(A) -> B)"),
        ("a=-1", "(A = (- 1))"),
        ("transform(a, x => x + 1)", "TRANSFORM(A, (X => (X + 1)))"),
        (
            "reduce(m, 0, (s, k, v) => s + v)",
            "REDUCE(M, 0, (S K V => (S + V)))",
        ),
        (
            "transform(a, x => transform(x, y => y * x))",
            "TRANSFORM(A, (X => TRANSFORM(X, (Y => (Y * X)))))",
        ),
        ("(a)", "(A)"),
        (
            "CAST(a AS STRUCT<f INT>)->f",
            "(cast(A as STRUCT<F INT>) -> F)",
        ),
    ] {
        assert_eq!(tree(text), shape, "{text}");
    }
}

#[test]
fn expressions_are_written_back() {
    for (text, canonical) in [
        ("SELECT s->*, a FROM t", "SELECT s -> *, a FROM t"),
        (
            "SELECT filter(a, `X` => `X` > 0) FROM t",
            "SELECT filter(a, \"X\" => \"X\" > 0) FROM t",
        ),
        (
            "SELECT transform(m, (k, v) => k, (k, v) => 'it''s') FROM t",
            "SELECT transform(m, (k, v) => k, (k, v) => 'it''s') FROM t",
        ),
        (
            "SELECT CAST(a AS MAP<STRING, MAP<STRING, INT>>) FROM t",
            "SELECT CAST(a AS MAP<STRING, MAP<STRING, INT>>) FROM t",
        ),
        (
            "SELECT CAST(a AS INT ARRAY) FROM t",
            "SELECT CAST(a AS INT[]) FROM t",
        ),
        (
            "SELECT CAST(a AS MAP<STRING, STRUCT<array INT ARRAY, b ARRAY<INT>> ARRAY>) AS array FROM t",
            "SELECT CAST(a AS MAP<STRING, STRUCT<array INT[], b ARRAY<INT>>[]>) AS array FROM t",
        ),
        (
            "SELECT a LIKE 'x!%' ESCAPE '!', trim(both 'x' FROM a), DECIMAL '1.50' FROM t",
            "SELECT a LIKE 'x!%' ESCAPE '!', TRIM(BOTH 'x' FROM a), DECIMAL '1.50' FROM t",
        ),
        (
            "SELECT ARRAY[1, 2], MAP('k' := 1), STRUCT(a := 1, `B` := 'x') FROM t",
            "SELECT ARRAY[1, 2], MAP {'k': 1}, STRUCT(1 AS a, 'x' AS \"B\") FROM t",
        ),
        (
            "SELECT rowtime AT TIME ZONE 'UTC' FROM t",
            "SELECT rowtime AT TIME ZONE 'UTC' FROM t",
        ),
    ] {
        let parsed = parse_statement(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        assert_eq!(parsed.canonical_text().unwrap(), canonical, "{text}");
    }
}

#[test]
fn all_fields_of_a_struct_are_a_wildcard_behind_an_arrow() {
    let query = query("SELECT a->b->* FROM t");
    let SelectItem::UnnamedExpr(Expr::BinaryOp {
        op: BinaryOperator::Arrow,
        right,
        ..
    }) = &items(&query)[0]
    else {
        panic!("{:?}", items(&query));
    };
    assert!(matches!(right.as_ref(), Expr::Wildcard(_)));
}

#[test]
fn joins_keep_their_windows() {
    let text = "SELECT * FROM a INNER JOIN b WITHIN 7 DAYS ON a.id = b.id \
                LEFT JOIN c ON a.id = c.id \
                FULL OUTER JOIN d WITHIN (1 HOUR, 2 MINUTES) GRACE PERIOD 30 SECONDS ON a.id = d.id \
                WHERE a.x > 1 EMIT CHANGES";
    let seconds = std::time::Duration::from_secs;
    let parsed = query(text);
    assert_eq!(
        parsed.within,
        [
            Within {
                join: 0,
                before: seconds(7 * 86_400),
                after: seconds(7 * 86_400),
                grace: None
            },
            Within {
                join: 2,
                before: seconds(3600),
                after: seconds(120),
                grace: Some(seconds(30))
            },
        ]
    );
    assert_eq!(
        parsed.to_string(),
        "SELECT * FROM A INNER JOIN B WITHIN 7 DAYS ON A.ID = B.ID \
         LEFT JOIN C ON A.ID = C.ID \
         FULL JOIN D WITHIN (1 HOURS, 2 MINUTES) GRACE PERIOD 30 SECONDS ON A.ID = D.ID \
         WHERE A.X > 1 EMIT CHANGES"
    );
    let error = parse_statement("SELECT * FROM a JOIN b WITHIN 1 HOUR WITHIN 2 HOURS ON a.x = b.x")
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "syntax error at or near \"WITHIN\": WITHIN is given twice"
    );
    let error = parse_statement("SELECT * FROM a JOIN b WITHIN 1 ON a.x = b.x").unwrap_err();
    assert!(error.to_string().contains("a unit of time"), "{error}");
}

#[test]
fn partition_by_takes_a_list_with_or_without_brackets() {
    for (text, count) in [
        ("SELECT * FROM s PARTITION BY a", 1),
        ("SELECT * FROM s PARTITION BY (a)", 1),
        ("SELECT * FROM s PARTITION BY a, b + 1", 2),
        ("SELECT * FROM s PARTITION BY (a, b + 1)", 2),
        ("SELECT * FROM s PARTITION BY (((a)))", 1),
        ("SELECT * FROM s PARTITION BY NULL EMIT CHANGES", 1),
    ] {
        assert_eq!(query(text).partition_by.len(), count, "{text}");
    }
}

#[test]
fn declarations() {
    for (text, postgres, ksql) in [
        (
            "CREATE SOURCE STREAM s (k INT KEY, h BYTES HEADER('Trace'), a ARRAY<STRUCT<key STRING, value BYTES>> HEADERS)",
            "CREATE SOURCE STREAM s (k INT KEY, h BYTES HEADER('Trace'), a ARRAY<STRUCT<key STRING, value BYTES>> HEADERS)",
            "CREATE SOURCE STREAM S (K INT KEY, H BYTES HEADER('Trace'), A ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS)",
        ),
        (
            "CREATE OR REPLACE SOURCE TABLE IF NOT EXISTS t WITH (kafka_topic='t')",
            "CREATE OR REPLACE SOURCE TABLE IF NOT EXISTS t WITH (kafka_topic = 't')",
            "CREATE OR REPLACE SOURCE TABLE IF NOT EXISTS T WITH (kafka_topic = 't')",
        ),
        (
            "ALTER STREAM s ADD COLUMN a INT, ADD b Address",
            "ALTER STREAM s ADD COLUMN a INT, ADD COLUMN b \"address\"",
            "ALTER STREAM S ADD COLUMN A INT, ADD COLUMN B \"ADDRESS\"",
        ),
        (
            "CREATE TYPE IF NOT EXISTS Address AS STRUCT<street STRING, zip Zip>",
            "CREATE TYPE IF NOT EXISTS address AS STRUCT<street STRING, zip \"zip\">",
            "CREATE TYPE IF NOT EXISTS ADDRESS AS STRUCT<STREET STRING, ZIP \"ZIP\">",
        ),
        (
            "DROP TYPE IF EXISTS Address",
            "DROP TYPE IF EXISTS address",
            "DROP TYPE IF EXISTS ADDRESS",
        ),
        (
            "INSERT INTO s WITH (query_id='Q') SELECT * FROM t",
            "INSERT INTO s WITH (query_id = 'Q') SELECT * FROM t",
            "INSERT INTO S WITH (query_id = 'Q') SELECT * FROM T",
        ),
    ] {
        assert_canonical(text, postgres, ksql);
    }
}

#[test]
fn lists_and_descriptions() {
    for (text, canonical) in [
        ("LIST STREAMS EXTENDED", "SHOW STREAMS EXTENDED"),
        ("SHOW ALL TOPICS EXTENDED", "SHOW ALL TOPICS EXTENDED"),
        ("list topics", "SHOW TOPICS"),
        ("SHOW QUERIES EXTENDED", "SHOW QUERIES EXTENDED"),
        ("LIST FUNCTIONS", "SHOW FUNCTIONS"),
        ("SHOW TYPES", "SHOW TYPES"),
        ("SHOW VARIABLES", "SHOW VARIABLES"),
        ("LIST PROPERTIES", "SHOW ALL"),
        ("DESCRIBE STREAMS EXTENDED", "DESCRIBE STREAMS EXTENDED"),
        ("DESCRIBE TABLES", "DESCRIBE TABLES"),
        ("DESCRIBE FUNCTION Ucase", "DESCRIBE FUNCTION ucase"),
        ("DESCRIBE FUNCTION left", "DESCRIBE FUNCTION left"),
    ] {
        assert_canonical(text, canonical, canonical);
    }
    assert_canonical(
        "DESCRIBE s EXTENDED",
        "DESCRIBE s EXTENDED",
        "DESCRIBE S EXTENDED",
    );
    assert_canonical(
        "DESCRIBE function",
        "DESCRIBE function",
        "DESCRIBE FUNCTION",
    );
}

#[test]
fn session_statements() {
    for (text, canonical) in [
        ("DEFINE Topic = 'it''s'", "DEFINE topic = 'it''s'"),
        ("DEFINE \"all\" = ''", "DEFINE all = ''"),
        ("UNDEFINE Topic", "UNDEFINE topic"),
        ("RUN SCRIPT '/tmp/A.sql'", "RUN SCRIPT '/tmp/A.sql'"),
        (
            "ALTER SYSTEM 'Ksql.Output' = 'X'",
            "ALTER SYSTEM 'ksql.output' = 'X'",
        ),
        (
            "ALTER SYSTEM SET fsync TO DEFAULT",
            "ALTER SYSTEM 'fsync' = DEFAULT",
        ),
        ("ALTER SYSTEM RESET fsync", "ALTER SYSTEM 'fsync' = DEFAULT"),
        (
            "ALTER TOPIC Orders-1 SET (Retention_MS = 5, 'cleanup.policy' = 'compact', x = DEFAULT)",
            "ALTER TOPIC 'Orders-1' SET ('retention_ms' = '5', 'cleanup.policy' = 'compact', 'x' = DEFAULT)",
        ),
        (
            "ALTER TOPIC 'a b' RESET (retention.ms)",
            "ALTER TOPIC 'a b' SET ('retention.ms' = DEFAULT)",
        ),
        ("TERMINATE ALL", "TERMINATE ALL"),
        ("PAUSE ALL", "PAUSE ALL"),
    ] {
        assert_canonical(text, canonical, canonical);
    }
}

#[test]
fn assertions() {
    for (text, postgres, ksql) in [
        (
            "ASSERT TOPIC Orders-1 WITH (partitions=4) TIMEOUT 10 SECONDS",
            "ASSERT TOPIC 'Orders-1' WITH (partitions = 4) TIMEOUT 10 SECONDS",
            "ASSERT TOPIC 'Orders-1' WITH (partitions = 4) TIMEOUT 10 SECONDS",
        ),
        (
            "ASSERT NOT EXISTS TOPIC 'x'",
            "ASSERT NOT EXISTS TOPIC 'x'",
            "ASSERT NOT EXISTS TOPIC 'x'",
        ),
        (
            "ASSERT SCHEMA SUBJECT 'orders-value' ID 3 TIMEOUT 1 MINUTE",
            "ASSERT SCHEMA SUBJECT 'orders-value' ID 3 TIMEOUT 1 MINUTES",
            "ASSERT SCHEMA SUBJECT 'orders-value' ID 3 TIMEOUT 1 MINUTES",
        ),
        (
            "ASSERT NOT EXISTS SCHEMA ID 3",
            "ASSERT NOT EXISTS SCHEMA ID 3",
            "ASSERT NOT EXISTS SCHEMA ID 3",
        ),
        (
            "ASSERT VALUES s (k, v) VALUES (1, 'a')",
            "ASSERT VALUES s (k, v) VALUES (1, 'a')",
            "ASSERT VALUES S (K, V) VALUES (1, 'a')",
        ),
        (
            "ASSERT NULL VALUES t (k) KEY ('a')",
            "ASSERT NULL VALUES t (k) KEY ('a')",
            "ASSERT NULL VALUES T (K) KEY ('a')",
        ),
        (
            "ASSERT TABLE t (k INT PRIMARY KEY) WITH (kafka_topic='t')",
            "ASSERT TABLE t (k INT PRIMARY KEY) WITH (kafka_topic = 't')",
            "ASSERT TABLE T (K INT PRIMARY KEY) WITH (kafka_topic = 't')",
        ),
    ] {
        assert_canonical(text, postgres, ksql);
    }
    for text in [
        "ASSERT SCHEMA",
        "ASSERT NOT EXISTS VALUES s VALUES (1)",
        "ASSERT VALUES s VALUES 1",
        "ASSERT x",
    ] {
        assert!(parse_statement(text).is_err(), "{text}");
    }
}

#[test]
fn a_ksql_script_with_comments_and_mixed_case() {
    let script = "-- a pipeline\n\
        create stream Orders (id varchar key, amount decimal(9,2)) with (kafka_topic='orders', partitions=1, value_format='json');\n\
        /* by customer */\n\
        create table totals as select id, sum(amount) as total from orders window tumbling (size 1 hour, retention 7 days, grace period 10 minutes) where amount > 0 group by id having sum(amount) > 100 emit final;\n\
        terminate CTAS_TOTALS_1;";
    let texts: Vec<String> = parse_script_in(script, Language::KSQL)
        .unwrap()
        .iter()
        .map(|parsed| parsed.canonical_text().unwrap())
        .collect();
    assert_eq!(
        texts,
        [
            "CREATE STREAM ORDERS (ID STRING KEY, AMOUNT DECIMAL(9, 2)) WITH (kafka_topic = 'orders', partitions = 1, value_format = 'json')",
            "CREATE TABLE TOTALS AS SELECT ID, SUM(AMOUNT) AS TOTAL FROM ORDERS WINDOW TUMBLING (SIZE 1 HOURS, RETENTION 7 DAYS, GRACE PERIOD 10 MINUTES) WHERE AMOUNT > 0 GROUP BY ID HAVING SUM(AMOUNT) > 100 EMIT FINAL",
            "TERMINATE CTAS_TOTALS_1",
        ]
    );
}

#[test]
fn no_more_joins_with_within_are_taken_than_anybody_writes() {
    let joins = |count| {
        format!(
            "SELECT * FROM a{}",
            " JOIN b WITHIN 1 DAY ON true".repeat(count)
        )
    };
    assert_eq!(query(&joins(255)).within.len(), 255);
    let error = parse_statement_in(&joins(257), Language::KSQL).expect_err("too many");
    assert_eq!(
        error.to_string(),
        "statement is too complex: more than 256 joins with WITHIN"
    );
}
