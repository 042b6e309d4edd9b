//! Recognises the types that wrap a change of a record: `{ kind id version book changed }`.

use apollo_compiler::Schema;
use apollo_compiler::schema::ObjectType;

use crate::sdl::root_fields::root_types;
use crate::{Model, RecordTypeId, RootType};

/// What a field of a change holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangePart {
    /// `CREATED`, `UPDATED` or `DELETED`.
    Kind,
    Id,
    Version,
    /// The record after the change, or before it was deleted.
    Record,
    /// The names of the fields that an update changed.
    ChangedFields,
}

impl Model {
    /// The record type whose changes the type wraps, if it does.
    pub fn change_record(&self, type_name: &str) -> Option<RecordTypeId> {
        let object = self.schema.get_object(type_name)?;
        self.find_record(changed_type(&self.schema, object)?)
    }

    /// What a field of a change holds.
    pub fn change_part(&self, type_name: &str, field: &str) -> Option<ChangePart> {
        let object = self.schema.get_object(type_name)?;
        let record = changed_type(&self.schema, object)?;
        match field {
            _ if object.fields.get(field)?.ty.inner_named_type() == record => Some(ChangePart::Record),
            "kind" => Some(ChangePart::Kind),
            "id" => Some(ChangePart::Id),
            "version" => Some(ChangePart::Version),
            "changed" => Some(ChangePart::ChangedFields),
            _ => None,
        }
    }

    /// True if a subscription tells which fields of a record were changed.
    pub fn tells_changed_fields(&self, record: RecordTypeId) -> bool {
        let mut subscriptions =
            self.root_fields.iter().filter(|root| root.root_kind == RootType::Subscription);
        subscriptions.any(|root| {
            let ty = root.ty.inner_name();
            self.change_record(ty) == Some(record) && self.change_part(ty, "changed").is_some()
        })
    }
}

/// `Book` for a type `BookChange` that a subscription returns, with a field of type `Book`, a `kind`, and nothing that
/// a change has not.
pub(crate) fn changed_type<'s>(schema: &'s Schema, object: &'s ObjectType) -> Option<&'s str> {
    let name = object.name.strip_suffix("Change").filter(|name| schema.get_object(name).is_some())?;
    let is_record = |field: &str| object.fields[field].ty.inner_named_type() == name;
    let mut records = object.fields.keys().filter(|field| is_record(field));
    let holds_one = records.next().is_some_and(|field| !object.fields[field].ty.is_list());
    let is_part = |field: &str| matches!(field, "kind" | "id" | "version" | "changed") || is_record(field);
    let is_change = holds_one
        && records.next().is_none()
        && object.fields.contains_key("kind")
        && object.fields.keys().all(|field| is_part(field));
    (is_change && is_subscribed(schema, &object.name)).then_some(name)
}

fn is_subscribed(schema: &Schema, type_name: &str) -> bool {
    let subscriptions = root_types(schema).into_iter().filter(|(root, _)| *root == RootType::Subscription);
    let mut fields = subscriptions
        .filter_map(|(_, name)| schema.get_object(name))
        .flat_map(|subscription| subscription.fields.values());
    fields.any(|field| field.ty.inner_named_type() == type_name)
}
