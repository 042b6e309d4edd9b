//! Looks up the paths in a rule: `author.team.name`, `me.team`, `old.status`, and single words.

use crate::access::access_rule::{RecordPath, RuleTest, RuleValue};
use crate::access::expression::rule_error::RuleError;
use crate::access::expression::rule_mistakes::{check_length, list_misuse, path_span, unknown_field};
use crate::access::expression::rule_scope::{Resolved, RulePlace, RuleResolutionError, RuleResolver, WORDS};
use crate::access::expression::rule_syntax::PathName;
use crate::access::expression::value_kind::{TypedOperand, TypedValue, ValueKind};
use crate::naming::names::nearest_name;
use crate::{Field, FieldId, FieldKind, RecordTypeId, Relation, Scalar, ValueType};

/// What a path stands for.
pub(super) enum PathMeaning {
    Test(RuleTest),
    Value(TypedValue),
    /// A list of records.
    RecordList {
        owner: RecordPath,
        relation: FieldId,
        target: RecordTypeId,
    },
}

pub(super) enum PathStart {
    Record(RecordPath, RecordTypeId),
    Me(RecordTypeId),
    Old,
}

impl<'a> RuleResolver<'a> {
    /// A path that leads to one record.
    pub(super) fn resolve_record(&mut self, path: &[PathName]) -> Resolved<(RecordPath, RecordTypeId)> {
        let span = path_span(path);
        let (start, rest) = self.start_of(path)?;
        let Some(PathStart::Record(mut at, mut record)) = start else {
            return Err(RuleError::new(span, "RULE_TYPE", "this is no reference to a record").into());
        };
        for name in rest {
            let (field_id, field) = self.find_field(record, name)?;
            let Some(reference) = field.kind.reference() else {
                let message = format!("`{}` is no reference to a record", name.name);
                return Err(RuleError::new(name.span.clone(), "RULE_TYPE", message).into());
            };
            at.references.push(field_id);
            record = reference.target;
        }
        check_length(&at.references, &span)?;
        Ok((at, record))
    }

    /// The record that a path starts from, and the names after it; `None` for a single word of the language.
    fn start_of<'p>(&self, path: &'p [PathName]) -> Resolved<(Option<PathStart>, &'p [PathName])> {
        let (first, rest) = path.split_first().ok_or(RuleResolutionError::Elsewhere)?;
        let is_word = WORDS.contains(&first.name.as_str()) && first.name != "this";
        if self.variables.is_empty() && !is_word {
            let is_constant = rest.is_empty() && is_constant_name(&first.name);
            return if is_constant { Ok((None, path)) } else { Err(self.no_record(first).into()) };
        }
        let named = self
            .variables
            .iter()
            .skip(self.first_visible)
            .position(|variable| variable.name.as_deref() == Some(first.name.as_str()));
        let record_at = |variable: usize| {
            let path = RecordPath { variable, references: Vec::new() };
            PathStart::Record(path, self.variables[variable].record)
        };
        Ok(match first.name.as_str() {
            "this" => (Some(record_at(self.first_visible)), rest),
            "old" if self.allows_old => (Some(PathStart::Old), rest),
            "old" => {
                return Err(RuleError::new(
                    first.span.clone(),
                    "RULE_NAME",
                    "`old` can only be used in `updateTo`",
                )
                .label("the record has no state before")
                .into());
            }
            "me" => match self.names.account {
                Some(account) => (Some(PathStart::Me(account)), rest),
                None => {
                    return Err(RuleError::new(
                        first.span.clone(),
                        "RULE_NAME",
                        "nobody is `me`: there are no accounts",
                    )
                    .label("no type has `@account`")
                    .help("mark the type of the accounts with `@account(login: …, roles: …)`")
                    .into());
                }
            },
            word if WORDS.contains(&word) => (None, path),
            _ if named.is_some() => (named.map(|position| record_at(self.first_visible + position)), rest),
            _ => (Some(record_at(self.first_visible)), path),
        })
    }

    /// The mistake of a field in an expression about the actor alone.
    fn no_record(&self, name: &PathName) -> RuleError {
        let message =
            format!("`{}` is no word of the language, and there is no record to take it from", name.name);
        let words = WORDS.into_iter().filter(|word| !matches!(*word, "this" | "old"));
        let near = nearest_name(&name.name, words);
        RuleError::new(name.span.clone(), "RULE_NAME", message).label("this is about the actor alone").help(
            match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "use `me`, `signedIn`, `role(…)` or `claim(…)`".to_owned(),
            },
        )
    }

    pub(super) fn resolve_path(&mut self, path: &[PathName]) -> Resolved<PathMeaning> {
        let (start, rest) = self.start_of(path)?;
        match start {
            None => self.resolve_word(path),
            Some(PathStart::Me(account)) => self.resolve_actor_path(account, path, rest),
            Some(PathStart::Old) => self.resolve_old(path, rest),
            Some(PathStart::Record(at, record)) => self.resolve_field_path(at, record, path, rest),
        }
    }

    fn resolve_word(&self, path: &[PathName]) -> Resolved<PathMeaning> {
        let name = &path[0];
        let time = |value, scalar| {
            let kind = ValueKind::Value(ValueType::Scalar(scalar));
            PathMeaning::Value(TypedValue { value: TypedOperand::Value(value), kind })
        };
        if let Some(after) = path.get(1) {
            let message = format!("`{}` has no fields", name.name);
            return Err(RuleError::new(after.span.clone(), "RULE_NAME", message).into());
        }
        Ok(match name.name.as_str() {
            "true" => PathMeaning::Test(RuleTest::Constant(true)),
            "false" => PathMeaning::Test(RuleTest::Constant(false)),
            "signedIn" => PathMeaning::Test(RuleTest::SignedIn),
            "now" => time(RuleValue::Now, Scalar::DateTime),
            "today" => time(RuleValue::Today, Scalar::Date),
            "null" => PathMeaning::Value(TypedValue { value: TypedOperand::Null, kind: ValueKind::Open }),
            // Perhaps the value of an enum; the other side tells.
            other => PathMeaning::Value(TypedValue {
                value: TypedOperand::Name(other.to_owned()),
                kind: ValueKind::Open,
            }),
        })
    }

    fn resolve_actor_path(
        &self,
        account: RecordTypeId,
        path: &[PathName],
        rest: &[PathName],
    ) -> Resolved<PathMeaning> {
        let (mut record, mut references) = (account, Vec::new());
        let mut last = (self.record(account).id_field(), self.record_kind(account));
        for (position, name) in rest.iter().enumerate() {
            let (field_id, field) = self.find_field(record, name)?;
            if position + 1 < rest.len() {
                let Some(reference) = field.kind.reference() else {
                    let message = format!("`{}` is no reference to a record", name.name);
                    return Err(RuleError::new(name.span.clone(), "RULE_TYPE", message).into());
                };
                references.push(field_id);
                record = reference.target;
            }
            let Some(kind) = self.field_kind(field) else { return Err(list_misuse(path).into()) };
            last = (field_id, kind);
        }
        check_length(&references, &path_span(path))?;
        let value = TypedOperand::Value(RuleValue::Actor { references, field: last.0 });
        Ok(PathMeaning::Value(TypedValue { value, kind: last.1 }))
    }

    fn resolve_old(&self, path: &[PathName], rest: &[PathName]) -> Resolved<PathMeaning> {
        let [name] = rest else {
            let message = "`old` gives a field of the record itself, as in `old.status`";
            return Err(RuleError::new(path_span(path), "RULE_NAME", message).into());
        };
        let record = self.variables[self.first_visible].record;
        let (field_id, field) = self.find_field(record, name)?;
        let Some(kind) = self.field_kind(field) else { return Err(list_misuse(path).into()) };
        let value = TypedOperand::Value(RuleValue::Old(field_id));
        Ok(PathMeaning::Value(TypedValue { value, kind }))
    }

    fn resolve_field_path(
        &mut self,
        mut at: RecordPath,
        mut record: RecordTypeId,
        path: &[PathName],
        rest: &[PathName],
    ) -> Resolved<PathMeaning> {
        let span = path_span(path);
        let value = |record: RecordPath, field, members, kind| {
            let value = TypedOperand::Value(RuleValue::Field { record, field, members });
            Ok(PathMeaning::Value(TypedValue { value, kind }))
        };
        let Some((last, before)) = rest.split_last() else {
            let kind = self.record_kind(record);
            return value(at, self.record(record).id_field(), Vec::new(), kind);
        };
        for (position, name) in before.iter().enumerate() {
            let (field_id, field) = self.find_field(record, name)?;
            match &field.kind {
                FieldKind::Relation(Relation::Reference(reference)) => {
                    at.references.push(field_id);
                    record = reference.target;
                }
                FieldKind::Value(ValueType::Embedded(embedded)) => {
                    let (members, kind) = self.resolve_members(embedded, &rest[position + 1..])?;
                    return value(at, field_id, members, kind);
                }
                FieldKind::Relation(Relation::Inverse(_) | Relation::Link(_)) => {
                    return Err(list_misuse(path).into());
                }
                FieldKind::Id(_) | FieldKind::Value(_) | FieldKind::Unstored => {
                    let message = format!("`{}` has no fields", name.name);
                    return Err(RuleError::new(name.span.clone(), "RULE_NAME", message).into());
                }
            }
        }
        check_length(&at.references, &span)?;
        let is_rule = self.names.sources.named_rule(record, &last.name).cloned();
        if let Some(rule) = is_rule
            && self.record(record).find_field(&last.name).is_none()
        {
            let expanded = RulePlace::Named(record, last.name.clone());
            return self.expand(at, record, expanded, &[rule], last.span.clone()).map(PathMeaning::Test);
        }
        let is_first = path.len() == 1;
        let found = self.record(record).find_field(&last.name);
        if found.is_none() && is_first && is_constant_name(&last.name) {
            return self.resolve_word(path);
        }
        let (field_id, field) = self.find_field(record, last)?;
        match &field.kind {
            FieldKind::Relation(Relation::Inverse(_) | Relation::Link(_)) => {
                let target = field.kind.relation().map_or(record, Relation::target);
                Ok(PathMeaning::RecordList { owner: at, relation: field_id, target })
            }
            FieldKind::Unstored => {
                let message = format!("`{}` is not stored, so a rule cannot use it", last.name);
                Err(RuleError::new(last.span.clone(), "RULE_NAME", message).into())
            }
            FieldKind::Id(_) | FieldKind::Value(_) | FieldKind::Relation(Relation::Reference(_)) => {
                let kind = self.field_kind(field).ok_or(RuleResolutionError::Elsewhere)?;
                value(at, field_id, Vec::new(), kind)
            }
        }
    }

    fn resolve_members(&self, embedded: &str, rest: &[PathName]) -> Resolved<(Vec<FieldId>, ValueKind)> {
        let (mut members, mut type_name) = (Vec::new(), embedded);
        let mut kind = ValueKind::Value(ValueType::Embedded(embedded.to_owned()));
        for (position, name) in rest.iter().enumerate() {
            let fields =
                self.names.embedded.get(type_name).map(|ty| ty.fields.as_slice()).unwrap_or_default();
            let found = fields.iter().position(|field| field.name == name.name);
            let Some((found, value_type)) =
                found.and_then(|found| Some((found, fields[found].kind.value_type()?)))
            else {
                let known = fields.iter().map(|field| field.name.as_str());
                return Err(unknown_field(name, type_name, known).into());
            };
            members.push(FieldId(found));
            kind = ValueKind::Value(value_type.clone());
            match value_type.embedded_name() {
                Some(inner) => type_name = inner,
                None if position + 1 < rest.len() => {
                    let message = format!("`{}` has no fields", name.name);
                    return Err(RuleError::new(name.span.clone(), "RULE_NAME", message).into());
                }
                None => {}
            }
        }
        Ok((members, kind))
    }

    fn find_field(&self, record: RecordTypeId, name: &PathName) -> Resolved<(FieldId, &'a Field)> {
        let owner = self.record(record);
        match owner.find_field(&name.name) {
            Some(found) => Ok((found, owner.field(found))),
            None => {
                let fields = owner.fields.iter().map(|field| field.name.as_str());
                let named = self.names.sources.named.keys();
                let rules = named.filter(|(of, _)| *of == record).map(|(_, name)| name.as_str());
                Err(unknown_field(name, &owner.name, fields.chain(rules)).into())
            }
        }
    }

    /// The type of a field with a single value or a list of values.
    fn field_kind(&self, field: &Field) -> Option<ValueKind> {
        match &field.kind {
            FieldKind::Relation(Relation::Reference(reference)) => Some(self.record_kind(reference.target)),
            FieldKind::Id(form) => Some(ValueKind::Value(ValueType::Key(*form))),
            FieldKind::Value(value_type) => Some(ValueKind::Value(value_type.clone())),
            FieldKind::Relation(Relation::Inverse(_) | Relation::Link(_)) | FieldKind::Unstored => None,
        }
    }

    fn record_kind(&self, record: RecordTypeId) -> ValueKind {
        let of = self.record(record);
        ValueKind::Record { target: record, type_name: of.name.clone(), key: ValueType::Key(of.key_form()) }
    }

    /// The names that could have been meant by an unknown one.
    pub(super) fn visible_names(&self) -> impl Iterator<Item = &str> {
        let record = self.variables.get(self.first_visible).map(|this| this.record);
        let fields = record.into_iter().flat_map(|record| &self.record(record).fields);
        let rules = self.names.sources.named.keys().filter(move |(of, _)| Some(*of) == record);
        let variables = self.variables.iter().filter_map(|variable| variable.name.as_deref());
        let names = fields.map(|field| field.name.as_str()).chain(rules.map(|(_, name)| name.as_str()));
        names.chain(variables).chain(WORDS)
    }
}

/// True for names as enum values have them: a mistyped field is rather reported as such.
fn is_constant_name(name: &str) -> bool {
    !name.contains(|c: char| c.is_ascii_lowercase())
}
