//! Groups, each once, with a quick answer whether one is among them.

use super::group_array::fit;

/// See the module. Taking one out leaves its place in the list, which is passed over later.
#[derive(Debug, Default)]
pub struct MarkedGroups {
    list: Vec<u32>,
    marks: Vec<bool>,
    len: usize,
}

impl MarkedGroups {
    /// Bytes that a group takes here, be it in or not.
    pub const GROUP_BYTES: usize = size_of::<bool>();

    /// Makes room for groups below `groups`, or gives back that of the others, which are not in.
    pub fn make_room(&mut self, groups: usize) {
        if groups < self.marks.len() {
            self.close_gaps();
        }
        fit(&mut self.marks, groups);
    }

    /// Puts a group in.
    pub fn insert(&mut self, group: u32) {
        if !std::mem::replace(&mut self.marks[group as usize], true) {
            self.list.push(group);
            self.len += 1;
        }
    }

    /// Whether a group is in.
    pub fn contains(&self, group: u32) -> bool {
        self.marks[group as usize]
    }

    /// Takes a group out; answers whether it was in.
    pub fn remove(&mut self, group: u32) -> bool {
        let was_in = std::mem::take(&mut self.marks[group as usize]);
        self.len -= usize::from(was_in);
        was_in
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.len
    }

    /// A group gets another number, which is free.
    pub fn renumber(&mut self, from: u32, to: u32) {
        if self.remove(from) {
            self.insert(to);
        }
    }

    /// Takes any group out.
    pub fn pop(&mut self) -> Option<u32> {
        while let Some(group) = self.list.pop() {
            if self.remove(group) {
                return Some(group);
            }
        }
        None
    }

    /// Gives back the memory of the places that groups left.
    pub fn close_gaps(&mut self) {
        let marks = &self.marks;
        self.list.retain(|&group| marks[group as usize]);
        self.list.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_group_comes_out_once() {
        let mut groups = MarkedGroups::default();
        groups.make_room(4);
        for group in [0, 2, 2, 3] {
            groups.insert(group);
        }
        assert!(groups.remove(2));
        assert!(!groups.remove(2));
        groups.insert(2);
        groups.close_gaps();
        groups.remove(0);
        assert_eq!(groups.len(), 2);
        assert!(!groups.contains(0));
        assert_eq!(groups.pop(), Some(2));
        assert_eq!(groups.pop(), Some(3));
        assert_eq!(groups.pop(), None);
    }
}
