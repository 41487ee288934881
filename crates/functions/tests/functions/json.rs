//! JSON in text.

use datafusion::arrow::array::StringArray;

use crate::harness::{check, column, over};

#[test]
fn json() {
    check(&[
        (
            r#"extractjsonfield('{"a": {"b": [10, 2.50]}}', '$.a.b[1]')"#,
            "2.50",
        ),
        (
            r#"extractjsonfield('{"a": {"b": 1}}', '$.a')"#,
            r#"{"b":1}"#,
        ),
        (r#"extractjsonfield('{"a": 1}', '$.z')"#, "NULL"),
        (r#"extractjsonfield('{"a": 1}', 'a')"#, "NULL"),
        ("extractjsonfield('{', '$.a')", "NULL"),
        ("extractjsonfield(NULL, '$.a')", "NULL"),
        ("is_json_string('\"x\"')", "true"),
        ("is_json_string('x')", "false"),
        ("is_json_string(NULL)", "false"),
        ("json_array_contains('[1, 2]', 2)", "true"),
        ("json_array_contains('[1.5]', 1.5)", "true"),
        ("json_array_contains('[true]', true)", "true"),
        ("json_array_contains('[\"1\"]', 1)", "false"),
        (
            "json_array_contains('[\"a\", null]', CAST(NULL AS VARCHAR))",
            "true",
        ),
        ("json_array_contains('{}', 'a')", "false"),
        ("json_array_length('[]')", "0"),
        ("json_array_length('{}')", "NULL"),
        ("json_array_length('[')", "NULL"),
        (
            r#"json_concat('{"a": 1, "b": 2}', '{"a": {"c": 3}}')"#,
            r#"{"a":{"c":3},"b":2}"#,
        ),
        (
            r#"json_concat('[1]', '{"a": 1}', '"x"')"#,
            r#"[1,{"a":1},"x"]"#,
        ),
        ("json_concat('1', '')", "NULL"),
        ("json_concat('1', NULL)", "NULL"),
        ("json_items('{}')", "NULL"),
        ("json_keys('[]')", "NULL"),
        ("json_records('{}')", "{}"),
        (
            r#"json_records('{"a": null, "b": "x"}')"#,
            "{a: null, b: x}",
        ),
    ]);
}

#[test]
fn any_value_becomes_json() {
    check(&[
        ("to_json_string('a\"b')", r#""a\"b""#),
        ("to_json_string(NULL)", "null"),
        ("to_json_string(1e10)", "1.0E10"),
        ("to_json_string(arrow_cast('NaN', 'Float64'))", "\"NaN\""),
        (
            "to_json_string(arrow_cast(1.5, 'Decimal128(6, 3)'))",
            "1.500",
        ),
        ("to_json_string(true)", "true"),
        ("to_json_string(from_days(1))", "\"1970-01-02\""),
        (
            "to_json_string(from_unixtime(1005))",
            "\"1970-01-01T00:00:01.005\"",
        ),
        (
            "to_json_string(parse_time('10:20', 'HH:mm'))",
            "\"10:20:00\"",
        ),
        ("to_json_string(to_bytes('ab', 'utf8'))", "\"YWI=\""),
        ("to_json_string(ARRAY[1, NULL])", "[1,null]"),
        (
            "to_json_string(as_map(ARRAY['k'], ARRAY[ARRAY['v']]))",
            r#"{"k":["v"]}"#,
        ),
        (
            "to_json_string(named_struct('a', 1, 'b', 'x'))",
            r#"{"a":1,"b":"x"}"#,
        ),
    ]);
}

#[test]
fn json_of_a_column() {
    let texts = StringArray::from(vec![Some(r#"["a", {"b": 1}]"#), Some("nothing"), None]);
    let rows = |expression: &str| over(vec![column("s", texts.clone())], expression);
    assert_eq!(rows("json_items(s)"), [r#"["a", {"b":1}]"#, "NULL", "NULL"]);
    assert_eq!(rows("is_json_string(s)"), ["true", "false", "false"]);
    assert_eq!(rows("extractjsonfield(s, '$[1].b')"), ["1", "NULL", "NULL"]);
}
