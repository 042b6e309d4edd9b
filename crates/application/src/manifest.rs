//! The contents of `trefoil.toml`: settings, text endpoints, plain lists and settings of collections.

use toml::de::{DeTable, DeValue};

use trefoil_config::{FileSetting, SETTINGS, Setting, TokenIssuer};
use trefoil_model::Diagnostic;
use trefoil_model::naming::names::nearest_name;

use crate::endpoints::{self, PlainList, TextEndpoint};
use crate::manifest_reader::{ManifestReader, TomlValue};
use crate::manifest_rule::{ManifestRule, read_rule};
use crate::openid_providers::{self, DeclaredProvider};
use crate::resource_settings::{self, DefaultFormat, ResourceSettings};
use crate::site::SiteTheme;
use crate::site::site_theme::read_theme;
use crate::token_issuers;

/// The contents of `trefoil.toml`.
#[derive(Debug, Default)]
pub struct Manifest {
    /// The name of the application.
    pub name: Option<String>,
    /// Whether ids in GraphQL are global; without it, as the store was created.
    pub global_ids: Option<bool>,
    pub default_format: DefaultFormat,
    pub settings: Vec<FileSetting>,
    pub text_endpoints: Vec<TextEndpoint>,
    pub plain_lists: Vec<PlainList>,
    pub resources: Vec<ResourceSettings>,
    /// Logo and colours of pages.
    pub theme: SiteTheme,
    /// Whose tokens are trusted.
    pub token_issuers: Vec<TokenIssuer>,
    /// Whom people sign in with.
    pub openid_providers: Vec<DeclaredProvider>,
    /// The setting `see-metrics`, with its place.
    pub see_metrics: Option<ManifestRule>,
    /// The same of `see-audit`.
    pub see_audit: Option<ManifestRule>,
    /// There is a table `[auth]`: what no rule allows is refused, whatever the schema says.
    pub has_auth: bool,
}

const TOP_LEVEL_KEYS: [&str; 9] =
    ["name", "global-ids", "default-format", "limits", "text", "list", "resource", "theme", "auth"];

impl Manifest {
    /// The manifest as far as it can be read, and every mistake in it.
    pub fn parse(text: &str) -> (Manifest, Vec<Diagnostic>) {
        let mut reader = ManifestReader::new(text);
        let root = reader.parse();
        if reader.has_diagnostics() {
            // After a syntax error, the rest may not be read as intended.
            return (Manifest::default(), reader.into_diagnostics());
        }
        report_unknown_keys(&mut reader, &root);
        let mut settings = read_settings(&mut reader, &root, SETTINGS.iter(), None);
        if let Some(limits) = reader.table(&root, "limits") {
            report_unknown_limits(&mut reader, limits);
            settings.extend(read_settings(&mut reader, limits, SETTINGS.iter(), Some("limits")));
        }
        let auth = reader.table(&root, "auth");
        let see_metrics = auth.and_then(|auth| read_rule(&mut reader, auth, "see-metrics"));
        let see_audit = auth.and_then(|auth| read_rule(&mut reader, auth, "see-audit"));
        if let Some(auth) = auth {
            // A rule that cannot be read is reported already.
            let rules = [("see-metrics", &see_metrics), ("see-audit", &see_audit)];
            let is_wrong = |key: &str| rules.iter().any(|(name, rule)| *name == key && rule.is_none());
            let own = SETTINGS.iter().filter(|setting| !is_wrong(setting.key().1));
            settings.extend(read_settings(&mut reader, auth, own, Some("auth")));
        }
        let manifest = Manifest {
            name: reader.string(&root, "name").map(toml::Spanned::into_inner),
            global_ids: reader.boolean(&root, "global-ids"),
            default_format: resource_settings::read_default_format(&mut reader, &root).unwrap_or_default(),
            settings,
            text_endpoints: endpoints::read_text_endpoints(&mut reader, &root),
            plain_lists: endpoints::read_plain_lists(&mut reader, &root),
            resources: resource_settings::read_resource_settings(&mut reader, &root),
            theme: read_theme(&mut reader, &root),
            token_issuers: auth
                .map(|auth| token_issuers::read_token_issuers(&mut reader, auth))
                .unwrap_or_default(),
            openid_providers: auth
                .map(|auth| openid_providers::read_openid_providers(&mut reader, auth))
                .unwrap_or_default(),
            see_metrics,
            see_audit,
            has_auth: auth.is_some(),
        };
        endpoints::report_path_clashes(&mut reader, &manifest.text_endpoints, &manifest.plain_lists);
        (manifest, reader.into_diagnostics())
    }

    /// The settings of the collection at this path, without the slash.
    pub fn resource(&self, collection: &str) -> Option<&ResourceSettings> {
        self.resources.iter().find(|resource| resource.collection == collection)
    }

    pub fn default_format_of(&self, resource: Option<&ResourceSettings>) -> DefaultFormat {
        resource.and_then(|resource| resource.default_format).unwrap_or(self.default_format)
    }
}

/// The settings of one table, each with a valid value.
fn read_settings(
    reader: &mut ManifestReader,
    table: &DeTable,
    settings: impl Iterator<Item = &'static Setting>,
    name: Option<&str>,
) -> Vec<FileSetting> {
    let mut found = Vec::new();
    for setting in settings.filter(|setting| setting.key().0 == name) {
        let key = setting.key().1;
        let Some(value) = table.get(key) else { continue };
        let Some(text) = setting_text(value) else {
            reader.report_wrong_type::<()>(
                value,
                key,
                "a string, a number, true or false, or a list of strings",
            );
            continue;
        };
        match setting.check(&text) {
            Ok(()) => found.push(FileSetting { setting, text, line: reader.line(&value.span()) }),
            Err(reason) => {
                reader.report(&value.span(), format!("`{key}`: {reason}"));
            }
        }
    }
    found
}

/// A value in the syntax of a flag.
fn setting_text(value: &TomlValue) -> Option<String> {
    match value.as_ref() {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(value) => Some(value.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string())
        }
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Array(items) => {
            let items: Option<Vec<&str>> = items.iter().map(|item| item.as_ref().as_str()).collect();
            items.map(|items| items.join(","))
        }
        DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}

fn report_unknown_keys(reader: &mut ManifestReader, root: &DeTable) {
    let settings = SETTINGS.iter().filter(|setting| setting.key().0.is_none());
    let known: Vec<&str> = settings.map(|setting| setting.name).chain(TOP_LEVEL_KEYS).collect();
    for key in root.keys().filter(|key| !known.contains(&key.as_ref().as_ref())) {
        let name: &str = key.as_ref();
        let in_table = |setting: &&Setting| name == setting.name || name == setting.key().1;
        let misplaced = SETTINGS.iter().find(in_table).map(Setting::key);
        let help = match (misplaced, nearest_name(name, known.iter().copied())) {
            (Some((Some(table), key)), _) => format!("write it as `{key}` under [{table}]"),
            (Some((None, _)) | None, Some(nearest)) => format!("did you mean `{nearest}`?"),
            (Some((None, _)) | None, None) => "`trefoil serve --help` lists the settings".to_owned(),
        };
        reader.report(&key.span(), format!("unknown key `{name}`")).help = Some(help);
    }
}

fn report_unknown_limits(reader: &mut ManifestReader, table: &DeTable) {
    let known: Vec<&str> = limit_keys().collect();
    reader.refuse_unknown_keys(table, "[limits]", &known);
}

/// The keys of `[limits]`.
fn limit_keys() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().filter(|setting| setting.is_limit()).map(|setting: &Setting| setting.key().1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest_reader;
    use trefoil_config::IssuerKeySource;
    use trefoil_model::SourceFile;

    fn mistakes(text: &str) -> Vec<String> {
        Manifest::parse(text).1.iter().map(Diagnostic::to_string).collect()
    }

    /// Asserts that the text has exactly this mistake.
    fn assert_mistake(text: &str, expected: &str) {
        assert_eq!(mistakes(text), [expected], "{text}");
    }

    #[test]
    fn settings_are_read_with_their_lines() {
        let text = "port = 9_000\nopen = true\ntrusted-proxies = [\"10.0.0.0/8\", \"::1\"]\n[limits]\nbody = \"2 MiB\"\n";
        let (manifest, mistakes) = Manifest::parse(text);
        assert_eq!(mistakes, []);
        let read: Vec<_> =
            manifest.settings.iter().map(|read| (read.setting.name, read.text.as_str(), read.line)).collect();
        let expected = [
            ("port", "9000", 1),
            ("open", "true", 2),
            ("trusted-proxies", "10.0.0.0/8,::1", 3),
            ("limit-body", "2 MiB", 5),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn unknown_keys_are_reported_with_suggestion() {
        assert_mistake("prot = 1", "trefoil.toml:1:1: unknown key `prot`; did you mean `port`?");
        assert_mistake(
            "\n[limits]\nbdoy = 1",
            "trefoil.toml:3:1: unknown key `bdoy` in [limits]; did you mean `body`?",
        );
        assert_mistake(
            "limit-body = 1",
            "trefoil.toml:1:1: unknown key `limit-body`; write it as `body` under [limits]",
        );
        assert_mistake(
            "depth = 3",
            "trefoil.toml:1:1: unknown key `depth`; write it as `depth` under [limits]",
        );
        assert_mistake(
            "[auth]\nurl = 1",
            "trefoil.toml:2:1: unknown key `url` in [auth]; expected one of jwt, oidc, see-metrics, see-audit, audit, audit-for, session-idle, session-lifetime, link-lifetime, password-length, password-memory, password-rounds, insecure",
        );
        for name in ["see-metrics", "auth-see-metrics"] {
            let expected =
                format!("trefoil.toml:1:1: unknown key `{name}`; write it as `see-metrics` under [auth]");
            assert_mistake(&format!("{name} = true"), &expected);
        }
        let nobody = "trefoil.toml:2:15: `see-metrics`: ";
        assert!(mistakes("[auth]\nsee-metrics = \"\"")[0].starts_with(nobody));
        assert_mistake(
            "zzzzzz = 1",
            "trefoil.toml:1:1: unknown key `zzzzzz`; `trefoil serve --help` lists the settings",
        );
        let misplaced = "[[list]]\npath = \"/items\"\nport = 1";
        let expected = "trefoil.toml:3:1: unknown key `port` in [[list]]; move the setting `port` above the first [table] of the file";
        assert_mistake(misplaced, expected);
        assert_mistake(
            "[resource.users]\ncahce = \"x\"",
            "trefoil.toml:2:1: unknown key `cahce` in [resource.users]; did you mean `cache`?",
        );
    }

    #[test]
    fn issuers_of_tokens_are_read() {
        let text = "[[auth.jwt]]\nissuer = \"https://a.example\"\naudience = [\"shop\", \"api\"]\nroles = \"realm.roles\"\n\
                    role-map = { \"shop admins\" = \"ADMIN\" }\naccount = { claim = \"email\", field = \"email\" }\n\
                    header = \"Cf-Access-Jwt-Assertion\"\n\
                    [[auth.jwt]]\nissuer = \"own\"\naudience = \"shop\"\nsecret-env = \"SECRET\"\nalgorithms = \"HS512\"\n";
        let (manifest, mistakes) = Manifest::parse(text);
        assert_eq!(mistakes, []);
        let [first, second] = manifest.token_issuers.as_slice() else { panic!("{manifest:?}") };
        assert_eq!(first.keys, IssuerKeySource::Discovery);
        assert_eq!(first.audiences, ["shop", "api"]);
        assert_eq!(first.algorithms, ["RS256", "PS256", "ES256", "ES384", "EdDSA"]);
        assert_eq!(first.role_map, Some(vec![("shop admins".to_owned(), "ADMIN".to_owned())]));
        assert_eq!(first.account.as_ref().map(|account| account.claim.as_str()), Some("email"));
        assert_eq!(first.header.as_deref(), Some("cf-access-jwt-assertion"));
        assert_eq!(second.keys, IssuerKeySource::SecretVariable("SECRET".to_owned()));
        assert_eq!(second.algorithms, ["HS512"]);
        assert_eq!((second.roles.as_ref(), second.header.as_ref()), (None, None));
    }

    #[test]
    fn issuers_that_nobody_could_use_are_mistakes() {
        let with = |lines: &str| format!("[[auth.jwt]]\naudience = \"a\"\n{lines}");
        let own = "issuer = \"https://a.example\"\n";
        for (text, expected) in [
            (with(""), "1:1: [[auth.jwt]] has no `issuer`"),
            (format!("[[auth.jwt]]\n{own}"), "1:1: [[auth.jwt]] has no `audience`"),
            (format!("[[auth.jwt]]\n{own}audience = []"), "1:1: [[auth.jwt]] has no `audience`"),
            (
                format!("[[auth.jwt]]\n{own}audience = 7"),
                "3:12: `audience` must be a quoted string or a list",
            ),
            (with("issuer = \"own\""), "1:1: [[auth.jwt]] has no keys, and `issuer` is no address"),
            (
                with(&format!("{own}jwks = \"http://keys.example\"")),
                "4:8: `jwks`: \"http://keys.example\" must begin with https://",
            ),
            (
                with(&format!("{own}jwks = \"https://k.example\"\nsecret-env = \"S\"")),
                "5:14: `secret-env` is a second place for keys",
            ),
            (
                with(&format!("{own}algorithms = [\"none\"]")),
                "4:14: `algorithms`: `none` is none for public keys",
            ),
            (
                with(&format!("{own}algorithms = [\"HS256\"]")),
                "4:14: `algorithms`: `HS256` is none for public keys",
            ),
            (
                with(&format!("{own}secret-env = \"S\"\nalgorithms = \"RS256\"")),
                "5:14: `algorithms`: `RS256` is none for a secret",
            ),
            (with(&format!("{own}algorithms = []")), "4:14: `algorithms` is empty"),
            (with(&format!("{own}secret = \"S\"")), "4:1: unknown key `secret` in [[auth.jwt]]"),
            (with(&format!("{own}role-map = {{ a = \"ADMIN\" }}")), "1:1: `role-map` needs `roles`"),
            (with(&format!("{own}account = {{ claim = \"sub\" }}")), "4:11: `account` has no `field`"),
            (with(&format!("{own}header = \"Cookie\"")), "4:10: `Cookie` is not a header for tokens"),
        ] {
            let found = mistakes(&text);
            assert!(
                found.len() == 1 && found[0].starts_with(&format!("trefoil.toml:{expected}")),
                "{text}: {found:?}"
            );
        }
        let local = with("issuer = \"own\"\njwks = \"http://127.0.0.1:8000/keys\"");
        assert_eq!(mistakes(&local), [""; 0]);
    }

    #[test]
    fn wrong_values_are_reported_at_their_position() {
        let port = "trefoil.toml:1:8: `port`: \"70000\" is not a port: expected a number from 0 to 65535";
        assert_mistake("port = 70000", port);
        let wrong_type = "trefoil.toml:1:8: `port` must be a string, a number, true or false, or a list of strings, not a table";
        assert_mistake("port = {}", wrong_type);
        assert_mistake("name = 1", "trefoil.toml:1:8: `name` must be a quoted string, not an integer");
        assert_mistake(
            "limits = 1",
            "trefoil.toml:1:10: `limits` must be a table, written as [limits], not an integer",
        );
        assert_mistake(
            "text = 1",
            "trefoil.toml:1:8: `text` must be an array of tables, written as [[text]], not an integer",
        );
    }

    #[test]
    fn all_mistakes_are_reported_in_order() {
        let found = mistakes("host = \"a b\"\nprot = 1\n[limits]\nbody = 0\n");
        let places: Vec<&str> = found.iter().map(|mistake| mistake.split(": ").next().unwrap()).collect();
        assert_eq!(places, ["trefoil.toml:1:8", "trefoil.toml:2:1", "trefoil.toml:4:8"], "{found:?}");
        let broken = mistakes("port = \nprot = 1\n[limits\n");
        let places: Vec<&str> = broken.iter().map(|mistake| mistake.split(": ").next().unwrap()).collect();
        assert_eq!(places, ["trefoil.toml:1:8", "trefoil.toml:3:8"], "{broken:?}");
    }

    proptest::proptest! {
        /// Any text is parsed into a manifest and mistakes with valid positions.
        #[test]
        fn any_text_is_parsed(edits in proptest::collection::vec((0usize..4000, 0usize..40, ".{0,6}"), 1..6)) {
            let mut text: Vec<char> = include_str!("../../../app/trefoil.toml").chars().collect();
            for (at, length, inserted) in edits {
                let at = at.min(text.len());
                let end = (at + length).min(text.len());
                text.splice(at..end, inserted.chars());
            }
            let text: String = text.into_iter().collect();
            let lines = text.split('\n').count();
            for mistake in Manifest::parse(&text).1 {
                assert!((1..=lines).contains(&mistake.line) && mistake.column > 0, "{mistake}");
                let file = SourceFile { name: manifest_reader::MANIFEST_FILE.into(), text: text.clone() };
                assert!(!mistake.to_string().contains('\n') && mistake.render(&[file]).contains("trefoil.toml:"));
            }
        }
    }
}
