//! Arrays.

use std::sync::Arc;

use datafusion::arrow::{
    array::{Array, Int32Array, ListArray, StringArray},
    datatypes::Int32Type,
};

use crate::harness::{check, column, over, session, try_value};
use highwater_functions::Dialect;

fn numbers() -> ListArray {
    ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(3), None, Some(1), Some(3)]),
        Some(vec![]),
        None,
        Some(vec![Some(9)]),
    ])
}

#[test]
fn arrays_of_a_column() {
    let other = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(3), None]),
        Some(vec![Some(7)]),
        Some(vec![Some(8)]),
        None,
    ]);
    let columns = || {
        vec![
            column("a", numbers()),
            column("b", other.clone()),
            column("x", Int32Array::from(vec![None, Some(1), Some(1), Some(9)])),
        ]
    };
    let cases = [
        ("array_length(a)", ["4", "0", "NULL", "1"]),
        ("array_max(a)", ["3", "NULL", "NULL", "9"]),
        ("array_min(a)", ["1", "NULL", "NULL", "9"]),
        ("array_contains(a, x)", ["true", "false", "false", "true"]),
        ("array_contains(a, 1)", ["true", "false", "false", "false"]),
        ("array_remove(a, x)", ["[3, 1, 3]", "[]", "NULL", "[]"]),
        ("array_distinct(a)", ["[3, NULL, 1]", "[]", "NULL", "[9]"]),
        ("array_sort(a)", ["[1, 3, 3, NULL]", "[]", "NULL", "[9]"]),
        (
            "array_sort(a, 'desc')",
            ["[3, 3, 1, NULL]", "[]", "NULL", "[9]"],
        ),
        (
            "array_sort(a, 'sideways')",
            ["NULL", "NULL", "NULL", "NULL"],
        ),
        (
            "array_concat(a, b)",
            ["[3, NULL, 1, 3, 3, NULL]", "[7]", "[8]", "[9]"],
        ),
        ("array_union(a, b)", ["[3, NULL, 1]", "[7]", "NULL", "NULL"]),
        ("array_except(a, b)", ["[1]", "[]", "NULL", "NULL"]),
        ("array_intersect(a, b)", ["[3, NULL]", "[]", "NULL", "NULL"]),
        ("array_join(a)", ["3,null,1,3", "", "NULL", "9"]),
        ("array_join(a, NULL)", ["3null13", "", "NULL", "9"]),
        ("slice(a, 2, 3)", ["[NULL, 1]", "NULL", "NULL", "NULL"]),
        (
            "slice(a, NULL, NULL)",
            ["[3, NULL, 1, 3]", "[]", "NULL", "[9]"],
        ),
        ("slice(a, 1, 1)", ["[3]", "NULL", "NULL", "[9]"]),
    ];
    for (expression, expected) in cases {
        assert_eq!(over(columns(), expression), expected, "{expression}");
    }
}

#[test]
fn a_slice_of_a_batch_sees_its_own_elements() {
    let tail = numbers().slice(3, 1);
    let rows = over(
        vec![column("a", tail)],
        "concat(array_join(array_distinct(a)), array_join(array_sort(a)))",
    );
    assert_eq!(rows, ["99"]);
}

#[test]
fn arrays_of_anything() {
    check(&[
        (
            "array_distinct(ARRAY[ARRAY['a'], ARRAY['b'], ARRAY['a']])",
            "[[a], [b]]",
        ),
        ("array_remove(ARRAY[ARRAY[1], ARRAY[2]], ARRAY[1])", "[[2]]"),
        ("array_max(ARRAY['b', 'a'])", "b"),
        ("array_max(ARRAY[false, true])", "true"),
        ("array_join(ARRAY[1.5, NULL, 2.0])", "1.5,null,2.0"),
        ("array_join(ARRAY[true, false], '/')", "true/false"),
        ("generate_series(3, 1)", "[3, 2, 1]"),
        ("generate_series(1, 9, 4)", "[1, 5, 9]"),
        ("generate_series(1, 9, -4)", "NULL"),
        ("generate_series(1, 9, 0)", "NULL"),
        ("generate_series(1, NULL)", "NULL"),
        ("generate_series(1, 9223372036854775807)", "NULL"),
        (
            "cube_variants(ARRAY[1, 2])",
            "[[NULL, NULL], [NULL, 2], [1, NULL], [1, 2]]",
        ),
        ("cube_variants(ARRAY[1, NULL])", "[[NULL, NULL], [1, NULL]]"),
        ("cube_variants(generate_series(1, 40))", "NULL"),
    ]);
    assert!(
        try_value("array_max(ARRAY[ARRAY[1]])").is_err(),
        "arrays have no order"
    );
    assert!(try_value("array_join(ARRAY[ARRAY[1]])").is_err());
}

#[test]
fn types_follow_the_arguments() {
    check(&[
        (
            "arrow_typeof(generate_series(arrow_cast(1, 'Int32'), arrow_cast(2, 'Int32')))",
            "List(Int32)",
        ),
        (
            "arrow_typeof(array_union(ARRAY[1], ARRAY[2.5]))",
            "List(Float64)",
        ),
        ("arrow_typeof(array_max(ARRAY['x']))", "Utf8"),
    ]);
    let large = Arc::new(StringArray::from(vec!["x"])) as Arc<dyn Array>;
    let session = session(Dialect::Ksql);
    let rows = crate::harness::evaluate(
        &session,
        "array_length(arrow_cast(ARRAY[s], 'LargeList(LargeUtf8)'))",
        vec![("s".to_owned(), large)],
    );
    assert_eq!(rows.unwrap(), ["1"]);
}
