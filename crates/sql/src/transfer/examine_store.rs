//! Looks at a store before it gives way to a new one: how many records it keeps, and whether they are the application's.

use crate::transfer::copied_table::copied_tables;
use crate::transfer::store_handle::StoreHandle;
use crate::transfer::store_metadata::StoreMetadata;
use crate::transfer::{ExpectedSchema, StoreLocation, TransferError, postgres};

/// What is in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    pub records: u64,
    /// What of it is not as the application has it, a line each; empty where all is.
    pub foreign: String,
}

/// None where there is no store; an error where it cannot be told what is there.
pub async fn examine(
    place: &StoreLocation,
    application: &ExpectedSchema,
) -> Result<Option<Contents>, TransferError> {
    if let StoreLocation::File(path) = place
        && !path.try_exists().map_err(|error| TransferError::for_path(path, error))?
    {
        return Ok(None);
    }
    let end = StoreHandle::open(place).await?;
    if let StoreHandle::Postgres(client) = &end {
        postgres::disable_timeouts(client).await?;
    }
    end.execute_batch("BEGIN").await?;
    let contents = match StoreMetadata::read(&end).await? {
        Some(facts) => Some(contents(&end, &facts, application).await?),
        None => None,
    };
    end.execute_batch("ROLLBACK").await?;
    Ok(contents)
}

async fn contents(
    end: &StoreHandle,
    facts: &StoreMetadata,
    application: &ExpectedSchema,
) -> Result<Contents, TransferError> {
    let mut records = 0;
    for section in copied_tables(&facts.stored_model) {
        if facts.stored_model.tables.iter().any(|table| table.table == section.table) {
            records += end.count_rows(&section).await?;
        }
    }
    let foreign = if facts.is_used { application.unfit(end).await? } else { String::new() };
    Ok(Contents { records, foreign })
}
