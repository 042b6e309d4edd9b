//! Leaves closed parts out of a schema, and what is of no use without them, so that the rest is a valid schema.

use apollo_compiler::ast::{Directive, FieldDefinition, InputValueDefinition, Type, Value};
use apollo_compiler::collections::{HashMap, HashSet, IndexMap};
use apollo_compiler::schema::{Component, ExtendedType};
use apollo_compiler::{Name, Node, Schema};

use trefoil_engine::ClosedNames;

use crate::describe::reachable_types::reachable_types;
use crate::describe::smallest_query::add_smallest_query;

/// Directives that say who may do what, or how records are stored.
const INTERNAL_DIRECTIVES: [&str; 5] = ["allow", "rule", "account", "index", "renamedFrom"];

/// Arguments that name other fields, with their directives.
const NAMING_ARGUMENTS: [(&str, &str); 3] =
    [("unique", "within"), ("default", "from"), ("reference", "inverse")];

/// The fields of an object type or an interface.
type FieldMap = IndexMap<Name, Component<FieldDefinition>>;

/// The schema without its closed parts and without the texts of its rules.
pub fn narrow(schema: &Schema, closed: &ClosedNames) -> Schema {
    let mut narrowed = schema.clone();
    narrowed.directive_definitions.retain(|name, _| !INTERNAL_DIRECTIVES.contains(&name.as_str()));
    narrowed.schema_definition.make_mut().directives.0.retain(|directive| !is_internal(directive));
    for (name, ty) in &mut narrowed.types {
        if !name.starts_with("__") {
            leave_out_closed(ty, closed);
        }
    }
    let mut before = 0;
    while size(&narrowed) != before {
        before = size(&narrowed);
        match_interfaces(&mut narrowed, schema);
        narrowed.types.retain(|_, ty| !is_empty(ty));
        leave_out_uses(&mut narrowed);
    }
    leave_out_defaults(&mut narrowed);
    drop_empty_roots(&mut narrowed);
    add_smallest_query(&mut narrowed, schema);
    let reached = reachable_types(schema, |_| false);
    // A type that nothing leads to stays as it is declared.
    let used = reachable_types(&narrowed, |name| !reached.contains(name) && !closed.has_type(name));
    narrowed.types.retain(|name, _| used.contains(name));
    debug_assert!(mistakes(&narrowed).is_none(), "{:?}", mistakes(&narrowed));
    narrowed
}

/// Why it is not a valid schema. Tests ask; a server does not.
fn mistakes(schema: &Schema) -> Option<String> {
    Schema::parse_and_validate(schema.to_string(), "narrowed.graphqls").err().map(|found| found.to_string())
}

fn is_internal(directive: &Directive) -> bool {
    let names_field = |(name, argument): &(&str, &str)| {
        directive.name == *name && directive.specified_argument_by_name(argument).is_some()
    };
    INTERNAL_DIRECTIVES.contains(&directive.name.as_str()) || NAMING_ARGUMENTS.iter().any(names_field)
}

fn leave_out_closed(ty: &mut ExtendedType, closed: &ClosedNames) {
    match ty {
        ExtendedType::Object(object) => {
            let object = object.make_mut();
            let name = object.name.clone();
            object.directives.0.retain(|directive| !is_internal(directive));
            object.implements_interfaces.retain(|interface| !closed.has_member(interface, &name));
            object.fields.retain(|field, _| !closed.has_field(&name, field));
            leave_out_arguments(&mut object.fields, |field, argument| {
                closed.has_argument(&name, field, argument)
            });
        }
        ExtendedType::Interface(interface) => {
            let interface = interface.make_mut();
            interface.directives.0.retain(|directive| !is_internal(directive));
            leave_out_arguments(&mut interface.fields, |_, _| false);
        }
        ExtendedType::Union(union) => {
            let union = union.make_mut();
            let name = union.name.clone();
            union.directives.0.retain(|directive| !is_internal(directive));
            union.members.retain(|member| !closed.has_member(&name, member));
        }
        ExtendedType::Enum(definition) => {
            let definition = definition.make_mut();
            let name = definition.name.clone();
            definition.directives.0.retain(|directive| !is_internal(directive));
            definition.values.retain(|value, _| !closed.has_input(&name, value));
        }
        ExtendedType::InputObject(object) => {
            let object = object.make_mut();
            let name = object.name.clone();
            object.directives.0.retain(|directive| !is_internal(directive));
            leave_out_inputs(&mut object.fields, |field| closed.has_input(&name, &field.name));
            object.fields.values_mut().for_each(|field| clean_input(field));
        }
        ExtendedType::Scalar(scalar) => {
            scalar.make_mut().directives.0.retain(|directive| !is_internal(directive));
        }
    }
}

/// Cleans the fields and their arguments. A field goes with an argument that it requires.
fn leave_out_arguments(fields: &mut FieldMap, is_closed: impl Fn(&str, &str) -> bool) {
    fields.retain(|name, field| {
        !field.arguments.iter().any(|argument| argument.is_required() && is_closed(name, &argument.name))
    });
    for (name, field) in fields {
        let is_changed = |argument: &Node<InputValueDefinition>| {
            is_closed(name, &argument.name)
                || argument.directives.iter().any(|directive| is_internal(directive))
        };
        if field.arguments.iter().any(is_changed) || field.directives.iter().any(|node| is_internal(node)) {
            let field = field.make_mut();
            field.directives.0.retain(|directive| !is_internal(directive));
            field.arguments.retain(|argument| !is_closed(name, &argument.name));
            field.arguments.iter_mut().for_each(clean_input);
        }
    }
}

/// Nothing can be given where a required field may not be given.
fn leave_out_inputs(
    fields: &mut IndexMap<Name, Component<InputValueDefinition>>,
    is_closed: impl Fn(&InputValueDefinition) -> bool,
) {
    if fields.values().any(|field| field.is_required() && is_closed(field)) {
        fields.clear();
    }
    fields.retain(|_, field| !is_closed(field));
}

fn clean_input(input: &mut Node<InputValueDefinition>) {
    if input.directives.iter().any(|directive| is_internal(directive)) {
        input.make_mut().directives.0.retain(|directive| !is_internal(directive));
    }
}

/// An interface has the fields that any of its types has. A type that lacks one of them is none of its types.
fn match_interfaces(narrowed: &mut Schema, whole: &Schema) {
    let interfaces: Vec<Name> =
        narrowed.types.iter().filter(|(_, ty)| ty.is_interface()).map(|(name, _)| name.clone()).collect();
    for name in interfaces {
        let fields_of = |schema: &Schema| -> Vec<FieldMap> {
            let objects = schema.types.values().filter_map(|ty| ty.as_object());
            let objects = objects.filter(|object| object.implements_interfaces.contains(name.as_str()));
            objects.map(|object| object.fields.clone()).collect()
        };
        let types = fields_of(narrowed);
        let Some(ExtendedType::Interface(interface)) = narrowed.types.get_mut(&name) else { continue };
        if fields_of(whole).is_empty() {
            continue;
        }
        let interface = interface.make_mut();
        interface.fields.retain(|field, _| types.iter().any(|fields| fields.contains_key(field)));
        leave_out_arguments(&mut interface.fields, |field, argument| {
            let mut fields = types.iter().filter_map(|fields| fields.get(field));
            fields.any(|field| field.argument_by_name(argument).is_none())
        });
    }
    let names = |ty: &ExtendedType| -> Option<HashSet<Name>> {
        let ExtendedType::Interface(interface) = ty else { return None };
        Some(interface.fields.keys().cloned().collect())
    };
    let needed: HashMap<Name, HashSet<Name>> =
        narrowed.types.iter().filter_map(|(name, ty)| Some((name.clone(), names(ty)?))).collect();
    let has_all = |interface: &str, fields: &FieldMap| {
        needed.get(interface).is_some_and(|needed| needed.iter().all(|name| fields.contains_key(name)))
    };
    for ty in narrowed.types.values_mut() {
        match ty {
            ExtendedType::Object(object) => {
                let object = object.make_mut();
                object.implements_interfaces.retain(|interface| has_all(interface, &object.fields));
            }
            ExtendedType::Interface(interface) => {
                let interface = interface.make_mut();
                interface.implements_interfaces.retain(|parent| has_all(parent, &interface.fields));
            }
            ExtendedType::Scalar(_)
            | ExtendedType::Union(_)
            | ExtendedType::Enum(_)
            | ExtendedType::InputObject(_) => {}
        }
    }
}

fn is_empty(ty: &ExtendedType) -> bool {
    match ty {
        ExtendedType::Scalar(_) => false,
        ExtendedType::Object(object) => object.fields.is_empty(),
        ExtendedType::Interface(interface) => interface.fields.is_empty(),
        ExtendedType::Union(union) => union.members.is_empty(),
        ExtendedType::Enum(definition) => definition.values.is_empty(),
        ExtendedType::InputObject(object) => object.fields.is_empty(),
    }
}

/// Leaves out what is of a type that is gone.
fn leave_out_uses(narrowed: &mut Schema) {
    let known: HashSet<Name> = narrowed.types.keys().cloned().collect();
    let is_gone = |ty: &Type| !known.contains(ty.inner_named_type());
    for ty in narrowed.types.values_mut() {
        match ty {
            ExtendedType::Object(object) => leave_out_fields(&mut object.make_mut().fields, is_gone),
            ExtendedType::Interface(object) => leave_out_fields(&mut object.make_mut().fields, is_gone),
            ExtendedType::Union(union) => {
                union.make_mut().members.retain(|member| known.contains(&member.name))
            }
            ExtendedType::InputObject(object) => {
                leave_out_inputs(&mut object.make_mut().fields, |field| is_gone(&field.ty));
            }
            ExtendedType::Scalar(_) | ExtendedType::Enum(_) => {}
        }
    }
}

fn leave_out_fields(fields: &mut FieldMap, is_gone: impl Fn(&Type) -> bool) {
    fields.retain(|_, field| !is_gone(&field.ty));
    let gone: HashSet<(Name, Name)> = fields
        .values()
        .flat_map(|field| field.arguments.iter().map(|argument| (field.name.clone(), argument)))
        .filter(|(_, argument)| is_gone(&argument.ty))
        .map(|(field, argument)| (field, argument.name.clone()))
        .collect();
    if !gone.is_empty() {
        let is_named = |field: &str, argument: &str| {
            gone.iter().any(|(one, other)| one.as_str() == field && other.as_str() == argument)
        };
        leave_out_arguments(fields, is_named);
    }
}

/// Leaves out defaults that give something that is gone.
fn leave_out_defaults(narrowed: &mut Schema) {
    let known = narrowed.types.clone();
    let clean = |input: &mut Node<InputValueDefinition>| {
        if input.default_value.as_ref().is_some_and(|value| !is_known(&known, &input.ty, value)) {
            input.make_mut().default_value = None;
        }
    };
    let clean_fields = |fields: &mut FieldMap| {
        for field in fields.values_mut() {
            if field.arguments.iter().any(|argument| argument.default_value.is_some()) {
                field.make_mut().arguments.iter_mut().for_each(clean);
            }
        }
    };
    for ty in narrowed.types.values_mut() {
        match ty {
            ExtendedType::Object(object) => clean_fields(&mut object.make_mut().fields),
            ExtendedType::Interface(interface) => clean_fields(&mut interface.make_mut().fields),
            ExtendedType::InputObject(object) => {
                object.make_mut().fields.values_mut().for_each(|field| clean(field));
            }
            ExtendedType::Scalar(_) | ExtendedType::Union(_) | ExtendedType::Enum(_) => {}
        }
    }
}

/// Whether the types have all that a literal names.
fn is_known(types: &IndexMap<Name, ExtendedType>, ty: &Type, value: &Value) -> bool {
    match (value, types.get(ty.inner_named_type())) {
        (Value::List(items), _) => items.iter().all(|item| is_known(types, ty.item_type(), item)),
        (Value::Enum(name), Some(ExtendedType::Enum(definition))) => definition.values.contains_key(name),
        (Value::Object(members), Some(ExtendedType::InputObject(object))) => {
            members.iter().all(|(name, value)| {
                object.fields.get(name).is_some_and(|field| is_known(types, &field.ty, value))
            })
        }
        (_, _) => true,
    }
}

/// Counts what can be left out.
fn size(schema: &Schema) -> usize {
    let of_fields =
        |fields: &FieldMap| -> usize { fields.values().map(|field| 1 + field.arguments.len()).sum() };
    let sizes = schema.types.values().map(|ty| match ty {
        ExtendedType::Scalar(_) => 1,
        ExtendedType::Object(object) => 1 + of_fields(&object.fields) + object.implements_interfaces.len(),
        ExtendedType::Interface(interface) => {
            1 + of_fields(&interface.fields) + interface.implements_interfaces.len()
        }
        ExtendedType::Union(union) => 1 + union.members.len(),
        ExtendedType::Enum(definition) => 1 + definition.values.len(),
        ExtendedType::InputObject(object) => 1 + object.fields.len(),
    });
    sizes.sum()
}

fn drop_empty_roots(narrowed: &mut Schema) {
    let types = &narrowed.types;
    let definition = narrowed.schema_definition.make_mut();
    for root in [&mut definition.mutation, &mut definition.subscription] {
        if root.as_ref().is_some_and(|name| !types.contains_key(&name.name)) {
            *root = None;
        }
    }
}
