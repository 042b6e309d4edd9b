//! Runs the programs that write, inside a transaction that someone else began.

use trefoil_engine::plan::{PlanAction, PlannedSelection};
use trefoil_engine::{Outcome, Plan, Row};
use trefoil_model::Model;
use trefoil_model::error::Error;

use crate::sqlite::constraint_errors::explain_error;
use crate::sqlite::error::SqliteError;
use crate::sqlite::execute_read;
use crate::sqlite::session::SqliteSession;
use crate::statements::compile::Program;
use crate::statements::row_batch::RowTree;
use crate::statements::select::{SelectLevel, SqlParameter};
use crate::statements::write::LinkStatements;
use crate::statements::write_parts::{WriteParts, write_parts};

type RowVisitor<'v> = &'v mut dyn FnMut(&dyn Row);

/// Whether a failure could leave a part of it done: SQLite undoes a failed statement, not the one before it. A reading
/// that fails is taken for a failure of the store, which undoes all.
pub fn needs_savepoint(program: &Program) -> bool {
    match program {
        Program::Create { links, .. } | Program::Update { links, .. } => !links.is_empty(),
        Program::Get(_) | Program::List { .. } | Program::Delete { .. } => false,
        // One statement writes; triggers are a part of it.
        Program::PlainList => false,
    }
}

/// Rows are visited only when the plan has succeeded as a whole.
pub fn execute_write(
    session: SqliteSession<'_>,
    model: &Model,
    plan: &Plan,
    program: &Program,
    visit: RowVisitor<'_>,
) -> Result<Outcome, SqliteError> {
    let (read, chosen) = match (&plan.action, program) {
        (PlanAction::Create { selection, .. }, Program::Create { read_level: read, .. })
        | (PlanAction::Update { selection, .. }, Program::Update { read_level: read, .. })
        | (PlanAction::Delete { selection, .. }, Program::Delete { read_level: read, .. }) => {
            (read, selection)
        }
        _ => return execute_read::execute_read(session, plan, program, visit),
    };
    let change = SqliteWrite { session, model, action: &plan.action, level: read, selection: chosen };
    match program {
        Program::Create { insert, links, .. } => change.create(insert, links, visit),
        Program::Update { update: Some(update), version_query: version, links, .. } => {
            change.update(update, version, links, visit)
        }
        Program::Update { update: None, .. } => change.read_unchanged(visit),
        Program::Delete { delete, version_query: version, .. } => change.delete(delete, version, visit),
        Program::Get(_) | Program::List { .. } | Program::PlainList => {
            execute_read::execute_read(session, plan, program, visit)
        }
    }
}

struct SqliteWrite<'a> {
    session: SqliteSession<'a>,
    model: &'a Model,
    action: &'a PlanAction,
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
        let parts = write_parts(self.action);
        let bound: Vec<_> =
            parts.id.map(SqlParameter::integer).into_iter().chain(parts.value_parameters()).collect();
        if self.execute(insert, &bound)? == 0 {
            // Another program's trigger ignored it, and may have done something else instead.
            return Err(SqliteError::Store(rusqlite::Error::StatementChangedRows(0)));
        }
        let id = self.session.connection.last_insert_rowid();
        for (statements, (_, others)) in links.iter().zip(parts.links) {
            self.execute(&statements.add, &[SqlParameter::integer(id), SqlParameter::Integers(others)])?;
        }
        let version = self.visit_written(id, visit)?;
        Ok(Outcome::Created { id, version })
    }

    fn update(
        &self,
        update: &str,
        version: &str,
        links: &[LinkStatements],
        visit: RowVisitor<'_>,
    ) -> Result<Outcome, SqliteError> {
        let parts = write_parts(self.action);
        let bound: Vec<_> = parts.value_parameters().chain(parts.identity_parameters()).collect();
        let Some(id) = parts.id else { return Ok(Outcome::NotFound) };
        if self.execute(update, &bound)? == 0 {
            return Ok(parts.no_match_outcome(self.read_version(version, id)?)?);
        }
        for (statements, (_, others)) in links.iter().zip(parts.links) {
            let bound = [SqlParameter::integer(id), SqlParameter::Integers(others)];
            self.execute(&statements.remove, &bound)?;
            self.execute(&statements.add, &bound)?;
        }
        let version = self.visit_written(id, visit)?;
        Ok(Outcome::Updated { id, version })
    }

    /// An update that names no field: the record as it is, if it is at the expected version.
    fn read_unchanged(&self, visit: RowVisitor<'_>) -> Result<Outcome, SqliteError> {
        let WriteParts { id: Some(id), expected_version: expected, .. } = write_parts(self.action) else {
            return Ok(Outcome::NotFound);
        };
        let Some((record, found)) = self.read_record(id)? else { return Ok(Outcome::NotFound) };
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(Error::Stale { expected, found }.into());
        }
        record.visit_rows(visit);
        Ok(Outcome::Updated { id, version: found })
    }

    fn delete(&self, delete: &str, version: &str, visit: RowVisitor<'_>) -> Result<Outcome, SqliteError> {
        let parts = write_parts(self.action);
        let Some(id) = parts.id else { return Ok(Outcome::NotFound) };
        let before = execute_read::read_tree(self.session, self.level, self.selection, id)?;
        let Some(before) = before else { return Ok(Outcome::NotFound) };
        let bound: Vec<_> = parts.identity_parameters().collect();
        if self.execute(delete, &bound)? == 0 {
            return Ok(parts.no_match_outcome(self.read_version(version, id)?)?);
        }
        before.visit_rows(visit);
        Ok(Outcome::Deleted { id })
    }

    /// How many records it changed.
    fn execute(&self, sql: &str, bound: &[SqlParameter<'_>]) -> Result<usize, SqliteError> {
        let run = self.session.execute(sql, bound);
        run.map_err(|error| explain_error(self.session, self.model, self.action, error))
    }

    /// The version of a record, if there is one.
    fn read_version(&self, sql: &str, id: i64) -> rusqlite::Result<Option<i64>> {
        self.session.query_integer(sql, &[SqlParameter::integer(id)])
    }

    /// What is asked of a record, and its version.
    fn read_record(&self, id: i64) -> rusqlite::Result<Option<(RowTree<'_>, i64)>> {
        let record = execute_read::read_tree(self.session, self.level, self.selection, id)?;
        Ok(record.and_then(|record| {
            let version = record.rows().cell(0, self.level.width - 1).to_i64()?;
            Some((record, version))
        }))
    }

    /// Hands out what was written, as it now stands: a RETURNING would build a table of its own for one row. Where it
    /// cannot be read, or a trigger took it away again, nothing of it is kept: that is what a fault of the store means.
    fn visit_written(&self, id: i64, visit: RowVisitor<'_>) -> Result<i64, SqliteError> {
        let read = self.read_record(id).and_then(|read| read.ok_or(rusqlite::Error::QueryReturnedNoRows));
        let (record, version) = read.map_err(SqliteError::Store)?;
        record.visit_rows(visit);
        Ok(version)
    }
}
