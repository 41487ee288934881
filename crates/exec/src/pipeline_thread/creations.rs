//! Queries on their way into the pipeline.

use std::sync::{Arc, mpsc};

use highwater_planner::catalog::QueryId;

use super::{PipelineThread, answer};
use crate::{
    catch_up::CatchUpThread,
    engine::PersistentQuery,
    error::{ExecError, ExecResult, with_causes},
};

impl PipelineThread {
    /// Creates a query, or lets it catch up beside the steps first; `reply` hears of the end.
    pub(super) fn create(
        &mut self,
        query: PersistentQuery,
        reply: mpsc::SyncSender<ExecResult<()>>,
    ) {
        match self.pipeline.begin_query(query) {
            Ok(None) => answer(Some(reply), Ok(())),
            Ok(Some(catching_up)) => {
                let started = CatchUpThread::start(
                    catching_up,
                    Arc::clone(&self.pipeline.log),
                    self.pipeline.state.clone(),
                    Arc::clone(&self.pipeline.shared),
                    self.pipeline.options.catch_up_tail,
                    reply.clone(),
                );
                match started {
                    Ok(thread) => {
                        self.pipeline.catching_up.push(thread);
                        if let Err(error) = self.pipeline.hold_inputs() {
                            tracing::warn!(
                                error = with_causes(&error),
                                "retention may overtake a query that catches up"
                            );
                        }
                    }
                    Err(error) => answer(Some(reply), Err(error)),
                }
            }
            Err(error) => answer(Some(reply), Err(error)),
        }
    }

    /// Takes in one query that has caught up, if the steps have come as far; answers whether it did.
    pub(super) fn take_in_query(&mut self) -> ExecResult<bool> {
        let ready = self
            .caught_up
            .iter()
            .position(|query| !self.pipeline.stands_before(query));
        let Some(position) = ready else {
            return Ok(false);
        };
        self.wait_for_commit()?;
        let trouble = self.wait_for_checkpoint()?;
        let catching_up = self.caught_up.remove(position);
        let reply = self.end_catch_up(catching_up.query.definition.id);
        let done = match trouble {
            Ok(()) => self.pipeline.take_in(catching_up),
            Err(trouble) => {
                self.pipeline.give_up_catching_up(catching_up);
                Err(trouble)
            }
        };
        answer(reply, done);
        self.pipeline.shared.signal_input();
        Ok(true)
    }

    /// Forgets a catch-up whose thread has ended; answers who waits for its query.
    pub(super) fn end_catch_up(
        &mut self,
        query: QueryId,
    ) -> Option<mpsc::SyncSender<ExecResult<()>>> {
        let threads = &mut self.pipeline.catching_up;
        let position = threads.iter().position(|thread| thread.query == query)?;
        Some(threads.remove(position).join())
    }

    /// Waits for all catch-ups, which give up since the engine stops, and tells who waits for them.
    pub(super) fn end_catch_ups(&mut self) {
        for thread in std::mem::take(&mut self.pipeline.catching_up) {
            let stopped = self.pipeline.shared.stopped();
            let reason = stopped.unwrap_or_else(|| "it is shutting down".into());
            answer(Some(thread.join()), Err(ExecError::Stopped(reason)));
        }
    }
}
