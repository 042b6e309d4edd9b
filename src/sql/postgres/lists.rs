//! The plain lists on PostgreSQL: whoever changes one holds its head, so that every index is of one state of it.

use std::sync::LazyLock;

use super::fault::Fault;
use super::read::Visit;
use super::session::{Session, cell};
use crate::engine::plain::Expected;
use crate::engine::{ListAct, OnList, Outcome, Place};
use crate::model::Cell;
use crate::sql::lists::{Head, Text, absent, weight_of};
use crate::sql::select::Parameter;

/// How many values are read at once, before it is known what they weigh, and at most.
const FIRST: i64 = 256;
const MOST: i64 = 10_000;

const HEAD: &str = "SELECT id, version, length, next FROM trefoil_lists WHERE name = $1";

/// The position of the value of list $1 with $2 values before it: on each level the block whose values, counted
/// from the list's first, include it.
const POSITION: &str = "\
    WITH third AS (
      SELECT block, CAST($2 AS bigint) - before AS rest FROM (
        SELECT block, count, CAST(sum(count) OVER (ORDER BY block) AS bigint) - count AS before
        FROM trefoil_list_counts WHERE list = $1 AND level = 3
      ) AS b WHERE before <= $2 AND $2 < before + count
    ), second AS (
      SELECT b.block, third.rest - b.before AS rest FROM third CROSS JOIN LATERAL (
        SELECT block, count, CAST(sum(count) OVER (ORDER BY block) AS bigint) - count AS before
        FROM trefoil_list_counts
        WHERE list = $1 AND level = 2 AND block BETWEEN third.block * 64 AND third.block * 64 + 63
      ) AS b WHERE b.before <= third.rest AND third.rest < b.before + b.count
    ), first AS (
      SELECT b.block, second.rest - b.before AS rest FROM second CROSS JOIN LATERAL (
        SELECT block, count, CAST(sum(count) OVER (ORDER BY block) AS bigint) - count AS before
        FROM trefoil_list_counts
        WHERE list = $1 AND level = 1 AND block BETWEEN second.block * 64 AND second.block * 64 + 63
      ) AS b WHERE b.before <= second.rest AND second.rest < b.before + b.count
    )
    SELECT v.position FROM first CROSS JOIN LATERAL (
      SELECT position FROM trefoil_list_values
      WHERE list = $1 AND position BETWEEN first.block * 64 AND first.block * 64 + 63
      ORDER BY position OFFSET first.rest LIMIT 1
    ) AS v";

static REPLACE: LazyLock<String> = LazyLock::new(|| {
    format!("UPDATE trefoil_list_values SET value = $3 WHERE list = $1 AND position = ({POSITION})")
});

static REMOVE: LazyLock<String> = LazyLock::new(|| {
    format!("DELETE FROM trefoil_list_values WHERE list = $1 AND position = ({POSITION}) RETURNING value")
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
        ListAct::Append { value, expected } => list.append(value, expected).await.map(|()| None)?,
        ListAct::Replace { index, value, expected } => {
            list.replace(*index, value, expected).await.map(|()| None)?
        }
        ListAct::Remove { index, expected } => list.remove(*index, expected, visit).await.map(|()| None)?,
    };
    let version = match writes {
        true => self::head(session, &asked.list, false).await?.map_or(head.version, |head| head.version),
        false => head.version,
    };
    Ok(Outcome::Plain { version, rest })
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
        let (mut weight, mut seen, mut most) = (0, 0, FIRST);
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

    async fn append(&self, value: &str, expected: &Expected) -> Result<(), Fault> {
        self.head.is_expected(expected)?;
        let sql = "INSERT INTO trefoil_list_values (list, position, value) VALUES ($1, $2, $3)";
        let [list, next] = [self.head.id, self.head.next].map(Parameter::integer);
        self.session.execute(sql, &[list, next, Parameter::Cell(Cell::Text(value))]).await.map(drop)
    }

    async fn replace(&self, index: i64, value: &str, expected: &Expected) -> Result<(), Fault> {
        let [list, index] = self.at(index, expected)?;
        self.session.execute(&REPLACE, &[list, index, Parameter::Cell(Cell::Text(value))]).await.map(drop)
    }

    async fn remove(&self, index: i64, expected: &Expected, visit: Visit<'_>) -> Result<(), Fault> {
        let mut rows = self.session.rows(&REMOVE, &self.at(index, expected)?).await?;
        while let Some(row) = rows.next().await? {
            visit(&Text(cell(&row, 0)));
        }
        Ok(())
    }

    /// What finds a value that is there, if the list is as expected.
    fn at(&self, index: i64, expected: &Expected) -> Result<[Parameter<'static>; 2], Fault> {
        self.head.is_expected(expected)?;
        self.head.has(self.name, index)?;
        Ok([self.head.id, index].map(Parameter::integer))
    }
}
