//! What is written parses to what it was written from; what is garbage is refused without harm.

mod ksql;
mod names;
mod pieces;
mod queries;
mod statements;

use highwater_sql::{
    Language, Statement, format_statement, parse_script, parse_statement, parse_statement_in,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use pieces::PIECES;
use statements::{small_statement, statement};

/// A column may be called as a clause begins; behind a star that multiplies it is one, behind a wildcard it is not.
#[test]
fn a_word_behind_a_star_is_a_column_or_a_clause() {
    for text in [
        "CREATE STREAM a AS SELECT b FROM s GROUP BY b * window PARTITION BY c EMIT CHANGES",
        "SELECT 2 * emit FROM s WHERE a * window = 1 PARTITION BY b ORDER BY c EMIT CHANGES",
        "SELECT count(*) FROM s WINDOW TUMBLING (SIZE 1 MINUTES) GROUP BY a * b EMIT CHANGES",
        "SELECT s.*, * FROM s EMIT CHANGES LIMIT 1",
    ] {
        let statement = parse_statement(text).unwrap().statement;
        let written = statement.to_string();
        assert_eq!(
            parse_statement(&written).unwrap().statement,
            statement,
            "{text}\n{written}"
        );
    }
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

    /// The same in ksqlDB's dialect, where the names without quotes of the text become other names.
    #[test]
    fn written_statements_parse_to_themselves_in_ksql(statement in statement()) {
        let Ok(parsed) = parse_statement_in(&statement.to_string(), Language::KSQL) else {
            // Operators that only PostgreSQL has.
            return Ok(());
        };
        let case = Language::KSQL.identifier_case;
        let text = format_statement(&parsed.statement, case);
        let again = parse_statement_in(&text, Language::KSQL);
        prop_assert!(again.is_ok(), "{}\n{}", text, again.unwrap_err());
        let again = again.unwrap().statement;
        prop_assert_eq!(&again, &parsed.statement, "{}", text);
        prop_assert_eq!(format_statement(&again, case), text);
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
