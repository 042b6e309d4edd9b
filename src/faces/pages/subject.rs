//! How a record type is spoken of on pages: its names, and which of its fields stands for the whole record.

use super::view::Resource;
use crate::model::{FieldId, Kind, RecordType, Scalar, naming};

pub struct Subject {
    pub resource: Resource,
    /// The text that people know a record by; records without one go by their number.
    pub title: Option<FieldId>,
}

/// Names that title fields have, the best first.
const TITLES: [&str; 6] = ["title", "name", "label", "subject", "item", "email"];

impl Subject {
    pub fn of(record: &RecordType) -> Subject {
        let resource = Resource {
            label: naming::label(&record.name),
            noun: naming::label(&record.name).to_lowercase(),
            plural: heading(&record.path),
            path: format!("/{}", record.path),
            description: record.description.clone(),
        };
        Subject { resource, title: title(record) }
    }

    /// What a record is called: "Ada Lovelace", or "Order 7" where it has no name of its own.
    pub fn name(&self, id: i64, title: Option<&str>) -> String {
        match title.map(str::trim).filter(|title| !title.is_empty()) {
            Some(title) => title.to_owned(),
            None => format!("{} {id}", self.resource.label),
        }
    }
}

fn title(record: &RecordType) -> Option<FieldId> {
    let is_text = |field: &crate::model::Field| {
        matches!(field.kind, Kind::Scalar(Scalar::String | Scalar::Email)) && field.is_stored()
    };
    let named =
        TITLES.iter().find_map(|name| record.field_named(name).filter(|id| is_text(record.field(*id))));
    named.or_else(|| record.fields.iter().position(is_text).map(FieldId))
}

/// A path as a heading: "Order lines" for `order-lines`.
pub fn heading(path: &str) -> String {
    naming::label(path)
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
