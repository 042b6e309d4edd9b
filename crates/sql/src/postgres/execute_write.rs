//! Runs the programs that write on PostgreSQL, by themselves or inside a transaction that someone else began.

use crate::postgres::error::Fault;
use crate::postgres::execute_read;
use crate::postgres::execute_read::{Visit, grow, tree};
use crate::postgres::session::{Session, cell, internal};
use crate::statements::compile::Program;
use crate::statements::row_batch::Batch;
use crate::statements::select::{Level, Parameter};
use crate::statements::write::{Counter, LinkStatements};
use crate::statements::write_parts::{Parts, parts};
use trefoil_engine::plan::{Action, Chosen};
use trefoil_engine::{Outcome, Plan};
use trefoil_model::Cell;
use trefoil_model::error::Error;

/// The statement, where the plan is nothing else: it then needs no transaction around it.
pub fn only_statement(program: &Program) -> Option<&str> {
    match program {
        Program::Create { counter: None, insert, links, read } if links.is_empty() && read.is_flat() => {
            Some(insert)
        }
        Program::Update { update: Some(update), links, read, .. } if links.is_empty() && read.is_flat() => {
            Some(update)
        }
        Program::Delete { delete, read, .. } if read.is_flat() => Some(delete),
        Program::Create { .. }
        | Program::Update { .. }
        | Program::Delete { .. }
        | Program::Get(_)
        | Program::List { .. }
        | Program::Plain => None,
    }
}

/// Rows are visited only when the plan has succeeded as a whole.
pub async fn run(
    session: Session<'_>,
    plan: &Plan,
    program: &Program,
    visit: Visit<'_>,
) -> Result<Outcome, Fault> {
    let (read, chosen) = match (&plan.action, program) {
        (Action::Create { selection, .. }, Program::Create { read, .. })
        | (Action::Update { selection, .. }, Program::Update { read, .. })
        | (Action::Delete { selection, .. }, Program::Delete { read, .. }) => (read, selection),
        _ => return execute_read::run(session, plan, program, visit).await,
    };
    let change = Change { session, action: &plan.action, read, chosen };
    match program {
        Program::Create { counter, insert, links, .. } => {
            change.create(counter.as_ref(), insert, links, visit).await
        }
        Program::Update { update: Some(update), version, links, .. } => {
            change.update(update, version, links, visit).await
        }
        Program::Update { update: None, version, .. } => change.keep(version, visit).await,
        Program::Delete { delete, version, .. } => change.delete(delete, version, visit).await,
        Program::Get(_) | Program::List { .. } | Program::Plain => {
            execute_read::run(session, plan, program, visit).await
        }
    }
}

struct Change<'a> {
    session: Session<'a>,
    action: &'a Action,
    read: &'a Level,
    chosen: &'a Chosen,
}

impl Change<'_> {
    async fn create(
        &self,
        counter: Option<&Counter>,
        insert: &str,
        links: &[LinkStatements],
        visit: Visit<'_>,
    ) -> Result<Outcome, Fault> {
        let parts = parts(self.action);
        let behind = self.is_behind(counter, parts.id).await?;
        let bound: Vec<_> = parts.id.map(Parameter::integer).into_iter().chain(parts.bound()).collect();
        let Some(written) = self.write(insert, &bound).await? else {
            return Err(internal("an insert returned no row"));
        };
        let (id, version) = (written.id, written.version);
        if let Some(counter) = behind {
            self.session.execute(&counter.advance, &[Parameter::integer(id)]).await?;
        }
        for (statements, (_, others)) in links.iter().zip(parts.links) {
            self.link(&statements.add, id, others).await?;
        }
        self.show(written, visit).await?;
        Ok(Outcome::Created { id, version })
    }

    /// The counter, if it has to follow the chosen id; then nobody else draws an id until the transaction ends.
    async fn is_behind<'c>(
        &self,
        counter: Option<&'c Counter>,
        id: Option<i64>,
    ) -> Result<Option<&'c Counter>, Fault> {
        let (Some(counter), Some(id)) = (counter, id) else { return Ok(None) };
        if self.session.number(&counter.is_behind, &[Parameter::integer(id)]).await?.is_none() {
            return Ok(None);
        }
        self.session.control(&counter.lock).await?;
        Ok(Some(counter))
    }

    async fn update(
        &self,
        update: &str,
        version: &str,
        links: &[LinkStatements],
        visit: Visit<'_>,
    ) -> Result<Outcome, Fault> {
        let parts = parts(self.action);
        let bound: Vec<_> = parts.bound().chain(parts.identity()).collect();
        let Some(written) = self.write(update, &bound).await? else { return self.absent(version).await };
        let (id, version) = (written.id, written.version);
        for (statements, (_, others)) in links.iter().zip(parts.links) {
            self.link(&statements.remove, id, others).await?;
            self.link(&statements.add, id, others).await?;
        }
        self.show(written, visit).await?;
        Ok(Outcome::Updated { id, version })
    }

    /// An update that names no field: the record as it is, if it is at the expected version.
    async fn keep(&self, version: &str, visit: Visit<'_>) -> Result<Outcome, Fault> {
        let Parts { id: Some(id), expected, .. } = parts(self.action) else { return Ok(Outcome::Missing) };
        let Some(found) = self.session.number(version, &[Parameter::integer(id)]).await? else {
            return Ok(Outcome::Missing);
        };
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(Error::Stale { expected, found }.into());
        }
        if let Some(tree) = tree(self.session, self.read, self.chosen, id).await? {
            tree.each(visit);
        }
        Ok(Outcome::Updated { id, version: found })
    }

    async fn delete(&self, delete: &str, version: &str, visit: Visit<'_>) -> Result<Outcome, Fault> {
        let parts = parts(self.action);
        let before = match parts.id {
            Some(id) if !self.read.is_flat() => {
                // From here on nobody adds to what is shown and goes along with it.
                let lock = format!("{version} FOR UPDATE");
                self.session.number(&lock, &[Parameter::integer(id)]).await?;
                tree(self.session, self.read, self.chosen, id).await?
            }
            _ => None,
        };
        let bound: Vec<_> = parts.identity().collect();
        let Some(written) = self.write(delete, &bound).await? else { return self.absent(version).await };
        let id = written.id;
        match before {
            Some(tree) => tree.each(visit),
            None => grow(self.session, self.read, self.chosen, written.rows).await?.each(visit),
        }
        Ok(Outcome::Deleted { id })
    }

    /// Runs a statement for one record to its very end, which by itself is the commit.
    async fn write(&self, sql: &str, bound: &[Parameter<'_>]) -> Result<Option<Written>, Fault> {
        let own = if self.read.is_flat() { self.read.columns.len() } else { 0 };
        let width = own + 2;
        let mut batch = Batch::new(width);
        let mut rows = self.session.rows(sql, bound).await?;
        while let Some(row) = rows.next().await? {
            batch.push((0..width).map(|column| cell(&row, column)));
        }
        if batch.rows() == 0 {
            return Ok(None);
        }
        match (batch.cell(0, own), batch.cell(0, own + 1)) {
            (Cell::Int(id), Cell::Int(version)) => Ok(Some(Written { id, version, rows: batch })),
            _ => Err(internal("a record has no readable id or version")),
        }
    }

    async fn link(&self, sql: &str, id: i64, others: &[i64]) -> Result<(), Fault> {
        self.session.execute(sql, &[Parameter::integer(id), Parameter::Integers(others)]).await.map(drop)
    }

    /// Hands out what was written: from the returned row, or, with children, read again.
    async fn show(&self, written: Written, visit: Visit<'_>) -> Result<(), Fault> {
        let tree = if self.read.is_flat() {
            Some(grow(self.session, self.read, self.chosen, written.rows).await?)
        } else {
            tree(self.session, self.read, self.chosen, written.id).await?
        };
        if let Some(tree) = tree {
            tree.each(visit);
        }
        Ok(())
    }

    /// Why a statement found no record: there is none, or it is at another version.
    async fn absent(&self, version: &str) -> Result<Outcome, Fault> {
        let parts = parts(self.action);
        let Some(id) = parts.id else { return Ok(Outcome::Missing) };
        Ok(parts.unmatched(self.session.number(version, &[Parameter::integer(id)]).await?)?)
    }
}

/// The row that a statement returned.
struct Written {
    id: i64,
    version: i64,
    rows: Batch,
}
