//! The calendar, for every day that 64-bit milliseconds can name.
//!
//! Proleptic Gregorian, as Java's `LocalDate`. Years are counted in cycles of 400, which all have the same 146,097 days; a year begins in March, so
//! that the leap day is its last.

pub(super) const DAY_MS: i64 = 86_400_000;

const DAYS_PER_CYCLE: i64 = 146_097;

/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_FROM_MARCH_0: i64 = 719_468;

/// A date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
}

/// The date of a day since the epoch.
pub(super) fn date_of(days: i64) -> Date {
    let days = days + EPOCH_FROM_MARCH_0;
    let cycle = days.div_euclid(DAYS_PER_CYCLE);
    let day_of_cycle = days.rem_euclid(DAYS_PER_CYCLE);
    // Take the leap days out, then years have 365 days.
    let year_of_cycle = (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524
        - day_of_cycle / 146_096)
        / 365;
    let day_of_year =
        day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    // From March on, five months have 153 days.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = cycle * 400 + year_of_cycle + i64::from(month <= 2);
    Date { year, month, day }
}

/// Days since the epoch of a date. The year must be within ±10^12 or so; the month and day within the calendar.
pub(crate) fn days_of(date: Date) -> i64 {
    let year = date.year - i64::from(date.month <= 2);
    let cycle = year.div_euclid(400);
    let year_of_cycle = year.rem_euclid(400);
    let month_from_march = (date.month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + date.day - 1;
    let day_of_cycle = year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    cycle * DAYS_PER_CYCLE + day_of_cycle - EPOCH_FROM_MARCH_0
}

pub(super) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub(crate) fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Day of the year, from 1.
pub(super) fn day_of_year(date: Date) -> i64 {
    days_of(date)
        - days_of(Date {
            year: date.year,
            month: 1,
            day: 1,
        })
        + 1
}

/// Day of the week, 1 = Monday.
pub(super) fn day_of_week(days: i64) -> i64 {
    (days + 3).rem_euclid(7) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{Datelike, NaiveDate};
    use proptest::prelude::*;

    #[test]
    fn known_days() {
        assert_eq!(
            date_of(0),
            Date {
                year: 1970,
                month: 1,
                day: 1
            }
        );
        assert_eq!(
            date_of(-1),
            Date {
                year: 1969,
                month: 12,
                day: 31
            }
        );
        assert_eq!(
            date_of(11_016),
            Date {
                year: 2000,
                month: 2,
                day: 29
            }
        );
        assert_eq!(day_of_week(0), 4);
        assert_eq!(
            day_of_year(Date {
                year: 2024,
                month: 12,
                day: 31
            }),
            366
        );
    }

    proptest! {
        #[test]
        fn agrees_with_chrono(days in -90_000_000i32..90_000_000) {
            let expected = NaiveDate::from_num_days_from_ce_opt(days + 719_163).unwrap();
            let date = date_of(i64::from(days));
            prop_assert_eq!((date.year, date.month, date.day), (i64::from(expected.year()), i64::from(expected.month()), i64::from(expected.day())));
            prop_assert_eq!(days_of(date), i64::from(days));
            prop_assert_eq!(day_of_week(i64::from(days)), i64::from(expected.weekday().number_from_monday()));
            prop_assert_eq!(day_of_year(date), i64::from(expected.ordinal()));
        }

        #[test]
        fn every_instant_has_a_date(millis: i64) {
            let days = millis.div_euclid(DAY_MS);
            prop_assert_eq!(days_of(date_of(days)), days);
        }
    }
}
