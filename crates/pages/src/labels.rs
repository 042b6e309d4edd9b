//! How a record type is spoken of on pages: its names, and which of its fields stands for the whole record.

use trefoil_model::naming::names;
use trefoil_model::{Field, FieldId, FieldKind, FieldRule, RecordType, Scalar};

use crate::view::ResourceView;

pub struct ResourceLabels {
    pub resource: ResourceView,
    /// "order lines", within a sentence.
    pub plural_noun: String,
    /// The text that people know a record by; records without one go by their number.
    pub title_field: Option<FieldId>,
}

/// Names that title fields have, the best first.
const TITLE_NAMES: [&str; 6] = ["title", "name", "label", "subject", "item", "email"];

impl ResourceLabels {
    pub fn from_record(record: &RecordType) -> ResourceLabels {
        let resource = ResourceView {
            label: names::display_label(&record.name),
            noun: noun_form(&names::display_label(&record.name)),
            plural: path_heading(&record.path),
            path: format!("/{}", record.path),
            description: record.description.clone(),
        };
        ResourceLabels {
            plural_noun: noun_form(&resource.plural),
            resource,
            title_field: title_field(record),
        }
    }

    /// What a record is called: "Ada Lovelace", or "Order 7" where it has no name of its own.
    pub fn record_name(&self, id: i64, title: Option<&str>) -> String {
        match title.map(str::trim).filter(|title| !title.is_empty()) {
            Some(title) => title.to_owned(),
            None => format!("{} {id}", self.resource.label),
        }
    }
}

pub fn title_field(record: &RecordType) -> Option<FieldId> {
    let is_text = |field: &trefoil_model::Field| {
        matches!(field.kind, FieldKind::Scalar(Scalar::String | Scalar::Email)) && field.is_stored()
    };
    let named =
        TITLE_NAMES.iter().find_map(|name| record.find_field(name).filter(|id| is_text(record.field(*id))));
    named.or_else(|| record.fields.iter().position(is_text).map(FieldId))
}

/// Texts with such names are likely to be long.
const LONG_TEXT_NAMES: [&str; 11] = [
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
const LONG_TEXT_LENGTH: u64 = 200;

/// Whether a field is for texts of more than a line.
pub fn is_long_text(field: &Field) -> bool {
    let words = names::display_label(&field.name).to_lowercase();
    let is_named = words.split(' ').next_back().is_some_and(|word| LONG_TEXT_NAMES.contains(&word));
    let is_roomy = |rule: &FieldRule| matches!(rule, FieldRule::Length { max: Some(max), .. } if *max > LONG_TEXT_LENGTH);
    let is_text = field.kind == FieldKind::Scalar(Scalar::String);
    is_text && (is_named || field.rules.iter().any(is_roomy))
}

/// What a field is called.
pub fn field_label(field: &Field) -> String {
    if field.kind == FieldKind::Id { "ID".to_owned() } else { names::display_label(&field.name) }
}

/// A label within a sentence: "order line" for "Order line". A label that begins with two capitals is a name.
pub fn noun_form(label: &str) -> String {
    let mut letters = label.chars();
    match (letters.next(), letters.next()) {
        (Some(_), Some(second)) if second.is_uppercase() => label.to_owned(),
        (Some(first), _) => first.to_lowercase().chain(label.chars().skip(1)).collect(),
        (None, _) => String::new(),
    }
}

/// A path as a heading: "Order lines" for `order-lines`.
pub fn path_heading(path: &str) -> String {
    names::display_label(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_headings() {
        assert_eq!(path_heading("order-lines"), "Order lines");
        assert_eq!(path_heading("users"), "Users");
    }
}
