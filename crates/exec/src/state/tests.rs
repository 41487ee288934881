//! The state database against a map, with small changes and large ones, read while and after they are written.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use highwater_planner::{catalog::QueryId, dataflow::NodeId};
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{BaseSnapshot, RocksState, Run, StateChanges, StateId, StatePrefix};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn operator(query: u64, slot: u32) -> StatePrefix {
    StateId::operator(QueryId(query), NodeId(3)).slot(slot)
}

fn table(query: u64) -> StatePrefix {
    StateId::result(QueryId(query)).slot(0)
}

/// A key of a few that come again, with a value that is long enough for files in a run of `count`.
fn change(random: &mut StdRng, keys: u32) -> (Vec<u8>, Option<Vec<u8>>) {
    let number: u32 = random.random_range(0..keys);
    // Keys of different lengths, some the beginning of others.
    let mut key = number.to_be_bytes().to_vec();
    key.resize(4 + number as usize % 13, 0);
    let value = (random.random_range(0..4) > 0).then(|| {
        let mut value = vec![0; random.random_range(0..90)];
        random.fill(value.as_mut_slice());
        value
    });
    (key, value)
}

fn apply(model: &mut Model, key: &[u8], value: Option<&[u8]>) {
    match value {
        Some(value) => model.insert(key.to_vec(), value.to_vec()),
        None => model.remove(key),
    };
}

fn changes(random: &mut StdRng, count: usize, keys: u32, model: &mut Model) -> StateChanges {
    let mut changes = StateChanges::default();
    if random.random_range(0..3) == 0 {
        let to = random.random_range(0..keys / 4).to_be_bytes().to_vec();
        model.retain(|key, _| *key >= to);
        changes.drop_range(Vec::new(), to);
    }
    for _ in 0..count {
        let (key, value) = change(random, keys);
        apply(model, &key, value.as_deref());
        match &value {
            Some(value) => changes.put(&key, |out| out.extend_from_slice(value)),
            None => changes.delete(&key),
        }
    }
    changes
}

fn runs(random: &mut StdRng, count: usize, keys: u32, model: &mut Model) -> Vec<Arc<Run>> {
    (0..3)
        .map(|_| {
            let entries: Vec<_> = (0..count / 3).map(|_| change(random, keys)).collect();
            for (key, value) in &entries {
                apply(model, key, value.as_deref());
            }
            let entries = entries
                .iter()
                .map(|(key, value)| (key.as_slice(), value.as_deref()))
                .collect();
            Arc::new(Run::from_entries(entries))
        })
        .collect()
}

fn stored(state: &RocksState, prefix: StatePrefix) -> Model {
    let entries = state.slot(prefix).entries().expect("readable");
    entries
        .into_iter()
        .map(|(key, value)| (key.into_vec(), value.into_vec()))
        .collect()
}

fn seen(snapshot: &BaseSnapshot, prefix: StatePrefix) -> Model {
    let page = snapshot
        .page(prefix.bytes(), &prefix.end(), usize::MAX)
        .expect("readable");
    page.into_iter()
        .map(|(key, value)| (key[StatePrefix::LEN..].to_vec(), value.into_vec()))
        .collect()
}

fn leftovers(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("sorted"))
        .expect("a folder")
        .count()
}

/// More than any test needs.
const MEMORY: usize = 64 << 20;

#[test]
fn what_is_written_is_there_however_much_it_is() {
    let mut random = StdRng::seed_from_u64(7);
    let folder = tempfile::tempdir().expect("a folder");
    let live = folder.path().join("live");
    let state = RocksState::open(&live, MEMORY).expect("it opens");
    let prefixes = [operator(1, 0), operator(1, 1), table(1), operator(2, 0)];
    let mut models = vec![Model::new(); prefixes.len()];
    let mut snapshots: Vec<(Arc<BaseSnapshot>, Vec<Model>)> = Vec::new();
    for round in 0..12 {
        for (number, model) in models.iter_mut().enumerate() {
            // 45,000 changes are more than a memtable's share, 300 are less.
            let large = random.random_range(0..3) == 0;
            let (count, keys) = if large { (45_000, 60_000) } else { (300, 900) };
            if prefixes[number] == table(1) {
                let runs = runs(&mut random, count, keys, model);
                state.write_runs(prefixes[number], &runs).expect("written");
            } else {
                let changes = changes(&mut random, count, keys, model);
                state
                    .write(&[(prefixes[number], changes)])
                    .expect("written");
            }
        }
        for (prefix, model) in prefixes.iter().zip(&models) {
            assert!(stored(&state, *prefix) == *model, "round {round}");
        }
        assert_eq!(leftovers(&live), 0, "the database took all files over");
        snapshots.push((state.snapshot(), models.clone()));
    }
    for (snapshot, models) in &snapshots {
        for (prefix, model) in prefixes.iter().zip(models) {
            assert!(seen(snapshot, *prefix) == *model, "a snapshot has changed");
        }
    }
    let copy = folder.path().join("copy");
    state.write_checkpoint(&copy).expect("a checkpoint");
    state
        .delete_range(&1u64.to_be_bytes(), &2u64.to_be_bytes())
        .expect("removed");
    assert_eq!(state.queries().expect("readable"), [QueryId(2)]);
    drop(snapshots);
    drop(state);
    let restored = RocksState::open(&copy, MEMORY).expect("it opens");
    for (prefix, model) in prefixes.iter().zip(&models) {
        assert!(stored(&restored, *prefix) == *model, "the checkpoint");
    }
    let queries = restored.queries().expect("readable");
    assert_eq!(queries, [QueryId(1), QueryId(2)]);
}

#[test]
fn changes_that_cannot_be_written_leave_no_files_and_can_be_written_again() {
    let mut random = StdRng::seed_from_u64(8);
    let folder = tempfile::tempdir().expect("a folder");
    let state = RocksState::open(folder.path(), MEMORY).expect("it opens");
    let sorted = folder.path().join("sorted");
    let mut model = Model::new();
    let changes = vec![(
        operator(1, 0),
        changes(&mut random, 45_000, 60_000, &mut model),
    )];
    // A folder that is not there refuses whoever writes, even the administrator.
    std::fs::remove_dir(&sorted).expect("it is empty");
    state.write(&changes).expect_err("there is no folder");
    std::fs::create_dir(&sorted).expect("made again");
    state.write(&changes).expect("written");
    assert!(stored(&state, operator(1, 0)) == model);
    assert_eq!(leftovers(folder.path()), 0);
}
