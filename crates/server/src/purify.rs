//! Outside facts written into a statement, so that planning it again gives the same relation whatever has changed around it.
//!
//! Purification happens after the first planning, which is what settled the facts: the topic's name, its partitions, the formats that the
//! statement left to defaults.

use highwater_planner::catalog::{FormatName, Relation};
use highwater_sql::{CreateAs, CreateSource, Properties, PropertyValue};

/// `CREATE STREAM|TABLE (..)` as it is recorded.
pub fn create_source(create: &CreateSource, relation: &Relation) -> CreateSource {
    let mut pure = create.clone();
    pure.or_replace = false;
    pure.if_not_exists = false;
    settle(&mut pure.with, relation);
    pure
}

/// `CREATE STREAM|TABLE .. AS` as it is recorded.
pub fn create_as(create: &CreateAs, relation: &Relation) -> CreateAs {
    let mut pure = create.clone();
    pure.or_replace = false;
    pure.if_not_exists = false;
    settle(&mut pure.with, relation);
    pure
}

fn settle(with: &mut Properties, relation: &Relation) {
    set(
        with,
        "kafka_topic",
        PropertyValue::String(relation.topic.clone()),
    );
    set(
        with,
        "partitions",
        PropertyValue::Number(relation.partitions.to_string()),
    );
    settle_format(with, "key_format", &relation.key_format);
    settle_format(with, "value_format", &relation.value_format);
}

/// Names a format that came from a default. `FORMAT` settles both and excludes the two; NONE is what having no column means.
fn settle_format(with: &mut Properties, property: &str, format: &FormatName) {
    let settled = with
        .0
        .iter()
        .any(|(name, _)| name == property || name == "format");
    if !settled && !format.name.eq_ignore_ascii_case("none") {
        set(with, property, PropertyValue::String(format.name.clone()));
    }
}

fn set(with: &mut Properties, property: &str, value: PropertyValue) {
    match with.0.iter_mut().find(|(name, _)| name == property) {
        Some((_, old)) => *old = value,
        None => with.0.push((property.to_owned(), value)),
    }
}
