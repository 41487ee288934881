//! Whole results, as they look.

use super::{ColumnKind, OutputFormat, ResultPrinter, Row, Style, width::display_width};

fn row(values: &[&str]) -> Row {
    values
        .iter()
        .map(|value| (*value != "∅").then(|| (*value).to_owned()))
        .collect()
}

fn style(format: OutputFormat, terminal_width: Option<usize>) -> Style {
    Style {
        format,
        expanded: false,
        terminal_width,
    }
}

fn printer(style: Style, columns: &[&str]) -> ResultPrinter {
    ResultPrinter::new(
        style,
        columns.iter().map(|name| (*name).to_owned()).collect(),
        Vec::new(),
    )
}

fn print(style: Style, columns: &[&str], rows: &[&[&str]]) -> String {
    let mut printer = printer(style, columns);
    let mut out = Vec::new();
    for values in rows {
        printer.push(row(values));
    }
    printer.finish(&mut out).expect("memory takes all");
    String::from_utf8(out).expect("text")
}

#[test]
fn texts_left_and_numbers_right() {
    let text = print(
        style(OutputFormat::Table, Some(80)),
        &["carrier", "n", "mean"],
        &[&["UA", "5", "12.25"], &["東京", "1234", "∅"]],
    );
    assert_eq!(
        text,
        " carrier |  n   | mean\n\
         ---------+------+-------\n \
         UA      |    5 | 12.25\n \
         東京    | 1234 |  NULL\n\
         (2 rows)\n"
    );
}

#[test]
fn an_empty_result_has_its_header() {
    let text = print(style(OutputFormat::Table, Some(80)), &["a", "bc"], &[]);
    assert_eq!(text, " a | bc\n---+----\n(0 rows)\n");
}

#[test]
fn long_texts_are_cut_on_a_terminal_only() {
    let long = "x".repeat(200);
    let rows: &[&[&str]] = &[&["1", &long, &long]];
    let columns = &["id", "first", "second"];
    let narrow = print(style(OutputFormat::Table, Some(80)), columns, rows);
    assert!(narrow.contains('…'));
    assert!(
        narrow.lines().all(|line| display_width(line) <= 80),
        "{narrow}"
    );
    let file = print(style(OutputFormat::Table, None), columns, rows);
    assert!(file.contains(&long) && !file.contains('…'));
}

#[test]
fn one_column_is_never_cut() {
    let plan = "x".repeat(200);
    let text = print(style(OutputFormat::Table, Some(80)), &["plan"], &[&[&plan]]);
    assert!(text.contains(&plan));
    assert_eq!(text.lines().nth(1), Some("-".repeat(80).as_str()));
}

#[test]
fn what_cannot_fit_becomes_one_column_a_line() {
    let columns: Vec<String> = (0..19).map(|index| format!("column_{index}")).collect();
    let names: Vec<&str> = columns.iter().map(String::as_str).collect();
    let values = ["1"; 19];
    let text = print(style(OutputFormat::Table, Some(80)), &names, &[&values]);
    assert!(text.starts_with("-[ record 1 ]-"), "{text}");
    assert!(text.contains("column_18 | 1\n(1 row)\n"), "{text}");
}

#[test]
fn values_of_several_lines_stay_in_their_column() {
    let text = print(
        style(OutputFormat::Table, Some(80)),
        &["a", "b"],
        &[&["one\ntwo\n", "x"]],
    );
    assert_eq!(text, "  a  | b\n-----+---\n one | x\n two |\n(1 row)\n");
}

#[test]
fn control_characters_cannot_reach_the_terminal() {
    for format in [OutputFormat::Table, OutputFormat::Json] {
        let text = print(style(format, Some(80)), &["a"], &[&["\u{1b}[31mred"]]);
        assert!(!text.contains('\u{1b}'), "{text:?}");
    }
}

#[test]
fn later_runs_widen_columns_and_repeat_a_header_that_is_far_away() {
    let mut printer = printer(style(OutputFormat::Table, Some(80)), &["k", "n"]);
    let mut out = Vec::new();
    for step in 0..30 {
        printer.push(row(&["a", &step.to_string()]));
        printer.flush(&mut out).expect("memory takes all");
    }
    printer.push(row(&["a longer key", "1000000000000"]));
    printer.finish(&mut out).expect("memory takes all");
    let text = String::from_utf8(out).expect("text");
    assert_eq!(
        text.matches("\n---").count() + usize::from(text.starts_with("---")),
        2,
        "{text}"
    );
    assert!(
        text.contains(" a longer key | 1000000000000\n(31 rows)\n"),
        "{text}"
    );
}

#[test]
fn every_row_of_a_flushed_run_is_out_at_once() {
    let mut printer = printer(style(OutputFormat::Table, Some(80)), &["n"]);
    let mut out = Vec::new();
    printer.push(row(&["1"]));
    assert!(printer.is_pending());
    printer.flush(&mut out).expect("memory takes all");
    assert!(!printer.is_pending());
    assert_eq!(
        String::from_utf8_lossy(&out),
        "     n\n-----------\n         1\n"
    );
    assert_eq!(printer.count(), 1);
}

#[test]
fn expanded() {
    let style = Style {
        format: OutputFormat::Table,
        expanded: true,
        terminal_width: Some(20),
    };
    let text = print(style, &["a", "long"], &[&["1", "x\ny"]]);
    assert_eq!(
        text,
        "-[ record 1 ]-------\na    | 1\nlong | x\n     | y\n(1 row)\n"
    );
}

#[test]
fn csv_tells_null_from_empty() {
    let text = print(
        style(OutputFormat::Csv, Some(80)),
        &["a", "b,c"],
        &[&["", "∅"], &["x\"y", "1\n2"]],
    );
    assert_eq!(text, "a,\"b,c\"\n\"\",\n\"x\"\"y\",\"1\n2\"\n");
}

#[test]
fn json_values_have_their_types() {
    let kinds = vec![
        ColumnKind::Number,
        ColumnKind::Boolean,
        ColumnKind::Json,
        ColumnKind::Text,
    ];
    let columns = ["n", "b", "j", "t"].map(str::to_owned).to_vec();
    let mut printer = ResultPrinter::new(style(OutputFormat::Json, None), columns, kinds);
    let mut out = Vec::new();
    printer.push(row(&["1.5", "t", "{\"x\":1}", "a\"b\n"]));
    printer.push(row(&["NaN", "∅", "∅", "1"]));
    printer.finish(&mut out).expect("memory takes all");
    assert_eq!(
        String::from_utf8_lossy(&out),
        "{\"n\":1.5,\"b\":true,\"j\":{\"x\":1},\"t\":\"a\\\"b\\n\"}\n\
         {\"n\":\"NaN\",\"b\":null,\"j\":null,\"t\":\"1\"}\n"
    );
}

#[test]
fn formats_have_names() {
    for format in [OutputFormat::Table, OutputFormat::Csv, OutputFormat::Json] {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    assert!("xml".parse::<OutputFormat>().is_err());
}
