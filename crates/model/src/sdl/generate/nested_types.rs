//! The input types for related records: `AuthorReferenceWrite`, `BookListWrite` and `BookUpdateWrite`.

use crate::sdl::generate::input_types::{FieldTypes, create_name, update_name};
use crate::{Field, RecordType, Relation};

/// The end of the names of these types.
const SUFFIX: &str = "Write";

fn reference_name(record: &RecordType) -> String {
    format!("{}Reference{SUFFIX}", record.name)
}

fn list_name(record: &RecordType) -> String {
    format!("{}List{SUFFIX}", record.name)
}

fn change_name(record: &RecordType) -> String {
    format!("{}Update{SUFFIX}", record.name)
}

pub(super) fn is_nested_name(name: &str) -> bool {
    name.ends_with(SUFFIX)
}

impl FieldTypes<'_> {
    /// The member for related records of a field, beside the one for their ids.
    pub(super) fn nested_member(&self, owner: &RecordType, field: &Field) -> Option<(String, String)> {
        let relation = field.kind.relation().filter(|_| !field.is_filled_reference())?;
        let target = &self.model.records[relation.target().0];
        let name = match relation {
            Relation::Reference(_) => reference_name(target),
            Relation::Inverse(_) | Relation::Link(_) => list_name(target),
        };
        // A field may be called like another one's ids.
        let is_taken = |other: &Field| other.is_writable() && other.input_name == field.name;
        let is_free = !owner.fields.iter().any(is_taken);
        (is_free && !self.nested_fields(&name)?.is_empty()).then(|| (field.name.clone(), name))
    }

    /// The fields of the type for related records with this name; `None` if it is none.
    pub(super) fn nested_fields(&self, name: &str) -> Option<Vec<(String, String)>> {
        let record = |type_name: fn(&RecordType) -> String| {
            self.model.records.iter().position(|record| type_name(record) == name)
        };
        if let Some(target) = record(reference_name) {
            let key = self.shown_key(target).map(|key| ("id".to_owned(), key));
            let create = self.create_type(target).map(|create| ("create".to_owned(), create));
            return Some(key.into_iter().chain(create).collect());
        }
        if let Some(target) = record(list_name) {
            return Some(self.list_members(target));
        }
        let target = record(change_name)?;
        let update = update_name(&self.model.records[target]);
        let key = self.shown_key(target).map(|key| ("id".to_owned(), format!("{key}!")));
        Some(key.into_iter().chain([("input".to_owned(), format!("{update}!"))]).collect())
    }

    fn list_members(&self, target: usize) -> Vec<(String, String)> {
        let record = &self.model.records[target];
        let key = self.shown_key(target);
        let ids = key.as_ref().map(|key| format!("[{key}!]"));
        let is_changeable = record.fields.iter().any(Field::is_writable);
        let create = self.create_type(target).map(|create| format!("[{create}!]"));
        let update = key.filter(|_| is_changeable).map(|_| format!("[{}!]", change_name(record)));
        [
            ("create", create),
            ("update", update),
            ("delete", ids.clone()),
            ("connect", ids.clone()),
            ("disconnect", ids.clone()),
            ("set", ids),
        ]
        .into_iter()
        .filter_map(|(name, ty)| Some((name.to_owned(), ty?)))
        .collect()
    }

    /// The type of the key; `None` if the schema hides it.
    fn shown_key(&self, record: usize) -> Option<String> {
        self.model.records[record].key_in_schema().map(|_| self.key_type(record))
    }

    /// The type of a new record; `None` if there is nothing to give.
    fn create_type(&self, target: usize) -> Option<String> {
        let record = &self.model.records[target];
        record.fields.iter().any(|field| record.is_set_on_create(field)).then(|| create_name(record))
    }
}
