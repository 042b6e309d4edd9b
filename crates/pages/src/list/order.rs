//! The order of a list: the links of column headings that sort, and the words for it.

use trefoil_engine::{ReferencePath, SortKey};
use trefoil_model::{FieldId, Model, RecordType};
use trefoil_resources::list_query::ListQuery;

use crate::labels::{ResourceLabels, field_label, noun_form};
use crate::template_data::SortLink;

/// The values that a column is sorted by: titles by their fields, references by the titles that stand for them.
#[derive(Default)]
pub struct ColumnOrder(Vec<ReferencePath>);

impl ColumnOrder {
    /// Of the column with the titles of the records themselves.
    pub fn of_title(record: &RecordType, labels: &ResourceLabels) -> ColumnOrder {
        let fields: Vec<ReferencePath> = labels.title.fields().map(ReferencePath::from).collect();
        ColumnOrder(if fields.is_empty() { vec![record.id_field().into()] } else { fields })
    }

    pub fn of_field(record: &RecordType, field: FieldId, all_labels: &[ResourceLabels]) -> ColumnOrder {
        let reference = record.field(field).kind.reference();
        let titles = reference.map(|reference| &all_labels[reference.target.0].title);
        let path = |title| ReferencePath { references: vec![field], value: FieldId::into(title) };
        let paths: Vec<ReferencePath> =
            titles.into_iter().flat_map(|title| title.fields().map(path)).collect();
        ColumnOrder(if paths.is_empty() { vec![field.into()] } else { paths })
    }

    /// Whether the keys begin with this order, and then whether it is reversed.
    fn is_descending(&self, keys: &[SortKey]) -> Option<bool> {
        let descending = keys.first()?.descending;
        let mut own = keys.get(..self.0.len())?.iter().zip(&self.0);
        let is_same = |(key, path): (&SortKey, &ReferencePath)| {
            key.value.path() == Some(path) && key.descending == descending
        };
        own.all(is_same).then_some(descending)
    }

    /// The link that sorts by the column, or reverses the order if the list is sorted by it.
    pub fn link(&self, model: &Model, record: &RecordType, path: &str, query: &ListQuery) -> SortLink {
        let (now, sign) = match self.is_descending(&query.listing.sort_keys) {
            None => ("none", ""),
            Some(false) => ("ascending", "-"),
            Some(true) => ("descending", ""),
        };
        let word = |value: &ReferencePath| match value.own_field() {
            Some(field) => format!("{sign}{}", record.field(field).input_name),
            None => format!("{sign}{}", value.name(model, record)),
        };
        let words: Vec<String> = self.0.iter().map(word).collect();
        SortLink { href: query.sorted_url(path, &words.join(",")), now }
    }
}

/// "name, then doctor descending"
pub fn order_phrase(
    model: &Model,
    record: &RecordType,
    all_labels: &[ResourceLabels],
    query: &ListQuery,
) -> String {
    let (mut keys, mut words) = (query.listing.sort_keys.as_slice(), Vec::new());
    while let Some(key) = keys.first() {
        let Some(path) = key.value.path() else {
            let word = if key.descending { "relevance" } else { "relevance, the least first" };
            words.push(word.to_owned());
            keys = &keys[1..];
            continue;
        };
        let reference =
            path.references.first().map(|reference| ColumnOrder::of_field(record, *reference, all_labels));
        let title = reference.filter(|order| order.is_descending(keys).is_some());
        let fields = path.fields(model, record);
        let shown = if title.is_some() { &fields[..1] } else { &fields[..] };
        let labels: Vec<String> = shown.iter().map(|field| noun_form(&field_label(field))).collect();
        let name = labels.join(" ");
        words.push(if key.descending { format!("{name} descending") } else { name });
        keys = &keys[title.map_or(1, |order| order.0.len())..];
    }
    if words.is_empty() { "ID".to_owned() } else { words.join(", then ") }
}
