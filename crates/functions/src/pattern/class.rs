//! Classes of characters that Java names.

/// The inside of a bracketed class for `\d`, `\w`, `\s`, `\h` and `\v`, which are ASCII (or listed) in Java.
pub(super) fn named(letter: char) -> Option<&'static str> {
    Some(match letter {
        'd' => "0-9",
        'w' => "a-zA-Z0-9_",
        's' => r" \t\n\x0B\f\r",
        'h' => r" \t\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}",
        'v' => r"\n\x0B\f\r\x{85}\x{2028}\x{2029}",
        _ => return None,
    })
}

/// The POSIX classes; ASCII in Java.
const POSIX: [(&str, &str); 13] = [
    ("Lower", "[:lower:]"),
    ("Upper", "[:upper:]"),
    ("ASCII", "[:ascii:]"),
    ("Alpha", "[:alpha:]"),
    ("Digit", "[:digit:]"),
    ("Alnum", "[:alnum:]"),
    ("Punct", "[:punct:]"),
    ("Graph", "[:graph:]"),
    ("Print", "[:print:]"),
    ("Blank", "[:blank:]"),
    ("Cntrl", "[:cntrl:]"),
    ("XDigit", "[:xdigit:]"),
    ("Space", "[:space:]"),
];

/// Classes by methods of `java.lang.Character`, and the Unicode property that is the same.
const JAVA: [(&str, &str); 8] = [
    ("javaLowerCase", "Lowercase"),
    ("javaUpperCase", "Uppercase"),
    ("javaAlphabetic", "Alphabetic"),
    ("javaIdeographic", "Ideographic"),
    ("javaTitleCase", "Lt"),
    ("javaDigit", "Nd"),
    ("javaLetter", "L"),
    ("javaISOControl", "Cc"),
];

/// `\p{name}` or `\P{name}` for the `regex` crate. Blocks (`InGreek`) are not there.
pub(super) fn property(name: &str, negated: bool, in_class: bool) -> Option<String> {
    if let Some((_, posix)) = POSIX.iter().find(|(known, _)| *known == name) {
        let inside = match negated {
            true => posix.replacen("[:", "[:^", 1),
            false => (*posix).to_owned(),
        };
        return Some(if in_class {
            inside
        } else {
            format!("[{inside}]")
        });
    }
    let unicode = JAVA
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, unicode)| *unicode)
        .or_else(|| name.strip_prefix("Is"))
        .or_else(|| name.split_once('=').map(|(_, value)| value))
        .unwrap_or(name);
    let letter = if negated { 'P' } else { 'p' };
    let text = format!("\\{letter}{{{unicode}}}");
    // The crate knows which properties it has.
    regex::Regex::new(&text).is_ok().then_some(text)
}
