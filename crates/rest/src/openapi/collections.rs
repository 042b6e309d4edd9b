//! The operations of a collection and its records: what each method takes, gives and leads to.

use serde_json::{Value as Json, json};

use crate::openapi::parameters;
use crate::openapi::responses::{Responses, Voice, headers};
use crate::openapi::schemas::{answered, is_needed};
use crate::openapi::unique_names::{Names, lower, pascal};
use crate::openapi::values::reference;
use trefoil_engine::PlanLimits;
use trefoil_model::values::example_values;
use trefoil_model::{Model, RecordType, TypeId};
use trefoil_resources::collection::{Collection, inverses};

/// A path and its operations.
pub type Item = (String, Json);

/// One collection while it is described.
pub struct Described<'d> {
    pub model: &'d Model,
    pub limits: &'d PlanLimits,
    pub collection: &'d Collection,
    pub ids: &'d Ids,
}

/// The operations that others lead to, by record type.
pub struct Ids(Vec<OfType>);

struct OfType {
    get: String,
    replace: String,
    patch: String,
    delete: String,
    nested: Vec<String>,
}

impl Ids {
    pub fn new(model: &Model, names: &mut Names) -> Ids {
        let of_type = |record: &RecordType| OfType {
            get: names.take(&format!("get{}", record.name)),
            replace: names.take(&format!("replace{}", record.name)),
            patch: names.take(&format!("update{}", record.name)),
            delete: names.take(&format!("delete{}", record.name)),
            nested: inverses(record)
                .map(|(segment, ..)| names.take(&format!("list{}{}", record.name, pascal(&segment))))
                .collect(),
        };
        Ids(model.records.iter().map(of_type).collect())
    }

    fn of(&self, record: TypeId) -> &OfType {
        &self.0[record.0]
    }
}

impl Described<'_> {
    fn record(&self) -> &RecordType {
        self.model.record(self.collection.record)
    }

    pub fn items(&self, names: &mut Names) -> Vec<Item> {
        let path = &self.collection.path;
        let mut items = vec![
            (path.clone(), json!({ "get": self.list(names), "post": self.create(names) })),
            (
                format!("{path}/{{id}}"),
                json!({
                    "parameters": [parameters::id("id")],
                    "get": self.get(),
                    "put": self.replace(&self.ids.of(self.collection.record).replace),
                    "post": self.replace(&names.take(&format!("overwrite{}", self.record().name))),
                    "patch": self.patch(),
                    "delete": self.delete(),
                }),
            ),
            (
                format!("{path}/{{id}}/delete"),
                json!({
                    "parameters": [parameters::id("id")],
                    "get": self.asks(names, "delete", "The page that asks whether to delete"),
                    "post": self.delete_by_form(names),
                }),
            ),
            (format!("{path}/new"), json!({ "get": self.asks(names, "new", "The form for a new") })),
            (
                format!("{path}/{{id}}/edit"),
                json!({
                    "parameters": [parameters::id("id")],
                    "get": self.asks(names, "edit", "The form that changes"),
                }),
            ),
        ];
        for (position, (segment, of, _)) in inverses(self.record()).enumerate() {
            items.extend(self.nested(names, position, &segment, of));
        }
        items
    }

    fn operation(&self, id: &str, summary: String, parameters: Vec<Json>, responses: Responses) -> Json {
        json!({
            "operationId": id, "tags": [self.record().name], "summary": summary,
            "parameters": parameters, "responses": responses.finish(),
        })
    }

    fn list(&self, names: &mut Names) -> Json {
        let id = names.take(&format!("list{}", pascal(&self.collection.path)));
        let mut parameters = parameters::of_list(self.record(), self.limits);
        parameters.extend(parameters::CONDITIONS.map(parameters::reference));
        let is_live = !self.collection.deeds.is_empty();
        if is_live {
            parameters.extend(["snapshot", "Last-Event-ID"].map(parameters::reference));
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
            "description": self.list_said(is_live), "content": content,
            "headers": headers(&["ETag", "Link", "X-Total-Count", "Content-Disposition"]),
            "links": { "first": self.link(&self.ids.of(self.collection.record).get, "$response.body#/0/id") },
        });
        let responses = Responses::new(Voice::Negotiated).add(200, ok).reads().refused(&[400, 406]);
        self.operation(&id, format!("A part of the list of {}", self.plural()), parameters, responses)
    }

    fn list_said(&self, is_live: bool) -> String {
        let mut said = "The part of the list that was asked for.".to_owned();
        if let Some(texts) = &self.collection.texts {
            let field = &self.record().field(texts.list.field).name;
            said = format!(
                "The `{field}` of each, all of them unless `page`, `size` or `after` is given; objects where `fields` is."
            );
        }
        said.push_str(" `application/x-ndjson` is every record that matches, one a line, and `text/csv` a table of them; both are streamed, and a part where `page`, `size` or `after` is given.");
        if is_live {
            said.push_str(" `text/event-stream` is the live stream; it takes `fields` and `snapshot` alone.");
        }
        said
    }

    fn plural(&self) -> &str {
        self.collection.path.trim_start_matches('/')
    }

    fn link(&self, operation: &str, id: &str) -> Json {
        json!({ "operationId": operation, "parameters": { "id": id } })
    }

    fn create(&self, names: &mut Names) -> Json {
        let (record, name) = (self.record(), &self.record().name);
        let many = json!({ "type": "array", "items": reference(&format!("{name}.New")) });
        let new = reference(&format!("{name}.New"));
        let mut json = vec![new, many.clone()];
        let mut content = json!({ "application/json": {}, "application/x-ndjson": { "schema": many } });
        let shown = json!({ "anyOf": [
            reference(name), reference(&format!("{name}.Part")), { "type": "array", "items": answered(record) },
        ] });
        let mut answer = json!({ "application/json": { "schema": shown } });
        if let Some(texts) = &self.collection.texts {
            let text = crate::openapi::values::of_field(
                record.field(texts.list.field),
                crate::openapi::values::Side::Typed,
            );
            json.push(text.clone());
            content["text/plain"] = json!({ "schema": text });
            answer["text/plain"] = json!({ "schema": { "type": "string" } });
        }
        content["application/json"]["schema"] = json!({ "anyOf": json });
        self.offer_example(&mut content["application/json"], "New");
        add_forms(&mut content, name);
        let created = json!({
            "description": "Made. The record, or, where an array or lines were sent, the records in the same order.",
            "content": answer, "headers": headers(&["Location", "ETag", "Idempotency-Replayed"]),
            "links": self.links_of_one("$response.body#/id"),
        });
        let responses = Responses::new(Voice::Negotiated)
            .add(201, created)
            .plain(303, "A form made it; go on to the list.", &["Location!", "Idempotency-Replayed"])
            .refused(&[400])
            .takes();
        let parameters = vec![parameters::fields(record), parameters::reference("Idempotency-Key")];
        let summary = format!("Make one {name}, or many at once: all or nothing");
        let mut operation =
            self.operation(&names.take(&format!("create{name}")), summary, parameters, responses);
        let required = record.fields.iter().any(is_needed);
        operation["requestBody"] = json!({ "required": required, "content": content });
        operation
    }

    /// The document's own example stands beside `anyOf`, where tools would not look for it.
    fn offer_example(&self, media: &mut Json, form: &str) {
        let fields = &self.record().fields;
        let example = match form {
            "Patch" => example_values::patch(self.model, fields),
            _ => example_values::given(self.model, fields),
        };
        if let Some(example) = example {
            media["example"] = example;
        }
    }

    /// Where one can go with the id of a record.
    fn links_of_one(&self, id: &str) -> Json {
        let ids = self.ids.of(self.collection.record);
        let guarded = |operation: &str| {
            let mut link = self.link(operation, id);
            link["parameters"]["header.If-Match"] = "$response.header.ETag".into();
            link
        };
        let mut links = json!({
            "get": self.link(&ids.get, id), "replace": guarded(&ids.replace),
            "update": guarded(&ids.patch), "delete": self.link(&ids.delete, id),
        });
        for ((segment, ..), nested) in inverses(self.record()).zip(&ids.nested) {
            links[&format!("list-{segment}")] = self.link(nested, id);
        }
        links
    }

    fn shown(&self, description: &str, names: &[&str], links: Json) -> Json {
        let content = json!({ "application/json": { "schema": answered(self.record()) } });
        json!({ "description": description, "content": content, "headers": headers(names), "links": links })
    }

    fn get(&self) -> Json {
        let links = self.links_of_one("$request.path.id");
        let mut shown = self.shown("The record.", &["ETag!"], links);
        shown["content"]["text/html"] = page();
        let responses = Responses::new(Voice::Negotiated).add(200, shown).reads().refused(&[400, 404, 406]);
        let mut parameters = vec![parameters::fields(self.record())];
        parameters.extend(parameters::CONDITIONS.map(parameters::reference));
        let id = &self.ids.of(self.collection.record).get;
        self.operation(id, format!("One {}", self.record().name), parameters, responses)
    }

    fn changing(&self) -> Vec<Json> {
        let mut parameters = vec![parameters::fields(self.record())];
        parameters.extend(["If-Match", "If-None-Match", "Idempotency-Key"].map(parameters::reference));
        parameters
    }

    fn changed(&self) -> Responses {
        let links = self.links_of_one("$request.path.id");
        Responses::new(Voice::Negotiated)
            .add(200, self.shown("The record as it is now.", &["ETag!", "Idempotency-Replayed"], links))
            .refused(&[400, 404])
            .takes()
    }

    /// PUT, and POST to a record, do the same.
    fn replace(&self, id: &str) -> Json {
        let (record, name) = (self.record(), &self.record().name);
        let mut content = json!({ "application/json": { "schema": reference(&format!("{name}.Whole")) } });
        self.offer_example(&mut content["application/json"], "Whole");
        add_forms(&mut content, name);
        let responses = self.changed().plain(
            303,
            "A form overwrote it; go on to the record.",
            &["Location!", "Idempotency-Replayed"],
        );
        let summary = format!("Overwrite the whole {name}");
        let mut operation = self.operation(id, summary, self.changing(), responses);
        let required = record.fields.iter().any(is_needed);
        operation["requestBody"] = json!({ "required": required, "content": content });
        operation
    }

    fn patch(&self) -> Json {
        let name = &self.record().name;
        let mut media = json!({ "schema": reference(&format!("{name}.Patch")) });
        self.offer_example(&mut media, "Patch");
        let content = json!({ "application/merge-patch+json": media, "application/json": media });
        let summary = format!("Change some fields of one {name} (JSON Merge Patch)");
        let id = &self.ids.of(self.collection.record).patch;
        let mut operation = self.operation(id, summary, self.changing(), self.changed());
        operation["requestBody"] = json!({ "required": true, "content": content });
        operation
    }

    fn delete(&self) -> Json {
        let responses = Responses::new(Voice::Negotiated)
            .plain(204, "Gone, for who accepts `application/json` and not `*/*`.", &["Idempotency-Replayed"])
            .plain(303, "Gone; go on to the list.", &["Location!", "Idempotency-Replayed"])
            .refused(&[400, 404])
            .writes();
        let parameters = ["If-Match", "If-None-Match", "Idempotency-Key"].map(parameters::reference);
        let id = &self.ids.of(self.collection.record).delete;
        self.operation(id, format!("Delete one {}", self.record().name), parameters.into(), responses)
    }

    fn delete_by_form(&self, names: &mut Names) -> Json {
        let responses = Responses::new(Voice::Negotiated)
            .plain(303, "Gone; go on to the list.", &["Location!", "Idempotency-Replayed"])
            .refused(&[400, 404])
            .writes();
        let parameters = ["If-Match", "If-None-Match", "Idempotency-Key"].map(parameters::reference);
        let name = &self.record().name;
        let summary = format!("Delete one {name}, from a form");
        self.operation(&names.take(&format!("delete{name}ByForm")), summary, parameters.into(), responses)
    }

    /// A page with a form, for people alone. What stands in the query fills its controls.
    fn asks(&self, names: &mut Names, what: &str, summary: &str) -> Json {
        let name = &self.record().name;
        let ok = json!({ "description": "The page.", "content": { "text/html": page() }, "headers": headers(&["ETag"]) });
        let refused: &[u16] = if what == "new" { &[400, 406] } else { &[400, 404, 406] };
        let responses = Responses::new(Voice::Negotiated).add(200, ok).reads().refused(refused);
        let article = if what == "new" { "" } else { "one " };
        let id = names.take(&format!("{what}{name}Page"));
        let parameters = parameters::CONDITIONS.map(parameters::reference);
        self.operation(&id, format!("{summary} {article}{name}"), parameters.into(), responses)
    }

    fn nested(&self, names: &mut Names, position: usize, segment: &str, of: TypeId) -> Vec<Item> {
        let (above, below) = (self.record(), self.model.record(of));
        let list_id = &self.ids.of(self.collection.record).nested[position];
        let one_id = names.take(&format!("get{}{}", above.name, pascal(segment)));
        let inner = format!("{}Id", lower(&below.name));
        let path = format!("{}/{{id}}/{segment}", self.collection.path);

        let mut parameters = parameters::of_list(below, self.limits);
        parameters.extend(parameters::CONDITIONS.map(parameters::reference));
        let first = json!({ "operationId": one_id, "parameters": {
            "id": "$request.path.id", &inner: "$response.body#/0/id",
        } });
        let ok = json!({
            "description": "The part of the list that was asked for.", "content": list_content(below),
            "headers": headers(&["ETag", "Link", "X-Total-Count", "Content-Disposition"]), "links": { "first": first },
        });
        let responses = Responses::new(Voice::Negotiated).add(200, ok).reads().refused(&[400, 404, 406]);
        let summary = format!("The {segment} of one {}", above.name);
        let list = self.operation(list_id, summary, parameters, responses);

        let content = json!({ "application/json": { "schema": answered(below) }, "text/html": page() });
        let links = json!({ "get": self.link(&self.ids.of(of).get, &format!("$request.path.{inner}")) });
        let ok = json!({
            "description": "The record.", "content": content, "headers": headers(&["ETag!"]), "links": links,
        });
        let responses = Responses::new(Voice::Negotiated).add(200, ok).reads().refused(&[400, 404, 406]);
        let summary = format!("One of the {segment} of one {}", above.name);
        let mut parameters = vec![parameters::fields(below)];
        parameters.extend(parameters::CONDITIONS.map(parameters::reference));
        let one = self.operation(&one_id, summary, parameters, responses);
        vec![
            (path.clone(), json!({ "parameters": [parameters::id("id")], "get": list })),
            (
                format!("{path}/{{{inner}}}"),
                json!({ "parameters": [parameters::id("id"), parameters::id(&inner)], "get": one }),
            ),
        ]
    }
}

fn list_content(record: &RecordType) -> Json {
    let items = json!({ "type": "array", "items": answered(record) });
    json!({
        "application/json": { "schema": items }, "application/x-ndjson": { "schema": items },
        "text/csv": { "schema": { "type": "string" } }, "text/html": page(),
    })
}

/// A page is for people; what is in it is no contract.
fn page() -> Json {
    json!({ "schema": { "type": "string" } })
}

fn add_forms(content: &mut Json, name: &str) {
    for media in ["application/x-www-form-urlencoded", "multipart/form-data"] {
        content[media] = json!({ "schema": reference(&format!("{name}.Form")) });
    }
}
