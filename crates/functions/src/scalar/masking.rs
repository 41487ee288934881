//! MASK and its variants: text whose letters and digits cannot be read any more.
//!
//! Upper-case letters become `X`, lower-case ones `x`, digits `n`, everything else `-`, unless the call says otherwise; NULL for a mask keeps the
//! characters of its kind.

use arrow::array::ArrayRef;

use crate::{
    call::{Call, Values, value},
    function::{Category, Function, Overload},
    scalar::text::TEXT,
    signature::{Kind, Param, param},
};
use arrow::array::StringArray;

const COUNT: Param = param("count", Kind::Int, "a number of characters");
const UPPER: Param = param("upper", Kind::Text, "mask of upper-case letters");
const LOWER: Param = param("lower", Kind::Text, "mask of lower-case letters");
const DIGIT: Param = param("digit", Kind::Text, "mask of digits");
const OTHER: Param = param("other", Kind::Text, "mask of all others");

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "mask",
        Category::String,
        "A text with every character masked.",
        &[
            Overload::new(&[TEXT], Kind::Text, |call| {
                Ok(mask(call, 1, |_, _| (0, usize::MAX)))
            }),
            Overload::new(&[TEXT, UPPER, LOWER, DIGIT, OTHER], Kind::Text, |call| {
                Ok(mask(call, 1, |_, _| (0, usize::MAX)))
            }),
        ],
        &[
            ("mask('Ab 12')", "'Xx-nn'"),
            ("mask('Ab 12', '*', NULL, '#', ' ')", "'*b ##'"),
        ],
    ),
    counted(
        "mask_left",
        "A text with its first characters masked.",
        &[("mask_left('Ab12', 3)", "'Xxn2'")],
        &[
            Overload::new(&[TEXT, COUNT], Kind::Text, |call| {
                Ok(mask(call, 2, |count, _| (0, count)))
            }),
            Overload::new(
                &[TEXT, COUNT, UPPER, LOWER, DIGIT, OTHER],
                Kind::Text,
                |call| Ok(mask(call, 2, |count, _| (0, count))),
            ),
        ],
    ),
    counted(
        "mask_right",
        "A text with its last characters masked.",
        &[("mask_right('Ab12', 3)", "'Axnn'")],
        &[
            Overload::new(&[TEXT, COUNT], Kind::Text, |call| Ok(mask(call, 2, right))),
            Overload::new(
                &[TEXT, COUNT, UPPER, LOWER, DIGIT, OTHER],
                Kind::Text,
                |call| Ok(mask(call, 2, right)),
            ),
        ],
    ),
    counted(
        "mask_keep_left",
        "A text with all but its first characters masked.",
        &[("mask_keep_left('Ab12', 3)", "'Ab1n'")],
        &[
            Overload::new(&[TEXT, COUNT], Kind::Text, |call| {
                Ok(mask(call, 2, |count, _| (count, usize::MAX)))
            }),
            Overload::new(
                &[TEXT, COUNT, UPPER, LOWER, DIGIT, OTHER],
                Kind::Text,
                |call| Ok(mask(call, 2, |count, _| (count, usize::MAX))),
            ),
        ],
    ),
    counted(
        "mask_keep_right",
        "A text with all but its last characters masked.",
        &[("mask_keep_right('Ab12', 3)", "'Xb12'")],
        &[
            Overload::new(&[TEXT, COUNT], Kind::Text, |call| {
                Ok(mask(call, 2, keep_right))
            }),
            Overload::new(
                &[TEXT, COUNT, UPPER, LOWER, DIGIT, OTHER],
                Kind::Text,
                |call| Ok(mask(call, 2, keep_right)),
            ),
        ],
    ),
];

const fn counted(
    name: &'static str,
    description: &'static str,
    examples: &'static [(&'static str, &'static str)],
    overloads: &'static [Overload],
) -> Function {
    Function::new(name, Category::String, description, overloads, examples)
}

fn right(count: usize, length: usize) -> (usize, usize) {
    (length.saturating_sub(count), usize::MAX)
}

fn keep_right(count: usize, length: usize) -> (usize, usize) {
    (0, length.saturating_sub(count))
}

/// Masks the characters of a range, which `range` tells from the count and the length of the text. The masks are the arguments from `masks` on.
fn mask(call: &Call, masks: usize, range: impl Fn(usize, usize) -> (usize, usize)) -> ArrayRef {
    let text = call.text(0);
    let count = (masks > 1).then(|| call.int(1));
    let masks = (call.count() > masks).then(|| [0, 1, 2, 3].map(|kind| call.text(masks + kind)));
    call.write_texts(|row, out| {
        let text = value!(text.get(row));
        let count = match &count {
            None => 0,
            Some(count) => {
                let count = value!(count.get(row));
                usize::try_from(count).map_err(|_| format!("a count of {count} is below zero"))?
            }
        };
        let masks = match &masks {
            None => [Some('X'), Some('x'), Some('n'), Some('-')],
            Some(given) => given.map(|mask| first_character(&mask, row)),
        };
        let (start, end) = range(count, text.chars().count());
        out.extend(text.chars().enumerate().map(|(index, character)| {
            match (start..end).contains(&index) {
                true => masks[kind(character)].unwrap_or(character),
                false => character,
            }
        }));
        Ok(Some(()))
    })
}

/// Position of a character's mask among the four.
fn kind(character: char) -> usize {
    if character.is_uppercase() {
        0
    } else if character.is_lowercase() {
        1
    } else if character.is_numeric() {
        2
    } else {
        3
    }
}

fn first_character(mask: &Values<'_, StringArray>, row: usize) -> Option<char> {
    mask.get(row).and_then(|mask| mask.chars().next())
}
