//! `[[auth.jwt]]` of `trefoil.toml`: the issuers whose tokens the application trusts.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use trefoil_config::{
    AccountClaim, IssuerKeySource, PUBLIC_KEY_ALGORITHMS, SECRET_ALGORITHMS, SETTINGS, Setting, TokenIssuer,
};
use trefoil_model::naming::names::nearest_name;
use trefoil_model::{Diagnostic, Model, RecordType};

use crate::manifest_reader::{MANIFEST_FILE, ManifestReader, TomlValue};

const KEYS: [&str; 11] = [
    "issuer",
    "audience",
    "jwks",
    "keys-file",
    "secret-env",
    "secret-file",
    "algorithms",
    "roles",
    "role-map",
    "account",
    "header",
];

/// How the table is written.
const PLACE: &str = "[[auth.jwt]]";

pub(crate) const ISSUER_EXAMPLE: &str = "issuer = \"https://login.example.org\"";

/// Headers that cannot carry a token.
const TAKEN_HEADERS: [&str; 5] = ["authorization", "cookie", "host", "origin", "content-type"];

/// The issuers of the table `[auth]`.
pub(crate) fn read_token_issuers(reader: &mut ManifestReader, auth: &DeTable) -> Vec<TokenIssuer> {
    let settings = SETTINGS.iter().map(Setting::key).filter(|(table, _)| *table == Some("auth"));
    let keys: Vec<&str> = ["jwt", "oidc"].into_iter().chain(settings.map(|(_, key)| key)).collect();
    reader.refuse_unknown_keys(auth, "[auth]", &keys);
    let tables = reader.tables(auth, "jwt");
    tables.into_iter().filter_map(|(table, span)| read_token_issuer(reader, table, span)).collect()
}

fn read_token_issuer(
    reader: &mut ManifestReader,
    table: &DeTable,
    span: Range<usize>,
) -> Option<TokenIssuer> {
    reader.refuse_unknown_keys(table, PLACE, &KEYS);
    let issuer = required_text(reader, (table, PLACE, &span), "issuer", ISSUER_EXAMPLE);
    let audiences = texts(reader, table, "audience");
    if audiences.as_ref().is_none_or(Vec::is_empty) && reader_has_no_report(table, "audience") {
        let message = "[[auth.jwt]] has no `audience`";
        let help = "add audience = \"…\": a token must say that it is for this application";
        reader.report(&span, message).help = Some(help.to_owned());
    }
    let keys = read_key_source(reader, table, issuer.as_deref(), &span);
    let algorithms = keys.as_ref().map(|keys| read_algorithms(reader, table, keys.is_secret()));
    let roles = reader.string(table, "roles").map(toml::Spanned::into_inner);
    let role_map = read_role_map(reader, table, &span);
    let account = read_account_claim(reader, table);
    let header = read_header(reader, table);
    Some(TokenIssuer {
        issuer: issuer?,
        audiences: audiences?,
        keys: keys?,
        algorithms: algorithms?,
        roles,
        role_map,
        account,
        header,
    })
}

fn reader_has_no_report(table: &DeTable, key: &str) -> bool {
    table.get(key).is_none_or(|value| value.as_ref().as_array().is_some_and(|items| items.is_empty()))
}

/// A text that a table must have; `place` is how the table is written.
pub(crate) fn required_text(
    reader: &mut ManifestReader,
    (table, place, span): (&DeTable, &str, &Range<usize>),
    key: &str,
    example: &str,
) -> Option<String> {
    if !table.contains_key(key) {
        reader.report(span, format!("{place} has no `{key}`")).help = Some(format!("add {example}"));
    }
    reader.string(table, key).map(toml::Spanned::into_inner)
}

/// A text or a list of texts.
pub(crate) fn texts(reader: &mut ManifestReader, table: &DeTable, key: &str) -> Option<Vec<String>> {
    let value = table.get(key)?;
    let expected = "a quoted string or a list of such";
    match value.as_ref() {
        DeValue::String(text) => Some(vec![text.to_string()]),
        DeValue::Array(items) => {
            let texts: Option<Vec<String>> =
                items.iter().map(|item| item.as_ref().as_str().map(str::to_owned)).collect();
            texts.or_else(|| reader.report_wrong_type(value, key, expected))
        }
        DeValue::Boolean(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Datetime(_)
        | DeValue::Table(_) => reader.report_wrong_type(value, key, expected),
    }
}

/// One of the places of keys; without any, the issuer says where they are.
fn read_key_source(
    reader: &mut ManifestReader,
    table: &DeTable,
    issuer: Option<&str>,
    span: &Range<usize>,
) -> Option<IssuerKeySource> {
    let mut given = Vec::new();
    for key in ["jwks", "keys-file", "secret-env", "secret-file"] {
        let Some(text) = reader.string(table, key) else { continue };
        let text_span = text.span();
        given.push((key, text.into_inner(), text_span));
    }
    if let [_, (second, _, second_span), ..] = given.as_slice() {
        let message = format!("`{second}` is a second place for keys");
        let help = "keep one of jwks, keys-file, secret-env and secret-file".to_owned();
        reader.report(second_span, message).help = Some(help);
        return None;
    }
    let Some((key, text, text_span)) = given.pop() else {
        let is_named =
            ["jwks", "keys-file", "secret-env", "secret-file"].iter().any(|key| table.contains_key(*key));
        if is_named {
            return None;
        }
        let issuer = issuer?;
        if let Err(reason) = check_address(issuer) {
            let message =
                format!("[[auth.jwt]] has no keys, and `issuer` is no address to find them at: {reason}");
            let help = "add jwks, keys-file, secret-env or secret-file".to_owned();
            reader.report(span, message).help = Some(help);
            return None;
        }
        return Some(IssuerKeySource::Discovery);
    };
    if text.is_empty() {
        reader.report(&text_span, format!("`{key}` is empty"));
        return None;
    }
    Some(match key {
        "jwks" => {
            if let Err(reason) = check_address(&text) {
                reader.report(&text_span, format!("`jwks`: {reason}"));
                return None;
            }
            IssuerKeySource::Address(text)
        }
        "keys-file" => IssuerKeySource::File(text.into()),
        "secret-env" => IssuerKeySource::SecretVariable(text),
        _ => IssuerKeySource::SecretFile(text.into()),
    })
}

/// Keys come over https, or from this machine.
pub(crate) fn check_address(address: &str) -> Result<(), String> {
    let url = url::Url::parse(address).map_err(|_| format!("{address:?} is not an address"))?;
    let is_local = match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match url.scheme() {
        "https" if url.host().is_some() => Ok(()),
        "http" if is_local => Ok(()),
        _ => Err(format!("{address:?} must begin with https:// (http:// only for this machine)")),
    }
}

fn read_algorithms(reader: &mut ManifestReader, table: &DeTable, is_secret: bool) -> Vec<String> {
    let (fitting, kind): (&[&str], _) =
        if is_secret { (&SECRET_ALGORITHMS, "a secret") } else { (&PUBLIC_KEY_ALGORITHMS, "public keys") };
    let all = || fitting.iter().map(|name| (*name).to_owned()).collect();
    let Some(written) = texts(reader, table, "algorithms") else { return all() };
    let Some(value) = table.get("algorithms") else { return all() };
    for name in written.iter().filter(|name| !fitting.contains(&name.as_str())) {
        let message = format!("`algorithms`: `{name}` is none for {kind}");
        let help = nearest_name(name, fitting.iter().copied()).map_or_else(
            || format!("expected some of {}", fitting.join(", ")),
            |nearest| format!("did you mean `{nearest}`?"),
        );
        reader.report(&value.span(), message).help = Some(help);
    }
    if written.is_empty() {
        reader.report(&value.span(), "`algorithms` is empty, so no token would be good");
    }
    written
}

/// `role-map`, which needs `roles`; `span` is the table's.
pub(crate) fn read_role_map(
    reader: &mut ManifestReader,
    table: &DeTable,
    span: &Range<usize>,
) -> Option<Vec<(String, String)>> {
    let expected = "a table, written as { \"name\" = \"ROLE\" }";
    let pairs = text_pairs(reader, table, "role-map", (expected, "a role in quotes"));
    if pairs.is_some() && !table.contains_key("roles") {
        let message = "`role-map` needs `roles`, the claim whose names it maps";
        reader.report(span, message).help = Some("add roles = \"groups\"".to_owned());
    }
    pairs
}

/// The names of an inline table with their texts; `expected` says what it must be, and each of its values.
pub(crate) fn text_pairs(
    reader: &mut ManifestReader,
    table: &DeTable,
    key: &str,
    (expected, expected_value): (&str, &str),
) -> Option<Vec<(String, String)>> {
    let map = inline_table(reader, table, key, expected)?;
    let mut pairs = Vec::new();
    for (name, value) in map {
        let name: &str = name.as_ref();
        match value.as_ref().as_str() {
            Some(value) => pairs.push((name.to_owned(), value.to_owned())),
            None => {
                reader.report_wrong_type::<()>(value, name, expected_value);
            }
        }
    }
    Some(pairs)
}

pub(crate) fn read_account_claim(reader: &mut ManifestReader, table: &DeTable) -> Option<AccountClaim> {
    let expected = "a table, written as { claim = \"email\", field = \"email\" }";
    let account = inline_table(reader, table, "account", expected)?;
    reader.refuse_unknown_keys(account, "`account`", &["claim", "field"]);
    let span = table.get("account").map(TomlValue::span).unwrap_or_default();
    let [claim, field] = ["claim", "field"].map(|key| {
        if !account.contains_key(key) {
            reader.report(&span, format!("`account` has no `{key}`")).help =
                Some(format!("it is {expected}"));
        }
        reader.string(account, key).map(toml::Spanned::into_inner)
    });
    Some(AccountClaim { claim: claim?, field: field? })
}

fn inline_table<'v, 'd>(
    reader: &mut ManifestReader,
    table: &'v DeTable<'d>,
    key: &str,
    expected: &str,
) -> Option<&'v DeTable<'d>> {
    let value = table.get(key)?;
    value.as_ref().as_table().or_else(|| reader.report_wrong_type(value, key, expected))
}

fn read_header(reader: &mut ManifestReader, table: &DeTable) -> Option<String> {
    let written = reader.string(table, "header")?;
    let name = written.as_ref().to_ascii_lowercase();
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) || TAKEN_HEADERS.contains(&name.as_str()) {
        let message = format!("`{}` is not a header for tokens", written.as_ref());
        let help = "leave `header` out for Authorization, or name the one that your proxy sets".to_owned();
        reader.report(&written.span(), message).help = Some(help);
        return None;
    }
    Some(name)
}

/// What the issuers name that the schema does not have.
pub(crate) fn issuer_mismatches(issuers: &[TokenIssuer], model: &Model) -> Vec<Diagnostic> {
    let mut mistakes = Vec::new();
    let mut report = |message: String, help: String| {
        let mut mistake = Diagnostic::in_file(MANIFEST_FILE, "MANIFEST", message);
        mistake.help = Some(help);
        mistakes.push(mistake);
    };
    let Some(access) = &model.access else { return mistakes };
    for issuer in issuers {
        for (message, help) in unknown_roles(issuer.role_map.as_deref().unwrap_or_default(), &access.roles) {
            report(message, help);
        }
        let Some(claim) = &issuer.account else { continue };
        let Some(account) = &access.account else {
            report(
                "`account` of [[auth.jwt]]: no type of the schema has @account".to_owned(),
                "remove `account`, or add @account to the type of people".to_owned(),
            );
            continue;
        };
        if let Some((message, help)) = ambiguous_account(claim, model.record(account.record)) {
            report(message, help);
        }
    }
    mistakes
}

/// The roles of a map that the schema does not have: messages with help.
pub(crate) fn unknown_roles<'m>(
    role_map: &'m [(String, String)],
    roles: &'m [String],
) -> impl Iterator<Item = (String, String)> + 'm {
    role_map.iter().filter(|(_, role)| !roles.contains(role)).map(|(name, role)| {
        let nearest = nearest_name(role, roles.iter().map(String::as_str));
        let help = nearest.map_or_else(
            || format!("it has {}", roles.join(", ")),
            |nearest| format!("did you mean `{nearest}`?"),
        );
        (format!("`role-map`: the schema has no role `{role}` for \"{name}\""), help)
    })
}

/// Why no account, or more than one, could be the one that a claim names: a message with help.
pub(crate) fn ambiguous_account(claim: &AccountClaim, record: &RecordType) -> Option<(String, String)> {
    let found = record.find_field(&claim.field).map(|id| record.field(id));
    if found.is_some_and(|field| field.unique || field.kind.is_id()) {
        return None;
    }
    let unique = record.fields.iter().filter(|field| field.unique || field.kind.is_id());
    let names: Vec<&str> = unique.map(|field| field.name.as_str()).collect();
    Some((
        format!("`account`: `{}` is not a @unique field of `{}`", claim.field, record.name),
        format!("name one of {}", names.join(", ")),
    ))
}
