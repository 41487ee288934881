//! The catalog: which streams, tables and queries there are.
//!
//! A [`CatalogState`] is immutable; readers hold one as long as they like. The coordinator makes a new one for every change, and the
//! sequence of changes is the command topic ([`command`]), of which the catalog is the fold ([`replay`]).

pub mod builtin;
pub mod command;
pub mod replay;

use std::{collections::BTreeMap, sync::Arc};

use highwater_exec::{EarlierResult, OffsetReset, PersistentQuery, QueryOutput};
use highwater_planner::{
    catalog::{Catalog, QueryId, Relation, RelationId, SourceKind},
    dataflow::DataflowPlan,
};
use highwater_sql::SqlType;
use highwater_storage_log::{Log, Offset, TopicPartition};

use crate::planning::StatementStyle;

/// What a query is to the relation that it writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryRole {
    /// Its statement made the relation.
    Maker,
    /// It only keeps the rows of a declared table: it comes and goes with its table, and no statement names it.
    Keeper,
    /// `INSERT INTO .. SELECT`: it writes the relation beside whoever else does.
    Inserter,
}

/// A query that runs until it is terminated.
#[derive(Debug, Clone)]
pub struct QueryEntry {
    /// Identity.
    pub id: QueryId,
    /// What it is to its relation.
    pub role: QueryRole,
    /// What statements call it: `CTAS_ROUTES_7`.
    pub name: String,
    /// The statement that made it, in canonical text.
    pub statement: String,
    /// What it writes; for a [`QueryEntry::is_keeper`] the table it keeps.
    pub relation: Arc<Relation>,
    /// What it computes.
    pub plan: DataflowPlan,
    /// Where it began.
    pub offset_reset: OffsetReset,
    /// Where it began in these partitions instead, since it goes on for the query that it replaced.
    pub begins_at: Vec<(TopicPartition, Offset)>,
    /// Paused by a statement.
    pub paused: bool,
    /// Number of the change that gave it this statement; 0 for the one that it was created with.
    pub revision: u64,
    /// What it made before that change.
    pub earlier: Option<EarlierResult>,
}

impl QueryEntry {
    /// Whether it only keeps the rows of a declared table.
    pub fn is_keeper(&self) -> bool {
        self.role == QueryRole::Keeper
    }

    /// Whether it reads a relation that it does not keep.
    pub fn reads(&self, relation: RelationId) -> bool {
        !self.is_keeper() && self.plan.sources().any(|source| source.id == relation)
    }

    /// As the engine takes it.
    pub fn to_persistent(&self) -> PersistentQuery {
        let relation = Arc::clone(&self.relation);
        let output = match (self.is_keeper(), relation.kind) {
            (true, _) => QueryOutput::SourceTable(relation),
            (false, SourceKind::Stream) => QueryOutput::Stream(relation),
            (false, SourceKind::Table) => QueryOutput::Table(relation),
        };
        PersistentQuery {
            id: self.id,
            plan: self.plan.clone(),
            output,
            offset_reset: self.offset_reset,
            begins_at: self.begins_at.clone(),
            paused: self.paused,
            revision: self.revision,
            earlier: self.earlier.clone(),
        }
    }
}

/// A relation with the statement that made it.
#[derive(Debug, Clone)]
pub struct RelationEntry {
    /// The relation.
    pub relation: Arc<Relation>,
    /// Its statement, in canonical text.
    pub statement: String,
    /// How the statement is read.
    pub style: StatementStyle,
    /// What it was before each ALTER: queries that were made then still read and write that.
    pub earlier: Vec<RelationId>,
}

impl RelationEntry {
    /// Whether this is the relation, or was it before an ALTER.
    fn is(&self, id: RelationId) -> bool {
        self.relation.id == id || self.earlier.contains(&id)
    }
}

/// The catalog at one moment.
#[derive(Clone)]
pub struct CatalogState {
    log: Arc<dyn Log>,
    relations: BTreeMap<String, RelationEntry>,
    queries: BTreeMap<QueryId, Arc<QueryEntry>>,
    types: BTreeMap<String, SqlType>,
    settings: BTreeMap<String, String>,
}

impl CatalogState {
    /// A catalog that holds just what is built in.
    pub fn new(log: Arc<dyn Log>) -> Self {
        let mut catalog = Self {
            log,
            relations: BTreeMap::new(),
            queries: BTreeMap::new(),
            types: BTreeMap::new(),
            settings: BTreeMap::new(),
        };
        catalog.add_relation(builtin::processing_log());
        catalog
    }

    /// Adds a relation or replaces the one of its name.
    pub fn add_relation(&mut self, entry: RelationEntry) {
        self.relations.insert(entry.relation.name.clone(), entry);
    }

    /// Adds a query.
    pub fn add_query(&mut self, query: QueryEntry) {
        self.queries.insert(query.id, Arc::new(query));
    }

    /// Removes a relation with the queries that write or keep it, as it is and as it was.
    pub fn remove_relation(&mut self, id: RelationId) {
        let removed = self.relations.extract_if(.., |_, entry| entry.is(id));
        for (_, entry) in removed.collect::<Vec<_>>() {
            self.queries.retain(|_, query| !entry.is(query.relation.id));
        }
    }

    /// The catalog as it would be without a relation: another of its name is planned against it.
    pub fn without(&self, entry: &RelationEntry) -> Self {
        let mut without = self.clone();
        without.remove_relation(entry.relation.id);
        without
    }

    /// Removes the queries that keep a table as it was before an ALTER and that nobody reads any more.
    pub fn remove_unread_keepers(&mut self) {
        let unread: Vec<QueryId> = self
            .queries
            .values()
            .filter(|query| query.is_keeper())
            .filter(|keeper| {
                let kept = keeper.relation.id;
                let is_current = |entry: &RelationEntry| entry.relation.id == kept;
                !self.relations.values().any(is_current)
                    && !self.queries.values().any(|query| query.reads(kept))
            })
            .map(|query| query.id)
            .collect();
        self.queries.retain(|id, _| !unread.contains(id));
    }

    /// Removes a query; what it wrote stays, and nothing writes it any more.
    pub fn remove_query(&mut self, id: QueryId) {
        let Some(query) = self.queries.remove(&id) else {
            return;
        };
        if let Some(entry) = self.relations.get_mut(&query.relation.name)
            && entry.relation.query == Some(id)
        {
            let orphan = Relation {
                query: None,
                ..Relation::clone(&entry.relation)
            };
            entry.relation = Arc::new(orphan);
        }
    }

    /// Notes that a query is paused or not.
    pub fn set_paused(&mut self, id: QueryId, paused: bool) {
        if let Some(query) = self.queries.get_mut(&id) {
            Arc::make_mut(query).paused = paused;
        }
    }

    /// Gives a name to a type that holds no names itself.
    pub fn add_type(&mut self, name: String, data_type: SqlType) {
        self.types.insert(name, data_type);
    }

    /// Takes a type's name away. What was made with it stays.
    pub fn remove_type(&mut self, name: &str) {
        self.types.remove(name);
    }

    /// The type that CREATE TYPE gave this name to.
    pub fn type_named(&self, name: &str) -> Option<&SqlType> {
        self.types.get(name)
    }

    /// All types with names, by name.
    pub fn types(&self) -> impl Iterator<Item = (&str, &SqlType)> {
        self.types
            .iter()
            .map(|(name, data_type)| (name.as_str(), data_type))
    }

    /// What sessions begin with, by the names of settings.
    pub fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        self.settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Notes what sessions begin with; `None` for the default.
    pub fn set_setting(&mut self, name: String, value: Option<String>) {
        match value {
            Some(value) => self.settings.insert(name, value),
            None => self.settings.remove(&name),
        };
    }

    /// The relation of this name, with its statement.
    pub fn entry(&self, name: &str) -> Option<&RelationEntry> {
        self.relations.get(name)
    }

    /// The relation of this id, with its statement.
    pub fn entry_of(&self, id: RelationId) -> Option<&RelationEntry> {
        self.relations
            .values()
            .find(|entry| entry.relation.id == id)
    }

    /// The query that a statement names; case does not matter.
    pub fn query(&self, name: &str) -> Option<&Arc<QueryEntry>> {
        self.queries
            .values()
            .find(|query| !query.is_keeper() && query.name.eq_ignore_ascii_case(name))
    }

    /// All queries, keepers included, by id.
    pub fn queries(&self) -> impl Iterator<Item = &Arc<QueryEntry>> {
        self.queries.values()
    }

    /// What people call a query; the bare number when it is not in the catalog (any more).
    pub fn query_name(&self, id: QueryId) -> String {
        self.queries
            .get(&id)
            .map_or_else(|| id.to_string(), |query| query.name.clone())
    }

    /// The query that writes or keeps a relation.
    pub fn maker(&self, relation: RelationId) -> Option<&Arc<QueryEntry>> {
        self.queries
            .values()
            .find(|query| query.relation.id == relation && query.role != QueryRole::Inserter)
    }

    /// The queries that write or keep a relation, or what it was before an ALTER.
    pub fn makers(&self, relation: RelationId) -> impl Iterator<Item = &Arc<QueryEntry>> {
        self.versions(relation)
            .into_iter()
            .filter_map(|version| self.maker(version))
    }

    /// The queries that INSERT INTO a relation.
    pub fn inserters(&self, relation: RelationId) -> impl Iterator<Item = &Arc<QueryEntry>> {
        let versions = self.versions(relation);
        self.queries.values().filter(move |query| {
            query.role == QueryRole::Inserter && versions.contains(&query.relation.id)
        })
    }

    /// The queries that read a relation.
    pub fn readers(&self, relation: RelationId) -> impl Iterator<Item = &Arc<QueryEntry>> {
        let versions = self.versions(relation);
        self.queries
            .values()
            .filter(move |query| versions.iter().any(|version| query.reads(*version)))
    }

    /// A relation and what it was before each ALTER.
    fn versions(&self, id: RelationId) -> Vec<RelationId> {
        let entry = self.relations.values().find(|entry| entry.is(id));
        let earlier = entry.map_or(&[][..], |entry| &entry.earlier);
        earlier.iter().copied().chain([id]).collect()
    }
}

impl Catalog for CatalogState {
    fn relation(&self, name: &str) -> Option<Arc<Relation>> {
        self.relations
            .get(name)
            .map(|entry| Arc::clone(&entry.relation))
    }

    fn relations(&self) -> Vec<Arc<Relation>> {
        self.relations
            .values()
            .map(|entry| Arc::clone(&entry.relation))
            .collect()
    }

    fn topic_partitions(&self, topic: &str) -> Option<u32> {
        self.log.topic(topic).map(|topic| topic.config.partitions)
    }
}
