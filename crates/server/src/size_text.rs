//! Sizes as people read them.

/// A size in the unit that gives it one to three digits before the point.
pub fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let mut size = bytes as f64 / 1000.0;
    let mut unit = 0;
    // What would be rounded to 1000 belongs to the next unit.
    while size >= 999.5 && unit + 1 < UNITS.len() {
        size /= 1000.0;
        unit += 1;
    }
    match size < 9.95 {
        true => format!("{size:.1} {}", UNITS[unit]),
        false => format!("{size:.0} {}", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_units_that_fit() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1_000, "1.0 kB"),
            (4_321, "4.3 kB"),
            (9_960, "10 kB"),
            (999_400, "999 kB"),
            (999_600, "1.0 MB"),
            (12_345_678, "12 MB"),
            (7_100_000_000, "7.1 GB"),
            (u64::MAX, "18447 PB"),
        ] {
            assert_eq!(size_text(bytes), text);
        }
    }
}
