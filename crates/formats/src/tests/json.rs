//! JSON.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, AsArray, BinaryArray, Decimal128Array, DictionaryArray, Float64Array,
        Int64Array, StringArray, StringViewArray, TimestampMillisecondArray,
        TimestampNanosecondArray, UInt32Array,
    },
    datatypes::{DataType, Field, Fields, Int32Type, Int64Type, TimeUnit},
};
use proptest::prelude::*;

use super::{decode, display, encode, schema, texts};
use crate::{EncodedRecords, FormatError, FormatSpec, decoder, encoder, projected_decoder};

const WRAPPED: FormatSpec = FormatSpec::Json { wrapped: true };
const BARE: FormatSpec = FormatSpec::Json { wrapped: false };

const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Millisecond, None);

fn list(element: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(element, true)))
}

fn map(value: DataType) -> DataType {
    let entries = Fields::from(vec![
        Field::new("keys", DataType::Utf8, false),
        Field::new("values", value, true),
    ]);
    DataType::Map(
        Arc::new(Field::new("entries", DataType::Struct(entries), false)),
        false,
    )
}

fn structure(fields: &[(&str, DataType)]) -> DataType {
    DataType::Struct(
        fields
            .iter()
            .map(|(name, data_type)| Field::new(*name, data_type.clone(), true))
            .collect(),
    )
}

/// Reads one bare value.
fn read(data_type: DataType, json: &str) -> Result<String, String> {
    let decoded = decode(&BARE, &schema(&[("v", data_type)]), &[json]);
    match decoded.errors.first() {
        Some(error) => {
            assert_eq!(
                decoded.columns[0].null_count(),
                1,
                "the row of a bad record is NULL"
            );
            Err(error.reason.clone())
        }
        None => Ok(display(&decoded.columns[0]).remove(0)),
    }
}

#[test]
fn values_of_every_type() {
    let nested = structure(&[("A", DataType::Float64), ("B", list(DataType::Utf8))]);
    let cases = [
        (DataType::Boolean, "true", "true"),
        (DataType::Boolean, "null", "-"),
        (DataType::Int16, "-32768", "-32768"),
        (DataType::Int32, "2147483647", "2147483647"),
        (DataType::Int32, "\"+12\"", "12"),
        (DataType::Int32, "1.9", "1"),
        (
            DataType::Int64,
            "-9223372036854775808",
            "-9223372036854775808",
        ),
        (DataType::Int64, "1e3", "1000"),
        (DataType::Int64, "\"\\u0031\"", "1"),
        (DataType::Float32, "0.1", "0.1"),
        (DataType::Float64, "10", "10.0"),
        (DataType::Float64, "\"1.5\"", "1.5"),
        (DataType::Float64, "\"NaN\"", "NaN"),
        (
            DataType::Float64,
            "123456789012345678901234567890",
            "1.2345678901234568e29",
        ),
        (DataType::Float64, "1e-400", "0.0"),
        (
            DataType::Decimal128(21, 19),
            "10.1234512345123451234",
            "10.1234512345123451234",
        ),
        (DataType::Decimal128(6, 4), "\"1e1\"", "10.0000"),
        (
            DataType::Decimal256(50, 10),
            "1234567890123456789012345678901234567890.1",
            "1234567890123456789012345678901234567890.1000000000",
        ),
        (DataType::Utf8, "\"h\\u00e9llo\"", "héllo"),
        (DataType::Utf8, "true", "true"),
        (DataType::Utf8, "42.000", "42.000"),
        (DataType::Utf8, "[\"a\", 1]", "[a, 1]"),
        (
            DataType::Utf8,
            "{\"b\":1,\"a\":\"x\"}",
            "{\"a\":\"x\",\"b\":1}",
        ),
        (DataType::Binary, "\"AQID\"", "010203"),
        (DataType::Date32, "4", "1970-01-05"),
        (DataType::Date32, "\"1970-01-05\"", "1970-01-05"),
        (DataType::Time32(TimeUnit::Millisecond), "4000", "00:00:04"),
        (
            DataType::Time32(TimeUnit::Millisecond),
            "\"00:00:04\"",
            "00:00:04",
        ),
        (TIMESTAMP, "10", "1970-01-01T00:00:00.010"),
        (TIMESTAMP, "\"10\"", "1970-01-01T00:00:00.010"),
        (
            TIMESTAMP,
            "\"1970-01-01T01:00:00.010+01:00\"",
            "1970-01-01T00:00:00.010",
        ),
        (list(DataType::Int32), "[1, null, \"3\"]", "[1, -, 3]"),
        (list(list(DataType::Int32)), "[[], [1]]", "[[], [1]]"),
        (
            map(DataType::Int32),
            "{\"b\": 1, \"a\": null}",
            "{b: 1, a: -}",
        ),
        (
            nested.clone(),
            "{\"b\": [\"x\"], \"a\": 1.5, \"z\": 0}",
            "{A: 1.5, B: [x]}",
        ),
        (nested, "{}", "{A: -, B: -}"),
    ];
    for (data_type, json, expected) in cases {
        assert_eq!(
            read(data_type.clone(), json).as_deref(),
            Ok(expected),
            "{json} as {data_type}"
        );
    }
}

#[test]
fn values_that_do_not_fit() {
    for (data_type, json) in [
        (DataType::Boolean, "\"true\""),
        (DataType::Boolean, "1"),
        (DataType::Int16, "32768"),
        (DataType::Int32, "2147483648"),
        (DataType::Int32, "\"12.5\""),
        (DataType::Int32, "true"),
        (DataType::Int32, "[]"),
        (DataType::Int64, "9223372036854775808"),
        (DataType::Float64, "1e999999"),
        (DataType::Float64, "\"inf\""),
        (DataType::Float32, "1e39"),
        (DataType::Decimal128(4, 2), "100"),
        (DataType::Decimal128(4, 2), "0.001"),
        (DataType::Binary, "\"?\""),
        (DataType::Binary, "1"),
        (DataType::Date32, "\"1970-13-01\""),
        (DataType::Time32(TimeUnit::Millisecond), "86400000"),
        (TIMESTAMP, "\"yesterday\""),
        (list(DataType::Int32), "{}"),
        (list(DataType::Int32), "[1, \"x\"]"),
        (map(DataType::Int32), "[]"),
        (map(DataType::Int32), "{\"a\": 1, \"a\": 2}"),
        (structure(&[("A", DataType::Int32)]), "[]"),
        (structure(&[("A", DataType::Int32)]), "{\"a\": {}}"),
    ] {
        assert!(
            read(data_type.clone(), json).is_err(),
            "{json} as {data_type}"
        );
    }
}

#[test]
fn a_bad_record_leaves_the_others_alone() {
    let schema = schema(&[
        ("id", DataType::Int64),
        ("tags", list(DataType::Utf8)),
        ("at", structure(&[("x", DataType::Int32)])),
    ]);
    let decoded = decode(
        &WRAPPED,
        &schema,
        &[
            r#"{"id":1,"tags":["a"],"at":{"x":1}}"#,
            r#"{"id":2,"tags":["b","c"],"at":{"x":"no"}}"#,
            r#"{"id":3,"tags":["d",5],"at":{"x":3}} x"#,
            r#"{"id":4,"tags":["e"#,
            r#"{"tags":["f"],"id":5}"#,
        ],
    );
    let errors: Vec<_> = decoded
        .errors
        .iter()
        .map(|error| (error.index, error.reason.as_str()))
        .collect();
    assert_eq!(
        errors,
        [
            (1, "field \"at\": expected an INT at byte 35"),
            (2, "text after the end of the value at byte 37"),
            (
                3,
                "field \"tags\": a string without its closing quote at byte 18"
            ),
        ]
    );
    assert_eq!(display(&decoded.columns[0]), ["1", "-", "-", "-", "5"]);
    assert_eq!(display(&decoded.columns[1]), ["[a]", "-", "-", "-", "[f]"]);
    assert_eq!(display(&decoded.columns[2]), ["{x: 1}", "-", "-", "-", "-"]);
}

#[test]
fn names_match_to_the_letter_before_they_match_in_another_case() {
    let one = schema(&[("name", DataType::Utf8)]);
    let decoded = decode(
        &WRAPPED,
        &one,
        &[
            r#"{"NAME":"a"}"#,
            r#"{"Name":"b","name":"c"}"#,
            r#"{"name":"d","Name":"e"}"#,
            r#"{"other":1}"#,
        ],
    );
    assert_eq!(decoded.errors, []);
    assert_eq!(texts(&decoded, 0), [Some("a"), Some("c"), Some("d"), None]);

    let two = schema(&[("n", DataType::Utf8), ("N", DataType::Utf8)]);
    let decoded = decode(
        &WRAPPED,
        &two,
        &[r#"{"N":"upper","n":"lower"}"#, r#"{"N":"only"}"#],
    );
    assert_eq!(texts(&decoded, 0), [Some("lower"), None]);
    assert_eq!(texts(&decoded, 1), [Some("upper"), Some("only")]);
}

#[test]
fn a_field_given_twice_is_an_error() {
    let schema = schema(&[
        ("name", DataType::Utf8),
        ("s", structure(&[("x", DataType::Int32)])),
    ]);
    let decoded = decode(
        &WRAPPED,
        &schema,
        &[
            r#"{"name":"a","name":"b"}"#,
            r#"{"NAME":"a","Name":"b"}"#,
            r#"{"s":{"x":1,"x":2}}"#,
            r#"{"name":"ok"}"#,
        ],
    );
    assert_eq!(
        decoded
            .errors
            .iter()
            .map(|error| error.index)
            .collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert_eq!(texts(&decoded, 0), [None, None, None, Some("ok")]);
}

#[test]
fn whole_records() {
    let schema = schema(&[("a", DataType::Int32)]);
    let mut json = decoder(&WRAPPED, Arc::clone(&schema)).unwrap();
    let decoded = json
        .decode(&[
            Some(&b" {\"a\":1} "[..]),
            None,
            Some(b"null"),
            Some(b""),
            Some(b"[1]"),
            Some(b"1"),
            Some(&[b'"', 0xff, b'"']),
        ])
        .unwrap();
    assert_eq!(
        display(&decoded.columns[0]),
        ["1", "-", "-", "-", "-", "-", "-"]
    );
    assert_eq!(
        decoded
            .errors
            .iter()
            .map(|error| error.index)
            .collect::<Vec<_>>(),
        [3, 4, 5, 6]
    );
    assert_eq!(decoded.errors[3].reason, "not UTF-8 at byte 1");
    // A decoder starts every run from nothing.
    assert_eq!(
        display(&json.decode(&[Some(&b"{\"a\":2}"[..])]).unwrap().columns[0]),
        ["2"]
    );
}

#[test]
fn bare_is_for_one_column_only() {
    let two = schema(&[("a", DataType::Int32), ("b", DataType::Int32)]);
    assert_eq!(
        display(&decode(&BARE, &two, &[r#"{"a":1,"b":2}"#]).columns[1]),
        ["2"]
    );
}

#[test]
fn what_no_column_takes_is_still_checked() {
    let schema = schema(&[("a", DataType::Int32), ("b", DataType::Utf8)]);
    let mut decoder = projected_decoder(&WRAPPED, schema, &[1]).unwrap();
    let decoded = decoder
        .decode(&[
            Some(&br#"{"a":"not an int","b":"x","c":{"d":[1e999999]}}"#[..]),
            Some(br#"{"b":"x","c":[1,]}"#),
            Some(br#"{"b":"x","c":"\ud800"}"#),
        ])
        .unwrap();
    assert_eq!(texts(&decoded, 0), [Some("x"), None, None]);
    assert_eq!(
        decoded
            .errors
            .iter()
            .map(|error| error.index)
            .collect::<Vec<_>>(),
        [1, 2]
    );
}

#[test]
fn hostile_records_end_in_an_error() {
    let schema = schema(&[
        ("a", DataType::Int64),
        ("d", DataType::Decimal128(38, 2)),
        ("t", DataType::Utf8),
    ]);
    let deep = 100_000;
    for record in [
        "[".repeat(deep),
        "{\"a\":".repeat(deep),
        format!("{{\"x\":{}{}}}", "[".repeat(deep), "]".repeat(deep)),
        format!("{{\"t\":{}{}}}", "[".repeat(deep), "]".repeat(deep)),
        format!("{{\"t\":{}1{}}}", "{\"b\":".repeat(deep), "}".repeat(deep)),
        format!("{{\"a\":{}}}", "9".repeat(1_000_000)),
        format!("{{\"d\":{}}}", "9".repeat(1_000_000)),
        "{\"d\":1e999999}".to_owned(),
        "{\"d\":1e-999999}".to_owned(),
        "{\"t\":\"\\ud800\"}".to_owned(),
        "{\"t\":\"\\udc00\\ud800\"}".to_owned(),
        "{\"a\":1}{\"a\":2}".to_owned(),
        "{\"a\":1,\"a\":2}".to_owned(),
        "{\"a\":1}\0".to_owned(),
    ] {
        let decoded = decode(&WRAPPED, &schema, &[&record]);
        assert_eq!(
            decoded.errors.len(),
            1,
            "{}",
            &record[..record.len().min(40)]
        );
    }
}

#[test]
fn large_but_valid_records_are_read() {
    let one = schema(&[("t", DataType::Utf8), ("m", map(DataType::Int32))]);
    let keys: Vec<String> = (0..200_000)
        .map(|index| format!("\"k{index}\":{index}"))
        .collect();
    let many = format!("{{{},\"t\":\"end\"}}", keys.join(","));
    let in_map = format!("{{\"m\":{{{}}}}}", keys.join(","));
    let long = format!("{{\"t\":\"{}\"}}", "x".repeat(10 << 20));
    let decoded = decode(&WRAPPED, &one, &[&many, &in_map, &long]);
    assert_eq!(decoded.errors, []);
    assert_eq!(texts(&decoded, 0)[0], Some("end"));
    assert_eq!(texts(&decoded, 0)[2].map(str::len), Some(10 << 20));
    assert_eq!(decoded.columns[1].as_map().value_length(1), 200_000);
}

#[test]
fn columns_are_written() {
    let values = structure(&[("X", DataType::Int64)]);
    let fields = [
        ("ID", DataType::Int64),
        ("na\"me", DataType::Utf8),
        ("D", DataType::Float64),
        ("DEC", DataType::Decimal128(6, 2)),
        ("B", DataType::Binary),
        ("T", TIMESTAMP),
        ("S", values),
    ];
    let DataType::Struct(inner) = fields[6].1.clone() else {
        panic!("a struct")
    };
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), None]));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![-1, i64::MAX])),
        Arc::new(StringArray::from(vec![Some("a\nb"), None])),
        Arc::new(Float64Array::from(vec![1.0, f64::NAN])),
        Arc::new(
            Decimal128Array::from(vec![150, -5])
                .with_precision_and_scale(6, 2)
                .unwrap(),
        ),
        Arc::new(BinaryArray::from(vec![Some(&b"!"[..]), None])),
        Arc::new(TimestampMillisecondArray::from(vec![Some(10), None])),
        Arc::new(arrow::array::StructArray::new(inner, vec![numbers], None)),
    ];
    assert_eq!(
        encode(&WRAPPED, &schema(&fields), &columns)
            .into_iter()
            .flatten()
            .collect::<Vec<_>>(),
        [
            r#"{"ID":-1,"na\"me":"a\nb","D":1.0,"DEC":1.50,"B":"IQ==","T":10,"S":{"X":5}}"#,
            r#"{"ID":9223372036854775807,"na\"me":null,"D":"NaN","DEC":-0.05,"B":null,"T":null,"S":{"X":null}}"#,
        ]
    );
}

#[test]
fn nested_columns_are_written_and_slices_too() {
    let types = [
        ("L", list(DataType::Int64)),
        ("M", map(list(DataType::Utf8))),
    ];
    let schema = schema(&types);
    let records = [
        r#"{"L":[1,null],"M":{"a":["x"],"b":null}}"#,
        r#"{"L":null,"M":{}}"#,
        r#"{"L":[],"M":null}"#,
    ];
    let decoded = decode(&WRAPPED, &schema, &records);
    assert_eq!(
        encode(&WRAPPED, &schema, &decoded.columns)
            .into_iter()
            .flatten()
            .collect::<Vec<_>>(),
        records
    );

    let sliced: Vec<_> = decoded
        .columns
        .iter()
        .map(|column| column.slice(1, 2))
        .collect();
    assert_eq!(
        encode(&WRAPPED, &schema, &sliced)
            .into_iter()
            .flatten()
            .collect::<Vec<_>>(),
        records[1..]
    );
    assert_eq!(
        decoded.columns[0]
            .as_list::<i32>()
            .value(0)
            .as_primitive::<Int64Type>()
            .value(0),
        1
    );
}

#[test]
fn a_bare_null_is_an_absent_record() {
    let schema = schema(&[("V", DataType::Utf8)]);
    let column: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None]));
    assert_eq!(
        encode(&BARE, &schema, &[Arc::clone(&column)]),
        [Some("\"x\"".to_owned()), None]
    );
    assert_eq!(
        encode(&WRAPPED, &schema, &[column]),
        [
            Some(r#"{"V":"x"}"#.to_owned()),
            Some(r#"{"V":null}"#.to_owned())
        ]
    );
}

#[test]
fn other_representations_are_written_alike() {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringViewArray::from(vec![Some("x"), None])),
        Arc::new(
            vec![Some("y"), None]
                .into_iter()
                .collect::<DictionaryArray<Int32Type>>(),
        ),
        Arc::new(TimestampNanosecondArray::from(vec![Some(1_500_000), None])),
        Arc::new(UInt32Array::from(vec![Some(u32::MAX), None])),
    ];
    let names = ["a", "b", "c", "d"];
    let fields: Vec<_> = names
        .into_iter()
        .zip(&columns)
        .map(|(name, column)| (name, column.data_type().clone()))
        .collect();
    assert_eq!(
        encode(&WRAPPED, &schema(&fields), &columns)
            .into_iter()
            .flatten()
            .collect::<Vec<_>>(),
        [
            r#"{"a":"x","b":"y","c":1,"d":4294967295}"#,
            r#"{"a":null,"b":null,"c":null,"d":null}"#
        ]
    );
}

#[test]
fn wrong_columns_are_refused() {
    let one = schema(&[("a", DataType::Int64)]);
    let mut json = encoder(&WRAPPED, one).unwrap();
    let mut out = EncodedRecords::new();
    assert!(matches!(
        json.encode(&[], &mut out),
        Err(FormatError::ColumnMismatch { .. })
    ));
    // Another representation of the same values is cast.
    let narrow: ArrayRef = Arc::new(arrow::array::Int32Array::from(vec![7]));
    json.encode(&[narrow], &mut out).unwrap();
    assert_eq!(out.get(0), Some(&br#"{"a":7}"#[..]));
    let text: ArrayRef = Arc::new(StringArray::from(vec!["seven"]));
    assert!(matches!(
        json.encode(&[text], &mut out),
        Err(FormatError::Arrow(_))
    ));

    let numbered = DataType::Map(
        Arc::new(Field::new(
            "entries",
            DataType::Struct(Fields::from(vec![
                Field::new("keys", DataType::Int32, false),
                Field::new("values", DataType::Int32, true),
            ])),
            false,
        )),
        false,
    );
    assert!(decoder(&WRAPPED, schema(&[("m", numbered)])).is_err());
    assert!(decoder(&WRAPPED, schema(&[("m", DataType::UInt64)])).is_err());
}

/// Text that is nearly JSON: tokens in any order. Surrogates alone are left out: the other parser lets them pass.
fn nearly_json() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"a\"",
        "\"b\\n\"",
        "\"\\u00e9\"",
        "\"\\ud83d\\ude00\"",
        "\"\\q\"",
        "\"",
        "1",
        "-0",
        "0.5",
        "1e-3",
        "-",
        "01",
        "1.",
        "true",
        "false",
        "null",
        "nul",
        " ",
        "\n",
        "é",
        "\"\u{1}\"",
    ]);
    prop::collection::vec(token, 0..10).prop_map(|tokens| tokens.concat())
}

/// Text that is JSON.
fn json_value() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec!["1", "-2.5e-3", "\"x\"", "\"\\u0041\"", "true", "null"])
        .prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            list.clone()
                .prop_map(|values| format!("[{}]", values.join(", "))),
            list.prop_map(|values| {
                let fields: Vec<String> = values
                    .iter()
                    .enumerate()
                    .map(|(index, value)| format!("\"k{index}\" : {value}"))
                    .collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

#[test]
fn spacing_may_change_from_record_to_record() {
    let spec = FormatSpec::Json { wrapped: true };
    let schema = schema(&[("b", DataType::Int64)]);
    let decoded = decode(&spec, &schema, &["{\"b\":1}", "{\"b\": 2}", "{\"b\":3}"]);
    assert_eq!(decoded.errors, []);
    assert_eq!(display(&decoded.columns[0]), ["1", "2", "3"]);
}

/// Records of three columns, most of them of other types than their names say.
fn three_columns() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        json_value(),
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>().prop_map(|value| value.to_string()),
        "\"[0-9:. -]{0,24}\"",
        Just("\"2024-05-01 09:10:00.5\"".to_owned()),
        nearly_json(),
    ];
    let name = prop_oneof![Just("a"), Just("b"), Just("c"), Just("B"), Just("d")];
    proptest::collection::vec((name, value), 0..5).prop_map(|fields| {
        let fields: Vec<String> = fields
            .into_iter()
            .map(|(name, value)| format!("\"{name}\":{value}"))
            .collect();
        format!("{{{}}}", fields.join(","))
    })
}

/// Types whose values are judged in different ways.
fn judged_type() -> impl Strategy<Value = DataType> {
    prop_oneof![
        Just(DataType::Int64),
        Just(DataType::Int32),
        Just(DataType::Float64),
        Just(DataType::Utf8),
        Just(DataType::Timestamp(TimeUnit::Millisecond, None)),
        Just(DataType::Decimal128(10, 2)),
        Just(list(DataType::Int32)),
        Just(map(DataType::Utf8)),
        Just(structure(&[("x", DataType::Int64)])),
    ]
}

proptest! {
    #[test]
    fn a_verdict_does_not_depend_on_the_columns_that_are_read(
        records in proptest::collection::vec(three_columns(), 1..6),
        types in proptest::collection::vec(judged_type(), 3),
        read in proptest::collection::vec(any::<bool>(), 3),
    ) {
        let columns: Vec<(&str, DataType)> = ["a", "b", "c"].into_iter().zip(types).collect();
        let schema = schema(&columns);
        let records: Vec<Option<&[u8]>> = records.iter().map(|record| Some(record.as_bytes())).collect();
        let built: Vec<usize> = (0..3).filter(|&column| read[column]).collect();
        let spec = FormatSpec::Json { wrapped: true };
        let mut full = crate::decoder(&spec, Arc::clone(&schema)).unwrap();
        let mut judging = crate::judging_decoder(&spec, schema, &built).unwrap();
        // Twice, since a decoder remembers how the records before were written.
        for _ in 0..2 {
            let all = full.decode(&records).unwrap();
            let some = judging.decode(&records).unwrap();
            prop_assert_eq!(&some.errors, &all.errors);
            prop_assert_eq!(some.columns.len(), built.len());
            for (column, &position) in some.columns.iter().zip(&built) {
                prop_assert_eq!(column, &all.columns[position]);
            }
        }
    }

    /// What is JSON is decided as another parser decides it, in a field that no column takes and in one that takes anything as text.
    #[test]
    fn validity_agrees_with_simd_json(value in prop_oneof![nearly_json(), json_value()]) {
        let expected = simd_json::to_tape(&mut value.clone().into_bytes()).is_ok();
        let schema = schema(&[("t", DataType::Utf8)]);
        for field in ["t", "other"] {
            let record = format!("{{\"{field}\":{value}}}");
            let decoded = decode(&WRAPPED, &schema, &[&record]);
            // Closing braces and commas in the text may make a valid record of an invalid value.
            let whole = simd_json::to_tape(&mut record.clone().into_bytes()).is_ok();
            prop_assert_eq!(decoded.errors.is_empty(), whole, "{}", record);
            prop_assert!(whole || !expected);
        }
        let bare = decode(&BARE, &schema, &[&value]);
        prop_assert_eq!(bare.errors.is_empty(), expected, "{}", value);
    }
}
