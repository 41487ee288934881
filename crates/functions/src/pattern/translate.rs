//! One pass over a pattern.

use std::fmt::Write as _;

use super::class;

/// Rewrites a Java pattern for the `regex` crate.
pub(crate) fn translate(pattern: &str) -> Result<String, String> {
    let mut translator = Translator {
        pattern,
        at: 0,
        out: String::with_capacity(pattern.len()),
        dot_all: vec![false],
        quantifiable: false,
    };
    translator.run()?;
    Ok(translator.out)
}

/// What `.` is in Java: all but the ends of lines.
const ANY_BUT_LINE_ENDS: &str = r"[^\n\r\x{85}\x{2028}\x{2029}]";

struct Translator<'p> {
    pattern: &'p str,
    at: usize,
    out: String,
    /// Whether `.` takes line ends, for each group that is open; the first is the pattern itself.
    dot_all: Vec<bool>,
    /// Whether a quantifier was just written, so that `+` behind it is possessive.
    quantifiable: bool,
}

impl Translator<'_> {
    fn refuse<T>(&self, at: usize, what: &str) -> Result<T, String> {
        Err(format!(
            "invalid regular expression \"{}\" at position {at}: {what}",
            self.pattern
        ))
    }

    fn peek(&self) -> Option<char> {
        self.pattern[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.at += character.len_utf8();
        Some(character)
    }

    fn run(&mut self) -> Result<(), String> {
        while let Some(character) = self.peek() {
            let start = self.at;
            let after_quantifier = std::mem::take(&mut self.quantifiable);
            match character {
                '\\' => self.escape(false)?,
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => {
                    self.at += 1;
                    if self.dot_all.len() > 1 {
                        self.dot_all.pop();
                    }
                    self.out.push(')');
                }
                '.' => {
                    self.at += 1;
                    let any = match self.dot_all.last() {
                        Some(true) => ".",
                        _ => ANY_BUT_LINE_ENDS,
                    };
                    self.out.push_str(any);
                }
                '+' if after_quantifier => {
                    return self.refuse(start, "possessive quantifiers are not supported");
                }
                '?' if after_quantifier => {
                    self.at += 1;
                    self.out.push('?');
                }
                '*' | '+' | '?' => {
                    self.at += 1;
                    self.out.push(character);
                    self.quantifiable = true;
                }
                '}' => {
                    self.at += 1;
                    self.out.push('}');
                    self.quantifiable = true;
                }
                other => {
                    self.at += other.len_utf8();
                    self.out.push(other);
                }
            }
        }
        Ok(())
    }

    /// A group: what `(?` begins may be anything from a name to a look-around.
    fn group(&mut self) -> Result<(), String> {
        let start = self.at;
        let inherited = self.dot_all.last().copied().unwrap_or(false);
        let rest = &self.pattern[start..];
        if !rest.starts_with("(?") {
            self.at += 1;
            self.out.push('(');
            self.dot_all.push(inherited);
            return Ok(());
        }
        for (prefix, what) in [
            ("(?=", "look-ahead is not supported"),
            ("(?!", "look-ahead is not supported"),
            ("(?<=", "look-behind is not supported"),
            ("(?<!", "look-behind is not supported"),
            ("(?>", "atomic groups are not supported"),
        ] {
            if rest.starts_with(prefix) {
                return self.refuse(start, what);
            }
        }
        if rest.starts_with("(?<") {
            self.at += 3;
            self.out.push_str("(?<");
            self.dot_all.push(inherited);
            return Ok(());
        }
        self.flags(start, inherited)
    }

    /// `(?ims)`, `(?i-s:`: flags for the rest of the group, or for a group of their own.
    fn flags(&mut self, start: usize, inherited: bool) -> Result<(), String> {
        self.at += 2;
        let (mut dot_all, mut on) = (inherited, true);
        let (mut set, mut cleared) = (String::new(), String::new());
        loop {
            match self.next() {
                Some('-') if on => on = false,
                Some('s') => dot_all = on,
                // The `regex` crate folds case by Unicode, which `u` asks for.
                Some('u') => {}
                Some(flag @ ('i' | 'm' | 'x')) if on => set.push(flag),
                Some(flag @ ('i' | 'm' | 'x')) => cleared.push(flag),
                Some(end @ (':' | ')')) => {
                    // `.` is written out where it does not take line ends, so `s` may be on throughout.
                    let off = if cleared.is_empty() {
                        String::new()
                    } else {
                        format!("-{cleared}")
                    };
                    if end == ':' {
                        let _ = write!(self.out, "(?s{set}{off}:");
                        self.dot_all.push(dot_all);
                    } else {
                        let _ = write!(self.out, "(?s{set}{off})");
                        if let Some(current) = self.dot_all.last_mut() {
                            *current = dot_all;
                        }
                    }
                    return Ok(());
                }
                Some(_) => return self.refuse(start, "a flag that is not supported"),
                None => return self.refuse(start, "a group that does not end"),
            }
        }
    }

    /// A class in brackets, with all that is nested in it.
    fn class(&mut self) -> Result<(), String> {
        let start = self.at;
        let mut depth = 0usize;
        // A `]` right behind the opening bracket stands for itself.
        let mut first = false;
        while let Some(character) = self.peek() {
            match character {
                '\\' => self.escape(true)?,
                '[' => {
                    self.at += 1;
                    depth += 1;
                    self.out.push('[');
                    if self.peek() == Some('^') {
                        self.at += 1;
                        self.out.push('^');
                    }
                    first = true;
                    continue;
                }
                ']' if first => {
                    self.at += 1;
                    self.out.push_str("\\]");
                }
                ']' => {
                    self.at += 1;
                    depth -= 1;
                    self.out.push(']');
                    if depth == 0 {
                        return Ok(());
                    }
                }
                // Both begin set operations when doubled, which Java does not know.
                '~' => {
                    self.at += 1;
                    self.out.push_str("\\~");
                }
                '-' if self.pattern[self.at..].starts_with("--") => {
                    self.at += 1;
                    self.out.push_str("\\-");
                }
                other => {
                    self.at += other.len_utf8();
                    self.out.push(other);
                }
            }
            first = false;
        }
        self.refuse(start, "a class without its \"]\"")
    }

    /// What a backslash begins.
    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let start = self.at;
        self.at += 1;
        let Some(letter) = self.next() else {
            return self.refuse(start, "\"\\\" with nothing behind it");
        };
        if let Some(set) = class::named(letter) {
            let text = if in_class {
                set.to_owned()
            } else {
                format!("[{set}]")
            };
            self.out.push_str(&text);
            return Ok(());
        }
        match letter {
            'D' | 'W' | 'S' | 'H' | 'V' => {
                let set = class::named(letter.to_ascii_lowercase()).unwrap_or_default();
                let _ = write!(self.out, "[^{set}]");
            }
            'Q' => {
                let rest = &self.pattern[self.at..];
                let length = rest.find("\\E").unwrap_or(rest.len());
                self.out.push_str(&regex::escape(&rest[..length]));
                self.at += (length + 2).min(rest.len());
            }
            'E' => {}
            'u' => self.code_point(start, 4)?,
            'x' if self.peek() == Some('{') => {
                let rest = &self.pattern[self.at + 1..];
                let Some(length) = rest.find('}') else {
                    return self.refuse(start, "\"\\x{\" without its \"}\"");
                };
                let value = u32::from_str_radix(&rest[..length], 16).ok();
                self.at += length + 2;
                self.push_code(start, value)?;
            }
            'x' => self.code_point(start, 2)?,
            '0' => {
                let digits: String = self.pattern[self.at..]
                    .chars()
                    .take(3)
                    .take_while(|digit| matches!(digit, '0'..='7'))
                    .collect();
                // Three digits only up to \0377.
                let length = if digits.len() == 3 && digits.as_str() > "377" {
                    2
                } else {
                    digits.len()
                };
                self.at += length;
                self.push_code(start, u32::from_str_radix(&digits[..length], 8).ok())?;
            }
            'c' => {
                let control = self.next().map(|letter| u32::from(letter) ^ 64);
                self.push_code(start, control.filter(|code| *code < 128))?;
            }
            'e' => self.out.push_str("\\x1B"),
            'a' | 'f' | 'n' | 'r' | 't' => {
                self.out.push('\\');
                self.out.push(letter);
            }
            'p' | 'P' => self.property(start, letter == 'P', in_class)?,
            'R' if !in_class => self
                .out
                .push_str(r"(?:\r\n|[\n\x0B\f\r\x{85}\x{2028}\x{2029}])"),
            'b' if !in_class => self.out.push_str(r"(?-u:\b)"),
            'B' if !in_class => self.out.push_str(r"\B"),
            'A' | 'z' if !in_class => {
                self.out.push('\\');
                self.out.push(letter);
            }
            '1'..='9' | 'k' => return self.refuse(start, "back-references are not supported"),
            'a'..='z' | 'A'..='Z' => return self.refuse(start, "an escape that is not supported"),
            // The crate refuses escapes of characters that need none.
            other => self.out.push_str(&regex::escape(&other.to_string())),
        }
        Ok(())
    }

    /// `digits` hexadecimal digits.
    fn code_point(&mut self, start: usize, digits: usize) -> Result<(), String> {
        let text = self.pattern.get(self.at..self.at + digits);
        let value = text
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|text| u32::from_str_radix(text, 16).ok());
        if value.is_some() {
            self.at += digits;
        }
        self.push_code(start, value)
    }

    fn push_code(&mut self, start: usize, code: Option<u32>) -> Result<(), String> {
        match code.and_then(char::from_u32) {
            Some(character) => {
                // Writing to a String cannot fail.
                let _ = write!(self.out, "\\x{{{:X}}}", u32::from(character));
                Ok(())
            }
            None => self.refuse(start, "no code point of a character"),
        }
    }

    /// `\p{..}` and `\pL`.
    fn property(&mut self, start: usize, negated: bool, in_class: bool) -> Result<(), String> {
        let name = if self.peek() == Some('{') {
            let rest = &self.pattern[self.at + 1..];
            let Some(length) = rest.find('}') else {
                return self.refuse(start, "\"\\p{\" without its \"}\"");
            };
            self.at += length + 2;
            &rest[..length]
        } else {
            let from = self.at;
            if self.next().is_none() {
                return self.refuse(start, "\"\\p\" with nothing behind it");
            }
            &self.pattern[from..self.at]
        };
        match class::property(name, negated, in_class) {
            Some(text) => {
                self.out.push_str(&text);
                Ok(())
            }
            None => self.refuse(start, "a property that is not supported"),
        }
    }
}
