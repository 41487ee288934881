//! A push query goes on behind a step that its reader has seen.
//!
//! What a step read is in the journal, and so is up to where each query had written its stream: the steps behind the one that is named are read
//! again from the topics, each with its own rows, number, clock and seed, until the push query joins the pipeline (`subscribe`). Only a query without
//! memory over streams can do that: the state of an aggregate or a table as of an old step is kept nowhere.
//!
//! INVARIANT: the reader gets each later step whole, once and in order, or an error before the first row.
//! INVARIANT: a topic that nobody read for a while is read again under a new step number ([`Pipeline::tell_attached`]), so a partition stands
//! at one place at the end of any step.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, mpsc},
};

use highwater_planner::{
    catalog::{Relation, RelationId, SourceKind},
    dataflow::DataflowPlan,
};
use highwater_storage_log::{Log, Offset, TopicPartition};

use crate::{
    backfill::unique_sources,
    engine::QueryOutput,
    error::{ExecError, ExecResult},
    journal::{EntryKind, Journal, JournalEntry, Offsets},
    pipeline::{Pipeline, RunningQuery, wanted_columns},
    pipeline_thread::Event,
    query::{QueryGraph, remembers},
    recovery::JOURNAL_TOPIC,
    shared::Shared,
    source::TopicSource,
};

/// Journal entries that may never have happened: a crash leaves at most the steps that were under way, one that waits for the disk and one that
/// runs. What supersedes them comes directly behind.
const UNSETTLED: usize = 2;

/// Entries that are looked through at a time for where a partition stood.
const LOOKED_THROUGH: i64 = 4096;

/// Whether a push query can go on behind a step.
pub fn is_resumable(plan: &DataflowPlan) -> bool {
    check_resumable(plan).is_ok()
}

/// Refuses what cannot be resumed exactly.
pub fn check_resumable(plan: &DataflowPlan) -> ExecResult<()> {
    let table = plan
        .sources()
        .find(|relation| relation.kind == SourceKind::Table);
    if let Some(table) = table {
        return Err(ExecError::NotResumable(format!(
            "AFTER STEP of a query over table \"{}\": its rows of an earlier step are not kept",
            table.name
        )));
    }
    if remembers(plan) {
        return Err(ExecError::NotResumable(
            "AFTER STEP of a query that groups or joins: its state of an earlier step is not kept"
                .into(),
        ));
    }
    Ok(())
}

/// A push query's way from the step behind which it goes on to where the pipeline stands.
pub struct Resumption {
    parts: Vec<Part>,
    entries: Entries,
    /// The step that is being put together; the ones before it are given.
    pub step: u64,
    /// Its clock and seed.
    pub moment: (i64, u64),
}

/// What is read of one relation's topic: what its own query wrote, or what others did.
pub struct Part {
    /// Where it has been read.
    pub source: TopicSource,
    own: bool,
    /// Up to where the step reads that is being put together.
    pub ends: Vec<Offset>,
}

/// Where a part stands at the step behind which the query goes on, as far as it is known.
struct Standing {
    relation: Arc<Relation>,
    own: bool,
    positions: Vec<Option<Offset>>,
}

impl Standing {
    fn note(&mut self, entry: &JournalEntry) {
        let offsets = if self.own { &entry.written } else { &entry.cut };
        for (relation, partition, offset) in offsets {
            if *relation == self.relation.id
                && let Some(position) = self.positions.get_mut(*partition as usize)
            {
                position.get_or_insert(*offset);
            }
        }
    }

    fn is_known(&self) -> bool {
        self.positions.iter().all(Option::is_some)
    }
}

impl Resumption {
    /// Finds in the journal, which is settled up to `end`, where everything stood after a step.
    pub fn find(
        log: &Arc<dyn Log>,
        graph: &QueryGraph,
        after: u64,
        end: Offset,
    ) -> ExecResult<Self> {
        let journal = Journal::open(Arc::clone(log), JOURNAL_TOPIC)?;
        let first_behind = first_behind(&journal, after, end)?;
        let mut standings = standings(graph);
        // What queries had written after a step is told by the entry of the next one.
        let mut entries = Entries::new(journal, first_behind, end);
        if let Some(next) = entries.next()? {
            let told = standings.iter_mut().filter(|standing| standing.own);
            if next.kind == EntryKind::Step {
                told.for_each(|standing| standing.note(&next));
            }
        }
        look_back(&entries.journal, after, first_behind, &mut standings)?;
        let parts = standings
            .into_iter()
            .map(|standing| part(&**log, graph, after, standing, &entries.journal))
            .collect::<ExecResult<Vec<_>>>()?;
        Ok(Self {
            parts,
            entries: Entries::new(entries.journal, first_behind, end),
            step: after,
            moment: (0, 0),
        })
    }

    /// The journal is settled up to `end` by now.
    pub fn go_on_to(&mut self, end: Offset) {
        self.entries.end = end;
    }

    /// Puts the next step together; answers false when the journal ends, and what is known of the last step is complete.
    pub fn next_step(&mut self) -> ExecResult<bool> {
        while let Some(entry) = self.entries.peek()? {
            let begins = entry.step > self.step;
            if entry.step < self.step || (entry.kind == EntryKind::Step && !begins) {
                let part = self.parts.first();
                return Err(ExecError::StepGone {
                    step: self.step,
                    topic: part
                        .map_or_else(String::new, |part| part.source.relation().topic.clone()),
                    first: Some(entry.step),
                });
            }
            if begins && entry.kind == EntryKind::Step {
                let written = entry.written.clone();
                self.note(&written, true);
            }
            if begins && self.has_rows() {
                // The entry is looked at again once the step before it is given.
                return Ok(true);
            }
            let Some(entry) = self.entries.next()? else {
                break;
            };
            if begins {
                self.step = entry.step;
                self.moment = (entry.clock, entry.seed);
            }
            self.note(&entry.cut, false);
            if entry.kind == EntryKind::Mark {
                self.note(&entry.written, true);
            }
        }
        Ok(self.has_rows())
    }

    /// Whether the step that is put together has something to read.
    fn has_rows(&self) -> bool {
        self.parts.iter().any(|part| {
            let positions = part.source.positions().iter();
            positions.zip(&part.ends).any(|(from, to)| from < to)
        })
    }

    /// What the step reads.
    pub fn parts(&mut self) -> &mut [Part] {
        &mut self.parts
    }

    /// Entries that are left of the journal as far as it is settled.
    pub fn entries_left(&self) -> i64 {
        self.entries.end.0 - self.entries.next.0
    }

    /// From where on the steps have to read the topics.
    pub fn reached(&self) -> impl Iterator<Item = (&Arc<Relation>, &[Offset])> {
        let others = self.parts.iter().filter(|part| !part.own);
        others.map(|part| (part.source.relation(), part.source.positions()))
    }

    fn note(&mut self, offsets: &Offsets, own: bool) {
        for (relation, partition, offset) in offsets {
            let parts = self.parts.iter_mut();
            for part in
                parts.filter(|part| part.own == own && part.source.relation().id == *relation)
            {
                if let Some(end) = part.ends.get_mut(*partition as usize) {
                    *end = (*end).max(*offset);
                }
            }
        }
    }
}

/// The parts of all relations that a graph reads.
fn standings(graph: &QueryGraph) -> Vec<Standing> {
    let standing = |relation: &Arc<Relation>, own| Standing {
        relation: Arc::clone(relation),
        own,
        positions: vec![None; relation.partitions as usize],
    };
    let mut standings = Vec::new();
    for relation in unique_sources(graph) {
        standings.push(standing(&relation, false));
        if relation.query.is_some() {
            standings.push(standing(&relation, true));
        }
    }
    standings
}

/// The reader of a part, if all that it needs is still there.
fn part(
    log: &dyn Log,
    graph: &QueryGraph,
    after: u64,
    standing: Standing,
    journal: &Journal,
) -> ExecResult<Part> {
    let relation = standing.relation;
    let known: Option<Vec<Offset>> = standing.positions.into_iter().collect();
    let Some(positions) = known else {
        let first = journal.entry_at(journal.start()?)?;
        return Err(ExecError::StepGone {
            step: after,
            topic: relation.topic.clone(),
            first: first.map(|entry| entry.step),
        });
    };
    for (number, position) in (0..).zip(&positions) {
        let partition = TopicPartition::new(relation.topic.as_str(), number);
        let start = log.offsets(&partition)?.log_start;
        if start > *position {
            return Err(ExecError::RecordsGone {
                step: after,
                partition: partition.to_string(),
                from: position.0,
                start: start.0,
            });
        }
    }
    let compacted = log.topic(&relation.topic).is_some_and(|topic| {
        let policy = topic.config.settings.get("cleanup.policy");
        policy.is_some_and(|policy| policy.contains("compact"))
    });
    if compacted {
        return Err(ExecError::NotResumable(format!(
            "AFTER STEP of a query over topic \"{}\", which is compacted: records of later steps may be gone",
            relation.topic
        )));
    }
    let columns = wanted_columns(graph, relation.id);
    let ends = positions.clone();
    let mut source = match standing.own {
        true => TopicSource::own_records(relation.clone(), positions)?,
        false => TopicSource::new(relation.clone(), positions)?,
    };
    source.want(columns)?;
    Ok(Part {
        source,
        own: standing.own,
        ends,
    })
}

/// Where the first entry behind a step stands, below `end`. Steps that never happened may stand before it.
fn first_behind(journal: &Journal, after: u64, end: Offset) -> ExecResult<Offset> {
    let (mut low, mut high) = (journal.start()?.0, end.0);
    loop {
        while low < high {
            let middle = low + (high - low) / 2;
            match journal.entry_at(Offset(middle))? {
                Some(entry) if entry.step <= after => low = middle + 1,
                _ => high = middle,
            }
        }
        // It may be a step that never happened; then what counts comes directly behind.
        let found = low;
        for next in (found..end.0).take(UNSETTLED + 1) {
            let entry = journal.entry_at(Offset(next))?;
            if entry.is_some_and(|entry| entry.step <= after) {
                low = next + 1;
            }
        }
        if low == found {
            return Ok(Offset(found));
        }
        high = end.0;
    }
}

/// Looks for where all parts stood after a step, from the newest entry before `end` on.
fn look_back(
    journal: &Journal,
    after: u64,
    end: Offset,
    standings: &mut [Standing],
) -> ExecResult<()> {
    let start = journal.start()?;
    let mut end = end;
    let mut superseded_from = u64::MAX;
    while end > start && !standings.iter().all(Standing::is_known) {
        let from = Offset((end.0 - LOOKED_THROUGH).max(start.0));
        for entry in journal.read_between(from, end)?.iter().rev() {
            // Of steps that never happened, the numbers were given again further on.
            if entry.step > after || entry.step >= superseded_from {
                continue;
            }
            if entry.kind == EntryKind::Step {
                superseded_from = entry.step;
            }
            for standing in standings.iter_mut() {
                standing.note(entry);
            }
        }
        end = from;
    }
    Ok(())
}

/// The journal's entries in order, without those of steps that never happened.
struct Entries {
    journal: Journal,
    next: Offset,
    end: Offset,
    read: VecDeque<JournalEntry>,
}

impl Entries {
    fn new(journal: Journal, from: Offset, end: Offset) -> Self {
        Self {
            journal,
            next: from,
            end,
            read: VecDeque::new(),
        }
    }

    fn peek(&mut self) -> ExecResult<Option<&JournalEntry>> {
        while self.read.len() <= UNSETTLED && self.next < self.end {
            let (entries, next) = self.journal.read(self.next, self.end)?;
            if next == self.next {
                break;
            }
            self.next = next;
            for entry in entries {
                while self.read.back().is_some_and(|back| entry.supersedes(back)) {
                    self.read.pop_back();
                }
                self.read.push_back(entry);
            }
        }
        Ok(self.read.front())
    }

    fn next(&mut self) -> ExecResult<Option<JournalEntry>> {
        self.peek()?;
        Ok(self.read.pop_front())
    }
}

/// Up to where the journal tells of steps that have committed.
#[derive(Debug, Clone, Copy)]
pub struct SettledJournal {
    /// The last of them.
    pub step: u64,
    /// Where it ends, with a mark of that step.
    pub end: Offset,
}

/// Asks the pipeline to write into the journal where everything stands.
pub fn settled_journal(shared: &Shared) -> ExecResult<SettledJournal> {
    let (reply, marked) = mpsc::sync_channel(1);
    let stopped = || ExecError::Stopped(shared.stopped().unwrap_or_default());
    if !shared.send(Event::Mark(reply)) {
        return Err(stopped());
    }
    marked.recv().map_err(|_| stopped())?
}

impl Pipeline {
    /// Writes into the journal where everything stands after the last step. No step may be pending.
    pub(crate) fn mark_journal(&mut self) -> ExecResult<SettledJournal> {
        debug_assert!(self.pending.is_none(), "a mark lies between two steps");
        let cut = self
            .sources
            .iter()
            .flat_map(|(relation, source)| {
                let positions = (0..).zip(source.positions());
                positions.map(|(partition, position)| (*relation, partition, *position))
            })
            .collect();
        self.journaled_writes.clear();
        let written = self.newly_written();
        let end = self.append_to_journal(&JournalEntry {
            kind: EntryKind::Mark,
            step: self.step,
            clock: self.moment.0,
            seed: self.moment.1,
            cut,
            written,
        })?;
        self.untold.clear();
        Ok(SettledJournal {
            step: self.step,
            end,
        })
    }

    /// Appends an entry; answers up to where the journal has to be synced for it. After an error the next entry tells everything again.
    pub(crate) fn append_to_journal(&mut self, entry: &JournalEntry) -> ExecResult<Offset> {
        let appended = self.journal.append(entry);
        if appended.is_err() {
            self.journaled_writes.clear();
            self.untold = self.sources.keys().copied().collect();
        }
        appended
    }

    /// Up to where queries have written their streams, where the journal does not tell it yet.
    pub(crate) fn newly_written(&mut self) -> Offsets {
        let mut written = Offsets::new();
        for query in &self.queries {
            note_written(query, &mut self.journaled_writes, &mut written);
        }
        written
    }

    /// Where the sources stand that are read since the last entry of the journal, unless `cut` tells it.
    pub(crate) fn take_untold(&mut self, cut: &Offsets) -> Offsets {
        let mut untold = Offsets::new();
        for id in std::mem::take(&mut self.untold) {
            let Some(source) = self.sources.get(&id) else {
                continue;
            };
            for (partition, position) in (0..).zip(source.positions()) {
                let told =
                    |(of, number, _): &(RelationId, u32, Offset)| (*of, *number) == (id, partition);
                if !cut.iter().any(told) {
                    untold.push((id, partition, *position));
                }
            }
        }
        untold
    }

    /// A change of the queries gets a number of its own: what it begins to read, and what it sends to readers, belongs to no step that anybody has seen.
    /// The checkpoint of the change makes the number durable.
    pub(crate) fn begin_unseen_step(&mut self) -> ExecResult<()> {
        // No entry of a next step will tell what the last one wrote.
        self.mark_journal()?;
        self.step += 1;
        Ok(())
    }

    /// Gives topics that nobody read before a step of their own, which tells where reading begins: what was written while nobody read belongs to that
    /// step, not to the one before, which a reader may have seen. Answers whether the journal could take it.
    pub(crate) fn tell_attached(&mut self) -> ExecResult<bool> {
        if self.untold.is_empty() {
            return Ok(true);
        }
        if self.owes_checkpoint {
            // No step may be journaled now; the next one tells.
            return Ok(false);
        }
        let cut = self.take_untold(&Offsets::new());
        let written = self.newly_written();
        let told = self.append_to_journal(&JournalEntry {
            kind: EntryKind::Step,
            step: self.step + 1,
            clock: self.moment.0,
            seed: self.moment.1,
            cut,
            written,
        });
        let end = match told {
            Err(error) if error.is_disk_full() => return Ok(false),
            told => told?,
        };
        // ORDER: readers learn the step's number at once, so no other step may ever have it.
        self.log.sync(self.journal.partition(), end)?;
        // The snapshot stays: nothing in it has changed, and it must not name sources that may go with this reader.
        self.step += 1;
        Ok(true)
    }
}

/// Where the stream ends that a query makes, where the journal does not tell it yet.
fn note_written(
    query: &RunningQuery,
    told: &mut HashMap<RelationId, Vec<Offset>>,
    written: &mut Offsets,
) {
    let (QueryOutput::Stream(relation), Some(sink)) = (&query.definition.output, &query.sink)
    else {
        return;
    };
    if relation.query != Some(query.definition.id) {
        return;
    }
    let unknown = Offset(i64::MIN);
    let told = told
        .entry(relation.id)
        .or_insert_with(|| vec![unknown; relation.partitions as usize]);
    for ((partition, end), told) in (0..).zip(sink.producer().appended()).zip(told) {
        if *told != Offset(end) {
            *told = Offset(end);
            written.push((relation.id, partition, Offset(end)));
        }
    }
}
