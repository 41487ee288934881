//! ASSERT: scripts stop where the world is not as they expect.

use std::time::Duration;

use highwater_sql::{Assert, Properties, PropertyValue};
use tokio::time::{Instant, sleep};

use crate::{
    server::Server,
    session::{Outcome, Session, SessionResult},
    sqlstate::{SqlError, code},
};

/// How long an assertion waits that does not say so: ksqlDB's default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time between two looks. Whoever waits for a topic does not notice so little, and a look is a search in memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Copies that the log keeps of a topic.
const REPLICAS: u64 = 1;

/// Waits until the assertion holds.
pub async fn run(session: &Session, assert: &Assert) -> SessionResult<Outcome> {
    match assert {
        Assert::Topic {
            name,
            with,
            exists,
            timeout,
        } => {
            let topic = TopicAssertion {
                name,
                wanted: Wanted::of(with)?,
                exists: *exists,
            };
            topic.wait(&session.server, *timeout).await?;
            Ok(Outcome::Done("ASSERT TOPIC".to_owned()))
        }
        Assert::Schema { .. } => Err(SqlError::unsupported(
            "ASSERT SCHEMA is not supported: there is no schema registry",
        )),
        Assert::Values { .. } => Err(for_tests("ASSERT VALUES")),
        Assert::NullValues { .. } => Err(for_tests("ASSERT NULL VALUES")),
        Assert::Source(source) => Err(for_tests(&format!("ASSERT {}", source.kind))),
    }
}

fn for_tests(what: &str) -> SqlError {
    SqlError::unsupported(format!(
        "{what} is not supported: it is for tests of pipelines"
    ))
    .with_hint("highwater test-runner compares what a pipeline writes with a file")
}

struct TopicAssertion<'a> {
    name: &'a str,
    wanted: Wanted,
    exists: bool,
}

/// What WITH asks of a topic.
#[derive(Default)]
struct Wanted {
    partitions: Option<u64>,
    replicas: Option<u64>,
}

impl Wanted {
    fn of(with: &Properties) -> SessionResult<Self> {
        let mut wanted = Self::default();
        for (property, value) in &with.0 {
            let count = match value {
                PropertyValue::Number(text) | PropertyValue::String(text) => text.parse().ok(),
                PropertyValue::Boolean(_) => None,
            };
            let invalid = |message: String| SqlError::new(code::INVALID_PARAMETER_VALUE, message);
            let place = match property.as_str() {
                "partitions" => &mut wanted.partitions,
                "replicas" => &mut wanted.replicas,
                _ => {
                    return Err(invalid(format!(
                        "property \"{property}\": ASSERT TOPIC knows partitions and replicas"
                    )));
                }
            };
            *place = Some(count.ok_or_else(|| {
                invalid(format!("property \"{property}\" must be a whole number"))
            })?);
        }
        Ok(wanted)
    }
}

impl TopicAssertion<'_> {
    async fn wait(&self, server: &Server, timeout: Option<Duration>) -> SessionResult<()> {
        let timeout = timeout.unwrap_or(DEFAULT_TIMEOUT);
        let began = Instant::now();
        while let Err(reason) = self.check(server) {
            let left = timeout.saturating_sub(began.elapsed());
            if left.is_zero() {
                let waited = format!("waited for {} ms", timeout.as_millis());
                return Err(SqlError::new(code::ASSERT_FAILURE, reason)
                    .with_detail(waited)
                    .with_hint("SHOW TOPICS lists what there is; TIMEOUT n SECONDS waits longer"));
            }
            sleep(left.min(LOOK_EVERY)).await;
        }
        Ok(())
    }

    /// The reason why it does not hold now.
    fn check(&self, server: &Server) -> Result<(), String> {
        let name = self.name;
        match (server.log.topic(name), self.exists) {
            (None, true) => Err(format!("topic \"{name}\" does not exist")),
            (Some(_), false) => Err(format!("topic \"{name}\" exists")),
            (None, false) => Ok(()),
            (Some(topic), true) => {
                let partitions = u64::from(topic.config.partitions);
                differs(name, "partitions", self.wanted.partitions, partitions)?;
                differs(name, "replicas", self.wanted.replicas, REPLICAS)
            }
        }
    }
}

fn differs(topic: &str, what: &str, wanted: Option<u64>, has: u64) -> Result<(), String> {
    match wanted {
        Some(wanted) if wanted != has => Err(format!(
            "topic \"{topic}\" has {what} = {has}, not {wanted}"
        )),
        _ => Ok(()),
    }
}
