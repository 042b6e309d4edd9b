//! Reads TOML tables whose keys and values have positions, and collects diagnostics about them.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use trefoil_config::Setting;
use trefoil_model::Diagnostic;
use trefoil_model::diagnostic::line_and_column;
use trefoil_model::naming::names::nearest_name;

pub const MANIFEST_FILE: &str = "trefoil.toml";

pub type TomlValue<'t> = Spanned<DeValue<'t>>;

/// The text of `trefoil.toml` and the diagnostics found so far.
pub struct ManifestReader<'t> {
    text: &'t str,
    diagnostics: Vec<Diagnostic>,
}

impl<'t> ManifestReader<'t> {
    pub fn new(text: &'t str) -> Self {
        ManifestReader { text, diagnostics: Vec::new() }
    }

    /// The whole file as one table, as far as it can be parsed.
    pub fn parse(&mut self) -> DeTable<'t> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            let end = self.text.len();
            let message = error.message().replace('\n', ", ");
            self.report(&error.span().unwrap_or(end..end), message);
        }
        table.into_inner()
    }

    /// Adds a diagnostic; the caller may add help to the returned reference.
    pub fn report(&mut self, span: &Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        self.diagnostics.push(Diagnostic::in_file(MANIFEST_FILE, "MANIFEST", message).with_span(
            MANIFEST_FILE,
            self.text,
            span.clone(),
        ));
        self.diagnostics.last_mut().expect("just pushed")
    }

    pub fn has_diagnostics(&self) -> bool {
        !self.diagnostics.is_empty()
    }

    /// The diagnostics in the order of their positions.
    pub fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|mistake| mistake.span.start);
        self.diagnostics
    }

    pub fn line(&self, span: &Range<usize>) -> usize {
        line_and_column(self.text, span.start).0
    }

    /// Reports every key of a table that is not in `known`; `place` names the table.
    pub fn refuse_unknown_keys(&mut self, table: &DeTable<'_>, place: &str, known: &[&str]) {
        for key in table.keys().filter(|key| !known.contains(&key.as_ref().as_ref())) {
            let name = key.as_ref();
            let key_name = name.strip_prefix("limit-").unwrap_or(name);
            let help = match nearest_name(key_name, known.iter().copied()) {
                Some(nearest) => format!("did you mean `{nearest}`?"),
                None if Setting::find(name).is_some_and(|setting| setting.key().0.is_none()) => {
                    format!("move the setting `{name}` above the first [table] of the file")
                }
                None => format!("expected one of {}", known.join(", ")),
            };
            self.report(&key.span(), format!("unknown key `{name}` in {place}")).help = Some(help);
        }
    }

    pub fn string(&mut self, table: &DeTable<'_>, key: &str) -> Option<Spanned<String>> {
        let value = table.get(key)?;
        match value.as_ref().as_str() {
            Some(text) => Some(Spanned::new(value.span(), text.to_owned())),
            None => self.report_wrong_type(value, key, "a quoted string"),
        }
    }

    pub fn boolean(&mut self, table: &DeTable<'_>, key: &str) -> Option<bool> {
        let value = table.get(key)?;
        value.as_ref().as_bool().or_else(|| self.report_wrong_type(value, key, "true or false"))
    }

    /// The tables of `[[key]]`, each with its position.
    pub fn tables<'v, 'd>(
        &mut self,
        table: &'v DeTable<'d>,
        key: &str,
    ) -> Vec<(&'v DeTable<'d>, Range<usize>)> {
        let Some(value) = table.get(key) else { return Vec::new() };
        let Some(array) = value.as_ref().as_array() else {
            return self
                .report_wrong_type(value, key, &format!("an array of tables, written as [[{key}]]"))
                .unwrap_or_default();
        };
        let mut found = Vec::new();
        for element in array.iter() {
            match element.as_ref().as_table() {
                Some(table) => found.push((table, element.span())),
                None => {
                    self.report_wrong_type::<()>(element, key, "a table");
                }
            }
        }
        found
    }

    /// The table under a key, such as `[limits]`.
    pub fn table<'v, 'd>(&mut self, table: &'v DeTable<'d>, key: &str) -> Option<&'v DeTable<'d>> {
        let value = table.get(key)?;
        value
            .as_ref()
            .as_table()
            .or_else(|| self.report_wrong_type(value, key, &format!("a table, written as [{key}]")))
    }

    pub fn report_wrong_type<T>(&mut self, value: &TomlValue<'_>, key: &str, expected: &str) -> Option<T> {
        let found = value.as_ref().type_str();
        self.report(&value.span(), format!("`{key}` must be {expected}, not {} {found}", article(found)));
        None
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}
