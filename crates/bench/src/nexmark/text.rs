//! Numbers and instants as text.

use std::io::Write;

const DAY_MS: i64 = 86_400_000;

pub(super) fn push_number(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// `2015-07-15 00:00:00.000`.
pub(super) fn push_instant(millis: i64, out: &mut Vec<u8>) {
    let (year, month, day) = civil(millis.div_euclid(DAY_MS));
    let of_day = millis.rem_euclid(DAY_MS);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, fraction) = (of_day / 1_000 % 60, of_day % 1_000);
    write!(
        out,
        "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{fraction:03}"
    )
    .expect("a vector takes all that is written");
}

/// Year, month and day of a day since 1970-01-01, in the proleptic Gregorian calendar (Hinnant's `civil_from_days`).
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_as_they_are_meant() {
        let text = |millis| {
            let mut out = Vec::new();
            push_instant(millis, &mut out);
            String::from_utf8(out).expect("ASCII")
        };
        assert_eq!(text(0), "1970-01-01 00:00:00.000");
        assert_eq!(text(951_782_400_000), "2000-02-29 00:00:00.000");
        assert_eq!(
            text(1_436_918_400_000 + 86_399_999),
            "2015-07-15 23:59:59.999"
        );
        assert_eq!(text(-1), "1969-12-31 23:59:59.999");
    }
}
