//! `RecordTitle`: what records of a type are called, as texts and fields.

use crate::FieldId;

/// What a record is called: "Müller, Lena" of `{lastName}, {firstName}`. Without parts, records are called by their ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordTitle {
    pub parts: Vec<TitlePart>,
    /// What follows the last field, whatever it is.
    pub end: String,
}

/// A field in a title, with the texts that are left out if it has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TitlePart {
    /// Stands after the fields before it, if one of them has a value.
    pub separator: String,
    pub opening: String,
    pub field: FieldId,
    pub closing: String,
}

/// Signs that belong to the field after them.
const OPENING_SIGNS: &str = "([{<«„“‘#№$£€@";

/// Signs that belong to the field before them.
const CLOSING_SIGNS: &str = ")]}>»”’%!?°$£€";

impl RecordTitle {
    /// Fields with the text before each, and the text after the last one.
    pub fn from_template(fields: Vec<(String, FieldId)>, end: &str) -> RecordTitle {
        let mut parts: Vec<TitlePart> = Vec::new();
        for (text, field) in fields {
            let (closing, rest) = match parts.is_empty() {
                true => ("", text.as_str()),
                false => text.split_at(text.len() - text.trim_start_matches(is_closing).len()),
            };
            let (separator, opening) = rest.split_at(rest.trim_end_matches(is_opening).len());
            if let Some(last) = parts.last_mut() {
                last.closing = closing.to_owned();
            }
            let (separator, opening) = (separator.to_owned(), opening.to_owned());
            parts.push(TitlePart { separator, opening, field, closing: String::new() });
        }
        let end = match parts.last_mut() {
            Some(last) => {
                let rest = end.trim_start_matches(is_closing);
                end[..end.len() - rest.len()].clone_into(&mut last.closing);
                rest
            }
            None => end,
        };
        RecordTitle { parts, end: end.to_owned() }
    }

    /// These fields, with spaces between them.
    pub fn of_fields(fields: impl IntoIterator<Item = FieldId>) -> RecordTitle {
        let part = |(position, field)| {
            let separator = if position == 0 { "" } else { " " };
            (separator.to_owned(), field)
        };
        RecordTitle::from_template(fields.into_iter().enumerate().map(part).collect(), "")
    }

    pub fn fields(&self) -> impl Iterator<Item = FieldId> {
        self.parts.iter().map(|part| part.field)
    }

    pub fn has_field(&self, field: FieldId) -> bool {
        self.fields().any(|known| known == field)
    }

    /// The field that is the whole title.
    pub fn only_field(&self) -> Option<FieldId> {
        match self.parts.as_slice() {
            [part]
                if [&part.separator, &part.opening, &part.closing, &self.end]
                    .iter()
                    .all(|text| text.is_empty()) =>
            {
                Some(part.field)
            }
            [] | [_, ..] => None,
        }
    }

    /// The title without the fields that are not shown; what stands before the first one stays.
    pub fn shown(&self, is_shown: impl Fn(FieldId) -> bool) -> RecordTitle {
        let start = self.parts.first().map(|part| part.separator.clone());
        let mut parts: Vec<TitlePart> =
            self.parts.iter().filter(|part| is_shown(part.field)).cloned().collect();
        if let Some(first) = parts.first_mut() {
            first.separator = start.unwrap_or_default();
        }
        RecordTitle { parts, end: self.end.clone() }
    }

    /// The title with the values of its fields; `None` if all are empty.
    pub fn text<T: AsRef<str>>(&self, values: impl IntoIterator<Item = Option<T>>) -> Option<String> {
        let mut text = self.parts.first()?.separator.clone();
        let mut is_empty = true;
        for (part, value) in self.parts.iter().zip(values) {
            let value = value.as_ref().map_or("", |value| value.as_ref().trim());
            if value.is_empty() {
                continue;
            }
            if !is_empty {
                text.push_str(&part.separator);
            }
            is_empty = false;
            [&part.opening, value, &part.closing].iter().for_each(|piece| text.push_str(piece));
        }
        text.push_str(&self.end);
        let text = text.trim();
        (!is_empty && !text.is_empty()).then(|| text.to_owned())
    }
}

fn is_opening(sign: char) -> bool {
    OPENING_SIGNS.contains(sign)
}

fn is_closing(sign: char) -> bool {
    CLOSING_SIGNS.contains(sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(texts: &[&str], end: &str) -> RecordTitle {
        let fields = texts.iter().enumerate().map(|(position, text)| ((*text).to_owned(), FieldId(position)));
        RecordTitle::from_template(fields.collect(), end)
    }

    #[test]
    fn empty_values_take_their_texts_along() {
        let name = title(&["", ", "], "");
        assert_eq!(name.text([Some("Müller"), Some("Lena")]).as_deref(), Some("Müller, Lena"));
        assert_eq!(name.text([Some("Müller"), None]).as_deref(), Some("Müller"));
        assert_eq!(name.text([Some("  "), Some("Lena")]).as_deref(), Some("Lena"));
        assert_eq!(name.text([None::<&str>, None]), None);
        let work = title(&["Work ", " ("], ") of art");
        assert_eq!(work.text([Some("Nana"), Some("1877")]).as_deref(), Some("Work Nana (1877) of art"));
        assert_eq!(work.text([Some("Nana"), None]).as_deref(), Some("Work Nana of art"));
        assert_eq!(work.text([None, Some("1877")]).as_deref(), Some("Work (1877) of art"));
        let three = title(&["#", "% · ", " – "], "");
        assert_eq!(three.text([Some("7"), None, Some("b")]).as_deref(), Some("#7% – b"));
        assert_eq!(three.text([None, None, Some("b")]).as_deref(), Some("b"));
    }

    #[test]
    fn hidden_fields_take_their_texts_along() {
        let work = title(&["Work ", " ("], ")");
        assert_eq!(work.shown(|id| id == FieldId(1)).text([Some("1877")]).as_deref(), Some("Work (1877)"));
        assert_eq!(work.shown(|id| id == FieldId(0)).text([Some("Nana")]).as_deref(), Some("Work Nana"));
        assert_eq!(work.shown(|_| false).text([None::<&str>; 0]), None);
    }

    #[test]
    fn a_field_alone_is_the_whole_title() {
        assert_eq!(title(&[""], "").only_field(), Some(FieldId(0)));
        assert_eq!(title(&["No. "], "").only_field(), None);
        assert_eq!(title(&[""], ")").only_field(), None);
        assert_eq!(title(&["", " "], "").only_field(), None);
    }
}
