//! Finds arguments without any effect, so that `check` reports them before a request is refused.

use trefoil_model::sdl::schema_warning::SchemaWarning;
use trefoil_model::{Argument, Field, Model, RecordType, RootField};

use crate::arguments::argument_roles::{argument_roles, member_role};
use crate::arguments::conditions;
use crate::arguments::unknown_names::{
    not_identified_message, unknown_argument_message, unknown_member_message,
};
use crate::binding::{UnfitArgument, impossible_fields, sets_nothing, unfit_arguments};
use crate::builtin_operation::VerbGroup;
use crate::{ArgumentRole, BuiltinOperation, OperationVerb, ResolverBinding};

/// Warnings about arguments of built-in operations and of relations.
pub fn argument_warnings(model: &Model, bindings: &[ResolverBinding]) -> Vec<SchemaWarning> {
    let mut warnings = Vec::new();
    for (root, binding) in model.root_fields.iter().zip(bindings) {
        if let ResolverBinding::Builtin(builtin) = binding {
            let record = model.record(builtin.record);
            let checked =
                CheckedField { model, type_name: model.root_type_name(root.root_kind), field: &root.name };
            let roles = &builtin.argument_roles;
            checked.check_arguments(record, builtin.verb, &root.arguments, roles, &mut warnings);
            let unfit = unfit_arguments(model, record, builtin.verb, &root.arguments, roles);
            warnings.extend(unfit.iter().map(|unfit| checked.unfit_type_warning(record, unfit)));
            warnings.extend(checked.impossible_create_warning(record, builtin, root));
            warnings.extend(checked.empty_write_warning(record, builtin, root));
        }
        if let ResolverBinding::Abstract(operation) = binding
            && let Some(member) = operation.members.first()
        {
            let checked =
                CheckedField { model, type_name: model.root_type_name(root.root_kind), field: &root.name };
            let (record, roles) = (model.record(member.record), &member.argument_roles);
            checked.check_arguments(record, member.verb, &root.arguments, roles, &mut warnings);
        }
    }
    for owner in &model.records {
        for field in &owner.fields {
            if let Some(target) = listed_record_type(model, field) {
                let checked = CheckedField { model, type_name: &owner.name, field: &field.name };
                let roles = argument_roles(target, OperationVerb::List, &field.arguments);
                checked.check_arguments(target, OperationVerb::List, &field.arguments, &roles, &mut warnings);
            }
        }
    }
    warnings
}

/// The record type of a list that the store resolves.
fn listed_record_type<'m>(model: &'m Model, field: &Field) -> Option<&'m RecordType> {
    let relation = field.kind.relation().filter(|_| !field.kind.is_reference());
    relation.map(|relation| model.record(relation.target()))
}

const RETURNS_ERROR: &str = "returns an error when used";

/// The field whose arguments are checked.
struct CheckedField<'a> {
    model: &'a Model,
    type_name: &'a str,
    field: &'a str,
}

impl CheckedField<'_> {
    fn check_arguments(
        &self,
        record: &RecordType,
        verb: OperationVerb,
        arguments: &[Argument],
        roles: &[(String, ArgumentRole)],
        warnings: &mut Vec<SchemaWarning>,
    ) {
        for (argument, (_, role)) in arguments.iter().zip(roles) {
            let name = argument.name.as_str();
            let nested = |reason: &dyn Fn(&Argument) -> Option<String>| -> Vec<(String, String)> {
                let members = argument.fields.iter();
                members
                    .filter_map(|member| Some((format!("{name}.{}", member.name), reason(member)?)))
                    .collect()
            };
            let unknown = match role {
                ArgumentRole::Unknown => {
                    vec![(name.to_owned(), unknown_argument_message(record, verb, name))]
                }
                ArgumentRole::Where if verb == OperationVerb::Get => nested(&|member| {
                    self.model.schema.get_input_object(member.ty.inner_name())?;
                    conditions::unknown_condition_message(self.model, record, member)
                }),
                ArgumentRole::Where => {
                    nested(&|member| conditions::unknown_condition_message(self.model, record, member))
                }
                ArgumentRole::Input => {
                    nested(&|member| unknown_member_message(self.model, record, verb, member))
                }
                ArgumentRole::KeyObject => nested(&|member| {
                    let is_key = member_role(record, verb, &member.name) == ArgumentRole::Id;
                    (!is_key).then(|| not_identified_message(record, &member.name))
                }),
                ArgumentRole::Id
                | ArgumentRole::Ids
                | ArgumentRole::UniqueFields
                | ArgumentRole::Field(_)
                | ArgumentRole::Compare(..)
                | ArgumentRole::RelatedField(..)
                | ArgumentRole::ExpectedVersion
                | ArgumentRole::ClientMutationId
                | ArgumentRole::Page
                | ArgumentRole::PageFromZero
                | ArgumentRole::Size
                | ArgumentRole::Limit
                | ArgumentRole::Offset
                | ArgumentRole::First
                | ArgumentRole::After
                | ArgumentRole::Last
                | ArgumentRole::Before
                | ArgumentRole::OrderBy
                | ArgumentRole::SortDirection
                | ArgumentRole::GroupBy
                | ArgumentRole::Having
                | ArgumentRole::Search => Vec::new(),
            };
            warnings.extend(unknown.into_iter().map(|(path, reason)| {
                let message = format!("`{path}` of `{}` has no effect: {reason}", self.field);
                let is_ignored = verb.group() == VerbGroup::WriteFields;
                let label = if is_ignored { "ignored" } else { RETURNS_ERROR };
                self.schema_warning(Some(name), message, label, argument_help(verb))
            }));
        }
    }

    fn schema_warning(
        &self,
        argument: Option<&str>,
        message: String,
        label: &'static str,
        help: &str,
    ) -> SchemaWarning {
        SchemaWarning {
            code: "ARGUMENT",
            type_name: self.type_name.to_owned(),
            field: self.field.to_owned(),
            argument: argument.map(str::to_owned),
            message,
            label,
            help: help.to_owned(),
        }
    }

    /// A warning about an argument of a type that its field never takes.
    fn unfit_type_warning(&self, record: &RecordType, unfit: &UnfitArgument) -> SchemaWarning {
        let field = record.field(unfit.field);
        let declared = self.model.schema.type_field(&record.name, &field.name).ok();
        let declared = declared.map(|declared| format!(", which is `{}`", declared.ty)).unwrap_or_default();
        let of =
            format!("`{}: {}` never fits `{}.{}`{declared}", unfit.path, unfit.ty, record.name, field.name);
        let message = if unfit.is_needed {
            format!("`{}` can never succeed: {of}", self.field)
        } else {
            format!("`{}` refuses every value of an argument: {of}", self.field)
        };
        self.schema_warning(Some(&unfit.argument), message, RETURNS_ERROR, "give it the type of the field")
    }

    /// A warning if the record has a required field that the operation cannot set.
    fn impossible_create_warning(
        &self,
        record: &RecordType,
        builtin: &BuiltinOperation,
        root: &RootField,
    ) -> Option<SchemaWarning> {
        let (id, roles) = (builtin.record, &builtin.argument_roles);
        let impossible = impossible_fields(self.model, id, builtin.verb, &root.arguments, roles);
        let names: Vec<String> =
            impossible.iter().map(|field| format!("`{}.{}`", record.name, field.name)).collect();
        let (last, others) = names.split_last()?;
        let message = match others {
            [] => format!("`{}` can never succeed: {last} is required and no argument sets it", self.field),
            others => format!(
                "`{}` can never succeed: {} and {last} are required and no argument sets them",
                self.field,
                others.join(", ")
            ),
        };
        Some(self.schema_warning(
            None,
            message,
            RETURNS_ERROR,
            "add an argument for it, make the field nullable, or add `@default`",
        ))
    }

    /// A warning if a write that succeeds stores nothing of what it is given.
    fn empty_write_warning(
        &self,
        record: &RecordType,
        builtin: &BuiltinOperation,
        root: &RootField,
    ) -> Option<SchemaWarning> {
        let is_empty = sets_nothing(record, builtin.verb, &root.arguments, &builtin.argument_roles);
        let does =
            if builtin.verb == OperationVerb::Create { "creates an empty record" } else { "changes nothing" };
        let message = || format!("`{}` {does}: no argument sets a field of {}", self.field, record.name);
        let help = "give an argument the name of a field, or write a resolver for it";
        is_empty.then(|| self.schema_warning(None, message(), "sets no field", help))
    }
}

fn argument_help(verb: OperationVerb) -> &'static str {
    match verb.group() {
        VerbGroup::ReadMany => "use the name of a field, or page, size, first, after, orderBy or where",
        VerbGroup::WriteFields | VerbGroup::Subscribe => "use the name of a field, or remove it",
        VerbGroup::ReadOne | VerbGroup::Delete => "remove it",
    }
}
