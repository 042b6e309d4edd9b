//! Runs the programs that read: flat ones row by row, nested ones a thousand parents at a time.

use crate::sqlite::error::Fault;
use crate::sqlite::plain_lists;
use crate::sqlite::session::{Session, Streamed, bind, cell};
use crate::statements::compile::Program;
use crate::statements::row_batch::{Batch, PARENTS, Tree, WEIGHT};
use crate::statements::select::{
    Branch, Level, Parameter, child_parameters, count_parameters, is_sliced, parameters, told_total,
};
use trefoil_engine::plan::{Action, Bounds, Chosen, ChosenChild};
use trefoil_engine::{Outcome, Plan, Row};
use trefoil_model::Cell;
use trefoil_model::error::Error;

type Visit<'v> = &'v mut dyn FnMut(&dyn Row);

pub fn run(session: Session<'_>, plan: &Plan, program: &Program, visit: Visit<'_>) -> Result<Outcome, Fault> {
    match (&plan.action, program) {
        (Action::Get { id, selection, .. }, Program::Get(level)) => {
            let found = rows(session, level, selection, &[Parameter::Cell(Cell::Int(*id))], None, visit)?;
            Ok(if found.given == 0 { Outcome::Missing } else { Outcome::Found })
        }
        (Action::Changed { image, selection, .. }, Program::Get(level)) => {
            grow(session, level, selection, Batch::of_image(level, image))?.each(visit);
            Ok(Outcome::Found)
        }
        (Action::List { listing, selection, .. }, Program::List { level, count }) => {
            Ok(list(session, level, count.as_deref(), listing, selection, visit)?)
        }
        (Action::Plain(asked), Program::Plain) => Ok(plain_lists::run(session, asked, visit)??),
        (action, _) => Err(Error::internal(format!("a program that is not for {action:?}")).into()),
    }
}

fn list(
    session: Session<'_>,
    level: &Level,
    count: Option<&str>,
    bounds: &Bounds,
    chosen: &Chosen,
    visit: Visit<'_>,
) -> rusqlite::Result<Outcome> {
    let mut bound = Vec::new();
    parameters(bounds, &mut bound);
    if is_sliced(bounds) {
        // One more than asked for tells whether there is more.
        let limit = bounds.limit.unwrap_or(i64::MAX).saturating_add(1);
        bound.extend([limit, bounds.offset].map(|number| Parameter::Cell(Cell::Int(number))));
    }
    let given = rows(session, level, chosen, &bound, bounds.limit, visit)?;
    let told = told_total(bounds, given.given, given.more);
    let total = count.map(|sql| told.map_or_else(|| self::count(session, sql, bounds), Ok)).transpose()?;
    Ok(Outcome::Listed { more: given.more, total })
}

fn count(session: Session<'_>, sql: &str, bounds: &Bounds) -> rusqlite::Result<u64> {
    Ok(session.number(sql, &count_parameters(bounds))?.unwrap_or(0).unsigned_abs())
}

/// What became of a statement's rows.
struct Given {
    given: i64,
    /// There was a row beyond the limit.
    more: bool,
}

fn rows(
    session: Session<'_>,
    level: &Level,
    chosen: &Chosen,
    parameters: &[Parameter<'_>],
    limit: Option<i64>,
    visit: Visit<'_>,
) -> rusqlite::Result<Given> {
    let (limit, flat) = (limit.unwrap_or(i64::MAX), level.is_flat());
    let mut statement = session.prepare(&level.sql)?;
    bind(&mut statement, parameters)?;
    let mut rows = statement.raw_query();
    let mut given = Given { given: 0, more: false };
    let mut batch = Batch::new(level.width);
    while let Some(row) = rows.next()? {
        if given.given == limit {
            given.more = true;
            break;
        }
        given.given += 1;
        if flat {
            visit(&Streamed { row, level });
            continue;
        }
        batch.push((0..level.width).map(|column| cell(row, column)));
        if batch.rows() == PARENTS || batch.weight() >= WEIGHT {
            let full = std::mem::replace(&mut batch, Batch::new(level.width));
            grow(session, level, chosen, full)?.each(visit);
        }
    }
    if batch.rows() > 0 {
        grow(session, level, chosen, batch)?.each(visit);
    }
    Ok(given)
}

/// One record with everything below it, or nothing.
pub fn tree<'p>(
    session: Session<'_>,
    level: &'p Level,
    chosen: &'p Chosen,
    id: i64,
) -> rusqlite::Result<Option<Tree<'p>>> {
    let mut batch = Batch::new(level.width);
    load(session, level, &[Parameter::Cell(Cell::Int(id))], &mut batch)?;
    if batch.rows() == 0 { Ok(None) } else { grow(session, level, chosen, batch).map(Some) }
}

/// Finds everything below these rows.
fn grow<'p>(
    session: Session<'_>,
    level: &'p Level,
    chosen: &'p Chosen,
    rows: Batch,
) -> rusqlite::Result<Tree<'p>> {
    let mut tree = Tree::new(level, rows);
    for (branch, child) in level.branches.iter().zip(&chosen.children) {
        match branch {
            Branch::Key { .. } => tree.attach_nothing(),
            Branch::Rows { column, level } => {
                let rows = children(session, level, child, &tree.rows().keys(*column))?;
                tree.attach(*column, grow(session, level, &child.selection, rows)?);
            }
        }
    }
    Ok(tree)
}

fn children(
    session: Session<'_>,
    level: &Level,
    child: &ChosenChild,
    keys: &[i64],
) -> rusqlite::Result<Batch> {
    let mut batch = Batch::new(level.width);
    for some in keys.chunks(PARENTS) {
        load(session, level, &child_parameters(&child.listing, some), &mut batch)?;
    }
    Ok(batch)
}

fn load(
    session: Session<'_>,
    level: &Level,
    parameters: &[Parameter<'_>],
    batch: &mut Batch,
) -> rusqlite::Result<()> {
    let mut statement = session.prepare(&level.sql)?;
    bind(&mut statement, parameters)?;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        batch.push((0..level.width).map(|column| cell(row, column)));
    }
    Ok(())
}
