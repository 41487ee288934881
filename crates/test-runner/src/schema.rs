//! What a case says of the streams and tables that its statements make.

use arrow::datatypes::DataType;
use highwater_planner::{
    catalog::{Column, HeaderColumn, Relation, SourceKind, WINDOWEND, WINDOWSTART},
    types::sql_name,
};

use crate::case::ExpectedSource;

/// The first way in which a relation is not as expected; `None` when it is.
pub fn difference(expected: &ExpectedSource, relation: Option<&Relation>) -> Option<String> {
    let name = &expected.name;
    let Some(relation) = relation else {
        return Some(format!("there is no {} \"{name}\"", expected.kind));
    };
    let kind = match relation.kind {
        SourceKind::Stream => "stream",
        SourceKind::Table => "table",
    };
    if !kind.eq_ignore_ascii_case(&expected.kind) {
        return Some(format!("\"{name}\" is a {kind}, not a {}", expected.kind));
    }
    let wanted = expected.schema.as_ref()?;
    let columns = columns_text(relation);
    (words(wanted) != words(&columns))
        .then(|| format!("the columns of \"{name}\" differ\n  - {wanted}\n  + {columns}"))
}

/// The columns, keys first, as ksqlDB writes them.
fn columns_text(relation: &Relation) -> String {
    let bound = |column: &Column| {
        relation.window.is_some() && matches!(column.name.as_str(), WINDOWSTART | WINDOWEND)
    };
    let keys = relation
        .key_columns()
        .into_iter()
        .map(|position| &relation.columns[position])
        .filter(|column| !bound(column));
    let values = relation.columns.iter().filter(|column| !column.key);
    let key_word = match relation.kind {
        SourceKind::Stream => " KEY",
        SourceKind::Table => " PRIMARY KEY",
    };
    let columns: Vec<String> = keys
        .chain(values)
        .map(|column| {
            let role = match &column.headers {
                Some(HeaderColumn::All) => " HEADERS".to_owned(),
                Some(HeaderColumn::Named(name)) => format!(" HEADER('{name}')"),
                None if column.key => key_word.to_owned(),
                None => String::new(),
            };
            format!("`{}` {}{role}", column.name, type_text(&column.data_type))
        })
        .collect();
    columns.join(", ")
}

fn type_text(data_type: &DataType) -> String {
    match data_type {
        DataType::List(field) => format!("ARRAY<{}>", type_text(field.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| format!("`{}` {}", field.name(), type_text(field.data_type())))
                .collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => format!(
                "MAP<{}, {}>",
                type_text(fields[0].data_type()),
                type_text(fields[1].data_type())
            ),
            _ => sql_name(data_type),
        },
        other => sql_name(other),
    }
}

/// The words and signs of a list of columns: unquoted ones in upper case, types under one name each.
fn words(columns: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = columns.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '`' => words.push(rest.by_ref().take_while(|c| *c != '`').collect()),
            c if c.is_alphanumeric() || c == '_' => {
                let mut word = String::from(c);
                while let Some(c) = rest.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    word.push(c);
                }
                // ksqlDB's own texts say KEY of a table's key, too.
                if word.eq_ignore_ascii_case("PRIMARY") {
                    continue;
                }
                words.push(match word.to_uppercase().as_str() {
                    "VARCHAR" => "STRING".to_owned(),
                    "INTEGER" => "INT".to_owned(),
                    other => other.to_owned(),
                });
            }
            c if c.is_whitespace() => {}
            sign => words.push(sign.to_string()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_does_not_matter_but_quoted_case_does() {
        assert_eq!(
            words("id integer KEY, m MAP<STRING,  VARCHAR>"),
            words("`ID` INT KEY, `M` MAP<STRING, STRING>")
        );
        assert_ne!(words("`id` INT"), words("ID INT"));
    }
}
