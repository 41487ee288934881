//! Accepts connections, within bounds.
//!
//! Two bounds: sessions ([`Config::max_connections`](crate::config::Config), beyond which a client is told 53300) and connections that have
//! not said yet who they are ([`MAX_OPENINGS`]). When the second is full, the oldest of them is dropped: whoever opens sockets and sends
//! nothing can only push out others like it, since a real client is through in a millisecond.
//!
//! A panic within a session ends that session alone.

use std::{collections::BTreeMap, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, oneshot},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, error, info_span, warn};

use super::{
    cancel::CancelRegistry,
    connection::Connection,
    link::Link,
    metrics,
    outbound::{Outbound, Severity},
    startup::{self, Opening, Refusal, Startup},
};
use crate::{
    server::Server,
    session::Session,
    sqlstate::{SqlError, code},
};

/// Time from the first byte to a session.
const OPENING_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections without a session: far more than real clients have at one moment, and within the usual limit of 1024 open files.
const MAX_OPENINGS: usize = 256;
/// Pause after a failed accept (no file descriptor is left, mostly).
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time that sessions have to tell their clients of the server's end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Serves PostgreSQL clients until `shutdown` is cancelled, then ends every session with 57P01.
pub async fn serve(listener: TcpListener, server: Arc<Server>, shutdown: CancellationToken) {
    let sessions = Semaphore::new(server.config.max_connections);
    let shared = Arc::new(Shared {
        server,
        cancels: Arc::default(),
        sessions,
        openings: Openings::default(),
    });
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            Some(_) = tasks.join_next(), if !tasks.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => {
                    let connection = run_guarded(Arc::clone(&shared), socket, shutdown.clone());
                    tasks.spawn(connection.instrument(info_span!("connection", %peer, pid = tracing::field::Empty)));
                }
                Err(error) => {
                    warn!(%error, "could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let drained = timeout(DRAIN_TIMEOUT, async {
        while tasks.join_next().await.is_some() {}
    })
    .await;
    if drained.is_err() {
        warn!(sessions = tasks.len(), "sessions did not end in time");
    }
}

/// What all connections share.
struct Shared {
    server: Arc<Server>,
    cancels: Arc<CancelRegistry>,
    sessions: Semaphore,
    openings: Openings,
}

/// One connection from accept to close; a panic is caught here.
async fn run_guarded(shared: Arc<Shared>, socket: TcpStream, shutdown: CancellationToken) {
    if let Err(panic) = AssertUnwindSafe(run(shared, socket, shutdown))
        .catch_unwind()
        .await
    {
        metrics::panicked();
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        error!(message, "a session panicked and was ended");
    }
}

async fn run(shared: Arc<Shared>, mut socket: TcpStream, shutdown: CancellationToken) {
    if let Err(error) = socket.set_nodelay(true) {
        debug!(%error, "could not set TCP_NODELAY");
    }
    let (opening, evicted) = shared.openings.enter();
    let opened = tokio::select! {
        biased;
        _ = evicted => return,
        () = shutdown.cancelled() => return,
        opened = timeout(OPENING_TIMEOUT, startup::open(&mut socket)) => opened,
    };
    drop(opening);
    match opened {
        Ok(Ok(Opening::Cancel { process_id, secret })) => {
            let known = shared.cancels.cancel(process_id, &secret);
            debug!(process_id, known, "cancel request");
        }
        Ok(Ok(Opening::Session(startup))) => run_session(&shared, socket, startup, shutdown).await,
        Ok(Err(Refusal::Error(error))) => refuse(socket, &error).await,
        Ok(Err(Refusal::Silent)) | Err(_) => {}
    }
}

async fn run_session(
    shared: &Shared,
    socket: TcpStream,
    startup: Startup,
    shutdown: CancellationToken,
) {
    let Ok(_permit) = shared.sessions.try_acquire() else {
        metrics::refused();
        refuse(socket, &too_many(shared.server.config.max_connections)).await;
        return;
    };
    let _open = metrics::OpenSession::begin();
    let registration = shared.cancels.register(startup.minor >= 2);
    tracing::Span::current().record("pid", registration.process_id);

    let mut parameters = startup.parameters;
    parameters.backend_pid = registration.process_id;
    let started = timeout(
        OPENING_TIMEOUT,
        Session::start(Arc::clone(&shared.server), parameters),
    )
    .await;
    let session = match started {
        Ok(Ok(session)) => session,
        Ok(Err(error)) => return refuse(socket, &error).await,
        Err(_) => {
            return refuse(
                socket,
                &SqlError::new(
                    code::CANNOT_CONNECT_NOW,
                    "the session did not start in time",
                ),
            )
            .await;
        }
    };
    let (reading, writing) = socket.into_split();
    let link = Link::new(reading, registration.cancelled.clone(), shutdown);
    let mut connection = Connection::new(session, link, Outbound::new(writing));
    match connection.greet(&registration, startup.minor, startup.negotiate) {
        Ok(()) => connection.run().await,
        Err(error) => error!(%error, "could not greet a client"),
    }
}

/// Tells a client why it gets no session.
async fn refuse(socket: TcpStream, error: &SqlError) {
    metrics::error(error.code);
    let (_reading, writing) = socket.into_split();
    let mut outbound = Outbound::new(writing);
    if outbound.push_error(Severity::Fatal, error).is_ok() {
        // A client that does not read its refusal does not need it.
        let _ = timeout(OPENING_TIMEOUT, outbound.flush()).await;
    }
}

fn too_many(bound: usize) -> SqlError {
    SqlError::new(
        code::TOO_MANY_CONNECTIONS,
        "sorry, too many clients already",
    )
    .with_detail(format!("max_connections is {bound}"))
    .with_hint("use a connection pool, or raise max_connections")
}

/// The connections that have not said who they are, oldest first.
#[derive(Default)]
struct Openings {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    last: u64,
    by_age: BTreeMap<u64, oneshot::Sender<()>>,
}

impl Openings {
    /// Takes a place, from the oldest if none is free. The receiver ends when this place is taken in turn.
    fn enter(&self) -> (OpeningPlace<'_>, oneshot::Receiver<()>) {
        let (place, evicted) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        if waiting.by_age.len() >= MAX_OPENINGS {
            waiting.by_age.pop_first();
        }
        waiting.last += 1;
        let number = waiting.last;
        waiting.by_age.insert(number, place);
        (
            OpeningPlace {
                openings: self,
                number,
            },
            evicted,
        )
    }
}

/// A place among the openings; it is given up on drop.
struct OpeningPlace<'a> {
    openings: &'a Openings,
    number: u64,
}

impl Drop for OpeningPlace<'_> {
    fn drop(&mut self) {
        self.openings.waiting.lock().by_age.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_opening_makes_room() {
        let openings = Openings::default();
        let mut places: Vec<_> = (0..MAX_OPENINGS).map(|_| openings.enter()).collect();
        assert!(
            places
                .iter_mut()
                .all(|(_, evicted)| evicted.try_recv() == Err(oneshot::error::TryRecvError::Empty))
        );

        let (_newest, mut still_there) = openings.enter();
        assert_eq!(
            places[0].1.try_recv(),
            Err(oneshot::error::TryRecvError::Closed)
        );
        assert_eq!(
            places[1].1.try_recv(),
            Err(oneshot::error::TryRecvError::Empty)
        );
        assert_eq!(
            still_there.try_recv(),
            Err(oneshot::error::TryRecvError::Empty)
        );

        places.clear();
        assert_eq!(openings.waiting.lock().by_age.len(), 1);
    }
}
