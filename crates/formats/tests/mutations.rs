//! The functions of the fuzz targets on mutations of real records: what CI runs without a nightly compiler. The seed is printed;
//! `HIGHWATER_FUZZ_SEED` repeats a run, `HIGHWATER_FUZZ_SECONDS` makes it longer.

use std::{
    panic::catch_unwind,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use highwater_formats::fuzzing;

const JSON: &[&[u8]] = &[
    b"\x00{\"c0\": true, \"C1\": -12, \"c2\": 9223372036854775807, \"c3\": 1.5e-3, \"c4\": \"a\\u00e4\\n\\ud83d\\ude00\", \"c5\": \"AAEC\", \"c6\": 123456789.125, \"c7\": 19000, \"c8\": 86399999, \"c9\": 1700000000000}",
    b"\x00{\"c10\": {\"c1\": 1, \"c2\": \"x\", \"other\": [1, {\"a\": null}]}, \"c11\": [{\"c1\": 2}, null, {}], \"c12\": {\"k\": 1, \"\": null}}\x1e{}\x1enull\x1e{\"c0\": \"false\", \"c4\": {\"raw\": [1, 2.50, true]}}",
    b"\x01{\"c1\": \"17\", \"c2\": 1e3, \"c3\": \"NaN\", \"c6\": \"1.2345\"}\x1e{\"c4\": 1, \"c4\": 2}\x1e[1]",
    b"\x02true\x1e\"false\"\x1enull\x1e 1 ",
    b"\x0e\"text\"\x1e[1, 2]\x1e{\"a\": 1}\x1e-1.0",
    b"\x20{\"c1\": 1, \"c2\": \"x\"}\x1e{}",
    b"\x23[{\"c1\": 1}, {\"c2\": \"\"}]\x1e[]",
    b"\x26{\"a\": 1, \"b\": 2}\x1e{\"a\": 1, \"a\": 2}",
];
const DELIMITED: &[&[u8]] = &[
    b"\x00true,1,2,3.5,text,AAEC,1.250,2024-01-01,12:00:00,2024-01-01T00:00:00\x1e,,,,,,,,,\x1e\"false\",\"-1\",0,-0.0,\"a \"\"b\"\", c\",\"\",0,19000,1,1700000000000",
    b"\x01TRUE|+1|007|1e300|\"a\nb\"||-99999999.999|1|2|3",
    b"\x02a\tb\tc\td\te\tf\tg\th\ti\tj",
    b"\x031 2 3 4 5 6 7 8 9 10 11",
];
const KAFKA: &[&[u8]] = &[
    b"\x00\x00\x00\x00\x01\x1e\x7f\xff\xff\xff\x1e\x00",
    b"\x01\x00\x00\x00\x00\x00\x00\x00\x05\x1e12345678",
    b"\x02\x7f\xf8\x00\x00\x00\x00\x00\x00\x1e\x80\x00\x00\x00\x00\x00\x00\x00",
    b"\x03text\x1e\x1e\xff\xfe",
    b"\x04\x00\x01\x02key\x00\x00\x01\x8b\xcf\xe5\x68\x00",
];
const TIME_PATTERNS: &[&[u8]] = &[
    b"yyyy-MM-dd'T'HH:mm:ss.SSS[XXX]\x1e2024-02-29T23:59:59.999+01:00\x1enow",
    b"EEEE, d MMMM uuuu h:mm:ss a G z\x1eThursday, 1 February 2024 1:02:03 PM AD UTC\x1e~~~~~~~~",
    b"DDD yy n N A kk KK VV O xxx''[[[d]]]\x1e001 70 1 2 3 24 11 Europe/Berlin GMT+1 +01:00'\x1e\x00",
    b"yyyyyyyyyMMMMLLLLdd\x1e000002024JanuaryJanuary01\x1e\x7f\x7f\x7f\x7f\x7f",
];

/// Pieces at which formats go wrong.
const EDGES: &[&[u8]] = &[
    b"\x1e",
    b"\"",
    b"\\",
    b"\\u0000",
    b"\\ud800",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"null",
    b"true",
    b"-",
    b"0",
    b"1e999999",
    b"99999999999999999999999999999999999999",
    b"0.00000000000000000000000000000000000001",
    b"NaN",
    b"Infinity",
    b"\xff",
    b"\xed\xa0\x80",
    b"\x00",
    b"\r\n",
    b"'",
    b"[[",
    b"]]",
    b"+999999999-12-31",
    b"-292275055-05-16",
];

/// Longest input.
const MAX_INPUT: usize = 16 << 10;

/// A linear congruential generator: the same mutations for the same seed everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound.max(1)
    }
}

/// One to eight changes: bytes turned, stretches cut out, repeated or deepened, pieces moved in from elsewhere.
fn mutate(input: &mut Vec<u8>, seeds: &[&[u8]], random: &mut Random) {
    for _ in 0..=random.below(8) {
        let at = random.below(input.len() + 1);
        let end = (at + random.below(16)).min(input.len());
        match random.below(6) {
            0 if at < input.len() => input[at] ^= 1 << random.below(8),
            1 => drop(input.drain(at..end)),
            2 => {
                let repeated = input[at..end].repeat(1 + random.below(64));
                input.splice(at..at, repeated);
            }
            3 => {
                let other = seeds[random.below(seeds.len())];
                let from = random.below(other.len());
                let to = (from + random.below(32)).min(other.len());
                input.splice(at..end, other[from..to].iter().copied());
            }
            _ => {
                let edge = EDGES[random.below(EDGES.len())];
                input.splice(at..at, edge.iter().copied());
            }
        }
    }
    input.truncate(MAX_INPUT);
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn run(target: &str, seeds: &[&[u8]], check: fn(&[u8])) {
    seeds.iter().for_each(|input| check(input));
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since_epoch.map_or(0, |time| u64::from(time.subsec_nanos()));
    let seed = setting("HIGHWATER_FUZZ_SEED").unwrap_or(now);
    let seconds = Duration::from_secs(setting("HIGHWATER_FUZZ_SECONDS").unwrap_or(2));
    println!("{target}: HIGHWATER_FUZZ_SEED={seed}");
    let mut random = Random(seed);
    let begin = Instant::now();
    let mut runs = 0u64;
    while begin.elapsed() < seconds {
        let mut input = seeds[random.below(seeds.len())].to_vec();
        mutate(&mut input, seeds, &mut random);
        if catch_unwind(|| check(&input)).is_err() {
            panic!(
                "{target} breaks a promise, seed {seed}, run {runs}, on {}",
                input.escape_ascii()
            );
        }
        runs += 1;
    }
    println!("{target}: {runs} inputs");
    assert!(runs > 100, "only {runs} inputs were tried");
}

#[test]
fn json_of_any_bytes_is_refused_or_sound() {
    run("json", JSON, fuzzing::json);
}

#[test]
fn delimited_of_any_bytes_is_refused_or_sound() {
    run("delimited", DELIMITED, fuzzing::delimited);
}

#[test]
fn kafka_of_any_bytes_is_refused_or_sound() {
    run("kafka", KAFKA, fuzzing::kafka);
}

#[test]
fn date_patterns_of_any_bytes_are_refused_or_usable() {
    run("time_pattern", TIME_PATTERNS, fuzzing::time_pattern);
}
