//! Bounds that keep every parse within a known time, stack and memory, whatever the text.
//!
//! They are checked on bytes and tokens, *before* anything recurses: a deep tree cannot be refused later, since merely dropping or
//! printing it would overflow the stack.

/// The bounds of one script. [`Limits::default`] is what a server uses for text from its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a script. Rows in bulk come by COPY, which is not SQL text.
    pub bytes: usize,
    /// Tokens of a script, blanks and comments not counted. A token with its tree takes about 400 bytes at the worst.
    pub tokens: usize,
    /// Statements of a script.
    pub statements: usize,
    /// Nesting of brackets, and of anything else that makes the parser recurse once per token.
    pub depth: usize,
    /// Depth of the tree: operators in a row, since `a + b + c` is a tree as deep as it is long, plus what they are nested in.
    pub tree: usize,
    /// Queries inside queries.
    pub subqueries: usize,
    /// Tables, joins, named subqueries and branches of set operations of a statement: each is a level of the plan made from it.
    pub relations: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 1024 * 1024,
            tokens: 150_000,
            statements: 5_000,
            depth: 128,
            tree: 500,
            subqueries: 28,
            relations: 256,
        }
    }
}

impl Limits {
    /// No bounds, for text that this crate wrote from a tree that was within bounds.
    pub(crate) fn none() -> Self {
        Self {
            bytes: usize::MAX,
            tokens: usize::MAX,
            statements: usize::MAX,
            depth: usize::MAX,
            tree: usize::MAX,
            subqueries: usize::MAX,
            relations: usize::MAX,
        }
    }
}
