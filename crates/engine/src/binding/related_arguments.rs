//! The arguments of queries that ask for what records are related to: `employeesByDepartment(code)`, `products(tagId)`.

use trefoil_model::naming::names::snake_words;
use trefoil_model::naming::operation_verbs::{TypeNoun, singular_words, type_words};
use trefoil_model::{Argument, FieldId, RecordType};

use crate::arguments::argument_roles::{any_case_field, filter_field};
use crate::binding::named_arguments::NamedArguments;
use crate::builtin_operation::{ArgumentRole, OperationVerb};

impl NamedArguments<'_> {
    /// True for queries of any number of records, which may ask for what is related to them. A write or a subscription
    /// would need another meaning: `removeMemberByTeamName(memberId, teamName)`.
    pub(super) fn may_ask_related(&self) -> bool {
        matches!(self.verb, OperationVerb::List | OperationVerb::Count | OperationVerb::Exists)
    }

    /// `products(categoryId: ID!)`, where a product has `categories: [Category!]!`.
    pub(super) fn accept_related_ids(&mut self) {
        for position in 0..self.roles.len() {
            let words = snake_words(&self.arguments[position].name);
            if self.roles[position].1 == ArgumentRole::Unknown
                && is_plain_value(&self.arguments[position])
                && let Some(role) = words.strip_suffix("_id").and_then(|name| self.related_key(name))
                && !self.roles.iter().any(|(_, other)| *other == role)
            {
                self.roles[position].1 = role;
            }
        }
    }

    /// The key of the records in the list with this name, in the singular. The type alone does not say which list is
    /// meant: a post has `likedBy: [User!]!`, too. In a list of records of the same type it would not say which side.
    fn related_key(&self, name: &str) -> Option<ArgumentRole> {
        let fields = self.record.fields.iter().enumerate();
        let mut lists = fields.filter_map(|(position, field)| {
            let relation = field.kind.relation().filter(|_| !field.kind.is_reference())?;
            let target = self.model.record(relation.target());
            let is_named = singular_words(&snake_words(&field.name)) == name;
            let is_clear = target.name != self.record.name && !self.names_other_type(name, target);
            (is_named && is_clear).then(|| ArgumentRole::RelatedField(FieldId(position), target.id_field()))
        });
        lists.next().filter(|_| lists.next().is_none())
    }

    /// `itemId` is no id of a CartItem where there is a type Item.
    fn names_other_type(&self, name: &str, target: &RecordType) -> bool {
        self.model
            .records
            .iter()
            .any(|record| record.name != target.name && TypeNoun::new(&record.name, |_| false).is_named(name))
    }

    /// `employeesByDepartment(code: String!)`, `booksByAuthorName(authorName: String!)`: the one argument without another
    /// meaning is a field of the records that a relation leads to.
    pub(super) fn accept_related(&mut self, by: &str) -> bool {
        if !self.may_ask_related() {
            return false;
        }
        let is_related = |(_, role): &(String, ArgumentRole)| matches!(role, ArgumentRole::RelatedField(..));
        if self.related_key(by).is_some_and(|key| self.roles.iter().any(|(_, role)| *role == key)) {
            return true;
        }
        let key = ArgumentRole::Field(self.record.id_field());
        let unknown =
            self.roles.iter().zip(self.arguments).enumerate().filter(|(_, ((_, role), argument))| {
                let is_id = *role == key && argument.name == "id" && argument.ty.is_required();
                *role == ArgumentRole::Unknown || is_id
            });
        let positions: Vec<usize> = unknown.map(|(position, _)| position).collect();
        let [position] = positions.as_slice() else { return false };
        if self.roles.iter().any(is_related) {
            return false;
        }
        let Some(role) = self.related_role(by, &self.arguments[*position]) else { return false };
        self.roles[*position].1 = role;
        true
    }

    /// The relation that the words after `by` name, and the field of its records that they or the argument name.
    fn related_role(&self, by: &str, argument: &Argument) -> Option<ArgumentRole> {
        let words = snake_words(&argument.name);
        let mut found: Vec<ArgumentRole> = Vec::new();
        for (position, field) in self.record.fields.iter().enumerate() {
            let Some(relation) = field.kind.relation().filter(|_| is_plain_value(argument)) else { continue };
            let target = self.model.record(relation.target());
            let mut names = vec![singular_words(&snake_words(&field.name))];
            let is_only = || self.find_reference(&type_words(&target.name)) == Some(FieldId(position));
            if field.kind.is_reference() && is_only() {
                names.push(type_words(&target.name));
            }
            let is_self_list = target.name == self.record.name && !field.kind.is_reference();
            names.retain(|name| !is_self_list && !self.names_other_type(name, target));
            for name in names {
                let Some(rest) = by.strip_prefix(&name) else { continue };
                let own = words.strip_prefix(&format!("{name}_")).unwrap_or(&words);
                if !rest.is_empty() && rest.strip_prefix('_') != Some(own) {
                    continue;
                }
                let is_id = own == "id" || (*own == name && argument.ty.inner_name() == "ID");
                let role = match (is_id, field.kind.is_reference()) {
                    (true, true) => Some(ArgumentRole::Field(FieldId(position))),
                    (true, false) => self.related_key(&name),
                    (false, _) => value_field(target, own)
                        .map(|inner| ArgumentRole::RelatedField(FieldId(position), inner)),
                };
                found.extend(role);
            }
        }
        found.dedup();
        if let [only] = found.as_slice() { Some(only.clone()) } else { None }
    }

    /// The two fields that an argument can mean: `code` of an Employee, or that of its Department, in
    /// `employeesByDepartment(code: String!)`.
    pub fn two_fields(&self, by: &str) -> Option<String> {
        let both = self.arguments.iter().zip(&self.roles).find_map(|(argument, (_, role))| {
            let ArgumentRole::Field(own) = role else { return None };
            let ArgumentRole::RelatedField(relation, field) = self.related_role(by, argument)? else {
                return None;
            };
            let target = self.model.record(self.record.field(relation).kind.relation()?.target());
            Some((argument, self.record.field(*own), target, target.field(field)))
        });
        both.filter(|_| self.may_ask_related()).map(|(argument, own, target, field)| {
            format!(
                "`{}` has two readings: `{}.{}` and `{}.{}`",
                argument.name, self.record.name, own.name, target.name, field.name
            )
        })
    }
}

/// A field with values to compare, by its name: neither the key nor a reference, which are named by ids.
fn value_field(record: &RecordType, words: &str) -> Option<FieldId> {
    any_case_field(record, words, filter_field)
        .filter(|id| !record.field(*id).kind.is_id() && !record.field(*id).kind.is_reference())
}

/// True for one value that is no object.
fn is_plain_value(argument: &Argument) -> bool {
    !argument.ty.is_list() && argument.fields.is_empty()
}
