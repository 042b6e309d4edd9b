//! Executes programs that read: flat ones row by row, nested ones in batches of parents.

use trefoil_engine::plan::{PlanAction, PlannedAggregate, PlannedChild, PlannedListing, PlannedSelection};
use trefoil_engine::{Outcome, Plan, Row};
use trefoil_model::error::Error;
use trefoil_model::{CellValue, RecordId, StoredValue};

use crate::sqlite::connect::TemporaryFiles;
use crate::sqlite::error::SqliteError;
use crate::sqlite::plain_lists;
use crate::sqlite::session::{SqliteRow, SqliteSession, read_cell};
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

type RowVisitor<'v> = &'v mut dyn FnMut(&dyn Row);

pub fn execute_read(
    session: SqliteSession<'_>,
    plan: &Plan,
    program: &Program,
    visit: RowVisitor<'_>,
) -> Result<Outcome, SqliteError> {
    let session = session.for_plan(plan);
    match (&plan.action, program) {
        (PlanAction::Get { id, selection, .. }, Program::Get(level)) => {
            let found = read_rows(session, level, selection, &[SqlParameter::id(id)], None, visit)?;
            Ok(if found.count == 0 { Outcome::NotFound } else { Outcome::Found })
        }
        (PlanAction::ReadImage { image, selection, .. }, Program::Get(level)) => {
            let rows = RowBatch::from_image(level, image);
            attach_children(session, level, selection, rows)?.visit_rows(visit);
            Ok(Outcome::Found)
        }
        (PlanAction::List { listing, selection, .. }, Program::List { level, count }) => {
            read_list(session, level, count.as_ref(), listing, selection, visit)
        }
        (PlanAction::SeeImages { list, .. }, Program::Get(level)) => {
            let selection = PlannedSelection::default();
            let parameter = SqlParameter::Owned(StoredValue::Text(images_as_json(Dialect::Sqlite, list)));
            read_rows(session, level, &selection, &[parameter], None, visit)?;
            Ok(Outcome::Listed { has_more: false, total: None })
        }
        (PlanAction::Aggregate(aggregate), Program::Aggregate(level)) => {
            read_groups(session, level, aggregate, visit)
        }
        (PlanAction::PlainList(operation), Program::PlainList) => {
            Ok(plain_lists::run_list_action(session, operation, visit)??)
        }
        (action, _) => Err(Error::internal(format!("a program that is not for {action:?}")).into()),
    }
}

fn read_groups(
    session: SqliteSession<'_>,
    level: &SelectLevel,
    aggregate: &PlannedAggregate,
    visit: RowVisitor<'_>,
) -> Result<Outcome, SqliteError> {
    check_search(session, level, &aggregate.listing, None)?;
    let mut batch = RowBatch::new(level.width);
    read_into_batch(session, level, &root_parameters(aggregate), &mut batch)?;
    if batch.row_count() as i64 > aggregate.max_groups {
        return Err(aggregate.too_many_groups().into());
    }
    RowTree::new(level, batch).visit_rows(visit);
    Ok(Outcome::Listed { has_more: false, total: None })
}

fn read_list(
    session: SqliteSession<'_>,
    level: &SelectLevel,
    count: Option<&ReadStatement>,
    listing: &PlannedListing,
    selection: &PlannedSelection,
    visit: RowVisitor<'_>,
) -> Result<Outcome, SqliteError> {
    check_search(session, level, listing, None)?;
    let mut parameters = Vec::new();
    listing_parameters(listing, &mut parameters);
    if listing.has_limit_or_offset() {
        // One row beyond the limit shows whether there are more.
        let limit = listing.limit.unwrap_or(i64::MAX).saturating_add(1);
        parameters.extend([limit, listing.offset].map(|number| SqlParameter::Cell(CellValue::Int(number))));
    }
    let read = if listing.from_end {
        read_from_end(session, level, listing, selection, &parameters, visit)?
    } else {
        read_rows(session, level, selection, &parameters, listing.limit, visit)?
    };
    let known = total_from_rows(listing, read.count, read.has_more);
    let total = count.map(|sql| known.map_or_else(|| count_rows(session, sql, listing), Ok)).transpose()?;
    Ok(Outcome::Listed { has_more: read.has_more, total })
}

/// Refuses a search that would read too many records.
fn check_search(
    session: SqliteSession<'_>,
    level: &SelectLevel,
    listing: &PlannedListing,
    parents: Option<&[CellValue<'_>]>,
) -> Result<(), SqliteError> {
    let Some(guard) = &level.search_guard else { return Ok(()) };
    let count = session.read_integer(&guard.statement, &guard.parameters(listing, parents))?;
    Ok(guard.check(listing, count)?)
}

fn count_rows(
    session: SqliteSession<'_>,
    count: &ReadStatement,
    listing: &PlannedListing,
) -> rusqlite::Result<u64> {
    Ok(session.read_integer(count, &count_parameters(listing))?.unwrap_or(0).unsigned_abs())
}

/// The result of reading the rows of a statement.
struct RowsRead {
    count: i64,
    /// True if there was a row beyond the limit.
    has_more: bool,
}

fn read_rows(
    session: SqliteSession<'_>,
    level: &SelectLevel,
    selection: &PlannedSelection,
    parameters: &[SqlParameter<'_>],
    limit: Option<i64>,
    visit: RowVisitor<'_>,
) -> Result<RowsRead, SqliteError> {
    let (limit, flat) = (limit.unwrap_or(i64::MAX), level.is_flat());
    let mut statement = session.prepare_read(&level.statement, parameters)?;
    let mut rows = statement.raw_query();
    let mut read = RowsRead { count: 0, has_more: false };
    let mut batch = RowBatch::new(level.width);
    while let Some(row) = rows.next()? {
        if read.count == limit {
            read.has_more = true;
            break;
        }
        read.count += 1;
        if flat {
            visit(&SqliteRow { row, level });
            continue;
        }
        batch.push_row((0..level.width).map(|column| read_cell(row, column)));
        if batch.row_count() == MAX_PARENTS || batch.text_bytes() >= MAX_BATCH_BYTES {
            let full = std::mem::replace(&mut batch, RowBatch::new(level.width));
            attach_children(session, level, selection, full)?.visit_rows(visit);
        }
    }
    if batch.row_count() > 0 {
        attach_children(session, level, selection, batch)?.visit_rows(visit);
    }
    Ok(read)
}

/// Reads rows that come in reverse, which takes all of them; their number is limited.
fn read_from_end(
    session: SqliteSession<'_>,
    level: &SelectLevel,
    listing: &PlannedListing,
    selection: &PlannedSelection,
    parameters: &[SqlParameter<'_>],
    visit: RowVisitor<'_>,
) -> Result<RowsRead, SqliteError> {
    let mut batch = RowBatch::new(level.width);
    read_into_batch(session, level, parameters, &mut batch)?;
    let has_more = batch.truncate_to(listing.limit);
    let read = RowsRead { count: batch.row_count() as i64, has_more };
    attach_children(session, level, selection, batch)?.visit_rows_reversed(visit);
    Ok(read)
}

/// One record with its children, if it exists.
pub fn read_tree<'p>(
    session: SqliteSession<'_>,
    level: &'p SelectLevel,
    selection: &'p PlannedSelection,
    id: &RecordId,
) -> Result<Option<RowTree<'p>>, SqliteError> {
    let mut batch = RowBatch::new(level.width);
    read_into_batch(session, level, &[SqlParameter::id(id)], &mut batch)?;
    if batch.row_count() == 0 {
        Ok(None)
    } else {
        attach_children(session, level, selection, batch).map(Some)
    }
}

/// Reads the children of these rows, on all levels.
fn attach_children<'p>(
    session: SqliteSession<'_>,
    level: &'p SelectLevel,
    selection: &'p PlannedSelection,
    rows: RowBatch,
) -> Result<RowTree<'p>, SqliteError> {
    let mut tree = RowTree::new(level, rows);
    for (branch, child) in level.branches.iter().zip(&selection.children) {
        match branch {
            ChildBranch::KeyOnly { .. } => tree.attach_key_only(),
            ChildBranch::Rows { column, level } => {
                let rows = read_children(session, level, child, &tree.rows().distinct_keys(*column))?;
                tree.attach_children(*column, attach_children(session, level, &child.selection, rows)?);
            }
        }
    }
    Ok(tree)
}

fn read_children(
    session: SqliteSession<'_>,
    level: &SelectLevel,
    child: &PlannedChild,
    keys: &[CellValue<'_>],
) -> Result<RowBatch, SqliteError> {
    let mut batch = RowBatch::new(level.width);
    for keys in keys.chunks(MAX_PARENTS) {
        check_search(session, level, child.searched_listing(), Some(keys))?;
        let before = batch.row_count();
        read_into_batch(session, level, &child_parameters(child, keys), &mut batch)?;
        if let Some(aggregate) = &child.aggregate
            && (batch.row_count() - before) as i64 > aggregate.max_groups
        {
            return Err(SqliteError::Plan(aggregate.too_many_groups()));
        }
    }
    Ok(batch)
}

fn read_into_batch(
    session: SqliteSession<'_>,
    level: &SelectLevel,
    parameters: &[SqlParameter<'_>],
    batch: &mut RowBatch,
) -> rusqlite::Result<()> {
    let _files = level.groups.is_some().then(|| TemporaryFiles::use_for(session.connection)).transpose()?;
    let mut statement = session.prepare_read(&level.statement, parameters)?;
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        match &level.groups {
            None => batch.push_row((0..level.width).map(|column| read_cell(row, column))),
            Some(groups) => {
                let values = groups.values(|column| read_cell(row, column));
                batch.push_row(values.iter().map(StoredValue::as_cell));
            }
        }
    }
    Ok(())
}
