//! Checkpoints in slices, with steps in between, against checkpoints at once.

use std::{sync::Arc, time::Duration};

use arrow::{
    array::{ArrayRef, Int64Array},
    datatypes::{Field, Schema},
};
use highwater_planner::dataflow::AggregateFunction;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::*;

/// Windows of a second.
const SECOND: i64 = 1_000;

fn aggregate(windowed: bool) -> (SchemaRef, Aggregate) {
    let time = crate::delta::rowtime_type();
    let mut input = vec![Field::new("v", DataType::Int64, true)];
    let mut group = vec![1];
    input.push(Field::new("k", DataType::Int64, true));
    if windowed {
        input.push(Field::new("start", time.clone(), true));
        input.push(Field::new("end", time, true));
        group.extend([2, 3]);
    }
    let call = |function, argument| AggregateCall {
        function,
        argument,
        filter: None,
        distinct: false,
        output_type: DataType::Int64,
        name: "call".into(),
    };
    let calls = [
        call(AggregateFunction::Count, None),
        call(AggregateFunction::Sum, Some(0)),
    ];
    let mut output: Vec<Field> = group.iter().map(|&column| input[column].clone()).collect();
    output.extend(["n", "total"].map(|name| Field::new(name, DataType::Int64, true)));
    let input: SchemaRef = Arc::new(Schema::new(input));
    let window = WindowSpec {
        shape: WindowShape::Tumbling {
            size: Duration::from_secs(1),
        },
        grace: Duration::ZERO,
        retention: None,
    };
    let options = GroupOptions {
        changing: !windowed,
        ..GroupOptions::default()
    };
    let aggregate = Aggregate::new(
        &input,
        Arc::new(Schema::new(output)),
        &group,
        &calls,
        windowed.then_some(&window),
        options,
    );
    (input, aggregate.expect("an operator"))
}

/// Rows of some keys, of which those without a window are taken back now and then.
struct Rows {
    random: StdRng,
    schema: SchemaRef,
    windowed: bool,
    now: i64,
    there: Vec<(i64, i64)>,
}

impl Rows {
    fn next(&mut self) -> Delta {
        let (mut keys, mut values, mut times, mut diffs) = (vec![], vec![], vec![], vec![]);
        for _ in 0..self.random.random_range(1..40) {
            self.now += self.random.random_range(0..SECOND / 10);
            let taken_back = !self.windowed && self.random.random_bool(0.4);
            let (key, value, diff) = match self.there.pop().filter(|_| taken_back) {
                Some((key, value)) => (key, value, -1),
                None => {
                    let row = (
                        self.random.random_range(0..30),
                        self.random.random_range(0..9),
                    );
                    self.there.push(row);
                    (row.0, row.1, 1)
                }
            };
            keys.push(key);
            values.push(value);
            times.push(self.now);
            diffs.push(diff);
        }
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(values)),
            Arc::new(Int64Array::from(keys)),
        ];
        if self.windowed {
            let start = |time: &i64| time - time % SECOND;
            columns.push(rowtime_array(times.iter().map(start).collect()));
            let ends = times.iter().map(|time| start(time) + SECOND).collect();
            columns.push(rowtime_array(ends));
        }
        let diffs = (!self.windowed).then(|| diffs.into());
        Delta::from_columns(&self.schema, columns, rowtime_array(times), diffs).expect("a delta")
    }
}

fn step(aggregate: &mut Aggregate, delta: &Delta) {
    let (mut late, mut rejected, mut output) = (0, Vec::new(), Vec::new());
    let mut context = StepContext {
        state: None,
        late: &mut late,
        rejected: &mut rejected,
    };
    aggregate
        .apply(0, delta.clone(), &mut context, &mut output)
        .expect("applied");
    aggregate
        .step_end(&mut context, &mut output)
        .expect("ended");
}

fn text(changes: &StateChanges) -> Vec<String> {
    let dropped = changes
        .dropped()
        .map(|(from, to)| format!("{from:?} to {to:?} go"));
    let entries = changes
        .sorted()
        .map(|(key, value)| format!("{key:?} is {value:?}"));
    dropped.chain(entries).collect()
}

#[test]
fn a_checkpoint_in_slices_has_the_state_of_its_beginning() {
    let mut copied = 0;
    for seed in 0..60 {
        let windowed = seed % 2 == 0;
        let (schema, mut at_once) = aggregate(windowed);
        let (_, mut in_slices) = aggregate(windowed);
        let mut rows = Rows {
            random: StdRng::seed_from_u64(seed),
            schema,
            windowed,
            now: 0,
            there: Vec::new(),
        };
        for _ in 0..8 {
            for _ in 0..rows.random.random_range(1..4) {
                let delta = rows.next();
                step(&mut at_once, &delta);
                step(&mut in_slices, &delta);
            }
            let mut expected = StateChanges::default();
            at_once.checkpoint(&mut expected);
            let mut all = usize::MAX;
            assert!(at_once.checkpoint_more(&mut expected, &mut all));

            let mut got = StateChanges::default();
            in_slices.checkpoint(&mut got);
            let mut done = false;
            while !done {
                copied += in_slices.copied.byte_len();
                let mut budget = rows.random.random_range(0..4);
                done = in_slices.checkpoint_more(&mut got, &mut budget);
                if !done {
                    let delta = rows.next();
                    step(&mut at_once, &delta);
                    step(&mut in_slices, &delta);
                }
            }
            assert_eq!(text(&got), text(&expected), "seed {seed}");
            at_once.checkpointed();
            in_slices.checkpointed();
        }
    }
    assert!(copied > 0, "no step changed what a checkpoint waited for");
}
