//! Copies all rows of a store, computes digests of stores, and compares them.

use crate::transfer::copied_table::{
    CopiedRow, CopiedTable, CopiedValue, DigestBuilder, TableDigest, copied_tables,
};
use crate::transfer::store_handle::StoreHandle;
use crate::transfer::store_metadata::StoreMetadata;
use crate::transfer::{TransferError, TransferProgress};

/// Approximate size of a page of rows in memory.
const PAGE_BYTES: usize = 4 << 20;
/// Rows in the first page, before the size of rows is known.
const FIRST_PAGE_ROWS: usize = 32;
/// Maximum number of rows in a page.
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
    fn new(store: &'a StoreHandle, table: &'a CopiedTable) -> TablePages<'a> {
        TablePages { store, table, after: CopiedRow::new(), limit: FIRST_PAGE_ROWS, is_finished: false }
    }

    async fn next_page(&mut self) -> Result<Option<Vec<CopiedRow>>, TransferError> {
        if self.is_finished {
            return Ok(None);
        }
        let rows = self.store.read_page(self.table, &self.after, self.limit).await?;
        self.is_finished = rows.len() < self.limit;
        if let Some(last) = rows.last() {
            self.after = last[..self.table.key_columns].to_vec();
            let bytes: usize = rows.iter().flatten().map(value_bytes).sum();
            self.limit =
                (PAGE_BYTES / (bytes / rows.len()).max(1)).clamp(1, MAX_PAGE_ROWS.min(self.limit * 8));
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

/// Visits all rows of a table, a page at a time.
pub async fn for_each_page(
    store: &StoreHandle,
    table: &CopiedTable,
    mut visit: impl AsyncFnMut(Vec<CopiedRow>) -> Result<(), TransferError>,
) -> Result<(), TransferError> {
    let mut pages = TablePages::new(store, table);
    while let Some(rows) = pages.next_page().await? {
        visit(rows).await?;
    }
    Ok(())
}

/// Creates the store of `metadata` in `to`, which must be empty, with all rows of `from`. Both are in a transaction.
pub async fn copy_store(
    from: &StoreHandle,
    to: &StoreHandle,
    metadata: &StoreMetadata,
    progress: &mut dyn TransferProgress,
) -> Result<Vec<TableDigest>, TransferError> {
    let tables = copied_tables(&metadata.stored_model, metadata.credentials);
    to.create_tables(&metadata.stored_model).await?;
    to.create_credentials(metadata.credentials).await?;
    progress.begin("copying", "rows", count_rows(from, &tables).await?);
    let mut digests = Vec::new();
    for table in &tables {
        let (mut digest, mut writer) = (DigestBuilder::new(table), to.open_table_writer(table).await?);
        let mut pages = TablePages::new(from, table);
        while let Some(rows) = pages.next_page().await? {
            rows.iter().for_each(|row| digest.add_row(row));
            writer.write_rows(&rows).await?;
            progress.advance(rows.len() as u64);
        }
        writer.finish().await?;
        digests.push(digest.finish());
    }
    progress.begin("creating indexes and triggers", "", 0);
    to.finish_tables(&metadata.stored_model).await?;
    to.log_credentials(metadata.credentials).await?;
    metadata.write(to).await?;
    Ok(digests)
}

/// The digests of all tables of a store.
pub async fn digest_store(
    store: &StoreHandle,
    metadata: &StoreMetadata,
    progress: &mut dyn TransferProgress,
) -> Result<Vec<TableDigest>, TransferError> {
    let tables = copied_tables(&metadata.stored_model, metadata.credentials);
    progress.begin("verifying", "rows", count_rows(store, &tables).await?);
    let mut digests = Vec::new();
    for table in &tables {
        let mut digest = DigestBuilder::new(table);
        let mut pages = TablePages::new(store, table);
        while let Some(rows) = pages.next_page().await? {
            rows.iter().for_each(|row| digest.add_row(row));
            progress.advance(rows.len() as u64);
        }
        digests.push(digest.finish());
    }
    Ok(digests)
}

async fn count_rows(store: &StoreHandle, tables: &[CopiedTable]) -> Result<u64, TransferError> {
    let mut rows = 0;
    for table in tables {
        rows += store.count_rows(table).await?;
    }
    Ok(rows)
}

/// Fails unless the digests of the source and the copy are equal.
pub fn compare_digests(read: &[TableDigest], written: &[TableDigest]) -> Result<(), TransferError> {
    for (read, written) in read.iter().zip(written) {
        if read.table != written.table || read.rows != written.rows {
            let (table, count) = (&read.table, written.rows);
            return Err(TransferError(format!(
                "{table}: {} rows were read but {count} were written",
                read.rows
            )));
        }
        if read.hash != written.hash {
            return Err(TransferError(format!(
                "{}: the written data differs from the data read; a value has a form that the other store cannot represent",
                read.table
            )));
        }
    }
    if read.len() == written.len() { Ok(()) } else { Err(TransferError("tables are missing".to_owned())) }
}

/// Total number of records, without links, lists and changes.
pub fn count_records(metadata: &StoreMetadata, digests: &[TableDigest]) -> u64 {
    let is_record =
        |digest: &&TableDigest| metadata.stored_model.tables.iter().any(|table| table.table == digest.table);
    digests.iter().filter(is_record).map(|digest| digest.rows).sum()
}
