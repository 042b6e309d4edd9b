//! Runs programs that read on PostgreSQL: flat ones row by row, nested ones up to [`MAX_PARENTS`] parents at a time.

use futures_util::future::{BoxFuture, try_join_all};

use trefoil_engine::plan::{PlanAction, PlannedAggregate, PlannedChild, PlannedListing, PlannedSelection};
use trefoil_engine::{Outcome, Plan};
use trefoil_model::error::Error;
use trefoil_model::{CellValue, RecordId, StoredValue};

use crate::postgres::error::PostgresError;
use crate::postgres::plain_lists;
use crate::postgres::session::{PostgresRow, PostgresSession, RowVisitor, read_cell};
use crate::statements::access::image_list::images_as_json;
use crate::statements::access::read_statement::ReadStatement;
use crate::statements::compile::Program;
use crate::statements::dialect::Dialect;
use crate::statements::groups::aggregate_parameters::root_parameters;
use crate::statements::row_batch::{MAX_BATCH_BYTES, MAX_PARENTS, RowBatch, RowTree};
use crate::statements::select::{
    ChildBranch, SelectLevel, child_parameters, count_parameters, listing_parameters, total_from_rows,
};
use crate::statements::sql_parameter::SqlParameter;

/// The number of rows of the first FETCH, before their size is known.
const FIRST_FETCH: usize = 100;

pub async fn execute_read(
    session: PostgresSession<'_>,
    plan: &Plan,
    program: &Program,
    visit: RowVisitor<'_>,
) -> Result<Outcome, PostgresError> {
    let session = session.for_plan(plan);
    match (&plan.action, program) {
        (PlanAction::Get { id, selection, .. }, Program::Get(level)) => {
            let found = read_rows(session, level, selection, &[SqlParameter::id(id)], Some(1), visit).await?;
            Ok(if found.count == 0 { Outcome::NotFound } else { Outcome::Found })
        }
        (PlanAction::List { listing, selection, .. }, Program::List { level, count }) => {
            read_list(session, level, count.as_ref(), listing, selection, visit).await
        }
        (PlanAction::ReadImage { image, selection, .. }, Program::Get(level)) => {
            attach_children(session, level, selection, RowBatch::from_image(level, image))
                .await?
                .visit_rows(visit);
            Ok(Outcome::Found)
        }
        (PlanAction::SeeImages { list, .. }, Program::Get(level)) => {
            let selection = PlannedSelection::default();
            let parameter = SqlParameter::Owned(StoredValue::Text(images_as_json(Dialect::Postgres, list)));
            read_rows(session, level, &selection, &[parameter], None, visit).await?;
            Ok(Outcome::Listed { has_more: false, total: None })
        }
        (PlanAction::Aggregate(aggregate), Program::Aggregate(level)) => {
            Box::pin(read_groups(session, level, aggregate, visit)).await
        }
        (PlanAction::PlainList(operation), Program::PlainList) => {
            Box::pin(plain_lists::run_list_action(session, operation, visit)).await
        }
        (action, _) => Err(Error::internal(format!("a program that is not for {action:?}")).into()),
    }
}

/// Answers a read from the image of a change, without a connection; false if the image is not enough.
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

async fn read_groups(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    aggregate: &PlannedAggregate,
    visit: RowVisitor<'_>,
) -> Result<Outcome, PostgresError> {
    check_search(session, level, &aggregate.listing, None).await?;
    let mut batch = RowBatch::new(level.width);
    read_into_batch(session, level, &root_parameters(aggregate), &mut batch).await?;
    if batch.row_count() as i64 > aggregate.max_groups {
        return Err(aggregate.too_many_groups().into());
    }
    RowTree::new(level, batch).visit_rows(visit);
    Ok(Outcome::Listed { has_more: false, total: None })
}

async fn read_list(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    count: Option<&ReadStatement>,
    listing: &PlannedListing,
    selection: &PlannedSelection,
    visit: RowVisitor<'_>,
) -> Result<Outcome, PostgresError> {
    check_search(session, level, listing, None).await?;
    let mut parameters = Vec::new();
    listing_parameters(listing, &mut parameters);
    if listing.has_limit_or_offset() {
        // One more than the limit shows whether there are more.
        let limit = listing.limit.unwrap_or(i64::MAX).saturating_add(1);
        parameters.extend([limit, listing.offset].map(SqlParameter::integer));
    }
    let rows_read = if listing.from_end {
        read_from_end(session, level, listing, selection, &parameters, visit).await?
    } else {
        read_rows(session, level, selection, &parameters, listing.limit, visit).await?
    };
    let total = match (count, total_from_rows(listing, rows_read.count, rows_read.has_more)) {
        (Some(_), Some(total)) => Some(total),
        (Some(sql), None) => Some(count_rows(session, sql, listing).await?),
        (None, _) => None,
    };
    Ok(Outcome::Listed { has_more: rows_read.has_more, total })
}

/// Refuses a search that would read too many records.
async fn check_search(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    listing: &PlannedListing,
    parents: Option<&[CellValue<'_>]>,
) -> Result<(), PostgresError> {
    let Some(guard) = &level.search_guard else { return Ok(()) };
    let count = session.read_integer(&guard.statement, &guard.parameters(listing, parents)).await?;
    Ok(guard.check(listing, count)?)
}

async fn count_rows(
    session: PostgresSession<'_>,
    count: &ReadStatement,
    listing: &PlannedListing,
) -> Result<u64, PostgresError> {
    Ok(session.read_integer(count, &count_parameters(listing)).await?.unwrap_or(0).unsigned_abs())
}

/// The rows that a statement gave.
struct RowsRead {
    count: i64,
    /// True if there was a row beyond the limit.
    has_more: bool,
}

async fn read_rows(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    selection: &PlannedSelection,
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
        let rows_read = {
            let mut rows = session.read(&level.statement, parameters).await?;
            let mut rows_read = RowsRead { count: 0, has_more: false };
            while let Some(row) = rows.next_row().await? {
                rows_read.has_more = rows_read.count == limit;
                if !rows_read.has_more {
                    rows_read.count += 1;
                    batch.push_row((0..level.width).map(|column| read_cell(&row, column)));
                }
            }
            rows_read
        };
        attach_children(session, level, selection, batch).await?.visit_rows(visit);
        return Ok(rows_read);
    }
    Box::pin(read_nested(session, level, selection, parameters, limit, visit)).await
}

async fn read_flat(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    parameters: &[SqlParameter<'_>],
    limit: i64,
    visit: RowVisitor<'_>,
) -> Result<RowsRead, PostgresError> {
    let mut rows_read = RowsRead { count: 0, has_more: false };
    let mut rows = session.read(&level.statement, parameters).await?;
    while let Some(row) = rows.next_row().await? {
        // The statement returns at most one row more than the limit.
        rows_read.has_more = rows_read.count == limit;
        if !rows_read.has_more {
            rows_read.count += 1;
            visit(&PostgresRow { row: &row, level });
        }
    }
    Ok(rows_read)
}

/// Reads a list of any length through a cursor, since the children cannot be read while the parents are streaming.
async fn read_nested(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    selection: &PlannedSelection,
    parameters: &[SqlParameter<'_>],
    limit: i64,
    visit: RowVisitor<'_>,
) -> Result<RowsRead, PostgresError> {
    session.declare("trefoil_rows", &level.statement, parameters).await?;
    let mut rows_read = RowsRead { count: 0, has_more: false };
    let mut batch = RowBatch::new(level.width);
    let mut next_fetch = FIRST_FETCH;
    loop {
        let fetch_size = next_fetch.min(MAX_PARENTS - batch.row_count());
        let (before, mut found) = (batch.row_count(), 0);
        let mut rows = session.fetch(&format!("FETCH {fetch_size} FROM trefoil_rows")).await?;
        while let Some(row) = rows.next_row().await? {
            found += 1;
            rows_read.has_more = rows_read.count == limit;
            if !rows_read.has_more {
                rows_read.count += 1;
                batch.push_row((0..level.width).map(|column| read_cell(&row, column)));
            }
        }
        let is_end = found < fetch_size || rows_read.has_more;
        next_fetch = next_fetch_size(&batch);
        if batch.row_count() == MAX_PARENTS
            || batch.text_bytes() >= MAX_BATCH_BYTES
            || (is_end && before + found > 0)
        {
            let full = std::mem::replace(&mut batch, RowBatch::new(level.width));
            attach_children(session, level, selection, full).await?.visit_rows(visit);
        }
        if is_end {
            session.execute_control("CLOSE trefoil_rows").await?;
            return Ok(rows_read);
        }
    }
}

/// The number of rows that would fill a batch, estimated from those read so far.
fn next_fetch_size(batch: &RowBatch) -> usize {
    let row_bytes = batch.text_bytes() / batch.row_count().max(1);
    (MAX_BATCH_BYTES / row_bytes.max(1)).clamp(1, MAX_PARENTS)
}

/// Reads rows that come in reverse, which takes all of them; their number is limited.
async fn read_from_end(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    listing: &PlannedListing,
    selection: &PlannedSelection,
    parameters: &[SqlParameter<'_>],
    visit: RowVisitor<'_>,
) -> Result<RowsRead, PostgresError> {
    let mut batch = RowBatch::new(level.width);
    read_into_batch(session, level, parameters, &mut batch).await?;
    let has_more = batch.truncate_to(listing.limit);
    let rows_read = RowsRead { count: batch.row_count() as i64, has_more };
    attach_children(session, level, selection, batch).await?.visit_rows_reversed(visit);
    Ok(rows_read)
}

/// Reads one record with all its children; `None` if there is no record.
pub async fn read_tree<'p>(
    session: PostgresSession<'_>,
    level: &'p SelectLevel,
    selection: &'p PlannedSelection,
    id: &RecordId,
) -> Result<Option<RowTree<'p>>, PostgresError> {
    let mut batch = RowBatch::new(level.width);
    read_into_batch(session, level, &[SqlParameter::id(id)], &mut batch).await?;
    if batch.row_count() == 0 {
        Ok(None)
    } else {
        attach_children(session, level, selection, batch).await.map(Some)
    }
}

/// Reads all children of these rows; the statements of one level are pipelined.
pub fn attach_children<'f, 'p: 'f>(
    session: PostgresSession<'f>,
    level: &'p SelectLevel,
    selection: &'p PlannedSelection,
    rows: RowBatch,
) -> BoxFuture<'f, Result<RowTree<'p>, PostgresError>> {
    Box::pin(async move {
        let mut tree = RowTree::new(level, rows);
        let branches = level.branches.iter().zip(&selection.children).map(|(branch, child)| match branch {
            ChildBranch::KeyOnly { .. } => None,
            ChildBranch::Rows { column, level } => {
                Some((*column, level, child, tree.rows().distinct_keys(*column)))
            }
        });
        let branches: Vec<_> = branches.collect();
        let subtrees = branches.into_iter().map(|branch| async move {
            let Some((column, level, child, keys)) = branch else { return Ok::<_, PostgresError>(None) };
            let rows = read_children(session, level, child, &keys).await?;
            Ok(Some((column, attach_children(session, level, &child.selection, rows).await?)))
        });
        for branch in try_join_all(subtrees).await? {
            match branch {
                None => tree.attach_key_only(),
                Some((column, children)) => tree.attach_children(column, children),
            }
        }
        Ok(tree)
    })
}

async fn read_children(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    child: &PlannedChild,
    keys: &[CellValue<'_>],
) -> Result<RowBatch, PostgresError> {
    let mut batch = RowBatch::new(level.width);
    for chunk in keys.chunks(MAX_PARENTS) {
        check_search(session, level, child.searched_listing(), Some(chunk)).await?;
        let before = batch.row_count();
        read_into_batch(session, level, &child_parameters(child, chunk), &mut batch).await?;
        if let Some(aggregate) = &child.aggregate
            && (batch.row_count() - before) as i64 > aggregate.max_groups
        {
            return Err(aggregate.too_many_groups().into());
        }
    }
    Ok(batch)
}

async fn read_into_batch(
    session: PostgresSession<'_>,
    level: &SelectLevel,
    parameters: &[SqlParameter<'_>],
    batch: &mut RowBatch,
) -> Result<(), PostgresError> {
    let mut rows = session.read(&level.statement, parameters).await?;
    while let Some(row) = rows.next_row().await? {
        match &level.groups {
            None => batch.push_row((0..level.width).map(|column| read_cell(&row, column))),
            Some(groups) => {
                let values = groups.values(|column| read_cell(&row, column));
                batch.push_row(values.iter().map(StoredValue::as_cell));
            }
        }
    }
    Ok(())
}
