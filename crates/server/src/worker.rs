//! Threads that run pull queries, apart from the threads that talk to clients.
//!
//! A long scan then delays other scans, never a Ping or a push query's rows.

use std::future::Future;

use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::oneshot,
    task::JoinHandle,
};

use crate::{error::ServerError, session::SessionResult, sqlstate::SqlError};

/// The threads. Dropping it ends them without waiting for what they run.
#[derive(Debug)]
pub struct Workers {
    runtime: Option<Runtime>,
    handle: Handle,
}

/// A task on the workers that is aborted when its owner goes away.
#[derive(Debug)]
pub struct WorkerTask(JoinHandle<()>);

impl Workers {
    /// Starts `threads` threads.
    pub fn start(threads: usize) -> Result<Self, ServerError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("pull-worker")
            .enable_time()
            .build()
            .map_err(|source| ServerError::System {
                action: "start the threads for pull queries",
                source,
            })?;
        let handle = runtime.handle().clone();
        Ok(Self {
            runtime: Some(runtime),
            handle,
        })
    }

    /// Runs work on the workers and waits for its outcome; when the waiting ends early, the work does too.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = SessionResult<T>> + Send + 'static,
    ) -> SessionResult<T> {
        let (sender, receiver) = oneshot::channel();
        let _task = self.spawn(async move {
            // Nobody waits any more when the receiver is gone.
            let _ = sender.send(work.await);
        });
        receiver
            .await
            .map_err(|_| SqlError::internal("the query ended early; the log tells why"))?
    }

    /// Runs a task until it ends or its [`WorkerTask`] is dropped.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> WorkerTask {
        WorkerTask(self.handle.spawn(task))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for WorkerTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
