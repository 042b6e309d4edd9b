//! Copies every row of a store, sums up what was read, and holds what was written against it.

use crate::transfer::copied_table::{Datum, Row, Section, Sum, Summing, sections};
use crate::transfer::store_handle::End;
use crate::transfer::store_metadata::Facts;
use crate::transfer::{Failed, Progress};

/// Bytes of rows that are held at once, about.
const HELD: usize = 4 << 20;
/// Rows of the first page, when nobody knows yet how long they are; and of any page at most.
const FIRST: usize = 32;
const MOST: usize = 5_000;

/// The rows of a table, a page at a time.
struct Pages<'a> {
    end: &'a End,
    section: &'a Section,
    after: Row,
    limit: usize,
    is_over: bool,
}

impl<'a> Pages<'a> {
    fn of(end: &'a End, section: &'a Section) -> Pages<'a> {
        Pages { end, section, after: Row::new(), limit: FIRST, is_over: false }
    }

    async fn next(&mut self) -> Result<Option<Vec<Row>>, Failed> {
        if self.is_over {
            return Ok(None);
        }
        let rows = self.end.page(self.section, &self.after, self.limit).await?;
        self.is_over = rows.len() < self.limit;
        if let Some(last) = rows.last() {
            self.after = last[..self.section.key].to_vec();
            let weight: usize = rows.iter().flatten().map(weight).sum();
            self.limit = (HELD / (weight / rows.len()).max(1)).clamp(1, MOST.min(self.limit * 8));
        }
        Ok(Some(rows).filter(|rows| !rows.is_empty()))
    }
}

fn weight(value: &Datum) -> usize {
    size_of::<Datum>()
        + match value {
            Datum::Null | Datum::Int(_) | Datum::Real(_) => 0,
            Datum::Text(text) => text.len(),
            Datum::Bytes(bytes) => bytes.len(),
        }
}

/// Hands every row of a table on, a page at a time.
pub async fn each_page(
    end: &End,
    section: &Section,
    mut visit: impl AsyncFnMut(Vec<Row>) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let mut pages = Pages::of(end, section);
    while let Some(rows) = pages.next().await? {
        visit(rows).await?;
    }
    Ok(())
}

/// Makes a store of `facts` in `to`, which has none, with every row of `from`. Both are in a transaction.
pub async fn copy(
    from: &End,
    to: &End,
    facts: &Facts,
    progress: &mut dyn Progress,
) -> Result<Vec<Sum>, Failed> {
    let sections = sections(&facts.shape);
    to.lay_out(&facts.shape).await?;
    progress.begin("copying", "rows", count(from, &sections).await?);
    let mut sums = Vec::new();
    for section in &sections {
        let (mut summing, mut sink) = (Summing::new(section), to.begin_writing(section).await?);
        let mut pages = Pages::of(from, section);
        while let Some(rows) = pages.next().await? {
            rows.iter().for_each(|row| summing.add(row));
            sink.write(&rows).await?;
            progress.advance(rows.len() as u64);
        }
        sink.finish().await?;
        sums.push(summing.done());
    }
    progress.begin("making indexes and triggers", "", 0);
    to.finish(&facts.shape).await?;
    facts.write(to).await?;
    Ok(sums)
}

/// What the rows of a store sum up to, table by table.
pub async fn sums(end: &End, facts: &Facts, progress: &mut dyn Progress) -> Result<Vec<Sum>, Failed> {
    let sections = sections(&facts.shape);
    progress.begin("verifying", "rows", count(end, &sections).await?);
    let mut sums = Vec::new();
    for section in &sections {
        let mut summing = Summing::new(section);
        let mut pages = Pages::of(end, section);
        while let Some(rows) = pages.next().await? {
            rows.iter().for_each(|row| summing.add(row));
            progress.advance(rows.len() as u64);
        }
        sums.push(summing.done());
    }
    Ok(sums)
}

async fn count(end: &End, sections: &[Section]) -> Result<u64, Failed> {
    let mut rows = 0;
    for section in sections {
        rows += end.count(section).await?;
    }
    Ok(rows)
}

/// What was written is what was read.
pub fn compare(read: &[Sum], written: &[Sum]) -> Result<(), Failed> {
    for (read, written) in read.iter().zip(written) {
        if read.table != written.table || read.rows != written.rows {
            let (table, count) = (&read.table, written.rows);
            return Err(Failed(format!("{table}: {} rows were read and {count} written", read.rows)));
        }
        if read.hash != written.hash {
            return Err(Failed(format!(
                "{}: what was written differs from what was read; a value is spelled as only the other store keeps it",
                read.table
            )));
        }
    }
    if read.len() == written.len() { Ok(()) } else { Err(Failed("tables are missing".to_owned())) }
}

/// How many records there are, in the words of a report.
pub fn records(facts: &Facts, sums: &[Sum]) -> u64 {
    let is_record = |sum: &&Sum| facts.shape.tables.iter().any(|table| table.table == sum.table);
    sums.iter().filter(is_record).map(|sum| sum.rows).sum()
}
