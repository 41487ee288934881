//! The thread that owns the pipeline: waits for input, commands and the disk, and moves the steps.
//!
//! While a step waits for the disk the next one may run, but no further: it appends only once its predecessor has committed. Commands take
//! effect between two steps, when nothing is pending.

mod checkpoints;
mod creations;

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use highwater_planner::catalog::QueryId;
use highwater_storage_log::Log;

use crate::{
    backup::FrozenState,
    catch_up::CatchingUp,
    checkpoint::{CheckpointDone, CheckpointWork},
    committer::when_durable,
    engine::{EngineOptions, PersistentQuery},
    error::{ExecError, ExecResult, with_causes},
    feed::SubscriptionId,
    pipeline::Pipeline,
    resume::SettledJournal,
    shared::Shared,
    subscribe::Joining,
};

/// Counters are published at most this often while steps follow each other.
const STATUS_INTERVAL: Duration = Duration::from_millis(100);

/// Groups that a checkpoint takes at a time: some milliseconds, in which no step runs.
const SAVED_GROUPS: usize = 65_536;

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
    /// A query has caught up beside the steps, or failed to.
    CaughtUp(Box<CatchingUp>, ExecResult<()>),
    /// A change of the queries.
    Command(Command, mpsc::SyncSender<ExecResult<()>>),
    /// A push query wants to join.
    Join(Box<Joining>),
    /// Somebody wants to know from the journal where everything stands.
    Mark(mpsc::SyncSender<ExecResult<SettledJournal>>),
    /// A push query's reader has gone.
    Unsubscribe(SubscriptionId),
}

/// A change of the queries.
pub enum Command {
    /// Adds a query.
    Create(Box<PersistentQuery>),
    /// Gives a query another plan.
    Replace(Box<PersistentQuery>),
    /// Removes a query.
    Drop(QueryId),
    /// Stops a query from reading.
    Pause(QueryId),
    /// Lets a query go on.
    Resume(QueryId),
    /// Writes a checkpoint for a backup and hands it over at that moment: no step runs, and no group of batches is half appended.
    Freeze(Box<dyn FnOnce(FrozenState) + Send>),
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
            let recovered = Pipeline::recover(log, options, Arc::clone(&shared), queries);
            let recovered = recovered.map(|pipeline| PipelineThread {
                pipeline,
                durable: BTreeSet::new(),
                events,
                deferred: VecDeque::new(),
                caught_up: Vec::new(),
                background: Background::Idle,
                last_checkpoint: Instant::now(),
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
                            thread.pipeline.checkpoints.note_damage(&error);
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

/// Tells the outcome; whoever asked may have gone.
fn answer(reply: Option<mpsc::SyncSender<ExecResult<()>>>, done: ExecResult<()>) {
    if let Some(reply) = reply {
        let _ = reply.send(done);
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
    /// It has begun and takes the state, some of it after each step.
    Saving(Box<CheckpointWork>),
    /// It is written on a thread of its own, and takes so many bytes until then.
    Running(JoinHandle<()>, usize),
}

struct PipelineThread {
    pipeline: Pipeline,
    /// Steps of which everything is on disk that they wait for, and which have not been appended by then.
    durable: BTreeSet<u64>,
    events: mpsc::Receiver<Event>,
    /// Events that came in while something else was waited for, oldest first.
    deferred: VecDeque<Event>,
    /// Queries that wait to be taken in between two steps.
    caught_up: Vec<CatchingUp>,
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
            moved |= self.save_some(SAVED_GROUPS)?;
            moved |= self.take_in_query()?;
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
            let wait = match self.pipeline.catching_up.is_empty() {
                true => self.until_checkpoint(),
                false => self.until_checkpoint().min(STATUS_INTERVAL),
            };
            match self.events.recv_timeout(wait) {
                Ok(event) => {
                    if self.handle(event)? == Flow::Stop {
                        return Ok(());
                    }
                    status_due = true;
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    status_due |= !self.pipeline.catching_up.is_empty();
                    if self.last_checkpoint.elapsed() >= self.pipeline.options.checkpoint_interval {
                        self.begin_checkpoint()?;
                    }
                }
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
        when_durable(&*self.pipeline.log, partitions, move |synced| {
            shared.send(Event::Durable(step, synced));
        });
        let output = self.pipeline.run_step(cut)?;
        self.wait_for_commit()?;
        self.pipeline.append_step(output)?;
        self.commit_if_durable()?;
        self.keep_to_budget()?;
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
            Event::Mark(reply) => {
                self.wait_for_commit()?;
                // Whoever asked may have gone.
                let _ = reply.send(self.pipeline.mark_journal());
            }
            Event::Unsubscribe(id) => self.pipeline.end_subscription(id, "it was ended".into()),
            Event::CheckpointTrouble(_) => {}
            Event::CaughtUp(catching_up, Ok(())) => self.caught_up.push(*catching_up),
            Event::CaughtUp(catching_up, Err(error)) => {
                let reply = self.end_catch_up(catching_up.query.definition.id);
                self.pipeline.give_up_catching_up(*catching_up);
                answer(reply, Err(error));
            }
            Event::Command(command, reply) => {
                self.wait_for_commit()?;
                let flow = match command {
                    Command::Stop => Flow::Stop,
                    _ => Flow::Continue,
                };
                match self.wait_for_checkpoint()? {
                    Ok(()) => self.command(command, reply),
                    Err(trouble) => answer(Some(reply), Err(trouble)),
                }
                self.pipeline.shared.signal_input();
                return Ok(flow);
            }
        }
        Ok(Flow::Continue)
    }

    fn command(&mut self, command: Command, reply: mpsc::SyncSender<ExecResult<()>>) {
        let done = match command {
            Command::Create(query) => return self.create(*query, reply),
            Command::Replace(query) => self.pipeline.replace_query(*query),
            Command::Drop(id) => self.pipeline.drop_query(id),
            Command::Pause(id) => self.pipeline.pause_query(id),
            Command::Resume(id) => self.pipeline.resume_query(id),
            Command::Freeze(note) => self.pipeline.freeze().map(|state| {
                let _all_or_none = self.pipeline.shared.groups.exclude();
                note(state);
            }),
            Command::Stop => self.pipeline.checkpoint_now(),
        };
        answer(Some(reply), done);
    }

    fn durable(&mut self, step: u64, synced: ExecResult<()>) -> ExecResult<()> {
        synced?;
        self.durable.insert(step);
        self.commit_if_durable()
    }

    /// Commits the pending step if what it waits for is on disk.
    fn commit_if_durable(&mut self) -> ExecResult<()> {
        let pending = self.pipeline.pending.as_ref().map(|pending| pending.step);
        if pending.is_some_and(|step| self.durable.remove(&step)) {
            self.pipeline.commit_step()?;
        }
        Ok(())
    }

    /// Waits until the pending step has committed. Other events are handled after it.
    fn wait_for_commit(&mut self) -> ExecResult<()> {
        self.wait_until(|thread, _| thread.pipeline.pending.is_none())
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

    /// Waits for the threads that still hold the log or the state.
    fn join_threads(&mut self) {
        self.join_checkpoint();
        self.end_catch_ups();
    }

    /// After a fatal error: readers keep the last snapshot, everybody else is told.
    fn refuse_everything(&mut self, reason: &str) {
        for subscription in std::mem::take(&mut self.pipeline.subscriptions) {
            let mut receiver = subscription.receiver;
            receiver.closed(format!("the engine has stopped: {reason}"));
        }
        // Whoever asked for something that was put off hears of it too: the answers go with the events.
        self.deferred.clear();
        self.caught_up.clear();
        self.end_catch_ups();
        // The engine's owner may have asked to stop before the error came: then nobody is left to be told.
        while !self.pipeline.shared.is_asked_to_stop() {
            if let Ok(Event::Command(_, reply)) = self.events.recv_timeout(STATUS_INTERVAL) {
                let _ = reply.send(Err(ExecError::Stopped(reason.to_owned())));
            }
        }
    }
}
