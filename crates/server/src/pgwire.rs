//! The PostgreSQL wire protocol: messages in, messages out, no planning.
//!
//! A connection is one task that owns its socket and its [`Session`](crate::session::Session). Its loop ([`connection`]) reads a message
//! ([`message`]), lets the session run it and writes the answer. What the loop adds to a plain request-response server:
//!
//! - While a statement runs, the socket is read too ([`link`]): a client that went away, a cancel request, a timeout or the end of the
//!   server ends the statement at once, and messages sent ahead wait in a bounded buffer.
//! - Rows go out as they come ([`rows`]): what is ready is written together, and as soon as nothing more is ready it is flushed. The only
//!   buffer is one of [`outbound::FLUSH_BYTES`]; a client that does not read stops the query by back-pressure.
//!
//! INVARIANT: only whole messages enter the output buffer, and a flush that is interrupted keeps the rest of it, so that an error can
//! follow at any point and the client never loses its place in the stream.
//!
//! Bytes of the client are never trusted: a length is checked before anything is allocated for it, and a body that is shorter than its
//! fields is an error (`08P01`), not a panic. Frontend messages are therefore taken apart here; answers are built by the `pgwire` crate's
//! message types, except rows, which are written straight into the output buffer.

mod cancel;
mod connection;
mod copy;
mod decode;
mod encode;
mod extended;
mod link;
mod listener;
mod message;
mod metrics;
mod named;
mod outbound;
mod rows;
mod simple;
mod startup;
mod types;

pub(crate) use decode::text_value;
pub use listener::serve;
pub use metrics::describe as describe_metrics;
