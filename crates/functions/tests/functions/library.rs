//! The library as a whole: every example, every name, both dialects.

use datafusion::{
    arrow::array::{Int32Array, StringArray},
    execution::FunctionRegistry,
    prelude::SessionContext,
};
use highwater_functions::{
    Category, Dialect, StepClock, catalog, reads_step, scalar_functions, take_row_errors,
};

use crate::harness::{column, evaluate, over, session, try_value};

/// Our parser turns `x => e` into the lambda that other dialects write `x -> e`.
fn with_arrows(text: &str) -> String {
    text.replace("=>", "->")
}

#[test]
fn every_example_gives_what_it_says() {
    let session = session(Dialect::Ksql);
    let mut wrong = Vec::new();
    let mut examples = 0;
    for doc in catalog() {
        for (call, result) in doc.examples {
            examples += 1;
            let one = || vec![column("unused", Int32Array::from(vec![1]))];
            let given = evaluate(&session, &with_arrows(call), one());
            let expected = evaluate(&session, result, one());
            if given.is_err() || given != expected {
                wrong.push(format!("{call}: {given:?} instead of {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(examples > 120, "{examples} examples");
}

#[test]
fn ksqldb_s_149_functions_are_there() {
    let count = |wanted: &[Category]| {
        catalog()
            .iter()
            .filter(|doc| wanted.contains(&doc.category))
            .count()
    };
    assert_eq!(count(&[Category::Aggregate]), 18);
    assert_eq!(count(&[Category::Table]), 2);
    assert_eq!(catalog().len(), 149);
    let mut names: Vec<&str> = catalog().iter().map(|doc| doc.name).collect();
    names.dedup();
    assert_eq!(names.len(), 149, "names are unique");
    for doc in catalog() {
        assert!(
            !doc.description.is_empty() && !doc.variants.is_empty(),
            "{}",
            doc.name
        );
        for variant in &doc.variants {
            assert!(
                variant
                    .params
                    .iter()
                    .all(|param| !param.description.is_empty()),
                "{}",
                doc.name
            );
        }
    }
}

/// The page on the functions is what the library says of itself; `BLESS=1` writes it anew.
#[test]
fn the_page_on_functions_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/functions.md");
    let page = page();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/functions.md is out of date: run this test with BLESS=1"
    );
}

fn page() -> String {
    let mut page = String::from(PAGE_START);
    for category in CATEGORIES {
        page.push_str(&format!("\n## {}\n\n", category.name()));
        page.push_str("| function | what it gives | example |\n|---|---|---|\n");
        for doc in catalog().iter().filter(|doc| doc.category == category) {
            let forms: Vec<String> = doc
                .variants
                .iter()
                .map(|variant| format!("`{} → {}`", variant.form(doc.name), variant.returns))
                .collect();
            let mark = if doc.ksql_only { " *" } else { "" };
            let examples: Vec<String> = doc
                .examples
                .iter()
                .map(|(call, result)| format!("`{call}` is `{result}`"))
                .collect();
            let cells = [
                forms.join("<br>") + mark,
                doc.description.to_owned(),
                examples.join("<br>"),
            ];
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            page.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
    }
    page
}

const PAGE_START: &str = "# Functions

ksqlDB's functions, in both dialects. Where PostgreSQL (or DataFusion) means something else by a name, the postgres dialect has its
meaning; these are marked with *. All other functions of DataFusion are there too: `SHOW FUNCTIONS` lists everything, `DESCRIBE FUNCTION name`
tells about one.

- A row that a function cannot serve (a text that is no date, a pattern that cannot run) has NULL there and leaves a line in the stream
  `processing_log`; the query goes on. An INSERT of such a value fails.
- Arguments of type INT go where BIGINT, DECIMAL or DOUBLE is wanted, and so on in this order. `T...` may be given several times.
- `UNIX_TIMESTAMP()`, `UNIX_DATE()`, `RANDOM()` and `UUID()` take the clock and the dice of the step in a continuous query, so a step that
  runs again after a crash gives the same. Over a table they are refused there: a row could not be taken back.
- Date patterns are those of Java's `DateTimeFormatter`, regular expressions those of `java.util.regex` without look-around,
  back-references and possessive quantifiers; what is not supported is refused with its position.
- In `DATEADD(unit, ..)` and its like the unit is written bare: `DATEADD(DAYS, 3, day)`.
- Lambdas are written `x => x + 1` or `(k, v) => v`; they may use other columns of the row.
";

const CATEGORIES: [Category; 15] = [
    Category::Math,
    Category::Conditional,
    Category::String,
    Category::Regex,
    Category::Bytes,
    Category::Json,
    Category::Url,
    Category::DateTime,
    Category::Array,
    Category::Map,
    Category::Lambda,
    Category::Geography,
    Category::Key,
    Category::Aggregate,
    Category::Table,
];

#[test]
fn postgres_keeps_its_names() {
    let plain = SessionContext::new();
    let theirs = plain.udfs();
    for function in scalar_functions(Dialect::Postgres) {
        assert!(
            !theirs.contains(function.name()),
            "{} means something else in PostgreSQL",
            function.name()
        );
    }
    let session = session(Dialect::Postgres);
    let one = || vec![column("unused", Int32Array::from(vec![1]))];
    assert_eq!(evaluate(&session, "round(2.5)", one()).unwrap(), ["3.0"]);
    assert_eq!(
        evaluate(&session, "extractjsonfield('{\"a\": 1}', '$.a')", one()).unwrap(),
        ["1"]
    );
    let state = session.state();
    for doc in catalog() {
        if matches!(doc.category, Category::Aggregate | Category::Table) {
            continue;
        }
        let known = state.scalar_functions().contains_key(doc.name)
            || state.higher_order_functions().contains_key(doc.name);
        assert!(known, "{} has no meaning in the postgres dialect", doc.name);
    }
}

#[test]
fn a_bad_row_is_null_and_reported() {
    let dates = StringArray::from(vec![
        Some("2024-02-03"),
        Some("soon"),
        None,
        Some("2024-02-04"),
    ]);
    let rows = over(vec![column("d", dates)], "stringtodate(d, 'yyyy-MM-dd')");
    assert_eq!(rows, ["19756", "NULL", "NULL", "19757"]);
    let errors = take_row_errors();
    assert_eq!(errors.reasons.len(), 1, "{errors:?}");
    assert!(errors.reasons[0].contains("soon"), "{errors:?}");
    assert!(take_row_errors().is_empty(), "reports are taken once");
}

#[test]
fn calls_that_no_overload_takes_are_refused_with_the_forms() {
    let error = try_value("geo_distance(1, 2, 'x', 4)").unwrap_err();
    assert!(
        error.contains(
            "function geo_distance does not accept parameters (BIGINT, BIGINT, VARCHAR, BIGINT)"
        ),
        "{error}"
    );
    assert!(
        error.contains("geo_distance(lat1 DOUBLE, lon1 DOUBLE, lat2 DOUBLE, lon2 DOUBLE) or"),
        "{error}"
    );
    for bad in [
        "greatest()",
        "greatest(NULL, NULL)",
        "greatest('a', 1)",
        "dateadd(from_days(1), 1, from_days(1))",
        "len(1)",
    ] {
        assert!(try_value(bad).is_err(), "{bad}");
    }
}

#[test]
fn clock_and_dice_are_the_step_s() {
    let session = session(Dialect::Ksql);
    let three = || vec![column("n", Int32Array::from(vec![1, 2, 3]))];
    let run = |expression: &str, seed| {
        let _step = StepClock::enter(86_400_005, seed);
        evaluate(&session, expression, three()).unwrap()
    };
    assert_eq!(run("unix_timestamp()", 1), ["86400005"; 3]);
    assert_eq!(run("unix_date()", 1), ["1"; 3]);
    for expression in ["random()", "uuid()"] {
        let first = run(expression, 1);
        assert_eq!(first, run(expression, 1), "a step that runs again");
        assert_ne!(first, run(expression, 2), "another step");
        assert_ne!(first[0], first[1], "another row");
    }
    let of_step = |name: &str| reads_step(&session.state().scalar_functions()[name]);
    assert!(of_step("random") && of_step("unix_timestamp") && !of_step("abs"));
}
