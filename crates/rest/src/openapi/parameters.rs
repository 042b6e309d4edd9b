//! The OpenAPI parameters: ids in paths, conditional and idempotency headers, the query parameters of lists.

use serde_json::{Map, Value as Json, json};

use trefoil_engine::PlanLimits;
use trefoil_http::negotiation::format::FORMAT_NAMES;
use trefoil_model::{Field, Model, RecordType, Scalar};
use trefoil_resources::list_query::{LIST_PARAMS, operators_for};

use crate::openapi::patterns::{ID_PATTERN, IDEMPOTENCY_KEY, NO_COMMA, NO_NUL};
use crate::openapi::values::{ValueContext, field_schema, kind_schema};

/// Headers of every read.
pub const CONDITIONAL_HEADERS: [&str; 2] = ["If-Match", "If-None-Match"];

pub fn parameter_reference(name: &str) -> Json {
    json!({ "$ref": format!("#/components/parameters/{name}") })
}

pub fn id_parameter(name: &str) -> Json {
    json!({
        "name": name, "in": "path", "required": true, "description": "A 64-bit integer.",
        "schema": { "type": "string", "pattern": ID_PATTERN }, "example": "1",
    })
}

pub fn index_parameter() -> Json {
    json!({
        "name": "index", "in": "path", "required": true, "description": "Counts from 0.",
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
        header("If-Match", "The `ETag` that is meant; 412 when it is another by now.", text()),
        header(
            "If-None-Match",
            "The `ETag` that is already known: 304 while nothing has changed, and 412 to a write.",
            text(),
        ),
        header(
            "Idempotency-Key",
            "Makes the write safe to send again: the first answer is kept for 24 hours and given again.",
            json!({ "type": "string", "pattern": IDEMPOTENCY_KEY }),
        ),
        header(
            "Last-Event-ID",
            "Of a live stream: the last id that was seen; what was missed since comes first.",
            text(),
        ),
        (
            "snapshot".to_owned(),
            json!({
                "name": "snapshot", "in": "query", "schema": { "type": "boolean" },
                "description": "Of a live stream, and of nothing else: begin with the list itself.",
            }),
        ),
    ])
}

/// The query parameters of lists of one type, as components: `Product.price.gte`.
pub fn type_parameters(record: &RecordType, limits: &PlanLimits) -> Map<String, Json> {
    let mut parameters = Map::new();
    let mut add = |parameter: Json| {
        let name = parameter["name"].as_str().unwrap_or_default();
        parameters.insert(format!("{}.{name}", record.name), parameter);
    };
    query_parameters(record, limits).into_iter().for_each(&mut add);
    for field in record.fields.iter().filter(|field| field.kind.is_comparable()) {
        if !LIST_PARAMS.contains(&field.input_name.as_str()) {
            add(filter_parameter(field, None));
        }
        operators_for(&field.kind).for_each(|op| add(filter_parameter(field, Some(op))));
    }
    parameters
}

/// References to the query parameters of a list.
pub fn list_parameters(record: &RecordType, limits: &PlanLimits) -> Vec<Json> {
    type_parameters(record, limits).keys().map(|name| parameter_reference(name)).collect()
}

pub fn fields_parameter(record: &RecordType) -> Json {
    parameter_reference(&format!("{}.fields", record.name))
}

fn query_parameters(record: &RecordType, limits: &PlanLimits) -> [Json; 8] {
    let stored = record.fields.iter().filter(|field| field.is_stored());
    let names: Vec<&str> = stored.map(|field| field.input_name.as_str()).chain(["*"]).collect();
    let sortable = record.fields.iter().filter(|field| field.kind.is_comparable());
    let orders: Vec<String> =
        sortable.flat_map(|field| [field.input_name.clone(), format!("-{}", field.input_name)]).collect();
    let query = |name: &str, description: &str, schema: Json| json!({ "name": name, "in": "query", "description": description, "schema": schema });
    let list = |name: &str, description: &str, values: Json| {
        let items = json!({ "type": "string", "enum": values });
        let mut parameter = query(name, description, json!({ "type": "array", "items": items }));
        (parameter["style"], parameter["explode"]) = ("form".into(), false.into());
        parameter
    };
    let size = format!("So many records; {} unless said.", limits.page_size);
    [
        list("fields", "Only these fields, as objects; `*` for all.", json!(names)),
        query("q", "Some text of the record contains this, in upper or lower case.", text_schema()),
        list("sort", "In this order; `-` for the other direction. Nulls last, ties by id.", json!(orders)),
        query(
            "page",
            "Pages count from 1. Not together with `after`.",
            json!({ "type": "integer", "format": "int64", "minimum": 1, "maximum": i64::MAX }),
        ),
        query("size", &size, json!({ "type": "integer", "minimum": 1, "maximum": limits.max_page_size })),
        query("after", "What comes after a cursor, which the `next` link has.", text_schema()),
        query(
            "count",
            "Tell all that match in `X-Total-Count`.",
            json!({ "type": "boolean", "default": false }),
        ),
        query(
            "format",
            "In this form, whatever `Accept` says: records as a table, one a line, or as an array.",
            json!({ "type": "string", "enum": FORMAT_NAMES.map(|(name, _)| name) }),
        ),
    ]
}

fn text_schema() -> Json {
    json!({ "type": "string", "pattern": NO_NUL })
}

fn filter_parameter(field: &Field, op: Option<&str>) -> Json {
    let name = match op {
        Some(op) => format!("{}.{op}", field.input_name),
        None => field.input_name.clone(),
    };
    let meaning = match op {
        None | Some("eq") => "equals this",
        Some("ne") => "is something else",
        Some("lt") => "is less than this",
        Some("lte") => "is at most this",
        Some("gt") => "is more than this",
        Some("gte") => "is at least this",
        Some("contains") => "contains this, case as written",
        Some("null") => "has no value, or has one",
        Some(_) => "is one of these",
    };
    let description = format!("`{}` {meaning}.", field.input_name);
    let schema = match op {
        // A part of a URL or an email address need not be a valid one.
        Some("contains") => text_schema(),
        Some("null") => json!({ "type": "boolean" }),
        Some(_) | None => field_schema(field, ValueContext::Query),
    };
    if op != Some("in") {
        return json!({ "name": name, "in": "query", "description": description, "schema": schema });
    }
    let mut items = kind_schema(&field.kind, ValueContext::Query);
    if matches!(field.kind.scalar(), Some(Scalar::String | Scalar::Id | Scalar::Url)) {
        // Elements are separated by commas.
        items["pattern"] = NO_COMMA.into();
    }
    json!({
        "name": name, "in": "query", "description": description, "style": "form", "explode": false,
        "schema": { "type": "array", "items": items },
    })
}

/// All parameters, as components.
pub fn all_parameters(model: &Model, limits: &PlanLimits) -> Map<String, Json> {
    let mut parameters = shared_parameters();
    for record in &model.records {
        parameters.extend(type_parameters(record, limits));
    }
    parameters
}
