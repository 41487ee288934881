//! Checkpoints in slices, with steps in between, against checkpoints at once; groups that were evicted against groups that stayed.

use std::{sync::Arc, time::Duration};

use arrow::{
    array::{ArrayRef, Float64Array, Int64Array, ListArray, StringArray, StructArray},
    buffer::OffsetBuffer,
    datatypes::{Field, Schema},
    util::display::{ArrayFormatter, FormatOptions},
};
use highwater_planner::{
    catalog::QueryId,
    dataflow::{AggregateFunction, NodeId},
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use tempfile::TempDir;

use super::*;
use crate::state::{RocksState, SlotState, StateId, StatePrefix};

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
    step_on(aggregate, delta, None);
}

/// Runs a step; answers what it gave.
fn step_on(aggregate: &mut Aggregate, delta: &Delta, state: Option<SlotState<'_>>) -> Vec<Delta> {
    let (mut late, mut rejected, mut output) = (0, Vec::new(), Vec::new());
    let mut context = StepContext {
        state,
        late: &mut late,
        rejected: &mut rejected,
    };
    aggregate
        .apply(0, delta.clone(), &mut context, &mut output)
        .expect("applied");
    aggregate
        .step_end(&mut context, &mut output)
        .expect("ended");
    output
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

/// An aggregate with a call of every kind over columns that follow from one number, and the schema of its input.
fn every_kind(windowed: bool) -> (SchemaRef, Aggregate) {
    use AggregateFunction as F;
    let (narrow, _) = aggregate(windowed);
    let (int, float, text) = (DataType::Int64, DataType::Float64, DataType::Utf8);
    let decimal = |digits, scale| DataType::Decimal128(digits, scale);
    let list = |of: &DataType| DataType::new_list(of.clone(), true);
    let pair = DataType::Struct(pair_fields());
    let map = Field::new(
        "entries",
        DataType::Struct(
            vec![
                Field::new("key", text.clone(), false),
                Field::new("value", int.clone(), true),
            ]
            .into(),
        ),
        false,
    );
    let map = DataType::Map(Arc::new(map), false);
    let first = narrow.fields().len();
    let mut input: Vec<Field> = narrow
        .fields()
        .iter()
        .map(|field| (**field).clone())
        .collect();
    for (name, data_type) in [
        ("text", text.clone()),
        ("half", float.clone()),
        ("cents", decimal(10, 2)),
        ("pair", pair),
        ("list", list(&int)),
    ] {
        input.push(Field::new(name, data_type, true));
    }
    let [as_text, as_half, as_cents, as_pair, as_list] = [0, 1, 2, 3, 4].map(|n| first + n);
    let call = |function, argument, output_type: &DataType, distinct| AggregateCall {
        function,
        argument,
        filter: None,
        distinct,
        output_type: output_type.clone(),
        name: "call".into(),
    };
    let latest = |count| F::Latest {
        count,
        ignore_nulls: true,
    };
    let earliest = |count| F::Earliest {
        count,
        ignore_nulls: false,
    };
    let calls = [
        call(F::Count, None, &int, false),
        call(F::Count, Some(as_text), &int, true),
        call(F::Sum, Some(0), &int, false),
        call(F::Sum, Some(as_half), &float, true),
        call(F::Sum, Some(as_cents), &decimal(38, 2), false),
        call(F::SumOrZero, Some(0), &int, false),
        call(F::SumList, Some(as_list), &int, false),
        call(F::Avg, Some(0), &float, false),
        call(F::Avg, Some(as_cents), &decimal(38, 6), false),
        call(F::AvgOrZero, Some(0), &float, false),
        call(F::Min, Some(0), &int, false),
        call(F::Max, Some(as_text), &text, false),
        call(F::CollectList { limit: 5 }, Some(0), &list(&int), false),
        call(
            F::CollectSet { limit: 3 },
            Some(as_text),
            &list(&text),
            false,
        ),
        call(earliest(None), Some(as_text), &text, false),
        call(earliest(Some(2)), Some(0), &list(&int), false),
        call(latest(None), Some(as_text), &text, false),
        call(latest(Some(3)), Some(as_text), &list(&text), false),
        call(F::TopK { count: 3 }, Some(0), &list(&int), false),
        call(
            F::TopKDistinct { count: 2 },
            Some(as_text),
            &list(&text),
            false,
        ),
        call(F::Histogram, Some(as_text), &map, false),
        call(F::Attr, Some(0), &int, false),
        call(F::Variance, Some(as_half), &float, false),
        call(F::StandardDeviation, Some(0), &float, false),
        call(F::Correlation, Some(as_pair), &float, false),
    ];
    let group: Vec<usize> = (1..first).collect();
    let keys = group.iter().map(|&column| input[column].clone());
    let results = calls
        .iter()
        .enumerate()
        .map(|(position, call)| Field::new(format!("c{position}"), call.output_type.clone(), true));
    let output = Schema::new(keys.chain(results).collect::<Vec<_>>());
    let window = WindowSpec {
        shape: WindowShape::Tumbling {
            size: Duration::from_secs(1),
        },
        grace: Duration::from_secs(2),
        retention: None,
    };
    let options = GroupOptions {
        changing: !windowed,
        ..GroupOptions::default()
    };
    let input: SchemaRef = Arc::new(Schema::new(input));
    let window = windowed.then_some(&window);
    let aggregate = Aggregate::new(&input, Arc::new(output), &group, &calls, window, options);
    (input, aggregate.expect("an operator"))
}

fn pair_fields() -> arrow::datatypes::Fields {
    ["x", "y"]
        .map(|name| Field::new(name, DataType::Float64, true))
        .into_iter()
        .collect()
}

/// Rows with the further columns of `schema`. Long texts are apart from where they are kept.
fn widened(schema: &SchemaRef, delta: &Delta) -> Delta {
    let mut columns = delta.columns().to_vec();
    let values = columns[0].as_primitive::<arrow::datatypes::Int64Type>();
    let numbers: Vec<i64> = values.values().to_vec();
    let texts = numbers.iter().map(|number| match number {
        4 => None,
        number => Some(format!("{number:0>width$}", width = 5 * *number as usize)),
    });
    let floats = |of: fn(f64) -> f64| -> ArrayRef {
        let floats = numbers.iter().map(|number| of(*number as f64));
        Arc::new(Float64Array::from_iter_values(floats))
    };
    let (halves, squares) = (floats(|x| x / 3.0), floats(|x| x * x));
    let cents = compute::cast(&columns[0], &DataType::Decimal128(10, 2)).expect("a decimal");
    let pair = StructArray::new(pair_fields(), vec![Arc::clone(&halves), squares], None);
    let element = Arc::new(Field::new_list_field(DataType::Int64, true));
    let lengths = OffsetBuffer::from_lengths(vec![1; numbers.len()]);
    let list = ListArray::new(element, lengths, Arc::clone(&columns[0]), None);
    columns.extend([
        Arc::new(texts.collect::<StringArray>()) as ArrayRef,
        halves,
        cents,
        Arc::new(pair),
        Arc::new(list),
    ]);
    let times = delta.rowtime_millis().expect("times").to_vec();
    let diffs = delta.diffs().map(Arc::from);
    Delta::from_columns(schema, columns, rowtime_array(times), diffs).expect("a delta")
}

/// All cells of changes, with their diffs.
fn cells(deltas: &[Delta]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut cells = Vec::new();
    for delta in deltas {
        cells.push(format!("{:?}", delta.diffs()));
        for column in delta.batch().columns() {
            let column = ArrayFormatter::try_new(column, &options).expect("a printable type");
            cells.extend((0..delta.rows()).map(|row| column.value(row).to_string()));
        }
    }
    cells
}

/// A database for the state of one operator.
struct Database {
    _folder: TempDir,
    state: RocksState,
    prefix: StatePrefix,
}

impl Database {
    fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        Self {
            state: RocksState::open(&folder.path().join("db"), 0).expect("a database"),
            prefix: StateId::operator(QueryId(1), NodeId(2)).slot(0),
            _folder: folder,
        }
    }

    fn write(&self, changes: StateChanges) {
        self.state
            .write(&[(self.prefix, changes)])
            .expect("written");
    }
}

/// A whole checkpoint of what changed.
fn checkpoint(aggregate: &mut Aggregate) -> StateChanges {
    let (mut changes, mut all) = (StateChanges::default(), usize::MAX);
    aggregate.checkpoint(&mut changes);
    assert!(aggregate.checkpoint_more(&mut changes, &mut all));
    changes
}

#[test]
fn what_was_evicted_comes_back_as_it_was_whatever_is_in_it() {
    let mut evicted = 0;
    for seed in 0..24 {
        let windowed = seed % 2 == 0;
        let (narrow, _) = aggregate(windowed);
        let (schema, mut stays) = every_kind(windowed);
        let (_, mut leaves) = every_kind(windowed);
        let database = Database::new();
        let slot = || Some(database.state.slot(database.prefix));
        let mut rows = Rows {
            random: StdRng::seed_from_u64(seed),
            schema: narrow,
            windowed,
            now: 0,
            there: Vec::new(),
        };
        let both = |rows: &mut Rows, stays: &mut Aggregate, leaves: &mut Aggregate| {
            let delta = widened(&schema, &rows.next());
            let expected = step_on(stays, &delta, None);
            let got = step_on(leaves, &delta, slot());
            assert_eq!(cells(&got), cells(&expected), "seed {seed}");
        };
        for round in 0..20 {
            both(&mut rows, &mut stays, &mut leaves);
            let expected = checkpoint(&mut stays);
            let mut got = StateChanges::default();
            leaves.checkpoint(&mut got);
            // What the checkpoint under way has taken or not taken must not leave.
            loop {
                let mut few = 3;
                if leaves.checkpoint_more(&mut got, &mut few) {
                    break;
                }
                evicted += leaves.evict(usize::MAX);
                if rows.random.random_bool(0.3) {
                    both(&mut rows, &mut stays, &mut leaves);
                }
            }
            evicted += leaves.evict(usize::MAX);
            assert_eq!(text(&got), text(&expected), "seed {seed}, round {round}");
            database.write(got);
            stays.checkpointed();
            leaves.checkpointed();
            let bytes = match rows.random.random_range(0..3) {
                0 => usize::MAX,
                _ => rows.random.random_range(0..20_000),
            };
            evicted += leaves.evict(bytes);
        }
        // With everything written, nothing stays, and nothing is counted that is not there.
        database.write(checkpoint(&mut leaves));
        leaves.checkpointed();
        leaves.evict(usize::MAX);
        assert_eq!(leaves.memory(), StateMemory::default(), "seed {seed}");
        assert_eq!(leaves.heap_bytes(), 0, "seed {seed}");
        assert!(stays.heap_bytes() > 0);
        assert!(leaves.groups.capacity() <= stays.groups.capacity());
    }
    assert!(evicted > 0);
}

#[test]
fn what_is_named_all_the_time_stays() {
    let (schema, mut aggregate) = aggregate(false);
    let database = Database::new();
    let slot = || Some(database.state.slot(database.prefix));
    let keys = |keys: std::ops::Range<i64>| {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(keys.clone())),
            Arc::new(Int64Array::from_iter_values(keys.clone())),
        ];
        let times = rowtime_array(keys.collect());
        Delta::from_columns(&schema, columns, times, None).expect("a delta")
    };
    step_on(&mut aggregate, &keys(0..1000), slot());
    assert_eq!(aggregate.evict(1), 0, "nothing is written yet");
    let changes = checkpoint(&mut aggregate);
    assert_eq!(aggregate.evict(1), 0, "the checkpoint has not finished");
    database.write(changes);
    aggregate.checkpointed();
    // The hand goes round once and takes the marks, then one group goes.
    assert_eq!(aggregate.evict(1), aggregate.group_bytes());
    assert_eq!(aggregate.groups.len(), 999);
    step_on(&mut aggregate, &keys(100..200), slot());
    database.write(checkpoint(&mut aggregate));
    aggregate.checkpointed();
    aggregate.evict(800 * aggregate.group_bytes());
    assert_eq!(aggregate.groups.len(), 199);
    let output = step_on(&mut aggregate, &keys(100..200), slot());
    assert_eq!(aggregate.groups.len(), 199, "none of them was read back");
    // One old and one new row each.
    assert_eq!(output.iter().map(Delta::rows).sum::<usize>(), 200);
    step_on(&mut aggregate, &keys(500..501), slot());
    assert!(aggregate.groups.len() <= 200);
    assert_eq!(aggregate.groups.capacity(), 1000);
}

#[test]
fn arrays_shrink_when_most_groups_have_left() {
    for windowed in [false, true] {
        let (schema, mut aggregate) = aggregate(windowed);
        let (_, mut stays) = self::aggregate(windowed);
        let database = Database::new();
        let slot = || Some(database.state.slot(database.prefix));
        let keys = |keys: std::ops::Range<i64>| {
            let column = || Arc::new(Int64Array::from_iter_values(keys.clone())) as ArrayRef;
            let mut columns = vec![column(), column()];
            if windowed {
                columns.push(rowtime_array(vec![0; keys.clone().count()]));
                columns.push(rowtime_array(vec![SECOND; keys.clone().count()]));
            }
            let times = rowtime_array(vec![1; keys.count()]);
            Delta::from_columns(&schema, columns, times, None).expect("a delta")
        };
        let all = 30_000;
        step_on(&mut aggregate, &keys(0..all), slot());
        step(&mut stays, &keys(0..all));
        database.write(checkpoint(&mut aggregate));
        aggregate.checkpointed();
        checkpoint(&mut stays);
        stays.checkpointed();
        // Some stay since they have changed, at both ends of the numbers.
        for changed in [10..20, all - 100..all - 50] {
            step_on(&mut aggregate, &keys(changed.clone()), slot());
            step(&mut stays, &keys(changed));
        }
        let before = aggregate.memory().bytes;
        assert!(aggregate.evict(usize::MAX) > before * 9 / 10);
        assert_eq!(aggregate.groups.len(), 60);
        assert_eq!(aggregate.groups.capacity(), 60);
        assert!(aggregate.rows.capacity() < 1000);
        let again = keys(5..all - 60);
        let expected = step_on(&mut stays, &again, None);
        let got = step_on(&mut aggregate, &again, slot());
        assert_eq!(cells(&got), cells(&expected));
        assert_eq!(
            text(&checkpoint(&mut aggregate)),
            text(&checkpoint(&mut stays))
        );
    }
}
