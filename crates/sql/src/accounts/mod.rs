//! The tables of passwords, sessions, links and identities in both databases, and their rows.

pub mod account_statements;
pub mod postgres;
pub mod sqlite;

use jiff::Timestamp;

use trefoil_engine::changes::SESSION_CHANGES;
use trefoil_engine::{KeyAccount, KnownNetwork, LinkRecord, LoginColumns, SessionRecord, StoredPassword};
use trefoil_model::RecordId;
use trefoil_model::error::{Error, Result};

use crate::migrate::create_statements::{SQLITE_NOW, quote_name};
use crate::statements::dialect::{Dialect, ValueComparison};

/// The tables, made together when the first of them is needed.
pub const ACCOUNT_TABLES: [&str; 4] =
    ["trefoil_passwords", "trefoil_sessions", "trefoil_links", "trefoil_identities"];

/// Key in `trefoil_meta` of the secret that recognises sign-ins that were begun. It stays with its store.
pub const SIGN_IN_KEY: &str = "sign-in-key";

pub const CREATE_ON_SQLITE: &str = r#"
CREATE TABLE IF NOT EXISTS "trefoil_passwords" (
  "account_type" TEXT NOT NULL, "account" TEXT NOT NULL, "hash" TEXT NOT NULL, "networks" TEXT NOT NULL,
  PRIMARY KEY ("account_type", "account")
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS "trefoil_sessions" (
  "hash" TEXT NOT NULL PRIMARY KEY, "account_type" TEXT NOT NULL, "account" TEXT NOT NULL, "roles" TEXT NOT NULL,
  "created" INTEGER NOT NULL, "seen" INTEGER NOT NULL, "expires" INTEGER NOT NULL, "address" TEXT, "browser" TEXT
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS "trefoil_sessions_account_index" ON "trefoil_sessions" ("account_type", "account");
CREATE TABLE IF NOT EXISTS "trefoil_links" (
  "hash" TEXT NOT NULL PRIMARY KEY, "account_type" TEXT NOT NULL, "account" TEXT NOT NULL, "expires" INTEGER NOT NULL,
  UNIQUE ("account_type", "account")
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS "trefoil_identities" (
  "issuer" TEXT NOT NULL, "subject" TEXT NOT NULL, "account_type" TEXT NOT NULL, "account" TEXT NOT NULL,
  "linked" INTEGER NOT NULL, PRIMARY KEY ("issuer", "subject"), UNIQUE ("account_type", "account", "issuer")
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS "trefoil_used_states" (
  "hash" TEXT NOT NULL PRIMARY KEY, "expires" INTEGER NOT NULL
) WITHOUT ROWID;
"#;

pub const CREATE_ON_POSTGRES: &str = r#"
CREATE TABLE IF NOT EXISTS "trefoil_passwords" (
  "account_type" text COLLATE "C", "account" text COLLATE "C", "hash" text COLLATE "C" NOT NULL,
  "networks" text COLLATE "C" NOT NULL, PRIMARY KEY ("account_type", "account")
);
CREATE TABLE IF NOT EXISTS "trefoil_sessions" (
  "hash" text COLLATE "C" PRIMARY KEY, "account_type" text COLLATE "C" NOT NULL, "account" text COLLATE "C" NOT NULL,
  "roles" text COLLATE "C" NOT NULL, "created" bigint NOT NULL, "seen" bigint NOT NULL, "expires" bigint NOT NULL,
  "address" text COLLATE "C", "browser" text COLLATE "C"
);
CREATE INDEX IF NOT EXISTS "trefoil_sessions_account_index" ON "trefoil_sessions" ("account_type", "account");
CREATE TABLE IF NOT EXISTS "trefoil_links" (
  "hash" text COLLATE "C" PRIMARY KEY, "account_type" text COLLATE "C" NOT NULL, "account" text COLLATE "C" NOT NULL,
  "expires" bigint NOT NULL, UNIQUE ("account_type", "account")
);
CREATE TABLE IF NOT EXISTS "trefoil_identities" (
  "issuer" text COLLATE "C", "subject" text COLLATE "C", "account_type" text COLLATE "C" NOT NULL,
  "account" text COLLATE "C" NOT NULL, "linked" bigint NOT NULL,
  PRIMARY KEY ("issuer", "subject"), UNIQUE ("account_type", "account", "issuer")
);
CREATE TABLE IF NOT EXISTS "trefoil_used_states" ("hash" text COLLATE "C" PRIMARY KEY, "expires" bigint NOT NULL);
"#;

/// The same in the order in which a deleted account loses them. Whoever sets a password by a link holds the link's row, and
/// whoever begins a session holds the password's: a deletion waits for them, and then finds what they made.
const DELETED_WITH_ACCOUNT: [&str; 4] =
    ["trefoil_links", "trefoil_passwords", "trefoil_identities", "trefoil_sessions"];

/// What changes a session's rights; when it was last seen does not.
const LOGGED_COLUMNS: &str = "\"hash\", \"account_type\", \"account\", \"roles\", \"expires\"";

/// The triggers that write the end of a session into the change log, as a change of its account, so that events that are
/// committed later are not delivered under it; and one that ends all that a deleted account signs in with: the next record
/// with its id is somebody else's.
///
/// Their names have a dot, so that they cannot be those of a table `sessions` of the application.
pub fn triggers_on_sqlite() -> String {
    let log = format!(
        "INSERT INTO \"trefoil_changes\" (\"resource\", \"deed\", \"record\", \"version\", \"at\", \"image\") \
         SELECT '{SESSION_CHANGES}', 'deleted', CASE WHEN json_type(OLD.\"account\") = 'integer' THEN \
         CAST(OLD.\"account\" AS INTEGER) ELSE 0 END, 0, {SQLITE_NOW}, json_object('id', json(OLD.\"account\"))"
    );
    let id = "CASE WHEN NEW.\"record\" <> 0 THEN CAST(NEW.\"record\" AS TEXT) \
              ELSE json_quote(json_extract(NEW.\"image\", '$.id')) END";
    let end = DELETED_WITH_ACCOUNT.map(|table| {
        format!("DELETE FROM \"{table}\" WHERE \"account_type\" = NEW.\"resource\" AND \"account\" = {id};")
    });
    format!(
        "CREATE TRIGGER IF NOT EXISTS \"trefoil_sessions.deleted\" AFTER DELETE ON \"trefoil_sessions\" BEGIN {log}; END;\n\
         CREATE TRIGGER IF NOT EXISTS \"trefoil_sessions.updated\" AFTER UPDATE OF {LOGGED_COLUMNS} ON \"trefoil_sessions\" \
         BEGIN {log}; END;\n\
         CREATE TRIGGER IF NOT EXISTS \"trefoil_accounts.deleted\" AFTER INSERT ON \"trefoil_changes\" \
         WHEN NEW.\"deed\" = 'deleted' BEGIN {} END;",
        end.join(" ")
    )
}

pub fn triggers_on_postgres() -> String {
    let end = DELETED_WITH_ACCOUNT.map(|table| {
        format!(
            "DELETE FROM %1$I.\"{table}\" WHERE \"account_type\" = NEW.\"resource\" AND \"account\" = gone;"
        )
    });
    format!(
        r#"
DO $make$
BEGIN
  IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = 'trefoil_sessions'::regclass AND tgname = 'trefoil_ended') THEN
    RETURN;
  END IF;
  EXECUTE format($create$
CREATE OR REPLACE FUNCTION %1$I."trefoil_session_ended"() RETURNS trigger LANGUAGE plpgsql AS $function$
BEGIN
  INSERT INTO %1$I."trefoil_unnumbered" ("resource", "deed", "record", "version", "at", "image")
  SELECT '{SESSION_CHANGES}', 'deleted', CASE json_typeof(OLD."account"::json) WHEN 'number' THEN OLD."account"::bigint ELSE 0 END,
    0, clock_timestamp(), json_build_object('id', OLD."account"::json);
  RETURN NULL;
END
$function$;
CREATE OR REPLACE FUNCTION %1$I."trefoil_account_deleted"() RETURNS trigger LANGUAGE plpgsql AS $function$
DECLARE gone text := CASE WHEN NEW."record" <> 0 THEN NEW."record"::text ELSE (NEW."image"->'id')::text END;
BEGIN
  {}
  RETURN NULL;
END
$function$;
CREATE TRIGGER "trefoil_account_deleted" AFTER INSERT ON %1$I."trefoil_unnumbered"
  FOR EACH ROW WHEN (NEW."deed" = 'deleted') EXECUTE FUNCTION %1$I."trefoil_account_deleted"();
CREATE TRIGGER "trefoil_ended" AFTER DELETE OR UPDATE OF {LOGGED_COLUMNS} ON %1$I."trefoil_sessions"
  FOR EACH ROW EXECUTE FUNCTION %1$I."trefoil_session_ended"()
$create$, current_schema());
END
$make$
"#,
        end.join("\n  ")
    )
}

// The same on both databases. SQLite numbers parameters in the order in which they are written.
const FIND_PASSWORD: &str =
    "SELECT hash, networks FROM trefoil_passwords WHERE account_type = $1 AND account = $2";
const FIND_BOUNDS: &str = "SELECT (SELECT account FROM trefoil_passwords WHERE account_type = $1 ORDER BY account LIMIT 1), \
     (SELECT account FROM trefoil_passwords WHERE account_type = $1 ORDER BY account DESC LIMIT 1)";
const FIND_NEAR: &str = "SELECT coalesce( \
     (SELECT hash FROM trefoil_passwords WHERE account_type = $1 AND account >= $2 ORDER BY account LIMIT 1), \
     (SELECT hash FROM trefoil_passwords WHERE account_type = $1 AND account < $2 ORDER BY account DESC LIMIT 1))";
const HAS_PASSWORDS: &str = "SELECT 1 FROM trefoil_passwords LIMIT 1";
const FIND_SESSION: &str = "SELECT hash, account_type, account, roles, created, seen, expires, address, browser \
     FROM trefoil_sessions WHERE hash = $1";
const FIND_SESSIONS_ON_POSTGRES: &str = "SELECT hash, account_type, account, roles, created, seen, expires, \
     address, browser FROM trefoil_sessions WHERE hash = ANY($1)";
const LIST_SESSIONS: &str = "SELECT hash, account_type, account, roles, created, seen, expires, address, browser \
     FROM trefoil_sessions WHERE account_type = $1 AND account = $2 ORDER BY seen DESC, created DESC, hash";
const SESSION_ACCOUNTS: &str = "SELECT DISTINCT account FROM trefoil_sessions WHERE account_type = $1";
const FIND_LINK: &str = "SELECT account_type, account, expires FROM trefoil_links WHERE hash = $1";
const FIND_IDENTITY: &str =
    "SELECT account_type, account FROM trefoil_identities WHERE issuer = $1 AND subject = $2";
const FIND_SIGN_IN_KEY: &str = "SELECT value FROM trefoil_meta WHERE key = $1";
const MARK_SEEN: &str = "UPDATE trefoil_sessions SET seen = $1 WHERE hash = $2 AND seen < $1";
const MARK_SEEN_ON_POSTGRES: &str = "UPDATE trefoil_sessions SET seen = given.seen \
     FROM unnest($1::text[], $2::bigint[]) AS given(hash, seen) \
     WHERE trefoil_sessions.hash = given.hash AND trefoil_sessions.seen < given.seen";

/// The statement that finds accounts by login: its index has the letters in lower case, see `stored_indexes`.
fn find_logins_sql(dialect: Dialect, columns: &LoginColumns) -> String {
    let [table, id, login] = [&columns.table, &columns.id, &columns.login].map(|name| quote_name(name));
    let folded = |value: &str| dialect.equality_key(ValueComparison::IgnoreCase, value);
    format!(
        "SELECT CAST({id} AS text), {login} FROM {table} WHERE {} = {} ORDER BY {login} = $1 DESC LIMIT 2",
        folded(&login),
        folded("$1")
    )
}

/// A session as its columns hold it. Times are seconds since 1970, lists and ids are JSON.
struct SessionRow {
    hash: String,
    account_type: String,
    account: String,
    roles: String,
    created: i64,
    seen: i64,
    expires: i64,
    address: Option<String>,
    browser: Option<String>,
}

impl SessionRow {
    /// The session under its hash; an error if another program wrote what cannot be one.
    fn into_record(self) -> Result<(String, SessionRecord)> {
        let wrong = |column: &str| Error::internal(format!("trefoil_sessions: cannot read `{column}`"));
        let time = |seconds: i64, column| Timestamp::from_second(seconds).map_err(|_| wrong(column));
        let account = KeyAccount::parse(&self.account_type, &self.account);
        let session = SessionRecord {
            account: account.ok_or_else(|| wrong("account"))?,
            roles: serde_json::from_str(&self.roles).map_err(|_| wrong("roles"))?,
            created: time(self.created, "created")?,
            seen: time(self.seen, "seen")?,
            expires: time(self.expires, "expires")?,
            address: self.address,
            browser: self.browser,
        };
        Ok((self.hash, session))
    }
}

/// A text between two others for nearly every place: behind what both begin with, digits of the place.
fn text_between(first: &str, last: &str, place: u64) -> String {
    const DIGITS: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    let common = first.chars().zip(last.chars()).take_while(|(one, other)| one == other).count();
    let bound = |text: &str| text.chars().nth(common).unwrap_or('0');
    let bounds = bound(first)..=bound(last);
    let choices: Vec<char> = DIGITS.chars().filter(|digit| bounds.contains(digit)).collect();
    let count = choices.len().max(1) as u64;
    let next = usize::try_from(place % count).ok().and_then(|choice| choices.get(choice));
    first.chars().take(common).chain(next.copied()).chain(format!("{:x}", place / count).chars()).collect()
}

fn password_of(hash: String, networks: &str) -> Result<StoredPassword> {
    let wrong = || Error::internal("trefoil_passwords: cannot read `networks`");
    let entries: Vec<(String, i64)> = serde_json::from_str(networks).map_err(|_| wrong())?;
    let known = |(network, last): (String, i64)| {
        let last = Timestamp::from_second(last).map_err(|_| wrong())?;
        Ok(KnownNetwork { network, last })
    };
    Ok(StoredPassword { hash, networks: entries.into_iter().map(known).collect::<Result<_>>()? })
}

fn identity_account(account_type: &str, account: &str) -> Result<KeyAccount> {
    let account = KeyAccount::parse(account_type, account);
    account.ok_or_else(|| Error::internal("trefoil_identities: cannot read `account`"))
}

fn session_account(account_type: &str, account: &str) -> Result<RecordId> {
    let account = KeyAccount::parse(account_type, account);
    Ok(account.ok_or_else(|| Error::internal("trefoil_sessions: cannot read `account`"))?.id)
}

fn link_of(account_type: &str, account: &str, expires: i64) -> Result<LinkRecord> {
    let wrong = |column: &str| Error::internal(format!("trefoil_links: cannot read `{column}`"));
    let account = match (account_type, account) {
        ("", "") => None,
        (name, id) => Some(KeyAccount::parse(name, id).ok_or_else(|| wrong("account"))?),
    };
    let expires = Timestamp::from_second(expires).map_err(|_| wrong("expires"))?;
    Ok(LinkRecord { account, expires })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_between_the_bounds_wherever_these_differ() {
        for (first, last) in
            [("1", "97"), ("10", "19"), ("\"0190a1b2-0000\"", "\"01f3c4d5-ffff\""), ("\"ada\"", "\"zoe\"")]
        {
            let mut found: Vec<String> =
                (0..1_000_u64).map(|place| text_between(first, last, place << 40 | place)).collect();
            assert!(found.iter().all(|text| text.as_str() >= &first[..1]), "{first}");
            let inside = found.iter().filter(|text| text.as_str() > first && text.as_str() < last).count();
            assert!(inside > 800, "{first} {last}: {inside}");
            found.sort_unstable();
            found.dedup();
            assert!(found.len() > 800, "{first} {last}: {}", found.len());
        }
        // With one account, any place finds it.
        assert!(!text_between("7", "7", 12).is_empty());
    }
}
