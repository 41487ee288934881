//! Played time: minutes since 1970, as a function of the real time since the start.

use std::time::Duration;

/// Minutes in an hour.
const MINUTES: f64 = 60.0;

/// Maps real time to played time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    first_minute: i64,
    /// Played hours in a real second.
    speed: f64,
}

impl Clock {
    /// A clock that shows `first_minute` at the start.
    pub fn new(first_minute: i64, speed: f64) -> Self {
        Self {
            first_minute,
            speed,
        }
    }

    /// The played minute after this much real time.
    pub fn minute_at(self, elapsed: Duration) -> i64 {
        // The cast saturates, so no speed leads to a wrong minute.
        let played = (elapsed.as_secs_f64() * self.speed * MINUTES) as i64;
        self.first_minute.saturating_add(played)
    }
}

/// The minute of a time like `2013-01-01T10:00:00Z`; `None` when it is not of that form.
pub(super) fn parse_minute(time: &str) -> Option<i64> {
    let (date, clock) = time.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(str::parse::<i64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let mut clock = clock.splitn(3, ':').map(str::parse::<i64>);
    let (hour, minute) = (clock.next()?.ok()?, clock.next()?.ok()?);
    Some((days_since_1970(year, month, day) * 24 + hour) * 60 + minute)
}

/// Days of the Gregorian calendar. Years are counted from March, so that a leap day is the last day of its year.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days_before_month = (153 * month + 2) / 5;
    const DAYS_FROM_MARCH_0000_TO_1970: i64 = 719_468;
    year * 365 + leap_days + days_before_month + day - 1 - DAYS_FROM_MARCH_0000_TO_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_since_1970() {
        for (time, minute) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-03-01T00:00:00Z", 59 * 1_440),
            ("2000-02-29T00:00:00Z", 951_782_400 / 60),
            ("2013-01-01T10:00:00Z", 1_357_034_400 / 60),
            ("2013-02-01T04:05:00Z", 1_359_691_500 / 60),
        ] {
            assert_eq!(parse_minute(time), Some(minute), "{time}");
        }
        for wrong in [
            "",
            "NA",
            "2013-01-01",
            "2013-01-01T10:00:00",
            "2013-01-xxT10:00:00Z",
        ] {
            assert_eq!(parse_minute(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn played_time_follows_real_time() {
        let clock = Clock::new(100, 18.0);
        assert_eq!(clock.minute_at(Duration::ZERO), 100);
        assert_eq!(clock.minute_at(Duration::from_millis(500)), 100 + 9 * 60);
        assert_eq!(
            Clock::new(100, f64::MAX).minute_at(Duration::from_secs(1)),
            i64::MAX
        );
    }
}
