//! The OpenAPI parameters: ids in paths, conditional and idempotency headers, the query parameters of lists.

use serde_json::{Map, Value as Json, json};

use trefoil_engine::PlanLimits;
use trefoil_engine::RANK_NAME;
use trefoil_engine::plan::{MAX_PATTERN_LETTERS, searched_texts};
use trefoil_http::negotiation::format::FORMAT_NAMES;
use trefoil_model::values::example_values;
use trefoil_model::{Field, KeyForm, Model, RecordType, Scalar};
use trefoil_resources::collection::readable_fields;
use trefoil_resources::list_query::{LIST_PARAMS, operators_for};

use crate::openapi::patterns::{ID_PATTERN, IDEMPOTENCY_KEY, NO_COMMA, NO_NUL};
use crate::openapi::values::{ValueContext, field_schema, kind_schema, text_key_schema};

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
    own.chain(filters(record)).map(|parameter| (component_name(record, &parameter), parameter)).collect()
}

fn filters(record: &RecordType) -> Vec<Json> {
    let mut filters = Vec::new();
    for field in record.fields.iter().filter(|field| field.kind.value_type().is_some()) {
        if field.kind.is_comparable() && !LIST_PARAMS.contains(&field.input_name.as_str()) {
            filters.push(filter_parameter(field, None));
        }
        filters.extend(operators_for(field).map(|operator| filter_parameter(field, Some(&operator))));
    }
    filters
}

fn component_name(record: &RecordType, parameter: &Json) -> String {
    format!("{}.{}", record.name, parameter["name"].as_str().unwrap_or_default())
}

/// References to the query parameters of a list.
pub fn list_parameters(model: &Model, record: &RecordType, limits: &PlanLimits) -> Vec<Json> {
    type_parameters(model, record, limits).keys().map(|name| parameter_reference(name)).collect()
}

/// References to the query parameters that filter a list.
pub fn filter_parameters(record: &RecordType) -> Vec<Json> {
    filters(record).iter().map(|filter| parameter_reference(&component_name(record, filter))).collect()
}

/// References to the query parameters of one record.
pub fn record_parameters(record: &RecordType) -> Vec<Json> {
    let has_relations = record.fields.iter().any(|field| field.kind.relation().is_some());
    let names = ["fields"].into_iter().chain(has_relations.then_some("include"));
    names.map(|name| parameter_reference(&format!("{}.{name}", record.name))).collect()
}

/// The values of `include`: relations, and the relations of their records.
fn relation_paths(model: &Model, record: &RecordType) -> Vec<String> {
    let relations = |record: &RecordType| {
        let fields = record.fields.iter();
        let found = fields.filter_map(|field| Some((field.name.clone(), field.kind.relation()?.target())));
        found.collect::<Vec<_>>()
    };
    let mut paths = Vec::new();
    for (name, target) in relations(record) {
        let nested = relations(model.record(target));
        paths.push(name.clone());
        paths.extend(nested.into_iter().map(|(inner, _)| format!("{name}.{inner}")));
    }
    paths
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
    let names: Vec<&str> = readable.map(|field| field.input_name.as_str()).chain(["*"]).collect();
    let orders: Vec<String> =
        sort_names(model, record).into_iter().flat_map(|name| [name.clone(), format!("-{name}")]).collect();
    let query = |name: &str, description: &str, schema: Json| json!({ "name": name, "in": "query", "description": description, "schema": schema });
    let list = |name: &str, description: &str, values: Json| {
        let items = json!({ "type": "string", "enum": values });
        let mut parameter = query(name, description, json!({ "type": "array", "items": items }));
        (parameter["style"], parameter["explode"]) = ("form".into(), false.into());
        parameter
    };
    let size = format!("Maximum number of records; {} by default.", limits.page_size);
    let paths = relation_paths(model, record);
    let include = (!paths.is_empty()).then(|| {
        let description =
            "Put the related records inside each record, at most 3 relations deep. Not for CSV.";
        list("include", description, json!(paths))
    });
    let others = [
        list("fields", "Return objects with only these fields; `*` for all.", json!(names)),
        query(
            "q",
            "Only records in which every word of this occurs, in any case, with or without accents.",
            text_schema(),
        ),
        list("sort", SORT_DESCRIPTION, json!(orders)),
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
        Some("ne") => "does not equal this",
        Some("lt") => "is less than this",
        Some("lte") => "is at most this",
        Some("gt") => "is greater than this",
        Some("gte") => "is at least this",
        Some("contains") => "contains this, case-sensitively",
        Some("startsWith") => "starts with this, case-sensitively",
        Some("endsWith") => "ends with this, case-sensitively",
        Some("ci") => "equals this in any case",
        Some("contains.ci") => "contains this in any case",
        Some("startsWith.ci") => "starts with this in any case",
        Some("endsWith.ci") => "ends with this in any case",
        Some("null") => "has no value (true) or has one (false)",
        Some("has") => "has this item",
        Some("empty") => "has no items (true) or has some (false)",
        Some("notIn") => "is none of these",
        Some(_) => "is one of these",
    };
    let description = format!("`{}` {meaning}.", field.input_name);
    let schema = match op {
        // A part of a URL or an email address need not be a valid one.
        Some("contains" | "startsWith" | "endsWith") => text_schema(),
        Some("ci" | "contains.ci" | "startsWith.ci" | "endsWith.ci") => {
            json!({ "type": "string", "pattern": NO_NUL, "maxLength": MAX_PATTERN_LETTERS })
        }
        Some("null" | "empty") => json!({ "type": "boolean" }),
        Some("has") => kind_schema(&field.kind, ValueContext::Query)["items"].take(),
        Some(_) | None => field_schema(field, ValueContext::Query),
    };
    if !matches!(op, Some("in" | "notIn")) {
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
