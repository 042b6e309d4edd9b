//! The triggers of link tables on PostgreSQL: a link that is added or removed is an update of the records on both sides.

use crate::link_table_side::{SIDE_SETTING, side_name};
use crate::migrate::create_statements::{quote_name, quote_text};
use crate::migrate::postgres::sql_objects::{SqlFunction, SqlTrigger, shorten_name};
use crate::migrate::postgres::triggers::trigger;
use crate::migrate::stored_model::{LinkSide, LinkTable, StoredModel};

/// The links that a statement added or removed, in the triggers of either.
const CHANGED_LINKS: &str = "changed";

/// The links before and after an update by another program.
const REPLACED_LINKS: &str = "(SELECT * FROM removed UNION SELECT * FROM added)";

pub fn link_functions(model: &StoredModel, link: &LinkTable) -> [SqlFunction; 2] {
    let function = |purpose: &str, source: &str| {
        let updates = side_updates(model, link, source);
        // The side is that of one statement: one that follows in the transaction may be another program's cascade.
        let body = format!(
            "\nDECLARE side text := coalesce(current_setting('{SIDE_SETTING}', true), '');\nBEGIN\n  \
             PERFORM set_config('{SIDE_SETTING}', '', true);\n{updates}  RETURN NULL;\nEND\n"
        );
        SqlFunction::for_trigger(&function_name(link, purpose), &body)
    };
    [function("linked", CHANGED_LINKS), function("relinked", REPLACED_LINKS)]
}

pub fn link_triggers(link: &LinkTable) -> Vec<SqlTrigger> {
    let statement = |purpose: &str, event: &str, tables: &str, function: &str| {
        let rows = format!("REFERENCING {tables} FOR EACH STATEMENT");
        trigger(&link.table, purpose, event, &rows, &function_name(link, function), "")
    };
    vec![
        statement("linked", "AFTER INSERT", "NEW TABLE AS changed", "linked"),
        statement("unlinked", "AFTER DELETE", "OLD TABLE AS changed", "linked"),
        statement("relinked", "AFTER UPDATE", "OLD TABLE AS removed NEW TABLE AS added", "relinked"),
        trigger(
            &link.table,
            "truncate",
            "BEFORE TRUNCATE",
            "FOR EACH STATEMENT",
            "trefoil_refuse",
            "TRUNCATE would leave the linked records without a new version: use DELETE",
        ),
    ]
}

/// Updates the records of both sides without a change of their columns: the version trigger of their tables does the
/// rest. A record that is linked to itself is updated once.
fn side_updates(model: &StoredModel, link: &LinkTable, source: &str) -> String {
    let [first, second] = [&link.first, &link.second].map(|side| quote_name(&side.column));
    let is_same_type = link.first.to == link.second.to;
    let update = |side: &LinkSide, condition: &str| {
        let table = &model.table(&side.to).expect("links lead to record types of the same model").table;
        let (table, column) = (quote_name(table), quote_name(&side.column));
        let name = quote_text(&side_name(&link.table, &side.column));
        // Locked in the order of ids, so that two statements wait for each other instead of blocking each other.
        format!(
            "  IF side <> {name} THEN\n    UPDATE {{schema}}.{table} AS t SET \"_version\" = t.\"_version\" FROM \
             (SELECT r.\"id\" FROM {{schema}}.{table} AS r WHERE r.\"id\" = ANY (ARRAY(SELECT l.{column} FROM \
             {source} AS l{condition})) ORDER BY r.\"id\" FOR NO KEY UPDATE) AS found WHERE t.\"id\" = \
             found.\"id\";\n  END IF;\n"
        )
    };
    let (of_first, of_second) = if is_same_type {
        let is_other = format!(" WHERE l.{first} <> l.{second}");
        (format!("{is_other} OR side = ''"), is_other)
    } else {
        (String::new(), String::new())
    };
    update(&link.first, &of_first) + &update(&link.second, &of_second)
}

fn function_name(link: &LinkTable, purpose: &str) -> String {
    shorten_name(&format!("trefoil_{}_{purpose}", link.table))
}
