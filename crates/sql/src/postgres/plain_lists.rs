//! Plain lists on PostgreSQL. A writer locks the list's head row, so that an index refers to one state of the list.

use std::sync::LazyLock;

use trefoil_engine::plain_list::ExpectedVersions;
use trefoil_engine::{Outcome, PlainListAction, PlainListOperation, PlainListPosition};
use trefoil_model::{CellValue, StoredValue};

use crate::plain_list::{ListHead, ListValueRow, index_not_found, list_not_found, value_bytes};
use crate::postgres::error::PostgresError;
use crate::postgres::session::{PostgresSession, RowVisitor, read_cell};
use crate::statements::sql_parameter::SqlParameter;

/// The assumed size of a value before one is read.
const ASSUMED_VALUE_BYTES: usize = 256;
/// The maximum number of values in the first query, before their size is known, and in later ones.
const FIRST_PAGE_ROWS: i64 = 256;
const MAX_PAGE_ROWS: i64 = 10_000;

const READ_HEAD: &str = "SELECT id, version, length, next FROM trefoil_lists WHERE name = $1";

/// Finds the position of the value of list $1 with $2 values before it. On each level it searches for the block of the
/// value from the nearer end and stops there, so that a long list costs little more than a short one.
static FIND_POSITION: LazyLock<String> = LazyLock::new(|| {
    let level = |name: &str, above: &str, level: i64, within: &str| {
        let [near, far] = [ListEnd::First, ListEnd::Last].map(|end| end.block_query(above, level, within));
        format!("{name} AS (SELECT b.* FROM {above} CROSS JOIN LATERAL ({near} UNION ALL {far}) AS b)")
    };
    let below = |above: &str| format!("AND block BETWEEN {above}.block * 64 AND {above}.block * 64 + 63");
    let levels = [
        level("third", "whole", 3, ""),
        level("second", "third", 2, &below("third")),
        level("first", "second", 1, &below("second")),
    ];
    let [near, far] = [ListEnd::First, ListEnd::Last].map(ListEnd::value_query);
    format!(
        "WITH whole AS (SELECT length AS count, CAST($2 AS bigint) AS rest FROM trefoil_lists WHERE id = $1), {} \
         SELECT v.position FROM first CROSS JOIN LATERAL ({near} UNION ALL {far}) AS v",
        levels.join(", ")
    )
});

/// The end of a part of the list from which a value is searched. The part has `count` values, `rest` of them before it.
#[derive(Clone, Copy)]
enum ListEnd {
    First,
    Last,
}

impl ListEnd {
    fn sql_direction(self) -> &'static str {
        match self {
            ListEnd::First => "ASC",
            ListEnd::Last => "DESC",
        }
    }

    /// Expressions: whether this is the nearer end, and the number of values between it and the searched one.
    fn distance(self, part: &str) -> (String, String) {
        match self {
            ListEnd::First => (format!("2 * {part}.rest <= {part}.count"), format!("{part}.rest")),
            ListEnd::Last => {
                (format!("2 * {part}.rest > {part}.count"), format!("({part}.count - 1 - {part}.rest)"))
            }
        }
    }

    fn block_query(self, above: &str, level: i64, within: &str) -> String {
        let (order, (is_nearer, distance)) = (self.sql_direction(), self.distance(above));
        let rest = match self {
            ListEnd::First => format!("{distance} - passed"),
            ListEnd::Last => format!("count - 1 - ({distance} - passed)"),
        };
        format!(
            "(SELECT block, count, {rest} AS rest FROM (\
             SELECT block, count, CAST(sum(count) OVER (ORDER BY block {order} ROWS UNBOUNDED PRECEDING) AS bigint) \
             - count AS passed FROM trefoil_list_counts WHERE list = $1 AND level = {level} {within}) AS c \
             WHERE {is_nearer} AND {distance} < passed + count ORDER BY block {order} LIMIT 1)"
        )
    }

    fn value_query(self) -> String {
        let (order, (is_nearer, distance)) = (self.sql_direction(), self.distance("first"));
        format!(
            "(SELECT position FROM trefoil_list_values WHERE {is_nearer} AND list = $1 \
             AND position BETWEEN first.block * 64 AND first.block * 64 + 63 \
             ORDER BY position {order} OFFSET {distance} LIMIT 1)"
        )
    }
}

static READ_SLICE: LazyLock<String> = LazyLock::new(|| {
    let position = &*FIND_POSITION;
    format!(
        "SELECT value FROM trefoil_list_values WHERE list = $1 AND position >= ({position}) \
         ORDER BY position LIMIT $3"
    )
});

static REPLACE_VALUE: LazyLock<String> = LazyLock::new(|| {
    let position = &*FIND_POSITION;
    format!("UPDATE trefoil_list_values SET value = $3 WHERE list = $1 AND position = ({position})")
});

static REMOVE_VALUE: LazyLock<String> = LazyLock::new(|| {
    let position = &*FIND_POSITION;
    format!("DELETE FROM trefoil_list_values WHERE list = $1 AND position = ({position}) RETURNING value")
});

/// Runs one operation on a list, inside a transaction if it writes.
pub async fn run_list_action(
    session: PostgresSession<'_>,
    operation: &PlainListOperation,
    visit: RowVisitor<'_>,
) -> Result<Outcome, PostgresError> {
    let writes = operation.action.is_write();
    let Some(head) = read_head(session, &operation.list, writes).await? else {
        return Err(list_not_found(&operation.list).into());
    };
    let list = PostgresList { session, name: &operation.list, head };
    let next = match &operation.action {
        PlainListAction::ReadVersion => None,
        PlainListAction::Read { from, max_bytes } => list.read(*from, *max_bytes, visit).await?,
        PlainListAction::Slice { index, count } => list.slice(*index, *count, visit).await.map(|()| None)?,
        PlainListAction::Append { value, expected } => list.append(value, expected).await.map(|()| None)?,
        PlainListAction::Replace { index, value, expected } => {
            list.replace(*index, value, expected).await.map(|()| None)?
        }
        PlainListAction::Remove { index, expected } => {
            list.remove(*index, expected, visit).await.map(|()| None)?
        }
    };
    let head = match writes {
        true => read_head(session, &operation.list, false).await?.unwrap_or(head),
        false => head,
    };
    Ok(head.outcome(next))
}

/// Appends values in order; returns the state of the list after them.
pub async fn append_values(
    session: PostgresSession<'_>,
    name: &str,
    values: &[&str],
) -> Result<Outcome, PostgresError> {
    let Some(head) = read_head(session, name, true).await? else { return Err(list_not_found(name).into()) };
    let sql = "INSERT INTO trefoil_list_values (list, position, value) \
               SELECT $1, CAST($2 AS bigint) + v.number - 1, v.value \
               FROM unnest(CAST($3 AS text[])) WITH ORDINALITY AS v (value, number) ORDER BY v.number";
    let values: Vec<StoredValue> =
        values.iter().map(|value| StoredValue::Text((*value).to_owned())).collect();
    let [list, next] = [head.id, head.next_position].map(SqlParameter::integer);
    session.execute(sql, &[list, next, SqlParameter::List(&values)]).await?;
    Ok(read_head(session, name, false).await?.unwrap_or(head).outcome(None))
}

async fn read_head(
    session: PostgresSession<'_>,
    name: &str,
    locked: bool,
) -> Result<Option<ListHead>, PostgresError> {
    // Waits until no other session is changing the list.
    static LOCKED: LazyLock<String> = LazyLock::new(|| format!("{READ_HEAD} FOR UPDATE"));
    let sql = if locked { &LOCKED } else { READ_HEAD };
    let mut rows = session.query(sql, &[SqlParameter::Cell(CellValue::Text(name))]).await?;
    let mut head = None;
    while let Some(row) = rows.next_row().await? {
        let number = |column| read_cell(&row, column).to_i64().unwrap_or(0);
        head =
            Some(ListHead { id: number(0), version: number(1), length: number(2), next_position: number(3) });
    }
    Ok(head)
}

/// A list and its head row.
struct PostgresList<'s> {
    session: PostgresSession<'s>,
    name: &'s str,
    head: ListHead,
}

impl PostgresList<'_> {
    /// Visits values up to about `bytes`; returns the position to continue from, if there is more.
    async fn read(
        &self,
        from: Option<PlainListPosition>,
        max_bytes: usize,
        visit: RowVisitor<'_>,
    ) -> Result<Option<PlainListPosition>, PostgresError> {
        let PlainListPosition { mut after, until } =
            from.unwrap_or(PlainListPosition { after: i64::MIN, until: self.head.next_position });
        let sql = "SELECT value, position FROM trefoil_list_values \
                   WHERE list = $1 AND position > $2 AND position < $3 ORDER BY position LIMIT $4";
        let (mut read_bytes, mut read_count) = (0, 0);
        let mut page_rows = i64::try_from(max_bytes / ASSUMED_VALUE_BYTES)
            .unwrap_or(FIRST_PAGE_ROWS)
            .clamp(1, FIRST_PAGE_ROWS);
        loop {
            let mut found = 0;
            let parameters = [self.head.id, after, until, page_rows].map(SqlParameter::integer);
            let mut rows = self.session.query(sql, &parameters).await?;
            while let Some(row) = rows.next_row().await? {
                found += 1;
                if read_bytes >= max_bytes {
                    continue;
                }
                let value = read_cell(&row, 0);
                read_bytes += value_bytes(value);
                visit(&ListValueRow(value));
                after = read_cell(&row, 1).to_i64().unwrap_or(after);
                read_count += 1;
            }
            if read_bytes >= max_bytes {
                return Ok(Some(PlainListPosition { after, until }));
            }
            if found < page_rows {
                return Ok(None);
            }
            let value_size = (read_bytes / read_count).max(1);
            page_rows = i64::try_from((max_bytes - read_bytes) / value_size)
                .unwrap_or(MAX_PAGE_ROWS)
                .clamp(1, MAX_PAGE_ROWS);
        }
    }

    async fn slice(&self, index: i64, count: i64, visit: RowVisitor<'_>) -> Result<(), PostgresError> {
        if self.head.check_index(self.name, index).is_err() {
            return Ok(());
        }
        let parameters = [self.head.id, index, count].map(SqlParameter::integer);
        let mut rows = self.session.query(&READ_SLICE, &parameters).await?;
        while let Some(row) = rows.next_row().await? {
            visit(&ListValueRow(read_cell(&row, 0)));
        }
        Ok(())
    }

    async fn append(&self, value: &str, expected: &ExpectedVersions) -> Result<(), PostgresError> {
        self.head.check_version(expected)?;
        let sql = "INSERT INTO trefoil_list_values (list, position, value) VALUES ($1, $2, $3)";
        let [list, next] = [self.head.id, self.head.next_position].map(SqlParameter::integer);
        self.session.execute(sql, &[list, next, SqlParameter::Cell(CellValue::Text(value))]).await.map(drop)
    }

    async fn replace(
        &self,
        index: i64,
        value: &str,
        expected: &ExpectedVersions,
    ) -> Result<(), PostgresError> {
        let [list, position] = self.checked_position(index, expected)?;
        let parameters = [list, position, SqlParameter::Cell(CellValue::Text(value))];
        self.check_found(index, self.session.execute(&REPLACE_VALUE, &parameters).await?)
    }

    async fn remove(
        &self,
        index: i64,
        expected: &ExpectedVersions,
        visit: RowVisitor<'_>,
    ) -> Result<(), PostgresError> {
        let (mut rows, mut removed) =
            (self.session.query(&REMOVE_VALUE, &self.checked_position(index, expected)?).await?, 0);
        while let Some(row) = rows.next_row().await? {
            visit(&ListValueRow(read_cell(&row, 0)));
            removed += 1;
        }
        self.check_found(index, removed)
    }

    /// Fails if no value was changed: the counts led to no value, whatever the length is.
    fn check_found(&self, index: i64, changed: u64) -> Result<(), PostgresError> {
        if changed == 0 { Err(index_not_found(self.name, index).into()) } else { Ok(()) }
    }

    /// The parameters that find a value, after checking the list's version and the index.
    fn checked_position(
        &self,
        index: i64,
        expected: &ExpectedVersions,
    ) -> Result<[SqlParameter<'static>; 2], PostgresError> {
        self.head.check_version(expected)?;
        self.head.check_index(self.name, index)?;
        Ok([self.head.id, index].map(SqlParameter::integer))
    }
}
