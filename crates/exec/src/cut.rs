//! What a step reads: for each source partition, up to which offset.
//!
//! The cut is whatever has arrived, up to a budget of rows. Appends that were made together ([`crate::Engine::append_together`]) are all in the cut or
//! none of them: their appender and the cut exclude each other, and where the budget would fall into such a group, the cut draws back to
//! before it.

use std::collections::{BTreeMap, VecDeque};

use highwater_planner::catalog::RelationId;
use highwater_storage_log::{Offset, TopicPartition};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{
    error::{ExecError, ExecResult},
    journal::JournalEntry,
    pipeline::Pipeline,
    source::Fetched,
};

/// Groups that wait for their step at the most. A pipeline that is further behind may read the oldest ones in two steps.
const MAX_GROUPS: usize = 1 << 20;

/// What a step reads.
pub struct Cut {
    /// Parts of source partitions, each not empty.
    pub fetched: Vec<(RelationId, Fetched)>,
}

/// Appends that belong together, as far as no step has read them.
#[derive(Default)]
pub struct AppendGroups {
    /// Held for writing while a cut looks at the ends, for reading while a group is appended.
    lock: RwLock<()>,
    groups: Mutex<VecDeque<Group>>,
}

/// The offsets that one group took in each partition, first to last (exclusive).
type Group = Vec<(TopicPartition, Offset, Offset)>;

impl AppendGroups {
    /// No cut looks at the ends while the guard lives.
    pub fn begin(&self) -> RwLockReadGuard<'_, ()> {
        self.lock.read()
    }

    /// No group is half appended while the guard lives.
    pub fn exclude(&self) -> RwLockWriteGuard<'_, ()> {
        self.lock.write()
    }

    /// Notes a group of more than one partition. Call it under the guard.
    pub fn note(&self, group: Group) {
        let mut groups = self.groups.lock();
        if groups.len() == MAX_GROUPS {
            groups.pop_front();
        }
        groups.push_back(group);
    }
}

/// A source whose topic cannot be read.
struct Unreadable {
    relation: RelationId,
    error: ExecError,
}

impl Pipeline {
    /// Fixes what the next step reads. `None` when nothing has arrived. The readers of a topic that cannot be read fail; the others go on.
    pub fn cut(&mut self) -> ExecResult<Option<Cut>> {
        loop {
            match self.cut_readable() {
                Ok(Some(cut)) => return self.pass_over_own_records(cut),
                Ok(None) => return Ok(None),
                // Each turn takes away a source, so this ends.
                Err(Unreadable { relation, error }) => {
                    self.leave_deleted_topics();
                    if self.sources.contains_key(&relation) {
                        self.fail_readers(relation, &[], &error);
                    }
                }
            }
        }
    }

    fn cut_readable(&mut self) -> Result<Option<Cut>, Unreadable> {
        let mut limits: Vec<(RelationId, usize, Offset)> = Vec::new();
        let groups = {
            // No group is half appended while the lock is held.
            let _all_or_none = self.shared.groups.exclude();
            // Appends go on meanwhile: who declares a topic twice reads both to one place.
            let mut ends: BTreeMap<&TopicPartition, Offset> = BTreeMap::new();
            for (relation, source) in &self.sources {
                for (partition, (name, position)) in source
                    .partitions()
                    .iter()
                    .zip(source.positions())
                    .enumerate()
                {
                    let end = match ends.get(name) {
                        Some(end) => *end,
                        None => {
                            let offsets = self.log.offsets(name).map_err(|error| Unreadable {
                                relation: *relation,
                                error: error.into(),
                            })?;
                            ends.insert(name, offsets.last_stable);
                            offsets.last_stable
                        }
                    };
                    if end > *position {
                        limits.push((*relation, partition, end));
                    }
                }
            }
            std::mem::take(&mut *self.shared.groups.groups.lock())
        };
        if limits.is_empty() {
            return Ok(None);
        }
        let fetched = self.fetch_whole_groups(&limits, &groups);
        let taken = |fetched: &[(RelationId, Fetched)]| {
            limits.iter().all(|(relation, partition, limit)| {
                fetched.iter().any(|(of, part)| {
                    of == relation && part.partition == *partition && part.to == *limit
                })
            })
        };
        match fetched {
            Ok(fetched) => {
                if !taken(&fetched) {
                    self.put_back(groups, &fetched);
                }
                Ok(Some(Cut { fetched }))
            }
            Err(unreadable) => {
                self.put_back(groups, &[]);
                Err(unreadable)
            }
        }
    }

    /// Fetches up to the row budget, without cutting a group apart.
    fn fetch_whole_groups(
        &self,
        limits: &[(RelationId, usize, Offset)],
        groups: &VecDeque<Group>,
    ) -> Result<Vec<(RelationId, Fetched)>, Unreadable> {
        let budget = (self.options.step_max_rows / limits.len()).max(1);
        let mut fetched = self.fetch(limits, budget)?;
        if !groups.is_empty() {
            self.keep_together(groups, &mut fetched);
            if fetched.is_empty() {
                // The group that comes first is larger than the budget: the step takes it whole, and no more.
                let limits = self.first_group(limits, groups);
                fetched = self.fetch(&limits, usize::MAX)?;
            }
        }
        Ok(fetched)
    }

    /// Limits that hold the first group, and those that lie in between.
    fn first_group(
        &self,
        limits: &[(RelationId, usize, Offset)],
        groups: &VecDeque<Group>,
    ) -> Vec<(RelationId, usize, Offset)> {
        let positions = self.ends(&[]);
        let ahead = |name: &TopicPartition, last: Offset| {
            positions
                .get(name)
                .is_some_and(|positions| positions.iter().any(|position| *position < last))
        };
        let mut ends: BTreeMap<&TopicPartition, Offset> = BTreeMap::new();
        let mut left: Vec<&Group> = groups.iter().collect();
        // Groups were noted about in the order of their appends, so the first that is not read yet is among the lowest.
        let mut chosen = left
            .iter()
            .position(|group| group.iter().any(|(name, _, last)| ahead(name, *last)));
        while let Some(position) = chosen {
            for (name, _, last) in left.swap_remove(position) {
                let end = ends.entry(name).or_insert(*last);
                *end = (*end).max(*last);
            }
            chosen = left.iter().position(|group| {
                group
                    .iter()
                    .any(|(name, first, _)| ends.get(name).is_some_and(|end| first < end))
            });
        }
        limits
            .iter()
            .filter_map(|(relation, partition, limit)| {
                let name = &self.sources.get(relation)?.partitions()[*partition];
                let end = ends.get(name)?;
                Some((*relation, *partition, (*end).min(*limit)))
            })
            .collect()
    }

    /// What a query wrote to its own stream has reached its readers in memory; it takes no step to move past it.
    fn pass_over_own_records(&mut self, cut: Cut) -> ExecResult<Option<Cut>> {
        let mut others = Vec::with_capacity(cut.fetched.len());
        for (relation, part) in cut.fetched {
            let source = self.source_mut(relation)?;
            if source.has_nothing_new(&part) {
                source.skip(&part);
                self.moved_without_step = true;
            } else {
                others.push((relation, part));
            }
        }
        Ok((!others.is_empty()).then_some(Cut { fetched: others }))
    }

    /// Ends the push queries over topics that were deleted under them; persistent queries keep theirs from being deleted.
    fn leave_deleted_topics(&mut self) {
        let gone: Vec<RelationId> = self
            .sources
            .iter()
            .filter(|(_, source)| self.log.topic(&source.relation().topic).is_none())
            .map(|(relation, _)| *relation)
            .collect();
        for relation in gone {
            let readers: Vec<_> = self
                .subscriptions
                .iter()
                .filter(|subscription| {
                    subscription
                        .graph
                        .plan()
                        .sources()
                        .any(|source| source.id == relation)
                })
                .map(|subscription| subscription.id)
                .collect();
            for id in readers {
                self.end_subscription(id, "its topic was deleted".into());
            }
            if !self.is_durable_source(relation) {
                self.sources.remove(&relation);
            }
        }
    }

    fn fetch(
        &self,
        limits: &[(RelationId, usize, Offset)],
        budget: usize,
    ) -> Result<Vec<(RelationId, Fetched)>, Unreadable> {
        let mut fetched = Vec::with_capacity(limits.len());
        for &(relation, partition, limit) in limits {
            let part = self
                .source(relation)
                .and_then(|source| source.fetch(&*self.log, partition, limit, budget))
                .map_err(|error| Unreadable { relation, error })?;
            fetched.extend(part.map(|part| (relation, part)));
        }
        Ok(fetched)
    }

    /// Up to where each source partition will have been read after this cut.
    fn ends(&self, fetched: &[(RelationId, Fetched)]) -> BTreeMap<TopicPartition, Vec<Offset>> {
        let mut ends: BTreeMap<TopicPartition, Vec<Offset>> = BTreeMap::new();
        for (relation, source) in &self.sources {
            for (partition, (name, position)) in source
                .partitions()
                .iter()
                .zip(source.positions())
                .enumerate()
            {
                let part = fetched
                    .iter()
                    .find(|(of, part)| of == relation && part.partition == partition);
                ends.entry(name.clone())
                    .or_default()
                    .push(part.map_or(*position, |(_, part)| part.to));
            }
        }
        ends
    }

    /// Draws the cut back to before each group that it would read only a part of. Drawing back can cut another group apart, so it goes on
    /// until none is.
    fn keep_together(&self, groups: &VecDeque<Group>, fetched: &mut Vec<(RelationId, Fetched)>) {
        loop {
            let ends = self.ends(fetched);
            let read = |(name, _, last): &(TopicPartition, Offset, Offset)| {
                ends.get(name)
                    .map(|ends| ends.iter().all(|end| end >= last))
            };
            let torn = groups.iter().find(|group| {
                let parts: Vec<bool> = group.iter().filter_map(read).collect();
                parts.contains(&true) && parts.contains(&false)
            });
            let Some(torn) = torn else { return };
            let mut moved = false;
            for (name, first, _) in torn {
                for (relation, part) in fetched.iter_mut() {
                    let of_name = self
                        .sources
                        .get(relation)
                        .is_some_and(|source| source.partitions()[part.partition] == *name);
                    moved |= of_name && part.draw_back(*first);
                }
            }
            fetched.retain(|(_, part)| !part.is_empty());
            if !moved {
                // Its first part was read before: nothing can be drawn back any more.
                return;
            }
        }
    }

    /// Keeps the groups that the cut leaves for a later step.
    fn put_back(&self, mut groups: VecDeque<Group>, fetched: &[(RelationId, Fetched)]) {
        let ends = self.ends(fetched);
        groups.retain(|group| {
            group.iter().any(|(name, _, last)| {
                ends.get(name)
                    .is_some_and(|ends| ends.iter().any(|end| end < last))
            })
        });
        let mut kept = self.shared.groups.groups.lock();
        for group in groups.into_iter().rev() {
            kept.push_front(group);
        }
    }

    /// The cut that the journal tells of.
    pub fn journaled_cut(&mut self, entry: &JournalEntry) -> Cut {
        let mut fetched = Vec::new();
        for &(relation, partition, to) in &entry.cut {
            // A source that no query reads any more has no effect left.
            let Some(source) = self.sources.get(&relation) else {
                continue;
            };
            match source.fetch_exactly(&*self.log, partition as usize, to) {
                Ok(part) => fetched.extend(part.map(|part| (relation, part))),
                Err(error) => {
                    self.fail_readers(relation, &[], &error);
                    fetched.retain(|(of, _)| *of != relation);
                }
            }
        }
        Cut { fetched }
    }
}
