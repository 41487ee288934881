//! Statement ends in every quoting style.

use super::{Fragment, FragmentKind, Scanner, is_complete, words};

fn scan(script: &str) -> Vec<Fragment> {
    let mut scanner = Scanner::default();
    let mut fragments = scanner.push(script);
    fragments.extend(scanner.finish());
    fragments
}

fn texts(script: &str) -> Vec<String> {
    scan(script)
        .into_iter()
        .map(|fragment| fragment.text)
        .collect()
}

#[test]
fn statements_end_at_semicolons() {
    assert_eq!(
        texts("SELECT 1; SELECT 2;\n SELECT\n 3"),
        ["SELECT 1", "SELECT 2", "SELECT\n 3"]
    );
}

#[test]
fn semicolons_in_quotes_and_comments_end_nothing() {
    for statement in [
        "SELECT 'a;b'",
        "SELECT 'it''s; fine'",
        "SELECT \"a;b\" FROM t",
        "SELECT `a;b` FROM t",
        "SELECT E'a\\';b'",
        "SELECT $$a;b$$",
        "SELECT $q$a;$$;b$q$",
        "SELECT 1 -- no; end\n+ 2",
        "SELECT /* a; /* nested; */ b; */ 1",
        "SELECT 'two\nlines;'",
    ] {
        assert_eq!(
            texts(&format!("{statement}; SELECT 2;")),
            [statement, "SELECT 2"]
        );
    }
}

#[test]
fn a_backslash_escapes_only_in_escape_strings() {
    assert_eq!(
        texts(r"SELECT 'a\'; SELECT 2;"),
        [r"SELECT 'a\'", "SELECT 2"]
    );
}

#[test]
fn parameters_are_no_dollar_quotes() {
    assert_eq!(texts("SELECT $1; SELECT $2;"), ["SELECT $1", "SELECT $2"]);
}

#[test]
fn an_identifier_with_a_dollar_opens_no_quote() {
    assert_eq!(texts("SELECT a$b$; SELECT 2;"), ["SELECT a$b$", "SELECT 2"]);
}

#[test]
fn lines_are_those_of_the_first_word() {
    let lines: Vec<usize> = scan("\n-- first\nSELECT 1;\n\n\\timing\nSELECT\n2;")
        .iter()
        .map(|fragment| fragment.line)
        .collect();
    assert_eq!(lines, [3, 5, 6]);
}

#[test]
fn empty_statements_vanish() {
    assert!(texts(";;\n -- nothing;\n;/* ; */;").is_empty());
}

#[test]
fn commands_stand_on_lines_of_their_own() {
    let fragments = scan("-- note\n\\d flights\nSELECT 1\n\\d\n;");
    assert_eq!(fragments[0].kind, FragmentKind::Command);
    assert_eq!(fragments[0].text, "\\d flights");
    // Inside a statement a backslash belongs to the statement.
    assert_eq!(fragments[1].kind, FragmentKind::Statement);
    assert_eq!(fragments[1].text, "SELECT 1\n\\d");
}

#[test]
fn completeness() {
    for complete in [
        "",
        "  ",
        "SELECT 1;",
        "quit",
        "\\x",
        "-- note",
        "SELECT ';';",
    ] {
        assert!(is_complete(complete), "{complete:?}");
    }
    for open in [
        "SELECT 1",
        "SELECT ';",
        "/* note",
        "SELECT 1; SELECT",
        "SELECT $$;",
    ] {
        assert!(!is_complete(open), "{open:?}");
    }
}

#[test]
fn words_skip_what_is_quoted_or_nested() {
    assert_eq!(
        words("COPY t (a, \"to\") /* FROM */ from STDIN WITH (FORMAT csv)"),
        ["COPY", "T", "FROM", "STDIN", "WITH"]
    );
}

#[test]
fn any_split_of_the_lines_gives_the_same_statements() {
    let script = "SELECT 'a;\nb'; /* c\n; */ SELECT $x$\n;$x$;\n-- d;\nSELECT 3;";
    let mut scanner = Scanner::default();
    let mut fragments = Vec::new();
    for line in script.split('\n') {
        fragments.extend(scanner.push(line));
    }
    assert_eq!(fragments, scan(script));
}
