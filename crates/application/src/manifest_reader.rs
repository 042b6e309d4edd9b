//! `trefoil.toml` as tables whose keys and values know their place, and the complaints about them.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use trefoil_config::Setting;
use trefoil_model::Diagnostic;
use trefoil_model::diagnostic::position;
use trefoil_model::naming::names::nearest;

pub const FILE: &str = "trefoil.toml";

pub type Value<'t> = Spanned<DeValue<'t>>;

/// The text of the file while it is read, with what was found wrong so far.
pub struct Sheet<'t> {
    text: &'t str,
    mistakes: Vec<Diagnostic>,
}

impl<'t> Sheet<'t> {
    pub fn new(text: &'t str) -> Self {
        Sheet { text, mistakes: Vec::new() }
    }

    /// The whole file as one table, as far as it can be made out.
    pub fn parse(&mut self) -> DeTable<'t> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            let end = self.text.len();
            let message = error.message().replace('\n', ", ");
            self.complain(&error.span().unwrap_or(end..end), message);
        }
        table.into_inner()
    }

    /// Notes a mistake; the answer lets the caller add what would help.
    pub fn complain(&mut self, span: &Range<usize>, message: impl Into<String>) -> &mut Diagnostic {
        self.mistakes.push(Diagnostic::in_file(FILE, "MANIFEST", message).at(FILE, self.text, span.clone()));
        self.mistakes.last_mut().expect("just pushed")
    }

    pub fn has_mistakes(&self) -> bool {
        !self.mistakes.is_empty()
    }

    /// What was found wrong, as it stands in the file from top to bottom.
    pub fn in_order(mut self) -> Vec<Diagnostic> {
        self.mistakes.sort_by_key(|mistake| mistake.span.start);
        self.mistakes
    }

    pub fn line(&self, span: &Range<usize>) -> usize {
        position(self.text, span.start).0
    }

    /// Complains about every key of a table that `known` does not list; `place` names the table.
    pub fn only(&mut self, table: &DeTable<'_>, place: &str, known: &[&str]) {
        for key in table.keys().filter(|key| !known.contains(&key.as_ref().as_ref())) {
            let name = key.as_ref();
            let meant = name.strip_prefix("limit-").unwrap_or(name);
            let close = match nearest(meant, known.iter().copied()) {
                Some(close) => format!("did you mean `{close}`?"),
                None if Setting::named(name).is_some_and(|setting| !setting.is_limit()) => {
                    format!("the setting `{name}` belongs above the first [table] of the file")
                }
                None => format!("known are {}", known.join(", ")),
            };
            self.complain(&key.span(), format!("unknown key `{name}` in {place}")).help = Some(close);
        }
    }

    pub fn string(&mut self, table: &DeTable<'_>, key: &str) -> Option<Spanned<String>> {
        let value = table.get(key)?;
        match value.as_ref().as_str() {
            Some(text) => Some(Spanned::new(value.span(), text.to_owned())),
            None => self.expected(value, key, "text in quotes"),
        }
    }

    pub fn boolean(&mut self, table: &DeTable<'_>, key: &str) -> Option<bool> {
        let value = table.get(key)?;
        value.as_ref().as_bool().or_else(|| self.expected(value, key, "true or false"))
    }

    /// The tables of `[[key]]`, each with the place of its beginning.
    pub fn tables<'v, 'd>(
        &mut self,
        table: &'v DeTable<'d>,
        key: &str,
    ) -> Vec<(&'v DeTable<'d>, Range<usize>)> {
        let Some(value) = table.get(key) else { return Vec::new() };
        let Some(array) = value.as_ref().as_array() else {
            return self
                .expected(value, key, &format!("tables, each begun by [[{key}]]"))
                .unwrap_or_default();
        };
        let mut found = Vec::new();
        for element in array.iter() {
            match element.as_ref().as_table() {
                Some(table) => found.push((table, element.span())),
                None => {
                    self.expected::<()>(element, key, "a table");
                }
            }
        }
        found
    }

    /// A table of tables, such as `[limits]`.
    pub fn table<'v, 'd>(&mut self, table: &'v DeTable<'d>, key: &str) -> Option<&'v DeTable<'d>> {
        let value = table.get(key)?;
        value.as_ref().as_table().or_else(|| self.expected(value, key, &format!("a table, begun by [{key}]")))
    }

    pub fn expected<T>(&mut self, value: &Value<'_>, key: &str, what: &str) -> Option<T> {
        let found = value.as_ref().type_str();
        self.complain(&value.span(), format!("`{key}` must be {what}, not {} {found}", article(found)));
        None
    }
}

fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}
