//! Scalars as text: what JSON and DELIMITED share.
//!
//! Reading is exact and total: a text is a value of the type or it is not, and nothing here panics, allocates per value or depends on a
//! locale. Writing follows Java's text forms, since that is what the peers of a topic read and compare.

pub(crate) mod bytes;
pub(crate) mod datetime;
pub(crate) mod decimal;
pub(crate) mod double;
pub(crate) mod integer;
pub(crate) mod scan;
pub(crate) mod value;

pub(crate) use value::push_text;
