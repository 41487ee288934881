//! The single owner of the catalog and of the set of continuous queries.
//!
//! Changes run one at a time. A change is planned, recorded in the command topic and on disk before it takes effect; only then does the
//! engine hear of it, and readers see it last. A crash between record and effect leaves a change that takes effect at the next start; a
//! refusal by the engine is answered with a record that undoes the change.
//!
//! Everything here blocks: callers on an I/O thread go through [`tokio::task::spawn_blocking`].

mod alter;
mod replace;

use std::sync::Arc;

use highwater_exec::{Engine, EngineOptions, ExecResult, FrozenState, OffsetReset};
use highwater_planner::catalog::{Catalog, QueryId, Relation, RelationId, SourceKind};
use highwater_planner::types::arrow_type;
use highwater_sql::{
    CreateType, Drop, DropType, Language, PropertyValue, QueryTarget, Statement, format_statement,
};
use highwater_storage_log::{Log, TopicConfig};
use parking_lot::{Mutex, RwLock};

use self::replace::{Replacing, replaced_ids};
use crate::{
    catalog::{
        CatalogState, QueryEntry, RelationEntry,
        builtin::{COMMAND_TOPIC, FIRST_ID, PROCESSING_LOG_TOPIC},
        command::{self, Command},
        replay::replay,
    },
    clock,
    error::ServerError,
    planning::{Inserting, Planned, Planner, StatementStyle, insert_query_name},
    purify,
    sqlstate::{SqlError, code},
    topic_settings::topic_config,
};

/// Owner of the catalog.
pub struct Coordinator {
    log: Arc<dyn Log>,
    engine: Arc<Engine>,
    planner: Planner,
    /// Held by the one change that is under way; holds the next id.
    next_id: Mutex<u64>,
    catalog: RwLock<Arc<CatalogState>>,
}

/// What a CREATE did.
#[derive(Debug, PartialEq, Eq)]
pub enum Created {
    /// It made the relation.
    New,
    /// `IF NOT EXISTS`: there was one.
    Kept,
    /// `OR REPLACE`: it is what the statement says now.
    Replaced,
}

/// What a DROP did.
#[derive(Debug, PartialEq, Eq)]
pub enum Dropped {
    /// It removed the relation.
    Removed,
    /// `IF EXISTS`: there was none.
    Absent,
}

/// What TERMINATE, PAUSE and RESUME do to a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryChange {
    /// Ends it; its result stays.
    Terminate,
    /// Stops it from reading.
    Pause,
    /// Lets it read on.
    Resume,
}

impl Coordinator {
    /// Folds the command topic and starts the engine with the queries that it tells of.
    pub fn open(
        log: Arc<dyn Log>,
        planner: Planner,
        options: EngineOptions,
    ) -> Result<Self, ServerError> {
        for topic in [COMMAND_TOPIC, PROCESSING_LOG_TOPIC] {
            if log.topic(topic).is_none() {
                log.create_topic(topic, TopicConfig::with_partitions(1))?;
            }
        }
        let replayed = replay(Arc::clone(&log), &planner)?;
        for topic in replayed.deleted_topics {
            if log.topic(&topic).is_some() {
                log.delete_topic(&topic)?;
            }
        }
        for relation in replayed.catalog.relations() {
            if log.topic(&relation.topic).is_none() {
                log.create_topic(
                    &relation.topic,
                    TopicConfig::with_partitions(relation.partitions),
                )?;
            }
        }
        let queries = replayed
            .catalog
            .queries()
            .map(|query| query.to_persistent())
            .collect();
        let engine = Engine::open(Arc::clone(&log), options, queries)?;
        Ok(Self {
            log,
            engine,
            planner,
            next_id: Mutex::new(replayed.next_id.max(FIRST_ID)),
            catalog: RwLock::new(Arc::new(replayed.catalog)),
        })
    }

    /// The engine that runs the queries.
    pub fn engine(&self) -> Arc<Engine> {
        Arc::clone(&self.engine)
    }

    /// The planner, for statements that change nothing.
    pub fn planner(&self) -> &Planner {
        &self.planner
    }

    /// The catalog as it is now.
    pub fn catalog(&self) -> Arc<CatalogState> {
        Arc::clone(&self.catalog.read())
    }

    /// `CREATE STREAM|TABLE`, with or without `AS`.
    pub fn create(
        &self,
        statement: &Statement,
        style: &StatementStyle,
        script: &str,
        reset: OffsetReset,
    ) -> Result<Created, SqlError> {
        let clauses = CreateClauses::of(statement)?;
        let mut next_id = self.next_id.lock();
        let catalog = self.catalog();
        let existing = catalog.relation(clauses.name);
        if let Some(existing) = &existing {
            if clauses.if_not_exists {
                return Ok(Created::Kept);
            }
            if !clauses.or_replace {
                return Err(already_exists(existing));
            }
        }
        let (relation, query) = replaced_ids(&catalog, clauses.name)
            .unwrap_or((RelationId(*next_id), QueryId(*next_id + 1)));
        let without = match catalog.entry(clauses.name) {
            Some(entry) => catalog.without(entry),
            None => CatalogState::clone(&catalog),
        };
        let planned = self
            .planner
            .plan_create(statement, style, script, &without, relation, query, reset)?;
        if clauses.or_replace && planned.relation.read_only {
            return Err(SqlError::unsupported(format!(
                "OR REPLACE of a SOURCE: \"{}\" is read-only",
                planned.relation.name
            )));
        }
        if let Some(existing) = catalog.entry(clauses.name) {
            let replacing = Replacing {
                catalog: &catalog,
                existing,
                statement,
                style,
                reset,
            };
            return self.replace(&replacing, planned, &mut next_id);
        }
        *next_id += 2;
        self.apply_create(&catalog, statement, style, planned, reset)?;
        Ok(Created::New)
    }

    fn apply_create(
        &self,
        catalog: &CatalogState,
        statement: &Statement,
        style: &StatementStyle,
        planned: Planned,
        reset: OffsetReset,
    ) -> Result<(), SqlError> {
        let Planned { relation, query } = planned;
        let text = recorded_text(statement, &relation, style.language);
        let topic_is_new = self.log.topic(&relation.topic).is_none();
        if topic_is_new {
            self.log
                .create_topic(&relation.topic, topic_config(statement, &relation))?;
        }
        let record = Command::Create {
            statement: text.clone(),
            language: style.language.into(),
            settings: style.defaults.to_settings(),
            relation: relation.id.0,
            query: query.as_ref().map(|query| query.id.0),
            partitions: relation.partitions,
            beginning: reset.into(),
        };
        if let Err(error) = self.record(&record) {
            self.forget_topic(topic_is_new.then_some(relation.topic.as_str()));
            return Err(error);
        }
        let mut changed = catalog.clone();
        changed.add_relation(RelationEntry {
            relation: Arc::clone(&relation),
            statement: text.clone(),
            style: style.clone(),
            earlier: Vec::new(),
        });
        if let Some(mut query) = query {
            query.statement = text;
            // Its progress can be seen while it catches up; its relation only when that is whole.
            let mut starting = catalog.clone();
            starting.add_query(query.clone());
            self.publish(starting);
            // ORDER: recorded, then running, then visible.
            if let Err(error) = self.engine.create_query(query.to_persistent()) {
                self.publish(catalog.clone());
                let new_topic = topic_is_new.then(|| relation.topic.clone());
                self.record(&Command::Drop {
                    relation: relation.id.0,
                    delete_topic: new_topic.clone(),
                })?;
                self.forget_topic(new_topic.as_deref());
                return Err(error.into());
            }
            changed.add_query(query);
        }
        self.publish(changed);
        Ok(())
    }

    /// `INSERT INTO .. SELECT`: a query that writes an existing stream. Answers its name.
    pub fn insert(
        &self,
        statement: &Statement,
        style: &StatementStyle,
        script: &str,
        reset: OffsetReset,
    ) -> Result<String, SqlError> {
        let mut next_id = self.next_id.lock();
        let catalog = self.catalog();
        let id = QueryId(*next_id);
        let name = given_query_name(statement)?.unwrap_or_else(|| insert_query_name(id));
        if catalog.query(&name).is_some() {
            return Err(SqlError::new(
                code::DUPLICATE_OBJECT,
                format!("query \"{name}\" already exists"),
            ));
        }
        let inserting = Inserting {
            id,
            name: name.clone(),
            beginning: reset,
        };
        let mut entry =
            inserting.plan(statement, style, script, &self.planner, catalog.as_ref())?;
        *next_id += 1;
        entry.statement = format_statement(statement, style.language.identifier_case);
        self.record(&Command::Insert {
            statement: entry.statement.clone(),
            language: style.language.into(),
            settings: style.defaults.to_settings(),
            name: name.clone(),
            query: id.0,
            beginning: reset.into(),
        })?;
        // ORDER: recorded, then running, then visible.
        if let Err(error) = self.engine.create_query(entry.to_persistent()) {
            self.record(&Command::Terminate { query: id.0 })?;
            return Err(error.into());
        }
        let mut changed = CatalogState::clone(&catalog);
        changed.add_query(entry);
        self.publish(changed);
        Ok(name)
    }

    /// `DROP STREAM|TABLE`.
    pub fn drop_relation(&self, drop: &Drop) -> Result<Dropped, SqlError> {
        let _guard = self.next_id.lock();
        let catalog = self.catalog();
        let Some(relation) = catalog.relation(&drop.name) else {
            if drop.if_exists {
                return Ok(Dropped::Absent);
            }
            let kind = kind_name(drop.kind);
            return Err(SqlError::new(
                code::UNDEFINED_TABLE,
                format!("{kind} \"{}\" does not exist", drop.name),
            ));
        };
        check_droppable(&catalog, &relation, drop)?;
        let delete_topic = drop.delete_topic.then(|| relation.topic.clone());
        self.record(&Command::Drop {
            relation: relation.id.0,
            delete_topic: delete_topic.clone(),
        })?;
        for query in catalog.makers(relation.id) {
            self.engine.drop_query(query.id)?;
        }
        let mut changed = CatalogState::clone(&catalog);
        changed.remove_relation(relation.id);
        self.publish(changed);
        // ORDER: after readers of the catalog can no longer find it.
        if let Some(topic) = delete_topic {
            self.log.delete_topic(&topic)?;
        }
        Ok(Dropped::Removed)
    }

    /// `CREATE TYPE`, with a type that holds no names of others.
    pub fn create_type(&self, create: &CreateType) -> Result<Created, SqlError> {
        let _guard = self.next_id.lock();
        let catalog = self.catalog();
        let CreateType {
            if_not_exists,
            name,
            data_type,
        } = create;
        if catalog.type_named(name).is_some() {
            if *if_not_exists {
                return Ok(Created::Kept);
            }
            return Err(SqlError::new(
                code::DUPLICATE_OBJECT,
                format!("type \"{name}\" already exists"),
            )
            .with_hint("drop it first, choose another name, or write IF NOT EXISTS"));
        }
        arrow_type(data_type).map_err(|error| SqlError::from_plan(&error, ""))?;
        self.record(&Command::CreateType {
            name: name.clone(),
            data_type: data_type.to_string(),
        })?;
        let mut changed = CatalogState::clone(&catalog);
        changed.add_type(name.clone(), data_type.clone());
        self.publish(changed);
        Ok(Created::New)
    }

    /// `DROP TYPE`. What was made with the type stays, since it holds what the name stood for.
    pub fn drop_type(&self, drop: &DropType) -> Result<Dropped, SqlError> {
        let _guard = self.next_id.lock();
        let catalog = self.catalog();
        let name = &drop.name;
        if catalog.type_named(name).is_none() {
            if drop.if_exists {
                return Ok(Dropped::Absent);
            }
            return Err(SqlError::new(
                code::UNDEFINED_OBJECT,
                format!("type \"{name}\" does not exist"),
            )
            .with_hint("SHOW TYPES lists those that do"));
        }
        self.record(&Command::DropType { name: name.clone() })?;
        let mut changed = CatalogState::clone(&catalog);
        changed.remove_type(name);
        self.publish(changed);
        Ok(Dropped::Removed)
    }

    /// `ALTER SYSTEM`, with a value that has been checked.
    pub fn alter_system(&self, name: &str, value: Option<String>) -> Result<(), SqlError> {
        let _guard = self.next_id.lock();
        self.record(&Command::AlterSystem {
            name: name.to_owned(),
            value: value.clone(),
        })?;
        let mut changed = CatalogState::clone(&self.catalog());
        changed.set_setting(name.to_owned(), value);
        self.publish(changed);
        Ok(())
    }

    /// `TERMINATE`, `PAUSE` and `RESUME`; answers how many queries it changed.
    pub fn change_queries(
        &self,
        target: &QueryTarget,
        change: QueryChange,
    ) -> Result<usize, SqlError> {
        let _guard = self.next_id.lock();
        let catalog = self.catalog();
        let targets = match target {
            QueryTarget::Id(name) => {
                let query = catalog
                    .query(name)
                    .ok_or_else(|| unknown_query(&catalog, name))?;
                vec![Arc::clone(query)]
            }
            QueryTarget::All => catalog
                .queries()
                .filter(|query| !query.is_keeper())
                .cloned()
                .collect(),
        };
        for query in &targets {
            self.change_query(query, change)?;
        }
        Ok(targets.len())
    }

    fn change_query(&self, query: &QueryEntry, change: QueryChange) -> Result<(), SqlError> {
        let id = query.id.0;
        let mut changed = CatalogState::clone(&self.catalog());
        match change {
            QueryChange::Terminate => {
                self.record(&Command::Terminate { query: id })?;
                self.engine.drop_query(query.id)?;
                changed.remove_query(query.id);
            }
            QueryChange::Pause => {
                self.record(&Command::Pause { query: id })?;
                self.engine.pause_query(query.id)?;
                changed.set_paused(query.id, true);
            }
            QueryChange::Resume => {
                self.record(&Command::Resume { query: id })?;
                self.engine.resume_query(query.id)?;
                changed.set_paused(query.id, false);
            }
        }
        self.publish(changed);
        Ok(())
    }

    /// Holds the state of the queries for a backup, and calls `note` at that moment: no statement changes the catalog and no step runs meanwhile.
    pub fn freeze<T: Send + 'static>(
        &self,
        note: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(FrozenState, T), SqlError> {
        let _guard = self.next_id.lock();
        Ok(self.engine.freeze(note)?)
    }

    /// Commits, writes a checkpoint and stops the queries.
    pub fn stop(&self) -> ExecResult<()> {
        // A CREATE that catches up would hold the guard for long.
        self.engine.begin_stop();
        let _guard = self.next_id.lock();
        self.engine.stop()
    }

    fn record(&self, command: &Command) -> Result<(), SqlError> {
        Ok(command::record(
            self.log.as_ref(),
            command,
            clock::now_ms(),
        )?)
    }

    fn publish(&self, catalog: CatalogState) {
        *self.catalog.write() = Arc::new(catalog);
    }

    /// Removes a topic that was made for a statement which then failed.
    fn forget_topic(&self, topic: Option<&str>) {
        let Some(topic) = topic else { return };
        if let Err(error) = self.log.delete_topic(topic) {
            tracing::warn!(topic, %error, "the topic of a failed statement stays behind, empty");
        }
    }
}

/// What the two CREATE statements have in common.
struct CreateClauses<'a> {
    name: &'a str,
    or_replace: bool,
    if_not_exists: bool,
}

impl<'a> CreateClauses<'a> {
    fn of(statement: &'a Statement) -> Result<Self, SqlError> {
        match statement {
            Statement::CreateSource(create) => Ok(Self {
                name: &create.name,
                or_replace: create.or_replace,
                if_not_exists: create.if_not_exists,
            }),
            Statement::CreateAs(create) => Ok(Self {
                name: &create.name,
                or_replace: create.or_replace,
                if_not_exists: create.if_not_exists,
            }),
            _ => Err(SqlError::internal("only CREATE statements make relations")),
        }
    }
}

/// A statement as it is recorded, for readers of the same language.
fn recorded_text(statement: &Statement, relation: &Relation, language: Language) -> String {
    let pure = match statement {
        Statement::CreateSource(create) => {
            Statement::CreateSource(purify::create_source(create, relation))
        }
        Statement::CreateAs(create) => Statement::CreateAs(purify::create_as(create, relation)),
        other => other.clone(),
    };
    format_statement(&pure, language.identifier_case)
}

/// `WITH (query_id = ..)` of an INSERT.
fn given_query_name(statement: &Statement) -> Result<Option<String>, SqlError> {
    let Statement::Insert(insert) = statement else {
        return Ok(None);
    };
    let mut given = None;
    for (property, value) in &insert.with.0 {
        match (property.as_str(), value) {
            ("query_id", PropertyValue::String(id)) if !id.is_empty() => given = Some(id.clone()),
            _ => {
                return Err(SqlError::new(
                    code::INVALID_PARAMETER_VALUE,
                    format!("property \"{property}\": an INSERT takes query_id, a text"),
                ));
            }
        }
    }
    Ok(given)
}

fn kind_name(kind: SourceKind) -> &'static str {
    match kind {
        SourceKind::Stream => "stream",
        SourceKind::Table => "table",
    }
}

fn already_exists(existing: &Relation) -> SqlError {
    let kind = kind_name(existing.kind);
    SqlError::new(
        code::DUPLICATE_TABLE,
        format!("{kind} \"{}\" already exists", existing.name),
    )
    .with_hint("drop it first, choose another name, or write IF NOT EXISTS")
}

fn check_droppable(
    catalog: &CatalogState,
    relation: &Relation,
    drop: &Drop,
) -> Result<(), SqlError> {
    let name = &relation.name;
    if relation.id.0 < FIRST_ID {
        return Err(SqlError::new(
            code::INSUFFICIENT_PRIVILEGE,
            format!("\"{name}\" is built in and cannot be dropped"),
        ));
    }
    if relation.kind != drop.kind {
        let (is, asked) = (kind_name(relation.kind), kind_name(drop.kind));
        return Err(SqlError::new(
            code::WRONG_OBJECT_TYPE,
            format!("\"{name}\" is a {is}, not a {asked}"),
        )
        .with_hint(format!("use DROP {}", is.to_uppercase())));
    }
    if relation.read_only && drop.delete_topic {
        return Err(SqlError::new(
            code::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("cannot delete the topic of \"{name}\": it was created with SOURCE, which makes it read-only"),
        )
        .with_hint("drop without DELETE TOPIC"));
    }
    let readers: Vec<&str> = catalog
        .readers(relation.id)
        .map(|query| query.name.as_str())
        .collect();
    if !readers.is_empty() {
        let kind = kind_name(relation.kind);
        return Err(SqlError::new(
            code::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("cannot drop {kind} \"{name}\" because other queries read it"),
        )
        .with_detail(format!("it is read by {}", readers.join(", ")))
        .with_hint("TERMINATE these queries, or drop what they make, first"));
    }
    let writers: Vec<&str> = catalog
        .inserters(relation.id)
        .map(|query| query.name.as_str())
        .collect();
    if !writers.is_empty() {
        return Err(SqlError::new(
            code::DEPENDENT_OBJECTS_STILL_EXIST,
            format!("cannot drop stream \"{name}\" because other queries insert into it"),
        )
        .with_detail(format!("it is written by {}", writers.join(", ")))
        .with_hint("TERMINATE these queries first"));
    }
    let shared: Vec<String> = catalog
        .relations()
        .iter()
        .filter(|other| other.topic == relation.topic && other.id != relation.id)
        .map(|other| format!("\"{}\"", other.name))
        .collect();
    if drop.delete_topic && !shared.is_empty() {
        return Err(SqlError::new(
            code::DEPENDENT_OBJECTS_STILL_EXIST,
            format!(
                "cannot delete topic \"{}\" because others are declared on it",
                relation.topic
            ),
        )
        .with_detail(format!("it is the topic of {}", shared.join(", ")))
        .with_hint("drop without DELETE TOPIC"));
    }
    Ok(())
}

/// There is no such query; tells which there are.
pub fn unknown_query(catalog: &CatalogState, name: &str) -> SqlError {
    let names: Vec<&str> = catalog
        .queries()
        .filter(|query| !query.is_keeper())
        .map(|query| query.name.as_str())
        .collect();
    let error = SqlError::new(
        code::UNDEFINED_OBJECT,
        format!("query \"{name}\" does not exist"),
    );
    match names.is_empty() {
        true => error.with_hint("no query is running"),
        false => error.with_hint(format!("the queries are {}", names.join(", "))),
    }
}
