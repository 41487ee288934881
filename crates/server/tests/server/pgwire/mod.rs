//! The PostgreSQL protocol, spoken by a real driver and by hand, against a server in this process.

mod copy;
mod extended;
mod harness;
mod hostile;
mod raw;
mod simple;
mod streaming;
