//! What the line editor asks while a statement is typed: completion, colours, and whether Enter ends it.
//!
//! Names come from the server ([`Names::fetch`]) when the shell starts and after each statement that creates or drops something.
//! Completion looks at the words before the cursor only; it proposes, and is silent where it knows nothing.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use rustyline::{
    Context, Helper, Hinter,
    completion::{Completer, Pair},
    highlight::{CmdKind, Highlighter},
    validate::{ValidationContext, ValidationResult, Validator},
};
use tokio::sync::watch;

use crate::{
    client::Connection,
    command,
    input::{self, Kind, Mode, lex},
};

/// Streams and tables whose columns are fetched; beyond these only names are completed.
const DESCRIBE_LIMIT: usize = 200;

/// Words of the dialect.
const KEYWORDS: &[&str] = &[
    "ADD COLUMN",
    "ADVANCE BY",
    "ALL",
    "ALTER",
    "ALTER STREAM",
    "ALTER SYSTEM",
    "ALTER TABLE",
    "AND",
    "ARRAY",
    "AS",
    "ASC",
    "ASSERT",
    "ASSERT TOPIC",
    "AT TIME ZONE",
    "AVG",
    "BACKUP TO",
    "BEGINNING",
    "BETWEEN",
    "BIGINT",
    "BOOLEAN",
    "BY",
    "BYTES",
    "CASE",
    "CAST",
    "CHANGES",
    "COPY",
    "COUNT",
    "CREATE",
    "CREATE OR REPLACE",
    "CREATE SOURCE",
    "CREATE STREAM",
    "CREATE TABLE",
    "CREATE TYPE",
    "CROSS JOIN",
    "CURSOR",
    "DATE",
    "DAY",
    "DAYS",
    "DECIMAL",
    "DECLARE",
    "DEFINE",
    "DELETE TOPIC",
    "DESC",
    "DESCRIBE",
    "DESCRIBE FUNCTION",
    "DISTINCT",
    "DOUBLE",
    "DROP",
    "DROP STREAM",
    "DROP TABLE",
    "DROP TYPE",
    "ELSE",
    "EMIT",
    "EMIT CHANGES",
    "EMIT CHANGES AFTER STEP",
    "EMIT CHANGES WITH SNAPSHOT",
    "EMIT CHANGES WITH STEP",
    "EMIT FINAL",
    "END",
    "ESCAPE",
    "EXPLAIN",
    "EXTENDED",
    "FALSE",
    "FETCH",
    "FINAL",
    "FROM",
    "FULL JOIN",
    "FUNCTIONS",
    "GRACE PERIOD",
    "GROUP BY",
    "HAVING",
    "HEADER",
    "HEADERS",
    "HOPPING",
    "HOUR",
    "HOURS",
    "IF EXISTS",
    "IF NOT EXISTS",
    "IN",
    "INNER JOIN",
    "INSERT INTO",
    "INT",
    "INTERVAL",
    "IS",
    "IS DISTINCT FROM",
    "IS NOT DISTINCT FROM",
    "JOIN",
    "KEY",
    "LEFT JOIN",
    "LIKE",
    "LIMIT",
    "LIST",
    "MAP",
    "MAX",
    "MILLISECONDS",
    "MIN",
    "MINUTE",
    "MINUTES",
    "NOT",
    "NOT EXISTS",
    "NULL",
    "ON",
    "OR",
    "OR REPLACE",
    "ORDER BY",
    "OUTER JOIN",
    "PARTITION BY",
    "PAUSE",
    "PRIMARY KEY",
    "PRINT",
    "PROPERTIES",
    "QUERIES",
    "RESET",
    "RESUME",
    "RETENTION",
    "RIGHT JOIN",
    "RUN SCRIPT",
    "SAMPLE",
    "SECOND",
    "SECONDS",
    "SELECT",
    "SESSION",
    "SET",
    "SHOW",
    "SIZE",
    "STDIN",
    "STDOUT",
    "STREAM",
    "STREAMS",
    "STRING",
    "STRUCT",
    "SUM",
    "TABLE",
    "TABLES",
    "TERMINATE",
    "THEN",
    "TIME",
    "TIMEOUT",
    "TIMESTAMP",
    "TOPICS",
    "TRUE",
    "TUMBLING",
    "TYPES",
    "UNDEFINE",
    "UNION",
    "UNSET",
    "VALUES",
    "VARCHAR",
    "VARIABLES",
    "WHEN",
    "WHERE",
    "WINDOW",
    "WITH",
    "WITHIN",
];

/// After these words a stream or table is named.
const BEFORE_RELATION: &[&str] = &[
    "FROM", "JOIN", "INTO", "DESCRIBE", "STREAM", "TABLE", "COPY", "PRINT", "\\D", "\\COPY",
];

/// The server's streams and tables with their columns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Names(BTreeMap<String, Vec<String>>);

impl Names {
    /// Asks the server. What it does not answer is left out, since completion is a convenience.
    pub async fn fetch(connection: &Connection) -> Self {
        let mut names = BTreeMap::new();
        for list in ["SHOW STREAMS", "SHOW TABLES"] {
            for name in connection.first_column(list).await.unwrap_or_default() {
                names.insert(name, Vec::new());
            }
        }
        for (name, columns) in names.iter_mut().take(DESCRIBE_LIMIT) {
            // In quotes, since the session may fold names to either case.
            let describe = format!("DESCRIBE \"{}\"", name.replace('"', "\"\""));
            *columns = connection.first_column(&describe).await.unwrap_or_default();
        }
        Self(names)
    }

    fn relations(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The columns of a stream or table, whose name may be typed in any case.
    fn columns(&self, relation: &str) -> Option<&[String]> {
        let any_case = || {
            let mut names = self.0.iter();
            names.find(|(name, _)| name.eq_ignore_ascii_case(relation))
        };
        let exact = self.0.get_key_value(relation);
        exact
            .or_else(any_case)
            .map(|(_, columns)| columns.as_slice())
    }
}

/// A name as it must be written: in quotes unless it is what an unquoted one would fold to.
fn quote(name: &str) -> Cow<'_, str> {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain {
        name.into()
    } else {
        format!("\"{}\"", name.replace('"', "\"\"")).into()
    }
}

/// Proposals for the word that ends at `position`: where it starts, and what could stand there.
fn complete(text: &str, position: usize, names: &Names) -> (usize, Vec<String>) {
    let before = &text[..position];
    let start = before
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\\'))
        .map_or(0, |at| {
            at + before[at..].chars().next().map_or(1, char::len_utf8)
        });
    let word = &before[start..];
    let context = &before[..start];
    if context.trim().is_empty() && word.starts_with('\\') {
        return (start, matching(word, command::NAMES.iter().copied()));
    }
    if let Some(qualified) = context.strip_suffix('.') {
        let columns = names.columns(last_word(qualified)).unwrap_or_default();
        return (start, matching(word, columns.iter().map(String::as_str)));
    }
    let previous = last_word(context.trim_end()).to_uppercase();
    if BEFORE_RELATION.contains(&previous.as_str()) {
        let keywords = KEYWORDS.iter().copied().filter(|_| !word.is_empty());
        return (start, with_keywords(word, names.relations(), keywords));
    }
    let mentioned = mentioned_columns(text, names);
    if word.is_empty() {
        return (
            start,
            mentioned
                .into_iter()
                .map(|name| quote(name).into_owned())
                .collect(),
        );
    }
    let known = mentioned.into_iter().chain(names.relations());
    (start, with_keywords(word, known, KEYWORDS.iter().copied()))
}

/// Names first, keywords after them in the case that is being typed.
fn with_keywords<'a>(
    word: &str,
    names: impl Iterator<Item = &'a str>,
    keywords: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let lower = word.chars().any(char::is_lowercase);
    let keywords = matching(word, keywords).into_iter().map(|keyword| {
        if lower {
            keyword.to_lowercase()
        } else {
            keyword
        }
    });
    let names = matching(word, names)
        .into_iter()
        .map(|name| quote(&name).into_owned());
    let mut seen = BTreeSet::new();
    names
        .chain(keywords)
        .filter(|proposal| seen.insert(proposal.clone()))
        .collect()
}

fn matching<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<String> {
    let starts = |candidate: &&str| {
        candidate
            .get(..word.len())
            .is_some_and(|front| front.eq_ignore_ascii_case(word))
    };
    candidates.filter(starts).map(str::to_owned).collect()
}

fn last_word(text: &str) -> &str {
    let start = text
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\\'))
        .map_or(0, |at| {
            at + text[at..].chars().next().map_or(1, char::len_utf8)
        });
    &text[start..]
}

/// The columns of the streams and tables that the statement names anywhere; of all when it names none yet.
fn mentioned_columns<'a>(text: &str, names: &'a Names) -> Vec<&'a str> {
    let words: BTreeSet<String> = text
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map(str::to_lowercase)
        .collect();
    let columns = |all: bool| -> BTreeSet<&'a str> {
        let relations = names
            .0
            .iter()
            .filter(|(name, _)| all || words.contains(&name.to_lowercase()));
        relations
            .flat_map(|(_, columns)| columns)
            .map(String::as_str)
            .collect()
    };
    let mentioned = columns(false);
    let chosen = if mentioned.is_empty() {
        columns(true)
    } else {
        mentioned
    };
    chosen.into_iter().collect()
}

/// The line editor's view of SQL.
#[derive(Helper, Hinter)]
pub(crate) struct SqlHelper {
    names: watch::Receiver<Names>,
    statements: bool,
}

impl SqlHelper {
    /// A helper that completes these names.
    pub fn new(names: watch::Receiver<Names>) -> Self {
        Self {
            names,
            statements: true,
        }
    }

    /// Whether statements are read, which may take many lines, or lines of data.
    pub fn expect_statements(&mut self, statements: bool) {
        self.statements = statements;
    }
}

impl Completer for SqlHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _context: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        if !self.statements {
            return Ok((position, Vec::new()));
        }
        let (start, proposals) = complete(line, position, &self.names.borrow());
        let pairs = proposals.into_iter().map(|proposal| Pair {
            display: proposal.clone(),
            replacement: proposal,
        });
        Ok((start, pairs.collect()))
    }
}

impl Validator for SqlHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let ends = !self.statements || input::is_complete(context.input());
        Ok(if ends {
            ValidationResult::Valid(None)
        } else {
            ValidationResult::Incomplete
        })
    }
}

/// Terminal colours of lexemes.
const BOLD: &str = "\x1b[1m";
const GREEN: &str = "\x1b[32m";
const DIM: &str = "\x1b[2m";
const PLAIN: &str = "\x1b[0m";

impl Highlighter for SqlHelper {
    fn highlight<'l>(&self, line: &'l str, _position: usize) -> Cow<'l, str> {
        if self.statements {
            Cow::Owned(colour(line))
        } else {
            Cow::Borrowed(line)
        }
    }

    fn highlight_char(&self, _line: &str, _position: usize, _kind: CmdKind) -> bool {
        self.statements
    }
}

fn colour(statement: &str) -> String {
    let mut coloured = String::with_capacity(statement.len() * 2);
    let mut mode = Mode::Normal;
    let mut rest = statement;
    while !rest.is_empty() {
        let (length, kind) = lex(&mut mode, rest);
        let lexeme = &rest[..length];
        rest = &rest[length..];
        let style = match kind {
            Kind::Comment => Some(DIM),
            Kind::Quoted => Some(GREEN),
            Kind::Word if is_keyword(lexeme) => Some(BOLD),
            Kind::Word | Kind::Space | Kind::Semicolon | Kind::Other => None,
        };
        match style {
            Some(style) => coloured.extend([style, lexeme, PLAIN]),
            None => coloured.push_str(lexeme),
        }
    }
    coloured
}

fn is_keyword(word: &str) -> bool {
    KEYWORDS
        .iter()
        .flat_map(|phrase| phrase.split(' '))
        .any(|keyword| keyword.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let columns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Names(BTreeMap::from([
            (
                "flights".to_owned(),
                columns(&["carrier", "dep_delay", "dest"]),
            ),
            ("airlines".to_owned(), columns(&["carrier", "name"])),
            ("Mixed".to_owned(), columns(&["a"])),
        ]))
    }

    fn proposals(text: &str) -> Vec<String> {
        let position = text.find('|').unwrap_or(text.len());
        complete(&text.replace('|', ""), position, &names()).1
    }

    #[test]
    fn relations_after_from() {
        assert_eq!(
            proposals("SELECT * FROM "),
            ["\"Mixed\"", "airlines", "flights"]
        );
        assert_eq!(proposals("select * from fl"), ["flights"]);
        // A relation comes before every keyword.
        assert_eq!(proposals("\\d a")[..2], ["airlines", "add column"]);
    }

    #[test]
    fn columns_of_the_relations_that_are_named() {
        assert_eq!(
            proposals("SELECT de| FROM flights"),
            [
                "dep_delay",
                "dest",
                "decimal",
                "declare",
                "define",
                "delete topic",
                "desc",
                "describe",
                "describe function"
            ]
        );
        assert_eq!(proposals("SELECT | FROM airlines"), ["carrier", "name"]);
        assert_eq!(proposals("SELECT airlines.|"), ["carrier", "name"]);
        assert_eq!(proposals("SELECT flights.de|"), ["dep_delay", "dest"]);
    }

    #[test]
    fn keywords_keep_the_case_that_is_typed() {
        assert_eq!(proposals("TERM"), ["TERMINATE"]);
        assert_eq!(proposals("term"), ["terminate"]);
    }

    #[test]
    fn a_proposal_replaces_the_word_only() {
        assert_eq!(complete("SELECT * FROM fl", 16, &names()).0, 14);
        assert_eq!(complete("SELECT é, fl", 13, &names()).0, 11);
    }

    #[test]
    fn commands() {
        assert_eq!(proposals("\\ti"), ["\\timing"]);
        assert!(proposals("SELECT \\ti").is_empty());
    }

    #[test]
    fn nothing_is_known_of_an_unknown_relation() {
        assert!(proposals("SELECT nowhere.").is_empty());
    }

    #[test]
    fn colours_change_no_text() {
        let statement = "SELECT 'a' -- note\nFROM flights";
        let coloured = colour(statement);
        let plain = [BOLD, GREEN, DIM, PLAIN]
            .iter()
            .fold(coloured.clone(), |text, code| text.replace(code, ""));
        assert_eq!(plain, statement);
        assert!(coloured.starts_with("\x1b[1mSELECT\x1b[0m \x1b[32m'a'\x1b[0m"));
        assert!(coloured.ends_with(" flights"));
    }

    #[test]
    fn names_that_fold_differently_are_quoted() {
        assert_eq!(quote("flights_2"), "flights_2");
        assert_eq!(quote("Mixed"), "\"Mixed\"");
        assert_eq!(quote("a\"b"), "\"a\"\"b\"");
        assert_eq!(quote("2nd"), "\"2nd\"");
    }
}
