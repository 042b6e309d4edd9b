//! Writes that leave alone what their actor does not see.

use crate::statements::dialect::Dialect;

/// A statement that changes only what belongs to records that its actor sees.
pub fn only_visible(dialect: Dialect, sql: &str, key: &str, table: &str) -> String {
    let [key, table] = [key, table].map(|name| dialect.quote_name(name));
    format!("{sql} AND {key} IN (SELECT w.\"id\" FROM {table} AS w)")
}

/// The same for records whose reference the actor sees, too.
pub fn only_shown(dialect: Dialect, sql: &str, table: &str, reference: &str) -> String {
    let [table, reference] = [table, reference].map(|name| dialect.quote_name(name));
    format!("{sql} AND \"id\" IN (SELECT w.\"id\" FROM {table} AS w WHERE w.{reference} IS NOT NULL)")
}
