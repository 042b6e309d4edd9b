//! The tabs that GraphiQL opens with: operations of the schema that run as they are.

use apollo_compiler::Schema;
use apollo_compiler::ast::{InputValueDefinition, Type};
use apollo_compiler::schema::ExtendedType;
use serde_json::{Value as Json, json};

use crate::engine::{Binding, Builtin, Deed, Engine, Gives, Verb};
use crate::model::{Kind, Model, RecordType, Root, RootField, Rule, TypeId, Value};

/// What a tab shows of a record type, in order.
const SHOWN: [Verb; 6] = [
    Verb::List,
    Verb::Get,
    Verb::Create,
    Verb::Watch(Deed::Created),
    Verb::Watch(Deed::Updated),
    Verb::Watch(Deed::Deleted),
];

/// One tab for each record type that has an operation.
pub fn of(engine: &Engine) -> Json {
    let model = engine.model();
    let records = (0..model.records.len()).map(TypeId);
    records.filter_map(|record| tab(engine, record)).map(|query| json!({ "query": query })).collect()
}

fn tab(engine: &Engine, record: TypeId) -> Option<String> {
    let model = engine.model();
    let operations = SHOWN.iter().filter_map(|verb| {
        let mut bound = model.roots.iter().zip(engine.bindings());
        bound.find_map(|(root, binding)| match binding {
            Binding::Builtin(builtin) if builtin.record == record && builtin.verb == *verb => {
                operation(model, root, builtin)
            }
            Binding::Builtin(_) | Binding::Registered(_) | Binding::Missing(_) => None,
        })
    });
    let operations: Vec<String> = operations.collect();
    (!operations.is_empty()).then(|| operations.join("\n"))
}

fn operation(model: &Model, root: &RootField, builtin: &Builtin) -> Option<String> {
    let (keyword, title) = match root.root {
        Root::Query => ("query", &root.name),
        Root::Mutation => ("mutation", &root.name),
        Root::Subscription => ("subscription", &root.name),
    };
    let record = model.record(builtin.record);
    let schema = &model.schema;
    let fields = fields(schema, &record.name, 1)?;
    let selection = match builtin.gives {
        Gives::Record | Gives::List => format!(" {{ {fields} }}"),
        Gives::Connection => format!(" {{ edges {{ node {{ {fields} }} }} }}"),
        Gives::Id | Gives::Boolean => String::new(),
    };
    let definition = schema
        .root_operation(match root.root {
            Root::Query => apollo_compiler::ast::OperationType::Query,
            Root::Mutation => apollo_compiler::ast::OperationType::Mutation,
            Root::Subscription => apollo_compiler::ast::OperationType::Subscription,
        })
        .and_then(|name| schema.type_field(name, &root.name).ok())?;
    let writes = builtin.verb == Verb::Create;
    let given = definition.arguments.iter().filter(|argument| argument.is_required() || writes);
    let given = given.filter_map(|argument| argument_text(model, record, argument));
    let given: Vec<String> = given.collect();
    let arguments = if given.is_empty() { String::new() } else { format!("({})", given.join(", ")) };
    let title = format!("{}{}", title[..1].to_uppercase(), &title[1..]);
    Some(format!("{keyword} {title} {{\n  {}{arguments}{selection}\n}}\n", root.name))
}

/// The fields of a type that need no arguments; values inside of it one level down.
fn fields(schema: &Schema, type_name: &str, levels: usize) -> Option<String> {
    let object = schema.get_object(type_name)?;
    let mut words = Vec::new();
    for (name, field) in &object.fields {
        if field.arguments.iter().any(|argument| argument.is_required()) {
            continue;
        }
        let inner = field.ty.inner_named_type();
        match schema.types.get(inner) {
            Some(ExtendedType::Scalar(_) | ExtendedType::Enum(_)) => words.push(name.to_string()),
            Some(ExtendedType::Object(below)) if levels > 0 && !below.fields.contains_key("id") => {
                if let Some(below) = fields(schema, inner, levels - 1) {
                    words.push(format!("{name} {{ {below} }}"));
                }
            }
            _ => {}
        }
    }
    (!words.is_empty()).then(|| words.join(" "))
}

fn argument_text(model: &Model, record: &RecordType, argument: &InputValueDefinition) -> Option<String> {
    let optional_reference = !argument.is_required()
        && record.input_field(&argument.name).is_some_and(|id| is_relation(&record.field(id).kind));
    if optional_reference || argument.name == "expectedVersion" {
        return None;
    }
    Some(format!("{}: {}", argument.name, literal(model, record, &argument.name, &argument.ty, 3)?))
}

fn is_relation(kind: &Kind) -> bool {
    match kind {
        Kind::Reference { .. } | Kind::Inverse { .. } | Kind::Link { .. } => true,
        Kind::Id | Kind::Scalar(_) | Kind::Enum(_) | Kind::Embedded(_) | Kind::List(_) | Kind::Unstored => {
            false
        }
    }
}

/// A value that the field takes; nothing where the levels run out.
fn literal(model: &Model, record: &RecordType, name: &str, ty: &Type, levels: usize) -> Option<String> {
    if ty.is_list() {
        return Some(match literal(model, record, name, ty.item_type(), levels) {
            Some(item) => format!("[{item}]"),
            None => "[]".to_owned(),
        });
    }
    let inner = ty.inner_named_type();
    match model.schema.types.get(inner)? {
        ExtendedType::Enum(definition) => {
            let fallback = definition.values.keys().next()?.to_string();
            Some(default(record, name).unwrap_or(fallback))
        }
        ExtendedType::InputObject(definition) if levels > 0 => {
            let given = definition.fields.values().filter_map(|field| {
                if field.is_required() {
                    let value = literal(model, record, &field.name, &field.ty, levels - 1)?;
                    return Some(format!("{}: {value}", field.name));
                }
                argument_text(model, record, field)
            });
            Some(format!("{{ {} }}", given.collect::<Vec<_>>().join(", ")))
        }
        ExtendedType::Scalar(_) => Some(scalar(record, name, inner)),
        ExtendedType::InputObject(_)
        | ExtendedType::Object(_)
        | ExtendedType::Interface(_)
        | ExtendedType::Union(_) => None,
    }
}

/// The field's own default, as GraphQL writes it.
fn default(record: &RecordType, name: &str) -> Option<String> {
    let field = record.field(record.input_field(name)?);
    match (&field.default, &field.kind) {
        (Some(Value::String(text)), Kind::Enum(_)) => Some(text.clone()),
        (Some(Value::String(text)), _) => Some(json!(text).to_string()),
        (Some(Value::Int(number)), _) => Some(number.to_string()),
        (Some(Value::Number(text)), _) => Some(text.clone()),
        (Some(Value::Bool(flag)), _) => Some(flag.to_string()),
        _ => None,
    }
}

fn scalar(record: &RecordType, name: &str, ty: &str) -> String {
    let field = record.input_field(name).map(|id| record.field(id));
    let rules = field.map_or(&[][..], |field| field.rules.as_slice());
    let least = rules.iter().find_map(|rule| match rule {
        Rule::Range { min: Some(min), .. } => Some(min.clone()),
        Rule::Range { .. } | Rule::NotBlank | Rule::Length { .. } | Rule::Pattern { .. } | Rule::Email => {
            None
        }
    });
    let number = |usual: &str| default(record, name).or(least.clone()).unwrap_or_else(|| usual.to_owned());
    match ty {
        "Int" | "Long" => number("1"),
        "Float" => number("1.5"),
        "Decimal" => format!("\"{}\"", number("9.99").trim_matches('"')),
        "Boolean" => default(record, name).unwrap_or_else(|| "true".to_owned()),
        "ID" => "\"1\"".to_owned(),
        "Date" => "\"2026-01-02\"".to_owned(),
        "DateTime" => "\"2026-01-02T03:04:05Z\"".to_owned(),
        "UUID" => "\"123e4567-e89b-42d3-a456-426614174000\"".to_owned(),
        "URL" => "\"https://example.com/\"".to_owned(),
        "Email" => "\"ada@example.com\"".to_owned(),
        "JSON" => "{ key: \"value\" }".to_owned(),
        _ => text(name, rules),
    }
}

/// Text that says what it stands for and keeps to the rules, but for a pattern.
fn text(name: &str, rules: &[Rule]) -> String {
    let email = name.to_lowercase().contains("email") || rules.iter().any(|rule| matches!(rule, Rule::Email));
    let mut text = if email { "ada@example.com".to_owned() } else { format!("Some {name}") };
    for rule in rules {
        if let Rule::Length { min, max } = rule {
            let length = |bound: &Option<u64>| bound.and_then(|bound| usize::try_from(bound).ok());
            while text.chars().count() < length(min).unwrap_or(0).min(1_000) {
                text.push('x');
            }
            text = text.chars().take(length(max).unwrap_or(usize::MAX)).collect();
        }
    }
    json!(text).to_string()
}
