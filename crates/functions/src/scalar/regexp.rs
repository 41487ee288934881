//! Functions of regular expressions. A pattern that cannot run makes the row NULL, and the processing log says why.

use std::{cell::RefCell, rc::Rc, sync::Arc};

use arrow::array::{ArrayRef, ListBuilder, StringArray, StringBuilder};
use datafusion::common::Result;

use crate::{
    cache::{Kept, compiled},
    call::{Call, Row, Values, settle, value},
    function::{Category, Function, Overload},
    pattern::JavaRegex,
    scalar::{array::element_field, json::build_text_lists, text::TEXT},
    signature::{Kind, Param, param},
};

thread_local! {
    static PATTERNS: Kept<JavaRegex> = RefCell::default();
}

const PATTERN: Param = param(
    "pattern",
    Kind::Text,
    "a regular expression in Java's syntax",
);
const GROUP: Param = param(
    "group",
    Kind::Int,
    "number of a capturing group; 0, also without it, is the whole match",
);

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "regexp_extract",
        Category::Regex,
        "The first match of a regular expression, or a group of it; NULL without a match.",
        &[
            Overload::new(&[PATTERN, TEXT], Kind::Text, extract),
            Overload::new(&[PATTERN, TEXT, GROUP], Kind::Text, extract),
        ],
        &[("regexp_extract('([a-z]+)-([0-9]+)', 'ab-12', 2)", "'12'")],
    ),
    Function::new(
        "regexp_extract_all",
        Category::Regex,
        "All matches of a regular expression, or a group of each.",
        &[
            Overload::new(&[PATTERN, TEXT], Kind::Array(&Kind::Text), extract_all),
            Overload::new(&[PATTERN, TEXT, GROUP], Kind::Array(&Kind::Text), extract_all),
        ],
        &[("regexp_extract_all('[0-9]+', '1 or 22')", "ARRAY['1', '22']")],
    ),
    Function::new(
        "regexp_replace",
        Category::Regex,
        "A text with all matches of a regular expression replaced; $1 or ${name} in the replacement stands for a group.",
        &[Overload::new(
            &[TEXT, PATTERN, param("replacement", Kind::Text, "what takes the place of a match")],
            Kind::Text,
            |call| {
                let (text, pattern, replacement) = (call.text(0), call.text(1), call.text(2));
                Ok(call.texts(|row| {
                    let text = value!(text.get(row));
                    let pattern = regex(value!(pattern.get(row)))?;
                    pattern.replace_all(text, value!(replacement.get(row))).map(Some)
                }))
            },
        )],
        &[("regexp_replace('a1b22', '[0-9]+', '#')", "'a#b#'")],
    )
    .ksql_only(),
    Function::new(
        "regexp_split_to_array",
        Category::Regex,
        "The parts of a text between the matches of a regular expression.",
        &[Overload::new(&[TEXT, PATTERN], Kind::Array(&Kind::Text), |call| {
            let (text, pattern) = (call.text(0), call.text(1));
            build_text_lists(call, |row| {
                let (text, pattern) = (value!(text.get(row)), value!(pattern.get(row)));
                let pattern = regex(pattern)?;
                Ok(Some(split(text, &pattern)))
            })
        })],
        &[("regexp_split_to_array('a1b22c', '[0-9]+')", "ARRAY['a', 'b', 'c']")],
    ),
];

fn regex(pattern: &str) -> Result<Rc<JavaRegex>, String> {
    compiled(&PATTERNS, pattern, JavaRegex::compile)
}

/// The pattern, text and group of a row.
struct Extraction<'a> {
    pattern: Values<'a, StringArray>,
    text: Values<'a, StringArray>,
}

impl<'a> Extraction<'a> {
    fn new(call: &'a Call) -> Self {
        Self {
            pattern: call.text(0),
            text: call.text(1),
        }
    }

    fn row(&self, call: &Call, row: usize) -> Row<(Rc<JavaRegex>, &'a str, usize)> {
        let group = match call.count() {
            2 => 0,
            _ => value!(call.int(2).get(row)),
        };
        let (pattern, text) = (value!(self.pattern.get(row)), value!(self.text.get(row)));
        let pattern = regex(pattern)?;
        match usize::try_from(group) {
            Ok(group) if group < pattern.regex().captures_len() => Ok(Some((pattern, text, group))),
            _ => Err(format!("the regular expression has no group {group}")),
        }
    }
}

fn extract(call: &Call) -> Result<ArrayRef> {
    let rows = Extraction::new(call);
    Ok(call.texts(|row| {
        let (pattern, text, group) = value!(rows.row(call, row)?);
        let captures = value!(pattern.regex().captures(text));
        Ok(captures.get(group).map(|found| found.as_str()))
    }))
}

fn extract_all(call: &Call) -> Result<ArrayRef> {
    let rows = Extraction::new(call);
    let mut builder =
        ListBuilder::new(StringBuilder::new()).with_field(element_field(call.return_type())?);
    for row in 0..call.rows() {
        match settle(rows.row(call, row)) {
            Some((pattern, text, group)) => {
                for captures in pattern.regex().captures_iter(text) {
                    builder
                        .values()
                        .append_option(captures.get(group).map(|found| found.as_str()));
                }
                builder.append(true);
            }
            None => builder.append(false),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// The parts between matches. Where the pattern can match nothing at all, Java's own `split` is at work: no part in front of an empty first
/// match, and no empty parts at the end.
fn split<'t>(text: &'t str, pattern: &JavaRegex) -> Vec<&'t str> {
    let regex = pattern.regex();
    if !regex.is_match_at("", 0) || text.is_empty() {
        return regex.split(text).collect();
    }
    let mut parts = Vec::new();
    let mut start = 0;
    for found in regex.find_iter(text) {
        if found.end() == 0 || found.is_empty() && found.start() == text.len() {
            continue;
        }
        parts.push(&text[start..found.start()]);
        start = found.end();
    }
    parts.push(&text[start..]);
    while parts.len() > 1 && parts.last().is_some_and(|part| part.is_empty()) {
        parts.pop();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_between_matches() {
        let split =
            |text, pattern: &str| split(text, &JavaRegex::compile(pattern).unwrap()).join("|");
        assert_eq!(split("a,b,,c,", ","), "a|b||c|");
        assert_eq!(split("abc", ""), "a|b|c");
        assert_eq!(split("a1b", "[0-9]*"), "a|b");
        assert_eq!(split("", ","), "");
    }
}
