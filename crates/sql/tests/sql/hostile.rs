//! Texts made to hurt: every one ends in bounded time and stack, as a statement or as an error.

use std::time::{Duration, Instant};

use highwater_sql::{
    Definitions, Language, Limits, SqlError, format_statement, parse_script, parse_script_in,
    parse_statement_in, statement_is_complete, substitute,
};

/// The stack that parsing, comparing, cloning, printing and dropping a statement may take. Half of what a thread of a server has.
const STACK: usize = if cfg!(debug_assertions) {
    4 << 20
} else {
    1 << 20
};

/// How long one text may take, with room for a loaded machine and an unoptimized build.
const PATIENCE: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });

/// The longest text tried: above the limit on the length of a script.
const MAX_BYTES: usize = 1_200_000;

/// `head`, then `unit` n times, then `middle`, then `tail` n times.
const SHAPES: &[(&str, &str, &str, &str)] = &[
    ("SELECT ", "(", "1", ")"),
    ("SELECT ", "NOT ", "1", ""),
    ("SELECT ", "- ", "1", ""),
    ("SELECT ", "~ ", "1", ""),
    ("SELECT ", "-(", "1", ")"),
    ("SELECT ", "INTERVAL ", "'1'", ""),
    ("SELECT ", "DATE ", "'1'", ""),
    ("SELECT ", "CASE WHEN ", "1", " THEN 1 END"),
    ("SELECT ", "CASE WHEN ", "", ""),
    ("SELECT * FROM ", "(SELECT * FROM ", "t", ") AS x"),
    (
        "SELECT * FROM ",
        "((SELECT * FROM ",
        "t",
        ") AS x JOIN u ON true)",
    ),
    ("SELECT * FROM ", "((SELECT * FROM ", ") ", ""),
    ("SELECT * FROM ", "((SELECT a FROM ", ") ", ""),
    ("SELECT * FROM ", "(", "t", ")"),
    ("SELECT * FROM ", "(", "SELECT 1", ")"),
    ("SELECT EXISTS ", "(", "SELECT 1", ")"),
    ("SELECT 1 UNION ", "(", "SELECT 1", ")"),
    ("SELECT 1 UNION ", "(SELECT 1 UNION ", "SELECT 1", ")"),
    ("SELECT a = ANY ", "(", "SELECT 1", ")"),
    (
        "SELECT * FROM ",
        "(",
        "a JOIN b ON true",
        " JOIN c ON true)",
    ),
    ("SELECT * FROM ", "LATERAL (SELECT * FROM ", "a", ")"),
    ("SELECT ", "a.", "b", ""),
    ("SELECT ", "[", "1", "]"),
    ("SELECT a", "[1]", "", ""),
    ("SELECT a", "[a", "", "]"),
    ("SELECT ", "CAST(", "1", " AS INT)"),
    ("SELECT ", "CAST(", "1", ""),
    ("SELECT CAST(a AS ", "ARRAY<", "INT", ">"),
    ("SELECT 1", "::int", "", ""),
    ("SELECT ", "1+", "1", ""),
    ("SELECT ", "1 + ", "1", ""),
    ("SELECT ", "a = 1 OR ", "b", ""),
    ("SELECT ", "((1 + 1 + 1 + ", "1", ") + 1 + 1 + 1)"),
    (
        "SELECT ",
        "(",
        "1",
        " + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1)",
    ),
    ("SELECT 1", " UNION ALL SELECT 1", "", ""),
    ("SELECT 1", " UNION SELECT 1 INTERSECT SELECT 2", "", ""),
    ("", "WITH x AS (", "SELECT 1", ") SELECT 1"),
    ("WITH a AS (SELECT 1)", ", b AS (SELECT 1)", " SELECT 1", ""),
    ("SELECT 1 ", "/*", "", "*/"),
    ("SELECT 1 ", "/*", "", ""),
    ("SELECT 1", ", 1", "", ""),
    ("SELECT a IN (1", ",1", ")", ""),
    ("SELECT * FROM a", " JOIN b ON true", "", ""),
    ("SELECT * FROM a", " JOIN b", "", " ON true"),
    ("SELECT * FROM a", ", b", "", ""),
    ("SELECT a", " IS NULL", "", ""),
    ("SELECT a", " BETWEEN 1 AND 2", "", ""),
    ("SELECT a", " LIKE b", "", ""),
    ("SELECT a", "->b", "", ""),
    ("SELECT a", " COLLATE x", "", ""),
    ("SELECT a", " AT TIME ZONE 'x'", "", ""),
    ("SELECT a", " OPERATOR(pg_catalog.+) b", "", ""),
    ("SELECT ", "f(", "1", ")"),
    ("SELECT ", "f(", "1", ""),
    ("SELECT ", "EXISTS (SELECT ", "1", ")"),
    ("SELECT ", "a IN ((SELECT ", "1", ") + 1)"),
    ("SELECT ", "a IN ((SELECT ", "", ""),
    ("SELECT ", "MAP(1 := ", "1", ")"),
    ("SELECT ", "MAP(", "1", ")"),
    ("SELECT ", "STRUCT(a := ", "1", ")"),
    ("SELECT ", "sum(x) OVER (PARTITION BY ", "1", ")"),
    ("SELECT ", "(- NOT CASE WHEN f(a[", "1", "]) THEN 1 END)"),
    ("SELECT a FROM s WINDOW TUMBLING ", "(", "", ")"),
    ("SELECT a FROM s PARTITION BY a", ", a", "", ""),
    ("SELECT a FROM s", " EMIT CHANGES", "", ""),
    ("CREATE STREAM s (a ", "ARRAY<", "INT", ">"),
    ("CREATE STREAM s (a ", "STRUCT<a ", "INT", ">"),
    ("CREATE STREAM s (a INT", "[]", ")", ""),
    ("CREATE STREAM s (a INT", ",b INT", ")", ""),
    ("CREATE STREAM s (a INT) WITH (a=1", ",b=1", ")", ""),
    ("INSERT INTO t VALUES (1)", ",(1)", "", ""),
    ("COPY ", "(", "SELECT 1", ") TO STDOUT"),
    ("", "EXPLAIN ", "SELECT 1", ""),
    ("", "SELECT 1;", "", ""),
    ("", ";", "", ""),
    ("SELECT 1", " ", "", ""),
    ("SELECT '", "''", "'", ""),
    ("SELECT \"", "\"\"", "\"", ""),
    ("SELECT ", "$", "", ""),
    ("SELECT ", "x", "", ""),
    ("SELECT ", "é", "", ""),
    ("SELECT ", "9", "", ""),
    ("SELECT 1 ", ">", "", ""),
    ("SELECT 1", " !", "", ""),
    ("SELECT f(", "x => ", "1)", ""),
    ("SELECT f(", "(x, y) => ", "1)", ""),
    ("SELECT f(", "x => f(", "1", ")"),
    ("SELECT f(", "(x => ", "1)", ")"),
    ("SELECT f((x", ", x", ") => 1)", ""),
    ("SELECT ", "((x, x, ", "", ""),
    ("SELECT a", "->*", "", ""),
    ("SELECT a", "->b[1]", "", ""),
    ("SELECT a", "->b[a", "", "]"),
    ("SELECT CAST(a AS ", "MAP<STRING, ", "INT", ">"),
    ("SELECT CAST(a AS ", "STRUCT<a ", "INT", ">"),
    ("SELECT CAST(a AS STRUCT<a INT", ", a INT", ">)", ""),
    ("SELECT CAST(a AS INT", " ARRAY", ")", ""),
    ("SELECT CAST(a AS INT", "[]", ")", ""),
    ("SELECT a::INT", "[]", "", ""),
    ("SELECT ", "CAST(a AS MAP<STRING, INT>)[", "1", "]"),
    ("SELECT a", " LIKE b ESCAPE '!'", "", ""),
    ("SELECT ", "trim(both 'x' from ", "a", ")"),
    ("SELECT ", "DECIMAL ", "'1'", ""),
    ("SELECT * FROM a", " JOIN b WITHIN 1 DAY ON true", "", ""),
    ("SELECT * FROM a JOIN b WITHIN ", "(", "", ")"),
    ("SELECT * FROM s PARTITION BY ", "(", "a", ")"),
    ("CREATE STREAM s (a ", "MAP<STRING, ", "INT", ">"),
    ("CREATE STREAM s (a BYTES HEADER('", "k", "'))", ""),
    ("CREATE TYPE t AS ", "ARRAY<", "INT", ">"),
    ("ALTER STREAM s ADD a INT", ", ADD b INT", "", ""),
    ("ALTER TOPIC t SET (a=1", ",b=1", ")", ""),
    ("ASSERT VALUES s VALUES (1", ",1", ")", ""),
    ("ASSERT VALUES s VALUES ", "(", "1", ")"),
    ("DEFINE a = '", "${a}", "'", ""),
    ("SELECT ", "${a} ", "", ""),
    ("SELECT ", "a@", "", ""),
    ("SELECT ", "1a.", "b", ""),
];

/// Runs `work` on a thread with little stack.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new()
        .stack_size(STACK)
        .spawn(work)
        .unwrap()
        .join()
        .unwrap();
}

/// Does with a text what a server does with it, and checks the time. A machine can stall, so only what is slow twice is slow.
fn use_text(text: &str) {
    let took = timed(text);
    if took > PATIENCE {
        let again = timed(text);
        assert!(
            again < PATIENCE,
            "{text:.100} ({} bytes) took {took:?} and {again:?}",
            text.len()
        );
    }
}

/// Does with a text what a server does with it, in each language, and tells how long that took at the most.
fn timed(text: &str) -> Duration {
    let languages = [Language::POSTGRES, Language::KSQL];
    let times = languages.map(|language| timed_in(text, language));
    times.into_iter().max().unwrap()
}

fn timed_in(text: &str, language: Language) -> Duration {
    let start = Instant::now();
    match parse_script_in(text, language) {
        Ok(statements) => {
            let copy = statements.clone();
            assert!(copy == statements);
            if let [only] = &statements[..] {
                // Signs get brackets when they are written, which may pass the limit on those.
                let written = format_statement(&only.statement, language.identifier_case);
                match parse_statement_in(&written, language) {
                    Ok(again) => assert!(again.statement == only.statement, "{:.100}", text),
                    Err(error) => assert!(
                        matches!(error, SqlError::TooComplex { .. }),
                        "{:.100}: {error}",
                        text
                    ),
                }
            }
        }
        Err(error) => {
            assert!(error.span().start <= error.span().end && error.span().end <= text.len());
            assert!(error.to_string().len() < 1000, "{error}");
        }
    }
    let _ = statement_is_complete(text);
    let _ = substitute(text, &definitions(), language, &Limits::default());
    start.elapsed()
}

/// A variable for the shapes that refer to one.
fn definitions() -> Definitions {
    let mut definitions = Definitions::default();
    definitions.define("a", "(a, '${a}')").unwrap();
    definitions
}

#[test]
fn repeated_shapes_end_in_bounded_time_and_stack() {
    on_small_stack(|| {
        for (head, unit, middle, tail) in SHAPES {
            for count in [
                1, 2, 8, 12, 13, 20, 31, 32, 33, 64, 100, 127, 128, 129, 500, 1000, 10_000,
                100_000, 1_000_000,
            ] {
                if head.len() + count * (unit.len() + tail.len()) + middle.len() > MAX_BYTES {
                    break;
                }
                use_text(&format!(
                    "{head}{}{middle}{}",
                    unit.repeat(count),
                    tail.repeat(count)
                ));
            }
        }
    });
}

/// What an expression or query can be wrapped in, for mixtures: in front and behind.
const WRAPPERS: &[(&str, &str)] = &[
    ("(", ")"),
    ("NOT ", ""),
    ("- ", ""),
    ("f(", ")"),
    ("f(1, 2, ", ", 3)"),
    ("CAST(", " AS INT)"),
    ("CASE WHEN ", " THEN 1 ELSE 2 END"),
    ("CASE 1 WHEN 2 THEN 3 ELSE ", " END"),
    ("(SELECT ", ")"),
    ("(SELECT 1 FROM (SELECT ", ") AS x)"),
    ("(SELECT 1 FROM a JOIN b ON ", ")"),
    ("(WITH c AS (SELECT ", ") SELECT 1)"),
    ("EXISTS (SELECT 1 WHERE ", ")"),
    ("1 IN (", ", 2)"),
    ("1 IN (SELECT ", " UNION SELECT 3)"),
    ("ARRAY[", "]"),
    ("a[", "]"),
    ("STRUCT(f := ", ")"),
    ("MAP('k' := ", ")"),
    ("1 + 2 * ", ""),
    ("(", ") + 1 + 1 + 1 + 1 + 1"),
    ("(", ")::int::text::int"),
    ("(", ") IS NULL IS NOT NULL"),
    ("1 BETWEEN ", " AND 3"),
    ("sum(a) OVER (PARTITION BY ", " ORDER BY b)"),
    ("count(*) FILTER (WHERE ", ")"),
    ("a.b->c = ", ""),
    ("EXTRACT(year FROM ", ")"),
    ("transform(a, x => ", ")"),
    ("reduce(a, 0, (x, y) => ", ")"),
    ("(", ")->f[1]->g"),
    ("CAST(", " AS MAP<STRING, ARRAY<INT>>)"),
    ("a LIKE ", " ESCAPE '!'"),
];

#[test]
fn nested_mixtures_end_in_bounded_time_and_stack() {
    on_small_stack(|| {
        // A linear congruential generator: the same mixtures in every run.
        let mut state = 1_u64;
        let mut next = |bound: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % bound
        };
        let mut parsed = 0;
        for _ in 0..if cfg!(debug_assertions) { 200 } else { 3000 } {
            let (few, depth) = (1 + next(4), 1 + next(140));
            let kinds: Vec<(&str, &str)> =
                (0..few).map(|_| WRAPPERS[next(WRAPPERS.len())]).collect();
            let mut text = "1".to_string();
            for _ in 0..depth {
                let (front, behind) = kinds[next(few)];
                text = format!("{front}{text}{behind}");
            }
            let text = format!("SELECT {text}");
            parsed += usize::from(parse_script(&text).is_ok());
            use_text(&text);
        }
        assert!(
            parsed > 20,
            "mixtures must be statements for the most part, only {parsed} were"
        );
    });
}

#[test]
fn ordinary_nesting_is_allowed() {
    for text in [
        format!("SELECT {}1{}", "(".repeat(100), ")".repeat(100)),
        format!("SELECT {}1{}", "f(".repeat(60), ")".repeat(60)),
        format!(
            "SELECT {}1{}",
            "CASE WHEN a THEN 0 ELSE ".repeat(60),
            " END".repeat(60)
        ),
        format!(
            "SELECT * FROM {}t{}",
            "(SELECT * FROM ".repeat(20),
            ") AS x".repeat(20)
        ),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(200)),
        format!("SELECT a{}", " OR a = 1".repeat(200)),
        format!("SELECT a IN (1{})", ", 1".repeat(50_000)),
        format!("SELECT 1{}", ", a.b + c.d * -1".repeat(5000)),
        format!(
            "INSERT INTO t VALUES (1, 'x'){}",
            ", (1, 'x')".repeat(20_000)
        ),
        format!("SELECT '{}'", "x".repeat(1_000_000)),
        "SELECT 1;".repeat(5000),
        format!("SELECT * FROM a{}", " JOIN b ON a.x = b.x".repeat(100)),
        format!(
            "SELECT {} FROM a",
            vec!["a IS DISTINCT FROM b, extract(year FROM c)::timestamp with time zone"; 300]
                .join(", ")
        ),
    ] {
        if let Err(error) = parse_script(&text) {
            panic!("{:.100}: {error}", text);
        }
    }
}

#[test]
fn limits_are_reported_as_such() {
    for text in [
        "x".repeat(2_000_000),
        "SELECT 1;".repeat(5001),
        format!("SELECT {}", "(".repeat(129)),
        format!("SELECT 1{}", " + 1".repeat(1000)),
        format!("SELECT a IN (1{})", ", 1".repeat(80_000)),
        format!(
            "SELECT * FROM {}t{}",
            "(SELECT * FROM ".repeat(40),
            ") AS x".repeat(40)
        ),
        format!("SELECT * FROM a{}", ", b".repeat(300)),
        format!(
            "CREATE STREAM s (a {}INT{})",
            "ARRAY<".repeat(200),
            ">".repeat(200)
        ),
    ] {
        let error = parse_script(&text).unwrap_err();
        assert!(
            matches!(error, SqlError::TooComplex { .. }),
            "{:.100}: {error}",
            text
        );
    }
}

#[test]
fn distinct_columns_and_properties_take_linear_time() {
    let columns: Vec<String> = (0..30_000).map(|n| format!("c{n} INT")).collect();
    let properties: Vec<String> = (0..10_000).map(|n| format!("p{n}=1")).collect();
    let text = format!(
        "CREATE STREAM s ({}) WITH ({})",
        columns.join(","),
        properties.join(",")
    );
    assert!(parse_script(&text).is_ok());
    use_text(&text);
}
