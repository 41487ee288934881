//! When checkpoints are written: in the background every few seconds, and at once when the pipeline owes one.
//!
//! One in the background takes what tables and positions are at its beginning, and the operators' state bit by bit between the steps that follow,
//! so none of them waits long; then a thread of its own writes it.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use super::{Background, Event, PipelineThread, join};
use crate::{
    checkpoint::{CheckpointDone, CheckpointWork},
    error::{ExecError, ExecResult, with_causes},
};

/// How long a failed checkpoint waits before it is tried again.
const CHECKPOINT_RETRY: Duration = Duration::from_secs(1);

impl PipelineThread {
    /// Writes the checkpoint that the pipeline owes, if it can be written by now; answers whether steps may run.
    pub(super) fn pay_checkpoint(&mut self) -> bool {
        if self.pipeline.owes_checkpoint && self.last_checkpoint.elapsed() >= CHECKPOINT_RETRY {
            self.last_checkpoint = Instant::now();
            self.pipeline.settle_change();
        }
        !self.pipeline.owes_checkpoint
    }

    /// Waits for the checkpoint under way, if there is one. The inner error is why it cannot be written at present: a command that needs one
    /// fails with it, the pipeline goes on.
    pub(super) fn wait_for_checkpoint(&mut self) -> ExecResult<ExecResult<()>> {
        self.save_some(usize::MAX)?;
        let mut trouble = None;
        self.wait_until(|thread, event| {
            if let Some(Event::CheckpointTrouble(error)) = event {
                trouble = Some(error);
            }
            trouble.is_some() || matches!(thread.background, Background::Idle)
        })?;
        Ok(trouble.map_or(Ok(()), Err))
    }

    pub(super) fn until_checkpoint(&self) -> Duration {
        if self.pipeline.owes_checkpoint {
            return CHECKPOINT_RETRY;
        }
        match self.background {
            Background::Running(..) => self.pipeline.options.checkpoint_interval,
            Background::Saving(_) => Duration::ZERO,
            Background::Idle => self
                .pipeline
                .options
                .checkpoint_interval
                .saturating_sub(self.last_checkpoint.elapsed()),
        }
    }

    /// Begins a checkpoint in the background, unless one is under way or nothing has happened since the last.
    pub(super) fn begin_checkpoint(&mut self) -> ExecResult<()> {
        if !matches!(self.background, Background::Idle) || self.pipeline.owes_checkpoint {
            return Ok(());
        }
        self.last_checkpoint = Instant::now();
        if self.pipeline.owes_aborts {
            self.pipeline.abort_leftovers();
        }
        if !self.pipeline.changed_since_checkpoint() {
            return Ok(());
        }
        self.wait_for_commit()?;
        let work = self.pipeline.checkpoint_work(false)?;
        self.background = Background::Saving(Box::new(work));
        Ok(())
    }

    /// Keeps the steps to their memory: evicts, begins a checkpoint when much waits to be written, and waits for it when the steps are too far
    /// ahead of it.
    pub(super) fn keep_to_budget(&mut self) -> ExecResult<()> {
        let saving = self.saving();
        let unwritten = self.pipeline.keep_to_budget(saving);
        let idle = matches!(self.background, Background::Idle);
        if idle && self.pipeline.memory.should_write(unwritten) {
            return self.begin_checkpoint();
        }
        if !idle && self.pipeline.memory.should_wait(saving + unwritten) {
            // One that cannot be written at present is waited for no longer: steps go on as long as there is memory at all.
            if let Ok(()) = self.wait_for_checkpoint()? {
                self.pipeline.keep_to_budget(0);
            }
        }
        Ok(())
    }

    /// Bytes that the checkpoint under way takes.
    fn saving(&self) -> usize {
        match &self.background {
            Background::Idle => 0,
            Background::Saving(work) => work.memory(),
            Background::Running(_, bytes) => *bytes,
        }
    }

    /// Lets a checkpoint that has begun take so many more groups, and writes it once it has all; answers whether there was one.
    pub(super) fn save_some(&mut self, groups: usize) -> ExecResult<bool> {
        match std::mem::replace(&mut self.background, Background::Idle) {
            Background::Saving(mut work) => {
                if self.pipeline.checkpoint_more(&mut work, groups) {
                    self.write_in_background(*work)?;
                } else {
                    self.background = Background::Saving(work);
                }
                Ok(true)
            }
            other => {
                self.background = other;
                Ok(false)
            }
        }
    }

    fn write_in_background(&mut self, work: CheckpointWork) -> ExecResult<()> {
        let bytes = work.memory();
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
                            store.note_damage(&error);
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
        self.background = Background::Running(thread, bytes);
        Ok(())
    }

    pub(super) fn checkpointed(&mut self, done: ExecResult<CheckpointDone>) -> ExecResult<()> {
        self.join_checkpoint();
        match done {
            Ok(done) => self.pipeline.finish_checkpoint(done),
            // It was given up because the engine stops; the journal has what it would have held.
            Err(_) => Ok(()),
        }
    }

    /// Until its thread is gone, a checkpoint holds the state database open.
    pub(super) fn join_checkpoint(&mut self) {
        if let Background::Running(thread, _) =
            std::mem::replace(&mut self.background, Background::Idle)
        {
            join(thread);
        }
    }
}
