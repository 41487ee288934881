//! The test runner tested: what it must pass, what it must fail, and what it says.

use std::{fs, path::PathBuf};

use clap::{Args, FromArgMatches};
use highwater_test_runner::{TestRunnerArgs, run, run_suite};

fn arguments(words: &[&str]) -> TestRunnerArgs {
    let command = TestRunnerArgs::augment_args(clap::Command::new("test-runner"));
    let matches = command
        .try_get_matches_from([&["test-runner"], words].concat())
        .expect("arguments are right");
    TestRunnerArgs::from_arg_matches(&matches).expect("arguments are complete")
}

fn file(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    path.join(name).display().to_string()
}

fn suite(words: &[&str]) -> (usize, usize, String) {
    let mut out = Vec::new();
    let tally = run_suite(&arguments(words), &mut out).expect("the suite can be read");
    let text = String::from_utf8(out).expect("text");
    (tally.passed, tally.failed, text)
}

#[test]
fn cases_that_are_right_pass() {
    let (passed, failed, text) = suite(&["--suite", &file("passing.json")]);
    assert_eq!((passed, failed), (8, 0), "{text}");
    assert_eq!(text, "8 passed, 0 failed\n");
}

/// What ksqlDB's dialect means, by behaviour: each file of the folder is about one part of the language.
#[test]
fn the_dialect_of_ksqldb_has_its_meaning() {
    let (passed, failed, text) = suite(&["--suite", &file("ksql")]);
    assert_eq!(failed, 0, "{text}");
    assert!(passed > 50, "the cases are all there: {passed}");
}

#[test]
fn cases_that_are_wrong_fail_and_say_why() {
    let (passed, failed, text) = suite(&["--suite", &file("failing.json"), "--jobs", "1"]);
    assert_eq!((passed, failed), (0, 9), "{text}");
    for reason in [
        "record 1: the value differs\n    - {\"topic\":\"b\",\"key\":1,\"value\":{\"v\":3}}\n    + {\"topic\":\"b\",\"key\":1,\"value\":{\"v\":2},",
        "record 1: the key differs",
        "record 1: the timestamp differs",
        "topic \"b\": 0 records instead of 1, missing",
        "topic \"b\": 2 records instead of 1, not expected",
        "the last statement was not refused\n    - it is too good",
        "statement 1: CREATE STREAM b AS",
        "the columns of \"a\" differ\n    - `k` INT KEY, `v` BIGINT\n    + `k` INT KEY, `v` INT",
    ] {
        assert!(text.contains(reason), "{reason}\n\nis not in\n\n{text}");
    }
    assert!(text.ends_with("0 passed, 9 failed\n"));
}

#[test]
fn cases_can_be_chosen() {
    let path = file("passing.json");
    let (passed, _, text) = suite(&["--suite", &path, "--filter", "tombstone", "--passed"]);
    assert_eq!(passed, 1);
    assert!(text.starts_with("PASS passing - a tombstone removes a row\n"));
    let (passed, _, _) = suite(&["--suite", &path, "--without", "delimited"]);
    assert_eq!(passed, 6, "words count in any case, of formats too");
    let (passed, _, _) = suite(&["--suite", &path, "--without", "DELIM"]);
    assert_eq!(passed, 8, "a part of a word does not count");
}

#[test]
fn failures_are_counted_by_kind() {
    let (_, _, text) = suite(&["--suite", &file("failing.json"), "--summary"]);
    assert!(text.contains("     1  topic \"..\", record N: the value differs\n"));
    assert!(text.contains("     2  topic \"..\": N records instead of N, missing\n"));
}

#[test]
fn a_script_is_tested_with_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let sql = write(
        "pipeline.sql",
        "CREATE STREAM rides (id INT KEY, km DOUBLE) WITH (kafka_topic='rides', value_format='JSON');\n\
         CREATE STREAM long_rides AS SELECT id, km FROM rides WHERE km > 10;",
    );
    let input = write(
        "input.json",
        r#"{"inputs": [{"topic": "rides", "key": 1, "value": {"km": 11.5}, "timestamp": 7}]}"#,
    );
    let right = write(
        "right.json",
        r#"{"outputs": [{"topic": "LONG_RIDES", "key": 1, "value": {"KM": 11.5}}]}"#,
    );
    let wrong = write(
        "wrong.json",
        r#"{"outputs": [{"topic": "LONG_RIDES", "key": 1, "value": {"KM": 12}}]}"#,
    );
    let actual = folder.path().join("actual.json").display().to_string();
    let files = ["--sql-file", &sql, "--input-file", &input];
    let exit = |more: &[&str]| {
        let code = run(&arguments(&[&files, more].concat())).expect("the files can be read");
        format!("{code:?}")
    };
    let (good, bad) = (
        format!("{:?}", std::process::ExitCode::SUCCESS),
        format!("{:?}", std::process::ExitCode::FAILURE),
    );
    assert_eq!(exit(&["--output-file", &right]), good);
    assert_eq!(exit(&["--output-file", &wrong]), bad);
    assert_eq!(exit(&["--actual-file", &actual]), good);
    assert_eq!(
        fs::read_to_string(&actual).expect("written"),
        "{\"outputs\": [\n  {\"topic\":\"LONG_RIDES\",\"key\":1,\"value\":{\"KM\":11.5},\"timestamp\":7}\n]}\n"
    );
    let folded = write(
        "folded.json",
        r#"{"outputs": [{"topic": "long_rides", "key": 1, "value": {"km": 11.5}}]}"#,
    );
    assert_eq!(
        exit(&["--output-file", &folded, "--dialect", "postgres"]),
        good
    );
    // What came out of one run can be the expectation of the next.
    assert_eq!(exit(&["--output-file", &actual]), good);
}
