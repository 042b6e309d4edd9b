//! The input types of generated operations: `BookCreate`, `BookUpdate`, and those of embedded values.

use apollo_compiler::Schema;

use crate::sdl::generate::generated_type::GeneratedType;
use crate::sdl::record_types::PartialModel;
use crate::{EmbeddedType, Field, KeySource, RecordType, Relation, ValueType};

/// Writes the types of fields as arguments have them.
pub(super) struct FieldTypes<'a> {
    pub schema: &'a Schema,
    pub model: &'a PartialModel,
}

pub(super) fn create_name(record: &RecordType) -> String {
    format!("{}Create", record.name)
}

pub(super) fn update_name(record: &RecordType) -> String {
    format!("{}Update", record.name)
}

/// The input type of this name, if it is one of a record type or of an embedded value.
pub(super) fn input_type(schema: &Schema, model: &PartialModel, name: &str) -> Option<GeneratedType> {
    let types = FieldTypes { schema, model };
    let find =
        |type_name: fn(&RecordType) -> String| model.records.iter().find(|record| type_name(record) == name);
    let fields = if let Some(record) = find(create_name) {
        types.create_fields(record)
    } else if let Some(record) = find(update_name) {
        types.update_fields(record)
    } else if let Some(fields) = types.where_type_fields(name).or_else(|| types.nested_fields(name)) {
        fields
    } else {
        let embedded = model.embedded.values().find(|ty| embedded_input_name(&ty.name) == name)?;
        types.embedded_fields(embedded)
    };
    Some(GeneratedType { name: name.to_owned(), keyword: "input", fields })
}

fn embedded_input_name(type_name: &str) -> String {
    format!("{type_name}Input")
}

/// The fields that clients may set.
pub(super) fn writable_fields(record: &RecordType) -> impl Iterator<Item = &Field> {
    record.fields.iter().filter(|field| field.is_writable())
}

/// The fields that lists can be filtered by.
pub(super) fn comparable_fields<'r>(
    schema: &Schema,
    record: &'r RecordType,
) -> impl Iterator<Item = &'r Field> {
    // A hidden key is not a field of the schema.
    let declared = schema.get_object(&record.name);
    let is_declared = move |field: &&Field| {
        declared.is_some_and(|declared| declared.fields.contains_key(field.name.as_str()))
    };
    record.fields.iter().filter(|field| field.kind.is_comparable()).filter(is_declared)
}

impl FieldTypes<'_> {
    fn create_fields(&self, record: &RecordType) -> Vec<(String, String)> {
        let field = |field: &Field| {
            let ty = self.written_type(&record.name, field);
            let must_be_given = match field.kind.is_id() {
                true => record.key_source == KeySource::Client,
                // A reference may be given as a record instead, or follow from the record around it.
                false => {
                    let has_choice = self.nested_member(record, field).is_some();
                    field.required && !field.has_default() && field.is_stored() && !has_choice
                }
            };
            (field.input_name.clone(), if must_be_given { format!("{ty}!") } else { ty })
        };
        let is_given = |field: &&Field| field.kind.is_id() && record.accepts_given_key();
        let fields = record.fields.iter().filter(is_given).chain(writable_fields(record)).map(field);
        fields.chain(self.nested_members(record)).collect()
    }

    fn update_fields(&self, record: &RecordType) -> Vec<(String, String)> {
        let field = |field: &Field| (field.input_name.clone(), self.written_type(&record.name, field));
        writable_fields(record).map(field).chain(self.nested_members(record)).collect()
    }

    fn nested_members(&self, record: &RecordType) -> Vec<(String, String)> {
        record.fields.iter().filter_map(|field| self.nested_member(record, field)).collect()
    }

    fn embedded_fields(&self, embedded: &EmbeddedType) -> Vec<(String, String)> {
        let field = |(field, value_type): (&Field, &ValueType)| {
            let ty = self.value_type(&embedded.name, field);
            let is_endless =
                value_type.embedded_name().is_some_and(|name| self.contains(name, &embedded.name));
            let must_be_given = field.required && field.default.is_none() && !is_endless;
            (field.name.clone(), if must_be_given { format!("{ty}!") } else { ty })
        };
        embedded.stored_fields().map(field).collect()
    }

    /// True if every value of an embedded type needs one of another, perhaps of its own type.
    fn contains(&self, from: &str, to: &str) -> bool {
        let mut pending = vec![from];
        let mut seen: Vec<&str> = Vec::new();
        while let Some(name) = pending.pop() {
            if name == to {
                return true;
            }
            if seen.contains(&name) {
                continue;
            }
            seen.push(name);
            let fields = self.model.embedded.get(name).into_iter().flat_map(EmbeddedType::stored_fields);
            pending.extend(fields.filter_map(|(_, value_type)| value_type.embedded_name()));
        }
        false
    }

    /// The nullable type of a field in `BookCreate`.
    fn written_type(&self, owner: &str, field: &Field) -> String {
        match field.kind.relation() {
            Some(Relation::Link(link)) => format!("[{}!]", self.key_type(link.target.0)),
            Some(Relation::Reference(_) | Relation::Inverse(_)) | None => self.single_type(owner, field),
        }
    }

    /// The nullable type of one value: that of the key for references.
    pub fn single_type(&self, owner: &str, field: &Field) -> String {
        match field.kind.reference() {
            Some(reference) => self.key_type(reference.target.0),
            None => self.value_type(owner, field),
        }
    }

    /// The nullable type of a key.
    pub fn key_type(&self, record: usize) -> String {
        let record = &self.model.records[record];
        let key = &record.field(record.id_field()).name;
        let declared = self.schema.get_object(&record.name).and_then(|ty| ty.fields.get(key.as_str()));
        declared.map_or_else(|| "ID".to_owned(), |key| key.ty.inner_named_type().to_string())
    }

    /// The declared type, with the input types of embedded values.
    fn value_type(&self, owner: &str, field: &Field) -> String {
        let declared = self.schema.get_object(owner).and_then(|ty| ty.fields.get(field.name.as_str()));
        let Some(declared) = declared else { return "ID".to_owned() };
        let name = declared.ty.inner_named_type().as_str();
        let ty = declared.ty.to_string();
        let ty = ty.strip_suffix('!').unwrap_or(&ty);
        match self.model.embedded.contains_key(name) {
            true => ty.replacen(name, &embedded_input_name(name), 1),
            false => ty.to_owned(),
        }
    }
}
