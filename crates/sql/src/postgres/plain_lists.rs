//! The plain lists on PostgreSQL: whoever changes one holds its head, so that every index is of one state of it.

use std::sync::LazyLock;

use crate::postgres::error::Fault;
use crate::postgres::execute_read::Visit;
use crate::postgres::session::{Session, cell};
use crate::sqlite::plain_lists::{Head, Text, absent, no_such, weight_of};
use crate::statements::select::Parameter;
use trefoil_engine::plain_list::Expected;
use trefoil_engine::{ListAct, OnList, Outcome, Place};
use trefoil_model::{Cell, Stored};

/// What a value is taken to weigh before one was seen.
const EACH: usize = 256;
/// How many values are read at once, before it is known what they weigh, and at most.
const FIRST: i64 = 256;
const MOST: i64 = 10_000;

const HEAD: &str = "SELECT id, version, length, next FROM trefoil_lists WHERE name = $1";

/// Finds the position of the value of list $1 with $2 values before it: on each level the block that holds it, looked
/// for from the nearer end and no further, so that a long list costs little more than a short one.
static POSITION: LazyLock<String> = LazyLock::new(|| {
    let level = |name: &str, above: &str, level: i64, within: &str| {
        let [near, far] = [End::First, End::Last].map(|end| end.block(above, level, within));
        format!("{name} AS (SELECT b.* FROM {above} CROSS JOIN LATERAL ({near} UNION ALL {far}) AS b)")
    };
    let below = |above: &str| format!("AND block BETWEEN {above}.block * 64 AND {above}.block * 64 + 63");
    let levels = [
        level("third", "whole", 3, ""),
        level("second", "third", 2, &below("third")),
        level("first", "second", 1, &below("second")),
    ];
    let [near, far] = [End::First, End::Last].map(End::value);
    format!(
        "WITH whole AS (SELECT length AS count, CAST($2 AS bigint) AS rest FROM trefoil_lists WHERE id = $1), {} \
         SELECT v.position FROM first CROSS JOIN LATERAL ({near} UNION ALL {far}) AS v",
        levels.join(", ")
    )
});

/// From which end of a part of the list a value is looked for. A part has `count` values, `rest` of them before it.
#[derive(Clone, Copy)]
enum End {
    First,
    Last,
}

impl End {
    fn order(self) -> &'static str {
        match self {
            End::First => "ASC",
            End::Last => "DESC",
        }
    }

    /// Whether it is the nearer end, and how many values lie between it and the one that is looked for.
    fn way(self, part: &str) -> (String, String) {
        match self {
            End::First => (format!("2 * {part}.rest <= {part}.count"), format!("{part}.rest")),
            End::Last => {
                (format!("2 * {part}.rest > {part}.count"), format!("({part}.count - 1 - {part}.rest)"))
            }
        }
    }

    fn block(self, above: &str, level: i64, within: &str) -> String {
        let (order, (is_nearer, between)) = (self.order(), self.way(above));
        let rest = match self {
            End::First => format!("{between} - passed"),
            End::Last => format!("count - 1 - ({between} - passed)"),
        };
        format!(
            "(SELECT block, count, {rest} AS rest FROM (\
             SELECT block, count, CAST(sum(count) OVER (ORDER BY block {order} ROWS UNBOUNDED PRECEDING) AS bigint) \
             - count AS passed FROM trefoil_list_counts WHERE list = $1 AND level = {level} {within}) AS c \
             WHERE {is_nearer} AND {between} < passed + count ORDER BY block {order} LIMIT 1)"
        )
    }

    fn value(self) -> String {
        let (order, (is_nearer, between)) = (self.order(), self.way("first"));
        format!(
            "(SELECT position FROM trefoil_list_values WHERE {is_nearer} AND list = $1 \
             AND position BETWEEN first.block * 64 AND first.block * 64 + 63 \
             ORDER BY position {order} OFFSET {between} LIMIT 1)"
        )
    }
}

static SLICE: LazyLock<String> = LazyLock::new(|| {
    let position = &*POSITION;
    format!(
        "SELECT value FROM trefoil_list_values WHERE list = $1 AND position >= ({position}) \
         ORDER BY position LIMIT $3"
    )
});

static REPLACE: LazyLock<String> = LazyLock::new(|| {
    let position = &*POSITION;
    format!("UPDATE trefoil_list_values SET value = $3 WHERE list = $1 AND position = ({position})")
});

static REMOVE: LazyLock<String> = LazyLock::new(|| {
    let position = &*POSITION;
    format!("DELETE FROM trefoil_list_values WHERE list = $1 AND position = ({position}) RETURNING value")
});

/// Inside a transaction, unless nothing but a look is asked.
pub async fn run(session: Session<'_>, asked: &OnList, visit: Visit<'_>) -> Result<Outcome, Fault> {
    let writes = asked.act.writes();
    let Some(head) = head(session, &asked.list, writes).await? else {
        return Err(absent(&asked.list).into());
    };
    let list = List { session, name: &asked.list, head };
    let rest = match &asked.act {
        ListAct::Look => None,
        ListAct::Read { from, bytes } => list.read(*from, *bytes, visit).await?,
        ListAct::Slice { index, count } => list.slice(*index, *count, visit).await.map(|()| None)?,
        ListAct::Append { value, expected } => list.append(value, expected).await.map(|()| None)?,
        ListAct::Replace { index, value, expected } => {
            list.replace(*index, value, expected).await.map(|()| None)?
        }
        ListAct::Remove { index, expected } => list.remove(*index, expected, visit).await.map(|()| None)?,
    };
    let head = match writes {
        true => self::head(session, &asked.list, false).await?.unwrap_or(head),
        false => head,
    };
    Ok(head.outcome(rest))
}

/// Appends many values at once, in their order; tells how the list is with them.
pub async fn append_all(session: Session<'_>, name: &str, values: &[&str]) -> Result<Outcome, Fault> {
    let Some(head) = head(session, name, true).await? else { return Err(absent(name).into()) };
    let sql = "INSERT INTO trefoil_list_values (list, position, value) \
               SELECT $1, CAST($2 AS bigint) + v.number - 1, v.value \
               FROM unnest(CAST($3 AS text[])) WITH ORDINALITY AS v (value, number) ORDER BY v.number";
    let values: Vec<Stored> = values.iter().map(|value| Stored::Text((*value).to_owned())).collect();
    let [list, next] = [head.id, head.next].map(Parameter::integer);
    session.execute(sql, &[list, next, Parameter::List(&values)]).await?;
    Ok(self::head(session, name, false).await?.unwrap_or(head).outcome(None))
}

async fn head(session: Session<'_>, name: &str, locked: bool) -> Result<Option<Head>, Fault> {
    // Once nobody else is changing the list.
    static LOCKED: LazyLock<String> = LazyLock::new(|| format!("{HEAD} FOR UPDATE"));
    let sql = if locked { &LOCKED } else { HEAD };
    let mut rows = session.rows(sql, &[Parameter::Cell(Cell::Text(name))]).await?;
    let mut head = None;
    while let Some(row) = rows.next().await? {
        let number = |column| cell(&row, column).to_i64().unwrap_or(0);
        head = Some(Head { id: number(0), version: number(1), length: number(2), next: number(3) });
    }
    Ok(head)
}

struct List<'s> {
    session: Session<'s>,
    name: &'s str,
    head: Head,
}

impl List<'_> {
    /// Hands out values until they weigh enough; says where to go on.
    async fn read(
        &self,
        from: Option<Place>,
        bytes: usize,
        visit: Visit<'_>,
    ) -> Result<Option<Place>, Fault> {
        let Place { mut after, until } = from.unwrap_or(Place { after: i64::MIN, until: self.head.next });
        let sql = "SELECT value, position FROM trefoil_list_values \
                   WHERE list = $1 AND position > $2 AND position < $3 ORDER BY position LIMIT $4";
        let (mut weight, mut seen) = (0, 0);
        let mut most = i64::try_from(bytes / EACH).unwrap_or(FIRST).clamp(1, FIRST);
        loop {
            let mut found = 0;
            let bound = [self.head.id, after, until, most].map(Parameter::integer);
            let mut rows = self.session.rows(sql, &bound).await?;
            while let Some(row) = rows.next().await? {
                found += 1;
                if weight >= bytes {
                    continue;
                }
                let value = cell(&row, 0);
                weight += weight_of(value);
                visit(&Text(value));
                after = cell(&row, 1).to_i64().unwrap_or(after);
                seen += 1;
            }
            if weight >= bytes {
                return Ok(Some(Place { after, until }));
            }
            if found < most {
                return Ok(None);
            }
            let each = (weight / seen).max(1);
            most = i64::try_from((bytes - weight) / each).unwrap_or(MOST).clamp(1, MOST);
        }
    }

    async fn slice(&self, index: i64, count: i64, visit: Visit<'_>) -> Result<(), Fault> {
        if self.head.has(self.name, index).is_err() {
            return Ok(());
        }
        let bound = [self.head.id, index, count].map(Parameter::integer);
        let mut rows = self.session.rows(&SLICE, &bound).await?;
        while let Some(row) = rows.next().await? {
            visit(&Text(cell(&row, 0)));
        }
        Ok(())
    }

    async fn append(&self, value: &str, expected: &Expected) -> Result<(), Fault> {
        self.head.is_expected(expected)?;
        let sql = "INSERT INTO trefoil_list_values (list, position, value) VALUES ($1, $2, $3)";
        let [list, next] = [self.head.id, self.head.next].map(Parameter::integer);
        self.session.execute(sql, &[list, next, Parameter::Cell(Cell::Text(value))]).await.map(drop)
    }

    async fn replace(&self, index: i64, value: &str, expected: &Expected) -> Result<(), Fault> {
        let [list, at] = self.at(index, expected)?;
        let bound = [list, at, Parameter::Cell(Cell::Text(value))];
        self.found(index, self.session.execute(&REPLACE, &bound).await?)
    }

    async fn remove(&self, index: i64, expected: &Expected, visit: Visit<'_>) -> Result<(), Fault> {
        let (mut rows, mut removed) = (self.session.rows(&REMOVE, &self.at(index, expected)?).await?, 0);
        while let Some(row) = rows.next().await? {
            visit(&Text(cell(&row, 0)));
            removed += 1;
        }
        self.found(index, removed)
    }

    /// Where the counts lead to no value, nothing was done, whatever the length says.
    fn found(&self, index: i64, changed: u64) -> Result<(), Fault> {
        if changed == 0 { Err(no_such(self.name, index).into()) } else { Ok(()) }
    }

    /// What finds a value that is there, if the list is as expected.
    fn at(&self, index: i64, expected: &Expected) -> Result<[Parameter<'static>; 2], Fault> {
        self.head.is_expected(expected)?;
        self.head.has(self.name, index)?;
        Ok([self.head.id, index].map(Parameter::integer))
    }
}
