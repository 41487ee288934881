//! KAFKA: the serializers that come with Kafka's own client; exactly one column.
//!
//! | column | bytes |
//! |---|---|
//! | INT | 4, big endian |
//! | BIGINT | 8, big endian |
//! | DOUBLE | 8, big endian IEEE 754 |
//! | STRING | UTF-8 |
//! | BYTES | as they are |
//!
//! NULL is the absent record, in both directions. A record of the wrong length, or text that is not UTF-8, is a record error.

use arrow::{
    array::{Array, ArrayRef, AsArray, PrimitiveArray},
    datatypes::{ArrowPrimitiveType, DataType, Float64Type, Int32Type, Int64Type, SchemaRef},
};

use crate::{
    Decoded, Decoder, EncodedRecords, Encoder,
    column::ColumnBuilder,
    error::{FormatError, FormatResult, RecordError},
    run,
};

const NAME: &str = "KAFKA";

fn check_schema(schema: &SchemaRef) -> FormatResult<()> {
    let [field] = schema.fields().as_ref() else {
        return Err(FormatError::ColumnCount {
            format: NAME,
            expected: "exactly one column",
            actual: schema.fields().len(),
        });
    };
    match field.data_type() {
        DataType::Int32
        | DataType::Int64
        | DataType::Float64
        | DataType::Utf8
        | DataType::Binary => Ok(()),
        other => Err(FormatError::UnsupportedType {
            format: NAME,
            column: field.name().clone(),
            data_type: other.to_string(),
        }),
    }
}

/// Bytes to the one column.
pub(crate) struct KafkaDecoder {
    column: String,
    builders: Vec<ColumnBuilder>,
}

impl KafkaDecoder {
    /// `projected` is the schema, or nothing when no query reads the column.
    pub(crate) fn new(schema: &SchemaRef, projected: &SchemaRef) -> FormatResult<Self> {
        check_schema(schema)?;
        Ok(Self {
            column: schema.field(0).name().clone(),
            builders: run::builders(NAME, projected)?,
        })
    }
}

impl Decoder for KafkaDecoder {
    fn decode(&mut self, records: &[Option<&[u8]>]) -> FormatResult<Decoded> {
        let column = &self.column;
        run::decode_rows(&mut self.builders, records, |builders, _, record| {
            let Some(builder) = builders.first_mut() else {
                return Ok(());
            };
            decode_value(builder, record).map_err(|reason| format!("field \"{column}\": {reason}"))
        })
    }
}

fn decode_value(builder: &mut ColumnBuilder, record: &[u8]) -> Result<(), String> {
    match builder {
        ColumnBuilder::Int32(column) => column.push(i32::from_be_bytes(exactly(record)?)),
        ColumnBuilder::Int64(column) => column.push(i64::from_be_bytes(exactly(record)?)),
        ColumnBuilder::Float64(column) => column.push(f64::from_be_bytes(exactly(record)?)),
        ColumnBuilder::Utf8(column) => {
            std::str::from_utf8(record)
                .map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to()))?;
            column.push(record);
        }
        ColumnBuilder::Binary(column) => column.push(record),
        _ => return Err("a type that the format does not have".to_owned()),
    }
    Ok(())
}

fn exactly<const N: usize>(record: &[u8]) -> Result<[u8; N], String> {
    record
        .try_into()
        .map_err(|_| format!("expected {N} bytes, got {}", record.len()))
}

/// The one column to bytes.
pub(crate) struct KafkaEncoder {
    schema: SchemaRef,
}

impl KafkaEncoder {
    pub(crate) fn new(schema: SchemaRef) -> FormatResult<Self> {
        check_schema(&schema)?;
        Ok(Self { schema })
    }
}

impl Encoder for KafkaEncoder {
    fn encode(
        &mut self,
        columns: &[ArrayRef],
        out: &mut EncodedRecords,
    ) -> FormatResult<Vec<RecordError>> {
        let (columns, _) = run::check_columns(&self.schema, columns)?;
        let Some(column) = columns.first() else {
            return Ok(Vec::new());
        };
        match column.data_type() {
            DataType::Int32 => {
                encode_fixed(column.as_primitive::<Int32Type>(), i32::to_be_bytes, out)
            }
            DataType::Int64 => {
                encode_fixed(column.as_primitive::<Int64Type>(), i64::to_be_bytes, out)
            }
            DataType::Float64 => {
                encode_fixed(column.as_primitive::<Float64Type>(), f64::to_be_bytes, out)
            }
            DataType::Utf8 => column
                .as_string::<i32>()
                .iter()
                .for_each(|value| push(out, value.map(str::as_bytes))),
            DataType::Binary => column
                .as_binary::<i32>()
                .iter()
                .for_each(|value| push(out, value)),
            other => {
                let reason = format!("format {NAME} has no form for {other}");
                return Err(FormatError::ColumnMismatch { reason });
            }
        }
        Ok(Vec::new())
    }
}

fn encode_fixed<T: ArrowPrimitiveType, const N: usize>(
    column: &PrimitiveArray<T>,
    bytes: impl Fn(T::Native) -> [u8; N],
    out: &mut EncodedRecords,
) {
    for value in column {
        push(out, value.map(&bytes).as_ref().map(|bytes| &bytes[..]));
    }
}

fn push(out: &mut EncodedRecords, value: Option<&[u8]>) {
    match value {
        Some(bytes) => out.push_bytes(bytes),
        None => out.push_absent(),
    }
}
