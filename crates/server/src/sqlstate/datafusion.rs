//! DataFusion's and Arrow's errors as SQLSTATEs.
//!
//! Their variants say where an error arose rather than whose mistake it was, and a planning error is mostly free text. What a user can
//! cause is therefore recognised by its wording in the two tables below; the fallback of each variant is the code that fits the rest of it.
//! A wording that changes with an upgrade falls back to that more general code and shows in this module's tests.

use datafusion::{
    arrow::error::ArrowError,
    common::{Diagnostic, SchemaError, utils::datafusion_strsim::levenshtein},
    error::DataFusionError,
};
use highwater_exec::ExecError;
use highwater_storage_log::LogError;

use super::{SqlError, code};

/// Wordings of planning errors, first match wins.
const PLAN_WORDINGS: &[(&str, &str)] = &[
    ("Invalid function", code::UNDEFINED_FUNCTION),
    ("There is no UDF named", code::UNDEFINED_FUNCTION),
    ("There is no UDAF named", code::UNDEFINED_FUNCTION),
    ("There is no UDWF named", code::UNDEFINED_FUNCTION),
    ("able function '", code::UNDEFINED_FUNCTION),
    ("No function matches", code::UNDEFINED_FUNCTION),
    ("Failed to coerce arguments", code::UNDEFINED_FUNCTION),
    ("does not support zero arguments", code::UNDEFINED_FUNCTION),
    ("does not support type", code::UNDEFINED_FUNCTION),
    ("does not support inputs of type", code::UNDEFINED_FUNCTION),
    (
        "Cannot infer common argument type for comparison",
        code::UNDEFINED_FUNCTION,
    ),
    (
        "Cannot coerce arithmetic expression",
        code::UNDEFINED_FUNCTION,
    ),
    ("Cannot get result type for", code::UNDEFINED_FUNCTION),
    ("requires exactly one argument", code::UNDEFINED_FUNCTION),
    ("olumn '", code::UNDEFINED_COLUMN),
    ("is not in schema", code::UNDEFINED_COLUMN),
    ("table '", code::UNDEFINED_TABLE),
    ("Table not found", code::UNDEFINED_TABLE),
    ("No table named", code::UNDEFINED_TABLE),
    ("Invalid qualifier", code::UNDEFINED_TABLE),
    ("failed to resolve schema", code::INVALID_SCHEMA_NAME),
    ("must appear in the GROUP BY clause", code::GROUPING_ERROR),
    ("must be in GROUP BY", code::GROUPING_ERROR),
    ("nested inside", code::GROUPING_ERROR),
    ("different number of columns", code::SYNTAX_ERROR),
    ("Column count doesn't match", code::SYNTAX_ERROR),
    ("must return exactly one column", code::SYNTAX_ERROR),
    ("should only return one column", code::SYNTAX_ERROR),
    ("laceholder", code::UNDEFINED_PARAMETER),
    ("Cannot automatically convert", code::CANNOT_COERCE),
    ("Unsupported CAST", code::CANNOT_COERCE),
    ("annot be cast", code::CANNOT_COERCE),
    ("LIMIT must be", code::INVALID_PARAMETER_VALUE),
    ("OFFSET must be", code::INVALID_PARAMETER_VALUE),
    ("not supported", code::FEATURE_NOT_SUPPORTED),
    ("not yet supported", code::FEATURE_NOT_SUPPORTED),
    ("Unsupported", code::FEATURE_NOT_SUPPORTED),
    ("are not currently supported", code::FEATURE_NOT_SUPPORTED),
    ("oercion", code::DATATYPE_MISMATCH),
    ("coerce", code::DATATYPE_MISMATCH),
    ("type", code::DATATYPE_MISMATCH),
];

/// Wordings of errors while evaluating values, first match wins.
const VALUE_WORDINGS: &[(&str, &str)] = &[
    ("ivide by zero", code::DIVISION_BY_ZERO),
    ("ivision by zero", code::DIVISION_BY_ZERO),
    ("verflow", code::NUMERIC_VALUE_OUT_OF_RANGE),
    ("too large to store", code::NUMERIC_VALUE_OUT_OF_RANGE),
    ("Can't cast value", code::NUMERIC_VALUE_OUT_OF_RANGE),
    ("out of range", code::NUMERIC_VALUE_OUT_OF_RANGE),
    ("Error parsing timestamp", code::INVALID_DATETIME_FORMAT),
    ("rror parsing", code::INVALID_DATETIME_FORMAT),
    ("Casting from", code::CANNOT_COERCE),
    ("Unsupported CAST", code::CANNOT_COERCE),
    ("Cannot cast", code::INVALID_TEXT_REPRESENTATION),
    ("Cannot parse", code::INVALID_TEXT_REPRESENTATION),
    ("Correlated scalar subquery", code::FEATURE_NOT_SUPPORTED),
];

impl From<DataFusionError> for SqlError {
    fn from(error: DataFusionError) -> Self {
        Self::from_datafusion(&error, "")
    }
}

impl From<ArrowError> for SqlError {
    fn from(error: ArrowError) -> Self {
        Self::from_arrow(&error)
    }
}

impl SqlError {
    /// An error of an Arrow kernel: mostly about a value.
    pub(super) fn from_arrow(error: &ArrowError) -> Self {
        from_arrow(error)
    }

    /// DataFusion's error about a statement with this text, which gives the error its position.
    pub fn from_datafusion(error: &DataFusionError, text: &str) -> Self {
        match error {
            DataFusionError::ArrowError(error, _) => from_arrow(error),
            DataFusionError::IoError(error) => from_io(error),
            DataFusionError::ObjectStore(error) => Self::new(code::IO_ERROR, error.to_string()),
            DataFusionError::SQL(error, _) => {
                Self::new(code::SYNTAX_ERROR, parser_message(&error.to_string()))
            }
            DataFusionError::NotImplemented(message) => Self::unsupported(sentence(message)),
            DataFusionError::Internal(message) | DataFusionError::Ffi(message) => {
                Self::internal(sentence(message))
            }
            DataFusionError::Plan(message) => from_plan(message),
            DataFusionError::Configuration(message) => {
                Self::new(code::INVALID_PARAMETER_VALUE, sentence(message))
            }
            DataFusionError::SchemaError(error, _) => from_schema(error),
            DataFusionError::Execution(message) => {
                by_wording(message, VALUE_WORDINGS, code::DATA_EXCEPTION)
            }
            DataFusionError::ExecutionJoin(error) => {
                Self::internal(format!("a query task failed: {error}"))
            }
            DataFusionError::ResourcesExhausted(message) => {
                Self::new(code::OUT_OF_MEMORY, sentence(message))
                    .with_hint("narrow the query, or raise its memory limit")
            }
            DataFusionError::External(error) => from_external(error.as_ref()),
            DataFusionError::Context(context, error) => {
                let inner = Self::from_datafusion(error, text);
                // Which rule or operator failed helps those who look for a bug, not those who made a mistake.
                if inner.code == code::INTERNAL_ERROR && inner.detail.is_none() {
                    inner.with_detail(sentence(context))
                } else {
                    inner
                }
            }
            DataFusionError::Substrait(message) => Self::unsupported(sentence(message)),
            DataFusionError::Diagnostic(diagnostic, error) => {
                with_diagnostic(Self::from_datafusion(error, text), diagnostic, text)
            }
            DataFusionError::Collection(errors) => match errors.first() {
                Some(first) => Self::from_datafusion(first, text),
                None => Self::internal("an error without a cause"),
            },
            DataFusionError::Shared(error) => Self::from_datafusion(error, text),
        }
    }
}

/// A planning error: its wording tells the code, and the most frequent ones get PostgreSQL's sentence.
fn from_plan(message: &str) -> SqlError {
    if let Some(name) = quoted_after(message, "Invalid function '") {
        let error = SqlError::new(
            code::UNDEFINED_FUNCTION,
            format!("function \"{name}\" does not exist"),
        );
        return match quoted_after(message, "Did you mean '") {
            Some(similar) if is_close(name, similar) => {
                error.with_hint(format!("did you mean \"{similar}\"?"))
            }
            _ => error,
        };
    }
    if message.contains("not found")
        && let Some(name) = quoted_after(message, "table '")
    {
        let name = name.rsplit('.').next().unwrap_or(name);
        return SqlError::new(
            code::UNDEFINED_TABLE,
            format!("relation \"{name}\" does not exist"),
        );
    }
    by_wording(message, PLAN_WORDINGS, code::SYNTAX_ERROR)
}

/// Whether one name may be a slip of the pen for the other; DataFusion proposes the nearest function however far it is.
fn is_close(name: &str, similar: &str) -> bool {
    2 * levenshtein(name, similar) < name.chars().count()
}

/// An error in names of columns.
fn from_schema(error: &SchemaError) -> SqlError {
    match error {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => {
            let name = field.flat_name();
            let error = SqlError::new(
                code::UNDEFINED_COLUMN,
                format!("column \"{name}\" does not exist"),
            );
            if valid_fields.is_empty() {
                return error;
            }
            let names: Vec<String> = valid_fields
                .iter()
                .take(20)
                .map(|field| field.flat_name())
                .collect();
            let more = if valid_fields.len() > names.len() {
                ", .."
            } else {
                ""
            };
            error.with_hint(format!("there are: {}{more}", names.join(", ")))
        }
        SchemaError::AmbiguousReference { field } => SqlError::new(
            code::AMBIGUOUS_COLUMN,
            format!("column reference \"{}\" is ambiguous", field.name()),
        ),
        SchemaError::DuplicateQualifiedField { name, .. }
        | SchemaError::DuplicateUnqualifiedField { name } => SqlError::new(
            code::DUPLICATE_COLUMN,
            format!("column \"{name}\" is there more than once"),
        )
        .with_hint("give one of them another name with AS"),
    }
}

fn from_arrow(error: &ArrowError) -> SqlError {
    match error {
        ArrowError::NotYetImplemented(message) => SqlError::unsupported(sentence(message)),
        ArrowError::ExternalError(error) => from_external(error.as_ref()),
        ArrowError::CastError(message) => from_cast(message),
        ArrowError::MemoryError(message) => SqlError::new(code::OUT_OF_MEMORY, sentence(message)),
        ArrowError::ParseError(message) => {
            by_wording(message, VALUE_WORDINGS, code::INVALID_TEXT_REPRESENTATION)
        }
        ArrowError::SchemaError(message) => SqlError::internal(sentence(message)),
        ArrowError::ComputeError(message) => {
            by_wording(message, VALUE_WORDINGS, code::DATA_EXCEPTION)
        }
        ArrowError::DivideByZero => SqlError::new(code::DIVISION_BY_ZERO, "division by zero"),
        ArrowError::ArithmeticOverflow(message) => {
            SqlError::new(code::NUMERIC_VALUE_OUT_OF_RANGE, sentence(message))
        }
        ArrowError::CsvError(message) => {
            SqlError::new(code::BAD_COPY_FILE_FORMAT, sentence(message))
        }
        ArrowError::JsonError(message) => {
            SqlError::new(code::INVALID_TEXT_REPRESENTATION, sentence(message))
        }
        ArrowError::IoError(_, error) => from_io(error),
        ArrowError::InvalidArgumentError(message) => {
            by_wording(message, VALUE_WORDINGS, code::INVALID_PARAMETER_VALUE)
        }
        ArrowError::AvroError(message)
        | ArrowError::IpcError(message)
        | ArrowError::ParquetError(message)
        | ArrowError::CDataInterface(message) => SqlError::internal(sentence(message)),
        ArrowError::DictionaryKeyOverflowError
        | ArrowError::RunEndIndexOverflowError
        | ArrowError::OffsetOverflowError(_) => SqlError::new(
            code::PROGRAM_LIMIT_EXCEEDED,
            format!("a column is too large: {error}"),
        ),
    }
}

/// A failed cast of a value, in PostgreSQL's words where the value is known.
fn from_cast(message: &str) -> SqlError {
    if let Some(value) = quoted_after(message, "Cannot cast string '") {
        let target = message
            .split(" to value of ")
            .nth(1)
            .and_then(|rest| rest.strip_suffix(" type"));
        let target = target.map_or_else(
            || "the wanted type".to_owned(),
            |arrow| format!("type {}", sql_type(arrow)),
        );
        let message = format!("invalid input syntax for {target}: \"{value}\"");
        return SqlError::new(code::INVALID_TEXT_REPRESENTATION, message);
    }
    by_wording(message, VALUE_WORDINGS, code::CANNOT_COERCE)
}

/// PostgreSQL's name of an Arrow type in one of Arrow's messages.
fn sql_type(arrow: &str) -> &str {
    match arrow {
        "Int16" => "smallint",
        "Int32" => "integer",
        "Int64" => "bigint",
        "Float32" => "real",
        "Float64" => "double precision",
        "Boolean" => "boolean",
        "Date32" => "date",
        other => other,
    }
}

/// An error of ours that travelled through DataFusion keeps its own code.
fn from_external(error: &(dyn std::error::Error + Send + Sync + 'static)) -> SqlError {
    if let Some(error) = error.downcast_ref::<SqlError>() {
        return error.clone();
    }
    if let Some(error) = error.downcast_ref::<ExecError>() {
        return SqlError::from(error);
    }
    if let Some(error) = error.downcast_ref::<LogError>() {
        return SqlError::from(error);
    }
    if let Some(error) = error.downcast_ref::<DataFusionError>() {
        return SqlError::from_datafusion(error, "");
    }
    if let Some(error) = error.downcast_ref::<ArrowError>() {
        return from_arrow(error);
    }
    SqlError::internal(sentence(&error.to_string()))
}

/// An input or output error; a full disk has a code of its own.
pub(super) fn from_io(error: &std::io::Error) -> SqlError {
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            SqlError::new(code::DISK_FULL, format!("could not write: {error}"))
                .with_hint("make room on the disk; reads go on meanwhile")
        }
        _ => SqlError::new(code::IO_ERROR, error.to_string()),
    }
}

/// Adds what DataFusion knows of the place in the text.
fn with_diagnostic(error: SqlError, diagnostic: &Diagnostic, text: &str) -> SqlError {
    let error = match (&error.hint, diagnostic.helps.first()) {
        (None, Some(help)) => error.with_hint(sentence(&help.message)),
        _ => error,
    };
    match diagnostic.span {
        Some(span) if error.position.is_none() => {
            error.with_line_and_column(text, span.start.line, span.start.column)
        }
        _ => error,
    }
}

/// The code of the first wording that the message has. Its first line is the message, what follows (candidate functions) the detail.
fn by_wording(
    message: &str,
    wordings: &[(&str, &'static str)],
    otherwise: &'static str,
) -> SqlError {
    let known = wordings
        .iter()
        .find(|(wording, _)| message.contains(wording));
    let code = known.map_or(otherwise, |(_, code)| code);
    let text = sentence(message);
    match text.split_once('\n') {
        Some((first, more)) => SqlError::new(code, sentence(first)).with_detail(more.trim()),
        None => SqlError::new(code, text),
    }
}

/// What stands between `prefix` and the next quote.
fn quoted_after<'a>(message: &'a str, prefix: &str) -> Option<&'a str> {
    message.split_once(prefix)?.1.split('\'').next()
}

/// sqlparser's message without its own prefix.
fn parser_message(message: &str) -> String {
    let message = message
        .strip_prefix("sql parser error: ")
        .unwrap_or(message);
    sentence(message)
}

/// The message as this server writes them: first letter small (unless it begins an acronym), no final dot, no backtrace.
fn sentence(message: &str) -> String {
    let message = message.split("\n\nbacktrace:").next().unwrap_or("").trim();
    let message = message.strip_suffix('.').unwrap_or(message);
    let mut characters = message.chars();
    match (characters.next(), characters.next()) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => first
            .to_lowercase()
            .chain(std::iter::once(second))
            .chain(characters)
            .collect(),
        _ => message.to_owned(),
    }
}
