//! Command-line tools for a log's folder. The program's `main` only parses and calls [`bench::run`] and its like.

pub mod bench;
