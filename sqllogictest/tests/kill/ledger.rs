//! What the clients know of their writes, against which the server is held.

use std::collections::{HashMap, HashSet};

use crate::load::Written;

/// When a client counts an INSERT as acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledged {
    /// When the server has answered.
    ByServer,
    /// When it is sent: only for the control.
    WhenSent,
}

/// Ids of one cycle.
#[derive(Debug, Clone, Copy)]
pub struct Cycle {
    /// The first; ids of a later cycle are greater than all of an earlier one.
    pub first_id: i64,
}

/// Ids a cycle has room for.
const IDS_PER_CYCLE: i64 = 1_000_000;
/// The id, within a cycle, of the record that the checks insert. Producers stay below it.
pub const PROBE: i64 = 900_000;

/// A record's place in the log.
pub type Place = (i32, i64);

/// Everything the clients know.
#[derive(Debug, Default)]
pub struct Ledger {
    cycles: i64,
    acknowledged: HashSet<i64>,
    /// Sent, but the connection broke before the answer: may be there or not, but for good.
    in_flight: HashSet<i64>,
    /// Where checks have seen each record.
    places: HashMap<i64, Place>,
}

impl Ledger {
    /// Ids for another cycle.
    pub fn begin_cycle(&mut self) -> Cycle {
        self.cycles += 1;
        self.cycle()
    }

    /// The present cycle.
    pub fn cycle(&self) -> Cycle {
        Cycle {
            first_id: self.cycles * IDS_PER_CYCLE,
        }
    }

    /// Notes what a cycle's producers have written.
    pub fn add(&mut self, written: Written) {
        self.acknowledged.extend(written.acknowledged);
        self.in_flight.extend(written.in_flight);
    }

    /// How many records were acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.len() as u64
    }

    /// How many records that were not acknowledged turned out to be there.
    pub fn kept_in_flight(&self) -> usize {
        self.in_flight
            .iter()
            .filter(|id| self.places.contains_key(id))
            .count()
    }

    /// Acknowledged ids from `first` on.
    pub fn acknowledged_from(&self, first: i64) -> impl Iterator<Item = i64> {
        self.acknowledged
            .iter()
            .copied()
            .filter(move |id| *id >= first)
    }

    /// Whether a client has ever sent this id.
    pub fn was_sent(&self, id: i64) -> bool {
        self.acknowledged.contains(&id) || self.in_flight.contains(&id)
    }

    /// Notes a record's place; answers the place it had before if that was another one.
    pub fn place(&mut self, id: i64, place: Place) -> Option<Place> {
        self.places
            .insert(id, place)
            .filter(|before| *before != place)
    }

    /// Records with an id below `first` that checks have seen: how many, and the sum of their ids.
    pub fn seen_before(&self, first: i64) -> (usize, i128) {
        let earlier = self.places.keys().filter(|id| **id < first);
        earlier.fold((0, 0), |(count, sum), id| {
            (count + 1, sum + i128::from(*id))
        })
    }
}
