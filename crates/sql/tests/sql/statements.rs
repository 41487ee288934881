//! Every statement in every spelling, by its canonical text.

use std::time::Duration;

use highwater_sql::sqlparser::ast::Expr;
use highwater_sql::{
    Changes, ChangesStart, Copy, CopyDirection, CopyFormat, CopyOptions, CopyTarget, Emit,
    InsertSource, Query, Statement, Window, WindowKind, parse_script, parse_statement,
};

/// Parses `text`, compares its canonical text, and checks that the canonical text means the same.
fn assert_canonical(text: &str, canonical: &str) {
    let parsed = parse_statement(text)
        .unwrap_or_else(|error| panic!("{text}\n{error} at {}", error.position(text)));
    assert_eq!(parsed.statement.to_string(), canonical, "{text}");
    assert_eq!(parsed.canonical_text().unwrap(), canonical, "{text}");
}

fn query(text: &str) -> Query {
    match parse_statement(text)
        .unwrap_or_else(|error| panic!("{text}\n{error}"))
        .statement
    {
        Statement::Query(query) => query,
        other => panic!("{text}\nnot a query: {other:?}"),
    }
}

#[test]
fn sources() {
    for (text, canonical) in [
        (
            "create stream Flights (id int key, `Origin` varchar, delay double precision) with (kafka_topic='F', partitions=4)",
            "CREATE STREAM flights (id INT KEY, \"Origin\" STRING, delay DOUBLE) WITH (kafka_topic = 'F', partitions = 4)",
        ),
        (
            "CREATE OR REPLACE TABLE IF NOT EXISTS public.airlines (code STRING PRIMARY KEY, name STRING) WITH (VALUE_FORMAT='JSON', wrap_single_value=false, x=-1.5)",
            "CREATE OR REPLACE TABLE IF NOT EXISTS airlines (code STRING PRIMARY KEY, name STRING) WITH (value_format = 'JSON', wrap_single_value = FALSE, x = -1.5)",
        ),
        (
            "CREATE TABLE t (a INT, b INT, c INT, PRIMARY KEY (a, b))",
            "CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY, c INT)",
        ),
        (
            "CREATE TABLE t (key INT, primary_ INT)",
            "CREATE TABLE t (key INT, primary_ INT)",
        ),
        (
            "CREATE STREAM s (window INT, emit INT, timestamp TIMESTAMP, \"select\" INT)",
            "CREATE STREAM s (window INT, emit INT, timestamp TIMESTAMP, \"select\" INT)",
        ),
        (
            "CREATE STREAM s (a INT) WITH ('auto.x' = 'y', format = 'JSON')",
            "CREATE STREAM s (a INT) WITH ('auto.x' = 'y', format = 'JSON')",
        ),
        ("CREATE STREAM s (a INT) WITH ()", "CREATE STREAM s (a INT)"),
        ("DROP STREAM s", "DROP STREAM s"),
        (
            "drop table if exists \"T\" delete topic",
            "DROP TABLE IF EXISTS \"T\" DELETE TOPIC",
        ),
        ("DROP TABLE t RESTRICT", "DROP TABLE t"),
        ("DESCRIBE s", "DESCRIBE s"),
        ("desc public.s extended", "DESCRIBE s EXTENDED"),
        ("DESCRIBE STREAM s", "DESCRIBE s"),
        ("DESCRIBE stream EXTENDED", "DESCRIBE stream EXTENDED"),
        ("DESCRIBE extended", "DESCRIBE extended"),
        (
            "PRINT 'My-Topic' FROM BEGINNING INTERVAL 2 LIMIT 3",
            "PRINT \"My-Topic\" FROM BEGINNING INTERVAL 2 LIMIT 3",
        ),
        ("PRINT my-topic.V1 LIMIT 3", "PRINT \"my-topic.V1\" LIMIT 3"),
        ("TERMINATE CTAS_X_1", "TERMINATE ctas_x_1"),
        ("TERMINATE QUERY \"A\"", "TERMINATE \"A\""),
        ("PAUSE ALL", "PAUSE ALL"),
        ("RESUME x", "RESUME x"),
    ] {
        assert_canonical(text, canonical);
    }
}

#[test]
fn types() {
    for (written, canonical) in [
        ("BOOL", "BOOLEAN"),
        ("int2", "SMALLINT"),
        ("INTEGER", "INT"),
        ("int4", "INT"),
        ("INT8", "BIGINT"),
        ("float4", "REAL"),
        ("FLOAT(24)", "REAL"),
        ("FLOAT", "DOUBLE"),
        ("FLOAT(25)", "DOUBLE"),
        ("DOUBLE PRECISION", "DOUBLE"),
        ("NUMERIC(10, 2)", "DECIMAL(10, 2)"),
        ("DEC(5)", "DECIMAL(5, 0)"),
        ("NUMERIC", "DECIMAL(38, 10)"),
        ("VARCHAR(20)", "STRING"),
        ("CHARACTER VARYING", "STRING"),
        ("TEXT", "STRING"),
        ("BYTEA", "BYTES"),
        ("DATE", "DATE"),
        ("TIME(3) WITHOUT TIME ZONE", "TIME"),
        ("TIMESTAMP(3)", "TIMESTAMP"),
        ("TIMESTAMP WITHOUT TIME ZONE", "TIMESTAMP"),
        ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"),
        ("timestamptz", "TIMESTAMPTZ"),
        ("INT ARRAY", "ARRAY<INT>"),
        ("INT[3][]", "ARRAY<ARRAY<INT>>"),
        (
            "ARRAY<ARRAY<ARRAY<ARRAY<INT>>>>",
            "ARRAY<ARRAY<ARRAY<ARRAY<INT>>>>",
        ),
        (
            "MAP<STRING, MAP<STRING, INT>>",
            "MAP<STRING, MAP<STRING, INT>>",
        ),
        (
            "STRUCT<A INT, `B` STRUCT<c DECIMAL(3,1)>>",
            "STRUCT<a INT, \"B\" STRUCT<c DECIMAL(3, 1)>>",
        ),
        (
            "MAP < STRING , ARRAY < INT > > ARRAY",
            "ARRAY<MAP<STRING, ARRAY<INT>>>",
        ),
    ] {
        assert_canonical(
            &format!("CREATE STREAM s (a {written}, b INT)"),
            &format!("CREATE STREAM s (a {canonical}, b INT)"),
        );
        assert_eq!(
            highwater_sql::parse_type(written, highwater_sql::Language::POSTGRES)
                .unwrap()
                .to_string(),
            canonical
        );
    }
}

#[test]
fn queries_with_streaming_clauses_in_any_order() {
    let canonical = "SELECT a, count(*) FROM s WINDOW TUMBLING (SIZE 1 HOURS, GRACE PERIOD 5 MINUTES) WHERE b > 0 GROUP BY a \
                     HAVING count(*) > 1 EMIT CHANGES LIMIT 3";
    let window = "WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 5 MINUTES)";
    for text in [
        format!(
            "SELECT a, count(*) FROM s {window} WHERE b > 0 GROUP BY a HAVING count(*) > 1 EMIT CHANGES LIMIT 3"
        ),
        format!(
            "SELECT a, count(*) FROM s WHERE b > 0 {window} GROUP BY a HAVING count(*) > 1 LIMIT 3 EMIT CHANGES"
        ),
        format!(
            "SELECT a, count(*) FROM s WHERE b > 0 GROUP BY a {window} HAVING count(*) > 1 EMIT CHANGES LIMIT 3"
        ),
        format!(
            "SELECT a, count(*) FROM s EMIT CHANGES {window} WHERE b > 0 GROUP BY a HAVING count(*) > 1 LIMIT 3"
        ),
        format!(
            "(SELECT a, count(*) FROM s WHERE b > 0 GROUP BY a HAVING count(*) > 1 {window} EMIT CHANGES LIMIT 3)"
        ),
    ] {
        assert_canonical(&text, canonical);
    }
}

#[test]
fn windows() {
    let minutes = |count: u64| Duration::from_secs(60 * count);
    for (text, kind, retention, grace) in [
        (
            "TUMBLING (SIZE 30 SECONDS)",
            WindowKind::Tumbling {
                size: Duration::from_secs(30),
            },
            None,
            None,
        ),
        (
            "hopping (size 1 hour, advance by 90 seconds, retention 1 day, grace period 0 milliseconds)",
            WindowKind::Hopping {
                size: minutes(60),
                advance: Duration::from_secs(90),
            },
            Some(minutes(24 * 60)),
            Some(Duration::ZERO),
        ),
        (
            "SESSION (5 MINUTES, GRACE PERIOD 1 MINUTE)",
            WindowKind::Session { gap: minutes(5) },
            None,
            Some(minutes(1)),
        ),
    ] {
        let query = query(&format!(
            "SELECT a FROM s WINDOW {text} GROUP BY a EMIT FINAL"
        ));
        assert_eq!(
            query.window,
            Some(Window {
                kind,
                retention,
                grace
            }),
            "{text}"
        );
        assert_eq!(query.emit, Some(Emit::Final));
    }
}

#[test]
fn names_that_look_like_streaming_clauses() {
    for text in [
        "SELECT window, emit, partition FROM window, emit",
        "SELECT emit AS changes, window AS tumbling FROM s",
        "SELECT s.emit, s.window FROM s WHERE s.emit = window",
        "SELECT sum(a) OVER (PARTITION BY b ORDER BY c) FROM s",
        "SELECT sum(a) OVER w FROM s WINDOW w AS (PARTITION BY b)",
        "SELECT a FROM emit changes",
        "SELECT a FROM s AS emit",
        "SELECT a FROM s ORDER BY emit",
        "SELECT tumbling(a) FROM hopping",
    ] {
        let parsed = query(text);
        assert_eq!(
            (parsed.window, parsed.emit, parsed.partition_by.len()),
            (None, None, 0),
            "{text}"
        );
        assert_canonical(text, text);
    }
    let parsed =
        query("SELECT emit FROM window WINDOW SESSION (1 SECOND) GROUP BY emit EMIT CHANGES");
    assert!(parsed.window.is_some() && parsed.emit == Some(Emit::Changes(Changes::default())));
    let parsed = query("SELECT a FROM emit EMIT FINAL LIMIT 1");
    assert_eq!(parsed.emit, Some(Emit::Final));
}

#[test]
fn changes_begin_where_the_clause_says() {
    for (text, canonical, start, with_step) in [
        ("EMIT CHANGES", "EMIT CHANGES", ChangesStart::Setting, false),
        (
            "emit changes with step",
            "EMIT CHANGES WITH STEP",
            ChangesStart::Setting,
            true,
        ),
        (
            "EMIT CHANGES WITH STEP, SNAPSHOT",
            "EMIT CHANGES WITH SNAPSHOT, STEP",
            ChangesStart::Snapshot,
            true,
        ),
        (
            "EMIT CHANGES WITH SNAPSHOT WITH STEP",
            "EMIT CHANGES WITH SNAPSHOT, STEP",
            ChangesStart::Snapshot,
            true,
        ),
        (
            "EMIT CHANGES AFTER STEP 7",
            "EMIT CHANGES AFTER STEP 7",
            ChangesStart::After(7),
            false,
        ),
        (
            "EMIT CHANGES AFTER STEP 0 WITH STEP",
            "EMIT CHANGES WITH STEP AFTER STEP 0",
            ChangesStart::After(0),
            true,
        ),
    ] {
        let parsed = query(&format!("SELECT a FROM s {text} LIMIT 1"));
        assert_eq!(
            parsed.emit,
            Some(Emit::Changes(Changes { start, with_step })),
            "{text}"
        );
        assert_canonical(
            &format!("SELECT a FROM s {text} LIMIT 1"),
            &format!("SELECT a FROM s {canonical} LIMIT 1"),
        );
    }
    for text in [
        "SELECT a FROM s EMIT CHANGES AFTER",
        "SELECT a FROM s EMIT CHANGES AFTER STEP",
        "SELECT a FROM s EMIT CHANGES AFTER STEP -1",
        "SELECT a FROM s EMIT CHANGES AFTER STEP 1.5",
        "SELECT a FROM s EMIT CHANGES AFTER STEP 9223372036854775808",
        "SELECT a FROM s EMIT CHANGES AFTER STEP 1 AFTER STEP 2",
        "SELECT a FROM s EMIT CHANGES WITH SNAPSHOT AFTER STEP 2",
        "SELECT a FROM s EMIT CHANGES WITH STEP, STEP",
        "SELECT a FROM s EMIT CHANGES WITH",
    ] {
        assert!(parse_statement(text).is_err(), "{text}");
    }
}

#[test]
fn partition_by_ends_at_the_next_clause() {
    let text = "SELECT a FROM s WHERE b PARTITION BY a, f(b, c), emit EMIT CHANGES";
    assert_eq!(query(text).partition_by.len(), 3);
    assert_canonical(text, text);
    assert_canonical(
        "SELECT a FROM s PARTITION BY a WHERE b GROUP BY c HAVING d LIMIT 1",
        "SELECT a FROM s WHERE b GROUP BY c PARTITION BY a HAVING d LIMIT 1",
    );
}

#[test]
fn expressions() {
    for (written, canonical) in [
        ("a->b->C + 1", "a -> b -> c + 1"),
        ("a->b::int", "a -> b::INT"),
        ("a.b->c = 1", "a.b -> c = 1"),
        ("a[1] || m['k']", "a[1] || m['k']"),
        ("x::numeric(10, 2)", "x::NUMERIC(10,2)"),
        (
            "STRUCT(f := 1, g := STRUCT(h := 'x'))",
            "STRUCT(1 AS f, STRUCT('x' AS h) AS g)",
        ),
        ("MAP('k' := 1, 'l' := 1 + 1)", "MAP {'k': 1, 'l': 1 + 1}"),
        ("map(a, b)", "map(a, b)"),
        ("ARRAY[1, 2]", "ARRAY[1, 2]"),
        ("- - a", "-(-a)"),
        ("~ -a * b", "~(-a * b)"),
        ("a - -1", "a - -1"),
        (
            "E'a\\'b' || $$it's$$ || U&'\\0061'",
            "'a''b' || 'it''s' || 'a'",
        ),
        ("'a''''b'", "'a''''b'"),
        ("'back\\slash'", "'back\\slash'"),
        (
            "count(*) FILTER (WHERE a > 1)",
            "count(*) FILTER (WHERE a > 1)",
        ),
        ("extract(year from ts)", "EXTRACT(YEAR FROM ts)"),
        ("a IS DISTINCT FROM b", "a IS DISTINCT FROM b"),
        ("INTERVAL '1 day'", "INTERVAL '1 day'"),
        ("DATE '2013-01-01'", "DATE '2013-01-01'"),
        ("a = ANY($1)", "a = ANY($1)"),
        (
            "a OPERATOR(pg_catalog.~) 'x' COLLATE pg_catalog.default",
            "a OPERATOR(pg_catalog.~) 'x' COLLATE pg_catalog.default",
        ),
        ("transform(a, x => x + 1)", "transform(a, x => x + 1)"),
        (
            "CASE WHEN a THEN 1 ELSE 2 END",
            "CASE WHEN a THEN 1 ELSE 2 END",
        ),
        ("a LIKE 'x!%' ESCAPE '!'", "a LIKE 'x!%' ESCAPE '!'"),
        ("Foo.\"Bar\"", "foo.\"Bar\""),
    ] {
        assert_canonical(
            &format!("SELECT {written} FROM s"),
            &format!("SELECT {canonical} FROM s"),
        );
    }
}

#[test]
fn standard_queries() {
    for text in [
        "SELECT 1",
        "VALUES (1, 'a'), (2, 'b')",
        "WITH a AS (SELECT 1 AS x), b AS (SELECT * FROM a) SELECT * FROM b UNION ALL SELECT 2 ORDER BY 1 LIMIT 3 OFFSET 1",
        "SELECT DISTINCT a.x, b.* FROM a LEFT JOIN b ON a.x = b.x CROSS JOIN c WHERE a.x IN (SELECT x FROM d) ORDER BY 1 DESC NULLS LAST",
        "SELECT * FROM (SELECT a FROM s) AS t (b)",
        "SELECT * FROM generate_series(1, 3) AS g",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
    ] {
        assert_canonical(text, text);
    }
}

#[test]
fn derived_sources() {
    assert_canonical(
        "create table Hourly with (kafka_topic='h') as select carrier, count(*) n from flights window hopping (size 2 hours, advance by 1 hour) group by carrier emit changes;",
        "CREATE TABLE hourly WITH (kafka_topic = 'h') AS SELECT carrier, count(*) AS n FROM flights WINDOW HOPPING (SIZE 2 HOURS, ADVANCE BY 1 HOURS) GROUP BY carrier EMIT CHANGES",
    );
    assert_canonical(
        "CREATE STREAM IF NOT EXISTS late AS SELECT * FROM flights WHERE delay > 15 PARTITION BY carrier",
        "CREATE STREAM IF NOT EXISTS late AS SELECT * FROM flights WHERE delay > 15 PARTITION BY carrier",
    );
}

#[test]
fn inserts() {
    for (text, canonical) in [
        (
            "insert into s (a, \"B\") values (1, 'x'), ($1, null)",
            "INSERT INTO s (a, \"B\") VALUES (1, 'x'), ($1, NULL)",
        ),
        (
            "INSERT INTO public.s VALUES (-1, 'it''s', a->b)",
            "INSERT INTO s VALUES (-1, 'it''s', a -> b)",
        ),
        (
            "INSERT INTO s SELECT * FROM t EMIT CHANGES",
            "INSERT INTO s SELECT * FROM t EMIT CHANGES",
        ),
        (
            "INSERT INTO s (SELECT * FROM t)",
            "INSERT INTO s SELECT * FROM t",
        ),
        (
            "INSERT INTO s (a) WITH x AS (SELECT 1) SELECT * FROM x",
            "INSERT INTO s (a) WITH x AS (SELECT 1) SELECT * FROM x",
        ),
        (
            "INSERT INTO s VALUES (1) ORDER BY 1",
            "INSERT INTO s VALUES (1) ORDER BY 1",
        ),
    ] {
        assert_canonical(text, canonical);
    }
    let Statement::Insert(insert) = parse_statement("INSERT INTO s VALUES (1, 2), (3, 4)")
        .unwrap()
        .statement
    else {
        panic!("not an INSERT");
    };
    assert!(
        matches!(insert.source, InsertSource::Values(rows) if rows.iter().map(Vec::len).eq([2, 2]))
    );
}

#[test]
fn copies() {
    let csv = CopyOptions {
        format: CopyFormat::Csv,
        header: true,
        delimiter: b';',
        null: "-".into(),
        quote: b'\'',
        escape: b'\\',
    };
    for text in [
        "COPY s (a, b) FROM STDIN WITH (FORMAT csv, HEADER, DELIMITER ';', NULL '-', QUOTE '''', ESCAPE '\\', ENCODING 'UTF8')",
        "copy public.s(a,b) from stdin (format 'csv', header true, delimiter ';', null '-', quote '''', escape '\\')",
        "COPY s (a, b) FROM STDIN WITH CSV HEADER DELIMITER ';' NULL '-' QUOTE '''' ESCAPE '\\'",
        "COPY s (a, b) FROM STDIN DELIMITER AS ';' NULL AS '-' CSV HEADER QUOTE AS '''' ESCAPE AS '\\'",
    ] {
        let expected = Statement::Copy(Copy {
            target: CopyTarget::Relation {
                name: "s".into(),
                columns: vec!["a".into(), "b".into()],
            },
            direction: CopyDirection::FromStdin,
            options: csv.clone(),
        });
        let parsed = parse_statement(text).unwrap();
        assert_eq!(parsed.statement, expected, "{text}");
        parsed.canonical_text().unwrap();
    }
    for (text, canonical) in [
        (
            "COPY s FROM STDIN",
            "COPY s FROM STDIN WITH (FORMAT TEXT, HEADER FALSE, DELIMITER '\t', NULL '\\N')",
        ),
        (
            "COPY s TO STDOUT (DELIMITER E'\\t')",
            "COPY s TO STDOUT WITH (FORMAT TEXT, HEADER FALSE, DELIMITER '\t', NULL '\\N')",
        ),
        (
            "COPY (SELECT * FROM s EMIT CHANGES LIMIT 2) TO STDOUT CSV",
            "COPY (SELECT * FROM s EMIT CHANGES LIMIT 2) TO STDOUT WITH (FORMAT CSV, HEADER FALSE, DELIMITER ',', NULL '', QUOTE '\"', ESCAPE '\"')",
        ),
    ] {
        assert_canonical(text, canonical);
    }
}

#[test]
fn what_clients_send() {
    for (text, canonical) in [
        (
            "SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE",
            "SET 'timezone' = '+00:00'",
        ),
        (
            "SET TIME ZONE 'Europe/Berlin'",
            "SET 'timezone' = 'Europe/Berlin'",
        ),
        ("SET TIME ZONE LOCAL", "SET 'timezone' = DEFAULT"),
        ("set session time zone utc", "SET 'timezone' = 'utc'"),
        ("SET TimeZone = 'GMT'", "SET 'timezone' = 'GMT'"),
        (
            "SET client_encoding TO 'utf-8'",
            "SET 'client_encoding' = 'utf-8'",
        ),
        ("SET NAMES 'UTF8'", "SET 'client_encoding' = 'UTF8'"),
        ("set DateStyle=ISO", "SET 'datestyle' = 'iso'"),
        ("SET datestyle = ISO, MDY", "SET 'datestyle' = 'iso, mdy'"),
        (
            "SET extra_float_digits = 3",
            "SET 'extra_float_digits' = '3'",
        ),
        (
            "SET search_path = \"$user\", public",
            "SET 'search_path' = '\"$user\", public'",
        ),
        (
            "SET LOCAL statement_timeout TO DEFAULT",
            "SET 'statement_timeout' = DEFAULT",
        ),
        ("SET SESSION x = on", "SET 'x' = 'on'"),
        ("SET session = 1", "SET 'session' = '1'"),
        (
            "SET 'auto.offset.reset'='earliest'",
            "SET 'auto.offset.reset' = 'earliest'",
        ),
        (
            "SET auto.offset.reset = 'earliest'",
            "SET 'auto.offset.reset' = 'earliest'",
        ),
        ("SET ROLE NONE", "SET 'role' = 'none'"),
        (
            "SET SESSION AUTHORIZATION DEFAULT",
            "SET 'session_authorization' = DEFAULT",
        ),
        (
            "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
            "SET 'default_transaction_isolation' = 'read uncommitted'",
        ),
        (
            "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE",
            "SET 'transaction_read_only' = 'on'",
        ),
        (
            "SET TRANSACTION READ WRITE",
            "SET 'transaction_read_only' = 'off'",
        ),
        ("UNSET 'x'", "UNSET 'x'"),
        ("RESET ALL", "RESET ALL"),
        ("RESET TIME ZONE", "UNSET 'timezone'"),
        ("RESET search_path", "UNSET 'search_path'"),
        ("show time zone", "SHOW 'timezone'"),
        (
            "SHOW TRANSACTION ISOLATION LEVEL",
            "SHOW 'transaction_isolation'",
        ),
        ("show transaction_isolation", "SHOW 'transaction_isolation'"),
        ("SHOW ALL", "SHOW ALL"),
        ("SHOW STREAMS", "SHOW STREAMS"),
        ("LIST TABLES", "SHOW TABLES"),
        ("LIST ALL TOPICS", "SHOW ALL TOPICS"),
        ("SHOW TOPICS", "SHOW TOPICS"),
        ("SHOW QUERIES", "SHOW QUERIES"),
        ("SHOW PROPERTIES", "SHOW ALL"),
        ("BEGIN", "BEGIN"),
        (
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            "BEGIN READ ONLY",
        ),
        ("BEGIN TRANSACTION READ WRITE, NOT DEFERRABLE", "BEGIN"),
        ("START TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN"),
        ("COMMIT WORK", "COMMIT"),
        ("END", "COMMIT"),
        ("ROLLBACK", "ROLLBACK"),
        ("ABORT AND NO CHAIN", "ROLLBACK"),
        ("SAVEPOINT _EXEC_SVP_1", "SAVEPOINT _exec_svp_1"),
        ("RELEASE _EXEC_SVP_1", "RELEASE SAVEPOINT _exec_svp_1"),
        ("RELEASE SAVEPOINT a", "RELEASE SAVEPOINT a"),
        ("ROLLBACK TO a", "ROLLBACK TO SAVEPOINT a"),
        ("ROLLBACK WORK TO SAVEPOINT a", "ROLLBACK TO SAVEPOINT a"),
        (
            "DECLARE _psql_cursor NO SCROLL CURSOR FOR SELECT 1",
            "DECLARE _psql_cursor CURSOR FOR SELECT 1",
        ),
        (
            "DECLARE \"n\" CURSOR WITHOUT HOLD FOR SELECT * FROM s EMIT CHANGES",
            "DECLARE n CURSOR FOR SELECT * FROM s EMIT CHANGES",
        ),
        (
            "declare \"SQL_CUR01\" cursor with hold for select 1",
            "DECLARE \"SQL_CUR01\" CURSOR WITH HOLD FOR SELECT 1",
        ),
        (
            "FETCH FORWARD 10 FROM _psql_cursor",
            "FETCH 10 FROM _psql_cursor",
        ),
        ("fetch 100 in \"SQL_CUR01\"", "FETCH 100 FROM \"SQL_CUR01\""),
        ("FETCH FORWARD ALL FROM c", "FETCH ALL FROM c"),
        ("FETCH NEXT c", "FETCH 1 FROM c"),
        ("FETCH c", "FETCH 1 FROM c"),
        (
            "FETCH 1 FROM c WITH (timeout = '1500ms')",
            "FETCH 1 FROM c WITH (timeout = '1500 milliseconds')",
        ),
        (
            "FETCH c WITH (timeout '2s')",
            "FETCH 1 FROM c WITH (timeout = '2 seconds')",
        ),
        ("CLOSE ALL", "CLOSE ALL"),
        ("CLOSE \"SQL_CUR01\"", "CLOSE \"SQL_CUR01\""),
        ("DEALLOCATE PREPARE \"_pg3_0\"", "DEALLOCATE _pg3_0"),
        ("DEALLOCATE ALL", "DEALLOCATE ALL"),
        ("DISCARD ALL", "DISCARD ALL"),
        ("UNLISTEN *", "UNLISTEN *"),
        ("EXPLAIN SELECT 1", "EXPLAIN SELECT 1"),
        (
            "EXPLAIN ANALYZE VERBOSE SELECT 1",
            "EXPLAIN ANALYZE SELECT 1",
        ),
        (
            "EXPLAIN (ANALYZE false, FORMAT TEXT, COSTS OFF) (SELECT 1)",
            "EXPLAIN SELECT 1",
        ),
        ("EXPLAIN (SELECT 1)", "EXPLAIN SELECT 1"),
        (
            "EXPLAIN CREATE STREAM a AS SELECT * FROM b",
            "EXPLAIN CREATE STREAM a AS SELECT * FROM b",
        ),
        ("EXPLAIN CTAS_T_1", "EXPLAIN \"ctas_t_1\""),
        (";", ""),
        ("/* nothing */ -- here", ""),
    ] {
        assert_canonical(text, canonical);
    }
}

#[test]
fn scripts_keep_text_and_place() {
    let script = "\u{FEFF}/* ä */ SELECT 'ö;' ;; -- x\n CLOSE ALL; UNLISTEN *;RESET ALL ";
    let parsed = parse_script(script).unwrap();
    let texts: Vec<&str> = parsed
        .iter()
        .map(|statement| statement.text.as_str())
        .collect();
    assert_eq!(
        texts,
        ["SELECT 'ö;'", "CLOSE ALL", "UNLISTEN *", "RESET ALL"]
    );
    for statement in &parsed {
        assert_eq!(&script[statement.span.range()], statement.text);
    }
    assert_eq!(parse_script(" ;; ").unwrap().len(), 1);
    assert_eq!(parse_script("").unwrap()[0].statement, Statement::Empty);
    assert!(parse_statement("SELECT 1; SELECT 2").is_err());
}

/// The standard tree's own places are lines and columns of the script, in characters, so that a planner can report them.
#[test]
fn trees_have_the_script_s_lines_and_columns() {
    let script = "SELECT 'ä\n'; /* ö */\n SELECT 'ü', wrong FROM s EMIT CHANGES";
    let parsed = parse_script(script).unwrap();
    let Statement::Query(query) = &parsed[1].statement else {
        panic!("not a query");
    };
    let select = query.body.body.as_select().unwrap();
    let highwater_sql::sqlparser::ast::SelectItem::UnnamedExpr(Expr::Identifier(ident)) =
        &select.projection[1]
    else {
        panic!("not a name: {select}");
    };
    assert_eq!((ident.span.start.line, ident.span.start.column), (3, 14));
    assert_eq!((ident.span.end.line, ident.span.end.column), (3, 19));
}

#[test]
fn is_distinct_from_takes_an_operand_and_no_more() {
    for condition in [
        "a IS DISTINCT FROM b + 1 OR c",
        "a IS NOT DISTINCT FROM b + 1 OR c",
    ] {
        let parsed =
            highwater_sql::parse_statement(&format!("SELECT 1 FROM t WHERE {condition}")).unwrap();
        let highwater_sql::ast::Statement::Query(query) = parsed.statement else {
            panic!("{condition} is in a query");
        };
        let sqlparser::ast::SetExpr::Select(select) = *query.body.body else {
            panic!("{condition} is in a select");
        };
        let Some(sqlparser::ast::Expr::BinaryOp { left, op, .. }) = select.selection else {
            panic!("{condition} is an OR");
        };
        assert_eq!(op, sqlparser::ast::BinaryOperator::Or);
        assert!(left.to_string().ends_with("DISTINCT FROM b + 1"), "{left}");
    }
}
