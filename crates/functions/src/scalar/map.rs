//! Functions of maps. Entries keep the order in which they were put in.

use std::{collections::HashMap, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, ListArray, MapArray, StructArray, UInt32Array},
    buffer::{NullBuffer, OffsetBuffer},
    compute::{concat, take},
    datatypes::{DataType, Field, Fields},
};
use datafusion::common::{Result, internal_err};

use crate::{
    call::{Call, Row, settle, value},
    function::{Category, Function, Overload, Returns},
    scalar::array::{element_field, index, rebuild},
    signature::{Kind, Param, param},
    types::{list, map_types},
};

const MAP: Param = param("map", Kind::Map(&Kind::Text, &Kind::U), "the map");

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new(
        "as_map",
        Category::Map,
        "A map of an array of keys and an array of values; of unequal ones, the rest of the longer is left out.",
        &[Overload::new(
            &[
                param("keys", Kind::Array(&Kind::Text), "the keys"),
                param("values", Kind::Array(&Kind::U), "the values"),
            ],
            Kind::Map(&Kind::Text, &Kind::U),
            as_map,
        )],
        &[(
            "map_values(as_map(ARRAY['a', 'b'], ARRAY[1, 2]))",
            "ARRAY[1, 2]",
        )],
    ),
    Function::new(
        "entries",
        Category::Map,
        "The entries of a map as an array of structs with the fields K and V.",
        &[Overload::new(
            &[
                MAP,
                param(
                    "sorted",
                    Kind::Boolean,
                    "whether they come in the order of their keys",
                ),
            ],
            Kind::Any,
            entries,
        )
        .returning(Returns::Computed(entries_type, Kind::Array(&Kind::Any)))],
        &[(
            "array_length(entries(as_map(ARRAY['b', 'a'], ARRAY[1, 2]), TRUE))",
            "2",
        )],
    ),
    Function::new(
        "map_keys",
        Category::Map,
        "The keys of a map.",
        &[Overload::new(&[MAP], Kind::Array(&Kind::Text), |call| {
            let map = call.map(0);
            rebuild(call, map.keys(), |row, chosen| {
                chosen.extend(value!(map.get(row)).map(index));
                Ok(Some(()))
            })
        })],
        &[(
            "map_keys(as_map(ARRAY['a', 'b'], ARRAY[1, 2]))",
            "ARRAY['a', 'b']",
        )],
    )
    .ksql_only(),
    Function::new(
        "map_values",
        Category::Map,
        "The values of a map.",
        &[Overload::new(&[MAP], Kind::Array(&Kind::U), |call| {
            let map = call.map(0);
            rebuild(call, map.values(), |row, chosen| {
                chosen.extend(value!(map.get(row)).map(index));
                Ok(Some(()))
            })
        })],
        &[(
            "map_values(as_map(ARRAY['a', 'b'], ARRAY[1, 2]))",
            "ARRAY[1, 2]",
        )],
    )
    .ksql_only(),
    Function::new(
        "map_union",
        Category::Map,
        "The entries of two maps; of equal keys, the value of the second. A NULL map counts for nothing, unless both are NULL.",
        &[Overload::new(
            &[
                MAP,
                param("other", Kind::Map(&Kind::Text, &Kind::U), "another map"),
            ],
            Kind::Map(&Kind::Text, &Kind::U),
            map_union,
        )],
        &[(
            "map_values(map_union(as_map(ARRAY['a', 'b'], ARRAY[1, 2]), as_map(ARRAY['b'], ARRAY[3])))",
            "ARRAY[1, 3]",
        )],
    ),
];

/// A column of maps. `choose` appends, for a row, the numbers of the keys and of the values that make its entries.
pub(crate) fn build_maps(
    call: &Call,
    keys: &ArrayRef,
    values: &ArrayRef,
    mut choose: impl FnMut(usize, &mut Vec<(u32, u32)>) -> Row<()>,
) -> Result<ArrayRef> {
    let mut chosen: Vec<(u32, u32)> = Vec::new();
    let mut lengths = Vec::with_capacity(call.rows());
    let mut valid = Vec::with_capacity(call.rows());
    for row in 0..call.rows() {
        let before = chosen.len();
        let kept = settle(choose(row, &mut chosen)).is_some();
        if !kept {
            chosen.truncate(before);
        }
        valid.push(kept);
        lengths.push(chosen.len() - before);
    }
    let keys = take(
        keys,
        &UInt32Array::from_iter_values(chosen.iter().map(|entry| entry.0)),
        None,
    )?;
    let values = take(
        values,
        &UInt32Array::from_iter_values(chosen.iter().map(|entry| entry.1)),
        None,
    )?;
    map_array(call.return_type(), keys, values, lengths, valid)
}

/// Maps of `data_type` from their parts.
pub(crate) fn map_array(
    data_type: &DataType,
    keys: ArrayRef,
    values: ArrayRef,
    lengths: Vec<usize>,
    valid: Vec<bool>,
) -> Result<ArrayRef> {
    let DataType::Map(entries_field, ordered) = data_type else {
        return internal_err!("{data_type} is no map");
    };
    let DataType::Struct(fields) = entries_field.data_type() else {
        return internal_err!("{data_type} is no map");
    };
    let entries = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
    Ok(Arc::new(MapArray::try_new(
        Arc::clone(entries_field),
        OffsetBuffer::from_lengths(lengths),
        entries,
        Some(NullBuffer::from(valid)),
        *ordered,
    )?))
}

/// Adds an entry; an earlier one of the same key gives way but keeps its place.
fn put<'k>(
    places: &mut HashMap<&'k str, usize>,
    chosen: &mut Vec<(u32, u32)>,
    key: &'k str,
    entry: (u32, u32),
) {
    match places.get(key) {
        Some(place) => chosen[*place].1 = entry.1,
        None => {
            places.insert(key, chosen.len());
            chosen.push(entry);
        }
    }
}

fn as_map(call: &Call) -> Result<ArrayRef> {
    let (keys, values) = (call.list(0), call.list(1));
    let texts = keys.elements().as_string::<i32>();
    build_maps(call, keys.elements(), values.elements(), |row, chosen| {
        let (keys, values) = (value!(keys.get(row)), value!(values.get(row)));
        let mut places = HashMap::new();
        for (key, value) in keys.zip(values) {
            if texts.is_null(key) {
                return Err("a key of a map is NULL".to_owned());
            }
            put(
                &mut places,
                chosen,
                texts.value(key),
                (index(key), index(value)),
            );
        }
        Ok(Some(()))
    })
}

fn map_union(call: &Call) -> Result<ArrayRef> {
    let (left, right) = (call.map(0), call.map(1));
    let behind = left.keys().len();
    let keys = concat(&[left.keys().as_ref(), right.keys().as_ref()])?;
    let values = concat(&[left.values().as_ref(), right.values().as_ref()])?;
    let texts = keys.as_string::<i32>();
    build_maps(call, &keys, &values, |row, chosen| {
        let (left, right) = (left.get(row), right.get(row));
        if left.is_none() && right.is_none() {
            return Ok(None);
        }
        let mut places = HashMap::new();
        let entries = left
            .into_iter()
            .flatten()
            .chain(right.into_iter().flatten().map(|entry| entry + behind));
        for entry in entries {
            put(
                &mut places,
                chosen,
                texts.value(entry),
                (index(entry), index(entry)),
            );
        }
        Ok(Some(()))
    })
}

/// `ARRAY<STRUCT<K VARCHAR, V ..>>`.
fn entries_type(types: &[DataType]) -> Option<DataType> {
    let (key, value) = map_types(types.first()?)?;
    Some(list(DataType::Struct(Fields::from(vec![
        Field::new("K", key.clone(), true),
        Field::new("V", value.clone(), true),
    ]))))
}

fn entries(call: &Call) -> Result<ArrayRef> {
    let (map, sorted) = (call.map(0), call.boolean(1));
    let texts = map.keys().as_string::<i32>();
    let mut chosen: Vec<u32> = Vec::new();
    let mut lengths = Vec::with_capacity(call.rows());
    let mut valid = Vec::with_capacity(call.rows());
    for row in 0..call.rows() {
        let start = chosen.len();
        let found = map.get(row).zip(sorted.get(row));
        if let Some((range, sorted)) = found.clone() {
            chosen.extend(range.map(index));
            if sorted {
                chosen[start..].sort_by_key(|entry| texts.value(*entry as usize));
            }
        }
        valid.push(found.is_some());
        lengths.push(chosen.len() - start);
    }
    let numbers = UInt32Array::from(chosen);
    let field = element_field(call.return_type())?;
    let DataType::Struct(fields) = field.data_type() else {
        return internal_err!("entries are structs");
    };
    let structs = StructArray::try_new(
        fields.clone(),
        vec![
            take(map.keys(), &numbers, None)?,
            take(map.values(), &numbers, None)?,
        ],
        None,
    )?;
    Ok(Arc::new(ListArray::try_new(
        field,
        OffsetBuffer::from_lengths(lengths),
        Arc::new(structs),
        Some(NullBuffer::from(valid)),
    )?))
}
