//! Bids of an auction house: the rows that are measured.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, Int64Array, StringArray, TimestampMillisecondArray},
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
};

/// A number and an instant: what a query over bids typically reads.
pub(super) const TWO_COLUMNS: [usize; 2] = [2, 5];

pub(super) const BIGINT_COLUMN: usize = 2;
pub(super) const STRING_COLUMN: usize = 4;

const CHANNELS: [&str; 5] = ["Google", "Facebook", "Baidu", "Apple", "channel-4831"];

/// Seven columns, about 187 bytes a row as JSON.
pub(super) fn schema() -> SchemaRef {
    let column = |name, data_type| Field::new(name, data_type, true);
    Arc::new(Schema::new(vec![
        column("auction", DataType::Int64),
        column("bidder", DataType::Int64),
        column("price", DataType::Int64),
        column("channel", DataType::Utf8),
        column("url", DataType::Utf8),
        column("dateTime", DataType::Timestamp(TimeUnit::Millisecond, None)),
        column("extra", DataType::Utf8),
    ]))
}

/// Rows that are the same in every run.
pub(super) fn columns(rows: usize) -> Vec<ArrayRef> {
    let rows = i64::try_from(rows).unwrap_or(i64::MAX);
    let mut noise = Noise(0x9E37_79B9_7F4A_7C15);
    let mut number = |from: i64, span: u64| {
        (0..rows)
            .map(|_| from + (noise.next() % span).cast_signed())
            .collect::<Vec<i64>>()
    };
    let auctions = number(1_000, 100_000);
    let bidders = number(1_000, 50_000);
    let prices = number(100, 10_000_000);
    let choices = number(0, 1 << 40);
    let channel = |choice: i64| CHANNELS[usize::try_from(choice).unwrap_or(0) % CHANNELS.len()];
    let url = |choice: i64| {
        format!(
            "https://www.auction.example/{:06x}/item.htm?query={}",
            choice & 0xff_ffff,
            choice & 7
        )
    };
    vec![
        Arc::new(Int64Array::from(auctions)),
        Arc::new(Int64Array::from(bidders)),
        Arc::new(Int64Array::from(prices)),
        Arc::new(StringArray::from_iter_values(
            choices.iter().map(|&choice| channel(choice)),
        )),
        Arc::new(StringArray::from_iter_values(
            choices.iter().map(|&choice| url(choice)),
        )),
        Arc::new(TimestampMillisecondArray::from(
            (0..rows)
                .map(|row| 1_577_836_800_000 + row / 10)
                .collect::<Vec<_>>(),
        )),
        Arc::new(StringArray::from_iter_values(
            choices
                .iter()
                .map(|&choice| format!("{choice:016x}{:05}", choice % 100_000)),
        )),
    ]
}

/// A fixed sequence of numbers without a pattern (xorshift).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
