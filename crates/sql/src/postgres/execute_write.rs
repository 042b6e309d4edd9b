//! Runs the programs that write on PostgreSQL, by themselves or inside a transaction that someone else began.

use crate::postgres::error::PostgresError;
use crate::postgres::execute_read;
use crate::postgres::execute_read::{RowVisitor, attach_children, read_tree};
use crate::postgres::session::{PostgresSession, internal_error, read_cell};
use crate::statements::compile::Program;
use crate::statements::row_batch::RowBatch;
use crate::statements::select::{SelectLevel, SqlParameter};
use crate::statements::write::{LinkStatements, SequenceStatements};
use crate::statements::write_parts::{WriteParts, write_parts};
use trefoil_engine::plan::{PlanAction, PlannedSelection};
use trefoil_engine::{Outcome, Plan};
use trefoil_model::CellValue;
use trefoil_model::error::Error;

/// The statement, where the plan is nothing else: it then needs no transaction around it.
pub fn single_statement(program: &Program) -> Option<&str> {
    match program {
        Program::Create { sequence: None, insert, links, read_level: read }
            if links.is_empty() && read.is_flat() =>
        {
            Some(insert)
        }
        Program::Update { update: Some(update), links, read_level: read, .. }
            if links.is_empty() && read.is_flat() =>
        {
            Some(update)
        }
        Program::Delete { delete, read_level: read, .. } if read.is_flat() => Some(delete),
        Program::Create { .. }
        | Program::Update { .. }
        | Program::Delete { .. }
        | Program::Get(_)
        | Program::List { .. }
        | Program::PlainList => None,
    }
}

/// Rows are visited only when the plan has succeeded as a whole.
pub async fn execute_write(
    session: PostgresSession<'_>,
    plan: &Plan,
    program: &Program,
    visit: RowVisitor<'_>,
) -> Result<Outcome, PostgresError> {
    let (read, chosen) = match (&plan.action, program) {
        (PlanAction::Create { selection, .. }, Program::Create { read_level: read, .. })
        | (PlanAction::Update { selection, .. }, Program::Update { read_level: read, .. })
        | (PlanAction::Delete { selection, .. }, Program::Delete { read_level: read, .. }) => {
            (read, selection)
        }
        _ => return execute_read::execute_read(session, plan, program, visit).await,
    };
    let change = PostgresWrite { session, action: &plan.action, level: read, selection: chosen };
    match program {
        Program::Create { sequence: counter, insert, links, .. } => {
            change.create(counter.as_ref(), insert, links, visit).await
        }
        Program::Update { update: Some(update), version_query: version, links, .. } => {
            change.update(update, version, links, visit).await
        }
        Program::Update { update: None, version_query: version, .. } => {
            change.read_unchanged(version, visit).await
        }
        Program::Delete { delete, version_query: version, .. } => change.delete(delete, version, visit).await,
        Program::Get(_) | Program::List { .. } | Program::PlainList => {
            execute_read::execute_read(session, plan, program, visit).await
        }
    }
}

struct PostgresWrite<'a> {
    session: PostgresSession<'a>,
    action: &'a PlanAction,
    level: &'a SelectLevel,
    selection: &'a PlannedSelection,
}

impl PostgresWrite<'_> {
    async fn create(
        &self,
        counter: Option<&SequenceStatements>,
        insert: &str,
        links: &[LinkStatements],
        visit: RowVisitor<'_>,
    ) -> Result<Outcome, PostgresError> {
        let parts = write_parts(self.action);
        let behind = self.lock_lagging_sequence(counter, parts.id).await?;
        let bound: Vec<_> =
            parts.id.map(SqlParameter::integer).into_iter().chain(parts.value_parameters()).collect();
        let Some(written) = self.execute_returning(insert, &bound).await? else {
            return Err(internal_error("an insert returned no row"));
        };
        let (id, version) = (written.id, written.version);
        if let Some(counter) = behind {
            self.session.execute(&counter.advance, &[SqlParameter::integer(id)]).await?;
        }
        for (statements, (_, others)) in links.iter().zip(parts.links) {
            self.execute_link(&statements.add, id, others).await?;
        }
        self.visit_written(written, visit).await?;
        Ok(Outcome::Created { id, version })
    }

    /// The counter, if it has to follow the chosen id; then nobody else draws an id until the transaction ends.
    async fn lock_lagging_sequence<'c>(
        &self,
        counter: Option<&'c SequenceStatements>,
        id: Option<i64>,
    ) -> Result<Option<&'c SequenceStatements>, PostgresError> {
        let (Some(counter), Some(id)) = (counter, id) else { return Ok(None) };
        if self.session.query_integer(&counter.is_behind, &[SqlParameter::integer(id)]).await?.is_none() {
            return Ok(None);
        }
        self.session.execute_control(&counter.lock).await?;
        Ok(Some(counter))
    }

    async fn update(
        &self,
        update: &str,
        version: &str,
        links: &[LinkStatements],
        visit: RowVisitor<'_>,
    ) -> Result<Outcome, PostgresError> {
        let parts = write_parts(self.action);
        let bound: Vec<_> = parts.value_parameters().chain(parts.identity_parameters()).collect();
        let Some(written) = self.execute_returning(update, &bound).await? else {
            return self.missing_outcome(version).await;
        };
        let (id, version) = (written.id, written.version);
        for (statements, (_, others)) in links.iter().zip(parts.links) {
            self.execute_link(&statements.remove, id, others).await?;
            self.execute_link(&statements.add, id, others).await?;
        }
        self.visit_written(written, visit).await?;
        Ok(Outcome::Updated { id, version })
    }

    /// An update that names no field: the record as it is, if it is at the expected version.
    async fn read_unchanged(&self, version: &str, visit: RowVisitor<'_>) -> Result<Outcome, PostgresError> {
        let WriteParts { id: Some(id), expected_version: expected, .. } = write_parts(self.action) else {
            return Ok(Outcome::NotFound);
        };
        let Some(found) = self.session.query_integer(version, &[SqlParameter::integer(id)]).await? else {
            return Ok(Outcome::NotFound);
        };
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(Error::Stale { expected, found }.into());
        }
        if let Some(tree) = read_tree(self.session, self.level, self.selection, id).await? {
            tree.visit_rows(visit);
        }
        Ok(Outcome::Updated { id, version: found })
    }

    async fn delete(
        &self,
        delete: &str,
        version: &str,
        visit: RowVisitor<'_>,
    ) -> Result<Outcome, PostgresError> {
        let parts = write_parts(self.action);
        let before = match parts.id {
            Some(id) if !self.level.is_flat() => {
                // From here on nobody adds to what is shown and goes along with it.
                let lock = format!("{version} FOR UPDATE");
                self.session.query_integer(&lock, &[SqlParameter::integer(id)]).await?;
                read_tree(self.session, self.level, self.selection, id).await?
            }
            _ => None,
        };
        let bound: Vec<_> = parts.identity_parameters().collect();
        let Some(written) = self.execute_returning(delete, &bound).await? else {
            return self.missing_outcome(version).await;
        };
        let id = written.id;
        match before {
            Some(tree) => tree.visit_rows(visit),
            None => attach_children(self.session, self.level, self.selection, written.rows)
                .await?
                .visit_rows(visit),
        }
        Ok(Outcome::Deleted { id })
    }

    /// Runs a statement for one record to its very end, which by itself is the commit.
    async fn execute_returning(
        &self,
        sql: &str,
        bound: &[SqlParameter<'_>],
    ) -> Result<Option<WrittenRow>, PostgresError> {
        let own = if self.level.is_flat() { self.level.columns.len() } else { 0 };
        let width = own + 2;
        let mut batch = RowBatch::new(width);
        let mut rows = self.session.query(sql, bound).await?;
        while let Some(row) = rows.next_row().await? {
            batch.push_row((0..width).map(|column| read_cell(&row, column)));
        }
        if batch.row_count() == 0 {
            return Ok(None);
        }
        match (batch.cell(0, own), batch.cell(0, own + 1)) {
            (CellValue::Int(id), CellValue::Int(version)) => {
                Ok(Some(WrittenRow { id, version, rows: batch }))
            }
            _ => Err(internal_error("a record has no readable id or version")),
        }
    }

    async fn execute_link(&self, sql: &str, id: i64, others: &[i64]) -> Result<(), PostgresError> {
        self.session
            .execute(sql, &[SqlParameter::integer(id), SqlParameter::Integers(others)])
            .await
            .map(drop)
    }

    /// Hands out what was written: from the returned row, or, with children, read again.
    async fn visit_written(&self, written: WrittenRow, visit: RowVisitor<'_>) -> Result<(), PostgresError> {
        let tree = if self.level.is_flat() {
            Some(attach_children(self.session, self.level, self.selection, written.rows).await?)
        } else {
            read_tree(self.session, self.level, self.selection, written.id).await?
        };
        if let Some(tree) = tree {
            tree.visit_rows(visit);
        }
        Ok(())
    }

    /// Why a statement found no record: there is none, or it is at another version.
    async fn missing_outcome(&self, version: &str) -> Result<Outcome, PostgresError> {
        let parts = write_parts(self.action);
        let Some(id) = parts.id else { return Ok(Outcome::NotFound) };
        Ok(parts
            .no_match_outcome(self.session.query_integer(version, &[SqlParameter::integer(id)]).await?)?)
    }
}

/// The row that a statement returned.
struct WrittenRow {
    id: i64,
    version: i64,
    rows: RowBatch,
}
