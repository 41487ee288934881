//! The server through the wire: each test has a server of its own, in this process, on a temporary folder and free ports.

mod catalog;
mod copy;
mod http;
mod insert;
mod pgwire;
mod pull;
mod push;
mod session;
mod support;
