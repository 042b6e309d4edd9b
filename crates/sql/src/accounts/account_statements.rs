//! The statements of a change of accounts, which are the same on both databases.

use jiff::Timestamp;

use trefoil_engine::{AccountChange, AuditNote, KeyAccount, KnownNetwork};

use crate::accounts::SIGN_IN_KEY;

/// The most sessions of one account.
const MAX_SESSIONS: i64 = 50;

/// A value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum AccountValue {
    Text(String),
    OptionalText(Option<String>),
    Integer(i64),
    NoInteger,
}

/// One statement with its parameters. SQLite numbers them in the order in which they are written.
pub struct AccountStatement {
    pub sql: &'static str,
    pub values: Vec<AccountValue>,
    /// If it changes nothing, all is undone.
    pub must_change: bool,
}

/// The statements of a change, in order.
pub fn statements_of(change: AccountChange) -> Vec<AccountStatement> {
    match change {
        AccountChange::SetPassword { account, hash } => vec![may_change(
            "INSERT INTO trefoil_passwords (account_type, account, hash, networks) VALUES ($1, $2, $3, '[]') \
             ON CONFLICT (account_type, account) DO UPDATE SET hash = excluded.hash",
            with_account(account, [text(hash)]),
        )],
        AccountChange::ReplaceHash { account, known, hash } => vec![must_change(
            "UPDATE trefoil_passwords SET hash = $1 WHERE account_type = $2 AND account = $3 AND hash = $4",
            [vec![text(hash)], with_account(account, [text(known)])].concat(),
        )],
        AccountChange::SetNetworks { account, networks } => vec![may_change(
            "UPDATE trefoil_passwords SET networks = $1 WHERE account_type = $2 AND account = $3",
            [vec![text(networks_text(&networks))], with_account(account, [])].concat(),
        )],
        AccountChange::AddSession { hash, session } => {
            let roles = serde_json::Value::from(session.roles).to_string();
            let optional = AccountValue::OptionalText;
            let own = [
                text(roles),
                seconds(session.created),
                seconds(session.seen),
                seconds(session.expires),
                optional(session.address),
                optional(session.browser),
                text(hash.clone()),
            ];
            vec![
                must_change(
                    "INSERT INTO trefoil_sessions \
                     (account_type, account, roles, created, seen, expires, address, browser, hash) \
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                    with_account(session.account.clone(), own),
                ),
                may_change(
                    "DELETE FROM trefoil_sessions WHERE account_type = $1 AND account = $2 AND hash NOT IN \
                     (SELECT hash FROM trefoil_sessions WHERE account_type = $1 AND account = $2 \
                     ORDER BY hash = $3 DESC, seen DESC, created DESC LIMIT $4)",
                    with_account(session.account, [text(hash), AccountValue::Integer(MAX_SESSIONS)]),
                ),
            ]
        }
        AccountChange::EndSession { hash } => {
            vec![may_change("DELETE FROM trefoil_sessions WHERE hash = $1", vec![text(hash)])]
        }
        AccountChange::ReplaceSession { hash } => {
            vec![must_change("DELETE FROM trefoil_sessions WHERE hash = $1", vec![text(hash)])]
        }
        AccountChange::EndSessions { account, except } => vec![may_change(
            "DELETE FROM trefoil_sessions WHERE account_type = $1 AND account = $2 AND hash <> $3",
            with_account(account, [text(except.unwrap_or_default())]),
        )],
        AccountChange::EndAllSessions => vec![may_change("DELETE FROM trefoil_sessions", Vec::new())],
        AccountChange::Sweep { now, seen_since } => vec![
            may_change(
                "DELETE FROM trefoil_sessions WHERE expires <= $1 OR seen < $2",
                vec![seconds(now), seconds(seen_since)],
            ),
            may_change("DELETE FROM trefoil_links WHERE expires <= $1", vec![seconds(now)]),
        ],
        AccountChange::SetLink { hash, link } => {
            let expires = seconds(link.expires);
            vec![may_change(
                "INSERT INTO trefoil_links (account_type, account, expires, hash) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (account_type, account) DO UPDATE SET hash = excluded.hash, expires = excluded.expires",
                [account_values(link.account), vec![expires, text(hash)]].concat(),
            )]
        }
        AccountChange::UseLink { hash, now } => vec![must_change(
            "DELETE FROM trefoil_links WHERE hash = $1 AND expires > $2",
            vec![text(hash), seconds(now)],
        )],
        AccountChange::DropLink { account } => vec![may_change(
            "DELETE FROM trefoil_links WHERE account_type = $1 AND account = $2",
            with_account(account, []),
        )],
        AccountChange::DropPassword { account } => vec![may_change(
            "DELETE FROM trefoil_passwords WHERE account_type = $1 AND account = $2",
            with_account(account, []),
        )],
        AccountChange::AddIdentity { identity, account, now } => {
            let own = [text(identity.issuer), text(identity.subject), seconds(now)];
            vec![must_change(
                "INSERT INTO trefoil_identities (account_type, account, issuer, subject, linked) \
                 VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
                with_account(account, own),
            )]
        }
        // Holds the row until the end: a deletion of the account waits, and then finds what goes along.
        AccountChange::KeepIdentity { identity, account } => {
            let own = vec![text(identity.issuer), text(identity.subject)];
            vec![must_change(
                "UPDATE trefoil_identities SET linked = linked \
                 WHERE issuer = $1 AND subject = $2 AND account_type = $3 AND account = $4",
                [own, with_account(account, [])].concat(),
            )]
        }
        AccountChange::DropIdentity { account, issuer } => vec![may_change(
            "DELETE FROM trefoil_identities WHERE account_type = $1 AND account = $2 AND issuer = $3",
            with_account(account, [text(issuer)]),
        )],
        AccountChange::SetSignInKey { key } => vec![may_change(
            "INSERT INTO trefoil_meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            vec![text(SIGN_IN_KEY.to_owned()), text(key)],
        )],
        AccountChange::UseSignInState { hash, now, expires } => vec![
            may_change("DELETE FROM trefoil_used_states WHERE expires <= $1", vec![seconds(now)]),
            must_change(
                "INSERT INTO trefoil_used_states (hash, expires) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                vec![text(hash), seconds(expires)],
            ),
        ],
        AccountChange::Note(note) => vec![note_statement(*note)],
    }
}

/// Writes an entry of the audit.
fn note_statement(note: AuditNote) -> AccountStatement {
    let optional = AccountValue::OptionalText;
    let (type_name, record) = match &note.account {
        Some(account) => (Some(account.type_name.clone()), Some(KeyAccount::id_text(account))),
        None => (None, None),
    };
    AccountStatement {
        sql: "INSERT INTO trefoil_audit (at, actor, address, request, action, type, record, name, count) \
              VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        values: vec![
            AccountValue::Integer(Timestamp::now().as_microsecond()),
            optional(note.actor),
            optional(note.address),
            optional(note.request),
            AccountValue::Text(note.action.name().to_owned()),
            optional(type_name),
            optional(record),
            optional(note.name),
            note.count.map_or(AccountValue::NoInteger, AccountValue::Integer),
        ],
        must_change: false,
    }
}

fn may_change(sql: &'static str, values: Vec<AccountValue>) -> AccountStatement {
    AccountStatement { sql, values, must_change: false }
}

fn must_change(sql: &'static str, values: Vec<AccountValue>) -> AccountStatement {
    AccountStatement { sql, values, must_change: true }
}

fn text(text: String) -> AccountValue {
    AccountValue::Text(text)
}

fn seconds(time: Timestamp) -> AccountValue {
    AccountValue::Integer(time.as_second())
}

/// Type and id; empty texts for the account that is still to be made.
fn account_values(account: Option<KeyAccount>) -> Vec<AccountValue> {
    let id = account.as_ref().map(KeyAccount::id_text).unwrap_or_default();
    let type_name = account.map(|account| account.type_name).unwrap_or_default();
    vec![text(type_name), text(id)]
}

fn with_account<const N: usize>(account: KeyAccount, values: [AccountValue; N]) -> Vec<AccountValue> {
    [account_values(Some(account)), values.into()].concat()
}

fn networks_text(networks: &[KnownNetwork]) -> String {
    let entries: Vec<(&str, i64)> =
        networks.iter().map(|known| (known.network.as_str(), known.last.as_second())).collect();
    serde_json::to_value(entries).unwrap_or_default().to_string()
}
