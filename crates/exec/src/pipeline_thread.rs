//! The thread that owns the pipeline: waits for input, commands and the disk, and moves the steps.
//!
//! While a step waits for the disk the next one may run, but no further: it appends only once its predecessor has committed. Commands take
//! effect between two steps, when nothing is pending.

use std::{
    collections::VecDeque,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use highwater_planner::catalog::QueryId;
use highwater_storage_log::Log;

use crate::{
    checkpoint::CheckpointDone,
    committer::{self, SyncRequest},
    engine::{EngineOptions, PersistentQuery},
    error::{ExecError, ExecResult, with_causes},
    feed::SubscriptionId,
    pipeline::Pipeline,
    shared::Shared,
    subscribe::Joining,
};

/// Counters are published at most this often while steps follow each other.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);

/// How long a failed checkpoint waits before it is tried again.
const CHECKPOINT_RETRY: Duration = Duration::from_secs(1);

/// What wakes the pipeline.
pub enum Event {
    /// A watched topic has new records.
    Input,
    /// A step's journal entry and inputs are on disk, or cannot be.
    Durable(u64, ExecResult<()>),
    /// A checkpoint is written, or the engine stopped before it could be.
    Checkpointed(ExecResult<CheckpointDone>),
    /// A checkpoint cannot be written at present; it is tried again.
    CheckpointTrouble(ExecError),
    /// A change of the queries.
    Command(Command, mpsc::SyncSender<ExecResult<()>>),
    /// A push query wants to join.
    Join(Box<Joining>),
    /// A push query's reader has gone.
    Unsubscribe(SubscriptionId),
}

/// A change of the queries.
pub enum Command {
    /// Adds a query.
    Create(Box<PersistentQuery>),
    /// Removes a query.
    Drop(QueryId),
    /// Stops a query from reading.
    Pause(QueryId),
    /// Lets a query go on.
    Resume(QueryId),
    /// Ends the thread, with a last checkpoint.
    Stop,
}

/// Recovers the pipeline on its own thread and starts to run it. Returns once it is ready.
pub fn start(
    log: Arc<dyn Log>,
    options: EngineOptions,
    queries: Vec<PersistentQuery>,
    shared: Arc<Shared>,
    events: mpsc::Receiver<Event>,
) -> ExecResult<JoinHandle<()>> {
    let (ready, is_ready) = mpsc::sync_channel(1);
    let handle = thread::Builder::new()
        .name("hw-pipeline".into())
        .spawn(move || {
            let _tells = TellsWhenGone(Arc::clone(&shared));
            let committer = {
                let shared = Arc::clone(&shared);
                committer::start(Arc::clone(&log), move |step, synced| {
                    shared.send(Event::Durable(step, synced));
                })
            };
            let recovered = committer.and_then(|(committer, commit_thread)| {
                let pipeline = Pipeline::recover(log, options, Arc::clone(&shared), queries)?;
                Ok(PipelineThread {
                    pipeline,
                    committer: Some(committer),
                    commit_thread: Some(commit_thread),
                    events,
                    deferred: VecDeque::new(),
                    background: Background::Idle,
                    last_checkpoint: Instant::now(),
                })
            });
            match recovered {
                Ok(mut thread) => {
                    let _ = ready.send(Ok(()));
                    // Records may have come in before the topics were watched.
                    shared.signal_input();
                    match thread.run() {
                        Ok(()) => shared.stop("it was shut down"),
                        Err(error) => {
                            let reason = with_causes(&error);
                            tracing::error!(reason, "the engine has stopped");
                            shared.stop(&reason);
                            thread.refuse_everything(&reason);
                        }
                    }
                    thread.join_threads();
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            }
        })
        .map_err(|source| ExecError::Io {
            action: "start",
            path: "pipeline thread".into(),
            source,
        })?;
    is_ready.recv().map_err(|_| {
        ExecError::Internal("the pipeline thread ended while it recovered".into())
    })??;
    Ok(handle)
}

/// Ends all waiting when the thread is gone, even by a panic.
struct TellsWhenGone(Arc<Shared>);

impl Drop for TellsWhenGone {
    fn drop(&mut self) {
        self.0.stop("its thread ended; the log tells why");
    }
}

fn join(thread: JoinHandle<()>) {
    if thread.join().is_err() {
        tracing::error!("a thread of the engine panicked");
    }
}

/// The checkpoint in the background.
enum Background {
    Idle,
    /// On a thread of its own.
    Running(JoinHandle<()>),
}

struct PipelineThread {
    pipeline: Pipeline,
    committer: Option<mpsc::Sender<SyncRequest>>,
    commit_thread: Option<JoinHandle<()>>,
    events: mpsc::Receiver<Event>,
    /// Events that came in while something else was waited for, oldest first.
    deferred: VecDeque<Event>,
    background: Background,
    last_checkpoint: Instant,
}

/// Whether the thread goes on.
#[derive(PartialEq, Eq)]
enum Flow {
    Continue,
    Stop,
}

impl PipelineThread {
    fn run(&mut self) -> ExecResult<()> {
        let mut last_status = Instant::now();
        let mut status_due = true;
        loop {
            let mut moved = self.step_if_input()?;
            while let Some(event) = self.waiting_event() {
                moved = true;
                if self.handle(event)? == Flow::Stop {
                    return Ok(());
                }
            }
            status_due |= moved;
            if status_due && (!moved || last_status.elapsed() >= STATUS_INTERVAL) {
                self.pipeline.publish_status();
                last_status = Instant::now();
                status_due = false;
            }
            if moved {
                continue;
            }
            match self.events.recv_timeout(self.until_checkpoint()) {
                Ok(event) => {
                    if self.handle(event)? == Flow::Stop {
                        return Ok(());
                    }
                    status_due = true;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => self.begin_checkpoint()?,
                Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    }

    /// The oldest event that waits, if one does.
    fn waiting_event(&mut self) -> Option<Event> {
        self.deferred
            .pop_front()
            .or_else(|| self.events.try_recv().ok())
    }

    /// Writes the checkpoint that the pipeline owes, if it can be written by now; answers whether steps may run.
    fn pay_checkpoint(&mut self) -> bool {
        if self.pipeline.owes_checkpoint && self.last_checkpoint.elapsed() >= CHECKPOINT_RETRY {
            self.last_checkpoint = Instant::now();
            self.pipeline.settle_change();
        }
        !self.pipeline.owes_checkpoint
    }

    /// Cuts and runs a step if something has arrived; answers whether it did.
    fn step_if_input(&mut self) -> ExecResult<bool> {
        if !self.pay_checkpoint() {
            return Ok(false);
        }
        if self.last_checkpoint.elapsed() >= self.pipeline.options.checkpoint_interval {
            self.begin_checkpoint()?;
        }
        self.pipeline.shared.clear_input_signal();
        let Some(cut) = self.pipeline.cut()? else {
            if self.pipeline.pending.is_none()
                && std::mem::take(&mut self.pipeline.moved_without_step)
            {
                self.pipeline
                    .shared
                    .publish(self.pipeline.current_snapshot());
            }
            return Ok(false);
        };
        let shared = Arc::clone(&self.pipeline.shared);
        let partitions = shared.until_there_is_room(|| self.pipeline.journal_step(&cut))?;
        let step = self.pipeline.step + 1;
        let sent = self
            .committer
            .as_ref()
            .map(|committer| committer.send(SyncRequest { step, partitions }));
        if !matches!(sent, Some(Ok(()))) {
            return Err(ExecError::Internal("the commit thread has ended".into()));
        }
        let output = self.pipeline.run_step(cut)?;
        self.wait_for_commit()?;
        self.pipeline.append_step(output)?;
        Ok(true)
    }

    fn handle(&mut self, event: Event) -> ExecResult<Flow> {
        match event {
            Event::Input => {}
            Event::Durable(step, synced) => self.durable(step, synced)?,
            Event::Checkpointed(done) => self.checkpointed(done)?,
            Event::Join(joining) => {
                self.wait_for_commit()?;
                self.pipeline.join(*joining)?;
                // What came in since the push query was asked for shall reach it.
                self.pipeline.shared.signal_input();
            }
            Event::Unsubscribe(id) => self.pipeline.end_subscription(id, "it was ended".into()),
            Event::CheckpointTrouble(_) => {}
            Event::Command(command, reply) => {
                self.wait_for_commit()?;
                let stop = matches!(command, Command::Stop);
                let done = match self.wait_for_checkpoint()? {
                    Ok(()) => self.command(command),
                    Err(trouble) => Err(trouble),
                };
                let _ = reply.send(done);
                self.pipeline.shared.signal_input();
                if stop {
                    return Ok(Flow::Stop);
                }
            }
        }
        Ok(Flow::Continue)
    }

    fn command(&mut self, command: Command) -> ExecResult<()> {
        match command {
            Command::Create(query) => self.pipeline.create_query(*query),
            Command::Drop(id) => self.pipeline.drop_query(id),
            Command::Pause(id) => self.pipeline.pause_query(id),
            Command::Resume(id) => self.pipeline.resume_query(id),
            Command::Stop => self.pipeline.checkpoint_now(),
        }
    }

    fn durable(&mut self, step: u64, synced: ExecResult<()>) -> ExecResult<()> {
        synced?;
        if self
            .pipeline
            .pending
            .as_ref()
            .is_some_and(|pending| pending.step == step)
        {
            self.pipeline.commit_step()?;
        }
        Ok(())
    }

    /// Waits until the pending step has committed. Other events are handled after it.
    fn wait_for_commit(&mut self) -> ExecResult<()> {
        self.wait_until(|thread, _| thread.pipeline.pending.is_none())
    }

    /// Waits for the checkpoint under way, if there is one. The inner error is why it cannot be written at present: a command that needs one
    /// fails with it, the pipeline goes on.
    fn wait_for_checkpoint(&mut self) -> ExecResult<ExecResult<()>> {
        let mut trouble = None;
        self.wait_until(|thread, event| {
            if let Some(Event::CheckpointTrouble(error)) = event {
                trouble = Some(error);
            }
            trouble.is_some() || matches!(thread.background, Background::Idle)
        })?;
        Ok(trouble.map_or(Ok(()), Err))
    }

    /// Takes events until `done`, which sees the ones that are not its own. All others are handled later.
    fn wait_until(&mut self, mut done: impl FnMut(&Self, Option<Event>) -> bool) -> ExecResult<()> {
        let mut unhandled = None;
        while !done(self, unhandled.take()) {
            let event = self
                .events
                .recv()
                .map_err(|_| ExecError::Internal("the event channel is closed".into()))?;
            match event {
                Event::Durable(step, synced) => self.durable(step, synced)?,
                Event::Checkpointed(finished) => self.checkpointed(finished)?,
                trouble @ Event::CheckpointTrouble(_) => unhandled = Some(trouble),
                other => self.deferred.push_back(other),
            }
        }
        Ok(())
    }

    fn until_checkpoint(&self) -> Duration {
        if self.pipeline.owes_checkpoint {
            return CHECKPOINT_RETRY;
        }
        match self.background {
            Background::Running(_) => self.pipeline.options.checkpoint_interval,
            Background::Idle => self
                .pipeline
                .options
                .checkpoint_interval
                .saturating_sub(self.last_checkpoint.elapsed()),
        }
    }

    /// Starts a checkpoint in the background, unless one is under way or nothing has happened since the last.
    fn begin_checkpoint(&mut self) -> ExecResult<()> {
        if matches!(self.background, Background::Running(_)) || self.pipeline.owes_checkpoint {
            return Ok(());
        }
        self.last_checkpoint = Instant::now();
        if !self.pipeline.changed_since_checkpoint() {
            return Ok(());
        }
        self.wait_for_commit()?;
        let work = self.pipeline.checkpoint_work(false)?;
        let store = self.pipeline.checkpoints.clone();
        let state = self.pipeline.state.clone();
        let log = Arc::clone(&self.pipeline.log);
        let shared = Arc::clone(&self.pipeline.shared);
        let thread = thread::Builder::new()
            .name("hw-checkpoint".into())
            .spawn(move || {
                let done = loop {
                    match store.write(&*log, &state, &work) {
                        Ok(done) => break Ok(done),
                        Err(error) if shared.is_stopping() => break Err(error),
                        Err(error) => {
                            tracing::error!(
                                error = with_causes(&error),
                                "could not write a checkpoint, will try again"
                            );
                            shared.send(Event::CheckpointTrouble(error));
                            thread::sleep(CHECKPOINT_RETRY);
                        }
                    }
                };
                // ORDER: whoever hears of the end joins this thread, and must not wait for what it frees.
                drop((log, state, work));
                shared.send(Event::Checkpointed(done));
            })
            .map_err(|source| ExecError::Io {
                action: "start",
                path: "checkpoint thread".into(),
                source,
            })?;
        self.background = Background::Running(thread);
        Ok(())
    }

    fn checkpointed(&mut self, done: ExecResult<CheckpointDone>) -> ExecResult<()> {
        self.join_checkpoint();
        match done {
            Ok(done) => self.pipeline.finish_checkpoint(done),
            // It was given up because the engine stops; the journal has what it would have held.
            Err(_) => Ok(()),
        }
    }

    /// Waits for the threads that still hold the log or the state.
    fn join_threads(&mut self) {
        self.committer = None;
        if let Some(thread) = self.commit_thread.take() {
            join(thread);
        }
        self.join_checkpoint();
    }

    /// Until its thread is gone, a checkpoint holds the state database open.
    fn join_checkpoint(&mut self) {
        if let Background::Running(thread) =
            std::mem::replace(&mut self.background, Background::Idle)
        {
            join(thread);
        }
    }

    /// After a fatal error: readers keep the last snapshot, everybody else is told.
    fn refuse_everything(&mut self, reason: &str) {
        for subscription in std::mem::take(&mut self.pipeline.subscriptions) {
            let mut receiver = subscription.receiver;
            receiver.closed(format!("the engine has stopped: {reason}"));
        }
        // The engine's owner may have asked to stop before the error came: then nobody is left to be told.
        while !self.pipeline.shared.is_asked_to_stop() {
            if let Ok(Event::Command(_, reply)) = self.events.recv_timeout(STATUS_INTERVAL) {
                let _ = reply.send(Err(ExecError::Stopped(reason.to_owned())));
            }
        }
    }
}
