//! Recognises the types of groups, `{ key count sum avg min max countDistinct }`, and fields that summarise a relation.

use apollo_compiler::Schema;
use apollo_compiler::ast::{FieldDefinition, Type};
use apollo_compiler::schema::{ExtendedType, ObjectType};

use crate::list_wrapper::related_record;
use crate::{Field, FieldId, Model, RecordType, RecordTypeId, Scalar, ScalarGroup};

/// Endings of the names of types that are groups of another.
const TYPE_ENDINGS: [&str; 4] = ["Aggregate", "Aggregation", "Group", "Summary"];

/// What a field of a record says about its related records; the relation is a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationSummary {
    /// `ordersCount`: how many there are.
    Count(FieldId),
    /// `ordersAggregate`: groups of them.
    Groups(FieldId),
}

impl Model {
    /// The record type whose groups the type is, by its name and its shape.
    pub fn aggregate_record(&self, type_name: &str) -> Option<RecordTypeId> {
        let names = TYPE_ENDINGS.iter().filter_map(|ending| type_name.strip_suffix(ending));
        names
            .filter_map(|name| self.find_record(name))
            .find(|record| self.is_aggregate_of(type_name, *record))
    }

    /// True if the type has the shape of a group of these records, whatever it is called.
    pub fn is_aggregate_of(&self, type_name: &str, record: RecordTypeId) -> bool {
        let Some(object) = self.schema.get_object(type_name) else { return false };
        let record = self.record(record);
        let fits = |field: &FieldDefinition| match MeasureFields::of_name(&field.name) {
            None => true,
            Some(fields) => {
                let inner = self.schema.get_object(field.ty.inner_named_type());
                let is_known = |name: &str| {
                    record.find_input_field(name).is_some_and(|id| fields.contains(record.field(id)))
                };
                inner.is_some_and(|inner| inner.fields.keys().all(|name| is_known(name)))
            }
        };
        self.find_record(type_name).is_none()
            && has_group_shape(&self.schema, object)
            && object.fields.values().all(|field| fits(field))
    }

    /// What a document selects of a type of groups to have these measures, such as `sum(total)`, and those of them that
    /// the type has no field for.
    pub fn group_selection<'m>(&self, type_name: &str, measures: &[&'m str]) -> (String, Vec<&'m str>) {
        let object = self.schema.get_object(type_name);
        let has = |name: &str| object.is_some_and(|object| object.fields.contains_key(name));
        let (mut parts, mut missing) = (Vec::<(&str, Vec<&str>)>::new(), Vec::new());
        for measure in measures.iter().filter(|measure| **measure != "count") {
            let call = measure.split_once('(').and_then(|(name, rest)| Some((name, rest.strip_suffix(')')?)));
            let known = call.filter(|(name, field)| {
                let part = object.and_then(|object| object.fields.get(*name));
                let inner = part.and_then(|part| self.schema.get_object(part.ty.inner_named_type()));
                inner.is_some_and(|inner| inner.fields.contains_key(*field))
            });
            match known {
                None => missing.push(*measure),
                Some((name, field)) => match parts.iter_mut().find(|(part, _)| *part == name) {
                    Some((_, fields)) => fields.push(field),
                    None => parts.push((name, vec![field])),
                },
            }
        }
        let plain = ["key", "count"].into_iter().filter(|name| has(name)).map(str::to_owned);
        let parts = parts.into_iter().map(|(name, fields)| format!("{name} {{ {} }}", fields.join(" ")));
        (format!("{{ {} }}", plain.chain(parts).collect::<Vec<_>>().join(" ")), missing)
    }

    /// What a field that is not stored says about related records of its own record.
    pub fn relation_summary(&self, owner: &RecordType, name: &str) -> Option<RelationSummary> {
        let field = self.schema.get_object(&owner.name)?.fields.get(name)?;
        let relation = |ending: &str| {
            let id = owner.find_field(name.strip_suffix(ending)?)?;
            let relation = owner.field(id).kind.relation()?;
            (!owner.field(id).kind.is_reference()).then_some((id, relation.target()))
        };
        let is_unstored = owner.find_field(name).is_some_and(|id| owner.field(id).kind.is_unstored());
        if !is_unstored {
            return None;
        }
        if let Some((id, _)) = relation("Count").filter(|_| is_count(&field.ty)) {
            return Some(RelationSummary::Count(id));
        }
        let (id, target) = relation("Aggregate")?;
        let is_groups =
            is_single_list(&field.ty) && self.is_aggregate_of(field.ty.inner_named_type(), target);
        is_groups.then_some(RelationSummary::Groups(id))
    }
}

/// The fields of a record that a part of a group has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeasureFields {
    /// `sum` and `avg`.
    Numbers,
    /// `min` and `max`.
    Ordered,
    /// `countDistinct`.
    Comparable,
}

impl MeasureFields {
    pub(crate) fn of_name(name: &str) -> Option<MeasureFields> {
        match name {
            "sum" | "avg" => Some(MeasureFields::Numbers),
            "min" | "max" => Some(MeasureFields::Ordered),
            "countDistinct" => Some(MeasureFields::Comparable),
            _ => None,
        }
    }

    pub fn contains(self, field: &Field) -> bool {
        let group = field.kind.scalar().map(Scalar::group);
        match self {
            MeasureFields::Numbers => group == Some(ScalarGroup::Number),
            MeasureFields::Ordered => {
                matches!(group, Some(ScalarGroup::Number | ScalarGroup::Time | ScalarGroup::Text))
            }
            MeasureFields::Comparable => field.kind.is_comparable(),
        }
    }
}

/// True for a type that groups the records of another, by its name and its shape.
pub(crate) fn is_group_type(schema: &Schema, object: &ObjectType) -> bool {
    TYPE_ENDINGS.iter().any(|ending| object.name.ends_with(ending)) && has_group_shape(schema, object)
}

/// True for a type with a key and measures and nothing else.
fn has_group_shape(schema: &Schema, object: &ObjectType) -> bool {
    let is_scalar = |ty: &Type| !ty.is_list() && schema.get_scalar(ty.inner_named_type()).is_some();
    let is_values = |ty: &Type| {
        let inner = schema.get_object(ty.inner_named_type());
        !ty.is_list()
            && inner.is_some_and(|inner| inner.fields.values().all(|field| is_leaf(schema, &field.ty)))
    };
    let is_part = |field: &FieldDefinition| match field.name.as_str() {
        "key" => is_scalar(&field.ty) && Scalar::from_name(field.ty.inner_named_type()) == Some(Scalar::Json),
        "count" => is_count(&field.ty),
        name => MeasureFields::of_name(name).is_some() && is_values(&field.ty),
    };
    let has_measure = object.fields.keys().any(|name| name != "key");
    has_measure && object.fields.values().all(|field| is_part(field))
}

fn is_leaf(schema: &Schema, ty: &Type) -> bool {
    let inner = schema.types.get(ty.inner_named_type());
    !ty.is_list() && inner.is_some_and(|inner| inner.is_scalar() || matches!(inner, ExtendedType::Enum(_)))
}

fn is_count(ty: &Type) -> bool {
    let scalar = Scalar::from_name(ty.inner_named_type());
    !ty.is_list() && matches!(scalar, Some(Scalar::Int | Scalar::Long))
}

fn is_single_list(ty: &Type) -> bool {
    ty.is_list() && !ty.item_type().is_list()
}

/// True if a field of this name and type summarises a list of records beside it: `ordersCount(…)` beside `orders`.
pub(crate) fn summarises_list(
    schema: &Schema,
    owner: &ObjectType,
    field: &FieldDefinition,
    is_record: impl Fn(&str) -> bool,
) -> bool {
    let has_list = |ending: &str| {
        let list = field.name.strip_suffix(ending).and_then(|name| owner.fields.get(name));
        list.is_some_and(|list| {
            let name = list.ty.inner_named_type();
            let is_wrapped =
                || schema.get_object(name).is_some_and(|ty| related_record(schema, ty, &is_record).is_some());
            (is_single_list(&list.ty) && is_record(name)) || (!list.ty.is_list() && is_wrapped())
        })
    };
    // Without arguments, a number is stored like any other.
    let is_number = !field.arguments.is_empty() && is_count(&field.ty) && has_list("Count");
    let is_groups = || {
        let object = schema.get_object(field.ty.inner_named_type());
        is_single_list(&field.ty)
            && has_list("Aggregate")
            && object.is_some_and(|object| has_group_shape(schema, object))
    };
    is_number || is_groups()
}
