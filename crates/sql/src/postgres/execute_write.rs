//! Runs programs that write on PostgreSQL, as single statements or inside the caller's transaction.

use trefoil_engine::plan::{PlanAction, PlannedSelection};
use trefoil_engine::{Outcome, Plan};
use trefoil_model::RecordId;
use trefoil_model::error::Error;

use crate::postgres::error::PostgresError;
use crate::postgres::execute_read::{self, attach_children, read_tree};
use crate::postgres::session::{PostgresSession, RowVisitor, internal_error, read_cell};
use crate::statements::access::unreadable_row::UnreadableRow;
use crate::statements::compile::{Program, UpdateProgram};
use crate::statements::row_batch::RowBatch;
use crate::statements::select::SelectLevel;
use crate::statements::sql_parameter::SqlParameter;
use crate::statements::write::{LinkStatements, SequenceStatements};
use crate::statements::write_parts::{WriteParts, write_parts};

/// The statement of a program that has only one and therefore needs no transaction.
pub fn single_statement(program: &Program) -> Option<&str> {
    match program {
        Program::Create { sequence: None, insert, links, read_level }
            if links.is_empty() && read_level.is_returned() =>
        {
            Some(insert)
        }
        Program::Update(UpdateProgram { update: Some(update), links, read_level, .. })
            if links.is_empty() && read_level.is_returned() =>
        {
            Some(update)
        }
        Program::Delete { delete, read_level, .. } if read_level.is_returned() => Some(delete),
        Program::Create { .. }
        | Program::Update(_)
        | Program::Delete { .. }
        | Program::Get(_)
        | Program::List { .. }
        | Program::CreateMany(_)
        | Program::UpdateMany { .. }
        | Program::UpdateManyLinks { .. }
        | Program::DeleteMany { .. }
        | Program::DeleteFound { .. }
        | Program::Upsert { .. }
        | Program::Nested { .. }
        | Program::Aggregate(_)
        | Program::PlainList => None,
    }
}

/// Runs a plan that reads or writes. Rows are visited only after the whole plan has succeeded.
pub async fn execute_write(
    session: PostgresSession<'_>,
    plan: &Plan,
    program: &Program,
    visit: RowVisitor<'_>,
) -> Result<Outcome, PostgresError> {
    let session = session.for_plan(plan);
    let (read_level, selection) = match (&plan.action, program) {
        (PlanAction::Create { selection, .. }, Program::Create { read_level, .. })
        | (PlanAction::Update { selection, .. }, Program::Update(UpdateProgram { read_level, .. }))
        | (PlanAction::Delete { selection, .. }, Program::Delete { read_level, .. }) => {
            (read_level, selection)
        }
        _ => return execute_read::execute_read(session, plan, program, visit).await,
    };
    let write = PostgresWrite { session, parts: write_parts(&plan.action), level: read_level, selection };
    match program {
        Program::Create { sequence, insert, links, .. } => {
            write.create(sequence.as_ref(), insert, links, visit).await
        }
        Program::Update(program) => write.run_update(program, visit).await,
        Program::Delete { delete, version_query, .. } => write.delete(delete, version_query, visit).await,
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
        | Program::PlainList => execute_read::execute_read(session, plan, program, visit).await,
    }
}

/// Updates the record of an upsert that was found.
pub async fn execute_update(
    session: PostgresSession<'_>,
    parts: WriteParts<'_>,
    selection: &PlannedSelection,
    program: &UpdateProgram,
    visit: RowVisitor<'_>,
) -> Result<Outcome, PostgresError> {
    let write = PostgresWrite { session, parts, level: &program.read_level, selection };
    write.run_update(program, visit).await
}

/// A write and the level that selects its result.
struct PostgresWrite<'a> {
    session: PostgresSession<'a>,
    parts: WriteParts<'a>,
    level: &'a SelectLevel,
    selection: &'a PlannedSelection,
}

impl PostgresWrite<'_> {
    async fn create(
        &self,
        sequence: Option<&SequenceStatements>,
        insert: &str,
        links: &[LinkStatements],
        visit: RowVisitor<'_>,
    ) -> Result<Outcome, PostgresError> {
        let parts = self.parts;
        let lagging = self.lock_lagging_sequence(sequence, parts.id).await?;
        let parameters: Vec<_> = parts.create_parameters().collect();
        let Some(written) = self.execute_returning(insert, &parameters).await? else {
            return Err(internal_error("an insert returned no row"));
        };
        let (id, version) = (written.id.clone(), written.version);
        if let Some(sequence) = lagging {
            self.session.execute(&sequence.advance, &[SqlParameter::id(&id)]).await?;
        }
        for (statements, (_, others)) in links.iter().zip(parts.links) {
            self.execute_link(&statements.add, &id, others).await?;
        }
        self.visit_written(written, visit).await?;
        Ok(Outcome::Created { id, version })
    }

    /// The sequence if it has to be advanced past the chosen id, locked against other writers until the transaction
    /// ends.
    async fn lock_lagging_sequence<'c>(
        &self,
        sequence: Option<&'c SequenceStatements>,
        id: Option<&RecordId>,
    ) -> Result<Option<&'c SequenceStatements>, PostgresError> {
        let (Some(sequence), Some(id)) = (sequence, id) else { return Ok(None) };
        if self.session.query_integer(&sequence.is_behind, &[SqlParameter::id(id)]).await?.is_none() {
            return Ok(None);
        }
        self.session.execute_control(&sequence.lock).await?;
        Ok(Some(sequence))
    }

    async fn run_update(
        &self,
        program: &UpdateProgram,
        visit: RowVisitor<'_>,
    ) -> Result<Outcome, PostgresError> {
        let UpdateProgram { update, version_query, links, .. } = program;
        match update {
            Some(update) => self.update(update, version_query, links, visit).await,
            None => self.read_unchanged(version_query, visit).await,
        }
    }

    async fn update(
        &self,
        update: &str,
        version_query: &str,
        links: &[LinkStatements],
        visit: RowVisitor<'_>,
    ) -> Result<Outcome, PostgresError> {
        let parts = self.parts;
        let parameters: Vec<_> = parts.value_parameters().chain(parts.identity_parameters()).collect();
        let Some(written) = self.execute_returning(update, &parameters).await? else {
            return self.missing_outcome(version_query).await;
        };
        let (id, version) = (written.id.clone(), written.version);
        for (statements, (_, others)) in links.iter().zip(parts.links) {
            let parameters = [SqlParameter::id(&id), SqlParameter::ids(others)];
            self.session.execute_seen(&statements.remove, &parameters).await?;
            self.execute_link(&statements.add, &id, others).await?;
        }
        self.visit_written(written, visit).await?;
        Ok(Outcome::Updated { id, version })
    }

    /// An update without values: reads the record if it has the expected version.
    async fn read_unchanged(
        &self,
        version_query: &str,
        visit: RowVisitor<'_>,
    ) -> Result<Outcome, PostgresError> {
        let WriteParts { id: Some(id), expected_version: expected, .. } = self.parts else {
            return Ok(Outcome::NotFound);
        };
        let Some(found) = self.session.query_integer(version_query, &[SqlParameter::id(id)]).await? else {
            return Ok(Outcome::NotFound);
        };
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(Error::Stale { expected, found }.into());
        }
        if let Some(tree) = read_tree(self.session, self.level, self.selection, id).await? {
            tree.visit_rows(visit);
        }
        Ok(Outcome::Updated { id: id.clone(), version: found })
    }

    async fn delete(
        &self,
        delete: &str,
        version_query: &str,
        visit: RowVisitor<'_>,
    ) -> Result<Outcome, PostgresError> {
        let parts = self.parts;
        let before = match parts.id {
            Some(id) if !self.level.is_returned() => {
                // From here on, other sessions cannot add records that are deleted along with this one and would be
                // shown.
                let lock = format!("{version_query} FOR UPDATE");
                self.session.query_integer(&lock, &[SqlParameter::id(id)]).await?;
                read_tree(self.session, self.level, self.selection, id).await?
            }
            _ => None,
        };
        let parameters: Vec<_> = parts.identity_parameters().collect();
        let Some(written) = self.execute_returning(delete, &parameters).await? else {
            return self.missing_outcome(version_query).await;
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

    /// Runs a statement for one record to its end, which commits it if there is no transaction.
    async fn execute_returning(
        &self,
        sql: &str,
        parameters: &[SqlParameter<'_>],
    ) -> Result<Option<WrittenRow>, PostgresError> {
        let column_count = if self.level.is_returned() { self.level.columns.len() } else { 0 };
        let width = column_count + 2;
        let mut batch = RowBatch::new(width);
        let mut rows = self.session.query_told(sql, parameters).await?;
        while let Some(row) = rows.next_row().await? {
            batch.push_row((0..width).map(|column| read_cell(&row, column)));
        }
        if batch.row_count() == 0 {
            return Ok(None);
        }
        let (id, version) = (batch.cell(0, column_count), batch.cell(0, column_count + 1));
        match (RecordId::from_cell(id), version.to_i64()) {
            (Some(id), Some(version)) => Ok(Some(WrittenRow { id, version, rows: batch })),
            _ => Err(internal_error("a record has no readable id or version")),
        }
    }

    async fn execute_link(&self, sql: &str, id: &RecordId, others: &[RecordId]) -> Result<(), PostgresError> {
        self.session.execute(sql, &[SqlParameter::id(id), SqlParameter::ids(others)]).await.map(drop)
    }

    /// Visits the written record: the returned row, or the record read again if children are selected.
    async fn visit_written(&self, written: WrittenRow, visit: RowVisitor<'_>) -> Result<(), PostgresError> {
        let tree = if self.level.is_returned() {
            Some(attach_children(self.session, self.level, self.selection, written.rows).await?)
        } else {
            read_tree(self.session, self.level, self.selection, &written.id).await?
        };
        match tree {
            Some(tree) => tree.visit_rows(visit),
            // The actor may have written what they cannot see.
            None if self.session.view.is_some() => {
                visit(&UnreadableRow { id: &written.id, level: self.level });
            }
            None => {}
        }
        Ok(())
    }

    /// The outcome of a statement that matched no record: not found, or stale if it has another version.
    async fn missing_outcome(&self, version_query: &str) -> Result<Outcome, PostgresError> {
        let parts = self.parts;
        let Some(id) = parts.id else { return Ok(Outcome::NotFound) };
        Ok(parts
            .no_match_outcome(self.session.query_integer(version_query, &[SqlParameter::id(id)]).await?)?)
    }
}

/// The row that a statement returned.
struct WrittenRow {
    id: RecordId,
    version: i64,
    rows: RowBatch,
}
