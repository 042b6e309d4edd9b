//! Runs the programs that write, inside a transaction that someone else began.

use crate::sqlite::constraint_errors::blame;
use crate::sqlite::error::Fault;
use crate::sqlite::execute_read;
use crate::sqlite::session::Session;
use crate::statements::compile::Program;
use crate::statements::row_batch::Tree;
use crate::statements::select::{Level, Parameter};
use crate::statements::write::LinkStatements;
use crate::statements::write_parts::{Parts, parts};
use trefoil_engine::plan::{Action, Chosen};
use trefoil_engine::{Outcome, Plan, Row};
use trefoil_model::Model;
use trefoil_model::error::Error;

type Visit<'v> = &'v mut dyn FnMut(&dyn Row);

/// Whether a failure could leave a part of it done: SQLite undoes a failed statement, not the one before it. A reading
/// that fails is taken for a failure of the store, which undoes all.
pub fn needs_savepoint(program: &Program) -> bool {
    match program {
        Program::Create { links, .. } | Program::Update { links, .. } => !links.is_empty(),
        Program::Get(_) | Program::List { .. } | Program::Delete { .. } => false,
        // One statement writes; triggers are a part of it.
        Program::Plain => false,
    }
}

/// Rows are visited only when the plan has succeeded as a whole.
pub fn run(
    session: Session<'_>,
    model: &Model,
    plan: &Plan,
    program: &Program,
    visit: Visit<'_>,
) -> Result<Outcome, Fault> {
    let (read, chosen) = match (&plan.action, program) {
        (Action::Create { selection, .. }, Program::Create { read, .. })
        | (Action::Update { selection, .. }, Program::Update { read, .. })
        | (Action::Delete { selection, .. }, Program::Delete { read, .. }) => (read, selection),
        _ => return execute_read::run(session, plan, program, visit),
    };
    let change = Change { session, model, action: &plan.action, read, chosen };
    match program {
        Program::Create { insert, links, .. } => change.create(insert, links, visit),
        Program::Update { update: Some(update), version, links, .. } => {
            change.update(update, version, links, visit)
        }
        Program::Update { update: None, .. } => change.keep(visit),
        Program::Delete { delete, version, .. } => change.delete(delete, version, visit),
        Program::Get(_) | Program::List { .. } | Program::Plain => {
            execute_read::run(session, plan, program, visit)
        }
    }
}

struct Change<'a> {
    session: Session<'a>,
    model: &'a Model,
    action: &'a Action,
    read: &'a Level,
    chosen: &'a Chosen,
}

impl Change<'_> {
    fn create(&self, insert: &str, links: &[LinkStatements], visit: Visit<'_>) -> Result<Outcome, Fault> {
        let parts = parts(self.action);
        let bound: Vec<_> = parts.id.map(Parameter::integer).into_iter().chain(parts.bound()).collect();
        if self.write(insert, &bound)? == 0 {
            // Another program's trigger ignored it, and may have done something else instead.
            return Err(Fault::Store(rusqlite::Error::StatementChangedRows(0)));
        }
        let id = self.session.connection.last_insert_rowid();
        for (statements, (_, others)) in links.iter().zip(parts.links) {
            self.write(&statements.add, &[Parameter::integer(id), Parameter::Integers(others)])?;
        }
        let version = self.show(id, visit)?;
        Ok(Outcome::Created { id, version })
    }

    fn update(
        &self,
        update: &str,
        version: &str,
        links: &[LinkStatements],
        visit: Visit<'_>,
    ) -> Result<Outcome, Fault> {
        let parts = parts(self.action);
        let bound: Vec<_> = parts.bound().chain(parts.identity()).collect();
        let Some(id) = parts.id else { return Ok(Outcome::Missing) };
        if self.write(update, &bound)? == 0 {
            return Ok(parts.unmatched(self.version(version, id)?)?);
        }
        for (statements, (_, others)) in links.iter().zip(parts.links) {
            let bound = [Parameter::integer(id), Parameter::Integers(others)];
            self.write(&statements.remove, &bound)?;
            self.write(&statements.add, &bound)?;
        }
        let version = self.show(id, visit)?;
        Ok(Outcome::Updated { id, version })
    }

    /// An update that names no field: the record as it is, if it is at the expected version.
    fn keep(&self, visit: Visit<'_>) -> Result<Outcome, Fault> {
        let Parts { id: Some(id), expected, .. } = parts(self.action) else { return Ok(Outcome::Missing) };
        let Some((record, found)) = self.read(id)? else { return Ok(Outcome::Missing) };
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(Error::Stale { expected, found }.into());
        }
        record.each(visit);
        Ok(Outcome::Updated { id, version: found })
    }

    fn delete(&self, delete: &str, version: &str, visit: Visit<'_>) -> Result<Outcome, Fault> {
        let parts = parts(self.action);
        let Some(id) = parts.id else { return Ok(Outcome::Missing) };
        let before = execute_read::tree(self.session, self.read, self.chosen, id)?;
        let Some(before) = before else { return Ok(Outcome::Missing) };
        let bound: Vec<_> = parts.identity().collect();
        if self.write(delete, &bound)? == 0 {
            return Ok(parts.unmatched(self.version(version, id)?)?);
        }
        before.each(visit);
        Ok(Outcome::Deleted { id })
    }

    /// How many records it changed.
    fn write(&self, sql: &str, bound: &[Parameter<'_>]) -> Result<usize, Fault> {
        let run = self.session.execute(sql, bound);
        run.map_err(|error| blame(self.session, self.model, self.action, error))
    }

    /// The version of a record, if there is one.
    fn version(&self, sql: &str, id: i64) -> rusqlite::Result<Option<i64>> {
        self.session.number(sql, &[Parameter::integer(id)])
    }

    /// What is asked of a record, and its version.
    fn read(&self, id: i64) -> rusqlite::Result<Option<(Tree<'_>, i64)>> {
        let record = execute_read::tree(self.session, self.read, self.chosen, id)?;
        Ok(record.and_then(|record| {
            let version = record.rows().cell(0, self.read.width - 1).to_i64()?;
            Some((record, version))
        }))
    }

    /// Hands out what was written, as it now stands: a RETURNING would build a table of its own for one row. Where it
    /// cannot be read, or a trigger took it away again, nothing of it is kept: that is what a fault of the store means.
    fn show(&self, id: i64, visit: Visit<'_>) -> Result<i64, Fault> {
        let read = self.read(id).and_then(|read| read.ok_or(rusqlite::Error::QueryReturnedNoRows));
        let (record, version) = read.map_err(Fault::Store)?;
        record.each(visit);
        Ok(version)
    }
}
