//! The function library through DataFusion: every function by its examples, and each family by cases of its own.

mod arrays;
mod datetime;
mod harness;
mod json;
mod lambdas;
mod library;
mod maps;
mod numbers;
mod texts;
