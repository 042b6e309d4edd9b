//! The OpenAPI parameters: ids in paths, conditional and idempotency headers, the query parameters of lists.

use serde_json::{Map, Value as Json, json};

use trefoil_engine::PlanLimits;
use trefoil_engine::RANK_NAME;
use trefoil_engine::plan::searched_texts;
use trefoil_http::negotiation::format::FORMAT_NAMES;
use trefoil_model::values::example_values;
use trefoil_model::{Field, KeyForm, Model, RecordType};
use trefoil_resources::collection::readable_fields;
use trefoil_resources::list_query::MAX_INCLUDE_DEPTH;

use crate::openapi::condition_parameters::condition_parameters;
use crate::openapi::patterns::{ID_PATTERN, IDEMPOTENCY_KEY, RELATION_PATH};
use crate::openapi::values::{text_key_schema, text_schema};

/// Headers of every read.
pub const CONDITIONAL_HEADERS: [&str; 2] = ["If-Match", "If-None-Match"];

pub fn parameter_reference(name: &str) -> Json {
    json!({ "$ref": format!("#/components/parameters/{name}") })
}

pub fn id_parameter(name: &str, form: KeyForm) -> Json {
    if !form.is_integer() {
        let description =
            if form == KeyForm::Uuid { "A UUID." } else { "The text that identifies the record." };
        return json!({
            "name": name, "in": "path", "required": true, "description": description,
            "schema": text_key_schema(form), "example": example_values::example_id(form).to_string(),
        });
    }
    json!({
        "name": name, "in": "path", "required": true, "description": "A 64-bit integer.",
        "schema": { "type": "string", "pattern": ID_PATTERN }, "example": "1",
    })
}

pub fn index_parameter() -> Json {
    json!({
        "name": "index", "in": "path", "required": true, "description": "Starts at 0.",
        "schema": { "type": "integer", "minimum": 0 }, "example": 0,
    })
}

/// Parameters shared by all kinds of operations.
pub fn shared_parameters() -> Map<String, Json> {
    let header = |name: &str, description: &str, schema: Json| {
        let parameter = json!({ "name": name, "in": "header", "description": description, "schema": schema });
        (name.to_owned(), parameter)
    };
    let text = || json!({ "type": "string" });
    Map::from_iter([
        header("If-Match", "The expected `ETag`; 412 if it has changed.", text()),
        header(
            "If-None-Match",
            "An `ETag` that the client has: 304 to a read if it is current, 412 to a write.",
            text(),
        ),
        header(
            "Idempotency-Key",
            "Makes the write safe to retry: a repeated request gets the first response, for 24 hours.",
            json!({ "type": "string", "pattern": IDEMPOTENCY_KEY }),
        ),
        header(
            "Last-Event-ID",
            "For a live stream: the id of the last event received; missed events are sent first.",
            text(),
        ),
        (
            "snapshot".to_owned(),
            json!({
                "name": "snapshot", "in": "query", "schema": { "type": "boolean" },
                "description": "Only for a live stream: start with the current list.",
            }),
        ),
    ])
}

const SORT_DESCRIPTION: &str = "Sort by these fields; `-` for descending. Nulls last, ties by id. Dots lead through at \
    most 3 references and embedded values; only the first step is listed here. `@rank` \
    puts the records first in which the words of `q` occur most.";

/// The query parameters of lists of one type, as components: `Product.price.gte`.
pub fn type_parameters(model: &Model, record: &RecordType, limits: &PlanLimits) -> Map<String, Json> {
    let own = query_parameters(model, record, limits).into_iter().chain(group_parameters(record));
    own.chain(condition_parameters(model, record))
        .map(|parameter| (component_name(record, &parameter), parameter))
        .collect()
}

fn component_name(record: &RecordType, parameter: &Json) -> String {
    format!("{}.{}", record.name, parameter["name"].as_str().unwrap_or_default())
}

/// References to the query parameters of a list.
pub fn list_parameters(model: &Model, record: &RecordType, limits: &PlanLimits) -> Vec<Json> {
    type_parameters(model, record, limits).keys().map(|name| parameter_reference(name)).collect()
}

/// References to the query parameters that filter a list.
pub fn filter_parameters(model: &Model, record: &RecordType) -> Vec<Json> {
    let filters = condition_parameters(model, record);
    filters.iter().map(|filter| parameter_reference(&component_name(record, filter))).collect()
}

/// References to the query parameters of one record.
pub fn record_parameters(record: &RecordType) -> Vec<Json> {
    let has_relations = record.fields.iter().any(|field| field.kind.relation().is_some());
    let names = ["fields"].into_iter().chain(has_relations.then_some("include"));
    names.map(|name| parameter_reference(&format!("{}.{name}", record.name))).collect()
}

/// So many paths are listed; a type with more of them would make the document long.
const MAX_LISTED_PATHS: usize = 500;

/// What `include` takes: paths of relations.
fn included_paths(model: &Model, record: &RecordType) -> Option<Json> {
    let mut paths = Vec::new();
    add_relation_paths(model, record, "", &mut paths);
    match paths.len() {
        0 => None,
        1..=MAX_LISTED_PATHS => Some(json!({ "type": "string", "enum": paths })),
        _ => Some(json!({ "type": "string", "pattern": RELATION_PATH })),
    }
}

fn add_relation_paths(model: &Model, record: &RecordType, prefix: &str, paths: &mut Vec<String>) {
    for field in &record.fields {
        let Some(relation) = field.kind.relation().filter(|_| paths.len() <= MAX_LISTED_PATHS) else {
            continue;
        };
        let path = format!("{prefix}{}", field.name);
        let inner = format!("{path}.");
        paths.push(path);
        if inner.matches('.').count() < MAX_INCLUDE_DEPTH {
            add_relation_paths(model, model.record(relation.target()), &inner, paths);
        }
    }
}

/// The parameters that make a list an aggregate; the others are left out where a field has the name.
fn group_parameters(record: &RecordType) -> Vec<Json> {
    if record.find_input_field("aggregate").is_some() {
        return Vec::new();
    }
    let described = [
        (
            "aggregate",
            "Answer groups of the records instead: `count`, `sum(field)`, `avg(field)`, `min(field)`, `max(field)`, \
             `countDistinct(field)`, separated by commas. `sort` then takes these and the texts of `group`; `fields`, \
             `page`, `after` and `count` are not for groups.",
        ),
        (
            "group",
            "With `aggregate`: fields to group by, also through references (`user.name`), and parts of times \
             (`month(createdAt)`), separated by commas.",
        ),
        ("having", "With `aggregate`: conditions on groups, such as `count.gte=2,sum(price).gt=10`."),
    ];
    let parameter = |(name, description): (&str, &str)| json!({ "name": name, "in": "query", "description": description, "schema": text_schema() });
    let is_free = |(name, _): &(&str, &str)| record.find_input_field(name).is_none();
    described.into_iter().filter(is_free).map(parameter).collect()
}

fn query_parameters(model: &Model, record: &RecordType, limits: &PlanLimits) -> Vec<Json> {
    let readable = readable_fields(record).map(|field| record.field(field));
    let names: Vec<String> = readable.map(|field| field.input_name.clone()).chain(["*".to_owned()]).collect();
    let orders: Vec<String> =
        sort_names(model, record).into_iter().flat_map(|name| [name.clone(), format!("-{name}")]).collect();
    let query = |name: &str, description: &str, schema: Json| json!({ "name": name, "in": "query", "description": description, "schema": schema });
    let list = |name: &str, description: &str, items: Json| {
        let mut parameter = query(name, description, json!({ "type": "array", "items": items }));
        (parameter["style"], parameter["explode"]) = ("form".into(), false.into());
        parameter
    };
    let size = format!("Maximum number of records; {} by default.", limits.page_size);
    let include = included_paths(model, record).map(|paths| {
        let description =
            "Put the related records inside each record, at most 3 relations deep. Not for CSV.";
        list("include", description, paths)
    });
    let one_of = |values: &[String]| json!({ "type": "string", "enum": values });
    let others = [
        list("fields", "Return objects with only these fields; `*` for all.", one_of(&names)),
        query(
            "q",
            "Only records in which every word of this occurs, in any case, with or without accents.",
            text_schema(),
        ),
        list("sort", SORT_DESCRIPTION, one_of(&orders)),
        query(
            "page",
            "The page, from 1. Not together with `after`.",
            json!({ "type": "integer", "format": "int64", "minimum": 1, "maximum": i64::MAX }),
        ),
        query("size", &size, json!({ "type": "integer", "minimum": 1, "maximum": limits.max_page_size })),
        query("after", "Only records after this cursor, which the `next` link contains.", text_schema()),
        query(
            "count",
            "Return the number of matching records in `X-Total-Count`.",
            json!({ "type": "boolean", "default": false }),
        ),
        query(
            "format",
            "Overrides `Accept`: records as a table, one per line, or as an array.",
            json!({ "type": "string", "enum": FORMAT_NAMES.map(|(name, _)| name) }),
        ),
    ];
    others.into_iter().chain(include).collect()
}

/// What records can be sorted by: their fields, and those of records and values one step away.
fn sort_names(model: &Model, record: &RecordType) -> Vec<String> {
    let sortable = |fields: &[Field], prefix: &str| -> Vec<String> {
        let fields = fields.iter().filter(|field| field.kind.is_comparable());
        fields.map(|field| format!("{prefix}{}", field.input_name)).collect()
    };
    let inner = record.fields.iter().flat_map(|field| {
        let embedded = field.kind.value_type().and_then(|ty| model.embedded.get(ty.embedded_name()?));
        let target = field.kind.reference().map(|reference| &model.record(reference.target).fields);
        let fields = embedded.map(|embedded| &embedded.fields).or(target);
        fields.map(|fields| sortable(fields, &format!("{}.", field.name))).unwrap_or_default()
    });
    let rank = (!searched_texts(model, record).is_empty()).then(|| RANK_NAME.to_owned());
    sortable(&record.fields, "").into_iter().chain(inner).chain(rank).collect()
}

/// All parameters, as components.
pub fn all_parameters(model: &Model, limits: &PlanLimits) -> Map<String, Json> {
    let mut parameters = shared_parameters();
    for record in &model.records {
        parameters.extend(type_parameters(model, record, limits));
    }
    parameters
}
