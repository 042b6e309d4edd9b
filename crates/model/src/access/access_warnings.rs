//! What is suspicious in rules that have a meaning.

use std::collections::BTreeSet;

use apollo_compiler::Schema;

use crate::access::access_model::AccessModel;
use crate::access::access_rule::{RuleTest, RuleValue};
use crate::sdl::diagnostic_log::{DiagnosticLog, type_span};
use crate::sdl::record_types::PartialModel;
use crate::{ComparisonOp, Field, FieldId, RecordType, RecordTypeId, Relation, Scalar};

pub(crate) fn warn_about_rules(
    schema: &Schema,
    partial_model: &PartialModel,
    access: &AccessModel,
    log: &mut DiagnosticLog,
) {
    check_role_field(schema, partial_model, access, log);
    warn_about_actor_fields(schema, partial_model, access, log);
    warn_about_links(schema, partial_model, access, log);
    warn_about_indexes(schema, partial_model, access, log);
    for (record, rules) in partial_model.records.iter().zip(&access.types) {
        let definition = schema.get_object(&record.name).and_then(|ty| ty.location());
        if rules.read.test.is_never() && !log.has_error_within(definition) {
            log.warning(
                type_span(schema, record),
                "RULE_UNREADABLE",
                format!("nobody may read `{}`", record.name),
            )
            .label("no rule allows it")
            .help("write `@allow(read: …)` on the type");
        }
    }
}

/// People would give themselves roles.
fn check_role_field(
    schema: &Schema,
    partial_model: &PartialModel,
    access: &AccessModel,
    log: &mut DiagnosticLog,
) {
    let Some(account) = &access.account else { return };
    let Some(roles) = account.roles else { return };
    let record = &partial_model.records[account.record.0];
    let rules = &access.types[account.record.0].fields[roles.0];
    if rules.create.is_some() && rules.update.is_some() {
        return;
    }
    let name = &record.field(roles).name;
    log.error(
        field_span(schema, record, roles),
        "RULE_ROLES",
        format!("`{name}` says which roles an account has, and has no rule for who may write it"),
    )
    .label("people would give themselves roles")
    .help("write `@allow(write: …)` on the field, such as `@allow(write: \"role(ADMIN)\")`");
}

/// Fields of accounts that rules depend on, and that no rule of their own protects.
fn warn_about_actor_fields(
    schema: &Schema,
    partial_model: &PartialModel,
    access: &AccessModel,
    log: &mut DiagnosticLog,
) {
    let Some(account) = &access.account else { return };
    let record = &partial_model.records[account.record.0];
    let mut paths = Vec::new();
    access
        .type_rules()
        .chain(access.actor_rules())
        .for_each(|rule| rule.test.collect_actor_paths(&mut paths));
    let mut used: Vec<FieldId> =
        paths.iter().map(|path| *path.references.first().unwrap_or(&path.field)).collect();
    used.sort_unstable();
    used.dedup();
    for field in used {
        let rules = &access.types[account.record.0].fields[field.0];
        let is_key = field == record.id_field();
        if is_key || Some(field) == account.roles || (rules.create.is_some() && rules.update.is_some()) {
            continue;
        }
        let name = &record.field(field).name;
        log.warning(
            field_span(schema, record, field),
            "RULE_ACTOR_FIELD",
            format!("rules use `me.{name}`, and everyone who may write a `{}` may change it", record.name),
        )
        .label("no rule of its own for writing")
        .help("write `@allow(write: …)` on the field");
    }
}

/// Links that rules ask for, and that can be changed from the other side without a rule of its own: people would make
/// themselves members.
fn warn_about_links(
    schema: &Schema,
    partial_model: &PartialModel,
    access: &AccessModel,
    log: &mut DiagnosticLog,
) {
    let records = &partial_model.records;
    let mut asked = BTreeSet::new();
    for (position, rules) in access.types.iter().enumerate() {
        for rule in rules.rules() {
            collect_links(&rule.test, records, &mut vec![RecordTypeId(position)], &mut asked);
        }
    }
    for (record, field) in asked {
        let (owner, list) = (&records[record.0], records[record.0].field(field));
        let Some(link) = list.kind.link() else { continue };
        let is_other_side = |(position, other): &(usize, &Field)| {
            (link.target, FieldId(*position)) != (record, field)
                && other.kind.link().is_some_and(|other| other.table == link.table)
        };
        let target = &records[link.target.0];
        let Some((position, other)) = target.fields.iter().enumerate().find(is_other_side) else { continue };
        let (types, rules) = (&access.types[link.target.0], &access.types[link.target.0].fields[position]);
        let nobody_writes = types.create.test.is_never() && types.update.test.is_never();
        if nobody_writes || (rules.create.is_some() && rules.update.is_some()) {
            continue;
        }
        log.warning(
            field_span(schema, target, FieldId(position)),
            "RULE_LINK",
            format!(
                "rules use `{}.{}`, and everyone who may write a `{}` may change it by `{}`",
                owner.name, list.name, target.name, other.name
            ),
        )
        .label("no rule of its own for writing")
        .help("write `@allow(write: false)` on the field, or another rule");
    }
}

/// Fields that a rule for reading compares, which lists ask of all records unless an index finds them.
fn warn_about_indexes(
    schema: &Schema,
    partial_model: &PartialModel,
    access: &AccessModel,
    log: &mut DiagnosticLog,
) {
    for (record, rules) in partial_model.records.iter().zip(&access.types) {
        let mut compared = BTreeSet::new();
        collect_compared(&rules.read.test, &mut compared);
        for id in compared {
            let field = record.field(id);
            // A later field of an index serves together with the fields before it.
            let is_indexed = record.has_index(id)
                || field.kind.relation().is_some()
                || record.indexes.iter().any(|fields| fields.contains(&id));
            // An index of two values finds half of the records.
            if is_indexed || field.kind.scalar() == Some(Scalar::Boolean) {
                continue;
            }
            log.warning(
                field_span(schema, record, id),
                "RULE_INDEX",
                format!(
                    "the rule for reading `{}` compares `{}`, which has no index",
                    record.name, field.name
                ),
            )
            .label("asked of every record")
            .help(format!(
                "write `@index(fields: [\"{}\"])` on `{}` if it will have many records",
                field.name, record.name
            ));
        }
    }
}

/// Adds the fields of the record itself whose values an index could find.
fn collect_compared(test: &RuleTest, found: &mut BTreeSet<FieldId>) {
    let mut add = |value: &RuleValue| {
        if let RuleValue::Field { record, field, members } = value
            && record.variable == 0
            && record.references.is_empty()
            && members.is_empty()
        {
            found.insert(*field);
        }
    };
    match test {
        RuleTest::Compare { op: ComparisonOp::Ne, .. } => {}
        RuleTest::Compare { left, right, .. } => {
            add(left);
            add(right);
        }
        RuleTest::OneOf { value, .. } => add(value),
        RuleTest::All(tests) | RuleTest::Any(tests) => {
            tests.iter().for_each(|test| collect_compared(test, found));
        }
        // Of another record, or true of most.
        RuleTest::Related { .. } | RuleTest::Not(_) => {}
        RuleTest::Constant(_)
        | RuleTest::SignedIn
        | RuleTest::HasRole(_)
        | RuleTest::IsAbsent(_)
        | RuleTest::IsTrue(_)
        | RuleTest::HasItem { .. } => {}
    }
}

/// Adds the links whose records the test asks for, with the types that have them. `variables` are the types of the
/// variables of the test.
fn collect_links(
    test: &RuleTest,
    records: &[RecordType],
    variables: &mut Vec<RecordTypeId>,
    found: &mut BTreeSet<(RecordTypeId, FieldId)>,
) {
    match test {
        RuleTest::Related { owner, relation, test } => {
            let reached = owner.references.iter().try_fold(
                variables[owner.variable],
                |record, reference| -> Option<RecordTypeId> {
                    Some(records[record.0].field(*reference).kind.relation()?.target())
                },
            );
            let Some(record) = reached else { return };
            let kind = &records[record.0].field(*relation).kind;
            let Some(target) = kind.relation().map(Relation::target) else { return };
            if kind.is_link() {
                found.insert((record, *relation));
            }
            variables.push(target);
            collect_links(test, records, variables, found);
            variables.pop();
        }
        RuleTest::All(tests) | RuleTest::Any(tests) => {
            tests.iter().for_each(|test| collect_links(test, records, variables, found));
        }
        RuleTest::Not(inner) => collect_links(inner, records, variables, found),
        RuleTest::Constant(_)
        | RuleTest::SignedIn
        | RuleTest::HasRole(_)
        | RuleTest::Compare { .. }
        | RuleTest::IsAbsent(_)
        | RuleTest::IsTrue(_)
        | RuleTest::OneOf { .. }
        | RuleTest::HasItem { .. } => {}
    }
}

fn field_span(
    schema: &Schema,
    record: &RecordType,
    field: FieldId,
) -> Option<apollo_compiler::parser::SourceSpan> {
    schema.get_object(&record.name)?.fields.get(record.field(field).name.as_str())?.name.location()
}
