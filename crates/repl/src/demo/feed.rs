//! The bundled month, in the order of its scheduled minutes, given out as CSV batches.
//!
//! INVARIANT: the event time (`time_hour`) never goes back from one event to the next, so no window is ever late.

use std::io::Read;

use anyhow::Context;
use csv::ByteRecord;
use flate2::read::GzDecoder;

use super::clock::parse_minute;

/// The flights, as the example folder has them.
const FLIGHTS: &[u8] = include_bytes!("../../../../examples/flights/flights-2013-01.csv.gz");
/// The airlines, with a line of names.
pub(super) const AIRLINES: &[u8] = include_bytes!("../../../../examples/flights/airlines.csv");
/// What [`Batch::csv`] is sent with.
pub(super) const COPY_FLIGHTS: &str = "COPY flights FROM STDIN WITH (FORMAT csv, NULL 'NA')";

/// Events that have not been sent.
pub(super) struct Feed {
    /// In the order of their minutes.
    events: Vec<Event>,
    /// The first event that has not been sent.
    next: usize,
}

struct Event {
    minute: i64,
    record: ByteRecord,
}

/// Events to send together.
pub(super) struct Batch {
    /// Lines without names, for [`COPY_FLIGHTS`].
    pub csv: Vec<u8>,
    /// The scheduled minute of the last event, like `2013-01-01 10:15`.
    pub last_time: String,
}

impl Feed {
    /// The month that the binary carries.
    pub fn bundled() -> anyhow::Result<Self> {
        Self::read(GzDecoder::new(FLIGHTS)).context("the bundled flights")
    }

    fn read(data: impl Read) -> anyhow::Result<Self> {
        let mut reader = csv::Reader::from_reader(data);
        let names = reader.byte_headers()?.clone();
        let column = |name: &str| {
            names
                .iter()
                .position(|field| field == name.as_bytes())
                .with_context(|| format!("there is no column {name}"))
        };
        let (hour_column, minute_column) = (column("time_hour")?, column("minute")?);
        let mut events = Vec::new();
        for record in reader.into_byte_records() {
            let record = record?;
            let hour = field(&record, hour_column).and_then(parse_minute);
            let minute = field(&record, minute_column).and_then(|text| text.parse::<i64>().ok());
            let place = || format!("record {}", events.len() + 1);
            let minute = hour.with_context(place)? + minute.with_context(place)?;
            events.push(Event { minute, record });
        }
        // A stable sort: events of one minute stay in the order of the file.
        events.sort_by_key(|event| event.minute);
        Ok(Self { events, next: 0 })
    }

    /// All events, sent or not.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether everything has been sent.
    pub fn is_empty(&self) -> bool {
        self.next == self.events.len()
    }

    /// The minute of the first event.
    pub fn first_minute(&self) -> i64 {
        self.events.first().map_or(0, |event| event.minute)
    }

    /// Takes the events up to a minute, not more than `limit`; `None` when none is due.
    pub fn take_due(&mut self, minute: i64, limit: usize) -> anyhow::Result<Option<Batch>> {
        let waiting = &self.events[self.next..];
        let due = waiting
            .partition_point(|event| event.minute <= minute)
            .min(limit);
        let Some(last) = due.checked_sub(1).map(|index| &waiting[index]) else {
            return Ok(None);
        };
        let mut writer = csv::Writer::from_writer(Vec::new());
        for event in &waiting[..due] {
            writer.write_byte_record(&event.record)?;
        }
        let batch = Batch {
            csv: writer.into_inner()?,
            last_time: shown_time(last),
        };
        self.next += due;
        Ok(Some(batch))
    }
}

fn field(record: &ByteRecord, column: usize) -> Option<&str> {
    std::str::from_utf8(record.get(column)?).ok()
}

/// The event's scheduled hour with its minute. The hour is the record's last column.
fn shown_time(event: &Event) -> String {
    let time = field(&event.record, event.record.len() - 1).unwrap_or_default();
    let hour = time.get(..13).unwrap_or_default().replace('T', " ");
    format!("{hour}:{:02}", event.minute.rem_euclid(60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_month_is_whole_and_in_order() {
        let mut feed = Feed::bundled().expect("readable");
        assert_eq!(feed.len(), 27_004);
        let mut sent = 0;
        let mut last_hour = String::new();
        while let Some(batch) = feed.take_due(i64::MAX, 1_000).expect("written") {
            for line in String::from_utf8(batch.csv).expect("text").lines() {
                let fields: Vec<&str> = line.split(',').collect();
                assert_eq!(fields.len(), 19);
                assert!(
                    *fields[18] >= *last_hour,
                    "{} after {last_hour}",
                    fields[18]
                );
                last_hour = fields[18].to_owned();
                sent += 1;
            }
        }
        assert!(feed.is_empty());
        assert_eq!(sent, 27_004);
    }

    #[test]
    fn only_what_is_due_is_taken() {
        let data = "minute,time_hour\n30,2013-01-01T10:00:00Z\n5,2013-01-01T10:00:00Z\n0,2013-01-01T11:00:00Z\n";
        let mut feed = Feed::read(data.as_bytes()).expect("readable");
        let start = feed.first_minute();
        assert!(feed.take_due(start - 1, 10).expect("written").is_none());
        let batch = feed
            .take_due(start + 54, 10)
            .expect("written")
            .expect("two are due");
        assert_eq!(
            batch.csv,
            b"5,2013-01-01T10:00:00Z\n30,2013-01-01T10:00:00Z\n"
        );
        assert_eq!(batch.last_time, "2013-01-01 10:30");
        assert!(feed.take_due(start + 54, 10).expect("written").is_none());
        assert!(!feed.is_empty());
    }

    #[test]
    fn a_batch_is_bounded() {
        let mut feed = Feed::bundled().expect("readable");
        let batch = feed.take_due(i64::MAX, 7).expect("written").expect("due");
        assert_eq!(batch.csv.iter().filter(|byte| **byte == b'\n').count(), 7);
    }

    #[test]
    fn a_broken_record_is_named() {
        let error = Feed::read("minute,time_hour\n5,soon\n".as_bytes())
            .err()
            .expect("no time");
        assert_eq!(error.to_string(), "record 1");
        let error = Feed::read("minute\n5\n".as_bytes())
            .err()
            .expect("no column");
        assert!(error.to_string().contains("time_hour"));
    }
}
