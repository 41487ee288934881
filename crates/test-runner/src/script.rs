//! A script with the records that go in and those that must come out, each in a file: how people test a pipeline of their own.

use std::{fs, path::Path};

use anyhow::{Context, bail};

use crate::{
    case::read_json,
    json::Json,
    record::TestRecord,
    run::{compare_outputs, records},
    world::World,
};

/// The files of a test.
#[derive(Debug, Clone, Copy)]
pub struct Script<'a> {
    /// Statements, run first.
    pub sql: &'a Path,
    /// `{"inputs": [..]}`.
    pub input: &'a Path,
    /// `{"outputs": [..]}`.
    pub output: Option<&'a Path>,
    /// Whose meaning the statements have.
    pub dialect: &'a str,
    /// Where to write what came out.
    pub actual: Option<&'a Path>,
}

/// Runs a test; `Ok(Some(..))` is how it failed. Without an expectation, what came out is printed.
pub fn run(script: Script) -> anyhow::Result<Option<String>> {
    let sql = fs::read_to_string(script.sql)
        .with_context(|| format!("cannot read \"{}\"", script.sql.display()))?;
    let inputs = list(script.input, "inputs")?;
    let expected = script
        .output
        .map(|path| list(path, "outputs"))
        .transpose()?;
    let mut world = World::new(&[], script.dialect).map_err(anyhow::Error::msg)?;
    let outcome = world
        .execute(&sql)
        .and_then(|()| records(&mut world, &inputs));
    let actual = match outcome {
        Ok(actual) => actual,
        Err(trouble) => {
            world.stop().map_err(anyhow::Error::msg)?;
            return Ok(Some(trouble));
        }
    };
    let text = outputs_text(&actual);
    if let Some(path) = script.actual {
        fs::write(path, &text).with_context(|| format!("cannot write \"{}\"", path.display()))?;
    }
    let verdict = match &expected {
        Some(expected) => compare_outputs(&world, expected, &actual),
        None => {
            if script.actual.is_none() {
                print!("{text}");
            }
            Ok(())
        }
    };
    world.stop().map_err(anyhow::Error::msg)?;
    Ok(verdict.err())
}

fn list(path: &Path, name: &str) -> anyhow::Result<Vec<TestRecord>> {
    let json = read_json(path)?;
    let Some(records) = json.get(name).and_then(Json::as_array) else {
        bail!("\"{}\" has no list \"{name}\"", path.display());
    };
    TestRecord::list(records).with_context(|| format!("\"{}\" cannot be used", path.display()))
}

/// One record a line, so that two such files can be compared by line.
fn outputs_text(records: &[TestRecord]) -> String {
    let lines: Vec<String> = records.iter().map(|record| format!("  {record}")).collect();
    match lines.is_empty() {
        true => "{\"outputs\": []}\n".to_owned(),
        false => format!("{{\"outputs\": [\n{}\n]}}\n", lines.join(",\n")),
    }
}
