//! Which column a field of an object belongs to.
//!
//! Records of a topic mostly come from one program and so have their fields in one order and spacing. [`FieldMatcher`] remembers the bytes
//! from the end of one value to the start of the next (`,"price":`) as it last saw them: in the ordinary case one comparison steps over the
//! comma, the name and the colon, and knows the column. Anything else is parsed and looked up, and remembered in turn.
//!
//! Invariant: remembered bytes were parsed once as separator, name and colon, so where they match they need no check.

use std::collections::HashMap;

use super::{
    cursor::{Cursor, Read},
    string::RawString,
};

/// Places that are remembered per object, so that a hostile record cannot make the memory grow.
const MAX_REMEMBERED: usize = 512;

/// Bytes that one remembered place may have.
const MAX_PLACE_BYTES: usize = 128;

/// Matches nothing, since a record is UTF-8.
const NEVER_IN_TEXT: &[u8] = &[0xFF];

/// How many places ahead are tried when the expected one does not match: optional fields are often left out.
const LOOK_AHEAD: usize = 3;

/// A column that a field belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    pub(super) column: usize,
    /// Whether the name is the column's to the letter; such a field wins over one that differs in case.
    pub(super) exact: bool,
}

/// What stands before a value.
pub(super) enum Next {
    /// The object ends here; the cursor is behind its brace.
    End,
    /// A field, with its column if one wants it; the cursor is at the value's first byte.
    Field(Option<Match>),
}

/// The names of an object's columns, and the order in which fields came last.
#[derive(Debug)]
pub(super) struct FieldMatcher {
    exact: HashMap<Vec<u8>, usize>,
    folded: HashMap<String, usize>,
    remembered: Vec<Place>,
    /// The next place to try in the object that is being read.
    next: usize,
    name: Vec<u8>,
}

#[derive(Debug)]
struct Place {
    bytes: Vec<u8>,
    field: Option<Match>,
}

impl FieldMatcher {
    pub(super) fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let mut exact = HashMap::new();
        let mut folded = HashMap::new();
        for (column, name) in names.enumerate() {
            exact.entry(name.as_bytes().to_vec()).or_insert(column);
            folded.entry(name.to_uppercase()).or_insert(column);
        }
        Self {
            exact,
            folded,
            remembered: Vec::new(),
            next: 0,
            name: Vec::new(),
        }
    }

    /// Begins an object: the cursor is on its brace.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.next = 0;
    }

    /// Reads up to the next value or the end of the object. `first` is whether no field has been read yet.
    #[inline]
    pub(super) fn next(&mut self, cursor: &mut Cursor<'_>, first: bool) -> Read<Next> {
        if let Some(place) = self.remembered.get(self.next)
            && begins_with(cursor.rest(), &place.bytes)
        {
            cursor.pos += place.bytes.len();
            self.next += 1;
            // There may be more blanks than there were when the place was seen.
            cursor.skip_blanks();
            return Ok(Next::Field(place.field));
        }
        if !first && cursor.peek() == b'}' {
            cursor.pos += 1;
            return Ok(Next::End);
        }
        self.next_slowly(cursor, first)
    }

    fn next_slowly(&mut self, cursor: &mut Cursor<'_>, first: bool) -> Read<Next> {
        // Only place 0 begins with the brace, so there is nothing to look ahead for in front of it.
        let look_ahead = if first { 0 } else { LOOK_AHEAD };
        let ahead = self
            .remembered
            .iter()
            .enumerate()
            .skip(self.next + 1)
            .take(look_ahead);
        for (index, place) in ahead {
            if cursor.rest().starts_with(&place.bytes) {
                cursor.pos += place.bytes.len();
                self.next = index + 1;
                cursor.skip_blanks();
                return Ok(Next::Field(place.field));
            }
        }

        let start = cursor.pos;
        if first {
            cursor.expect(b'{', "expected an object")?;
            cursor.skip_blanks();
        } else {
            cursor.skip_blanks();
            if cursor.peek() == b',' {
                cursor.pos += 1;
                cursor.skip_blanks();
                if cursor.peek() == b'}' {
                    return Err(cursor.fault("a comma before the end of an object"));
                }
            } else if cursor.peek() != b'}' {
                return Err(cursor.fault("expected \",\" or \"}\" in an object"));
            }
        }
        if cursor.peek() == b'}' {
            cursor.pos += 1;
            return Ok(Next::End);
        }
        let name = cursor.string()?;
        cursor.colon()?;
        let field = self.look_up(&name)?;
        self.remember(&cursor.bytes[start..cursor.pos], field);
        Ok(Next::Field(field))
    }

    fn look_up(&mut self, name: &RawString<'_>) -> Read<Option<Match>> {
        self.name.clear();
        name.append_to(&mut self.name)?;
        if let Some(&column) = self.exact.get(&self.name) {
            return Ok(Some(Match {
                column,
                exact: true,
            }));
        }
        // Names are UTF-8 like the record they come from, so nothing is lost here.
        let folded = String::from_utf8_lossy(&self.name).to_uppercase();
        Ok(self.folded.get(&folded).map(|&column| Match {
            column,
            exact: false,
        }))
    }

    fn remember(&mut self, bytes: &[u8], field: Option<Match>) {
        let at = self.next;
        if at >= MAX_REMEMBERED {
            return;
        }
        // A place that is not worth its memory still counts: place 0 stays the only one that begins with a brace.
        let bytes = if bytes.len() > MAX_PLACE_BYTES {
            NEVER_IN_TEXT
        } else {
            bytes
        };
        match self.remembered.get_mut(at) {
            Some(place) => {
                place.bytes.clear();
                place.bytes.extend_from_slice(bytes);
                place.field = field;
            }
            None => self.remembered.push(Place {
                bytes: bytes.to_vec(),
                field,
            }),
        }
        self.next = at + 1;
    }
}

/// `starts_with` for the lengths that most places have: two words that overlap instead of a call.
#[inline]
fn begins_with(text: &[u8], place: &[u8]) -> bool {
    let (Some(head), Some(tail)) = (place.first_chunk::<8>(), place.last_chunk::<8>()) else {
        return text.starts_with(place);
    };
    if place.len() > 16 {
        return text.starts_with(place);
    }
    let Some(text) = text.get(..place.len()) else {
        return false;
    };
    text.first_chunk::<8>() == Some(head) && text.last_chunk::<8>() == Some(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(matcher: &mut FieldMatcher, text: &str) -> Read<Vec<Option<Match>>> {
        let mut cursor = Cursor::new(text.as_bytes());
        matcher.begin();
        let mut out = Vec::new();
        while let Next::Field(field) = matcher.next(&mut cursor, out.is_empty())? {
            cursor.skip_value(1)?;
            out.push(field);
        }
        cursor.end()?;
        Ok(out)
    }

    fn exact(column: usize) -> Option<Match> {
        Some(Match {
            column,
            exact: true,
        })
    }

    fn other_case(column: usize) -> Option<Match> {
        Some(Match {
            column,
            exact: false,
        })
    }

    #[test]
    fn every_order_and_spacing_gives_the_same_columns() {
        let mut matcher = FieldMatcher::new(["a", "Bé", "c"].into_iter());
        for _ in 0..2 {
            assert_eq!(
                columns(&mut matcher, r#"{"a":1,"Bé":2,"x":3}"#),
                Ok(vec![exact(0), exact(1), None])
            );
            assert_eq!(
                columns(&mut matcher, r#"{"Bé":2,"a":1}"#),
                Ok(vec![exact(1), exact(0)])
            );
            assert_eq!(columns(&mut matcher, r#"{"a":1}"#), Ok(vec![exact(0)]));
            assert_eq!(
                columns(&mut matcher, r#"{ "A" : 1 , "bÉ" : 2 , "\u0063" : 3 }"#),
                Ok(vec![other_case(0), other_case(1), exact(2)])
            );
            // The same but for more blanks behind a colon than the first record has.
            assert_eq!(
                columns(&mut matcher, "{\"a\": 1,\"Bé\":\t\n 2,\"x\":  3}"),
                Ok(vec![exact(0), exact(1), None])
            );
            assert_eq!(
                columns(&mut matcher, "{\"a\":1,\"x\": 3}"),
                Ok(vec![exact(0), None])
            );
            assert_eq!(columns(&mut matcher, "{}"), Ok(vec![]));
            assert_eq!(columns(&mut matcher, "{\n}"), Ok(vec![]));
        }
    }

    #[test]
    fn broken_objects_are_refused_however_often_they_come() {
        let mut matcher = FieldMatcher::new(["a", "b"].into_iter());
        for _ in 0..2 {
            assert!(columns(&mut matcher, r#"{"a":1,"b":2}"#).is_ok());
            for text in [
                r#"{"a":1,}"#,
                r#"{"a":1 "b":2}"#,
                r#"{"a":1,"b":}"#,
                r#"{,"a":1}"#,
                r#"{"a":1"#,
                r#"{"a"1}"#,
                r#"{"a":1,,"b":2}"#,
            ] {
                assert!(columns(&mut matcher, text).is_err(), "{text}");
            }
        }
    }

    #[test]
    fn a_separator_is_never_taken_for_a_brace() {
        let mut matcher = FieldMatcher::new(["a"].into_iter());
        let long = "n".repeat(1_000);
        for _ in 0..2 {
            assert!(columns(&mut matcher, &format!(r#"{{"{long}":1,"a":2}}"#)).is_ok());
            assert!(columns(&mut matcher, r#"{"a":2}"#).is_ok());
            assert!(columns(&mut matcher, r#","a":2}"#).is_err());
            assert!(columns(&mut matcher, &format!(r#"{{"{long}":1{{"a":2}}"#)).is_err());
        }
    }

    #[test]
    fn begins_with_is_starts_with() {
        let text: Vec<u8> = (0..40).collect();
        for len in 0..text.len() {
            assert!(begins_with(&text, &text[..len]));
            assert!(!begins_with(&text[..len], &text));
            for wrong in 0..len {
                let mut place = text[..len].to_vec();
                place[wrong] ^= 1;
                assert!(!begins_with(&text, &place), "{wrong} of {len}");
            }
        }
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut matcher = FieldMatcher::new(["a"].into_iter());
        let fields: Vec<String> = (0..5_000).map(|index| format!("\"k{index}\":0")).collect();
        columns(&mut matcher, &format!("{{{}}}", fields.join(","))).unwrap();
        columns(&mut matcher, &format!("{{\"{}\":0}}", "n".repeat(10_000))).unwrap();
        assert!(matcher.remembered.len() <= MAX_REMEMBERED);
        assert!(
            matcher
                .remembered
                .iter()
                .all(|place| place.bytes.len() <= MAX_PLACE_BYTES)
        );
    }
}
