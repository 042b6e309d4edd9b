//! Values for the arguments of operations, by the role of each.

use apollo_compiler::schema::ExtendedType;
use serde_json::{Value as Json, json};

use trefoil_engine::arguments::argument_roles::member_role;
use trefoil_engine::{ArgumentRole, BuiltinOperation, OperationVerb};
use trefoil_model::values::example_values::example_value;
use trefoil_model::{Argument, FieldId, Model, Scalar, TypeRef, ValueType};

/// A text that no record has before an update.
pub const CHANGED_TEXT: &str = "changed text";

pub struct ArgumentValues<'a> {
    pub model: &'a Model,
    pub builtin: &'a BuiltinOperation,
    /// The record that the operation is about, and its JSON.
    pub id: String,
    pub stored: Json,
    /// An id of each type.
    pub ids: Vec<Option<String>>,
}

impl ArgumentValues<'_> {
    /// The value of an argument, or `None` if it is left out.
    pub fn value_of(&self, argument: &Argument, role: &ArgumentRole) -> Option<Json> {
        let value = match role {
            // One that no record has yet.
            ArgumentRole::Id if self.builtin.verb == OperationVerb::Create => Some(json!("9000")),
            ArgumentRole::Id => Some(json!(self.id)),
            ArgumentRole::Ids if argument.ty.inner_name() == "Int" => {
                Some(json!([self.id.parse::<i64>().ok()?]))
            }
            ArgumentRole::Ids => Some(json!([self.id])),
            ArgumentRole::Field(field) => self.field_value(*field),
            ArgumentRole::Compare(field, _) => self.field_value(*field),
            ArgumentRole::RelatedField(relation, field) => self.related_value(*relation, *field),
            ArgumentRole::Input => Some(self.object_value(argument)),
            ArgumentRole::KeyObject => Some(self.key_object(argument)),
            ArgumentRole::Page => Some(json!(1)),
            ArgumentRole::PageFromZero | ArgumentRole::Offset => Some(json!(0)),
            ArgumentRole::Size | ArgumentRole::Limit | ArgumentRole::First => Some(json!(20)),
            ArgumentRole::Search => self.stored_text(),
            ArgumentRole::ClientMutationId => Some(json!("one")),
            ArgumentRole::After
            | ArgumentRole::Last
            | ArgumentRole::Before
            | ArgumentRole::OrderBy
            | ArgumentRole::SortDirection
            | ArgumentRole::Where
            | ArgumentRole::ExpectedVersion
            | ArgumentRole::UniqueFields
            | ArgumentRole::GroupBy
            | ArgumentRole::Having
            | ArgumentRole::Unknown => None,
        };
        // Related records inside an input object are written by nobody yet.
        let declared = self.model.schema.types.get(argument.ty.inner_name());
        let takes_object = declared.is_some_and(|ty| ty.is_input_object());
        let value = value.filter(|value| !takes_object || value.is_object());
        let value = match declared {
            Some(ExtendedType::Enum(definition)) => {
                value.filter(|value| value.as_str().is_some_and(|text| definition.values.contains_key(text)))
            }
            _ => value,
        };
        let required = || argument.ty.is_required().then(|| self.any_value(&argument.ty, 0));
        value.map(|value| fitting_value(value, &argument.ty)).or_else(required)
    }

    fn key_object(&self, argument: &Argument) -> Json {
        let record = self.model.record(self.builtin.record);
        let mut object = json!({});
        for inner in &argument.fields {
            if member_role(record, self.builtin.verb, &inner.name) == ArgumentRole::Id {
                object[&inner.name] = fitting_value(json!(self.id), &inner.ty);
            }
        }
        object
    }

    fn object_value(&self, argument: &Argument) -> Json {
        let record = self.model.record(self.builtin.record);
        let mut object = json!({});
        for inner in &argument.fields {
            let role = member_role(record, self.builtin.verb, &inner.name);
            if let Some(value) = self.value_of(inner, &role) {
                object[&inner.name] = value;
            }
        }
        object
    }

    /// The value that the first record of the other type has.
    fn related_value(&self, relation: FieldId, field: FieldId) -> Option<Json> {
        let record = self.model.record(self.builtin.record);
        let target = record.field(relation).kind.relation()?.target();
        let field = self.model.record(target).field(field);
        if field.kind.is_id() {
            self.ids[target.0].clone().map(Json::from)
        } else {
            example_value(self.model, field)
        }
    }

    /// Reads compare with what is stored, writes set something else.
    fn field_value(&self, field: FieldId) -> Option<Json> {
        let field = self.model.record(self.builtin.record).field(field);
        let is_write = matches!(
            self.builtin.verb,
            OperationVerb::Create
                | OperationVerb::CreateMany
                | OperationVerb::Update
                | OperationVerb::UpdateMany
                | OperationVerb::Upsert
                | OperationVerb::Save
        );
        if !is_write {
            return self.stored.get(&field.input_name).cloned().filter(|value| !value.is_null());
        }
        if field.kind.is_id() {
            return Some(json!("8000"));
        }
        let is_text = field.kind.own_value() == Some(&ValueType::Scalar(Scalar::String));
        match field.kind.relation() {
            Some(relation) => {
                let id = self.ids[relation.target().0].clone()?;
                Some(if field.kind.is_reference() { json!(id) } else { json!([id]) })
            }
            None if is_text && self.builtin.verb != OperationVerb::Create => Some(json!(CHANGED_TEXT)),
            None => example_value(self.model, field),
        }
    }

    fn stored_text(&self) -> Option<Json> {
        let record = self.model.record(self.builtin.record);
        let texts = record.fields.iter().filter(|field| field.kind.is_text());
        texts.filter_map(|field| self.stored.get(&field.input_name)).find(|value| value.is_string()).cloned()
    }

    /// Any value of a type.
    fn any_value(&self, ty: &TypeRef, depth: usize) -> Json {
        if ty.is_list() {
            return json!([]);
        }
        let name = ty.inner_name();
        match self.model.schema.types.get(name) {
            Some(ExtendedType::Enum(definition)) => {
                definition.values.keys().next().map_or(Json::Null, |value| json!(value.as_str()))
            }
            Some(ExtendedType::InputObject(definition)) if depth < 4 => {
                let required = definition.fields.values().filter(|field| field.is_required());
                let members = required.map(|field| {
                    let ty = TypeRef::from(&*field.ty);
                    (field.name.to_string(), self.any_value(&ty, depth + 1))
                });
                members.collect::<serde_json::Map<String, Json>>().into()
            }
            _ => scalar_value(name),
        }
    }
}

fn scalar_value(name: &str) -> Json {
    match Scalar::from_name(name) {
        Some(Scalar::Int) => json!(1),
        Some(Scalar::Float) => json!(1.5),
        Some(Scalar::Boolean) => json!(true),
        Some(Scalar::Long | Scalar::Decimal | Scalar::Id) => json!("1"),
        Some(Scalar::Date) => json!("2026-01-31"),
        Some(Scalar::DateTime) => json!("2026-01-31T09:30:00Z"),
        Some(Scalar::LocalDateTime) => json!("2026-01-31T09:30:00"),
        Some(Scalar::Uuid) => json!("123e4567-e89b-12d3-a456-426614174000"),
        Some(Scalar::Url) => json!("https://example.com/"),
        Some(Scalar::Email) => json!("ada@example.com"),
        Some(Scalar::String) | None => json!("text"),
        Some(Scalar::Json) => json!({}),
    }
}

/// The value as the declared type writes it: ids and other numbers may be texts.
fn fitting_value(value: Json, ty: &TypeRef) -> Json {
    if ty.is_list() && !value.is_array() {
        return json!([fitting_value(value, &TypeRef::Named(ty.inner_name().to_owned()))]);
    }
    match (ty.inner_name(), &value) {
        ("Int", Json::String(text)) => text.parse::<i64>().map_or(value.clone(), |number| json!(number)),
        ("Float", Json::String(text)) => text.parse::<f64>().map_or(value.clone(), |number| json!(number)),
        ("String" | "ID", Json::Number(number)) => json!(number.to_string()),
        _ => value,
    }
}
