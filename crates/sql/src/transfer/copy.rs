//! Copies every row of a store, sums up what was read, and holds what was written against it.

use crate::transfer::copied_table::{
    CopiedRow, CopiedTable, CopiedValue, DigestBuilder, TableDigest, copied_tables,
};
use crate::transfer::store_handle::StoreHandle;
use crate::transfer::store_metadata::StoreMetadata;
use crate::transfer::{TransferError, TransferProgress};

/// Bytes of rows that are held at once, about.
const PAGE_BYTES: usize = 4 << 20;
/// Rows of the first page, when nobody knows yet how long they are; and of any page at most.
const FIRST_PAGE_ROWS: usize = 32;
const MAX_PAGE_ROWS: usize = 5_000;

/// The rows of a table, a page at a time.
struct TablePages<'a> {
    store: &'a StoreHandle,
    table: &'a CopiedTable,
    after: CopiedRow,
    limit: usize,
    is_finished: bool,
}

impl<'a> TablePages<'a> {
    fn new(end: &'a StoreHandle, section: &'a CopiedTable) -> TablePages<'a> {
        TablePages {
            store: end,
            table: section,
            after: CopiedRow::new(),
            limit: FIRST_PAGE_ROWS,
            is_finished: false,
        }
    }

    async fn next_page(&mut self) -> Result<Option<Vec<CopiedRow>>, TransferError> {
        if self.is_finished {
            return Ok(None);
        }
        let rows = self.store.read_page(self.table, &self.after, self.limit).await?;
        self.is_finished = rows.len() < self.limit;
        if let Some(last) = rows.last() {
            self.after = last[..self.table.key_columns].to_vec();
            let weight: usize = rows.iter().flatten().map(value_bytes).sum();
            self.limit =
                (PAGE_BYTES / (weight / rows.len()).max(1)).clamp(1, MAX_PAGE_ROWS.min(self.limit * 8));
        }
        Ok(Some(rows).filter(|rows| !rows.is_empty()))
    }
}

fn value_bytes(value: &CopiedValue) -> usize {
    size_of::<CopiedValue>()
        + match value {
            CopiedValue::Null | CopiedValue::Int(_) | CopiedValue::Real(_) => 0,
            CopiedValue::Text(text) => text.len(),
            CopiedValue::Bytes(bytes) => bytes.len(),
        }
}

/// Hands every row of a table on, a page at a time.
pub async fn for_each_page(
    end: &StoreHandle,
    section: &CopiedTable,
    mut visit: impl AsyncFnMut(Vec<CopiedRow>) -> Result<(), TransferError>,
) -> Result<(), TransferError> {
    let mut pages = TablePages::new(end, section);
    while let Some(rows) = pages.next_page().await? {
        visit(rows).await?;
    }
    Ok(())
}

/// Makes a store of `facts` in `to`, which has none, with every row of `from`. Both are in a transaction.
pub async fn copy_store(
    from: &StoreHandle,
    to: &StoreHandle,
    facts: &StoreMetadata,
    progress: &mut dyn TransferProgress,
) -> Result<Vec<TableDigest>, TransferError> {
    let sections = copied_tables(&facts.stored_model);
    to.create_tables(&facts.stored_model).await?;
    progress.begin("copying", "rows", count_rows(from, &sections).await?);
    let mut sums = Vec::new();
    for section in &sections {
        let (mut summing, mut sink) = (DigestBuilder::new(section), to.open_table_writer(section).await?);
        let mut pages = TablePages::new(from, section);
        while let Some(rows) = pages.next_page().await? {
            rows.iter().for_each(|row| summing.add_row(row));
            sink.write_rows(&rows).await?;
            progress.advance(rows.len() as u64);
        }
        sink.finish().await?;
        sums.push(summing.finish());
    }
    progress.begin("making indexes and triggers", "", 0);
    to.finish_tables(&facts.stored_model).await?;
    facts.write(to).await?;
    Ok(sums)
}

/// What the rows of a store sum up to, table by table.
pub async fn digest_store(
    end: &StoreHandle,
    facts: &StoreMetadata,
    progress: &mut dyn TransferProgress,
) -> Result<Vec<TableDigest>, TransferError> {
    let sections = copied_tables(&facts.stored_model);
    progress.begin("verifying", "rows", count_rows(end, &sections).await?);
    let mut sums = Vec::new();
    for section in &sections {
        let mut summing = DigestBuilder::new(section);
        let mut pages = TablePages::new(end, section);
        while let Some(rows) = pages.next_page().await? {
            rows.iter().for_each(|row| summing.add_row(row));
            progress.advance(rows.len() as u64);
        }
        sums.push(summing.finish());
    }
    Ok(sums)
}

async fn count_rows(end: &StoreHandle, sections: &[CopiedTable]) -> Result<u64, TransferError> {
    let mut rows = 0;
    for section in sections {
        rows += end.count_rows(section).await?;
    }
    Ok(rows)
}

/// What was written is what was read.
pub fn compare_digests(read: &[TableDigest], written: &[TableDigest]) -> Result<(), TransferError> {
    for (read, written) in read.iter().zip(written) {
        if read.table != written.table || read.rows != written.rows {
            let (table, count) = (&read.table, written.rows);
            return Err(TransferError(format!("{table}: {} rows were read and {count} written", read.rows)));
        }
        if read.hash != written.hash {
            return Err(TransferError(format!(
                "{}: what was written differs from what was read; a value is spelled as only the other store keeps it",
                read.table
            )));
        }
    }
    if read.len() == written.len() { Ok(()) } else { Err(TransferError("tables are missing".to_owned())) }
}

/// How many records there are, in the words of a report.
pub fn count_records(facts: &StoreMetadata, sums: &[TableDigest]) -> u64 {
    let is_record =
        |sum: &&TableDigest| facts.stored_model.tables.iter().any(|table| table.table == sum.table);
    sums.iter().filter(is_record).map(|sum| sum.rows).sum()
}
