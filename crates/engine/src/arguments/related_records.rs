//! Related records inside an input: `user: { create: {…} }`, `lines: { create: […], delete: […] }`.

use trefoil_model::error::{PathSegment, Violation};
use trefoil_model::naming::names;
use trefoil_model::values::coerce;
use trefoil_model::{FieldId, Model, RecordId, RecordType, RecordTypeId, Relation, Value};

use crate::operation::{MAX_WRITE_DEPTH, RecordInput, RelatedInput};

/// The members of an input for the records of a list.
const LIST_MEMBERS: [&str; 6] = ["create", "update", "delete", "connect", "disconnect", "set"];

/// What an object in an input is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputPurpose {
    Create,
    Update,
}

/// Reads the names and ids inside an input, which GraphQL and REST write differently.
pub trait RecordReader {
    /// A value in the place of a list is a list of one.
    fn takes_single_values(&self) -> bool;

    fn model(&self) -> &Model;

    /// The record that the members describe, `depth` levels below the first one.
    fn read_record(
        &self,
        record: RecordTypeId,
        members: Vec<(String, Value)>,
        purpose: InputPurpose,
        depth: usize,
    ) -> Result<RecordInput, Vec<Violation>>;

    fn read_id(&self, record: &RecordType, name: &str, value: &Value) -> Result<RecordId, Vec<Violation>>;
}

/// What is given for a relation.
#[derive(Debug)]
pub enum RelatedValue {
    /// The id of the record that a reference leads to.
    Id(Value),
    Records(RelatedInput),
}

/// True if the value describes related records instead of naming them.
pub fn describes_records(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::List(items) => items.iter().any(|item| matches!(item, Value::Object(_))),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Reads what is given for a relation of a record that is `depth` levels below the first one.
pub fn read_related(
    reader: &dyn RecordReader,
    owner: &RecordType,
    relation: FieldId,
    value: Value,
    purpose: InputPurpose,
    depth: usize,
) -> Result<RelatedValue, Vec<Violation>> {
    let field = owner.field(relation);
    let Some(target) = field.kind.relation().map(Relation::target) else {
        return Err(vec![Violation::new(&field.name, "TYPE", format!("`{}` has no records", field.name))]);
    };
    if depth >= MAX_WRITE_DEPTH {
        let message = format!("related records can be nested at most {MAX_WRITE_DEPTH} levels deep");
        return Err(vec![Violation::new(&field.name, "DEPTH", message)]);
    }
    let input = RelatedReader { reader, target, relation, name: &field.name, purpose, depth: depth + 1 };
    let read = if field.kind.is_reference() { input.reference(value) } else { input.list(value) };
    read.map_err(|violations| {
        let segment = || PathSegment::Field(field.name.clone());
        violations.into_iter().map(|violation| violation.nested_under(segment())).collect()
    })
}

struct RelatedReader<'a> {
    reader: &'a dyn RecordReader,
    target: RecordTypeId,
    relation: FieldId,
    name: &'a str,
    /// Of the record that has the relation.
    purpose: InputPurpose,
    depth: usize,
}

/// Violations with paths below the relation.
type ReadResult<T> = Result<T, Vec<Violation>>;

impl RelatedReader<'_> {
    fn target(&self) -> &RecordType {
        self.reader.model().record(self.target)
    }

    /// `{ id: 1 }` or `{ create: {…} }`.
    fn reference(&self, value: Value) -> ReadResult<RelatedValue> {
        let Value::Object(members) = value else {
            return Err(here("TYPE", format!("`{}` is one record, not a list", self.name)));
        };
        let key = self.target().field(self.target().id_field()).name.clone();
        let (mut id, mut create) = (None, None);
        for (name, value) in members.into_iter().filter(|(_, value)| !value.is_null()) {
            match name.as_str() {
                "create" => create = Some(value),
                known if known == "id" || known == key => id = Some(value),
                _ => return Err(self.unknown_member(&name, &["id", "create"])),
            }
        }
        match (id, create) {
            (Some(id), None) => {
                let id = self.reader.read_id(self.target(), "id", &id)?;
                Ok(RelatedValue::Id(id.to_value()))
            }
            (None, Some(create)) => {
                let record = self.new_record(create)?;
                Ok(RelatedValue::Records(RelatedInput {
                    create: vec![record],
                    ..RelatedInput::new(self.relation)
                }))
            }
            (None, None) | (Some(_), Some(_)) => Err(here(
                "TYPE",
                format!("`{}` must have either `id` or `create`: {{ \"id\": 1 }}", self.name),
            )),
        }
    }

    /// `{ create: […], update: […], … }`, or a list of objects, which are created.
    fn list(&self, value: Value) -> ReadResult<RelatedValue> {
        let mut related = RelatedInput::new(self.relation);
        let members = match value {
            Value::Object(members) => members,
            items @ Value::List(_) if self.purpose == InputPurpose::Create => {
                related.create = self.each("", items, |item| self.new_record(item))?;
                return Ok(RelatedValue::Records(related));
            }
            other @ (Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::List(_)) => {
                let noun = other.type_noun();
                let message = format!(
                    "`{}` of an existing record must be an object with {}, not {noun}",
                    self.name,
                    quoted_list(&LIST_MEMBERS)
                );
                return Err(here("TYPE", message));
            }
        };
        let mut violations = Vec::new();
        for (name, value) in members.into_iter().filter(|(_, value)| !value.is_null()) {
            if let Err(found) = self.accept_member(&mut related, &name, value) {
                violations.extend(found);
            }
            if violations.len() >= coerce::MAX_VIOLATIONS {
                break;
            }
        }
        if violations.is_empty() { Ok(RelatedValue::Records(related)) } else { Err(violations) }
    }

    fn accept_member(&self, related: &mut RelatedInput, name: &str, value: Value) -> ReadResult<()> {
        let has_others = self.purpose == InputPurpose::Update;
        match name {
            // Paths leave `create` out, as in a list of objects: `lines[2].price`.
            "create" => related.create = self.each("", value, |item| self.new_record(item))?,
            "connect" => related.connect = self.ids(name, value)?,
            "set" => related.set = Some(self.ids(name, value)?),
            "update" if has_others => related.update = self.each(name, value, |item| self.change(item))?,
            "delete" if has_others => related.delete = self.ids(name, value)?,
            "disconnect" if has_others => related.disconnect = self.ids(name, value)?,
            "update" | "delete" | "disconnect" => {
                let message =
                    format!("a new record has no `{}` yet, so that there is none to {name}", self.name);
                return Err(nested(here("UNKNOWN", message), name));
            }
            _ => return Err(self.unknown_member(name, &LIST_MEMBERS)),
        }
        Ok(())
    }

    fn new_record(&self, value: Value) -> ReadResult<RecordInput> {
        let members = self.expect_object(value)?;
        self.reader.read_record(self.target, members, InputPurpose::Create, self.depth)
    }

    /// `{ id: 1, input: {…} }`
    fn change(&self, value: Value) -> ReadResult<(RecordId, RecordInput)> {
        let key = self.target().field(self.target().id_field()).name.clone();
        let (mut id, mut input) = (None, None);
        for (name, value) in self.expect_object(value)?.into_iter().filter(|(_, value)| !value.is_null()) {
            match name.as_str() {
                "input" => input = Some(value),
                known if known == "id" || known == key => id = Some(value),
                _ => return Err(self.unknown_member(&name, &["id", "input"])),
            }
        }
        let (Some(id), Some(input)) = (id, input) else {
            return Err(here("REQUIRED", "a change needs `id` and `input`".to_owned()));
        };
        let id = self.reader.read_id(self.target(), "id", &id)?;
        let read = self.expect_object(input).and_then(|members| {
            self.reader.read_record(self.target, members, InputPurpose::Update, self.depth)
        });
        Ok((id, read.map_err(|found| nested(found, "input"))?))
    }

    fn ids(&self, member: &str, value: Value) -> ReadResult<Vec<RecordId>> {
        let read = |item: Value| {
            // The name that the reader puts in front is that of the list, which has an index instead.
            let without_name = |mut violation: Violation| {
                violation.path.clear();
                violation
            };
            let id = self.reader.read_id(self.target(), member, &item);
            id.map_err(|found| found.into_iter().map(without_name).collect())
        };
        self.each(member, value, read)
    }

    /// Reads each item of a list; in GraphQL a single value is a list of one. Violations get the member, if it has a name, and the
    /// index.
    fn each<T>(
        &self,
        member: &str,
        value: Value,
        read: impl Fn(Value) -> ReadResult<T>,
    ) -> ReadResult<Vec<T>> {
        let items = match value {
            Value::List(items) => items,
            single @ (Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_))
                if self.reader.takes_single_values() =>
            {
                vec![single]
            }
            single @ (Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Object(_)) => {
                let found = here("TYPE", format!("must be a list, not {}", single.type_noun()));
                return Err(if member.is_empty() { found } else { nested(found, member) });
            }
        };
        let (mut list, mut violations) = (Vec::with_capacity(items.len()), Vec::new());
        for (index, item) in items.into_iter().enumerate() {
            match read(item) {
                Ok(item) => list.push(item),
                Err(found) => {
                    let segment = || PathSegment::Index(index);
                    violations.extend(found.into_iter().map(|violation| violation.nested_under(segment())));
                }
            }
            if violations.len() >= coerce::MAX_VIOLATIONS {
                break;
            }
        }
        match violations.is_empty() {
            true => Ok(list),
            false if member.is_empty() => Err(violations),
            false => Err(nested(violations, member)),
        }
    }

    fn expect_object(&self, value: Value) -> ReadResult<Vec<(String, Value)>> {
        value.into_fields().map_err(|noun| {
            let label = self.target().label().to_lowercase();
            here("TYPE", format!("a {label} must be an object, not {noun}"))
        })
    }

    fn unknown_member(&self, name: &str, known: &[&str]) -> Vec<Violation> {
        let near = names::nearest_name(name, known.iter().copied());
        let hint = near.map_or_else(
            || format!("; use {}", quoted_list(known)),
            |near| format!("; did you mean `{near}`?"),
        );
        vec![Violation::new(name, "UNKNOWN", format!("`{}` has no member `{name}`{hint}", self.name))]
    }
}

/// A violation of the value itself.
fn here(code: &'static str, message: String) -> Vec<Violation> {
    vec![Violation { path: Vec::new(), code, message }]
}

fn nested(violations: Vec<Violation>, member: &str) -> Vec<Violation> {
    let segment = || PathSegment::Field(member.to_owned());
    violations.into_iter().map(|violation| violation.nested_under(segment())).collect()
}

/// `create`, `update` or `delete`, quoted.
fn quoted_list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [name] => format!("`{name}`"),
        [first @ .., last] => format!("`{}` or `{last}`", first.join("`, `")),
    }
}
