//! The fuzz target's promise over mutations of real statements, by a seed and within a time, for machines without a fuzzer.
//!
//! `HIGHWATER_FUZZ_SEED` repeats a run, `HIGHWATER_FUZZ_SECONDS` makes it longer.

use std::time::{Duration, Instant};

use highwater_sql::fuzzing;

/// Statements of all families; mutations mix and break them.
const SEEDS: &[&str] = &[
    "CREATE OR REPLACE STREAM IF NOT EXISTS s (k INT KEY, v ARRAY<STRUCT<a INT, `b` MAP<STRING, BYTES>>>, h BYTES HEADER('x')) WITH (kafka_topic='t', partitions=1);",
    "CREATE TABLE t WITH (value_format='JSON') AS SELECT k, count(*) AS n FROM s WINDOW HOPPING (SIZE 1 HOUR, ADVANCE BY 5 MINUTES, RETENTION 2 DAYS, GRACE PERIOD 0 SECONDS) WHERE v > 0 GROUP BY k HAVING count(*) > 1 EMIT FINAL;",
    "SELECT a.x, b->y->*, c[1]->d['k'] FROM a LEFT JOIN b WITHIN (1 HOUR, 2 DAYS) GRACE PERIOD 1 DAY ON a.x = b.x PARTITION BY a.x, f(b) EMIT CHANGES LIMIT 3;",
    "SELECT transform(m, (k, v) => ucase(k), (k, v) => v + 1), reduce(a, 0, (s, x) => s + x), CAST(a AS MAP<STRING, INT ARRAY>) FROM s;",
    "INSERT INTO s (a, b) VALUES (1, 'it''s'), (-2.5e3, DECIMAL '1.5');",
    "SELECT CASE WHEN a IS DISTINCT FROM b THEN ARRAY[1, 2] ELSE NULL END, MAP('k' := 1), STRUCT(f := 2), trim(both 'x' FROM a) LIKE 'a!%' ESCAPE '!' FROM s AS t WHERE x BETWEEN 1 AND 2 OR y IN (1, 2) UNION ALL SELECT 1;",
    "DEFINE a = 'b'; SELECT '${a}', ${a}; UNDEFINE a; SHOW ALL TOPICS EXTENDED; DESCRIBE FUNCTION f; PRINT 'x' FROM BEGINNING SAMPLE 2 LIMIT 5;",
    "ASSERT NOT EXISTS TOPIC t WITH (partitions=1) TIMEOUT 3 SECONDS; ASSERT NULL VALUES t (k) KEY (1); ALTER STREAM s ADD COLUMN c INT, ADD d addr; CREATE TYPE addr AS STRUCT<z INT>;",
    "COPY (SELECT 1) TO STDOUT WITH (FORMAT csv, HEADER); DECLARE c CURSOR FOR SELECT 1; FETCH 5 FROM c; SET TIME ZONE 'UTC'; BEGIN; ROLLBACK TO x;",
    "SELECT U&'\\0061', E'\\n', $$a$$, $1::int[], \"q\"\"q\", `t`, 1st, a@b -- c\n/* /* */ */ FROM x;",
];

/// A linear congruential generator: the same mutations for the same seed everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound.max(1)
    }

    /// A stretch of one of the seeds.
    fn piece(&mut self) -> &'static [u8] {
        let seed = SEEDS[self.below(SEEDS.len())].as_bytes();
        let start = self.below(seed.len());
        let length = self.below(24.min(seed.len() - start));
        &seed[start..start + length]
    }
}

/// One to eight changes: bytes turned, stretches cut out, doubled, moved in from elsewhere.
fn mutate(text: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(8) {
        let at = random.below(text.len() + 1);
        let end = (at + random.below(16)).min(text.len());
        match random.below(5) {
            0 if at < text.len() => text[at] ^= 1 << random.below(8),
            1 => drop(text.drain(at..end)),
            2 => {
                let copy = text[at..end].to_vec();
                text.splice(at..at, copy);
            }
            3 => drop(text.splice(at..end, random.piece().iter().copied())),
            _ => {
                let marks = b"()[]{}<>'\"`$;,.:=->*+@/\\\x00\xff";
                text.insert(at, marks[random.below(marks.len())]);
            }
        }
    }
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn mutated_scripts_keep_the_parsers_promises() {
    let seed = from_environment("HIGHWATER_FUZZ_SEED", 20_261_130);
    let seconds = from_environment("HIGHWATER_FUZZ_SECONDS", 5);
    println!("seed {seed}, {seconds} s");
    let mut random = Random(seed);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut runs = 0;
    while Instant::now() < end || runs < 100 {
        let mut data = vec![u8::try_from(random.below(4)).unwrap()];
        let mut text = SEEDS[random.below(SEEDS.len())].as_bytes().to_vec();
        mutate(&mut text, &mut random);
        data.append(&mut text);
        fuzzing::script(&data);
        runs += 1;
    }
    println!("{runs} scripts");
}

/// The seeds themselves are statements, or the mutations would explore nothing.
#[test]
fn seeds_are_statements() {
    for seed in &SEEDS[..SEEDS.len() - 1] {
        let statements = highwater_sql::parse_script_in(
            &seed.replace("${a}", "x"),
            highwater_sql::Language::KSQL,
        );
        assert!(statements.is_ok(), "{seed}\n{:?}", statements.err());
    }
}
