//! What ksqlDB has and PostgreSQL has not: lists, descriptions, assertions, types, variables.

use highwater_sql::{
    Alter, AlterTopic, Assert, CreateType, Describe, DropType, Show, SourceKind, SqlType,
    Statement, sqlparser::ast::Expr,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::names::{duration, name, properties, property_name, sql_type, text, without_repeats};
use super::queries::{expression, parsed_expression};
use super::statements::{declaration, kind};

pub fn show() -> BoxedStrategy<Show> {
    prop_oneof![
        any::<bool>().prop_map(|extended| Show::Streams { extended }),
        any::<bool>().prop_map(|extended| Show::Tables { extended }),
        any::<bool>().prop_map(|extended| Show::Queries { extended }),
        (any::<bool>(), any::<bool>()).prop_map(|(all, extended)| Show::Topics { all, extended }),
        select(vec![
            Show::Functions,
            Show::Types,
            Show::Variables,
            Show::All
        ]),
        property_name().prop_map(Show::Variable),
    ]
    .boxed()
}

pub fn describe() -> BoxedStrategy<Describe> {
    let name = prop_oneof![
        name(),
        select(vec!["streams", "function"]).prop_map(str::to_string)
    ];
    let kinds = select(vec![SourceKind::Stream, SourceKind::Table]);
    prop_oneof![
        (name, any::<bool>()).prop_map(|(name, extended)| Describe::Source { name, extended }),
        (kinds, any::<bool>()).prop_map(|(kind, extended)| Describe::Sources { kind, extended }),
        "[a-z_][a-z0-9_]{0,8}".prop_map(Describe::Function),
    ]
    .boxed()
}

fn row() -> BoxedStrategy<Vec<Expr>> {
    vec(expression().prop_map(|text| parsed_expression(&text)), 1..3).boxed()
}

fn columns() -> BoxedStrategy<Vec<String>> {
    vec(name(), 0..3)
        .prop_map(|names| without_repeats(names, Clone::clone))
        .boxed()
}

fn topic() -> BoxedStrategy<String> {
    prop_oneof![
        name(),
        text().prop_filter("a topic has a name", |text| !text.is_empty())
    ]
    .boxed()
}

pub fn assert() -> BoxedStrategy<Assert> {
    let timeout = || option::of(duration(0));
    prop_oneof![
        (topic(), properties(), any::<bool>(), timeout()).prop_map(
            |(name, with, exists, timeout)| Assert::Topic {
                name,
                with,
                exists,
                timeout
            }
        ),
        (
            option::of(topic()),
            any::<u64>(),
            any::<bool>(),
            any::<bool>(),
            timeout()
        )
            .prop_map(|(subject, id, with_id, exists, timeout)| Assert::Schema {
                id: (with_id || subject.is_none()).then_some(id),
                subject,
                exists,
                timeout
            }),
        (name(), columns(), row()).prop_map(|(name, columns, values)| Assert::Values {
            name,
            columns,
            values
        }),
        (name(), columns(), row()).prop_map(|(name, columns, key)| Assert::NullValues {
            name,
            columns,
            key
        }),
        declaration().prop_map(|source| Assert::Source(highwater_sql::CreateSource {
            or_replace: false,
            read_only: false,
            if_not_exists: false,
            ..source
        })),
    ]
    .boxed()
}

/// CREATE TYPE, DROP TYPE, ALTER STREAM and ALTER TABLE.
pub fn types() -> BoxedStrategy<Statement> {
    let column: BoxedStrategy<(String, SqlType)> = (name(), sql_type()).boxed();
    prop_oneof![
        (any::<bool>(), name(), sql_type()).prop_map(|(if_not_exists, name, data_type)| {
            Statement::CreateType(CreateType {
                if_not_exists,
                name,
                data_type,
            })
        }),
        (any::<bool>(), name())
            .prop_map(|(if_exists, name)| Statement::DropType(DropType { if_exists, name })),
        (kind(), name(), vec(column, 1..3)).prop_map(|(kind, name, columns)| {
            Statement::Alter(Alter {
                kind,
                name,
                columns: without_repeats(columns, |(name, _)| name.clone()),
            })
        }),
    ]
    .boxed()
}

/// DEFINE, UNDEFINE, ALTER SYSTEM, RUN SCRIPT.
pub fn session() -> BoxedStrategy<Statement> {
    prop_oneof![
        (property_name(), text()).prop_map(|(name, value)| Statement::Define { name, value }),
        property_name().prop_map(Statement::Undefine),
        (property_name(), option::of(text()))
            .prop_map(|(name, value)| Statement::AlterSystem { name, value }),
        (text(), vec((property_name(), option::of(text())), 1..3)).prop_map(|(topic, changes)| {
            Statement::AlterTopic(AlterTopic {
                topic: format!("t{topic}"),
                changes: without_repeats(changes, |(name, _)| name.clone()),
            })
        }),
        text().prop_map(Statement::RunScript),
        text().prop_map(Statement::Backup),
    ]
    .boxed()
}
