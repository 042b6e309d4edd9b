//! The texts that a search without an index looks into.

use indexmap::IndexMap;

use crate::{EmbeddedType, Field, FieldId, Model, RecordType};

/// Embedded values inside embedded values are searched this deep.
const MAX_DEPTH: usize = 3;

/// Where a searched text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchedText {
    /// The reference to the record that has it; `None` for the record itself.
    pub reference: Option<FieldId>,
    /// The column.
    pub field: FieldId,
    /// Positions in embedded types, from the outer one to the inner one.
    pub members: Vec<FieldId>,
}

impl Model {
    /// The text fields of a record, those inside its embedded values, and the titles of the records that it refers to.
    pub fn searched_texts(&self, record: &RecordType) -> Vec<SearchedText> {
        searched_texts(&self.records, &self.embedded, record)
    }
}

pub(crate) fn searched_texts(
    records: &[RecordType],
    embedded: &IndexMap<String, EmbeddedType>,
    record: &RecordType,
) -> Vec<SearchedText> {
    let mut found = Vec::new();
    for (position, field) in record.fields.iter().enumerate().filter(|(_, field)| field.is_stored()) {
        let id = FieldId(position);
        match field.kind.reference().map(|reference| &records[reference.target.0]) {
            Some(target) => {
                let titles = target.title.fields().filter(|title| target.field(*title).kind.is_text());
                found.extend(titles.map(|title| SearchedText {
                    reference: Some(id),
                    field: title,
                    members: Vec::new(),
                }));
            }
            None => add_texts(
                embedded,
                field,
                SearchedText { reference: None, field: id, members: Vec::new() },
                &mut found,
            ),
        }
    }
    found
}

/// Adds the value of a field if it is a text, or the texts inside it.
fn add_texts(
    embedded: &IndexMap<String, EmbeddedType>,
    field: &Field,
    place: SearchedText,
    into: &mut Vec<SearchedText>,
) {
    if field.kind.is_text() {
        into.push(place);
        return;
    }
    let ty = field.kind.value_type().and_then(|ty| embedded.get(ty.embedded_name()?));
    let Some(ty) = ty.filter(|_| place.members.len() < MAX_DEPTH) else { return };
    for (position, inner) in ty.fields.iter().enumerate() {
        let mut place = place.clone();
        place.members.push(FieldId(position));
        add_texts(embedded, inner, place, into);
    }
}
