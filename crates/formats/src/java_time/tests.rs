use proptest::prelude::*;

use super::{TimePattern, Zone};
use crate::FormatError;

fn pattern(text: &str) -> TimePattern {
    TimePattern::compile(text).unwrap()
}

fn zone(name: &str) -> Zone {
    Zone::parse(name).unwrap()
}

/// 2019-08-27T13:31:09.250Z, a Tuesday.
const TUESDAY: i64 = 1_566_912_669_250;

#[test]
fn instants_are_written() {
    for (text, expected) in [
        ("yyyy-MM-dd'T'HH:mm:ssX", "2019-08-27T13:31:09Z"),
        ("yy/M/d h:mm a", "19/8/27 1:31 PM"),
        (
            "EEE, d MMM yyyy HH:mm:ss Z",
            "Tue, 27 Aug 2019 13:31:09 +0000",
        ),
        ("EEEE d MMMM uuuu G", "Tuesday 27 August 2019 AD"),
        ("MMMMM EEEEE", "A T"),
        ("D DDD", "239 239"),
        ("HH kk KK hh", "13 13 01 01"),
        ("ss.S SSS SSSSSS n", "09.2 250 250000 250000000"),
        ("A N", "48669250 48669250000000"),
        (
            "X XX XXX x xx xxx Z ZZZZ ZZZZZ O",
            "Z Z Z +00 +0000 +00:00 +0000 GMT Z GMT",
        ),
        ("zzz VV", "UTC UTC"),
        ("''yyyy'' 'it''s' [HH]", "'2019' it's 13"),
        ("yyyyMMddHHmmssSSS", "20190827133109250"),
        ("y u yyy uuuuu", "2019 2019 2019 02019"),
    ] {
        assert_eq!(pattern(text).format(TUESDAY), expected, "{text}");
    }
}

#[test]
fn zones_are_applied() {
    let full = pattern("yyyy-MM-dd HH:mm:ss XXX zzz VV");
    assert_eq!(
        full.format_in(TUESDAY, &zone("America/Los_Angeles")),
        "2019-08-27 06:31:09 -07:00 PDT America/Los_Angeles"
    );
    assert_eq!(
        full.format_in(TUESDAY, &zone("+05:30")),
        "2019-08-27 19:01:09 +05:30 +05:30 +05:30"
    );
    assert_eq!(
        pattern("X x O OOOO").format_in(TUESDAY, &zone("UTC+5:30".replace("+5", "+05").as_str())),
        "+0530 +0530 GMT+5:30 GMT+05:30"
    );

    let local = pattern("yyyy-MM-dd HH:mm");
    // Winter, summer, the hour that was skipped and the one that came twice.
    for (text, expected) in [
        ("2020-01-15 12:00", "2020-01-15T11:00Z"),
        ("2020-07-15 12:00", "2020-07-15T10:00Z"),
        ("2020-03-29 02:30", "2020-03-29T01:30Z"),
        ("2020-10-25 02:30", "2020-10-25T00:30Z"),
    ] {
        let millis = local.parse_in(text, &zone("Europe/Paris")).unwrap();
        assert_eq!(
            pattern("yyyy-MM-dd'T'HH:mmX").format(millis),
            expected,
            "{text}"
        );
    }
}

#[test]
fn texts_are_read() {
    for (text_pattern, text, expected) in [
        (
            "yyyy-MM-dd'T'HH:mm:ssX",
            "2018-05-11T21:58:33Z",
            1_526_075_913_000,
        ),
        (
            "yyyy-MM-dd'T'HH:mm:ss.SX",
            "2019-08-27T13:31:09.2+0000",
            1_566_912_669_200,
        ),
        (
            "yyyy-MM-dd'T'HH:mm:ssX",
            "2018-05-11T23:58:33+02",
            1_526_075_913_000,
        ),
        (
            "yy-MM-dd HH:mm:ssX",
            "10-04-19 12:00:17Z",
            1_271_678_417_000,
        ),
        ("yyyyMMdd", "19700102", 86_400_000),
        ("yyyyMMddHHmmssSSS", "19700101000000017", 17),
        ("yyyy-MM-dd", "1969-12-31", -86_400_000),
        ("d MMM yyyy", "2 jan 1970", 86_400_000),
        ("EEE d MMMM yyyy", "Thu 1 January 1970", 0),
        ("h:mm a", "12:05 am", 300_000),
        ("h a", "12 PM", 12 * 3_600_000),
        ("hh", "12", 0),
        ("kk", "24", 0),
        ("MM-dd", "02-29", 789 * 86_400_000),
        ("yyyy-MM-dd", "2019-02-31", 1_551_312_000_000),
        ("yyyy D", "1970 32", 31 * 86_400_000),
        ("yyyy[-MM[-dd]]", "1970", 0),
        ("yyyy[-MM[-dd]]", "1970-02", 31 * 86_400_000),
        ("yyyy[-MM[-dd]][ HH:mm]", "1970-01-01 00:01", 60_000),
        ("HH:mm VV", "01:00 Europe/Paris", 0),
        ("HH:mm zzz", "04:00 EST", 9 * 3_600_000),
        ("HH:mm z", "04:00 UTC", 4 * 3_600_000),
        ("HHmmxxx", "0100+01:00", 0),
        ("HH O", "09 GMT+9", 0),
        ("uuuu", "-0001", -62_198_755_200_000),
        ("y G", "1 BC", -62_167_219_200_000),
        ("A", "86399999", 86_399_999),
        ("'at' HH", "AT 01", 3_600_000),
    ] {
        assert_eq!(
            pattern(text_pattern).parse(text),
            Ok(expected),
            "{text} by {text_pattern}"
        );
    }
}

#[test]
fn texts_that_do_not_follow_say_where() {
    for (text_pattern, text, at) in [
        ("yyyy-MM-dd", "not a timestamp", 0),
        ("yyyy-MM-dd", "2019-13-01", 5),
        ("yyyy-MM-dd", "2019-01-32", 8),
        ("yyyy-MM-dd", "2019-01-01 ", 10),
        ("yyyy-MM-dd", "2019-1-01", 5),
        ("yyyy-MM-dd", "20190-01-01", 0),
        ("yyyy-MM-dd", "", 0),
        ("HH:mm", "24:00", 0),
        ("HH:mmX", "12:00", 5),
        ("MMM", "Foo", 0),
        ("HH HH", "01 02", 3),
        ("ss.SSS", "01.12", 3),
        ("HH VV", "01 Europe/Atlantis", 3),
        ("é", "e", 0),
    ] {
        assert_eq!(
            pattern(text_pattern).parse(text).unwrap_err().at,
            at,
            "{text} by {text_pattern}"
        );
    }
    assert!(pattern("EEE yyyy-MM-dd").parse("Mon 1970-01-01").is_err());
    assert!(pattern("yyyy D").parse("1970 366").is_err());
    let message = pattern("HH").parse("xx").unwrap_err().to_string();
    assert_eq!(
        message,
        "not a number of the pattern's width at position 0 of \"xx\""
    );
}

#[test]
fn patterns_that_cannot_be_say_where() {
    for (text, position) in [
        ("yyyy-MM-ddTHH", 10),
        ("yyyy 'open", 5),
        ("HH]", 2),
        ("[HH", 0),
        ("HH{", 2),
        ("YYYY", 0),
        ("HHH", 0),
        ("yyyy-MM-dd zzzz", 11),
        ("V", 0),
        ("SSSSSSSSSS", 0),
        ("ee", 0),
        ("é#", 2),
    ] {
        match TimePattern::compile(text) {
            Err(FormatError::InvalidPattern { position: at, .. }) => {
                assert_eq!(at, position, "{text}")
            }
            other => panic!("{text}: {other:?}"),
        }
    }
    assert!(TimePattern::compile(&"[".repeat(100_000)).is_err());
}

#[test]
fn dates_and_times() {
    assert_eq!(pattern("dd.MM.yyyy").parse_date("05.01.1970"), Ok(4));
    assert_eq!(pattern("dd.MM.yyyy").format_date(4), "05.01.1970");
    assert_eq!(pattern("HH:mm:ss").parse_time("00:00:04"), Ok(4000));
    assert_eq!(pattern("HH:mm:ss").format_time(4000), "00:00:04");
    assert!(pattern("HH:mm").has_time() && !pattern("HH:mm").has_date());
    assert!(pattern("[yy]").has_date() && !pattern("yy").has_time());
}

#[test]
fn zone_names() {
    for name in [
        "UTC",
        "utc",
        "Z",
        "Europe/Paris",
        "europe/paris",
        "+1",
        "-0530",
        "UTC+01:00",
        "GMT-8",
        "EST",
        "PDT",
    ] {
        assert!(Zone::parse(name).is_ok(), "{name}");
    }
    for name in ["", "Nowhere", "+25:00", "UTC+", "Europe/"] {
        assert!(
            matches!(Zone::parse(name), Err(FormatError::UnknownZone { .. })),
            "{name}"
        );
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back(millis in -62_135_596_800_000i64..253_402_300_799_999) {
        for text in ["yyyy-MM-dd'T'HH:mm:ss.SSSX", "EEE d MMM uuuu h:mm:ss.SSS a xxx", "uuuuDDDHHmmssSSS", "yyyy-MM-dd A [G]"] {
            let pattern = pattern(text);
            prop_assert_eq!(pattern.parse(&pattern.format(millis)), Ok(millis), "{}", text);
        }
        let paris = zone("Europe/Paris");
        let with_offset = pattern("yyyy-MM-dd HH:mm:ss.SSS XXXXX");
        prop_assert_eq!(with_offset.parse(&with_offset.format_in(millis, &paris)), Ok(millis));
    }

    #[test]
    fn nothing_panics(text_pattern in r#"[yuMdHhmsSnAaEXxZzVGDkKNO'\[\]\-: é]{0,16}"#, text in r"[\PC0-9:+\-]{0,16}", millis: i64) {
        if let Ok(pattern) = TimePattern::compile(&text_pattern) {
            let _ = pattern.parse(&text);
            let written = pattern.format_in(millis, &Zone::UTC);
            let _ = pattern.parse(&written);
        }
    }
}
