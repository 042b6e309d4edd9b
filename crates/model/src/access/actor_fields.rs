//! Fields that are filled from the actor: `@createdBy`, `@updatedBy` and `@default(from:)`.

use std::collections::HashSet;

use apollo_compiler::ast::{self, Directive};
use apollo_compiler::{Node, Schema};

use crate::access::access_model::AccessModel;
use crate::access::access_rule::RuleValue;
use crate::access::expression::rule_error::RuleError;
use crate::access::expression::rule_parser::parse_rule;
use crate::access::expression::rule_resolver::resolve_actor_value;
use crate::access::expression::rule_scope::{RuleNames, RuleResolutionError};
use crate::access::expression::rule_sources::RuleSources;
use crate::access::expression::rule_syntax::SyntaxNode;
use crate::access::expression::value_kind::ValueKind;
use crate::sdl::diagnostic_log::DiagnosticLog;
use crate::sdl::directives::{directive_argument, expected_kind_of_use};
use crate::sdl::record_types::PartialModel;
use crate::{Field, RecordType, RecordTypeId, Scalar, ValueType};

/// Checks the references to accounts that the server fills, and reads the defaults that come from the actor.
pub(crate) fn read_actor_fields(
    schema: &Schema,
    partial_model: &mut PartialModel,
    redeclared: &HashSet<String>,
    mut access: Option<&mut AccessModel>,
    log: &mut DiagnosticLog,
) {
    let account = access.as_ref().and_then(|access| access.account.as_ref());
    let account = account.map(|account| account.record);
    let roles = access.as_ref().map(|access| access.roles.clone());
    for record in &partial_model.records {
        for field in record.fields.iter().filter(|field| field.value_source.is_account()) {
            check_account_field(schema, &partial_model.records, account, (record, field), log);
        }
    }
    if redeclared.contains("default") {
        return;
    }
    let sources = RuleSources::default();
    let names = RuleNames {
        records: &partial_model.records,
        enums: &partial_model.enums,
        embedded: &partial_model.embedded,
        sources: &sources,
        account,
        roles: roles.as_deref(),
    };
    let mut found: Vec<(usize, usize, RuleValue)> = Vec::new();
    for (owner, record) in partial_model.records.iter().enumerate() {
        for (position, field) in record.fields.iter().enumerate() {
            let Some(from) = default_source(schema, record, field) else { continue };
            let resolved = from.as_str().map(|text| read_default(names, field, text));
            match resolved {
                Some(Ok(value)) => found.push((owner, position, value)),
                Some(Err(RuleResolutionError::Mistake(error))) => log.rule_error(from.location(), error),
                Some(Err(RuleResolutionError::Elsewhere)) | None => {}
            }
        }
    }
    if let Some(access) = &mut access {
        access.default_paths = found.iter().filter_map(|(_, _, value)| value.actor_path()).collect();
    }
    for (owner, position, value) in found {
        partial_model.records[owner].fields[position].default_from = Some(value);
    }
}

fn directive<'s>(
    schema: &'s Schema,
    record: &RecordType,
    field: &Field,
    name: &str,
) -> Option<&'s Node<Directive>> {
    schema.get_object(&record.name)?.fields.get(field.name.as_str())?.directives.get(name)
}

/// The literal of `@default(from:)` on a field that can have one.
fn default_source<'s>(
    schema: &'s Schema,
    record: &RecordType,
    field: &Field,
) -> Option<&'s Node<ast::Value>> {
    let default = directive(schema, record, field, "default")?;
    let may_have = expected_kind_of_use(default, &field.kind).is_none();
    directive_argument(default, "from").filter(|_| may_have && directive_argument(default, "value").is_none())
}

fn check_account_field(
    schema: &Schema,
    records: &[RecordType],
    account: Option<RecordTypeId>,
    (record, field): (&RecordType, &Field),
    log: &mut DiagnosticLog,
) {
    // A reference to anything else is reported with all directives that do not fit their field.
    let Some(target) = field.kind.reference().map(|reference| reference.target) else { return };
    let has_account = schema.types.values().any(|ty| ty.directives().has("account"));
    let (label, help) = match account {
        Some(account) if account == target => return,
        Some(account) => {
            let name = &records[account.0].name;
            (format!("refers to {}", records[target.0].name), format!("the accounts are `{name}`"))
        }
        // A mistake in `@account` is reported with it.
        None if has_account => return,
        None => (
            "there are no accounts".to_owned(),
            "mark the type of the accounts with `@account(login: …)`".to_owned(),
        ),
    };
    for name in ["createdBy", "updatedBy"] {
        let Some(used) = directive(schema, record, field, name) else { continue };
        let message =
            format!("`@{name}` is for references to accounts, and `{}.{}` is none", record.name, field.name);
        log.error(used.location(), "DIRECTIVE_PLACE", message).label(&label).help(&help);
    }
}

fn read_default(names: RuleNames<'_>, field: &Field, text: &str) -> Result<RuleValue, RuleResolutionError> {
    let syntax = parse_rule(text)?;
    let (value, kind) = resolve_actor_value(names, &syntax)?;
    match misfit(names, field, &value, &kind, text) {
        Some((message, help)) => Err(mistake(&syntax, message, help)),
        None if value == RuleValue::Now && field.kind.scalar() == Some(Scalar::LocalDateTime) => {
            Ok(RuleValue::LocalNow)
        }
        None => Ok(value),
    }
}

fn mistake(syntax: &SyntaxNode, message: String, help: Option<&str>) -> RuleResolutionError {
    let error = RuleError::new(syntax.span.clone(), "DEFAULT", message).label("does not fit the field");
    let error = match help {
        Some(help) => error.help(help),
        None => error,
    };
    error.into()
}

/// Why a value cannot be the default of a field, and what to do.
fn misfit(
    names: RuleNames<'_>,
    field: &Field,
    value: &RuleValue,
    kind: &ValueKind,
    text: &str,
) -> Option<(String, Option<&'static str>)> {
    let target = field.kind.reference().map(|reference| reference.target);
    match (value, kind) {
        // Its type is known when there is one.
        (RuleValue::Claim(_), _) => None,
        (RuleValue::Actor { .. }, ValueKind::Record { target: found, .. }) if Some(*found) == target => None,
        (RuleValue::Actor { .. }, ValueKind::Record { type_name, .. }) => {
            let expected = target.map(|target| names.records[target.0].name.as_str());
            let expected =
                expected.map_or("no reference".to_owned(), |name| format!("a reference to {name}"));
            Some((format!("`{text}` is a {type_name}, and the field is {expected}"), None))
        }
        (RuleValue::Actor { .. }, ValueKind::Value(_) | ValueKind::Open) => Some((
            format!("`{text}` is a value and no record"),
            Some("write a path of references, such as `me.team`"),
        )),
        (RuleValue::Now | RuleValue::Today, ValueKind::Value(ValueType::Scalar(scalar)))
            if field.kind.scalar().map(Scalar::column_scalar) == Some(*scalar) =>
        {
            None
        }
        (
            RuleValue::Now
            | RuleValue::LocalNow
            | RuleValue::Today
            | RuleValue::Literal(_)
            | RuleValue::Field { .. }
            | RuleValue::Old(_),
            _,
        ) => {
            let scalar = if *value == RuleValue::Today { Scalar::Date } else { Scalar::DateTime };
            Some((format!("`{text}` is a {}", scalar.name()), None))
        }
    }
}
