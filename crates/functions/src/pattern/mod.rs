//! Java's regular expressions, run by the `regex` crate.
//!
//! The two languages are close. [`translate()`] rewrites what differs (classes of ASCII characters, escapes, quoting, what `.` means) and refuses,
//! with its position, what has no counterpart in an engine that never goes back: look-around, back-references, possessive quantifiers.

mod class;
mod translate;

use regex::{Captures, Regex, RegexBuilder};

pub(crate) use translate::translate;

/// Bytes that a compiled pattern may take; a nested repetition such as `(a{1000}){1000}` would take gigabytes.
const MAX_COMPILED: usize = 4 << 20;

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct JavaRegex(Regex);

impl JavaRegex {
    /// Compiles a pattern; the error tells the position.
    pub fn compile(pattern: &str) -> Result<Self, String> {
        let translated = translate(pattern)?;
        RegexBuilder::new(&translated)
            .size_limit(MAX_COMPILED)
            .build()
            .map(Self)
            .map_err(|error| {
                format!(
                    "invalid regular expression \"{pattern}\": {}",
                    last_line(&error.to_string())
                )
            })
    }

    /// The pattern for the `regex` crate.
    pub fn regex(&self) -> &Regex {
        &self.0
    }

    /// Replaces all matches; `$1`, `${name}` and `\` in the replacement mean what they mean in Java.
    pub fn replace_all(&self, text: &str, replacement: &str) -> Result<String, String> {
        let mut out = String::with_capacity(text.len());
        let mut end = 0;
        for captures in self.0.captures_iter(text) {
            let Some(whole) = captures.get(0) else {
                continue;
            };
            out.push_str(&text[end..whole.start()]);
            expand(&mut out, replacement, &captures)?;
            end = whole.end();
        }
        out.push_str(&text[end..]);
        Ok(out)
    }
}

/// The line of a many-line message that says what is wrong.
fn last_line(message: &str) -> &str {
    message
        .lines()
        .last()
        .unwrap_or(message)
        .trim_start_matches("error: ")
}

fn expand(out: &mut String, replacement: &str, captures: &Captures) -> Result<(), String> {
    let bad = |at: usize, what: &str| {
        Err(format!(
            "invalid replacement \"{replacement}\" at position {at}: {what}"
        ))
    };
    let mut rest = replacement.char_indices().peekable();
    while let Some((at, character)) = rest.next() {
        match character {
            '\\' => match rest.next() {
                Some((_, escaped)) => out.push(escaped),
                None => return bad(at, "\"\\\" with nothing behind it"),
            },
            '$' => match rest.peek() {
                Some((_, '{')) => {
                    let Some(length) = replacement[at + 2..].find('}') else {
                        return bad(at, "\"${\" without its \"}\"");
                    };
                    let name = &replacement[at + 2..at + 2 + length];
                    let Some(group) = captures.name(name) else {
                        return bad(at, "a group that the pattern does not have");
                    };
                    out.push_str(group.as_str());
                    rest.find(|(_, character)| *character == '}');
                }
                Some((_, digit)) if digit.is_ascii_digit() => {
                    // As many digits as make the number of a group that exists.
                    let mut group = 0;
                    let mut taken = 0;
                    while let Some(digit) = rest.peek().and_then(|(_, digit)| digit.to_digit(10)) {
                        let next = group * 10 + digit as usize;
                        if taken > 0 && next >= captures.len() {
                            break;
                        }
                        (group, taken) = (next, taken + 1);
                        rest.next();
                    }
                    if group >= captures.len() {
                        return bad(at, "a group that the pattern does not have");
                    }
                    out.push_str(captures.get(group).map_or("", |group| group.as_str()));
                }
                _ => return bad(at, "\"$\" with neither a number nor a name behind it"),
            },
            other => out.push(other),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(pattern: &str, text: &str) -> Option<String> {
        let compiled = JavaRegex::compile(pattern).unwrap_or_else(|error| panic!("{error}"));
        compiled
            .regex()
            .find(text)
            .map(|found| found.as_str().to_owned())
    }

    #[test]
    fn patterns_mean_what_they_mean_in_java() {
        let cases = [
            (r"\d+", "٣ 12", Some("12")),
            (r"\w+", "é ab_1", Some("ab_1")),
            (r"[\w&&[^b]]+", "bacb", Some("ac")),
            (r"\Qa.b\E+", "a.bb", Some("a.bb")),
            (r"\Qa.b", "xa.b", Some("a.b")),
            (r"\u0041\x42", "AB", Some("AB")),
            (r"\p{Alpha}+\p{Punct}", "12ab!", Some("ab!")),
            (r"\p{IsAlphabetic}+", "1é2", Some("é")),
            (r"[a-c[x-z]]+", "xaq", Some("xa")),
            (r"\h+", "a \tb", Some(" \t")),
            (r"a\Rb", "a\r\nb", Some("a\r\nb")),
            (r"a.b", "a\rb", None),
            (r"(?s)a.b", "a\rb", Some("a\rb")),
            (r"(?s:a.)b.", "a\nb\n", None),
            (r"(?<year>\d{4})", "in 2024", Some("2024")),
            (r"[~-]+", "a~-b", Some("~-")),
            (r"\bab\b", "x ab", Some("ab")),
            (r"\012", "\n", Some("\n")),
            (r"\07", "\u{7}", Some("\u{7}")),
            (r"\cA", "\u{1}", Some("\u{1}")),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(found(pattern, text).as_deref(), expected, "{pattern}");
        }
    }

    #[test]
    fn what_cannot_run_is_refused_where_it_stands() {
        let cases = [
            ("a(?=b)", 1),
            ("(?<!a)b", 0),
            (r"(a)\1", 3),
            ("a*+", 2),
            ("ab(?>c)", 2),
            (r"x\G", 1),
            (r"x\p{InGreek}", 1),
            (r"a\", 1),
            (r"\uZZZZ", 0),
            ("a[b", 1),
            (r"\k<n>", 0),
        ];
        for (pattern, at) in cases {
            let error = JavaRegex::compile(pattern).unwrap_err();
            assert!(
                error.contains(&format!("position {at}:")),
                "{pattern}: {error}"
            );
        }
        assert!(
            JavaRegex::compile("(a{1000}){1000}").is_err(),
            "size is bounded"
        );
        assert!(JavaRegex::compile("(a").is_err());
    }

    #[test]
    fn replacements_name_groups() {
        let swap = JavaRegex::compile(r"(\w)(?<second>\w)").unwrap();
        assert_eq!(
            swap.replace_all("ab-cd", r"${second}$1").as_deref(),
            Ok("ba-dc")
        );
        assert_eq!(swap.replace_all("ab", r"$11\$").as_deref(), Ok("a1$"));
        assert!(swap.replace_all("ab", "$3").is_err());
        assert!(swap.replace_all("ab", "$").is_err());
        assert_eq!(
            swap.replace_all("-", "$").as_deref(),
            Ok("-"),
            "nothing is replaced"
        );
    }

    proptest! {
        #[test]
        fn quoted_text_matches_itself(text in "[^\\\\]{1,20}") {
            let pattern = JavaRegex::compile(&format!("\\Q{text}\\E")).unwrap();
            prop_assert_eq!(pattern.regex().find(&text).map(|found| found.as_str()), Some(text.as_str()));
        }

        #[test]
        fn plain_words_stay_as_they_are(text in "[a-zA-Z0-9 ]{0,20}") {
            prop_assert_eq!(translate(&text), Ok(text));
        }

        #[test]
        fn any_pattern_is_translated_or_refused(pattern in r"[\\\[\]\(\)\{\}?*+.^$|&a-z0-9<>=!:,-]{0,24}") {
            let _ = JavaRegex::compile(&pattern);
        }
    }
}
