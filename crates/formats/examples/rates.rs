//! Prints the rates of all formats on this machine: `cargo run --release -p highwater-formats --example rates [rows] [milliseconds] [filter]`.

use std::{error::Error, time::Duration};

use highwater_formats::rates;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rows = arguments.next().map_or(Ok(8_192), |text| text.parse())?;
    let millis = arguments.next().map_or(Ok(500), |text| text.parse())?;
    let filter = arguments.next().unwrap_or_default();
    println!("{:<36} {:>14} {:>10}", "work", "rows/s", "MB/s");
    for rate in rates::measure(rows, Duration::from_millis(millis), &filter)? {
        println!(
            "{:<36} {:>14.0} {:>10.0}",
            rate.work, rate.rows_per_second, rate.megabytes_per_second
        );
    }
    Ok(())
}
