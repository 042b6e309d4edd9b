//! `[[auth.oidc]]` of `trefoil.toml`: the OpenID providers that people sign in with.

use std::collections::HashMap;
use std::ops::Range;

use toml::de::DeTable;

use trefoil_config::{AccountClaim, OpenIdProvider, SecretSource};
use trefoil_model::access::AccountType;
use trefoil_model::naming::names::nearest_name;
use trefoil_model::{Diagnostic, Field, Model};

use crate::manifest_reader::{MANIFEST_FILE, ManifestReader, TomlValue};
use crate::token_issuers::{
    ISSUER_EXAMPLE, ambiguous_account, check_address, read_account_claim, read_role_map, required_text,
    text_pairs, texts, unknown_roles,
};

/// How the table is written.
const PLACE: &str = "[[auth.oidc]]";

const KEYS: [&str; 10] = [
    "name",
    "issuer",
    "client-id",
    "client-secret-env",
    "client-secret-file",
    "scopes",
    "account",
    "fields",
    "roles",
    "role-map",
];

/// What is asked for, unless the table says otherwise.
const DEFAULT_SCOPES: [&str; 3] = ["openid", "email", "profile"];

/// The longest name of a button.
const MAX_NAME: usize = 60;

/// A provider, and where it is declared.
#[derive(Debug)]
pub struct DeclaredProvider {
    pub provider: OpenIdProvider,
    span: Range<usize>,
    /// Of the values, by their keys.
    spans: HashMap<String, Range<usize>>,
}

impl DeclaredProvider {
    fn span_of(&self, key: &str) -> Range<usize> {
        self.spans.get(key).unwrap_or(&self.span).clone()
    }
}

/// The providers of the table `[auth]`.
pub(crate) fn read_openid_providers(reader: &mut ManifestReader, auth: &DeTable) -> Vec<DeclaredProvider> {
    let mut found: Vec<DeclaredProvider> = Vec::new();
    for (table, span) in reader.tables(auth, "oidc") {
        let Some(declared) = read_openid_provider(reader, table, span) else { continue };
        for (key, help) in [
            ("name", "give each button words of its own"),
            ("issuer", "an issuer signs in with one client: remove one of the two"),
        ] {
            let text = |declared: &DeclaredProvider| match key {
                "name" => declared.provider.name.clone(),
                _ => declared.provider.issuer.clone(),
            };
            if found.iter().any(|other| text(other) == text(&declared)) {
                let message = format!("another {PLACE} has this `{key}`");
                reader.report(&declared.span_of(key), message).help = Some(help.to_owned());
            }
        }
        found.push(declared);
    }
    found
}

fn read_openid_provider(
    reader: &mut ManifestReader,
    table: &DeTable,
    span: Range<usize>,
) -> Option<DeclaredProvider> {
    reader.refuse_unknown_keys(table, PLACE, &KEYS);
    let name = required_text(reader, (table, PLACE, &span), "name", "name = \"Company login\"");
    let name = name.and_then(|name| check_name(reader, table, name));
    let issuer = required_text(reader, (table, PLACE, &span), "issuer", ISSUER_EXAMPLE);
    let issuer = issuer.and_then(|issuer| check_issuer(reader, table, issuer));
    let client_id = required_text(reader, (table, PLACE, &span), "client-id", "client-id = \"trefoil\"");
    if client_id.as_ref().is_some_and(String::is_empty) {
        report_empty(reader, table, "client-id");
    }
    let client_secret = read_client_secret(reader, table);
    let scopes = read_scopes(reader, table);
    let account = read_account_claim(reader, table);
    let expected = "a table, written as { name = \"name\" }: a field, and the claim that fills it";
    let fields = text_pairs(reader, table, "fields", (expected, "a claim in quotes")).unwrap_or_default();
    let roles = reader.string(table, "roles").map(toml::Spanned::into_inner);
    let role_map = read_role_map(reader, table, &span);
    let spans = table.iter().map(|(key, value)| (key.as_ref().to_string(), value.span()));
    let provider = OpenIdProvider {
        name: name?,
        issuer: issuer?,
        client_id: client_id?,
        client_secret,
        scopes,
        account,
        fields: fields.into_iter().map(|(field, claim)| AccountClaim { claim, field }).collect(),
        roles,
        role_map,
    };
    Some(DeclaredProvider { provider, spans: spans.collect(), span })
}

fn value_span(table: &DeTable, key: &str) -> Range<usize> {
    table.get(key).map(TomlValue::span).unwrap_or_default()
}

fn report_empty(reader: &mut ManifestReader, table: &DeTable, key: &str) {
    reader.report(&value_span(table, key), format!("`{key}` is empty"));
}

fn check_name(reader: &mut ManifestReader, table: &DeTable, name: String) -> Option<String> {
    if name.trim().is_empty() {
        report_empty(reader, table, "name");
        return None;
    }
    if name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        let message = format!("`name` is the words of a button: at most {MAX_NAME} characters in one line");
        reader.report(&value_span(table, "name"), message);
        return None;
    }
    Some(name)
}

/// People are led there, and what it publishes is read: over https, or http on this machine.
fn check_issuer(reader: &mut ManifestReader, table: &DeTable, issuer: String) -> Option<String> {
    let reason = match check_address(&issuer) {
        Err(reason) => reason,
        Ok(()) if issuer.contains(['?', '#']) => format!("{issuer:?} must have no query and no fragment"),
        Ok(()) => return Some(issuer),
    };
    reader.report(&value_span(table, "issuer"), format!("`issuer`: {reason}"));
    None
}

/// A public client has none.
fn read_client_secret(reader: &mut ManifestReader, table: &DeTable) -> Option<SecretSource> {
    let variable = reader.string(table, "client-secret-env");
    let file = reader.string(table, "client-secret-file");
    if let (Some(_), Some(file)) = (&variable, &file) {
        let message = "`client-secret-file` is a second place for the secret";
        reader.report(&file.span(), message).help =
            Some("keep one of client-secret-env and client-secret-file".to_owned());
    }
    for (key, text) in [("client-secret-env", &variable), ("client-secret-file", &file)] {
        if text.as_ref().is_some_and(|text| text.as_ref().is_empty()) {
            report_empty(reader, table, key);
        }
    }
    let variable = variable.map(|name| SecretSource::Variable(name.into_inner()));
    variable.or_else(|| file.map(|path| SecretSource::File(path.into_inner().into())))
}

fn read_scopes(reader: &mut ManifestReader, table: &DeTable) -> Vec<String> {
    let written = texts(reader, table, "scopes");
    let Some(scopes) = written else { return DEFAULT_SCOPES.map(str::to_owned).to_vec() };
    let span = value_span(table, "scopes");
    let is_token = |scope: &String| {
        !scope.is_empty() && scope.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte))
    };
    for scope in scopes.iter().filter(|scope| !is_token(scope)) {
        reader.report(&span, format!("`scopes`: {scope:?} is no scope")).help =
            Some("write a list, such as [\"openid\", \"email\"]".to_owned());
    }
    if !scopes.iter().any(|scope| scope == "openid") {
        reader.report(&span, "`scopes` has no \"openid\", without which nobody is signed in").help =
            Some("add \"openid\"".to_owned());
    }
    scopes
}

/// What the providers name that the schema does not have; `text` is the manifest.
pub(crate) fn provider_mismatches(
    providers: &[DeclaredProvider],
    text: &str,
    model: &Model,
) -> Vec<Diagnostic> {
    let access = model.access.as_ref();
    let account = access.and_then(|access| access.account.as_ref());
    let roles = access.map_or(&[][..], |access| &access.roles);
    let mistakes = providers.iter().flat_map(|declared| {
        let found = match account {
            Some(account) => account_mismatches(declared, model, account, roles),
            None => vec![(
                declared.span.clone(),
                format!("`{PLACE}` has no effect: no type of the schema has @account"),
                "add @account to the type of people, or remove the table".to_owned(),
            )],
        };
        found.into_iter().map(|(span, message, help)| {
            let mut mistake = Diagnostic::in_file(MANIFEST_FILE, "MANIFEST", message);
            mistake.help = Some(help);
            mistake.with_span(MANIFEST_FILE, text, span)
        })
    });
    mistakes.collect()
}

fn account_mismatches(
    declared: &DeclaredProvider,
    model: &Model,
    account: &AccountType,
    roles: &[String],
) -> Vec<(Range<usize>, String, String)> {
    let OpenIdProvider { account: claim, fields, role_map, .. } = &declared.provider;
    let record = model.record(account.record);
    let mut found = Vec::new();
    for (message, help) in unknown_roles(role_map.as_deref().unwrap_or_default(), roles) {
        found.push((declared.span_of("role-map"), message, help));
    }
    if let Some((message, help)) = claim.as_ref().and_then(|claim| ambiguous_account(claim, record)) {
        found.push((declared.span_of("account"), message, help));
    }
    if claim.is_none() && !account.has_sign_up {
        found.push((
            declared.span.clone(),
            format!("{PLACE} has no `account`, and people do not sign up: nobody could sign in with it"),
            "add account = { claim = \"email\", field = \"email\" }".to_owned(),
        ));
    }
    for AccountClaim { field, .. } in fields {
        let known = record.find_field(field).map(|id| record.field(id));
        // No references: a claim is no record that somebody has chosen among those that they can read.
        let is_open =
            |field: &Field| field.is_writable() && field.kind.value_type().is_some() && !field.kind.is_id();
        if known.is_some_and(is_open) {
            continue;
        }
        let message = match known {
            Some(_) => format!("`fields`: `{field}` of `{}` is no value that can be set", record.name),
            None => format!("`fields`: `{}` has no field `{field}`", record.name),
        };
        let writable = || record.fields.iter().filter(|field| is_open(field));
        let nearest = nearest_name(field, writable().map(|field| field.name.as_str()));
        let names = || writable().map(|field| field.name.as_str()).collect::<Vec<_>>().join(", ");
        let help = nearest
            .map_or_else(|| format!("it has {}", names()), |nearest| format!("did you mean `{nearest}`?"));
        found.push((declared.span_of("fields"), message, help));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Manifest;

    const GOOD: &str = "name = \"Company login\"\nissuer = \"https://a.example\"\nclient-id = \"shop\"\n";

    fn mistakes(text: &str) -> Vec<String> {
        Manifest::parse(text).1.iter().map(Diagnostic::to_string).collect()
    }

    #[test]
    fn providers_are_read() {
        let text = format!(
            "[[auth.oidc]]\n{GOOD}client-secret-env = \"SECRET\"\nscopes = [\"openid\", \"groups\"]\n\
             account = {{ claim = \"email\", field = \"mail\" }}\nfields = {{ name = \"given_name\" }}\n\
             roles = \"realm.roles\"\nrole-map = {{ \"shop admins\" = \"ADMIN\" }}\n\
             [[auth.oidc]]\nname = \"Other\"\nissuer = \"http://localhost:8000/x\"\nclient-id = \"s\"\n"
        );
        let (manifest, found) = Manifest::parse(&text);
        assert_eq!(found, []);
        let [first, second] = manifest.openid_providers.as_slice() else { panic!("{manifest:?}") };
        let claim =
            |claim: &str, field: &str| AccountClaim { claim: claim.to_owned(), field: field.to_owned() };
        let expected = OpenIdProvider {
            name: "Company login".to_owned(),
            issuer: "https://a.example".to_owned(),
            client_id: "shop".to_owned(),
            client_secret: Some(SecretSource::Variable("SECRET".to_owned())),
            scopes: vec!["openid".to_owned(), "groups".to_owned()],
            account: Some(claim("email", "mail")),
            fields: vec![claim("given_name", "name")],
            roles: Some("realm.roles".to_owned()),
            role_map: Some(vec![("shop admins".to_owned(), "ADMIN".to_owned())]),
        };
        assert_eq!(first.provider, expected);
        assert_eq!((second.provider.client_secret.as_ref(), second.provider.account.as_ref()), (None, None));
        assert_eq!(second.provider.scopes, DEFAULT_SCOPES);
    }

    #[test]
    fn providers_that_nobody_could_use_are_mistakes() {
        let with = |lines: &str| format!("[[auth.oidc]]\n{GOOD}{lines}");
        let instead = |key: &str, line: &str| {
            let kept: Vec<&str> = GOOD.lines().filter(|line| !line.starts_with(key)).collect();
            format!("[[auth.oidc]]\n{}\n{line}", kept.join("\n"))
        };
        for (text, expected) in [
            (instead("name", ""), "1:1: [[auth.oidc]] has no `name`"),
            (instead("name", "name = \" \""), "4:8: `name` is empty"),
            (instead("name", "name = \"a\\nb\""), "4:8: `name` is the words of a button"),
            (instead("issuer", ""), "1:1: [[auth.oidc]] has no `issuer`"),
            (
                instead("issuer", "issuer = \"http://a.example\""),
                "4:10: `issuer`: \"http://a.example\" must begin with https://",
            ),
            (
                instead("issuer", "issuer = \"https://a.example/?a\""),
                "4:10: `issuer`: \"https://a.example/?a\" must have no query",
            ),
            (instead("issuer", "issuer = \"login\""), "4:10: `issuer`: \"login\" is not an address"),
            (instead("client-id", ""), "1:1: [[auth.oidc]] has no `client-id`"),
            (instead("client-id", "client-id = \"\""), "4:13: `client-id` is empty"),
            (with("client-secret = \"x\""), "5:1: unknown key `client-secret` in [[auth.oidc]]"),
            (with("client-secret-env = \"\""), "5:21: `client-secret-env` is empty"),
            (
                with("client-secret-env = \"A\"\nclient-secret-file = \"a\""),
                "6:22: `client-secret-file` is a second place for the secret",
            ),
            (with("scopes = [\"email\"]"), "5:10: `scopes` has no \"openid\""),
            (with("scopes = [\"openid email\", \"openid\"]"), "5:10: `scopes`: \"openid email\" is no scope"),
            (with("scopes = 7"), "5:10: `scopes` must be a quoted string or a list"),
            (with("account = { claim = \"email\" }"), "5:11: `account` has no `field`"),
            (with("fields = { name = 7 }"), "5:19: `name` must be a claim in quotes"),
            (with("role-map = { a = \"ADMIN\" }"), "1:1: `role-map` needs `roles`"),
            (
                format!("{}{}", with(""), with("")).replacen("Company", "Other", 1),
                "7:10: another [[auth.oidc]] has this `issuer`",
            ),
            (
                format!("{}{}", with(""), with("")).replacen("a.example", "b.example", 1),
                "6:8: another [[auth.oidc]] has this `name`",
            ),
        ] {
            let found = mistakes(&text);
            assert!(
                found.len() == 1 && found[0].starts_with(&format!("trefoil.toml:{expected}")),
                "{text}: {found:?}"
            );
        }
    }
}
