//! State that was lost, made anew from the log.
//!
//! When no checkpoint's database can be used any more but a manifest can, the manifest still tells how far every query had read at its step. Each
//! query runs again over its topics from its origin up to there, without a sink: what it made of them stands in its topic already. The
//! journal's steps are replayed behind that as after any other start.
//!
//! What comes of it is what the query would answer had it been created at that step. Where an answer depends on how steps were cut (which records
//! were late, which of two partitions came last) or on the clock, it can differ from what the query had before.

use std::collections::BTreeSet;

use highwater_planner::catalog::{QueryId, RelationId};
use highwater_storage_log::TopicPartition;

use crate::{
    backfill::{Downstream, Past, unique_sources},
    checkpoint::Manifest,
    engine::QueryState,
    error::{ExecError, ExecResult, with_causes},
    pipeline::{Pipeline, SourcePositions, positions_from, row_codec},
    query::{QueryGraph, remembers},
    state::{StateId, TableStore},
};

/// How far a query had read at the step of a checkpoint.
struct Reached {
    /// Up to where its topics count.
    to: SourcePositions,
    /// Where the steps that it took part in stood.
    steps: SourcePositions,
}

impl Pipeline {
    /// Makes anew what the queries kept at the step of the manifest. One of which that cannot be done fails; the others go on.
    pub(crate) fn rebuild_lost_state(&mut self, manifest: &Manifest, reason: &str) {
        let written = positions_from(&manifest.written);
        let mut lost: BTreeSet<RelationId> = BTreeSet::new();
        for position in 0..self.queries.len() {
            let query = &self.queries[position];
            if query.table.is_none() && !remembers(query.graph.plan()) {
                continue;
            }
            let id = query.definition.id;
            tracing::warn!(query = %id, "the state of a query is lost; it is made anew from the log");
            let rebuilt = self.rebuild_one(position, manifest, &written, &lost);
            let query = &mut self.queries[position];
            match rebuilt {
                Ok(()) => query.rebuilt = Some(reason.to_owned()),
                Err(error) => {
                    lost.insert(query.definition.output.relation().id);
                    self.give_up_rebuilding(position, reason, &error);
                }
            }
        }
    }

    /// Lets the queries go on that had failed since the database was damaged, and whose state was made anew since.
    pub(crate) fn resume_rebuilt(&mut self) {
        let rebuilt: Vec<QueryId> = self
            .queries
            .iter()
            .filter(|query| query.has_lost_state && query.rebuilt.is_some())
            .filter(|query| !query.runs() && !query.definition.paused)
            .map(|query| query.definition.id)
            .collect();
        for id in rebuilt {
            if let Err(error) = self.resume_query(id) {
                tracing::error!(query = %id, error = with_causes(&error), "query could not be resumed");
            }
        }
    }

    fn rebuild_one(
        &mut self,
        position: usize,
        manifest: &Manifest,
        written: &SourcePositions,
        lost: &BTreeSet<RelationId>,
    ) -> ExecResult<()> {
        let query = &self.queries[position];
        let reads_tables = unique_sources(&query.graph)
            .iter()
            .any(|relation| self.keeper_before(position, relation.id));
        if let Some(relation) = unique_sources(&query.graph)
            .iter()
            .find(|relation| lost.contains(&relation.id))
        {
            return Err(gone(format!("table \"{}\" is lost, too", relation.name)));
        }
        if !query.runs() && reads_tables {
            // The tables have gone on since it stopped.
            return Err(gone("the tables as it read them are no more".into()));
        }
        let origin = query.origin.clone();
        let reached = self.reached(position, manifest, written)?;
        self.has_all_records(position, &origin)?;
        self.start_anew(position)?;
        let sink = self.queries[position].sink.take();
        let past = Past {
            steps: Some(&reached.steps),
            ..Past::between(&origin, &reached.to)
        };
        let caught_up = self.catch_up(position, &past, Downstream::Untold, true);
        self.queries[position].sink = sink;
        caught_up
    }

    /// Whether a query before this one keeps the relation as a table.
    fn keeper_before(&self, position: usize, relation: RelationId) -> bool {
        self.queries[..position]
            .iter()
            .any(|query| query.table.is_some() && query.definition.output.relation().id == relation)
    }

    fn reached(
        &self,
        position: usize,
        manifest: &Manifest,
        written: &SourcePositions,
    ) -> ExecResult<Reached> {
        let query = &self.queries[position];
        let sources = positions_from(&manifest.sources);
        let (steps, own) = match &query.stopped_at {
            Some(stopped_at) => (stopped_at, &query.has_own),
            None => (&sources, written),
        };
        let mut reached = Reached {
            to: SourcePositions::new(),
            steps: steps.clone(),
        };
        for relation in self.topic_relations(&query.graph, Some(&query.definition.output)) {
            let unknown = || gone(format!("how far it read \"{}\" is unknown", relation.name));
            let mut to = steps.get(&relation.id).cloned().ok_or_else(unknown)?;
            if relation.query.is_some() {
                // What a query writes to its own stream has reached it beside the steps.
                let own = own.get(&relation.id).ok_or_else(unknown)?;
                for (to, own) in to.iter_mut().zip(own) {
                    *to = (*to).max(*own);
                }
            }
            reached.to.insert(relation.id, to);
        }
        Ok(reached)
    }

    /// An answer over some of the records would be a wrong one.
    fn has_all_records(&self, position: usize, origin: &SourcePositions) -> ExecResult<()> {
        let query = &self.queries[position];
        for relation in self.topic_relations(&query.graph, Some(&query.definition.output)) {
            let starts = self.starts(&relation)?;
            let from = origin.get(&relation.id).cloned().unwrap_or_default();
            for (number, (start, from)) in (0..).zip(starts.into_iter().zip(from)) {
                if start > from {
                    let partition = TopicPartition::new(relation.topic.as_str(), number);
                    return Err(gone(format!(
                        "it read \"{partition}\" from offset {} on, which begins at {} now",
                        from.0, start.0
                    )));
                }
            }
        }
        Ok(())
    }

    /// Puts a query back to before its first row.
    fn start_anew(&mut self, position: usize) -> ExecResult<()> {
        let definition = &self.queries[position].definition;
        self.forget_state(definition.id)?;
        let graph = QueryGraph::new(definition.plan.clone(), Some(definition.id), self.workers)?;
        let table = match &self.queries[position].table {
            Some(_) => {
                let codec = row_codec(definition, self.queries[position].kept_revision)?;
                let prefix = StateId::result(definition.id).slot(0);
                let base = Some(self.base.clone());
                Some(TableStore::new(codec.into(), prefix, base, 0))
            }
            None => None,
        };
        let query = &mut self.queries[position];
        query.graph = graph;
        query.table = table;
        Ok(())
    }

    /// A query whose state is lost for good keeps nothing and fails: RESUME tries again, and otherwise it has to be created anew.
    fn give_up_rebuilding(&mut self, position: usize, reason: &str, error: &ExecError) {
        if let Err(error) = self.start_anew(position) {
            tracing::error!(
                error = with_causes(&error),
                "the state of a query could not be removed"
            );
        }
        if self.queries[position].stopped_at.is_none() {
            self.note_where_it_stops(position, &[]);
        }
        let query = &mut self.queries[position];
        let reason = format!(
            "its state is lost ({reason}) and cannot be made anew: {}",
            with_causes(error)
        );
        tracing::error!(query = %query.definition.id, reason, "query failed");
        query.state = QueryState::Failed(reason);
    }
}

fn gone(detail: String) -> ExecError {
    ExecError::Corrupt {
        what: "state".into(),
        detail,
    }
}
