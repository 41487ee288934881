//! Which groups to let go first: a second chance for each that was named since the hand last came by.
//!
//! One byte a group and a hand that goes round: naming a group sets a mark and moves nothing, so what is named all the time stays at no cost.

use super::group_array::{fit, renumber};

/// See the module.
#[derive(Debug, Default)]
pub struct Clock {
    marks: Vec<Mark>,
    hand: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// No group has this number.
    #[default]
    Free,
    /// Not named since the hand came by.
    Idle,
    /// Named since then.
    Named,
}

impl Clock {
    /// Bytes that a group takes here.
    pub const GROUP_BYTES: usize = size_of::<Mark>();

    /// Makes room for groups below `groups`, or gives back that of the others.
    pub fn make_room(&mut self, groups: usize) {
        fit(&mut self.marks, groups);
    }

    /// A group is named.
    pub fn name(&mut self, group: u32) {
        self.marks[group as usize] = Mark::Named;
    }

    /// A group is gone; its number may belong to another one later.
    pub fn remove(&mut self, group: u32) {
        self.marks[group as usize] = Mark::Free;
    }

    /// A group gets another number, which is free.
    pub fn renumber(&mut self, from: u32, to: u32) {
        renumber(&mut self.marks, from, to);
    }

    /// Whether a group has this number.
    pub fn has(&self, group: u32) -> bool {
        self.marks[group as usize] != Mark::Free
    }

    /// Steps of the hand that bring it to each group twice: to take the mark, and to find it without one.
    pub fn two_rounds(&self) -> usize {
        2 * self.marks.len()
    }

    /// Moves the hand by one; answers the group there if it was not named since the last time.
    pub fn advance(&mut self) -> Option<u32> {
        if self.hand >= self.marks.len() {
            self.hand = 0;
        }
        let at = self.hand;
        let mark = self.marks.get_mut(at)?;
        self.hand += 1;
        match *mark {
            Mark::Free => None,
            Mark::Idle => Some(at as u32),
            Mark::Named => {
                *mark = Mark::Idle;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_again_stays_longest() {
        let mut clock = Clock::default();
        assert_eq!(clock.advance(), None);
        clock.make_room(4);
        for group in [0, 1, 3] {
            clock.name(group);
        }
        assert!(clock.has(3) && !clock.has(2));
        // The first round takes the marks away.
        assert_eq!([(); 4].map(|()| clock.advance()), [None; 4]);
        clock.name(0);
        clock.remove(3);
        assert_eq!(
            [(); 5].map(|()| clock.advance()),
            [None, Some(1), None, None, Some(0)]
        );
        assert_eq!(clock.two_rounds(), 8);
    }
}
