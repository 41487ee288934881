//! `ALTER STREAM|TABLE .. ADD COLUMN`.
//!
//! What is altered is declared anew: another relation takes the name, on the same topic. Queries that were made before go on with the
//! relation that they know, and a table that they read is kept as it was beside the new one, until a restart finds that nobody reads it.

use highwater_exec::OffsetReset;
use highwater_planner::catalog::{QueryId, RelationId};
use highwater_sql::{Alter, ColumnDef, ColumnRole, CreateSource, Statement, format_statement};

use super::{Coordinator, kind_name};
use crate::{
    catalog::{CatalogState, RelationEntry, builtin::FIRST_ID, command::Command},
    planning::{Redeclared, parse_recorded},
    sqlstate::{SqlError, code},
    statement::unknown_relation,
};

impl Coordinator {
    /// `ALTER STREAM|TABLE`.
    pub fn alter(&self, alter: &Alter) -> Result<(), SqlError> {
        let mut next_id = self.next_id.lock();
        let catalog = self.catalog();
        let entry = catalog
            .entry(&alter.name)
            .ok_or_else(|| unknown_relation(&alter.name))?;
        let declared = check_alterable(&catalog, entry, alter)?;
        let statement = Statement::CreateSource(with_columns(declared, alter)?);
        let text = format_statement(&statement, entry.style.language.identifier_case);
        let (relation, query) = (RelationId(*next_id), QueryId(*next_id + 1));
        let without = catalog.without(entry);
        let (style, reset) = (&entry.style, OffsetReset::Earliest);
        let planned = self
            .planner
            .plan_create(&statement, style, &text, &without, relation, query, reset)
            .map_err(SqlError::without_position)?;
        let redeclared = Redeclared::new(entry, planned, &text, style);
        *next_id += 2;
        self.record(&Command::Alter {
            altered: entry.relation.id.0,
            statement: text,
            relation: relation.0,
            query: redeclared.query.as_ref().map(|keeper| keeper.id.0),
        })?;
        // ORDER: recorded, then running, then visible.
        if let Some(keeper) = &redeclared.query
            && let Err(error) = self.engine.create_query(keeper.to_persistent())
        {
            self.record(&Command::UndoChange {
                relation: relation.0,
            })?;
            return Err(error.into());
        }
        let mut changed = CatalogState::clone(&catalog);
        redeclared.put_into(&mut changed);
        self.publish(changed);
        Ok(())
    }
}

/// The declaration of what may be altered.
fn check_alterable(
    catalog: &CatalogState,
    entry: &RelationEntry,
    alter: &Alter,
) -> Result<CreateSource, SqlError> {
    let relation = &entry.relation;
    let name = &relation.name;
    if relation.id.0 < FIRST_ID {
        return Err(SqlError::new(
            code::INSUFFICIENT_PRIVILEGE,
            format!("\"{name}\" is built in and cannot be altered"),
        ));
    }
    if relation.kind != alter.kind {
        let (is, asked) = (kind_name(relation.kind), kind_name(alter.kind));
        return Err(SqlError::new(
            code::WRONG_OBJECT_TYPE,
            format!("\"{name}\" is a {is}, not a {asked}"),
        )
        .with_hint(format!("use ALTER {}", is.to_uppercase())));
    }
    let refused = |message: String| SqlError::new(code::OBJECT_NOT_IN_PREREQUISITE_STATE, message);
    if relation.read_only {
        return Err(refused(format!(
            "cannot alter \"{name}\": it was created with SOURCE, which makes it read-only"
        ))
        .with_hint("drop it and declare it again; its topic stays as it is"));
    }
    match parse_recorded(&entry.statement, entry.style.language)? {
        Statement::CreateSource(declared) => Ok(declared),
        _ => {
            let writer = match relation.query {
                Some(query) => format!("it is what query {} makes", catalog.query_name(query)),
                None => "it is what a query made".to_owned(),
            };
            Err(refused(format!(
                "cannot alter \"{name}\": its columns are those of its query"
            ))
            .with_detail(writer)
            .with_hint("drop it and create it with the SELECT list that you want"))
        }
    }
}

/// The declaration with the new value columns at its end.
fn with_columns(mut declared: CreateSource, alter: &Alter) -> Result<CreateSource, SqlError> {
    for (name, data_type) in &alter.columns {
        if declared.columns.iter().any(|column| column.name == *name) {
            return Err(SqlError::new(
                code::DUPLICATE_COLUMN,
                format!("column \"{name}\" of \"{}\" exists already", alter.name),
            )
            .with_hint(format!("DESCRIBE {} lists its columns", alter.name)));
        }
        declared.columns.push(ColumnDef {
            name: name.clone(),
            data_type: data_type.clone(),
            role: ColumnRole::Value,
        });
    }
    Ok(declared)
}
