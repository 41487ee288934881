//! One frame of the demonstration: 23 lines of 80 columns, as a pure function of the answers.

use std::time::Duration;

use super::view::{HourDelay, Results, Total};
use crate::render::{pad_left, pad_right, truncate};

/// Columns of the progress bar's whole line.
const BAR: usize = 72;
/// Mean delays of this many minutes fill the bar beside an hour.
const FULL_DELAY: f64 = 60.0;
/// Columns of that bar.
const DELAY_BAR: usize = 18;
/// Columns of the left one of two lists.
const LEFT: usize = 33;
/// Columns of a route's name.
const ROUTE: usize = 11;
/// Columns of an airline's name.
const AIRLINE: usize = 26;
/// Hours that are listed.
const HOURS: usize = 7;
/// Routes and airlines that are listed.
const TOTALS: usize = 8;

/// How far the play has come.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    /// Events that the server acknowledged.
    pub events: u64,
    /// Events of the whole month.
    pub total: u64,
    /// Scheduled time of the last event.
    pub time: String,
    /// Real time since the start.
    pub elapsed: Duration,
}

/// The lines of a frame, cut to the terminal.
pub(super) fn frame(
    progress: &Progress,
    results: &Results,
    columns: usize,
    rows: usize,
) -> Vec<String> {
    let mut lines = vec![title(progress), bar(progress), String::new()];
    lines.push(
        " Departure delays per carrier and hour (delays_by_hour, a tumbling window)".to_owned(),
    );
    lines.push("   hour, UTC         carrier  flights   mean, min   longest".to_owned());
    lines.extend(padded(
        results.delays.iter().map(delay_line).collect(),
        HOURS,
    ));
    lines.push(String::new());
    lines.push(side_by_side(
        " Routes: mean arrival delay",
        "Airlines: mean departure delay (a join)",
    ));
    lines.push(side_by_side(
        &list_line("route", "flights", "delay", ROUTE),
        &list_line("name", "flights", "delay", AIRLINE),
    ));
    let list = |totals: &[Total], name_width| {
        padded(
            totals
                .iter()
                .map(|total| total_line(total, name_width))
                .collect(),
            TOTALS,
        )
    };
    let (routes, airlines) = (
        list(&results.routes, ROUTE),
        list(&results.airlines, AIRLINE),
    );
    lines.extend(
        routes
            .iter()
            .zip(&airlines)
            .map(|(route, airline)| side_by_side(route, airline)),
    );
    lines.truncate(rows);
    lines
        .iter()
        .map(|line| truncate(line.trim_end(), columns).into_owned())
        .collect()
}

fn title(progress: &Progress) -> String {
    let seconds = progress.elapsed.as_secs_f64();
    let rate = if seconds > 0.0 {
        (progress.events as f64 / seconds) as u64
    } else {
        0
    };
    format!(
        " Highwater demo   {} UTC   {} events   {}/s",
        pad_right(&progress.time, 16),
        pad_left(&grouped(progress.events), 6),
        pad_left(&grouped(rate), 5),
    )
}

fn bar(progress: &Progress) -> String {
    let share = progress.events as f64 / progress.total.max(1) as f64;
    format!(" {} {:>3.0} %", blocks(share, BAR), share * 100.0)
}

/// A bar of full and empty blocks.
fn blocks(share: f64, width: usize) -> String {
    let full = ((share * width as f64).round() as usize).min(width);
    format!("{}{}", "█".repeat(full), "░".repeat(width - full))
}

fn delay_line(delay: &HourDelay) -> String {
    let share = delay.mean.unwrap_or(0.0).max(0.0) / FULL_DELAY;
    let full = ((share * DELAY_BAR as f64).round() as usize).min(DELAY_BAR);
    format!(
        "   {}  {}  {:>7}   {}   {}   {}",
        pad_right(delay.hour.get(..16).unwrap_or(&delay.hour), 16),
        pad_right(&delay.carrier, 7),
        delay.flights,
        pad_left(&minutes(delay.mean), 9),
        pad_left(
            &delay
                .max
                .map_or_else(|| "-".to_owned(), |max| format!("{max:.0}")),
            7
        ),
        "█".repeat(full),
    )
}

fn total_line(total: &Total, name_width: usize) -> String {
    let flights = grouped(total.flights.unsigned_abs());
    list_line(&total.name, &flights, &minutes(total.mean), name_width)
}

fn list_line(name: &str, flights: &str, delay: &str, name_width: usize) -> String {
    format!(
        "   {} {}   {}",
        pad_right(&truncate(name, name_width), name_width),
        pad_left(flights, 7),
        pad_left(delay, 7),
    )
}

fn minutes(mean: Option<f64>) -> String {
    // Adding zero turns the zero that a small negative number is rounded to into a positive one.
    mean.map_or_else(
        || "-".to_owned(),
        |mean| format!("{:.1}", (mean * 10.0).round() / 10.0 + 0.0),
    )
}

fn side_by_side(left: &str, right: &str) -> String {
    format!("{}{right}", pad_right(left, LEFT))
}

/// As many lines as the list has room for, so that nothing below it moves.
fn padded(mut lines: Vec<String>, height: usize) -> Vec<String> {
    lines.resize(height, String::new());
    lines
}

/// `27,004`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    fn total(name: &str, flights: i64, mean: f64) -> Total {
        Total {
            name: name.to_owned(),
            flights,
            mean: Some(mean),
        }
    }

    fn full_results() -> Results {
        let delay = HourDelay {
            hour: "2013-01-31 23:00:00".to_owned(),
            carrier: "UA".to_owned(),
            flights: 123,
            mean: Some(1301.25),
            max: Some(1301.0),
        };
        Results {
            delays: vec![delay; 7],
            routes: vec![total("LGA → ATL", 10_000, -12.5); 8],
            airlines: vec![total("AirTran Airways Corporation", 10_000, -12.5); 8],
        }
    }

    fn progress() -> Progress {
        Progress {
            events: 13_502,
            total: 27_004,
            time: "2013-01-16 05:30".to_owned(),
            elapsed: Duration::from_secs(10),
        }
    }

    #[test]
    fn a_full_frame_leaves_one_of_24_lines_of_80_columns() {
        let lines = frame(&progress(), &full_results(), 200, 100);
        assert_eq!(lines.len(), 23);
        for line in &lines {
            assert!(line.width() <= 80, "{} columns: {line}", line.width());
        }
    }

    #[test]
    fn an_empty_frame_has_the_same_height() {
        assert_eq!(
            frame(&Progress::default(), &Results::default(), 80, 24).len(),
            23
        );
    }

    #[test]
    fn a_small_terminal_gets_what_fits() {
        let lines = frame(&progress(), &full_results(), 40, 10);
        assert_eq!(lines.len(), 10);
        assert!(lines.iter().all(|line| line.width() <= 40));
    }

    #[test]
    fn counters() {
        let lines = frame(&progress(), &full_results(), 80, 24);
        assert_eq!(
            lines[0],
            " Highwater demo   2013-01-16 05:30 UTC   13,502 events   1,350/s"
        );
        assert!(lines[1].ends_with("50 %"));
        assert!(
            lines[5].contains("2013-01-31 23:00  UA           123      1301.3      1301"),
            "{}",
            lines[5]
        );
        assert!(
            lines[15].contains("LGA → ATL    10,000     -12.5"),
            "{}",
            lines[15]
        );
    }

    #[test]
    fn a_mean_of_nearly_zero_has_no_sign() {
        assert_eq!(
            [Some(-0.04), Some(-0.06), None].map(minutes),
            ["0.0", "-0.1", "-"]
        );
    }

    #[test]
    fn thousands() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
    }
}
