//! The OpenAPI parameters that are conditions: on fields, through relations, and joined by `and`, `or` and `not`.

use serde_json::{Value as Json, json};

use trefoil_engine::plan::MAX_PATTERN_LETTERS;
use trefoil_model::{Field, Model, RecordType, Relation, Scalar};
use trefoil_resources::list_query::{LIST_PARAMS, operators_for};

use crate::openapi::patterns::{GROUP, NO_COMMA, NO_NUL};
use crate::openapi::values::{ValueContext, field_schema, kind_schema, text_schema};

/// Any other condition: an object of which each member is a parameter of its own.
const OTHERS: &str = "where";

/// What a list of one type can be filtered by.
pub fn condition_parameters(model: &Model, record: &RecordType) -> Vec<Json> {
    let mut parameters = own_conditions(record);
    parameters.extend(record.fields.iter().flat_map(|field| inner_conditions(model, field)));
    let is_free = |name: &str| record.find_input_field(name).is_none();
    parameters.extend(
        JOINED
            .into_iter()
            .filter(|(name, _)| is_free(name))
            .map(|(name, description)| group_parameter(name, description)),
    );
    parameters.extend(is_free(OTHERS).then(other_conditions));
    parameters
}

const JOINED: [(&str, &str); 3] = [
    ("and", "All of these conditions: `(status=NEW,price.gte=9)`, each written like a parameter."),
    ("or", "At least one of these conditions: `(status=NEW,price.gte=9)`, each written like a parameter."),
    ("not", "Not all of these conditions: `(status=NEW,price.gte=9)`, each written like a parameter."),
];

fn own_conditions(record: &RecordType) -> Vec<Json> {
    let mut filters = Vec::new();
    for field in record.fields.iter().filter(|field| field.kind.value_type().is_some()) {
        let name = field.input_name.as_str();
        if field.kind.is_comparable() && !LIST_PARAMS.contains(&name) {
            filters.push(filter_parameter(field, name, None));
        }
        filters.extend(operators_for(field).map(|operator| filter_parameter(field, name, Some(&operator))));
    }
    filters
}

/// One step through a relation or an embedded value. The operators there are those of the type that it leads to, and
/// repeating them for each way to it would be most of the document.
fn inner_conditions(model: &Model, field: &Field) -> Vec<Json> {
    let embedded = field.kind.value_type().and_then(|ty| model.embedded.get(ty.embedded_name()?));
    let target = field.kind.relation().map(|relation| model.record(relation.target()));
    let fields = embedded.map(|embedded| &embedded.fields).or(target.map(|target| &target.fields));
    let name = &field.name;
    let mut parameters = match (field.kind.relation(), target) {
        (Some(Relation::Inverse(_) | Relation::Link(_)), Some(target)) => list_conditions(name, target),
        (Some(Relation::Reference(_)) | None, _) | (_, None) => Vec::new(),
    };
    let inner = fields.into_iter().flatten().filter(|inner| inner.kind.is_comparable());
    let path = |inner: &Field| format!("{name}.{}", inner.input_name);
    parameters.extend(inner.map(|inner| filter_parameter(inner, &path(inner), None)));
    parameters
}

fn list_conditions(name: &str, target: &RecordType) -> Vec<Json> {
    let key = target.field(target.id_field());
    let mut by_id = filter_parameter(key, name, None);
    by_id["description"] = format!("`{name}` has the {} with this id.", target.name).into();
    let mut by_ids = filter_parameter(key, name, Some("in"));
    by_ids["description"] = format!("`{name}` has a {} with one of these ids.", target.name).into();
    let groups = [
        ("some", "At least one record of", "meets these conditions"),
        ("every", "No record of", "fails to meet these conditions"),
        ("none", "No record of", "meets these conditions"),
    ];
    let group = |(word, which, does): (&str, &str, &str)| {
        group_parameter(&format!("{name}.{word}"), &format!("{which} `{name}` {does}: `(name=value,…)`."))
    };
    [by_id, by_ids].into_iter().chain(groups.map(group)).collect()
}

fn group_parameter(name: &str, description: &str) -> Json {
    json!({ "name": name, "in": "query", "description": description, "schema": { "type": "string", "pattern": GROUP } })
}

fn other_conditions() -> Json {
    json!({
        "name": OTHERS, "in": "query", "style": "form", "explode": true,
        "description": "Further conditions, each of which is a parameter with the name of its member: operators and deeper \
            paths through relations and embedded values, such as `user.name.contains` or `lines.product.price.gte`.",
        "schema": { "type": "object", "additionalProperties": { "type": "string" } },
        "example": {},
    })
}

/// A condition on a field; `path` leads to it, such as `user.name`.
fn filter_parameter(field: &Field, path: &str, op: Option<&str>) -> Json {
    let name = op.map_or_else(|| path.to_owned(), |op| format!("{path}.{op}"));
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
    let description = format!("`{path}` {meaning}.");
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
