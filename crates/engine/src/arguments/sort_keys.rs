//! The order of a list as arguments spell it: `name`, `-user.name`, `NAME_DESC`, `{ field: "name", direction: DESC }`.

use trefoil_model::error::Violation;
use trefoil_model::naming::names;
use trefoil_model::{EmbeddedType, Field, FieldId, Model, RecordType, Value};

use crate::arguments::argument_roles::{any_case_field, filter_field};
use crate::arguments::values::{expect_object, expect_text};
use crate::operation::{MAX_SORT_DEPTH, RANK_NAME, ReferencePath, SortKey, SortValue, ValuePath};

pub(crate) fn parse_sort_keys(
    model: &Model,
    record: &RecordType,
    name: &str,
    value: Value,
) -> Result<Vec<SortKey>, Vec<Violation>> {
    let parser = SortParser { model, asked: record, argument: name };
    let mut sort_keys = Vec::new();
    for item in list_or_single(value) {
        let owner = SortOwner::of_record(record);
        if matches!(item, Value::Object(_)) {
            sort_keys.extend(parser.parse_object(&owner, item)?);
        } else {
            sort_keys.push(parser.parse_word(owner, &expect_text(name, item)?)?);
        }
    }
    Ok(sort_keys)
}

/// Parses `name` (ascending), `-user.name` (descending), `name_ASC` or `NAME_DESC`.
pub fn parse_sort_key(
    model: &Model,
    record: &RecordType,
    argument: &str,
    word: &str,
) -> Result<SortKey, Vec<Violation>> {
    SortParser { model, asked: record, argument }.parse_word(SortOwner::of_record(record), word)
}

struct SortParser<'a> {
    model: &'a Model,
    /// The type of the records that are sorted.
    asked: &'a RecordType,
    argument: &'a str,
}

impl<'m> SortParser<'m> {
    fn parse_word(&self, mut owner: SortOwner<'m>, word: &str) -> Result<SortKey, Vec<Violation>> {
        let (is_descending, name) = match word.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, word),
        };
        if name == RANK_NAME {
            return Ok(SortKey { value: SortValue::Rank, descending: !is_descending });
        }
        let (names, name) = name.rsplit_once('.').map_or((None, name), |(names, name)| (Some(names), name));
        for name in names.into_iter().flat_map(|names| names.split('.')) {
            owner = self.enter(&owner, name)?;
        }
        let with_direction = || {
            let (field, direction) = name.rsplit_once(['_', ' '])?;
            Some((owner.any_case_field(field)?, direction_from_word(direction)?))
        };
        let (field, descending) = owner
            .field_named(name)
            .map(|field| (field, is_descending))
            .or_else(with_direction)
            .or_else(|| Some((owner.any_case_field(name)?, is_descending)))
            .ok_or_else(|| self.unknown_field(&owner, name, |field| field.kind.is_comparable()))?;
        Ok(SortKey { value: SortValue::Path(owner.path_to(field)), descending })
    }

    /// `{ field: "name", direction: DESC }`, or `{ name: DESC, user: { name: ASC } }` with a member for each field.
    fn parse_object(&self, owner: &SortOwner<'m>, value: Value) -> Result<Vec<SortKey>, Vec<Violation>> {
        let name = self.argument;
        let mut sort_keys = Vec::new();
        let mut direction = None;
        for (member, value) in expect_object(name, value)? {
            if value.is_null() {
                continue;
            }
            if matches!(value, Value::Object(_)) {
                sort_keys.extend(self.parse_object(&self.enter(owner, &member)?, value)?);
                continue;
            }
            let word = expect_text(name, value)?;
            match (owner.field_named(&member), member.as_str()) {
                (Some(field), _) => {
                    let descending = direction_from_word(&word).ok_or_else(|| {
                        self.violation("TYPE", format!("`{name}.{member}` must be ASC or DESC"))
                    })?;
                    let value = SortValue::Path(owner.path_to(field));
                    sort_keys.push(SortKey { value, descending });
                }
                (None, "field" | "property" | "by" | "key") => {
                    sort_keys.push(self.parse_word(owner.clone(), &word)?);
                }
                (None, "direction" | "order") => direction = direction_from_word(&word),
                (None, _) => {
                    return Err(self.unknown_field(owner, &member, |field| field.kind.is_comparable()));
                }
            }
        }
        if let Some(descending) = direction {
            set_direction(&mut sort_keys, descending);
        }
        Ok(sort_keys)
    }

    /// The type of the record or embedded value that a field of the owner leads to.
    fn enter(&self, owner: &SortOwner<'m>, name: &str) -> Result<SortOwner<'m>, Vec<Violation>> {
        let is_inner = |field: &Field| field.kind.is_reference() || embedded_name(field).is_some();
        let found = owner.find(name).map(|id| (id, &owner.fields()[id.0]));
        let Some((id, field)) = found.filter(|(_, field)| is_inner(field)) else {
            return Err(match found {
                None => self.unknown_field(owner, name, is_inner),
                Some((_, field)) if field.kind.relation().is_some() => {
                    let message = format!("`{name}` is a list of records, which has no order to sort by");
                    self.violation("UNKNOWN_FIELD", message)
                }
                Some(_) => {
                    let message = format!("`{name}` is a single value, which has no fields to sort by");
                    self.violation("UNKNOWN_FIELD", message)
                }
            });
        };
        let path = owner.path_to(id);
        if path.references.len() + path.value.members.len() == MAX_SORT_DEPTH {
            let message = format!(
                "`{}` goes through more than {MAX_SORT_DEPTH} references and embedded values at `{name}`",
                self.argument
            );
            return Err(self.violation("DEPTH", message));
        }
        if let Some(embedded) = embedded_name(field).and_then(|name| self.model.embedded.get(name)) {
            return Ok(SortOwner::Embedded(embedded, path));
        }
        let target = field.kind.reference().map(|reference| self.model.record(reference.target));
        let target = target.ok_or_else(|| self.unknown_field(owner, name, is_inner))?;
        let mut references = path.references;
        references.push(id);
        Ok(SortOwner::Record(target, references))
    }

    fn unknown_field(
        &self,
        owner: &SortOwner<'_>,
        name: &str,
        is_known: impl Fn(&Field) -> bool,
    ) -> Vec<Violation> {
        let may_offer = |field: &Field| match owner {
            SortOwner::Record(record, _) => self.model.may_offer(self.asked, record, field),
            SortOwner::Embedded(..) => true,
        };
        let known = owner.fields().iter().filter(|field| is_known(field) && may_offer(field));
        let hint = names::nearest_name(name, known.map(|field| field.name.as_str()))
            .map(|name| format!("; did you mean `{name}`?"));
        let message =
            format!("{} has no field `{name}` to sort by{}", owner.type_name(), hint.unwrap_or_default());
        self.violation("UNKNOWN_FIELD", message)
    }

    fn violation(&self, code: &'static str, message: String) -> Vec<Violation> {
        vec![Violation::new(self.argument, code, message)]
    }
}

/// The type whose fields a sort key names, and the way to it.
#[derive(Clone)]
enum SortOwner<'m> {
    /// A record that references lead to.
    Record(&'m RecordType, Vec<FieldId>),
    /// An embedded value.
    Embedded(&'m EmbeddedType, ReferencePath),
}

impl<'m> SortOwner<'m> {
    fn of_record(record: &'m RecordType) -> SortOwner<'m> {
        SortOwner::Record(record, Vec::new())
    }

    fn type_name(&self) -> &'m str {
        match self {
            SortOwner::Record(record, _) => &record.name,
            SortOwner::Embedded(embedded, _) => &embedded.name,
        }
    }

    fn fields(&self) -> &'m [Field] {
        match self {
            SortOwner::Record(record, _) => &record.fields,
            SortOwner::Embedded(embedded, _) => &embedded.fields,
        }
    }

    fn find(&self, name: &str) -> Option<FieldId> {
        match self {
            SortOwner::Record(record, _) => any_case_field(record, name, RecordType::find_input_field),
            SortOwner::Embedded(embedded, _) => {
                embedded.fields.iter().position(|field| field.name == name).map(FieldId)
            }
        }
    }

    /// The field with exactly this name, if records can be sorted by it.
    fn field_named(&self, name: &str) -> Option<FieldId> {
        match self {
            SortOwner::Record(record, _) => filter_field(record, name),
            SortOwner::Embedded(embedded, _) => {
                self.find(name).filter(|id| embedded.fields[id.0].kind.is_comparable())
            }
        }
    }

    fn any_case_field(&self, name: &str) -> Option<FieldId> {
        match self {
            SortOwner::Record(record, _) => any_case_field(record, name, filter_field),
            SortOwner::Embedded(..) => self.field_named(name),
        }
    }

    fn path_to(&self, field: FieldId) -> ReferencePath {
        match self {
            SortOwner::Record(_, references) => {
                ReferencePath { references: references.clone(), value: field.into() }
            }
            SortOwner::Embedded(_, outer) => {
                let ValuePath { field: column, members } = &outer.value;
                let members = members.iter().copied().chain([field]).collect();
                let value = ValuePath { field: *column, members };
                ReferencePath { references: outer.references.clone(), value }
            }
        }
    }
}

fn embedded_name(field: &Field) -> Option<&str> {
    field.kind.value_type()?.embedded_name()
}

/// True for descending, false for ascending.
pub(crate) fn direction_from_word(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "asc" | "ascending" => Some(false),
        "desc" | "descending" => Some(true),
        _ => None,
    }
}

pub(crate) fn set_direction(sort_keys: &mut [SortKey], descending: bool) {
    sort_keys.iter_mut().for_each(|sort_key| sort_key.descending = descending);
}

/// The items of a list; a single value counts as a list of one.
pub(super) fn list_or_single(value: Value) -> Vec<Value> {
    match value {
        Value::List(items) => items,
        single @ (Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Object(_)) => vec![single],
    }
}
