//! Many runs at once, and what is told of them.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use crate::{
    case::Run,
    run::{Verdict, guarded},
};

/// Longest time for one run: hundreds of times what one takes.
const RUN_TIMEOUT: Duration = Duration::from_secs(20);

/// How many runs ended how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// As expected.
    pub passed: usize,
    /// Otherwise.
    pub failed: usize,
}

/// What is told beside the closing line.
#[derive(Debug, Clone, Copy, Default)]
pub struct Telling {
    /// Names of passed runs too.
    pub passed: bool,
    /// How often each kind of failure came.
    pub summary: bool,
}

/// Runs all, `jobs` at a time, and tells of them in their order.
pub fn run_all(
    runs: &[Run],
    jobs: usize,
    telling: Telling,
    out: &mut dyn Write,
) -> io::Result<Tally> {
    let next = AtomicUsize::new(0);
    let (sender, verdicts) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                loop {
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    let Some(run) = runs.get(position) else { break };
                    let verdict = guarded(run.clone(), RUN_TIMEOUT);
                    if sender.send((position, verdict)).is_err() {
                        break;
                    }
                }
            });
        }
        // What is received has its senders in the threads alone.
        drop(sender);
        tell_all(runs, verdicts, telling, out)
    })
}

fn tell_all(
    runs: &[Run],
    verdicts: mpsc::Receiver<(usize, Verdict)>,
    telling: Telling,
    out: &mut dyn Write,
) -> io::Result<Tally> {
    let mut tally = Tally::default();
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut early: BTreeMap<usize, Verdict> = BTreeMap::new();
    let mut position = 0;
    for (finished, verdict) in verdicts {
        early.insert(finished, verdict);
        while let Some(verdict) = early.remove(&position) {
            let name = &runs[position].name;
            match verdict {
                Ok(()) => {
                    tally.passed += 1;
                    if telling.passed {
                        writeln!(out, "PASS {name}")?;
                    }
                }
                Err(trouble) => {
                    tally.failed += 1;
                    *kinds.entry(kind(&trouble)).or_default() += 1;
                    writeln!(out, "FAIL {name}")?;
                    for line in trouble.lines() {
                        writeln!(out, "  {line}")?;
                    }
                }
            }
            position += 1;
        }
    }
    if telling.summary {
        let mut kinds: Vec<(String, usize)> = kinds.into_iter().collect();
        kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        for (kind, count) in kinds {
            writeln!(out, "{count:6}  {kind}")?;
        }
    }
    writeln!(out, "{} passed, {} failed", tally.passed, tally.failed)?;
    Ok(tally)
}

/// The first line of a failure without the names and numbers that make it one of a kind.
fn kind(trouble: &str) -> String {
    let line = trouble.lines().next().unwrap_or_default();
    let mut kind = String::new();
    let mut in_quotes = false;
    let mut in_number = false;
    for c in line.chars() {
        if c == '"' {
            in_quotes = !in_quotes;
            kind.push_str(if in_quotes { "\"" } else { "..\"" });
            continue;
        }
        let digit = c.is_ascii_digit();
        if !in_quotes && !digit {
            kind.push(c);
        } else if !in_quotes && !in_number {
            kind.push('N');
        }
        in_number = digit;
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_one_kind_differ_in_names_and_numbers_only() {
        assert_eq!(
            kind("topic \"a\", record 12: the value differs\n  - {}"),
            "topic \"..\", record N: the value differs"
        );
    }
}
