//! The result that a root field declares, and whether an operation can give it.

use trefoil_model::{KeyForm, Model, RecordType, RecordTypeId, RootField, RootType, Scalar, TypeRef};

use crate::builtin_operation::{OperationVerb, ResultShape};

/// The shape of the result of an operation on `record`, or `None` if the declared type does not fit.
pub(super) fn find_result_shape(
    model: &Model,
    root: &RootField,
    record: RecordTypeId,
    verb: OperationVerb,
) -> Option<ResultShape> {
    let name = model.success_type(root.ty.inner_name());
    let is_record = name == model.record(record).name;
    match verb {
        OperationVerb::List if is_record && root.ty.is_single_list() => Some(ResultShape::List),
        OperationVerb::List if !root.ty.is_list() && model.connection_node(name) == Some(record) => {
            Some(ResultShape::Connection)
        }
        OperationVerb::List => None,
        OperationVerb::Count | OperationVerb::UpdateMany | OperationVerb::DeleteMany => {
            is_plain(&root.ty, &[Scalar::Int, Scalar::Long]).then_some(ResultShape::Count)
        }
        OperationVerb::Exists => is_plain(&root.ty, &[Scalar::Boolean]).then_some(ResultShape::Boolean),
        OperationVerb::Aggregate => {
            let is_groups = root.ty.is_single_list() && model.is_aggregate_of(name, record);
            is_groups.then_some(ResultShape::Groups)
        }
        OperationVerb::CreateMany => (is_record && root.ty.is_single_list()).then_some(ResultShape::List),
        OperationVerb::SubscribeAll => {
            (!root.ty.is_list() && model.change_record(name) == Some(record)).then_some(ResultShape::Payload)
        }
        OperationVerb::Get | OperationVerb::Subscribe(_) if root.ty.is_list() => None,
        OperationVerb::Get | OperationVerb::Subscribe(_) if is_record => Some(ResultShape::Record),
        OperationVerb::Get => {
            (model.read_payload_record(name) == Some(record)).then_some(ResultShape::Payload)
        }
        OperationVerb::Subscribe(_) => None,
        OperationVerb::Create
        | OperationVerb::Update
        | OperationVerb::Save
        | OperationVerb::Upsert
        | OperationVerb::Delete => {
            // A list could be that of all records, or as many new ones as a number says.
            if root.ty.is_list() {
                None
            } else if is_record {
                Some(ResultShape::Record)
            } else if model.payload_record(name) == Some(record) || model.is_status(name) {
                Some(ResultShape::Payload)
            } else {
                let nothing =
                    (!root.ty.is_required() && is_no_value(model, name)).then_some(ResultShape::Nothing);
                let scalar = written_scalar(name).or(nothing);
                scalar.or_else(|| written_key(model, model.record(record), verb, name))
            }
        }
    }
}

/// The shape of the result of an operation on an interface or union, or `None` if the declared type does not fit.
pub(super) fn find_abstract_shape(
    model: &Model,
    root: &RootField,
    type_name: &str,
    verb: OperationVerb,
) -> Option<ResultShape> {
    let name = root.ty.inner_name();
    let is_own = name == type_name;
    match verb {
        OperationVerb::List if is_own && root.ty.is_single_list() => Some(ResultShape::List),
        OperationVerb::List if !root.ty.is_list() && model.connection_abstract(name) == Some(type_name) => {
            Some(ResultShape::Connection)
        }
        OperationVerb::Get => (is_own && !root.ty.is_list()).then_some(ResultShape::Record),
        OperationVerb::Count => {
            is_plain(&root.ty, &[Scalar::Int, Scalar::Long]).then_some(ResultShape::Count)
        }
        OperationVerb::Exists => is_plain(&root.ty, &[Scalar::Boolean]).then_some(ResultShape::Boolean),
        OperationVerb::List
        | OperationVerb::Aggregate
        | OperationVerb::Create
        | OperationVerb::CreateMany
        | OperationVerb::Update
        | OperationVerb::UpdateMany
        | OperationVerb::Save
        | OperationVerb::Upsert
        | OperationVerb::Delete
        | OperationVerb::DeleteMany
        | OperationVerb::Subscribe(_)
        | OperationVerb::SubscribeAll => None,
    }
}

/// True for one value of these scalars.
fn is_plain(ty: &TypeRef, scalars: &[Scalar]) -> bool {
    !ty.is_list() && Scalar::from_name(ty.inner_name()).is_some_and(|scalar| scalars.contains(&scalar))
}

/// A write may answer with the id of its record, or with whether it was done.
fn written_scalar(name: &str) -> Option<ResultShape> {
    match name {
        "ID" | "String" => Some(ResultShape::Id),
        "Boolean" => Some(ResultShape::Boolean),
        _ => None,
    }
}

/// True for a scalar without values: `Void`.
fn is_no_value(model: &Model, name: &str) -> bool {
    matches!(name, "Void" | "Null" | "Nothing" | "NoContent" | "Unit" | "None" | "Empty")
        && model.schema.types.get(name).is_some_and(|ty| ty.is_scalar())
}

/// A write may answer with the key in its own type: `deleteUser(id: Int!): Int` where `id: Int!`. Any other number could
/// be the number of records.
fn written_key(model: &Model, record: &RecordType, verb: OperationVerb, name: &str) -> Option<ResultShape> {
    let scalar = Scalar::from_name(name)?;
    let key = &record.field(record.id_field()).name;
    let declared = model.schema.type_field(&record.name, key).ok();
    let declared = declared.and_then(|field| Scalar::from_name(field.ty.inner_named_type()));
    let is_key_type = match record.key_form() {
        KeyForm::Number => scalar == Scalar::Int || (scalar == Scalar::Long && verb == OperationVerb::Create),
        KeyForm::Digits => scalar == Scalar::Long && declared == Some(Scalar::Long),
        KeyForm::Uuid => scalar == Scalar::Uuid,
        KeyForm::Text => false,
    };
    is_key_type.then_some(ResultShape::Id)
}

/// The record type that a root field declares as its result, one or many.
pub(super) fn declared_record(model: &Model, ty: &TypeRef) -> Option<RecordTypeId> {
    let name = model.success_type(ty.inner_name());
    let record = model.find_record(name).or_else(|| model.connection_node(name));
    record.or_else(|| model.payload_record(name))
}

/// True if a query lists the records of the type, so that there may be many.
pub(super) fn is_listed(model: &Model, record: RecordTypeId) -> bool {
    let lists = |ty: &TypeRef| {
        let is_connection = model.connection_node(ty.inner_name()) == Some(record);
        is_connection || (ty.is_list() && model.find_record(ty.inner_name()) == Some(record))
    };
    model.root_fields.iter().any(|root| root.root_kind == RootType::Query && lists(&root.ty))
}
