//! Runs the programs that read on PostgreSQL: flat ones row by row, nested ones a thousand parents at a time.

use futures_util::future::{BoxFuture, try_join_all};

use crate::postgres::error::PostgresError;
use crate::postgres::plain_lists;
use crate::postgres::session::{PostgresRow, PostgresSession, read_cell};
use crate::statements::compile::Program;
use crate::statements::row_batch::{MAX_BATCH_BYTES, MAX_PARENTS, RowBatch, RowTree};
use crate::statements::select::{
    ChildBranch, SelectLevel, SqlParameter, child_parameters, count_parameters, has_limit_or_offset,
    listing_parameters, total_from_rows,
};
use trefoil_engine::plan::{PlanAction, PlannedChild, PlannedListing, PlannedSelection};
use trefoil_engine::{Outcome, Plan, Row};
use trefoil_model::error::Error;

/// How many rows a cursor is asked for first, before it is known what they weigh.
const FIRST_FETCH: usize = 100;

pub type RowVisitor<'v> = &'v mut (dyn FnMut(&dyn Row) + Send);

pub async fn execute_read(
    session: PostgresSession<'_>,
    plan: &Plan,
    program: &Program,
    visit: RowVisitor<'_>,
) -> Result<Outcome, PostgresError> {
    match (&plan.action, program) {
        (PlanAction::Get { id, selection, .. }, Program::Get(level)) => {
            let found =
                read_rows(session, level, selection, &[SqlParameter::integer(*id)], Some(1), visit).await?;
            Ok(if found.count == 0 { Outcome::NotFound } else { Outcome::Found })
        }
        (PlanAction::List { listing, selection, .. }, Program::List { level, count }) => {
            read_list(session, level, count.as_deref(), listing, selection, visit).await
        }
        (PlanAction::ReadImage { image, selection, .. }, Program::Get(level)) => {
            attach_children(session, level, selection, RowBatch::from_image(level, image))
                .await?
                .visit_rows(visit);
            Ok(Outcome::Found)
        }
        (PlanAction::PlainList(asked), Program::PlainList) => {
            plain_lists::run_list_action(session, asked, visit).await
        }
        (action, _) => Err(Error::internal(format!("a program that is not for {action:?}")).into()),
    }
}

/// Answers what a change tells by itself, without any connection; says whether it did.
pub fn read_image(plan: &Plan, program: &Program, visit: RowVisitor<'_>) -> bool {
    match (&plan.action, program) {
        (PlanAction::ReadImage { image, .. }, Program::Get(level)) if level.is_flat() => {
            let mut tree = RowTree::new(level, RowBatch::from_image(level, image));
            level.branches.iter().for_each(|_| tree.attach_key_only());
            tree.visit_rows(visit);
            true
        }
        _ => false,
    }
}

async fn read_list(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    count: Option<&str>,
    bounds: &PlannedListing,
    chosen: &PlannedSelection,
    visit: RowVisitor<'_>,
) -> Result<Outcome, PostgresError> {
    let mut bound = Vec::new();
    listing_parameters(bounds, &mut bound);
    if has_limit_or_offset(bounds) {
        // One more than asked for tells whether there is more.
        let limit = bounds.limit.unwrap_or(i64::MAX).saturating_add(1);
        bound.extend([limit, bounds.offset].map(SqlParameter::integer));
    }
    let given = read_rows(session, level, chosen, &bound, bounds.limit, visit).await?;
    let total = match (count, total_from_rows(bounds, given.count, given.has_more)) {
        (Some(_), Some(told)) => Some(told),
        (Some(sql), None) => Some(self::count_rows(session, sql, bounds).await?),
        (None, _) => None,
    };
    Ok(Outcome::Listed { has_more: given.has_more, total })
}

async fn count_rows(
    session: PostgresSession<'_>,
    sql: &str,
    bounds: &PlannedListing,
) -> Result<u64, PostgresError> {
    Ok(session.query_integer(sql, &count_parameters(bounds)).await?.unwrap_or(0).unsigned_abs())
}

/// What became of a statement's rows.
struct RowsRead {
    count: i64,
    /// There was a row beyond the limit.
    has_more: bool,
}

async fn read_rows(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    chosen: &PlannedSelection,
    parameters: &[SqlParameter<'_>],
    limit: Option<i64>,
    visit: RowVisitor<'_>,
) -> Result<RowsRead, PostgresError> {
    let limit = limit.unwrap_or(i64::MAX);
    if level.is_flat() {
        return read_flat(session, level, parameters, limit, visit).await;
    }
    if limit < MAX_PARENTS as i64 {
        let mut batch = RowBatch::new(level.width);
        let given = {
            let mut rows = session.query(&level.sql, parameters).await?;
            let mut given = RowsRead { count: 0, has_more: false };
            while let Some(row) = rows.next_row().await? {
                given.has_more = given.count == limit;
                if !given.has_more {
                    given.count += 1;
                    batch.push_row((0..level.width).map(|column| read_cell(&row, column)));
                }
            }
            given
        };
        attach_children(session, level, chosen, batch).await?.visit_rows(visit);
        return Ok(given);
    }
    read_nested(session, level, chosen, parameters, limit, visit).await
}

async fn read_flat(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    parameters: &[SqlParameter<'_>],
    limit: i64,
    visit: RowVisitor<'_>,
) -> Result<RowsRead, PostgresError> {
    let mut given = RowsRead { count: 0, has_more: false };
    let mut rows = session.query(&level.sql, parameters).await?;
    while let Some(row) = rows.next_row().await? {
        // The statement gives one more than the limit at most.
        given.has_more = given.count == limit;
        if !given.has_more {
            given.count += 1;
            visit(&PostgresRow { row: &row, level });
        }
    }
    Ok(given)
}

/// A list of any length by a cursor: the connection cannot look for children while it still gives parents.
async fn read_nested(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    chosen: &PlannedSelection,
    parameters: &[SqlParameter<'_>],
    limit: i64,
    visit: RowVisitor<'_>,
) -> Result<RowsRead, PostgresError> {
    session.execute(&format!("DECLARE trefoil_rows NO SCROLL CURSOR FOR {}", level.sql), parameters).await?;
    let mut given = RowsRead { count: 0, has_more: false };
    let mut batch = RowBatch::new(level.width);
    let mut fetch = FIRST_FETCH;
    loop {
        let asked = fetch.min(MAX_PARENTS - batch.row_count());
        let (before, mut found) = (batch.row_count(), 0);
        let mut rows = session.fetch(&format!("FETCH {asked} FROM trefoil_rows")).await?;
        while let Some(row) = rows.next_row().await? {
            found += 1;
            given.has_more = given.count == limit;
            if !given.has_more {
                given.count += 1;
                batch.push_row((0..level.width).map(|column| read_cell(&row, column)));
            }
        }
        let is_end = found < asked || given.has_more;
        fetch = next_fetch_size(&batch);
        if batch.row_count() == MAX_PARENTS
            || batch.text_bytes() >= MAX_BATCH_BYTES
            || (is_end && before + found > 0)
        {
            let full = std::mem::replace(&mut batch, RowBatch::new(level.width));
            attach_children(session, level, chosen, full).await?.visit_rows(visit);
        }
        if is_end {
            session.execute_control("CLOSE trefoil_rows").await?;
            return Ok(given);
        }
    }
}

/// As many rows as would weigh enough, judged by those that are there.
fn next_fetch_size(batch: &RowBatch) -> usize {
    let each = batch.text_bytes() / batch.row_count().max(1);
    (MAX_BATCH_BYTES / each.max(1)).clamp(1, MAX_PARENTS)
}

/// One record with everything below it, or nothing.
pub async fn read_tree<'p>(
    session: PostgresSession<'_>,
    level: &'p SelectLevel,
    chosen: &'p PlannedSelection,
    id: i64,
) -> Result<Option<RowTree<'p>>, PostgresError> {
    let mut batch = RowBatch::new(level.width);
    read_into_batch(session, level, &[SqlParameter::integer(id)], &mut batch).await?;
    if batch.row_count() == 0 {
        Ok(None)
    } else {
        attach_children(session, level, chosen, batch).await.map(Some)
    }
}

/// Finds everything below these rows; the statements of one level travel together.
pub fn attach_children<'f, 'p: 'f>(
    session: PostgresSession<'f>,
    level: &'p SelectLevel,
    chosen: &'p PlannedSelection,
    rows: RowBatch,
) -> BoxFuture<'f, Result<RowTree<'p>, PostgresError>> {
    Box::pin(async move {
        let mut tree = RowTree::new(level, rows);
        let below = level.branches.iter().zip(&chosen.children).map(|(branch, child)| match branch {
            ChildBranch::KeyOnly { .. } => None,
            ChildBranch::Rows { column, level } => {
                Some((*column, level, child, tree.rows().distinct_integers(*column)))
            }
        });
        let below: Vec<_> = below.collect();
        let grown = below.into_iter().map(|branch| async move {
            let Some((column, level, child, keys)) = branch else { return Ok::<_, PostgresError>(None) };
            let rows = read_children(session, level, child, &keys).await?;
            Ok(Some((column, attach_children(session, level, &child.selection, rows).await?)))
        });
        for branch in try_join_all(grown).await? {
            match branch {
                None => tree.attach_key_only(),
                Some((column, below)) => tree.attach_children(column, below),
            }
        }
        Ok(tree)
    })
}

async fn read_children(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    child: &PlannedChild,
    keys: &[i64],
) -> Result<RowBatch, PostgresError> {
    let mut batch = RowBatch::new(level.width);
    for some in keys.chunks(MAX_PARENTS) {
        read_into_batch(session, level, &child_parameters(&child.listing, some), &mut batch).await?;
    }
    Ok(batch)
}

async fn read_into_batch(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    parameters: &[SqlParameter<'_>],
    batch: &mut RowBatch,
) -> Result<(), PostgresError> {
    let mut rows = session.query(&level.sql, parameters).await?;
    while let Some(row) = rows.next_row().await? {
        batch.push_row((0..level.width).map(|column| read_cell(&row, column)));
    }
    Ok(())
}
