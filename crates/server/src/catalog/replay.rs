//! The catalog as the fold of the command topic.
//!
//! Every CREATE is planned again against the catalog of its moment, with the number of partitions that its topic had then. A relation may
//! have been dropped since, and with it its topic, yet be needed to plan what was made from it and outlived it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use highwater_exec::OffsetReset;
use highwater_planner::{
    catalog::{Catalog, QueryId, Relation, RelationId},
    defaults::PlanDefaults,
};
use highwater_sql::{Language, Statement, parse_type};
use highwater_storage_log::{Log, Offset, TopicPartition};

use super::{
    CatalogState, QueryEntry, RelationEntry,
    builtin::FIRST_ID,
    command::{self, Beginning, Command, RecordedLanguage},
};
use crate::{
    error::ServerError,
    planning::{self, Inserting, Planned, Planner, Redeclared, StatementStyle},
    sqlstate::SqlError,
};

/// What the command topic tells.
pub struct Replayed {
    /// The catalog.
    pub catalog: CatalogState,
    /// The next id to give out.
    pub next_id: u64,
    /// Topics that a DROP took with it; a crash may have left them behind.
    pub deleted_topics: BTreeSet<String>,
}

/// Folds the command topic.
pub fn replay(log: Arc<dyn Log>, planner: &Planner) -> Result<Replayed, ServerError> {
    let commands = command::read_all(log.as_ref())?;
    let dropped = dropped_relations(&commands);
    let refused: BTreeSet<u64> = commands
        .iter()
        .filter_map(|(_, command)| match command {
            Command::UndoChange { relation } => Some(*relation),
            _ => None,
        })
        .collect();
    let ended: BTreeSet<u64> = commands
        .iter()
        .filter_map(|(_, command)| match command {
            Command::Terminate { query } => Some(*query),
            _ => None,
        })
        .collect();
    let mut fold = Fold {
        planner,
        catalog: CatalogState::new(log),
        topics: BTreeMap::new(),
        next_id: FIRST_ID,
        deleted_topics: BTreeSet::new(),
    };
    for (number, command) in commands {
        match command {
            Command::Alter {
                relation, query, ..
            } if refused.contains(&relation) => fold.use_ids(relation, query),
            Command::Replace {
                relation, query, ..
            } if refused.contains(&relation) => fold.use_ids(relation, Some(query)),
            Command::ReplaceTable { revision, .. } if refused.contains(&revision) => {
                fold.use_ids(revision, None);
            }
            command => fold.apply(number, command, &dropped, &ended)?,
        }
    }
    fold.catalog.remove_unread_keepers();
    Ok(Replayed {
        catalog: fold.catalog,
        next_id: fold.next_id,
        deleted_topics: fold.deleted_topics,
    })
}

/// The relations that are not there at the end, as they were before each ALTER too.
fn dropped_relations(commands: &[(i64, Command)]) -> BTreeSet<u64> {
    let mut dropped = BTreeSet::new();
    for (_, command) in commands.iter().rev() {
        match command {
            Command::Drop { relation, .. } => {
                dropped.insert(*relation);
            }
            Command::Alter {
                altered: before,
                relation,
                ..
            }
            | Command::Replace {
                replaced: before,
                relation,
                ..
            } if dropped.contains(relation) => {
                dropped.insert(*before);
            }
            _ => {}
        }
    }
    dropped
}

struct Fold<'a> {
    planner: &'a Planner,
    catalog: CatalogState,
    topics: BTreeMap<String, u32>,
    next_id: u64,
    deleted_topics: BTreeSet<String>,
}

impl Fold<'_> {
    /// Ids of a relation and its query are not given out again.
    fn use_ids(&mut self, relation: u64, query: Option<u64>) {
        let highest = query.unwrap_or(relation).max(relation);
        self.next_id = self.next_id.max(highest + 1);
    }

    fn apply(
        &mut self,
        number: i64,
        command: Command,
        dropped: &BTreeSet<u64>,
        ended: &BTreeSet<u64>,
    ) -> Result<(), ServerError> {
        match command {
            Command::Create {
                statement,
                language,
                settings,
                relation,
                query,
                partitions,
                beginning,
            } => {
                let style = style_of(number, &language, &settings)?;
                self.use_ids(relation, query);
                let planned =
                    self.create(&statement, &style, relation, query, partitions, beginning);
                unless_gone(number, statement, planned, dropped.contains(&relation))?;
            }
            Command::Insert {
                statement,
                language,
                settings,
                name,
                query,
                beginning,
            } => {
                let style = style_of(number, &language, &settings)?;
                self.next_id = self.next_id.max(query + 1);
                let insert = Inserting {
                    id: QueryId(query),
                    name,
                    beginning: beginning.into(),
                };
                let planned = self.insert(&statement, &style, insert);
                unless_gone(number, statement, planned, ended.contains(&query))?;
            }
            Command::Alter {
                altered,
                statement,
                relation,
                query,
            } => {
                self.use_ids(relation, query);
                let planned = self.alter(RelationId(altered), &statement, relation, query);
                unless_gone(number, statement, planned, dropped.contains(&relation))?;
            }
            Command::Replace {
                replaced,
                statement,
                language,
                settings,
                relation,
                query,
                positions,
            } => {
                let style = style_of(number, &language, &settings)?;
                self.use_ids(relation, Some(query));
                let planned = self.replace(
                    RelationId(replaced),
                    &statement,
                    &style,
                    RelationId(relation),
                    QueryId(query),
                    positions,
                );
                unless_gone(number, statement, planned, dropped.contains(&relation))?;
            }
            Command::ReplaceTable {
                relation,
                statement,
                language,
                settings,
                beginning,
                revision,
            } => {
                let style = style_of(number, &language, &settings)?;
                self.use_ids(revision, None);
                let beginning = beginning.into();
                let planned = self.replace_table(relation, &statement, &style, beginning, revision);
                unless_gone(number, statement, planned, dropped.contains(&relation))?;
            }
            // The change before it was left out.
            Command::UndoChange { .. } => {}
            Command::Drop {
                relation,
                delete_topic,
            } => {
                self.catalog.remove_relation(RelationId(relation));
                if let Some(topic) = delete_topic {
                    self.topics.remove(&topic);
                    self.deleted_topics.insert(topic);
                }
            }
            Command::CreateType { name, data_type } => {
                let data_type = parse_type(&data_type, Language::POSTGRES).map_err(|error| {
                    let reason = error.to_string();
                    ServerError::DamagedCommand { number, reason }
                })?;
                self.catalog.add_type(name, data_type);
            }
            Command::DropType { name } => self.catalog.remove_type(&name),
            Command::AlterSystem { name, value } => self.catalog.set_setting(name, value),
            Command::Terminate { query } => self.catalog.remove_query(QueryId(query)),
            Command::Pause { query } => self.catalog.set_paused(QueryId(query), true),
            Command::Resume { query } => self.catalog.set_paused(QueryId(query), false),
        }
        Ok(())
    }

    fn insert(
        &mut self,
        text: &str,
        style: &StatementStyle,
        insert: Inserting,
    ) -> Result<(), SqlError> {
        let statement = planning::parse_recorded(text, style.language)?;
        let entry = insert.plan(&statement, style, text, self.planner, &self.catalog)?;
        self.catalog.add_query(QueryEntry {
            statement: text.to_owned(),
            ..entry
        });
        Ok(())
    }

    fn create(
        &mut self,
        text: &str,
        style: &StatementStyle,
        relation: u64,
        query: Option<u64>,
        partitions: u32,
        beginning: Beginning,
    ) -> Result<(), SqlError> {
        let statement = planning::parse_recorded(text, style.language)?;
        let topic = topic_property(&statement).map(|topic| (topic, partitions));
        let then = CatalogThen {
            catalog: &self.catalog,
            topics: &self.topics,
            created: topic.as_ref(),
        };
        let id = QueryId(query.unwrap_or(relation));
        let Planned { relation, query } = self.planner.plan_create(
            &statement,
            style,
            text,
            &then,
            RelationId(relation),
            id,
            beginning.into(),
        )?;
        self.topics.insert(relation.topic.clone(), partitions);
        self.deleted_topics.remove(&relation.topic);
        self.catalog.add_relation(RelationEntry {
            relation,
            statement: text.to_owned(),
            style: style.clone(),
            earlier: Vec::new(),
        });
        if let Some(mut query) = query {
            query.statement = text.to_owned();
            self.catalog.add_query(query);
        }
        Ok(())
    }

    fn alter(
        &mut self,
        altered: RelationId,
        text: &str,
        relation: u64,
        query: Option<u64>,
    ) -> Result<(), SqlError> {
        let entry = self
            .catalog
            .entry_of(altered)
            .ok_or_else(|| SqlError::internal("what it alters is not there"))?
            .clone();
        let statement = planning::parse_recorded(text, entry.style.language)?;
        let without = self.catalog.without(&entry);
        let then = CatalogThen {
            catalog: &without,
            topics: &self.topics,
            created: None,
        };
        let planned = self.planner.plan_create(
            &statement,
            &entry.style,
            text,
            &then,
            RelationId(relation),
            QueryId(query.unwrap_or(relation)),
            OffsetReset::Earliest,
        )?;
        let redeclared = Redeclared::new(&entry, planned, text, &entry.style);
        redeclared.put_into(&mut self.catalog);
        Ok(())
    }

    fn replace(
        &mut self,
        replaced: RelationId,
        text: &str,
        style: &StatementStyle,
        relation: RelationId,
        query: QueryId,
        positions: Vec<(String, u32, i64)>,
    ) -> Result<(), SqlError> {
        let entry = self
            .catalog
            .entry_of(replaced)
            .ok_or_else(|| SqlError::internal("what it replaces is not there"))?
            .clone();
        let statement = planning::parse_recorded(text, style.language)?;
        let without = self.catalog.without(&entry);
        let then = CatalogThen {
            catalog: &without,
            topics: &self.topics,
            created: None,
        };
        let reset = OffsetReset::Earliest;
        let planned = self
            .planner
            .plan_create(&statement, style, text, &then, relation, query, reset)?;
        let mut redeclared = Redeclared::new(&entry, planned, text, style);
        let old = self.catalog.maker(replaced).cloned();
        if let Some(new) = &mut redeclared.query {
            new.paused = old.as_ref().is_some_and(|old| old.paused);
            new.begins_at = positions
                .into_iter()
                .map(|(topic, number, offset)| (TopicPartition::new(topic, number), Offset(offset)))
                .collect();
        }
        if let Some(old) = old {
            self.catalog.remove_query(old.id);
        }
        redeclared.put_into(&mut self.catalog);
        Ok(())
    }

    fn replace_table(
        &mut self,
        relation: u64,
        text: &str,
        style: &StatementStyle,
        beginning: OffsetReset,
        revision: u64,
    ) -> Result<(), SqlError> {
        let missing = || SqlError::internal("what it replaces is not there");
        let id = RelationId(relation);
        let entry = self.catalog.entry_of(id).ok_or_else(missing)?.clone();
        let old = self.catalog.maker(id).ok_or_else(missing)?.clone();
        let statement = planning::parse_recorded(text, style.language)?;
        let without = self.catalog.without(&entry);
        let then = CatalogThen {
            catalog: &without,
            topics: &self.topics,
            created: None,
        };
        let planned = self
            .planner
            .plan_create(&statement, style, text, &then, id, old.id, beginning)?;
        let rebuilt = Redeclared::rebuilt(&entry, &old, planned, text, style, revision);
        rebuilt.put_into(&mut self.catalog);
        Ok(())
    }
}

/// Planning what is recorded must not fail, unless what it made is gone: then nothing depends on it, or planning that would fail too and say so.
fn unless_gone(
    number: i64,
    statement: String,
    planned: Result<(), SqlError>,
    is_gone: bool,
) -> Result<(), ServerError> {
    match planned {
        Ok(()) => Ok(()),
        Err(error) if is_gone => {
            tracing::debug!(%statement, %error, "a statement whose result is gone cannot be planned");
            Ok(())
        }
        Err(source) => Err(ServerError::Recovery {
            number,
            statement,
            source,
        }),
    }
}

/// How the text of a command is read, and what holds where it says nothing.
fn style_of(
    number: i64,
    language: &RecordedLanguage,
    settings: &BTreeMap<String, String>,
) -> Result<StatementStyle, ServerError> {
    let language = language
        .language()
        .ok_or_else(|| ServerError::DamagedCommand {
            number,
            reason: "its language is not known".to_owned(),
        })?;
    Ok(StatementStyle {
        language,
        defaults: PlanDefaults::from_settings(settings),
    })
}

fn topic_property(statement: &Statement) -> Option<String> {
    let with = match statement {
        Statement::CreateSource(create) => &create.with,
        Statement::CreateAs(create) => &create.with,
        _ => return None,
    };
    with.0.iter().find_map(|(name, value)| match value {
        highwater_sql::PropertyValue::String(text) if name == "kafka_topic" => Some(text.clone()),
        _ => None,
    })
}

/// The catalog as a statement found it when it ran.
struct CatalogThen<'a> {
    catalog: &'a CatalogState,
    topics: &'a BTreeMap<String, u32>,
    created: Option<&'a (String, u32)>,
}

impl Catalog for CatalogThen<'_> {
    fn relation(&self, name: &str) -> Option<Arc<Relation>> {
        self.catalog.relation(name)
    }

    fn relations(&self) -> Vec<Arc<Relation>> {
        self.catalog.relations()
    }

    fn topic_partitions(&self, topic: &str) -> Option<u32> {
        match self.created {
            Some((created, partitions)) if created == topic => Some(*partitions),
            _ => self.topics.get(topic).copied(),
        }
    }
}

impl From<Beginning> for OffsetReset {
    fn from(beginning: Beginning) -> Self {
        match beginning {
            Beginning::Earliest => Self::Earliest,
            Beginning::Latest => Self::Latest,
        }
    }
}

impl From<OffsetReset> for Beginning {
    fn from(reset: OffsetReset) -> Self {
        match reset {
            OffsetReset::Earliest => Self::Earliest,
            OffsetReset::Latest => Self::Latest,
        }
    }
}
