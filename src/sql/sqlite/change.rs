//! Runs the programs that write, inside a transaction that someone else began.

use super::blame::blame;
use super::fault::Fault;
use super::read::{self, grow, tree};
use super::session::{Session, bind, cell};
use crate::engine::plan::{Action, Chosen};
use crate::engine::{Outcome, Plan, Row};
use crate::error::Error;
use crate::model::{Cell, Model};
use crate::sql::batch::Batch;
use crate::sql::compile::Program;
use crate::sql::parts::{Parts, parts};
use crate::sql::select::{Level, Parameter};
use crate::sql::write::LinkStatements;

type Visit<'v> = &'v mut dyn FnMut(&dyn Row);

/// Whether a failure could leave a part of it done: SQLite undoes a failed statement, not the one before it.
pub fn needs_savepoint(program: &Program) -> bool {
    match program {
        Program::Create { links, read, .. } => !links.is_empty() || !read.is_flat(),
        Program::Update { update, links, read, .. } => {
            update.is_some() && (!links.is_empty() || !read.is_flat())
        }
        // Everything else of a deletion is read before it.
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
        _ => return read::run(session, plan, program, visit),
    };
    let change = Change { session, model, action: &plan.action, read, chosen };
    match program {
        Program::Create { insert, links, .. } => change.create(insert, links, visit),
        Program::Update { update: Some(update), version, links, .. } => {
            change.update(update, version, links, visit)
        }
        Program::Update { update: None, version, .. } => change.keep(version, visit),
        Program::Delete { delete, version, .. } => change.delete(delete, version, visit),
        Program::Get(_) | Program::List { .. } | Program::Plain => read::run(session, plan, program, visit),
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
        let Some(written) = self.write(insert, &bound)? else {
            return Err(Error::internal("an insert returned no row").into());
        };
        let (id, version) = (written.id, written.version);
        for (statements, (_, others)) in links.iter().zip(parts.links) {
            self.link(&statements.add, id, others)?;
        }
        self.show(written, visit)?;
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
        let Some(written) = self.write(update, &bound)? else { return self.absent(version) };
        let (id, version) = (written.id, written.version);
        for (statements, (_, others)) in links.iter().zip(parts.links) {
            self.link(&statements.remove, id, others)?;
            self.link(&statements.add, id, others)?;
        }
        self.show(written, visit)?;
        Ok(Outcome::Updated { id, version })
    }

    /// An update that names no field: the record as it is, if it is at the expected version.
    fn keep(&self, version: &str, visit: Visit<'_>) -> Result<Outcome, Fault> {
        let Parts { id: Some(id), expected, .. } = parts(self.action) else { return Ok(Outcome::Missing) };
        let Some(found) = self.session.number(version, &[Parameter::integer(id)])? else {
            return Ok(Outcome::Missing);
        };
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(Error::Stale { expected, found }.into());
        }
        if let Some(tree) = tree(self.session, self.read, self.chosen, id)? {
            tree.each(visit);
        }
        Ok(Outcome::Updated { id, version: found })
    }

    fn delete(&self, delete: &str, version: &str, visit: Visit<'_>) -> Result<Outcome, Fault> {
        let parts = parts(self.action);
        let before = match parts.id {
            Some(id) if !self.read.is_flat() => tree(self.session, self.read, self.chosen, id)?,
            _ => None,
        };
        let bound: Vec<_> = parts.identity().collect();
        let Some(written) = self.write(delete, &bound)? else { return self.absent(version) };
        let id = written.id;
        match before {
            Some(tree) => tree.each(visit),
            None => grow(self.session, self.read, self.chosen, written.rows)?.each(visit),
        }
        Ok(Outcome::Deleted { id })
    }

    /// Runs a statement for one record to its very end: references are checked after the row is returned.
    fn write(&self, sql: &str, bound: &[Parameter<'_>]) -> Result<Option<Written>, Fault> {
        let own = if self.read.is_flat() { self.read.columns.len() } else { 0 };
        let width = own + 2;
        let mut batch = Batch::new(width);
        let mut run = || {
            let mut statement = self.session.prepare(sql)?;
            bind(&mut statement, bound)?;
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next()? {
                batch.push((0..width).map(|column| cell(row, column)));
            }
            Ok(())
        };
        run().map_err(|error| blame(self.session, self.model, self.action, error))?;
        if batch.rows() == 0 {
            return Ok(None);
        }
        match (batch.cell(0, own), batch.cell(0, own + 1)) {
            (Cell::Int(id), Cell::Int(version)) => Ok(Some(Written { id, version, rows: batch })),
            _ => Err(Error::internal("a record has no readable id or version").into()),
        }
    }

    fn link(&self, sql: &str, id: i64, others: &[i64]) -> Result<(), Fault> {
        let bound = [Parameter::integer(id), Parameter::Integers(others)];
        let run = self.session.execute(sql, &bound);
        run.map(drop).map_err(|error| blame(self.session, self.model, self.action, error))
    }

    /// Hands out what was written: from the returned row, or, with children, read again.
    fn show(&self, written: Written, visit: Visit<'_>) -> Result<(), Fault> {
        let tree = if self.read.is_flat() {
            Some(grow(self.session, self.read, self.chosen, written.rows)?)
        } else {
            tree(self.session, self.read, self.chosen, written.id)?
        };
        if let Some(tree) = tree {
            tree.each(visit);
        }
        Ok(())
    }

    /// Why a statement found no record: there is none, or it is at another version.
    fn absent(&self, version: &str) -> Result<Outcome, Fault> {
        let parts = parts(self.action);
        let Some(id) = parts.id else { return Ok(Outcome::Missing) };
        Ok(parts.unmatched(self.session.number(version, &[Parameter::integer(id)])?)?)
    }
}

/// The row that a statement returned.
struct Written {
    id: i64,
    version: i64,
    rows: Batch,
}
