//! Statements of all families.

use highwater_sql::{
    ColumnDef, ColumnRole, Copy, CopyDirection, CopyFormat, CopyOptions, CopyTarget, CreateAs,
    CreateSource, Drop, Explain, ExplainTarget, Insert, InsertSource, Print, Properties,
    QueryTarget, SavepointAction, SourceKind, Statement,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::ksql;
use super::names::{duration, name, properties, property_name, sql_type, text, without_repeats};
use super::queries::{expression, parsed_expression, query};

pub fn kind() -> impl Strategy<Value = SourceKind> {
    select(vec![SourceKind::Stream, SourceKind::Table])
}

/// A declaration with at least one column, so that it is told from the start of CREATE .. AS.
pub fn declaration() -> BoxedStrategy<CreateSource> {
    let role = prop_oneof![
        select(vec![
            ColumnRole::Value,
            ColumnRole::Key,
            ColumnRole::PrimaryKey,
            ColumnRole::Headers,
        ]),
        text().prop_map(ColumnRole::Header),
    ];
    let column = (name(), sql_type(), role).prop_map(|(name, data_type, role)| ColumnDef {
        name,
        data_type,
        role,
    });
    (
        kind(),
        [any::<bool>(), any::<bool>(), any::<bool>()],
        name(),
        vec(column, 1..4),
        properties(),
    )
        .prop_map(
            |(kind, [or_replace, read_only, if_not_exists], name, columns, with)| CreateSource {
                kind,
                or_replace,
                read_only,
                if_not_exists,
                name,
                columns: without_repeats(columns, |column| column.name.clone()),
                with,
            },
        )
        .boxed()
}

pub fn create_source() -> BoxedStrategy<Statement> {
    declaration().prop_map(Statement::CreateSource).boxed()
}

pub fn create_as() -> BoxedStrategy<Statement> {
    (
        kind(),
        any::<bool>(),
        any::<bool>(),
        name(),
        properties(),
        query(),
    )
        .prop_map(|(kind, or_replace, if_not_exists, name, with, query)| {
            Statement::CreateAs(CreateAs {
                kind,
                or_replace,
                if_not_exists,
                name,
                with,
                query,
            })
        })
        .boxed()
}

pub fn insert() -> BoxedStrategy<Statement> {
    let values = vec(
        vec(expression().prop_map(|text| parsed_expression(&text)), 1..3),
        1..3,
    )
    .prop_map(InsertSource::Values);
    let rows = values.prop_map(|rows| (Properties::default(), rows));
    let query = (properties(), query().prop_map(InsertSource::Query));
    (name(), vec(name(), 0..3), prop_oneof![rows, query])
        .prop_map(|(name, columns, (with, source))| {
            let columns = without_repeats(columns, Clone::clone);
            Statement::Insert(Insert {
                name,
                with,
                columns,
                source,
            })
        })
        .boxed()
}

pub fn copy() -> BoxedStrategy<Statement> {
    let target = prop_oneof![
        (name(), vec(name(), 0..3))
            .prop_map(|(name, columns)| CopyTarget::Relation { name, columns }),
        query().prop_map(CopyTarget::Query),
    ];
    let null = select(vec!["", "\\N", "NULL", "it's"]).prop_map(str::to_string);
    (
        target,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        select(vec![b'\t', b'|', b'#', b'~']),
        null,
        select(vec![b'"', b'\'', b'`']),
        select(vec![b'"', b'\\']),
    )
        .prop_map(
            |(target, from, csv, header, delimiter, null, quote, escape)| {
                let from = from && matches!(target, CopyTarget::Relation { .. });
                let direction = if from {
                    CopyDirection::FromStdin
                } else {
                    CopyDirection::ToStdout
                };
                let (format, quote, escape) = if csv {
                    (CopyFormat::Csv, quote, escape)
                } else {
                    (CopyFormat::Text, b'"', b'"')
                };
                Statement::Copy(Copy {
                    target,
                    direction,
                    options: CopyOptions {
                        format,
                        header,
                        delimiter,
                        null,
                        quote,
                        escape,
                    },
                })
            },
        )
        .boxed()
}

pub fn query_target() -> impl Strategy<Value = QueryTarget> {
    prop_oneof![name().prop_map(QueryTarget::Id), Just(QueryTarget::All)]
}

pub fn explain() -> BoxedStrategy<Statement> {
    let statement = prop_oneof![
        create_source(),
        create_as(),
        insert(),
        query().prop_map(Statement::Query)
    ];
    let target = prop_oneof![
        statement.prop_map(|s| ExplainTarget::Statement(Box::new(s))),
        name().prop_map(ExplainTarget::Query)
    ];
    (any::<bool>(), target)
        .prop_map(|(analyze, target)| Statement::Explain(Explain { analyze, target }))
        .boxed()
}

pub fn small_statement() -> BoxedStrategy<Statement> {
    let savepoint = prop_oneof![
        name().prop_map(SavepointAction::Set),
        name().prop_map(SavepointAction::Release),
        name().prop_map(SavepointAction::RollbackTo)
    ];
    prop_oneof![
        (kind(), any::<bool>(), name(), any::<bool>()).prop_map(
            |(kind, if_exists, name, delete_topic)| Statement::Drop(Drop {
                kind,
                if_exists,
                name,
                delete_topic
            })
        ),
        query_target().prop_map(Statement::Terminate),
        query_target().prop_map(Statement::Pause),
        query_target().prop_map(Statement::Resume),
        (
            name(),
            any::<bool>(),
            option::of(1..9_u64),
            option::of(1..9_u64)
        )
            .prop_map(
                |(topic, from_beginning, interval, limit)| Statement::Print(Print {
                    topic,
                    from_beginning,
                    interval,
                    limit
                })
            ),
        (property_name(), option::of(text()))
            .prop_map(|(name, value)| Statement::Set { name, value }),
        option::of(property_name()).prop_map(Statement::Unset),
        (option::of(any::<u64>()), name(), option::of(duration(0))).prop_map(
            |(count, name, timeout)| Statement::Fetch {
                count,
                name,
                timeout
            }
        ),
        option::of(name()).prop_map(Statement::Close),
        any::<bool>().prop_map(|read_only| Statement::Begin { read_only }),
        savepoint.prop_map(Statement::Savepoint),
        option::of(name()).prop_map(Statement::Deallocate),
        option::of(name()).prop_map(Statement::Unlisten),
        select(vec![
            Statement::Commit,
            Statement::Rollback,
            Statement::Discard,
            Statement::Empty
        ]),
    ]
    .boxed()
}

pub fn statement() -> BoxedStrategy<Statement> {
    let declare = (name(), any::<bool>(), query())
        .prop_map(|(name, hold, query)| Statement::Declare { name, hold, query });
    prop_oneof![
        create_source(),
        create_as(),
        insert(),
        copy(),
        explain(),
        query().prop_map(Statement::Query),
        declare,
        small_statement(),
        ksql::show().prop_map(Statement::Show),
        ksql::describe().prop_map(Statement::Describe),
        ksql::assert().prop_map(Statement::Assert),
        ksql::types(),
        ksql::session(),
    ]
    .boxed()
}
