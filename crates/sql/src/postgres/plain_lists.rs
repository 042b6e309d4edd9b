//! The plain lists on PostgreSQL: whoever changes one holds its head, so that every index is of one state of it.

use std::sync::LazyLock;

use crate::plain_list::{ListHead, ListValueRow, index_not_found, list_not_found, value_bytes};
use crate::postgres::error::PostgresError;
use crate::postgres::execute_read::RowVisitor;
use crate::postgres::session::{PostgresSession, read_cell};
use crate::statements::select::SqlParameter;
use trefoil_engine::plain_list::ExpectedVersions;
use trefoil_engine::{Outcome, PlainListAction, PlainListOperation, PlainListPosition};
use trefoil_model::{CellValue, StoredValue};

/// What a value is taken to weigh before one was seen.
const ASSUMED_VALUE_BYTES: usize = 256;
/// How many values are read at once, before it is known what they weigh, and at most.
const FIRST_PAGE_ROWS: i64 = 256;
const MAX_PAGE_ROWS: i64 = 10_000;

const READ_HEAD: &str = "SELECT id, version, length, next FROM trefoil_lists WHERE name = $1";

/// Finds the position of the value of list $1 with $2 values before it: on each level the block that holds it, looked
/// for from the nearer end and no further, so that a long list costs little more than a short one.
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

/// From which end of a part of the list a value is looked for. A part has `count` values, `rest` of them before it.
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

    /// Whether it is the nearer end, and how many values lie between it and the one that is looked for.
    fn distance(self, part: &str) -> (String, String) {
        match self {
            ListEnd::First => (format!("2 * {part}.rest <= {part}.count"), format!("{part}.rest")),
            ListEnd::Last => {
                (format!("2 * {part}.rest > {part}.count"), format!("({part}.count - 1 - {part}.rest)"))
            }
        }
    }

    fn block_query(self, above: &str, level: i64, within: &str) -> String {
        let (order, (is_nearer, between)) = (self.sql_direction(), self.distance(above));
        let rest = match self {
            ListEnd::First => format!("{between} - passed"),
            ListEnd::Last => format!("count - 1 - ({between} - passed)"),
        };
        format!(
            "(SELECT block, count, {rest} AS rest FROM (\
             SELECT block, count, CAST(sum(count) OVER (ORDER BY block {order} ROWS UNBOUNDED PRECEDING) AS bigint) \
             - count AS passed FROM trefoil_list_counts WHERE list = $1 AND level = {level} {within}) AS c \
             WHERE {is_nearer} AND {between} < passed + count ORDER BY block {order} LIMIT 1)"
        )
    }

    fn value_query(self) -> String {
        let (order, (is_nearer, between)) = (self.sql_direction(), self.distance("first"));
        format!(
            "(SELECT position FROM trefoil_list_values WHERE {is_nearer} AND list = $1 \
             AND position BETWEEN first.block * 64 AND first.block * 64 + 63 \
             ORDER BY position {order} OFFSET {between} LIMIT 1)"
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

/// Inside a transaction, unless nothing but a look is asked.
pub async fn run_list_action(
    session: PostgresSession<'_>,
    asked: &PlainListOperation,
    visit: RowVisitor<'_>,
) -> Result<Outcome, PostgresError> {
    let writes = asked.action.is_write();
    let Some(head) = read_head(session, &asked.list, writes).await? else {
        return Err(list_not_found(&asked.list).into());
    };
    let list = PostgresList { session, name: &asked.list, head };
    let rest = match &asked.action {
        PlainListAction::ReadVersion => None,
        PlainListAction::Read { from, max_bytes: bytes } => list.read(*from, *bytes, visit).await?,
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
        true => self::read_head(session, &asked.list, false).await?.unwrap_or(head),
        false => head,
    };
    Ok(head.outcome(rest))
}

/// Appends many values at once, in their order; tells how the list is with them.
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
    Ok(self::read_head(session, name, false).await?.unwrap_or(head).outcome(None))
}

async fn read_head(
    session: PostgresSession<'_>,
    name: &str,
    locked: bool,
) -> Result<Option<ListHead>, PostgresError> {
    // Once nobody else is changing the list.
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

struct PostgresList<'s> {
    session: PostgresSession<'s>,
    name: &'s str,
    head: ListHead,
}

impl PostgresList<'_> {
    /// Hands out values until they weigh enough; says where to go on.
    async fn read(
        &self,
        from: Option<PlainListPosition>,
        bytes: usize,
        visit: RowVisitor<'_>,
    ) -> Result<Option<PlainListPosition>, PostgresError> {
        let PlainListPosition { mut after, until } =
            from.unwrap_or(PlainListPosition { after: i64::MIN, until: self.head.next_position });
        let sql = "SELECT value, position FROM trefoil_list_values \
                   WHERE list = $1 AND position > $2 AND position < $3 ORDER BY position LIMIT $4";
        let (mut weight, mut seen) = (0, 0);
        let mut most =
            i64::try_from(bytes / ASSUMED_VALUE_BYTES).unwrap_or(FIRST_PAGE_ROWS).clamp(1, FIRST_PAGE_ROWS);
        loop {
            let mut found = 0;
            let bound = [self.head.id, after, until, most].map(SqlParameter::integer);
            let mut rows = self.session.query(sql, &bound).await?;
            while let Some(row) = rows.next_row().await? {
                found += 1;
                if weight >= bytes {
                    continue;
                }
                let value = read_cell(&row, 0);
                weight += value_bytes(value);
                visit(&ListValueRow(value));
                after = read_cell(&row, 1).to_i64().unwrap_or(after);
                seen += 1;
            }
            if weight >= bytes {
                return Ok(Some(PlainListPosition { after, until }));
            }
            if found < most {
                return Ok(None);
            }
            let each = (weight / seen).max(1);
            most = i64::try_from((bytes - weight) / each).unwrap_or(MAX_PAGE_ROWS).clamp(1, MAX_PAGE_ROWS);
        }
    }

    async fn slice(&self, index: i64, count: i64, visit: RowVisitor<'_>) -> Result<(), PostgresError> {
        if self.head.check_index(self.name, index).is_err() {
            return Ok(());
        }
        let bound = [self.head.id, index, count].map(SqlParameter::integer);
        let mut rows = self.session.query(&READ_SLICE, &bound).await?;
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
        let [list, at] = self.checked_position(index, expected)?;
        let bound = [list, at, SqlParameter::Cell(CellValue::Text(value))];
        self.check_found(index, self.session.execute(&REPLACE_VALUE, &bound).await?)
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

    /// Where the counts lead to no value, nothing was done, whatever the length says.
    fn check_found(&self, index: i64, changed: u64) -> Result<(), PostgresError> {
        if changed == 0 { Err(index_not_found(self.name, index).into()) } else { Ok(()) }
    }

    /// What finds a value that is there, if the list is as expected.
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
