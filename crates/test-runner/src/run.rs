//! One run from its statements to its verdict.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::{
    case::Run,
    compare,
    record::TestRecord,
    schema,
    world::{Direction, Trouble, World},
};

/// How deep a run may recurse: twice what a server's thread has, since a run binds and plans on the thread that calls.
const STACK_BYTES: usize = 16 << 20;

/// How a run ended: `Err` tells why it failed, for people, the first line alone being enough to group failures by.
pub type Verdict = Result<(), Trouble>;

/// Runs on a thread of its own, so that nothing a run does can stop the others. A run that takes longer is left behind.
pub fn guarded(run: Run, timeout: Duration) -> Verdict {
    let (sender, receiver) = mpsc::channel();
    let started = thread::Builder::new()
        .name("test-run".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let verdict = catch_unwind(AssertUnwindSafe(|| judge(&run)));
            let verdict = verdict.unwrap_or_else(|panic| Err(panic_text(&*panic)));
            // Nobody waits any more when the time was over.
            let _ = sender.send(verdict);
        });
    if let Err(error) = started {
        return Err(format!("no thread could be started: {error}"));
    }
    receiver
        .recv_timeout(timeout)
        .unwrap_or_else(|_| Err(format!("not finished after {timeout:?}")))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> Trouble {
    let message = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without a message");
    format!("a panic: {message}")
}

fn judge(run: &Run) -> Verdict {
    let mut world = World::new(&run.topics, &run.dialect)?;
    let verdict = judge_in(&mut world, run);
    let stopped = world.stop();
    verdict.and(stopped)
}

fn judge_in(world: &mut World, run: &Run) -> Verdict {
    for (name, value) in &run.properties {
        set(world, name, value)?;
    }
    let last = run.statements.len() - 1;
    for (position, statement) in run.statements.iter().enumerate() {
        match (world.execute(statement), &run.refused) {
            (Ok(()), Some(message)) if position == last => {
                let message = message.as_deref().unwrap_or("any reason");
                return Err(format!(
                    "the last statement was not refused\n  - {message}\n  + {statement}"
                ));
            }
            (Err(_), Some(_)) if position == last => return Ok(()),
            (Ok(()), _) => {}
            (Err(error), _) => {
                return Err(format!(
                    "{error}\n  statement {}: {statement}",
                    position + 1
                ));
            }
        }
    }
    let outputs = records(world, &run.inputs)?;
    compare_outputs(world, &run.outputs, &outputs)?;
    let relations = world.relations();
    for expected in &run.sources {
        let relation = relations
            .iter()
            .find(|relation| relation.name == expected.name);
        if let Some(difference) = schema::difference(expected, relation.map(AsRef::as_ref)) {
            return Err(difference);
        }
    }
    Ok(())
}

/// Settings of ksqlDB's test tool and of its runtime, which mean nothing to the result here: how numbers are compared, how Kafka Streams runs, and
/// how old releases wrote the keys of sessions.
const WITHOUT_MEANING: [&str; 3] = [
    "ksql.streams.",
    "use.exact.numeric.comparison",
    "ksql.windowed.session.key.legacy",
];

/// Makes a session setting.
fn set(world: &mut World, name: &str, value: &str) -> Result<(), Trouble> {
    if WITHOUT_MEANING
        .iter()
        .any(|ignored| name.starts_with(ignored))
    {
        return Ok(());
    }
    let quoted = |text: &str| text.replace('\'', "''");
    world.execute(&format!("SET '{}' = '{}';", quoted(name), quoted(value)))
}

/// Feeds records one by one; answers everything that came out, from the statements on.
pub fn records(world: &mut World, inputs: &[TestRecord]) -> Result<Vec<TestRecord>, Trouble> {
    world.settle()?;
    let mut outputs = world.outputs()?;
    for (position, input) in inputs.iter().enumerate() {
        world
            .feed(input)
            .map_err(|error| format!("{error}\n  input {}: {input}", position + 1))?;
        outputs.extend(world.outputs()?);
    }
    match world.trouble() {
        Some(trouble) => Err(trouble),
        None => Ok(outputs),
    }
}

/// Compares the topics that the expectation names.
pub fn compare_outputs(world: &World, expected: &[TestRecord], actual: &[TestRecord]) -> Verdict {
    let mut topics: Vec<&str> = Vec::new();
    for record in expected {
        if !topics.contains(&record.topic.as_str()) {
            topics.push(&record.topic);
        }
    }
    for topic in topics {
        let expected: Vec<&TestRecord> = expected
            .iter()
            .filter(|record| record.topic == topic)
            .collect();
        let actual: Vec<TestRecord> = actual
            .iter()
            .filter(|record| record.topic == topic)
            .cloned()
            .collect();
        let layout = world.layout(topic, Direction::Out);
        if let Some(difference) = compare::difference(&expected, &actual, &layout) {
            return Err(difference);
        }
    }
    Ok(())
}
