//! Why rows have no value.
//!
//! DataFusion evaluates whole columns and knows no error of one row. A function here gives NULL for a row that it cannot serve and reports why;
//! whoever evaluates the expression takes the reports afterwards. They wait in a list of the thread, since an expression is evaluated on one
//! thread from its first column to its result; where nothing failed, taking them costs one look at an empty list.
//!
//! A report does not say which row it is about: inside of CASE or of a lambda, the rows that a function sees are not those of the batch. The
//! evaluator finds them by evaluating smaller batches, which only happens where something failed.
//!
//! INVARIANT: the list never holds more than [`MAX_REPORTS`]; what comes on top is counted.

use std::cell::RefCell;

/// Reasons kept until they are taken; a batch has at most some thousands of rows, and the evaluator asks batch by batch.
const MAX_REPORTS: usize = 256;

thread_local! {
    static REPORTS: RefCell<RowErrors> = const { RefCell::new(RowErrors { reasons: Vec::new(), dropped: 0 }) };
}

/// What was reported since the last [`take_row_errors`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RowErrors {
    /// Why rows failed, in the order in which they were met.
    pub reasons: Vec<String>,
    /// Further reports that were only counted.
    pub dropped: usize,
}

impl RowErrors {
    /// Whether no row failed.
    pub fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// Reports that a row has no value.
pub(crate) fn report(reason: String) {
    REPORTS.with_borrow_mut(|reports| {
        if reports.reasons.len() < MAX_REPORTS {
            reports.reasons.push(reason);
        } else {
            reports.dropped += 1;
        }
    });
}

/// Takes what was reported on this thread.
pub fn take_row_errors() -> RowErrors {
    REPORTS.with_borrow_mut(|reports| {
        if reports.is_empty() {
            RowErrors::default()
        } else {
            std::mem::take(reports)
        }
    })
}
