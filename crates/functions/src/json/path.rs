//! Paths into JSON: `$.store.books[0]["title"]`.

use super::Json;

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// A key of an object, or the index of an array in digits.
    Name(String),
    /// An index of an array.
    Index(usize),
}

/// A compiled path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path(Vec<Step>);

impl Path {
    /// Compiles a path; the error tells the position.
    pub fn compile(path: &str) -> Result<Self, String> {
        let bad = |at: usize, expected: &str| {
            Err(format!(
                "invalid JSON path \"{path}\" at position {at}: {expected} expected"
            ))
        };
        if !path.starts_with('$') {
            return bad(0, "\"$\"");
        }
        let mut steps = Vec::new();
        let mut at = 1;
        while at < path.len() {
            let rest = &path[at..];
            if let Some(name) = rest.strip_prefix('.') {
                let length = name.find(['.', '[']).unwrap_or(name.len());
                if length == 0 {
                    return bad(at + 1, "a name");
                }
                steps.push(Step::Name(name[..length].to_owned()));
                at += 1 + length;
            } else if let Some(quoted) = rest.strip_prefix("[\"") {
                let Some(length) = quoted.find("\"]") else {
                    return bad(at, "a quoted name and its \"]\"");
                };
                steps.push(Step::Name(quoted[..length].to_owned()));
                at += length + 4;
            } else if let Some(index) = rest.strip_prefix('[') {
                let Some(length) = index.find(']') else {
                    return bad(at, "an index and its \"]\"");
                };
                let digits = &index[..length];
                steps.push(match digits.parse() {
                    Ok(index) => Step::Index(index),
                    // An index from the end: no element has it.
                    Err(_) if is_negative(digits) => Step::Index(usize::MAX),
                    Err(_) => return bad(at + 1, "an index"),
                });
                at += length + 2;
            } else {
                return bad(at, "\".\" or \"[\"");
            }
        }
        Ok(Self(steps))
    }

    /// The value at the path, if there is one.
    pub fn find<'j, 't>(&self, json: &'j Json<'t>) -> Option<&'j Json<'t>> {
        self.0
            .iter()
            .try_fold(json, |value, step| match (value, step) {
                (Json::Array(items), Step::Index(index)) => items.get(*index),
                (Json::Array(items), Step::Name(digits)) => {
                    items.get(digits.parse::<usize>().ok()?)
                }
                (object, Step::Name(name)) => object.get(name),
                (_, Step::Index(_)) => None,
            })
    }
}

fn is_negative(digits: &str) -> bool {
    digits.strip_prefix('-').is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::{super::read, *};

    #[test]
    fn paths_lead_to_values() {
        let json = read(r#"{"a":{"b":[1,{"c d":2}]},"@t":3}"#).unwrap();
        let find = |path: &str| Path::compile(path).unwrap().find(&json).cloned();
        assert_eq!(find("$.a.b[0]"), Some(Json::Number("1")));
        assert_eq!(find("$.a.b[1][\"c d\"]"), Some(Json::Number("2")));
        assert_eq!(find("$.a.b.0"), Some(Json::Number("1")));
        assert_eq!(find("$.@t"), Some(Json::Number("3")));
        assert_eq!(find("$.a.b[-1]"), None);
        assert_eq!(find("$.a.x.y"), None);
        assert_eq!(find("$"), Some(json.clone()));
    }

    #[test]
    fn a_wrong_path_tells_where() {
        for (path, at) in [("a.b", 0), ("$a", 1), ("$.", 2), ("$.a[", 3), ("$[x]", 2)] {
            let error = Path::compile(path).unwrap_err();
            assert!(
                error.contains(&format!("position {at}:")),
                "{path}: {error}"
            );
        }
    }
}
