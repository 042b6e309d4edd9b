//! The OpenAPI operations of a collection and its records: parameters, bodies, responses and links of each method.

use serde_json::{Value as Json, json};

use trefoil_engine::PlanLimits;
use trefoil_model::values::example_values;
use trefoil_model::{Model, RecordType, RecordTypeId};
use trefoil_resources::collection::{Collection, nested_collections};

use crate::openapi::parameters;
use crate::openapi::responses::{OperationResponses, ProblemFormat, header_references};
use crate::openapi::schemas::{GROUP_SCHEMA, is_required, response_schema};
use crate::openapi::unique_names::{UniqueNames, camel_case, pascal_case};
use crate::openapi::values::{ValueContext, field_schema, schema_reference};

/// A path and its operations.
pub type PathItem = (String, Json);

/// Describes one collection.
pub struct CollectionDescriber<'d> {
    pub model: &'d Model,
    pub limits: &'d PlanLimits,
    pub collection: &'d Collection,
    pub ids: &'d OperationIds,
}

/// The ids of operations that links point to, by record type.
pub struct OperationIds(Vec<RecordOperationIds>);

struct RecordOperationIds {
    get: String,
    replace: String,
    patch: String,
    delete: String,
    nested: Vec<String>,
}

impl OperationIds {
    pub fn new(model: &Model, names: &mut UniqueNames) -> OperationIds {
        let record_ids = |record: &RecordType| RecordOperationIds {
            get: names.reserve(&format!("get{}", record.name)),
            replace: names.reserve(&format!("replace{}", record.name)),
            patch: names.reserve(&format!("update{}", record.name)),
            delete: names.reserve(&format!("delete{}", record.name)),
            nested: nested_collections(record)
                .map(|nested| names.reserve(&format!("list{}{}", record.name, pascal_case(&nested.segment))))
                .collect(),
        };
        OperationIds(model.records.iter().map(record_ids).collect())
    }

    fn for_record(&self, record: RecordTypeId) -> &RecordOperationIds {
        &self.0[record.0]
    }
}

/// The key as JSON objects call it.
fn key_name(record: &RecordType) -> &str {
    &record.field(record.id_field()).name
}

/// The key of the first record in a list.
fn first_key(record: &RecordType) -> String {
    format!("$response.body#/0/{}", key_name(record))
}

impl CollectionDescriber<'_> {
    pub fn record(&self) -> &RecordType {
        self.model.record(self.collection.record)
    }

    pub fn path_items(&self, names: &mut UniqueNames) -> Vec<PathItem> {
        let path = &self.collection.path;
        let mut items = vec![
            (
                path.clone(),
                json!({ "get": self.list_operation(names), "post": self.create_operation(names) }),
            ),
            (
                format!("{path}/{{id}}"),
                json!({
                    "parameters": [parameters::id_parameter("id", self.record().key_form())],
                    "get": self.get_operation(),
                    "put": self.replace_operation(&self.ids.for_record(self.collection.record).replace),
                    "post": self.replace_operation(&names.reserve(&format!("overwrite{}", self.record().name))),
                    "patch": self.patch_operation(),
                    "delete": self.delete_operation(),
                }),
            ),
            (
                format!("{path}/{{id}}/delete"),
                json!({
                    "parameters": [parameters::id_parameter("id", self.record().key_form())],
                    "get": self.form_page_operation(names, "delete", "The page that confirms the deletion of"),
                    "post": self.delete_form_operation(names),
                }),
            ),
            (
                format!("{path}/new"),
                json!({ "get": self.form_page_operation(names, "new", "The form for a new") }),
            ),
            (
                format!("{path}/{{id}}/edit"),
                json!({
                    "parameters": [parameters::id_parameter("id", self.record().key_form())],
                    "get": self.form_page_operation(names, "edit", "The form to edit"),
                }),
            ),
        ];
        for (position, nested) in nested_collections(self.record()).enumerate() {
            items.extend(self.nested_items(names, position, &nested.segment, nested.record));
        }
        items
    }

    pub fn operation(
        &self,
        id: &str,
        summary: String,
        parameters: Vec<Json>,
        responses: OperationResponses,
    ) -> Json {
        json!({
            "operationId": id, "tags": [self.record().name], "summary": summary,
            "parameters": parameters, "responses": responses.finish(),
        })
    }

    fn list_operation(&self, names: &mut UniqueNames) -> Json {
        let id = names.reserve(&format!("list{}", pascal_case(&self.collection.path)));
        let mut parameters = parameters::list_parameters(self.model, self.record(), self.limits);
        parameters.extend(parameters::CONDITIONAL_HEADERS.map(parameters::parameter_reference));
        let is_live = !self.collection.subscribed_changes.is_empty();
        if is_live {
            parameters.extend(["snapshot", "Last-Event-ID"].map(parameters::parameter_reference));
        }
        let mut content = list_content(self.record());
        if self.collection.texts.is_some() {
            let texts = json!({ "type": "array", "items": { "type": "string" } });
            let objects = content["application/json"]["schema"].take();
            content["application/json"]["schema"] = json!({ "anyOf": [texts, objects] });
            content["text/plain"] = json!({ "schema": { "type": "string" } });
        }
        if is_live {
            content["text/event-stream"] = json!({ "schema": { "type": "string" } });
        }
        let ok = json!({
            "description": self.list_description(is_live), "content": content,
            "headers": header_references(&["ETag", "Link", "X-Total-Count", "Content-Disposition"]),
            "links": { "first": self.operation_link(&self.ids.for_record(self.collection.record).get, &first_key(self.record())) },
        });
        let responses = OperationResponses::new(ProblemFormat::Negotiated)
            .add(200, ok)
            .for_reading()
            .add_problems(&[400, 406]);
        self.operation(&id, format!("A part of the list of {}", self.plural_name()), parameters, responses)
    }

    fn list_description(&self, is_live: bool) -> String {
        let mut text = "The requested part of the list.".to_owned();
        if let Some(texts) = &self.collection.texts {
            let field = &self.record().field(texts.list.field).name;
            text = format!(
                "The `{field}` of each record: of all records unless `page`, `size` or `after` is given; objects if `fields` is given."
            );
        }
        text.push_str(" `application/x-ndjson` is every matching record, one per line, and `text/csv` is a table of them; both are streamed, and limited if `page`, `size` or `after` is given.");
        text.push_str(" With `aggregate` they are groups of the records that match.");
        if is_live {
            text.push_str(
                " `text/event-stream` is the live stream of changes; it allows only `fields` and `snapshot`.",
            );
        }
        text
    }

    fn plural_name(&self) -> &str {
        self.collection.path.trim_start_matches('/')
    }

    fn operation_link(&self, operation: &str, id: &str) -> Json {
        json!({ "operationId": operation, "parameters": { "id": id } })
    }

    fn create_operation(&self, names: &mut UniqueNames) -> Json {
        let (record, name) = (self.record(), &self.record().name);
        let many = json!({ "type": "array", "items": schema_reference(&format!("{name}.New")) });
        let new = schema_reference(&format!("{name}.New"));
        let mut json = vec![new.clone(), many];
        let mut content = json!({ "application/json": {}, "application/x-ndjson": line_content(&new) });
        let schema = json!({ "anyOf": [
            schema_reference(name), schema_reference(&format!("{name}.Part")), { "type": "array", "items": response_schema(record) },
        ] });
        let mut response_content = json!({ "application/json": { "schema": schema } });
        if let Some(texts) = &self.collection.texts {
            let text = field_schema(record.field(texts.list.field), ValueContext::Form);
            json.push(text.clone());
            content["text/plain"] = json!({ "schema": text });
            response_content["text/plain"] = json!({ "schema": { "type": "string" } });
        }
        content["application/json"]["schema"] = json!({ "anyOf": json });
        // Without forms, which pages send: beside them, openapi-python-client cannot tell an array from an object.
        self.add_example(&mut content["application/json"], "New");
        let created = json!({
            "description": "Created. The record or, if an array or lines were sent, the records in the same order.",
            "content": response_content, "headers": header_references(&["Location", "ETag", "Idempotency-Replayed"]),
            "links": self.record_links(&format!("$response.body#/{}", key_name(record))),
        });
        let responses = OperationResponses::new(ProblemFormat::Negotiated)
            .add(201, created)
            .add_empty(
                303,
                "Created by a form, such as an empty body; redirects to the list.",
                &["Location!", "Idempotency-Replayed"],
            )
            .add_problems(&[400])
            .for_body();
        let parameters =
            [parameters::record_parameters(record), vec![parameters::parameter_reference("Idempotency-Key")]]
                .concat();
        let summary = format!("Create one {name}, or many in one transaction");
        let mut operation =
            self.operation(&names.reserve(&format!("create{name}")), summary, parameters, responses);
        let required = record.fields.iter().any(is_required);
        operation["requestBody"] = json!({ "required": required, "content": content });
        operation
    }

    /// Adds an example to the media type: tools do not find the one of a schema inside `anyOf`.
    pub fn add_example(&self, media: &mut Json, form: &str) {
        let fields = &self.record().fields;
        let example = match form {
            "Patch" => example_values::example_patch(self.model, fields),
            _ => example_values::example_input(self.model, self.record()),
        };
        if let Some(example) = example {
            media["example"] = example;
        }
    }

    /// Links to the operations that take the id of a record.
    fn record_links(&self, id: &str) -> Json {
        let ids = self.ids.for_record(self.collection.record);
        let with_if_match = |operation: &str| {
            let mut link = self.operation_link(operation, id);
            link["parameters"]["header.If-Match"] = "$response.header.ETag".into();
            link
        };
        let mut links = json!({
            "get": self.operation_link(&ids.get, id), "replace": with_if_match(&ids.replace),
            "update": with_if_match(&ids.patch), "delete": self.operation_link(&ids.delete, id),
        });
        for (nested, list_id) in nested_collections(self.record()).zip(&ids.nested) {
            links[&format!("list-{}", nested.segment)] = self.operation_link(list_id, id);
        }
        links
    }

    fn record_response(&self, description: &str, names: &[&str], links: Json) -> Json {
        let content = json!({ "application/json": { "schema": response_schema(self.record()) } });
        json!({ "description": description, "content": content, "headers": header_references(names), "links": links })
    }

    fn get_operation(&self) -> Json {
        let links = self.record_links("$request.path.id");
        let mut response = self.record_response("The record.", &["ETag!"], links);
        response["content"]["text/html"] = page_content();
        let responses = OperationResponses::new(ProblemFormat::Negotiated)
            .add(200, response)
            .for_reading()
            .add_problems(&[400, 404, 406]);
        let mut parameters = parameters::record_parameters(self.record());
        parameters.extend(parameters::CONDITIONAL_HEADERS.map(parameters::parameter_reference));
        let id = &self.ids.for_record(self.collection.record).get;
        self.operation(id, format!("One {}", self.record().name), parameters, responses)
    }

    fn change_parameters(&self) -> Vec<Json> {
        let mut parameters = parameters::record_parameters(self.record());
        parameters
            .extend(["If-Match", "If-None-Match", "Idempotency-Key"].map(parameters::parameter_reference));
        parameters
    }

    fn change_responses(&self) -> OperationResponses {
        let links = self.record_links("$request.path.id");
        OperationResponses::new(ProblemFormat::Negotiated)
            .add(
                200,
                self.record_response(
                    "The record after the change.",
                    &["ETag!", "Idempotency-Replayed"],
                    links,
                ),
            )
            .add_problems(&[400, 404])
            .for_body()
    }

    /// The operation of PUT and of POST to a record, which do the same.
    fn replace_operation(&self, id: &str) -> Json {
        let (record, name) = (self.record(), &self.record().name);
        let mut content =
            json!({ "application/json": { "schema": schema_reference(&format!("{name}.Whole")) } });
        self.add_example(&mut content["application/json"], "Whole");
        add_form_content(&mut content, name);
        let responses = self.change_responses().add_empty(
            303,
            "Replaced by a form; redirects to the record.",
            &["Location!", "Idempotency-Replayed"],
        );
        let summary = format!("Replace the whole {name}");
        let mut operation = self.operation(id, summary, self.change_parameters(), responses);
        let required = record.fields.iter().any(is_required);
        operation["requestBody"] = json!({ "required": required, "content": content });
        operation
    }

    fn patch_operation(&self) -> Json {
        let name = &self.record().name;
        let mut media = json!({ "schema": schema_reference(&format!("{name}.Patch")) });
        self.add_example(&mut media, "Patch");
        let content = json!({ "application/merge-patch+json": media, "application/json": media });
        let summary = format!("Change some fields of one {name} (JSON Merge Patch)");
        let id = &self.ids.for_record(self.collection.record).patch;
        let mut operation = self.operation(id, summary, self.change_parameters(), self.change_responses());
        operation["requestBody"] = json!({ "required": true, "content": content });
        operation
    }

    fn delete_operation(&self) -> Json {
        let responses = OperationResponses::new(ProblemFormat::Negotiated)
            .add_empty(
                204,
                "Deleted, if `Accept` names `application/json` and not `*/*`.",
                &["Idempotency-Replayed"],
            )
            .add_empty(303, "Deleted; redirects to the list.", &["Location!", "Idempotency-Replayed"])
            .add_problems(&[400, 404])
            .for_writing();
        let parameters =
            ["If-Match", "If-None-Match", "Idempotency-Key"].map(parameters::parameter_reference);
        let id = &self.ids.for_record(self.collection.record).delete;
        self.operation(id, format!("Delete one {}", self.record().name), parameters.into(), responses)
    }

    fn delete_form_operation(&self, names: &mut UniqueNames) -> Json {
        let responses = OperationResponses::new(ProblemFormat::Negotiated)
            .add_empty(303, "Deleted; redirects to the list.", &["Location!", "Idempotency-Replayed"])
            .add_problems(&[400, 404])
            .for_writing();
        let parameters =
            ["If-Match", "If-None-Match", "Idempotency-Key"].map(parameters::parameter_reference);
        let name = &self.record().name;
        let summary = format!("Delete one {name}, from a form");
        self.operation(&names.reserve(&format!("delete{name}ByForm")), summary, parameters.into(), responses)
    }

    /// The operation of a page with a form. Query parameters fill its controls.
    fn form_page_operation(&self, names: &mut UniqueNames, kind: &str, summary: &str) -> Json {
        let name = &self.record().name;
        let ok = json!({ "description": "The page.", "content": { "text/html": page_content() }, "headers": header_references(&["ETag"]) });
        let problems: &[u16] = if kind == "new" { &[400, 406] } else { &[400, 404, 406] };
        let responses = OperationResponses::new(ProblemFormat::Negotiated)
            .add(200, ok)
            .for_reading()
            .add_problems(problems);
        let article = if kind == "new" { "" } else { "one " };
        let id = names.reserve(&format!("{kind}{name}Page"));
        let parameters = parameters::CONDITIONAL_HEADERS.map(parameters::parameter_reference);
        self.operation(&id, format!("{summary} {article}{name}"), parameters.into(), responses)
    }

    fn nested_items(
        &self,
        names: &mut UniqueNames,
        position: usize,
        segment: &str,
        target: RecordTypeId,
    ) -> Vec<PathItem> {
        let (parent, child) = (self.record(), self.model.record(target));
        let list_id = &self.ids.for_record(self.collection.record).nested[position];
        let one_id = names.reserve(&format!("get{}{}", parent.name, pascal_case(segment)));
        let child_id = format!("{}Id", camel_case(&child.name));
        let path = format!("{}/{{id}}/{segment}", self.collection.path);

        let mut parameters = parameters::list_parameters(self.model, child, self.limits);
        parameters.extend(parameters::CONDITIONAL_HEADERS.map(parameters::parameter_reference));
        let first = json!({ "operationId": one_id, "parameters": {
            "id": "$request.path.id", &child_id: first_key(child),
        } });
        let ok = json!({
            "description": "The requested part of the list.", "content": list_content(child),
            "headers": header_references(&["ETag", "Link", "X-Total-Count", "Content-Disposition"]), "links": { "first": first },
        });
        let responses = OperationResponses::new(ProblemFormat::Negotiated)
            .add(200, ok)
            .for_reading()
            .add_problems(&[400, 404, 406]);
        let summary = format!("The {segment} of one {}", parent.name);
        let list = self.operation(list_id, summary, parameters, responses);

        let content =
            json!({ "application/json": { "schema": response_schema(child) }, "text/html": page_content() });
        let links = json!({ "get": self.operation_link(&self.ids.for_record(target).get, &format!("$request.path.{child_id}")) });
        let ok = json!({
            "description": "The record.", "content": content, "headers": header_references(&["ETag!"]), "links": links,
        });
        let responses = OperationResponses::new(ProblemFormat::Negotiated)
            .add(200, ok)
            .for_reading()
            .add_problems(&[400, 404, 406]);
        let summary = format!("One of the {segment} of one {}", parent.name);
        let mut parameters = parameters::record_parameters(child);
        parameters.extend(parameters::CONDITIONAL_HEADERS.map(parameters::parameter_reference));
        let one = self.operation(&one_id, summary, parameters, responses);
        vec![
            (
                path.clone(),
                json!({ "parameters": [parameters::id_parameter("id", self.record().key_form())], "get": list }),
            ),
            (
                format!("{path}/{{{child_id}}}"),
                json!({ "parameters": [parameters::id_parameter("id", self.record().key_form()), parameters::id_parameter(&child_id, child.key_form())], "get": one }),
            ),
        ]
    }
}

fn list_content(record: &RecordType) -> Json {
    let mut item = response_schema(record);
    if let Some(choices) = item["anyOf"].as_array_mut() {
        choices.push(schema_reference(GROUP_SCHEMA));
    }
    let items = json!({ "type": "array", "items": item.clone() });
    json!({
        "application/json": { "schema": items }, "application/x-ndjson": line_content(&item),
        "text/csv": { "schema": { "type": "string" } }, "text/html": page_content(),
    })
}

/// Records, one per line. OpenAPI 3.1 can only say that they are text; `x-item-schema` says what each line holds.
pub(super) fn line_content(item: &Json) -> Json {
    let description = "One record per line, as JSON; each line is like an item of the JSON array.";
    json!({
        "schema": { "type": "string", "contentMediaType": "application/x-ndjson", "description": description },
        "x-item-schema": item,
    })
}

/// The content of a page: its HTML is not part of the contract.
fn page_content() -> Json {
    json!({ "schema": { "type": "string" } })
}

fn add_form_content(content: &mut Json, name: &str) {
    for media in ["application/x-www-form-urlencoded", "multipart/form-data"] {
        content[media] = json!({ "schema": schema_reference(&format!("{name}.Form")) });
    }
}
