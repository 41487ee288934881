//! Cancel requests: a second connection that names a session and proves that it knows its secret.
//!
//! A request raises a signal that the session's loop sees while a statement runs; the loop ignores signals that came while it was idle.
//! Nothing tells the requester whether its key was right.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;

/// Bytes of the secret in protocol 3.0, which has room for no more.
const SHORT_SECRET_BYTES: usize = 4;
/// Bytes of the secret from protocol 3.2 on.
const LONG_SECRET_BYTES: usize = 32;

/// The sessions that can be cancelled.
#[derive(Debug, Default)]
pub(super) struct CancelRegistry {
    sessions: Mutex<HashMap<i32, Entry>>,
    last: AtomicI32,
}

#[derive(Debug)]
struct Entry {
    secret: Bytes,
    signal: watch::Sender<u64>,
}

impl CancelRegistry {
    /// Gives a new session its process id and secret.
    pub(super) fn register(self: &Arc<Self>, long_secret: bool) -> Registration {
        let secret = random_secret(long_secret);
        let (signal, cancelled) = watch::channel(0);
        let mut sessions = self.sessions.lock();
        let process_id = loop {
            let candidate = self.last.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & i32::MAX;
            if candidate != 0 && !sessions.contains_key(&candidate) {
                break candidate;
            }
        };
        sessions.insert(
            process_id,
            Entry {
                secret: secret.clone(),
                signal,
            },
        );
        Registration {
            registry: Arc::clone(self),
            process_id,
            secret,
            cancelled,
        }
    }

    /// Cancels what the session runs, if the secret is right; answers whether it was.
    pub(super) fn cancel(&self, process_id: i32, secret: &[u8]) -> bool {
        let sessions = self.sessions.lock();
        match sessions.get(&process_id) {
            Some(entry) if same_bytes(&entry.secret, secret) => {
                entry
                    .signal
                    .send_modify(|count| *count = count.wrapping_add(1));
                true
            }
            _ => false,
        }
    }
}

/// A session's place in the registry; it is given up on drop.
#[derive(Debug)]
pub(super) struct Registration {
    registry: Arc<CancelRegistry>,
    /// What BackendKeyData calls the process id.
    pub(super) process_id: i32,
    /// What a cancel request must repeat.
    pub(super) secret: Bytes,
    /// Changes with each request.
    pub(super) cancelled: watch::Receiver<u64>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.sessions.lock().remove(&self.process_id);
    }
}

fn random_secret(long: bool) -> Bytes {
    if long {
        Bytes::copy_from_slice(&rand::random::<[u8; LONG_SECRET_BYTES]>())
    } else {
        Bytes::copy_from_slice(&rand::random::<[u8; SHORT_SECRET_BYTES]>())
    }
}

/// Compares without telling by its duration where the first difference is.
fn same_bytes(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left
            .iter()
            .zip(right)
            .fold(0, |difference, (a, b)| difference | (a ^ b))
            == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_secret_cancels() {
        let registry = Arc::new(CancelRegistry::default());
        let one = registry.register(false);
        let two = registry.register(true);
        assert_ne!(one.process_id, two.process_id);
        assert_eq!((one.secret.len(), two.secret.len()), (4, 32));

        assert!(!registry.cancel(one.process_id, &two.secret));
        assert!(!registry.cancel(one.process_id, &one.secret[..3]));
        assert!(!registry.cancel(one.process_id + 100, &one.secret));
        assert!(!one.cancelled.has_changed().unwrap());
        assert!(registry.cancel(one.process_id, &one.secret));
        assert!(one.cancelled.has_changed().unwrap());
        assert!(!two.cancelled.has_changed().unwrap());
    }

    #[test]
    fn a_session_that_ended_cannot_be_cancelled() {
        let registry = Arc::new(CancelRegistry::default());
        let session = registry.register(false);
        let (process_id, secret) = (session.process_id, session.secret.clone());
        drop(session);
        assert!(!registry.cancel(process_id, &secret));
        assert!(registry.sessions.lock().is_empty());
    }
}
