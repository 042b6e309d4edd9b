//! Adds the rules of lists, texts and metrics to those of the schema.

use std::ops::Range;

use trefoil_model::access::{AccessRule, ListAccess, PartJoin, RuleError, RulePart};
use trefoil_model::diagnostic::line_and_column;
use trefoil_model::{Diagnostic, Model, SourceLocation};

use crate::manifest::Manifest;
use crate::manifest_reader::MANIFEST_FILE;
use crate::manifest_rule::{GivenRule, ManifestRule};
use crate::visibility_settings::VisibilitySettings;

/// Adds the rules of the manifest to those of the schema; the mistakes in them. `text` is the manifest, `see` has the
/// rules that go before those of the manifest.
pub(crate) fn add_rules(
    manifest: &Manifest,
    text: &str,
    see: &VisibilitySettings,
    model: &mut Model,
) -> Vec<Diagnostic> {
    let mut reader = RuleReader { text, model, mistakes: Vec::new() };
    for list in &manifest.plain_lists {
        let read = list.read.as_ref().and_then(|rule| reader.read(rule));
        let write = list.write.as_ref().and_then(|rule| reader.read(rule));
        if let Some(access) = &mut reader.model.access {
            access.lists.insert(list.name().to_owned(), ListAccess { read, write });
        }
    }
    for (position, endpoint) in manifest.text_endpoints.iter().enumerate() {
        let Some(rule) = endpoint.allow.as_ref().and_then(|rule| reader.read(rule)) else { continue };
        if let Some(access) = &mut reader.model.access {
            access.texts.insert(position, rule);
        }
    }
    let see_metrics = reader.read_given_or_written(see.metrics.as_ref(), manifest.see_metrics.as_ref());
    let see_audit = reader.read_given_or_written(see.audit.as_ref(), manifest.see_audit.as_ref());
    if let Some(access) = &mut reader.model.access {
        (access.see_metrics, access.see_audit) = (see_metrics, see_audit);
    }
    reader.mistakes
}

const NO_EFFECT: &str = "this rule protects nothing: everybody may do everything in this application";

struct RuleReader<'a> {
    text: &'a str,
    model: &'a mut Model,
    mistakes: Vec<Diagnostic>,
}

impl RuleReader<'_> {
    /// The rule of a setting; of the manifest if nothing goes before that.
    fn read_given_or_written(
        &mut self,
        given: Option<&GivenRule>,
        written: Option<&ManifestRule>,
    ) -> Option<AccessRule> {
        match (given, written) {
            (Some(given), _) if given.text != "false" => self.read_given(given),
            (None, Some(written)) if written.text.trim() != "false" => self.read(written),
            (Some(_), _) | (None, _) => None,
        }
    }

    /// A rule that the manifest does not have.
    fn read_given(&mut self, GivenRule { text, place }: &GivenRule) -> Option<AccessRule> {
        let (code, message, help) = match self.model.access {
            None => (
                "MANIFEST",
                NO_EFFECT.to_owned(),
                Some("write rules in the schema with `@allow`, or `[auth]` in trefoil.toml".to_owned()),
            ),
            Some(_) => match self.model.read_actor_rule(text) {
                Ok(test) => {
                    let location = SourceLocation { file: place.clone(), line: 1, column: 1 };
                    return Some(AccessRule { test, location, parts: Vec::new() });
                }
                Err(RuleError { code, message, help, .. }) => (code, message, help),
            },
        };
        let mut mistake = Diagnostic::in_file(place, code, message);
        mistake.help = help;
        self.mistakes.push(mistake);
        None
    }

    fn read(&mut self, rule: &ManifestRule) -> Option<AccessRule> {
        if self.model.access.is_none() {
            let mistake = self.mistake("MANIFEST", NO_EFFECT.to_owned(), rule.span.clone());
            mistake.label("without effect").help(
                "write rules in the schema with `@allow`, or `[auth]` in trefoil.toml, or remove this one",
            );
            return None;
        }
        match self.model.read_actor_rule(&rule.text) {
            Ok(test) => {
                let (line, column) = line_and_column(self.text, rule.span.start);
                let location = SourceLocation { file: MANIFEST_FILE.to_owned(), line, column };
                let whole = RulePart {
                    location: location.clone(),
                    bytes: rule.part(self.text, 0..rule.text.len()),
                    join: PartJoin::Whole,
                    test: test.clone(),
                    parts: Vec::new(),
                };
                Some(AccessRule { test, location, parts: vec![whole] })
            }
            Err(RuleError { span, code, message, label, help }) => {
                let span = rule.part(self.text, span);
                let mistake = self.mistake(code, message, span);
                mistake.label(label).help = help;
                None
            }
        }
    }

    fn mistake(&mut self, code: &'static str, message: String, span: Range<usize>) -> &mut Diagnostic {
        let mistake = Diagnostic::in_file(MANIFEST_FILE, code, message);
        self.mistakes.push(mistake.with_span(MANIFEST_FILE, self.text, span));
        self.mistakes.last_mut().expect("just pushed")
    }
}

#[cfg(test)]
mod tests {
    use trefoil_config::Config;
    use trefoil_model::{SourceFile, parse_schema};

    use super::*;

    const SCHEMA: &str = "enum Role { EDITOR ADMIN } \
        type User @account(login: \"email\", roles: \"role\") @allow(all: true) \
        { id: ID! email: String! @unique role: Role @allow(write: false) }";

    fn model(schema: &str) -> Model {
        let file = SourceFile { name: "a.graphqls".into(), text: schema.into() };
        parse_schema(&[file], &[]).unwrap().0
    }

    fn added(schema: &str, toml: &str) -> (Model, Vec<String>) {
        let (manifest, mistakes) = Manifest::parse(toml);
        assert_eq!(mistakes, []);
        let mut model = model(schema);
        let found = add_rules(&manifest, toml, &VisibilitySettings::default(), &mut model);
        let shown = |mistake: &Diagnostic| {
            format!("{mistake} [{}]", toml.get(mistake.span.clone()).unwrap_or_default())
        };
        (model, found.iter().map(shown).collect())
    }

    #[test]
    fn rules_are_about_the_actor_alone() {
        let toml = "[[list]]\npath = \"/items\"\nread = true\nwrite = \"role(EDITOR) || me != null\"\n\
                    [[list]]\npath = \"/open\"\n[[text]]\npath = \"/a\"\ntext = \"a\"\n\
                    [[text]]\npath = \"/b\"\ntext = \"b\"\nallow = 'claim(\"org\") == \"main\"'\n";
        let (model, mistakes) = added(SCHEMA, toml);
        assert_eq!(mistakes, Vec::<String>::new());
        let access = model.access.unwrap();
        let items = &access.lists["items"];
        assert_eq!(items.read.as_ref().unwrap().test.as_constant(), Some(true));
        assert_eq!(items.write.as_ref().unwrap().location.line, 4);
        assert!(access.lists["open"].read.is_none() && access.lists["open"].write.is_none());
        assert_eq!(access.texts.keys().collect::<Vec<_>>(), [&1]);
        // `me` alone is its key.
        assert_eq!(access.actor_paths().len(), 1);
    }

    #[test]
    fn mistakes_have_their_place_in_the_file() {
        let list = |rule: &str| format!("[[list]]\npath = \"/items\"\nread = {rule}\n");
        for (rule, expected) in [
            (
                "\"role(EDITR)\"",
                "trefoil.toml:3:14: there is no role `EDITR`; did you mean `EDITOR`? [EDITR]",
            ),
            ("'signedIn &&'", "trefoil.toml:3:20: expected a field, a value or a condition []"),
            (
                "\"this == me\"",
                "trefoil.toml:3:9: `this` is no word of the language, and there is no record to take it from; use `me`, `signedIn`, `role(…)` or `claim(…)` [this]",
            ),
            (
                "\"signedin\"",
                "trefoil.toml:3:9: `signedin` is no word of the language, and there is no record to take it from; did you mean `signedIn`? [signedin]",
            ),
            (
                "\"can(read, post)\"",
                "trefoil.toml:3:19: `post` is no word of the language, and there is no record to take it from; use `me`, `signedIn`, `role(…)` or `claim(…)` [post]",
            ),
            ("\"me.role == BOSS\"", "trefoil.toml:3:20: there is no `BOSS` [BOSS]"),
        ] {
            assert_eq!(added(SCHEMA, &list(rule)).1, [expected], "{rule}");
        }
        let open = added("type A { id: ID! }", &list("true")).1;
        assert!(open[0].starts_with("trefoil.toml:3:8: this rule protects nothing"), "{open:?}");
        let (_, mistakes) = Manifest::parse(&list("5"));
        assert!(mistakes[0].message.contains("true, false or an expression in quotes"), "{mistakes:?}");
    }

    fn given(metrics: Option<&str>) -> VisibilitySettings {
        let place = "--auth-see-metrics".to_owned();
        let metrics = metrics.map(|text| GivenRule { text: text.to_owned(), place });
        VisibilitySettings { metrics, audit: None }
    }

    #[test]
    fn metrics_follow_the_setting() {
        let toml = "[auth]\nsee-metrics = \"role(EDITOR)\"\n";
        let (manifest, mistakes) = Manifest::parse(toml);
        assert_eq!(mistakes, []);
        let rule = |setting: Option<&str>| {
            let mut model = model(SCHEMA);
            let mistakes = add_rules(&manifest, toml, &given(setting), &mut model);
            let shown: Vec<String> = mistakes.iter().map(Diagnostic::to_string).collect();
            let rule = model.access.unwrap().see_metrics;
            (rule.map(|rule| format!("{}:{}", rule.location.file, rule.location.line)), shown)
        };
        let of_file = (Some("trefoil.toml:2".to_owned()), Vec::new());
        assert_eq!(rule(None), of_file);
        // Also where it says the same as the file.
        assert_eq!(rule(Some("role(EDITOR)")), (Some("--auth-see-metrics:1".to_owned()), Vec::new()));
        assert_eq!(rule(Some("role(ADMIN)")), (Some("--auth-see-metrics:1".to_owned()), Vec::new()));
        assert_eq!(rule(Some("false")), (None, Vec::new()));
        let (found, mistakes) = rule(Some("role(ADMN)"));
        let expected = "--auth-see-metrics: there is no role `ADMN`; did you mean `ADMIN`?";
        assert_eq!((found, mistakes), (None, vec![expected.to_owned()]));

        let open = added("type A { id: ID! }", toml).1;
        assert!(open[0].starts_with("trefoil.toml:2:15: this rule protects nothing"), "{open:?}");
        let mut open = model("type A { id: ID! }");
        let none = VisibilitySettings::of(&Config::default());
        assert_eq!(add_rules(&Manifest::default(), "", &none, &mut open), []);
        assert_eq!(add_rules(&Manifest::default(), "", &given(Some("true")), &mut open).len(), 1);
    }
}
