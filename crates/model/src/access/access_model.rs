//! The rules of a schema.

use crate::RecordType;
use crate::access::access_rule::{AccessAction, RuleTest, RuleValue};
use crate::field_kind::{FieldId, RecordTypeId};
use crate::source_file::SourceLocation;

/// What actors may do. An application without it is open: everybody may do everything.
#[derive(Debug)]
pub struct AccessModel {
    pub account: Option<AccountType>,
    /// By [`RecordTypeId`].
    pub types: Vec<TypeAccess>,
    /// The roles that the schema knows: those of the accounts, or else those that rules name.
    pub roles: Vec<String>,
}

/// The type whose records are accounts: `@account`.
#[derive(Debug)]
pub struct AccountType {
    pub record: RecordTypeId,
    /// A required and unique text.
    pub login: FieldId,
    pub roles: Option<FieldId>,
    /// While it does not hold, the account cannot be used.
    pub usable: RuleTest,
    /// Who may end sessions of an account and make links for it.
    pub manage: RuleTest,
    pub has_sign_up: bool,
}

/// A rule and where it is written.
#[derive(Debug, Clone)]
pub struct AccessRule {
    pub test: RuleTest,
    /// Of the rule of the type, or else of the schema; empty if none allows the action.
    pub location: SourceLocation,
}

/// Who may do what with the records of a type.
#[derive(Debug)]
pub struct TypeAccess {
    pub read: AccessRule,
    pub create: AccessRule,
    pub update: AccessRule,
    /// On the record as it would be; without it `update` is tested again.
    pub update_to: Option<AccessRule>,
    pub delete: AccessRule,
    /// By [`FieldId`].
    pub fields: Vec<FieldAccess>,
}

/// The rules of a field, besides those of its type.
#[derive(Debug, Default)]
pub struct FieldAccess {
    pub read: Option<AccessRule>,
    pub create: Option<AccessRule>,
    pub update: Option<AccessRule>,
}

impl AccessModel {
    /// Marks the fields with a rule for reading, and those that lead to records which not everybody may read.
    pub(crate) fn mark_hidden_fields(&self, records: &mut [RecordType]) {
        for (record, rules) in records.iter_mut().zip(&self.types) {
            for (field, rules) in record.fields.iter_mut().zip(&rules.fields) {
                let target = field.kind.reference().map(|reference| &self.types[reference.target.0]);
                let is_target_open = target.is_none_or(|target| target.read.test.as_constant() == Some(true));
                field.may_be_hidden = rules.read.is_some() || !is_target_open;
            }
        }
    }

    /// The fields of an actor's account that rules use, each once: the references from the account, and the field.
    pub fn actor_paths(&self) -> Vec<(&[FieldId], FieldId)> {
        let mut paths = ActorPaths(Vec::new());
        if let Some(account) = &self.account {
            paths.add_test(&account.usable);
            paths.add_test(&account.manage);
        }
        for rule in self.types.iter().flat_map(TypeAccess::all_rules) {
            paths.add_test(&rule.test);
        }
        paths.0
    }
}

/// The fields of accounts found so far.
struct ActorPaths<'m>(Vec<(&'m [FieldId], FieldId)>);

impl<'m> ActorPaths<'m> {
    fn add_test(&mut self, test: &'m RuleTest) {
        test.visit_values(&mut |value: &'m RuleValue| {
            if let RuleValue::Actor { references, field } = value
                && !self.0.contains(&(references.as_slice(), *field))
            {
                self.0.push((references.as_slice(), *field));
            }
        });
    }
}

impl TypeAccess {
    /// Every rule of the type and its fields.
    fn all_rules(&self) -> impl Iterator<Item = &AccessRule> {
        let TypeAccess { read, create, update, update_to, delete, fields } = self;
        let of_fields = fields.iter().flat_map(|field| [&field.read, &field.create, &field.update]).flatten();
        [read, create, update, delete].into_iter().chain(update_to).chain(of_fields)
    }

    pub fn rule(&self, action: AccessAction) -> &AccessRule {
        match action {
            AccessAction::Read => &self.read,
            AccessAction::Create => &self.create,
            AccessAction::Update => &self.update,
            AccessAction::UpdateTo => self.update_to.as_ref().unwrap_or(&self.update),
            AccessAction::Delete => &self.delete,
        }
    }
}
