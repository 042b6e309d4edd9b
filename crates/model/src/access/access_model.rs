//! The rules of an application.

use std::collections::BTreeMap;

use crate::access::access_rule::{AccessAction, ActorPath, RulePart, RuleTest};
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
    /// Those of `@default(from:)`.
    pub default_paths: Vec<ActorPath>,
    /// `@allow(call:)` of operations with a registered resolver, by position in [`crate::Model::root_fields`].
    pub calls: BTreeMap<usize, AccessRule>,
    /// The rules of plain lists, by name. What a list has no rule for is refused.
    pub lists: BTreeMap<String, ListAccess>,
    /// `allow` of text endpoints, by position in `trefoil.toml`. Those without it are public.
    pub texts: BTreeMap<usize, AccessRule>,
    /// Who may read the metrics of the server from other machines; nobody without it.
    pub see_metrics: Option<AccessRule>,
    /// Who may read the audit; nobody without it.
    pub see_audit: Option<AccessRule>,
}

/// The rules of a plain list, about the actor alone.
#[derive(Debug, Default)]
pub struct ListAccess {
    pub read: Option<AccessRule>,
    pub write: Option<AccessRule>,
}

impl AccessModel {
    /// The rules of all types and their fields.
    pub fn type_rules(&self) -> impl Iterator<Item = &AccessRule> {
        self.types.iter().flat_map(TypeAccess::rules)
    }

    /// The rules about the actor alone: those of operations, plain lists, text endpoints and metrics.
    pub fn actor_rules(&self) -> impl Iterator<Item = &AccessRule> {
        let lists = self.lists.values().flat_map(|rules| rules.read.iter().chain(&rules.write));
        self.calls
            .values()
            .chain(lists)
            .chain(self.texts.values())
            .chain(&self.see_metrics)
            .chain(&self.see_audit)
    }

    /// Every value of the actor's account that rules and defaults use, once: what is loaded with an account.
    pub fn actor_paths(&self) -> Vec<ActorPath> {
        let mut paths = self.default_paths.clone();
        self.type_rules()
            .chain(self.actor_rules())
            .for_each(|rule| rule.test.collect_actor_paths(&mut paths));
        if let Some(account) = &self.account {
            [&account.usable, &account.manage]
                .into_iter()
                .for_each(|test| test.collect_actor_paths(&mut paths));
        }
        paths.sort_unstable();
        paths.dedup();
        paths
    }
}

/// The type whose records are accounts: `@account`.
#[derive(Debug, Clone)]
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
    /// Of the rule of the type, or else of the schema; of the type if none names the action.
    pub location: SourceLocation,
    /// The rules as they are written, of which one must hold. One for those of `trefoil.toml`, none for those of settings.
    pub parts: Vec<RulePart>,
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

impl TypeAccess {
    /// All rules, those of fields too.
    pub fn rules(&self) -> impl Iterator<Item = &AccessRule> {
        let of_fields = self.fields.iter().flat_map(|field| [&field.read, &field.create, &field.update]);
        let of_type = [&self.read, &self.create, &self.update, &self.delete];
        of_type.into_iter().chain(&self.update_to).chain(of_fields.flatten())
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
