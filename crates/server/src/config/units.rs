//! Times and sizes as people write them: `500ms`, `10s`, `64MiB`.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, de};

/// A time with a unit: `ms`, `s`, `m`, `h` or `d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub struct HumanDuration(pub Duration);

/// A number of bytes, alone or with `KiB`, `MiB` or `GiB` (`KB`, `MB`, `GB` mean the same).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub struct ByteSize(pub u64);

fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

impl FromStr for HumanDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split_unit(text);
        let millis_per_unit: u64 = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => {
                return Err(format!(
                    "\"{text}\" is not a time; write for example 500ms, 10s or 5m"
                ));
            }
        };
        number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(millis_per_unit))
            .map(|millis| Self(Duration::from_millis(millis)))
            .ok_or_else(|| format!("\"{text}\" is not a time; write for example 500ms, 10s or 5m"))
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        match millis {
            0 => f.write_str("0s"),
            _ if millis.is_multiple_of(1_000) => write!(f, "{}s", millis / 1_000),
            _ => write!(f, "{millis}ms"),
        }
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split_unit(text);
        let shift = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 0,
            "k" | "kb" | "kib" => 10,
            "m" | "mb" | "mib" => 20,
            "g" | "gb" | "gib" => 30,
            _ => {
                return Err(format!(
                    "\"{text}\" is not a size; write for example 1048576 or 64MiB"
                ));
            }
        };
        number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(1 << shift))
            .map(Self)
            .ok_or_else(|| format!("\"{text}\" is not a size; write for example 1048576 or 64MiB"))
    }
}

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Bytes(u64),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Bytes(bytes) => Ok(Self(bytes)),
            Written::Text(text) => text.parse().map_err(de::Error::custom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_with_their_units() {
        assert_eq!(
            "1500ms".parse(),
            Ok(HumanDuration(Duration::from_millis(1500)))
        );
        assert_eq!("2 h".parse(), Ok(HumanDuration(Duration::from_secs(7200))));
        assert_eq!("64MiB".parse(), Ok(ByteSize(64 << 20)));
        assert_eq!("17".parse(), Ok(ByteSize(17)));
        for bad in ["", "ten", "10", "5 years", "99999999999999999999s"] {
            assert!(bad.parse::<HumanDuration>().is_err(), "{bad}");
        }
        for bad in ["", "MiB", "3TB", "99999999999999GiB"] {
            assert!(bad.parse::<ByteSize>().is_err(), "{bad}");
        }
    }
}
