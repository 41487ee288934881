//! Dates and times.

use datafusion::arrow::array::{Int64Array, StringArray, TimestampMillisecondArray};

use crate::harness::{check, column, over};

#[test]
fn texts_and_numbers() {
    check(&[
        (
            "format_date(from_days(0), 'EEE, d MMM yyyy')",
            "Thu, 1 Jan 1970",
        ),
        ("format_date(from_days(-1), 'dd.MM.yyyy')", "31.12.1969"),
        ("format_date(from_days(0), 'yyyy HH:mm')", "1970 00:00"),
        ("datetostring(0, 'HH:mm')", "NULL"),
        ("format_date(from_days(0), 'qqqqq')", "NULL"),
        (
            "format_time(parse_time('06:30:15.25', 'HH:mm:ss.SS'), 'h:mm:ss.SSS a')",
            "6:30:15.250 AM",
        ),
        ("format_time(parse_time('06', 'HH'), 'yyyy')", "NULL"),
        (
            "format_timestamp(from_unixtime(1700000000000), 'yyyy-MM-dd HH:mm:ss zzz', 'America/New_York')",
            "2023-11-14 17:13:20 EST",
        ),
        (
            "format_timestamp(from_unixtime(0), 'HH', 'Mars/Olympus')",
            "NULL",
        ),
        ("format_timestamp(NULL, 'HH')", "NULL"),
        ("parse_date('March 2024', 'MMMM yyyy')", "2024-03-01"),
        ("parse_date('2024-13-01', 'yyyy-MM-dd')", "NULL"),
        ("parse_date('2024-03-01-late', 'yyyy-MM-dd')", "2024-03-01"),
        ("parse_date('2024-03-01 10', 'yyyy-MM-dd HH')", "NULL"),
        ("stringtodate('2024-03-01-late', 'yyyy-MM-dd')", "NULL"),
        (
            "parse_timestamp('2024-03-10 12:00', 'yyyy-MM-dd HH:mm', 'Asia/Tokyo')",
            "2024-03-10T03:00:00",
        ),
        (
            "stringtotimestamp('1970-01-01T00:00:01Z', 'yyyy-MM-dd''T''HH:mm:ssX')",
            "1000",
        ),
        ("stringtotimestamp('x', 'yyyy')", "NULL"),
        ("timestamptostring(1000, 'ss')", "01"),
        ("datetostring(31, 'MM-dd')", "02-01"),
        ("unix_date(from_days(77))", "77"),
        ("unix_timestamp(from_unixtime(-5))", "-5"),
        ("unix_timestamp() > 1600000000000", "true"),
        (
            "convert_tz(from_unixtime(0), 'UTC', 'America/New_York')",
            "1969-12-31T19:00:00",
        ),
        ("convert_tz(from_unixtime(0), 'UTC', 'nowhere')", "NULL"),
    ]);
}

#[test]
fn units_move_dates_and_times() {
    check(&[
        ("dateadd('DAYS', 3, from_days(1))", "1970-01-05"),
        ("dateadd('HOURS', 25, from_days(0))", "1970-01-02"),
        ("datesub('HOURS', 1, from_days(0))", "1969-12-31"),
        ("datesub('WEEKS', 1, from_days(0))", "NULL"),
        ("dateadd(NULL, 1, from_days(0))", "NULL"),
        (
            "timeadd('MINUTES', 90, parse_time('23:00', 'HH:mm'))",
            "00:30:00",
        ),
        (
            "timesub('SECONDS', 1, parse_time('00:00', 'HH:mm'))",
            "23:59:59",
        ),
        (
            "timestampadd('MILLISECONDS', -1, from_unixtime(0))",
            "1969-12-31T23:59:59.999",
        ),
        (
            "timestampsub('DAYS', 1, from_unixtime(0))",
            "1969-12-31T00:00:00",
        ),
        (
            "timestampadd('DAYS', 2000000000, from_unixtime(9223372036854775807))",
            "NULL",
        ),
    ]);
}

#[test]
fn patterns_from_a_column() {
    let columns = vec![
        column(
            "t",
            StringArray::from(vec![
                Some("2024-01-02"),
                Some("02/01/2024"),
                Some("x"),
                None,
            ]),
        ),
        column(
            "p",
            StringArray::from(vec![
                Some("yyyy-MM-dd"),
                Some("dd/MM/yyyy"),
                Some("["),
                Some("yyyy"),
            ]),
        ),
    ];
    assert_eq!(
        over(columns.clone(), "parse_date(t, p)"),
        ["2024-01-02", "2024-01-02", "NULL", "NULL"]
    );
    assert_eq!(
        over(columns, "stringtodate(t, p)"),
        ["19724", "19724", "NULL", "NULL"]
    );
}

#[test]
fn instants_of_a_column() {
    let columns = vec![
        column(
            "ts",
            TimestampMillisecondArray::from(vec![Some(0), None, Some(86_400_000)]),
        ),
        column(
            "ms",
            Int64Array::from(vec![Some(0), None, Some(86_400_000)]),
        ),
    ];
    assert_eq!(
        over(columns.clone(), "timestamptostring(ts, 'dd')"),
        ["01", "NULL", "02"]
    );
    assert_eq!(
        over(
            columns.clone(),
            "timestamptostring(ms, 'dd', 'America/Lima')"
        ),
        ["31", "NULL", "01"]
    );
    assert_eq!(
        over(columns, "from_unixtime(ms) = ts"),
        ["true", "NULL", "true"]
    );
}
