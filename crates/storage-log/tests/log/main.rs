//! Behaviour of the embedded log through its public interface.

mod backup;
mod basics;
mod compaction;
mod crash;
mod damage;
mod kafka;
mod mutations;
mod retention;
mod support;
mod threads;
mod topics;
