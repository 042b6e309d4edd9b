//! Runs the programs that read on PostgreSQL: flat ones row by row, nested ones a thousand parents at a time.

use futures_util::future::{BoxFuture, try_join_all};

use crate::postgres::error::Fault;
use crate::postgres::plain_lists;
use crate::postgres::session::{Session, Streamed, cell};
use crate::statements::compile::Program;
use crate::statements::row_batch::{Batch, PARENTS, Tree, WEIGHT};
use crate::statements::select::{
    Branch, Level, Parameter, child_parameters, count_parameters, is_sliced, parameters, told_total,
};
use trefoil_engine::plan::{Action, Bounds, Chosen, ChosenChild};
use trefoil_engine::{Outcome, Plan, Row};
use trefoil_model::error::Error;

/// How many rows a cursor is asked for first, before it is known what they weigh.
const FIRST_FETCH: usize = 100;

pub type Visit<'v> = &'v mut (dyn FnMut(&dyn Row) + Send);

pub async fn run(
    session: Session<'_>,
    plan: &Plan,
    program: &Program,
    visit: Visit<'_>,
) -> Result<Outcome, Fault> {
    match (&plan.action, program) {
        (Action::Get { id, selection, .. }, Program::Get(level)) => {
            let found = rows(session, level, selection, &[Parameter::integer(*id)], Some(1), visit).await?;
            Ok(if found.given == 0 { Outcome::Missing } else { Outcome::Found })
        }
        (Action::List { listing, selection, .. }, Program::List { level, count }) => {
            list(session, level, count.as_deref(), listing, selection, visit).await
        }
        (Action::Changed { image, selection, .. }, Program::Get(level)) => {
            grow(session, level, selection, Batch::of_image(level, image)).await?.each(visit);
            Ok(Outcome::Found)
        }
        (Action::Plain(asked), Program::Plain) => plain_lists::run(session, asked, visit).await,
        (action, _) => Err(Error::internal(format!("a program that is not for {action:?}")).into()),
    }
}

/// Answers what a change tells by itself, without any connection; says whether it did.
pub fn from_image(plan: &Plan, program: &Program, visit: Visit<'_>) -> bool {
    match (&plan.action, program) {
        (Action::Changed { image, .. }, Program::Get(level)) if level.is_flat() => {
            let mut tree = Tree::new(level, Batch::of_image(level, image));
            level.branches.iter().for_each(|_| tree.attach_nothing());
            tree.each(visit);
            true
        }
        _ => false,
    }
}

async fn list(
    session: Session<'_>,
    level: &Level,
    count: Option<&str>,
    bounds: &Bounds,
    chosen: &Chosen,
    visit: Visit<'_>,
) -> Result<Outcome, Fault> {
    let mut bound = Vec::new();
    parameters(bounds, &mut bound);
    if is_sliced(bounds) {
        // One more than asked for tells whether there is more.
        let limit = bounds.limit.unwrap_or(i64::MAX).saturating_add(1);
        bound.extend([limit, bounds.offset].map(Parameter::integer));
    }
    let given = rows(session, level, chosen, &bound, bounds.limit, visit).await?;
    let total = match (count, told_total(bounds, given.given, given.more)) {
        (Some(_), Some(told)) => Some(told),
        (Some(sql), None) => Some(self::count(session, sql, bounds).await?),
        (None, _) => None,
    };
    Ok(Outcome::Listed { more: given.more, total })
}

async fn count(session: Session<'_>, sql: &str, bounds: &Bounds) -> Result<u64, Fault> {
    Ok(session.number(sql, &count_parameters(bounds)).await?.unwrap_or(0).unsigned_abs())
}

/// What became of a statement's rows.
struct Given {
    given: i64,
    /// There was a row beyond the limit.
    more: bool,
}

async fn rows(
    session: Session<'_>,
    level: &Level,
    chosen: &Chosen,
    parameters: &[Parameter<'_>],
    limit: Option<i64>,
    visit: Visit<'_>,
) -> Result<Given, Fault> {
    let limit = limit.unwrap_or(i64::MAX);
    if level.is_flat() {
        return flat(session, level, parameters, limit, visit).await;
    }
    if limit < PARENTS as i64 {
        let mut batch = Batch::new(level.width);
        let given = {
            let mut rows = session.rows(&level.sql, parameters).await?;
            let mut given = Given { given: 0, more: false };
            while let Some(row) = rows.next().await? {
                given.more = given.given == limit;
                if !given.more {
                    given.given += 1;
                    batch.push((0..level.width).map(|column| cell(&row, column)));
                }
            }
            given
        };
        grow(session, level, chosen, batch).await?.each(visit);
        return Ok(given);
    }
    nested(session, level, chosen, parameters, limit, visit).await
}

async fn flat(
    session: Session<'_>,
    level: &Level,
    parameters: &[Parameter<'_>],
    limit: i64,
    visit: Visit<'_>,
) -> Result<Given, Fault> {
    let mut given = Given { given: 0, more: false };
    let mut rows = session.rows(&level.sql, parameters).await?;
    while let Some(row) = rows.next().await? {
        // The statement gives one more than the limit at most.
        given.more = given.given == limit;
        if !given.more {
            given.given += 1;
            visit(&Streamed { row: &row, level });
        }
    }
    Ok(given)
}

/// A list of any length by a cursor: the connection cannot look for children while it still gives parents.
async fn nested(
    session: Session<'_>,
    level: &Level,
    chosen: &Chosen,
    parameters: &[Parameter<'_>],
    limit: i64,
    visit: Visit<'_>,
) -> Result<Given, Fault> {
    session.execute(&format!("DECLARE trefoil_rows NO SCROLL CURSOR FOR {}", level.sql), parameters).await?;
    let mut given = Given { given: 0, more: false };
    let mut batch = Batch::new(level.width);
    let mut fetch = FIRST_FETCH;
    loop {
        let asked = fetch.min(PARENTS - batch.rows());
        let (before, mut found) = (batch.rows(), 0);
        let mut rows = session.fetch(&format!("FETCH {asked} FROM trefoil_rows")).await?;
        while let Some(row) = rows.next().await? {
            found += 1;
            given.more = given.given == limit;
            if !given.more {
                given.given += 1;
                batch.push((0..level.width).map(|column| cell(&row, column)));
            }
        }
        let is_end = found < asked || given.more;
        fetch = next_fetch(&batch);
        if batch.rows() == PARENTS || batch.weight() >= WEIGHT || (is_end && before + found > 0) {
            let full = std::mem::replace(&mut batch, Batch::new(level.width));
            grow(session, level, chosen, full).await?.each(visit);
        }
        if is_end {
            session.control("CLOSE trefoil_rows").await?;
            return Ok(given);
        }
    }
}

/// As many rows as would weigh enough, judged by those that are there.
fn next_fetch(batch: &Batch) -> usize {
    let each = batch.weight() / batch.rows().max(1);
    (WEIGHT / each.max(1)).clamp(1, PARENTS)
}

/// One record with everything below it, or nothing.
pub async fn tree<'p>(
    session: Session<'_>,
    level: &'p Level,
    chosen: &'p Chosen,
    id: i64,
) -> Result<Option<Tree<'p>>, Fault> {
    let mut batch = Batch::new(level.width);
    load(session, level, &[Parameter::integer(id)], &mut batch).await?;
    if batch.rows() == 0 { Ok(None) } else { grow(session, level, chosen, batch).await.map(Some) }
}

/// Finds everything below these rows; the statements of one level travel together.
pub fn grow<'f, 'p: 'f>(
    session: Session<'f>,
    level: &'p Level,
    chosen: &'p Chosen,
    rows: Batch,
) -> BoxFuture<'f, Result<Tree<'p>, Fault>> {
    Box::pin(async move {
        let mut tree = Tree::new(level, rows);
        let below = level.branches.iter().zip(&chosen.children).map(|(branch, child)| match branch {
            Branch::Key { .. } => None,
            Branch::Rows { column, level } => Some((*column, level, child, tree.rows().keys(*column))),
        });
        let below: Vec<_> = below.collect();
        let grown = below.into_iter().map(|branch| async move {
            let Some((column, level, child, keys)) = branch else { return Ok::<_, Fault>(None) };
            let rows = children(session, level, child, &keys).await?;
            Ok(Some((column, grow(session, level, &child.selection, rows).await?)))
        });
        for branch in try_join_all(grown).await? {
            match branch {
                None => tree.attach_nothing(),
                Some((column, below)) => tree.attach(column, below),
            }
        }
        Ok(tree)
    })
}

async fn children(
    session: Session<'_>,
    level: &Level,
    child: &ChosenChild,
    keys: &[i64],
) -> Result<Batch, Fault> {
    let mut batch = Batch::new(level.width);
    for some in keys.chunks(PARENTS) {
        load(session, level, &child_parameters(&child.listing, some), &mut batch).await?;
    }
    Ok(batch)
}

async fn load(
    session: Session<'_>,
    level: &Level,
    parameters: &[Parameter<'_>],
    batch: &mut Batch,
) -> Result<(), Fault> {
    let mut rows = session.rows(&level.sql, parameters).await?;
    while let Some(row) = rows.next().await? {
        batch.push((0..level.width).map(|column| cell(&row, column)));
    }
    Ok(())
}
