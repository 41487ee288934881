//! FILTER, TRANSFORM, REDUCE.

use datafusion::arrow::{
    array::{Array, Int32Array, ListArray},
    datatypes::Int32Type,
};
use highwater_functions::take_row_errors;

use crate::harness::{check, column, over, try_value};

fn columns() -> Vec<(String, datafusion::arrow::array::ArrayRef)> {
    let numbers = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(3), Some(10), None]),
        None,
        Some(vec![]),
        Some(vec![Some(7)]),
    ]);
    vec![
        column("a", numbers),
        column("n", Int32Array::from(vec![Some(5), Some(6), Some(7), None])),
    ]
}

#[test]
fn lambdas_over_arrays() {
    let cases = [
        ("filter(a, x -> x > 5)", ["[10]", "NULL", "[]", "[7]"]),
        ("filter(a, x -> x > n)", ["[10]", "NULL", "[]", "[]"]),
        ("filter(a, x -> x IS NULL)", ["[NULL]", "NULL", "[]", "[]"]),
        (
            "filter(a, x -> true)",
            ["[3, 10, NULL]", "NULL", "[]", "[7]"],
        ),
        (
            "transform(a, x -> x + n)",
            ["[8, 15, NULL]", "NULL", "[]", "[NULL]"],
        ),
        ("transform(a, x -> 'k')", ["[k, k, k]", "NULL", "[]", "[k]"]),
        (
            "reduce(a, 0, (s, x) -> s + coalesce(x, 100))",
            ["113", "0", "0", "7"],
        ),
        ("reduce(a, n, (s, x) -> s + x)", ["NULL", "6", "7", "NULL"]),
        (
            "reduce(a, '', (s, x) -> concat(s, CAST(x AS VARCHAR), ';'))",
            ["3;10;;", "", "", "7;"],
        ),
        (
            "array_length(filter(transform(a, x -> x * 2), y -> y > 10))",
            ["1", "NULL", "0", "1"],
        ),
        (
            "reduce(a, 0, (s, x) -> s + reduce(a, 0, (t, y) -> t + coalesce(y, 0)))",
            ["39", "0", "0", "7"],
        ),
    ];
    for (expression, expected) in cases {
        assert_eq!(over(columns(), expression), expected, "{expression}");
    }
}

#[test]
fn lambdas_over_maps() {
    check(&[
        (
            "filter(as_map(ARRAY['a', 'bb'], ARRAY[1, 20]), (k, v) -> len(k) > 1 AND v > 5)",
            "{bb: 20}",
        ),
        (
            "transform(as_map(ARRAY['a', 'b'], ARRAY[1, 2]), (k, v) -> concat(k, '!'), (k, v) -> v * 10)",
            "{a!: 10, b!: 20}",
        ),
        (
            "transform(as_map(ARRAY['a', 'b'], ARRAY[1, 2]), (k, v) -> 'same', (k, v) -> v)",
            "NULL",
        ),
        (
            "transform(as_map(ARRAY['a'], ARRAY[1]), (k, v) -> k, (k, v) -> nullif(v, 1))",
            "NULL",
        ),
        (
            "reduce(as_map(ARRAY['a', 'bb'], ARRAY[1, 20]), 0, (s, k, v) -> s + v * len(k))",
            "41",
        ),
    ]);
}

#[test]
fn the_state_widens_with_the_numbers() {
    check(&[
        (
            "arrow_typeof(reduce(ARRAY[1.5, 2.5], 0, (s, x) -> s + x))",
            "Float64",
        ),
        ("reduce(ARRAY[1.5, 2.5], 0, (s, x) -> s + x)", "4.0"),
    ]);
    assert!(
        try_value("reduce(ARRAY['a'], 0, (s, x) -> x)").is_err(),
        "text is no number"
    );
}

#[test]
fn wrong_lambdas_are_refused() {
    for bad in [
        "filter(ARRAY[1], x -> x + 1)",
        "filter(1, x -> true)",
        "filter(ARRAY[1], 2)",
        "transform(ARRAY[1], x -> x, y -> y)",
        "transform(as_map(ARRAY['a'], ARRAY[1]), (k, v) -> k)",
        "transform(as_map(ARRAY['a'], ARRAY[1]), (k, v) -> v, (k, v) -> v)",
        "reduce(ARRAY[1], x -> x)",
    ] {
        assert!(try_value(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_failing_element_makes_its_row_null() {
    let rows = over(
        columns(),
        "transform(a, x -> stringtodate(CAST(x AS VARCHAR), 'dd'))",
    );
    assert_eq!(
        rows,
        ["[NULL, 9, NULL]", "NULL", "[]", "[NULL]"],
        "the element is NULL, as any nested error"
    );
    assert_eq!(take_row_errors().reasons.len(), 2);
}

#[test]
fn a_slice_of_a_batch_sees_its_own_elements() {
    let (name, array) = columns().remove(0);
    let tail = vec![(name, array.slice(2, 2))];
    assert_eq!(
        over(tail.clone(), "transform(a, x -> x + 1)"),
        ["[]", "[8]"]
    );
    assert_eq!(over(tail, "reduce(a, 1, (s, x) -> s * x)"), ["1", "7"]);
}
