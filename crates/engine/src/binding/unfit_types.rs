//! Arguments of a type that no value of their field has: whatever they are given is refused.

use trefoil_model::values::coerce::coerce_type_only;
use trefoil_model::{Argument, Field, FieldId, Model, RecordType, RootType, Scalar, TypeRef, Value};

use crate::arguments::argument_roles::member_role;
use crate::arguments::numeric_strings::number_for_field;
use crate::builtin_operation::{ArgumentRole, OperationVerb};

/// An argument, or a member of an input object, that never fits.
pub(crate) struct UnfitArgument {
    pub argument: String,
    /// `input.pages`
    pub path: String,
    pub ty: String,
    pub field: FieldId,
    /// It cannot be left out, so the operation never succeeds.
    pub is_needed: bool,
}

pub(crate) fn unfit_arguments(
    model: &Model,
    record: &RecordType,
    verb: OperationVerb,
    arguments: &[Argument],
    roles: &[(String, ArgumentRole)],
) -> Vec<UnfitArgument> {
    let mut unfit = Vec::new();
    for (argument, (_, role)) in arguments.iter().zip(roles) {
        let members = argument.fields.iter().filter(|_| *role == ArgumentRole::Input).map(|member| {
            let path = format!("{}.{}", argument.name, member.name);
            (path, member, member_role(record, verb, &member.name))
        });
        for (path, given, role) in members.chain([(argument.name.clone(), argument, role.clone())]) {
            let ArgumentRole::Field(field) = role else { continue };
            let definition = record.field(field);
            if may_hold(model, definition, verb, &given.ty) {
                continue;
            }
            let is_given = argument.ty.is_required() && given.ty.is_required();
            let creates = verb.may_create() && definition.required && !definition.has_default();
            let (argument, ty) = (argument.name.clone(), given.ty.to_string());
            unfit.push(UnfitArgument { argument, path, ty, field, is_needed: is_given || creates });
        }
    }
    unfit
}

/// False if no value of the type can be one of the field. Objects may describe related records, and any other scalar may
/// hold anything.
fn may_hold(model: &Model, field: &Field, verb: OperationVerb, ty: &TypeRef) -> bool {
    let Some(samples) = sample_values(model, field, ty) else { return true };
    if field.kind.value_type().is_none() {
        // The ids of a link, or what belongs to an inverse.
        return true;
    }
    let is_write = verb.root_kind() == RootType::Mutation;
    // A filter takes one of several values.
    let samples = samples.into_iter().flat_map(|sample| {
        let choices = if let Value::List(items) = &sample { Some(items.clone()) } else { None };
        choices.filter(|_| !is_write).unwrap_or_else(|| vec![sample])
    });
    let mut samples = samples.map(|sample| number_for_field(field, sample)).peekable();
    samples.peek().is_none() || samples.any(|sample| coerce_type_only(model, field, &sample).is_ok())
}

/// Values of all forms that a type can have; `None` if they are not known: those of objects, and of scalars of others.
fn sample_values(model: &Model, field: &Field, ty: &TypeRef) -> Option<Vec<Value>> {
    match ty {
        TypeRef::NonNull(inner) => sample_values(model, field, inner),
        TypeRef::List(inner) => {
            let items = sample_values(model, field, inner)?;
            let lists = items.into_iter().map(|item| Value::List(vec![item]));
            Some(lists.chain([Value::List(Vec::new())]).collect())
        }
        TypeRef::Named(name) => named_samples(model, field, name),
    }
}

/// What texts can be: of each scalar that is written as text.
const TEXTS: [&str; 8] = [
    "a",
    "1",
    "2026-01-31",
    "2026-01-31T09:30:00Z",
    "2026-01-31T09:30:00",
    "123e4567-e89b-12d3-a456-426614174000",
    "https://example.com/",
    "ada@example.com",
];

fn named_samples(model: &Model, field: &Field, name: &str) -> Option<Vec<Value>> {
    let text = |text: &str| Value::String(text.to_owned());
    if let Some(declared) = model.enums.get(name) {
        return Some(declared.values.iter().map(|value| text(value)).collect());
    }
    let number = || vec![Value::Int(1), text("1")];
    Some(match Scalar::from_name(name)? {
        Scalar::Json => return None,
        Scalar::String => texts(model, field),
        Scalar::Id => texts(model, field).into_iter().chain([Value::Int(1)]).collect(),
        Scalar::Int | Scalar::Float => vec![Value::Int(1)],
        Scalar::Long | Scalar::Decimal => number(),
        Scalar::Boolean => vec![Value::Bool(true)],
        Scalar::Date => vec![text("2026-01-31")],
        Scalar::DateTime => vec![text("2026-01-31T09:30:00Z")],
        Scalar::LocalDateTime => vec![text("2026-01-31T09:30:00")],
        Scalar::Uuid => vec![text("123e4567-e89b-12d3-a456-426614174000")],
        Scalar::Url => vec![text("https://example.com/")],
        Scalar::Email => vec![text("ada@example.com")],
    })
}

/// Texts of all forms, and the values of the enum that the field holds.
fn texts(model: &Model, field: &Field) -> Vec<Value> {
    let held = field.kind.value_type().and_then(|ty| model.enums.get(ty.innermost().enum_name()?));
    let held = held.into_iter().flat_map(|declared| &declared.values).map(String::as_str);
    TEXTS.into_iter().chain(held).map(|text| Value::String(text.to_owned())).collect()
}
