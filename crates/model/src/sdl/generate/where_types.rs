//! The input types of conditions: `BookWhere`, and `AddressWhere` for embedded values.

use crate::sdl::generate::input_types::{FieldTypes, comparable_fields};
use crate::{EmbeddedType, Field, FilterOperator, RecordType, Relation};

/// The endings that say which records of a list must meet the conditions.
const QUANTIFIERS: [&str; 3] = ["some", "every", "none"];

pub(super) fn where_name(type_name: &str) -> String {
    format!("{type_name}Where")
}

pub(super) fn is_where_name(name: &str) -> bool {
    name.ends_with("Where")
}

impl FieldTypes<'_> {
    /// The fields of the type of conditions with this name; `None` if it is none.
    pub(super) fn where_type_fields(&self, name: &str) -> Option<Vec<(String, String)>> {
        let is_named = |type_name: &str| where_name(type_name) == name;
        let record = self.model.records.iter().find(|record| is_named(&record.name));
        let embedded = || self.model.embedded.values().find(|embedded| is_named(&embedded.name));
        record
            .map(|record| self.record_conditions(record))
            .or_else(|| embedded().map(|ty| self.member_conditions(ty)))
    }

    fn record_conditions(&self, record: &RecordType) -> Vec<(String, String)> {
        let mut members = WhereMembers::new(where_name(&record.name), &record.fields);
        // A hidden key is not a field of the schema.
        let declared = self.schema.get_object(&record.name);
        let is_declared = |field: &&Field| {
            declared.is_some_and(|declared| declared.fields.contains_key(field.name.as_str()))
        };
        for field in record.fields.iter().filter(is_declared) {
            self.add_field(&mut members, &record.name, field);
            let Some(relation) = field.kind.relation() else { continue };
            let target = where_name(&self.model.records[relation.target().0].name);
            match relation {
                Relation::Reference(_) => members.add(field.name.clone(), target),
                Relation::Inverse(_) | Relation::Link(_) => {
                    for quantifier in QUANTIFIERS {
                        members.add(format!("{}_{quantifier}", field.name), target.clone());
                    }
                }
            }
        }
        members.finish()
    }

    fn member_conditions(&self, embedded: &EmbeddedType) -> Vec<(String, String)> {
        let mut members = WhereMembers::new(where_name(&embedded.name), &embedded.fields);
        for (field, _) in embedded.stored_fields() {
            self.add_field(&mut members, &embedded.name, field);
        }
        members.finish()
    }

    /// The conditions on the value of a field.
    fn add_field(&self, members: &mut WhereMembers<'_>, owner: &str, field: &Field) {
        let Some(value_type) = field.kind.value_type() else { return };
        let name = &field.input_name;
        let ty = self.single_type(owner, field);
        if let Some(embedded) = value_type.embedded_name() {
            members.add_plain(name, where_name(embedded));
        } else if field.kind.is_comparable() {
            members.add_plain(name, ty.clone());
        }
        for (suffix, operator) in FilterOperator::offered_for(field) {
            let operand = match operator {
                FilterOperator::Compare(_) => ty.clone(),
                FilterOperator::In | FilterOperator::NotIn => format!("[{ty}!]"),
                FilterOperator::Text(_) => "String".to_owned(),
                FilterOperator::IsNull | FilterOperator::IsEmpty => "Boolean".to_owned(),
                FilterOperator::Has => item_type(&ty).to_owned(),
            };
            members.add(format!("{name}_{suffix}"), operand);
        }
    }

    /// True if there is something to filter a list of these records by.
    pub(super) fn has_conditions(&self, record: &RecordType) -> bool {
        comparable_fields(self.schema, record).next().is_some()
    }
}

/// `String` for `[String!]`.
fn item_type(list: &str) -> &str {
    list.trim_start_matches('[').trim_end_matches([']', '!'])
}

/// The members of one type of conditions.
struct WhereMembers<'m> {
    type_name: String,
    fields: &'m [Field],
    members: Vec<(String, String)>,
}

impl<'m> WhereMembers<'m> {
    fn new(type_name: String, fields: &'m [Field]) -> WhereMembers<'m> {
        WhereMembers { type_name, fields, members: Vec::new() }
    }

    /// Adds a condition that is called like its field.
    fn add_plain(&mut self, name: &str, ty: String) {
        self.members.push((name.to_owned(), ty));
    }

    /// Adds another condition, unless a field has its name.
    fn add(&mut self, name: String, ty: String) {
        let is_field = |field: &Field| field.input_name == name && field.kind.is_comparable();
        let is_taken = self.members.iter().any(|(known, _)| *known == name);
        if !is_taken && !self.fields.iter().any(is_field) {
            self.members.push((name, ty));
        }
    }

    fn finish(mut self) -> Vec<(String, String)> {
        let own = self.type_name.clone();
        for (name, ty) in [("and", format!("[{own}!]")), ("or", format!("[{own}!]")), ("not", own)] {
            self.add(name.to_owned(), ty);
        }
        self.members
    }
}
