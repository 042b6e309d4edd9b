//! The triggers of link tables on SQLite: a link that is added or removed is an update of the records on both sides.

use crate::link_table_side::{SIDE_KEY, side_name};
use crate::migrate::create_statements::{ObjectDefinition, quote_name, quote_text};
use crate::migrate::stored_model::{LinkSide, LinkTable, StoredModel};

pub fn link_triggers(model: &StoredModel, link: &LinkTable) -> Vec<ObjectDefinition> {
    let trigger = |purpose: &str, event: &str, rows: &[&str]| {
        let name = format!("trefoil_{}_{purpose}", link.table);
        let updates: Vec<String> = rows.iter().flat_map(|row| side_updates(model, link, row)).collect();
        let sql = format!(
            "CREATE TRIGGER {} AFTER {event} ON {} BEGIN {}; END",
            quote_name(&name),
            quote_name(&link.table),
            updates.join("; ")
        );
        ObjectDefinition { name, sql }
    };
    vec![
        trigger("linked", "INSERT", &["NEW"]),
        trigger("unlinked", "DELETE", &["OLD"]),
        trigger("relinked", "UPDATE", &["OLD", "NEW"]),
    ]
}

/// Updates the records of both sides without a change of their columns: the version trigger of their tables does the
/// rest. A record that is linked to itself is updated once.
fn side_updates(model: &StoredModel, link: &LinkTable, row: &str) -> [String; 2] {
    let key = |side: &LinkSide| format!("{row}.{}", quote_name(&side.column));
    let (first, second) = (key(&link.first), key(&link.second));
    let is_same_type = link.first.to == link.second.to;
    let update = |side: &LinkSide, condition: &str, or_other_side: &str| {
        let table = &model.table(&side.to).expect("links lead to record types of the same model").table;
        let (table, side_text) = (quote_name(table), quote_text(&side_name(&link.table, &side.column)));
        format!(
            "UPDATE {table} SET \"_version\" = \"_version\" WHERE \"id\" = {}{condition} AND NOT EXISTS (SELECT 1 \
             FROM \"trefoil_meta\" WHERE \"key\" = '{SIDE_KEY}' AND (\"value\" = {side_text}{or_other_side}))",
            key(side)
        )
    };
    if is_same_type {
        let (is_self, is_other) = (format!(" OR {first} = {second}"), format!(" AND {first} <> {second}"));
        [update(&link.first, "", &is_self), update(&link.second, &is_other, "")]
    } else {
        [update(&link.first, "", ""), update(&link.second, "", "")]
    }
}
