//! The table of API keys in both databases, and its rows.

mod postgres;
mod sqlite;

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;

use trefoil_engine::changes::API_KEY_CHANGES;
use trefoil_engine::{ApiKeyRecord, KeyAccount};
use trefoil_model::error::{Error, Result};

use crate::migrate::create_statements::{SQLITE_NOW, quote_text};
use crate::migrate::stored_model::StoredTable;

/// The table of API keys, made with the first type of accounts, or when the first key is added.
pub const API_KEYS_TABLE: &str = "trefoil_api_keys";

pub const CREATE_ON_SQLITE: &str = "CREATE TABLE IF NOT EXISTS \"trefoil_api_keys\" (\
     \"hash\" TEXT NOT NULL PRIMARY KEY, \"name\" TEXT NOT NULL UNIQUE, \"roles\" TEXT NOT NULL, \
     \"account_type\" TEXT, \"account\" TEXT, \"expires\" INTEGER, \"networks\" TEXT NOT NULL, \
     \"created\" INTEGER NOT NULL, \"used\" TEXT) WITHOUT ROWID";

pub const CREATE_ON_POSTGRES: &str = "CREATE TABLE IF NOT EXISTS \"trefoil_api_keys\" (\
     \"hash\" text COLLATE \"C\" PRIMARY KEY, \"name\" text COLLATE \"C\" NOT NULL UNIQUE, \
     \"roles\" text COLLATE \"C\" NOT NULL, \"account_type\" text COLLATE \"C\", \"account\" text COLLATE \"C\", \
     \"expires\" bigint, \"networks\" text COLLATE \"C\" NOT NULL, \"created\" bigint NOT NULL, \
     \"used\" text COLLATE \"C\")";

/// The triggers that write the end of a key, and a change of what it may do, into the change log: events that are committed
/// later are not delivered under it. They have the name of the key alone. Keys of older stores have none until one is
/// added or revoked.
///
/// Their names have a dot, so that they cannot be those of a table `api_keys` of the application.
///
/// New keys, too: an `INSERT OR REPLACE` by another program deletes the key that was there, and fires no trigger for it. One
/// with another name is logged before.
pub fn log_on_sqlite() -> String {
    let log = |deed: &str, row: &str| {
        format!(
            "INSERT INTO \"trefoil_changes\" (\"resource\", \"deed\", \"record\", \"version\", \"at\", \"image\") \
             SELECT '{API_KEY_CHANGES}', '{deed}', 0, 0, {SQLITE_NOW}, json_object('id', {row}.\"name\")"
        )
    };
    format!(
        "CREATE TRIGGER IF NOT EXISTS \"trefoil_api_keys.created\" AFTER INSERT ON \"trefoil_api_keys\" BEGIN {}; END;\n\
         CREATE TRIGGER IF NOT EXISTS \"trefoil_api_keys.replaced\" BEFORE INSERT ON \"trefoil_api_keys\" BEGIN {} \
         FROM \"trefoil_api_keys\" AS k WHERE k.\"hash\" = NEW.\"hash\" AND k.\"name\" <> NEW.\"name\"; END;\n\
         CREATE TRIGGER IF NOT EXISTS \"trefoil_api_keys.deleted\" AFTER DELETE ON \"trefoil_api_keys\" BEGIN {}; END;\n\
         CREATE TRIGGER IF NOT EXISTS \"trefoil_api_keys.updated\" AFTER UPDATE OF {LOGGED_COLUMNS} ON \"trefoil_api_keys\" \
         BEGIN {}; END;",
        log("created", "NEW"),
        log("deleted", "k"),
        log("deleted", "OLD"),
        log("updated", "OLD")
    )
}

pub fn log_on_postgres() -> String {
    format!(
        r#"
DO $make$
BEGIN
  IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'trefoil_api_keys'::regclass AND tgname = 'trefoil_changed') THEN
    RETURN;
  END IF;
  EXECUTE format($create$
CREATE OR REPLACE FUNCTION %1$I."trefoil_api_keys_changed"() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
  INSERT INTO %1$I."trefoil_unnumbered" ("resource", "deed", "record", "version", "at", "image")
  SELECT '{API_KEY_CHANGES}', CASE TG_OP WHEN 'DELETE' THEN 'deleted' ELSE 'updated' END, 0, 0, clock_timestamp(),
    json_build_object('id', OLD."name");
  RETURN NULL;
END
$function$;
CREATE TRIGGER "trefoil_changed" AFTER DELETE OR UPDATE OF {LOGGED_COLUMNS} ON %1$I."trefoil_api_keys"
  FOR EACH ROW EXECUTE FUNCTION %1$I."trefoil_api_keys_changed"()
$create$, current_schema());
END
$make$
"#
    )
}

/// The statement with which the credentials of a deleted account end, in its transaction: who gets the account's id next has
/// none of them. `schema` is what comes before the name of the table, `id` an expression for the id as JSON.
pub fn end_credentials(accounts: &StoredTable, schema: &str, id: &str) -> String {
    let name = quote_text(&accounts.name);
    format!("DELETE FROM {schema}\"{API_KEYS_TABLE}\" WHERE \"account_type\" = {name} AND \"account\" = {id}")
}

/// All but the day of the last use.
const LOGGED_COLUMNS: &str =
    "\"hash\", \"name\", \"roles\", \"account_type\", \"account\", \"expires\", \"networks\"";

// The same on both databases. SQLite numbers parameters in the order in which they are written.
pub const ADD_KEY: &str = "INSERT INTO trefoil_api_keys \
     (hash, name, roles, account_type, account, expires, networks, created, used) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (name) DO NOTHING";
pub const LIST_KEYS: &str = "SELECT name, roles, account_type, account, expires, networks, created, used \
     FROM trefoil_api_keys ORDER BY name";
pub const REVOKE_KEY: &str = "DELETE FROM trefoil_api_keys WHERE name = $1";
pub const FIND_KEY: &str = "SELECT name, roles, account_type, account, expires, networks, created, used \
     FROM trefoil_api_keys WHERE hash = $1";
pub const FIND_KEYS_ON_POSTGRES: &str = "SELECT name, roles, account_type, account, expires, networks, created, used, hash \
     FROM trefoil_api_keys WHERE hash = ANY($1)";
pub const MARK_USED: &str =
    "UPDATE trefoil_api_keys SET used = $1 WHERE hash = $2 AND (used IS NULL OR used < $1)";

/// A key as its columns hold it. Times are seconds since 1970, lists and ids are JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiKeyRow {
    pub name: String,
    pub roles: String,
    pub account_type: Option<String>,
    pub account: Option<String>,
    pub expires: Option<i64>,
    pub networks: String,
    pub created: i64,
    pub used: Option<String>,
}

impl ApiKeyRow {
    pub fn from_record(key: &ApiKeyRecord) -> ApiKeyRow {
        let list = |items: &[String]| serde_json::Value::from(items).to_string();
        ApiKeyRow {
            name: key.name.clone(),
            roles: list(&key.roles),
            account_type: key.account.as_ref().map(|account| account.type_name.clone()),
            account: key.account.as_ref().map(KeyAccount::id_text),
            expires: key.expires.map(Timestamp::as_second),
            networks: list(&key.networks),
            created: key.created.as_second(),
            used: key.last_used.map(|day| day.to_string()),
        }
    }

    /// The key; an error if another program wrote what cannot be one.
    pub fn into_record(self) -> Result<ApiKeyRecord> {
        let wrong = |column: &str| {
            Error::internal(format!("{API_KEYS_TABLE}: cannot read `{column}` of {}", self.name))
        };
        let list = |text: &str, column| serde_json::from_str::<Vec<String>>(text).map_err(|_| wrong(column));
        let time = |seconds: i64, column| Timestamp::from_second(seconds).map_err(|_| wrong(column));
        let account = match (&self.account_type, &self.account) {
            (Some(type_name), Some(id)) => {
                Some(KeyAccount::parse(type_name, id).ok_or_else(|| wrong("account"))?)
            }
            // Half an account must not become none, which would be more than the key may do.
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return Err(wrong("account")),
        };
        Ok(ApiKeyRecord {
            roles: list(&self.roles, "roles")?,
            account,
            expires: self.expires.map(|seconds| time(seconds, "expires")).transpose()?,
            networks: list(&self.networks, "networks")?,
            created: time(self.created, "created")?,
            last_used: self.used.as_deref().map(str::parse::<Date>).transpose().map_err(|_| wrong("used"))?,
            name: self.name,
        })
    }
}

/// The pause before the table is created again, if another node was creating it.
pub const CREATE_PAUSE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use trefoil_model::RecordId;

    use super::*;

    #[test]
    fn rows_keep_everything_of_a_key() {
        let full = ApiKeyRecord {
            name: "ci".to_owned(),
            roles: vec!["EDITOR".to_owned(), "ADMIN".to_owned()],
            account: Some(KeyAccount { type_name: "User".to_owned(), id: RecordId::from("a\"b") }),
            expires: Timestamp::from_second(1_800_000_000).ok(),
            networks: vec!["10.0.0.0/8".to_owned()],
            created: Timestamp::UNIX_EPOCH,
            last_used: Some(jiff::civil::date(2026, 11, 18)),
        };
        let bare = ApiKeyRecord {
            roles: Vec::new(),
            account: Some(KeyAccount { type_name: "User".to_owned(), id: RecordId::Number(7) }),
            expires: None,
            networks: Vec::new(),
            last_used: None,
            ..full.clone()
        };
        for key in [full, ApiKeyRecord { account: None, ..bare.clone() }, bare] {
            assert_eq!(ApiKeyRow::from_record(&key).into_record().unwrap(), key);
        }
    }

    #[test]
    fn half_an_account_is_an_error() {
        let key = ApiKeyRecord {
            name: "ci".to_owned(),
            roles: Vec::new(),
            account: Some(KeyAccount { type_name: "User".to_owned(), id: RecordId::Number(7) }),
            expires: None,
            networks: Vec::new(),
            created: Timestamp::UNIX_EPOCH,
            last_used: None,
        };
        let row = ApiKeyRow::from_record(&key);
        assert!(ApiKeyRow { account: None, ..row.clone() }.into_record().is_err());
        assert!(ApiKeyRow { account: Some("7.5".to_owned()), ..row }.into_record().is_err());
    }
}
