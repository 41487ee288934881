//! Scalar functions, one family a file; each file is a table of [`Function`]s and what they run.

pub(crate) mod array;
mod array_sets;
mod bytes;
mod conditional;
pub(crate) mod datetime;
mod geo;
mod json;
pub(crate) mod map;
mod masking;
mod math;
mod padding;
mod power_of_ten;
mod regexp;
mod rounding;
mod series;
mod split;
mod substring;
mod text;
mod time_units;
mod url;

pub use time_units::{TIME_UNITS, UNIT_FUNCTIONS};

use crate::function::Function;

/// All of them.
pub(crate) fn functions() -> impl Iterator<Item = &'static Function> {
    [
        math::FUNCTIONS,
        rounding::FUNCTIONS,
        geo::FUNCTIONS,
        conditional::FUNCTIONS,
        array::FUNCTIONS,
        array_sets::FUNCTIONS,
        map::FUNCTIONS,
        regexp::FUNCTIONS,
        json::FUNCTIONS,
        text::FUNCTIONS,
        split::FUNCTIONS,
        padding::FUNCTIONS,
        masking::FUNCTIONS,
        bytes::FUNCTIONS,
        url::FUNCTIONS,
        datetime::FUNCTIONS,
        time_units::FUNCTIONS,
    ]
    .into_iter()
    .flatten()
}
