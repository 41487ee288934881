//! What the SQL part of a case may hold beside one SQL statement.
//!
//! | text | meaning |
//! |---|---|
//! | `watch NAME: SELECT .. EMIT CHANGES` | starts a push query on a connection of its own |
//! | `watched NAME N` | the next N rows of it, waiting for them |
//! | `unwatch NAME` | cancels it; the server must answer 57014 |
//! | `COPY .. FROM STDIN ..;` and lines | sends the lines as COPY data |
//! | `COPY .. TO STDOUT ..` | answers each line of the COPY data as a row of one text |
//! | anything else | goes to the server as it is |

use crate::WireError;

/// One record's text, understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Directive<'a> {
    Watch { name: &'a str, sql: &'a str },
    Watched { name: &'a str, rows: usize },
    Unwatch { name: &'a str },
    CopyIn { sql: &'a str, data: String },
    CopyOut { sql: &'a str },
    Sql(&'a str),
}

impl<'a> Directive<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, WireError> {
        let wrong = |reason: &str| WireError::client(format!("{reason}: {text}"));
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match word {
            "watch" => {
                let (name, sql) = rest
                    .split_once(':')
                    .ok_or_else(|| wrong("`watch NAME: QUERY` expected"))?;
                Ok(Self::Watch {
                    name: name.trim(),
                    sql: sql.trim(),
                })
            }
            "watched" => {
                let (name, rows) = rest
                    .trim()
                    .split_once(' ')
                    .ok_or_else(|| wrong("`watched NAME ROWS` expected"))?;
                let rows = rows
                    .trim()
                    .parse()
                    .map_err(|_| wrong("a number of rows expected"))?;
                Ok(Self::Watched { name, rows })
            }
            "unwatch" => Ok(Self::Unwatch { name: rest.trim() }),
            _ if word.eq_ignore_ascii_case("copy") => Ok(Self::parse_copy(text)),
            _ => Ok(Self::Sql(text)),
        }
    }

    fn parse_copy(text: &'a str) -> Self {
        let upper = text.to_ascii_uppercase();
        if let Some(from) = upper.find("FROM STDIN") {
            // The statement ends with a semicolon at the end of a line, as in a psql script; the lines after it are the data.
            let end = text[from..].find(";\n").map_or(text.len(), |at| from + at);
            let data: String = text[end..]
                .lines()
                .skip(1)
                .map(|line| format!("{line}\n"))
                .collect();
            return Self::CopyIn {
                sql: &text[..end],
                data,
            };
        }
        if upper.contains("TO STDOUT") {
            Self::CopyOut { sql: text }
        } else {
            Self::Sql(text)
        }
    }

    /// +1 when the record begins something that dies with its connection (a watch, a cursor, a transaction), -1 when it ends it.
    pub(crate) fn held(text: &str) -> i32 {
        let mut words = text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .map(str::to_ascii_lowercase);
        match words.next().unwrap_or_default().as_str() {
            "watch" | "declare" | "begin" | "start" => 1,
            "unwatch" | "close" | "commit" | "end" | "rollback" | "abort" => -1,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watch_directives_are_told_from_sql() {
        let watch = Directive::parse("watch w: SELECT 1 EMIT CHANGES").unwrap();
        assert_eq!(
            watch,
            Directive::Watch {
                name: "w",
                sql: "SELECT 1 EMIT CHANGES"
            }
        );
        assert_eq!(
            Directive::parse("watched w 3").unwrap(),
            Directive::Watched { name: "w", rows: 3 }
        );
        assert_eq!(
            Directive::parse("unwatch w").unwrap(),
            Directive::Unwatch { name: "w" }
        );
        assert_eq!(
            Directive::parse("SELECT 1").unwrap(),
            Directive::Sql("SELECT 1")
        );
        assert!(Directive::parse("watched w many").is_err());
    }

    #[test]
    fn copy_data_begins_after_the_statement() {
        let copy = Directive::parse("COPY s (a, b) FROM STDIN (DELIMITER ';');\na;1\nb;2").unwrap();
        let Directive::CopyIn { sql, data } = copy else {
            panic!("{copy:?}")
        };
        assert_eq!(sql, "COPY s (a, b) FROM STDIN (DELIMITER ';')");
        assert_eq!(data, "a;1\nb;2\n");
    }

    #[test]
    fn a_transaction_is_held_until_it_ends() {
        assert_eq!(Directive::held("BEGIN READ ONLY"), 1);
        assert_eq!(Directive::held("watch w: SELECT 1"), 1);
        assert_eq!(Directive::held("commit;"), -1);
        assert_eq!(Directive::held("SELECT 1"), 0);
    }
}
