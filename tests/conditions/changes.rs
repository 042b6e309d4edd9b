//! Conditions of subscriptions: the records of whose last change they let through.

use std::collections::BTreeMap;

use serde_json::Value;
use trefoil_engine::{Engine, ResolverBinding};
use trefoil_model::naming::names;

use crate::support::Server;

/// The keys of the records of a type whose last change meets the conditions.
pub fn matching_keys(server: &Server, type_name: &str, conditions: &Value) -> Result<Vec<String>, String> {
    server.runtime.block_on(keys(&server.engine, type_name, conditions)).map_err(|error| error.to_string())
}

async fn keys(
    engine: &Engine,
    type_name: &str,
    conditions: &Value,
) -> trefoil_model::error::Result<Vec<String>> {
    let field = names::operation_names(type_name).changed;
    let position = engine.model().root_fields.iter().position(|root| root.name == field).unwrap();
    let ResolverBinding::Builtin(builtin) = &engine.bindings()[position] else { panic!("{field}") };
    let conditions = serde_json::from_str(&conditions.to_string()).unwrap();
    let filter = engine.change_filter(builtin, vec![(0, conditions)])?;
    let (feed, mut position) = (engine.feed(), 0);
    let end = feed.last_change_number().await?;
    let mut last: BTreeMap<String, bool> = BTreeMap::new();
    while position < end {
        let batch = feed.changes_after(position).await?;
        let matching: Vec<i64> =
            engine.matching_changes(&filter, &batch).await?.iter().map(|change| change.number).collect();
        for change in batch.changes.iter().filter(|change| change.type_name == type_name) {
            last.insert(change.record_id.to_string(), matching.contains(&change.number));
        }
        position = batch.until;
    }
    Ok(last.into_iter().filter(|(_, is_match)| *is_match).map(|(key, _)| key).collect())
}
