//! LPAD and RPAD of text and bytes.
//!
//! The result has exactly the wanted length: what is too long is cut at its end, by either function. A length below zero or an empty padding gives
//! NULL.

use arrow::array::ArrayRef;
use datafusion::common::Result;

use crate::{
    call::{Call, value},
    function::{Category, Function, Overload},
    scalar::text::{BYTES, TEXT},
    signature::{Kind, Param, param},
};

/// The longest result of a row: padding is the one function where a small number makes a large text.
const MAX_LENGTH: usize = 16 << 20;

const LENGTH: Param = param("length", Kind::Int, "the length of the result");
const PADDING: Param = param("padding", Kind::Text, "what fills it up");
const PADDING_BYTES: Param = param("padding", Kind::Bytes, "what fills it up");

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "lpad",
        Category::String,
        "A text or bytes filled up in front to a length.",
        &[
            Overload::new(&[TEXT, LENGTH, PADDING], Kind::Text, |call| {
                Ok(texts(call, true))
            }),
            Overload::new(&[BYTES, LENGTH, PADDING_BYTES], Kind::Bytes, |call| {
                Ok(bytes(call, true))
            }),
        ],
        &[
            ("lpad('7', 3, '0')", "'007'"),
            ("lpad('stream', 3, '0')", "'str'"),
        ],
    )
    .ksql_only(),
    Function::new(
        "rpad",
        Category::String,
        "A text or bytes filled up behind to a length.",
        &[
            Overload::new(&[TEXT, LENGTH, PADDING], Kind::Text, |call| {
                Ok(texts(call, false))
            }),
            Overload::new(&[BYTES, LENGTH, PADDING_BYTES], Kind::Bytes, |call| {
                Ok(bytes(call, false))
            }),
        ],
        &[("rpad('7', 3, '0')", "'700'")],
    )
    .ksql_only(),
];

fn texts(call: &Call, in_front: bool) -> ArrayRef {
    let (text, length, padding) = (call.text(0), call.int(1), call.text(2));
    call.write_texts(|row, out| {
        let (text, padding) = (value!(text.get(row)), value!(padding.get(row)));
        let length = value!(usable(value!(length.get(row)), padding.is_empty())?);
        let kept: String = text.chars().take(length).collect();
        let missing = length - kept.chars().count();
        let filling = padding.chars().cycle().take(missing);
        if in_front {
            out.extend(filling);
            out.push_str(&kept);
        } else {
            out.push_str(&kept);
            out.extend(filling);
        }
        Ok(Some(()))
    })
}

fn bytes(call: &Call, in_front: bool) -> ArrayRef {
    let (bytes, length, padding) = (call.bytes(0), call.int(1), call.bytes(2));
    call.write_bytes(|row, out| {
        let (bytes, padding) = (value!(bytes.get(row)), value!(padding.get(row)));
        let length = value!(usable(value!(length.get(row)), padding.is_empty())?);
        let kept = &bytes[..bytes.len().min(length)];
        let filling = padding.iter().cycle().take(length - kept.len());
        if in_front {
            out.extend(filling);
            out.extend_from_slice(kept);
        } else {
            out.extend_from_slice(kept);
            out.extend(filling);
        }
        Ok(Some(()))
    })
}

/// The length, if there is a result.
fn usable(length: i32, no_padding: bool) -> Result<Option<usize>, String> {
    match usize::try_from(length) {
        Err(_) => Ok(None),
        Ok(_) if no_padding => Ok(None),
        Ok(length) if length > MAX_LENGTH => {
            Err(format!("a length of {length} is more than {MAX_LENGTH}"))
        }
        Ok(length) => Ok(Some(length)),
    }
}
