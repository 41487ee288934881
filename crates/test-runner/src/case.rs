//! Case files: `{"tests": [{"name", "statements", "inputs", "outputs", ..}]}`.
//!
//! A case that lists formats or configurations is as many runs as there are combinations: `{FORMAT}` and `{CONFIG}` in any of its texts stand
//! for one of them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    json::{Json, JsonError},
    record::{RecordError, TestRecord},
};

/// The dialect of cases, whose form is ksqlDB's.
const CASE_DIALECT: &str = "ksql";

/// One run: a case with one of its formats and configurations.
#[derive(Debug, Clone)]
pub struct Run {
    /// `file - name - format - config`.
    pub name: String,
    /// What is run first.
    pub statements: Vec<String>,
    /// Whose meaning the statements have: a case that names no dialect is in ksqlDB's.
    pub dialect: String,
    /// Session settings.
    pub properties: Vec<(String, String)>,
    /// Topics that exist before the statements run.
    pub topics: Vec<Topic>,
    /// Records that go in.
    pub inputs: Vec<TestRecord>,
    /// Records that must come out.
    pub outputs: Vec<TestRecord>,
    /// The last statement must be refused; the message it is refused with elsewhere, if the file tells one.
    pub refused: Option<Option<String>>,
    /// What the statements must have made.
    pub sources: Vec<ExpectedSource>,
}

/// A topic that a case makes itself.
#[derive(Debug, Clone)]
pub struct Topic {
    /// Its name.
    pub name: String,
    /// How many partitions.
    pub partitions: u32,
    /// Format of keys, for records of a topic that no stream or table is over.
    pub key_format: Option<String>,
    /// Format of values.
    pub value_format: Option<String>,
}

/// A stream or table that must be there after the statements.
#[derive(Debug, Clone)]
pub struct ExpectedSource {
    /// Its name.
    pub name: String,
    /// `stream` or `table`.
    pub kind: String,
    /// Its columns as ksqlDB writes them, if they matter.
    pub schema: Option<String>,
}

/// A case file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// The file cannot be read.
    #[error("cannot read \"{path}\"")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file is not JSON.
    #[error("\"{path}\" is not JSON")]
    Json {
        /// Which file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: JsonError,
    },
    /// A case lacks something.
    #[error("\"{path}\", case \"{case}\": {reason}")]
    Case {
        /// Which file.
        path: PathBuf,
        /// Which case.
        case: String,
        /// What is wrong.
        reason: String,
    },
}

/// The runs of a case file, or of all `.json` files of a folder by name.
pub fn load(path: &Path) -> Result<Vec<Run>, CaseError> {
    let unreadable = |source| CaseError::Read {
        path: path.to_owned(),
        source,
    };
    if !fs::metadata(path).map_err(unreadable)?.is_dir() {
        return load_file(path);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let file = entry.map_err(unreadable)?.path();
        if file
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(file);
        }
    }
    files.sort();
    let mut runs = Vec::new();
    for file in files {
        runs.extend(load_file(&file)?);
    }
    Ok(runs)
}

fn load_file(path: &Path) -> Result<Vec<Run>, CaseError> {
    let json = read_json(path)?;
    let case_error = |case: &str, reason: String| CaseError::Case {
        path: path.to_owned(),
        case: case.to_owned(),
        reason,
    };
    let tests = json
        .get("tests")
        .and_then(Json::as_array)
        .ok_or_else(|| case_error("", "there is no list \"tests\"".to_owned()))?;
    let file = path
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let mut runs = Vec::new();
    for test in tests {
        let name = test.get("name").and_then(Json::as_text).unwrap_or("");
        if is_outdated(test) {
            continue;
        }
        for format in variants(test, "format") {
            for config in variants(test, "config") {
                let replace = |text: &str| {
                    let text = match format {
                        Some(format) => text.replace("{FORMAT}", format),
                        None => text.to_owned(),
                    };
                    match config {
                        Some(config) => text.replace("{CONFIG}", config),
                        None => text,
                    }
                };
                let variant = test.map_texts(&replace);
                let parts = [Some(file.as_str()), Some(name), format, config];
                let full_name: Vec<&str> = parts.into_iter().flatten().collect();
                let run = Run::parse(full_name.join(" - "), &variant)
                    .map_err(|reason| case_error(name, reason))?;
                runs.push(run);
            }
        }
    }
    Ok(runs)
}

/// Reads a JSON file.
pub fn read_json(path: &Path) -> Result<Json, CaseError> {
    let text = fs::read_to_string(path).map_err(|source| CaseError::Read {
        path: path.to_owned(),
        source,
    })?;
    Json::parse(&text).map_err(|source| CaseError::Json {
        path: path.to_owned(),
        source,
    })
}

/// Whether a case speaks of releases of the past only.
fn is_outdated(test: &Json) -> bool {
    test.get("versions")
        .and_then(|versions| versions.get("max"))
        .is_some_and(|max| *max != Json::Null)
}

/// The elements of a list of texts; one `None` when there is no such list.
fn variants<'a>(test: &'a Json, name: &str) -> Vec<Option<&'a str>> {
    match test.get(name).and_then(Json::as_array) {
        Some(list) if !list.is_empty() => list.iter().map(Json::as_text).collect(),
        _ => vec![None],
    }
}

impl Run {
    fn parse(name: String, test: &Json) -> Result<Self, String> {
        let list = |name: &str| test.get(name).and_then(Json::as_array).unwrap_or_default();
        let statements = list("statements")
            .iter()
            .map(|statement| statement.as_text().map(str::to_owned))
            .collect::<Option<Vec<_>>>()
            .filter(|statements| !statements.is_empty())
            .ok_or("there is no list of statements")?;
        let properties = match test.get("properties") {
            Some(Json::Object(properties)) => properties
                .iter()
                .map(|(name, value)| (name.clone(), plain_text(value)))
                .collect(),
            _ => Vec::new(),
        };
        let records = |name| {
            TestRecord::list(list(name)).map_err(|error: RecordError| format!("{name}: {error}"))
        };
        let post = test.get("post");
        let sources = post
            .and_then(|post| post.get("sources"))
            .and_then(Json::as_array)
            .unwrap_or_default();
        Ok(Self {
            name,
            statements,
            dialect: test
                .get("dialect")
                .and_then(Json::as_text)
                .unwrap_or(CASE_DIALECT)
                .to_owned(),
            properties,
            topics: list("topics").iter().filter_map(Topic::parse).collect(),
            inputs: records("inputs")?,
            outputs: records("outputs")?,
            refused: test.get("expectedException").map(|expected| {
                let message = expected.get("message").and_then(Json::as_text);
                message.map(str::to_owned)
            }),
            sources: sources.iter().filter_map(ExpectedSource::parse).collect(),
        })
    }
}

impl Run {
    /// Whether a word stands in a statement or names a topic's format; case does not matter.
    pub fn speaks_of(&self, word: &str) -> bool {
        let has = |text: &str| {
            text.split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|part| part.eq_ignore_ascii_case(word))
        };
        let formats = self
            .topics
            .iter()
            .flat_map(|topic| [&topic.key_format, &topic.value_format]);
        self.statements.iter().any(|statement| has(statement))
            || formats.flatten().any(|format| has(format))
    }
}

impl Topic {
    fn parse(topic: &Json) -> Option<Self> {
        if let Some(name) = topic.as_text() {
            return Some(Self {
                name: name.to_owned(),
                partitions: 1,
                key_format: None,
                value_format: None,
            });
        }
        let text = |name: &str| topic.get(name).and_then(Json::as_text).map(str::to_owned);
        Some(Self {
            name: text("name")?,
            partitions: topic
                .get("partitions")
                .and_then(Json::as_i64)
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or(1),
            key_format: text("keyFormat"),
            value_format: text("valueFormat").or_else(|| text("format")),
        })
    }
}

impl ExpectedSource {
    fn parse(source: &Json) -> Option<Self> {
        let text = |name: &str| source.get(name).and_then(Json::as_text).map(str::to_owned);
        Some(Self {
            name: text("name")?,
            kind: text("type")?,
            schema: text("schema"),
        })
    }
}

fn plain_text(value: &Json) -> String {
    match value {
        Json::Text(text) => text.clone(),
        other => other.to_string(),
    }
}
