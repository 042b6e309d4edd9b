//! Names for people: of record types, fields and records.

use trefoil_engine::SortKey;
use trefoil_engine::arguments::sort_keys::parse_sort_key;
use trefoil_model::naming::names;
use trefoil_model::{
    Field, FieldId, FieldRule, Model, RecordId, RecordTitle, RecordType, RecordTypeId, Scalar, StoredValue,
    ValueFormat,
};

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
    /// The order of lists that say none.
    pub sort_keys: Vec<SortKey>,
    /// The records on a page of lists that say no number.
    pub page_size: Option<i64>,
}

impl ResourceLabels {
    pub fn from_record(model: &Model, id: RecordTypeId) -> ResourceLabels {
        let record = model.record(id);
        let resource = ResourceView {
            label: record.label(),
            noun: noun_form(&record.label()),
            plural: record.plural_label(),
            path: format!("/{}", record.path),
            description: record.description.clone(),
        };
        ResourceLabels {
            plural_noun: noun_form(&resource.plural),
            resource,
            record: id,
            title: record.title.clone(),
            // Words that do not fit are mistakes of the schema: see `order_mistakes`.
            sort_keys: { record.display.sort.iter() }
                .filter_map(|word| parse_sort_key(model, record, "sort", word).ok())
                .collect(),
            page_size: record.display.page_size,
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
    match field.display.format {
        Some(ValueFormat::Code | ValueFormat::Multiline) => return true,
        Some(ValueFormat::Currency | ValueFormat::Percent | ValueFormat::Color | ValueFormat::Link) => {
            return false;
        }
        None => {}
    }
    let words = names::display_label(&field.name).to_lowercase();
    let has_long_name = words.split(' ').next_back().is_some_and(|word| LONG_TEXT_NAMES.contains(&word));
    let allows_long = |rule: &FieldRule| matches!(rule, FieldRule::Length { max: Some(max), .. } if *max > LONG_TEXT_LENGTH);
    let is_text = field.kind.scalar() == Some(Scalar::String);
    is_text && (has_long_name || field.rules.iter().any(allows_long))
}

pub fn field_label(field: &Field) -> String {
    if field.kind.is_id() && field.display.label.is_none() { "ID".to_owned() } else { field.label() }
}

/// The fields of a type in the order of pages: those with a number first, then the others as the schema has them.
pub fn ordered_fields(record: &RecordType) -> Vec<(FieldId, &Field)> {
    let fields = record.fields.iter().enumerate().map(|(position, field)| (FieldId(position), field));
    let mut fields: Vec<(FieldId, &Field)> = fields.collect();
    fields.sort_by_key(|(_, field)| (field.display.order.is_none(), field.display.order));
    fields
}

/// Puts what belongs to a group together, where the first of it stands; what belongs to none stays by itself.
pub fn grouped<T>(items: impl IntoIterator<Item = (Option<String>, T)>) -> Vec<(Option<String>, Vec<T>)> {
    let mut groups: Vec<(Option<String>, Vec<T>)> = Vec::new();
    for (label, item) in items {
        let known = match &label {
            Some(_) => groups.iter_mut().find(|(known, _)| *known == label),
            None => groups.last_mut().filter(|(known, _)| known.is_none()),
        };
        match known {
            Some((_, members)) => members.push(item),
            None => groups.push((label, vec![item])),
        }
    }
    groups
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
    fn members_of_a_group_stand_where_its_first_stands() {
        let items =
            [(None, 1), (Some("a"), 2), (None, 3), (Some("b"), 4), (Some("a"), 5), (None, 6), (None, 7)];
        let groups = grouped(items.map(|(label, item)| (label.map(str::to_owned), item)));
        let groups: Vec<(Option<&str>, &[i32])> =
            groups.iter().map(|(label, items)| (label.as_deref(), items.as_slice())).collect();
        let expected: [(Option<&str>, &[i32]); 5] =
            [(None, &[1]), (Some("a"), &[2, 5]), (None, &[3]), (Some("b"), &[4]), (None, &[6, 7])];
        assert_eq!(groups, expected);
    }

    #[test]
    fn path_heading_replaces_hyphens() {
        assert_eq!(path_heading("order-lines"), "Order lines");
        assert_eq!(path_heading("users"), "Users");
    }
}
