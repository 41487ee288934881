//! Records to columns.
//!
//! The builders hold the values; a tree of [`Shape`]s beside them holds what reading needs to know about names. Every function here appends
//! exactly one row to the builder it is given, or fails; the remains of a failed row are cut off at the top.

use arrow::datatypes::{DataType, Fields, Schema};

use crate::{
    Decoded, Decoder,
    column::{ColumnBuilder, ListColumn, MapColumn, StructColumn},
    error::FormatResult,
    run,
    scalar::{decimal, double, push_text, scan, value},
};

use super::{
    builders,
    cursor::{Cursor, Read},
    fields::{FieldMatcher, Next},
    text, unsupported,
};

/// Decodes JSON records of one schema.
pub(crate) struct JsonDecoder {
    builders: Vec<ColumnBuilder>,
    root: Root,
    /// The columns that are handed out.
    built: Vec<usize>,
}

/// What a record is as a whole.
enum Root {
    Object(ObjectShape),
    /// The value of the only column, with that column's name for messages. Without a shape nobody reads it.
    Bare(String, Option<Shape>),
}

impl JsonDecoder {
    /// Decodes the columns of `schema`; a record is the bare value of the only one when `bare`.
    pub(crate) fn new(schema: &Schema, bare: bool) -> FormatResult<Self> {
        let builders = builders(schema)?;
        let root = match schema.fields().as_ref() {
            [] if bare => Root::Bare(String::new(), None),
            [field] if bare => {
                let shape = Shape::new(field.data_type())
                    .ok_or_else(|| unsupported(field.name(), field.data_type()))?;
                Root::Bare(field.name().clone(), Some(shape))
            }
            _ => Root::Object(ObjectShape::of_schema(schema)?),
        };
        let built = (0..builders.len()).collect();
        Ok(Self {
            builders,
            root,
            built,
        })
    }

    /// The same, but only the columns at `built` are handed out; the others are judged and not kept.
    pub(crate) fn judging(schema: &Schema, bare: bool, built: &[usize]) -> FormatResult<Self> {
        let mut decoder = Self::new(schema, bare)?;
        let builders = std::mem::take(&mut decoder.builders);
        decoder.builders = builders
            .into_iter()
            .enumerate()
            .map(|(column, builder)| match built.contains(&column) {
                true => builder,
                false => ColumnBuilder::Judged(Box::new(builder)),
            })
            .collect();
        decoder.built = built.to_vec();
        Ok(decoder)
    }
}

impl Decoder for JsonDecoder {
    fn decode(&mut self, records: &[Option<&[u8]>]) -> FormatResult<Decoded> {
        let Self {
            builders,
            root,
            built,
        } = self;
        let decoded = run::decode_rows(builders, records, |builders, row, record| {
            root.decode(builders, row, record)
        })?;
        Ok(decoded.pick(built))
    }
}

impl Root {
    fn decode(
        &mut self,
        builders: &mut [ColumnBuilder],
        row: usize,
        record: &[u8],
    ) -> Result<(), String> {
        if !scan::is_ascii(record)
            && let Err(error) = std::str::from_utf8(record)
        {
            return Err(format!("not UTF-8 at byte {}", error.valid_up_to()));
        }
        let mut cursor = Cursor::new(record);
        cursor.skip_blanks();
        match self {
            Self::Object(shape) => {
                shape.failed = None;
                shape.record(builders, row, &mut cursor).map_err(|fault| {
                    let field = shape.failed.and_then(|column| shape.names.get(column));
                    describe(field.map(String::as_str), fault.at, fault.reason)
                })
            }
            Self::Bare(name, shape) => {
                let read = match (shape, builders) {
                    (Some(shape), [builder]) => decode_value(shape, builder, &mut cursor, 0),
                    _ => cursor.skip_value(0),
                };
                read.and_then(|()| cursor.end())
                    .map_err(|fault| describe(Some(name), fault.at, fault.reason))
            }
        }
    }
}

fn describe(field: Option<&str>, at: usize, reason: &str) -> String {
    match field {
        Some(field) => format!("field \"{field}\": {reason} at byte {at}"),
        None => format!("{reason} at byte {at}"),
    }
}

/// What reading a value needs to know beside its builder.
enum Shape {
    Scalar,
    /// The element's shape.
    List(Box<Shape>),
    /// The value's shape.
    Map(Box<Shape>),
    Struct(Box<ObjectShape>),
}

/// An object with a column per field.
struct ObjectShape {
    names: Vec<String>,
    fields: FieldMatcher,
    children: Vec<Shape>,
    /// For each column the object in which it was last seen, and how its name was written.
    seen: Vec<Seen>,
    /// The object that is being read; counts up.
    current: u64,
    /// The column in which reading failed.
    failed: Option<usize>,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    object: u64,
    exact: bool,
}

impl Shape {
    fn new(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::List(field) => Self::List(Box::new(Self::new(field.data_type())?)),
            DataType::Map(field, _) => match field.data_type() {
                DataType::Struct(entry) => {
                    Self::Map(Box::new(Self::new(entry.get(1)?.data_type())?))
                }
                _ => return None,
            },
            DataType::Struct(fields) => Self::Struct(Box::new(ObjectShape::new(fields)?)),
            _ => Self::Scalar,
        })
    }
}

impl ObjectShape {
    fn of_schema(schema: &Schema) -> FormatResult<Self> {
        for field in schema.fields() {
            Shape::new(field.data_type())
                .ok_or_else(|| unsupported(field.name(), field.data_type()))?;
        }
        Self::new(schema.fields()).ok_or_else(|| unsupported("", &DataType::Null))
    }

    fn new(fields: &Fields) -> Option<Self> {
        Some(Self {
            names: fields.iter().map(|field| field.name().clone()).collect(),
            fields: FieldMatcher::new(fields.iter().map(|field| field.name().as_str())),
            children: fields
                .iter()
                .map(|field| Shape::new(field.data_type()))
                .collect::<Option<_>>()?,
            seen: vec![Seen::default(); fields.len()],
            current: 0,
            failed: None,
        })
    }

    /// Reads a whole record: an object, or `null` for NULL in every column.
    fn record(
        &mut self,
        builders: &mut [ColumnBuilder],
        row: usize,
        cursor: &mut Cursor<'_>,
    ) -> Read<()> {
        if cursor.peek() == b'n' {
            cursor.literal(b"null")?;
            builders.iter_mut().for_each(ColumnBuilder::push_null);
        } else {
            self.object(builders, row, cursor, 0)?;
        }
        cursor.end()
    }

    /// Reads an object into row `row` of `builders`.
    fn object(
        &mut self,
        builders: &mut [ColumnBuilder],
        row: usize,
        cursor: &mut Cursor<'_>,
        depth: usize,
    ) -> Read<()> {
        cursor.check_depth(depth)?;
        self.current += 1;
        self.fields.begin();
        let mut first = true;
        let mut count = 0;
        while let Next::Field(field) = self.fields.next(cursor, first)? {
            first = false;
            let Some(field) = field else {
                cursor.skip_value(depth + 1)?;
                continue;
            };
            let (Some(builder), Some(shape), Some(seen)) = (
                builders.get_mut(field.column),
                self.children.get_mut(field.column),
                self.seen.get_mut(field.column),
            ) else {
                return Err(cursor.fault("a column that is not there"));
            };
            if seen.object == self.current {
                match (seen.exact, field.exact) {
                    // The name to the letter replaces one in another case, whichever comes first.
                    (false, true) => builder.truncate(row),
                    (true, false) => {
                        cursor.skip_value(depth + 1)?;
                        continue;
                    }
                    _ => {
                        self.failed = Some(field.column);
                        return Err(cursor.fault("the field is there twice"));
                    }
                }
            } else {
                count += 1;
            }
            *seen = Seen {
                object: self.current,
                exact: field.exact,
            };
            if let Err(fault) = decode_value(shape, builder, cursor, depth + 1) {
                self.failed = Some(field.column);
                return Err(fault);
            }
        }
        if count < builders.len() {
            self.fill_missing(builders);
        }
        Ok(())
    }

    fn fill_missing(&self, builders: &mut [ColumnBuilder]) {
        for (builder, seen) in builders.iter_mut().zip(&self.seen) {
            if seen.object != self.current {
                builder.push_null();
            }
        }
    }
}

/// Reads one value at its first byte.
#[inline]
fn decode_value(
    shape: &mut Shape,
    builder: &mut ColumnBuilder,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Read<()> {
    // The ordinary forms of the commonest types first.
    match builder {
        ColumnBuilder::Int64(column) => {
            if let Some(value) = cursor.short_integer() {
                column.push(value);
                return Ok(());
            }
        }
        ColumnBuilder::Utf8(column) => {
            if let Some(text) = cursor.plain_string() {
                column.push(text);
                return Ok(());
            }
        }
        ColumnBuilder::Float64(column) => {
            if let Some(value) = cursor.short_double() {
                column.push(value);
                return Ok(());
            }
        }
        ColumnBuilder::Int32(column) => {
            let start = cursor.pos;
            match cursor.short_integer().map(i32::try_from) {
                Some(Ok(value)) => {
                    column.push(value);
                    return Ok(());
                }
                Some(Err(_)) => return Err(cursor.fault_at(start, "expected an INT")),
                None => {}
            }
        }
        ColumnBuilder::Timestamp(column) => {
            if let Some(value) = cursor.short_integer() {
                column.push(value);
                return Ok(());
            }
        }
        ColumnBuilder::Judged(column) => return judge_value(shape, column, cursor, depth),
        _ => {}
    }
    decode_any(shape, builder, cursor, depth)
}

/// Judges a value as reading it does: what is taken whatever its value is stepped over, anything else is read.
#[inline]
fn judge_value(
    shape: &mut Shape,
    column: &mut ColumnBuilder,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Read<()> {
    let is_plain = match column {
        ColumnBuilder::Int64(_) | ColumnBuilder::Timestamp(_) => cursor.short_integer().is_some(),
        ColumnBuilder::Utf8(_) => cursor.plain_string().is_some(),
        ColumnBuilder::Float64(_) => cursor.short_double().is_some(),
        _ => false,
    };
    if is_plain {
        return Ok(());
    }
    let read = decode_value(shape, column, cursor, depth);
    column.truncate(0);
    read
}

/// Reads one value of any form into a builder of any type.
fn decode_any(
    shape: &mut Shape,
    builder: &mut ColumnBuilder,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Read<()> {
    match cursor.peek() {
        b'n' => {
            cursor.literal(b"null")?;
            builder.push_null();
            Ok(())
        }
        b'"' => decode_string(builder, cursor),
        b'-' | b'0'..=b'9' => decode_number(builder, cursor),
        b't' => decode_boolean(builder, cursor, b"true", true),
        b'f' => decode_boolean(builder, cursor, b"false", false),
        b'{' | b'[' => decode_nested(shape, builder, cursor, depth),
        _ => Err(cursor.fault("not a JSON value")),
    }
}

fn decode_boolean(
    builder: &mut ColumnBuilder,
    cursor: &mut Cursor<'_>,
    text: &'static [u8],
    value: bool,
) -> Read<()> {
    let start = cursor.pos;
    cursor.literal(text)?;
    match builder {
        ColumnBuilder::Boolean { values, validity } => {
            values.append(value);
            validity.push_valid();
        }
        ColumnBuilder::Utf8(column) => column.push(text),
        _ => return Err(cursor.fault_at(start, "a BOOLEAN in a column of another type")),
    }
    Ok(())
}

fn decode_string(builder: &mut ColumnBuilder, cursor: &mut Cursor<'_>) -> Read<()> {
    let start = cursor.pos;
    let string = cursor.string()?;
    match builder {
        ColumnBuilder::Boolean { .. } => {
            return Err(cursor.fault_at(start, "expected true or false"));
        }
        ColumnBuilder::Utf8(column) => {
            string.append_to(column.buffer())?;
            column.finish_value();
            return Ok(());
        }
        _ => {}
    }
    let read = if string.escaped {
        let mut text = Vec::new();
        string.append_to(&mut text)?;
        push_text(builder, &text)
    } else {
        push_text(builder, string.raw)
    };
    read.map_err(|reason| cursor.fault_at(start, reason))
}

fn decode_number(builder: &mut ColumnBuilder, cursor: &mut Cursor<'_>) -> Read<()> {
    let start = cursor.pos;
    let text = cursor.number()?;
    push_number(builder, text).map_err(|reason| cursor.fault_at(start, reason))
}

/// Appends the value of a number's text. Whole-number columns cut off a fraction.
fn push_number(builder: &mut ColumnBuilder, text: &[u8]) -> Result<(), &'static str> {
    fn whole<T: TryFrom<i64>>(text: &[u8], expected: &'static str) -> Result<T, &'static str> {
        decimal::whole_part(text)
            .and_then(|value| T::try_from(value).ok())
            .ok_or(expected)
    }
    fn finite(text: &[u8]) -> Result<f64, &'static str> {
        double::parse(text)
            .filter(|value| value.is_finite())
            .ok_or("a number beyond the range of DOUBLE")
    }
    match builder {
        ColumnBuilder::Int16(column) => column.push(whole(text, "expected a SMALLINT")?),
        ColumnBuilder::Int32(column) => column.push(whole(text, "expected an INT")?),
        ColumnBuilder::Int64(column) => column.push(whole(text, "expected a BIGINT")?),
        ColumnBuilder::Float32(column) => {
            let value = finite(text)? as f32;
            column.push(if value.is_finite() {
                value
            } else {
                return Err("a number beyond the range of REAL");
            });
        }
        ColumnBuilder::Float64(column) => column.push(finite(text)?),
        ColumnBuilder::Date(column) => column.push(whole(text, "expected a DATE in days")?),
        ColumnBuilder::Time(column) => {
            column.push(value::time_of_day(whole(text, value::TIME_RANGE)?)?)
        }
        ColumnBuilder::Timestamp(column) => {
            column.push(whole(text, "expected a TIMESTAMP in milliseconds")?)
        }
        ColumnBuilder::Decimal128(..) | ColumnBuilder::Decimal256(..) => push_text(builder, text)?,
        ColumnBuilder::Utf8(column) => {
            decimal::write_big_decimal_text(column.buffer(), text);
            column.finish_value();
        }
        _ => return Err("a number in a column of another type"),
    }
    Ok(())
}

fn decode_nested(
    shape: &mut Shape,
    builder: &mut ColumnBuilder,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Read<()> {
    match (shape, builder) {
        (Shape::List(element), ColumnBuilder::List(column)) => {
            decode_list(element, column, cursor, depth)
        }
        (Shape::Map(value), ColumnBuilder::Map(column)) => decode_map(value, column, cursor, depth),
        (Shape::Struct(object), ColumnBuilder::Struct(column)) => {
            decode_struct(object, column, cursor, depth)
        }
        (_, ColumnBuilder::Utf8(column)) => {
            text::append_value(cursor, column.buffer(), depth)?;
            column.finish_value();
            Ok(())
        }
        _ => Err(cursor.fault("a nested value in a column of another type")),
    }
}

fn decode_list(
    element: &mut Shape,
    column: &mut ListColumn,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Read<()> {
    cursor.array(depth, |cursor, depth| {
        decode_value(element, &mut column.values, cursor, depth)
    })?;
    column.finish_row();
    Ok(())
}

fn decode_struct(
    object: &mut ObjectShape,
    column: &mut StructColumn,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Read<()> {
    let row = column.len();
    object.object(&mut column.children, row, cursor, depth)?;
    column.finish_row();
    Ok(())
}

fn decode_map(
    value: &mut Shape,
    column: &mut MapColumn,
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Read<()> {
    let start = cursor.pos;
    let first = column.row_start();
    let MapColumn { keys, values, .. } = &mut *column;
    cursor.object(
        depth,
        |cursor| {
            cursor.string()?.append_to(keys.buffer())?;
            keys.finish_value();
            Ok(())
        },
        |cursor, (), depth| decode_value(value, values, cursor, depth),
    )?;
    if has_duplicate(column, first) {
        return Err(cursor.fault_at(start, "a map with the same key twice"));
    }
    column.finish_row();
    Ok(())
}

/// Maps up to this size are compared pair by pair.
const SMALL_MAP: usize = 16;

/// Whether two entries from `first` on have the same key.
fn has_duplicate(column: &MapColumn, first: usize) -> bool {
    let key = |entry: usize| column.keys.value(entry);
    let entries = first..column.keys.len();
    if entries.len() <= SMALL_MAP {
        return entries
            .clone()
            .any(|left| (left + 1..entries.end).any(|right| key(left) == key(right)));
    }
    let mut sorted: Vec<&[u8]> = entries.map(key).collect();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}
