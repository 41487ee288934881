//! Functions of URLs.
//!
//! A URL is taken apart by RFC 3986, as `java.net.URI` does: `scheme://user@host:port/path?query#fragment`, every part but the path optional. Parts
//! come back without percent encoding. A text with characters that no URL may have (blanks, `|`, `<`) has no parts: its row is NULL.

use arrow::{array::ArrayRef, datatypes::Int32Type};

use crate::{
    call::{Call, value},
    function::{Category, Function, Overload},
    scalar::text::TEXT,
    signature::{Kind, Param, param},
};

const URL: Param = param("url", Kind::Text, "the URL");

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "url_encode_param",
        Category::Url,
        "A text as it stands in the query of a URL: percent-encoded, with + for blanks.",
        &[Overload::new(&[TEXT], Kind::Text, |call| {
            let text = call.text(0);
            Ok(call.write_texts(|row, out| {
                encode(out, value!(text.get(row)));
                Ok(Some(()))
            }))
        })],
        &[("url_encode_param('a b&c')", "'a+b%26c'")],
    ),
    Function::new(
        "url_decode_param",
        Category::Url,
        "What a part of a URL's query stands for.",
        &[Overload::new(&[TEXT], Kind::Text, |call| {
            let text = call.text(0);
            Ok(call.texts(|row| decode(value!(text.get(row)), true).map(Some)))
        })],
        &[("url_decode_param('a+b%26c')", "'a b&c'")],
    ),
    Function::new(
        "url_extract_fragment",
        Category::Url,
        "What stands behind the # of a URL.",
        &[Overload::new(&[URL], Kind::Text, |call| {
            Ok(parts(call, |url| url.fragment))
        })],
        &[("url_extract_fragment('http://a.org/b#c')", "'c'")],
    ),
    Function::new(
        "url_extract_host",
        Category::Url,
        "The host of a URL.",
        &[Overload::new(&[URL], Kind::Text, |call| {
            Ok(parts(call, |url| url.host))
        })],
        &[("url_extract_host('http://u@a.org:80/b')", "'a.org'")],
    ),
    Function::new(
        "url_extract_parameter",
        Category::Url,
        "The value of a parameter in the query of a URL.",
        &[Overload::new(
            &[URL, param("name", Kind::Text, "the parameter's name")],
            Kind::Text,
            |call| {
                let (url, name) = (call.text(0), call.text(1));
                Ok(call.texts(|row| {
                    let (url, name) = (Url::parse(value!(url.get(row)))?, value!(name.get(row)));
                    let query = decode(value!(url.query), false)?;
                    let found = query
                        .split('&')
                        .filter(|parameter| !parameter.is_empty())
                        .map(|parameter| parameter.split_once('=').unwrap_or((parameter, "")))
                        .find(|(own, _)| *own == name);
                    Ok(found.map(|(_, value)| value.to_owned()))
                }))
            },
        )],
        &[("url_extract_parameter('http://a.org?x=1&y=2', 'y')", "'2'")],
    ),
    Function::new(
        "url_extract_path",
        Category::Url,
        "The path of a URL; empty when it has none.",
        &[Overload::new(&[URL], Kind::Text, |call| {
            Ok(parts(call, |url| Some(url.path)))
        })],
        &[("url_extract_path('http://a.org/b/c?x=1')", "'/b/c'")],
    ),
    Function::new(
        "url_extract_port",
        Category::Url,
        "The port of a URL, where it is written.",
        &[Overload::new(&[URL], Kind::Int, |call| {
            let url = call.text(0);
            Ok(call.numbers::<Int32Type>(|row| Ok(Url::parse(value!(url.get(row)))?.port)))
        })],
        &[("url_extract_port('http://a.org:80/b')", "80")],
    ),
    Function::new(
        "url_extract_protocol",
        Category::Url,
        "The protocol of a URL.",
        &[Overload::new(&[URL], Kind::Text, |call| {
            Ok(parts(call, |url| url.scheme))
        })],
        &[("url_extract_protocol('http://a.org')", "'http'")],
    ),
    Function::new(
        "url_extract_query",
        Category::Url,
        "What stands behind the ? of a URL.",
        &[Overload::new(&[URL], Kind::Text, |call| {
            Ok(parts(call, |url| url.query))
        })],
        &[("url_extract_query('http://a.org?x=1#c')", "'x=1'")],
    ),
];

fn parts(call: &Call, part: impl for<'u> Fn(Url<'u>) -> Option<&'u str>) -> ArrayRef {
    let url = call.text(0);
    call.texts(|row| {
        let url = Url::parse(value!(url.get(row)))?;
        decode(value!(part(url)), false).map(Some)
    })
}

/// The parts of a URL, still encoded.
#[derive(Debug, Default, PartialEq)]
struct Url<'u> {
    scheme: Option<&'u str>,
    host: Option<&'u str>,
    port: Option<i32>,
    path: &'u str,
    query: Option<&'u str>,
    fragment: Option<&'u str>,
}

impl<'u> Url<'u> {
    fn parse(text: &'u str) -> Result<Self, String> {
        if let Some((at, bad)) = text
            .char_indices()
            .find(|(_, character)| !is_allowed(*character))
        {
            return Err(format!("no URL: character {bad:?} at position {at}"));
        }
        if let Some(at) = misplaced_percent(text) {
            return Err(format!(
                "no URL: \"%\" without two hexadecimal digits at position {at}"
            ));
        }
        let mut url = Self::default();
        let mut rest = text;
        if let Some((front, fragment)) = rest.split_once('#') {
            (rest, url.fragment) = (front, Some(fragment));
        }
        if let Some((scheme, behind)) = rest.split_once(':')
            && is_scheme(scheme)
        {
            if behind.is_empty() {
                return Err("no URL: nothing behind the scheme".to_owned());
            }
            (url.scheme, rest) = (Some(scheme), behind);
            if !rest.starts_with('/') {
                // `mailto:a@b.org`: such a URL has neither host nor path.
                return Ok(url);
            }
        }
        if let Some((front, query)) = rest.split_once('?') {
            (rest, url.query) = (front, Some(query));
        }
        match rest.strip_prefix("//") {
            None => url.path = rest,
            Some(behind) => {
                let authority = &behind[..behind.find('/').unwrap_or(behind.len())];
                url.path = &behind[authority.len()..];
                url.take_authority(authority);
            }
        }
        Ok(url)
    }

    /// `user@host:port`; what is not of that form is a name of some registry and no host.
    fn take_authority(&mut self, authority: &'u str) {
        let server = authority
            .rsplit_once('@')
            .map_or(authority, |(_, server)| server);
        let host_end = match server.strip_prefix('[') {
            Some(address) => match address.find(']') {
                Some(end) => end + 2,
                None => return,
            },
            None => server.find(':').unwrap_or(server.len()),
        };
        let (host, port) = server.split_at(host_end);
        let port = match port.strip_prefix(':') {
            None | Some("") => None,
            Some(digits) => match digits.parse() {
                Ok(port) => Some(port),
                Err(_) => return,
            },
        };
        let named = host.starts_with('[')
            || host
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.'));
        if !host.is_empty() && named {
            (self.host, self.port) = (Some(host), port);
        }
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// Characters of RFC 2396 and, as Java allows, all letters beyond ASCII.
fn is_allowed(character: char) -> bool {
    match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' => true,
        other if other.is_ascii() => "-_.!~*'();/?:@&=+$,#%[]".contains(other),
        other => !other.is_control() && !other.is_whitespace(),
    }
}

fn misplaced_percent(text: &str) -> Option<usize> {
    text.match_indices('%').map(|(at, _)| at).find(|at| {
        !text
            .as_bytes()
            .get(at + 1..at + 3)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// Appends a text in the encoding of forms.
fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*' => {
                out.push(char::from(byte))
            }
            other => {
                out.push('%');
                super::bytes::write_hex(out, &[other], true);
            }
        }
    }
}

/// Undoes percent encoding, and in forms + for a blank.
fn decode(text: &str, form: bool) -> Result<String, String> {
    if !text.contains(['%', '+']) {
        return Ok(text.to_owned());
    }
    if let Some(at) = misplaced_percent(text) {
        return Err(format!(
            "\"%\" without two hexadecimal digits at position {at}"
        ));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' if form => bytes.push(b' '),
            b'%' => {
                let mut digit = || {
                    rest.next()
                        .and_then(|digit| char::from(digit).to_digit(16))
                        .unwrap_or(0)
                };
                let value = digit() * 16 + digit();
                bytes.push(u8::try_from(value).unwrap_or(0));
            }
            other => bytes.push(other),
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn urls_fall_apart() {
        let url = Url::parse("https://u:p@a.org:8080/b/c?x=1&y#d").unwrap();
        let expected = Url {
            scheme: Some("https"),
            host: Some("a.org"),
            port: Some(8080),
            path: "/b/c",
            query: Some("x=1&y"),
            fragment: Some("d"),
        };
        assert_eq!(url, expected);
        assert_eq!(Url::parse("a.org/b").unwrap().path, "a.org/b");
        assert_eq!(Url::parse("http://[::1]:9/").unwrap().host, Some("[::1]"));
        assert_eq!(Url::parse("http://a_b.org/").unwrap().host, None);
        assert_eq!(Url::parse("mailto:x@y.org").unwrap().scheme, Some("mailto"));
        for bad in ["http://a.org/b c", "http://a|b", "http://a/%zz", "http:"] {
            assert!(Url::parse(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn encoding_is_undone(text in any::<String>()) {
            let mut encoded = String::new();
            encode(&mut encoded, &text);
            prop_assert_eq!(decode(&encoded, true), Ok(text));
        }
    }
}
