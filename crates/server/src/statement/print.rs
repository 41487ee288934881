//! `PRINT topic`: a topic's records as they are, with keys and values as text where they are text.

use std::{collections::VecDeque, sync::Arc};

use arrow::{
    array::{Int32Builder, Int64Builder, StringBuilder, TimestampMillisecondBuilder},
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
    record_batch::RecordBatch,
};
use highwater_sql::ast::Print;
use highwater_storage_log::{Isolation, Log, LogResult, Offset, TopicPartition};
use tokio::sync::watch;

use crate::{
    session::{Rows, Session, SessionResult, blocking},
    sqlstate::{SqlError, code},
};

/// Bytes read of a partition at once.
const READ_BYTES: usize = 256 << 10;

/// Columns of the result.
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new(
            "rowtime",
            DataType::Timestamp(TimeUnit::Millisecond, None),
            false,
        ),
        Field::new("key", DataType::Utf8, true),
        Field::new("value", DataType::Utf8, true),
        Field::new("partition", DataType::Int32, false),
        Field::new("offset", DataType::Int64, false),
    ]))
}

/// Starts to print: rows come until LIMIT or until the client has seen enough.
pub fn run(session: &Session, print: &Print) -> SessionResult<Rows> {
    let log = Arc::clone(&session.server.log);
    let Some(topic) = log.topic(&print.topic) else {
        return Err(SqlError::new(
            code::UNDEFINED_OBJECT,
            format!("topic \"{}\" does not exist", print.topic),
        )
        .with_hint("SHOW TOPICS lists what there is"));
    };
    // Before the positions are read, so that nothing is appended unnoticed in between.
    let appended = session.server.appended.follow();
    let mut positions = VecDeque::new();
    for number in 0..topic.config.partitions {
        let partition = TopicPartition::new(Arc::clone(&topic.name), number);
        let offsets = log.offsets(&partition)?;
        positions.push_back((
            partition,
            if print.from_beginning {
                offsets.log_start
            } else {
                offsets.last_stable
            },
        ));
    }
    let follower = Follower {
        log,
        positions,
        appended,
        every: print.interval.unwrap_or(1).max(1),
        seen: 0,
        left: print.limit.unwrap_or(u64::MAX),
    };
    let stream = futures::stream::unfold(follower, |follower| async move {
        match follower.next().await {
            Ok(None) => None,
            Ok(Some((batch, follower))) => Some((Ok(batch), follower)),
            Err((error, follower)) => Some((Err(error), follower)),
        }
    });
    Ok(Rows {
        schema: schema(),
        stream: Box::pin(stream),
        tag: "PRINT",
        endless: true,
    })
}

struct Follower {
    log: Arc<dyn Log>,
    /// Where each partition is read next; the front one is read first, so that none is left behind.
    positions: VecDeque<(TopicPartition, Offset)>,
    appended: watch::Receiver<u64>,
    every: u64,
    seen: u64,
    left: u64,
}

type Step = Result<Option<(RecordBatch, Follower)>, (SqlError, Follower)>;

impl Follower {
    async fn next(mut self) -> Step {
        while self.left > 0 {
            self.appended.borrow_and_update();
            let read = blocking(move || {
                let batch = self.read_any();
                (self, batch)
            })
            .await;
            let (follower, batch) = match read {
                Ok(read) => read,
                // The follower is lost with the task that had it.
                Err(_) => return Ok(None),
            };
            self = follower;
            match batch {
                Ok(Some(batch)) => return Ok(Some((batch, self))),
                Ok(None) => {}
                Err(error) => {
                    self.left = 0;
                    return Err((error, self));
                }
            }
            if self.appended.changed().await.is_err() {
                break;
            }
        }
        Ok(None)
    }

    /// The next records of the first partition that has some.
    fn read_any(&mut self) -> SessionResult<Option<RecordBatch>> {
        for _ in 0..self.positions.len() {
            let Some((partition, from)) = self.positions.pop_front() else {
                break;
            };
            let (batch, next) = self.read(&partition, from)?;
            self.positions.push_back((partition, next));
            if batch.num_rows() > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn read(
        &mut self,
        partition: &TopicPartition,
        from: Offset,
    ) -> SessionResult<(RecordBatch, Offset)> {
        let mut table = Table::default();
        let next = self.fill(&mut table, partition, from)?;
        Ok((table.finish()?, next))
    }

    /// Adds what can be read now; answers where to go on, which is behind the last record that was looked at.
    fn fill(
        &mut self,
        table: &mut Table,
        partition: &TopicPartition,
        from: Offset,
    ) -> LogResult<Offset> {
        let fetch = self
            .log
            .read(partition, from, READ_BYTES, Isolation::ReadCommitted)?;
        for batch in &fetch.batches {
            let records = batch.records()?;
            for record in records.iter() {
                let record = record?;
                if record.offset < from {
                    continue;
                }
                if self.left == 0 {
                    return Ok(record.offset);
                }
                self.seen += 1;
                if (self.seen - 1).is_multiple_of(self.every) {
                    table.push(
                        partition,
                        record.offset,
                        record.timestamp,
                        record.key,
                        record.value,
                    );
                    self.left -= 1;
                }
            }
        }
        Ok(fetch.next_offset)
    }
}

#[derive(Default)]
struct Table {
    times: TimestampMillisecondBuilder,
    keys: StringBuilder,
    values: StringBuilder,
    partitions: Int32Builder,
    offsets: Int64Builder,
}

impl Table {
    fn push(
        &mut self,
        partition: &TopicPartition,
        offset: Offset,
        time: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
    ) {
        self.times.append_value(time);
        self.keys.append_option(key.map(text));
        self.values.append_option(value.map(text));
        self.partitions.append_value(partition.partition.0 as i32);
        self.offsets.append_value(offset.0);
    }

    fn finish(mut self) -> SessionResult<RecordBatch> {
        let columns = vec![
            Arc::new(self.times.finish()) as _,
            Arc::new(self.keys.finish()) as _,
            Arc::new(self.values.finish()) as _,
            Arc::new(self.partitions.finish()) as _,
            Arc::new(self.offsets.finish()) as _,
        ];
        RecordBatch::try_new(schema(), columns).map_err(SqlError::from)
    }
}

/// Bytes as people can read them: text without control characters as it is, anything else in hexadecimal.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(|c| c.is_control() && !c.is_whitespace()) => text.to_owned(),
        _ => bytes
            .iter()
            .fold("\\x".to_owned(), |hex, byte| format!("{hex}{byte:02x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::text;

    #[test]
    fn bytes_are_shown_as_text_or_as_hexadecimal() {
        assert_eq!(text(b"{\"a\": 1}"), "{\"a\": 1}");
        assert_eq!(text(&[0, 0, 0, 7]), "\\x00000007");
        assert_eq!(text(&[0xff]), "\\xff");
    }
}
