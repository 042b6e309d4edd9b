//! Whether a type that the schema declares can stand for the generated one of its name.

use apollo_compiler::Schema;
use apollo_compiler::ast::Type;
use apollo_compiler::schema::{EnumType, ExtendedType, InputObjectType, ObjectType};

use crate::sdl::generate::generated_type::{GeneratedType, inner_name};

/// Why a declared type does not fit; `None` if it does.
pub(super) fn misfit(schema: &Schema, declared: &ExtendedType, wanted: &GeneratedType) -> Option<String> {
    match declared {
        ExtendedType::InputObject(declared) if wanted.keyword == "input" => input_misfit(declared, wanted),
        ExtendedType::Object(declared) if wanted.keyword == "type" => object_misfit(schema, declared, wanted),
        ExtendedType::Enum(declared) if wanted.keyword == "enum" => enum_misfit(declared, wanted),
        ExtendedType::Scalar(_) if wanted.keyword == "scalar" => None,
        ExtendedType::InputObject(_)
        | ExtendedType::Object(_)
        | ExtendedType::Enum(_)
        | ExtendedType::Scalar(_)
        | ExtendedType::Interface(_)
        | ExtendedType::Union(_) => {
            let kind = match wanted.keyword {
                "input" => "an input type",
                "enum" => "an enum",
                "scalar" => "a scalar",
                _ => "an object type",
            };
            Some(format!("the declared `{}` is not {kind}", wanted.name))
        }
    }
}

/// An input type may lack fields, but none that must be given; it may not have others.
fn input_misfit(declared: &InputObjectType, wanted: &GeneratedType) -> Option<String> {
    for (name, field) in &declared.fields {
        let found = wanted.fields.iter().find(|(known, _)| *name == known.as_str());
        match found {
            Some((_, ty)) if is_same_type(&field.ty, ty) => {}
            Some((_, ty)) => return Some(wrong_type(wanted, name, ty)),
            None => return Some(format!("`{}.{name}` of the declared type has no meaning", wanted.name)),
        }
    }
    let missing = wanted
        .fields
        .iter()
        .find(|(name, ty)| ty.ends_with('!') && !declared.fields.contains_key(name.as_str()));
    missing.map(|(name, _)| format!("the declared `{}` has no field `{name}`", wanted.name))
}

/// An object type may have other fields besides; it may lack the number of records.
fn object_misfit(schema: &Schema, declared: &ObjectType, wanted: &GeneratedType) -> Option<String> {
    for (name, ty) in &wanted.fields {
        let Some(field) = declared.fields.get(name.as_str()) else {
            if is_optional(name) {
                continue;
            }
            return Some(format!("the declared `{}` has no field `{name}`", wanted.name));
        };
        // The edges of a connection may have another name.
        let is_edge =
            name == "edges" && field.ty.is_list() && is_edge(schema, field.ty.inner_named_type(), ty);
        if !is_same_type(&field.ty, ty) && !is_edge {
            return Some(wrong_type(wanted, name, ty));
        }
    }
    None
}

fn is_optional(name: &str) -> bool {
    matches!(
        name,
        "id" | "totalCount"
            | "hasPreviousPage"
            | "startCursor"
            | "endCursor"
            | "cursor"
            | "version"
            | "changed"
    )
}

fn is_edge(schema: &Schema, type_name: &str, wanted: &str) -> bool {
    let node = schema.get_object(type_name).and_then(|ty| ty.fields.get("node"));
    let record = inner_name(wanted).trim_end_matches("Edge");
    node.is_some_and(|node| !node.ty.is_list() && node.ty.inner_named_type() == record)
}

fn enum_misfit(declared: &EnumType, wanted: &GeneratedType) -> Option<String> {
    let missing = wanted.fields.iter().find(|(name, _)| !declared.values.contains_key(name.as_str()));
    missing.map(|(name, _)| format!("the declared `{}` has no value `{name}`", wanted.name))
}

/// True if both are lists or neither, of the same type; nullability may differ.
fn is_same_type(declared: &Type, wanted: &str) -> bool {
    declared.to_string().replace('!', "") == wanted.replace('!', "")
}

fn wrong_type(wanted: &GeneratedType, field: &str, ty: &str) -> String {
    format!("`{}.{field}` of the declared type is not `{ty}`", wanted.name)
}
