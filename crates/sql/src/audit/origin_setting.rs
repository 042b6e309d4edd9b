//! Whose work a transaction on PostgreSQL is: a setting that the triggers of each table read, to note its writes.
//!
//! Other programs do not set it, and are in no entry.

use trefoil_engine::AuditOrigin;

use crate::audit::WriteAction;
use crate::migrate::create_statements::{quote_name, quote_text};
use crate::migrate::stored_model::{StoredKey, StoredTable};

/// The setting with whose work it is, only during a transaction: actor, address and request, with line breaks between them.
pub const ASKING_SETTING: &str = "trefoil.asking";

/// The value of the setting.
pub fn origin_text(origin: &AuditOrigin) -> String {
    let actor = origin.actor().unwrap_or_default().replace(char::is_control, " ");
    let (address, request) = (origin.address().unwrap_or_default(), origin.request().unwrap_or_default());
    format!("{actor}\n{address}\n{request}")
}

/// The statements that begin a transaction, with one that says whose work it is: no round trip more.
pub fn with_origin(begin: &str, origin: Option<&AuditOrigin>) -> String {
    match origin {
        None => begin.to_owned(),
        Some(origin) => {
            let text = origin_text(origin).replace('\\', "\\\\").replace('\'', "''").replace('\n', "\\n");
            format!("{begin}; SET LOCAL {ASKING_SETTING} = E'{text}'")
        }
    }
}

/// A statement that ends with `RETURNING` and says whose work it is by the parameter with this number. The triggers run
/// after it.
pub fn told_statement(sql: &str, parameter: usize) -> String {
    format!("{sql}, set_config('{ASKING_SETTING}', ${parameter}, true)")
}

/// The statements of a trigger that note a write.
pub fn audit_statements(table: &StoredTable, action: WriteAction) -> String {
    let differs = |column: &str| {
        let [new, old] = ["NEW", "OLD"].map(|row| format!("CAST({row}.{column} AS text)"));
        format!("{new} IS DISTINCT FROM {old}")
    };
    let (fields, row) = (action.changed_fields(table, differs), action.row());
    let id = match table.key {
        StoredKey::Counted => format!("{row}.{}::text", quote_name("id")),
        StoredKey::Uuid | StoredKey::Text => format!("to_json({row}.{})::text", quote_name("id")),
    };
    let part = |number: usize| format!("nullif(split_part(a.asking, chr(10), {number}), '')");
    format!(
        "  IF current_setting('{ASKING_SETTING}', true) <> '' THEN\n    \
         INSERT INTO {{schema}}.\"trefoil_audit\" \
         (\"at\", \"actor\", \"address\", \"request\", \"action\", \"type\", \"record\", \"version\", \"fields\")\n    \
         SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, {}, {}, {}, {}, {}, {id}, \
         {row}.\"_version\", {fields}\n    \
         FROM (SELECT current_setting('{ASKING_SETTING}', true)) AS a(asking);\n  END IF;\n",
        part(1),
        part(2),
        part(3),
        quote_text(action.name()),
        quote_text(&table.name),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_safe_in_statements() {
        let request = trefoil_engine::RequestId::received(b"a/b+c=");
        let address = "::ffff:192.0.2.1".parse().ok();
        let origin = AuditOrigin { address, request, ..AuditOrigin::default() };
        assert_eq!(
            with_origin("BEGIN", Some(&origin)),
            "BEGIN; SET LOCAL trefoil.asking = E'operator\\n192.0.2.1\\na/b+c='"
        );
        let account = trefoil_engine::KeyAccount { type_name: "User".to_owned(), id: "a'\\\n\0b".into() };
        assert_eq!(
            with_origin("BEGIN", Some(&AuditOrigin::default().by_account(&account))),
            "BEGIN; SET LOCAL trefoil.asking = E'account:a''\\\\  b\\n\\n'"
        );
        assert_eq!(with_origin("BEGIN", None), "BEGIN");
    }
}
