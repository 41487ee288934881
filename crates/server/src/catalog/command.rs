//! Changes of the catalog as the command topic keeps them: one JSON object a record, in the order they took effect.
//!
//! A change is on disk before it takes effect. Statements stand in canonical text with everything from outside written into them, so that
//! folding the topic again gives the same catalog on any machine and in any later version.

use std::collections::BTreeMap;

use highwater_sql::Language;
use highwater_storage_log::{BatchBuilder, Isolation, Log, LogResult, Offset, TopicPartition};
use serde::{Deserialize, Serialize};

use super::builtin::COMMAND_TOPIC;
use crate::error::ServerError;

/// The form of records that this version writes and the newest it reads.
const VERSION: u32 = 1;
/// Bytes asked of the log at once while folding.
const READ_BYTES: usize = 1 << 20;

/// Where a query began, as it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beginning {
    /// With the first record.
    Earliest,
    /// With the next record.
    Latest,
}

/// A language by its names, as it is kept; what does not tell one is in the default language.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedLanguage {
    dialect: String,
    identifier_case: String,
}

impl From<Language> for RecordedLanguage {
    fn from(language: Language) -> Self {
        Self {
            dialect: language.dialect.to_string(),
            identifier_case: language.identifier_case.to_string(),
        }
    }
}

impl RecordedLanguage {
    /// The language; `None` for one that this version does not know.
    pub fn language(&self) -> Option<Language> {
        if *self == Self::default() {
            return Some(Language::default());
        }
        Some(Language {
            dialect: self.dialect.parse().ok()?,
            identifier_case: self.identifier_case.parse().ok()?,
        })
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Command {
    /// `CREATE STREAM|TABLE`, with or without `AS`.
    Create {
        /// Canonical text.
        statement: String,
        /// How the text is read, and what it means.
        #[serde(default)]
        language: RecordedLanguage,
        /// The session's settings that say what holds where the text does not.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        settings: BTreeMap<String, String>,
        /// Id of the relation.
        relation: u64,
        /// Id of the query that writes it, or that keeps a declared table.
        query: Option<u64>,
        /// Partitions of its topic.
        partitions: u32,
        /// `auto.offset.reset` of the session that ran it.
        beginning: Beginning,
    },
    /// `INSERT INTO .. SELECT`.
    Insert {
        /// Canonical text.
        statement: String,
        /// How the text is read, and what it means.
        language: RecordedLanguage,
        /// The session's settings that say what holds where the text does not.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        settings: BTreeMap<String, String>,
        /// What statements call the query.
        name: String,
        /// Id of the query.
        query: u64,
        /// `auto.offset.reset` of the session that ran it.
        beginning: Beginning,
    },
    /// `ALTER STREAM|TABLE`: the relation is declared anew under its name, and who read it before goes on with what it was.
    Alter {
        /// Id of the relation as it was.
        altered: u64,
        /// The CREATE statement that declares what it is now, in canonical text.
        statement: String,
        /// Id of the relation as it is now.
        relation: u64,
        /// Id of the query that keeps a declared table.
        query: Option<u64>,
    },
    /// `CREATE OR REPLACE STREAM .. AS` in place of another query: the new one goes on where the old one stood.
    Replace {
        /// Id of the relation as it was.
        replaced: u64,
        /// Canonical text.
        statement: String,
        /// How the text is read, and what it means.
        language: RecordedLanguage,
        /// The session's settings that say what holds where the text does not.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        settings: BTreeMap<String, String>,
        /// Id of the relation as it is now.
        relation: u64,
        /// Id of the new query.
        query: u64,
        /// By topic and partition: the first offset that the old query had not read.
        positions: Vec<(String, u32, i64)>,
    },
    /// `CREATE OR REPLACE TABLE .. AS` in place of another query: the table is built anew, under the same ids.
    ReplaceTable {
        /// Id of the table.
        relation: u64,
        /// Canonical text.
        statement: String,
        /// How the text is read, and what it means.
        language: RecordedLanguage,
        /// The session's settings that say what holds where the text does not.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        settings: BTreeMap<String, String>,
        /// `auto.offset.reset` of the session that ran it.
        beginning: Beginning,
        /// Number of the change, out of the same row as the ids.
        revision: u64,
    },
    /// The undoing of an ALTER or OR REPLACE that the engine refused.
    UndoChange {
        /// Id that the relation would have had, or number of the change.
        relation: u64,
    },
    /// `DROP STREAM|TABLE`, and the undoing of a CREATE that the engine refused.
    Drop {
        /// Id of the relation; its own query goes too.
        relation: u64,
        /// Name of the topic that goes too.
        delete_topic: Option<String>,
    },
    /// `CREATE TYPE`.
    CreateType {
        /// Folded name.
        name: String,
        /// What it stands for: canonical text that holds no names of other types.
        data_type: String,
    },
    /// `DROP TYPE`.
    DropType {
        /// Folded name.
        name: String,
    },
    /// `ALTER SYSTEM`.
    AlterSystem {
        /// Name of the setting.
        name: String,
        /// What sessions begin with; `None` for the default.
        value: Option<String>,
    },
    /// `TERMINATE`.
    Terminate {
        /// Id of the query.
        query: u64,
    },
    /// `PAUSE`.
    Pause {
        /// Id of the query.
        query: u64,
    },
    /// `RESUME`.
    Resume {
        /// Id of the query.
        query: u64,
    },
}

#[derive(Serialize, Deserialize)]
struct Stored<C> {
    version: u32,
    #[serde(flatten)]
    command: C,
}

fn partition() -> TopicPartition {
    TopicPartition::new(COMMAND_TOPIC, 0)
}

/// Appends a change and returns when it is on disk.
pub fn record(log: &dyn Log, command: &Command, now_ms: i64) -> LogResult<()> {
    let value = serde_json::to_vec(&Stored {
        version: VERSION,
        command,
    })
    .expect("a command holds only text and numbers, which JSON can always write");
    let mut batch = BatchBuilder::new();
    batch.push(now_ms, None, Some(&value), &[]);
    let appended = log.append(&partition(), batch.finish(None))?;
    log.sync(&partition(), Offset(appended.last_offset.0 + 1))
}

/// All changes so far, each with its offset.
pub fn read_all(log: &dyn Log) -> Result<Vec<(i64, Command)>, ServerError> {
    let partition = partition();
    let mut commands = Vec::new();
    let mut from = log.offsets(&partition)?.log_start;
    while from < log.offsets(&partition)?.log_end {
        let fetch = log.read(&partition, from, READ_BYTES, Isolation::ReadCommitted)?;
        for batch in &fetch.batches {
            let records = batch.records()?;
            for record in records.iter() {
                let record = record?;
                if record.offset >= from {
                    commands.push((record.offset.0, decode(record.offset.0, record.value)?));
                }
            }
        }
        if fetch.next_offset <= from {
            break;
        }
        from = fetch.next_offset;
    }
    Ok(commands)
}

fn decode(number: i64, value: Option<&[u8]>) -> Result<Command, ServerError> {
    let damaged = |reason: String| ServerError::DamagedCommand { number, reason };
    let value = value.ok_or_else(|| damaged("it has no value".to_owned()))?;
    let stored: Stored<serde_json::Value> =
        serde_json::from_slice(value).map_err(|error| damaged(error.to_string()))?;
    if stored.version > VERSION {
        return Err(damaged(format!(
            "it has version {}, and this program knows {VERSION}",
            stored.version
        )));
    }
    serde_json::from_value(stored.command).map_err(|error| damaged(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_survive_their_encoding() {
        let commands = [
            Command::Create {
                statement: "CREATE STREAM s (a INT) WITH (kafka_topic = 's')".to_owned(),
                relation: 100,
                query: Some(101),
                partitions: 4,
                language: Language::KSQL.into(),
                settings: BTreeMap::from([("ksql.a".to_owned(), "b".to_owned())]),
                beginning: Beginning::Latest,
            },
            Command::Alter {
                altered: 100,
                statement: "CREATE STREAM s (a INT, b INT) WITH (kafka_topic = 's')".to_owned(),
                relation: 102,
                query: None,
            },
            Command::UndoChange { relation: 102 },
            Command::Replace {
                replaced: 100,
                statement: "CREATE STREAM s WITH (kafka_topic = 's') AS SELECT * FROM t".to_owned(),
                language: Language::POSTGRES.into(),
                settings: BTreeMap::new(),
                relation: 103,
                query: 104,
                positions: vec![("t".to_owned(), 0, 17)],
            },
            Command::ReplaceTable {
                relation: 100,
                statement: "CREATE TABLE t AS SELECT a, COUNT(*) FROM s GROUP BY a".to_owned(),
                language: Language::POSTGRES.into(),
                settings: BTreeMap::new(),
                beginning: Beginning::Earliest,
                revision: 105,
            },
            Command::Drop {
                relation: 100,
                delete_topic: Some("s".to_owned()),
            },
            Command::CreateType {
                name: "address".to_owned(),
                data_type: "STRUCT<zip INT>".to_owned(),
            },
            Command::DropType {
                name: "address".to_owned(),
            },
            Command::AlterSystem {
                name: "dialect".to_owned(),
                value: Some("ksql".to_owned()),
            },
            Command::Terminate { query: 101 },
            Command::Pause { query: 101 },
            Command::Resume { query: 101 },
        ];
        for command in commands {
            let bytes = serde_json::to_vec(&Stored {
                version: VERSION,
                command: &command,
            })
            .expect("encodes");
            assert_eq!(decode(0, Some(&bytes)).expect("decodes"), command);
        }
    }

    #[test]
    fn what_a_later_version_wrote_is_refused() {
        let bytes = br#"{"version": 2, "change": "pause", "query": 1}"#;
        let error = decode(7, Some(bytes))
            .expect_err("unknown version")
            .to_string();
        assert_eq!(
            error,
            "record 7 of the command topic cannot be read: it has version 2, and this program knows 1"
        );
        assert!(decode(7, None).is_err());
        assert!(decode(7, Some(b"{}")).is_err());
    }
}
