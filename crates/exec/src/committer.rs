//! Waits for the disk on behalf of the pipeline, so that the next step can run meanwhile.

use std::{
    sync::{Arc, mpsc},
    thread::JoinHandle,
};

use highwater_storage_log::{Log, Offset, TopicPartition};

use crate::error::{ExecError, ExecResult};

/// What has to be on disk before a step may commit.
pub struct SyncRequest {
    /// The step.
    pub step: u64,
    /// Journal and inputs.
    pub partitions: Vec<(TopicPartition, Offset)>,
}

/// Starts the thread; it ends when the sender is dropped. `done` is called for each request, in order.
pub fn start(
    log: Arc<dyn Log>,
    done: impl Fn(u64, ExecResult<()>) + Send + 'static,
) -> ExecResult<(mpsc::Sender<SyncRequest>, JoinHandle<()>)> {
    let (sender, requests) = mpsc::channel::<SyncRequest>();
    let thread = std::thread::Builder::new()
        .name("hw-commit".into())
        .spawn(move || {
            for request in requests {
                let synced = request
                    .partitions
                    .iter()
                    .try_for_each(|(partition, end)| log.sync(partition, *end));
                done(request.step, synced.map_err(ExecError::from));
            }
        })
        .map_err(|source| ExecError::Io {
            action: "start",
            path: "commit thread".into(),
            source,
        })?;
    Ok((sender, thread))
}
