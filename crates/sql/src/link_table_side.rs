//! Which side of a link a statement writes.
//!
//! A link that is added or removed is an update of the records on both sides: version, event and ETag. Triggers of the
//! link tables see to it, so that it holds for the writes of other programs too. The records that Trefoil itself writes
//! get their new version from its own statement; its statements on link tables name that side, and the triggers leave
//! it out.

use trefoil_model::Link;

use crate::statements::dialect::Dialect;

/// The key of the side in `trefoil_meta` on SQLite, only inside a transaction.
pub const SIDE_KEY: &str = "link-side";

/// The setting with the side on PostgreSQL, only during a statement.
pub const SIDE_SETTING: &str = "trefoil.link_side";

/// The name of one side of a link table.
pub fn side_name(table: &str, column: &str) -> String {
    format!("{table}.{column}")
}

/// The side of the records that have the field.
pub fn own_side(link: &Link) -> String {
    side_name(&link.table, &link.own_column)
}

/// True, in every statement on a link table: names the side whose records have their new version already. SQLite's
/// executor does so with statements of its own.
pub fn side_condition(dialect: Dialect, link: &Link) -> String {
    match dialect {
        Dialect::Sqlite => "true".to_owned(),
        Dialect::Postgres => {
            let side = own_side(link).replace('\'', "''");
            format!("set_config('{SIDE_SETTING}', '{side}', true) IS NOT NULL")
        }
    }
}
