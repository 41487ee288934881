//! Playing a case: a `.slt` file on a server of its own.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use sqllogictest::{Record, Runner};

use crate::{ColumnLetter, ServerProcess, Session, directive::Directive};

/// How a case is played. The expected results do not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// From the first record to the last.
    Straight,
    /// With SIGKILL and a new start in the middle.
    Restarted,
}

/// Plays one case.
pub async fn run_case(path: &Path, mode: Mode) -> Result<()> {
    let records: Vec<Record<ColumnLetter>> = sqllogictest::parse_file(path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let restart_before = match mode {
        Mode::Straight => None,
        Mode::Restarted => Some(restart_point(&records).ok_or_else(|| {
            anyhow!(
                "{} has no record where no watch, cursor or transaction is open",
                path.display()
            )
        })?),
    };
    let mut server = ServerProcess::start().await?;
    let played = play(&mut server, records, restart_before).await;
    // The failure first, then what may explain it.
    played.map_err(|error| anyhow!("{error:#}\n{}", server.log_tail()))?;
    server.check_health()
}

async fn play(
    server: &mut ServerProcess,
    records: Vec<Record<ColumnLetter>>,
    restart_before: Option<usize>,
) -> Result<()> {
    let endpoint = server.endpoint().clone();
    let mut runner = Runner::new(move || Session::connect(endpoint.clone()));
    runner.with_column_validator(same_columns);
    for (position, record) in records.into_iter().enumerate() {
        if restart_before == Some(position) {
            server.restart().await?;
        }
        if matches!(record, Record::Halt { .. }) {
            break;
        }
        // The error's location names the file and the line.
        runner
            .run_async(record)
            .await
            .map_err(|error| anyhow!("{}", error.display(false)))?;
    }
    runner.shutdown_async().await;
    Ok(())
}

/// The record before which the server is restarted: of those where nothing is open that dies with a connection, the one nearest to the
/// middle of the case's statements. The first and the last gap are left out, where a restart would show little.
fn restart_point(records: &[Record<ColumnLetter>]) -> Option<usize> {
    let statements: Vec<(usize, &str)> = records
        .iter()
        .enumerate()
        .filter_map(|(position, record)| Some((position, sql(record)?)))
        .collect();
    let middle = statements.len() / 2;
    let mut open = 0;
    let mut best: Option<(usize, usize)> = None;
    for (count, (position, text)) in statements.iter().enumerate() {
        let distance = count.abs_diff(middle);
        if open == 0 && count > 0 && best.is_none_or(|(nearest, _)| distance < nearest) {
            best = Some((distance, *position));
        }
        open = (open + Directive::held(text)).max(0);
    }
    best.map(|(_, position)| position)
}

fn sql(record: &Record<ColumnLetter>) -> Option<&str> {
    match record {
        Record::Statement { sql, .. } | Record::Query { sql, .. } => Some(sql),
        _ => None,
    }
}

/// Checks the letters of a `query` line, both their number and the types they stand for.
#[allow(
    clippy::ptr_arg,
    reason = "the signature that the sqllogictest crate asks for"
)]
fn same_columns(actual: &Vec<ColumnLetter>, expected: &Vec<ColumnLetter>) -> bool {
    actual == expected
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(script: &str) -> Option<usize> {
        let records = sqllogictest::parse::<ColumnLetter>(script).unwrap();
        let position = restart_point(&records)?;
        records[..position].iter().filter_map(sql).count().into()
    }

    #[test]
    fn the_restart_is_in_the_middle() {
        let script = "statement ok\na\n\nstatement ok\nb\n\nstatement ok\nc\n\nstatement ok\nd\n";
        assert_eq!(point(script), Some(2));
    }

    #[test]
    fn the_restart_waits_for_a_transaction_to_end() {
        let script = "statement ok\nBEGIN\n\nstatement ok\na\n\nstatement ok\nb\n\nstatement ok\nCOMMIT\n\nstatement ok\nc\n";
        assert_eq!(point(script), Some(4));
    }

    #[test]
    fn a_case_that_holds_something_all_along_has_no_restart_point() {
        assert_eq!(
            point("statement ok\nBEGIN\n\nstatement ok\na\n\nstatement ok\nCOMMIT\n"),
            None
        );
    }
}
