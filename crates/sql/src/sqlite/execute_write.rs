//! Executes programs that write, inside the caller's transaction.

use trefoil_engine::plan::{PlanAction, PlannedSelection};
use trefoil_engine::{Outcome, Plan, Row};
use trefoil_model::error::Error;
use trefoil_model::{Model, RecordId};

use crate::sqlite::constraint_errors::explain_error;
use crate::sqlite::error::SqliteError;
use crate::sqlite::execute_read::{execute_read, read_tree};
use crate::sqlite::session::SqliteSession;
use crate::statements::access::read_statement::ReadStatement;
use crate::statements::access::unreadable_row::UnreadableRow;
use crate::statements::compile::{Program, UpdateProgram};
use crate::statements::dialect::Dialect;
use crate::statements::row_batch::RowTree;
use crate::statements::select::SelectLevel;
use crate::statements::sql_parameter::SqlParameter;
use crate::statements::write::{LinkStatements, version_sql};
use crate::statements::write_parts::{WriteParts, write_parts};

type RowVisitor<'v> = &'v mut dyn FnMut(&dyn Row);

/// True if a failure could leave a part of the program done: SQLite undoes a failed statement, not the one before it.
/// A failed read counts as a failure of the store, which rolls back everything; too many groups are one of the plan.
pub fn needs_savepoint(program: &Program) -> bool {
    match program {
        Program::Create { links, read_level, .. }
        | Program::Update(UpdateProgram { links, read_level, .. }) => {
            !links.is_empty() || read_level.has_search() || read_level.has_groups()
        }
        Program::Delete { read_level, .. } => read_level.has_groups(),
        Program::CreateMany(_)
        | Program::UpdateMany { .. }
        | Program::UpdateManyLinks { .. }
        | Program::DeleteFound { .. }
        | Program::Upsert { .. }
        | Program::Nested { .. } => true,
        Program::Get(_) | Program::List { .. } | Program::Aggregate(_) | Program::DeleteMany { .. } => false,
        // Only one statement writes; its triggers are part of it.
        Program::PlainList => false,
    }
}

/// Rows are visited only after the whole plan has succeeded.
pub fn execute_write(
    session: SqliteSession<'_>,
    model: &Model,
    plan: &Plan,
    program: &Program,
    visit: RowVisitor<'_>,
) -> Result<Outcome, SqliteError> {
    let session = session.for_plan(plan);
    let (level, selection) = match (&plan.action, program) {
        (PlanAction::Create { selection, .. }, Program::Create { read_level: level, .. })
        | (PlanAction::Update { selection, .. }, Program::Update(UpdateProgram { read_level: level, .. }))
        | (PlanAction::Delete { selection, .. }, Program::Delete { read_level: level, .. }) => {
            (level, selection)
        }
        _ => return execute_read(session, plan, program, visit),
    };
    let write = SqliteWrite { session, model, parts: write_parts(&plan.action), level, selection };
    match program {
        Program::Create { insert, links, .. } => write.create(insert, links, visit),
        Program::Update(program) => write.run_update(program, visit),
        Program::Delete { delete, version_query, .. } => write.delete(delete, version_query, visit),
        Program::Get(_)
        | Program::List { .. }
        | Program::CreateMany(_)
        | Program::UpdateMany { .. }
        | Program::UpdateManyLinks { .. }
        | Program::DeleteMany { .. }
        | Program::DeleteFound { .. }
        | Program::Upsert { .. }
        | Program::Nested { .. }
        | Program::Aggregate(_)
        | Program::PlainList => execute_read(session, plan, program, visit),
    }
}

/// Updates the record of an upsert that was found.
pub fn execute_update(
    session: SqliteSession<'_>,
    model: &Model,
    parts: WriteParts<'_>,
    selection: &PlannedSelection,
    program: &UpdateProgram,
    visit: RowVisitor<'_>,
) -> Result<Outcome, SqliteError> {
    let write = SqliteWrite { session, model, parts, level: &program.read_level, selection };
    write.run_update(program, visit)
}

struct SqliteWrite<'a> {
    session: SqliteSession<'a>,
    model: &'a Model,
    parts: WriteParts<'a>,
    level: &'a SelectLevel,
    selection: &'a PlannedSelection,
}

impl SqliteWrite<'_> {
    fn create(
        &self,
        insert: &str,
        links: &[LinkStatements],
        visit: RowVisitor<'_>,
    ) -> Result<Outcome, SqliteError> {
        let parts = self.parts;
        let parameters: Vec<_> = parts.create_parameters().collect();
        if self.execute(insert, &parameters)? == 0 {
            // A trigger of another program ignored it, and may have done something else instead.
            return Err(SqliteError::Store(rusqlite::Error::StatementChangedRows(0)));
        }
        let id = match parts.id {
            Some(id) => id.clone(),
            None => RecordId::Number(self.session.connection.last_insert_rowid()),
        };
        let given = links.iter().zip(parts.links).filter(|(_, (_, others))| !others.is_empty());
        for (statements, (_, others)) in given {
            let parameters = [SqlParameter::id(&id), SqlParameter::ids(others)];
            self.session.write_links(&statements.side, || self.execute(&statements.add, &parameters))?;
        }
        let version = self.visit_written(&id, visit)?;
        Ok(Outcome::Created { id, version })
    }

    fn run_update(&self, program: &UpdateProgram, visit: RowVisitor<'_>) -> Result<Outcome, SqliteError> {
        match &program.update {
            Some(update) => self.update(update, &program.version_query, &program.links, visit),
            None => self.read_unchanged(visit),
        }
    }

    fn update(
        &self,
        update: &str,
        version_query: &str,
        links: &[LinkStatements],
        visit: RowVisitor<'_>,
    ) -> Result<Outcome, SqliteError> {
        let parts = self.parts;
        let parameters: Vec<_> = parts.value_parameters().chain(parts.identity_parameters()).collect();
        let Some(id) = parts.id else { return Ok(Outcome::NotFound) };
        if self.execute(update, &parameters)? == 0 {
            return Ok(parts.no_match_outcome(self.read_version(version_query, id)?)?);
        }
        for (statements, (_, others)) in links.iter().zip(parts.links) {
            let parameters = [SqlParameter::id(id), SqlParameter::ids(others)];
            self.session.write_links(&statements.side, || {
                self.execute_seen(&statements.remove, &parameters)?;
                self.execute(&statements.add, &parameters)
            })?;
        }
        let version = self.visit_written(id, visit)?;
        Ok(Outcome::Updated { id: id.clone(), version })
    }

    /// An update without fields: reads the record, if it has the expected version.
    fn read_unchanged(&self, visit: RowVisitor<'_>) -> Result<Outcome, SqliteError> {
        let WriteParts { id: Some(id), expected_version, .. } = self.parts else {
            return Ok(Outcome::NotFound);
        };
        let Some((record, found)) = self.read_record(id)? else { return Ok(Outcome::NotFound) };
        if let Some(expected) = expected_version.filter(|expected| *expected != found) {
            return Err(Error::Stale { expected, found }.into());
        }
        record.visit_rows(visit);
        Ok(Outcome::Updated { id: id.clone(), version: found })
    }

    fn delete(
        &self,
        delete: &str,
        version_query: &str,
        visit: RowVisitor<'_>,
    ) -> Result<Outcome, SqliteError> {
        let parts = self.parts;
        let Some(id) = parts.id else { return Ok(Outcome::NotFound) };
        let record = read_tree(self.session, self.level, self.selection, id)?;
        let Some(record) = record else { return Ok(Outcome::NotFound) };
        let parameters: Vec<_> = parts.identity_parameters().collect();
        if self.execute(delete, &parameters)? == 0 {
            return Ok(parts.no_match_outcome(self.read_version(version_query, id)?)?);
        }
        record.visit_rows(visit);
        Ok(Outcome::Deleted { id: id.clone() })
    }

    fn execute_seen(
        &self,
        statement: &ReadStatement,
        parameters: &[SqlParameter<'_>],
    ) -> Result<usize, SqliteError> {
        let run = self.session.execute_seen(statement, parameters);
        run.map_err(|error| explain_error(self.session, self.model, self.parts, error))
    }

    /// Returns the number of changed rows.
    fn execute(&self, sql: &str, parameters: &[SqlParameter<'_>]) -> Result<usize, SqliteError> {
        let run = self.session.execute(sql, parameters);
        run.map_err(|error| explain_error(self.session, self.model, self.parts, error))
    }

    /// The version of a record, if it exists.
    fn read_version(&self, sql: &str, id: &RecordId) -> rusqlite::Result<Option<i64>> {
        self.session.query_integer(sql, &[SqlParameter::id(id)])
    }

    /// The selection of a record, and its version.
    fn read_record(&self, id: &RecordId) -> Result<Option<(RowTree<'_>, i64)>, SqliteError> {
        let record = read_tree(self.session, self.level, self.selection, id)?;
        Ok(record.and_then(|record| {
            let version = record.rows().cell(0, self.level.width - 1).to_i64()?;
            Some((record, version))
        }))
    }

    /// Reads the written record and visits it; a RETURNING would build a table of its own for one row. If it cannot be
    /// read, or a trigger deleted it, that is an error of the store, so that the write is rolled back.
    fn visit_written(&self, id: &RecordId, visit: RowVisitor<'_>) -> Result<i64, SqliteError> {
        let read = self.read_record(id).map_err(|error| match error {
            // A refused search among the children; the savepoint undoes the write.
            SqliteError::Plan(error @ Error::Limit(_)) => SqliteError::Plan(error),
            SqliteError::Plan(error) => {
                SqliteError::Store(rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
            }
            SqliteError::Store(error) => SqliteError::Store(error),
        })?;
        let missing = || SqliteError::Store(rusqlite::Error::QueryReturnedNoRows);
        let Some((record, version)) = read else {
            // The actor may have written what they cannot see.
            let record = self.session.view.and(self.parts.record).ok_or_else(missing)?;
            let owner = self.model.record(record);
            visit(&UnreadableRow { id, level: self.level });
            return self.read_version(&version_sql(Dialect::Sqlite, owner), id)?.ok_or_else(missing);
        };
        record.visit_rows(visit);
        Ok(version)
    }
}
