//! The WITH clause: property names, values, and the formats they choose.
//!
//! Reading happens in two stages. [`WithClause::read`] checks names and literals alone; the methods that choose formats then look at the
//! columns too. A property that does not exist, stands where it has no meaning, or contradicts another one is an error: a typo must not
//! quietly give a default.

use std::time::Duration;

use arrow::datatypes::DataType;
use highwater_sql::{Dialect, IdentifierCase, Properties, PropertyValue, parse_duration};

use crate::{
    PlanContext,
    catalog::{Column, FormatName, TimestampColumn},
    dataflow::{WindowShape, WindowSpec},
    error::{PlanError, PlanResult},
    nearest::did_you_mean,
    types::{is_nested, is_simple, sql_name},
};

/// Most partitions of a topic. Each is a folder with open files and a slot in every query that reads it, so a typo with a zero too many
/// should fail at once.
const MAX_PARTITIONS: u32 = 1024;

const KAFKA_TOPIC: &str = "kafka_topic";
const PARTITIONS: &str = "partitions";
const REPLICAS: &str = "replicas";
const FORMAT: &str = "format";
const KEY_FORMAT: &str = "key_format";
const VALUE_FORMAT: &str = "value_format";
const KEY_DELIMITER: &str = "key_delimiter";
const VALUE_DELIMITER: &str = "value_delimiter";
const TIMESTAMP: &str = "timestamp";
const TIMESTAMP_FORMAT: &str = "timestamp_format";
const WRAP_SINGLE_VALUE: &str = "wrap_single_value";
const RETENTION_MS: &str = "retention_ms";
const WINDOW_TYPE: &str = "window_type";
const WINDOW_SIZE: &str = "window_size";

/// The properties that can be given.
const KNOWN: [&str; 14] = [
    KAFKA_TOPIC,
    PARTITIONS,
    REPLICAS,
    FORMAT,
    KEY_FORMAT,
    VALUE_FORMAT,
    KEY_DELIMITER,
    VALUE_DELIMITER,
    TIMESTAMP,
    TIMESTAMP_FORMAT,
    WRAP_SINGLE_VALUE,
    RETENTION_MS,
    WINDOW_TYPE,
    WINDOW_SIZE,
];

/// Properties of ksqlDB that have no meaning here yet, so that scripts get an answer that says so.
const UNSUPPORTED: [&str; 5] = [
    "key_schema_id",
    "value_schema_id",
    "key_schema_full_name",
    "value_schema_full_name",
    "value_avro_schema_full_name",
];

/// Formats that can be chosen.
const FORMATS: [&str; 4] = ["JSON", "DELIMITED", "KAFKA", "NONE"];
/// Formats of ksqlDB that need a schema registry.
const REGISTRY_FORMATS: [&str; 4] = ["AVRO", "PROTOBUF", "PROTOBUF_NOSR", "JSON_SR"];

/// A WITH clause whose names and literals are checked.
#[derive(Debug, Default)]
pub(crate) struct WithClause {
    /// KAFKA_TOPIC.
    pub topic: Option<String>,
    /// PARTITIONS.
    pub partitions: Option<u32>,
    /// RETENTION_MS.
    pub retention_ms: Option<u64>,
    key_format: Option<String>,
    value_format: Option<String>,
    key_delimiter: Option<String>,
    value_delimiter: Option<String>,
    timestamp: Option<String>,
    timestamp_format: Option<String>,
    wrap_single_value: Option<bool>,
    window_type: Option<String>,
    window_size: Option<Duration>,
}

impl WithClause {
    /// Checks names and literals. A column's name without quotes folds to `case`.
    pub fn read(properties: &Properties, case: IdentifierCase) -> PlanResult<Self> {
        let mut with = Self::default();
        let mut format = None;
        let mut seen: Vec<&str> = Vec::new();
        for (name, value) in &properties.0 {
            if seen.contains(&name.as_str()) {
                return Err(invalid(name, "is given more than once"));
            }
            seen.push(name);
            match name.as_str() {
                KAFKA_TOPIC => with.topic = Some(topic_name(name, value)?),
                PARTITIONS => with.partitions = Some(partitions(name, value)?),
                REPLICAS => {
                    whole_number(name, value)?;
                }
                FORMAT => format = Some(format_name(name, value)?),
                KEY_FORMAT => with.key_format = Some(format_name(name, value)?),
                VALUE_FORMAT => with.value_format = Some(format_name(name, value)?),
                KEY_DELIMITER => with.key_delimiter = Some(delimiter(name, value)?),
                VALUE_DELIMITER => with.value_delimiter = Some(delimiter(name, value)?),
                TIMESTAMP => with.timestamp = Some(folded_column(&text(name, value)?, case)),
                TIMESTAMP_FORMAT => with.timestamp_format = Some(text(name, value)?),
                WRAP_SINGLE_VALUE => with.wrap_single_value = Some(boolean(name, value)?),
                RETENTION_MS => with.retention_ms = Some(whole_number(name, value)?),
                WINDOW_TYPE => with.window_type = Some(text(name, value)?.to_uppercase()),
                WINDOW_SIZE => with.window_size = Some(length(name, value)?),
                _ => return Err(unknown(name)),
            }
        }
        if let Some(both) = format {
            if with.key_format.is_some() || with.value_format.is_some() {
                return Err(invalid(
                    FORMAT,
                    "cannot stand beside key_format or value_format, which it sets both",
                ));
            }
            with.key_format = Some(both.clone());
            with.value_format = Some(both);
        }
        Ok(with)
    }

    /// The key format for these key columns: as given, else KAFKA for one simple column, JSON otherwise, NONE without any.
    pub fn key_format(&self, keys: &[&Column], ctx: &PlanContext) -> PlanResult<FormatName> {
        let given = self.key_format.as_deref();
        if keys.is_empty() {
            return match given {
                // FORMAT sets both; without a key there is nothing that it could mean for keys.
                None | Some("NONE") => Ok(FormatName {
                    name: "NONE".to_owned(),
                    delimiter: None,
                    wrapped: None,
                }),
                Some(_) if self.key_format == self.value_format => Ok(FormatName {
                    name: "NONE".to_owned(),
                    delimiter: None,
                    wrapped: None,
                }),
                Some(_) => Err(invalid(KEY_FORMAT, "there are no key columns")),
            };
        }
        let name = match given {
            Some("NONE") => return Err(invalid(KEY_FORMAT, "NONE cannot hold key columns")),
            Some(name) => name.to_owned(),
            None => match (&ctx.defaults.key_format, ctx.dialect) {
                (Some(name), _) => format_named(KEY_FORMAT, name)?,
                (None, Dialect::Ksql) => "KAFKA".to_owned(),
                (None, Dialect::Postgres) => {
                    default_key_format(keys.iter().map(|column| &column.data_type)).name
                }
            },
        };
        check_columns(KEY_FORMAT, &name, keys)?;
        let delimiter = self.delimiter_of(&name, KEY_DELIMITER, self.key_delimiter.as_ref())?;
        Ok(FormatName {
            name,
            delimiter,
            wrapped: None,
        })
    }

    /// In ksqlDB a source without key columns keeps the key format that it was given: results of its rows inherit it.
    pub fn source_key_format(&self, keys: &[&Column], ctx: &PlanContext) -> PlanResult<FormatName> {
        match &self.key_format {
            Some(name) if keys.is_empty() && ctx.dialect == Dialect::Ksql => Ok(FormatName {
                name: name.clone(),
                delimiter: self.key_delimiter.clone(),
                wrapped: None,
            }),
            _ => self.key_format(keys, ctx),
        }
    }

    /// The key format that was given, before the key is known; NONE chooses nothing.
    pub fn chosen_key_format(&self) -> Option<FormatName> {
        let name = self.key_format.clone().filter(|name| name != "NONE")?;
        Some(FormatName {
            name,
            delimiter: self.key_delimiter.clone(),
            wrapped: None,
        })
    }

    /// Whether KEY_FORMAT or FORMAT was given.
    pub fn has_key_format(&self) -> bool {
        self.key_format.is_some()
    }

    /// The value format for these value columns: as given, else `inherited`, else JSON.
    pub fn value_format(
        &self,
        values: &[&Column],
        inherited: Option<&FormatName>,
        ctx: &PlanContext,
    ) -> PlanResult<FormatName> {
        let name = match (&self.value_format, inherited) {
            (Some(name), _) => name.clone(),
            (None, Some(inherited)) => inherited.name.clone(),
            (None, None) => match &ctx.defaults.value_format {
                Some(name) => format_named(VALUE_FORMAT, name)?,
                None => "JSON".to_owned(),
            },
        };
        if name == "NONE" {
            return Err(invalid(VALUE_FORMAT, "NONE is for keys only"));
        }
        check_columns(VALUE_FORMAT, &name, values)?;
        let inherited_delimiter = inherited
            .filter(|format| self.value_format.is_none() && format.name == name)
            .and_then(|format| format.delimiter.as_ref());
        let delimiter = self.delimiter_of(
            &name,
            VALUE_DELIMITER,
            self.value_delimiter.as_ref().or(inherited_delimiter),
        )?;
        let wrapped = self.wrapped(&name, values.len(), ctx)?;
        Ok(FormatName {
            name,
            delimiter,
            wrapped,
        })
    }

    fn delimiter_of(
        &self,
        format: &str,
        property: &str,
        given: Option<&String>,
    ) -> PlanResult<Option<String>> {
        match given {
            Some(_) if format != "DELIMITED" => Err(invalid(
                property,
                &format!("format {format} has no delimiter"),
            )),
            given => Ok(given.cloned()),
        }
    }

    fn wrapped(&self, format: &str, values: usize, ctx: &PlanContext) -> PlanResult<Option<bool>> {
        match self.wrap_single_value {
            None if values == 1 && format == "JSON" => Ok(ctx.defaults.wrap_single_value),
            None => Ok(None),
            Some(_) if values != 1 => Err(invalid(
                WRAP_SINGLE_VALUE,
                "there is more than one value column, or none",
            )),
            Some(true) if format != "JSON" => Err(invalid(
                WRAP_SINGLE_VALUE,
                &format!("format {format} cannot wrap a single value"),
            )),
            wrapped => Ok(wrapped),
        }
    }

    /// The windows that the keys of a declared source hold: WINDOW_TYPE and WINDOW_SIZE.
    pub fn window(&self, keys: &[&Column]) -> PlanResult<Option<WindowSpec>> {
        let Some(kind) = &self.window_type else {
            return match self.window_size {
                Some(_) => Err(invalid(WINDOW_SIZE, "needs the property \"window_type\"")),
                None => Ok(None),
            };
        };
        if keys.is_empty() {
            return Err(invalid(
                WINDOW_TYPE,
                "windows stand in the key, and there is no key column",
            ));
        }
        let shape = match (kind.as_str(), self.window_size) {
            ("SESSION", Some(_)) => {
                return Err(invalid(WINDOW_SIZE, "sessions have no size of their own"));
            }
            ("SESSION", None) => WindowShape::Session {
                gap: Duration::ZERO,
            },
            ("TUMBLING", Some(size)) => WindowShape::Tumbling { size },
            // How far apart the windows start stands nowhere in the records.
            ("HOPPING", Some(size)) => WindowShape::Hopping {
                size,
                advance: size,
            },
            ("TUMBLING" | "HOPPING", None) => {
                return Err(invalid(
                    WINDOW_TYPE,
                    &format!("{kind} needs the property \"window_size\""),
                ));
            }
            _ => return Err(invalid(WINDOW_TYPE, "is TUMBLING, HOPPING or SESSION")),
        };
        Ok(Some(WindowSpec {
            shape,
            grace: Duration::ZERO,
            retention: None,
        }))
    }

    /// Refuses windows where the query says which there are.
    pub fn refuse_window(&self) -> PlanResult<()> {
        let given = [
            self.window_type.as_ref().map(|_| WINDOW_TYPE),
            self.window_size.map(|_| WINDOW_SIZE),
        ];
        match given.into_iter().flatten().next() {
            Some(name) => Err(invalid(
                name,
                "is for declared sources; the query has a WINDOW clause",
            )),
            None => Ok(()),
        }
    }

    /// Where event time comes from: TIMESTAMP and TIMESTAMP_FORMAT, checked against the columns.
    pub fn timestamp(&self, columns: &[Column]) -> PlanResult<Option<TimestampColumn>> {
        let Some(name) = &self.timestamp else {
            return match self.timestamp_format {
                Some(_) => Err(invalid(
                    TIMESTAMP_FORMAT,
                    "needs the property \"timestamp\"",
                )),
                None => Ok(None),
            };
        };
        let Some(column) = columns.iter().find(|column| column.name == *name) else {
            let hint = did_you_mean(name, columns.iter().map(|column| column.name.as_str()));
            return Err(PlanError::UnknownColumn {
                name: name.clone(),
                position: None,
                hint,
            });
        };
        match (&column.data_type, &self.timestamp_format) {
            (DataType::Utf8, Some(_)) | (DataType::Int64 | DataType::Timestamp(_, _), None) => {
                Ok(Some(TimestampColumn {
                    column: name.clone(),
                    format: self.timestamp_format.clone(),
                }))
            }
            (DataType::Utf8, None) => Err(PlanError::InvalidProperty {
                name: TIMESTAMP.to_owned(),
                reason: format!("column \"{name}\" is VARCHAR, so its format must be told"),
                hint: Some("add timestamp_format, e.g. 'yyyy-MM-dd''T''HH:mm:ssX'".to_owned()),
            }),
            (other, Some(_)) => Err(invalid(
                TIMESTAMP_FORMAT,
                &format!(
                    "column \"{name}\" is {}; only VARCHAR has a format",
                    sql_name(other)
                ),
            )),
            (other, None) => Err(invalid(
                TIMESTAMP,
                &format!(
                    "column \"{name}\" is {}; it must be BIGINT, TIMESTAMP, TIMESTAMPTZ or VARCHAR",
                    sql_name(other)
                ),
            )),
        }
    }

    /// What TIMESTAMP and TIMESTAMP_FORMAT say, before the columns are known.
    pub fn timestamp_column(&self) -> Option<TimestampColumn> {
        let column = self.timestamp.clone()?;
        Some(TimestampColumn {
            column,
            format: self.timestamp_format.clone(),
        })
    }
}

/// What a key of these columns is written in when nothing else is said.
pub(crate) fn default_key_format<'a>(
    types: impl ExactSizeIterator<Item = &'a DataType>,
) -> FormatName {
    let count = types.len();
    let simple = types.into_iter().all(is_simple);
    let name = match count {
        0 => "NONE",
        1 if simple => "KAFKA",
        _ => "JSON",
    };
    FormatName {
        name: name.to_owned(),
        delimiter: None,
        wrapped: None,
    }
}

/// Checks that a key format can hold these columns.
pub(crate) fn check_key_columns(format: &str, columns: &[&Column]) -> PlanResult<()> {
    check_columns(KEY_FORMAT, format, columns)
}

/// Checks that a format can hold these columns.
fn check_columns(property: &str, format: &str, columns: &[&Column]) -> PlanResult<()> {
    match format {
        "KAFKA" => match columns {
            [column] if is_simple(&column.data_type) => Ok(()),
            [column] => Err(PlanError::InvalidProperty {
                name: property.to_owned(),
                reason: format!(
                    "KAFKA cannot hold {} (column \"{}\")",
                    sql_name(&column.data_type),
                    column.name
                ),
                hint: Some(
                    "KAFKA holds INT, BIGINT, DOUBLE, VARCHAR and BYTES; use JSON".to_owned(),
                ),
            }),
            _ => Err(PlanError::InvalidProperty {
                name: property.to_owned(),
                reason: format!("KAFKA holds exactly one column, not {}", columns.len()),
                hint: Some("use JSON or DELIMITED".to_owned()),
            }),
        },
        "DELIMITED" => match columns.iter().find(|column| is_nested(&column.data_type)) {
            Some(column) => Err(PlanError::InvalidProperty {
                name: property.to_owned(),
                reason: format!(
                    "DELIMITED cannot hold {} (column \"{}\")",
                    sql_name(&column.data_type),
                    column.name
                ),
                hint: Some("use JSON".to_owned()),
            }),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn invalid(name: &str, reason: &str) -> PlanError {
    PlanError::InvalidProperty {
        name: name.to_owned(),
        reason: reason.to_owned(),
        hint: None,
    }
}

fn unknown(name: &str) -> PlanError {
    if UNSUPPORTED.contains(&name) {
        return PlanError::unsupported(format!("the property \"{name}\""), None, None);
    }
    if name == "cleanup_policy" {
        return invalid(name, "follows from the kind of relation and cannot be set");
    }
    let hint =
        did_you_mean(name, KNOWN).or_else(|| Some(format!("properties are {}", KNOWN.join(", "))));
    PlanError::UnknownProperty {
        name: name.to_owned(),
        hint,
    }
}

fn text(name: &str, value: &PropertyValue) -> PlanResult<String> {
    match value {
        PropertyValue::String(text) if !text.is_empty() => Ok(text.clone()),
        _ => Err(invalid(
            name,
            "must be a text in single quotes that is not empty",
        )),
    }
}

fn boolean(name: &str, value: &PropertyValue) -> PlanResult<bool> {
    match value {
        PropertyValue::Boolean(value) => Ok(*value),
        PropertyValue::String(text) if text.eq_ignore_ascii_case("true") => Ok(true),
        PropertyValue::String(text) if text.eq_ignore_ascii_case("false") => Ok(false),
        _ => Err(invalid(name, "must be TRUE or FALSE")),
    }
}

fn whole_number(name: &str, value: &PropertyValue) -> PlanResult<u64> {
    let digits = match value {
        PropertyValue::Number(text) | PropertyValue::String(text) => text,
        PropertyValue::Boolean(_) => return Err(invalid(name, "must be a whole number")),
    };
    match digits.parse() {
        Ok(0) | Err(_) => Err(invalid(name, "must be a whole number above 0")),
        Ok(number) => Ok(number),
    }
}

fn partitions(name: &str, value: &PropertyValue) -> PlanResult<u32> {
    match u32::try_from(whole_number(name, value)?) {
        Ok(count) if count <= MAX_PARTITIONS => Ok(count),
        _ => Err(invalid(name, &format!("must be at most {MAX_PARTITIONS}"))),
    }
}

/// Topic names as Kafka takes them: they become folder names.
fn topic_name(name: &str, value: &PropertyValue) -> PlanResult<String> {
    let topic = text(name, value)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if topic.len() > 249 || topic == "." || topic == ".." || !topic.chars().all(allowed) {
        return Err(PlanError::InvalidProperty {
            name: name.to_owned(),
            reason: format!("\"{topic}\" cannot name a topic"),
            hint: Some(
                "a topic's name has up to 249 letters, digits, dots, underscores and hyphens"
                    .to_owned(),
            ),
        });
    }
    Ok(topic)
}

fn format_name(name: &str, value: &PropertyValue) -> PlanResult<String> {
    format_named(name, &text(name, value)?)
}

/// The format that a property or a setting names.
fn format_named(name: &str, format: &str) -> PlanResult<String> {
    let format = format.to_uppercase();
    if REGISTRY_FORMATS.contains(&format.as_str()) {
        return Err(PlanError::unsupported(
            format!("format {format}"),
            None,
            Some("use JSON, DELIMITED or KAFKA"),
        ));
    }
    if !FORMATS.contains(&format.as_str()) {
        return Err(PlanError::InvalidProperty {
            name: name.to_owned(),
            reason: format!("there is no format \"{format}\""),
            hint: Some(format!("formats are {}", FORMATS.join(", "))),
        });
    }
    Ok(format)
}

fn delimiter(name: &str, value: &PropertyValue) -> PlanResult<String> {
    let given = text(name, value)?;
    let word = given.to_uppercase();
    if matches!(word.as_str(), "SPACE" | "TAB") {
        return Ok(word);
    }
    let resolved = match given.as_str() {
        " " => return Ok("SPACE".to_owned()),
        "\t" => return Ok("TAB".to_owned()),
        _ => given,
    };
    if resolved.len() == 1
        && resolved.is_ascii()
        && !matches!(resolved.as_str(), "\"" | "\n" | "\r")
    {
        Ok(resolved)
    } else {
        Err(invalid(
            name,
            "must be one ASCII character, SPACE or TAB, and neither a quote nor a line break",
        ))
    }
}

/// A length of time in words, such as `30 SECONDS`.
fn length(name: &str, value: &PropertyValue) -> PlanResult<Duration> {
    let written = text(name, value)?;
    match parse_duration(&written) {
        Some(length) if length.as_millis() > 0 => Ok(length),
        _ => Err(invalid(
            name,
            "must be a length of time such as '30 SECONDS'",
        )),
    }
}

/// A column named in a property folds like an identifier: quoted as written, else to `case`.
fn folded_column(written: &str, case: IdentifierCase) -> String {
    for quote in ['"', '`'] {
        if let Some(inner) = written
            .strip_prefix(quote)
            .and_then(|rest| rest.strip_suffix(quote))
        {
            return inner.to_owned();
        }
    }
    case.fold(written)
}
