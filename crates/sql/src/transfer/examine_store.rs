//! Looks at a store before it gives way to a new one: how many records it keeps, and whether they are the application's.

use crate::transfer::copied_table::sections;
use crate::transfer::store_handle::End;
use crate::transfer::store_metadata::Facts;
use crate::transfer::{Application, Failed, Place, postgres};

/// What is in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    pub records: u64,
    /// What of it is not as the application has it, a line each; empty where all is.
    pub foreign: String,
}

/// None where there is no store; an error where it cannot be told what is there.
pub async fn examine(place: &Place, application: &Application) -> Result<Option<Contents>, Failed> {
    if let Place::File(path) = place
        && !path.try_exists().map_err(|error| Failed::at(path, error))?
    {
        return Ok(None);
    }
    let end = End::open(place).await?;
    if let End::Postgres(client) = &end {
        postgres::prepare(client).await?;
    }
    end.run("BEGIN").await?;
    let contents = match Facts::of(&end).await? {
        Some(facts) => Some(contents(&end, &facts, application).await?),
        None => None,
    };
    end.run("ROLLBACK").await?;
    Ok(contents)
}

async fn contents(end: &End, facts: &Facts, application: &Application) -> Result<Contents, Failed> {
    let mut records = 0;
    for section in sections(&facts.shape) {
        if facts.shape.tables.iter().any(|table| table.table == section.table) {
            records += end.count(&section).await?;
        }
    }
    let foreign = if facts.is_used { application.unfit(end).await? } else { String::new() };
    Ok(Contents { records, foreign })
}
