//! Names for people: of record types, fields and records.

use trefoil_model::naming::names;
use trefoil_model::{Field, FieldRule, RecordId, RecordTitle, RecordType, RecordTypeId, Scalar, StoredValue};

use crate::detail::display::{ValueDisplay, title_text};
use crate::template_data::ResourceView;

/// The names of a record type.
#[derive(Clone)]
pub struct ResourceLabels {
    pub resource: ResourceView,
    /// "order lines", within a sentence.
    pub plural_noun: String,
    pub record: RecordTypeId,
    /// What names a record, of what may be seen; without parts, records are named by their id.
    pub title: RecordTitle,
}

impl ResourceLabels {
    pub fn from_record(id: RecordTypeId, record: &RecordType) -> ResourceLabels {
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
            record: id,
            title: record.title.clone(),
        }
    }

    /// The name of a record, with the cells of the fields of its title: "Ada Lovelace", or "Order 7" if all are empty.
    pub fn record_name(&self, display: ValueDisplay<'_>, id: &RecordId, cells: &[StoredValue]) -> String {
        let record = display.model.record(self.record);
        let values = self.title.fields().zip(cells);
        let values = values.map(|(field, cell)| title_text(display, record.field(field), cell.as_cell()));
        self.title.text(values).unwrap_or_else(|| format!("{} {id}", self.resource.label))
    }
}

/// Last words of field names whose texts are likely to be long.
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

/// A text field that allows more characters than this is a long one.
const LONG_TEXT_LENGTH: u64 = 200;

/// True if the field is likely to hold more than one line.
pub fn is_long_text(field: &Field) -> bool {
    let words = names::display_label(&field.name).to_lowercase();
    let has_long_name = words.split(' ').next_back().is_some_and(|word| LONG_TEXT_NAMES.contains(&word));
    let allows_long = |rule: &FieldRule| matches!(rule, FieldRule::Length { max: Some(max), .. } if *max > LONG_TEXT_LENGTH);
    let is_text = field.kind.scalar() == Some(Scalar::String);
    is_text && (has_long_name || field.rules.iter().any(allows_long))
}

pub fn field_label(field: &Field) -> String {
    if field.kind.is_id() { "ID".to_owned() } else { names::display_label(&field.name) }
}

/// A label within a sentence: "order line" for "Order line". A label with two leading capitals is an acronym and stays.
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
    fn path_heading_replaces_hyphens() {
        assert_eq!(path_heading("order-lines"), "Order lines");
        assert_eq!(path_heading("users"), "Users");
    }
}
