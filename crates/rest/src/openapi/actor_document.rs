//! Leaves out of the document what its reader may never do, see or set.

use std::collections::HashSet;

use serde_json::{Map, Value as Json};

use trefoil_engine::Engine;
use trefoil_model::access::AccessAction;
use trefoil_model::{FieldId, RecordTypeId, Relation};
use trefoil_resources::ServedResources;
use trefoil_resources::collection::{Collection, SubPath};

pub fn leave_out_closed(document: &mut Json, resources: &ServedResources) {
    if resources.engine.access_view().is_none() {
        return;
    }
    if let Some(paths) = document["paths"].as_object_mut() {
        paths.retain(|path, item| keep_path(resources, path, item));
    }
    for record in (0..resources.engine.model().records.len()).map(RecordTypeId) {
        close_type(document, &resources.engine, record);
    }
    let used = operation_words(document, "operationId");
    retain_links(document, &used);
    let tags = operation_words(document, "tags");
    if let Some(known) = document["tags"].as_array_mut() {
        known.retain(|tag| tag["name"].as_str().is_some_and(|name| tags.contains(name)));
    }
}

/// Leaves out the methods that the actor may never use; false if none is left.
fn keep_path(resources: &ServedResources, path: &str, item: &mut Json) -> bool {
    if let Some(list) = resources.plain_list(path.strip_suffix("/{index}").unwrap_or(path)) {
        let Some(methods) = item.as_object_mut() else { return true };
        let may = |is_write| resources.engine.may_use_list(&list.name, is_write);
        let names_place = path.ends_with("/{index}");
        methods.retain(|method, _| match method.as_str() {
            "parameters" => true,
            "get" => may(false),
            _ => may(true) && (!names_place || may(false)),
        });
        return methods.keys().any(|method| method != "parameters");
    }
    let is_of = |collection: &&Collection| {
        path.strip_prefix(&collection.path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let Some(collection) = resources.collections.iter().find(is_of) else { return true };
    let Some(methods) = item.as_object_mut() else { return true };
    let rest = &path[collection.path.len()..];
    methods
        .retain(|method, _| method == "parameters" || may_use(&resources.engine, collection, rest, method));
    methods.keys().any(|method| method != "parameters")
}

fn may_use(engine: &Engine, collection: &Collection, rest: &str, method: &str) -> bool {
    use AccessAction::{Create, Delete, Read, Update};
    let own = collection.record;
    let actions: Vec<(AccessAction, RecordTypeId)> = match (method, collection.parse_sub_path(rest)) {
        ("get", Some(SubPath::List | SubPath::Record(_) | SubPath::Summary)) => vec![(Read, own)],
        ("post", Some(SubPath::List)) | ("get", Some(SubPath::New)) => vec![(Create, own)],
        ("put", Some(SubPath::List)) => vec![(Read, own), (Create, own), (Update, own)],
        ("patch", Some(SubPath::List)) => vec![(Read, own), (Update, own)],
        ("delete", Some(SubPath::List)) => vec![(Read, own), (Delete, own)],
        ("delete", Some(SubPath::Record(_))) | (_, Some(SubPath::Delete(_))) => vec![(Delete, own)],
        ("get", Some(SubPath::Nested(_, nested) | SubPath::NestedRecord(_, nested, _))) => {
            vec![(Read, own), (Read, nested.record)]
        }
        (
            _,
            Some(SubPath::Record(_) | SubPath::Edit(_) | SubPath::Nested(..) | SubPath::NestedRecord(..)),
        ) => {
            vec![(Update, own)]
        }
        (_, _) => Vec::new(),
    };
    actions.into_iter().all(|(action, record)| engine.may(action, record))
}

/// Leaves out the fields of a type that the actor never sees or may never set.
fn close_type(document: &mut Json, engine: &Engine, id: RecordTypeId) {
    let record = engine.model().record(id);
    let fields = || (0..record.fields.len()).map(FieldId);
    let closed = |is_open: &dyn Fn(FieldId) -> bool| -> Vec<&str> {
        let fields = fields().filter(|field| !is_open(*field)).map(|field| record.field(field));
        fields.flat_map(|field| [field.name.as_str(), field.input_name.as_str()]).collect()
    };
    let unseen = closed(&|field| engine.shows_field(id, field));
    let uncreated = closed(&|field| engine.may_set(AccessAction::Create, id, field));
    let unchanged = closed(&|field| engine.may_set(AccessAction::Update, id, field));
    let parts = [
        ("", &unseen),
        (".Part", &unseen),
        (".New", &uncreated),
        (".Form", &unchanged),
        (".Patch", &unchanged),
        (".Whole", &unchanged),
    ];
    for (ending, names) in parts {
        let schema = &mut document["components"]["schemas"][format!("{}{ending}", record.name)];
        if schema.is_object() && !names.is_empty() {
            close_properties(schema, names);
        }
    }
    close_parameters(document, engine, id);
}

fn close_properties(schema: &mut Json, names: &[&str]) {
    let is_closed = |name: &Json| name.as_str().is_some_and(|name| names.contains(&name));
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        properties.retain(|name, _| !names.contains(&name.as_str()));
    }
    if let Some(required) = schema.get_mut("required").and_then(Json::as_array_mut) {
        required.retain(|name| !is_closed(name));
    }
    for example in schema.get_mut("examples").and_then(Json::as_array_mut).into_iter().flatten() {
        if let Some(members) = example.as_object_mut() {
            members.retain(|name, _| !names.contains(&name.as_str()));
        }
    }
    // The rules that one of two members is given.
    let is_open = |choice: &Json| !is_closed(&choice["anyOf"][0]["required"][0]);
    let choices = schema.get("allOf").and_then(Json::as_array);
    let choices = choices.map(|all| all.iter().filter(|choice| is_open(choice)).cloned().collect::<Vec<_>>());
    match choices {
        Some(open) if open.is_empty() => drop(schema.as_object_mut().map(|members| members.remove("allOf"))),
        Some(open) => schema["allOf"] = open.into(),
        None => {}
    }
}

/// Whether a path such as `-user.name` goes through a field that the actor never sees. What is no field is an operator.
fn is_path_closed(engine: &Engine, record: RecordTypeId, path: &str) -> bool {
    let mut owner = record;
    for name in path.trim_start_matches('-').split('.') {
        let record = engine.model().record(owner);
        let Some(field) = record.find_input_field(name).or_else(|| record.find_field(name)) else {
            return false;
        };
        if !engine.shows_field(owner, field) {
            return true;
        }
        owner = record.field(field).kind.relation().map_or(owner, Relation::target);
    }
    false
}

/// Leaves out the filters, orders and choices by fields that the actor never sees.
fn close_parameters(document: &mut Json, engine: &Engine, id: RecordTypeId) {
    let Some(parameters) = document["components"]["parameters"].as_object_mut() else { return };
    let own = format!("{}.", engine.model().record(id).name);
    let mut closed = HashSet::new();
    parameters.retain(|key, parameter| {
        if !key.starts_with(&own) {
            return true;
        }
        let name = parameter["name"].as_str().unwrap_or_default();
        if is_path_closed(engine, id, name) {
            closed.insert(format!("#/components/parameters/{key}"));
            return false;
        }
        if ["fields", "sort", "include"].contains(&name)
            && let Some(choices) = parameter["schema"]["items"]["enum"].as_array_mut()
        {
            choices.retain(|choice| !choice.as_str().is_some_and(|path| is_path_closed(engine, id, path)));
        }
        true
    });
    for item in document["paths"].as_object_mut().into_iter().flat_map(Map::values_mut) {
        for operation in item.as_object_mut().into_iter().flat_map(Map::values_mut) {
            if let Some(parameters) = operation.get_mut("parameters").and_then(Json::as_array_mut) {
                parameters.retain(|parameter| {
                    !parameter["$ref"].as_str().is_some_and(|reference| closed.contains(reference))
                });
            }
        }
    }
}

/// The texts under a member of all operations.
fn operation_words(document: &Json, member: &str) -> HashSet<String> {
    let items = document["paths"].as_object().into_iter().flat_map(Map::values);
    let operations = items.filter_map(Json::as_object).flat_map(Map::values);
    let words = operations.filter_map(|operation| operation.get(member));
    let texts = words.flat_map(|word| match word {
        Json::Array(list) => list.iter().filter_map(Json::as_str).map(str::to_owned).collect(),
        Json::String(text) => vec![text.clone()],
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_) => Vec::new(),
    });
    texts.collect()
}

/// Leaves out links to operations that are not there.
fn retain_links(value: &mut Json, operations: &HashSet<String>) {
    match value {
        Json::Object(members) => {
            if let Some(links) = members.get_mut("links").and_then(Json::as_object_mut) {
                links.retain(|_, link| {
                    link.get("operationId").and_then(Json::as_str).is_none_or(|id| operations.contains(id))
                });
            }
            members.values_mut().for_each(|member| retain_links(member, operations));
        }
        Json::Array(items) => items.iter_mut().for_each(|item| retain_links(item, operations)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}
