//! The lists whose records are edited on the form of the record that they belong to, in rows: `lines.0.price`.

use std::collections::BTreeMap;

use trefoil_http::form_pairs::FormPairs;
use trefoil_model::{FieldId, Model, OnDelete, RecordType};

use crate::collection::{NestedCollection, nested_collections};
use crate::forms::form_tree::child_number;

/// A form has at most this many rows of a list. A longer list is edited at its own address.
pub const MAX_ROWS: usize = 100;

/// The lists of records that belong to a record: they are deleted with it. Its form edits them.
pub fn edited_lists(model: &Model, record: &RecordType) -> impl Iterator<Item = NestedCollection> {
    nested_collections(record).filter(|list| {
        let child = model.record(list.record);
        let Some(reference) = list.reference() else { return false };
        let belongs = child.field(reference).kind.reference().map(|reference| reference.on_delete);
        let mut fields = child.fields.iter().enumerate();
        belongs == Some(OnDelete::Cascade)
            && fields.any(|(i, field)| FieldId(i) != reference && child.is_set_on_create(field))
    })
}

/// The pairs of the rows of one list, by the number of the row, with the names that controls have in a form of their own.
pub type RowPairs = BTreeMap<u64, FormPairs>;

/// The pairs of the record itself, and those of each list. Names that do not say which row they are in are left out.
/// `prefixes` come before the name of a control: `-find.lines.0.productId`.
pub fn split_rows(
    record: &RecordType,
    lists: &[NestedCollection],
    prefixes: &[&str],
    pairs: &FormPairs,
) -> (FormPairs, Vec<RowPairs>) {
    let mut own_pairs = FormPairs::new();
    let mut by_list: Vec<RowPairs> = lists.iter().map(|_| RowPairs::default()).collect();
    for (name, text) in pairs {
        let prefix = name.split_once('.').map(|(first, _)| first).filter(|first| prefixes.contains(first));
        let control = prefix.map_or(name.as_str(), |prefix| &name[prefix.len() + 1..]);
        let found = control.split_once('.').and_then(|(first, rest)| {
            let list = lists.iter().position(|list| record.field(list.field).input_name == first)?;
            Some((&mut by_list[list], rest))
        });
        let Some((list, rest)) = found else {
            own_pairs.push((name.clone(), text.clone()));
            continue;
        };
        let row = rest.split_once('.').and_then(|(number, control)| Some((child_number(number)?, control)));
        if let Some((number, control)) = row {
            let name = prefix.map_or(control.to_owned(), |prefix| format!("{prefix}.{control}"));
            list.entry(number).or_default().push((name, text.clone()));
        }
    }
    (own_pairs, by_list)
}
