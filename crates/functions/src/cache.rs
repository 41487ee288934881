//! Compiled patterns, kept between batches.
//!
//! Patterns are mostly constants of the statement, but may come from a column. Compiling one costs as much as thousands of rows, and on an idle
//! system a batch is one row, so each thread keeps the last few. INVARIANT: never more than [`MAX_KEPT`]; the whole table is dropped when it
//! is full, which costs a constant pattern one compilation among many.

use std::{cell::RefCell, collections::HashMap, rc::Rc, thread::LocalKey};

/// Patterns kept by one thread for one kind of pattern.
const MAX_KEPT: usize = 64;

/// What a thread keeps: the compiled form, or why there is none.
pub(crate) type Kept<T> = RefCell<HashMap<String, Result<Rc<T>, String>>>;

/// The compiled form of `source`.
pub(crate) fn compiled<T>(
    kept: &'static LocalKey<Kept<T>>,
    source: &str,
    compile: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Rc<T>, String> {
    kept.with_borrow_mut(|table| {
        if let Some(found) = table.get(source) {
            return found.clone();
        }
        if table.len() >= MAX_KEPT {
            table.clear();
        }
        let made = compile(source).map(Rc::new);
        table.insert(source.to_owned(), made.clone());
        made
    })
}
