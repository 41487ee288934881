//! Places in a script: bytes in our own spans, lines and columns in the standard tree.
//!
//! The tokens and trees of the `sqlparser` crate carry lines and columns, counted from 1 in characters of the whole script, so that whoever
//! binds a tree can report a place without knowing us. We turn them into bytes only where an error or a piece of text is wanted, by a walk
//! from the statement's start: never once for each token.

use sqlparser::tokenizer::{Location, Span as StdSpan};

use crate::error::Span;

/// A byte offset in a script, and the line and column that stand for it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub offset: usize,
    pub location: Location,
}

impl Place {
    /// The start of every script.
    pub fn start() -> Self {
        Self {
            offset: 0,
            location: Location::new(1, 1),
        }
    }

    /// Moves over the next character of the script.
    fn step(&mut self, c: char) {
        self.offset += c.len_utf8();
        if c == '\n' {
            self.location = Location::new(self.location.line + 1, 1);
        } else {
            self.location.column += 1;
        }
    }

    /// Moves on to byte `offset`, which must not lie before this place.
    pub fn advance(&mut self, script: &str, offset: usize) {
        for c in script[self.offset..offset].chars() {
            self.step(c);
        }
    }

    /// The location in the script of a `location` in the text that starts here.
    pub fn absolute(&self, location: Location) -> Location {
        let line = self.location.line + location.line.saturating_sub(1);
        if location.line <= 1 {
            Location::new(
                line,
                self.location.column + location.column.saturating_sub(1),
            )
        } else {
            Location::new(line, location.column)
        }
    }
}

/// A script, and a place in it from which to look for others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'a> {
    /// The text that all places are in.
    pub script: &'a str,
    /// Where the statement at hand starts. No place before it can be found.
    pub start: Place,
}

impl Places<'_> {
    /// The byte offset that `location` stands for, or the end of the script if it lies behind that.
    pub fn offset(&self, location: Location) -> usize {
        self.place(location).offset
    }

    /// The place of `location`, from which places behind it can be looked for.
    pub fn place(&self, location: Location) -> Place {
        let mut place = self.start;
        for c in self.script[place.offset..].chars() {
            if place.location >= location {
                break;
            }
            place.step(c);
        }
        place
    }

    /// The bytes that a standard span stands for.
    pub fn span(&self, span: StdSpan) -> Span {
        Span::new(self.offset(span.start), self.offset(span.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_again() {
        let script = "é;\n ä b\n\nc";
        let start = Place {
            offset: 0,
            ..Place::start()
        };
        let places = Places { script, start };
        for (offset, _) in script.char_indices() {
            let mut place = start;
            place.advance(script, offset);
            assert_eq!(places.offset(place.location), offset);
        }
        assert_eq!(
            places.offset(Location::new(4, 1)),
            script.find('c').unwrap()
        );
        assert_eq!(places.offset(Location::new(99, 1)), script.len());
    }

    #[test]
    fn locations_in_a_piece_become_locations_in_the_script() {
        let mut place = Place::start();
        place.advance("ab\ncd", 4);
        assert_eq!(place.absolute(Location::new(1, 1)), Location::new(2, 2));
        assert_eq!(place.absolute(Location::new(1, 5)), Location::new(2, 6));
        assert_eq!(place.absolute(Location::new(3, 2)), Location::new(4, 2));
    }
}
