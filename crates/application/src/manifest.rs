//! What `trefoil.toml` says: settings, text endpoints, plain lists and what differs for a collection.

use toml::de::{DeTable, DeValue};

use crate::endpoints;
use crate::endpoints::{PlainList, TextEndpoint};
use crate::manifest_reader::{ManifestReader, TomlValue};
use crate::resource_settings;
use crate::resource_settings::ResourceSettings;
use trefoil_config::{FileSetting, SETTINGS, Setting};
use trefoil_model::Diagnostic;
use trefoil_model::naming::names::nearest_name;

/// Everything an application says beside its schema.
#[derive(Debug, Default)]
pub struct Manifest {
    /// What the application calls itself.
    pub name: Option<String>,
    pub settings: Vec<FileSetting>,
    pub text_endpoints: Vec<TextEndpoint>,
    pub plain_lists: Vec<PlainList>,
    pub resources: Vec<ResourceSettings>,
}

const TOP_LEVEL_TABLES: [&str; 5] = ["name", "limits", "text", "list", "resource"];

impl Manifest {
    /// The manifest as far as it can be made out, and everything wrong with it.
    pub fn parse(text: &str) -> (Manifest, Vec<Diagnostic>) {
        let mut sheet = ManifestReader::new(text);
        let root = sheet.parse();
        if sheet.has_diagnostics() {
            // What was made out around a slip of syntax may not be what was meant.
            return (Manifest::default(), sheet.into_diagnostics());
        }
        report_unknown_keys(&mut sheet, &root);
        let mut settings = read_settings(&mut sheet, &root, None);
        if let Some(limits) = sheet.table(&root, "limits") {
            report_unknown_limits(&mut sheet, limits);
            settings.extend(self::read_settings(&mut sheet, limits, Some("limits")));
        }
        let manifest = Manifest {
            name: sheet.string(&root, "name").map(toml::Spanned::into_inner),
            settings,
            text_endpoints: endpoints::read_text_endpoints(&mut sheet, &root),
            plain_lists: endpoints::read_plain_lists(&mut sheet, &root),
            resources: resource_settings::read_resource_settings(&mut sheet, &root),
        };
        endpoints::report_path_clashes(&mut sheet, &manifest);
        (manifest, sheet.into_diagnostics())
    }
}

/// The settings of one table, each already known to be a value that its setting takes.
fn read_settings(sheet: &mut ManifestReader, table: &DeTable, name: Option<&str>) -> Vec<FileSetting> {
    let mut found = Vec::new();
    for setting in SETTINGS.iter().filter(|setting| setting.key().0 == name) {
        let key = setting.key().1;
        let Some(value) = table.get(key) else { continue };
        let Some(text) = setting_text(value) else {
            sheet.report_wrong_type::<()>(value, key, "a text, a number, true or false, or a list of texts");
            continue;
        };
        match setting.check(&text) {
            Ok(()) => found.push(FileSetting { setting, text, line: sheet.line(&value.span()) }),
            Err(why) => {
                sheet.report(&value.span(), format!("`{key}`: {why}"));
            }
        }
    }
    found
}

/// A value as a flag would spell it.
fn setting_text(value: &TomlValue) -> Option<String> {
    match value.as_ref() {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(yes) => Some(yes.to_string()),
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

fn report_unknown_keys(sheet: &mut ManifestReader, root: &DeTable) {
    let settings = SETTINGS.iter().filter(|setting| !setting.is_limit()).map(|setting| setting.name);
    let known: Vec<&str> = settings.chain(TOP_LEVEL_TABLES).collect();
    for key in root.keys().filter(|key| !known.contains(&key.as_ref().as_ref())) {
        let name: &str = key.as_ref();
        let limit = limit_keys().find(|limit| name == *limit || name.strip_prefix("limit-") == Some(*limit));
        let (message, help) = if name == "auth" {
            ("authentication does not exist yet".to_owned(), "remove `auth`".to_owned())
        } else {
            let help = match (limit, nearest_name(name, known.iter().copied())) {
                (Some(limit), _) => format!("write it as `{limit}` under [limits]"),
                (None, Some(close)) => format!("did you mean `{close}`?"),
                (None, None) => "`trefoil serve --help` lists the settings".to_owned(),
            };
            (format!("unknown key `{name}`"), help)
        };
        sheet.report(&key.span(), message).help = Some(help);
    }
}

fn report_unknown_limits(sheet: &mut ManifestReader, table: &DeTable) {
    let known: Vec<&str> = limit_keys().collect();
    sheet.refuse_unknown_keys(table, "[limits]", &known);
}

/// The keys of `[limits]`.
fn limit_keys() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().filter(|setting| setting.is_limit()).map(|setting: &Setting| setting.key().1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest_reader;
    use trefoil_model::SourceFile;

    fn mistakes(text: &str) -> Vec<String> {
        Manifest::parse(text).1.iter().map(Diagnostic::to_string).collect()
    }

    /// The one mistake of a text.
    fn wrong(text: &str, expected: &str) {
        assert_eq!(mistakes(text), [expected], "{text}");
    }

    #[test]
    fn settings_are_read_with_their_lines() {
        let text = "port = 9_000\nopen = true\ntrusted-proxies = [\"10.0.0.0/8\", \"::1\"]\n[limits]\nbody = \"2 MiB\"\n";
        let (manifest, mistakes) = Manifest::parse(text);
        assert_eq!(mistakes, []);
        let read: Vec<_> =
            manifest.settings.iter().map(|w| (w.setting.name, w.text.as_str(), w.line)).collect();
        let expected = [
            ("port", "9000", 1),
            ("open", "true", 2),
            ("trusted-proxies", "10.0.0.0/8,::1", 3),
            ("limit-body", "2 MiB", 5),
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn unknown_keys_are_named_with_the_way_out() {
        wrong("prot = 1", "trefoil.toml:1:1: unknown key `prot`; did you mean `port`?");
        wrong(
            "\n[limits]\nbdoy = 1",
            "trefoil.toml:3:1: unknown key `bdoy` in [limits]; did you mean `body`?",
        );
        wrong(
            "limit-body = 1",
            "trefoil.toml:1:1: unknown key `limit-body`; write it as `body` under [limits]",
        );
        wrong("depth = 3", "trefoil.toml:1:1: unknown key `depth`; write it as `depth` under [limits]");
        wrong("[auth]\nurl = 1", "trefoil.toml:1:2: authentication does not exist yet; remove `auth`");
        wrong(
            "zzzzzz = 1",
            "trefoil.toml:1:1: unknown key `zzzzzz`; `trefoil serve --help` lists the settings",
        );
        let late = "[[list]]\npath = \"/items\"\nport = 1";
        let expected = "trefoil.toml:3:1: unknown key `port` in [[list]]; the setting `port` belongs above the first [table] of the file";
        wrong(late, expected);
        wrong(
            "[resource.users]\ncahce = \"x\"",
            "trefoil.toml:2:1: unknown key `cahce` in [resource.users]; did you mean `cache`?",
        );
    }

    #[test]
    fn wrong_values_are_named_where_they_stand() {
        let port = "trefoil.toml:1:8: `port`: \"70000\" is no port: a number from 0 to 65535";
        wrong("port = 70000", port);
        let kind = "trefoil.toml:1:8: `port` must be a text, a number, true or false, or a list of texts, not a table";
        wrong("port = {}", kind);
        wrong("name = 1", "trefoil.toml:1:8: `name` must be text in quotes, not an integer");
        wrong("limits = 1", "trefoil.toml:1:10: `limits` must be a table, begun by [limits], not an integer");
        wrong("text = 1", "trefoil.toml:1:8: `text` must be tables, each begun by [[text]], not an integer");
    }

    #[test]
    fn all_mistakes_are_told_at_once_and_in_order() {
        let found = mistakes("host = \"a b\"\nprot = 1\n[limits]\nbody = 0\n");
        let places: Vec<&str> = found.iter().map(|mistake| mistake.split(": ").next().unwrap()).collect();
        assert_eq!(places, ["trefoil.toml:1:8", "trefoil.toml:2:1", "trefoil.toml:4:8"], "{found:?}");
        let broken = mistakes("port = \nprot = 1\n[limits\n");
        let places: Vec<&str> = broken.iter().map(|mistake| mistake.split(": ").next().unwrap()).collect();
        assert_eq!(places, ["trefoil.toml:1:8", "trefoil.toml:3:8"], "{broken:?}");
    }

    proptest::proptest! {
        /// Whatever stands in the file, reading it ends in a manifest and complaints about places that exist.
        #[test]
        fn no_text_is_too_strange(cuts in proptest::collection::vec((0usize..4000, 0usize..40, ".{0,6}"), 1..6)) {
            let mut text: Vec<char> = include_str!("../../../app/trefoil.toml").chars().collect();
            for (at, length, put) in cuts {
                let at = at.min(text.len());
                let end = (at + length).min(text.len());
                text.splice(at..end, put.chars());
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
