//! The language through its public interface.

mod errors;
mod hostile;
mod ksql;
mod mutations;
mod round_trip;
mod statements;
