//! What a connection keeps by name: prepared statements and portals, bounded in number and in bytes.
//!
//! The unnamed one (the empty name) counts like any other, but replacing it is always allowed to take its room first.

use std::collections::HashMap;

/// Values by name.
#[derive(Debug)]
pub(super) struct Named<T> {
    by_name: HashMap<String, Entry<T>>,
    bytes: usize,
    limits: NamedLimits,
}

#[derive(Debug)]
struct Entry<T> {
    value: T,
    bytes: usize,
}

/// How much may be kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedLimits {
    /// Most values.
    pub(super) values: usize,
    /// Most bytes of the client that they hold.
    pub(super) bytes: usize,
}

/// Which limit would be passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// The number of values.
    Values(usize),
    /// Their bytes.
    Bytes(usize),
}

impl<T> Named<T> {
    /// Nothing yet.
    pub(super) fn new(limits: NamedLimits) -> Self {
        Self {
            by_name: HashMap::new(),
            bytes: 0,
            limits,
        }
    }

    /// The value of this name.
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.by_name.get(name).map(|entry| &entry.value)
    }

    /// The value of this name.
    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.by_name.get_mut(name).map(|entry| &mut entry.value)
    }

    /// Keeps a value that holds so many bytes, in place of the one that had its name.
    pub(super) fn insert(&mut self, name: String, value: T, bytes: usize) -> Result<(), Full> {
        self.remove(&name);
        if self.by_name.len() >= self.limits.values {
            return Err(Full::Values(self.limits.values));
        }
        if self.bytes + bytes > self.limits.bytes {
            return Err(Full::Bytes(self.limits.bytes));
        }
        self.bytes += bytes;
        self.by_name.insert(name, Entry { value, bytes });
        Ok(())
    }

    /// Forgets one; answers whether it was there.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        match self.by_name.remove(name) {
            Some(entry) => {
                self.bytes -= entry.bytes;
                true
            }
            None => false,
        }
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.by_name.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_and_bytes_are_bounded_and_given_back() {
        let mut named = Named::new(NamedLimits {
            values: 2,
            bytes: 10,
        });
        assert_eq!(named.insert("a".into(), 1, 6), Ok(()));
        assert_eq!(named.insert("b".into(), 2, 5), Err(Full::Bytes(10)));
        assert_eq!(named.insert("b".into(), 2, 4), Ok(()));
        assert_eq!(named.insert("c".into(), 3, 0), Err(Full::Values(2)));
        assert_eq!((named.get("a"), named.get("c")), (Some(&1), None));
        // A value of the same name makes room for its successor.
        assert_eq!(named.insert("a".into(), 4, 1), Ok(()));
        assert_eq!(named.insert("b".into(), 5, 9), Ok(()));
        assert!(named.remove("a") && !named.remove("a"));
        named.clear();
        assert_eq!(named.insert("d".into(), 6, 10), Ok(()));
    }
}
