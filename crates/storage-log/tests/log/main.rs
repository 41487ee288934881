//! Behaviour of the embedded log through its public interface.

mod aborted;
mod altered;
mod backup;
mod basics;
mod compaction;
mod crash;
mod damage;
mod fixture;
mod kafka;
mod mutations;
mod opening;
mod produce;
mod retention;
mod support;
mod threads;
mod topics;
