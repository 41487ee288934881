//! Expected texts and bytes are what PostgreSQL 15 answers for the same values.

use std::sync::Arc;

use arrow::{
    array::{
        Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array,
        DictionaryArray, DurationSecondArray, Float32Array, Float64Array, Int16Array, Int32Array,
        Int64Array, IntervalMonthDayNanoArray, ListArray, MapBuilder, NullArray, StringArray,
        StringBuilder, StringViewArray, StructArray, Time64MicrosecondArray,
        TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray, UInt8Array,
        UInt64Array,
    },
    datatypes::{Int32Type, IntervalMonthDayNano, i256},
    record_batch::RecordBatch,
};

use super::*;

fn values(array: impl Array + 'static, format: Format, zone_name: &str) -> Vec<Option<Vec<u8>>> {
    let rows = array.len();
    let array: ArrayRef = Arc::new(array);
    let encoder = ColumnEncoder::new(&array, format, zone(zone_name)).expect("an encoder");
    let value = |row| {
        let mut out = BytesMut::new();
        encoder.write(row, &mut out).expect("a value in range");
        out.to_vec()
    };
    (0..rows)
        .map(|row| (!encoder.is_null(row)).then(|| value(row)))
        .collect()
}

fn text(array: impl Array + 'static) -> Vec<String> {
    text_in(array, "UTC")
}

fn text_in(array: impl Array + 'static, zone: &str) -> Vec<String> {
    let text = |value: Option<Vec<u8>>| {
        value.map_or("NULL".to_owned(), |value| {
            String::from_utf8(value).expect("UTF-8")
        })
    };
    values(array, Format::Text, zone)
        .into_iter()
        .map(text)
        .collect()
}

fn hex(array: impl Array + 'static) -> Vec<String> {
    let hex = |value: Option<Vec<u8>>| {
        value.map_or("NULL".to_owned(), |value| {
            value.iter().map(|byte| format!("{byte:02x}")).collect()
        })
    };
    values(array, Format::Binary, "UTC")
        .into_iter()
        .map(hex)
        .collect()
}

#[test]
fn integers_and_booleans() {
    assert_eq!(
        text(Int16Array::from(vec![0, -1, i16::MIN])),
        ["0", "-1", "-32768"]
    );
    assert_eq!(text(Int32Array::from(vec![Some(7), None])), ["7", "NULL"]);
    assert_eq!(
        text(Int64Array::from(vec![i64::MIN, i64::MAX])),
        ["-9223372036854775808", "9223372036854775807"]
    );
    assert_eq!(text(UInt8Array::from(vec![255])), ["255"]);
    assert_eq!(
        text(UInt64Array::from(vec![u64::MAX])),
        ["18446744073709551615"]
    );
    assert_eq!(text(BooleanArray::from(vec![true, false])), ["t", "f"]);
    assert_eq!(hex(BooleanArray::from(vec![true, false])), ["01", "00"]);
    assert_eq!(hex(UInt8Array::from(vec![255])), ["00ff"]);
    assert_eq!(hex(Int64Array::from(vec![-2])), ["fffffffffffffffe"]);
    assert_eq!(text(NullArray::new(2)), ["NULL", "NULL"]);
}

#[test]
fn floats_have_the_shortest_digits_that_read_back() {
    let doubles = [
        (0.0, "0"),
        (-0.0, "-0"),
        (1.0, "1"),
        (1.5, "1.5"),
        (1e14, "100000000000000"),
        (123456789012345.0, "123456789012345"),
        (1e15, "1e+15"),
        (1.5e16, "1.5e+16"),
        (1e-4, "0.0001"),
        (0.00012345, "0.00012345"),
        (1e-5, "1e-05"),
        (1e100, "1e+100"),
        (5e-324, "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::NAN, "NaN"),
        (f64::INFINITY, "Infinity"),
        (f64::NEG_INFINITY, "-Infinity"),
        (0.1, "0.1"),
        (123456.789, "123456.789"),
        (-12.5, "-12.5"),
    ];
    for (value, expected) in doubles {
        assert_eq!(text(Float64Array::from(vec![value])), [expected]);
    }
    let singles = [
        (0.0, "0"),
        (100_000.0, "100000"),
        (123_456.0, "123456"),
        (1e6, "1e+06"),
        (1_234_567.0, "1.234567e+06"),
        (1e-4, "0.0001"),
        (1e-5, "1e-05"),
        (f32::MAX, "3.4028235e+38"),
        (1e-45, "1e-45"),
        (16_777_216.0, "1.6777216e+07"),
    ];
    for (value, expected) in singles {
        assert_eq!(text(Float32Array::from(vec![value])), [expected]);
    }
    assert_eq!(hex(Float64Array::from(vec![1.0])), ["3ff0000000000000"]);
}

fn decimal(value: i128, scale: i8) -> Decimal128Array {
    Decimal128Array::from(vec![value])
        .with_precision_and_scale(38, scale)
        .expect("a decimal")
}

#[test]
fn numerics() {
    let cases = [
        (0, 0, "0", "0000000000000000"),
        (0, 2, "0.00", "0000000000000002"),
        (1, 0, "1", "00010000000000000001"),
        (-1, 0, "-1", "00010000400000000001"),
        (12_345_678, 3, "12345.678", "0003000100000003000109291a7c"),
        (1, 4, "0.0001", "0001ffff000000040001"),
        (12, 5, "0.00012", "0002ffff00000005000107d0"),
        (10_000, 0, "10000", "00010001000000000001"),
        (110, 2, "1.10", "0002000000000002000103e8"),
        (99_999_999, 0, "99999999", "0002000100000000270f270f"),
        (100_000_000, 0, "100000000", "00010002000000000001"),
        (5, 1, "0.5", "0001ffff000000011388"),
        (-1, 9, "-0.000000001", "0001fffd4000000903e8"),
    ];
    for (value, scale, expected, bytes) in cases {
        assert_eq!(text(decimal(value, scale)), [expected]);
        assert_eq!(hex(decimal(value, scale)), [bytes], "{expected}");
    }
    let wide = i256::from_string("12345678901234567890123456789012").expect("an i256");
    let wide = Decimal256Array::from(vec![wide])
        .with_precision_and_scale(76, 2)
        .expect("a decimal");
    assert_eq!(text(wide.clone()), ["123456789012345678901234567890.12"]);
    assert_eq!(
        hex(wide),
        ["0009000700000002000c0d801ed204d2162e23340d801ed204b0"]
    );
    let widest = i256::from_string(&format!("-{}", "9".repeat(76))).expect("an i256");
    let widest = Decimal256Array::from(vec![widest])
        .with_precision_and_scale(76, 0)
        .expect("a decimal");
    assert_eq!(text(widest), [format!("-{}", "9".repeat(76))]);
    let thousands = Decimal128Array::from(vec![5])
        .with_precision_and_scale(10, -4)
        .expect("a decimal");
    assert_eq!(text(thousands.clone()), ["50000"]);
    assert_eq!(hex(thousands), ["00010001000000000005"]);
}

#[test]
fn texts_and_bytes() {
    assert_eq!(
        text(StringArray::from(vec![Some("ä"), None, Some("")])),
        ["ä", "NULL", ""]
    );
    assert_eq!(
        text(StringViewArray::from(vec![
            "a text longer than twelve bytes"
        ])),
        ["a text longer than twelve bytes"]
    );
    let dictionary: DictionaryArray<Int32Type> =
        vec![Some("x"), None, Some("x")].into_iter().collect();
    assert_eq!(text(dictionary), ["x", "NULL", "x"]);
    assert_eq!(
        text(BinaryArray::from(vec![&b"\xde\xad\xbe\xef"[..], b""])),
        ["\\xdeadbeef", "\\x"]
    );
    assert_eq!(hex(BinaryArray::from(vec![&b"\xde\xad"[..]])), ["dead"]);
}

#[test]
fn dates_and_times() {
    let days = [-719_162, -735_160, 3_668_189, 10_956, 11_016, -719_163];
    let expected = [
        "0001-01-01",
        "0044-03-15 BC",
        "12013-02-28",
        "1999-12-31",
        "2000-02-29",
        "0001-12-31 BC",
    ];
    assert_eq!(text(Date32Array::from(days.to_vec())), expected);
    assert_eq!(
        hex(Date32Array::from(vec![10_599, 15_706])),
        ["fffffe9a", "0000128d"]
    );
    let times = vec![14_706_789_000, 86_400_000_000, 0, 1];
    assert_eq!(
        text(Time64MicrosecondArray::from(times)),
        ["04:05:06.789", "24:00:00", "00:00:00", "00:00:00.000001"]
    );
    assert_eq!(
        hex(Time64MicrosecondArray::from(vec![14_706_789_000])),
        ["000000036c97ca88"]
    );
}

#[test]
fn timestamps_of_every_unit() {
    let micros = 1_357_017_300_123_456;
    assert_eq!(
        text(TimestampMicrosecondArray::from(vec![micros])),
        ["2013-01-01 05:15:00.123456"]
    );
    assert_eq!(
        text(TimestampNanosecondArray::from(vec![micros * 1_000 + 999])),
        ["2013-01-01 05:15:00.123456"]
    );
    assert_eq!(
        text(TimestampMillisecondArray::from(vec![micros / 1_000])),
        ["2013-01-01 05:15:00.123"]
    );
    assert_eq!(
        hex(TimestampMicrosecondArray::from(vec![micros])),
        ["00017531fae8df40"]
    );
    assert_eq!(
        hex(TimestampMillisecondArray::from(vec![1_356_998_400_000])),
        ["0001752d945fe000"]
    );
    assert_eq!(
        text(TimestampMillisecondArray::from(vec![-1])),
        ["1969-12-31 23:59:59.999"]
    );
}

#[test]
fn timestamps_show_the_sessions_zone() {
    let winter =
        TimestampMicrosecondArray::from(vec![1_356_998_400_500_000, -5_364_662_400_000_000])
            .with_timezone("UTC");
    assert_eq!(
        text_in(winter.clone(), "America/New_York"),
        ["2012-12-31 19:00:00.5-05", "1799-12-31 19:03:58-04:56:02"]
    );
    assert_eq!(
        text_in(winter, "Asia/Kolkata"),
        [
            "2013-01-01 05:30:00.5+05:30",
            "1800-01-01 05:53:28+05:53:28"
        ]
    );
    let summer =
        TimestampMicrosecondArray::from(vec![1_372_680_000_120_000]).with_timezone("Asia/Kolkata");
    assert_eq!(
        text_in(summer.clone(), "America/New_York"),
        ["2013-07-01 08:00:00.12-04"]
    );
    assert_eq!(text_in(summer, "UTC"), ["2013-07-01 12:00:00.12+00"]);
    let long_ago =
        TimestampMicrosecondArray::from(vec![-63_517_824_000_000_000]).with_timezone("UTC");
    assert_eq!(
        text_in(long_ago, "Asia/Kolkata"),
        ["0044-03-15 05:53:28+05:53:28 BC"]
    );
}

#[test]
fn far_away_moments_have_a_text_but_no_binary_form() {
    let array: ArrayRef =
        Arc::new(TimestampMillisecondArray::from(vec![i64::MAX]).with_timezone("UTC"));
    let text = ColumnEncoder::new(&array, Format::Text, zone("Asia/Kolkata")).expect("an encoder");
    let mut out = BytesMut::new();
    text.write(0, &mut out).expect("any moment has a text");
    assert_eq!(out, "292278994-08-17 07:12:55.807+00");
    let binary = ColumnEncoder::new(&array, Format::Binary, zone("UTC")).expect("an encoder");
    assert_eq!(
        binary.write(0, &mut BytesMut::new()),
        Err(Unencodable::DateTime)
    );
}

#[test]
fn intervals() {
    const HOUR: i64 = 3_600_000_000_000;
    let cases = [
        (0, 0, 0, "00:00:00"),
        (12, 0, 0, "1 year"),
        (14, 0, 0, "1 year 2 mons"),
        (-12, 0, 0, "-1 years"),
        (-1, 0, 0, "-1 mons"),
        (0, 1, -(2 * HOUR + 184_000_000_000), "1 day -02:03:04"),
        (0, -1, 2 * HOUR + 184_000_000_000, "-1 days +02:03:04"),
        (
            -12,
            3,
            -(4 * HOUR + 306_789_000_000),
            "-1 years +3 days -04:05:06.789",
        ),
        (0, 3, 0, "3 days"),
        (0, 0, 100 * HOUR + 1_000, "100:00:00.000001"),
        (1, -1, 0, "1 mon -1 days"),
        (-13, 0, 0, "-1 years -1 mons"),
    ];
    for (months, days, nanos, expected) in cases {
        let array =
            IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(months, days, nanos)]);
        assert_eq!(text(array), [expected]);
    }
    let array = IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(
        14,
        3,
        4 * HOUR + 306_789_000_000,
    )]);
    assert_eq!(hex(array), ["000000036c97ca88000000030000000e"]);
    assert_eq!(text(DurationSecondArray::from(vec![90_000])), ["25:00:00"]);
}

#[test]
fn arrays() {
    let numbers = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), None, Some(3)]),
        Some(vec![]),
        None,
    ]);
    assert_eq!(text(numbers.clone()), ["{1,NULL,3}", "{}", "NULL"]);
    assert_eq!(
        hex(numbers.clone()),
        [
            "00000001000000010000001700000003000000010000000400000001ffffffff0000000400000003",
            "000000000000000000000017",
            "NULL",
        ]
    );
    assert_eq!(text(numbers.slice(1, 2)), ["{}", "NULL"]);

    let words = [
        "a b", "", "null", "NULL", "x,y", "q\"r", "b\\s", "{}", "plain", "tab\t", "é",
    ];
    let words = StringArray::from(words.to_vec());
    let offsets = arrow::buffer::OffsetBuffer::from_lengths([words.len()]);
    let field = Arc::new(Field::new_list_field(DataType::Utf8, true));
    let words = ListArray::new(field, offsets, Arc::new(words), None);
    assert_eq!(
        text(words),
        [r#"{"a b","","null","NULL","x,y","q\"r","b\\s","{}",plain,"tab	",é}"#]
    );
}

#[test]
fn structs_maps_and_nested_arrays_are_json() {
    let inner = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None])]);
    let columns: Vec<(Arc<Field>, ArrayRef)> = vec![
        (
            Arc::new(Field::new("n", DataType::Int32, true)),
            Arc::new(Int32Array::from(vec![None])),
        ),
        (
            Arc::new(Field::new("s\"", DataType::Utf8, true)),
            Arc::new(StringArray::from(vec!["a\"b\\c\u{1}\n\t"])),
        ),
        (
            Arc::new(Field::new(
                "t",
                DataType::Timestamp(TimeUnit::Millisecond, None),
                true,
            )),
            Arc::new(TimestampMillisecondArray::from(vec![1_357_017_300_000])),
        ),
        (
            Arc::new(Field::new("d", DataType::Date32, true)),
            Arc::new(Date32Array::from(vec![15_706])),
        ),
        (
            Arc::new(Field::new("b", DataType::Binary, true)),
            Arc::new(BinaryArray::from(vec![&b"\xde\xad"[..]])),
        ),
        (
            Arc::new(Field::new("f", DataType::Float64, true)),
            Arc::new(Float64Array::from(vec![f64::NAN])),
        ),
        (
            Arc::new(Field::new("m", DataType::Decimal128(38, 2), true)),
            Arc::new(decimal(150, 2)),
        ),
        (
            Arc::new(Field::new("l", inner.data_type().clone(), true)),
            Arc::new(inner),
        ),
    ];
    let expected = concat!(
        r#"{"n":null,"s\"":"a\"b\\c\u0001\n\t","t":"2013-01-01T05:15:00","d":"2013-01-01","#,
        r#""b":"\\xdead","f":"NaN","m":1.50,"l":[1,null]}"#
    );
    let record = StructArray::from(columns);
    assert_eq!(text(record.clone()), [expected]);
    assert_eq!(
        values(record, Format::Binary, "UTC"),
        [Some(expected.as_bytes().to_vec())]
    );

    let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    map.keys().append_value("k");
    map.values().append_value("v");
    map.keys().append_value("none");
    map.values().append_null();
    map.append(true).expect("as many keys as values");
    assert_eq!(text(map.finish()), [r#"{"k":"v","none":null}"#]);

    let zoned = TimestampMillisecondArray::from(vec![1_356_998_400_000]).with_timezone("UTC");
    let record = StructArray::from(vec![(
        Arc::new(Field::new("z", zoned.data_type().clone(), true)),
        Arc::new(zoned) as ArrayRef,
    )]);
    assert_eq!(
        text_in(record, "America/New_York"),
        [r#"{"z":"2012-12-31T19:00:00-05:00"}"#]
    );
}

#[test]
fn a_row_is_one_message() {
    let batch = RecordBatch::try_from_iter_with_nullable([
        (
            "a",
            Arc::new(Int32Array::from(vec![Some(1), None])) as ArrayRef,
            true,
        ),
        (
            "b",
            Arc::new(StringArray::from(vec!["xy", ""])) as ArrayRef,
            true,
        ),
    ])
    .expect("a batch");
    let encoder =
        RowEncoder::new(&batch, &[Format::Binary, Format::Text], zone("UTC")).expect("an encoder");
    let mut out = BytesMut::new();
    encoder.write(0, &mut out).expect("a row");
    encoder.write(1, &mut out).expect("a row");
    let first = b"D\0\0\0\x14\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x02xy";
    let second = b"D\0\0\0\x0e\0\x02\xff\xff\xff\xff\0\0\0\0";
    assert_eq!(out, [first.as_slice(), second].concat());
}

#[test]
fn a_row_that_cannot_be_written_leaves_nothing_behind() {
    let batch = RecordBatch::try_from_iter([
        ("a", Arc::new(Int32Array::from(vec![1])) as ArrayRef),
        (
            "b",
            Arc::new(TimestampMillisecondArray::from(vec![i64::MAX])) as ArrayRef,
        ),
    ])
    .expect("a batch");
    let encoder = RowEncoder::new(&batch, &[Format::Binary; 2], zone("UTC")).expect("an encoder");
    let mut out = BytesMut::from(&b"before"[..]);
    assert_eq!(encoder.write(0, &mut out), Err(Unencodable::DateTime));
    assert_eq!(out, "before");
}

#[test]
fn columns_are_described_by_their_types() {
    let fields = [
        Field::new("n", DataType::Decimal128(12, 4), true),
        Field::new("ids", DataType::new_list(DataType::Int64, true), true),
    ]
    .map(Arc::new);
    let description =
        row_description(&fields, &[Format::Text, Format::Binary]).expect("two columns");
    let told: Vec<_> = description
        .fields
        .iter()
        .map(|field| {
            (
                field.name.as_str(),
                field.type_id,
                field.type_size,
                field.type_modifier,
                field.format_code,
            )
        })
        .collect();
    assert_eq!(
        told,
        [("n", 1700, -1, 786_440, 0), ("ids", 1016, -1, -1, 1)]
    );
    let column = Arc::new(Field::new("c", DataType::Int32, true));
    let many = vec![column; MAX_COLUMNS + 1];
    assert!(row_description(&many, &vec![Format::Text; many.len()]).is_err());
}
