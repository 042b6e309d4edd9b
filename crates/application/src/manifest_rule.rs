//! The rules in `trefoil.toml`: `read` and `write` of a list, `allow` of a text, `see-metrics`.

use std::ops::Range;

use toml::de::DeTable;

use crate::manifest_reader::ManifestReader;

/// An expression about the actor alone, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestRule {
    pub text: String,
    /// Of the value with its quotes.
    pub(crate) span: Range<usize>,
}

/// A rule about the actor that stands in no file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenRule {
    pub text: String,
    /// `--auth-see-metrics`
    pub place: String,
}

pub(crate) fn read_rule(reader: &mut ManifestReader, table: &DeTable, key: &str) -> Option<ManifestRule> {
    let value = table.get(key)?;
    let text = match (value.as_ref().as_bool(), value.as_ref().as_str()) {
        (Some(constant), _) => constant.to_string(),
        (None, Some(text)) => text.to_owned(),
        (None, None) => {
            return reader.report_wrong_type(value, key, "true, false or an expression in quotes");
        }
    };
    Some(ManifestRule { text, span: value.span() })
}

impl ManifestRule {
    /// Where a part of the rule is in the manifest. In a text with escapes it is not looked for: the whole is underlined.
    pub(crate) fn part(&self, manifest: &str, part: Range<usize>) -> Range<usize> {
        let written = manifest.get(self.span.clone()).unwrap_or_default();
        match written.find(&self.text) {
            Some(start) => {
                let start = self.span.start + start;
                start + part.start..start + part.end
            }
            None => self.span.clone(),
        }
    }
}
