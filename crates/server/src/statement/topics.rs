//! What SHOW TOPICS tells, and what a topic holds.

use std::sync::Arc;

use highwater_planner::catalog::{Catalog, Relation};
use highwater_sql::AlterTopic;
use highwater_storage_log::{Log, TopicChange, TopicConfig, TopicPartition};

use crate::{
    catalog::{CatalogState, builtin::INTERNAL_PREFIX},
    server::Server,
    session::{Outcome, Rows, Session, SessionResult, blocking},
    small_result::SmallResult,
    sqlstate::{SqlError, code},
};

/// `SHOW [ALL] TOPICS [EXTENDED]`.
pub fn show(server: &Server, all: bool, extended: bool, tag: &'static str) -> SessionResult<Rows> {
    let topics: Vec<_> = server
        .log
        .topics()
        .into_iter()
        .filter(|topic| all || !topic.name.starts_with(INTERNAL_PREFIX))
        .collect();
    let mut held = Vec::with_capacity(topics.len());
    for topic in &topics {
        held.push(records(server.log.as_ref(), &topic.name)?);
    }
    let names = || topics.iter().map(|topic| topic.name.to_string());
    let result = SmallResult::new(tag)
        .text("name", names())
        .number(
            "partitions",
            topics
                .iter()
                .map(|topic| Some(i64::from(topic.config.partitions))),
        )
        .number("offsets", held.iter().copied().map(Some));
    if !extended {
        return result.finish();
    }
    let catalog = server.coordinator.catalog();
    let users: Vec<Users> = names().map(|name| Users::of(&catalog, &name)).collect();
    result
        .number(
            "unread",
            names()
                .map(|topic| unread(server, &topic))
                .collect::<SessionResult<Vec<_>>>()?,
        )
        .text(
            "declared_as",
            users.iter().map(|users| users.declared.join(", ")),
        )
        .text(
            "written_by",
            users.iter().map(|users| users.writers.join(", ")),
        )
        .text(
            "read_by",
            users.iter().map(|users| users.readers.join(", ")),
        )
        .text(
            "settings",
            topics.iter().map(|topic| settings(&topic.config)),
        )
        .finish()
}

/// `ALTER TOPIC`: the settings are Kafka's, also written with `_` for `.`; `partitions` is one of them.
pub async fn alter(session: &Session, alter: &AlterTopic) -> SessionResult<Outcome> {
    let topic = alter.topic.clone();
    if topic.starts_with(INTERNAL_PREFIX) {
        return Err(SqlError::new(
            code::INSUFFICIENT_PRIVILEGE,
            format!("topic \"{topic}\" belongs to the server"),
        ));
    }
    let mut change = TopicChange::default();
    for (name, value) in &alter.changes {
        let setting = name.replace('_', ".");
        if setting == "partitions" {
            change.partitions = Some(new_partitions(session, &topic, value.as_deref())?);
        } else if change.settings.insert(setting, value.clone()).is_some() {
            return Err(SqlError::new(
                code::SYNTAX_ERROR,
                format!("setting \"{name}\" is given twice"),
            ));
        }
    }
    let server = Arc::clone(&session.server);
    blocking(move || server.log.alter_topic(&topic, &change)).await??;
    Ok(Outcome::Done("ALTER TOPIC".to_owned()))
}

/// More partitions are for topics that no stream or table is declared over: those are planned for the partitions that they found.
fn new_partitions(session: &Session, topic: &str, value: Option<&str>) -> SessionResult<u32> {
    let users = Users::of(&session.server.coordinator.catalog(), topic);
    if let Some(user) = users.declared.first() {
        return Err(SqlError::new(
            code::OBJECT_IN_USE,
            format!("topic \"{topic}\" cannot get more partitions: \"{user}\" reads those it has"),
        )
        .with_hint("drop what is declared over the topic, alter it, and declare it again"));
    }
    value.and_then(|text| text.parse().ok()).ok_or_else(|| {
        SqlError::new(
            code::INVALID_PARAMETER_VALUE,
            format!(
                "setting \"partitions\" cannot be \"{}\": a whole number above 0 is expected",
                value.unwrap_or("DEFAULT")
            ),
        )
    })
}

/// Settings that are not the defaults.
fn settings(config: &TopicConfig) -> String {
    let settings = config.settings.iter();
    let texts: Vec<String> = settings
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    texts.join(", ")
}

/// Records that readers may read in all partitions of a topic. What the log uses for its own purposes counts, as in offsets.
pub fn records(log: &dyn Log, topic: &str) -> SessionResult<i64> {
    let mut records = 0;
    for partition in partitions(log, topic) {
        let offsets = log.offsets(&partition)?;
        records += offsets.last_stable.0 - offsets.log_start.0;
    }
    Ok(records)
}

/// Records that the queries which read a topic have not read yet; `None` where none reads it. The slowest one counts.
pub fn unread(server: &Server, topic: &str) -> SessionResult<Option<i64>> {
    let mut unread = None;
    for partition in partitions(server.log.as_ref(), topic) {
        let read = server
            .engine
            .sources()
            .into_iter()
            .filter(|source| source.partition == partition)
            .map(|source| source.position.0)
            .min();
        if let Some(read) = read {
            let end = server.log.offsets(&partition)?.last_stable.0;
            *unread.get_or_insert(0) += (end - read).max(0);
        }
    }
    Ok(unread)
}

fn partitions(log: &dyn Log, topic: &str) -> impl Iterator<Item = TopicPartition> + use<> {
    let topic = log.topic(topic);
    topic.into_iter().flat_map(|topic| {
        (0..topic.config.partitions)
            .map(move |number| TopicPartition::new(Arc::clone(&topic.name), number))
    })
}

/// Who has to do with a topic, by name.
struct Users {
    declared: Vec<String>,
    writers: Vec<String>,
    readers: Vec<String>,
}

impl Users {
    fn of(catalog: &CatalogState, topic: &str) -> Self {
        let relations: Vec<Arc<Relation>> = catalog
            .relations()
            .into_iter()
            .filter(|relation| relation.topic == topic)
            .collect();
        let written = |relation: &Arc<Relation>| {
            let makers = catalog
                .makers(relation.id)
                .filter(|query| !query.is_keeper());
            let writers = makers.chain(catalog.inserters(relation.id));
            writers.map(|query| query.name.clone()).collect::<Vec<_>>()
        };
        let read = |relation: &Arc<Relation>| {
            let readers = catalog.readers(relation.id);
            readers.map(|query| query.name.clone()).collect::<Vec<_>>()
        };
        Self {
            declared: relations
                .iter()
                .map(|relation| relation.name.clone())
                .collect(),
            writers: relations.iter().flat_map(written).collect(),
            readers: relations.iter().flat_map(read).collect(),
        }
    }
}
