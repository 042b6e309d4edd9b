//! How a record type is spoken of on pages: its names, and which of its fields stands for the whole record.

use crate::view::Resource;
use trefoil_model::naming::names;
use trefoil_model::{Field, FieldId, Kind, RecordType, Rule, Scalar};

pub struct Subject {
    pub resource: Resource,
    /// "order lines", within a sentence.
    pub nouns: String,
    /// The text that people know a record by; records without one go by their number.
    pub title: Option<FieldId>,
}

/// Names that title fields have, the best first.
const TITLES: [&str; 6] = ["title", "name", "label", "subject", "item", "email"];

impl Subject {
    pub fn of(record: &RecordType) -> Subject {
        let resource = Resource {
            label: names::label(&record.name),
            noun: noun(&names::label(&record.name)),
            plural: heading(&record.path),
            path: format!("/{}", record.path),
            description: record.description.clone(),
        };
        Subject { nouns: noun(&resource.plural), resource, title: title(record) }
    }

    /// What a record is called: "Ada Lovelace", or "Order 7" where it has no name of its own.
    pub fn name(&self, id: i64, title: Option<&str>) -> String {
        match title.map(str::trim).filter(|title| !title.is_empty()) {
            Some(title) => title.to_owned(),
            None => format!("{} {id}", self.resource.label),
        }
    }
}

pub fn title(record: &RecordType) -> Option<FieldId> {
    let is_text = |field: &trefoil_model::Field| {
        matches!(field.kind, Kind::Scalar(Scalar::String | Scalar::Email)) && field.is_stored()
    };
    let named =
        TITLES.iter().find_map(|name| record.field_named(name).filter(|id| is_text(record.field(*id))));
    named.or_else(|| record.fields.iter().position(is_text).map(FieldId))
}

/// Texts with such names are likely to be long.
const LONG: [&str; 11] = [
    "body",
    "description",
    "text",
    "notes",
    "note",
    "bio",
    "content",
    "comment",
    "summary",
    "message",
    "remarks",
];

/// From here on a text that may be so long gets room.
const ROOM: u64 = 200;

/// Whether a field is for texts of more than a line.
pub fn is_long(field: &Field) -> bool {
    let words = names::label(&field.name).to_lowercase();
    let is_named = words.split(' ').next_back().is_some_and(|word| LONG.contains(&word));
    let is_roomy = |rule: &Rule| matches!(rule, Rule::Length { max: Some(max), .. } if *max > ROOM);
    let is_text = field.kind == Kind::Scalar(Scalar::String);
    is_text && (is_named || field.rules.iter().any(is_roomy))
}

/// What a field is called.
pub fn label(field: &Field) -> String {
    if field.kind == Kind::Id { "ID".to_owned() } else { names::label(&field.name) }
}

/// A label within a sentence: "order line" for "Order line". A label that begins with two capitals is a name.
pub fn noun(label: &str) -> String {
    let mut letters = label.chars();
    match (letters.next(), letters.next()) {
        (Some(_), Some(second)) if second.is_uppercase() => label.to_owned(),
        (Some(first), _) => first.to_lowercase().chain(label.chars().skip(1)).collect(),
        (None, _) => String::new(),
    }
}

/// A path as a heading: "Order lines" for `order-lines`.
pub fn heading(path: &str) -> String {
    names::label(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_headings() {
        assert_eq!(heading("order-lines"), "Order lines");
        assert_eq!(heading("users"), "Users");
    }
}
