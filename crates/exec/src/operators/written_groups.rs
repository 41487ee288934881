//! Which groups the database has as memory has them, as far as finished checkpoints go.
//!
//! What a checkpoint has taken is not written before it has finished, and one that fails leaves what it took to the next. So each group has
//! the number of the checkpoint that took it last; it is written once that one, or a later one, has finished.

use super::group_array::{fit, renumber};

/// See the module. Groups that changed since they were taken are known elsewhere.
#[derive(Debug, Default)]
pub struct WrittenGroups {
    taken_by: Vec<u32>,
    /// The checkpoint that has begun last.
    begun: u32,
    /// The one that has finished last.
    finished: u32,
    /// Groups that were taken and are not written.
    waiting: usize,
}

impl WrittenGroups {
    /// Bytes that a group takes here.
    pub const GROUP_BYTES: usize = size_of::<u32>();

    /// Makes room for groups below `groups`, or gives back that of the others.
    pub fn make_room(&mut self, groups: usize) {
        fit(&mut self.taken_by, groups);
    }

    /// A checkpoint begins.
    pub fn begin(&mut self) {
        self.begun += 1;
    }

    /// The checkpoint that began last takes a group.
    pub fn take(&mut self, group: u32) {
        let taken_by = &mut self.taken_by[group as usize];
        if *taken_by <= self.finished {
            self.waiting += 1;
        }
        *taken_by = self.begun;
    }

    /// The checkpoint that began last has finished.
    pub fn finish(&mut self) {
        self.finished = self.begun;
        self.waiting = 0;
    }

    /// The number of a group belongs to another one from now on.
    pub fn forget(&mut self, group: u32) {
        let taken_by = &mut self.taken_by[group as usize];
        if *taken_by > self.finished {
            self.waiting = self.waiting.saturating_sub(1);
        }
        *taken_by = 0;
    }

    /// A group gets another number, which is free.
    pub fn renumber(&mut self, from: u32, to: u32) {
        renumber(&mut self.taken_by, from, to);
    }

    /// Whether what was taken of a group last is in the database.
    pub fn contains(&self, group: u32) -> bool {
        self.taken_by[group as usize] <= self.finished
    }

    /// Groups that were taken and are not written.
    pub fn waiting(&self) -> usize {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failed_checkpoint_took_is_written_by_the_next() {
        let mut written = WrittenGroups::default();
        written.make_room(3);
        written.begin();
        written.take(0);
        written.take(1);
        assert!(!written.contains(0) && written.contains(2));
        // It failed; another one takes what changed since.
        written.begin();
        written.take(1);
        written.forget(0);
        assert_eq!(written.waiting(), 1);
        assert!(!written.contains(1) && written.contains(0));
        written.finish();
        assert!(written.contains(1));
        assert_eq!(written.waiting(), 0);
    }
}
