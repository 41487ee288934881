//! What is wrong, where, and what to do: messages, positions and hints.

use highwater_sql::{SqlError, parse_script};

fn error(text: &str) -> SqlError {
    match parse_script(text) {
        Err(error) => error,
        Ok(statements) => panic!("{text}\nparsed: {statements:?}"),
    }
}

/// Checks an error's text, and its place by what stands there.
fn assert_error(text: &str, message: &str, at: &str) {
    let error = error(text);
    assert_eq!(error.to_string(), message, "{text}");
    let span = error.span();
    assert!(
        text[span.start..].starts_with(at),
        "{text}\nis about {:?}",
        &text[span.start..]
    );
    if at.is_empty() {
        assert_eq!(span.start, text.len(), "{text}");
    }
}

#[test]
fn syntax_errors_name_the_token_and_what_belongs_there() {
    for (text, message, at) in [
        (
            "FOO BAR",
            "syntax error at or near \"FOO\": expected a statement",
            "FOO",
        ),
        (
            "1",
            "syntax error at or near \"1\": expected a statement",
            "1",
        ),
        (
            "SELECT a FROM WHERE",
            "syntax error at or near \"WHERE\": expected a table",
            "WHERE",
        ),
        (
            "SELECT a +",
            "syntax error at end of input: expected an expression",
            "",
        ),
        (
            "SELECT a + FROM s",
            "syntax error at or near \"FROM\": expected an expression",
            "FROM",
        ),
        (
            "SELECT ä, ) FROM s",
            "syntax error at or near \")\": expected an expression",
            ")",
        ),
        (
            "SELECT 1 1",
            "syntax error at or near \"1\": expected the end of the statement",
            "1",
        ),
        (
            "SELECT 'abc",
            "syntax error at or near \"'abc\": unterminated quoted string",
            "'abc",
        ),
        (
            "SELECT $x$ abc",
            "syntax error at or near \"$x$ abc\": unterminated dollar-quoted string",
            "$x$",
        ),
        (
            "SELECT /* abc",
            "syntax error at or near \"/* abc\": unterminated comment",
            "/*",
        ),
        (
            "CREATE STREAM (a INT)",
            "syntax error at or near \"(\": expected the name of a stream or table",
            "(",
        ),
        (
            "CREATE STREAM select (a INT)",
            "syntax error at or near \"select\": expected the name of a stream or table",
            "select",
        ),
        (
            "CREATE STREAM s (a 5)",
            "syntax error at or near \"5\": expected a type",
            "5",
        ),
        (
            "CREATE STREAM s (a INT",
            "syntax error at end of input: expected \")\"",
            "",
        ),
        (
            "CREATE STREAM s (a INT, A INT)",
            "syntax error at or near \"A\": this column is declared twice",
            "A",
        ),
        (
            "CREATE STREAM s (a ARRAY<INT>>)",
            "syntax error at or near \">>\": this \">>\" closes one type too many",
            ">>",
        ),
        (
            "CREATE STREAM s (a DECIMAL(99))",
            "syntax error at or near \"99\": expected a precision from 1 to 76",
            "99",
        ),
        (
            "CREATE STREAM s (a DECIMAL(9, 10))",
            "syntax error at or near \"10\": expected a scale from 0 to the precision",
            "10",
        ),
        (
            "CREATE STREAM s",
            "syntax error at end of input: expected columns in parentheses, or AS and a query",
            "",
        ),
        (
            "CREATE STREAM s (a INT) WITH (x=1, X=2)",
            "syntax error at or near \"X\": this property is given twice",
            "X=2",
        ),
        (
            "CREATE STREAM s (a INT) WITH (x=y)",
            "syntax error at or near \"y\": expected a text in single quotes, a number, TRUE or FALSE",
            "y",
        ),
        (
            "SELECT a FROM s WINDOW TUMBLING (SIZE 0 HOURS)",
            "syntax error at or near \"0\": this length of time must be positive",
            "0",
        ),
        (
            "SELECT a FROM s WINDOW TUMBLING (SIZE 1 FORTNIGHT)",
            "syntax error at or near \"FORTNIGHT\": expected a unit of time: DAYS, HOURS, MINUTES, SECONDS or MILLISECONDS",
            "FORTNIGHT",
        ),
        (
            "SELECT a FROM s WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 2 HOURS)",
            "syntax error at or near \"ADVANCE\": the advance of a window must not be longer than its size",
            "ADVANCE",
        ),
        (
            "SELECT a FROM s WINDOW TUMBLING (SIZE 9223372036854775807 DAYS)",
            "syntax error at or near \"9223372036854775807\": this length of time is out of range",
            "9223372036854775807",
        ),
        (
            "SELECT a FROM s EMIT CHANGES EMIT FINAL",
            "syntax error at or near \"EMIT\": EMIT is given twice",
            "EMIT FINAL",
        ),
        (
            "SET x",
            "syntax error at end of input: expected \"=\" or TO",
            "",
        ),
        (
            "BEGIN READ",
            "syntax error at or near \"READ\": expected the end of the statement",
            "READ",
        ),
        (
            "BEGIN READ ONLY,",
            "syntax error at end of input: expected ISOLATION LEVEL, READ ONLY, READ WRITE or DEFERRABLE",
            "",
        ),
        (
            "COPY (SELECT 1) FROM STDIN",
            "syntax error at or near \"FROM\": expected TO",
            "FROM",
        ),
        (
            "COPY s FROM STDIN (DELIMITER 'ab')",
            "syntax error at or near \"'ab'\": expected one ASCII character in single quotes",
            "'ab'",
        ),
        (
            "FETCH 1 FROM c WITH (timeout = 'soon')",
            "syntax error at or near \"'soon'\": expected a length of time such as '1s' or '500 ms'",
            "'soon'",
        ),
        (
            "SELECT 1; SELECT 2;; SELEKT 3",
            "syntax error at or near \"SELEKT\": expected a statement",
            "SELEKT",
        ),
        (
            "INSERT INTO s (a, b, a) VALUES (1, 2, 3)",
            "syntax error at or near \"(\": column \"a\" is named twice",
            "(a, b",
        ),
        (
            "SELECT a FROM s WHERE b = ${limit}",
            "syntax error at or near \"${limit}\": this variable is not defined",
            "${limit}",
        ),
        (
            "SELECT a FROM s; x",
            "syntax error at or near \"x\": expected a statement",
            "x",
        ),
    ] {
        assert_error(text, message, at);
    }
}

#[test]
fn statements_that_are_not_ours_are_named() {
    for (text, message) in [
        ("CREATE INDEX i ON t (a)", "CREATE INDEX is not supported"),
        (
            "CREATE UNIQUE INDEX i ON t (a)",
            "CREATE INDEX is not supported",
        ),
        (
            "CREATE OR REPLACE VIEW v AS SELECT 1",
            "CREATE VIEW is not supported",
        ),
        (
            "CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1",
            "CREATE MATERIALIZED VIEW is not supported",
        ),
        (
            "CREATE TEMP TABLE t (a INT)",
            "CREATE TEMPORARY TABLE is not supported",
        ),
        (
            "CREATE SOURCE CONNECTOR c WITH (a='b')",
            "CREATE CONNECTOR is not supported",
        ),
        (
            "CREATE SOURCE TABLE t AS SELECT 1",
            "SOURCE beside AS is not supported",
        ),
        (
            "CREATE TYPE a AS ENUM ('x')",
            "CREATE TYPE AS ENUM is not supported",
        ),
        ("DROP VIEW v", "DROP VIEW is not supported"),
        (
            "ALTER TABLE t DROP COLUMN a",
            "ALTER TABLE .. DROP is not supported",
        ),
        ("ALTER INDEX i RENAME TO j", "ALTER INDEX is not supported"),
        ("UPDATE t SET a = 1", "UPDATE is not supported"),
        ("DELETE FROM t WHERE a = 1", "DELETE is not supported"),
        ("TRUNCATE t", "TRUNCATE is not supported"),
        ("VACUUM", "VACUUM is not supported"),
        ("GRANT ALL ON t TO u", "GRANT is not supported"),
        ("PREPARE p AS SELECT 1", "PREPARE is not supported"),
        ("LISTEN c", "LISTEN is not supported"),
        ("SHOW CONNECTORS", "SHOW CONNECTORS is not supported"),
        ("LIST SOURCE CONNECTORS", "SHOW CONNECTORS is not supported"),
        (
            "DESCRIBE CONNECTOR c",
            "DESCRIBE CONNECTOR is not supported",
        ),
        (
            "INSERT INTO s WITH (query_id = 'q') VALUES (1)",
            "WITH (..) in INSERT .. VALUES is not supported",
        ),
        ("DISCARD TEMP", "DISCARD TEMP is not supported"),
        ("COMMIT AND CHAIN", "AND CHAIN is not supported"),
        ("COMMIT PREPARED 'x'", "COMMIT PREPARED is not supported"),
        (
            "DECLARE c SCROLL CURSOR FOR SELECT 1",
            "SCROLL is not supported",
        ),
        (
            "DECLARE c BINARY CURSOR FOR SELECT 1",
            "a BINARY cursor is not supported",
        ),
        ("FETCH BACKWARD 1 FROM c", "FETCH BACKWARD is not supported"),
        (
            "FETCH -1 FROM c",
            "FETCH of a negative count is not supported",
        ),
        ("MOVE 1 FROM c", "MOVE is not supported"),
        (
            "COPY s FROM '/etc/passwd'",
            "COPY with a file of the server is not supported",
        ),
        (
            "COPY s TO PROGRAM 'cat'",
            "COPY with a file of the server is not supported",
        ),
        (
            "COPY s FROM STDIN (FORMAT binary)",
            "COPY in binary format is not supported",
        ),
        (
            "COPY s FROM STDIN BINARY",
            "COPY option BINARY is not supported",
        ),
        (
            "COPY s FROM STDIN (FREEZE)",
            "COPY option FREEZE is not supported",
        ),
        (
            "COPY s FROM STDIN (ENCODING 'latin1')",
            "an encoding other than UTF8 is not supported",
        ),
        (
            "INSERT INTO s DEFAULT VALUES",
            "INSERT with DEFAULT VALUES is not supported",
        ),
        (
            "INSERT INTO s VALUES (1) ON CONFLICT DO NOTHING",
            "ON CONFLICT is not supported",
        ),
        (
            "INSERT INTO s VALUES (1) RETURNING a",
            "RETURNING is not supported",
        ),
        (
            "INSERT INTO other.s VALUES (1)",
            "schema \"other\" is not supported",
        ),
        ("SELECT 1 INTO t", "SELECT INTO is not supported"),
        (
            "WITH x AS (SELECT 1) DELETE FROM t",
            "DELETE is not supported",
        ),
        (
            "SELECT * FROM (SELECT 1 FROM a JOIN b WITHIN 1 HOUR ON a.x = b.x) AS t",
            "WITHIN in a subquery is not supported",
        ),
        (
            "SELECT * FROM (SELECT * FROM s EMIT CHANGES) AS t",
            "EMIT in a subquery is not supported",
        ),
        (
            "SELECT a FROM s UNION SELECT a FROM t WINDOW TUMBLING (SIZE 1 DAY)",
            "WINDOW beside UNION, INTERSECT or EXCEPT is not supported",
        ),
        (
            "CREATE STREAM s (a INT NOT NULL)",
            "NULL and NOT NULL of a column is not supported",
        ),
        (
            "CREATE STREAM s (a BYTES DEFAULT 'k')",
            "DEFAULT of a column is not supported",
        ),
        ("CREATE STREAM s (a JSONB)", "type JSONB is not supported"),
        (
            "CREATE STREAM s (a INT) AS SELECT 1",
            "a list of columns beside AS is not supported",
        ),
        ("DROP STREAM a, b", "DROP of several names is not supported"),
        ("DROP TABLE t CASCADE", "CASCADE is not supported"),
        (
            "EXPLAIN EXPLAIN SELECT 1",
            "EXPLAIN of this statement is not supported",
        ),
        (
            "EXPLAIN (FORMAT JSON) SELECT 1",
            "this EXPLAIN format is not supported",
        ),
    ] {
        let error = error(text);
        assert_eq!(error.to_string(), message, "{text}");
        assert!(matches!(error, SqlError::Unsupported { .. }), "{text}");
    }
}

#[test]
fn hints_tell_what_to_use() {
    for (text, hint) in [
        (
            "CREATE VIEW v AS SELECT 1",
            "use CREATE TABLE .. AS or CREATE STREAM .. AS",
        ),
        ("CREATE STREAM s (a UUID)", "use STRING"),
        ("PRINT ${topic}", "DEFINE topic = '..' gives it a value"),
        (
            "CREATE STREAM order (a INT)",
            "a reserved word can be a name in double quotes",
        ),
        (
            "COPY s FROM 'x'",
            "use STDIN and let the client read or write the file, in psql with \\copy",
        ),
    ] {
        assert_eq!(error(text).hint(), Some(hint), "{text}");
    }
}

#[test]
fn positions_count_characters() {
    let script = "SELECT 'äöü'; SELECT ü FROM";
    let error = error(script);
    assert_eq!(error.near(), None);
    assert_eq!(error.position(script), script.chars().count() + 1);
    assert_eq!(
        highwater_sql::char_position(script, script.find("FROM").unwrap()),
        24
    );
}

#[test]
fn characters_that_no_statement_holds() {
    let error = error("SELECT '\0'");
    assert!(matches!(error, SqlError::InvalidText { .. }));
    assert_eq!(error.position("SELECT '\0'"), 9);
}

#[test]
fn control_characters_are_not_repeated() {
    let shown = error("SELECT 1 \u{202E}x\u{1b}y").to_string();
    assert!(!shown.contains(['\u{202E}', '\u{1b}']), "{shown}");
}
