//! An instant to text.

use super::{
    civil::{self, DAY_MS, Date},
    field::{Field, Item, Number, Sign},
    names, offset,
    zone::Zone,
};

/// Writes an instant as `zone` shows it.
pub(super) fn format(items: &[Item], millis: i64, zone: &Zone) -> String {
    let view = View::new(millis, zone);
    let mut out = String::new();
    view.write_items(items, &mut out);
    out
}

/// An instant, taken apart in its zone.
struct View<'z> {
    millis: i64,
    zone: &'z Zone,
    offset: i64,
    days: i64,
    date: Date,
    milli_of_day: i64,
}

impl<'z> View<'z> {
    fn new(millis: i64, zone: &'z Zone) -> Self {
        let offset = zone.offset_at(millis);
        let local = millis.saturating_add(offset * 1000);
        let days = local.div_euclid(DAY_MS);
        Self {
            millis,
            zone,
            offset,
            days,
            date: civil::date_of(days),
            milli_of_day: local.rem_euclid(DAY_MS),
        }
    }

    fn write_items(&self, items: &[Item], out: &mut String) {
        for item in items {
            self.write_item(item, out);
        }
    }

    fn write_item(&self, item: &Item, out: &mut String) {
        match item {
            Item::Literal(text) => out.push_str(text),
            Item::Number(number) => write_number(out, self.get(number.field), number),
            Item::ShortYear { .. } => out.push_str(&format!(
                "{:02}",
                self.get(Field::YearOfEra).rem_euclid(100)
            )),
            Item::Fraction { digits } => {
                let nanos = format!("{:09}", self.get(Field::Nano));
                out.push_str(&nanos[..*digits]);
            }
            Item::Text { field, style } => {
                out.push_str(names::name_of(*field, *style, self.get(*field)))
            }
            Item::Offset(style) => offset::write(out, self.offset, style),
            Item::LocalizedOffset { full } => offset::write_localized(out, self.offset, *full),
            Item::ZoneName => out.push_str(&self.zone.short_name_at(self.millis)),
            Item::ZoneId => out.push_str(&self.zone.id()),
            Item::Optional(items) => self.write_items(items, out),
        }
    }

    fn get(&self, field: Field) -> i64 {
        let hour = self.milli_of_day / 3_600_000;
        match field {
            Field::Era => i64::from(self.date.year > 0),
            Field::Year => self.date.year,
            Field::YearOfEra if self.date.year > 0 => self.date.year,
            Field::YearOfEra => 1 - self.date.year,
            Field::Month => self.date.month,
            Field::Day => self.date.day,
            Field::DayOfYear => civil::day_of_year(self.date),
            Field::DayOfWeek => civil::day_of_week(self.days),
            Field::AmPm => hour / 12,
            Field::Hour => hour,
            Field::ClockHour => {
                if hour == 0 {
                    24
                } else {
                    hour
                }
            }
            Field::HourOfAmPm => hour % 12,
            Field::ClockHourOfAmPm => {
                if hour % 12 == 0 {
                    12
                } else {
                    hour % 12
                }
            }
            Field::Minute => self.milli_of_day / 60_000 % 60,
            Field::Second => self.milli_of_day / 1000 % 60,
            Field::Nano => self.milli_of_day % 1000 * 1_000_000,
            Field::MilliOfDay => self.milli_of_day,
            Field::NanoOfDay => self.milli_of_day * 1_000_000,
        }
    }
}

fn write_number(out: &mut String, value: i64, number: &Number) {
    let digits = value.unsigned_abs().to_string();
    if value < 0 {
        out.push('-');
    } else if number.sign == Sign::ExceedsPad && digits.len() > number.min {
        out.push('+');
    }
    for _ in digits.len()..number.min {
        out.push('0');
    }
    out.push_str(&digits);
}
