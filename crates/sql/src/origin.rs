//! Where a list of tokens came from, and how it is to be read.

use crate::language::Language;
use crate::limits::Limits;
use crate::place::Places;

/// What every reader of tokens needs beside them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// The script, and how to find tokens in it.
    pub places: Places<'a>,
    /// The bounds to keep to.
    pub limits: &'a Limits,
    /// Grammar and folding.
    pub language: Language,
    /// Where an error at the end of the tokens points to.
    pub end: usize,
}
