//! The functions of the fuzz targets on mutations of the corpus in `fuzz/corpus`: what CI runs without a nightly compiler. The seed is printed;
//! `HIGHWATER_FUZZ_SEED` repeats a run, `HIGHWATER_FUZZ_SECONDS` makes it longer.

use std::{
    fs,
    panic::catch_unwind,
    path::Path,
    time::{Duration, Instant},
};

use highwater_storage_log::fuzzing;
use rand::{Rng, SeedableRng, rngs::SmallRng};

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut paths: Vec<_> = fs::read_dir(&dir)
        .expect("corpus")
        .map(|entry| entry.expect("entry").path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| fs::read(path).expect("read"))
        .collect()
}

/// Values at which lengths and counts go wrong.
const EDGES: [u64; 8] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff_ffff,
    0xffff_ffff,
    i64::MAX as u64,
    u64::MAX,
];

fn mutate(input: &mut Vec<u8>, others: &[Vec<u8>], rng: &mut SmallRng) {
    for _ in 0..rng.random_range(1..6) {
        let at = rng.random_range(0..=input.len());
        match rng.random_range(0..7) {
            0 if at < input.len() => input[at] ^= 1 << rng.random_range(0..8),
            1 if at < input.len() => input[at] = rng.random(),
            2 => input.truncate(at),
            3 => input.insert(at, rng.random()),
            4 => {
                let edge = EDGES[rng.random_range(0..EDGES.len())].to_be_bytes();
                let width = 1 << rng.random_range(0..4);
                let end = (at + width).min(input.len());
                input[at..end].copy_from_slice(&edge[8 - (end - at)..]);
            }
            5 => {
                let end = rng.random_range(at..=input.len());
                let part = input[at..end].to_vec();
                input.splice(at..at, part);
            }
            _ => {
                let other = &others[rng.random_range(0..others.len())];
                let from = rng.random_range(0..=other.len());
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
        }
    }
    input.truncate(64 << 10);
}

fn run(target: &str, decode: fn(&[u8])) {
    let corpus = corpus(target);
    corpus.iter().for_each(|input| decode(input));
    let seed = setting("HIGHWATER_FUZZ_SEED").unwrap_or_else(rand::random);
    let seconds = Duration::from_secs(setting("HIGHWATER_FUZZ_SECONDS").unwrap_or(2));
    println!("{target}: HIGHWATER_FUZZ_SEED={seed}");
    let mut rng = SmallRng::seed_from_u64(seed);
    let begin = Instant::now();
    let mut runs = 0u64;
    while begin.elapsed() < seconds {
        let mut input = corpus[rng.random_range(0..corpus.len())].clone();
        mutate(&mut input, &corpus, &mut rng);
        if catch_unwind(|| decode(&input)).is_err() {
            panic!(
                "{target} panics, seed {seed}, run {runs}, on {}",
                input.escape_ascii()
            );
        }
        runs += 1;
    }
    println!("{target}: {runs} inputs");
    assert!(runs > 100, "only {runs} inputs were tried");
}

#[test]
fn batches_of_any_bytes_are_refused_or_sound() {
    run("batch", fuzzing::batch);
}

#[test]
fn indexes_of_any_bytes_are_refused_or_sound() {
    run("index", fuzzing::index);
}

#[test]
fn manifests_of_any_bytes_are_refused_or_sound() {
    run("manifest", fuzzing::manifest);
}
