//! Maps.

use datafusion::arrow::array::StringArray;

use crate::harness::{check, column, over};

#[test]
fn maps_keep_the_order_of_their_entries() {
    check(&[
        (
            "as_map(ARRAY['b', 'a', 'b'], ARRAY[1, 2, 3])",
            "{b: 3, a: 2}",
        ),
        ("as_map(ARRAY['a', 'b'], ARRAY[1])", "{a: 1}"),
        ("as_map(NULL, ARRAY[1])", "NULL"),
        ("as_map(ARRAY['a', NULL], ARRAY[1, 2])", "NULL"),
        (
            "map_keys(as_map(ARRAY['b', 'a'], ARRAY[1, NULL]))",
            "[b, a]",
        ),
        (
            "map_values(as_map(ARRAY['b', 'a'], ARRAY[1, NULL]))",
            "[1, NULL]",
        ),
        (
            "entries(as_map(ARRAY['b', 'a'], ARRAY[1, 2]), TRUE)",
            "[{K: a, V: 2}, {K: b, V: 1}]",
        ),
        (
            "entries(as_map(ARRAY['b', 'a'], ARRAY[1, 2]), FALSE)",
            "[{K: b, V: 1}, {K: a, V: 2}]",
        ),
        (
            "map_union(as_map(ARRAY['a'], ARRAY[1]), as_map(ARRAY['b', 'a'], ARRAY[2, NULL]))",
            "{a: NULL, b: 2}",
        ),
        ("map_union(NULL, as_map(ARRAY['b'], ARRAY[2]))", "{b: 2}"),
        (
            "map_values(map_union(as_map(ARRAY['a'], ARRAY[1]), as_map(ARRAY['b'], ARRAY[2.5])))",
            "[1.0, 2.5]",
        ),
    ]);
}

#[test]
fn maps_of_a_column() {
    let texts = StringArray::from(vec![Some("a=1;b=2"), None, Some("c=3")]);
    let rows = |expression: &str| over(vec![column("s", texts.clone())], expression);
    assert_eq!(
        rows("map_keys(split_to_map(s, ';', '='))"),
        ["[a, b]", "NULL", "[c]"]
    );
    assert_eq!(
        rows("map_union(split_to_map(s, ';', '='), as_map(ARRAY['c'], ARRAY['x']))"),
        ["{a: 1, b: 2, c: x}", "{c: x}", "{c: x}"]
    );
    assert_eq!(
        rows("array_length(entries(split_to_map(s, ';', '='), TRUE))"),
        ["2", "NULL", "1"]
    );
}
