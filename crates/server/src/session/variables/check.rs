//! Values that variables take: each check answers the canonical form, or says what it takes.

use arrow::array::timezone::Tz;

use highwater_sql::{Dialect, IdentifierCase};

use crate::config::HumanDuration;

/// Longest value of a free-form variable, as PostgreSQL cuts names.
const MAX_NAME_BYTES: usize = 1024;

type Checked = Result<String, &'static str>;

fn one_of(value: &str, known: &[&'static str], expected: &'static str) -> Checked {
    known
        .iter()
        .find(|known| known.eq_ignore_ascii_case(value.trim()))
        .map(|known| (*known).to_owned())
        .ok_or(expected)
}

pub(super) fn name(value: &str) -> Checked {
    if value.len() > MAX_NAME_BYTES {
        Err("use at most 1024 bytes")
    } else {
        Ok(value.to_owned())
    }
}

pub(super) fn offset_reset(value: &str) -> Checked {
    if value.is_empty() {
        return Ok(String::new());
    }
    one_of(value, &["earliest", "latest"], "use 'earliest' or 'latest'")
}

pub(super) fn freshness(value: &str) -> Checked {
    one_of(
        value,
        &["session", "strong", "any"],
        "use 'session', 'strong' or 'any'",
    )
}

pub(super) fn push_portal(value: &str) -> Checked {
    one_of(value, &["early", "fill"], "use 'early' or 'fill'")
}

pub(super) fn boolean(value: &str) -> Checked {
    match value.trim().to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Ok("on".to_owned()),
        "off" | "false" | "no" | "0" | "f" | "n" => Ok("off".to_owned()),
        _ => Err("use on or off"),
    }
}

pub(super) fn on(value: &str) -> Checked {
    match boolean(value)?.as_str() {
        "on" => Ok("on".to_owned()),
        _ => Err("only on is supported"),
    }
}

pub(super) fn hex(value: &str) -> Checked {
    one_of(value, &["hex"], "only hex is supported")
}

pub(super) fn utf8(value: &str) -> Checked {
    let plain: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
    match plain.to_ascii_lowercase().as_str() {
        "utf8" | "unicode" => Ok("UTF8".to_owned()),
        _ => Err("only UTF8 is supported"),
    }
}

pub(super) fn date_style(value: &str) -> Checked {
    let mut order = "MDY";
    for word in value
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
    {
        match word.to_ascii_lowercase().as_str() {
            "iso" | "default" => {}
            "mdy" | "us" | "noneuro" | "noneuropean" => order = "MDY",
            "dmy" | "euro" | "european" => order = "DMY",
            "ymd" => order = "YMD",
            _ => return Err("only ISO is supported, with MDY, DMY or YMD"),
        }
    }
    Ok(format!("ISO, {order}"))
}

pub(super) fn interval_style(value: &str) -> Checked {
    one_of(value, &["postgres"], "only postgres is supported")
}

pub(super) fn isolation(value: &str) -> Checked {
    let known = [
        "read committed",
        "read uncommitted",
        "repeatable read",
        "serializable",
    ];
    one_of(
        value,
        &known,
        "use read committed, repeatable read or serializable",
    )
}

pub(super) fn float_digits(value: &str) -> Checked {
    match value.trim().parse::<i32>() {
        Ok(digits @ -15..=3) => Ok(digits.to_string()),
        _ => Err("use a number between -15 and 3"),
    }
}

pub(super) fn dialect(value: &str) -> Checked {
    let known = value.trim().parse::<Dialect>();
    known
        .map(|dialect| dialect.to_string())
        .map_err(|_| "use postgres or ksql")
}

pub(super) fn identifier_case(value: &str) -> Checked {
    let value = value.trim();
    if value.is_empty() {
        return Ok(String::new());
    }
    let known = value.parse::<IdentifierCase>();
    known
        .map(|case| case.to_string())
        .map_err(|_| "use lower or upper")
}

/// A number above 0, or nothing.
pub(super) fn limit(value: &str) -> Checked {
    match value.trim() {
        "" => Ok(String::new()),
        value => match value.parse::<usize>() {
            Ok(limit) if limit > 0 => Ok(limit.to_string()),
            _ => Err("use a number above 0"),
        },
    }
}

/// TRUE, FALSE or nothing.
pub(super) fn optional_boolean(value: &str) -> Checked {
    match value.trim().to_ascii_lowercase().as_str() {
        "" => Ok(String::new()),
        value @ ("true" | "false") => Ok(value.to_owned()),
        _ => Err("use true or false"),
    }
}

pub(super) fn milliseconds(value: &str) -> Checked {
    let value = value.trim();
    if let Ok(millis @ 0..=2_147_483_647) = value.parse::<i64>() {
        return Ok(millis.to_string());
    }
    match value.parse::<HumanDuration>() {
        Ok(HumanDuration(time)) if time.as_millis() <= 2_147_483_647 => {
            Ok(time.as_millis().to_string())
        }
        _ => Err("use milliseconds, or a time such as '5s'"),
    }
}

/// Any IANA zone, in the case it is listed in, and fixed offsets.
pub(super) fn time_zone(value: &str) -> Checked {
    let value = value.trim();
    if ["utc", "gmt", "z", "zulu", "default", "localtime"]
        .contains(&value.to_ascii_lowercase().as_str())
    {
        return Ok("UTC".to_owned());
    }
    if value.parse::<Tz>().is_ok() {
        return Ok(value.to_owned());
    }
    if let Some(offset) = fixed_offset(value) {
        return Ok(offset);
    }
    let listed = capitalized(value);
    if listed.parse::<Tz>().is_ok() {
        Ok(listed)
    } else {
        Err("use an IANA name such as 'Europe/Berlin', or UTC")
    }
}

/// `+02:00`, `-5`, `'-00:30' HOUR TO MINUTE`: hours and minutes east of Greenwich.
fn fixed_offset(value: &str) -> Option<String> {
    let value = value.trim_matches('\'');
    let (sign, digits) = match value.as_bytes().first()? {
        b'-' => ('-', &value[1..]),
        b'+' => ('+', &value[1..]),
        b'0'..=b'9' => ('+', value),
        _ => return None,
    };
    let mut parts = digits.split(':');
    let hours: u8 = parts.next()?.parse().ok().filter(|hours| *hours <= 14)?;
    let minutes: u8 = parts
        .next()
        .map_or(Some(0), |minutes| minutes.parse().ok())
        .filter(|minutes| *minutes < 60)?;
    Some(format!("{sign}{hours:02}:{minutes:02}"))
}

/// `europe/berlin` as `Europe/Berlin`, `america/port_of_spain` as `America/Port_of_Spain`.
fn capitalized(value: &str) -> String {
    let mut result = String::with_capacity(value.len());
    for (at, word) in value.split_inclusive(['/', '_', '-']).enumerate() {
        let lower = word.to_ascii_lowercase();
        let small = at > 0 && ["of_", "of", "es_", "au_", "and_"].contains(&lower.as_str());
        let mut letters = lower.chars();
        match letters.next() {
            Some(first) if !small => result.extend(first.to_uppercase().chain(letters)),
            _ => result.push_str(&lower),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_found_whatever_their_case() {
        for (written, zone) in [
            ("utc", "UTC"),
            ("Europe/Berlin", "Europe/Berlin"),
            ("europe/berlin", "Europe/Berlin"),
            ("america/port_of_spain", "America/Port_of_Spain"),
            ("+00:00", "+00:00"),
            ("-5", "-05:00"),
        ] {
            assert_eq!(time_zone(written).as_deref(), Ok(zone), "{written}");
        }
        assert!(time_zone("Europe/Atlantis").is_err());
    }

    #[test]
    fn drivers_spellings_are_taken() {
        assert_eq!(utf8("'utf-8'").as_deref(), Ok("UTF8"));
        assert_eq!(date_style("ISO").as_deref(), Ok("ISO, MDY"));
        assert_eq!(date_style("iso, dmy").as_deref(), Ok("ISO, DMY"));
        assert!(date_style("German").is_err());
        assert_eq!(boolean("TRUE").as_deref(), Ok("on"));
    }
}
