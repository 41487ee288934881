//! Pattern text to items.

use crate::error::{FormatError, FormatResult};

use super::field::{Field, Item, Number, OffsetStyle, Part, Sign, TextStyle};

/// Levels of `[` that a pattern may have: reading a text recurses once per level.
const MAX_NESTING: usize = 32;

/// Digits that a `long` can have.
const MAX_DIGITS: usize = 19;

/// Digits that a nanosecond has.
const NANO_DIGITS: usize = 9;

/// Compiles a whole pattern.
pub(super) fn compile(pattern: &str) -> FormatResult<Vec<Item>> {
    let mut compiler = Compiler {
        pattern,
        open: Vec::new(),
        items: Vec::new(),
        adjacent: None,
    };
    let mut at = 0;
    while let Some(letter) = pattern[at..].chars().next() {
        at += compiler.step(at, letter)?;
    }
    match compiler.open.last() {
        Some((start, _)) => Err(compiler.error(*start, "\"[\" without its \"]\"")),
        None => Ok(compiler.items),
    }
}

struct Compiler<'p> {
    pattern: &'p str,
    /// Optional parts that are not closed yet: where they begin, and the items in front of them.
    open: Vec<(usize, Vec<Item>)>,
    /// Items of the part that is being compiled.
    items: Vec<Item>,
    /// The number in `items` that numbers right behind it take digits from.
    adjacent: Option<usize>,
}

impl Compiler<'_> {
    /// Compiles what begins at `at` and gives its length.
    fn step(&mut self, at: usize, letter: char) -> FormatResult<usize> {
        match letter {
            'a'..='z' | 'A'..='Z' => {
                let count = self.pattern[at..]
                    .chars()
                    .take_while(|&next| next == letter)
                    .count();
                let item = self.letters(at, letter, count)?;
                self.push(item);
                return Ok(count);
            }
            '\'' => return self.quoted(at),
            '[' if self.open.len() == MAX_NESTING => {
                return Err(self.error(at, "too many nested \"[\""));
            }
            '[' => {
                self.adjacent = None;
                self.open.push((at, std::mem::take(&mut self.items)));
            }
            ']' => {
                let Some((_, before)) = self.open.pop() else {
                    return Err(self.error(at, "\"]\" without its \"[\""));
                };
                let inside = std::mem::replace(&mut self.items, before);
                self.push(Item::Optional(inside));
            }
            '{' | '}' | '#' => return Err(self.error(at, "a reserved character; put it in quotes")),
            other => self.literal(other),
        }
        Ok(letter.len_utf8())
    }

    /// Text in quotes; two quotes are one, in and outside of quoted text.
    fn quoted(&mut self, start: usize) -> FormatResult<usize> {
        let mut at = start + 1;
        let mut empty = true;
        while let Some(next) = self.pattern[at..].chars().next() {
            at += next.len_utf8();
            if next != '\'' {
                self.literal(next);
            } else if self.pattern[at..].starts_with('\'') {
                self.literal('\'');
                at += 1;
            } else {
                if empty {
                    self.literal('\'');
                }
                return Ok(at - start);
            }
            empty = false;
        }
        Err(self.error(start, "text without its closing quote"))
    }

    fn literal(&mut self, character: char) {
        self.adjacent = None;
        match self.items.last_mut() {
            Some(Item::Literal(text)) => text.push(character),
            _ => self.items.push(Item::Literal(character.to_string())),
        }
    }

    /// Adds an item and settles who owns the digits of numbers that touch.
    fn push(&mut self, item: Item) {
        let is_number = matches!(
            item,
            Item::Number(_) | Item::ShortYear { .. } | Item::Fraction { .. }
        );
        match (self.adjacent, item.fixed_width()) {
            (Some(index), Some(width)) => match &mut self.items[index] {
                Item::Number(number) => number.reserved += width,
                Item::ShortYear { reserved } => *reserved += width,
                _ => {}
            },
            _ => self.adjacent = is_number.then_some(self.items.len()),
        }
        self.items.push(item);
    }

    /// The item of a run of one letter.
    fn letters(&self, at: usize, letter: char, count: usize) -> FormatResult<Item> {
        let too_many = || Err(self.error(at, "too many pattern letters"));
        let item = match (letter, count) {
            ('u' | 'y', 2) => Item::ShortYear { reserved: 0 },
            ('u', 1..=MAX_DIGITS) => year(Field::Year, count),
            ('y', 1..=MAX_DIGITS) => year(Field::YearOfEra, count),
            ('M' | 'L', 1 | 2) => small(Field::Month, count),
            ('M' | 'L', 3) => Item::Text {
                field: Field::Month,
                style: TextStyle::Short,
            },
            ('M' | 'L', 4) => Item::Text {
                field: Field::Month,
                style: TextStyle::Full,
            },
            ('M' | 'L', 5) => Item::Text {
                field: Field::Month,
                style: TextStyle::Narrow,
            },
            ('E', 1..=3) => Item::Text {
                field: Field::DayOfWeek,
                style: TextStyle::Short,
            },
            ('E', 4) => Item::Text {
                field: Field::DayOfWeek,
                style: TextStyle::Full,
            },
            ('E', 5) => Item::Text {
                field: Field::DayOfWeek,
                style: TextStyle::Narrow,
            },
            ('G', 1..=3) => Item::Text {
                field: Field::Era,
                style: TextStyle::Short,
            },
            ('G', 4) => Item::Text {
                field: Field::Era,
                style: TextStyle::Full,
            },
            ('a', 1) => Item::Text {
                field: Field::AmPm,
                style: TextStyle::Short,
            },
            ('d', 1 | 2) => small(Field::Day, count),
            ('H', 1 | 2) => small(Field::Hour, count),
            ('k', 1 | 2) => small(Field::ClockHour, count),
            ('K', 1 | 2) => small(Field::HourOfAmPm, count),
            ('h', 1 | 2) => small(Field::ClockHourOfAmPm, count),
            ('m', 1 | 2) => small(Field::Minute, count),
            ('s', 1 | 2) => small(Field::Second, count),
            ('D', 1) => small(Field::DayOfYear, 1),
            ('D', 2 | 3) => number(Field::DayOfYear, count, 3, Sign::Never),
            ('S', 1..=NANO_DIGITS) => Item::Fraction { digits: count },
            ('A', 1..=MAX_DIGITS) => number(Field::MilliOfDay, count, MAX_DIGITS, Sign::Never),
            ('n', 1..=MAX_DIGITS) => number(Field::Nano, count, MAX_DIGITS, Sign::Never),
            ('N', 1..=MAX_DIGITS) => number(Field::NanoOfDay, count, MAX_DIGITS, Sign::Never),
            ('X', 1..=5) => Item::Offset(offset(count, "Z")),
            ('x', 1) => Item::Offset(offset(1, "+00")),
            ('x', 2 | 4) => Item::Offset(offset(count, "+0000")),
            ('x', 3 | 5) => Item::Offset(offset(count, "+00:00")),
            ('Z', 1..=3) => Item::Offset(offset(2, "+0000")),
            ('Z', 5) => Item::Offset(offset(5, "Z")),
            ('Z', 4) | ('O', 4) => Item::LocalizedOffset { full: true },
            ('O', 1) => Item::LocalizedOffset { full: false },
            ('z', 1..=3) => Item::ZoneName,
            ('V', 2) => Item::ZoneId,
            ('V' | 'O', _) => return Err(self.error(at, "the wrong number of pattern letters")),
            ('z', 4) => return Err(self.error(at, "full zone names are not supported")),
            (
                'u' | 'y' | 'M' | 'L' | 'E' | 'G' | 'a' | 'd' | 'H' | 'k' | 'K' | 'h' | 'm' | 's'
                | 'D' | 'S' | 'A' | 'n' | 'N',
                _,
            )
            | ('X' | 'x' | 'Z' | 'z', _) => return too_many(),
            ('Y' | 'w' | 'W' | 'e' | 'c' | 'F' | 'Q' | 'q' | 'B' | 'g' | 'v' | 'p', _) => {
                return Err(
                    self.error(at, &format!("pattern letter \"{letter}\" is not supported"))
                );
            }
            _ => return Err(self.error(at, &format!("unknown pattern letter \"{letter}\""))),
        };
        Ok(item)
    }

    fn error(&self, position: usize, reason: &str) -> FormatError {
        FormatError::InvalidPattern {
            pattern: self.pattern.to_owned(),
            position,
            reason: reason.to_owned(),
        }
    }
}

fn number(field: Field, min: usize, max: usize, sign: Sign) -> Item {
    Item::Number(Number {
        field,
        min,
        max,
        sign,
        reserved: 0,
    })
}

fn year(field: Field, count: usize) -> Item {
    number(
        field,
        count,
        MAX_DIGITS,
        if count < 4 {
            Sign::Normal
        } else {
            Sign::ExceedsPad
        },
    )
}

/// A field of at most two digits: with one letter as many as there are, with two exactly two.
fn small(field: Field, count: usize) -> Item {
    if count == 1 {
        number(field, 1, MAX_DIGITS, Sign::Normal)
    } else {
        number(field, count, count, Sign::Never)
    }
}

fn offset(count: usize, zero: &'static str) -> OffsetStyle {
    let minutes = if count == 1 {
        Part::IfNotZero
    } else {
        Part::Always
    };
    let seconds = if count >= 4 {
        Part::IfNotZero
    } else {
        Part::Never
    };
    OffsetStyle {
        minutes,
        seconds,
        colon: matches!(count, 3 | 5),
        zero,
    }
}
