//! Examines a store before it is replaced: its number of records, and whether it belongs to the application.

use crate::transfer::copied_table::{CredentialTables, copied_tables};
use crate::transfer::store_handle::StoreHandle;
use crate::transfer::store_metadata::StoreMetadata;
use crate::transfer::{ExpectedSchema, StoreLocation, TransferError, postgres};

/// Result of [`examine_store`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreContents {
    pub records: u64,
    /// Differences from the application's schema, one per line; empty if there are none.
    pub foreign: String,
}

/// `None` if there is no store; an error if it cannot be read.
pub async fn examine_store(
    location: &StoreLocation,
    application: &ExpectedSchema,
) -> Result<Option<StoreContents>, TransferError> {
    if let StoreLocation::File(path) = location
        && !path.try_exists().map_err(|error| TransferError::for_path(path, error))?
    {
        return Ok(None);
    }
    let store = StoreHandle::open(location).await?;
    if let StoreHandle::Postgres(client) = &store {
        postgres::disable_timeouts(client).await?;
    }
    store.execute_batch("BEGIN").await?;
    let contents = match StoreMetadata::read(&store).await? {
        Some(metadata) => Some(read_contents(&store, &metadata, application).await?),
        None => None,
    };
    store.execute_batch("ROLLBACK").await?;
    Ok(contents)
}

async fn read_contents(
    store: &StoreHandle,
    metadata: &StoreMetadata,
    application: &ExpectedSchema,
) -> Result<StoreContents, TransferError> {
    let mut records = 0;
    for table in copied_tables(&metadata.stored_model, CredentialTables::default()) {
        if metadata.stored_model.tables.iter().any(|records| records.table == table.name) {
            records += store.count_rows(&table).await?;
        }
    }
    let foreign = if metadata.is_used { application.refused_steps(store).await? } else { String::new() };
    Ok(StoreContents { records, foreign })
}
